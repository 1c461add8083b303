//! Sessions of clients, and streams of those that have none: who is there, and ending one.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, aside, millis, now, scope_word};
use crate::{
    admin::{
        asked::Asked,
        paging::{CURSOR, LIMIT, Page, Parameter},
        problem::Problem,
    },
    downstream::SessionSeen,
    events::ListenSeen,
    protocol::methods::ListKind,
};

pub(in crate::admin) const LIST: &[Parameter] = &[
    CURSOR,
    LIMIT,
    Parameter::named("principal", "Only those of this principal, by name."),
];
pub(in crate::admin) const STREAMS: &[Parameter] = &[CURSOR, LIMIT];

pub(in crate::admin) type List = Page<Session>;
pub(in crate::admin) type Streams = Page<Stream>;

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::admin) struct Session {
    /// What it is known by here. Not its id, which is its client's secret.
    session: String,
    /// Whose it is, by the name that policies know them by.
    principal: Arc<str>,
    /// The revision agreed on.
    revision: &'static str,
    /// The endpoint: `all`, `toolset:NAME` or `upstream:NAME`.
    endpoint: String,
    /// Since it was opened.
    age_ms: u64,
    /// Since it was used last.
    idle_ms: u64,
    /// Requests that run.
    running: usize,
    /// Event streams that are read.
    streams: usize,
    /// Resources that it watches.
    subscriptions: usize,
    /// Whether it is that of a pipe.
    piped: bool,
}

/// One who listens for changes without a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::admin) struct Stream {
    /// Counts up in this process.
    stream: u64,
    /// Whose it is.
    principal: String,
    /// The endpoint: `all`, `toolset:NAME` or `upstream:NAME`.
    endpoint: String,
    /// The lists whose changes are told.
    lists: Vec<&'static str>,
    /// How many resources it watches.
    resources: usize,
    /// Since it was opened.
    age_ms: u64,
}

/// It has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::admin) struct Ended {
    /// True.
    ended: bool,
}

pub(in crate::admin) fn list(asked: Asked) -> Answer {
    aside(move || {
        let (after, limit) = (asked.query.after()?, asked.query.limit());
        let principal = asked.query.text("principal");
        let seen = asked.gateway.sessions.seen().into_iter();
        let later = seen.filter(|seen| {
            after
                .as_deref()
                .is_none_or(|after| *seen.reference > *after)
                && principal.is_none_or(|name| *seen.name == *name)
        });
        let items = later.take(limit + 1).map(Session::of).collect();
        Ok(Page::of(items, limit, |it: &Session| it.session.clone()))
    })
}

pub(in crate::admin) fn end(asked: Asked) -> Answer {
    aside(
        move || match asked.gateway.sessions.end_seen(asked.name()) {
            true => Ok(Ended { ended: true }),
            false => Err(Problem::not_found("session")),
        },
    )
}

pub(in crate::admin) fn streams(asked: Asked) -> Answer {
    let page = asked.query.after_number().map(|after| {
        let limit = asked.query.limit();
        let seen = asked
            .gateway
            .world
            .hub()
            .seen(after.unwrap_or(0), limit + 1);
        let items = seen.into_iter().map(Stream::of).collect();
        Page::of(items, limit, |it: &Stream| it.stream.to_string())
    });
    now(page)
}

pub(in crate::admin) fn end_stream(asked: Asked) -> Answer {
    let id = asked.name().parse().ok();
    let ended = id.is_some_and(|id| asked.gateway.world.hub().end(id));
    now(if ended {
        Ok(Ended { ended })
    } else {
        Err(Problem::not_found("stream"))
    })
}

impl Session {
    fn of(seen: SessionSeen) -> Self {
        Self {
            session: seen.reference,
            principal: seen.name,
            revision: seen.revision.as_str(),
            endpoint: scope_word(&seen.scope),
            age_ms: millis(seen.age),
            idle_ms: millis(seen.idle),
            running: seen.running,
            streams: seen.streams,
            subscriptions: seen.subscriptions,
            piped: seen.piped,
        }
    }
}

impl Stream {
    fn of(seen: ListenSeen) -> Self {
        let lists = ListKind::EVERY.into_iter();
        let lists = lists.filter(|kind| seen.lists.has(*kind));
        Self {
            stream: seen.id,
            principal: seen.principal.as_str().to_owned(),
            endpoint: scope_word(&seen.scope),
            lists: lists.map(ListKind::member).collect(),
            resources: seen.resources,
            age_ms: millis(seen.since.elapsed()),
        }
    }
}
