//! What an upstream offers to each principal alone, read with their own token (PROTOCOL D4, D5, SECURITY STATE-5).
//!
//! Guarantees: a list that was read for somebody is told of them and of nobody else; it is read when they need it first, again
//! when its time is up and they still come, when their own connection says that it changed, and at the latest when they come
//! after that; reading never waits in front of somebody who has been read for, until they log in anew; when their token is refused
//! nothing is left, unless they have only to log in again: then a call by a name from these lists asks them to.
//! Bounds: [`MAX`] principals an upstream, of whom those who came least lately go first, forgotten after [`IDLE`]; [`TURNS`]
//! readings at once; what they read counts, once, for what is held of the upstream.

mod reading;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    holdings::{Holder, Holdings},
    refresh_signal::RefreshSignal,
};
use crate::{
    call::{Grantee, Identity},
    events::{Lists, ResourceInterest},
};

/// The most principals of one upstream whose lists are kept.
const MAX: usize = 1_000;
/// How long lists are kept that nobody comes for.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// Of how many proofs of one principal it is remembered that they were refused.
const REFUSED: usize = 4;
/// How many principals are read for at once.
const TURNS: usize = 8;

/// Everybody whose lists of one upstream are kept.
#[derive(Debug)]
pub(super) struct Own {
    kept: DashMap<Grantee, Arc<Kept>>,
    /// Held while somebody is added, so that the bound holds. Never across an await, nor while anything is told: calls wait for it.
    adding: Mutex<()>,
    /// Held from before somebody is forgotten until it is told that nothing is kept for them. Whoever reads waits for it first, so
    /// that this undoes nothing that is told of them then; no call does.
    telling: tokio::sync::Mutex<()>,
    most: usize,
    /// What is held of what is offered, to everybody and to each.
    holdings: Arc<Holdings>,
    turns: Semaphore,
    began: Instant,
}

/// The lists of one principal, or that they are being read.
#[derive(Debug)]
pub(super) struct Kept {
    who: Grantee,
    /// As they came last.
    identity: ArcSwap<Identity>,
    /// Where it is told that they are others now.
    refresh: RefreshSignal,
    /// Which of these resources are wanted, and who hears of their changes.
    interest: Arc<ResourceInterest>,
    /// How they were read last.
    read_for: watch::Sender<Option<Read>>,
    /// Cancelled when they are not to be kept any longer.
    over: CancellationToken,
    /// When they were wanted last, in milliseconds since the beginning.
    used: AtomicU64,
    wanted: Notify,
    /// What their token stands on, as its credentials say.
    mark: AtomicU64,
    /// One more for each who waits for changes.
    held: Arc<()>,
    /// Holds what was read.
    holder: Holder,
}

/// A reading that is over, however it went.
#[derive(Debug, Clone)]
struct Read {
    /// What the token stood on.
    mark: u64,
    /// Who was refused, where that is how it went, the last first: with another proof they may not be. They may come with several
    /// in turn, so those of the readings just before are among them.
    refused: Vec<Arc<Identity>>,
}

/// Lists that somebody wants. They are kept at least for as long as it is held.
#[derive(Debug)]
pub struct Claim {
    kept: Arc<Kept>,
    _held: Arc<()>,
}

impl Claim {
    /// Whether they were read with what their token stands on, or could not be, or are not kept any longer.
    pub fn is_settled(&self) -> bool {
        self.kept.is_settled() || self.kept.over.is_cancelled()
    }

    /// Waits until that is so.
    pub async fn settled(&self) {
        let mut readings = self.kept.read_for.subscribe();
        let read = async {
            let settles = |read: &Option<Read>| self.kept.is_settled_by(read.as_ref());
            drop(readings.wait_for(settles).await);
        };
        tokio::select! {
            () = read => {}
            () = self.kept.over.cancelled() => {}
        }
    }
}

impl Own {
    /// Nobody's yet; what is read counts for these holdings.
    pub(super) fn new(holdings: Arc<Holdings>) -> Self {
        Self::of(MAX, holdings)
    }

    fn of(most: usize, holdings: Arc<Holdings>) -> Self {
        Self {
            kept: DashMap::new(),
            adding: Mutex::default(),
            telling: tokio::sync::Mutex::default(),
            most,
            holdings,
            turns: Semaphore::new(TURNS),
            began: Instant::now(),
        }
    }

