//! Connections on which the end of an answer is still to come, when all that anybody wanted of it is there.
//!
//! An event stream ends a moment after the answer in it, mostly in a packet of its own. Whoever took the answer does not wait for
//! that, and no task is woken by it: it is read when the connection is wanted again, or by who looks after the pool. Guarantees: a
//! connection whose answer goes on for too long serves nobody, and one whose answer does not end is closed within a few seconds.

#[cfg(test)]
mod tests;

use std::{
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Buf as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::Http1;
use crate::tasks::clock;

/// How often ends are looked for that nobody has come across, and how late one that is still missing then may be.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// The most bytes that may come before it.
const MOST: usize = 8 << 10;

/// A connection, and the body on it that nobody wants.
#[derive(Debug)]
pub(super) struct Ending {
    body: Incoming,
    line: Http1,
    /// How many bytes may still come.
    left: usize,
    since: Instant,
}

/// How far it is.
pub(super) enum End {
    /// It is there, and the connection is free; when it was left.
    Reached(Http1, Instant),
    /// It may still come.
    Awaited(Ending),
    /// The connection serves nobody.
    Missed,
}

impl Ending {
    /// From now on nobody wants more of this body.
    pub(super) fn of(body: Incoming, line: Http1) -> Self {
        Self {
            body,
            line,
            left: MOST,
            since: clock::now(),
        }
    }

    /// Reads what is there.
    pub(super) fn look(mut self) -> End {
        let nobody = &mut Context::from_waker(Waker::noop());
        loop {
            match self.line.poll_frame(&mut self.body, nobody) {
                Poll::Ready(Some(Ok(frame))) => {
                    let more = frame.data_ref().map_or(0, |data| data.remaining());
                    match self.left.checked_sub(more) {
                        Some(left) => self.left = left,
                        None => return End::Missed,
                    }
                }
                Poll::Ready(None) if self.line.is_free() => {
                    return End::Reached(self.line, self.since);
                }
                Poll::Ready(None | Some(Err(_))) => return End::Missed,
                Poll::Pending if clock::since(self.since) > PATIENCE => return End::Missed,
                Poll::Pending => return End::Awaited(self),
            }
        }
    }
}
