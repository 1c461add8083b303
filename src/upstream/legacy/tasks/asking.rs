//! What a task asks of a caller who only looks at it now and then, and what becomes of the answers (PROTOCOL D3).
//!
//! Guarantees: one look at a time has its server ask; answers are held to what was asked before anything is taken (SECURITY
//! STATE-3), and nobody is told that a question was refused that nobody refused.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout, timeout_at};

use super::{
    super::{
        Legacy,
        inquiries::{self, Inquiry, Known},
        open::OpenCall,
    },
    Plan, about,
    states::{ended, goes_on, with},
};
use crate::{
    call::{Call, InputRequired, Outcome, Resume, State, TaskOp},
    catalog::Route,
    json::{Edits, Fate, Json, Node},
    protocol::ClientCapabilities,
    resume::{Asked, Bounds},
    upstream::{Peer, UpstreamError, asking::Offer, terms::CallSlot},
};

/// How long a server that waits for answers may take to ask.
const ASKING: Duration = Duration::from_secs(5);
/// How long a look waits for what comes of an answer: what is not answered is asked again at once.
const ANSWERING: Duration = Duration::from_millis(500);

impl Legacy {
    /// The state of a task that waits for its caller, with what it asks (PROTOCOL D3): its server asks on the stream of its
    /// result, which is held open from here on until the answers come.
    pub(super) async fn inquired(
        &self,
        call: &Call,
        route: &Route,
        state: &Json,
    ) -> Result<Outcome, UpstreamError> {
        let offer = Offer::to(&self.terms, call);
        let asks = |requests: &Json| {
            let requests = offered(requests, offer);
            with(state, "input_required", ("inputRequests", requests))
        };
        // Nothing was declared, so nothing can be asked that anybody could answer.
        if offer.is_none() {
            return Ok(asks(&Json::empty_object()));
        }
        let mut result = about(call, TaskOp::Result);
        result.deadline = call.deadline.min(Instant::now() + ASKING);
        let task = inquirer(call, route);
        let turn = match self.inquiries.seek(&task, &result, &self.parked_calls) {
            Known::Asked(requests) => return Ok(asks(&requests)),
            Known::Full => return Err(UpstreamError::Overloaded),
            Known::Nothing(turn) => turn,
            Known::Sought(sought) => {
                let until = if sought.answering {
                    call.deadline.min(Instant::now() + ANSWERING)
                } else {
                    result.deadline
                };
                // Whether that took too long shows in what is known.
                drop(timeout_at(until, sought.over.cancelled()).await);
                let held = |number| self.parked_calls.holds(number, &result);
                return Ok(match self.inquiries.pending(&task, held) {
                    Some((_, requests)) => asks(&requests),
                    // What it asked has just been answered.
                    None if sought.answering => goes_on(state),
                    None => asks(&Json::empty_object()),
                });
            }
        };
        let reply = match self.once(&result, route, Plan::None).await {
            // It has not asked on this stream, perhaps because it has on another.
            Err(UpstreamError::Timeout(_) | UpstreamError::Engaged) => {
                return Ok(asks(&Json::empty_object()));
            }
            // Others are being asked on its pipe. Where there are no turns, there was no room.
            Err(UpstreamError::Overloaded) if !self.carries_all() => {
                return Ok(asks(&Json::empty_object()));
            }
            reply => reply?,
        };
        if let Some(inquiry) = inquiry_of(ended(reply).await) {
            let requests = inquiry.requests.clone();
            turn.keep(inquiry);
            return Ok(asks(&requests));
        }
        Ok(goes_on(state))
    }

