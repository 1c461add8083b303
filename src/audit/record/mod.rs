//! The two records of an operation: the decision, before an upstream hears of it, and the outcome, when its answer is complete.
//! What never came to a decision has one record, of both stages at once.
//!
//! Guarantees: both name the same call, by the reference that its client is told; what a client wrote is bounded and escaped
//! (SECURITY AUD-6); arguments are told by size and keyed digest alone, unless a rule says more, and what users answer never
//! otherwise (PROTOCOL F20); no credential is ever among them, a token least of all (AUD-8). Deliberately absent: when records are
//! written, which the stack says.

mod members;
mod operation;

use std::time::SystemTime;

use tokio::time::Instant;

use self::members::{
    MANY, address, addresses, answers_in, arguments_of, findings, measured, micros, nanos,
    principal, proxy, request, round, server, spoken, target, trace,
};
use super::{End, Level, canonical::Object, words};
use crate::call::{Decision, Denial, Facts};

pub(super) use self::members::{Frame, described};
pub use self::operation::{Ending, Operation, Permission, View};

/// The version of the members below.
const VERSION: u64 = 1;
/// The most bytes of content in one record. A record has 64 KiB (SECURITY 6), and escapes take room.
const CONTENT: usize = 8 << 10;

/// A moment by both clocks.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// By the calendar.
    at: SystemTime,
    /// By the clock that only goes forward.
    instant: Instant,
}

impl Moment {
    /// Now.
    fn now() -> Self {
        Self {
            at: SystemTime::now(),
            instant: Instant::now(),
        }
    }
}

/// The record of a permission; when it was.
pub(super) fn decision(
    record: &mut Object<'_>,
    frame: &Frame<'_>,
    of: View<'_>,
    permission: &Permission<'_>,
) -> SystemTime {
    let now = Moment::now();
    let arguments = arguments_of(of.method, permission.params);
    address(record, of);
    let answers = permission.answers.cloned();
    let answers = answers.or_else(|| answers_in(of.method, permission.params));
    measured(record, frame, "answers", answers.as_ref());
    if let Some(approved) = permission.approved {
        record.object("approval", |approval| {
            approval
                .number("at", approved.at)
                .text("by", approved.by.as_str())
                .text("how", approved.how.word())
                .plain("reference", approved.reference);
        });
    }
    measured(record, frame, "arguments", arguments.as_ref());
    record.plain("call", of.id);
    if !frame.config.is_empty() {
        record.text("config", frame.config);
    }
    if frame.level >= Level::Request
        && let Some(arguments) = &arguments
    {
        let kept = frame.kept(arguments, of, permission.route);
        record.content("content", kept.as_str(), CONTENT);
    }
    record
        .text("decision", "permit")
        .maybe("definition", permission.definition)
        .text("event", words::CALL);
    spoken(record, of);
    record.text("method", of.method);
    record.number("monotonic", nanos(now.instant - frame.start));
    let (watched, not_watched) = permission.listen.unwrap_or_default();
    addresses(record, frame, "not_watched", not_watched);
    let policies = permission.policies;
    if !policies.is_empty() {
        record.texts("policies", policies.iter().map(|name| &**name), MANY);
    }
    if !permission.policy.is_empty() {
        record.text("policy", permission.policy);
    }
    record.object("principal", |who| principal(who, frame, of));
    proxy(record, of);
    request(record, frame, of);
    record.text("revision", of.caller.revision.as_str());
    round(record, permission.round);
    record
        .text("server", &server(of.scope))
        .text("stage", "decision");
    let facts = Facts::default();
    record.object("target", |to| {
        target(to, frame, of, &facts, permission.route)
    });
    record.time(now.at);
    trace(record, of);
    record.number("v", VERSION);
    addresses(record, frame, "watched", watched);
    now.at
}

