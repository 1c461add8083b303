//! What is said of a request elsewhere than in its answer: on its session's own stream (PROTOCOL B4).
//!
//! Guarantees: what is put here is read, or given back at once, or is among what is left over when it is closed; nothing is lost
//! without a word. Bounds: [`ROOM`] messages of at most [`LARGEST`] bytes of params.

use std::{
    collections::VecDeque,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::jsonrpc::{Frame, Notification};

/// The most messages that wait to be read.
const ROOM: usize = 32;
/// The most bytes of one message's params.
const LARGEST: usize = 1 << 20;

/// Messages on their way from the stream of a session to one of its calls.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Aside {
    // Held for a moment and never across an await, by one who puts and one who reads.
    kept: Mutex<Kept>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    frames: VecDeque<Frame>,
    /// Whether nobody reads any more.
    closed: bool,
}

/// The calls that share a session: what is said of one of them may come in the answer of another.
pub(in crate::upstream) trait Others: std::fmt::Debug + Send + Sync {
    /// Hands progress to the call that it names; whether there is one that takes it.
    fn progress(&self, notification: Notification) -> bool;
}

/// The number that the token of this progress is, if it is one of ours.
pub(in crate::upstream) fn number_of(progress: &Notification) -> Option<u64> {
    let token = progress.params.as_ref()?.root().member("progressToken")?;
    u64::try_from(token.as_i64()?).ok()
}

impl Aside {
    /// Takes a message to be read; gives it back where nobody reads, and where there is no room for it.
    pub(in crate::upstream) fn put(&self, frame: Frame) -> Option<Frame> {
        let params = match &frame {
            Frame::Request(request) => request.params.as_ref(),
            Frame::Notification(notification) => notification.params.as_ref(),
            // An answer is no message of this kind.
            Frame::Response(_) => return Some(frame),
        };
        let fits = params.is_none_or(|params| params.len() <= LARGEST);
        {
            let mut kept = self.kept();
            if kept.closed || kept.frames.len() >= ROOM || !fits {
                return Some(frame);
            }
            kept.frames.push_back(frame);
        }
        self.came.notify_one();
        None
    }

    /// Resolves when there is a message to be read. Dropping the future loses nothing.
    pub(in crate::upstream) async fn came(&self) {
        loop {
            let came = self.came.notified();
            if !self.kept().frames.is_empty() {
                return;
            }
            came.await;
        }
    }

    /// The next message. Dropping the future loses nothing.
    pub(super) async fn next(&self) -> Frame {
        loop {
            let came = self.came.notified();
            let next = self.kept().frames.pop_front();
            if let Some(frame) = next {
                return frame;
            }
            came.await;
        }
    }

    /// Nobody reads any more: what was not read.
    pub(in crate::upstream) fn close(&self) -> VecDeque<Frame> {
        let mut kept = self.kept();
        kept.closed = true;
        mem::take(&mut kept.frames)
    }

    /// A panic under the lock leaves a list that is still whole, so poison says nothing.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
