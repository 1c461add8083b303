//! What time it is, asked of the system once in each turn of a task.
//!
//! A call is looked at by some twenty parties that note when it came or how long something took. In the few microseconds of a
//! turn it is the same time for all of them, and asking costs as much as what most of them do.
//!
//! Guarantees: inside a [`turn`] the time is at most as old as the turn, or as the last [`passed`] in it; outside it is always
//! asked for. It never goes back.

use std::{cell::Cell, time::Duration};

use tokio::time::Instant;

thread_local! {
    static TURN: Cell<Turn> = const { Cell::new(Turn::None) };
}

#[derive(Clone, Copy)]
enum Turn {
    /// Nobody said that it is short.
    None,
    /// In which nobody has asked yet.
    Begun,
    /// In which this was the answer.
    At(Instant),
}

/// Polls, which takes no longer than a task may keep its thread.
pub fn turn<T>(poll: impl FnOnce() -> T) -> T {
    let _end = match TURN.get() {
        Turn::None => Some(End::begin()),
        // It is a part of one.
        Turn::Begun | Turn::At(_) => None,
    };
    poll()
}

/// The time.
pub fn now() -> Instant {
    match TURN.get() {
        Turn::At(at) => at,
        Turn::None => Instant::now(),
        Turn::Begun => {
            let now = Instant::now();
            TURN.set(Turn::At(now));
            now
        }
    }
}

/// How long ago that was; nothing if it is still to come.
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Something was done that may have taken a while.
pub fn passed() {
    if let Turn::At(_) = TURN.get() {
        TURN.set(Turn::Begun);
    }
}

/// The time, asked for now: for what begins, or has just ended, and may take long.
pub fn now_fresh() -> Instant {
    passed();
    now()
}

/// The turn is over, in a panic too.
struct End;

impl End {
    fn begin() -> Self {
        TURN.set(Turn::Begun);
        Self
    }
}

impl Drop for End {
    fn drop(&mut self) {
        TURN.set(Turn::None);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tokio::time::advance;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// The clock of a test stands still but for this, also in the middle of a turn.
    fn later() {
        let mut ahead = Box::pin(advance(HOUR));
        let waker = std::task::Waker::noop();
        _ = ahead
            .as_mut()
            .poll(&mut std::task::Context::from_waker(waker));
    }

    #[tokio::test(start_paused = true)]
    async fn in_a_turn_it_is_the_time_that_was_first_asked_for_until_some_has_passed() {
        let began = Instant::now();
        turn(|| {
            later();
            assert_eq!(now() - began, HOUR);
            later();
            assert_eq!(since(began), HOUR);
            // A part of it is no turn of its own.
            turn(|| assert_eq!(since(began), HOUR));
            assert_eq!(since(began), HOUR);
            passed();
            assert_eq!(since(began), 2 * HOUR);
            assert_eq!(since(began + 3 * HOUR), Duration::ZERO);
            later();
            assert_eq!(since(began), 2 * HOUR);
            assert_eq!(now_fresh() - began, 3 * HOUR);
        });
        later();
        assert_eq!(since(began), 4 * HOUR);
        later();
        passed();
        assert_eq!(since(began), 5 * HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_panics_is_over() {
        let panics = || turn(|| -> () { panic!("{:?}", now()) });
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let before = now();
        later();
        assert_eq!(since(before), HOUR);
    }
}
