//! The HTTP+SSE binding of 2024-11-05: one path gives an event stream that carries every answer, another takes the messages.
//!
//! Guarantees: what is posted is taken only with the secret name of a stream that is open, by the principal that opened it,
//! at the endpoint it was opened at; posts are answered `202` with nothing in them; the session ends with its stream, and
//! nothing can be resumed (PROTOCOL B5); a gateway that stops ends a stream when nothing is owed on it any more, and takes no
//! request meanwhile (SECURITY REL-7). Deliberately absent: the stateless era, whose requests belong to the other binding.

use std::sync::Arc;

use bytes::Bytes;
use dashmap::DashMap;
use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use http::{Method, Request, Response, StatusCode, request::Parts};
use hyper::body::Incoming;
use tokio::sync::mpsc::{self, Receiver};

use super::{
    Accepts, Door, RpcError,
    channel::Channel,
    http::{
        BodyAccount, declares_large, not_acceptable, read_message, turned_away, with_signs_of_life,
        wrong_method,
    },
    legacy::random_id,
    problem::Problem,
    proof::while_proved,
    seats::{Seat, Seats},
};
use crate::{
    audit::journal::Sender,
    call::Identity,
    events::Party,
    jsonrpc::sse,
    memory::{self, Work},
    metrics,
    protocol::{codes, names::Scope},
    server::{
        Body, Endpoint, RemoteEnd,
        body::{empty, event_stream},
        guard::{Admission, Guard},
        spec::ServerBounds,
    },
};

/// Messages on their way to one client.
const WAITING: usize = 64;

/// The open streams of this process, by secret name.
// Sharded maps, because keys arrive at run time; no guard leaves a method.
#[derive(Default)]
pub struct Lines {
    open: DashMap<Arc<str>, Arc<Channel>>,
    seats: Arc<Seats>,
}

/// Where streams are opened.
#[derive(Clone)]
pub struct EventsEndpoint {
    /// What is behind it.
    pub door: Arc<Door>,
    /// What it serves.
    pub scope: Scope,
    /// The streams of the process.
    pub lines: Arc<Lines>,
    /// The path that messages are posted to.
    pub messages: String,
    /// Who is let in.
    pub guard: Guard,
}

/// Where messages are posted to.
#[derive(Clone)]
pub struct MessagesEndpoint {
    /// What is behind it.
    pub door: Arc<Door>,
    /// What it serves.
    pub scope: Scope,
    /// The streams of the process.
    pub lines: Arc<Lines>,
    /// Bounds on bodies.
    pub bounds: ServerBounds,
    /// Who is let in.
    pub guard: Guard,
}

impl Endpoint for EventsEndpoint {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let (mut head, _) = request.into_parts();
        if head.method != Method::GET {
            return std::future::ready(wrong_method(
                &self.door,
                Sender::at(Some(peer.client)),
                "GET",
            ))
            .boxed();
        }
        match self.guard.admit(&mut head, peer.client) {
            Admission::In(identity) => std::future::ready(self.open(&head, peer, identity)).boxed(),
            Admission::Out(answer) => std::future::ready(*answer).boxed(),
            Admission::Wait(wait) => {
                let this = self.clone();
                wait.map(move |found| found.map_or_else(|no| no, |who| this.open(&head, peer, who)))
                    .boxed()
            }
        }
    }
}

impl EventsEndpoint {
    fn open(&self, head: &Parts, peer: RemoteEnd, identity: Arc<Identity>) -> Response<Body> {
        let proved = identity.clone();
        let sender = Sender::at(Some(peer.client)).by(&proved);
        if !Accepts::read(&head.headers).stream {
            return not_acceptable(&self.door, sender);
        }
        if !memory::process().takes(Work::Stream) {
            return turned_away(&self.door, sender, Problem::no_memory(None));
        }
        let (to, messages) = mpsc::channel(WAITING);
        let wrap = |segments: &[Bytes]| sse::encode(None, segments);
        let channel = Channel::new(
            self.door.clone(),
            identity,
            Some(peer.client),
            self.scope.clone(),
            false,
            to,
            wrap,
        );
        let gone = channel.gone.clone().cancelled_owned();
        let Some(line) = self.lines.open(channel, peer) else {
            let error = RpcError::new(codes::OVERLOADED, "too many open streams");
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, None, error, "rate_limited");
            return turned_away(&self.door, sender, problem);
        };
        let place = sse::endpoint(&format!("{}?session={}", self.messages, line.name));
        let messages = until_settled(messages, line.channel.clone());
        let events = stream::once(std::future::ready(place))
            .chain(messages)
            .take_until(gone);
        let events = while_proved(events, &proved);
        event_stream(Body::stream(with_signs_of_life(events), line))
    }
}

