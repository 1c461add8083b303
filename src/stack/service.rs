//! The whole stack as one service.

use std::{fmt, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use tower::Service;

use super::{
    Error,
    laned::Laned,
    observe::{Pause, Pauses},
};
use crate::call::{Call, Reply};

/// The whole stack. Clones share it, and whoever calls it needs none. A call is boxed: it is handed on some twenty times.
#[derive(Clone)]
pub struct McpService {
    stack: Arc<dyn Answers>,
    pauses: Option<Pauses>,
}

/// What a call is given to.
trait Answers: Send + Sync {
    fn answer(&self, call: Box<Call>) -> BoxFuture<'static, Result<Reply, Error>>;
}

impl McpService {
    /// Of stacks that are made so, one for each lane. Each is always ready.
    pub fn new<S>(make: impl FnMut() -> S) -> Self
    where
        S: Service<Box<Call>, Response = Reply, Error = Error> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        Self {
            stack: Arc::new(Laned::new(make)),
            pauses: None,
        }
    }

    /// Calls that end while their client is asked are told of by these.
    pub(super) fn telling(self, pauses: Pauses) -> Self {
        Self {
            pauses: Some(pauses),
            ..self
        }
    }

    /// The client of this call is asked before it goes on, by a request of ours that is no result of the call; until it goes
    /// on, what is given back watches it. `None` where nobody wants to know.
    pub fn pause(&self, call: &Call) -> Option<Pause> {
        self.pauses.as_ref()?.begin(call)
    }

    /// Gives it a call.
    pub fn call(&self, call: Box<Call>) -> BoxFuture<'static, Result<Reply, Error>> {
        self.stack.answer(call)
    }
}

impl<S> Answers for Laned<S>
where
    S: Service<Box<Call>, Response = Reply, Error = Error> + Clone + Send + Sync,
    S::Future: Send + 'static,
{
    fn answer(&self, call: Box<Call>) -> BoxFuture<'static, Result<Reply, Error>> {
        self.with(|stack| stack.call(call).boxed())
    }
}

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpService")
    }
}