    /// The lists of this principal, which comes with a token that stands on `mark`; who is new is handed to `begin`.
    fn claim(
        &self,
        identity: &Arc<Identity>,
        mark: u64,
        interest: &ResourceInterest,
        begin: impl FnOnce(Arc<Kept>),
    ) -> Claim {
        let who = identity.grantee();
        let known = self.kept.get(&who).map(|kept| self.wanted(&kept));
        let claim = known.unwrap_or_else(|| {
            let _one = self.one();
            if let Some(kept) = self.kept.get(&who) {
                return self.wanted(&kept);
            }
            while self.kept.len() >= self.most && self.let_one_go() {}
            let kept = Arc::new(Kept {
                who: who.clone(),
                identity: ArcSwap::new(Arc::clone(identity)),
                refresh: RefreshSignal::default(),
                interest: interest.own(&who),
                read_for: watch::Sender::default(),
                over: CancellationToken::new(),
                used: AtomicU64::new(0),
                wanted: Notify::new(),
                mark: AtomicU64::new(mark),
                held: Arc::default(),
                holder: self.holdings.holder(),
            });
            self.kept.insert(who, Arc::clone(&kept));
            begin(Arc::clone(&kept));
            self.wanted(&kept)
        });
        let kept = &claim.kept;
        if !kept.identity.load().is_proof_of(identity) {
            kept.identity.store(Arc::clone(identity));
            kept.look_at_proof();
        }
        kept.look(Some(mark));
        kept.wanted.notify_one();
        claim
    }

    /// They are wanted now. While its place in the map is held, in which [`Own::leave`] looks whether they are.
    fn wanted(&self, kept: &Arc<Kept>) -> Claim {
        kept.used.store(self.now(), Ordering::Relaxed);
        Claim {
            _held: Arc::clone(&kept.held),
            kept: Arc::clone(kept),
        }
    }

    fn one(&self) -> MutexGuard<'_, ()> {
        // It guards no data of its own, so poison says nothing.
        self.adding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of who came least lately, of those whom nobody waits for or listens for if there are any.
    fn let_one_go(&self) -> bool {
        let held = |kept: &Arc<Kept>| Arc::strong_count(&kept.held) > 1;
        let used = |kept: &Arc<Kept>| kept.used.load(Ordering::Relaxed);
        let oldest = self.kept.iter().min_by_key(|kept| (held(kept), used(kept)));
        let Some(oldest) = oldest.map(|kept| Arc::clone(&kept)) else {
            return false;
        };
        self.forget(&oldest);
        true
    }

    fn forget(&self, kept: &Kept) {
        kept.over.cancel();
        self.kept.remove_if(&kept.who, |_, other| other.is(kept));
    }

    /// Forgets who has not come since `last`; whether that is so. If it is, `told` is called before anybody is read for anew, so
    /// that it undoes nothing that is told of them then.
    async fn leave(&self, kept: &Kept, last: Instant, told: impl FnOnce()) -> bool {
        let _telling = self.telling.lock().await;
        let left = {
            let _one = self.one();
            let left = self.kept.remove_if(&kept.who, |_, other| {
                other.is(kept) && !kept.is_held() && self.last(kept) <= last
            });
            if left.is_some() {
                kept.over.cancel();
                // Whoever comes next may have the same interest.
                kept.interest.away();
            }
            left.is_some()
        };
        if left {
            told();
        }
        left
    }

    /// Forgets somebody, whether or not they still come; `told` as of [`Own::leave`], unless they came anew already.
    async fn end(&self, kept: &Kept, told: impl FnOnce()) {
        let _telling = self.telling.lock().await;
        let came_anew = {
            let _one = self.one();
            self.forget(kept);
            self.kept.contains_key(&kept.who)
        };
        if !came_anew {
            told();
        }
    }

    /// Waits until all is told of who was forgotten until now.
    async fn told(&self) {
        drop(self.telling.lock().await);
    }

    /// Somebody's own connection says that these lists are others now.
    pub(super) fn ring(&self, who: &Identity, lists: Lists) {
        if let Some(kept) = self.kept.get(&who.grantee()) {
            kept.refresh.ring(lists);
        }
    }

    /// Somebody's own connection says that a resource is not as it was. False when nobody watches it for them.
    pub(super) fn updated(&self, who: &Identity, uri: &str) -> bool {
        let kept = self.kept.get(&who.grantee()).map(|kept| Arc::clone(&kept));
        kept.is_some_and(|kept| kept.interest.updated(uri))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When somebody came last.
    fn last(&self, kept: &Kept) -> Instant {
        self.began + Duration::from_millis(kept.used.load(Ordering::Relaxed))
    }
}

impl Kept {
    /// Whether these are the same, and not those of the same principal that are read anew.
    fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }

    /// They stand on something else now, or on nothing: what was read is read again.
    fn look(&self, mark: Option<u64>) {
        let mark = mark.unwrap_or(u64::MAX);
        if self.mark.swap(mark, Ordering::Relaxed) != mark {
            self.refresh.missed(Lists::ALL);
        }
    }

