//! The JSON API: a file for each thing to look at, with its types as they are told.

pub(super) mod audit;
pub(super) mod catalog;
pub(super) mod configuration;
pub(super) mod findings;
pub(super) mod limits;
pub(super) mod live;
pub(super) mod policy;
pub(super) mod sessions;
pub(super) mod upstreams;

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use http::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{asked::Asked, problem::Problem, reply};
use crate::{
    json::Json,
    protocol::{methods::ListKind, names::Scope},
    server::Body,
    upstream::Upstream,
};

type Answer = BoxFuture<'static, Result<Response<Body>, Problem>>;

/// An object that somebody else made, told as it is.
#[derive(Debug, Clone)]
pub(super) struct Given(pub(super) Json);

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue =
            serde_json::from_str(self.0.as_str()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl JsonSchema for Given {
    fn schema_name() -> Cow<'static, str> {
        "Given".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// An answer that is known already.
fn now<T: Serialize>(answer: Result<T, Problem>) -> Answer {
    let answer = answer.map(|told| reply::json(&Json::of(&told)));
    std::future::ready(answer).boxed()
}

/// An answer that takes a while to work out, which holds up no call meanwhile.
fn aside<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Answer {
    let work = tokio::task::spawn_blocking(move || work().map(|told| Json::of(&told)));
    async move {
        // It ends only with the runtime, and everything with it; or it panicked.
        let told = work.await.map_err(|_| Problem::internal())??;
        Ok(reply::json(&told))
    }
    .boxed()
}

/// The upstream that a path names.
fn upstream(asked: &Asked) -> Result<Arc<Upstream>, Problem> {
    let mut all = asked.gateway.upstreams.iter();
    let found = all.find(|upstream| upstream.id().as_str() == asked.name());
    found.cloned().ok_or_else(|| Problem::not_found("upstream"))
}

/// A time as it is told.
fn told_time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

/// Whole milliseconds.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Sorts of items, as they are asked for and told.
const KINDS: &[&str] = &["tool", "prompt", "resource", "template", "skill"];

const fn kind_word(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tool",
        ListKind::Prompts => "prompt",
        ListKind::Resources => "resource",
        ListKind::Templates => "template",
        ListKind::Skills => "skill",
    }
}

/// An endpoint, as it is told: `all`, `toolset:NAME`, `upstream:NAME`.
fn scope_word(scope: &Scope) -> String {
    match scope {
        Scope::All => "all".to_owned(),
        Scope::Toolset(name) => format!("toolset:{name}"),
        Scope::Upstream(id) => format!("upstream:{id}"),
    }
}
