//! One client connection reading one stream of a session.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::{
    Session,
    outbox::{CannotResume, Form, Look, Place},
};
use crate::{downstream::Running, jsonrpc::sse, tasks::Tasks};

/// The events of one stream as they go out, until the stream is over, the session ends, or another reader takes over.
///
/// Dropped before the end of an answer, it leaves the answer to be driven on without a reader, and to be resumed.
pub(in crate::downstream) struct Reader {
    session: Arc<Session>,
    tasks: Tasks,
    place: Place,
    opening: Option<Bytes>,
    /// Nobody reads: what comes is kept.
    alone: bool,
}

impl Session {
    /// A stream of notices as server-sent events; `None` when there are too many.
    pub(in crate::downstream) fn open(self: &Arc<Self>, tasks: &Tasks) -> Option<Reader> {
        let form = if self.resumes() {
            Form::Events
        } else {
            Form::Unnumbered
        };
        let place = self.outbox.open(form)?;
        let opening = self.priming(&place).unwrap_or(sse::OPEN);
        Some(self.reader(tasks, place, Some(opening)))
    }

    /// The session's notices as frames, for a connection that carries everything.
    pub(in crate::downstream) fn notices(self: &Arc<Self>, tasks: &Tasks) -> Option<Reader> {
        let place = self.outbox.open(Form::Frames)?;
        Some(self.reader(tasks, place, None))
    }

    /// Whether its answers are streams that can be resumed.
    pub(in crate::downstream) const fn resumes(&self) -> bool {
        self.revision.features().resume
    }

    /// An answer as a stream that can be resumed.
    pub(in crate::downstream) fn carry(
        self: &Arc<Self>,
        tasks: &Tasks,
        running: Box<Running>,
    ) -> Reader {
        let place = self.outbox.carry(Arc::new(Mutex::new(running.boxed())));
        let opening = self.priming(&place);
        self.reader(tasks, place, opening)
    }

    /// Goes on with the stream of the event with this id.
    pub(in crate::downstream) fn resume(
        self: &Arc<Self>,
        tasks: &Tasks,
        id: &str,
    ) -> Result<Reader, CannotResume> {
        let place = self.outbox.resume(id)?;
        Ok(self.reader(tasks, place, Some(sse::OPEN)))
    }

    fn reader(self: &Arc<Self>, tasks: &Tasks, place: Place, opening: Option<Bytes>) -> Reader {
        Reader {
            session: self.clone(),
            tasks: tasks.clone(),
            place,
            opening,
            alone: false,
        }
    }

    fn priming(&self, place: &Place) -> Option<Bytes> {
        let polling = self.revision.features().polling;
        polling.then(|| sse::priming(&self.outbox.first_id(place)))
    }
}

impl Reader {
    /// Whether this is the stream of an answer that is still to come.
    pub(in crate::downstream) fn owes_an_answer(&self) -> bool {
        self.session.outbox.is_answer(&self.place)
    }
}

impl Stream for Reader {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if let Some(opening) = this.opening.take() {
            return Poll::Ready(Some(opening));
        }
        let outbox = &this.session.outbox;
        let feed = match outbox.look(&mut this.place, cx) {
            Look::Event(event) => return Poll::Ready(Some(event)),
            Look::Wait => return Poll::Pending,
            Look::Over => return Poll::Ready(None),
            Look::Ask(feed) => feed,
        };
        let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the feed's lock: whoever takes over asks it after us, so that it is the newest reader that is woken.
        if !outbox.reads(&this.place) {
            return Poll::Ready(None);
        }
        match feed.poll_next_unpin(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(frame) => Poll::Ready(outbox.fed(&mut this.place, frame)),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.alone {
            return;
        }
        self.session.touch();
        if let Some(place) = self.session.outbox.leave(&self.place) {
            let mut alone = self.session.reader(&self.tasks, place, None);
            alone.alone = true;
            self.tasks.spawn(alone.for_each(|_| std::future::ready(())));
        }
    }
}
