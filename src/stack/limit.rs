//! Limits on the way of a call: rates and quotas as a gate, calls at once as a service, since they may have to wait.
//!
//! Guarantees: entry rules refuse before any lookup. Rules for tools and upstreams are asked only after policy permitted the
//! call, so a refusal reveals nothing hidden. Each round counts once; to rules for tools and upstreams, a round that resumes a
//! held-open exchange or brings an approval does not count again; calls the gateway makes of its own accord never count. A seat
//! is held until the reply, streams included, ends or is dropped. A listen, which has no end of its own, takes none. Where no
//! rule applies nothing is looked up or allocated.
//! Deliberately absent: the rules and meters, which are in `limits`.

use std::{
    borrow::Cow,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::{StreamExt, future::BoxFuture};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::{Error, Gate, ready::take_ready};
use crate::{
    call::{Call, Op, Reply, ReplyStream, State, Trail},
    limits::{Acquired, HeldSlots, Limited, Limits, Stage, Subject},
    protocol::methods::ListKind,
    snapshot::Snapshot,
    stage::{Consent, Permitted, Pinned, Way},
};

/// Rates and quotas of one stage.
#[derive(Debug)]
pub(super) struct RateLimit(Stage);

impl RateLimit {
    /// What is asked before anything is looked up.
    pub(super) const fn per_principal() -> Self {
        Self(Stage::Entry)
    }

    /// What is asked when the way is known, and permitted.
    pub(super) const fn per_route() -> Self {
        Self(Stage::Route)
    }
}

impl Gate<Pinned> for RateLimit {
    type Pass = Pinned;

    fn admit(&self, call: Pinned) -> Result<Pinned, Error> {
        let limits = call.snapshot().limits();
        if limits.counts(self.0) && !call.call().unasked {
            limits.admit(self.0, &at_entry(call.call()))?;
        }
        Ok(call)
    }
}

impl Gate<Box<Permitted>> for RateLimit {
    type Pass = Box<Permitted>;

    fn admit(&self, permitted: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        let limits = permitted.snapshot.limits();
        if limits.counts(self.0) && !permitted.call.unasked && !goes_on(&permitted) {
            let tool = tool(&permitted);
            limits.admit(self.0, &on_the_way(&permitted, tool.as_deref()))?;
        }
        Ok(permitted)
    }
}

/// Whether a call was counted when it began and goes on once more at most: its exchange is held open for it, or it brings an
/// approval, which counts once. A state that its client may bring back as often as it likes is no such thing.
fn goes_on(permitted: &Permitted) -> bool {
    let resume = permitted.call.resume.as_ref();
    let held_open = resume.is_some_and(|resume| matches!(resume.state, Some(State::Parked(_))));
    held_open || matches!(permitted.consent, Consent::Given(_))
}

/// The layer of calls at once.
pub(super) struct ConcurrencyLayer<Req>(PhantomData<fn(Req)>);

/// Calls at once, at the stage that `Req` is at.
pub(super) struct ConcurrencyLimited<Req, S> {
    inner: S,
    _at: PhantomData<fn(Req)>,
}

/// A request that may need a seat.
pub(super) trait NeedsSlots {
    /// Its seat, or what it has to wait for; nothing for what needs none.
    fn acquire(&self) -> Result<Acquired, Limited>;
    /// The call.
    fn call(&self) -> &Call;
}

/// A call that has its seat, or waits for it, or was refused.
pub(super) enum ConcurrencyFuture<F> {
    /// It runs.
    Running(HeldSlots, F),
    /// It waits first, and then runs.
    Waiting(BoxFuture<'static, Result<Reply, Error>>),
    /// It does neither.
    Refused(Option<Error>),
}

impl NeedsSlots for Pinned {
    fn acquire(&self) -> Result<Acquired, Limited> {
        if matches!(self.op(), Op::Listen(_)) {
            return Ok(Acquired::Now(HeldSlots::default()));
        }
        let limits: &Limits = self.snapshot().limits();
        limits.acquire(Stage::Entry, &at_entry(self.call()))
    }

    fn call(&self) -> &Call {
        self.call()
    }
}

impl NeedsSlots for Box<Permitted> {
    fn acquire(&self) -> Result<Acquired, Limited> {
        if !matches!(self.way, Way::Upstream(_)) {
            return Ok(Acquired::Now(HeldSlots::default()));
        }
        let limits = self.snapshot.limits();
        let tool = if limits.seats(Stage::Route) {
            tool(self)
        } else {
            None
        };
        limits.acquire(Stage::Route, &on_the_way(self, tool.as_deref()))
    }

    fn call(&self) -> &Call {
        &self.call
    }
}

fn at_entry(call: &Call) -> Subject<'_> {
    Subject {
        identity: &call.identity,
        address: call.address,
        scope: &call.scope,
        method: call.op.method(),
        tool: None,
        upstream: None,
    }
}

fn on_the_way<'a>(permitted: &'a Permitted, tool: Option<&'a str>) -> Subject<'a> {
    let route = permitted.passage().map(|passage| passage.route());
    Subject {
        tool,
        upstream: route.map(|route| &route.upstream),
        ..at_entry(&permitted.call)
    }
}

/// The one name of the tool that is called, whichever endpoint it was called at.
fn tool(permitted: &Permitted) -> Option<Cow<'_, str>> {
    let Op::CallTool(name) = &permitted.call.op else {
        return None;
    };
    let snapshot: &Snapshot = &permitted.snapshot;
    let route = permitted.passage()?.route();
    Some(snapshot.catalog.name_of(ListKind::Tools, route, name))
}

