//! Sessions of the handshake era: unguessable, bounded, bound to one principal and one endpoint (SECURITY STATE-6).

use std::{
    cmp::Reverse,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use dashmap::DashMap;
use hashbrown::DefaultHashBuilder;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Session, SessionSeen, outbox, session::Shared};
use crate::{
    call::{Affinity, Caller, Identity},
    downstream::seats::{Seat, Seats},
    events::{Pages, Party},
    json::Json,
    metrics,
    protocol::{ClientCapabilities, Revision, names::Scope},
    tasks::Tasks,
};

/// Bounds of legacy sessions (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct SessionBounds {
    /// Sessions of one principal; of whoever has no name, of one address elsewhere, and of all on this machine together. Default
    /// 1,024.
    pub per_principal: usize,
    /// Sessions in this process: default 50,000.
    pub total: usize,
    /// Ended after this long without a request or open stream: default 15 min.
    pub idle: Duration,
    /// Ended after this long in any case: default 8 h.
    pub absolute: Duration,
    /// Resources that one is subscribed to: default 256.
    pub addresses: usize,
    /// Notices that wait for its reader, and the bytes of the URIs of those that are not watched but below: default 256 and 1 MiB.
    pub waiting: (usize, usize),
}

impl Default for SessionBounds {
    fn default() -> Self {
        Self {
            per_principal: 1_024,
            total: 50_000,
            idle: Duration::from_secs(15 * 60),
            absolute: Duration::from_secs(8 * 3600),
            addresses: 256,
            waiting: (256, 1 << 20),
        }
    }
}

/// How long one has to be left alone before it may end to make room for another of its party.
const LEFT: Duration = Duration::from_secs(60);
/// How many end at once then, so that they are seldom looked for.
const MADE_ROOM: usize = 64;
/// How long it is not looked again where there was nothing to end.
const FRUITLESS: Duration = Duration::from_secs(1);

/// How often ended sessions are looked for.
const SWEEP: Duration = Duration::from_secs(20);

/// There are too many sessions.
#[derive(Debug)]
pub(in crate::downstream) struct Refused;

/// All sessions of this process.
// Sharded maps, because keys arrive at run time; no guard leaves a method.
#[derive(Debug)]
pub struct Sessions {
    bounds: SessionBounds,
    live: DashMap<Arc<str>, Live, DefaultHashBuilder>,
    seats: Arc<Seats>,
    /// For whom room was looked for in vain last, and when. Held for a moment, by who finds no seat.
    full: Mutex<Option<(Party, Instant)>>,
    shared: Shared,
}

/// An open session, which takes a seat.
#[derive(Debug)]
struct Live {
    session: Arc<Session>,
    seat: Seat,
}

/// Into how many parts the table of sessions is divided, each with a lock that whoever looks at it changes: so many that calls of
/// two lanes seldom meet at one.
const SHARDS: usize = 128;