    /// They were read, or could not be.
    fn settle(&self, mut read: Read) {
        self.read_for.send_modify(|last| {
            let same = |last: &&Read| last.mark == read.mark && !read.refused.is_empty();
            let before = last.as_ref().filter(same);
            for refused in before.iter().flat_map(|last| &last.refused) {
                let known = read.refused.iter().any(|it| are_one(it, refused));
                if !known && read.refused.len() < REFUSED {
                    read.refused.push(Arc::clone(refused));
                }
            }
            *last = Some(read);
        });
        // They may have come with another proof meanwhile.
        self.look_at_proof();
    }

    /// With another proof than was refused they are read for again.
    fn look_at_proof(&self) {
        let read = self.read_for.borrow();
        if read.as_ref().is_some_and(|read| self.refused_another(read)) {
            self.refresh.missed(Lists::ALL);
        }
    }

    fn is_settled(&self) -> bool {
        self.is_settled_by(self.read_for.borrow().as_ref())
    }

    fn is_settled_by(&self, read: Option<&Read>) -> bool {
        read.is_some_and(|read| {
            read.mark == self.mark.load(Ordering::Relaxed) && !self.refused_another(read)
        })
    }

    /// Whether who was refused then came with another proof than they come with now.
    fn refused_another(&self, read: &Read) -> bool {
        let now = self.identity.load();
        !read.refused.is_empty() && !read.refused.iter().any(|refused| are_one(refused, &now))
    }

    fn is_held(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }
}

