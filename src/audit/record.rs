//! The two records of an operation: the decision, before an upstream hears of it, and the outcome, when its answer is complete.
//! What never came to a decision has one record, of both stages at once.
//!
//! Guarantees: both name the same call, by the reference that its client is told; what a client wrote is bounded and escaped
//! (SECURITY AUD-6); arguments are told by size and keyed digest alone, unless a rule says more, and what users answer never
//! otherwise (PROTOCOL F20); no credential is ever among them, a token least of all (AUD-8). Deliberately absent: when records are
//! written, which the stack says.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{
    End, Level,
    canonical::{Object, TEXT},
    words,
};
use crate::{
    call::{
        Approved, AuthMethod, Call, CallId, Caller, Decision, Denial, Facts, Identity,
        IdentityKind, Trail,
    },
    findings::{Finding, Scrub},
    json::Json,
    protocol::{UpstreamId, meta, methods, names::Scope},
    spans::Lead,
    tasks::clock,
};

/// The version of the members below.
const VERSION: u64 = 1;
/// The most findings, policies and groups that one record names; it says how many more there were.
const MANY: usize = 32;
/// The most bytes of content in one record. A record has 64 KiB (SECURITY 6), and escapes take room.
const CONTENT: usize = 8 << 10;

/// What is remembered of a call for its records.
#[derive(Debug)]
pub struct Operation {
    /// Its reference.
    pub id: CallId,
    /// Its method.
    pub method: &'static str,
    /// The name or the URI that the client used, of what is asked for by one.
    pub exposed: Option<Arc<str>>,
    /// How it speaks.
    pub caller: Arc<Caller>,
    /// Who sent it.
    pub identity: Arc<Identity>,
    /// From where.
    pub address: Option<IpAddr>,
    /// Through which endpoint.
    pub scope: Scope,
    /// What it learns on its way.
    pub trail: Trail,
    /// When it came.
    pub began: Instant,
    /// Its params, as it came: of one that is not let through they are told at its end.
    pub params: Json,
    /// What a user answered, as it came, where it goes on with that; or what was brought unasked, which then may go nowhere.
    pub answers: Option<Json>,
}

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

/// What was decided about a call that goes on.
#[derive(Debug)]
pub struct Permission<'a> {
    /// Where it goes, and what it is called there; `None` where it goes to no one upstream.
    pub route: Option<(&'a UpstreamId, &'a str)>,
    /// The policies that permit it.
    pub policies: &'a [Arc<str>],
    /// The digest of the set that decided; empty where there is none.
    pub policy: &'a str,
    /// Who agreed to it, where policy wants somebody to.
    pub approved: Option<&'a Approved>,
    /// The digest of the definition of what it is about, where that is listed.
    pub definition: Option<&'a str>,
    /// Of a listen: the resources that are watched from now on, and those that were asked for and are not.
    pub listen: Option<(&'a [&'a str], &'a [&'a str])>,
    /// The params as they are sent, of which `arguments` are told.
    pub params: &'a Json,
    /// What a user answered, as far as it may be sent; or what was brought unasked, which then may go nowhere.
    pub answers: Option<&'a Json>,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct Ending<'a> {
    /// How.
    pub outcome: End,
    /// The reason word, where something was refused or failed.
    pub reason: Option<Cow<'a, str>>,
    /// The JSON-RPC code of an upstream's own error.
    pub code: Option<i64>,
    /// The configured rule or the bound that it met.
    pub limit: Option<&'a str>,
    /// The bytes of its result.
    pub bytes: usize,
    /// What was found in its content.
    pub findings: &'a [Arc<Finding>],
    /// The result, for rules that keep it.
    pub content: Option<&'a Json>,
}

impl Ending<'_> {
    /// In this way, with nothing else to tell.
    pub const fn of(outcome: End) -> Self {
        Self {
            outcome,
            reason: None,
            code: None,
            limit: None,
            bytes: 0,
            findings: &[],
            content: None,
        }
    }
}

/// What records are made from: the call itself while it is there, what is remembered of it afterwards.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    id: CallId,
    method: &'static str,
    exposed: Option<&'a str>,
    caller: &'a Caller,
    identity: &'a Identity,
    address: Option<IpAddr>,
    scope: &'a Scope,
    trail: &'a Trail,
}

