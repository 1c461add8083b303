//! One who listens: its news as a stream, and its leaving.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;
use tokio::time::{Instant, timeout_at};

use super::{Hub, News, ResourceInterest, Seat, SlowConsumer, mailbox::Mailbox};
use crate::protocol::names::Scope;

/// One who listens. The stream yields news as it comes, and ends after [`SlowConsumer`] or when an operator ends it
/// ([`Hub::end`]); dropping it is leaving.
#[derive(Debug)]
pub struct Listener {
    hub: Arc<Hub>,
    id: u64,
    scope: Scope,
    mailbox: Arc<Mailbox>,
    /// Where each watched resource is watched; `None` where it is not, or no longer.
    watched: Vec<Option<(Arc<ResourceInterest>, Arc<str>)>>,
    over: bool,
    _seat: Option<Seat>,
}

impl Listener {
    pub(super) fn new(
        hub: Arc<Hub>,
        id: u64,
        scope: Scope,
        mailbox: Arc<Mailbox>,
        watched: Vec<Option<(Arc<ResourceInterest>, Arc<str>)>>,
        seat: Option<Seat>,
    ) -> Self {
        Self {
            hub,
            id,
            scope,
            mailbox,
            watched,
            over: false,
            _seat: seat,
        }
    }

    /// Waits until it is known of every watched resource whether its upstream tells of its changes, but not past
    /// `deadline`; gives up those that are not in force by then. Says which are, in the order given.
    pub async fn settle(&mut self, deadline: Instant) -> Vec<bool> {
        for (interest, uri) in self.watched.iter().flatten() {
            // Past the deadline this looks once at each of the others.
            if timeout_at(deadline, interest.settled(uri)).await.is_err() {
                tracing::debug!("an upstream did not say in time whether it tells of a resource");
            }
        }
        let mut in_force = Vec::with_capacity(self.watched.len());
        for number in 0..self.watched.len() {
            let kept = match &self.watched[number] {
                Some((interest, uri)) => interest.is_in_force(uri),
                None => false,
            };
            if !kept {
                self.give_up(number);
            }
            in_force.push(kept);
        }
        in_force
    }

    fn give_up(&mut self, number: usize) {
        if let Some((interest, uri)) = self.watched[number].take() {
            interest.unwatch(&uri, self.id, number);
            self.mailbox.forget(number);
        }
    }
}

impl Stream for Listener {
    type Item = Result<News, SlowConsumer>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let next = self.mailbox.poll(cx);
        self.over = matches!(next, Poll::Ready(None | Some(Err(_))));
        next
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.leave(&self.scope, self.id);
        for number in 0..self.watched.len() {
            self.give_up(number);
        }
    }
}
