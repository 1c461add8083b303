//! Approve: a person agrees before the call leaves, where a policy says `@require("approval")` (PRODUCT 9).
//!
//! Guarantees: no upstream hears of such a call before the person at the client, asked by elicitation in whichever era the
//! client speaks, said yes to just this call: this principal, this name, these arguments, once, within a time. Whoever
//! declines, cancels, says no or nothing, or cannot be asked, has not agreed. What an upstream asks afterwards goes on as
//! ever, and counts the same approval once a round. Deliberately absent: other approvers than the one who calls.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use aws_lc_rs::rand;

use super::{Error, Gate, Parts, authorize};
use crate::{
    call::{Approved, Call, Grounds, InputRequired, Means, Reference, State},
    catalog::Route,
    json::{Json, Node},
    policy::{self, Permit},
    protocol::{meta, methods},
    resume::{Approval, Asked, Bounds, CallBinding, Number, Ticket, arguments_digest},
    seal::{Sealer, unix_seconds},
    stage::{Consent, Passage, Permitted, Way},
    tasks::clock,
};

/// The one field of the form.
const FIELD: &str = "approve";
/// The most bytes of the arguments that the person is shown; the digest stands for the rest.
const SHOWN: usize = 600;

/// Asks where a policy wants it.
#[derive(Debug)]
pub(super) struct Approve {
    sealer: Arc<Sealer>,
    bounds: Bounds,
}

impl Approve {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            sealer: parts.sealer.clone(),
            bounds: parts.asking,
        }
    }
}

impl Gate<Box<Permitted>> for Approve {
    type Pass = Box<Permitted>;

    fn admit(&self, mut permitted: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        let permit = permitted.passage().map(Passage::permit);
        let Some((permit, approval)) = permit.and_then(|it| Some((it, it.approval()?))) else {
            return Ok(permitted);
        };
        let call = &permitted.call;
        match &permitted.consent {
            Consent::Given(approved) => {
                tracing::info!(
                    principal = approved.by.as_str(),
                    method = call.op.method(),
                    policy = &*approval.policy,
                    call = %call.id,
                    approval = %approved.reference,
                    means = approved.how.word(),
                    "approved by the person at the client"
                );
                return Ok(permitted);
            }
            Consent::Declined => {
                note(&permitted, permit);
                return Err(Error::NotApproved);
            }
            Consent::None => note(&permitted, permit),
        }
        if !methods::may_ask_back(call.op.method()) {
            return Err(Error::CannotApprove);
        }
        // Began when nobody had to agree: the upstream's state cannot wait for that now.
        if call.resume.is_some() {
            return Err(Error::StateInvalid);
        }
        if call.deadline <= clock::now() {
            return Err(Error::Deadline);
        }
        if permitted.round >= self.bounds.rounds {
            return Err(Error::NotApproved);
        }
        let question = self.ask(&permitted, approval)?;
        permitted.way = Way::Caller(Box::new(question));
        Ok(permitted)
    }
}

/// Notes what wants a person to agree to a call: it goes no further than here, and its one record is to say so (SECURITY 8).
fn note(permitted: &Permitted, permit: &Permit) {
    let Permitted { call, snapshot, .. } = permitted;
    call.trail.note(|facts| {
        facts.definition = authorize::definition(call, snapshot).map(Box::from);
        facts.grounds = Some(grounds(permit));
    });
}

/// What let a call through by this permit.
pub(super) fn grounds(permit: &Permit) -> Grounds {
    Grounds {
        policies: permit.policies().to_vec(),
        digest: permit.digest().into(),
    }
}

impl Approve {
    fn ask(
        &self,
        permitted: &Permitted,
        approval: &policy::Approval,
    ) -> Result<InputRequired, Error> {
        let call = &permitted.call;
        let route = permitted
            .passage()
            .map(|passage| passage.route())
            .ok_or(Error::CannotApprove)?;
        let requests = question(call, route);
        let declared = permitted.declared.as_deref();
        let declared = declared.unwrap_or(&call.caller.capabilities);
        let asked =
            Asked::of_own(&requests, declared, &self.bounds).map_err(|_| Error::CannotApprove)?;
        let now = unix_seconds();
        let within = approval
            .within
            .unwrap_or(Duration::from_secs(self.bounds.life));
        let ticket = Ticket {
            upstream: route.upstream.clone(),
            local: route.local.clone(),
            state: State::Upstream(None),
            round: permitted.round + 1,
            asked,
            approval: Some(Approval {
                number: number(),
                given: None,
                until: now.saturating_add(within.as_secs().min(self.bounds.life)),
            }),
        };
        let bound_to = CallBinding {
            owner: &call.owner(),
            op: &call.op,
            params: &call.params,
        };
        let text = ticket.seal(&self.sealer, bound_to, now);
        Ok(InputRequired {
            requests,
            state: State::Sealed(text.into()),
            hold: None,
        })
    }
}