/// The record of an end; when it was.
pub(super) fn outcome(
    record: &mut Object<'_>,
    frame: &Frame<'_>,
    of: &Operation,
    facts: &Facts,
    ending: &Ending<'_>,
) -> SystemTime {
    let (remembered, of) = (of, of.view());
    let now = Moment::now();
    // What was never decided is told whole here.
    let whole = facts.decision != Decision::Recorded;
    let denied = facts.denied.as_ref();
    let params = &remembered.params;
    let arguments = whole.then(|| arguments_of(of.method, params)).flatten();
    let answers = || {
        let answers = remembered.answers.clone();
        answers.or_else(|| answers_in(of.method, params))
    };
    let answers = whole.then(answers).flatten();
    if whole {
        address(record, of);
    }
    // What there is too much of is told by its length: whoever sends more than is taken must not cost more by it.
    let shed = ending.outcome == End::Shed;
    for (name, value) in [("answers", &answers), ("arguments", &arguments)] {
        match value {
            Some(value) if shed => {
                record.object(name, |told| {
                    told.number("bytes", value.len() as u64);
                });
            }
            value => measured(record, frame, name, value.as_ref()),
        }
    }
    if facts.attempts > 1 {
        record.number("attempts", u64::from(facts.attempts));
    }
    let taken = of.trail.origin().and_then(|origin| origin.params);
    let taken = taken.unwrap_or(remembered.params.len());
    record.object("bytes", |bytes| {
        bytes
            .number("in", taken as u64)
            .number("out", ending.bytes as u64);
    });
    record.plain("call", of.id);
    if let Some(code) = ending.code {
        record.signed("code", code);
    }
    if whole && !frame.config.is_empty() {
        record.text("config", frame.config);
    }
    let route = facts.route.as_ref().map(|(id, name)| (id, &**name));
    // What was not let through has no result, and what was asked for is told nowhere else.
    let content = match ending.content {
        Some(result) => (frame.level >= Level::RequestResponse).then_some(result),
        None => arguments
            .as_ref()
            .filter(|_| frame.level >= Level::Request && !shed),
    };
    if let Some(content) = content {
        record.content("content", frame.kept(content, of, route).as_str(), CONTENT);
    }
    if whole {
        record.maybe("decision", decided(facts, ending));
    }
    record.maybe("definition", facts.definition.as_deref());
    record.text("event", words::CALL);
    findings(record, &facts.found);
    if let Some(Denial { hidden: true, .. }) = denied {
        record.number("hidden", 1);
    }
    record.maybe("limit", ending.limit);
    if whole {
        spoken(record, of);
    }
    record.text("method", of.method);
    record.number("monotonic", nanos(now.instant - frame.start));
    record.text("outcome", ending.outcome.word());
    if let Some(denied) = denied {
        record
            .texts("policies", denied.policies.iter().map(|name| &**name), MANY)
            .text("policy", &denied.digest);
    } else if let Some(grounds) = facts.grounds.as_ref().filter(|_| whole) {
        record
            .texts(
                "policies",
                grounds.policies.iter().map(|name| &**name),
                MANY,
            )
            .text("policy", &grounds.digest);
    }
    record.object("principal", |who| principal(who, frame, of));
    if whole {
        proxy(record, of);
    }
    record.maybe(
        "reason",
        denied
            .map(|denied| denied.reason)
            .or(ending.reason.as_deref()),
    );
    if whole {
        request(record, frame, of);
        record.text("revision", of.caller.revision.as_str());
    }
    round(record, facts.round);
    if whole {
        record.text("server", &server(of.scope));
    }
    record.object("spent", |spent| {
        let told = facts.spent;
        spent
            .number("policy_us", micros(told.policy))
            .number("queued_us", micros(told.queued))
            .number("sanitising_us", micros(told.sanitising))
            .number("total_us", micros(now.instant - remembered.began))
            .number("upstream_us", micros(told.upstream));
    });
    record.text("stage", if whole { "both" } else { "outcome" });
    if let Some(status) = facts.status {
        record.number("status", u64::from(status));
    }
    record.object("target", |to| target(to, frame, of, facts, route));
    record.time(now.at);
    trace(record, of);
    record.number("v", VERSION);
    now.at
}

/// What was decided about a call whose decision has no record of its own; nothing where it ended before anybody did.
fn decided(facts: &Facts, ending: &Ending<'_>) -> Option<&'static str> {
    if facts.decision != Decision::Pending {
        return Some("permit");
    }
    match ending.outcome {
        End::Ok | End::ToolError | End::InputRequired => Some("permit"),
        End::Denied | End::Blocked | End::Shed => Some("deny"),
        // Nobody may have looked.
        End::ProtocolError | End::Invalid | End::Timeout | End::Cancelled | End::Unavailable => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_before_anybody_decided_says_no_decision() {
        let told = |decision, outcome| {
            let facts = Facts {
                decision,
                ..Facts::default()
            };
            decided(&facts, &Ending::of(outcome))
        };
        for outcome in [End::Ok, End::ToolError, End::InputRequired] {
            assert_eq!(told(Decision::Pending, outcome), Some("permit"));
        }
        for outcome in [End::Denied, End::Blocked, End::Shed] {
            assert_eq!(told(Decision::Pending, outcome), Some("deny"));
            // It had gone on when its content was blocked.
            assert_eq!(told(Decision::Permitted, outcome), Some("permit"));
        }
        for outcome in [End::Cancelled, End::Timeout, End::Unavailable, End::Invalid] {
            assert_eq!(told(Decision::Pending, outcome), None);
        }
    }
}
