//! One request being answered: the call runs, its events and its outcome are worded for the client's era.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, future::BoxFuture};
use http::StatusCode;
use tokio::time::timeout;
use tower::Service;

use super::{
    Answer, Door, Told,
    legacy::{Converse, Talk, Turn},
    problem::{self, ToolError},
};
use crate::{
    call::{
        Call, CallId, Event, InputRequired, Op, Outcome, Page, Reply, ReplyStream, ServerCard, Step,
    },
    json::{Edits, Json},
    jsonrpc::{RequestId, RpcError, encode},
    protocol::{Era, Revision, codes, meta, methods},
    stack::Error,
    tasks::Tasks,
};

/// How long a client waits for a first byte before it gets a stream with signs of life in it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How an era words what the canonical model says.                      impls: Modern, Legacy
pub(super) trait Wording: Sync {
    /// The era, for status codes.
    fn era(&self) -> Era;
    /// A result of an upstream, or a tool error of ours.
    fn result(&self, op: &Op, revision: Revision, result: Json) -> Json;
    /// What the client is to answer first; `None` in an era whose results cannot ask.
    fn input_required(&self, required: &InputRequired) -> Option<Json>;
    /// An upstream's own error.
    fn failure(&self, op: &Op, error: RpcError) -> RpcError;
    /// What follows the items of a list page, from the comma on, the closing brace included.
    fn page_tail(&self, page: &Page) -> Vec<u8>;
    /// What an endpoint offers.
    fn card(&self, card: &ServerCard, revision: Revision) -> Json;
}

/// What is remembered of a request while its call runs.
pub(super) struct Exchange {
    pub(super) wording: &'static dyn Wording,
    pub(super) id: RequestId,
    pub(super) op: Op,
    pub(super) revision: Revision,
    pub(super) call: CallId,
    /// The client's own progress token, as spelled.
    pub(super) progress_token: Option<Json>,
    /// Whether the client takes a stream as the answer.
    pub(super) streams: bool,
    /// How its call goes on when it asks for input, in the era in which results cannot ask.
    pub(super) converse: Option<Converse>,
}

/// A call in progress whose answer goes out as a stream of frames.
pub struct Running {
    exchange: Exchange,
    source: Source,
    /// Set in the era in which a lost connection is no cancellation: who finishes the call then.
    finish: Option<Tasks>,
}

enum Source {
    Call(BoxFuture<'static, Result<Reply, Error>>),
    Reply(ReplyStream),
    /// A first event that was read ahead.
    Ahead(Event, Rest),
    /// The client is asked for input.
    Talk(Talk),
    Over,
}

/// What follows an event.
enum Rest {
    Reply(ReplyStream),
    Talk(Talk),
}

impl From<Rest> for Source {
    fn from(rest: Rest) -> Self {
        match rest {
            Rest::Reply(stream) => Self::Reply(stream),
            Rest::Talk(talk) => Self::Talk(talk),
        }
    }
}

impl Exchange {
    /// Runs the call. The answer is one message when the outcome is the first thing that happens, else a stream.
    pub(super) async fn run(mut self, door: &Door, call: Call) -> Answer {
        let finish = (self.wording.era() == Era::Legacy).then(|| door.tasks.clone());
        let mut running = Running {
            source: Source::Call(match &mut self.converse {
                Some(converse) => converse.service.call(call),
                None => door.service.clone().call(call),
            }),
            exchange: self,
            finish,
        };
        if !running.exchange.streams {
            loop {
                if let Some(answer) = running.step().await {
                    return answer;
                }
            }
        }
        match timeout(PATIENCE, running.step()).await {
            Ok(Some(answer)) => answer,
            // An event came first, or nothing did for a while.
            Ok(None) | Err(_) => Answer::Stream(running),
        }
    }

