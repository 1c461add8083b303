//! Wraps: layers that see a request go in and its reply come out.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use super::Error;
use crate::{call::Reply, tasks::LaneArc};

/// Sees a request go in and its reply come out. `leave` may move its mark into the reply, so a mark dropped unfinished,
/// before the reply or in the middle of it, means that the caller went away.
pub trait Wrap<Req>: Send + Sync + 'static {
    /// What is remembered in between.
    type Mark: Send + Unpin + 'static;

    /// The request goes in.
    fn enter(&self, request: &mut Req) -> Self::Mark;

    /// The reply, or the refusal, comes out.
    ///
    /// # Errors
    /// Whatever came up from below, or this wrap's own refusal.
    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error>;
}

/// The layer of a wrap.
pub fn wrap<W>(wrap: W) -> WrapLayer<W> {
    WrapLayer(LaneArc::new(Arc::new(wrap)))
}

/// See [`wrap`].
#[derive(Debug)]
pub struct WrapLayer<W>(LaneArc<W>);

impl<W, S> Layer<S> for WrapLayer<W> {
    type Service = Wrapped<W, S>;

    fn layer(&self, inner: S) -> Wrapped<W, S> {
        Wrapped {
            // Each stack is one lane's, and its calls hold on to the wrap, which calls of two lanes are not to count together.
            wrap: self.0.apart(),
            inner,
        }
    }
}

/// A service inside a wrap.
#[derive(Debug)]
pub struct Wrapped<W, S> {
    wrap: LaneArc<W>,
    inner: S,
}

impl<W, S: Clone> Clone for Wrapped<W, S> {
    fn clone(&self) -> Self {
        Self {
            wrap: self.wrap.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<W, S, Req> Service<Req> for Wrapped<W, S>
where
    W: Wrap<Req>,
    S: Service<Req, Response = Reply, Error = Error>,
    S::Future: Unpin,
{
    type Response = Reply;
    type Error = Error;
    type Future = Leaving<Req, W, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let mark = self.wrap.enter(&mut request);
        Leaving {
            wrap: self.wrap.clone(),
            inner: self.inner.call(request),
            mark: Some(mark),
        }
    }
}

/// The future of a wrapped call. What is below a wrap is boxed already, so this needs no box of its own.
#[derive(Debug)]
pub struct Leaving<Req, W: Wrap<Req>, F> {
    wrap: LaneArc<W>,
    /// Dropped before the mark: what is below notes its times then, and the mark may tell of them.
    inner: F,
    mark: Option<W::Mark>,
}

impl<Req, W, F> Future for Leaving<Req, W, F>
where
    W: Wrap<Req>,
    F: Future<Output = Result<Reply, Error>> + Unpin,
{
    type Output = Result<Reply, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Poll::Ready(result) = Pin::new(&mut self.inner).poll(cx) else {
            return Poll::Pending;
        };
        match self.mark.take() {
            Some(mark) => Poll::Ready(self.wrap.leave(mark, result)),
            None => Poll::Ready(result),
        }
    }
}
