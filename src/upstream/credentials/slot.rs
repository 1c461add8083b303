//! The token of one principal: fetched once however many wait for it, renewed before it ends, dropped when it is refused.
//!
//! Guarantees: a token is handed out until 30 s before its end and no longer (SECURITY EGR-10), but for who waited for that
//! very token; one request is under way at a time; a failure is the answer for [`AGAIN`], so that an authorization server is
//! not asked once for each call, but not to who comes with another proof than was refused.

use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use aws_lc_rs::digest::{Digest, SHA256, digest};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use super::CredentialError;
use crate::{call::Identity, tasks::Tasks};

/// How long before its end a token is no longer used.
const MARGIN: Duration = Duration::from_secs(30);
/// How long before that it is renewed, if that is more than a fifth of its life.
const AHEAD: Duration = Duration::from_secs(60);
/// How long a failure is remembered.
pub(super) const AGAIN: Duration = Duration::from_secs(2);
/// Of how many proofs of one principal it is remembered that they were refused.
const REFUSED: usize = 4;
/// How long a refused token counts as a matter of permission and not of age.
const DISTRUST: Duration = Duration::from_secs(10);

/// A token as it is sent. Clones share its text, which is cleared with the last of them.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Token {
    /// `Bearer …`, sensitive.
    pub(in crate::upstream) header: HeaderValue,
    /// Until when it is handed out.
    good_until: Instant,
    /// From when on another one is asked for.
    renew_at: Instant,
}

impl Token {
    /// A token that lives for so long from now on.
    pub(super) fn living(header: HeaderValue, life: Duration) -> Self {
        let good = life.saturating_sub(MARGIN);
        let now = Instant::now();
        Self {
            header,
            good_until: now + good,
            renew_at: now + good.saturating_sub(AHEAD.min(life / 5)),
        }
    }

    fn is(&self, header: &HeaderValue) -> bool {
        self.header == header
    }
}

/// Asks for a token.
pub(super) type Asking = BoxFuture<'static, Result<Token, CredentialError>>;

/// The place of one principal's token.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Slot {
    /// Never held across an await.
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    token: Option<Token>,
    under_way: Option<Shared<Asking>>,
    failed: Option<(CredentialError, Instant)>,
    /// What was asked with last; nobody's proof where it is the gateway's own token.
    proof: Option<Proof>,
    /// The proofs that were refused last, and until when that is the answer to them.
    refused: VecDeque<Refused>,
    distrust_until: Option<Instant>,
}

/// A proof that was refused.
#[derive(Debug)]
struct Refused {
    proof: Option<Proof>,
    error: CredentialError,
    until: Instant,
}

impl Slot {
    /// A token that is good; asked for with `ask`, on the strength of `proof`, where there is none. What is asked for belongs to
    /// `tasks` and is finished also when nobody waits any more.
    ///
    /// # Errors
    /// Why there is none; right away while a failure is remembered.
    pub(super) async fn token(
        self: &Arc<Self>,
        proof: Option<&Arc<Identity>>,
        ask: impl Fn() -> Asking,
        tasks: &Tasks,
    ) -> Result<Token, CredentialError> {
        // A call that finds a good token looks no further.
        let fresh = self.held().fresh(Instant::now());
        if let Some(token) = fresh {
            return Ok(token);
        }
        let proof = proof.map(Proof::of);
        let begin = |held: &mut Held| {
            held.proof.clone_from(&proof);
            self.begin(held, ask(), tasks)
        };
        loop {
            let (waiting, is_theirs) = {
                let mut held = self.held();
                let now = Instant::now();
                let good = held.token.clone().filter(|token| now < token.good_until);
                let is_theirs = held.is_asked_with(proof.as_ref());
                let failed = held.failure(proof.as_ref(), now);
                match (good, failed, &held.under_way) {
                    (Some(token), failed, under_way) => {
                        if now >= token.renew_at && failed.is_none() && under_way.is_none() {
                            drop(begin(&mut held));
                        }
                        return Ok(token);
                    }
                    (None, _, Some(under_way)) => (under_way.clone(), is_theirs),
                    (None, Some(error), None) => return Err(error),
                    (None, None, None) => (begin(&mut held), true),
                }
            };
            match waiting.await {
                // Another proof was refused, and this one may not be.
                Err(error) if !is_theirs && error.is_the_callers() => {}
                answer => return answer,
            }
        }
    }

    fn begin(self: &Arc<Self>, held: &mut Held, ask: Asking, tasks: &Tasks) -> Shared<Asking> {
        let slot: Weak<Self> = Arc::downgrade(self);
        let asking = async move {
            // A panic is this asking's alone: the next one begins afresh.
            let answer = AssertUnwindSafe(ask).catch_unwind().await;
            let answer = answer.unwrap_or(Err(CredentialError::Panicked));
            if let Some(slot) = Weak::upgrade(&slot) {
                slot.learn(&answer);
            }
            answer
        };
        let asking = asking.boxed().shared();
        held.under_way = Some(asking.clone());
        tasks.spawn(asking.clone().map(drop));
        asking
    }

