//! Decide: the permission of a call is on record before anybody upstream hears of it (SECURITY AUD-1).
//! Without a record nobody does (AUD-2).

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service};

use super::{Error, Parts};
use crate::{
    audit::{
        Auditor,
        record::{Permission, View},
        recorder::{Safe, Unavailable},
    },
    call::{Decision, Op, Reply, Trail},
    stack::{authorize, ready::take_ready},
    stage::{Permitted, Watchable, Way},
    tasks::clock,
};

/// The layer.
pub(in crate::stack) struct DecideLayer(Option<Auditor>);

/// Records permissions, where anything is recorded.
#[derive(Clone)]
pub(in crate::stack) struct Decide<S> {
    auditor: Option<Auditor>,
    inner: S,
}

/// A call whose permission is on record, or about to be.
pub(in crate::stack) enum Deciding<S> {
    /// It goes on; where somebody reads its trail, its time is taken.
    Going(BoxFuture<'static, Result<Reply, Error>>, Option<Clock>),
    /// Its record is not safe yet. It goes on here, once.
    Waiting(Safe, Option<(S, Box<Permitted>)>),
    /// It does not go on.
    Refused,
}

impl DecideLayer {
    pub(in crate::stack) fn new(parts: &Parts) -> Self {
        Self(parts.auditor.clone())
    }
}

impl<S> Layer<S> for DecideLayer {
    type Service = Decide<S>;

    fn layer(&self, inner: S) -> Decide<S> {
        Decide {
            auditor: self.0.clone(),
            inner,
        }
    }
}

impl<S> Service<Box<Permitted>> for Decide<S>
where
    S: Service<
            Box<Permitted>,
            Response = Reply,
            Error = Error,
            Future = BoxFuture<'static, Result<Reply, Error>>,
        > + Clone
        + Send
        + 'static,
{
    type Response = Reply;
    type Error = Error;
    type Future = Deciding<S>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, permitted: Box<Permitted>) -> Deciding<S> {
        let Some(auditor) = self.auditor.as_ref().filter(|_| is_heard(&permitted)) else {
            return Deciding::Going(self.inner.call(permitted), None);
        };
        match record(auditor, &permitted) {
            Err(Unavailable) => Deciding::Refused,
            Ok(Some(safe)) => {
                let inner = take_ready(&mut self.inner);
                Deciding::Waiting(safe, Some((inner, permitted)))
            }
            Ok(None) => {
                let clock = Clock::of(&permitted);
                Deciding::Going(self.inner.call(permitted), Some(clock))
            }
        }
    }
}

/// Whether anybody but us hears of a call.
fn is_heard(permitted: &Permitted) -> bool {
    match permitted.way {
        Way::Upstream(_) | Way::Hub(_) => true,
        Way::Snapshot => matches!(permitted.call.op, Op::ListTasks(_)),
        Way::Caller(_) => false,
    }
}

fn record(auditor: &Auditor, permitted: &Permitted) -> Result<Option<Safe>, Unavailable> {
    let Permitted { call, snapshot, .. } = permitted;
    let passage = permitted.passage();
    let route = passage.map(|passage| (&passage.route().upstream, &passage.route().local));
    let heard = subscribed(permitted).map(|at| (&at.upstream, &at.local));
    let permit = passage.map(|passage| passage.permit());
    let (watched, not_watched) = listened(permitted);
    let resumed = call.resume.as_ref();
    let answers = resumed.and_then(|resume| resume.responses.as_ref());
    let safe = auditor.permit(
        View::of(call),
        &Permission {
            route: route
                .or(heard)
                .map(|(upstream, local)| (upstream, &**local)),
            policies: permit.map_or(&[], |permit| permit.policies()),
            policy: snapshot.policy().policy().digest(),
            approved: permitted.approved().map(|approved| &**approved),
            round: permitted.round,
            definition: authorize::definition(call, snapshot),
            listen: Some((&watched, &not_watched)),
            params: &call.params,
            answers: answers.or(permitted.brought.as_ref()),
        },
    );
    call.trail.note(|facts| {
        facts.approved = permitted.approved().cloned();
        if let Some((upstream, local)) = heard {
            facts.route = Some((upstream.clone(), local.clone()));
        }
        facts.decision = match safe {
            // Or kept until it can be written, also where the call does not go on for want of that: its end has a record of its own.
            Ok(Some(_)) => Decision::Recorded,
            Ok(None) => Decision::Permitted,
            // It will not be written.
            Err(Unavailable) => Decision::Pending,
        };
    });
    safe
}

/// What a listen is about, where that is one resource and it may be watched.
fn subscribed(permitted: &Permitted) -> Option<&Watchable> {
    permitted.call.op.target()?;
    match &permitted.way {
        Way::Hub(watched) => watched.first().map(|watched| &watched.at),
        Way::Snapshot | Way::Upstream(_) | Way::Caller(_) => None,
    }
}

/// The resources that a listen watches, and those that it was to and does not: policy does not let it, or nobody has them.
fn listened(permitted: &Permitted) -> (Vec<&str>, Vec<&str>) {
    let (Op::Listen(filter), Way::Hub(watched)) = (&permitted.call.op, &permitted.way) else {
        return Default::default();
    };
    let watched: Vec<&str> = watched.iter().map(|it| &*it.at.outward).collect();
    let asked = filter.subscriptions.iter().map(|uri| &**uri);
    let not_watched = asked.filter(|uri| !watched.contains(uri)).collect();
    (watched, not_watched)
}

/// Notes how long an upstream had a call when it has answered, or when nobody waits for that any more.
pub(in crate::stack) struct Clock {
    trail: Trail,
    began: Instant,
}

impl Clock {
    fn of(permitted: &Permitted) -> Self {
        Self {
            trail: permitted.call.trail.clone(),
            began: clock::now_fresh(),
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let took = clock::since(self.began);
        self.trail.note(|facts| facts.spent.upstream += took);
    }
}

/// Nothing in it is pinned where it stands.
impl<S> Unpin for Deciding<S> {}

impl<S> Future for Deciding<S>
where
    S: Service<Box<Permitted>, Future = BoxFuture<'static, Result<Reply, Error>>>,
{
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut *self {
                Self::Going(inner, clock) => {
                    let reply = ready!(inner.as_mut().poll(cx));
                    *clock = None;
                    return Poll::Ready(reply);
                }
                Self::Waiting(safe, rest) => {
                    let safe = ready!(Pin::new(safe).poll(cx));
                    let (Ok(()), Some((mut inner, permitted))) = (safe, rest.take()) else {
                        return Poll::Ready(Err(Error::AuditUnavailable));
                    };
                    let clock = Clock::of(&permitted);
                    *self = Self::Going(inner.call(permitted), Some(clock));
                }
                Self::Refused => return Poll::Ready(Err(Error::AuditUnavailable)),
            }
        }
    }
}
