//! One request being answered: the call runs, its events and its outcome are worded for the client's era.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, StreamExt, future::BoxFuture};
use http::StatusCode;
use tokio::time::timeout_at;

use super::{
    Answer, Backing, Door, FrameResponse,
    legacy::{Converse, Flight, Kept, Over, Session, Talk, Turn},
    listen,
    problem::{self, ToolError},
    proof::{self, Lapse},
    watched_tasks,
};
use crate::{
    call::{
        Call, CallId, Cut, Event, Identity, InputRequired, Op, Outcome, Page, Reply, ReplyStream,
        ServerCard, Step, Trail,
    },
    json::{Edits, Json},
    jsonrpc::{RequestId, RpcError, encode},
    metrics,
    protocol::{Era, Revision, codes, meta, methods},
    stack::Error,
    tasks::{LaneArc, clock},
};

/// How long a client waits for a first byte before it gets a stream with signs of life in it.
const STREAM_AFTER: Duration = Duration::from_secs(10);

/// How an era words what the canonical model says.                      impls: Modern, Legacy
pub(super) trait Wording: Sync {
    /// The era, for status codes.
    fn era(&self) -> Era;
    /// A result of an upstream, or a tool error of ours.
    fn result(&self, op: &Op, revision: Revision, result: Json) -> Json;
    /// A task that a tool call became, under our handle, in canonical words.
    fn task(&self, task: Json) -> Json;
    /// What the client is to answer first; `None` in an era whose results cannot ask.
    fn input_required(&self, required: &InputRequired) -> Option<Json>;
    /// An upstream's own error.
    fn failure(&self, op: &Op, error: RpcError) -> RpcError;
    /// Appends the members of a list page before its items, each with its comma.
    fn page_head(&self, page: &Page, out: &mut Vec<u8>);
    /// What an endpoint offers.
    fn card(&self, card: &ServerCard, revision: Revision) -> Json;
}

/// What is said of most pages beside their items takes fewer bytes.
const PAGE_HEAD: usize = 256;

/// What is remembered of a request while its call runs.
pub(super) struct Exchange {
    pub(super) wording: &'static dyn Wording,
    pub(super) id: RequestId,
    pub(super) op: Op,
    pub(super) revision: Revision,
    pub(super) call: CallId,
    /// Where is noted that we end it.
    pub(super) trail: Trail,
    /// The client's own progress token, as spelled.
    pub(super) progress_token: Option<Json>,
    /// Whether the client takes a stream as the answer.
    pub(super) streams: bool,
    /// Its place among the running requests of its session, in the era that has sessions.
    pub(super) flight: Option<Flight>,
    /// How its call goes on when it asks for input, in the era in which results cannot ask.
    pub(super) converse: Option<Converse>,
}

/// A call in progress whose answer goes out as a stream of frames.
pub struct Running {
    exchange: Exchange,
    source: Source,
    /// Until when it may go on, and who finishes it where a lost connection is no cancellation.
    backing: LaneArc<Backing>,
    /// Ready when the proof it was asked by counts no more; only streams wait for that.
    lapse: Option<BoxFuture<'static, Lapse>>,
    /// How far it is, as its client was told; only of those who may be asked.
    furthest: Option<f64>,
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
    /// Begins the call. It lies where it will stay, so that it is not moved while it runs.
    pub(super) fn begin(self, door: &Door, call: Box<Call>) -> Box<Running> {
        let backing = door.backing.here();
        Box::new(Running {
            source: Source::Call(if watched_tasks::named_in(&call.op) {
                Box::pin(watched_tasks::listen(backing.service.clone(), call))
            } else {
                backing.service.call(call)
            }),
            exchange: self,
            backing,
            lapse: None,
            furthest: None,
        })
    }