    /// Takes answers to what a task asks. Those to keys that are not outstanding are ignored, and what comes of them shows
    /// when the task is looked at again.
    pub(super) async fn updated(
        &self,
        call: &Call,
        route: &Route,
    ) -> Result<Outcome, UpstreamError> {
        let result = about(call, TaskOp::Result);
        let task = inquirer(call, route);
        let held = |number| self.parked_calls.holds(number, &result);
        let brought = call.params.root().member("inputResponses");
        let answered = match self.inquiries.pending(&task, held).zip(brought) {
            Some(((number, requests), brought)) => {
                let bounds = &self.terms.peer.asking;
                let answers = outstanding(&requests, &call.params.slice(brought), bounds)?;
                answers.map(|answers| (number, answers))
            }
            None => None,
        };
        let Some((number, answers)) = answered else {
            return self.acknowledged(call, route).await;
        };
        // Before the question is taken: refused here, the answers can be brought again.
        let permit = self
            .terms
            .queue
            .enter(&call.caller.principal, call.deadline)
            .await?;
        let Some((Inquiry { hold, .. }, turn)) = self.inquiries.take(&task, number) else {
            // Somebody else was quicker.
            drop(permit);
            return self.acknowledged(call, route).await;
        };
        let Some(open) = self.parked_calls.take(number, &result).await else {
            drop((permit, turn));
            return self.acknowledged(call, route).await;
        };
        let resumed = Call {
            resume: Some(Resume {
                responses: Some(answers),
                hold,
                ..Resume::default()
            }),
            ..result
        };
        let (inquiries, parked_calls) =
            (Arc::clone(&self.inquiries), Arc::clone(&self.parked_calls));
        // The answer is owed at once, and the task may take as long as it likes.
        self.terms.tasks.spawn(async move {
            let mut next = pin!(asked_next(open, &resumed, permit));
            let (turn, inquiry) = match timeout(ASKING, &mut next).await {
                Ok(inquiry) => (Some(turn), inquiry),
                // Should its server still want answers, whoever looks may have it asked: these may not have come to it.
                Err(_elapsed) => {
                    drop(turn);
                    let inquiry = next.await;
                    let free = match inquiries.seek(&task, &resumed, &parked_calls) {
                        Known::Nothing(turn) => Some(turn),
                        Known::Asked(_) | Known::Sought(_) | Known::Full => None,
                    };
                    (free, inquiry)
                }
            };
            if let (Some(turn), Some(inquiry)) = (turn, inquiry) {
                turn.keep(inquiry);
            }
        });
        Ok(Outcome::Complete(Json::empty_object()))
    }
}

/// What is asked, without what may not be asked of whoever looks: each look declares for itself (SECURITY STATE-3).
fn offered(requests: &Json, offer: Offer) -> Json {
    let fate = |_: &str, request: Node<'_>| {
        let method = request.member("method").and_then(Node::as_str);
        let method = method.unwrap_or_default();
        match offer.allows(&method, request.member("params")) {
            Ok(()) => Fate::Keep,
            Err(_) => Fate::Remove,
        }
    };
    let mut edits = Edits::new();
    edits.members(requests.root(), fate, &[]);
    requests.splice(&edits)
}

/// The answers to what is asked, if there are any among what was brought. What it was asked for when it was, its caller need not
/// declare again.
///
/// # Errors
/// [`UpstreamError::BadAnswer`] for one that its question may not have (SECURITY STATE-3).
fn outstanding(
    requests: &Json,
    brought: &Json,
    bounds: &Bounds,
) -> Result<Option<Json>, UpstreamError> {
    let anything = ClientCapabilities::read(Offer::LISTING.json());
    let anything = anything.unwrap_or(ClientCapabilities::NONE);
    let asked = Asked::of(requests, &anything, bounds);
    let asked = asked.map_err(|fault| UpstreamError::Protocol(fault.to_string()))?;
    let answers = asked.answers(brought);
    let answers = answers.map_err(|bad| UpstreamError::BadAnswer(bad.key.map(Into::into)))?;
    let any = answers.root().members().next().is_some();
    Ok(any.then_some(answers))
}

/// What a task asks once it has the answers that `resumed` brings, if it does.
async fn asked_next(open: Box<OpenCall>, resumed: &Call, permit: CallSlot) -> Option<Inquiry> {
    match open.resume(resumed, resumed.deadline, permit).await {
        Ok(reply) => inquiry_of(ended(reply).await),
        Err(error) => {
            tracing::debug!(%error, "a task could not be answered");
            None
        }
    }
}

/// What is to be kept of an outcome that asks.
fn inquiry_of(outcome: Outcome) -> Option<Inquiry> {
    let Outcome::InputRequired(InputRequired {
        requests,
        state: State::Parked(number),
        hold,
    }) = outcome
    else {
        return None;
    };
    Some(Inquiry {
        number,
        hold,
        requests,
    })
}

/// Which task asks.
fn inquirer(call: &Call, route: &Route) -> inquiries::Task {
    (call.caller.affinity.key.clone(), route.local.clone())
}
