//! One listener's news: merged until taken.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use tokio::time::Instant;

use super::{Lists, SLOW_LISTENER_TIMEOUT, held};
use crate::{
    metrics::{Bound, reached},
    protocol::methods::ListKind,
};

/// Something that a listener hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A list is another one now; templates are told as resources.
    List(ListKind),
    /// A resource is not as it was.
    Resource {
        /// Which of the watched ones, in the order they were given.
        watched: usize,
        /// Its upstream's URI, where that is not the watched one but below it.
        below: Option<Arc<str>>,
    },
}

/// The listener did not take its news for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("news was not taken in time")]
pub struct SlowConsumer;

/// Where a listener's news waits. Bounds: a bit a list, so many URIs below watched ones and so many bytes of them, each
/// watched one once.
#[derive(Debug)]
pub(super) struct Mailbox {
    wanted: Lists,
    /// The most that waits of what is below watched ones, in number and in bytes.
    most: (usize, usize),
    /// A mutex of this listener's own: held for a moment, by the one who tells and the one who takes.
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    lists: Lists,
    resources: BTreeSet<(usize, Option<Arc<str>>)>,
    /// The bytes of those below watched ones.
    bytes: usize,
    /// Since when there has been news of which none was taken.
    since: Option<Instant>,
    waker: Option<Waker>,
    gone: bool,
    /// Somebody else ended it.
    ended: bool,
}

impl Mailbox {
    pub(super) fn new(wanted: Lists, most: (usize, usize)) -> Self {
        Self {
            wanted,
            most,
            waiting: Mutex::default(),
        }
    }

    /// These lists are others now.
    pub(super) fn lists(&self, lists: Lists) {
        let lists = lists.and(self.wanted);
        if !lists.is_empty() {
            self.put(|waiting| waiting.lists = waiting.lists | lists);
        }
    }

    /// A watched resource, or one below it, is not as it was. Where too many below are waiting, the watched one stands for
    /// all of them.
    pub(super) fn resource(&self, watched: usize, below: Option<&Arc<str>>) {
        self.put(|waiting| {
            let bytes = below.map_or(0, |uri| uri.len());
            let room =
                waiting.resources.len() < self.most.0 && waiting.bytes + bytes <= self.most.1;
            let news = (watched, below.cloned());
            if below.is_some() && !room && !waiting.resources.contains(&news) {
                reached(Bound::StreamBuffer);
                waiting.resources.insert((watched, None));
            } else if waiting.resources.insert(news) {
                waiting.bytes += bytes;
            }
        });
    }

    fn put(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = held(&self.waiting);
        if waiting.gone || waiting.ended {
            return;
        }
        let since = *waiting.since.get_or_insert_with(Instant::now);
        if since.elapsed() > SLOW_LISTENER_TIMEOUT {
            *waiting = Waiting {
                gone: true,
                waker: waiting.waker.take(),
                ..Waiting::default()
            };
        } else {
            change(&mut waiting);
        }
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// There will be no more news, and none that waits is told.
    pub(super) fn end(&self) {
        let mut waiting = held(&self.waiting);
        waiting.ended = true;
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Forgets what is waiting of one watched resource.
    pub(super) fn forget(&self, watched: usize) {
        let mut waiting = held(&self.waiting);
        let Waiting {
            resources, bytes, ..
        } = &mut *waiting;
        resources.retain(|(other, below)| {
            let kept = *other != watched;
            if !kept {
                *bytes -= below.as_ref().map_or(0, |uri| uri.len());
            }
            kept
        });
    }

    /// The next news: lists first; `None` when it was ended.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<News, SlowConsumer>>> {
        let mut waiting = held(&self.waiting);
        if waiting.ended {
            return Poll::Ready(None);
        }
        if waiting.gone {
            reached(Bound::StreamBuffer);
            return Poll::Ready(Some(Err(SlowConsumer)));
        }
        let news = match waiting.lists.take_one() {
            Some(kind) => Some(News::List(kind)),
            None => waiting.resources.pop_first().map(|(watched, below)| {
                waiting.bytes -= below.as_ref().map_or(0, |uri| uri.len());
                News::Resource { watched, below }
            }),
        };
        let empty = waiting.lists.is_empty() && waiting.resources.is_empty();
        waiting.since = (!empty).then(Instant::now);
        match news {
            Some(news) => Poll::Ready(Some(Ok(news))),
            None => {
                let waker = waiting.waker.replace(cx.waker().clone());
                drop(waiting);
                drop(waker);
                Poll::Pending
            }
        }
    }
}
