//! A connection that carries messages both ways in no order but their own: a pipe, or the stream and the posts of 2024-11-05.
//!
//! Guarantees: the handshake is answered before anything that follows is looked at; an id is refused while a request with it
//! runs; a cancelled request gets no answer, and one that panics gets one; the legacy session ends with the connection. What
//! is to be said waits for the client to read, and then nothing more is taken from it. A gateway that stops takes no request,
//! and answers those it has.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    Accepts, Answer, Door, FrameResponse, Inbound, Named, Running, claims,
    legacy::{Answering, Session, dialect::Legacy},
    named,
    problem::Problem,
    starting,
};
use crate::{
    audit::journal::Sender,
    call::{Identity, Owner},
    json::Node,
    jsonrpc::{Frame, Message, Request, RequestId, RpcError, decode},
    memory, metrics,
    protocol::{codes, meta, methods, names::Scope},
};

/// Requests in flight on one connection. Beyond that a request waits on HTTP, and is refused on a pipe.
const IN_FLIGHT: u32 = 256;
/// Listens on one connection beside them. They have no end of their own, so that nothing may wait for one: what ends them comes
/// on the same connection.
const LISTENS: u32 = 128;

/// One such connection.
pub(super) struct Channel {
    pub(super) door: Arc<Door>,
    pub(super) identity: Arc<Identity>,
    address: Option<IpAddr>,
    /// Whose it is: whoever opened it, where they did.
    pub(super) owner: Owner,
    /// Whether it is a pipe: then nothing of HTTP is known.
    piped: bool,
    out: Out,
    room: Arc<Semaphore>,
    listens: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
    /// Cancelled when the session ended by itself.
    pub(super) gone: CancellationToken,
}

/// The way to the client.
#[derive(Clone)]
struct Out {
    to: mpsc::Sender<Bytes>,
    wrap: fn(&[Bytes]) -> Bytes,
    /// Whose it is what is on the way.
    payer: Option<Arc<str>>,
    /// Cancelled when nothing more is asked: what has no end of its own ends then.
    asked: CancellationToken,
}

// Locked for single looks and changes only.
#[derive(Default)]
struct State {
    /// The one legacy session of this connection, once `initialize` came.
    session: Option<Arc<str>>,
    /// The connection is over, though a message of it may still be read: nothing begins any more that would end with it.
    ended: bool,
    /// What can be cancelled, by the key of its id.
    running: HashMap<Bytes, CancellationToken>,
    /// How long its client may be kept waiting for a list, if its handshake told.
    patience: Option<Duration>,
}

/// A request that can be cancelled, until it is dropped.
struct Known {
    state: Arc<Mutex<State>>,
    key: Bytes,
    token: CancellationToken,
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running.remove(&self.key);
    }
}

impl Channel {
    /// A connection whose answers go to `to`, each made one piece by `wrap`.
    pub(super) fn new(
        door: Arc<Door>,
        identity: Arc<Identity>,
        address: Option<IpAddr>,
        scope: Scope,
        piped: bool,
        to: mpsc::Sender<Bytes>,
        wrap: fn(&[Bytes]) -> Bytes,
    ) -> Self {
        let payer = identity.payer();
        Self {
            door,
            owner: Owner::of(&identity, &scope),
            identity,
            address,
            piped,
            out: Out {
                to,
                wrap,
                payer,
                asked: CancellationToken::new(),
            },
            room: Arc::new(Semaphore::new(IN_FLIGHT as usize)),
            listens: Arc::new(Semaphore::new(LISTENS as usize)),
            state: Arc::default(),
            gone: CancellationToken::new(),
        }
    }

    /// Whether nobody hears any more.
    pub(super) fn is_deaf(&self) -> bool {
        self.out.to.is_closed()
    }

    /// Waits until nobody hears any more.
    pub(super) async fn deaf(&self) {
        self.out.to.closed().await;
    }

