//! Reading what an upstream offers to one principal alone, for as long as they come.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{IDLE, Kept, Read};
use crate::{
    call::Identity,
    catalog::Contribution,
    connect::LIFE as LOGIN,
    metrics::{Bound, reached},
    protocol::methods::ListKind,
    upstream::{
        Claim, CredentialError, Deadline, Peer, UpstreamError,
        holdings::Holder,
        refresh_signal::Spacing,
        shared::Shared,
        supervisor::{COALESCE, pace},
    },
};

impl Shared {
    /// The lists of one principal alone are wanted: they begin to be read unless they are known. `None` where lists are
    /// everybody's, or there is nothing to ask for this principal's with.
    pub(in crate::upstream) fn claim(self: &Arc<Self>, identity: &Arc<Identity>) -> Option<Claim> {
        let credentials = self.terms.credentials.as_ref()?;
        if !credentials.lists_are_own() {
            return None;
        }
        let mark = credentials.mark(identity)?;
        self.lend(identity);
        let begin = |kept: Arc<Kept>| {
            let shared = Arc::clone(self);
            let tasks = self.terms.tasks.clone();
            tasks.spawn(async move { shared.keep(kept).await });
        };
        let own = &self.terms.own;
        Some(own.claim(identity, mark, &self.terms.interest, begin))
    }

    /// Where the upstream is not there and may be reached with this principal's token, has that tried; whether it is so.
    pub(in crate::upstream) fn lend(&self, identity: &Arc<Identity>) -> bool {
        let credentials = self.terms.credentials.as_ref();
        let Some(credentials) = credentials.filter(|it| it.lists_are_own()) else {
            return false;
        };
        let loan = credentials.loan();
        let idle = self.is_ready() && !loan.is_open();
        if idle || self.wishes.borrow().off || credentials.mark(identity).is_none() {
            return false;
        }
        loan.offer(identity);
        let closed = self.is_closed();
        if closed {
            self.nudged.notify_one();
        }
        closed
    }

    /// Looks whether those whose lists are kept still have what these were read with.
    pub(in crate::upstream) fn regranted(&self) {
        if let Some(credentials) = &self.terms.credentials {
            for kept in &self.terms.own.kept {
                kept.look(credentials.mark(&kept.identity.load()));
            }
        }
    }

    /// Keeps the lists of one principal until they are not wanted any more.
    async fn keep(&self, kept: Arc<Kept>) {
        self.terms.own.told().await;
        tokio::select! {
            biased;
            () = kept.over.cancelled() => {}
            read = AssertUnwindSafe(self.read_on(&kept)).catch_unwind() => match read {
                Ok(()) => return,
                // They are read for anew when they come again.
                Err(_) => {
                    tracing::error!(upstream = %self.spec.id, "reading a principal's own lists panicked");
                }
            },
        }
        let_go(&kept);
        let told = || self.nothing_for(&kept);
        self.terms.own.end(&kept, told).await;
    }

    /// Tells that nothing is kept for a principal.
    fn nothing_for(&self, kept: &Kept) {
        self.sink.publish_to(&kept.who, &self.spec.id, None);
    }

    /// Until nobody comes for them any more, which is then told.
    async fn read_on(&self, kept: &Kept) {
        let mut known = Known::default();
        let mut spacing = Spacing::new(Instant::now());
        loop {
            let identity = kept.identity.load_full();
            let deadline = Instant::now() + self.terms.timeouts.list;
            let found = timeout_at(deadline, self.found()).await;
            let off = matches!(found, Ok(None));
            let peer = found.ok().flatten();
            if peer.is_some() {
                kept.interest.begin();
            } else {
                kept.interest.away();
            }
            let mut ended = pin!(async {
                match &peer {
                    Some(peer) => tokio::select! {
                        biased;
                        () = self.left(peer) => kept.interest.away(),
                        () = peer.watch_for(&identity, &kept.refresh, &kept.interest) => {}
                    },
                    None if off => self.allowed().await,
                    None => drop(self.found().await),
                }
            });
            let mut due = Instant::now();
            let mut rung = false;
            loop {
                let began = Instant::now();
                let mark = kept.mark.load(Ordering::Relaxed);
                let latest = kept.identity.load_full();
                // Whatever is told of resources meanwhile is heard.
                let read = tokio::select! {
                    biased;
                    () = &mut ended => break,
                    read = self.read(peer.as_ref(), &latest, &kept.holder) => read,
                };
                let is_refused = read.as_ref().is_err_and(is_refusal);
                let news = if off {
                    known.withdraw()
                } else {
                    known.learn(read, began, self.spec.stale_for)
                };
                kept.holder.keep(known.offered.as_mut());
                if news {
                    let told = known.offered.clone();
                    self.sink.publish_to(&kept.who, &self.spec.id, told);
                }
                kept.settle(Read {
                    mark,
                    refused: is_refused.then_some(latest).into_iter().collect(),
                });
                // Whoever rings again and again does not keep that from coming.
                if !rung || known.failures > 0 {
                    due = Instant::now()
                        + pace(known.offered.as_ref(), self.spec.poll, known.failures);
                }
                rung = false;
                tokio::select! {
                    biased;
                    told = kept.refresh.rung(&spacing) => {
                        rung = true;
                        spacing.after(told.changed, COALESCE);
                    }
                    wanted = self.due(kept, began, due) => {
                        if !wanted {
                            return;
                        }
                        // With the token that they came with last.
                        if !identity.is_proof_of(&kept.identity.load()) {
                            break;
                        }
                    }
                    () = &mut ended => break,
                }
            }
        }
    }

