//! The requests of one session that are running, by id: what `notifications/cancelled` finds, and what a session's end ends.
//!
//! Guarantees: an id names at most one running request; telling one reaches that one and no other; the table is bounded. A
//! request costs one small allocation and two short locks that only its own session takes.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hashbrown::{HashMap, hash_map::Entry};

use super::Session;
use crate::{
    call::Cut,
    json::{Json, Node},
    jsonrpc::RequestId,
};

/// Requests of one session that may run at once.
const MOST: usize = 1_024;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Flights {
    // A plain lock: held for single looks and changes only.
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    running: HashMap<Bytes, Arc<Signal>>,
    /// The session has ended: nothing starts any more.
    closed: bool,
}

/// How one request is told to stop.
#[derive(Debug, Default)]
struct Signal {
    /// One of the numbers of [`Over`], or zero.
    told: AtomicU8,
    waker: AtomicWaker,
}

/// Why a request stops before its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::downstream) enum Over {
    /// The client no longer wants it: it gets no answer.
    Cancelled = 1,
    /// Its session has ended: it is answered with that.
    Ended = 2,
}

impl Over {
    /// The same for the record of its call, unless its client has given it up.
    pub(in crate::downstream) const fn cut(self) -> Option<Cut> {
        match self {
            Self::Cancelled => None,
            Self::Ended => Some(Cut::SessionEnded),
        }
    }
}

/// Why a request may not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotNow {
    /// One with this id is running.
    Duplicate,
    /// There are too many.
    TooMany,
    /// The session has ended.
    Ended,
}

/// Holds the place of one running request until it is dropped.
#[derive(Debug)]
pub(in crate::downstream) struct Flight {
    session: Arc<Session>,
    key: Bytes,
    signal: Arc<Signal>,
}

impl Flights {
    /// Takes note of a request that starts.
    pub(super) fn enter(session: &Arc<Session>, id: &RequestId) -> Result<Flight, NotNow> {
        let key = id.key();
        let signal = Arc::<Signal>::default();
        let mut table = session.flights.lock();
        if table.closed {
            return Err(NotNow::Ended);
        }
        if table.running.len() >= MOST {
            return Err(NotNow::TooMany);
        }
        match table.running.entry(key.clone()) {
            Entry::Occupied(_) => return Err(NotNow::Duplicate),
            Entry::Vacant(place) => place.insert(signal.clone()),
        };
        drop(table);
        Ok(Flight {
            session: session.clone(),
            key,
            signal,
        })
    }

    /// Tells the request with this id, if one is running, that its client no longer wants it.
    pub(super) fn cancel(&self, params: &Json, id: Node<'_>) {
        let key = RequestId::key_of(id, params);
        let told = self.lock().running.get(&key).cloned();
        if let Some(signal) = told {
            signal.tell(Over::Cancelled);
        }
    }

    /// Ends all, and lets none start any more.
    pub(super) fn close(&self) {
        let running: Vec<_> = {
            let mut table = self.lock();
            table.closed = true;
            table.running.values().cloned().collect()
        };
        for signal in running {
            signal.tell(Over::Ended);
        }
    }

    /// Whether none is running.
    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// How many run.
    pub(super) fn count(&self) -> usize {
        self.lock().running.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signal {
    fn tell(&self, over: Over) {
        // The first word counts.
        let told = self
            .told
            .compare_exchange(0, over as u8, Ordering::AcqRel, Ordering::Acquire);
        if told.is_ok() {
            self.waker.wake();
        }
    }

    fn told(&self) -> Option<Over> {
        match self.told.load(Ordering::Acquire) {
            1 => Some(Over::Cancelled),
            2 => Some(Over::Ended),
            _ => None,
        }
    }
}

impl Flight {
    /// The session whose request it is.
    pub(in crate::downstream) const fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whether the request has been told to stop.
    pub(in crate::downstream) fn over(&self) -> Option<Over> {
        self.signal.told()
    }

    /// Ready when it is.
    pub(in crate::downstream) fn poll_over(&self, cx: &Context<'_>) -> Poll<Over> {
        if let Some(over) = self.over() {
            return Poll::Ready(over);
        }
        self.signal.waker.register(cx.waker());
        self.over().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.session.touch();
        self.session.flights.lock().running.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::{
        json::Limits,
        jsonrpc::{Frame, Message, decode},
    };

    fn id(text: &str) -> RequestId {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"ping"}}"#);
        let message = decode(frame.into(), &Limits::CLIENT).unwrap();
        let Message::One(Frame::Request(request)) = message else {
            panic!("{message:?}");
        };
        request.id
    }

    fn cancel(session: &Session, text: &str) {
        let text = format!(r#"{{"requestId":{text}}}"#);
        let params = Json::parse(text.into(), &Limits::CLIENT).unwrap();
        let node = params.root().member("requestId").unwrap();
        session.flights.cancel(&params, node);
    }

    #[test]
    fn cancelling_reaches_the_request_of_this_id_and_no_other() {
        let session = Session::for_tests();
        let ids = ["1", "2", r#""1""#, r#""a\"b""#];
        let flights: Vec<_> = ids
            .iter()
            .map(|text| Flights::enter(&session, &id(text)).unwrap())
            .collect();
        let told = || flights.iter().map(Flight::over).collect::<Vec<_>>();
        for unknown in ["3", r#""2""#, "null", "{}", "1.0"] {
            cancel(&session, unknown);
        }
        assert_eq!(told(), [None; 4]);
        cancel(&session, r#""1""#);
        cancel(&session, r#""\u0061\u0022b""#);
        let over = Some(Over::Cancelled);
        assert_eq!(told(), [None, None, over, over]);
        assert!(
            flights[2]
                .poll_over(&Context::from_waker(Waker::noop()))
                .is_ready()
        );
        assert!(
            flights[0]
                .poll_over(&Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }

    #[test]
    fn an_id_is_free_again_only_when_its_request_is_gone() {
        let session = Session::for_tests();
        let first = Flights::enter(&session, &id(r#""a""#)).unwrap();
        let again = Flights::enter(&session, &id(r#""\u0061""#));
        assert_eq!(again.unwrap_err(), NotNow::Duplicate);
        drop(first);
        assert!(session.flights.is_empty());
        assert!(Flights::enter(&session, &id(r#""a""#)).is_ok());
    }

    #[test]
    fn the_end_of_a_session_ends_all_and_lets_none_start() {
        let session = Session::for_tests();
        let flight = Flights::enter(&session, &id("1")).unwrap();
        session.flights.close();
        assert_eq!(flight.over(), Some(Over::Ended));
        assert_eq!(
            Flights::enter(&session, &id("2")).unwrap_err(),
            NotNow::Ended
        );
    }

    #[test]
    fn there_are_only_so_many_at_once() {
        let session = Session::for_tests();
        let flights: Vec<_> = (0..MOST)
            .map(|number| Flights::enter(&session, &id(&number.to_string())).unwrap())
            .collect();
        let more = || Flights::enter(&session, &id("\"more\""));
        assert_eq!(more().unwrap_err(), NotNow::TooMany);
        drop(flights);
        assert!(more().is_ok());
    }
}
