//! One request between hyper and its endpoint: judged, routed, run, and its panic caught.
//!
//! Guarantees: what the gate refuses reaches no endpoint; a panic in an endpoint is one `500` with a JSON-RPC error, in a body
//! that has begun a visible break, and counted, never a dead process (SECURITY REL-1). Adds no allocation of its own, but for a client's
//! certificate in the request's extensions.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::{body::Incoming, service::Service};
use ipnet::IpNet;

use super::{
    Body, Certified, RemoteEnd, Routes, body, forwarded,
    head_check::{self, Names, Refusal},
    spec::ServerBounds,
    watch::{Flight, Phase, Turn, Watch},
};
use crate::{
    call::CallId,
    metrics::{self, Bound},
    tasks::clock,
};

/// What all connections of a listener share.
pub(super) struct Site {
    pub(super) routes: Arc<dyn Routes>,
    pub(super) names: Names,
    pub(super) bounds: ServerBounds,
    pub(super) trusted: Vec<IpNet>,
}

/// The service of one connection.
pub(super) struct Serve {
    pub(super) site: Arc<Site>,
    pub(super) peer: RemoteEnd,
    pub(super) certified: Option<Certified>,
    pub(super) watch: Arc<Watch>,
}

impl Service<Request<Incoming>> for Serve {
    type Response = Response<Tracked>;
    type Error = Infallible;
    type Future = Serving;

    fn call(&self, mut request: Request<Incoming>) -> Serving {
        let flight = Some(self.watch.take_off());
        let version = request.version();
        if version == Version::HTTP_2 {
            self.watch.enter(Phase::Idle); // on HTTP/1 the framing guard says what is being read
        }
        let mut peer = self.peer;
        if !self.site.trusted.is_empty() {
            peer.client =
                forwarded::client(peer.address.ip(), request.headers(), &self.site.trusted);
        }
        let judged = match self.watch.call() {
            Ok(()) => head_check::check(&mut request, &self.site.names, &self.site.bounds),
            Err(violation) => Err(Refusal::from(violation)),
        };
        let endpoint = judged.and_then(|()| {
            self.site
                .routes
                .find(request.uri().path())
                .ok_or(Refusal::NOT_FOUND)
        });
        let state = match endpoint {
            Err(refusal) => {
                self.site.routes.turned_away(peer.client, refusal.reason);
                State::Refused(refusal)
            }
            Ok(endpoint) => {
                if let Some(certified) = &self.certified {
                    request.extensions_mut().insert(certified.clone());
                }
                match catch_unwind(AssertUnwindSafe(|| endpoint.serve(request, peer))) {
                    Ok(answer) => State::Running(answer),
                    Err(_) => State::Panicked,
                }
            }
        };
        Serving {
            state,
            version,
            flight,
        }
    }
}

/// The answer to come.
pub(super) struct Serving {
    state: State,
    version: Version,
    flight: Option<Flight>,
}

enum State {
    Refused(Refusal),
    Panicked,
    Running(BoxFuture<'static, Response<Body>>),
}

impl Future for Serving {
    type Output = Result<Response<Tracked>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut answer = match &mut this.state {
            State::Refused(refusal) => refuse(*refusal),
            State::Panicked => panicked(),
            State::Running(running) => {
                let poll = || clock::turn(|| running.as_mut().poll(cx));
                match catch_unwind(AssertUnwindSafe(poll)) {
                    Ok(Poll::Pending) => {
                        if this.version == Version::HTTP_2
                            && let Some(flight) = &mut this.flight
                        {
                            flight.waits_in(cx);
                        }
                        return Poll::Pending;
                    }
                    Ok(Poll::Ready(answer)) => answer,
                    Err(_) => panicked(),
                }
            }
        };
        let flight = this.flight.take();
        // HTTP/2 says it in frames of its own.
        let of_one = this.version != Version::HTTP_2;
        if of_one && flight.as_ref().is_some_and(Flight::is_last) {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(header::CONNECTION, close);
        }
        let paced = this.version == Version::HTTP_2 && !answer.body().is_end_stream();
        let pace = flight.as_ref().filter(|_| paced).map(|flight| Pace {
            rest: Bytes::new(),
            since: 0,
            begun: false,
            turn: flight.watch().client_turn(),
        });
        Poll::Ready(Ok(answer.map(|body| Tracked { body, pace, flight })))
    }
}

/// Why an answer that had begun breaks off.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenOff {
    #[error("the endpoint panicked")]
    Panicked,
    #[error("memory is short, and the client reads slowly")]
    TooSlow,
}

/// A body that ends its request's flight when it is dropped, and on HTTP/2 is handed out in pieces that are accounted for.
pub(super) struct Tracked {
    body: Body,
    pace: Option<Pace>,
    flight: Option<Flight>,
}

/// HTTP/2 takes over a whole piece as soon as there is room for a byte of it, so pieces are small: what a client does not
/// read is then still here, where it is seen.
struct Pace {
    rest: Bytes,
    /// When the first of it went out.
    since: u64,
    /// Whether a part of it did.
    begun: bool,
    turn: Turn,
}