    /// Takes one message, sent by this proof of the same principal; waits for the client to read when there is too much to be said.
    ///
    /// # Errors
    /// For what is no message, for what has names that only look like the protocol's, for a request or a batch when the gateway
    /// stops, for a listen beyond [`LISTENS`], on a pipe for a request or a batch that there is no room for, and on HTTP for a
    /// request that describes itself, which belongs to the other endpoint. On a pipe that is to be told in its place.
    pub(super) async fn take(&self, identity: &Arc<Identity>, body: Bytes) -> Result<(), Problem> {
        let message = match decode(body, &self.door.bounds.json) {
            Ok(message) => message,
            Err(error) => return Err(self.door.unreadable(&self.inbound(identity), error)),
        };
        if let Message::One(frame) = &message
            && !self.piped
            && claims(frame)
        {
            return Err(super::invalid(
                "a request that describes itself, which belongs to the other endpoint",
            ));
        }
        // Before anything of it is done. A response ends its question all the same, which is for its session to say; on a pipe
        // a request is refused where its params are read, once.
        match &message {
            Message::One(Frame::Response(_)) => {}
            Message::One(Frame::Request(_)) if self.piped => {}
            Message::One(frame) => named(frame)?,
            Message::Batch(frames) => frames.iter().try_for_each(named).map_err(|problem| {
                let (door, inbound) = (&*self.door, self.inbound(identity));
                Legacy { door }.unbatched(&inbound, frames, problem)
            })?,
        }
        // Notifications and responses may be what a running request waits for.
        if let Message::One(Frame::Request(Request { id, .. })) = &message
            && self.door.closing.is_cancelled()
        {
            return Err(Problem::shutting_down(Some(id.clone())));
        }
        let inbound = self.inbound(identity);
        match message {
            // The handshake changes what follows.
            Message::One(Frame::Request(request)) if &*request.method == methods::INITIALIZE => {
                let _seat = self.room(Some(&request.id)).await?;
                let owed = Owed::Response(Some(request.id.clone()));
                caught(&self.out, owed, self.begin(inbound, request)).await;
            }
            Message::One(Frame::Notification(notification))
                if &*notification.method == methods::CANCELLED =>
            {
                let params = notification.params.as_ref();
                let key = params.and_then(|params| {
                    let id = params.root().member("requestId")?;
                    Some(RequestId::key_of(id, params))
                });
                let token = key.and_then(|key| self.state().running.get(&key).cloned());
                let told = Message::One(Frame::Notification(notification));
                // The session's own request is told first: that its call is then dropped is no lost connection.
                self.door.accept_decoded(inbound, told).await;
                if let Some(token) = token {
                    token.cancel();
                }
            }
            Message::One(Frame::Request(request)) => {
                // Known before there is room for it: what cancels it may come meanwhile, on another connection.
                let Some(known) = self.known(&request.id) else {
                    let answer = duplicate(request);
                    self.door.note(inbound.sender(), answer.refused());
                    self.out.tell(answer).await;
                    return Ok(());
                };
                let permit = if &*request.method == methods::LISTEN {
                    let permit = self.listens.clone().try_acquire_owned();
                    permit.map_err(|full| match full {
                        TryAcquireError::Closed => Problem::shutting_down(Some(request.id.clone())),
                        TryAcquireError::NoPermits => Problem::too_many_listens(request.id.clone()),
                    })?
                } else {
                    tokio::select! {
                        biased;
                        () = known.token.cancelled() => return Ok(()),
                        permit = self.room(Some(&request.id)) => permit?,
                    }
                };
                let message = Message::One(Frame::Request(request));
                self.start(inbound, message, Some(known), permit);
            }
            batch @ Message::Batch(_) => {
                let permit = self.room(None).await?;
                self.start(inbound, batch, None, permit);
            }
            other @ Message::One(Frame::Notification(_) | Frame::Response(_)) => {
                let work = async {
                    let answer = self.door.accept_decoded(inbound, other).await;
                    self.out.tell(answer).await;
                };
                caught(&self.out, Owed::Nothing, work).await;
            }
        }
        Ok(())
    }

    /// Says why something was not taken.
    pub(super) async fn refuse(&self, problem: Problem) {
        self.door.note(Sender::at(None), problem.early);
        self.out.tell(problem.into()).await;
    }

    /// Nothing more comes from the client: waits until everything taken is answered, if anybody hears the answers, then ends
    /// the session. Listens, which are answered only by a gateway that drains, end at once; so do questions to the client,
    /// since nobody is there to answer them.
    pub(super) async fn finish(self) {
        if !self.door.closing.is_cancelled() {
            self.out.asked.cancel();
        }
        let session = self.state().session.clone();
        let session = session.and_then(|id| self.session(&id));
        if let Some(session) = session {
            session.asks.close();
        }
        tokio::select! {
            biased;
            () = self.deaf() => {}
            () = self.settle() => {}
        }
        self.end();
    }

