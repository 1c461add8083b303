//! OpenResume and SealResume: a client can only return what it was given, where it was given it.
//! See PROTOCOL D2, SECURITY STATE-2, STATE-3.
//!
//! What an upstream asks is held to what the caller declared before it goes out, and its state is sealed; what comes back is
//! opened and checked before the upstream hears of it. A call that neither goes on nor asks passes both unread. An approval is at
//! stake from when it is brought; it is used by a call that is sent, or that leaves something to go on with (REL-3).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::StreamExt;

use super::{
    Error, Gate, Parts, Wrap,
    approve::{self, Answer, number},
};
use crate::{
    call::{
        Approved, Caller, Facts, InputRequired, Op, Outcome, Owner, Reply, ReplyStream, Resume,
        Stake, State, Step, Trail,
    },
    json::{Edits, Json},
    jsonrpc::RpcError,
    metrics::{Bound, reached},
    policy::{Permit, Refusal},
    protocol::{ClientCapabilities, UpstreamId, codes, meta, methods},
    resume::{Approval, Asked, Bounds, CallBinding, Fault, Given, NotAgain, Spent, Ticket},
    seal::{Sealer, unix_seconds},
    stage::{Consent, Passage, Permitted},
    tasks::clock,
    upstream::{FromUpstream, UpstreamError, words},
};

/// Opens what a call brings back.
#[derive(Debug)]
pub(super) struct OpenResume {
    sealer: Arc<Sealer>,
    spent: Arc<Spent>,
    life: u64,
}

impl OpenResume {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            sealer: parts.sealer.clone(),
            spent: Arc::new(Spent::new(parts.asking.life)),
            life: parts.asking.life,
        }
    }

    /// Puts an approval at stake for a call.
    fn stake(&self, approval: &Approval, caller: &Caller) -> Result<Option<Stake>, Error> {
        let principal = caller.principal.shared();
        let stake = self
            .spent
            .stake(approval.number, &principal, unix_seconds());
        stake.map(Some).map_err(|not| match not {
            NotAgain::Used => Error::StateInvalid,
            NotAgain::Full => Error::Limited("too many approvals at once; try again later"),
        })
    }
}

impl Gate<Box<Permitted>> for OpenResume {
    type Pass = Box<Permitted>;

    fn admit(&self, mut routed: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        let Some(resume) = routed.call.resume.take() else {
            return Ok(routed);
        };
        let Some(route) = routed.passage().map(Passage::route) else {
            return Ok(routed);
        };
        if !methods::may_ask_back(routed.call.op.method()) {
            return Ok(routed);
        }
        let Some(state) = resume.state else {
            // All our questions carry state, so these were asked for by nobody. They wait for a question (STATE-3).
            routed.brought = resume.responses;
            return Ok(routed);
        };
        let State::Sealed(text) = state else {
            return Err(Error::StateInvalid);
        };
        let bound_to = CallBinding {
            owner: &routed.call.owner(),
            op: &routed.call.op,
            params: &routed.call.params,
        };
        let ticket = Ticket::open(&self.sealer, bound_to, &text, unix_seconds(), self.life)
            .map_err(|_| Error::StateInvalid)?;
        // The state of one server is never shown to another that has taken its name since.
        if ticket.upstream != route.upstream || ticket.local != route.local {
            return Err(Error::StateInvalid);
        }
        // Also of what ends here: its record says in which round (PROTOCOL F20).
        routed.round = ticket.round;
        let round = ticket.round;
        routed.call.trail.note(|facts| facts.round = round);
        let responses = resume
            .responses
            .map(|responses| ticket.asked.answers(&responses))
            .transpose()
            .map_err(|bad| Error::BadAnswer {
                key: bad.key.map(Into::into),
            })?;
        // A call that is held open still has to be let go of, which its peer does when it finds the deadline passed.
        if routed.call.deadline <= clock::now() && !matches!(ticket.state, State::Parked(_)) {
            return Err(Error::Deadline);
        }
        if let Some(approval) = ticket.approval.filter(|approval| approval.given.is_none()) {
            // No upstream has heard of the call: it begins now, or not at all.
            let now = unix_seconds();
            routed.consent = match approve::answer(responses.as_ref(), &approval, now) {
                Answer::None => Consent::None,
                Answer::No => {
                    // It was answered: a yes that comes later with the same state is none. A no is one as often as it comes.
                    if let Ok(Some(stake)) = self.stake(&approval, &routed.call.caller) {
                        stake.mark_used();
                    }
                    Consent::Declined
                }
                Answer::Yes => {
                    routed.call.stake = self.stake(&approval, &routed.call.caller)?;
                    approve::approved(&routed.call, approval.number, now)
                }
            };
            return Ok(routed);
        }
        // What has no words for a refusal is not sent one: the call ends here (PROTOCOL D2b, H4).
        if !resume.refused.is_empty() && !matches!(ticket.state, State::Parked(_)) {
            return Err(Error::InputRefused);
        }
        if let Some(approval) = &ticket.approval {
            routed.call.stake = self.stake(approval, &routed.call.caller)?;
            if let Some(given) = approval.given {
                routed.consent = approve::approved(&routed.call, given.reference, given.at);
            }
        }
        routed.call.resume = Some(Resume {
            responses,
            refused: resume.refused,
            state: Some(ticket.state),
            hold: resume.hold,
        });
        Ok(routed)
    }
}