    fn respond(&self, result: Result<Outcome, Error>) -> FrameResponse {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error)
                if self.shows_urls()
                    && let Some(visit) = problem::visit(&error, self.call) =>
            {
                return FrameResponse::ok(vec![encode::error(Some(&self.id), &visit)]);
            }
            Err(error) => {
                let era = self.wording.era();
                if let Some(failed) = problem::tool_error(&error, era, &self.op, self.call) {
                    return self.tool_error(failed);
                }
                return problem::problem(&error, era, self.id.clone(), self.call).into();
            }
        };
        FrameResponse::ok(match outcome {
            // The one listen that ends well: the gateway is stopping.
            Outcome::Complete(result) if self.is_listen() => {
                let result = self.wording.result(&self.op, self.revision, result);
                self.result(&listen::closing(&self.id, &result))
            }
            Outcome::Complete(result) => {
                self.result(&self.wording.result(&self.op, self.revision, result))
            }
            Outcome::Card(card) => self.result(&self.wording.card(&card, self.revision)),
            Outcome::Listed(page) => {
                let mut head = encode::result_head(&self.id, PAGE_HEAD);
                head.push(b'{');
                self.wording.page_head(&page, &mut head);
                head.push(b'"');
                head.extend_from_slice(page.kind.member().as_bytes());
                head.extend_from_slice(b"\":");
                vec![head.into(), page.items.closed()]
            }
            Outcome::Task(task) => self.result(&self.wording.task(task)),
            Outcome::InputRequired(required) => match self.wording.input_required(&required) {
                Some(result) => {
                    if let Some(hold) = &required.hold {
                        hold.told();
                    }
                    self.result(&result)
                }
                // Whoever cannot be asked declares nothing, so this is not reached.
                None => return self.respond(Err(Error::InputRefused)),
            },
            Outcome::Lost(error) if matches!(self.op, Op::CallTool(_)) => {
                return self.tool_error(ToolError::of_lost(&error, self.call));
            }
            Outcome::Lost(error) => {
                let error = problem::lost(error, self.call);
                vec![encode::error(Some(&self.id), &error)]
            }
            Outcome::Failed(error) => {
                let error = self.wording.failure(&self.op, error);
                if let Some(flight) = &self.flight {
                    flight.session().sends_to(&error);
                }
                let segments = vec![encode::error(Some(&self.id), &error)];
                return FrameResponse {
                    // The one error of an upstream that has a status of its own (PROTOCOL B1).
                    status: match error.code {
                        codes::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
                        _ => StatusCode::OK,
                    },
                    ..FrameResponse::ok(segments)
                };
            }
        })
    }

    fn tool_error(&self, failed: ToolError) -> FrameResponse {
        let result = self.wording.result(&self.op, self.revision, failed.result);
        let mut edits = Edits::new();
        meta::stamp(&mut edits, result.root(), &failed.about);
        FrameResponse::ok(self.result(&result.splice(&edits)))
    }

    /// Whether its client, of a session, has declared that it shows URLs.
    fn shows_urls(&self) -> bool {
        self.flight
            .as_ref()
            .is_some_and(|flight| flight.session().shows_urls())
    }

    const fn is_listen(&self) -> bool {
        matches!(self.op, Op::Listen(_))
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
            // Only the session whose client was sent to the page knows it.
            Event::Elicited(params) => {
                let flight = self.flight.as_ref()?;
                flight.session().elicited(&params)
            }
            Event::Acknowledged(filter) => Some(listen::acknowledged(&self.id, &filter)),
            Event::Changed(change) => Some(listen::changed(&self.id, &change)),
        }
    }
}

/// How a request ended: with what its call led to, or because its client no longer wants it.
enum Ended {
    With(Result<Outcome, Error>),
    Cancelled,
}

impl Running {
    /// The answer: one message when the outcome is the first thing that happens, else a stream.
    pub(super) async fn answer(mut self: Box<Self>) -> Answer {
        if !self.exchange.streams {
            return match poll_fn(|cx| self.poll_outcome(cx)).await {
                Ended::With(outcome) => self.end(outcome),
                Ended::Cancelled => self.stop(),
            };
        }
        match timeout_at(
            clock::now() + STREAM_AFTER,
            poll_fn(|cx| self.poll_first(cx)),
        )
        .await
        {
            Ok(Some(Ended::With(outcome))) => self.end(outcome),
            Ok(Some(Ended::Cancelled)) => self.stop(),
            // An event came first, or nothing did for a while.
            Ok(None) | Err(_) => Answer::Stream(self),
        }
    }

    /// Whether it goes on until somebody ends it.
    pub(super) const fn is_endless(&self) -> bool {
        self.exchange.is_listen()
    }

    /// What is said on a pipe after the last frame.
    pub(super) fn farewell(&self) -> Option<Bytes> {
        self.is_endless().then(|| listen::ended(&self.exchange.id))
    }

