//! Places that records go to beside the file: each reads the file on its own, behind the calls.
//!
//! Guarantees: no call ever waits for a sink; a record reaches each sink at least once, in order, across restarts, from the
//! number kept in a file beside the log (SECURITY AUD-9), unless retention was faster, which is counted and told; checkpoints go
//! there like any record, so that a cut tail of the file is known elsewhere (AUD-4). Cost: nothing on the path of a call; a thread
//! for each sink, which holds at most one batch. Deliberately absent: any claim that what a sink holds is the truth: the file is.

mod lines;
mod otlp;

#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use http::HeaderName;
use secrecy::SecretString;

pub use lines::Lines;
pub use otlp::Otlp;

use super::{
    export::Resource,
    follow::{Batch, Follower},
};
use crate::{
    fetch::{Address, Fetcher},
    findings::Scrub,
};

/// What the streams are called.
const STDOUT: &str = "stdout";
/// See [`STDOUT`].
const STDERR: &str = "stderr";

/// How often it is looked for new records.
const LOOK: Duration = Duration::from_millis(200);
/// How often in a row records cannot be read before that is told: retention may take away what is about to be read.
const UNREAD: u32 = 5;
/// The first and the longest pause after a delivery that failed.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// The most records and, about, bytes of one delivery.
const BATCH: (usize, usize) = (512, 1 << 20);
/// How long the end waits for what is there to be delivered.
const FAREWELL: Duration = Duration::from_secs(3);

/// Which sinks there are beside the files. Default: none.
#[derive(Debug, Clone, Default)]
pub struct SinksSpec {
    /// Where lines go to.
    pub lines: Option<Stream>,
    /// A receiver of OpenTelemetry.
    pub otlp: Option<OtlpSpec>,
}

/// A stream of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// stdout.
    Stdout,
    /// stderr, where stdout carries something else.
    Stderr,
}

/// A receiver of OpenTelemetry's log records over HTTP.
#[derive(Debug, Clone)]
pub struct OtlpSpec {
    /// Its address, the path included.
    pub address: Address,
    /// What is sent with every request, beside what the protocol says.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// Roots to trust there instead of the system's, in PEM.
    pub ca: Option<Vec<u8>>,
    /// `service.name` of what is sent.
    pub service: String,
}

/// A sink that cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("the sink `{name}`: {cause}")]
pub struct SinkError {
    /// Which.
    pub name: &'static str,
    /// Why.
    pub cause: String,
}

impl SinksSpec {
    /// The number of the last record that any of them was given, as the files beside the log have it.
    pub(super) fn delivered(&self, directory: &Path) -> Option<u64> {
        let lines = self.lines.map(|stream| match stream {
            Stream::Stdout => STDOUT,
            Stream::Stderr => STDERR,
        });
        let otlp = self.otlp.as_ref().map(|_| otlp::NAME);
        let each = lines.into_iter().chain(otlp);
        each.filter_map(|name| Cursor::beside(directory, name).known())
            .max()
    }

    /// Starts them all on this node; see [`Sinking::start`]. With a receiver, it has to be called in a runtime; `scrub` takes out of
    /// what it says what must not be told.
    ///
    /// # Errors
    /// [`SinkError`].
    pub(super) fn start(
        &self,
        directory: &Path,
        first: u64,
        node: &str,
        scrub: &Arc<dyn Scrub>,
    ) -> Result<Vec<Sinking>, SinkError> {
        let wrong = |name: &'static str| move |cause: String| SinkError { name, cause };
        let mut all = Vec::new();
        let started = match self.lines {
            None => None,
            Some(Stream::Stdout) => {
                let sink = Lines::to(STDOUT, io::stdout());
                Some(Sinking::start(directory, first, sink))
            }
            Some(Stream::Stderr) => {
                let sink = Lines::to(STDERR, io::stderr());
                Some(Sinking::start(directory, first, sink))
            }
        };
        if let Some(started) = started {
            all.push(started.map_err(|error| wrong("stdout")(error.to_string()))?);
        }
        if let Some(otlp) = &self.otlp {
            let wrong = wrong("otlp");
            let fetcher =
                Fetcher::new(otlp.ca.as_deref()).map_err(|error| wrong(error.to_string()))?;
            let resource = Resource {
                service: otlp.service.clone(),
                node: node.to_owned(),
            };
            let sink = Otlp::new(fetcher, otlp, resource, Arc::clone(scrub));
            let started = Sinking::start(directory, first, sink);
            all.push(started.map_err(|error| wrong(error.to_string()))?);
        }
        Ok(all)
    }
}

