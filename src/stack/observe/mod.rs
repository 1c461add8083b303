//! Observe: what happened to each call, told when it is over, to whoever wants to know.
//!
//! Guarantees: every call that comes to the stack is told once, with how it ended: answered, refused, or given up by its client,
//! in the middle of a stream too (STYLE 3.16, SECURITY 8). A call that goes to an upstream has the record of its permission
//! before ([`decide`]). Where nobody wants to know, a call costs a branch. Deliberately absent: what a record looks like,
//! which `audit` says.

mod decide;
mod ended;
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
    call::{Call, Op, Origin, Reply, ReplyStream, Step, Trail},
    feed::{CallSeen, Feed},
    findings::Findings,
    metrics::calls,
    spans::{Span, Spans},
};

pub(super) use decide::DecideLayer;
pub(super) use scope::ScopeLayer;

/// Tells of calls that are over.
#[derive(Debug)]
pub(super) struct Observe {
    auditor: Option<Auditor>,
    findings: Findings,
    feed: Feed,
    spans: Spans,
}

impl Observe {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            auditor: parts.auditor.clone(),
            findings: parts.findings.clone(),
            feed: parts.feed.clone(),
            spans: parts.spans.clone(),
        }
    }
}

impl Wrap<Call> for Observe {
    type Mark = Option<Watched>;

    fn enter(&self, call: &mut Call) -> Self::Mark {
        let watched = self.spans.are_made() || calls::are_read();
        // Who begins to look in the middle of a call has not missed it, unless nobody else has looked.
        if self.auditor.is_none() && !watched && !self.feed.is_watched() {
            return None;
        }
        if !call.trail.is_read() {
            call.trail = Trail::of(Origin::default());
        } else if call.trail.facts().begun {
            call.trail = call.trail.renewed();
        }
        call.trail.note(|facts| facts.begun = true);
        let watched = watched && telling::is_told(&call.op);
        Some(Watched {
            tool: matches!(call.op, Op::CallTool(_)),
            span: watched.then(|| telling::begin(&self.spans, call)),
            of: Operation::of(call),
            findings: self.findings.clone(),
            feed: self.feed.clone(),
            auditor: self.auditor.clone(),
            told: false,
        })
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(mut watched) = mark else {
            return result;
        };
        match result {
            Ok(Reply::Done(outcome)) => {
                watched.tell(ended::with(&outcome, watched.tool));
                Ok(Reply::Done(outcome))
            }
            Ok(Reply::Stream(stream)) => {
                let told = Told { stream, watched };
                Ok(Reply::Stream(ReplyStream::new(told.boxed())))
            }
            Err(error) => {
                watched.tell(ended::refused(&error));
                Err(error)
            }
        }
    }
}

/// A call that is not over. Dropped before it is, its client went away.
#[derive(Debug)]
pub(super) struct Watched {
    of: Operation,
    tool: bool,
    findings: Findings,
    feed: Feed,
    auditor: Option<Auditor>,
    /// Its span, where it is told to metrics and there are spans.
    span: Option<Option<Span>>,
    told: bool,
}

impl Watched {
    fn tell(&mut self, ending: Ending<'_>) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        if let Some(span) = self.span.take() {
            telling::end(&self.of, span, &ending);
        }
        self.feed.note_with(|| seen(&self.of, &ending));
        if let Some(auditor) = &self.auditor {
            let findings = self.findings.of(self.of.id);
            let ending = Ending {
                findings: &findings,
                ..ending
            };
            auditor.conclude(&self.of, &ending);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.told {
            self.tell(ended::cancelled());
        }
    }
}

/// A call as those see it who look at the moment.
fn seen(of: &Operation, ending: &Ending<'_>) -> CallSeen {
    let route = of.trail.facts().route.clone();
    let took = of.began.instant.elapsed().as_millis();
    CallSeen {
        time: SystemTime::now(),
        method: of.method.to_owned(),
        target: of.exposed.as_deref().map(str::to_owned),
        upstream: route.map(|(upstream, _)| upstream),
        principal: of.identity.name.to_string(),
        outcome: ending.outcome,
        millis: u64::try_from(took).unwrap_or(u64::MAX),
    }
}

/// A stream whose end is told.
struct Told {
    stream: ReplyStream,
    watched: Watched,
}

impl Stream for Told {
    type Item = Step;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let step = std::task::ready!(self.stream.poll_next_unpin(cx));
        if let Some(Step::Outcome(outcome)) = &step {
            let tool = self.watched.tool;
            self.watched.tell(ended::with(outcome, tool));
        }
        Poll::Ready(step)
    }
}
