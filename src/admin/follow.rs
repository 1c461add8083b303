//! Event streams for those who look on: one writer each, which stops when they do.
//!
//! Guarantees: at most 64 streams at once for each role, so that auditors take no seat of operators; what a reader does not take is held to a few events; a comment every 15 s shows that
//! a silent stream lives; a stream ends with the listener. Deliberately absent: going on where a stream broke off, which the
//! audit log answers by its numbers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::interval,
};

use super::{Role, problem::Problem, reply};
use crate::{json::Json, server::Body, tasks::Tasks};

/// Streams at once of those who come with one role.
const STREAMS: usize = 64;
/// Events that wait for a reader.
const WAITING: usize = 16;
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(15);
/// The name of the event that tells of others that are passed over.
pub(super) const MISSED: &str = "missed";

/// The seats of those who look on.
pub(super) struct Seats {
    operators: Arc<Semaphore>,
    auditors: Arc<Semaphore>,
}

impl Default for Seats {
    fn default() -> Self {
        let seats = || Arc::new(Semaphore::new(STREAMS));
        Self {
            operators: seats(),
            auditors: seats(),
        }
    }
}

impl Seats {
    /// One, for somebody who comes as this.
    ///
    /// # Errors
    /// When there is none left for those who come so.
    fn take(&self, role: Option<Role>) -> Result<OwnedSemaphorePermit, Problem> {
        let seats = match role {
            Some(Role::Operator) => &self.operators,
            Some(Role::Auditor) | None => &self.auditors,
        };
        let seat = Arc::clone(seats).try_acquire_owned();
        seat.map_err(|_| Problem::busy("too many follow something already"))
    }
}

/// Where events come from.
pub(super) trait Source: Send + 'static {
    /// The next ones, worded; `None` when there will be no more. Dropping the future loses none.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Bytes>>>;
}

/// An open stream of what `source` gives, for somebody who comes as this.
///
/// # Errors
/// When there are too many already for those who come so.
pub(super) fn events(
    seats: &Seats,
    tasks: &Tasks,
    role: Option<Role>,
    mut source: impl Source,
) -> Result<Response<Body>, Problem> {
    let seat = seats.take(role)?;
    let (told, events) = mpsc::channel(WAITING);
    let stop = tasks.token().clone();
    tasks.spawn_orderly(async move {
        let _seat = seat;
        let mut alive = interval(SILENCE);
        // The first is due at once: the stream begins with it, so that its reader knows that it is open.
        loop {
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = told.closed() => return,
                _ = alive.tick() => Some(vec![Bytes::from_static(b":\n\n")]),
                next = source.next() => next,
            };
            let Some(next) = next else { return };
            for event in next {
                tokio::select! {
                    () = stop.cancelled() => return,
                    sent = told.send(event) => if sent.is_err() { return },
                }
            }
        }
    });
    Ok(reply::events(Body::channel(events, ())))
}

/// The event that tells of so many that are passed over, since the reader was too slow for them.
pub(super) fn missed(missed: u64) -> Bytes {
    event(MISSED, &Json::of(&Missed { missed }))
}

/// What is passed over, since whoever reads was too slow for it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Missed {
    /// How many events.
    missed: u64,
}

/// One event of this name.
pub(super) fn event(name: &str, json: &Json) -> Bytes {
    // What we serialise stands in one line.
    format!("event: {name}\ndata: {}\n\n", json.as_str()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auditors_take_no_seat_of_operators() {
        let seats = Seats::default();
        let mut held: Vec<_> = (0..STREAMS)
            .map(|_| seats.take(Some(Role::Auditor)).unwrap())
            .collect();
        let problem = seats.take(Some(Role::Auditor)).unwrap_err();
        assert_eq!(
            (problem.status.as_u16(), problem.reason),
            (503, "overloaded")
        );
        held.push(seats.take(Some(Role::Operator)).unwrap());
        drop(held);
        assert!(seats.take(Some(Role::Auditor)).is_ok());
    }
}
