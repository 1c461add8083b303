//! The refresh signal: somebody says that lists are to be read again, and which.
//!
//! Guarantees: ringing never waits and keeps nothing but a bit a list; what is rung while nobody listens is heard later.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{events::Lists, protocol::methods::ListKind};

/// Each list that changes are told of.
const EACH: [Lists; 3] = [
    Lists::of(ListKind::Tools),
    Lists::of(ListKind::Prompts),
    Lists::of(ListKind::Resources),
];

/// Asks for the lists of one upstream to be read again. One supervisor listens.
#[derive(Debug, Default)]
pub struct RefreshSignal {
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
    /// Those of them that were said to have changed: such readings are spaced (SECURITY CAT-6).
    pub(super) changed: Lists,
}

/// When what is said to have changed may be read. Each list has its own time, so that changes of one, however many, do not
/// delay word of another.
#[derive(Debug)]
pub(super) struct Spacing {
    /// As [`EACH`].
    ready: [Instant; 3],
}

impl Spacing {
    /// Everything may be read from `now` on.
    pub(super) const fn new(now: Instant) -> Self {
        Self { ready: [now; 3] }
    }

    /// These were read because of a change, and are not again until `pause` has passed.
    pub(super) fn after(&mut self, lists: Lists, pause: Duration) {
        let until = Instant::now() + pause;
        for (ready, list) in self.ready.iter_mut().zip(EACH) {
            if !list.and(lists).is_empty() {
                *ready = until;
            }
        }
    }

    /// Those of `lists` whose time has come.
    fn due(&self, lists: Lists) -> Lists {
        let now = Instant::now();
        let due = self
            .ready
            .iter()
            .zip(EACH)
            .filter(|(ready, _)| **ready <= now);
        due.fold(Lists::NONE, |due, (_, list)| due | list)
            .and(lists)
    }

    /// When the next of `lists` may be read.
    fn next(&self, lists: Lists) -> Option<Instant> {
        let ready = self.ready.iter().zip(EACH);
        ready
            .filter(|(_, list)| !list.and(lists).is_empty())
            .map(|(ready, _)| *ready)
            .min()
    }
}

impl RefreshSignal {
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

    /// Waits until something is to be read: what changed when `spacing` lets it, what was missed at once.
    pub(super) async fn rung(&self, spacing: &Spacing) -> Rung {
        loop {
            let waiting = Lists::from_bits(self.changed.load(Ordering::SeqCst));
            let due = spacing.due(waiting);
            self.changed.fetch_and(!due.bits(), Ordering::SeqCst);
            let missed = Lists::from_bits(self.missed.swap(0, Ordering::SeqCst));
            if !(due | missed).is_empty() {
                return Rung {
                    lists: due | missed,
                    changed: due,
                };
            }
            match spacing.next(waiting) {
                None => self.rung.notified().await,
                Some(ready) => tokio::select! {
                    () = self.rung.notified() => {}
                    () = sleep_until(ready) => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: Lists = EACH[0];
    const PROMPTS: Lists = EACH[1];
    const PAUSE: Duration = Duration::from_secs(2);

    #[tokio::test(start_paused = true)]
    async fn what_changed_waits_its_turn_and_what_was_missed_does_not() {
        let refresh = RefreshSignal::default();
        let began = Instant::now();
        let mut spacing = Spacing::new(began);
        spacing.after(Lists::ALL, PAUSE);
        refresh.ring(TOOLS);
        refresh.missed(PROMPTS);
        let rung = refresh.rung(&spacing).await;
        assert_eq!((rung.lists, rung.changed), (PROMPTS, Lists::NONE));
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..1_000 {
            refresh.ring(TOOLS);
        }
        let rung = refresh.rung(&spacing).await;
        assert_eq!((rung.lists, rung.changed), (TOOLS, TOOLS));
        assert_eq!(began.elapsed(), PAUSE);
        let silent = refresh.rung(&spacing);
        assert!(
            tokio::time::timeout(Duration::from_secs(60), silent)
                .await
                .is_err()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_changes_again_and_again_does_not_hold_up_another() {
        let refresh = RefreshSignal::default();
        let began = Instant::now();
        let mut spacing = Spacing::new(began);
        refresh.ring(TOOLS);
        assert_eq!(refresh.rung(&spacing).await.changed, TOOLS);
        spacing.after(TOOLS, PAUSE);
        refresh.ring(TOOLS);
        refresh.ring(PROMPTS);
        assert_eq!(refresh.rung(&spacing).await.changed, PROMPTS);
        assert_eq!(began.elapsed(), Duration::ZERO);
        spacing.after(PROMPTS, PAUSE);
        refresh.ring(PROMPTS);
        assert_eq!(refresh.rung(&spacing).await.changed, TOOLS | PROMPTS);
        assert_eq!(began.elapsed(), PAUSE);
    }
}