/// Seals what a call leaves with its caller.
#[derive(Debug)]
pub(super) struct SealResume {
    sealer: Arc<Sealer>,
    bounds: Bounds,
}

impl SealResume {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            sealer: parts.sealer.clone(),
            bounds: parts.asking,
        }
    }
}

/// What of a call is needed to seal its state, should there be any.
#[derive(Debug)]
pub(super) struct Asker {
    caller: Arc<Caller>,
    owner: Owner,
    op: Op,
    params: Json,
    upstream: UpstreamId,
    local: Arc<str>,
    /// How often the caller has been asked already.
    round: u32,
    /// Whether the caller's answers may be in what comes back: those that were asked for, or that the call brought along.
    answered: bool,
    /// That the person there agreed to the call.
    approved: Option<Arc<Approved>>,
    /// That agreement, which is used up by any reply that is no refusal.
    stake: Option<Stake>,
    /// What the client declared, where the upstream may not ask for all of that.
    declared: Option<Box<ClientCapabilities>>,
    /// What the call was let through by, and where that is noted if its caller is asked: what ends meanwhile is recorded with it.
    permit: Permit,
    trail: Trail,
    bounds: Bounds,
}

impl Wrap<Box<Permitted>> for SealResume {
    type Mark = Option<Asker>;

    fn enter(&self, routed: &mut Box<Permitted>) -> Self::Mark {
        let passage = routed.passage()?;
        let (route, permit) = (passage.route(), passage.permit().clone());
        let call = &routed.call;
        Some(Asker {
            caller: call.caller.clone(),
            owner: call.owner(),
            op: call.op.clone(),
            params: call.params.clone(),
            upstream: route.upstream.clone(),
            local: route.local.clone(),
            round: routed.round,
            answered: routed.round > 0 || routed.brought.is_some(),
            approved: routed.approved().cloned(),
            stake: call.stake.clone(),
            declared: routed.declared.clone(),
            permit,
            trail: call.trail.clone(),
            bounds: self.bounds,
        })
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(asker) = mark else { return result };
        let reply = result.map_err(|error| {
            if asker.was_kept_from(&error) {
                asker.may_not_ask()
            } else {
                error
            }
        })?;
        if let Some(stake) = &asker.stake {
            stake.mark_used();
        }
        match reply {
            Reply::Done(outcome) => match asker.outcome(&self.sealer, outcome) {
                Ok(outcome) => Ok(Reply::Done(outcome)),
                Err(NotAsked::Kept) => Err(asker.may_not_ask()),
                Err(NotAsked::Fault(fault)) => Err(Error::Upstream(FromUpstream {
                    upstream: asker.upstream,
                    error: UpstreamError::Protocol(fault.to_string()),
                })),
            },
            Reply::Stream(stream) => {
                let sealer = self.sealer.clone();
                let steps = stream.map(move |step| match step {
                    event @ Step::Event(_) => event,
                    Step::Outcome(outcome) => {
                        let outcome = asker.outcome(&sealer, outcome);
                        Step::Outcome(outcome.unwrap_or_else(|not| asker.lost(&not)))
                    }
                });
                Ok(Reply::Stream(ReplyStream::new(steps.boxed())))
            }
        }
    }
}

/// Why a question is not passed on.
#[derive(Debug)]
enum NotAsked {
    /// It breaks the protocol.
    Fault(Fault),
    /// No policy lets the upstream ask the client for this, which has it.
    Kept,
}

impl From<Fault> for NotAsked {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Asker {
    fn outcome(&self, sealer: &Sealer, outcome: Outcome) -> Result<Outcome, NotAsked> {
        match outcome {
            Outcome::InputRequired(required) => {
                self.ask(sealer, required).map(Outcome::InputRequired)
            }
            // What came of answers is never kept (PROTOCOL D5, SECURITY STATE-5).
            Outcome::Complete(result)
                if self.answered && matches!(self.op, Op::ReadResource(_)) =>
            {
                let mut edits = Edits::new();
                edits.set(result.root(), "ttlMs", Json::of(&0));
                let result = result.splice(&edits);
                let mut edits = Edits::new();
                edits.set(result.root(), "cacheScope", Json::string("private"));
                Ok(Outcome::Complete(self.stamped(result.splice(&edits))))
            }
            Outcome::Complete(result) => Ok(Outcome::Complete(self.stamped(result))),
            other @ (Outcome::Listed(_)
            | Outcome::Card(_)
            | Outcome::Task(_)
            | Outcome::Failed(_)
            | Outcome::Lost(_)) => Ok(other),
        }
    }

