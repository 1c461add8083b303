//! Listens: what of them is in force, and then changes for as long as somebody listens (PROTOCOL B7, D1).
//!
//! Guarantees: the acknowledgement is first, comes within [`ACK_TIMEOUT`], or within [`SUBSCRIBE_ACK_TIMEOUT`] where a session subscribes,
//! and names only what will be told, and a session that subscribes to what will not be is refused; nothing else is told afterwards; a call's deadline does not end a listen; where policies
//! decide who hears of what, those decide that hold when something happens, and a listen that watches what its caller may not
//! hear of any more ends, so that the next one says what is in force; where the address of what changed may not be told, the watched
//! one is (SECURITY 7). Deliberately absent: tasks, which the dialect looks at by calls of their own.

mod guard;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Error, Parts, Upstreams, sanitize::may_be_told};
use crate::{
    call::{Call, CallId, Change, Event, Filter, Op, Outcome, Reply, ReplyStream, Step, Trail},
    events::{Hub, Listener, Lists, News, Party},
    json::Json,
    jsonrpc::RpcError,
    protocol::{codes, meta},
    sanitize::Sanitizer,
    snapshot::{Snapshot, World},
    stage::{PermittedWatch, Watchable},
    upstream::Bearer,
};

use guard::ListenGuard;

/// How long an upstream may take to say what it tells of; what it has not said by then is not in force (PROTOCOL H16).
const ACK_TIMEOUT: Duration = Duration::from_millis(800);
/// The same where a session subscribes to one resource, and its client waits for the answer of just that (PROTOCOL D1): as long
/// as an upstream has for such an answer, unless its configuration gives it more.
const SUBSCRIBE_ACK_TIMEOUT: Duration = Duration::from_secs(15);

/// Serves listens from the hub.
#[derive(Clone)]
pub(super) struct Listens {
    hub: Arc<Hub>,
    world: Arc<World>,
    sanitizer: Arc<Sanitizer>,
    upstreams: Arc<dyn Upstreams>,
    closing: CancellationToken,
}

/// One listen that was acknowledged.
struct Open {
    listener: Listener,
    watched: Vec<PermittedWatch>,
    /// What the listen goes with at the upstream of each.
    bearers: Vec<Option<Bearer>>,
    /// Which of them are in force.
    in_force: Vec<bool>,
    call: (CallId, Trail),
    sanitizer: Arc<Sanitizer>,
    closing: CancellationToken,
    guard: Option<ListenGuard>,
}

