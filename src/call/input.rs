//! Asking back: what a server wants of the client before it goes on, and how the call goes on afterwards (PROTOCOL D2).
//!
//! Asking is an outcome and answering is another call. A legacy server's own requests take this shape in its peer, a legacy
//! client is asked with requests of ours by its dialect, and everything between knows one shape only.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Event;
use crate::{json::Json, jsonrpc::RpcError};

/// An outcome that is no end: the caller is to answer, and to call again.
#[derive(Debug, Clone)]
pub struct InputRequired {
    /// `inputRequests` as an object, `{key: {method, params}}`; may be empty, when there is only a state to bring back.
    pub requests: Json,
    /// How the call is known again.
    pub state: State,
    /// Keeps what waits for the answers, if anything does.
    pub hold: Option<Hold>,
}

/// Keeps an exchange that waits for answers. Once the last copy is dropped the exchange is let go of, unless its caller was told
/// how to go on with it: so whatever takes a question back, or fails between the question and the answers, needs to do nothing.
#[derive(Debug, Clone)]
pub struct Hold {
    held: Arc<Held>,
    /// What the events meanwhile go through on their way up, lowest first.
    lenses: Vec<Lens>,
}

#[derive(Debug)]
struct Held {
    unwanted: CancellationToken,
    meanwhile: watch::Receiver<Meanwhile>,
    /// A lock, because whoever asks by requests takes it out of what is shared.
    events: Mutex<Option<mpsc::Receiver<Event>>>,
    told: AtomicBool,
}

/// Makes of an event what those above are to see.
#[derive(Clone)]
struct Lens(Arc<dyn Fn(Event) -> Event + Send + Sync>);

/// What happens while the caller is asked, for a caller whose request is still open: as all above the exchange let it through.
#[derive(Debug)]
pub struct Aside {
    events: mpsc::Receiver<Event>,
    lenses: Vec<Lens>,
}

/// What has become of an exchange since its caller was asked. Who is asked by requests is to hear of it at once (PROTOCOL A4,
/// D1); who was asked by a result hears of it when it comes back.
#[derive(Debug, Clone, Default)]
pub struct Meanwhile {
    /// It has ended: its outcome is there for whoever goes on with it, and nobody waits for answers any more.
    pub over: bool,
    /// The keys of the questions that were taken back.
    pub withdrawn: Vec<String>,
}

impl Hold {
    /// A hold that cancels `unwanted` when it is dropped, of an exchange of which `meanwhile` tells and whose `events` go on.
    pub fn new(
        unwanted: CancellationToken,
        meanwhile: watch::Receiver<Meanwhile>,
        events: mpsc::Receiver<Event>,
    ) -> Self {
        Self {
            held: Arc::new(Held {
                unwanted,
                meanwhile,
                events: Mutex::new(Some(events)),
                told: AtomicBool::new(false),
            }),
            lenses: Vec::new(),
        }
    }

    /// Events go through `lens` too: whoever changes those of a reply's stream changes these alike.
    pub fn look_through(&mut self, lens: impl Fn(Event) -> Event + Send + Sync + 'static) {
        self.lenses.push(Lens(Arc::new(lens)));
    }

    /// The events of the exchange; once, and only for a caller whose request is still open.
    pub fn events(&self) -> Option<Aside> {
        let events = self.held.events.lock();
        // Nothing panics under the lock, and an option is whole at any time.
        let events = events.unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Aside {
            events,
            lenses: self.lenses.clone(),
        })
    }

    /// Tells what becomes of the exchange; closed once nobody reads it on.
    pub fn meanwhile(&self) -> watch::Receiver<Meanwhile> {
        self.held.meanwhile.clone()
    }

    /// The caller is told how to go on, and will or will not: nobody here can know.
    pub fn told(&self) {
        self.held.told.store(true, Ordering::Relaxed);
    }
}

impl Aside {
    /// The next event; `None` when somebody goes on with the exchange, or nobody can. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
        Some(self.seen(event))
    }

    /// What has happened and was not told yet; nothing is waited for.
    pub fn rest(&mut self) -> VecDeque<Event> {
        let there = self.events.len();
        let events = std::iter::from_fn(|| self.events.try_recv().ok());
        let events: Vec<_> = events.take(there).collect();
        events.into_iter().map(|event| self.seen(event)).collect()
    }

    fn seen(&self, event: Event) -> Event {
        self.lenses.iter().fold(event, |event, lens| lens.0(event))
    }
}

impl std::fmt::Debug for Lens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lens")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !*self.told.get_mut() {
            self.unwanted.cancel();
        }
    }
}

/// What makes a call known again when it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The upstream's own `requestState` exactly as it came; `None` when it gave none, which is not the empty string.
    Upstream(Option<Json>),
    /// The upstream's exchange is held open in this process, under this number.
    Parked(u64),
    /// The gateway asks for itself, in a round of its own before the upstream is contacted (PROTOCOL D2a): the note of whoever
    /// asks, at most 1 KiB. That such a note comes back proves that all above the asker admitted this call before.
    Own(Arc<str>),
    /// One of the others, sealed: all that a client ever sees (SECURITY STATE-2).
    Sealed(Arc<str>),
}

/// How a call goes on.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// `inputResponses` of this round, as an object; `None` when only the state came back.
    pub responses: Option<Json>,
    /// Questions that the client answered with an error of its own, by key. Only a client that is asked with requests can, and
    /// only a server that asks with requests can hear of it (PROTOCOL D1, D2b).
    pub refused: Vec<(String, RpcError)>,
    /// What the outcome before gave; `None` when the caller brought answers and no state.
    pub state: Option<State>,
    /// What that keeps, where it never left the gateway.
    pub hold: Option<Hold>,
}
