//! The own stream of a session that carries callers' calls, and to whom belongs what is said there (PROTOCOL B4, D0.4).
//!
//! Guarantees: it is opened by the first call that could be told something on it, once for each session, and ends with that; a
//! server's request goes to the one call in flight that may be asked, and is refused at once where there is none or more than
//! one, or where several owners share the session, never guessed; a log line goes to a call only when no other is in flight. A
//! call that is given up counts as in flight until its server has had time to heed that, or what it still asks would be the next
//! call's. Bounds: [`HEAD`] for which a call waits.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{attribution::HEEDING, session::Session};
use crate::{
    jsonrpc::{Frame, Notification},
    protocol::methods,
    upstream::{
        UpstreamError,
        exchange::{Aside, Others, number_of},
        health::Pause,
        line::Line,
    },
};

/// How long the first call of a session waits until its stream stands: servers drop what they say before that.
pub(super) const HEAD: Duration = Duration::from_secs(1);
/// How long a call that was given up without an answer counts as in flight: as long as its server may take to heed that, and we
/// to tell it.
const GIVEN_UP: Duration = HEEDING.saturating_add(Duration::from_secs(2));
/// What a server is told that asks where nobody can say whom.
const WHOSE: &str = "several calls may be in progress, and the request does not say to which of them it belongs; \
                     send it on the stream of its call";

/// What is heard on a session's own stream, and by whom.
#[derive(Debug, Default)]
pub(super) struct Ear {
    begun: AtomicBool,
    /// Whether nothing will be heard: the server offers no stream, or has forgotten the session.
    deaf: AtomicBool,
    /// Cancelled when it is known whether the stream stands, and when nobody waits for that any more.
    known: CancellationToken,
    /// The calls in flight. A lock, because it is only ever held for a moment.
    places: Mutex<Vec<Place>>,
}

#[derive(Debug)]
struct Place {
    number: u64,
    /// Whether its caller may be asked.
    asks: bool,
    aside: Arc<Aside>,
    /// When it was given up.
    left: Option<Instant>,
}

impl Place {
    /// Whether it counts as in flight.
    fn counts(&self) -> bool {
        self.left.is_none_or(|left| left.elapsed() < GIVEN_UP)
    }
}

/// A call's place among those in flight on its session. Dropping it is giving the call up.
pub(super) struct Hearing {
    number: u64,
    ear: Arc<Ear>,
    line: Arc<Line>,
    aside: Arc<Aside>,
    is_answered: bool,
}

/// To whom something belongs.
enum Whose {
    /// To this call.
    Call(Arc<Aside>),
    /// To one of several, or to one of several owners.
    Several,
    Nobody,
}

impl Ear {
    /// Listens on the session's own stream from now on, if that has not begun, and waits until the stream stands; `sole` says
    /// whether all its calls are one owner's. For [`HEAD`] at most, and not beyond `deadline`.
    pub(super) async fn listen(self: &Arc<Self>, session: &Session, sole: bool, deadline: Instant) {
        if self.known.is_cancelled() {
            return;
        }
        let is_begun = self.begun.load(Ordering::Relaxed);
        if !is_begun && session.line.terms.streams.available_permits() == 0 {
            // There may be room for the next call's.
            return;
        }
        if !self.begun.swap(true, Ordering::Relaxed) {
            let (ear, line) = (Arc::clone(self), Arc::clone(&session.line));
            session
                .tasks
                .spawn(async move { ear.keep(&line, sole).await });
        }
        let until = deadline.min(Instant::now() + HEAD);
        if timeout_at(until, self.known.cancelled()).await.is_err() {
            // Whoever comes next need not wait as well.
            self.known.cancel();
        }
    }

    /// Whether something may be heard on the session's own stream.
    pub(super) fn listens(&self) -> bool {
        self.begun.load(Ordering::Relaxed) && !self.deaf.load(Ordering::Relaxed)
    }

    /// A place for the call with this number, whose caller may be asked or not.
    pub(super) fn sit(self: &Arc<Self>, line: &Arc<Line>, number: u64, asks: bool) -> Hearing {
        let aside = Arc::<Aside>::default();
        let mut places = self.places();
        places.retain(Place::counts);
        places.push(Place {
            number,
            asks,
            aside: Arc::clone(&aside),
            left: None,
        });
        drop(places);
        Hearing {
            number,
            ear: Arc::clone(self),
            line: Arc::clone(line),
            aside,
            is_answered: false,
        }
    }

    /// Reads the stream, opened again whenever it ends, until there is none.
    async fn keep(&self, line: &Arc<Line>, sole: bool) {
        if let Ok(_share) = line.terms.streams.try_acquire() {
            self.read(line, sole).await;
        }
        self.deaf.store(true, Ordering::Relaxed);
        self.known.cancel();
    }