    /// Whether it was told to stop before it said anything: nothing follows.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.source, Source::Over)
    }

    /// The session whose request this is, in the era that has sessions.
    pub(super) fn session(&self) -> Option<&Arc<Session>> {
        self.exchange.flight.as_ref().map(Flight::session)
    }

    /// From now on it ends with the proof of this identity, which is at `end`.
    pub(super) fn proved_by(&mut self, identity: &Arc<Identity>, end: Option<SystemTime>) {
        self.lapse = proof::lapse(identity, end);
    }

    /// The end, or `None` for an event, which is kept for the stream that must follow.
    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ended>> {
        Poll::Ready(match ready!(self.poll_step(cx)) {
            Ok(event) => {
                self.source = match std::mem::replace(&mut self.source, Source::Over) {
                    Source::Reply(stream) => Source::Ahead(event, Rest::Reply(stream)),
                    Source::Talk(talk) => Source::Ahead(event, Rest::Talk(talk)),
                    // Nothing else gives events.
                    other @ (Source::Call(_) | Source::Ahead(..) | Source::Over) => other,
                };
                None
            }
            Err(ended) => Some(ended),
        })
    }

    /// The end; events pass unheard.
    fn poll_outcome(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        loop {
            if let Err(ended) = ready!(self.poll_step(cx)) {
                return Poll::Ready(ended);
            }
        }
    }

    /// The next event, or the end; where neither is there and there is no more time, or it panics, the end that says so.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Ended>> {
        // Who panicked is not looked at again: this is the end.
        match catch_unwind(AssertUnwindSafe(|| self.poll_source(cx))) {
            Ok(Poll::Pending) if self.backing.drain_deadline.is_over() => {
                self.exchange.trail.cut(Some(Cut::Stopping));
                Poll::Ready(Err(Ended::With(Err(Error::CutOff))))
            }
            Ok(step) => step,
            Err(_) => {
                // What panicked is dropped by whoever gets this.
                self.exchange.trail.cut(Some(Cut::Panicked));
                metrics::panicked();
                tracing::error!("ref" = %self.exchange.call, "a call panicked; it was answered with an internal error");
                Poll::Ready(Err(Ended::With(Err(Error::Panicked))))
            }
        }
    }

    /// The next event, or the end.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, Ended>> {
        if let Some(flight) = &self.exchange.flight
            && let Poll::Ready(over) = flight.poll_over(cx)
        {
            // Before what runs for it is dropped.
            self.exchange.trail.cut(over.cut());
            return Poll::Ready(Err(match over {
                Over::Cancelled => Ended::Cancelled,
                // It was on its way, so that it is answered: that there is no session is said of what comes later.
                Over::Ended => Ended::With(Err(Error::SessionEnded)),
            }));
        }
        loop {
            match &mut self.source {
                Source::Call(call) => match ready!(call.as_mut().poll(cx)) {
                    Ok(Reply::Stream(stream)) => self.source = Source::Reply(stream),
                    Ok(Reply::Done(outcome)) => {
                        if let Some(outcome) = self.settle(outcome) {
                            return Poll::Ready(Err(Ended::With(Ok(outcome))));
                        }
                    }
                    Err(error) => return Poll::Ready(Err(Ended::With(Err(error)))),
                },
                Source::Reply(stream) => match ready!(stream.poll_next_unpin(cx)) {
                    Some(Step::Event(event)) => return Poll::Ready(Ok(event)),
                    Some(Step::Outcome(outcome)) => {
                        if let Some(outcome) = self.settle(outcome) {
                            return Poll::Ready(Err(Ended::With(Ok(outcome))));
                        }
                    }
                    None => return Poll::Ready(Err(Ended::With(Err(Error::Deadline)))),
                },
                Source::Talk(talk) => {
                    return Poll::Ready(match ready!(talk.poll_next_unpin(cx)) {
                        Some(Turn::Event(event)) => Ok(event),
                        Some(Turn::End(result)) => Err(Ended::With(result)),
                        None => Err(Ended::With(Err(Error::Deadline))),
                    });
                }
                Source::Ahead(..) => {
                    if let Source::Ahead(event, rest) =
                        std::mem::replace(&mut self.source, Source::Over)
                    {
                        self.source = rest.into();
                        return Poll::Ready(Ok(event));
                    }
                }
                Source::Over => return Poll::Ready(Err(Ended::With(Err(Error::Deadline)))),
            }
        }
    }

    /// Whether it is progress that the client has heard of already: a call that is made again with answers begins to count anew,
    /// and under one token progress only rises (PROTOCOL G18).
    fn falls_behind(&mut self, event: &Event) -> bool {
        let talks = matches!(self.source, Source::Talk(_));
        let Event::Progress(params) = event else {
            return false;
        };
        if !talks && self.exchange.converse.is_none() {
            return false;
        }
        let progress = params.root().member("progress");
        let Some(progress) = progress.and_then(|progress| progress.raw().parse().ok()) else {
            return false;
        };
        let behind = self.furthest.is_some_and(|furthest| progress <= furthest);
        if !behind {
            self.furthest = Some(progress);
        }
        talks && behind
    }

    /// The outcome, unless it is a question to a client that is asked in its own way: then the conversation begins.
    fn settle(&mut self, outcome: Outcome) -> Option<Outcome> {
        let Outcome::InputRequired(required) = outcome else {
            return Some(outcome);
        };
        let Some(converse) = self.exchange.converse.take() else {
            return Some(Outcome::InputRequired(required));
        };
        let kept = Kept {
            id: self.exchange.call,
            op: self.exchange.op.clone(),
            wants_progress: self.exchange.progress_token.is_some(),
        };
        self.source = Source::Talk(converse.go_on(self.backing.clone(), kept, required));
        None
    }

    fn end(&mut self, result: Result<Outcome, Error>) -> Answer {
        self.source = Source::Over;
        Answer::Frame(self.exchange.respond(result))
    }

    /// No answer is owed any more. An open POST must end all the same: as a stream of nothing, or as taken note of.
    fn stop(mut self: Box<Self>) -> Answer {
        self.source = Source::Over;
        if self.exchange.streams {
            Answer::Stream(self)
        } else {
            Answer::Accepted
        }
    }
}