    /// A result, with the reference of the approval that its call went by: it is in the record under that.
    fn stamped(&self, result: Json) -> Json {
        let Some(approved) = &self.approved else {
            return result;
        };
        approved.reference.stamp(&result)
    }

    /// Whether the upstream failed for want of what policy keeps from it.
    fn was_kept_from(&self, error: &Error) -> bool {
        let (Error::Upstream(FromUpstream { error, .. }), Some(declared)) = (error, &self.declared)
        else {
            return false;
        };
        if let UpstreamError::Undeclared(capability) = error {
            let has = |all: &ClientCapabilities| all.json().root().member(capability).is_some();
            return has(declared) && !has(&self.caller.capabilities);
        }
        matches!(error, UpstreamError::NeedsCapabilities(needed) if declared.cover(needed))
    }

    fn may_not_ask(&self) -> Error {
        Error::Denied {
            reason: Refusal::Denied.word(),
            text: self.kept().into(),
        }
    }

    fn kept(&self) -> String {
        format!(
            "the server `{}` needs to ask the client something that no policy lets it ask for",
            self.upstream
        )
    }

    /// What is asked, held to what the upstream may ask for.
    fn held(&self, requests: &Json) -> Result<Asked, NotAsked> {
        Asked::of(requests, &self.caller.capabilities, &self.bounds).map_err(|fault| {
            let declared = self.declared.as_ref();
            // The client would have taken it: it is policy that does not let the upstream ask.
            if declared.is_some_and(|declared| Asked::of(requests, declared, &self.bounds).is_ok())
            {
                NotAsked::Kept
            } else {
                NotAsked::Fault(fault)
            }
        })
    }

    /// Holds a question to the rules, and seals what it leaves behind.
    fn ask(&self, sealer: &Sealer, required: InputRequired) -> Result<InputRequired, NotAsked> {
        let InputRequired {
            requests,
            state,
            hold,
        } = required;
        if !methods::may_ask_back(self.op.method()) {
            return Err(Fault::new("asked for input where none may be asked for").into());
        }
        let round = self.round + 1;
        if round > self.bounds.rounds {
            reached(Bound::Rounds);
            return Err(Fault::new("asked for input again and again").into());
        }
        let asked = match &state {
            State::Own(_) => Asked::of_own(&requests, &self.caller.capabilities, &self.bounds)?,
            State::Upstream(_) | State::Parked(_) | State::Sealed(_) => self.held(&requests)?,
        };
        match &state {
            State::Upstream(None) if asked.is_empty() => {
                return Err(Fault::new("asked for input without saying which").into());
            }
            State::Upstream(Some(state)) if !self.bounds.hold_state(state.root()) => {
                reached(Bound::RequestState);
                return Err(Fault::new("gave a state of too many bytes").into());
            }
            State::Upstream(_) | State::Parked(_) | State::Sealed(_) | State::Own(_) => {}
        }
        let ticket = Ticket {
            upstream: self.upstream.clone(),
            local: self.local.clone(),
            state,
            round,
            asked,
            approval: self.approved.as_ref().map(|approved| Approval {
                number: number(),
                given: Some(Given {
                    reference: approved.reference.0,
                    at: approved.at,
                }),
                until: 0,
            }),
        };
        let bound_to = CallBinding {
            owner: &self.owner,
            op: &self.op,
            params: &self.params,
        };
        let text = ticket.seal(sealer, bound_to, unix_seconds());
        if !self.permit.digest().is_empty() {
            let grounds = |facts: &mut Facts| facts.grounds = Some(approve::grounds(&self.permit));
            self.trail.note(grounds);
        }
        Ok(InputRequired {
            requests,
            state: State::Sealed(text.into()),
            hold,
        })
    }

    /// The same after events have gone out.
    fn lost(&self, not: &NotAsked) -> Outcome {
        tracing::debug!(upstream = %self.upstream, ?not, "a question was not passed on");
        let (reason, code, message) = match not {
            NotAsked::Fault(fault) => {
                let error = UpstreamError::Protocol(fault.to_string());
                let message = words::describe(&self.upstream, &error);
                (error.reason(), codes::UPSTREAM_PROTOCOL, message)
            }
            NotAsked::Kept => (Refusal::Denied.word(), codes::DENIED, self.kept()),
        };
        Outcome::Lost(RpcError {
            data: Some(meta::object_of(&[("reason", Json::string(reason))])),
            ..RpcError::new(code, message)
        })
    }
}
