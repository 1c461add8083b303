//! The connections to one HTTP upstream, and which of them a request goes over.
//!
//! Guarantees: one HTTP/1.1 connection serves one exchange at a time, and another only when the answer to the last was read to its
//! end, if need be by whoever is next; HTTP/2 is one connection for each lane, and one for each exchange that stays open where
//! HTTP/1.1 is not spoken; a request is sent again only when none of it was taken (SECURITY REL-6). Calls of two lanes never meet
//! here. No lock is held across an await, except by those who wait for the first connection of a lane.
//! An HTTP/1.1 connection has no task of its own: whoever uses it drives it, so that nothing is woken on another thread to send
//! a request or to hand over its answer. That is why this is not hyper-util's pool, which spawns besides for most requests. Each
//! lane keeps its part of [`MAX_IDLE`] idle connections, or [`MIN_IDLE_PER_LANE`] where that is more, for a while; how many are
//! open at once is bounded by who calls.

mod ending;
mod list;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod tests;

use std::{
    future::poll_fn,
    mem,
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Buf, Bytes};
use http::{Request, Response, Uri};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
    rt::Executor,
};
use hyper_util::{client::legacy::connect::Connection as _, rt::TokioTimer};
use tokio::{
    sync::Notify,
    task::unconstrained,
    time::{sleep, timeout},
};

use ending::{Ending, PATIENCE};
use list::List;

use super::dial::{Dial, Dialled, chain, refused_unread};
use crate::{
    tasks::{LaneIndex, PerLane, Tasks, clock, quiet},
    upstream::UpstreamError,
};

/// The most idle connections of all lanes together, unless [`MIN_IDLE_PER_LANE`] adds up to more: as many as calls to one upstream
/// can be in flight. As many again may be kept for a few seconds, until an answer on them has ended.
const MAX_IDLE: usize = 1_024;
/// How many each lane may keep in any case: as many as calls of one principal to one upstream can be in flight.
const MIN_IDLE_PER_LANE: usize = 256;

/// How often idle connections are looked through for those that nobody will use again.
const SWEEP: Duration = Duration::from_secs(20);

/// What is sent.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// How an exchange uses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It ends with its answer, and goes over whichever connection is free.
    Pooled,
    /// It stays open until somebody closes it. It gets a connection of its own, of HTTP/1.1 where the peer speaks that too: on the
    /// HTTP/2 connection that calls share it would hold one of the few streams that the peer allows.
    Dedicated,
}

/// The connections to one upstream. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    dial: Dial,
    tasks: Tasks,
    /// Whether the last connection was over HTTP/1.1, so that a burst makes as many as it needs at once.
    speaks_one: AtomicBool,
    lists: PerLane<List>,
    leaving: Arc<Leaving>,
}

/// Tells who looks after a pool that there are connections on which an answer has not ended.
#[derive(Debug, Default)]
struct Leaving {
    /// Whether there may be any.
    any: AtomicBool,
    told: Notify,
}

