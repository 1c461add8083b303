//! Event streams for those who look on: one writer each, which stops when they do.
//!
//! Guarantees: at most 64 streams at once; what a reader does not take is held to a few events; a comment every 15 s shows that
//! a silent stream lives; a stream ends with the listener. Deliberately absent: going on where a stream broke off, which the
//! audit log answers by its numbers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::mpsc, time::interval};

use super::{asked::Bench, problem::Problem, reply};
use crate::{json::Json, server::Body};

/// Events that wait for a reader.
const WAITING: usize = 16;
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(15);
/// The name of the event that tells of others that are passed over.
pub(super) const MISSED: &str = "missed";

/// Where events come from.
pub(super) trait Source: Send + 'static {
    /// The next ones, worded; `None` when there will be no more. Dropping the future loses none.
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Bytes>>>;
}

/// An open stream of what `source` gives.
///
/// # Errors
/// When there are too many already.
pub(super) fn events(bench: &Bench, mut source: impl Source) -> Result<Response<Body>, Problem> {
    let seat = Arc::clone(&bench.streams).try_acquire_owned();
    let seat = seat.map_err(|_| Problem::busy("too many follow something already"))?;
    let (told, events) = mpsc::channel(WAITING);
    let stop = bench.tasks.token().clone();
    bench.tasks.spawn_orderly(async move {
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