    /// Reads for somebody, within the deadline of a list.
    async fn read(
        &self,
        peer: Option<&Arc<dyn Peer>>,
        identity: &Arc<Identity>,
        holder: &Holder,
    ) -> Result<Contribution, UpstreamError> {
        let peer = peer.ok_or_else(|| UpstreamError::unreached("not connected"))?;
        let deadline = Instant::now() + self.terms.timeouts.list;
        let reading = async {
            let _turn = self.terms.own.turns.acquire().await;
            peer.offer_to(identity, holder).await
        };
        let late = |_| {
            reached(Bound::DeadlineList);
            UpstreamError::Timeout(Deadline::List)
        };
        timeout_at(deadline, reading).await.map_err(late).flatten().inspect_err(|error| {
            tracing::info!(upstream = %self.spec.id, %error, "a principal's own lists could not be read");
        })
    }

    /// Waits until they are to be read again, at `at` at the earliest; whether they still are. If not they are forgotten.
    async fn due(&self, kept: &Kept, read_at: Instant, at: Instant) -> bool {
        sleep_until(at).await;
        loop {
            let last = self.terms.own.last(kept);
            if kept.is_held() || last > read_at {
                return true;
            }
            tokio::select! {
                () = kept.wanted.notified() => {}
                () = sleep_until(last + IDLE) => {
                    let left = || {
                        kept.holder.keep(None);
                        self.nothing_for(kept);
                    };
                    if self.terms.own.leave(kept, last, left).await {
                        return false;
                    }
                }
            }
        }
    }
}

/// What is known of what one principal is offered.
#[derive(Default)]
struct Known {
    offered: Option<Contribution>,
    /// When that was read.
    good_at: Option<Instant>,
    /// When it was first found since that the principal has to log in again.
    ended_at: Option<Instant>,
    /// Readings that have failed since.
    failures: u32,
}

impl Known {
    /// Nothing is offered to anybody; whether that is news.
    fn withdraw(&mut self) -> bool {
        std::mem::take(self).offered.is_some()
    }

    /// Takes in how a reading went; whether something else is known now. What was read last stays for `stale_for`, marked,
    /// unless it was refused. Where the principal has to log in again it stays from then on, and for as long as a login may
    /// take: the call that asks them to goes on afterwards, by a name of theirs.
    fn learn(
        &mut self,
        read: Result<Contribution, UpstreamError>,
        began: Instant,
        stale_for: Duration,
    ) -> bool {
        let next = match read {
            Ok(mut contribution) => {
                let kept = self.keep_good(&mut contribution);
                self.failures = if kept {
                    self.failures.saturating_add(1)
                } else {
                    0
                };
                self.good_at = Some(began);
                self.ended_at = None;
                Some(contribution)
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                if needs_login(&error) {
                    self.ended_at.get_or_insert(began);
                }
                let within = |at: Option<Instant>, most| at.is_some_and(|at| at.elapsed() < most);
                let fresh =
                    within(self.good_at, stale_for) || within(self.ended_at, stale_for.max(LOGIN));
                let kept = self
                    .offered
                    .clone()
                    .filter(|_| fresh && !is_refusal(&error));
                kept.map(|known| Contribution {
                    away: true,
                    ..known
                })
            }
        };
        let same = match (&self.offered, &next) {
            (Some(known), Some(next)) => known.offers_the_same(next),
            (None, None) => true,
            _ => false,
        };
        if !same {
            self.offered = next;
        }
        !same
    }
}