    fn learn(&self, answer: &Result<Token, CredentialError>) {
        let mut held = self.held();
        held.under_way = None;
        match answer {
            Ok(token) => {
                held.token = Some(token.clone());
                held.failed = None;
            }
            Err(error) if error.is_the_callers() => held.refuse(error),
            Err(error) => held.failed = Some((error.clone(), Instant::now() + AGAIN)),
        }
    }

    /// The upstream refused the token of this header as it would refuse an old one. Whether a fresh one is worth a try: not where a fresh one
    /// was refused a moment ago.
    pub(super) fn refused(&self, header: &HeaderValue) -> bool {
        let mut held = self.held();
        if !held.token.as_ref().is_some_and(|held| held.is(header)) {
            // Somebody has seen to it already; or it was too short-lived to be kept.
            return held.token.is_some() || held.under_way.is_some();
        }
        let now = Instant::now();
        if held.distrust_until.is_some_and(|until| now < until) {
            return false;
        }
        held.token = None;
        held.distrust_until = Some(now + DISTRUST);
        true
    }

    /// The token that is kept, bare.
    pub(super) fn text(&self) -> Option<SecretString> {
        let held = self.held();
        let header = held.token.as_ref()?.header.to_str().ok()?;
        header.strip_prefix("Bearer ").map(SecretString::from)
    }

    /// A panic under the lock leaves nothing half done, so poison says nothing.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// The token, unless it is due to be renewed.
    fn fresh(&self, now: Instant) -> Option<Token> {
        self.token
            .clone()
            .filter(|token| now < token.renew_at.min(token.good_until))
    }

    /// Whether this was asked with last.
    fn is_asked_with(&self, proof: Option<&Proof>) -> bool {
        are_one(self.proof.as_ref(), proof)
    }

    /// What went wrong a moment ago and is the answer to who comes with this.
    fn failure(&self, proof: Option<&Proof>, now: Instant) -> Option<CredentialError> {
        let failed = self.failed.as_ref().filter(|(_, until)| now < *until);
        let refused = || {
            let theirs = |it: &&Refused| now < it.until && are_one(it.proof.as_ref(), proof);
            self.refused.iter().find(theirs).map(|it| it.error.clone())
        };
        failed.map(|(error, _)| error.clone()).or_else(refused)
    }

    /// What was asked with last is refused. A principal may come with several proofs in turn.
    fn refuse(&mut self, error: &CredentialError) {
        let (proof, now) = (self.proof.clone(), Instant::now());
        self.failed = None;
        self.refused
            .retain(|it| now < it.until && !are_one(it.proof.as_ref(), proof.as_ref()));
        if self.refused.len() >= REFUSED {
            self.refused.pop_front();
        }
        self.refused.push_back(Refused {
            proof,
            error: error.clone(),
            until: now + AGAIN,
        });
    }
}

