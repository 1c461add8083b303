//! What is told of one upstream: its lists, read now and then and whenever something rings, and what becomes of them.
//!
//! Guarantees: a list that fails keeps its last good value; what is listed of an upstream that is away is marked at once and gone
//! after `stale_for`; readings because of changes are spaced, of which the first is immediate (SECURITY CAT-6).

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until};

use super::super::{
    CredentialError, Past, Peer, UpstreamError, credentials::Credentials, health::jittered, modern,
    refresh_signal::Spacing, shared::Shared, sink::Sink, terms::Terms,
};
use crate::{
    catalog::Contribution,
    events::Lists,
    metrics::{Bound, reached},
    protocol::{UpstreamId, methods::ListKind},
};

/// The shortest time between two reads of a list that was said to have changed.
pub(in crate::upstream) const COALESCE: Duration = Duration::from_secs(2);
/// The shortest time between two reads that a time to live asks for, and the first wait after a list failed.
const SOONEST: Duration = Duration::from_secs(5);

/// How a read of the lists went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Whole,
    /// Some list failed and kept its last value.
    Partly,
    /// None was answered in time.
    Silent,
    /// None could be reached.
    Unreachable,
    /// It shows them to nobody without a token.
    Closed,
}

/// What is told of the upstream.
pub(super) struct Board {
    id: UpstreamId,
    stale_for: Duration,
    sink: Arc<dyn Sink>,
    known: Contribution,
    /// The lists that could not be read when they were asked for last, and why.
    unread: Vec<(ListKind, UpstreamError)>,
    /// When what is known of an upstream that is away is no longer told.
    stale_at: Option<Instant>,
    /// Whether each principal's lists are read with their own token, and nobody's with none.
    own: bool,
    /// Whether it is sent a credential.
    proves: bool,
    terms: Arc<Terms>,
}

impl Board {
    /// With nothing on it.
    pub(super) fn new(shared: &Shared, sink: Arc<dyn Sink>) -> Self {
        Self {
            id: shared.spec.id.clone(),
            stale_for: shared.spec.stale_for,
            sink,
            known: Contribution::default(),
            unread: Vec::new(),
            stale_at: None,
            own: (shared.terms.credentials.as_ref()).is_some_and(Credentials::lists_are_own),
            proves: shared.terms.proves,
            terms: Arc::clone(&shared.terms),
        }
    }

    /// Where there is nothing to read for everybody, waits until the peer is lost or the circuit trips.
    pub(super) async fn stand_by(
        &mut self,
        shared: &Shared,
        peer: &Arc<dyn Peer>,
    ) -> UpstreamError {
        self.nothing();
        shared.unread.store(None);
        shared.settled.cancel();
        tokio::select! {
            biased;
            error = peer.lost() => error,
            () = shared.circuit.tripped() => UpstreamError::unreached("calls cannot reach it"),
        }
    }

    pub(super) async fn read_on(&mut self, shared: &Shared, peer: &Arc<dyn Peer>) -> UpstreamError {
        let ended = async {
            tokio::select! {
                biased;
                error = peer.lost() => error,
                () = shared.circuit.tripped() => UpstreamError::unreached("calls cannot reach it"),
            }
        };
        let mut ended = pin!(ended);
        let mut failures = 0;
        let (mut first, mut suspected) = (true, false);
        // Whether none of its lists could be reached the last time.
        let mut unreached = false;
        // Whether any of its lists was answered on this connection: what is slow to begin has not come to an end.
        let mut answers = false;
        // How many calls it had answered when none of its lists was answered last.
        let mut silent_since = None;
        let mut lists = Lists::ALL;
        // When all is to be read again, and when what changed may be.
        let mut due = Instant::now();
        let mut spacing = Spacing::new(due);
        loop {
            let heard = shared.tally.answered();
            let read = tokio::select! {
                biased;
                error = ended.as_mut() => return error,
                read = self.read(&**peer, first, lists) => read,
            };
            let begins = std::mem::take(&mut first);
            shared.unread.store(self.unread().map(Arc::new));
            shared.settled.cancel();
            let outcome = usize::from(read != Read::Whole);
            shared.refreshes[outcome].fetch_add(1, Ordering::Relaxed);
            failures = match read {
                Read::Whole => 0,
                Read::Partly | Read::Silent => failures + 1,
                Read::Closed => return self.stand_by(shared, peer).await,
                // Where calls are under way, which end with the connection, another look is taken first.
                Read::Unreachable if begins || unreached || shared.terms.queue.taken() == 0 => {
                    return UpstreamError::unreached("its lists cannot be read");
                }
                Read::Unreachable => failures + 1,
            };
            unreached = read == Read::Unreachable;
            if read == Read::Silent && answers {
                // What takes it long, a call that may yet be answered, is waited for; and its lists alone may be what takes long.
                let again = silent_since == Some(heard) && shared.terms.queue.taken() == 0;
                silent_since = Some(shared.tally.answered());
                let hangs = suspected && shared.circuit.is_silent();
                if silent_since == Some(heard) && (hangs || again) {
                    return UpstreamError::unreached("it answers nothing any more");
                }
            } else if !matches!(read, Read::Silent | Read::Unreachable) {
                (answers, silent_since) = (true, None);
                shared.circuit.answered();
            }
            suspected = false;
            if lists == Lists::ALL || failures > 0 {
                due = Instant::now() + self.pace(shared.spec.poll, failures);
            }
            lists = tokio::select! {
                biased;
                error = ended.as_mut() => return error,
                rung = shared.terms.refresh.rung(&spacing) => {
                    spacing.after(rung.changed, COALESCE);
                    rung.lists
                }
                () = shared.circuit.silent() => {
                    suspected = true;
                    Lists::ALL
                }
                () = sleep_until(due) => Lists::ALL,
            };
        }
    }

