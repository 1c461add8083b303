//! Observe: what happened to each call, told when it is over, to whoever wants to know.
//!
//! Guarantees: every call that comes to the stack is told once, with how it ended: answered, refused, or given up by its client,
//! in the middle of a stream too (STYLE 3.16, SECURITY 8); one whose client is asked is told of once more where it ends
//! meanwhile ([`pause`]). A call that goes to an upstream has the record of its permission before ([`decide`]). Where nobody
//! wants to know, a call costs a branch. Deliberately absent: what a record looks like, which `audit` says.

mod decide;
mod ended;
mod pause;
mod scope;
mod telling;

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::SystemTime,
};

use futures_util::{Stream, StreamExt};

use super::{Error, Parts, Wrap};
use crate::{
    audit::{
        Auditor,
        record::{Ending, Operation},
    },
    call::{Call, Origin, Reply, ReplyStream, Step, Trail},
    feed::{CallSeen, Feed},
    findings::Scrub,
    metrics::calls,
    sanitize::Scrubber,
    spans::{Span, Spans},
    tasks::{LaneArc, PerLaneArc, clock},
};

pub use pause::Pause;

pub(super) use decide::DecideLayer;
pub(super) use pause::Pauses;
pub(super) use scope::ScopeLayer;

/// Tells of calls that are over.
#[derive(Debug)]
pub(super) struct Observe {
    observers: PerLaneArc<CallObservers>,
    spans: Spans,
}

/// Who is told.
#[derive(Debug)]
struct CallObservers {
    auditor: Option<Auditor>,
    feed: Feed,
    scrub: Scrubber,
}

impl Observe {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            observers: PerLaneArc::from(CallObservers::of(parts)),
            spans: parts.spans.clone(),
        }
    }
}

impl CallObservers {
    fn of(parts: &Parts) -> Self {
        Self {
            auditor: parts.auditor.clone(),
            feed: parts.feed.clone(),
            scrub: Scrubber::of(&parts.sanitizer),
        }
    }
}

impl Wrap<Box<Call>> for Observe {
    type Mark = Option<Box<ObservedCall>>;

    fn enter(&self, call: &mut Box<Call>) -> Self::Mark {
        let watched = self.spans.are_made() || calls::are_read();
        // Who begins to look in the middle of a call has not missed it, unless nobody else has looked.
        if self.observers.auditor.is_none() && !watched && !self.observers.feed.is_watched() {
            return None;
        }
        if !call.trail.is_read() {
            call.trail = Trail::of(Origin::default());
        }
        if call.trail.begin() {
            call.trail = call.trail.renewed();
            call.trail.begin();
        }
        let watched = watched && telling::is_told(&call.op);
        Some(Box::new(ObservedCall {
            span: watched.then(|| telling::begin(&self.spans, call, &self.observers.scrub)),
            of: Operation::of(call),
            observers: self.observers.here(),
            told: false,
        }))
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(mut watched) = mark else {
            return result;
        };
        match result {
            Ok(Reply::Done(outcome)) => {
                watched.tell(ended::with(&outcome, watched.of.method));
                Ok(Reply::Done(outcome))
            }
            Ok(Reply::Stream(stream)) => {
                let watched = Following { stream, watched };
                Ok(Reply::Stream(ReplyStream::new(watched.boxed())))
            }
            Err(error) => {
                if let Some(status) = ended::status(&error) {
                    watched.of.trail.note(|facts| facts.status = Some(status));
                }
                let features = watched.of.caller.revision.features();
                watched.tell(ended::refused(&error, features));
                Err(error)
            }
        }
    }
}

/// A call that is not over. Dropped before it is, its client went away, or it was cut off.
#[derive(Debug)]
pub(super) struct ObservedCall {
    of: Operation,
    observers: LaneArc<CallObservers>,
    /// Its span, where it is told to metrics and there are spans.
    span: Option<Option<Span>>,
    told: bool,
}

impl ObservedCall {
    fn tell(&mut self, ending: Ending<'_>) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        if let Some(span) = self.span.take() {
            telling::end(&self.of, span, &ending);
        }
        let observers = &*self.observers;
        observers
            .feed
            .note_with(|| seen(&self.of, &ending, &observers.scrub));
        if let Some(auditor) = &observers.auditor {
            auditor.conclude(&self.of, &ending);
        }
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if !self.told {
            let ending = ended::without(&self.of.trail);
            self.tell(ending);
        }
    }
}

/// A call as those see it who look at the moment.
fn seen(of: &Operation, ending: &Ending<'_>, scrub: &dyn Scrub) -> CallSeen {
    let route = of.trail.route();
    let target = of.exposed.as_deref();
    let took = clock::since(of.began).as_millis();
    CallSeen {
        time: SystemTime::now(),
        method: of.method.to_owned(),
        target: target.map(|name| scrub.target(name, route.is_some()).into_owned()),
        upstream: route.map(|(upstream, _)| upstream),
        principal: of.identity.name.to_string(),
        outcome: ending.outcome.word(),
        millis: u64::try_from(took).unwrap_or(u64::MAX),
    }
}

/// A stream whose end is told.
struct Following {
    stream: ReplyStream,
    watched: Box<ObservedCall>,
}

impl Stream for Following {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let step = std::task::ready!(self.stream.poll_next_unpin(cx));
        if let Some(Step::Outcome(outcome)) = &step {
            let method = self.watched.of.method;
            self.watched.tell(ended::with(outcome, method));
        }
        Poll::Ready(step)
    }
}
