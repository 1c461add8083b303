//! Whether people are being asked: meanwhile an upstream may be silent, for it waits as everybody does (SECURITY 6).
//!
//! Guarantees: silence counts from the end of the last question at the earliest, however long that was open.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Who of one session is being asked.
#[derive(Debug, Default)]
pub struct Patience {
    // Held for a moment and never across an await; only where a question begins or ends, and where a stream has been silent.
    asking: Mutex<Asking>,
}

#[derive(Debug, Default)]
struct Asking {
    people: usize,
    /// Since when there is always somebody.
    since: Option<Instant>,
    /// When the last question ended.
    until: Option<Instant>,
}

/// Somebody is being asked, until this is dropped.
#[derive(Debug)]
pub struct Asked(Arc<Patience>);

impl Patience {
    /// Somebody is asked.
    pub fn ask(self: &Arc<Self>) -> Asked {
        let mut asking = self.asking();
        asking.people += 1;
        asking.since.get_or_insert_with(Instant::now);
        drop(asking);
        Asked(Arc::clone(self))
    }

    /// How long somebody has been asked without a break; nothing where nobody is.
    pub(super) fn lasts(&self) -> Duration {
        self.asking()
            .since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// From when silence counts that began at `since`.
    pub(super) fn counts_from(&self, since: Instant) -> Instant {
        let asking = self.asking();
        if asking.people > 0 {
            return Instant::now();
        }
        asking.until.map_or(since, |until| until.max(since))
    }

    /// A panic under the lock leaves two facts that are each true, so poison says nothing.
    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut asking = self.0.asking();
        asking.people = asking.people.saturating_sub(1);
        if asking.people == 0 {
            asking.since = None;
        }
        asking.until = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_end_of_the_last_question() {
        let (patience, began) = (Arc::<Patience>::default(), Instant::now());
        assert_eq!(patience.counts_from(began), began);
        assert_eq!(patience.lasts(), Duration::ZERO);
        let [first, last] = [patience.ask(), patience.ask()];
        advance(Duration::from_secs(2)).await;
        drop(first);
        advance(Duration::from_secs(2)).await;
        assert_eq!(patience.lasts(), Duration::from_secs(4));
        assert_eq!(patience.counts_from(began), Instant::now());
        drop(last);
        assert_eq!(patience.lasts(), Duration::ZERO);
        let ended = Instant::now();
        advance(Duration::from_secs(1)).await;
        assert_eq!(patience.counts_from(began), ended);
        let later = Instant::now();
        assert_eq!(patience.counts_from(later), later);
    }
}
