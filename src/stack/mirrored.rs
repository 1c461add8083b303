//! CheckMirrored: `Mcp-Param-*` headers agree with the arguments (PROTOCOL B3, SECURITY MSG-9).
//!
//! Only the tool's own schema says which headers mirror what, so this gate comes after the route is known. Headers that
//! the schema does not name were checked for syntax at the edge and are dropped; the upstream's are built anew.

use super::{Error, Gate};
use crate::{
    protocol::mirror,
    stage::{Routed, Target},
};

/// Compares the headers that mirror arguments with the arguments.
#[derive(Debug)]
pub(super) struct CheckMirrored;

impl Gate<Routed> for CheckMirrored {
    type Pass = Routed;

    fn admit(&self, routed: Routed) -> Result<Routed, Error> {
        let (Some(sent), Target::Upstream(route)) = (&routed.call.mirrored, &routed.target) else {
            return Ok(routed);
        };
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
