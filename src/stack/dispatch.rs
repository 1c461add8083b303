//! Dispatch, the leaf: the snapshot, the hub, or exactly one upstream.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::Instant;
use tower::Service;

use super::{Error, Parts, brought, handles::Handles, listen::Listens};
use crate::{
    call::{Call, Op, Outcome, Page, Reply},
    catalog::{Position, Route},
    protocol::methods::ListKind,
    seal::{Sealer, unix_seconds},
    snapshot::Snapshot,
    stage::{Routed, Target},
};

/// The way to the upstreams.
pub trait Upstreams: Send + Sync + 'static {
    /// Carries one call to the upstream that its route names, and ends by the call's deadline.
    fn call(&self, call: Call, route: Route) -> BoxFuture<'static, Result<Reply, Error>>;
}

/// Answers from memory, or hands the call to its upstream.
#[derive(Clone)]
pub struct Dispatch {
    sealer: Arc<Sealer>,
    upstreams: Arc<dyn Upstreams>,
    handles: Handles,
    listens: Listens,
}

impl Dispatch {
    /// The leaf of the stack.
    pub(super) fn new(parts: &Parts, handles: Handles) -> Self {
        Self {
            handles,
            sealer: parts.sealer.clone(),
            upstreams: parts.upstreams.clone(),
            listens: Listens::new(parts),
        }
    }
}

impl Service<Routed> for Dispatch {
    type Response = Reply;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Reply, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, routed: Routed) -> Self::Future {
        match routed.target {
            Target::Snapshot if let Op::ListTasks(cursor) = &routed.call.op => {
                let cursor = cursor.clone();
                let upstreams = self.upstreams.clone();
                self.handles
                    .clone()
                    .list(upstreams, routed.call, cursor)
                    .boxed()
            }
            Target::Snapshot => {
                std::future::ready(self.answer_from_memory(&routed.call, &routed.snapshot)).boxed()
            }
            // The upstream keeps the call's deadline: one place, one timer.
            Target::Upstream(route) => match routed.brought {
                None => self.upstreams.call(routed.call, route),
                Some(brought) => {
                    brought::call(self.upstreams.clone(), routed.call, route, brought).boxed()
                }
            },
            Target::Hub(watched) => {
                let listens = self.listens.clone();
                async move { listens.open(&routed.call, &routed.snapshot, watched).await }.boxed()
            }
        }
    }
}

impl Dispatch {
    fn answer_from_memory(&self, call: &Call, snapshot: &Snapshot) -> Result<Reply, Error> {
        match &call.op {
            Op::List(kind, cursor) => self.page(call, snapshot, *kind, cursor.as_deref()),
            // Whatever else needs no upstream is a question about the endpoint itself.
            Op::Discover
            | Op::CallTool(_)
            | Op::GetPrompt(_)
            | Op::ReadResource(_)
            | Op::Complete(_)
            | Op::GetSkill(_)
            | Op::ReadDirectory(..)
            | Op::Task(..)
            | Op::ListTasks(_)
            | Op::Listen(_) => {
                let card = snapshot
                    .catalog
                    .face(&call.scope, call.caller.revision)
                    .ok_or(Error::NoScope)?;
                Ok(Reply::Done(Outcome::Card(card)))
            }
        }
    }

    fn page(
        &self,
        call: &Call,
        snapshot: &Snapshot,
        kind: ListKind,
        cursor: Option<&str>,
    ) -> Result<Reply, Error> {
        let principal = call.caller.principal.as_str();
        let after = match cursor {
            None => Position::start(),
            Some(cursor) => Position::open(
                &self.sealer,
                cursor,
                principal,
                &call.scope,
                kind,
                unix_seconds(),
            )
            .map_err(|_| Error::BadCursor)?,
        };
        let page = snapshot
            .catalog
            .page(&call.scope, kind, call.caller.revision, &after)
            .ok_or(Error::NoScope)?;
        let next = page.next.map(|position| {
            position.seal(&self.sealer, principal, &call.scope, kind, unix_seconds())
        });
        let hints = snapshot
            .catalog
            .hints(&call.scope, kind, &after, Instant::now())
            .ok_or(Error::NoScope)?;
        Ok(Reply::Done(Outcome::Listed(Page {
            kind,
            items: page.items,
            next,
            ttl_millis: hints.ttl_millis,
            public: hints.public,
            away: hints.away,
        })))
    }
}
