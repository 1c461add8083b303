//! Where calls wait while their callers are asked (PROTOCOL D2c).
//!
//! Guarantees: a waiting call is known by a number that cannot be guessed, goes on only for its own principal and request, and
//! goes on once; it is read on meanwhile, so that pings are answered and its end is seen, which whoever holds it is told
//! of, within five seconds where roots are still wanted; after the time that state is good for, or when its session or its
//! caller's ends, or when nobody can be told any more how to go on with it, it is given up and the server told. An outcome
//! that has come is kept though its session goes: nothing more is needed of that.
//! Bounds: [`MAX_PARKED`] calls of one upstream, [`MAX_OF_ONE`] of them of one principal.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::open::OpenCall;
use crate::{
    call::{Call, Hold, Op, Principal},
    upstream::patience::Asked,
};

/// The most calls of one upstream that wait for people.
pub(super) const MAX_PARKED: usize = 1_024;
/// The most of them that are one principal's, who must not keep everybody else from being asked.
const MAX_OF_ONE: usize = MAX_PARKED / 4;

/// The waiting calls of one upstream.
#[derive(Default)]
pub(super) struct ParkedCalls {
    /// A lock, because entries come and go while nothing is awaited.
    waiting: Mutex<HashMap<u64, Ticket>>,
    /// Cancelled when nobody can come for any of them any more.
    closed: CancellationToken,
}

struct Ticket {
    principal: Principal,
    op: Op,
    take: oneshot::Sender<oneshot::Sender<Box<OpenCall>>>,
}

impl ParkedCalls {
    /// Parks a call; the number stands for it, for as long as it is held.
    ///
    /// # Errors
    /// The call itself, when there is no room for it.
    pub(super) fn park(mut call: Box<OpenCall>) -> Result<(u64, Hold), Box<OpenCall>> {
        let parked_calls = Arc::clone(call.parked_calls());
        let (take, taken) = oneshot::channel();
        let number = {
            let mut waiting = parked_calls.waiting();
            let (caller, op) = call.about();
            let of_theirs = |ticket: &&Ticket| ticket.principal == caller.principal;
            if waiting.len() >= MAX_PARKED
                || waiting.values().filter(of_theirs).count() >= MAX_OF_ONE
            {
                return Err(call);
            }
            let ticket = Ticket {
                principal: caller.principal.clone(),
                op: op.clone(),
                take,
            };
            let mut number = random();
            while waiting.contains_key(&number) {
                number = random();
            }
            waiting.insert(number, ticket);
            number
        };
        let session = Arc::clone(call.session());
        let asking = session.asking.ask();
        let unwanted = CancellationToken::new();
        let (meanwhile, events) = call.meanwhile();
        let hold = Hold::new(unwanted.clone(), meanwhile, events);
        let waiting = wait(call, number, taken, asking, unwanted);
        let tracked = session.parked.track_future(waiting);
        session.line.terms.tasks.spawn(tracked);
        Ok((number, hold))
    }

    /// Whether `call` may go on with the call of this number.
    pub(super) fn holds(&self, number: u64, call: &Call) -> bool {
        let waiting = self.waiting();
        waiting
            .get(&number)
            .is_some_and(|ticket| ticket.is_for(call))
    }

    /// Whether any call of this number waits.
    pub(super) fn waits(&self, number: u64) -> bool {
        self.waiting().contains_key(&number)
    }

    /// The waiting call of this number, if `call` may go on with it. It waits no more.
    pub(super) async fn take(&self, number: u64, call: &Call) -> Option<Box<OpenCall>> {
        let ticket = {
            let mut waiting = self.waiting();
            if !waiting.get(&number)?.is_for(call) {
                return None;
            }
            waiting.remove(&number)?
        };
        let (give, given) = oneshot::channel();
        ticket.take.send(give).ok()?;
        let open = given.await.ok()?;
        // What it was begun with may have ended while a person was asked; what `call` came with is good.
        open.session().line.speaks_for(&call.identity);
        Some(open)
    }

    /// Gives up all that wait, and the outcomes that are kept.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// How many calls wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting().len()
    }

    /// A panic under the lock leaves a map that is still whole, so poison says nothing.
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Ticket>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    fn is_for(&self, call: &Call) -> bool {
        self.principal == call.caller.principal && self.op == call.op
    }
}

/// Reads a parked call on until somebody takes it, or nobody will.
async fn wait(
    mut call: Box<OpenCall>,
    number: u64,
    mut taken: oneshot::Receiver<oneshot::Sender<Box<OpenCall>>>,
    asking: Asked,
    unwanted: CancellationToken,
) {
    // A person is waited for as long as the state that a client brings back is good (SECURITY 6).
    let life = call.session().line.terms.peer.asking.life;
    let until = Instant::now() + Duration::from_secs(life);
    let mut asking = Some(asking);
    let gone = call.session().gone.clone();
    let closed = call.parked_calls().closed.clone();
    let owner = call.about().0.affinity.ended.clone();
    let taker = loop {
        let owner_ended = async {
            match &owner {
                Some(ended) => ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let over = call.is_over();
        let lingers = call.lingers();
        let lingered = async {
            match lingers {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        if over {
            // Nobody is waited for any more, and others may be asked.
            asking = None;
        }
        tokio::select! {
            biased;
            taker = &mut taken => break taker.ok(),
            () = owner_ended => break None,
            () = closed.cancelled() => break None,
            () = gone.cancelled(), if !call.has_outcome() => break None,
            () = unwanted.cancelled() => break None,
            () = sleep_until(until) => break None,
            () = lingered => call.lingered(),
            heard = call.hear(), if !over => call.take_in(heard).await,
        }
    };
    let parked_calls = Arc::clone(call.parked_calls());
    let taker = match taker {
        Some(taker) => Some(taker),
        None if parked_calls.waiting().remove(&number).is_some() => None,
        // Somebody came for it at the last moment.
        None => taken.await.ok(),
    };
    drop(asking);
    match taker {
        Some(taker) => {
            // Whoever came for it may be gone again: then it is dropped here, which gives it up.
            drop(taker.send(call));
        }
        None => call.expire().await,
    }
}

/// A number that cannot be guessed.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    // INVARIANT: the operating system's random source does not fail after boot.
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    u64::from_ne_bytes(bytes)
}
