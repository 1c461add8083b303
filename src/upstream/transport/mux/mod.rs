//! Many exchanges over one channel: which frame answers whom.
//!
//! Guarantees: a response reaches the exchange that waits for its id, or nobody; an id that was given up on is never
//! matched again; what is of an exchange reaches it in the order in which it was said, and a question among it always, also
//! where its caller does not read; one exchange that is not read does not stop the others, and holds them up for a moment, or for
//! a while where all are one caller's; nothing of it is lost until then; when the channel dies, every exchange is told. Bounds:
//! [`MAX_WAITING`] exchanges, [`QUEUE`] frames or [`HELD_BYTES`] waiting to be read in each, beside [`RESERVE`] questions of as many bytes or a larger
//! one, and as many or one larger frame in the unsolicited queue. What is lost by that is counted. Deliberately
//! absent: writing, framing, and telling the upstream that an exchange was given up.

mod exchange;
mod inbox;

#[cfg(test)]
mod batches;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Answer, Frames, Head, Owners};
use crate::{
    json::Limits,
    jsonrpc::{Frame, RequestId},
    protocol::UpstreamId,
    upstream::{Reached, UpstreamError},
};

pub(super) use exchange::{Exchange, Slot};
pub(super) use inbox::Inbox;

use inbox::Held;

/// The most exchanges that wait at once; the next is refused.
const MAX_WAITING: usize = 2_048;
/// The most frames that wait to be read, in each exchange and in the unsolicited queue.
const QUEUE: usize = 256;
/// The most requests of the server's, and words about them, that wait to be read beside those in an exchange.
const RESERVE: usize = 32;
/// The most bytes that wait to be read, likewise. A response always fits.
const HELD_BYTES: usize = 1 << 20;
/// The longest text that is no message and is kept: of a longer one nothing is, since it may be cut within a secret.
const MAX_KEPT: usize = 4 << 10;
/// How many given-up ids are remembered, to tell late answers from foreign ones.
const REMEMBERED: usize = 1_024;

/// The exchanges of one channel. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Mux(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    upstream: UpstreamId,
    /// Protects the map and the verdict together, so that no exchange joins a dead channel. Never held across an await.
    state: Mutex<State>,
    /// Set once, when the channel is dead.
    ended: CancellationToken,
    /// Set once, when it is about to be: nothing waits for room any more.
    hurried: CancellationToken,
    /// The unsolicited frames, until somebody takes them.
    unsolicited: Mutex<Option<mpsc::Receiver<Held>>>,
    /// Who says whose a frame is that names nobody.
    owners: OnceLock<Arc<dyn Owners>>,
    /// The last text that was no message; see [`MAX_KEPT`].
    noise: Mutex<Option<String>>,
}

#[derive(Debug)]
enum State {
    Open {
        waiting: HashMap<u64, Waiting>,
        abandoned: VecDeque<u64>,
        /// The first request, while it is the only one that there was.
        first: First,
    },
    Dead(UpstreamError),
}

/// What was asked of a channel so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Nothing,
    Only(u64),
    More,
}

#[derive(Debug)]
struct Waiting {
    slot: Arc<Slot>,
    limits: Limits,
    listens: bool,
}

/// Whose an id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stray {
    /// Asked, and given up on since.
    Late,
    /// Never asked, or answered already.
    Foreign,
}

