//! Own: what upstreams offer to a principal alone is read before the first call that may need it sees the world (PROTOCOL D4).
//!
//! Guarantees: a list waits for what was not read yet for its principal, once and for no longer than a list may take; a call by
//! name waits only for upstreams whose the name could be by its spelling, so that how long it takes tells nothing of what
//! exists; whatever was read already, or could not be, is waited for by nobody; a listen for resources waits a second, since what
//! was not read by then is not in force (PROTOCOL H16). Where nothing differs from principal to principal it is one branch.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, Either, join_all},
};
use tokio::time::{Instant, timeout_at};
use tower::{Layer, Service};

use super::{Error, Parts, Upstreams, ready::take_ready};
use crate::{
    call::{Call, CompletionRef, Op, Reply, ReplyStream},
    protocol::{UpstreamId, methods::ListKind},
    snapshot::World,
    tasks::clock,
    upstream::Claim,
};

/// How long a listen for resources waits.
const LISTEN: Duration = Duration::from_secs(1);

/// The layer.
#[derive(Clone)]
pub(super) struct OwnLayer {
    world: Arc<World>,
    upstreams: Arc<dyn Upstreams>,
}

impl OwnLayer {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            world: parts.world.clone(),
            upstreams: parts.upstreams.clone(),
        }
    }
}

impl<S> Layer<S> for OwnLayer {
    type Service = Own<S>;

    fn layer(&self, inner: S) -> Own<S> {
        Own {
            layer: self.clone(),
            inner,
        }
    }
}

/// A service that sees what its callers are offered alone.
#[derive(Clone)]
pub(super) struct Own<S> {
    layer: OwnLayer,
    inner: S,
}

impl<S> Service<Box<Call>> for Own<S>
where
    S: Service<Box<Call>, Response = Reply, Error = Error> + Clone + Send + 'static,
    S::Future: Unpin + Send + 'static,
{
    type Response = Reply;
    type Error = Error;
    type Future = Either<S::Future, BoxFuture<'static, Result<Reply, Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: Box<Call>) -> Self::Future {
        if !self.layer.world.expects_own() {
            return Either::Left(self.inner.call(call));
        }
        let claims = self.layer.claims(&call);
        let unsettled = |(claim, _): &(Claim, Duration)| !claim.is_settled();
        let (listens, patience) = match &call.op {
            Op::Listen(filter) if filter.subscriptions.is_empty() => (true, None),
            Op::Listen(_) => (true, Some(LISTEN)),
            Op::Discover => (false, None),
            Op::List(..)
            | Op::CallTool(_)
            | Op::GetPrompt(_)
            | Op::ReadResource(_)
            | Op::Complete(_)
            | Op::GetSkill(_)
            | Op::ReadDirectory(..)
            | Op::Task(..)
            | Op::ListTasks(_) => (false, Some(Duration::MAX)),
        };
        let patience = patience.filter(|_| claims.iter().any(unsettled));
        if !listens && patience.is_none() {
            return Either::Left(self.inner.call(call));
        }
        let mut inner = take_ready(&mut self.inner);
        Either::Right(
            async move {
                if let Some(most) = patience {
                    settled(&claims, call.deadline, most).await;
                }
                // Changes are told for as long as somebody waits for them.
                Ok(match inner.call(call).await? {
                    Reply::Stream(steps) if listens => {
                        let steps = steps.inspect(move |_| {
                            let _ = &claims;
                        });
                        Reply::Stream(ReplyStream::new(steps.boxed()))
                    }
                    reply @ (Reply::Done(_) | Reply::Stream(_)) => reply,
                })
            }
            .boxed(),
        )
    }
}

impl OwnLayer {
    /// What may be needed to see what a call sees.
    fn claims(&self, call: &Call) -> Vec<(Claim, Duration)> {
        let named: Option<(ListKind, &str)> = match &call.op {
            Op::Discover | Op::List(..) | Op::Listen(_) => None,
            Op::CallTool(name) => Some((ListKind::Tools, name)),
            Op::GetPrompt(name) | Op::Complete(CompletionRef::Prompt(name)) => {
                Some((ListKind::Prompts, name))
            }
            Op::ReadResource(uri)
            | Op::GetSkill(uri)
            | Op::ReadDirectory(uri, _)
            | Op::Complete(CompletionRef::Resource(uri)) => Some((ListKind::Resources, uri)),
            // They are found by what their handles say.
            Op::Task(..) | Op::ListTasks(_) => return Vec::new(),
        };
        let catalog = &self.world.load().catalog;
        let of = |upstream: &UpstreamId| match named {
            Some((kind, name)) => catalog.could_be_of(&call.scope, upstream, kind, name),
            None => catalog.namespace(&call.scope, upstream).is_some(),
        };
        self.upstreams.claim(&call.identity, &of)
    }
}

/// Waits until all were read or could not be, each for as long as a list of its upstream may take, and at most `most`.
async fn settled(claims: &[(Claim, Duration)], deadline: Instant, most: Duration) {
    let now = clock::now();
    let each = claims.iter().map(|(claim, patience)| async move {
        // Whoever is late is not seen this time.
        let until = deadline.min(now + most.min(*patience));
        drop(timeout_at(until, claim.settled()).await);
    });
    join_all(each).await;
}