fn are_one(one: Option<&Proof>, other: Option<&Proof>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// What somebody came with. The token itself is not kept.
#[derive(Debug, Clone)]
struct Proof {
    identity: Weak<Identity>,
    /// Of the token, SHA-256: where what a token proves is found out anew for each request, it is another identity each time.
    digest: Option<Digest>,
}

impl Proof {
    fn of(identity: &Arc<Identity>) -> Self {
        let token = identity.assertion.as_ref();
        Self {
            identity: Arc::downgrade(identity),
            digest: token.map(|token| digest(&SHA256, token.0.expose_secret().as_bytes())),
        }
    }

    fn is(&self, other: &Self) -> bool {
        let digests = self.digest.as_ref().zip(other.digest.as_ref());
        self.identity.ptr_eq(&other.identity)
            || digests.is_some_and(|(own, other)| own.as_ref() == other.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::time::advance;

    use super::*;
    use crate::call::{Assertion, IdentityKind};

    /// Counts how often it is asked; each answer is another token with this life, after a second.
    #[derive(Clone)]
    struct Issuer(Arc<AtomicUsize>, Duration);

    impl Issuer {
        fn of(secs: u64) -> Self {
            Self(Arc::default(), Duration::from_secs(secs))
        }

        fn ask(&self) -> Asking {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            let life = self.1;
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let header = HeaderValue::try_from(format!("Bearer {number}")).unwrap();
                Ok(Token::living(header, life))
            })
        }

        fn asked(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    async fn text(slot: &Arc<Slot>, issuer: &Issuer, tasks: &Tasks) -> String {
        let token = slot.token(None, || issuer.ask(), tasks).await.unwrap();
        token.header.to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_who_wait_at_once_cost_one_request() {
        let (slot, issuer, tasks) = (Arc::new(Slot::default()), Issuer::of(300), Tasks::new());
        let all = join_all((0..100).map(|_| text(&slot, &issuer, &tasks))).await;
        assert!(all.iter().all(|token| token == "Bearer 0"));
        assert_eq!(issuer.asked(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn egr_10_a_token_is_renewed_ahead_and_never_used_within_30_s_of_its_end() {
        let (slot, issuer, tasks) = (Arc::new(Slot::default()), Issuer::of(300), Tasks::new());
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 0");
        advance(Duration::from_secs(209)).await;
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 0");
        assert_eq!(issuer.asked(), 1);
        // 90 s before its end another is asked for, and nobody waits for it.
        advance(Duration::from_secs(1)).await;
        let before = Instant::now();
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 0");
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(issuer.asked(), 2);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 1");
        // One that nobody asked for meanwhile is not used when too little of it is left.
        advance(Duration::from_secs(270)).await;
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_lives_no_longer_than_the_margin_serves_who_waited_for_it() {
        let (slot, issuer, tasks) = (Arc::new(Slot::default()), Issuer::of(30), Tasks::new());
        let both = tokio::join!(text(&slot, &issuer, &tasks), text(&slot, &issuer, &tasks));
        assert_eq!(both, ("Bearer 0".into(), "Bearer 0".into()));
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_token_is_replaced_once_and_not_again_at_once() {
        let (slot, issuer, tasks) = (Arc::new(Slot::default()), Issuer::of(300), Tasks::new());
        let first = slot.token(None, || issuer.ask(), &tasks).await.unwrap();
        assert!(slot.refused(&first.header));
        let second = slot.token(None, || issuer.ask(), &tasks).await.unwrap();
        assert!(!second.is(&first.header));
        // Who comes late with the old one finds the new one.
        assert!(slot.refused(&first.header));
        assert!(
            !slot.refused(&second.header),
            "a fresh one is refused: it is not its age"
        );
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 1");
        advance(DISTRUST).await;
        assert!(slot.refused(&second.header));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_the_answer_for_a_while() {
        let (slot, tasks) = (Arc::new(Slot::default()), Tasks::new());
        let fail = || -> Asking { Box::pin(async { Err(CredentialError::NoSubject) }) };
        assert!(slot.token(None, fail, &tasks).await.is_err());
        let issuer = Issuer::of(300);
        assert!(slot.token(None, || issuer.ask(), &tasks).await.is_err());
        assert_eq!(issuer.asked(), 0);
        advance(AGAIN).await;
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 0");
    }

    #[tokio::test(start_paused = true)]
    async fn asking_that_panics_is_a_failure_to_all_who_wait_and_the_next_begins_afresh() {
        let (slot, tasks) = (Arc::new(Slot::default()), Tasks::new());
        let panics = || -> Asking { Box::pin(async { panic!("on purpose") }) };
        let all = join_all((0..3).map(|_| slot.token(None, panics, &tasks))).await;
        for told in all {
            assert_eq!(told.unwrap_err(), CredentialError::Panicked);
        }
        let issuer = Issuer::of(300);
        advance(AGAIN).await;
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 0");
    }

    #[tokio::test(start_paused = true)]
    async fn that_one_proof_is_refused_is_no_answer_to_who_comes_with_another() {
        let (slot, issuer, tasks) = (Arc::new(Slot::default()), Issuer::of(300), Tasks::new());
        let refuse = || -> Asking {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Err(CredentialError::SubjectRefused("invalid_grant"))
            })
        };
        let proof = |token: &str| {
            Some(Arc::new(Identity {
                assertion: Some(Assertion(token.into())),
                ..Identity::named(IdentityKind::User, "ana")
            }))
        };
        let [old, new] = [proof("old"), proof("new")];
        // While it is being asked with the old one, and right after.
        let both = tokio::join!(
            slot.token(old.as_ref(), refuse, &tasks),
            slot.token(new.as_ref(), refuse, &tasks)
        );
        assert!(both.0.is_err() && both.1.is_err());
        let ask = || issuer.ask();
        // Nor does who comes with the two in turn have it asked once for each call.
        for _ in 0..3 {
            assert!(slot.token(new.as_ref(), ask, &tasks).await.is_err());
            assert!(slot.token(old.as_ref(), ask, &tasks).await.is_err());
        }
        // What the token proves may have been found out anew.
        assert!(
            slot.token(proof("old").as_ref(), ask, &tasks)
                .await
                .is_err()
        );
        assert_eq!(issuer.asked(), 0);
        let third = proof("third");
        assert!(slot.token(third.as_ref(), ask, &tasks).await.is_ok());
        assert_eq!(issuer.asked(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_is_finished_when_nobody_waits_any_more() {
        let (slot, issuer, tasks) = (Arc::new(Slot::default()), Issuer::of(300), Tasks::new());
        {
            let mut waiting = Box::pin(slot.token(None, || issuer.ask(), &tasks));
            assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = Instant::now();
        assert_eq!(text(&slot, &issuer, &tasks).await, "Bearer 0");
        assert_eq!(before.elapsed(), Duration::ZERO);
        assert_eq!(issuer.asked(), 1);
    }
}