fn are_one(proof: &Arc<Identity>, other: &Arc<Identity>) -> bool {
    proof.is_proof_of(other) || proof.came_with_the_token_of(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::{Assertion, IdentityKind},
        upstream::refresh_signal::Spacing,
    };

    fn own(most: usize) -> Own {
        Own::of(most, Holdings::new(usize::MAX))
    }

    fn somebody(name: &str) -> Arc<Identity> {
        with_token(name, None)
    }

    fn with_token(name: &str, token: Option<&str>) -> Arc<Identity> {
        Arc::new(Identity {
            assertion: token.map(|token| Assertion(token.into())),
            ..Identity::named(IdentityKind::User, name)
        })
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_least_lately_goes_when_there_are_too_many() {
        let own = own(3);
        let mut begun = 0;
        for name in ["ana", "ben", "eve", "ana", "kim"] {
            tokio::time::advance(Duration::from_millis(5)).await;
            drop(
                own.claim(&somebody(name), 0, &ResourceInterest::default(), |_| {
                    begun += 1
                }),
            );
        }
        assert_eq!((own.kept.len(), begun), (3, 4));
        let is_kept = |name: &str| own.kept.contains_key(&somebody(name).grantee());
        assert_eq!(
            ["ana", "ben", "eve", "kim"].map(is_kept),
            [true, false, true, true]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_listens_is_kept_though_others_came_later() {
        let own = own(2);
        let listens = own.claim(&somebody("ana"), 0, &ResourceInterest::default(), |_| {});
        for name in ["ben", "eve"] {
            tokio::time::advance(Duration::from_millis(5)).await;
            drop(own.claim(&somebody(name), 0, &ResourceInterest::default(), |_| {}));
        }
        let is_kept = |name: &str| own.kept.contains_key(&somebody(name).grantee());
        assert_eq!(["ana", "ben", "eve"].map(is_kept), [true, false, true]);
        // And let go of where all are held: there are never more than that.
        let other = own.claim(&somebody("ben"), 0, &ResourceInterest::default(), |_| {});
        drop(own.claim(&somebody("kim"), 0, &ResourceInterest::default(), |_| {}));
        assert_eq!(["ana", "ben", "kim"].map(is_kept), [false, true, true]);
        drop((listens, other));
    }

    #[tokio::test(start_paused = true)]
    async fn who_stands_on_something_else_is_read_for_again_and_nobody_else_is() {
        let own = own(3);
        let interest = ResourceInterest::default();
        let first = own.claim(&somebody("ana"), 1, &interest, |_| {});
        let other = own.claim(&somebody("ben"), 1, &interest, |_| {});
        let spacing = Spacing::new(Instant::now());
        drop(own.claim(&somebody("ana"), 1, &interest, |_| {}));
        let silent = |claim: &Claim| {
            let rung = futures_util::FutureExt::now_or_never(claim.kept.refresh.rung(&spacing));
            rung.is_none()
        };
        assert!(silent(&first));
        drop(own.claim(&somebody("ana"), 2, &interest, |_| {}));
        assert!(!silent(&first) && silent(&other));
        own.ring(&somebody("ben"), Lists::ALL);
        assert!(silent(&first) && !silent(&other));
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_when_their_lists_are_about_to_be_forgotten_is_kept() {
        let own = own(3);
        let claim = || own.claim(&somebody("ana"), 0, &ResourceInterest::default(), |_| {});
        let held = claim();
        let kept = Arc::clone(&held.kept);
        let last = own.last(&kept);
        tokio::time::advance(IDLE).await;
        let leaves = |last| own.leave(&kept, last, || {});
        assert!(!leaves(last).await, "somebody waits for them");
        drop(held);
        drop(claim());
        assert!(!leaves(last).await, "they came meanwhile");
        assert!(!kept.over.is_cancelled());
        assert!(leaves(own.last(&kept)).await);
        assert!(kept.over.is_cancelled() && own.kept.is_empty());
    }

    #[tokio::test]
    async fn nobody_is_read_for_anew_before_it_is_told_that_nothing_is_kept() {
        let (own, ana, interest) = (own(3), somebody("ana"), ResourceInterest::default());
        let order = Mutex::new(Vec::new());
        let note = |what: &'static str| order.lock().unwrap().push(what);
        let noted = || std::mem::take(&mut *order.lock().unwrap());
        // As reading begins.
        let may_read = || futures_util::FutureExt::now_or_never(own.told()).is_some();
        for idle in [true, false] {
            let kept = own.claim(&ana, 0, &interest, |_| {}).kept;
            let told = || {
                assert!(own.adding.try_lock().is_ok(), "no call waits");
                drop(own.claim(&ana, 0, &interest, |_| note("begun")));
                assert!(!may_read(), "whoever reads does");
                note("told");
            };
            if idle {
                assert!(own.leave(&kept, own.last(&kept), told).await);
            } else {
                own.end(&kept, told).await;
            }
            assert!(may_read());
            assert_eq!(noted(), ["begun", "told"]);
            // What is told from now on is for whoever reads now to tell.
            own.end(&kept, || note("told")).await;
            assert!(noted().is_empty());
            let anew = own.claim(&ana, 0, &interest, |_| note("begun"));
            own.forget(&anew.kept);
            own.end(&anew.kept, || note("told")).await;
            assert_eq!(noted(), ["told"]);
        }
    }

    /// A grant has one mark, whatever token somebody comes with.
    #[tokio::test(start_paused = true)]
    async fn who_was_refused_and_comes_with_another_token_is_read_for_again_and_waited_for() {
        let own = own(3);
        let claim = |who: &Arc<Identity>| own.claim(who, 0, &ResourceInterest::default(), |_| {});
        let token = |token| with_token("ana", Some(token));
        let (old, new) = (token("old"), token("new"));
        let refused = |who: &Arc<Identity>| Read {
            mark: 0,
            refused: vec![Arc::clone(who)],
        };
        let first = claim(&old);
        first.kept.settle(refused(&old));
        let spacing = Spacing::new(Instant::now());
        let rings = |claim: &Claim| {
            let rung = futures_util::FutureExt::now_or_never(claim.kept.refresh.rung(&spacing));
            rung.is_some()
        };
        // With the same token there is nothing to wait for, also where what it proves was found out anew.
        assert!(claim(&old).is_settled() && !rings(&first));
        assert!(claim(&token("old")).is_settled() && !rings(&first));
        let second = claim(&new);
        assert!(!second.is_settled() && rings(&second));
        // A reading that began with the old one.
        second.kept.settle(refused(&old));
        assert!(!second.is_settled() && rings(&second));
        second.kept.settle(refused(&new));
        assert!(second.is_settled());
        // Who comes with the two in turn is not read for again each time.
        for who in [&old, &new, &old] {
            let again = claim(who);
            assert!(again.is_settled() && !rings(&again));
        }
        // Who was read for needs not be read for again with each token.
        let read = Read {
            mark: 0,
            refused: Vec::new(),
        };
        second.kept.settle(read);
        let third = claim(&somebody("ana"));
        assert!(third.is_settled() && !rings(&third));
    }

    #[tokio::test(start_paused = true)]
    async fn who_logs_in_anew_is_waited_for_until_that_was_read() {
        let own = own(3);
        let claim = |mark| own.claim(&somebody("ana"), mark, &ResourceInterest::default(), |_| {});
        let read = |mark| Read {
            mark,
            refused: Vec::new(),
        };
        let first = claim(1);
        assert!(!first.is_settled());
        first.kept.settle(read(1));
        assert!(first.is_settled() && claim(1).is_settled());
        let second = claim(2);
        assert!(!second.is_settled(), "what was read was another login's");
        // A reading that began before the login was another.
        second.kept.settle(read(1));
        assert!(!second.is_settled());
        let waits = second.settled();
        let reads = async {
            tokio::task::yield_now().await;
            second.kept.settle(read(2));
        };
        tokio::join!(waits, reads);
        assert!(first.is_settled() && second.is_settled());
        // Nobody waits for what is not kept.
        let third = claim(3);
        own.forget(&third.kept);
        third.settled().await;
        assert!(third.is_settled());
    }
}
