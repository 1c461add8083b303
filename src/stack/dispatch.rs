//! Dispatch, the leaf: the snapshot, the hub, or exactly one upstream.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{FutureExt, future::BoxFuture};
use tower::Service;

use super::{Error, Parts, Upstreams, brought, handles::Handles, listen::Listens};
use crate::{
    call::{Call, Op, Outcome, Page, Reply},
    catalog::Position,
    protocol::methods::ListKind,
    resume::Bounds,
    seal::{Sealer, unix_seconds},
    snapshot::Snapshot,
    stage::{Permitted, Way},
    tasks::{LaneArc, clock},
};

/// Answers from memory, or hands the call to its upstream. A call waiting for its audit record takes a clone along; the counter
/// is per lane so that lanes do not contend.
#[derive(Clone)]
pub struct Dispatch(LaneArc<Leaf>);

struct Leaf {
    sealer: Arc<Sealer>,
    upstreams: Arc<dyn Upstreams>,
    handles: Handles,
    listens: Listens,
    asking: Bounds,
}

impl Dispatch {
    /// The leaf of the stack.
    pub(super) fn new(parts: &Parts, handles: Handles) -> Self {
        Self(LaneArc::new(Arc::new(Leaf {
            handles,
            sealer: parts.sealer.clone(),
            upstreams: parts.upstreams.clone(),
            listens: Listens::new(parts),
            asking: parts.asking,
        })))
    }

    /// For another lane.
    pub(super) fn apart(&self) -> Self {
        Self(self.0.apart())
    }
}

impl Service<Box<Permitted>> for Dispatch {
    type Response = Reply;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Reply, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, permitted: Box<Permitted>) -> Self::Future {
        let (leaf, permitted) = (&*self.0, *permitted);
        match permitted.way {
            Way::Snapshot if let Op::ListTasks(cursor) = &permitted.call.op => {
                let cursor = cursor.clone();
                let upstreams = leaf.upstreams.clone();
                leaf.handles
                    .clone()
                    .list(upstreams, permitted.call, permitted.snapshot, cursor)
                    .boxed()
            }
            Way::Snapshot => {
                std::future::ready(leaf.answer_from_memory(&permitted.call, &permitted.snapshot))
                    .boxed()
            }
            // The upstream keeps the call's deadline: one place, one timer.
            Way::Upstream(passage) => match permitted.brought {
                None => leaf.upstreams.call(*permitted.call, passage),
                Some(brought) => {
                    let upstreams = leaf.upstreams.clone();
                    brought::call(upstreams, permitted.call, passage, brought, leaf.asking).boxed()
                }
            },
            Way::Hub(watched) => {
                let listens = leaf.listens.clone();
                async move {
                    listens
                        .open(permitted.call, &permitted.snapshot, watched)
                        .await
                }
                .boxed()
            }
            Way::Caller(question) => {
                std::future::ready(Ok(Reply::Done(Outcome::InputRequired(*question)))).boxed()
            }
        }
    }
}

impl Leaf {
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
                let revision = call.caller.revision;
                let card = if snapshot.policy().policy().is_unrestricted() {
                    snapshot.catalog.face(&call.scope, revision)
                } else {
                    let view = snapshot.view(&call.identity, &call.scope);
                    view.map(|view| view.card(revision))
                };
                let card = card.ok_or(Error::NoScope)?;
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
        let after = match cursor {
            None => Position::start(),
            Some(cursor) => {
                Position::open(&self.sealer, cursor, &call.owner(), kind, unix_seconds())
                    .map_err(|_| Error::BadCursor)?
            }
        };
        let (catalog, revision, now) = (&snapshot.catalog, call.caller.revision, clock::now());
        let (page, hints) = if snapshot.policy().policy().is_unrestricted() {
            let page = catalog.page(&call.scope, kind, revision, &after);
            page.zip(catalog.hints(&call.scope, kind, &after, now))
        } else {
            let view = snapshot.view(&call.identity, &call.scope);
            view.map(|view| {
                let page = catalog.seen_page(&view, kind, revision, &after);
                (page, catalog.seen_hints(&view, kind, now))
            })
        }
        .ok_or(Error::NoScope)?;
        let next = page
            .next
            .map(|position| position.seal(&self.sealer, &call.owner(), kind, unix_seconds()));
        Ok(Reply::Done(Outcome::Listed(Page {
            kind,
            items: page.items,
            next,
            ttl_millis: hints.ttl_millis,
            public: hints.public,
            away: hints.away,
            partial: hints.partial,
        })))
    }
}
