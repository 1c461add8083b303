//! Event streams for those who look on: one writer each, which stops when they do.
//!
//! Guarantees: at most 64 streams at once; what a reader does not take is held to a few events; a comment every 15 s shows that
//! a silent stream lives; a stream ends with the listener. Deliberately absent: going on where a stream broke off, which the
//! audit log answers by its numbers.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::Response;
use tokio::{
    sync::mpsc,
    time::{interval, sleep},
};

use super::{api::audit::Record, operations::Bench, problem::Problem, reply};
use crate::{
    audit::{chain::Line, entry::Entry, log::segments, query::Filter},
    json::Json,
    server::Body,
};

/// Events that wait for a reader.
const WAITING: usize = 16;
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(15);
/// How often the log is looked at for what was written since.
const LOOK: Duration = Duration::from_millis(250);
/// The most of the log that is read at one look.
const BITE: u64 = 256 << 10;

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

/// One event of this name.
pub(super) fn event(name: &str, json: &Json) -> Bytes {
    // What we serialise stands in one line.
    format!("event: {name}\ndata: {}\n\n", json.as_str()).into()
}

/// Follows an audit log from where it ends.
pub(super) struct Follower {
    directory: PathBuf,
    filter: Filter,
    place: Option<Place>,
    /// Whether the last look ended before the log did.
    more: bool,
}

/// How far the log was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The first number of the segment.
    segment: u64,
    /// Bytes of it that were read: whole lines.
    read: u64,
}

impl Follower {
    /// Only what is written from now on.
    pub(super) fn at_the_end(directory: PathBuf, filter: Filter) -> Self {
        let place = || {
            let last = segments(&directory).ok()?.pop()?;
            let read = std::fs::metadata(&last.path).ok()?.len();
            Some(Place {
                segment: last.first,
                read,
            })
        };
        let place = place();
        Self {
            directory,
            filter,
            place,
            more: false,
        }
    }

    /// What was written since, as far as one bite goes.
    fn look(&mut self) -> io::Result<Vec<Bytes>> {
        let mut events = Vec::new();
        self.more = false;
        for segment in segments(&self.directory)? {
            let known = self.place.map_or(0, |place| place.segment);
            if segment.first < known {
                continue;
            }
            let from = match self.place {
                Some(place) if place.segment == segment.first => place.read,
                Some(_) | None => 0,
            };
            let mut file = match File::open(&segment.path) {
                // Retention may have taken it away.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            file.seek(SeekFrom::Start(from))?;
            let mut text = Vec::new();
            file.take(BITE).read_to_end(&mut text)?;
            // What is not a whole line yet is read again when it is.
            let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
            text.truncate(whole);
            self.place = Some(Place {
                segment: segment.first,
                read: from + whole as u64,
            });
            events.extend(
                text.split(|byte| *byte == b'\n')
                    .filter_map(|it| self.told(it)),
            );
            if whole as u64 > BITE / 2 {
                self.more = true;
                break;
            }
        }
        Ok(events)
    }

    fn told(&self, line: &[u8]) -> Option<Bytes> {
        let line = Line::parse(line)?;
        let entry = Entry::parse(line.event)?;
        let record = self.filter.matches(&entry);
        let record = record.then(|| Record::of(line.seq, line.event)).flatten()?;
        Some(event("record", &Json::of(&record)))
    }
}

impl Source for Follower {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Bytes>>> {
        async {
            loop {
                sleep(if self.more { Duration::ZERO } else { LOOK }).await;
                // A few blocks of a file that was just written: they are in memory.
                match self.look() {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return Some(events),
                    Err(error) => {
                        tracing::error!(%error, "the audit log cannot be followed");
                        return None;
                    }
                }
            }
        }
        .boxed()
    }
}