/// What the person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing yet.
    None,
    /// Yes, in time.
    Yes,
    /// Anything else.
    No,
}

/// What the person answered to the question of an approval.
pub(super) fn answer(responses: Option<&Json>, approval: &Approval, now: u64) -> Answer {
    let answer = responses.and_then(|responses| responses.root().member(meta::APPROVAL));
    let Some(answer) = answer else {
        return Answer::None;
    };
    let accepted = answer.member("action").and_then(Node::as_str).as_deref() == Some("accept");
    let yes = answer
        .member("content")
        .and_then(|content| content.member(FIELD))
        .and_then(Node::as_bool)
        == Some(true);
    if accepted && yes && now <= approval.until {
        Answer::Yes
    } else {
        Answer::No
    }
}

/// The fact that whoever makes a call agreed to it, by the answer to this question at this time.
pub(super) fn approved(call: &Call, reference: Number, at: u64) -> Consent {
    Consent::Given(Arc::new(Approved {
        reference: Reference(reference),
        by: call.caller.principal.clone(),
        at,
        digest: arguments_digest(&call.params),
        how: Means::Elicitation,
    }))
}

/// A number for a ticket that counts once.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) fn number() -> Number {
    let mut number = [0; 16];
    // INVARIANT: the operating system's random source does not fail after boot; a process without one must not serve.
    rand::fill(&mut number).expect("the system gives random bytes");
    number
}

/// The question, as `inputRequests`.
fn question(call: &Call, route: &Route) -> Json {
    let field = meta::object_of(&[
        ("type", Json::string("boolean")),
        ("title", Json::string("Allow this once")),
        ("default", Json::of(&false)),
    ]);
    let schema = meta::object_of(&[
        ("type", Json::string("object")),
        ("properties", meta::object_of(&[(FIELD, field)])),
        ("required", Json::array(&[Json::string(FIELD)])),
    ]);
    let params = meta::object_of(&[
        ("message", Json::string(&message(call, route))),
        ("requestedSchema", schema),
    ]);
    let request = meta::object_of(&[
        ("method", Json::string(methods::ELICITATION_CREATE)),
        ("params", params),
    ]);
    meta::object_of(&[(meta::APPROVAL, request)])
}

/// What the person reads: what is about to be done where, and with what.
fn message(call: &Call, route: &Route) -> String {
    let what = match call.op.method() {
        methods::TOOLS_CALL => "call the tool",
        methods::PROMPTS_GET => "fetch the prompt",
        _ => "read the resource",
    };
    let mut text = format!(
        "[usher] Approval needed to {what} `{}` of the server `{}`.",
        plain(&route.local, SHOWN),
        route.upstream
    );
    if let Some(arguments) = call.params.root().member("arguments") {
        let _ = write!(text, "\nArguments: {}", plain(arguments.raw(), SHOWN));
    }
    let digest = arguments_digest(&call.params);
    let _ = write!(text, "\nDigest of the request: ");
    for byte in &digest[..8] {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A text in which nothing hides, cut to about `most` bytes.
fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() >= most {
            let _ = write!(out, "… ({} bytes in all)", text.len());
            break;
        }
        if c.is_control() || crate::catalog::is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    #[test]
    fn a_yes_is_an_answer_that_accepts_and_says_so_in_time_and_nothing_else_is() {
        let approval = Approval {
            number: [0; 16],
            given: None,
            until: 100,
        };
        let said = |text: &str, now: u64| {
            let text = format!(r#"{{"{}":{text}}}"#, meta::APPROVAL);
            let responses = Json::parse(text.into(), &Limits::CLIENT).unwrap();
            answer(Some(&responses), &approval, now)
        };
        const YES: &str = r#"{"action":"accept","content":{"approve":true}}"#;
        assert_eq!(said(YES, 100), Answer::Yes);
        assert_eq!(said(YES, 101), Answer::No, "late");
        for no in [
            r#"{"action":"decline","content":{"approve":true}}"#,
            r#"{"action":"cancel","content":{"approve":true}}"#,
            r#"{"content":{"approve":true}}"#,
            r#"{"action":"accept","content":{"approve":false}}"#,
            r#"{"action":"accept","content":{"approve":"true"}}"#,
            r#"{"action":"accept","content":{}}"#,
            r#"{"action":"accept"}"#,
            "true",
        ] {
            assert_eq!(said(no, 100), Answer::No, "{no}");
        }
        assert_eq!(answer(None, &approval, 100), Answer::None);
        assert_eq!(
            answer(Some(&Json::empty_object()), &approval, 100),
            Answer::None
        );
    }
}
