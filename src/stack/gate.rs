//! Gates: checks that admit a request, perhaps as another type, or refuse it before anything below runs.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::Either;
use tower::{Layer, Service};

use super::Error;

/// Admits or refuses. Synchronous: a check that needs I/O is a service, not a gate.
pub trait Gate<Req>: Send + Sync + 'static {
    /// What goes on below.
    type Pass;

    /// Looks at one request.
    ///
    /// # Errors
    /// The refusal; nothing below has run.
    fn admit(&self, request: Req) -> Result<Self::Pass, Error>;
}

/// The layer of a gate.
pub fn gate<G>(gate: G) -> GateLayer<G> {
    GateLayer(Arc::new(gate))
}

/// See [`gate`].
#[derive(Debug)]
pub struct GateLayer<G>(Arc<G>);

impl<G, S> Layer<S> for GateLayer<G> {
    type Service = Gated<G, S>;

    fn layer(&self, inner: S) -> Gated<G, S> {
        Gated {
            gate: self.0.clone(),
            inner,
        }
    }
}

/// A service behind a gate.
#[derive(Debug)]
pub struct Gated<G, S> {
    gate: Arc<G>,
    inner: S,
}

impl<G, S: Clone> Clone for Gated<G, S> {
    fn clone(&self) -> Self {
        Self {
            gate: self.gate.clone(),
            inner: self.inner.clone(),
        }
    }
}

impl<G, S, Req> Service<Req> for Gated<G, S>
where
    G: Gate<Req>,
    S: Service<G::Pass, Error = Error>,
{
    type Response = S::Response;
    type Error = Error;
    type Future = Either<S::Future, Ready<Result<S::Response, Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        match self.gate.admit(request) {
            Ok(pass) => Either::Left(self.inner.call(pass)),
            Err(refusal) => Either::Right(ready(Err(refusal))),
        }
    }
}
