//! Searches of the audit log: how many there are at once, and when one ends though it is not through.
//!
//! Guarantees: auditors take no seat of operators; a search takes no longer than [`TIME`] and a piece of the log, however long
//! the log is; one that nobody waits for any more ends with the piece it is at, and so do all when the listener ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{Role, problem::Problem};

/// Searches at once of those who come with one role: each reads as fast as the disk gives.
const SEATS: usize = 2;
/// How long one may take. Then its answer says what was not looked at, and how to go on.
pub(super) const TIME: Duration = Duration::from_secs(10);

/// The searches of a listener.
pub(super) struct Searches {
    operators: Arc<Semaphore>,
    auditors: Arc<Semaphore>,
    stop: CancellationToken,
}

/// One of them, as it sees itself.
pub(super) struct Search {
    _seat: OwnedSemaphorePermit,
    gone: Arc<AtomicBool>,
    until: Instant,
    stop: CancellationToken,
}

/// Whoever waits for it: dropped when they do no more.
pub(super) struct Waiting(Arc<AtomicBool>);

impl Searches {
    /// None yet; all end with `stop`.
    pub(super) fn new(stop: CancellationToken) -> Self {
        let seats = || Arc::new(Semaphore::new(SEATS));
        Self {
            operators: seats(),
            auditors: seats(),
            stop,
        }
    }

    /// Begins one for somebody who comes as this.
    ///
    /// # Errors
    /// When there are too many for those who come so.
    pub(super) fn begin(&self, role: Option<Role>) -> Result<(Search, Waiting), Problem> {
        let (seats, word) = match role {
            Some(Role::Operator) => (&self.operators, Role::Operator.word()),
            Some(Role::Auditor) | None => (&self.auditors, Role::Auditor.word()),
        };
        let seat = Arc::clone(seats).try_acquire_owned().map_err(|_| {
            Problem::busy(format!(
                "{SEATS} searches run for {word}s already, which are all there may be; each ends within {} s: try again then",
                TIME.as_secs()
            ))
        })?;
        let gone = Arc::new(AtomicBool::new(false));
        let search = Search {
            _seat: seat,
            gone: Arc::clone(&gone),
            until: Instant::now() + TIME,
            stop: self.stop.clone(),
        };
        Ok((search, Waiting(gone)))
    }
}

impl Search {
    /// Whether it is to end now, as far as it came.
    pub(super) fn is_over(&self) -> bool {
        self.gone.load(Relaxed) || self.stop.is_cancelled() || Instant::now() >= self.until
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searches() -> (Searches, CancellationToken) {
        let stop = CancellationToken::new();
        (Searches::new(stop.clone()), stop)
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_is_over_when_its_time_is_or_nobody_waits_or_the_listener_ends() {
        let (searches, stop) = searches();
        let (search, waiting) = searches.begin(Some(Role::Auditor)).unwrap();
        let (other, _waits) = searches.begin(Some(Role::Auditor)).unwrap();
        let (third, _waits) = searches.begin(Some(Role::Operator)).unwrap();
        assert!(!search.is_over());
        drop(waiting);
        assert!(search.is_over() && !other.is_over());
        tokio::time::advance(TIME - Duration::from_millis(1)).await;
        assert!(!other.is_over());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(other.is_over() && third.is_over());
        let (late, _waits) = searches.begin(Some(Role::Operator)).unwrap();
        assert!(!late.is_over());
        stop.cancel();
        assert!(late.is_over());
    }

    #[tokio::test]
    async fn auditors_take_no_seat_of_operators_and_who_is_one_too_many_is_told_when_to_come_again()
    {
        let (searches, _stop) = searches();
        let begin = |role| searches.begin(Some(role));
        let held: Vec<_> = (0..SEATS).map(|_| begin(Role::Auditor).unwrap()).collect();
        let Err(problem) = begin(Role::Auditor) else {
            panic!("one too many");
        };
        assert_eq!(
            (problem.status.as_u16(), problem.reason),
            (503, "overloaded")
        );
        assert!(problem.retry.is_some());
        let (search, waiting) = begin(Role::Operator).unwrap();
        drop((held, search, waiting));
        assert!(begin(Role::Auditor).is_ok());
    }
}
