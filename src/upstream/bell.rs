//! The bell: somebody says that lists are to be read again, and which.
//!
//! Guarantees: ringing never waits and keeps nothing but a bit a list; what is rung while nobody listens is heard later.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::events::Lists;

/// The bell of one upstream. One supervisor listens.
#[derive(Debug, Default)]
pub(super) struct Bell {
    /// Lists that are said to be others now.
    changed: AtomicU8,
    /// Lists whose changes may have been missed.
    missed: AtomicU8,
    rung: Notify,
}

/// What was rung for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rung {
    pub(super) lists: Lists,
    /// Whether any was said to have changed: such readings are spaced (SECURITY CAT-6).
    pub(super) changed: bool,
}

impl Bell {
    /// These lists are others now, says somebody.
    pub(super) fn ring(&self, lists: Lists) {
        self.put(&self.changed, lists);
    }

    /// Changes of these lists may have been missed while nobody told of them.
    pub(super) fn missed(&self, lists: Lists) {
        self.put(&self.missed, lists);
    }

    fn put(&self, bits: &AtomicU8, lists: Lists) {
        if !lists.is_empty() {
            bits.fetch_or(lists.bits(), Ordering::SeqCst);
            self.rung.notify_one();
        }
    }

    /// Waits until something is to be read: what changed not before `ready`, what was missed at once.
    pub(super) async fn rung(&self, ready: Instant) -> Rung {
        loop {
            let changed = Lists::from_bits(self.changed.load(Ordering::SeqCst));
            let due = !changed.is_empty() && Instant::now() >= ready;
            let missed = Lists::from_bits(self.missed.swap(0, Ordering::SeqCst));
            if due {
                let changed = Lists::from_bits(self.changed.swap(0, Ordering::SeqCst));
                return Rung {
                    lists: changed | missed,
                    changed: true,
                };
            }
            if !missed.is_empty() {
                return Rung {
                    lists: missed,
                    changed: false,
                };
            }
            if changed.is_empty() {
                self.rung.notified().await;
            } else {
                tokio::select! {
                    () = self.rung.notified() => {}
                    () = sleep_until(ready) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::protocol::methods::ListKind;

    const TOOLS: Lists = Lists::of(ListKind::Tools);
    const PROMPTS: Lists = Lists::of(ListKind::Prompts);

    #[tokio::test(start_paused = true)]
    async fn what_changed_waits_its_turn_and_what_was_missed_does_not() {
        let bell = Bell::default();
        let began = Instant::now();
        let ready = began + Duration::from_secs(2);
        bell.ring(TOOLS);
        bell.missed(PROMPTS);
        let rung = bell.rung(ready).await;
        assert_eq!((rung.lists, rung.changed), (PROMPTS, false));
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..1_000 {
            bell.ring(TOOLS);
        }
        let rung = bell.rung(ready).await;
        assert_eq!((rung.lists, rung.changed), (TOOLS, true));
        assert_eq!(began.elapsed(), Duration::from_secs(2));
        let silent = bell.rung(ready);
        assert!(
            tokio::time::timeout(Duration::from_secs(60), silent)
                .await
                .is_err()
        );
    }
}
