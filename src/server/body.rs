//! Bodies in both directions: a request's read under limits, a response's made of shared bytes.
//!
//! Guarantees: a request body is at most [`ServerBounds::body_bytes`] long and complete within [`ServerBounds::body`], or within a
//! second once the gateway stops, which no client delays by sending on; what there is of it counts for the budget of memory until
//! nobody holds any of it;
//! trailers are dropped; a body that arrives in one piece is not copied. Response bodies never copy what they are given.
//! Deliberately absent: what the bytes mean.

use std::{
    any::Any,
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

use super::spec::ServerBounds;
use crate::{
    memory::{self, Hold, Work},
    tasks::quiet,
};

/// The body of an answer. Errors cannot happen: a stream that fails ends instead.
#[derive(Default)]
pub struct Body(Kind);

/// How much longer a body may take once the gateway stops: what is not received by then was never in flight (SECURITY REL-7).
const LAST_BYTES: Duration = Duration::from_secs(1);

/// Parts that fit in a body without an allocation.
const INLINE: usize = 4;

#[derive(Default)]
enum Kind {
    #[default]
    Empty,
    One(Bytes),
    Few {
        parts: [Bytes; INLINE],
        next: usize,
    },
    Many(std::vec::IntoIter<Bytes>),
    Channel {
        source: mpsc::Receiver<Bytes>,
        _guard: Guard,
    },
    Stream {
        source: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
        _guard: Guard,
    },
}

/// Dropped together with the body.
type Guard = Option<Box<dyn Any + Send>>;

/// Why a request body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Longer than allowed: `413`.
    #[error("body is longer than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Not complete in time: `408`.
    #[error("body was not complete in time")]
    TooSlow,
    /// Not complete, and the gateway stops: `503`.
    #[error("the gateway stops, and the body was not complete")]
    Stopping,
    /// There is no memory for it now: `503`.
    #[error("no memory for the body: {0}")]
    NoMemory(#[from] memory::Full),
    /// Cut off, or its framing is broken: `400`.
    #[error("body broke off")]
    Broken(#[source] hyper::Error),
}

impl BodyError {
    /// The status to answer with; the connection cannot be used again.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Stopping | Self::NoMemory(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a whole request body.
///
/// A body whose `Content-Length` is over the limit is refused before a byte of it is read. Trailers are dropped.
///
/// # Errors
/// See [`BodyError`].
// SECURITY 6, HTTP-7 (trailers), HTTP-10 (slow body)
pub async fn read_body(body: Incoming, bounds: &ServerBounds) -> Result<Bytes, BodyError> {
    read_body_until(&CancellationToken::new(), body, bounds).await
}

/// The same, but not much longer than until `closing` is cancelled: then the gateway stops.
///
/// # Errors
/// See [`BodyError`].
pub async fn read_body_until(
    closing: &CancellationToken,
    body: Incoming,
    bounds: &ServerBounds,
) -> Result<Bytes, BodyError> {
    let hold = memory::process().hold().below(Work::Stream);
    read_body_into(hold, body, bounds, closing).await
}

/// The same, held as `hold` says.
///
/// # Errors
/// See [`BodyError`].
pub async fn read_body_into(
    hold: Hold,
    mut body: Incoming,
    bounds: &ServerBounds,
    closing: &CancellationToken,
) -> Result<Bytes, BodyError> {
    let limit = bounds.body_bytes;
    if hyper::body::Body::size_hint(&body).lower() > limit as u64 {
        return Err(BodyError::TooLarge { limit });
    }
    let mut read = Collected::nothing(hold);
    // What is there already is taken without setting a timer: most bodies come with their head.
    loop {
        if hyper::body::Body::is_end_stream(&body) {
            return Ok(read.finish());
        }
        match poll_fn(|cx| Poll::Ready(take(&mut body, cx))).await {
            Poll::Ready(None) => return Ok(read.finish()),
            Poll::Ready(Some(frame)) => read.push(frame.map_err(BodyError::Broken)?, limit)?,
            Poll::Pending => break,
        }
    }
    let rest = async {
        while let Some(frame) = body.frame().await {
            read.push(frame.map_err(BodyError::Broken)?, limit)?;
        }
        Ok(read.finish())
    };
    let stopping = async {
        closing.cancelled().await;
        sleep(LAST_BYTES).await;
    };
    // Boxed, since it is rare.
    Box::pin(async {
        tokio::select! {
            biased;
            read = tokio::time::timeout(bounds.body, rest) => read.unwrap_or(Err(BodyError::TooSlow)),
            () = stopping => Err(BodyError::Stopping),
        }
    })
    .await
}

/// What is there of a body. Whoever takes the last of it need not be woken, since nothing more can come.
fn take(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    let (frame, woken) = quiet::held(cx, |cx| {
        http_body::Body::poll_frame(Pin::new(&mut *body), cx)
    });
    if woken && !hyper::body::Body::is_end_stream(body) {
        cx.waker().wake_by_ref();
    }
    frame
}

/// An answer with `body` as it is.
pub fn full(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    typed(status, content_type, Body::full(body))
}

/// An answer of several pieces sent one after the other, with the exact `Content-Length` of them all.
pub fn segments<const N: usize>(
    status: StatusCode,
    content_type: &'static str,
    parts: [Bytes; N],
) -> Response<Body> {
    typed(status, content_type, Body::segments(parts))
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::default());
    *answer.status_mut() = status;
    answer
}

/// An open event stream, `200`, with the headers that keep intermediaries from storing or gathering it.
pub fn event_stream(body: Body) -> Response<Body> {
    let mut answer = typed(StatusCode::OK, "text/event-stream", body);
    let headers = answer.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-store, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

fn typed(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

impl Body {
    /// These bytes.
    pub fn full(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            return Self(Kind::Empty);
        }
        Self(Kind::One(bytes))
    }

    /// These pieces, in order. Up to four cost no allocation.
    pub fn segments<const N: usize>(parts: [Bytes; N]) -> Self {
        if N > INLINE {
            return Self(Kind::Many(Vec::from(parts).into_iter()));
        }
        let mut given = parts.into_iter();
        let parts = std::array::from_fn(|_| given.next().unwrap_or_default());
        Self(Kind::Few { parts, next: 0 })
    }

    /// These pieces, in order.
    pub fn pieces(parts: Vec<Bytes>) -> Self {
        Self(Kind::Many(parts.into_iter()))
    }

    /// Whatever comes out of `source`, each item sent at once, until its last sender is gone. `guard` is dropped when the
    /// body is: at its end or when the client went away, whichever is first.
    pub fn channel(source: mpsc::Receiver<Bytes>, guard: impl Send + 'static) -> Self {
        Self(Kind::Channel {
            source,
            _guard: boxed(guard),
        })
    }

    /// Like [`Body::channel`], for any stream.
    pub fn stream(
        source: impl Stream<Item = Bytes> + Send + 'static,
        guard: impl Send + 'static,
    ) -> Self {
        Self(Kind::Stream {
            source: Box::pin(source),
            _guard: boxed(guard),
        })
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Kind::Empty => None,
            Kind::One(bytes) => (!bytes.is_empty()).then(|| std::mem::take(bytes)),
            Kind::Few { parts, next } => loop {
                let Some(part) = parts.get_mut(*next) else {
                    break None;
                };
                *next += 1;
                if !part.is_empty() {
                    break Some(std::mem::take(part));
                }
            },
            Kind::Many(parts) => parts.find(|part| !part.is_empty()),
            Kind::Channel { source, .. } => ready!(source.poll_recv(cx)),
            Kind::Stream { source, .. } => ready!(source.as_mut().poll_next(cx)),
        };
        Poll::Ready(piece.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Channel { .. } | Kind::Stream { .. } => false,
            Kind::Empty | Kind::One(_) | Kind::Few { .. } | Kind::Many(_) => self.left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Channel { .. } | Kind::Stream { .. } => SizeHint::default(),
            Kind::Empty | Kind::One(_) | Kind::Few { .. } | Kind::Many(_) => {
                SizeHint::with_exact(self.left())
            }
        }
    }
}

impl Body {
    /// Bytes still to be sent; zero for streams.
    fn left(&self) -> u64 {
        let sum = |parts: &[Bytes]| parts.iter().map(|part| part.len() as u64).sum();
        match &self.0 {
            Kind::Empty | Kind::Channel { .. } | Kind::Stream { .. } => 0,
            Kind::One(bytes) => bytes.len() as u64,
            Kind::Few { parts, next } => sum(parts.get(*next..).unwrap_or_default()),
            Kind::Many(parts) => sum(parts.as_slice()),
        }
    }
}

/// `()` is not worth a box.
fn boxed<G: Send + 'static>(guard: G) -> Guard {
    (size_of::<G>() > 0 || std::mem::needs_drop::<G>()).then(|| Box::new(guard) as Box<_>)
}

struct Collected {
    first: Bytes,
    rest: BytesMut,
    hold: Hold,
}

impl Collected {
    /// Nothing yet.
    fn nothing(hold: Hold) -> Self {
        Self {
            first: Bytes::new(),
            rest: BytesMut::new(),
            hold,
        }
    }

    fn push(&mut self, frame: Frame<Bytes>, limit: usize) -> Result<(), BodyError> {
        let Ok(data) = frame.into_data() else {
            return Ok(()); // trailers
        };
        let so_far = self.first.len() + self.rest.len();
        if data.len() > limit.saturating_sub(so_far) {
            return Err(BodyError::TooLarge { limit });
        }
        self.hold.reach(so_far + data.len())?;
        if so_far == 0 {
            self.first = data;
        } else {
            if self.rest.is_empty() {
                self.rest.reserve(so_far + data.len());
                self.rest
                    .extend_from_slice(&std::mem::take(&mut self.first));
            }
            self.rest.extend_from_slice(&data);
        }
        Ok(())
    }

    fn finish(&mut self) -> Bytes {
        let another = self.hold.another();
        let hold = std::mem::replace(&mut self.hold, another);
        hold.with(if self.rest.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.rest).freeze()
        })
    }
}