impl Mux {
    /// A mux, and the end into which what was read goes.
    /// Messages are read within `json`, those that an exchange wants to be read otherwise aside.
    pub(super) fn new(upstream: UpstreamId, json: Limits) -> (Self, Inbox) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let mux = Self(Arc::new(Shared {
            upstream,
            state: Mutex::new(State::Open {
                waiting: HashMap::new(),
                abandoned: VecDeque::new(),
                first: First::Nothing,
            }),
            ended: CancellationToken::new(),
            hurried: CancellationToken::new(),
            unsolicited: Mutex::new(Some(receiver)),
            owners: OnceLock::new(),
            noise: Mutex::new(None),
        }));
        let inbox = Inbox::new(mux.clone(), sender, json);
        (mux, inbox)
    }

    /// Makes room for the answer to `id`; to be called before the request is written.
    ///
    /// # Errors
    /// `Unavailable` with what ended the channel; `Overloaded` when too many wait.
    pub(super) fn begin(&self, id: &RequestId, limits: Limits) -> Result<Exchange, UpstreamError> {
        self.enter(id, limits, false)
    }

    /// The same for a listen of the stateless era: what names it as its subscription is part of its answer.
    ///
    /// # Errors
    /// As [`Mux::begin`].
    pub(super) fn begin_listen(
        &self,
        id: &RequestId,
        limits: Limits,
    ) -> Result<Exchange, UpstreamError> {
        self.enter(id, limits, true)
    }

    fn enter(
        &self,
        id: &RequestId,
        limits: Limits,
        listens: bool,
    ) -> Result<Exchange, UpstreamError> {
        let fault = |what| UpstreamError::unreached(format!("the request id {what}"));
        let number = id.as_minted().ok_or_else(|| fault("is no number"))?;
        match &mut *self.state() {
            State::Dead(error) => Err(unsent(error)),
            State::Open { waiting, .. } if waiting.len() >= MAX_WAITING => {
                Err(UpstreamError::Overloaded)
            }
            State::Open { abandoned, .. } if abandoned.contains(&number) => {
                Err(fault("was used before"))
            }
            State::Open { waiting, first, .. } => match waiting.entry(number) {
                Entry::Occupied(_) => Err(fault("is in use")),
                Entry::Vacant(entry) => {
                    *first = match first {
                        First::Nothing => First::Only(number),
                        First::Only(_) | First::More => First::More,
                    };
                    let slot = Arc::new(Slot::default());
                    entry.insert(Waiting {
                        slot: Arc::clone(&slot),
                        limits,
                        listens,
                    });
                    Ok(Exchange::new(self.clone(), number, slot))
                }
            },
        }
    }

    /// Waits for the first frame of an exchange: a lone response is the whole answer.
    pub(super) async fn answer(mut exchange: Exchange) -> Result<Answer, UpstreamError> {
        let head = Head::default();
        match exchange.next().await {
            Some(Ok(frame @ Frame::Response(_))) => Ok(Answer::One(head, frame)),
            Some(Ok(frame)) => {
                let rest = stream::unfold(exchange, |mut exchange| async {
                    let next = exchange.next().await?;
                    Some((next, exchange))
                });
                let frames = stream::once(async { Ok(frame) }).chain(rest);
                Ok(Answer::Stream(head, frames.boxed()))
            }
            Some(Err(error)) => Err(error),
            None => Err(UpstreamError::unreached("the exchange is over")),
        }
    }

    /// The frames that answer nothing; once.
    pub(super) fn unsolicited(&self) -> Result<Frames, UpstreamError> {
        let taken = self.0.unsolicited.lock();
        let taken = taken.unwrap_or_else(PoisonError::into_inner).take();
        let receiver =
            taken.ok_or_else(|| UpstreamError::unreached("its frames are taken already"))?;
        let frames = stream::unfold(receiver, |mut receiver| async {
            let held = receiver.recv().await?;
            Some((Ok(held.frame), receiver))
        });
        Ok(frames.boxed())
    }

    /// Sorts by these what names no exchange; once.
    pub(super) fn sort_by(&self, owners: Arc<dyn Owners>) {
        // Whoever came first knows the session, and there is one on a channel.
        drop(self.0.owners.set(owners));
    }

    /// The first request, as long as there was no other: nothing else can have been refused without being named.
    fn only(&self) -> Option<u64> {
        match &*self.state() {
            State::Open {
                first: First::Only(number),
                ..
            } => Some(*number),
            State::Open { .. } | State::Dead(_) => None,
        }
    }

    /// The slot of the exchange that a frame belongs to which names none.
    fn owner(&self, frame: &Frame) -> Option<Arc<Slot>> {
        let number = self.0.owners.get()?.whose(frame)?;
        self.waiting(number).map(|(slot, _limits)| slot)
    }

    /// The answer has come to a request that was given up on, or will be because it cannot be read.
    fn late(&self, number: u64) {
        if let Some(owners) = self.0.owners.get() {
            owners.late(number);
        }
    }

    /// The last text that was no message, as it came.
    pub(super) fn noise(&self) -> Option<String> {
        let noise = self.0.noise.lock();
        noise.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hear(&self, noise: &[u8]) {
        let heard = (noise.len() <= MAX_KEPT).then(|| String::from_utf8_lossy(noise).into_owned());
        let mut noise = self.0.noise.lock().unwrap_or_else(PoisonError::into_inner);
        *noise = heard;
    }

    /// Whether all exchanges are one caller's, so that whoever does not read one of them holds nobody else up.
    fn is_of_one(&self) -> bool {
        let owners = self.0.owners.get();
        owners.is_some_and(|owners| owners.is_of_one())
    }

    /// What is left in the channel is to be read at once, whoever reads it: it will soon be dead.
    pub(super) fn hurry(&self) {
        self.0.hurried.cancel();
    }

    /// Resolves when there is no more time to wait for anybody.
    async fn hurried(&self) {
        self.0.hurried.cancelled().await;
    }

    fn unsolicited_is_taken(&self) -> bool {
        let taken = self.0.unsolicited.lock();
        taken.unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The channel is dead: every exchange learns it, and so does [`Mux::lost`]. Later calls change nothing.
    pub(super) fn end(&self, error: UpstreamError) {
        let told = if matches!(error, UpstreamError::Unavailable { .. }) {
            error.clone()
        } else {
            UpstreamError::unreached(&error)
        };
        let open = match &mut *self.state() {
            State::Dead(_) => return,
            state @ State::Open { .. } => mem::replace(state, State::Dead(error)),
        };
        if let State::Open { waiting, .. } = open {
            for waiting in waiting.into_values() {
                waiting.slot.finish(Err(told.clone()));
            }
        }
        self.0.ended.cancel();
    }

    /// Resolves with what ended the channel.
    pub(super) async fn lost(&self) -> UpstreamError {
        self.0.ended.cancelled().await;
        match &*self.state() {
            State::Dead(error) => error.clone(),
            State::Open { .. } => UpstreamError::unreached("ended"),
        }
    }

    /// A guard for the task that knows how the channel ends: the channel ends with it, whatever becomes of the task.
    pub(super) fn last_word(&self) -> LastWord {
        LastWord(self.clone())
    }

    /// The slot that waits for `number`, and with what limits.
    fn waiting(&self, number: u64) -> Option<(Arc<Slot>, Limits)> {
        match &*self.state() {
            State::Open { waiting, .. } => {
                let waiting = waiting.get(&number)?;
                Some((Arc::clone(&waiting.slot), waiting.limits))
            }
            State::Dead(_) => None,
        }
    }

    /// The slot of the listen `number`.
    fn listening(&self, number: u64) -> Option<Arc<Slot>> {
        match &*self.state() {
            State::Open { waiting, .. } => {
                let waiting = waiting.get(&number).filter(|waiting| waiting.listens)?;
                Some(Arc::clone(&waiting.slot))
            }
            State::Dead(_) => None,
        }
    }

    /// Ends an exchange: nothing more will match `number`.
    fn finish(
        &self,
        number: u64,
        with: impl FnOnce(&Limits) -> Result<Frame, UpstreamError>,
    ) -> Result<(), Stray> {
        let found = match &mut *self.state() {
            State::Open {
                waiting, abandoned, ..
            } => waiting.remove(&number).ok_or_else(|| {
                match abandoned.iter().position(|late| *late == number) {
                    Some(_) => Stray::Late,
                    None => Stray::Foreign,
                }
            }),
            State::Dead(_) => Err(Stray::Late),
        }?;
        found.slot.finish(with(&found.limits));
        Ok(())
    }

    fn abandon(&self, number: u64) {
        if let State::Open {
            waiting, abandoned, ..
        } = &mut *self.state()
            && waiting.remove(&number).is_some()
        {
            if abandoned.len() == REMEMBERED {
                abandoned.pop_front();
            }
            abandoned.push_back(number);
        }
    }

    /// A panic under the lock leaves a map that is still whole, so poison says nothing.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What ended a channel, for those of whom nothing was sent: to them the server is away, whatever was wrong with it.
pub(super) fn unsent(ended_by: &UpstreamError) -> UpstreamError {
    let cause = if let UpstreamError::Unavailable { cause, .. } = ended_by {
        cause.clone()
    } else {
        ended_by.to_string()
    };
    UpstreamError::Unavailable {
        cause,
        retry_at: None,
        status: None,
        reached: Reached::Unsent,
    }
}

/// Says how the channel ended, or when it is dropped unsaid, that its task was stopped.
#[derive(Debug)]
pub(super) struct LastWord(Mux);

impl LastWord {
    pub(super) fn say(self, error: UpstreamError) {
        self.0.end(error);
    }
}

impl Drop for LastWord {
    fn drop(&mut self) {
        self.0.end(UpstreamError::unreached("stopped"));
    }
}
