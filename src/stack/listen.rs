//! Listens: what of them is in force, and then changes for as long as somebody listens (PROTOCOL B7, D1).
//!
//! Guarantees: the acknowledgement is first, comes within [`PATIENCE`], and names only what will be told; nothing else is
//! told afterwards; a call's deadline does not end a listen. Deliberately absent: tasks, which the dialect
//! looks at by calls of their own.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Error, Parts};
use crate::{
    call::{Call, Change, Event, Filter, Op, Outcome, Reply, ReplyStream, Step},
    events::{Hub, Listener, Lists, News},
    json::Json,
    jsonrpc::RpcError,
    protocol::{codes, meta},
    snapshot::Snapshot,
    stage::Watched,
};

/// How long an upstream may take to say what it tells of; what it has not said by then is not in force (PROTOCOL H16).
const PATIENCE: Duration = Duration::from_millis(800);

/// Serves listens from the hub.
#[derive(Clone)]
pub(super) struct Listens {
    hub: Arc<Hub>,
    closing: CancellationToken,
}

/// One listen that was acknowledged.
struct Open {
    listener: Listener,
    watched: Vec<Watched>,
    closing: CancellationToken,
}

impl Listens {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            hub: parts.world.hub().clone(),
            closing: parts.closing.clone(),
        }
    }

    /// Begins a listen; its reply begins with the acknowledgement.
    pub(super) async fn open(
        self,
        call: &Call,
        snapshot: &Snapshot,
        watched: Vec<Watched>,
    ) -> Result<Reply, Error> {
        let Op::Listen(asked) = &call.op else {
            return Err(Error::NotOffered(call.op.method().into()));
        };
        if snapshot
            .catalog
            .face(&call.scope, call.caller.revision)
            .is_none()
        {
            return Err(Error::NoScope);
        }
        if self.closing.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let local = watched
            .iter()
            .map(|it| (it.upstream.clone(), it.local.clone()));
        // A session's own listen is bounded with its session.
        let sessionless = call.caller.affinity.ended.is_none();
        let seat = sessionless.then_some(&call.caller.principal);
        let mut listener = self
            .hub
            .listen(&call.scope, Lists::wanted(asked), local, seat)
            .map_err(|_| Error::Limited("too many listens at once; end one, or try again later"))?;
        let in_force = listener.settle(Instant::now() + PATIENCE).await;
        let subscriptions = watched
            .iter()
            .zip(in_force)
            .filter(|(_, kept)| *kept)
            .map(|(watched, _)| watched.outward.clone())
            .collect();
        let acknowledged = Event::Acknowledged(Arc::new(Filter {
            subscriptions,
            tasks: Vec::new(),
            ..**asked
        }));
        let open = Open {
            listener,
            watched,
            closing: self.closing,
        };
        let changes = stream::unfold(Some(open), |open| async {
            let mut open = open?;
            match open.next().await {
                event @ Step::Event(_) => Some((event, Some(open))),
                end @ Step::Outcome(_) => Some((end, None)),
            }
        });
        let first = stream::once(std::future::ready(Step::Event(acknowledged)));
        Ok(Reply::Stream(ReplyStream::new(
            first.chain(changes).boxed(),
        )))
    }
}

impl Open {
    async fn next(&mut self) -> Step {
        let news = tokio::select! {
            biased;
            () = self.closing.cancelled() => {
                return Step::Outcome(Outcome::Complete(Json::empty_object()));
            }
            news = self.listener.next() => news,
        };
        let change = match news {
            Some(Ok(News::List(kind))) => Change::List(kind),
            Some(Ok(News::Resource { watched, below })) => {
                Change::Resource(self.watched[watched].outward_of(below))
            }
            Some(Err(_)) | None => return Step::Outcome(Outcome::Lost(too_slow())),
        };
        Step::Event(Event::Changed(change))
    }
}

impl Watched {
    /// The URI to tell: the watched one as the client spelled it, or that of what lies below it.
    fn outward_of(&self, below: Option<Arc<str>>) -> Arc<str> {
        match below {
            None => self.outward.clone(),
            Some(local) => match self.namespace.outward_uri(&local) {
                Some(outward) => outward.into(),
                None => local,
            },
        }
    }
}

fn too_slow() -> RpcError {
    RpcError {
        data: Some(meta::object_of(&[(
            "reason",
            Json::string("slow_consumer"),
        )])),
        ..RpcError::new(codes::OVERLOADED, "changes were not taken in time")
    }
}