impl<Req> ConcurrencyLayer<Req> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<Req, S> Layer<S> for ConcurrencyLayer<Req> {
    type Service = ConcurrencyLimited<Req, S>;

    fn layer(&self, inner: S) -> Self::Service {
        ConcurrencyLimited {
            inner,
            _at: PhantomData,
        }
    }
}

impl<Req, S: Clone> Clone for ConcurrencyLimited<Req, S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            _at: PhantomData,
        }
    }
}

impl<Req, S> Service<Req> for ConcurrencyLimited<Req, S>
where
    Req: NeedsSlots + Send + 'static,
    S: Service<Req, Response = Reply, Error = Error> + Clone + Send + 'static,
    S::Future: Unpin + Send + 'static,
{
    type Response = Reply;
    type Error = Error;
    type Future = ConcurrencyFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let waiting = match request.acquire() {
            Ok(Acquired::Now(held)) => {
                return ConcurrencyFuture::Running(held, self.inner.call(request));
            }
            Ok(Acquired::Later(waiting)) => waiting,
            Err(limited) => return ConcurrencyFuture::Refused(Some(limited.into())),
        };
        let mut inner = take_ready(&mut self.inner);
        let deadline = request.call().deadline;
        let trail = request.call().trail.clone();
        ConcurrencyFuture::Waiting(Box::pin(async move {
            let queued = Queued {
                trail,
                began: Instant::now(),
            };
            let turn = waiting.turn(deadline).await;
            drop(queued);
            let held = turn?;
            let reply = inner.call(request).await;
            reply.map(|reply| holding(held, reply))
        }))
    }
}

impl<F> Future for ConcurrencyFuture<F>
where
    F: Future<Output = Result<Reply, Error>> + Unpin,
{
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Running(held, inner) => {
                let reply = ready!(Pin::new(inner).poll(cx));
                let held = std::mem::take(held);
                Poll::Ready(reply.map(|reply| holding(held, reply)))
            }
            Self::Waiting(waiting) => waiting.as_mut().poll(cx),
            Self::Refused(error) => {
                // INVARIANT: a future is not asked again once it was ready; if it is, this says no more than that.
                let error = error.take().unwrap_or(Error::Deadline);
                Poll::Ready(Err(error))
            }
        }
    }
}

/// Notes how long a call stood in a queue when its turn has come, or when nobody waits for that any more.
struct Queued {
    trail: Trail,
    began: Instant,
}

impl Drop for Queued {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.trail.note(|facts| facts.spent.queued += took);
    }
}

/// A reply that goes on keeps the seat until it ends or is dropped.
fn holding(held: HeldSlots, reply: Reply) -> Reply {
    match reply {
        Reply::Stream(stream) if !held.is_empty() => {
            let held = Arc::new(held);
            let steps = stream.inspect(move |_| {
                let _held = &held;
            });
            Reply::Stream(ReplyStream::new(steps.boxed()))
        }
        reply @ (Reply::Done(_) | Reply::Stream(_)) => reply,
    }
}