/// The messages of a stream: to its end, or when the gateway stops until nothing is owed on it any more.
fn until_settled(messages: Receiver<Bytes>, channel: Arc<Channel>) -> impl Stream<Item = Bytes> {
    let settled = async move {
        channel.door.closing.cancelled().await;
        channel.settle().await;
    };
    let state = (messages, Some(settled.boxed()));
    stream::unfold(state, |(mut messages, mut settled)| async {
        if let Some(all) = &mut settled {
            tokio::select! {
                biased;
                message = messages.recv() => return Some((message?, (messages, settled))),
                // What was said by then is still here.
                () = all => messages.close(),
            }
        }
        Some((messages.recv().await?, (messages, None)))
    })
}

impl Endpoint for MessagesEndpoint {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        if request.method() != Method::POST {
            return std::future::ready(wrong_method(
                &self.door,
                Sender::at(Some(peer.client)),
                "POST",
            ))
            .boxed();
        }
        let (mut head, body) = request.into_parts();
        let admission = self.guard.admit(&mut head, peer.client);
        let this = self.clone();
        async move {
            let identity = match admission {
                Admission::In(identity) => identity,
                Admission::Out(answer) => return *answer,
                Admission::Wait(wait) => match wait.await {
                    Ok(identity) => identity,
                    Err(answer) => return answer,
                },
            };
            let query = head.uri.query().unwrap_or_default();
            let named = query
                .split('&')
                .find_map(|pair| pair.strip_prefix("session="));
            let channel = named.and_then(|name| this.lines.find(name, &identity, &this.scope));
            let (door, bounds) = (&this.door, this.bounds);
            // Read even when there is no such stream, so that the connection can be used again.
            let sender = Sender::at(Some(peer.client)).by(&identity);
            let account = BodyAccount {
                payer: identity.payer(),
                answers: channel
                    .as_ref()
                    .filter(|_| declares_large(&body))
                    .and_then(|it| it.answers()),
            };
            let limits = (&bounds, &door.closing);
            let body = match read_message(&head.headers, body, limits, account).await {
                Ok(body) => body,
                Err(unread) => return unread.noted(door, sender),
            };
            let taken = match channel {
                Some(channel) => channel.take(&identity, body).await,
                None => Err(Problem::session_unknown(None)),
            };
            match taken {
                Ok(()) => empty(StatusCode::ACCEPTED),
                Err(problem) => turned_away(door, sender, problem),
            }
        }
        .boxed()
    }
}

/// An open stream. When it is dropped, so is the session.
struct Line {
    lines: Arc<Lines>,
    name: Arc<str>,
    channel: Arc<Channel>,
    _seat: Seat,
}

impl Lines {
    /// Takes in a stream; `None` when there are too many: as many as there may be sessions.
    fn open(self: &Arc<Self>, channel: Channel, peer: RemoteEnd) -> Option<Line> {
        let party = Party::of(channel.owner.principal(), Some(peer.client));
        let taken = self.seats.take(&party, channel.door.sessions.bounds());
        let seat = taken.inspect_err(|bound| metrics::reached(*bound)).ok()?;
        let name: Arc<str> = random_id().into();
        let channel = Arc::new(channel);
        self.open.insert(name.clone(), channel.clone());
        Some(Line {
            lines: self.clone(),
            name,
            channel,
            _seat: seat,
        })
    }

    fn find(&self, name: &str, who: &Identity, scope: &Scope) -> Option<Arc<Channel>> {
        let channel = self.open.get(name)?.value().clone();
        channel.owner.is(who, scope).then_some(channel)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.lines.open.remove(&self.name);
        self.channel.end();
    }
}
