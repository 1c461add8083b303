//! CheckMirrored: `Mcp-Param-*` headers agree with the arguments (PROTOCOL B3, SECURITY MSG-9).
//!
//! Only the tool's own schema says which headers mirror what, so this gate comes after the route is known. Headers that
//! the schema does not name were checked for syntax at the edge and are dropped; the upstream's are built anew.

use super::{Error, Gate};
use crate::{protocol::mirror, stage::Permitted};

/// Compares the headers that mirror arguments with the arguments.
#[derive(Debug)]
pub(super) struct CheckMirrored;

impl Gate<Box<Permitted>> for CheckMirrored {
    type Pass = Box<Permitted>;

    fn admit(&self, routed: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        let (Some(sent), Some(passage)) = (&routed.call.mirrored, routed.passage()) else {
            return Ok(routed);
        };
        let route = passage.route();
        if route.headers.is_empty() {
            return Ok(routed);
        }
        let arguments = routed.call.params.root().member("arguments");
        for param in route.headers.iter() {
            let body = arguments.and_then(|arguments| mirror::rendered(arguments, param));
            let header = sent
                .iter()
                .find(|(name, _)| *name == param.header)
                .map(|(_, value)| value.as_str());
            let agree = match (&body, header) {
                (Some(body), Some(header)) => mirror::agrees(header, body, param.kind),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !agree {
                return Err(Error::HeaderMismatch {
                    header: param.header.as_str().into(),
                });
            }
        }
        Ok(routed)
    }
}