/// A connection that a request can go over.
enum Connection {
    Http1(Http1),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Pool {
    /// A pool to the origin that `dial` leads to; nothing is opened yet. Its connections live in `tasks`.
    pub(super) fn new(dial: Dial, tasks: &Tasks) -> Self {
        Self::over(dial, PerLane::new(), tasks)
    }

    /// Another pool to the same origin, which shares no connection with this one. There may be one for each user, so all lanes
    /// share it.
    pub(super) fn apart(&self) -> Self {
        Self::over(self.0.dial.clone(), PerLane::single(), &self.0.tasks)
    }

    fn over(dial: Dial, lists: PerLane<List>, tasks: &Tasks) -> Self {
        let leaving = Arc::new(Leaving::default());
        let shared = Arc::new(Shared {
            dial,
            tasks: tasks.clone(),
            speaks_one: AtomicBool::new(false),
            lists,
            leaving: leaving.clone(),
        });
        tasks.spawn(look_after(Arc::downgrade(&shared), leaving));
        Self(shared)
    }

    /// Sends one request, whose URI is absolute, and waits for the head of its answer.
    ///
    /// # Errors
    /// `Timeout` when no connection came about in time, `Unavailable` for every other failure below HTTP.
    #[expect(clippy::manual_async_fn, reason = "it would hold the request twice")]
    pub(super) fn send(
        &self,
        mut request: Outgoing,
        usage: Use,
    ) -> impl Future<Output = Result<Response<Arriving>, UpstreamError>> + Send {
        async move {
            // What happens rarely is boxed: what every call holds stays small.
            if usage == Use::Dedicated {
                return Box::pin(self.alone(request)).await;
            }
            let here = self.0.lists.here();
            let mut again = true;
            loop {
                let (line, used) = match self.0.lists.at(here).free() {
                    Some(line) => (line, true),
                    None => Box::pin(self.fresh(here)).await?,
                };
                match line {
                    Connection::Http1(mut line) => {
                        let absolute = relative(&mut request);
                        match line.send(request).await {
                            Ok(response) => {
                                let driven = Some(Driven {
                                    pool: self.clone(),
                                    line,
                                    withheld: false,
                                });
                                return Ok(response.map(|body| Arriving { body, driven }));
                            }
                            Err(mut failed) => match failed.take_message() {
                                // A used connection may have died while nobody looked. Each turn takes one out of the
                                // list, so this ends.
                                Some(mut unsent) if used => {
                                    *unsent.uri_mut() = absolute;
                                    request = unsent;
                                }
                                _ => return Err(chain(&failed.into_error())),
                            },
                        }
                    }
                    Connection::Http2(mut line) => {
                        // The body is shared; the headers are what a copy costs.
                        let copy = request.clone();
                        match line.try_send_request(request).await {
                            Ok(response) => {
                                return Ok(response.map(|body| Arriving { body, driven: None }));
                            }
                            Err(failed) if again && unread(&failed) => {
                                again = false;
                                request = copy;
                            }
                            Err(failed) => return Err(chain(&failed.into_error())),
                        }
                    }
                }
            }
        }
    }

    /// Over a connection of its own, which serves no other request.
    async fn alone(&self, mut request: Outgoing) -> Result<Response<Arriving>, UpstreamError> {
        let stream = self.0.dial.single().await?;
        if stream.connected().is_negotiated_h2() {
            let mut line = self.two(stream).await?;
            let sent = line.try_send_request(request).await;
            let response = sent.map_err(|failed| chain(&failed.into_error()))?;
            return Ok(response.map(|body| Arriving { body, driven: None }));
        }
        let mut line = begin(stream, self.0.lists.here()).await?;
        relative(&mut request);
        let sent = line.send(request).await;
        let response = sent.map_err(|failed| chain(&failed.into_error()))?;
        let driven = Some(Driven {
            pool: self.clone(),
            line,
            withheld: true,
        });
        Ok(response.map(|body| Arriving { body, driven }))
    }

    /// A connection made now, or by somebody else meanwhile; and whether it has been used.
    async fn fresh(&self, here: LaneIndex) -> Result<(Connection, bool), UpstreamError> {
        let list = self.0.lists.at(here);
        let speaks_one = || self.0.speaks_one.load(Relaxed);
        if !speaks_one() {
            let failures = list.failures();
            let mut first = list.first.lock().await;
            if let Some(line) = list.free() {
                return Ok((line, true));
            }
            // Whoever held it may have found out that each needs one of its own.
            if !speaks_one() {
                // Or that none can be had: to dial for each of those who wait, one after another, would take them for ever.
                if let Some(error) = list.failed_since(failures, &first) {
                    return Err(error);
                }
                let made = self.made(here).await;
                if let Err(error) = &made {
                    list.fail(&mut first, error);
                }
                return Ok((made?, false));
            }
        }
        Ok((self.made(here).await?, false))
    }

    /// A connection made now.
    async fn made(&self, here: LaneIndex) -> Result<Connection, UpstreamError> {
        let list = self.0.lists.at(here);
        let stream = self.0.dial.any().await?;
        if !stream.connected().is_negotiated_h2() {
            self.0.speaks_one.store(true, Relaxed);
            list.speaks_one();
            return Ok(Connection::Http1(begin(stream, here).await?));
        }
        let line = self.two(stream).await?;
        self.0.speaks_one.store(false, Relaxed);
        list.speaks_two(line.clone());
        Ok(Connection::Http2(line))
    }

    /// An HTTP/2 connection on a stream just opened. It ends with the last who can send on it, and the last answer on it.
    async fn two(&self, stream: Dialled) -> Result<http2::SendRequest<Full<Bytes>>, UpstreamError> {
        let (line, connection) = http2::Builder::new(Owned(self.0.tasks.clone()))
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(10))
            // Until the peer has said how many it takes.
            .initial_max_send_streams(16)
            .handshake(stream)
            .await
            .map_err(|error| chain(&error))?;
        self.0.tasks.spawn(async move {
            // Those who wait on it are told by their own requests.
            drop(connection.await);
        });
        Ok(line)
    }