    /// It is there, and shows nothing to everybody.
    fn nothing(&mut self) {
        self.known = Contribution::default();
        self.unread.clear();
        self.stale_at = None;
        self.publish();
    }

    /// What is told of a list that could not be read, if there is one.
    fn unread(&self) -> Option<Past> {
        let (kind, error) = self.unread.first()?;
        let error = error.told(self.proves);
        Some(Past {
            words: format!("its `{}` could not be read: {error}", kind.method()),
            at: Instant::now(),
        })
    }

    fn publish(&mut self) {
        self.terms.lists.keep(Some(&mut self.known));
        self.sink.publish(&self.id, self.known.clone());
    }

    /// Reads these lists; tells what is known when anything changed, also what the server says of itself, or when it is the first
    /// time on a connection.
    async fn read(&mut self, peer: &dyn Peer, first: bool, lists: Lists) -> Read {
        let started = Instant::now();
        let asked = ListKind::EVERY
            .into_iter()
            .filter(|kind| lists.has(*kind))
            .map(|kind| async move { (kind, peer.list(kind).await) });
        let (mut changed, mut failed, mut unreachable, mut silent) = (first, 0, 0, 0);
        let answered = join_all(asked).await;
        self.unread.retain(|(kind, _)| !first && !lists.has(*kind));
        for (kind, listing) in answered {
            let known = self.known.listing(kind);
            let listing = match listing {
                Ok(next) if known.outlasts(&next) => {
                    Err(UpstreamError::Protocol("its pages come to no end".into()))
                }
                listing => listing,
            };
            match listing {
                Ok(listing) => {
                    if listing != *self.known.listing(kind) {
                        changed = true;
                        *self.known.listing_mut(kind) = listing;
                    }
                }
                Err(
                    UpstreamError::Auth(_) | UpstreamError::Credential(CredentialError::Lacks(_)),
                ) if self.own => return Read::Closed,
                Err(error) => {
                    if matches!(error, UpstreamError::Timeout(_)) {
                        reached(Bound::DeadlineList);
                        silent += 1;
                    }
                    tracing::warn!(upstream = %self.id, list = kind.method(), %error, "a list could not be read");
                    failed += 1;
                    // One that answers is there; at first it is not known to be of any use.
                    unreachable += usize::from(matches!(
                        error,
                        UpstreamError::Unavailable { reached, .. } if first || !reached.is_answer()
                    ));
                    self.unread.push((kind, error));
                }
            }
        }
        let card = peer.card();
        let offered = ListKind::EVERY
            .into_iter()
            .filter(|kind| modern::offers(&card, *kind))
            .count();
        // One list says too little about whether the rest can be read.
        if lists == Lists::ALL && offered > 0 && unreachable == offered {
            return Read::Unreachable;
        }
        // What is told is the card in force, which may be another than on the first reading.
        if first || !(self.known.card.as_ref()).is_some_and(|known| known.says_the_same(&card)) {
            self.known.card = Some(Arc::unwrap_or_clone(card));
            changed = true;
        }
        if first {
            self.known.away = false;
            self.stale_at = None;
        }
        let whole = failed == 0 && lists == Lists::ALL;
        if whole {
            self.known.read_at = Some(started);
        }
        if changed {
            self.publish();
        } else {
            self.terms.lists.keep(Some(&mut self.known));
            if whole {
                self.sink.confirm(&self.id, started);
            }
        }
        match failed {
            0 => Read::Whole,
            _ if lists == Lists::ALL && offered > 0 && silent == offered => Read::Silent,
            _ => Read::Partly,
        }
    }

    fn pace(&self, poll: Duration, failures: u32) -> Duration {
        pace(Some(&self.known), poll, failures)
    }

    /// What is known is stale from now on.
    pub(super) fn away(&mut self) {
        if self.known.away {
            return;
        }
        self.known.away = true;
        if self.known.card.is_some() {
            self.stale_at = Some(Instant::now() + self.stale_for);
        }
        self.publish();
    }

    /// What was known is told no more.
    pub(super) fn withdrawn(&mut self) {
        self.stale_at = None;
        self.known = Contribution {
            away: true,
            ..Contribution::default()
        };
        self.publish();
    }

    /// Does `work`, and meanwhile takes back what is stale when its time comes.
    pub(super) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Some(at) = self.stale_at {
            tokio::select! {
                biased;
                done = work.as_mut() => return done,
                () = sleep_until(at) => {}
            }
            self.withdrawn();
        }
        work.await
    }
}

/// How long until lists are read again: the smallest time to live, or the poll; sooner after a failure. Jittered, because a
/// time to live is no polling interval (PROTOCOL D5).
pub(in crate::upstream) fn pace(
    known: Option<&Contribution>,
    poll: Duration,
    failures: u32,
) -> Duration {
    let told = ListKind::EVERY
        .iter()
        .filter_map(|kind| known?.listing(*kind).ttl)
        // Zero says that nothing is known about how long it lasts.
        .filter(|ttl| !ttl.is_zero())
        .min();
    let pace = told.map_or(poll, |ttl| ttl.max(SOONEST).min(poll));
    let pace = match failures {
        0 => pace,
        _ => pace.min(SOONEST * 2_u32.saturating_pow(failures.min(10) - 1)),
    };
    jittered(pace).max(SOONEST.min(poll))
}
