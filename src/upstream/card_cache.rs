//! The card of a server: what it said of itself last, in either era. It may come to say other things, as where it is redeployed (PROTOCOL C4).
//!
//! Guarantees: reading takes no lock. Deliberately absent: when a server is asked, which is each era's own.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{sync::Notify, time::Instant};

use super::promised::Promised;
use crate::{call::ServerCard, protocol::extensions::Offers};

/// What a server said of itself last.
pub(super) struct CardCache {
    last: ArcSwap<CachedCard>,
    /// Tells whenever it said something else.
    news: Notify,
}

/// One card, and what of it every call asks for.
pub(super) struct CachedCard {
    pub(super) card: Arc<ServerCard>,
    pub(super) offers: Offers,
    learned: Instant,
}

impl CachedCard {
    fn of(card: ServerCard) -> Arc<Self> {
        Arc::new(Self {
            offers: Offers::of(&card.capabilities, card.revision.features()),
            card: Arc::new(card),
            learned: Instant::now(),
        })
    }
}

impl CardCache {
    /// It said this first.
    pub(super) fn new(card: ServerCard) -> Self {
        Self {
            last: ArcSwap::new(CachedCard::of(card)),
            news: Notify::new(),
        }
    }

    /// The card.
    pub(super) fn card(&self) -> Arc<ServerCard> {
        Arc::clone(&self.last.load().card)
    }

    /// How long ago it said so.
    pub(super) fn age(&self) -> Duration {
        self.last.load().learned.elapsed()
    }

    /// Reads something of it, for as long as no other card takes its place.
    pub(super) fn read<T>(&self, read: impl FnOnce(&CachedCard) -> T) -> T {
        read(&self.last.load())
    }

    /// It says this now; whether that is something else.
    pub(super) fn learn(&self, card: ServerCard) -> bool {
        let next = CachedCard::of(card);
        let news = !next.card.says_the_same(&self.last.load().card);
        // Where it says the same, for how long may still be another time.
        self.last.store(next);
        if news {
            self.news.notify_waiters();
        }
        news
    }

    /// Resolves when it promises to tell of other things than these.
    pub(super) async fn promises_other_than(&self, before: Promised) {
        loop {
            let news = self.news.notified();
            if self.read(|cached| Promised::of(&cached.card)) != before {
                return;
            }
            news.await;
        }
    }
}
