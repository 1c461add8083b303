//! The members that records are put together from, each in the one way that both of them say it.

use std::{borrow::Cow, time::Duration};

use tokio::time::Instant;

use super::{
    super::{
        Level,
        canonical::{Object, TEXT},
    },
    operation::View,
};
use crate::{
    call::{AuthMethod, Facts, Found, Identity, IdentityKind, MOST},
    findings::Scrub,
    json::Json,
    protocol::{UpstreamId, meta, methods, names::Scope},
    spans::Lead,
};

/// The most policies, groups and addresses that one record names; it says how many more there were.
pub(super) const MANY: usize = 32;

/// What all records of one writer have in common.
pub(in crate::audit) struct Frame<'a> {
    /// The digest of the configuration.
    pub(in crate::audit) config: &'a str,
    /// The start of the process.
    pub(in crate::audit) start: Instant,
    /// Makes keyed digests.
    pub(in crate::audit) digest: &'a dyn Fn(&[u8]) -> [u8; 16],
    /// How much of content is kept.
    pub(in crate::audit) level: Level,
    /// Takes out what must not be.
    pub(in crate::audit) scrub: &'a dyn Scrub,
}

impl Frame<'_> {
    /// Content as it may be kept.
    pub(super) fn kept(
        &self,
        content: &Json,
        of: View<'_>,
        route: Option<(&UpstreamId, &str)>,
    ) -> Json {
        let upstream = route.map(|(upstream, _)| upstream);
        let tool = route.map(|(_, name)| name);
        let tool = tool.filter(|_| of.method == methods::TOOLS_CALL);
        self.scrub.content(content, upstream, tool)
    }
}

/// The arguments among these params: of a completion the one that is asked for, and what it depends on.
pub(super) fn arguments_of(method: &str, params: &Json) -> Option<Json> {
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
pub(super) fn answers_in(method: &str, params: &Json) -> Option<Json> {
    if method != methods::TASKS_UPDATE {
        return None;
    }
    Some(params.slice(params.root().member("inputResponses")?))
}

/// How long something is, and which, without a word of it.
pub(super) fn measured(
    record: &mut Object<'_>,
    frame: &Frame<'_>,
    name: &'static str,
    value: Option<&Json>,
) {
    if let Some(value) = value {
        record.object(name, |told| {
            told.number("bytes", value.len() as u64)
                .digits("digest", &(frame.digest)(value.bytes()));
        });
    }
}

pub(super) fn address(record: &mut Object<'_>, of: View<'_>) {
    if let Some(address) = of.address {
        record.plain("address", address);
    }
}

pub(super) fn proxy(record: &mut Object<'_>, of: View<'_>) {
    if let Some(proxy) = of.trail.origin().and_then(|origin| origin.proxy) {
        record.plain("proxy", proxy);
    }
}

pub(super) fn spoken(record: &mut Object<'_>, of: View<'_>) {
    let listener = of.trail.origin().map(|origin| origin.listener);
    record.text("listener", listener.unwrap_or_default().word());
}

pub(super) fn request(record: &mut Object<'_>, frame: &Frame<'_>, of: View<'_>) {
    let request = of.trail.origin().and_then(|it| it.request.as_ref());
    let request = request.map(|id| frame.scrub.id(id.as_str()));
    // Each call has another one, and no index lists it: no text among the others.
    if let Some(request) = &request {
        record.content("request", request, TEXT);
    }
}

/// Which time its client had been asked for input, of a call that goes on with that.
pub(super) fn round(record: &mut Object<'_>, round: u32) {
    if round > 0 {
        record.number("round", u64::from(round));
    }
}

/// The call's own span, where it has one, and the one that its client told.
pub(super) fn trace(record: &mut Object<'_>, of: View<'_>) {
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

pub(super) fn server(scope: &Scope) -> Cow<'_, str> {
    match scope {
        Scope::All => Cow::Borrowed("all"),
        Scope::Toolset(_) | Scope::Upstream(_) => Cow::Owned(scope.to_string()),
    }
}

pub(super) fn principal(who: &mut Object<'_>, frame: &Frame<'_>, of: View<'_>) {
    let identity = of.identity;
    described(who, identity);
    if let Some(token) = &identity.assertion {
        let token = secrecy::ExposeSecret::expose_secret(&token.0);
        who.digits("token", &(frame.digest)(token.as_bytes()));
    } else if let Some(id) = &identity.key {
        // No secret: so it is called in its file and in records of keys. No index lists it.
        who.content("token", id, TEXT);
    }
}

/// Who somebody is, without what they showed for it.
pub(in crate::audit) fn described(who: &mut Object<'_>, identity: &Identity) {
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
}

pub(super) const fn kind(kind: IdentityKind) -> &'static str {
    match kind {
        IdentityKind::Anonymous => "anonymous",
        IdentityKind::User => "user",
        IdentityKind::Agent => "agent",
        IdentityKind::Key => "key",
    }
}

pub(super) fn target(
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
        to.text("name", &frame.scrub.target(name, true));
        if let Some(request) = facts.sent {
            to.number("request", request);
        }
        to.text("upstream", upstream.as_str());
    }
}

/// What was found in its content, and how many more there were.
pub(super) fn findings(record: &mut Object<'_>, found: &Found) {
    if found.list().is_empty() {
        return;
    }
    let bounds = (MOST, found.more());
    record.objects_of("findings", found.list(), bounds, |told, alike| {
        told.text("action", alike.action.word())
            .text("class", alike.kind)
            .number("count", alike.count)
            .number("length", alike.length as u64)
            .text("place", &alike.place)
            .text("rule", &alike.rule);
    });
}

/// Whole nanoseconds; a process does not run for 584 years.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Addresses of resources, where there are any.
pub(super) fn addresses(
    record: &mut Object<'_>,
    frame: &Frame<'_>,
    name: &'static str,
    all: &[&str],
) {
    if !all.is_empty() {
        let kept: Vec<_> = all.iter().map(|uri| frame.scrub.name(uri)).collect();
        record.texts(name, kept.iter().map(|uri| &**uri), MANY);
    }
}