    fn told(&self, result: Result<Outcome, Error>) -> Told {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => match problem::tool_error(&error, &self.op, self.call) {
                Some(failed) => return self.tool_error(failed),
                None => {
                    let problem =
                        problem::problem(&error, self.wording.era(), self.id.clone(), self.call);
                    return Told {
                        status: problem.status,
                        segments: vec![encode::error(problem.id.as_ref(), &problem.error)],
                        session: None,
                    };
                }
            },
        };
        Told::ok(match outcome {
            Outcome::Complete(result) => {
                self.result(&self.wording.result(&self.op, self.revision, result))
            }
            Outcome::Card(card) => self.result(&self.wording.card(&card, self.revision)),
            Outcome::Listed(page) => vec![
                encode::result_head(&self.id),
                Bytes::from(format!("{{\"{}\":", page.kind.member())),
                page.items.clone(),
                Bytes::from(self.wording.page_tail(&page)),
                Bytes::from_static(b"}"),
            ],
            Outcome::InputRequired(required) => match self.wording.input_required(&required) {
                Some(result) => self.result(&result),
                // Whoever cannot be asked declares nothing, so this is not reached.
                None => return self.told(Err(Error::InputRefused)),
            },
            Outcome::Lost(error) if matches!(self.op, Op::CallTool(_)) => {
                return self.tool_error(ToolError::of_lost(&error, self.call));
            }
            Outcome::Lost(error) => vec![encode::error(Some(&self.id), &error)],
            Outcome::Failed(error) => {
                let error = self.wording.failure(&self.op, error);
                let segments = vec![encode::error(Some(&self.id), &error)];
                return Told {
                    // The one error of an upstream that has a status of its own (PROTOCOL B1).
                    status: match error.code {
                        codes::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
                        _ => StatusCode::OK,
                    },
                    ..Told::ok(segments)
                };
            }
        })
    }

    fn tool_error(&self, failed: ToolError) -> Told {
        let result = self.wording.result(&self.op, self.revision, failed.result);
        let mut edits = Edits::new();
        meta::stamp(&mut edits, result.root(), &failed.about);
        Told::ok(self.result(&result.splice(&edits)))
    }

    fn result(&self, result: &Json) -> Vec<Bytes> {
        encode::result(&self.id, result).into()
    }

    /// The frame of an event, if the client is owed it.
    fn event(&self, event: Event) -> Option<Bytes> {
        match event {
            Event::Progress(params) => {
                let mut edits = Edits::new();
                edits.set(
                    params.root(),
                    meta::PROGRESS_TOKEN,
                    self.progress_token.clone()?,
                );
                Some(encode::notification(
                    methods::PROGRESS,
                    Some(&params.splice(&edits)),
                ))
            }
            Event::Worded(frame) => Some(frame),
            Event::Log(_, params) => Some(encode::notification(methods::MESSAGE, Some(&params))),
            // No listen is answered yet.
            Event::Acknowledged(_) | Event::Changed(_) => None,
        }
    }
}

impl Running {
    /// Goes on until the outcome (then the answer), or until an event, which is kept for the stream that must follow.
    async fn step(&mut self) -> Option<Answer> {
        loop {
            match &mut self.source {
                Source::Call(call) => match call.await {
                    Ok(Reply::Stream(stream)) => self.source = Source::Reply(stream),
                    Ok(Reply::Done(outcome)) => {
                        if let Some(outcome) = self.settle(outcome) {
                            return Some(self.end(Ok(outcome)));
                        }
                    }
                    Err(error) => return Some(self.end(Err(error))),
                },
                Source::Reply(stream) => match stream.next().await {
                    Some(Step::Outcome(outcome)) => {
                        if let Some(outcome) = self.settle(outcome) {
                            return Some(self.end(Ok(outcome)));
                        }
                    }
                    Some(Step::Event(event)) if self.exchange.streams => {
                        let Source::Reply(stream) =
                            std::mem::replace(&mut self.source, Source::Over)
                        else {
                            return None;
                        };
                        self.source = Source::Ahead(event, Rest::Reply(stream));
                        return None;
                    }
                    // A client that takes no stream cannot be told.
                    Some(Step::Event(_)) => {}
                    None => return Some(self.end(Err(Error::Deadline))),
                },
                Source::Talk(talk) => match talk.next().await {
                    Some(Turn::End(result)) => return Some(self.end(result)),
                    Some(Turn::Event(event)) if self.exchange.streams => {
                        let Source::Talk(talk) = std::mem::replace(&mut self.source, Source::Over)
                        else {
                            return None;
                        };
                        self.source = Source::Ahead(event, Rest::Talk(talk));
                        return None;
                    }
                    Some(Turn::Event(_)) => {}
                    None => return Some(self.end(Err(Error::Deadline))),
                },
                Source::Ahead(..) | Source::Over => return None,
            }
        }
    }