    fn give_back(&self, line: Http1) {
        let list = self.0.lists.at(line.home);
        list.give_back(line, clock::now(), self.most());
    }

    fn leave(&self, body: Incoming, line: Http1) {
        let list = self.0.lists.at(line.home);
        list.leave(Ending::of(body, line), self.most());
        let Leaving { any, told } = &*self.0.leaving;
        // Once for all that are left until they are looked for: it wakes another thread.
        if !any.load(Relaxed) && !any.swap(true, Relaxed) {
            told.notify_one();
        }
    }

    /// Looks for the ends of answers.
    fn settle(&self) {
        let any = &self.0.leaving.any;
        // Who leaves one from here on sees this, as the lists' locks have it.
        any.store(false, Relaxed);
        for list in self.0.lists.all() {
            if list.settle(self.most()) {
                any.store(true, Relaxed);
            }
        }
    }

    fn sweep(&self) {
        let most = self.most();
        self.0.lists.all().for_each(|list| list.sweep(most));
    }

    /// The most idle connections of each list.
    fn most(&self) -> usize {
        (MAX_IDLE / self.0.lists.all().len()).max(MIN_IDLE_PER_LANE)
    }

    /// How many idle connections are kept.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.0.lists.all().map(List::idle).sum()
    }

    /// Tells whether anybody still has it.
    #[cfg(test)]
    pub(super) fn watched(&self) -> impl Fn() -> bool + use<> {
        let shared = Arc::downgrade(&self.0);
        move || shared.strong_count() > 0
    }

    /// Whether every idle connection is known to be dead.
    #[cfg(test)]
    pub(super) fn is_stale(&self) -> bool {
        self.0.lists.all().all(List::is_stale)
    }
}

/// Closes what nobody will use again, until the pool is gone.
async fn look_after(pool: Weak<Shared>, leaving: Arc<Leaving>) {
    let mut swept = clock::now();
    loop {
        if leaving.any.load(Relaxed) {
            sleep(PATIENCE).await;
        } else if timeout(SWEEP, leaving.told.notified()).await.is_ok() {
            // Not at once: most ends will be read by those who use their connections.
            continue;
        }
        let Some(pool) = pool.upgrade().map(Pool) else {
            return;
        };
        pool.settle();
        if clock::since(swept) >= SWEEP {
            swept = clock::now();
            pool.sweep();
        }
    }
}

/// Leaves path and query in the request, which is what HTTP/1.1 wants; gives the absolute URI back.
fn relative(request: &mut Outgoing) -> Uri {
    let absolute = mem::replace(request.uri_mut(), Uri::from_static("/"));
    if let Some(path) = absolute.path_and_query() {
        *request.uri_mut() = Uri::from(path.clone());
    }
    absolute
}

/// Reads and writes a connection.
type Work = http1::Connection<Dialled, Full<Bytes>>;

/// One HTTP/1.1 connection: what requests are given to, and what does the work, while somebody drives it.
#[derive(Debug)]
struct Http1 {
    requests: http1::SendRequest<Full<Bytes>>,
    /// Whose I/O it is part of, and so in whose list it is kept.
    home: LaneIndex,
    /// `None` once it has ended.
    work: Option<Pin<Box<Work>>>,
}

/// A connection on a stream just opened.
async fn begin(stream: Dialled, home: LaneIndex) -> Result<Http1, UpstreamError> {
    let (requests, work) = http1::handshake(stream)
        .await
        .map_err(|error| chain(&error))?;
    Ok(Http1 {
        requests,
        home,
        work: Some(Box::pin(work)),
    })
}

