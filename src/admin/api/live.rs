//! Calls as they end.

use std::borrow::Cow;

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, told_time};
use crate::{
    admin::{
        asked::Asked,
        follow::{self, Source, event},
    },
    feed::{CallSeen, Seen, Watching},
    json::Json,
};

/// The name of its event.
pub(in crate::admin) const CALL: &str = "call";

/// A call that has ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EndedCall")]
pub(in crate::admin) struct Call<'a> {
    /// When it ended.
    time: String,
    /// Its method.
    method: Cow<'a, str>,
    /// The name or URI that the client used.
    target: Option<Cow<'a, str>>,
    /// The upstream it went to, if it went to one.
    upstream: Option<Cow<'a, str>>,
    /// Whose it was.
    principal: Cow<'a, str>,
    /// How it ended: `ok`, `tool_error`, `denied`, …
    outcome: &'static str,
    /// How long it took.
    millis: u64,
}

pub(in crate::admin) fn follow(asked: Asked) -> Answer {
    let calls = Calls(asked.gateway.feed.watch());
    let bench = &asked.bench;
    let events = follow::events(&bench.streams, &bench.tasks, asked.role, calls);
    std::future::ready(events).boxed()
}

struct Calls(Watching);

impl Source for Calls {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Bytes>>> {
        async {
            let told = match self.0.next().await? {
                Seen::Call(call) => event(CALL, &Json::of(&Call::of(&call))),
                Seen::Missed(missed) => follow::missed(missed),
            };
            Some(vec![told])
        }
        .boxed()
    }
}

impl<'a> Call<'a> {
    fn of(call: &'a CallSeen) -> Self {
        Self {
            time: told_time(call.time),
            method: Cow::Borrowed(&call.method),
            target: call.target.as_deref().map(Cow::Borrowed),
            upstream: call.upstream.as_ref().map(|it| Cow::Borrowed(it.as_str())),
            principal: Cow::Borrowed(&call.principal),
            outcome: call.outcome,
            millis: call.millis,
        }
    }
}
