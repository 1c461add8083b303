//! The connections that are free, of one lane.
//!
//! Guarantees: the locks of its lists are held for a few moves, and never while a connection is looked at, which may read from its
//! socket. Only [`List::first`] is held while a connection is made.

use std::{
    collections::VecDeque,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use tokio::time::Instant;

use super::{
    Connection, Http1,
    ending::{End, Ending},
};
use crate::{tasks::clock, upstream::UpstreamError};

/// How long an idle connection is trusted.
const IDLE: Duration = Duration::from_secs(60);
/// How many of those whose answer has not ended are looked at for one request.
const LOOKS: usize = 4;

/// The connections of one lane.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Protects the list only.
    kept: Mutex<Kept>,
    /// Those on which the end of an answer is still to come: those first that have waited the longest since they were looked at.
    ending: Mutex<VecDeque<Ending>>,
    /// Held by the one that makes the first connection, or the next HTTP/2 one, so that a burst makes one and not many.
    pub(super) first: tokio::sync::Mutex<Failed>,
    /// How often that failed.
    failures: AtomicU64,
}

/// Why a connection did not come about for the one that made it last, where it did not.
#[derive(Debug, Default)]
pub(super) struct Failed(Option<UpstreamError>);

/// What the upstream speaks, once it is known, and the connections that are free.
#[derive(Debug, Default)]
enum Kept {
    #[default]
    Unknown,
    Http1(Vec<Idle>),
    Http2 {
        line: http2::SendRequest<Full<Bytes>>,
        /// When a request last went over it.
        used: Instant,
    },
}

#[derive(Debug)]
struct Idle {
    line: Http1,
    since: Instant,
}

impl List {
    /// How often making a connection that others wait for has failed.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// What it failed with since there were so many, for those who have waited since then.
    pub(super) fn failed_since(&self, failures: u64, last: &Failed) -> Option<UpstreamError> {
        let last = last.0.as_ref();
        last.filter(|_| self.failures() > failures)
            .map(UpstreamError::with_others)
    }

    /// It has failed once more.
    pub(super) fn fail(&self, last: &mut Failed, error: &UpstreamError) {
        last.0 = Some(error.clone());
        self.failures.fetch_add(1, Relaxed);
    }

    /// A connection that is open and free.
    pub(super) fn free(&self) -> Option<Connection> {
        loop {
            // One is taken out under the lock, and looked at without it: that may read from its socket.
            let last = match &mut *self.kept() {
                Kept::Unknown => return None,
                Kept::Http2 { line, .. } if line.is_closed() => return None,
                Kept::Http2 { line, used } => {
                    *used = clock::now();
                    return Some(Connection::Http2(line.clone()));
                }
                Kept::Http1(idle) => idle.pop(),
            };
            // Those below are hardly younger; the sweep closes them.
            let last = last.filter(|last| clock::since(last.since) <= IDLE);
            let Some(Idle { mut line, .. }) = last else {
                return self.ended().map(Connection::Http1);
            };
            if line.is_free() {
                return Some(Connection::Http1(line));
            }
        }
    }

    /// A connection on which an answer has come to its end.
    fn ended(&self) -> Option<Http1> {
        for _ in 0..LOOKS {
            let oldest = self.ending().pop_front()?;
            match oldest.look() {
                End::Reached(line, _) => return Some(line),
                End::Awaited(ending) => self.ending().push_back(ending),
                End::Missed => {}
            }
        }
        None
    }

    /// Keeps a connection until its answer has ended, with `most` others.
    pub(super) fn leave(&self, ending: Ending, most: usize) {
        let surplus = {
            let mut all = self.ending();
            all.push_back(ending);
            if all.len() > most {
                all.pop_front()
            } else {
                None
            }
        };
        if let Some(End::Reached(line, since)) = surplus.map(Ending::look) {
            self.give_back(line, since, most);
        }
    }

    /// Frees the connections on which answers have ended, and closes those on which one does not; whether any are left.
    pub(super) fn settle(&self, most: usize) -> bool {
        let count = self.ending().len();
        // One at a time, for calls in the meantime to find the others.
        for _ in 0..count {
            let Some(oldest) = self.ending().pop_front() else {
                break;
            };
            match oldest.look() {
                End::Reached(line, since) => self.give_back(line, since, most),
                End::Awaited(ending) => self.ending().push_back(ending),
                End::Missed => {}
            }
        }
        !self.ending().is_empty()
    }

    /// The upstream speaks HTTP/1.1.
    pub(super) fn speaks_one(&self) {
        let mut kept = self.kept();
        if !matches!(*kept, Kept::Http1(_)) {
            *kept = Kept::Http1(Vec::new());
        }
    }

    /// The upstream speaks HTTP/2, and this is the connection that everybody shares.
    pub(super) fn speaks_two(&self, line: http2::SendRequest<Full<Bytes>>) {
        let used = clock::now();
        *self.kept() = Kept::Http2 { line, used };
    }

    /// Keeps a connection that serves again, and was last used then, unless it has `most` already.
    pub(super) fn give_back(&self, line: Http1, since: Instant, most: usize) {
        if let Kept::Http1(idle) = &mut *self.kept() {
            // The oldest lie at the bottom, where nobody takes them unless all are needed.
            if idle
                .first()
                .is_some_and(|oldest| clock::since(oldest.since) > IDLE)
            {
                idle.remove(0);
            }
            if idle.len() < most {
                idle.push(Idle { line, since });
            }
        }
    }

    /// Closes idle connections that are too old, or that the peer has closed: nobody else looks at them. One of HTTP/2 ends with
    /// the last answer on it.
    pub(super) fn sweep(&self, most: usize) {
        // Looked at without the lock, as in `free`: calls in the meantime open connections of their own.
        let mut kept = self.kept();
        let mut sound = match &mut *kept {
            Kept::Http1(idle) => mem::take(idle),
            Kept::Http2 { line, used } if line.is_closed() || clock::since(*used) > IDLE => {
                *kept = Kept::Unknown;
                return;
            }
            Kept::Unknown | Kept::Http2 { .. } => return,
        };
        drop(kept);
        sound.retain_mut(|idle| clock::since(idle.since) <= IDLE && idle.line.is_free());
        if let Kept::Http1(idle) = &mut *self.kept() {
            // What was given back in the meantime is younger, and lies above.
            sound.truncate(most.saturating_sub(idle.len()));
            sound.append(idle);
            *idle = sound;
        }
    }

    /// How many idle connections are kept.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        match &*self.kept() {
            Kept::Http1(idle) => idle.len(),
            Kept::Unknown | Kept::Http2 { .. } => 0,
        }
    }

    /// Whether every idle connection is known to be dead.
    #[cfg(test)]
    pub(super) fn is_stale(&self) -> bool {
        match &mut *self.kept() {
            Kept::Http1(idle) => idle.iter_mut().all(|idle| !idle.line.is_free()),
            Kept::Unknown => true,
            Kept::Http2 { .. } => false,
        }
    }

    /// A panic under the lock leaves a list that is still whole, so poison says nothing.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ending(&self) -> MutexGuard<'_, VecDeque<Ending>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