impl Http1 {
    /// Lets it do what it can; wakes `cx` when it can do more.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(work) = &mut self.work
            && work.as_mut().poll(cx).is_ready()
        {
            // Errors are told to whoever waits for the answer.
            self.work = None;
        }
    }

    /// Whether it is open and has nothing left to do, as far as that is known.
    fn is_free(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.work.is_some() && self.requests.is_ready()
    }

    /// The next of the body that comes over it.
    fn poll_frame(&mut self, body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Arrived> {
        // As with the head. To look at the body is to ask for more of it, so it is looked at on both sides of driving.
        let frame = take(body, cx);
        if frame.is_ready() {
            return frame;
        }
        self.drive(cx);
        take(body, cx)
    }

    /// Sends a request, and waits for the head of its answer.
    async fn send(
        &mut self,
        request: Outgoing,
    ) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        // The answer comes of driving and of nothing else, right here: so it need not wake anybody, and must not be put off
        // by the scheduler's budget, which it would be by waking.
        let mut answer = pin!(unconstrained(self.requests.try_send_request(request)));
        let work = &mut self.work;
        poll_fn(|cx| {
            if let Some(driven) = work
                && driven.as_mut().poll(cx).is_ready()
            {
                *work = None;
            }
            answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
    }
}

/// Whether the peer has certainly done nothing with the request.
fn unread(failed: &TrySendError<Outgoing>) -> bool {
    failed.message().is_some() || refused_unread(failed.error())
}

/// A body on its way in. Read to its end, or [left](Arriving::leave), it gives its connection back; dropped before, it closes it.
#[derive(Debug)]
pub(super) struct Arriving {
    body: Incoming,
    /// The connection it comes over, on HTTP/1.1, until its end.
    driven: Option<Driven>,
}

/// A connection that is in use, and the pool that it came from.
#[derive(Debug)]
struct Driven {
    pool: Pool,
    line: Http1,
    /// It does not go back by itself.
    withheld: bool,
}

impl Arriving {
    /// From now on the connection serves again only after [`Arriving::accept`], for who wants to see the body first
    /// (SECURITY EGR-11).
    pub(super) const fn withhold(&mut self) {
        if let Some(driven) = &mut self.driven {
            driven.withheld = true;
        }
    }

    /// The body was read to its end, and what it held was sound: a connection that was withheld may serve again.
    pub(super) fn accept(mut self) {
        if let Some(driven) = self.driven.take() {
            driven.pool.give_back(driven.line);
        }
    }

    /// The next data; `None` at the end. Trailers are dropped.
    ///
    /// # Errors
    /// `Unavailable` when the connection breaks.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        while let Some(frame) = poll_fn(|cx| self.poll_frame(cx)).await {
            let frame = frame.map_err(|error| chain(&error))?;
            if let Ok(data) = frame.into_data()
                && data.has_remaining()
            {
                return Ok(Some(data));
            }
        }
        self.finish();
        Ok(None)
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        match &mut self.driven {
            None => Pin::new(&mut self.body).poll_frame(cx),
            Some(driven) => driven.line.poll_frame(&mut self.body, cx),
        }
    }

    /// Leaves what is still to come to whoever uses the connection next, or closes it where nobody does soon, so that nobody waits
    /// for what is of no interest. Gives the body back where its connection serves others already, or none after it.
    pub(super) fn leave(mut self) -> Option<Self> {
        let Some(driven) = self.driven.take_if(|driven| !driven.withheld) else {
            return Some(self);
        };
        driven.pool.leave(self.body, driven.line);
        None
    }

    /// The least that is still to come, as the peer has promised.
    pub(super) fn promised(&self) -> u64 {
        self.body.size_hint().lower()
    }

    /// Whether nothing more will come, as far as that is known without waiting.
    pub(super) fn is_over(&mut self) -> bool {
        let over = self.body.is_end_stream();
        if over {
            self.finish();
        }
        over
    }

    fn finish(&mut self) {
        if let Some(driven) = self.driven.take_if(|driven| !driven.withheld) {
            driven.pool.give_back(driven.line);
        }
    }
}

/// What came of a body; nothing where it has ended.
type Arrived = Option<Result<Frame<Bytes>, hyper::Error>>;

/// What is there of a body. Its connection is driven by whoever asks for more, and so need not be told that there is room.
fn take(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Arrived> {
    let nobody = &mut Context::from_waker(Waker::noop());
    quiet::held(cx, |_| Pin::new(body).poll_frame(nobody)).0
}

/// Runs hyper's own tasks in the family of their transport.
#[derive(Debug, Clone)]
struct Owned(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Owned {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
