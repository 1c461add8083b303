//! The live feed: every call as it ends, for whoever is looking at the moment.
//!
//! Guarantees: while nobody looks a call costs one atomic load and nothing is made for it; whoever cannot keep up is told
//! how many calls were passed over, and holds up nobody; memory is bounded by [`HELD`]. Deliberately absent: a past (that is
//! the audit log), arguments and results.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::SystemTime,
};

use tokio::sync::broadcast::{self, error::RecvError};

use crate::protocol::UpstreamId;

/// Calls kept for those who look and are behind; who is further behind misses the oldest.
pub const HELD: usize = 1_024;

/// One call that has ended.
#[derive(Debug, Clone)]
pub struct CallSeen {
    /// When it ended, by the wall clock.
    pub time: SystemTime,
    /// Its method.
    pub method: String,
    /// The name or URI that the client used, where the method has one.
    pub target: Option<String>,
    /// The upstream it went to, if it went to one.
    pub upstream: Option<UpstreamId>,
    /// Whose it was.
    pub principal: String,
    /// How it ended, in the words of audit: `ok`, `tool_error`, `denied`, …
    pub outcome: &'static str,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// Where calls are noted and looked at. A cheap handle.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How many look. Its own, since the channel would take its lock to tell.
    looking: AtomicUsize,
    calls: broadcast::Sender<Arc<CallSeen>>,
}

/// Somebody who looks, until it is dropped.
#[derive(Debug)]
pub struct Watching {
    feed: Feed,
    calls: broadcast::Receiver<Arc<CallSeen>>,
}

/// What somebody who looks sees next.
#[derive(Debug, Clone)]
pub enum Seen {
    /// A call.
    Call(Arc<CallSeen>),
    /// So many calls were passed over, since whoever looks was too slow.
    Missed(u64),
}

impl Feed {
    /// One that nobody looks at.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            looking: AtomicUsize::new(0),
            calls: broadcast::channel(HELD).0,
        }))
    }

    /// Whether anybody looks.
    pub fn is_watched(&self) -> bool {
        self.0.looking.load(Relaxed) > 0
    }

    /// Notes a call for those who look. Where the call has yet to be described, [`Feed::note_with`] is cheaper.
    pub fn note(&self, call: CallSeen) {
        self.note_with(|| call);
    }

    /// Notes what `call` makes; it is only asked while somebody looks.
    pub fn note_with(&self, call: impl FnOnce() -> CallSeen) {
        if self.is_watched() {
            // An error says that the last one has just looked away.
            drop(self.0.calls.send(Arc::new(call())));
        }
    }

    /// Looks from now on.
    pub fn watch(&self) -> Watching {
        let calls = self.0.calls.subscribe();
        self.0.looking.fetch_add(1, Relaxed);
        Watching {
            feed: self.clone(),
            calls,
        }
    }
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

impl Watching {
    /// What is seen next; `None` when there will be nothing more.
    pub async fn next(&mut self) -> Option<Seen> {
        match self.calls.recv().await {
            Ok(call) => Some(Seen::Call(call)),
            Err(RecvError::Lagged(missed)) => Some(Seen::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.feed.0.looking.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(millis: u64) -> CallSeen {
        CallSeen {
            time: SystemTime::UNIX_EPOCH,
            method: "tools/call".to_owned(),
            target: None,
            upstream: None,
            principal: "ann".to_owned(),
            outcome: "ok",
            millis,
        }
    }

    #[test]
    fn nothing_is_made_for_a_feed_that_nobody_looks_at() {
        let feed = Feed::new();
        let mut made = 0;
        let mut note = || {
            feed.note_with(|| {
                made += 1;
                call(1)
            });
        };
        note();
        let watching = feed.watch();
        note();
        drop(watching);
        note();
        assert_eq!(made, 1);
        assert!(!feed.is_watched());
    }

    #[tokio::test]
    async fn who_is_too_slow_is_told_how_many_calls_were_passed_over() {
        let feed = Feed::new();
        let (mut slow, mut other) = (feed.watch(), feed.watch());
        feed.note(call(0));
        assert!(matches!(other.next().await, Some(Seen::Call(_))));
        for millis in 1..=HELD as u64 + 1 {
            feed.note(call(millis));
        }
        let missed = slow.next().await;
        assert!(matches!(missed, Some(Seen::Missed(2))), "{missed:?}");
        let Some(Seen::Call(next)) = slow.next().await else {
            panic!("nothing after what was missed");
        };
        assert_eq!(next.millis, 2);
    }
}