impl Known {
    /// Puts what was read last in the place of lists that have no end; whether there are any.
    fn keep_good(&self, next: &mut Contribution) -> bool {
        let Some(known) = &self.offered else {
            return false;
        };
        let mut kept = false;
        for kind in ListKind::EVERY {
            if known.listing(kind).outlasts(next.listing(kind)) {
                *next.listing_mut(kind) = known.listing(kind).clone();
                kept = true;
            }
        }
        kept
    }
}

/// Whether the principal has to log in again, and can.
const fn needs_login(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Credential(CredentialError::NotConnected)
    )
}

/// Whether an upstream, or who issues tokens for it, does not know this principal any more.
fn is_refusal(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Auth(_) => true,
        UpstreamError::Credential(CredentialError::NotConnected) => false,
        UpstreamError::Credential(CredentialError::Lacks(_)) => true,
        UpstreamError::Credential(error) => error.is_the_callers(),
        UpstreamError::Unavailable { .. }
        | UpstreamError::Timeout(_)
        | UpstreamError::Protocol(_)
        | UpstreamError::Undeclared(_)
        | UpstreamError::Status(_)
        | UpstreamError::Redirect(_)
        | UpstreamError::TooLarge(_)
        | UpstreamError::NoMemory
        | UpstreamError::RequestTooLarge
        | UpstreamError::Overloaded
        | UpstreamError::Engaged
        | UpstreamError::NeedsCapabilities(_)
        | UpstreamError::CannotVisit(_)
        | UpstreamError::OutcomeUnknown
        | UpstreamError::BadAnswer(_)
        | UpstreamError::Declined
        | UpstreamError::Refused(_) => false,
    }
}

/// Whoever watched something is away, and what was read is held by those alone who still wait or listen.
fn let_go(kept: &Kept) {
    kept.interest.away();
    kept.holder.keep(None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::Listing, json::Json};

    #[tokio::test(start_paused = true)]
    async fn what_was_read_stays_while_its_principal_logs_in_again_and_not_where_they_are_refused()
    {
        let stale_for = Duration::from_secs(60);
        let read = || Contribution {
            tools: Listing {
                items: [Json::of(&1)].into(),
                ..Listing::default()
            },
            ..Contribution::default()
        };
        let ended = || Err(UpstreamError::Credential(CredentialError::NotConnected));
        let mut known = Known::default();
        known.learn(Ok(read()), Instant::now(), stale_for);
        // However long ago it was read.
        tokio::time::advance(10 * LOGIN).await;
        assert!(known.learn(ended(), Instant::now(), stale_for));
        assert!(known.offered.as_ref().is_some_and(|own| own.away));
        tokio::time::advance(LOGIN - Duration::from_secs(1)).await;
        known.learn(ended(), Instant::now(), stale_for);
        assert!(known.offered.as_ref().is_some_and(|own| own.away));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(known.learn(ended(), Instant::now(), stale_for));
        assert!(known.offered.is_none());
        // They are not known any more.
        known.learn(Ok(read()), Instant::now(), stale_for);
        known.learn(Err(UpstreamError::denied(403)), Instant::now(), stale_for);
        assert!(known.offered.is_none());
    }

    /// SECURITY CAT-6
    #[test]
    fn a_list_without_an_end_takes_the_place_of_none_that_had_one() {
        let reading = |count: i64, endless| {
            Ok(Contribution {
                tools: Listing {
                    items: (0..count).map(|number| Json::of(&number)).collect(),
                    truncated: endless,
                    endless,
                    ..Listing::default()
                },
                ..Contribution::default()
            })
        };
        let mut known = Known::default();
        for (count, endless, offered, failures) in [
            // As long as there is nothing better.
            (2, true, 2, 0),
            (3, false, 3, 0),
            (2, true, 3, 1),
            (2, true, 3, 2),
            (4, false, 4, 0),
        ] {
            known.learn(reading(count, endless), Instant::now(), Duration::MAX);
            let tools = &known.offered.as_ref().unwrap().tools;
            assert_eq!((tools.items.len(), known.failures), (offered, failures));
        }
    }
}