/// Bytes of one piece: a stream's window.
const PIECE: usize = 64 << 10;

impl http_body::Body for Tracked {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        let Some(pace) = &mut this.pace else {
            let next = poll_body(&mut this.body, cx);
            if let Poll::Ready(Some(Ok(frame))) = &next
                && let Some(flight) = &this.flight
            {
                flight.watch().sends(frame.data_ref().map_or(0, Bytes::len));
            }
            return next;
        };
        if pace.rest.is_empty() {
            match poll_body(&mut this.body, cx) {
                Poll::Pending => {
                    pace.turn.to_endpoint();
                    if let Some(flight) = &mut this.flight {
                        flight.waits_in(cx);
                    }
                    return Poll::Pending;
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(broken))) => return Poll::Ready(Some(Err(broken))),
                Poll::Ready(Some(Ok(frame))) => {
                    pace.rest = frame.into_data().unwrap_or_default();
                    pace.since = pace.turn.now();
                }
            }
        } else if pace.turn.is_too_slow(pace.since) {
            metrics::reached(Bound::Memory);
            return Poll::Ready(Some(Err(BrokenOff::TooSlow)));
        }
        pace.turn.to_client();
        let whole = pace.rest.len() <= PIECE && pace.begun;
        let mut piece = pace.rest.split_to(pace.rest.len().min(PIECE));
        pace.begun = !pace.rest.is_empty();
        if whole {
            // The last of many. It may wait for its client when nobody looks any more, and would keep all the others.
            piece = Bytes::copy_from_slice(&piece);
        }
        if let Some(flight) = &this.flight {
            flight.watch().wrote_piece(piece.len());
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.pace.as_ref().is_none_or(|pace| pace.rest.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.pace {
            // hyper asks before the first frame only.
            Some(pace) if !pace.rest.is_empty() => SizeHint::default(),
            Some(_) | None => self.body.size_hint(),
        }
    }
}

/// The next of a body. Where that panics the body breaks off, so that nobody takes what came for the whole: on HTTP/1 the
/// connection ends without the last chunk, on HTTP/2 the stream is reset. Calls that panic have been answered before that.
fn poll_body(
    body: &mut Body,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
    match catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
        Ok(next) => next.map_err(|never| match never {}),
        Err(_) => {
            metrics::panicked();
            tracing::error!("an endpoint panicked in an answer that had begun; it was broken off");
            Poll::Ready(Some(Err(BrokenOff::Panicked)))
        }
    }
}

fn refuse(refusal: Refusal) -> Response<Body> {
    let text = Bytes::from_static(refusal.text.as_bytes());
    let mut answer = body::full(refusal.status, "text/plain; charset=utf-8", text);
    if let Some(allow) = refusal.allow {
        let allow = HeaderValue::from_static(allow);
        answer.headers_mut().insert(header::ALLOW, allow);
    }
    answer
}

fn panicked() -> Response<Body> {
    metrics::panicked();
    let reference = CallId::new();
    tracing::error!(
        %reference,
        "an endpoint panicked; its request was answered with an internal error"
    );
    // SECURITY 4
    let text = format!(
        r#"{{"jsonrpc":"2.0","error":{{"code":-32603,"message":"Internal error","data":{{"reason":"internal_error","ref":"{reference}"}}}}}}"#
    );
    body::full(
        StatusCode::INTERNAL_SERVER_ERROR,
        "application/json",
        text.into(),
    )
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;
    use crate::{memory::Memory, server::watch::Watch};

    /// HTTP/2 may hold the last piece for as long as the connection is open.
    #[tokio::test]
    async fn the_last_piece_of_many_keeps_nothing_of_the_others() {
        const LENGTH: usize = PIECE * 3 + 5;
        let memory: &'static Memory = Box::leak(Box::new(Memory::of(1 << 30)));
        let watch = Watch::new(&ServerBounds::default());
        for (length, pieces) in [(LENGTH, 4), (PIECE, 1)] {
            let mut hold = memory.hold();
            hold.reach(length).unwrap();
            let message = hold.with(Bytes::from(vec![7; length]));
            let mut answer = Tracked {
                body: Body::full(message),
                pace: Some(Pace {
                    rest: Bytes::new(),
                    since: 0,
                    begun: false,
                    turn: watch.client_turn(),
                }),
                flight: Some(watch.take_off()),
            };
            let mut last = Bytes::new();
            for _ in 0..pieces {
                assert_eq!(memory.held(), length as u64);
                let frame = std::future::poll_fn(|cx| Pin::new(&mut answer).poll_frame(cx)).await;
                last = frame.unwrap().unwrap().into_data().unwrap();
            }
            assert!(answer.is_end_stream());
            assert_eq!(last.len(), (length - 1) % PIECE + 1);
            drop(answer);
            // One that is whole keeps itself.
            assert_eq!(memory.held(), if pieces == 1 { length as u64 } else { 0 });
        }
    }
}
