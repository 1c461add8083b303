//! The notices of one session that wait for somebody to read.
//!
//! Guarantees: what says the same as what waits is not told twice; that a list is another one now is never let go of; of what lies
//! below a watched resource so much waits, in number and in bytes, and then the watched one stands for all of it; the rest is
//! bounded by what a session may watch.

use std::{collections::VecDeque, sync::Arc};

use tokio::time::Instant;

use crate::downstream::legacy::notice::Notice;

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(in crate::downstream::legacy) struct Room {
    /// Notices (SECURITY 6).
    pub(in crate::downstream::legacy) notices: usize,
    /// The bytes of their URIs, where those are not watched but below.
    pub(in crate::downstream::legacy) bytes: usize,
    /// Resources that a session may watch: each has room beyond that, for itself alone.
    pub(in crate::downstream::legacy) watched: usize,
}

/// Whether a notice found room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It waits, or what says the same does.
    Waits,
    /// It waits beyond the room there is.
    Beyond,
    /// Another stands for it, or had to go for it.
    Merged,
}

/// Those that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: VecDeque<(Notice, Instant)>,
    bytes: usize,
}

impl Waiting {
    /// One more.
    pub(super) fn put(&mut self, notice: Notice, room: &Room) -> Put {
        if self.holds(&notice) {
            return Put::Waits;
        }
        let fits = self.queue.len() < room.notices && self.bytes + bytes(&notice) <= room.bytes;
        if fits {
            self.push(notice);
            return Put::Waits;
        }
        match below(&notice) {
            Some(watched) => {
                let whole = Notice::updated(watched.clone());
                if !self.holds(&whole) {
                    self.push_beyond(whole, room);
                }
                Put::Merged
            }
            None => self.push_beyond(notice, room),
        }
    }

    /// The one that waits for longest is told now, and with it all that say the same to the client. Those of other watched
    /// resources are kept until here, because that one may be watched no more before anybody reads.
    pub(super) fn take(&mut self) -> Option<Notice> {
        let (notice, _) = self.queue.pop_front()?;
        self.bytes -= bytes(&notice);
        if let Notice::Updated { uri: told, .. } = &notice {
            self.let_go(|other| match other {
                Notice::Updated { uri, .. } => uri == told,
                Notice::List(_) | Notice::Visited(_) => false,
            });
        }
        Some(notice)
    }

    /// Since when the first of them waits.
    pub(super) fn since(&self) -> Option<Instant> {
        self.queue.front().map(|(_, since)| *since)
    }

    /// Forgets what is told of a resource that is watched no more.
    pub(super) fn forget(&mut self, watched: &str) {
        self.let_go(|notice| match notice {
            Notice::Updated { watched: of, .. } => **of == *watched,
            Notice::List(_) | Notice::Visited(_) => false,
        });
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn let_go(&mut self, is_one: impl Fn(&Notice) -> bool) {
        self.queue.retain(|(notice, _)| !is_one(notice));
        self.bytes = self.queue.iter().map(|(notice, _)| bytes(notice)).sum();
    }

    fn holds(&self, notice: &Notice) -> bool {
        self.queue.iter().any(|(other, _)| other == notice)
    }

    fn push(&mut self, notice: Notice) {
        self.bytes += bytes(&notice);
        self.queue.push_back((notice, Instant::now()));
    }

    /// The oldest of a resource, or of a page, goes where even that is too much: somebody subscribes to ever others and reads
    /// nothing.
    fn push_beyond(&mut self, notice: Notice, room: &Room) -> Put {
        let is_list = |notice: &Notice| matches!(notice, Notice::List(_));
        let full = self.queue.len() >= room.notices + room.watched;
        let oldest = self.queue.iter().position(|(other, _)| !is_list(other));
        let gone = oldest
            .filter(|_| full && !is_list(&notice))
            .and_then(|oldest| self.queue.remove(oldest));
        if let Some((gone, _)) = &gone {
            self.bytes -= bytes(gone);
        }
        self.push(notice);
        gone.map_or(Put::Beyond, |_| Put::Merged)
    }
}

/// The watched resource that what is told of lies below, if it does.
fn below(notice: &Notice) -> Option<&Arc<str>> {
    match notice {
        Notice::Updated { uri, watched } => (uri != watched).then_some(watched),
        Notice::List(_) | Notice::Visited(_) => None,
    }
}

/// What it takes of the bytes there are: a watched URI is kept with its subscription.
fn bytes(notice: &Notice) -> usize {
    match notice {
        Notice::Updated { uri, watched } if uri != watched => uri.len(),
        Notice::Updated { .. } | Notice::List(_) | Notice::Visited(_) => 0,
    }
}