impl<'a> View<'a> {
    /// Of a call that is on its way.
    pub fn of(call: &'a Call) -> Self {
        Self {
            id: call.id,
            method: call.method(),
            exposed: call.op.target().map(|name| &**name),
            caller: &call.caller,
            identity: &call.identity,
            address: call.address,
            scope: &call.scope,
            trail: &call.trail,
        }
    }

    /// Its reference.
    pub(super) const fn id(&self) -> CallId {
        self.id
    }

    /// Its method.
    pub(super) const fn method(&self) -> &'static str {
        self.method
    }

    /// The name or the URI that the client used.
    pub(super) const fn exposed(&self) -> Option<&'a str> {
        self.exposed
    }
}

impl Operation {
    /// Of a call that begins.
    pub fn of(call: &Call) -> Self {
        Self {
            id: call.id,
            method: call.method(),
            exposed: call.op.target().cloned(),
            caller: call.caller.clone(),
            identity: call.identity.clone(),
            address: call.address,
            scope: call.scope.clone(),
            trail: call.trail.clone(),
            began: clock::now(),
            params: call.params.clone(),
            answers: (call.resume.as_ref()).and_then(|resume| resume.responses.clone()),
        }
    }

    /// What its records are made from.
    pub fn view(&self) -> View<'_> {
        View {
            id: self.id,
            method: self.method,
            exposed: self.exposed.as_deref(),
            caller: &self.caller,
            identity: &self.identity,
            address: self.address,
            scope: &self.scope,
            trail: &self.trail,
        }
    }
}

/// What all records of one writer have in common.
pub(super) struct Frame<'a> {
    /// The digest of the configuration.
    pub(super) config: &'a str,
    /// The start of the process.
    pub(super) start: Instant,
    /// Makes keyed digests.
    pub(super) digest: &'a dyn Fn(&[u8]) -> [u8; 16],
    /// How much of content is kept.
    pub(super) level: Level,
    /// Takes out what must not be.
    pub(super) scrub: &'a dyn Scrub,
}