    /// Waits until everything taken is answered; what comes meanwhile is refused then.
    pub(super) async fn settle(&self) {
        let _all = self.room.acquire_many(IN_FLIGHT).await;
        let _listens = self.listens.acquire_many(LISTENS).await;
        self.room.close();
        self.listens.close();
    }

    /// Ends the session, and with it what runs in it.
    pub(super) fn end(&self) {
        let (session, running) = {
            let mut state = self.state();
            state.ended = true;
            (state.session.take(), std::mem::take(&mut state.running))
        };
        if let Some(id) = session {
            self.end_session(&id);
        }
        for token in running.into_values() {
            token.cancel();
        }
    }

    async fn begin(&self, inbound: Inbound, request: Request) {
        let params = request.params.as_ref();
        let client = params.and_then(|params| params.root().member("clientInfo"));
        self.state().patience = Some(starting::patience(client));
        let message = Message::One(Frame::Request(request));
        let answer = self.door.accept_decoded(inbound, message).await;
        if let Answer::Frame(FrameResponse {
            session: Some(session),
            ..
        }) = &answer
        {
            let id: Option<Arc<str>> = session.to_str().ok().map(Into::into);
            let over = {
                let mut state = self.state();
                if state.ended {
                    id.clone()
                } else {
                    std::mem::replace(&mut state.session, id.clone())
                }
            };
            if let Some(over) = over {
                self.end_session(&over);
            }
            if let Some(id) = id {
                self.tell_notices(&id);
            }
        }
        self.out.tell(answer).await;
    }

    /// What a message may be where the client was asked something.
    pub(super) fn answers(&self) -> Option<Answering> {
        let session = self.state().session.clone();
        Answering::of(&session.and_then(|id| self.session(&id))?)
    }

    /// What the session has to say goes out among the answers.
    fn tell_notices(&self, id: &str) {
        let Some(session) = self.session(id) else {
            return;
        };
        let Some(mut notices) = session.notices(&self.door.backing.tasks) else {
            return;
        };
        let (out, gone, state) = (self.out.clone(), self.gone.clone(), self.state.clone());
        self.door.backing.tasks.spawn(async move {
            let hearing = async {
                while let Some(frame) = notices.next().await {
                    if out.to.send(out.wrapped(&[frame])).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                biased;
                () = out.to.closed() => {}
                () = hearing => {}
            }
            // Replaced by another handshake, the connection goes on.
            let current = {
                let state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.session.as_deref() == Some(&*session.id)
            };
            if current {
                gone.cancel();
            }
        });
    }

    fn end_session(&self, id: &str) {
        if let Some(session) = self.session(id) {
            self.door.sessions.end(&session);
        }
    }

    fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.door.sessions.peek(id)
    }

    /// Room for what is answered later. On HTTP each message waits for it alone. On a pipe all that comes later would wait with
    /// it, cancellations and answers that make room among them, so there it is refused.
    ///
    /// # Errors
    /// When there is no room on a pipe, and when nothing more is taken.
    async fn room(&self, id: Option<&RequestId>) -> Result<OwnedSemaphorePermit, Problem> {
        let room = self.room.clone();
        let permit = if self.piped {
            room.try_acquire_owned()
        } else {
            let permit = room.acquire_owned().await;
            permit.map_err(|_| TryAcquireError::Closed)
        };
        permit.map_err(|full| match full {
            // What is being settled takes all the room there is.
            TryAcquireError::NoPermits if !self.door.closing.is_cancelled() => {
                Problem::too_many_requests(id.cloned())
            }
            TryAcquireError::NoPermits | TryAcquireError::Closed => {
                Problem::shutting_down(id.cloned())
            }
        })
    }

    fn start(
        &self,
        inbound: Inbound,
        message: Message,
        known: Option<Known>,
        permit: OwnedSemaphorePermit,
    ) {
        let (door, out) = (self.door.clone(), self.out.clone());
        // Whoever has a pipe has it from the start on, and may ask for a list just once.
        let waits = self.piped && starting::asks_for_a_list(&message);
        let waits = waits.then(|| {
            let told = self.state().patience;
            told.unwrap_or_else(|| starting::patience(client_of(&message)))
        });
        let work = answer(door, inbound, message, out, (known, waits), permit);
        self.door.backing.tasks.spawn(work);
    }

