//! What comes back: events, then exactly one outcome.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, stream::BoxStream};

use super::{Change, Filter, InputRequired, LogLevel};
use crate::{
    json::Json,
    jsonrpc::{RpcError, encode::LastMember},
    protocol::{Revision, codes, methods::ListKind},
};

/// The answer to a call.
#[derive(Debug)]
pub enum Reply {
    /// Answered at once: the hot case, no stream is made.
    Done(Outcome),
    /// Events first, and the outcome at the end.
    Stream(ReplyStream),
}

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A result from an upstream, or one of our own.
    Complete(Json),
    /// A page of a list, from memory.
    Listed(Page),
    /// What this endpoint offers.
    Card(ServerCard),
    /// The upstream asks the client for something first; the caller calls again with the answers.
    InputRequired(InputRequired),
    /// A tool call has become a task: its state in the words of the tasks extension, whatever the upstream speaks. The id in it
    /// is the upstream's until the stack has put our handle in its place.
    Task(Json),
    /// The upstream's own JSON-RPC error, passed on as it came.
    Failed(RpcError),
    /// What went wrong between us and the upstream after the first event, in our own words, codes and reason.
    Lost(RpcError),
}

/// One page of a merged list: encoded items shared by everybody who may see them, and what differs per answer.
#[derive(Debug, Clone)]
pub struct Page {
    /// Which list.
    pub kind: ListKind,
    /// The items: one JSON array.
    pub items: LastMember,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
    /// How long the page may be kept, in milliseconds (PROTOCOL D5).
    pub ttl_millis: u64,
    /// Whether it may be kept for everybody.
    pub public: bool,
    /// Upstreams whose items are missing or stale, where there are any; told in vendor `_meta` (PROTOCOL H11).
    pub away: Option<Arc<[String]>>,
    /// Upstreams that have more items than are listed, where there are any; told in the same way.
    pub partial: Option<Arc<[String]>>,
}

/// What a server offers: learned from an upstream, or merged for an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCard {
    /// The revision the server was reached in.
    pub revision: Revision,
    /// Its capabilities, as an object.
    pub capabilities: Json,
    /// Its instructions to the model, if any.
    pub instructions: Option<Arc<str>>,
    /// Its own name and version as an `Implementation` object, if it told.
    pub server_info: Option<Json>,
    /// How long the card may be kept, in milliseconds; 0 when unknown.
    pub ttl_millis: u64,
}

impl ServerCard {
    /// Whether the server has log messages, whose level can be set.
    pub fn logs(&self) -> bool {
        self.capabilities.root().member("logging").is_some()
    }

    /// Whether both say the same of the server, for however long.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let Self {
            revision,
            capabilities,
            instructions,
            server_info,
            ttl_millis: _,
        } = self;
        *revision == other.revision
            && *capabilities == other.capabilities
            && *instructions == other.instructions
            && *server_info == other.server_info
    }
}

/// Something that happens before the outcome.
#[derive(Debug, Clone)]
pub enum Event {
    /// `notifications/progress` params. The token in them is the upstream hop's; the dialect puts its own in.
    Progress(Json),
    /// `notifications/message` params, and their level.
    Log(LogLevel, Json),
    /// A frame that the client's own dialect has worded: a request to a client of the older era. Never comes from below.
    Worded(Bytes),
    /// `notifications/elicitation/complete` params: what the user was sent to a URL for is done there. Only for callers whose
    /// revision has it.
    Elicited(Json),
    /// What of a listen is in force: the first event of each, and of nothing else.
    Acknowledged(Arc<Filter>),
    /// Something listened for has changed.
    Changed(Change),
}

/// A source of events that ends in an outcome.
pub type Events = BoxStream<'static, Step>;

/// One item of a reply stream.
#[derive(Debug, Clone)]
pub enum Step {
    /// An event; more follows.
    Event(Event),
    /// The outcome; nothing follows.
    Outcome(Outcome),
}

/// Events, then exactly one outcome, then nothing.
// INVARIANT: holds even when the source ends early or goes on too long: the first outcome ends the stream, and a
// source that ends without one is given a failure here.
pub struct ReplyStream {
    source: Option<Events>,
}

impl ReplyStream {
    /// Wraps a source.
    pub const fn new(source: Events) -> Self {
        Self {
            source: Some(source),
        }
    }
}

impl Stream for ReplyStream {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let Some(source) = &mut self.source else {
            return Poll::Ready(None);
        };
        let step = match source.as_mut().poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Step::Event(event))) => return Poll::Ready(Some(Step::Event(event))),
            Poll::Ready(Some(outcome)) => outcome,
            Poll::Ready(None) => Step::Outcome(Outcome::Lost(RpcError {
                data: Some(Json::literal(r#"{"reason":"upstream_unavailable"}"#)),
                ..RpcError::new(
                    codes::UPSTREAM_UNAVAILABLE,
                    "the upstream's stream ended before its answer",
                )
            })),
        };
        self.source = None;
        Poll::Ready(Some(step))
    }
}

impl std::fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReplyStream")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    async fn steps(source: Vec<Step>) -> Vec<Step> {
        ReplyStream::new(stream::iter(source).boxed())
            .collect()
            .await
    }

    #[tokio::test]
    async fn a_source_that_dies_still_yields_one_outcome() {
        let steps = steps(vec![Step::Event(Event::Progress(Json::empty_object()))]).await;
        let [Step::Event(_), Step::Outcome(Outcome::Lost(error))] = &steps[..] else {
            panic!("{steps:?}");
        };
        // SECURITY 4
        let data = error.data.as_ref().expect("it says why");
        assert_eq!(data.as_str(), r#"{"reason":"upstream_unavailable"}"#);
    }

    #[tokio::test]
    async fn nothing_follows_the_first_outcome() {
        let outcome = Step::Outcome(Outcome::Complete(Json::empty_object()));
        let steps = steps(vec![
            outcome.clone(),
            Step::Event(Event::Progress(Json::empty_object())),
            outcome,
        ])
        .await;
        assert_eq!(steps.len(), 1);
    }
}
