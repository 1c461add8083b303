//! Resolve: where a call goes. A lookup, never a parse of a name.

use super::{Error, Gate, Missing};
use crate::{
    call::{CompletionRef, Op},
    stage::{Pinned, Routed, Target},
};

/// Finds the way of a call in its snapshot.
#[derive(Debug)]
pub(super) struct Resolve;

impl Gate<Pinned> for Resolve {
    type Pass = Routed;

    fn admit(&self, call: Pinned) -> Result<Routed, Error> {
        let catalog = &call.snapshot().catalog;
        let scope = &call.call().scope;
        let unknown = |missing| Error::Unknown(missing);
        if matches!(call.op(), Op::Complete(_)) && !offers_completions(&call) {
            return Err(Error::NotOffered(call.op().method().into()));
        }
        let target = match call.op() {
            Op::Listen(_) => return Err(Error::NotOffered(call.op().method().into())),
            Op::Discover | Op::List(..) => Target::Snapshot,
            Op::CallTool(name) => Target::Upstream(
                catalog
                    .tool(scope, name)
                    .ok_or_else(|| unknown(Missing::Tool(name.clone())))?
                    .clone(),
            ),
            Op::GetPrompt(name) | Op::Complete(CompletionRef::Prompt(name)) => Target::Upstream(
                catalog
                    .prompt(scope, name)
                    .ok_or_else(|| unknown(Missing::Prompt(name.clone())))?
                    .clone(),
            ),
            Op::ReadResource(uri) => Target::Upstream(
                catalog
                    .resource(scope, uri)
                    .ok_or_else(|| unknown(Missing::Resource(uri.clone())))?,
            ),
            Op::Complete(CompletionRef::Resource(uri)) => Target::Upstream(
                catalog
                    .template(scope, uri)
                    .ok_or_else(|| unknown(Missing::Resource(uri.clone())))?,
            ),
        };
        Ok(call.into_routed(target))
    }
}

/// Whether any upstream of the endpoint completes: only then is the method offered (PROTOCOL D4).
fn offers_completions(call: &Pinned) -> bool {
    let face = call
        .snapshot()
        .catalog
        .face(&call.call().scope, call.call().caller.revision);
    face.is_some_and(|face| face.capabilities.root().member("completions").is_some())
}