/// Takes records to another place.
pub trait Sink: Send + 'static {
    /// What it is called, in the name of its file and in logs: of the characters of file names.
    fn name(&self) -> &str;

    /// Delivers a batch.
    ///
    /// # Errors
    /// Why not; see [`Undelivered`].
    fn deliver(&mut self, batch: &Batch) -> Result<(), Undelivered>;
}

/// Why records were not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// It may work later: it is tried again, for ever.
    #[error("{0}")]
    Later(String),
    /// The receiver will never take one of these records: they are sent apart, and the one is left out.
    #[error("{0}")]
    Refused(String),
    /// The receiver took the batch and threw so many of its records away. It has the others, and is sent nothing once more.
    #[error("{why}")]
    Discarded {
        /// How many.
        records: u64,
        /// What it said of that, as it may be told.
        why: String,
    },
}

/// How a sink is, for health and metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The number of the last record that was delivered.
    pub delivered: u64,
    /// Whether the last attempt failed.
    pub failing: bool,
    /// How many records retention removed before they were delivered.
    pub missed: u64,
    /// How many the receiver refused.
    pub refused: u64,
}

/// A sink at work. Dropped, it delivers what is there if that does not take long, and ends.
pub struct Sinking {
    name: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    delivery: Delivery,
    /// Whether the last number could not be kept.
    forgetful: bool,
    /// Whether something of the last batch was thrown away.
    discarded: bool,
    closing: bool,
    ended: bool,
}

impl Sinking {
    /// Starts delivering the records of `directory`: from the one after the last that was delivered before, or, where none ever
    /// was, from the one after `first` on.
    ///
    /// # Errors
    /// When no thread can be started, or the file beside the log not be read.
    pub fn start(directory: &Path, first: u64, mut sink: impl Sink) -> io::Result<Self> {
        let name = sink.name().to_owned();
        let cursor = Cursor::beside(directory, &name);
        let known = cursor.read()?;
        // A log that was begun anew has numbers that were delivered before.
        let delivered = known.filter(|seq| *seq <= first).unwrap_or(first);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        shared.state().delivery.delivered = delivered;
        if known != Some(delivered) {
            // A receiver that takes nothing until the next start is still owed what comes from now on.
            shared.kept(&cursor.write(delivered), &name);
        }
        let ours = shared.clone();
        let follower = Follower::after(directory, delivered);
        thread::Builder::new()
            .name(format!("audit-{name}"))
            .spawn(move || {
                ours.work(follower, &mut sink, &cursor);
                ours.state().ended = true;
                ours.changed.notify_all();
            })?;
        Ok(Self { name, shared })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is.
    pub fn delivery(&self) -> Delivery {
        self.shared.state().delivery.clone()
    }
}

impl Drop for Sinking {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closing = true;
        self.shared.changed.notify_all();
        // A receiver that takes nothing must not keep the process: its thread is left behind.
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, FAREWELL, |state| !state.ended);
        drop(waited);
    }
}

impl Shared {
    fn work(&self, mut follower: Follower, sink: &mut impl Sink, cursor: &Cursor) {
        let mut unread = 0_u32;
        loop {
            // Before it is looked, so that what was written before the end was announced is seen.
            let closing = self.state().closing;
            let batch = follower.read(BATCH.0, BATCH.1);
            unread = match &batch {
                Ok(_) => {
                    if unread >= UNREAD {
                        self.state().delivery.failing = false;
                        tracing::info!(sink = sink.name(), "audit records can be read again");
                    }
                    0
                }
                Err(error) => {
                    if unread + 1 == UNREAD {
                        self.state().delivery.failing = true;
                        tracing::warn!(
                            sink = sink.name(),
                            %error,
                            "audit records cannot be read, and so not be delivered"
                        );
                    }
                    unread.saturating_add(1)
                }
            };
            match batch {
                Ok(batch) if batch.is_empty() => {
                    if closing {
                        return;
                    }
                    self.pause(LOOK);
                }
                Ok(batch) => {
                    self.missed(&batch, sink.name());
                    if !self.deliver(&batch, sink) {
                        return;
                    }
                    self.state().delivery.delivered = batch.last;
                    self.kept(&cursor.write(batch.last), sink.name());
                }
                Err(_) if closing => return,
                // Retention may have taken the file away; the next look finds another.
                Err(_) => {
                    follower = follower.again();
                    self.pause(LOOK);
                }
            }
        }
    }

