//! Event streams for those who look on: one writer each, which stops when they do.
//!
//! Guarantees: at most 64 streams at once; what a reader does not take is held to a few events; a comment every 15 s shows that
//! a silent stream lives; a stream ends with the listener. Deliberately absent: going on where a stream broke off, which the
//! audit log answers by its numbers.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
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
    audit::{chain::Line, entry::Entry, follow::Follower, log::segments, query::Filter},
    json::Json,
    server::Body,
};

/// Events that wait for a reader.
const WAITING: usize = 16;
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(15);
/// How often the log is looked at for what was written since.
const LOOK: Duration = Duration::from_millis(250);
/// The same after some were read that nobody wanted.
const NEXT: Duration = Duration::from_millis(1);
/// What is read of the log at once.
const RECORDS: usize = 256;
const BYTES: usize = 256 << 10;
/// What surely has a whole record in it: none is longer than half of it (SECURITY 6).
const TAIL: u64 = 128 << 10;

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

/// The records of an audit log that are written from now on.
pub(super) struct Records {
    follower: Follower,
    filter: Filter,
}

impl Records {
    /// Those of this log that `filter` wants.
    ///
    /// # Errors
    /// When nobody can tell where the log ends now.
    pub(super) fn from_now_on(directory: &Path, filter: &Filter) -> io::Result<Self> {
        Ok(Self {
            follower: Follower::after(directory, last(directory)?),
            filter: filter.as_written(),
        })
    }

    fn told(&self, line: &[u8]) -> Option<Bytes> {
        let line = Line::parse(line)?;
        let entry = Entry::parse(line.event)?;
        let wanted = self.filter.matches(&entry);
        let record = wanted.then(|| Record::of(line.seq, line.event)).flatten()?;
        Some(event("record", &Json::of(&record)))
    }
}

impl Source for Records {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<Bytes>>> {
        async {
            loop {
                // A piece of a file that was just written: it is in memory.
                let batch = match self.follower.read(RECORDS, BYTES) {
                    Ok(batch) => batch,
                    Err(error) => {
                        tracing::error!(%error, "the audit log cannot be followed");
                        return None;
                    }
                };
                let events: Vec<_> = batch.lines().filter_map(|line| self.told(line)).collect();
                if !events.is_empty() {
                    return Some(events);
                }
                sleep(if batch.is_empty() { LOOK } else { NEXT }).await;
            }
        }
        .boxed()
    }
}

/// The number of the last record of a log; 0 of an empty one.
fn last(directory: &Path) -> io::Result<u64> {
    let Some(segment) = segments(directory)?.pop() else {
        return Ok(0);
    };
    let mut file = File::open(&segment.path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut text = Vec::new();
    file.take(TAIL).read_to_end(&mut text)?;
    let mut lines = text.split(|byte| *byte == b'\n').rev();
    let last = lines.find_map(|line| Some(Line::parse(line)?.seq));
    Ok(last.unwrap_or_else(|| segment.first.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::chain::{Origin, Place, link};

    fn lines(events: &[&str]) -> (Vec<u8>, Place) {
        let origin = Origin {
            node: "n".to_owned(),
            boot: "b".to_owned(),
        };
        let (mut text, mut last) = (Vec::new(), Place::START);
        for event in events {
            last = link(&mut text, event.as_bytes(), &last, &origin);
        }
        (text, last)
    }

    #[test]
    fn a_log_is_followed_from_its_end_and_one_that_cannot_be_read_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(last(directory.path()).unwrap(), 0);
        let (text, end) = lines(&[r#"{"v":1}"#; 3]);
        let name = format!("{:020}-0000.jsonl", 1);
        std::fs::write(directory.path().join(name), text).unwrap();
        assert_eq!((last(directory.path()).unwrap(), end.seq), (3, 3));
        let none = directory.path().join("none");
        assert!(Records::from_now_on(&none, &Filter::default()).is_err());
    }

    #[test]
    fn a_filter_means_what_records_make_of_what_it_says() {
        let directory = tempfile::tempdir().unwrap();
        let mut text = String::new();
        crate::audit::canonical::text(&mut text, "a\u{202e}b", 100);
        let event = format!(r#"{{"event":"call","target":{{"exposed":{text}}}}}"#);
        let (line, _) = lines(&[&event]);
        let told = |name: &str| {
            let filter = Filter {
                name: Some(name.to_owned()),
                ..Filter::default()
            };
            let records = Records::from_now_on(directory.path(), &filter).unwrap();
            records.told(line.trim_ascii_end()).is_some()
        };
        assert!(told("a\u{202e}b"));
        assert!(!told("ab"));
    }
}
