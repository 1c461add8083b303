//! Whether an upstream is there: when to try again, and when to stop asking.
//!
//! Guarantees: attempts are spaced from 1 s to 60 s ±20 %, restarts of a process are bounded in number over time
//! (SECURITY 6), and an upstream that only fails is left alone until it was probed (REL-2).

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use tokio::{sync::Notify, time::Instant};

use super::{Deadline, Reached, UpstreamError};
use crate::metrics::{Bound, reached};

/// The shortest and the longest wait between attempts.
pub(super) const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// A connection that held this long was a good one: the next wait is the shortest again.
const GOOD: Duration = Duration::from_secs(60);
/// The time in which quick attempts are counted; those beyond the bound come every 60 s.
const WINDOW: Duration = Duration::from_secs(300);

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    /// To start a process, of which there is a bound (SECURITY 6).
    Process,
    /// To connect to a server, which stops nobody from coming back.
    Connection,
}

/// How long to wait before each attempt to connect again.
#[derive(Debug)]
pub(super) struct Backoff {
    tried: Tried,
    /// The most quick attempts in [`WINDOW`].
    quick: usize,
    failures: u32,
    attempts: VecDeque<Instant>,
}

impl Backoff {
    /// No attempt of this kind yet; at most so many quick ones in five minutes.
    pub(super) const fn new(tried: Tried, quick: usize) -> Self {
        Self {
            tried,
            quick,
            failures: 0,
            attempts: VecDeque::new(),
        }
    }

    /// A connection ended that had held for `lived`.
    pub(super) fn ended_after(&mut self, lived: Duration) {
        if lived >= GOOD {
            self.failures = 0;
        }
    }

    /// The wait before the next attempt: 1 s doubled for each failure in a row, 60 s at most and after as many attempts in
    /// five minutes as may be quick; ±20 %, but never less than 1 s.
    pub(super) fn wait(&mut self) -> Duration {
        let now = Instant::now();
        while self
            .attempts
            .front()
            .is_some_and(|attempt| now.duration_since(*attempt) >= WINDOW)
        {
            self.attempts.pop_front();
        }
        let wait = if self.attempts.len() >= self.quick {
            if self.tried == Tried::Process {
                reached(Bound::StdioRestarts);
            }
            LONGEST
        } else {
            LONGEST.min(FIRST * 2_u32.saturating_pow(self.failures.min(6)))
        };
        self.failures = self.failures.saturating_add(1);
        if self.attempts.len() >= self.quick {
            self.attempts.pop_front();
        }
        let wait = jittered(wait).max(FIRST);
        self.attempts.push_back(now + wait);
        wait
    }
}

/// How long to wait before a stream that nobody owes us is opened again: 1 s, doubled for each that ended soon, 30 s at most.
#[derive(Debug, Default)]
pub(super) struct Pause {
    soon: u32,
}

impl Pause {
    const LONGEST: Duration = Duration::from_secs(30);

    /// The wait, after a stream that was open for `lived`; zero for one that did not open.
    pub(super) fn after(&mut self, lived: Duration) -> Duration {
        if lived >= Self::LONGEST {
            self.soon = 0;
        }
        let wait = Self::LONGEST.min(FIRST * 2_u32.saturating_pow(self.soon.min(6)));
        self.soon = self.soon.saturating_add(1);
        jittered(wait)
    }

    /// The same, but nothing where it is the first in a long time.
    pub(super) fn after_the_first(&mut self, lived: Duration) -> Duration {
        let wait = self.after(lived);
        if self.soon == 1 { Duration::ZERO } else { wait }
    }
}

/// A duration, ±20 %.
pub(super) fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(0.8 + 0.4 * fastrand::f64())
}

/// Connection failures in a row after which an upstream is asked no more until it was probed, and calls in a row that nobody
/// answered in time after which it is asked whether it answers anything.
const TRIP: u32 = 5;