impl Sessions {
    /// No sessions yet, whose clients are sent to `pages`. A task in `tasks` ends those that are idle or old.
    pub fn new(bounds: SessionBounds, pages: Arc<Pages>, tasks: &Tasks) -> Arc<Self> {
        let sessions = Arc::new(Self {
            bounds,
            live: DashMap::with_hasher_and_shard_amount(DefaultHashBuilder::default(), SHARDS),
            seats: Arc::default(),
            full: Mutex::default(),
            shared: Shared {
                outboxes: Arc::new(outbox::Shared::keeping(outbox::Room {
                    notices: bounds.waiting.0,
                    bytes: bounds.waiting.1,
                    watched: bounds.addresses,
                })),
                pages,
            },
        });
        let swept = Arc::downgrade(&sessions);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(sessions) = swept.upgrade() else {
                    return;
                };
                sessions.sweep(Instant::now());
            }
        });
        sessions
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.live.len()
    }

    /// What operators see of them, by reference. Looks at each in turn.
    pub fn seen(&self) -> Vec<SessionSeen> {
        let live = self.all();
        let mut seen: Vec<_> = live.iter().map(|session| session.seen()).collect();
        seen.sort_unstable_by(|one, two| one.reference.cmp(&two.reference));
        seen
    }

    /// Ends the one that operators know by this, as if its client had. Says whether there was one.
    pub fn end_seen(&self, reference: &str) -> bool {
        let found = self.all().into_iter();
        let mut found = found.filter(|session| session.reference() == reference);
        match found.next() {
            Some(session) => {
                self.end(&session);
                true
            }
            None => false,
        }
    }

    /// How many event streams were cut off because their clients did not keep up.
    pub fn slow_consumers(&self) -> u64 {
        self.shared.outboxes.slow.load(Ordering::Relaxed)
    }

    /// The bounds.
    pub(in crate::downstream) const fn bounds(&self) -> &SessionBounds {
        &self.bounds
    }

    /// Opens one for whoever comes from there. A `piped` one is its connection's: it has no age.
    pub(in crate::downstream) fn open(
        &self,
        (identity, address): (Arc<Identity>, Option<IpAddr>),
        scope: Scope,
        revision: Revision,
        capabilities: ClientCapabilities,
        piped: bool,
    ) -> Result<Arc<Session>, Refused> {
        let principal = identity.principal.clone();
        let party = Party::of(&principal, address);
        let seat = self.seat(&party)?;
        let id: Arc<str> = random_id().into();
        let ended = CancellationToken::new();
        let affinity = Affinity {
            key: id.clone(),
            ended: Some(ended.clone()),
        };
        let urls = Json::literal(r#"{"elicitation":{"url":{}}}"#);
        let caller = Caller {
            principal,
            revision,
            // A slice would keep the buffer of `initialize` for as long as the session lives.
            capabilities: capabilities.detached(),
            log_level: None,
            visits: revision == Revision::V2025_11_25 && capabilities.cover(&urls),
            affinity,
        };
        let session = Arc::new(Session::new(
            id.clone(),
            caller,
            identity,
            ended,
            scope,
            &self.shared,
            piped,
        ));
        let live = Live {
            session: session.clone(),
            seat,
        };
        self.live.insert(id, live);
        Ok(session)
    }

    /// A seat. Where a party has all it may have, those of its sessions end that were left alone for longest: many clients go without a
    /// word, and cannot end what they have forgotten.
    fn seat(&self, party: &Party) -> Result<Seat, Refused> {
        let bound = match self.seats.take(party, &self.bounds) {
            Ok(seat) => return Ok(seat),
            Err(bound) => bound,
        };
        if bound == metrics::Bound::SessionsPrincipal
            && self.make_room(party, Instant::now())
            && let Ok(seat) = self.seats.take(party, &self.bounds)
        {
            return Ok(seat);
        }
        metrics::reached(bound);
        Err(Refused)
    }

    /// Ends sessions of a party that nobody seems to use; whether there were any.
    fn make_room(&self, party: &Party, now: Instant) -> bool {
        let full = || self.full.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever asks again and again has not all sessions looked through each time.
        let in_vain = |(of, at): &(Party, Instant)| of == party && now < *at + FRUITLESS;
        if full().as_ref().is_some_and(in_vain) {
            return false;
        }
        let own = self.live.iter().filter(|live| live.seat.party() == party);
        let left = own.filter_map(|live| {
            let left = live.session.is_left_for(now)?;
            (left >= LEFT).then(|| (left, live.session.clone()))
        });
        let mut left: Vec<_> = left.collect();
        left.sort_unstable_by_key(|(left, _)| Reverse(*left));
        left.truncate(MADE_ROOM);
        for (_, session) in &left {
            metrics::reached(metrics::Bound::SessionIdle);
            self.end(session);
        }
        if left.is_empty() {
            *full() = Some((party.clone(), now));
        }
        !left.is_empty()
    }

    /// The session with this id, if it is this principal's, by the client that opened it, and of this endpoint; a stranger's is as unknown as none.
    pub(in crate::downstream) fn find(
        &self,
        id: &str,
        identity: &Arc<Identity>,
        scope: &Scope,
    ) -> Option<Arc<Session>> {
        let session = self.live.get(id).map(|live| live.session.clone())?;
        if !session.owner.is(identity, scope) {
            return None;
        }
        session.touch();
        session.identified(identity);
        Some(session)
    }

    /// The session with this id, for the connection that it belongs to: whoever looks does not use it, and proves nothing.
    pub(in crate::downstream) fn peek(&self, id: &str) -> Option<Arc<Session>> {
        self.live.get(id).map(|live| live.session.clone())
    }

    /// Ends one: its streams, its running requests and the upstream sessions opened for it end too.
    pub(in crate::downstream) fn end(&self, session: &Session) {
        // It keeps its seat until it has ended.
        let Some(_live) = self.live.remove(&session.id) else {
            return;
        };
        session.end();
        metrics::calls::session_served(session.revision, session.age());
    }

    /// Every session. No lock of the table is held afterwards.
    fn all(&self) -> Vec<Arc<Session>> {
        let entries = self.live.iter();
        entries.map(|live| live.session.clone()).collect()
    }

    /// Ends what is over. Takes every session in turn; no lock of the table is held meanwhile.
    fn sweep(&self, now: Instant) {
        for session in self.all() {
            if let Some(bound) = session.is_over(&self.bounds, now) {
                metrics::reached(bound);
                self.end(&session);
            } else {
                session.outbox.sweep(now);
            }
        }
    }
}