/// The frames of the answer, each in segments; the last is the response, unless the request was cancelled.
impl Stream for Running {
    type Item = Vec<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<Bytes>>> {
        let this = &mut *self;
        if matches!(this.source, Source::Over) {
            return Poll::Ready(None);
        }
        if let Some(lapse) = &mut this.lapse
            && let Poll::Ready(why) = lapse.as_mut().poll(cx)
        {
            // What ran for it is dropped here, and with that cancelled.
            this.exchange.trail.cut(Some(why.cut()));
            this.source = Source::Over;
            this.lapse = None;
            let error = why.error(this.exchange.call);
            return Poll::Ready(Some(vec![encode::error(Some(&this.exchange.id), &error)]));
        }
        loop {
            match ready!(this.poll_step(cx)) {
                Ok(event) => {
                    if this.falls_behind(&event) {
                        continue;
                    }
                    if let Some(frame) = this.exchange.event(event) {
                        return Poll::Ready(Some(vec![frame]));
                    }
                }
                Err(Ended::With(outcome)) => {
                    this.source = Source::Over;
                    return Poll::Ready(Some(this.exchange.respond(outcome).segments));
                }
                Err(Ended::Cancelled) => {
                    this.source = Source::Over;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // In the other era nobody hears of it any more, and it ends here.
        if self.exchange.wording.era() != Era::Legacy {
            return;
        }
        let flight = self.exchange.flight.take();
        let told = flight.as_ref().and_then(Flight::over);
        let source = std::mem::replace(&mut self.source, Source::Over);
        if matches!(source, Source::Over) {
            return;
        }
        if let Some(over) = told {
            self.exchange.trail.cut(over.cut());
            return;
        }
        // Goes on unheard, until its outcome or until it is told to stop; else it is dropped with all that runs.
        let (call, trail) = (self.exchange.call, self.exchange.trail.clone());
        trail.cut(Some(Cut::Stopping));
        self.backing.tasks.spawn(async move {
            let work = async {
                match source {
                    Source::Call(call) => {
                        if let Ok(Reply::Stream(stream)) = call.await {
                            stream.for_each(|_| std::future::ready(())).await;
                        }
                    }
                    Source::Reply(stream) | Source::Ahead(_, Rest::Reply(stream)) => {
                        stream.for_each(|_| std::future::ready(())).await;
                    }
                    // Answers come on connections of their own, so they may still come.
                    Source::Talk(talk) | Source::Ahead(_, Rest::Talk(talk)) => {
                        talk.for_each(|_| std::future::ready(())).await;
                    }
                    Source::Over => {}
                }
            };
            let told = poll_fn(|cx| {
                let over = flight.as_ref().map(|flight| flight.poll_over(cx));
                let over = over.unwrap_or(Poll::Pending);
                over.map(|over| trail.cut(over.cut()))
            });
            let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
            tokio::select! {
                biased;
                _ = told => {}
                done = &mut work => {
                    if done.is_err() {
                        // Before what may be left of it is dropped.
                        trail.cut(Some(Cut::Panicked));
                        metrics::panicked();
                        tracing::error!("ref" = %call, "a call panicked that nobody heard any more");
                    }
                }
            }
        });
    }
}