    async fn read(&self, line: &Arc<Line>, sole: bool) {
        let mut pause = Pause::default();
        loop {
            let began = Instant::now();
            let opening = async {
                let headers = line.credentialed().await?;
                line.wire.transport.own_stream(headers).await
            };
            match opening.await {
                Ok(Some(mut frames)) => {
                    self.known.cancel();
                    while let Some(Ok(frame)) = frames.next().await {
                        self.hear(line, frame, sole).await;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(%error, "a session's stream cannot be opened");
                    self.known.cancel();
                    if !may_pass(&error) {
                        return;
                    }
                }
            }
            sleep(pause.after(began.elapsed())).await;
        }
    }

    async fn hear(&self, line: &Arc<Line>, frame: Frame, sole: bool) {
        match frame {
            Frame::Request(request) if &*request.method == methods::PING => {
                line.answer(&request).await;
            }
            Frame::Request(request) => match self.only(sole, |place| place.asks) {
                Whose::Call(aside) => {
                    if let Some(Frame::Request(request)) = aside.put(Frame::Request(request)) {
                        line.answer(&request).await;
                    }
                }
                Whose::Several => line.refuse(&request, WHOSE).await,
                Whose::Nobody => line.answer(&request).await,
            },
            Frame::Notification(notification) => self.note(line, notification, sole),
            Frame::Response(_) => line.terms.drop_frame(),
        }
    }

    fn note(&self, line: &Line, notification: Notification, sole: bool) {
        let whose = match &*notification.method {
            // It names a request, and is nothing to a call that was not asked that.
            methods::CANCELLED => {
                for place in self.places().iter().filter(|place| place.asks) {
                    drop(place.aside.put(Frame::Notification(notification.clone())));
                }
                return;
            }
            methods::PROGRESS => {
                if !self.progress(notification) {
                    line.terms.drop_frame();
                }
                return;
            }
            methods::MESSAGE => self.only(sole, |_| true),
            // As a rule it is known who was sent there.
            methods::ELICITATION_COMPLETE if line.page_is_done(&notification) => return,
            methods::ELICITATION_COMPLETE => self.only(sole, |_| true),
            _ => return line.hear(&notification),
        };
        let untold = match whose {
            Whose::Call(aside) => aside.put(Frame::Notification(notification)).is_some(),
            Whose::Several | Whose::Nobody => true,
        };
        if untold {
            line.terms.drop_frame();
        }
    }

    /// The only one of those in flight that may be meant.
    fn only(&self, sole: bool, may: impl Fn(&Place) -> bool) -> Whose {
        let mut places = self.places();
        places.retain(Place::counts);
        let mut may = places.iter().filter(|place| may(place));
        match (may.next(), may.next()) {
            (None, _) => Whose::Nobody,
            (Some(only), None) if sole && only.left.is_some() => Whose::Nobody,
            (Some(only), None) if sole => Whose::Call(Arc::clone(&only.aside)),
            _ => Whose::Several,
        }
    }

    /// The one whose number is the token of this progress.
    fn named(&self, progress: &Notification) -> Option<Arc<Aside>> {
        let number = number_of(progress)?;
        let places = self.places();
        let named = places.iter().find(|place| place.number == number)?;
        Some(Arc::clone(&named.aside))
    }

    /// A panic under the lock leaves a list that is still whole, so poison says nothing.
    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Others for Ear {
    fn progress(&self, notification: Notification) -> bool {
        let named = self.named(&notification);
        named.is_some_and(|aside| aside.put(Frame::Notification(notification)).is_none())
    }
}

impl Hearing {
    /// What is said to the call on its session's own stream.
    pub(super) fn aside(&self) -> Arc<Aside> {
        Arc::clone(&self.aside)
    }

    /// The call was answered, or not even taken: what is asked from here on is not its.
    pub(super) fn leave(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        let unread = self.aside.close();
        let mut places = self.ear.places();
        if self.is_answered {
            places.retain(|place| place.number != self.number);
        } else if let Some(place) = places.iter_mut().find(|place| place.number == self.number) {
            place.left = Some(Instant::now());
        }
        drop(places);
        let mut questions = unread.into_iter().filter_map(|frame| match frame {
            Frame::Request(request) => Some(request),
            Frame::Notification(_) | Frame::Response(_) => None,
        });
        // Outside a runtime there is nobody to tell it: the process is ending.
        if let Some(first) = questions.next()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            let questions: Vec<_> = [first].into_iter().chain(questions).collect();
            let line = Arc::clone(&self.line);
            self.line.terms.tasks.spawn(async move {
                for question in questions {
                    line.answer(&question).await;
                }
            });
        }
    }
}

/// Whether a stream that could not be opened for this reason may be opened later.
fn may_pass(error: &UpstreamError) -> bool {
    // Asked again, a server without such a stream, or without the session, would say the same; a credential may be another by then.
    let is_final = |status| {
        status == 501 || status / 100 == 4 && !matches!(status, 401 | 408 | 409 | 425 | 429)
    };
    if error.status().is_some_and(is_final) {
        return false;
    }
    matches!(
        error,
        UpstreamError::Unavailable { .. }
            | UpstreamError::Timeout(_)
            | UpstreamError::Overloaded
            | UpstreamError::NoMemory
            | UpstreamError::Auth(_)
            | UpstreamError::Credential(_)
    )
}
