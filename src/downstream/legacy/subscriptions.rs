//! The resources that one session is subscribed to, or asks to be.
//!
//! Guarantees: of one resource one listen is heard; who unsubscribes ends that, and what is not confirmed yet as well; there are
//! only so many, those that are asked for among them. Deliberately absent: listening.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use super::{Session, notice::Notice};

/// Those of one session, by outward URI.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    // Held for single looks and changes only.
    table: Mutex<Table>,
}

type Table = HashMap<Arc<str>, Subscription>;

#[derive(Debug)]
struct Subscription {
    /// Cancelled when its client wants no more of it, and when the session ends.
    unwanted: CancellationToken,
    /// Requests for it that are not answered yet.
    asked: usize,
    /// Ends the task that hears of it, or tries to hear of it again.
    hearing: Option<CancellationToken>,
    /// Whether it hears of it now.
    in_force: bool,
}

/// Why nothing can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotNow {
    /// There are too many.
    TooMany,
    /// The session has ended.
    Ended,
}

/// A request to subscribe, until it is dropped.
#[derive(Debug)]
pub(super) struct Asking {
    session: Arc<Session>,
    uri: Arc<str>,
    /// Cancelled when its client wants no more of it, and when the session ends.
    pub(super) unwanted: CancellationToken,
}

/// A subscription that was confirmed, for the task that hears of it; dropped, it is over.
#[derive(Debug)]
pub(super) struct Hearing {
    session: Arc<Session>,
    uri: Arc<str>,
    /// Cancelled when nobody is to hear of it any more by this.
    pub(super) over: CancellationToken,
}

impl Subscriptions {
    /// How many are confirmed.
    pub(super) fn count(&self) -> usize {
        let table = self.lock();
        table.values().filter(|it| it.hearing.is_some()).count()
    }

    fn end(&self, uri: &str) {
        // Under the lock: whoever holds a token that is not cancelled finds what it is of.
        let mut table = self.lock();
        if let Some(subscription) = table.remove(uri) {
            subscription.unwanted.cancel();
        }
    }

    /// Forgets all, for a session that ends.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// No longer subscribed, and nothing more is told of it. That it never was is no error.
    pub(super) fn unsubscribe(&self, uri: &str) {
        self.subscriptions.end(uri);
        self.outbox.forget(uri);
    }
}

impl Asking {
    /// Asks for one more, where there are less than `most`; `None` where it is in force.
    ///
    /// # Errors
    /// When there are too many, or the session has ended.
    pub(super) fn of(
        session: &Arc<Session>,
        uri: &Arc<str>,
        most: usize,
    ) -> Result<Option<Self>, NotNow> {
        let mut table = session.subscriptions.lock();
        if session.ended.is_cancelled() {
            return Err(NotNow::Ended);
        }
        let full = table.len() >= most;
        let subscription = match table.entry(uri.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if full => return Err(NotNow::TooMany),
            Entry::Vacant(place) => place.insert(Subscription {
                unwanted: session.ended.child_token(),
                asked: 0,
                hearing: None,
                in_force: false,
            }),
        };
        if subscription.in_force {
            return Ok(None);
        }
        subscription.asked += 1;
        Ok(Some(Self {
            session: session.clone(),
            uri: uri.clone(),
            unwanted: subscription.unwanted.clone(),
        }))
    }