/// Whether no connection came about, though one was tried.
pub(super) const fn is_unconnected(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Unavailable {
            reached: Reached::Never,
            ..
        } | UpstreamError::Timeout(Deadline::Connect)
    )
}

/// Counts calls that could not reach the upstream, and those that were not answered in time. Whoever answers was reached, whatever
/// the answer; and where nothing was sent, nothing failed once more ([`Reached`]).
#[derive(Debug, Default)]
pub(super) struct Circuit {
    failures: AtomicU32,
    tripped: Notify,
    unanswered: AtomicU32,
    silent: Notify,
}

impl Circuit {
    /// Learns how a call went. The fifth failed connection in a row trips the circuit; the fifth call in a row that is not answered
    /// in time is a reason to look.
    pub(super) fn learn<T>(&self, outcome: &Result<T, UpstreamError>) {
        match outcome {
            Err(
                UpstreamError::Unavailable {
                    reached: Reached::No | Reached::Never,
                    ..
                }
                | UpstreamError::Timeout(Deadline::Connect),
            ) => {
                if self.failures.fetch_add(1, Ordering::Relaxed) + 1 == TRIP {
                    self.tripped.notify_one();
                }
            }
            // These say nothing about the connection.
            Err(
                UpstreamError::Overloaded
                | UpstreamError::Engaged
                | UpstreamError::BadAnswer(_)
                | UpstreamError::Declined
                | UpstreamError::Timeout(Deadline::ConnectOfAnother)
                | UpstreamError::Unavailable {
                    reached: Reached::Unsent,
                    ..
                },
            ) => {}
            // It may hang, or take its time over these.
            Err(UpstreamError::Timeout(_)) => {
                if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 == TRIP {
                    self.silent.notify_one();
                }
            }
            Ok(_)
            | Err(
                UpstreamError::Unavailable {
                    reached: Reached::Yes | Reached::Busy | Reached::Forgotten | Reached::Misspoken,
                    ..
                }
                | UpstreamError::Protocol(_)
                | UpstreamError::Undeclared(_)
                | UpstreamError::Status(_)
                | UpstreamError::Auth(_)
                | UpstreamError::Credential(_)
                | UpstreamError::Redirect(_)
                | UpstreamError::TooLarge(_)
                | UpstreamError::NoMemory
                | UpstreamError::RequestTooLarge
                | UpstreamError::NeedsCapabilities(_)
                | UpstreamError::CannotVisit(_)
                | UpstreamError::OutcomeUnknown
                | UpstreamError::Refused(_),
            ) => {
                // Read before written: a healthy upstream's calls share the cache line.
                for count in [&self.failures, &self.unanswered] {
                    if count.load(Ordering::Relaxed) != 0 {
                        count.store(0, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Whether it is the first in a row for which no connection came about: a reason to look whether any does.
    pub(super) fn is_startling<T>(&self, outcome: &Result<T, UpstreamError>) -> bool {
        self.failures() == 0 && outcome.as_ref().is_err_and(is_unconnected)
    }

    /// Connections that failed in a row until now.
    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Forgets what was learnt, after a connection was made.
    pub(super) fn reset(&self) {
        self.failures.store(0, Ordering::Relaxed);
        // A trip of the connection before must not end the new one.
        let _already = self.tripped.notified().now_or_never();
        self.answered();
    }

    /// Forgets calls that were not answered in time: something else was.
    pub(super) fn answered(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
        let _already = self.silent.notified().now_or_never();
    }

    /// Whether several calls in a row were not answered in time, and none since.
    pub(super) fn is_silent(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) >= TRIP
    }

    /// Resolves when several calls in a row were not answered in time.
    pub(super) async fn silent(&self) {
        self.silent.notified().await;
    }

    /// Resolves when the circuit trips.
    pub(super) async fn tripped(&self) {
        self.tripped.notified().await;
    }
}

/// Doubt whether a server still speaks in the way that it was reached in. It is kept until it is heard of.
#[derive(Debug, Default)]
pub(super) struct Doubt(Notify);

impl Doubt {
    /// An answer speaks against it.
    pub(super) fn cast(&self) {
        self.0.notify_one();
    }

    /// Resolves when there is doubt, and again when there is more.
    pub(super) async fn arisen(&self) {
        self.0.notified().await;
    }

    /// Whether there was.
    #[cfg(test)]
    pub(super) fn take(&self) -> bool {
        self.0.notified().now_or_never().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::seen;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_from_one_second_to_sixty_and_five_in_five_minutes_are_the_most() {
        let mut backoff = Backoff::new(Tried::Process, 5);
        let (mut waits, mut noted) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            seen::take();
            let wait = backoff.wait();
            waits.push(wait.as_secs_f64());
            noted.push(seen::take().len());
            tokio::time::advance(wait).await;
        }
        assert_eq!(noted, [0, 0, 0, 0, 0, 1, 1, 1]);
        for (wait, about) in waits
            .iter()
            .zip([1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 60.0, 60.0])
        {
            assert!(
                (about * 0.8..=about * 1.2).contains(wait) && *wait >= 1.0,
                "{waits:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_to_connect_wait_as_long_and_are_no_starts_of_a_process() {
        let mut backoff = Backoff::new(Tried::Connection, 5);
        seen::take();
        for _ in 0..5 {
            tokio::time::advance(backoff.wait()).await;
        }
        assert!(backoff.wait() >= LONGEST.mul_f64(0.8));
        assert!(seen::take().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_held_makes_the_next_wait_short() {
        let mut backoff = Backoff::new(Tried::Process, 5);
        for _ in 0..3 {
            tokio::time::advance(backoff.wait()).await;
        }
        tokio::time::advance(WINDOW).await;
        backoff.ended_after(GOOD);
        assert!(backoff.wait() <= Duration::from_millis(1200));
        backoff.ended_after(Duration::from_secs(59));
        assert!(backoff.wait() > Duration::from_millis(1500));
    }

    #[tokio::test(start_paused = true)]
    async fn five_lost_connections_in_a_row_trip_the_circuit_and_any_answer_in_between_does_not() {
        let circuit = Circuit::default();
        let lost = || Err::<(), _>(UpstreamError::unreached("x"));
        for _ in 0..4 {
            circuit.learn(&lost());
        }
        circuit.learn(&Err::<(), _>(UpstreamError::Protocol(String::new())));
        for _ in 0..4 {
            circuit.learn(&lost());
        }
        let mut tripped = Box::pin(circuit.tripped());
        assert!(futures_util::poll!(tripped.as_mut()).is_pending());
        circuit.learn(&lost());
        tripped.await;
        circuit.learn(&Ok(()));
        // Whoever answers was reached, and where nothing was sent nothing failed.
        let answered = UpstreamError::answered("x");
        let refused = UpstreamError::away("x", http::StatusCode::TOO_MANY_REQUESTS);
        let unreached = UpstreamError::away("x", http::StatusCode::BAD_GATEWAY);
        let with_others = [
            &lost().unwrap_err(),
            &UpstreamError::Timeout(Deadline::Connect),
        ];
        let with_others = with_others.map(UpstreamError::with_others);
        for error in [answered, refused, unreached.unsent(Instant::now())]
            .into_iter()
            .chain(with_others)
        {
            for _ in 0..4 {
                circuit.learn(&lost());
            }
            circuit.learn(&Err::<(), _>(error));
            assert!(circuit.failures() < 5);
            circuit.learn(&Ok(()));
        }
        // A gateway in front of it that did not reach it has.
        circuit.learn(&Err::<(), _>(unreached));
        assert_eq!(circuit.failures(), 1);
        circuit.learn(&Ok(()));
        for _ in 0..5 {
            circuit.learn(&lost());
        }
        circuit.reset();
        let mut tripped = Box::pin(circuit.tripped());
        assert!(futures_util::poll!(tripped.as_mut()).is_pending());
    }
}