impl Listens {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            hub: parts.world.hub().clone(),
            world: parts.world.clone(),
            sanitizer: parts.sanitizer.clone(),
            upstreams: parts.upstreams.clone(),
            closing: parts.closing.clone(),
        }
    }

    /// Begins a listen; its reply begins with the acknowledgement.
    pub(super) async fn open(
        self,
        call: Box<Call>,
        snapshot: &Snapshot,
        watched: Vec<PermittedWatch>,
    ) -> Result<Reply, Error> {
        let Op::Listen(asked) = call.op.clone() else {
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
        let local = watched.iter().map(|it| {
            let interest = self.hub.interest(&it.at.upstream);
            // What is offered to somebody alone is watched for them alone.
            let interest = if snapshot.is_own(&it.at.upstream) {
                interest.own(&call.identity.grantee())
            } else {
                interest
            };
            (interest, it.at.local.clone())
        });
        // A session's own listen is bounded with its session.
        let sessionless = call.caller.affinity.ended.is_none();
        let party = Party::of(&call.caller.principal, call.address);
        let seat = sessionless.then_some(&party);
        let wanted = Lists::wanted(&asked);
        let mut listener = self
            .hub
            .listen(&call.scope, wanted, local, seat)
            .map_err(|_| Error::Limited("too many listens at once; end one, or try again later"))?;
        let timeout = if sessionless {
            ACK_TIMEOUT
        } else {
            SUBSCRIBE_ACK_TIMEOUT
        };
        let in_force = tokio::select! {
            biased;
            // What was to be acknowledged would end at once.
            () = self.closing.cancelled() => return Err(Error::ShuttingDown),
            in_force = listener.settle(Instant::now() + timeout) => in_force,
        };
        // Where it is a session that subscribes, that is all it is for: nobody would be told anything.
        if !sessionless && !asked.subscriptions.is_empty() && !in_force.contains(&true) {
            let catalog = &snapshot.catalog;
            let leads = |uri: &Arc<str>| catalog.resource(&call.scope, uri).is_some();
            // What leads nowhere is gone, unless that is not known yet.
            let gone = watched.is_empty()
                && (asked.subscriptions.iter().any(leads) || !catalog.lacks_some(&call.scope));
            return Err(Error::NotSubscribable { gone });
        }
        let subscriptions = watched
            .iter()
            .zip(&in_force)
            .filter(|(_, kept)| **kept)
            .map(|(watched, _)| watched.at.outward.clone())
            .collect();
        let acknowledged = Event::Acknowledged(Arc::new(Filter {
            subscriptions,
            tasks: Vec::new(),
            ..*asked
        }));
        let bearers = watched
            .iter()
            .map(|it| self.upstreams.bearer(&it.at.upstream, &call.identity))
            .collect();
        let open = Open {
            listener,
            watched,
            bearers,
            in_force,
            call: (call.id, call.trail.clone()),
            sanitizer: self.sanitizer,
            closing: self.closing,
            guard: ListenGuard::of(call, snapshot, &self.world, wanted),
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
        loop {
            let unsure = self.guard.as_mut().and_then(ListenGuard::unsure);
            let news = match unsure {
                Some(kind) => Some(Ok(News::List(kind))),
                None => tokio::select! {
                    biased;
                    () = self.closing.cancelled() => return over(),
                    () = regranted(&mut self.guard) => {
                        match &self.guard {
                            Some(guard) if !guard.may_hear_all(&self.watched, &self.in_force) => {
                                return over();
                            }
                            // Lists that are others now are news of their own.
                            _ => continue,
                        }
                    }
                    news = self.listener.next() => news,
                },
            };
            let change = match news {
                Some(Ok(News::List(kind))) => {
                    let guard = self.guard.as_mut();
                    if guard.is_some_and(|guard| !guard.sees_another(kind)) {
                        continue;
                    }
                    Change::List(kind)
                }
                Some(Ok(News::Resource { watched, below })) => {
                    let at = &self.watched[watched].at;
                    let local = below.as_ref().unwrap_or(&at.local);
                    let outward = at.outward_of(below.as_ref());
                    if let Some(guard) = &self.guard
                        && !guard.may_hear(at, &outward, local)
                    {
                        continue;
                    }
                    let bearer = self.bearers[watched].as_ref();
                    let told =
                        |below| may_be_told(&self.sanitizer, &self.call, (at, bearer), below);
                    Change::Resource(if below.as_ref().is_none_or(told) {
                        outward
                    } else {
                        at.outward.clone()
                    })
                }
                Some(Err(_)) => return Step::Outcome(Outcome::Lost(too_slow())),
                // An operator ended it.
                None => return over(),
            };
            return Step::Event(Event::Changed(change));
        }
    }
}

/// Waits for other policies, where policies decide.
async fn regranted(guard: &mut Option<ListenGuard>) {
    match guard {
        Some(guard) => guard.regranted().await,
        None => std::future::pending().await,
    }
}

/// The end of a listen that was to end.
const fn over() -> Step {
    Step::Outcome(Outcome::Complete(Json::empty_object()))
}

impl Watchable {
    /// The URI to tell: the watched one as the client spelled it, or that of what lies below it.
    fn outward_of(&self, below: Option<&Arc<str>>) -> Arc<str> {
        match below {
            None => self.outward.clone(),
            Some(local) => match self.namespace.outward_uri(local) {
                Some(outward) => outward.into(),
                None => local.clone(),
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