    /// Takes note of a request that can be cancelled; `None` where one with its id is there.
    fn known(&self, id: &RequestId) -> Option<Known> {
        let (key, token) = (id.key(), CancellationToken::new());
        match self.state().running.entry(key.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(place) => place.insert(token.clone()),
        };
        Some(Known {
            state: self.state.clone(),
            key,
            token,
        })
    }

    fn inbound(&self, identity: &Arc<Identity>) -> Inbound {
        Inbound {
            body: Bytes::new(),
            accepts: Accepts::BOTH,
            headers: (!self.piped).then(HeaderMap::new),
            named: Named::Nothing,
            identity: identity.clone(),
            address: self.address,
            proxy: None,
            scope: self.owner.scope().clone(),
            session: self.state().session.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(
    door: Arc<Door>,
    inbound: Inbound,
    message: Message,
    out: Out,
    (known, waits): (Option<Known>, Option<Duration>),
    permit: OwnedSemaphorePermit,
) {
    let owed = Owed::Response(match &message {
        Message::One(Frame::Request(request)) => Some(request.id.clone()),
        Message::One(_) | Message::Batch(_) => None,
    });
    let work = async {
        if let Some(patience) = waits {
            door.starting.lists(patience, &door.closing).await;
        }
        out.tell(door.accept_decoded(inbound, message).await).await;
    };
    let work = caught(&out, owed, door.backing.drain_deadline.observed_by(work));
    match known {
        Some(known) => tokio::select! {
            biased;
            () = known.token.cancelled() => {}
            () = work => {}
        },
        None => work.await,
    }
    drop(permit);
}

/// What a request that describes itself says of its client.
fn client_of(message: &Message) -> Option<Node<'_>> {
    match message {
        Message::One(Frame::Request(request)) => {
            let meta = request.params.as_ref()?.root().member(meta::META)?;
            meta.member(meta::CLIENT_INFO)
        }
        Message::One(_) | Message::Batch(_) => None,
    }
}

/// What a message is owed, whatever happens.
enum Owed {
    /// It is a notification or a response: nobody waits for anything.
    Nothing,
    /// A response; without an id it is that of a batch.
    Response(Option<RequestId>),
}

/// Does `work`, which is answered as it is owed where it panics, too (SECURITY REL-1).
async fn caught(out: &Out, owed: Owed, work: impl Future<Output = ()>) {
    if AssertUnwindSafe(work).catch_unwind().await.is_ok() {
        return;
    }
    metrics::panicked();
    match owed {
        Owed::Nothing => tracing::error!("what was told panicked; it was dropped"),
        Owed::Response(id) => {
            tracing::error!("a request panicked; it was answered with an internal error");
            out.tell(Problem::panicked(id).into()).await;
        }
    }
}

impl Out {
    fn wrapped(&self, segments: &[Bytes]) -> Bytes {
        memory::process().sent_to(self.payer.as_ref(), (self.wrap)(segments))
    }

    async fn tell(&self, answer: Answer) {
        match answer {
            Answer::Accepted => {}
            Answer::Frame(told) => drop(self.to.send(self.wrapped(&told.segments)).await),
            Answer::Stream(frames) if frames.is_endless() => {
                tokio::select! {
                    biased;
                    () = self.asked.cancelled() => {}
                    () = self.tell_on(frames) => {}
                }
            }
            Answer::Stream(mut frames) => {
                while let Some(segments) = frames.next().await {
                    if self.to.send(self.wrapped(&segments)).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl Out {
    /// Tells what has no end of its own; if it ends all the same, that is told too.
    async fn tell_on(&self, mut frames: Box<Running>) {
        while let Some(segments) = frames.next().await {
            if self.to.send(self.wrapped(&segments)).await.is_err() {
                return;
            }
        }
        if let Some(frame) = frames.farewell() {
            // Nobody may be hearing any more.
            drop(self.to.send(self.wrapped(&[frame])).await);
        }
    }
}

/// As of two requests of a session with one id (PROTOCOL G22).
fn duplicate(request: Request) -> Answer {
    let error = RpcError::new(
        codes::INVALID_REQUEST,
        "a request with this id is still running",
    );
    Problem::new(
        StatusCode::BAD_REQUEST,
        Some(request.id),
        error,
        "duplicate_id",
    )
    .into()
}