/// 128 random bits in hexadecimal.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(in crate::downstream) fn random_id() -> String {
    let mut bytes = [0_u8; 16];
    // INVARIANT: the system's generator fails only before the machine has any entropy, where nothing of ours may run.
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::{IdentityKind, Op},
        downstream::legacy::{flights::Flights, outbox::Form},
        json::Limits,
        jsonrpc::RequestId,
        metrics::{Bound, seen},
    };

    fn sessions(bounds: SessionBounds) -> Arc<Sessions> {
        Sessions::new(bounds, Arc::default(), &Tasks::new())
    }

    fn open(sessions: &Sessions) -> Result<Arc<Session>, Refused> {
        sessions.open(
            (Identity::anonymous(), None),
            Scope::All,
            Revision::V2025_11_25,
            ClientCapabilities::NONE,
            false,
        )
    }

    #[tokio::test]
    async fn a_session_is_found_only_by_its_principal_at_its_endpoint() {
        let sessions = sessions(SessionBounds::default());
        let session = open(&sessions).unwrap();
        let find =
            |id: &str, scope: &Scope| sessions.find(id, &Identity::anonymous(), scope).is_some();
        assert!(find(&session.id, &Scope::All));
        assert!(!find(&session.id, &Scope::Toolset("x".into())));
        assert!(!find("0123", &Scope::All));
        sessions.end(&session);
        assert!(!find(&session.id, &Scope::All));
        assert!(session.ended.is_cancelled());
        assert!(sessions.seats.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_all_sessions_there_may_be_gets_the_room_of_those_left_alone() {
        let sessions = sessions(SessionBounds {
            per_principal: 3,
            ..SessionBounds::default()
        });
        let find = |session: &Session| {
            let found = sessions.find(&session.id, &Identity::anonymous(), &Scope::All);
            found.is_some()
        };
        let [busy, used, left] = [(); 3].map(|()| open(&sessions).unwrap());
        let _reader = busy.outbox.open(Form::Events).unwrap();
        seen::take();
        assert!(open(&sessions).is_err(), "all are new");
        assert_eq!(seen::take(), [Bound::SessionsPrincipal]);
        tokio::time::advance(LEFT).await;
        assert!(find(&used));
        let new = open(&sessions).unwrap();
        assert_eq!(seen::take(), [Bound::SessionIdle]);
        assert!(!find(&left) && find(&busy) && find(&used) && find(&new));
        // Nobody's is left now.
        assert!(open(&sessions).is_err());
        assert_eq!(seen::take(), [Bound::SessionsPrincipal]);
    }

    /// Who was proved to be this principal.
    fn proved(principal: &str) -> Arc<Identity> {
        Arc::new(Identity::named(IdentityKind::Anonymous, principal))
    }

    #[tokio::test]
    async fn state_6_a_session_of_another_principal_is_as_unknown_as_none() {
        let sessions = sessions(SessionBounds::default());
        let (alice, bob) = (proved("alice"), proved("bob"));
        let none = ClientCapabilities::NONE;
        let session = sessions
            .open(
                (alice.clone(), None),
                Scope::All,
                Revision::V2025_11_25,
                none,
                false,
            )
            .unwrap();
        let find = |who: &Arc<Identity>| sessions.find(&session.id, who, &Scope::All);
        for other in [&bob, &Identity::anonymous()] {
            assert!(find(other).is_none());
        }
        // A stranger's attempt leaves no trace: not even that the session was used, or by whom.
        assert!(Arc::ptr_eq(&session.identity(), &alice));
        // Another proof of the same principal is as good.
        assert!(find(&proved("alice")).is_some());
        // And what streams of it there were is found through it alone.
        let other = sessions
            .open(
                (bob.clone(), None),
                Scope::All,
                Revision::V2025_11_25,
                ClientCapabilities::NONE,
                false,
            )
            .unwrap();
        let place = session.outbox.open(Form::Events).unwrap();
        let event = session.outbox.first_id(&place);
        assert!(other.outbox.resume(&event).is_err());
        assert!(session.outbox.resume(&event).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_looks_at_a_session_neither_uses_it_nor_proves_anything() {
        let key = || {
            let mut identity = Arc::into_inner(proved("alice")).unwrap();
            identity.kind = IdentityKind::Key;
            Arc::new(identity)
        };
        let (old, new) = (key(), key());
        let sessions = sessions(SessionBounds::default());
        let none = ClientCapabilities::NONE;
        let session = sessions
            .open((old, None), Scope::All, Revision::V2024_11_05, none, false)
            .unwrap();
        assert!(sessions.find(&session.id, &new, &Scope::All).is_some());
        tokio::time::advance(Duration::from_secs(7)).await;
        assert!(sessions.peek(&session.id).is_some());
        assert!(Arc::ptr_eq(&session.identity(), &new));
        assert_eq!(session.seen().idle, Duration::from_secs(7));
        sessions.end(&session);
        assert!(sessions.peek(&session.id).is_none());
    }

    #[tokio::test]
    async fn operators_see_sessions_without_their_ids_and_end_one_alone() {
        let sessions = sessions(SessionBounds::default());
        let (one, two) = (open(&sessions).unwrap(), open(&sessions).unwrap());
        let seen = sessions.seen();
        assert_eq!(seen.len(), 2);
        assert!(!format!("{seen:?}").contains(&*one.id));
        let reference = one.reference();
        assert!(seen.iter().any(|seen| seen.reference == reference));
        assert!(!sessions.end_seen(&one.id), "its id is no reference");
        assert!(sessions.end_seen(&reference) && !sessions.end_seen(&reference));
        assert!(one.ended.is_cancelled() && !two.ended.is_cancelled());
        assert_eq!(sessions.count(), 1);
    }

    #[tokio::test]
    async fn a_session_keeps_nothing_of_the_buffer_it_was_opened_with() {
        let text = format!(r#"{{"roots":{{}},"x":"{}"}}"#, "y".repeat(8_000));
        let message = Json::parse(text.into(), &Limits::CLIENT).unwrap();
        let roots = message.slice(message.root().member("roots").unwrap());
        let session = sessions(SessionBounds::default())
            .open(
                (Identity::anonymous(), None),
                Scope::All,
                Revision::V2025_11_25,
                ClientCapabilities::read(roots).unwrap(),
                false,
            )
            .unwrap();
        let life = Duration::from_secs(1);
        let call = session.call(
            &session.identity(),
            Op::Discover,
            Json::empty_object(),
            life,
        );
        let kept = call.caller.capabilities.json().bytes();
        assert_eq!(&kept[..], b"{}");
        assert!(!message.bytes().as_ptr_range().contains(&kept.as_ptr()));
    }

    #[tokio::test]
    async fn sessions_over_the_bound_are_refused_until_one_ends() {
        let sessions = sessions(SessionBounds {
            per_principal: 2,
            ..SessionBounds::default()
        });
        let first = open(&sessions).unwrap();
        open(&sessions).unwrap();
        assert!(open(&sessions).is_err());
        sessions.end(&first);
        assert!(open(&sessions).is_ok());
    }

    /// SECURITY 6: legacy sessions of all principals together.
    #[tokio::test]
    async fn as_many_sessions_are_open_as_may_whosever_they_are_and_not_one_more() {
        let sessions = sessions(SessionBounds {
            total: 3,
            per_principal: 2,
            ..SessionBounds::default()
        });
        let of = |who: &str| {
            sessions.open(
                (proved(who), None),
                Scope::All,
                Revision::V2025_11_25,
                ClientCapabilities::NONE,
                false,
            )
        };
        let mut open = Vec::new();
        for who in ["ana", "ana", "bob"] {
            open.push(of(who).unwrap());
        }
        seen::take();
        assert!(of("bob").is_err());
        assert_eq!(seen::take(), [Bound::SessionsProcess]);
        sessions.end(&open[0]);
        assert!(of("bob").is_ok());
    }

    /// SECURITY 6: how long a legacy session is kept that nobody uses, and how long any.
    #[tokio::test(start_paused = true)]
    async fn a_session_lives_as_long_as_it_may_and_not_a_moment_longer() {
        const MOMENT: Duration = Duration::from_millis(1);
        let bounds = SessionBounds::default();
        for (life, is_read, noted) in [
            (bounds.idle, false, Bound::SessionIdle),
            (bounds.absolute, true, Bound::SessionAbsolute),
        ] {
            for (age, ends) in [(life - MOMENT, false), (life, true), (life + MOMENT, true)] {
                let sessions = Sessions::new(bounds, Arc::default(), &Tasks::new());
                let session = open(&sessions).unwrap();
                let _stream = is_read.then(|| session.outbox.open(Form::Events).unwrap());
                seen::take();
                sessions.sweep(Instant::now() + age);
                assert_eq!(session.ended.is_cancelled(), ends, "{life:?} {age:?}");
                assert_eq!(seen::take(), Vec::from_iter(ends.then_some(noted)));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_sessions_end_and_those_with_a_stream_live_to_their_absolute_age() {
        let bounds = SessionBounds::default();
        let sessions = sessions(bounds);
        let (idle, streaming) = (open(&sessions).unwrap(), open(&sessions).unwrap());
        let stream = streaming.outbox.open(Form::Events).unwrap();
        tokio::time::advance(bounds.idle).await;
        sessions.sweep(Instant::now());
        assert!(idle.ended.is_cancelled());
        assert!(!streaming.ended.is_cancelled());
        tokio::time::advance(bounds.absolute).await;
        sessions.sweep(Instant::now());
        assert_eq!(sessions.count(), 0);
        assert!(!streaming.outbox.reads(&stream));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_idle_only_since_its_last_running_request_ended() {
        let bounds = SessionBounds::default();
        let sessions = sessions(bounds);
        let session = open(&sessions).unwrap();
        let flight = Flights::enter(&session, &RequestId::minted(1)).unwrap();
        tokio::time::advance(bounds.idle * 2).await;
        sessions.sweep(Instant::now());
        assert!(!session.ended.is_cancelled());
        drop(flight);
        tokio::time::advance(bounds.idle / 2).await;
        sessions.sweep(Instant::now());
        assert!(!session.ended.is_cancelled());
        tokio::time::advance(bounds.idle).await;
        sessions.sweep(Instant::now());
        assert!(session.ended.is_cancelled());
    }
}