impl Frame<'_> {
    /// Content as it may be kept.
    fn kept(&self, content: &Json, of: View<'_>, route: Option<(&UpstreamId, &str)>) -> Json {
        let upstream = route.map(|(upstream, _)| upstream);
        let tool = route.map(|(_, name)| name);
        let tool = tool.filter(|_| of.method == methods::TOOLS_CALL);
        self.scrub.content(content, upstream, tool)
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
    record
        .text("revision", of.caller.revision.as_str())
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

/// Addresses of resources, where there are any.
fn addresses(record: &mut Object<'_>, frame: &Frame<'_>, name: &'static str, all: &[&str]) {
    if !all.is_empty() {
        let kept: Vec<_> = all.iter().map(|uri| frame.scrub.name(uri)).collect();
        record.texts(name, kept.iter().map(|uri| &**uri), MANY);
    }
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
    record.object("bytes", |bytes| {
        bytes
            .number("in", remembered.params.len() as u64)
            .number("out", ending.bytes as u64);
    });
    record.plain("call", of.id);
    if let Some(code) = ending.code {
        record.plain("code", code);
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
    if !ending.findings.is_empty() {
        record.objects("findings", ending.findings.iter(), MANY, found);
    }
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
        record
            .text("revision", of.caller.revision.as_str())
            .text("server", &server(of.scope));
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

/// The arguments among these params: of a completion the one that is asked for, and what it depends on.
fn arguments_of(method: &str, params: &Json) -> Option<Json> {
    let root = params.root();
    if method != methods::COMPLETE {
        return Some(params.slice(root.member("arguments")?));
    }
    let argument = params.slice(root.member("argument")?);
    let Some(context) = root.member("context") else {
        return Some(argument);
    };
    let context = params.slice(context);
    Some(meta::object_of(&[
        ("argument", argument),
        ("context", context),
    ]))
}

/// What a user answered to a task, which stands among the params alone.
fn answers_in(method: &str, params: &Json) -> Option<Json> {
    if method != methods::TASKS_UPDATE {
        return None;
    }
    Some(params.slice(params.root().member("inputResponses")?))
}

/// How long something is, and which, without a word of it.
fn measured(record: &mut Object<'_>, frame: &Frame<'_>, name: &'static str, value: Option<&Json>) {
    if let Some(value) = value {
        record.object(name, |told| {
            told.number("bytes", value.len() as u64)
                .digits("digest", &(frame.digest)(value.bytes()));
        });
    }
}

fn address(record: &mut Object<'_>, of: View<'_>) {
    if let Some(address) = of.address {
        record.plain("address", address);
    }
}

fn proxy(record: &mut Object<'_>, of: View<'_>) {
    if let Some(proxy) = of.trail.origin().and_then(|origin| origin.proxy) {
        record.plain("proxy", proxy);
    }
}

fn spoken(record: &mut Object<'_>, of: View<'_>) {
    let listener = of.trail.origin().map(|origin| origin.listener);
    record.text("listener", listener.unwrap_or_default().word());
}

fn request(record: &mut Object<'_>, frame: &Frame<'_>, of: View<'_>) {
    let request = of.trail.origin().and_then(|it| it.request.as_ref());
    let request = request.map(|id| frame.scrub.id(id.as_str()));
    // Each call has another one, and no index lists it: no text among the others.
    if let Some(request) = &request {
        record.content("request", request, TEXT);
    }
}

/// The call's own span, where it has one, and the one that its client told.
fn trace(record: &mut Object<'_>, of: View<'_>) {
    let parent = of.trail.origin().and_then(|origin| origin.parent.as_ref());
    let own = of.trail.lead().map(Lead::ids);
    let trace = own.map(|(trace, _)| trace);
    let Some(trace) = trace.or(parent.map(|parent| parent.trace)) else {
        return;
    };
    record.object("trace", |told| {
        if let Some(parent) = parent {
            told.digits("parent", &parent.span.to_be_bytes());
        }
        if let Some((_, span)) = own {
            told.digits("span", &span.to_be_bytes());
        }
        told.digits("trace", &trace.to_be_bytes());
    });
}

fn server(scope: &Scope) -> Cow<'_, str> {
    match scope {
        Scope::All => Cow::Borrowed("all"),
        Scope::Toolset(_) | Scope::Upstream(_) => Cow::Owned(scope.to_string()),
    }
}

fn principal(who: &mut Object<'_>, frame: &Frame<'_>, of: View<'_>) {
    let identity = of.identity;
    who.maybe("auth_method", identity.method().map(AuthMethod::word))
        .maybe("client", identity.client.as_deref());
    if !identity.groups.is_empty() {
        who.texts("groups", identity.groups.iter().map(|name| &**name), MANY);
    }
    who.maybe("issuer", identity.issuer.as_deref())
        .text("kind", kind(identity.kind))
        .text("name", &identity.name)
        .maybe("owner", identity.owner.as_deref())
        .maybe("tenant", identity.tenant.as_deref());
    if let Some(token) = &identity.assertion {
        let token = secrecy::ExposeSecret::expose_secret(&token.0);
        who.digits("token", &(frame.digest)(token.as_bytes()));
    }
}

const fn kind(kind: IdentityKind) -> &'static str {
    match kind {
        IdentityKind::Anonymous => "anonymous",
        IdentityKind::User => "user",
        IdentityKind::Agent => "agent",
        IdentityKind::Key => "key",
    }
}

fn target(
    to: &mut Object<'_>,
    frame: &Frame<'_>,
    of: View<'_>,
    facts: &Facts,
    route: Option<(&UpstreamId, &str)>,
) {
    let exposed = of.exposed.or(facts.tool.as_deref());
    let exposed = exposed.map(|name| frame.scrub.target(name, route.is_some()));
    to.maybe("exposed", exposed.as_deref());
    if let Some((upstream, name)) = route {
        to.text("name", &frame.scrub.target(name, true))
            .text("upstream", upstream.as_str());
    }
}

fn found(told: &mut Object<'_>, finding: &Arc<Finding>) {
    told.text("action", finding.action.word())
        .text("class", finding.kind)
        .number("length", finding.length as u64)
        .text("place", &finding.place)
        .text("rule", &finding.rule);
}

/// Whole nanoseconds; a process does not run for 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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