    /// The outcome, unless it is a question to a client that is asked in its own way: then the conversation begins.
    fn settle(&mut self, outcome: Outcome) -> Option<Outcome> {
        match (outcome, self.exchange.converse.take()) {
            (Outcome::InputRequired(required), Some(converse)) => {
                self.source = Source::Talk(converse.go_on(required));
                None
            }
            (outcome, _) => Some(outcome),
        }
    }

    fn end(&mut self, result: Result<Outcome, Error>) -> Answer {
        self.source = Source::Over;
        Answer::Frame(self.exchange.told(result))
    }
}

/// The frames of the answer, each in segments; the last is the response.
impl Stream for Running {
    type Item = Vec<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        let this = &mut *self;
        loop {
            let ended = match &mut this.source {
                Source::Over => return Poll::Ready(None),
                Source::Ahead(..) => {
                    let Source::Ahead(event, rest) =
                        std::mem::replace(&mut this.source, Source::Over)
                    else {
                        return Poll::Ready(None);
                    };
                    this.source = rest.into();
                    if let Some(frame) = this.exchange.event(event) {
                        return Poll::Ready(Some(vec![frame]));
                    }
                    continue;
                }
                Source::Call(call) => match call.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(Reply::Stream(stream))) => {
                        this.source = Source::Reply(stream);
                        continue;
                    }
                    Poll::Ready(Ok(Reply::Done(outcome))) => match this.settle(outcome) {
                        Some(outcome) => Ok(outcome),
                        None => continue,
                    },
                    Poll::Ready(Err(error)) => Err(error),
                },
                Source::Talk(talk) => match talk.poll_next_unpin(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Turn::Event(event))) => match this.exchange.event(event) {
                        Some(frame) => return Poll::Ready(Some(vec![frame])),
                        None => continue,
                    },
                    Poll::Ready(Some(Turn::End(result))) => result,
                    Poll::Ready(None) => return Poll::Ready(None),
                },
                Source::Reply(stream) => match stream.poll_next_unpin(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Step::Event(event))) => match this.exchange.event(event) {
                        Some(frame) => return Poll::Ready(Some(vec![frame])),
                        None => continue,
                    },
                    Poll::Ready(Some(Step::Outcome(outcome))) => match this.settle(outcome) {
                        Some(outcome) => Ok(outcome),
                        None => continue,
                    },
                    Poll::Ready(None) => return Poll::Ready(None),
                },
            };
            this.source = Source::Over;
            return Poll::Ready(Some(this.exchange.told(ended).segments));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(tasks) = &self.finish else { return };
        match std::mem::replace(&mut self.source, Source::Over) {
            Source::Call(call) => tasks.spawn(async move {
                if let Ok(Reply::Stream(stream)) = call.await {
                    stream.for_each(|_| std::future::ready(())).await;
                }
            }),
            Source::Reply(stream) | Source::Ahead(_, Rest::Reply(stream)) => {
                tasks.spawn(stream.for_each(|_| std::future::ready(())))
            }
            // Answers come on connections of their own, so they may still come.
            Source::Talk(talk) | Source::Ahead(_, Rest::Talk(talk)) => {
                tasks.spawn(talk.for_each(|_| std::future::ready(())))
            }
            Source::Over => {}
        }
    }
}