    /// A listen of it is confirmed, which is the one to be heard: unless another is by now, or the client wants no more of it.
    pub(super) fn confirmed(self) -> Option<Hearing> {
        let (over, before) = {
            let mut table = self.session.subscriptions.lock();
            let subscription = table.get_mut(&self.uri)?;
            if self.unwanted.is_cancelled() || subscription.in_force {
                return None;
            }
            let over = self.unwanted.child_token();
            subscription.in_force = true;
            (over.clone(), subscription.hearing.replace(over))
        };
        // There was one that waited to be heard again: what changed in between was not heard.
        if let Some(before) = before {
            before.cancel();
            let missed = Notice::updated(self.uri.clone());
            self.session.outbox.notify(missed);
        }
        Some(Hearing {
            session: self.session.clone(),
            uri: self.uri.clone(),
            over,
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut table = self.session.subscriptions.lock();
        if self.unwanted.is_cancelled() {
            return;
        }
        if let Some(subscription) = table.get_mut(&self.uri) {
            subscription.asked -= 1;
            if subscription.asked == 0 && subscription.hearing.is_none() {
                table.remove(&self.uri);
            }
        }
    }
}

impl Hearing {
    /// Whether it hears of it now: who asks meanwhile is told how it stands by a listen of their own.
    pub(super) fn set_in_force(&self, in_force: bool) {
        self.change(|subscription| subscription.in_force = in_force);
    }

    fn change(&self, change: impl FnOnce(&mut Subscription)) {
        let mut table = self.session.subscriptions.lock();
        if self.over.is_cancelled() {
            return;
        }
        if let Some(subscription) = table.get_mut(&self.uri) {
            change(subscription);
            if subscription.asked == 0 && subscription.hearing.is_none() {
                table.remove(&self.uri);
            }
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.change(|subscription| {
            subscription.hearing = None;
            subscription.in_force = false;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(session: &Arc<Session>, uri: &str) -> Result<Option<Asking>, NotNow> {
        Asking::of(session, &uri.into(), 2)
    }

    #[test]
    fn what_is_asked_for_takes_a_place_and_gives_it_back_unless_it_is_confirmed() {
        let session = Session::for_tests();
        let (one, two) = (asking(&session, "a"), asking(&session, "b"));
        assert_eq!(asking(&session, "c").unwrap_err(), NotNow::TooMany);
        // The same once more is one.
        let again = asking(&session, "a").unwrap().unwrap();
        drop((two, again));
        let _three = asking(&session, "c").unwrap().unwrap();
        assert_eq!(session.subscriptions.count(), 0);
        let heard = one.unwrap().unwrap().confirmed().unwrap();
        assert_eq!(session.subscriptions.count(), 1);
        assert!(asking(&session, "a").unwrap().is_none(), "it is in force");
        assert_eq!(asking(&session, "b").unwrap_err(), NotNow::TooMany);
        drop(heard);
        assert!(asking(&session, "b").is_ok());
        session.end();
        assert_eq!(asking(&session, "a").unwrap_err(), NotNow::Ended);
    }

    #[test]
    fn who_unsubscribes_ends_what_is_asked_for_and_what_is_heard() {
        let session = Session::for_tests();
        let early = asking(&session, "a").unwrap().unwrap();
        session.unsubscribe("a");
        assert!(early.unwanted.is_cancelled());
        let heard = asking(&session, "a").unwrap().unwrap().confirmed().unwrap();
        assert!(early.confirmed().is_none());
        assert!(!heard.over.is_cancelled(), "it was asked for later");
        session.unsubscribe("a");
        assert!(heard.over.is_cancelled());
        let later = asking(&session, "a").unwrap().unwrap().confirmed();
        drop(heard);
        assert_eq!(session.subscriptions.count(), 1);
        drop(later);
    }

    #[test]
    fn of_two_at_once_one_is_heard_and_one_that_is_not_heard_now_makes_way() {
        let session = Session::for_tests();
        let (one, two) = (asking(&session, "a"), asking(&session, "a"));
        let heard = one.unwrap().unwrap().confirmed().unwrap();
        assert!(two.unwrap().unwrap().confirmed().is_none());
        heard.set_in_force(false);
        let anew = asking(&session, "a").unwrap().unwrap().confirmed().unwrap();
        assert!(heard.over.is_cancelled());
        // It has nothing to say any more.
        heard.set_in_force(false);
        drop(heard);
        assert!(asking(&session, "a").unwrap().is_none());
        drop(anew);
        assert_eq!(session.subscriptions.count(), 0);
    }
}
