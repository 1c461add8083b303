//! Scope: whatever is logged while a call is worked on can be told to be the call's.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tower::{Layer, Service};

use crate::{
    call::Call,
    spans::{Lead, Within},
};

/// The layer. Where calls have no span it costs a branch.
#[derive(Debug, Clone, Copy)]
pub(in crate::stack) struct ScopeLayer;

/// A service whose work is done in the call's span.
#[derive(Debug, Clone)]
pub(in crate::stack) struct Scope<S>(S);

/// A future whose work is done in the call's span.
#[derive(Debug)]
pub(in crate::stack) struct Scoped<F> {
    inner: F,
    lead: Option<Lead>,
}

impl<S> Layer<S> for ScopeLayer {
    type Service = Scope<S>;

    fn layer(&self, inner: S) -> Scope<S> {
        Scope(inner)
    }
}

impl<S> Service<Box<Call>> for Scope<S>
where
    S: Service<Box<Call>>,
    S::Future: Unpin,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Scoped<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: Box<Call>) -> Self::Future {
        let lead = call.trail.lead().cloned();
        let within = within(lead.as_ref());
        let inner = self.0.call(call);
        drop(within);
        Scoped { inner, lead }
    }
}

impl<F: Future + Unpin> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _within = within(this.lead.as_ref());
        Pin::new(&mut this.inner).poll(cx)
    }
}

/// In the span, where there is one.
fn within(lead: Option<&Lead>) -> Option<Within> {
    lead.map(Lead::within)
}
