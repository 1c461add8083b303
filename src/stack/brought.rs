//! Answers that a caller brings along with a call, before it was asked anything that we know of.
//!
//! A server of the stateless era that gives no state with its question takes the answers in any later call, so a client may
//! bring them at once. Guarantees: the upstream gets the call without them first, and them only if it then asks for just
//! these; what it did not ask for goes no further, nor does an answer that does not fit (SECURITY STATE-3): then the question
//! goes to the caller as any other. Deliberately absent: questions with state, which only our own state can answer.

use std::sync::Arc;

use super::{Error, Upstreams};
use crate::{
    call::{Call, InputRequired, Outcome, Reply, Resume, State},
    json::Json,
    protocol::ClientCapabilities,
    resume::{Asked, Bounds},
    stage::Passage,
};

/// Carries the call, and once more with what of `brought` was asked for, if that is everything.
///
/// # Errors
/// As [`Upstreams::call`].
pub(super) async fn call(
    upstreams: Arc<dyn Upstreams>,
    call: Box<Call>,
    passage: Passage,
    brought: Json,
    bounds: Bounds,
) -> Result<Reply, Error> {
    let reply = upstreams.call((*call).clone(), passage.clone()).await?;
    let Some(responses) = fitting(&reply, &call.caller.capabilities, &brought, &bounds) else {
        return Ok(reply);
    };
    let resume = Resume {
        responses: Some(responses),
        state: Some(State::Upstream(None)),
        ..Resume::default()
    };
    let again = Call {
        resume: Some(resume),
        ..*call
    };
    again.trail.goes_again();
    upstreams.call(again, passage).await
}

/// What of `brought` answers all that `reply` asks for.
fn fitting(
    reply: &Reply,
    capabilities: &ClientCapabilities,
    brought: &Json,
    bounds: &Bounds,
) -> Option<Json> {
    let Reply::Done(Outcome::InputRequired(InputRequired {
        requests,
        state: State::Upstream(None),
        ..
    })) = reply
    else {
        return None;
    };
    let asked = Asked::of(requests, capabilities, bounds).ok()?;
    let responses = asked.answers(brought).ok()?;
    asked.is_answered_by(&responses).then_some(responses)
}