    /// Delivers a batch, however long it takes; whether it was, or else it is the end.
    fn deliver(&self, batch: &Batch, sink: &mut impl Sink) -> bool {
        let mut pause = PAUSES.0;
        loop {
            match sink.deliver(batch) {
                Ok(()) => {
                    self.arrived(sink.name());
                    self.state().discarded = false;
                    return true;
                }
                Err(Undelivered::Discarded { records, why }) => {
                    self.arrived(sink.name());
                    self.discarded(batch, records, &why, sink.name());
                    return true;
                }
                Err(Undelivered::Refused(why)) if batch.count() <= 1 => {
                    self.state().delivery.refused += 1;
                    tracing::error!(
                        sink = sink.name(),
                        record = batch.last,
                        why,
                        "an audit record is refused by its receiver, and left out there"
                    );
                    return true;
                }
                Err(Undelivered::Refused(_)) => {
                    let (one, two) = batch.halves();
                    return self.deliver(&one, sink) && self.deliver(&two, sink);
                }
                Err(Undelivered::Later(why)) => {
                    if !std::mem::replace(&mut self.state().delivery.failing, true) {
                        tracing::warn!(
                            sink = sink.name(),
                            why,
                            "audit records cannot be delivered; the file keeps them"
                        );
                    }
                    if self.state().closing {
                        return false;
                    }
                    self.pause(pause);
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Says that a batch was delivered, when that is news.
    fn arrived(&self, name: &str) {
        if std::mem::take(&mut self.state().delivery.failing) {
            tracing::info!(sink = name, "audit records are delivered again");
        }
    }

    /// Counts what was thrown away of a batch, and says it, when nothing was of the batch before: which they are nobody knows.
    fn discarded(&self, batch: &Batch, records: u64, why: &str, name: &str) {
        let mut state = self.state();
        state.delivery.refused += records.min(batch.count() as u64);
        if !std::mem::replace(&mut state.discarded, true) {
            tracing::error!(
                sink = name,
                records,
                upto = batch.last,
                why,
                "audit records are thrown away by their receiver, and left out there"
            );
        }
    }

    /// Says that where it is cannot be kept, when that is news: without it the next start delivers again what was delivered.
    fn kept(&self, kept: &io::Result<()>, name: &str) {
        let was = std::mem::replace(&mut self.state().forgetful, kept.is_err());
        if let Err(error) = kept
            && !was
        {
            tracing::warn!(
                sink = name,
                %error,
                "which audit records were delivered cannot be kept; the next start delivers them again"
            );
        }
    }

    fn missed(&self, batch: &Batch, name: &str) {
        if batch.missed > 0 {
            self.state().delivery.missed += batch.missed;
            tracing::error!(
                sink = name,
                records = batch.missed,
                "audit records are gone before they were delivered: removed by retention, or by somebody"
            );
        }
    }

    fn pause(&self, time: Duration) {
        let state = self.state();
        if !state.closing {
            drop(self.wait(state, time));
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed
            .wait_timeout(state, time)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file that keeps the number of the last record that was delivered.
struct Cursor(PathBuf);

impl Cursor {
    fn beside(directory: &Path, name: &str) -> Self {
        Self(directory.join(format!("{name}.cursor")))
    }

    /// The number, where the file has one.
    fn known(&self) -> Option<u64> {
        fs::read_to_string(&self.0).ok()?.trim().parse().ok()
    }

    /// The number; `None` where there never was one.
    fn read(&self) -> io::Result<Option<u64>> {
        match fs::read(&self.0) {
            Ok(text) => {
                let number = str::from_utf8(&text)
                    .ok()
                    .and_then(|it| it.trim().parse().ok());
                if number.is_none() {
                    // A loss of power may leave it empty. Nobody knows then, and what is delivered twice is not lost.
                    tracing::warn!(
                        file = %self.0.display(),
                        "which audit records were delivered is not known any more; all that are kept are delivered again"
                    );
                }
                Ok(number.or(Some(0)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Not synced: after a loss of power some or all is delivered again.
    fn write(&self, seq: u64) -> io::Result<()> {
        let new = self.0.with_extension("cursor-new");
        fs::write(&new, format!("{seq}\n"))?;
        fs::rename(&new, &self.0)
    }
}
