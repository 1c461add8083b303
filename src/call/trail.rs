//! What a call learns about itself on its way, for records and spans: facts noted once by whoever knows them, read at the end.
//!
//! Guarantees: a trail that nobody reads costs a branch; noting changes nothing about what becomes of the call. Nothing
//! below decides by a trail: it is written on the way and read when the call is over.

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering::Relaxed},
    },
    time::Duration,
};

use super::{Approved, Found};
use crate::{
    jsonrpc::RequestId,
    protocol::{UpstreamId, trace::Parent},
    spans::Lead,
};

/// Where a request came in, in the words of its own hop. Nothing is done by it; it is for the record.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The id that the client gave the request; `None` for what is nobody's request.
    pub request: Option<RequestId>,
    /// The method that the client used, where the call has another: a handshake asks what there is, and so does the setting of
    /// a log level.
    pub method: Option<&'static str>,
    /// How long its params were, in bytes, where the call has none of them for the same cause.
    pub params: Option<usize>,
    /// By which binding.
    pub listener: Listener,
    /// The trusted proxy that it came through: the peer of the connection, where the call's address is one that it told of.
    pub proxy: Option<IpAddr>,
    /// The span that it belongs to, where the client told one: in `_meta`, or else in a header (PROTOCOL A7).
    pub parent: Option<Parent>,
    /// Vendors' state of that trace, from the same place.
    pub state: Option<Box<str>>,
}

/// A binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listener {
    /// HTTP, of either era.
    Http,
    /// A pipe.
    Stdio,
    /// Nothing came in: the gateway does it of its own accord, or for a command line.
    #[default]
    Own,
}

impl Listener {
    /// The word in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
            Self::Own => "own",
        }
    }
}

/// The trail of one call; clones are of the same.
#[derive(Clone, Default)]
pub struct Trail(Option<Arc<Kept>>);

struct Kept {
    origin: Origin,
    /// The call's own span, where spans are made.
    lead: OnceLock<Lead>,
    /// Whether the call has come to the stack.
    begun: AtomicBool,
    // Held for moments, and as a rule by one task alone.
    facts: Mutex<Facts>,
    /// The trail that this one renews: that of the request, by which the gateway ends whatever runs for it.
    renews: Option<Arc<Self>>,
    /// Why the gateway ended it, where it did so before its outcome; of one that renews another, that one knows what ended both.
    cut: AtomicU8,
    /// Whether its client ended it, where that is its end.
    finished: AtomicBool,
}

/// What is known of a call beside what it carries.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The upstream that it leads to, and the name or URI there; known once the way is.
    pub route: Option<(UpstreamId, Arc<str>)>,
    /// The tool that it is about, by the name that was called, where the request itself does not say: a task's.
    pub tool: Option<Arc<str>>,
    /// The digest of the definition of what was asked for, where it was not let through.
    pub definition: Option<Box<str>>,
    /// Why policy did not let it through.
    pub denied: Option<Denial>,
    /// By which policies it was let through, where its caller was asked something before it was over.
    pub grounds: Option<Grounds>,
    /// The approval that it went by.
    pub approved: Option<Arc<Approved>>,
    /// How often its caller had been asked for input when it came, as far as that is known: what it goes on with says so.
    pub round: u32,
    /// How far its permission is.
    pub decision: Decision,
    /// The id of the request that its upstream was sent for it, which is a number; of several, the last one's.
    pub sent: Option<u64>,
    /// How often it was sent to its upstream, where that was more than once.
    pub attempts: u32,
    /// Whether the next sending is one more of the same.
    pub again: bool,
    /// The HTTP status of the upstream's last answer, where it has one.
    pub status: Option<u16>,
    /// Where its time went.
    pub spent: Spent,
    /// What was found in its content.
    pub found: Found,
}

/// Why the gateway ends a call that its client has not given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It stops, and has waited for long enough.
    Stopping,
    /// It took too long.
    Late,
    /// The time of the proof that it was asked by is over.
    Expired,
    /// That proof was withdrawn.
    Revoked,
    /// Something of ours panicked in it (SECURITY REL-1).
    Panicked,
    /// It listened by rights that its caller has no longer just so: another goes on by those of now.
    Renewed,
    /// The session that it ran for was ended.
    SessionEnded,
}

impl Cut {
    const ALL: [Self; 7] = [
        Self::Stopping,
        Self::Late,
        Self::Expired,
        Self::Revoked,
        Self::Panicked,
        Self::Renewed,
        Self::SessionEnded,
    ];

    /// One that stands for it; zero for none.
    const fn number(why: Option<Self>) -> u8 {
        match why {
            None => 0,
            Some(why) => why as u8 + 1,
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The reason word, which a client that is told of the end hears too.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Stopping => "shutting_down",
            Self::Expired => "token_expired",
            Self::Revoked => "credential_revoked",
            Self::Panicked => "internal_error",
            Self::Late => "deadline_exceeded",
            Self::Renewed => "rights_changed",
            Self::SessionEnded => "outcome_unknown",
        }
    }
}

/// How far the permission of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Decision {
    /// It has none, or needs none: nobody upstream is to hear of it.
    #[default]
    Pending,
    /// It may go on, and no rule wants a record of that.
    Permitted,
    /// It may go on, and the record of that is in the log.
    Recorded,
}

/// What policy said of a call that it did not let through.
#[derive(Debug, Clone)]
pub struct Denial {
    /// The reason word; the client of a hidden item got another one.
    pub reason: &'static str,
    /// Whether the item is hidden from whoever called.
    pub hidden: bool,
    /// The policies that decided.
    pub policies: Vec<Arc<str>>,
    /// The digest of the set that decided.
    pub digest: Arc<str>,
}

/// What let a call through.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// The policies that permit it.
    pub policies: Vec<Arc<str>>,
    /// The digest of the set that decided.
    pub digest: Box<str>,
}

/// Where a call's time went. What is not told here is small.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Waiting for its turn.
    pub queued: Duration,
    /// Being judged by policy.
    pub policy: Duration,
    /// From the record of the decision until the upstream's answer, or its stream, was there, or nobody waited for it any more.
    pub upstream: Duration,
    /// Having its content looked at.
    pub sanitising: Duration,
}

impl Trail {
    /// One that nobody reads.
    pub const NONE: Self = Self(None);

    /// One that is read.
    pub fn of(origin: Origin) -> Self {
        Self(Some(Arc::new(Kept {
            origin,
            lead: OnceLock::new(),
            begun: AtomicBool::new(false),
            facts: Mutex::default(),
            renews: None,
            cut: AtomicU8::new(0),
            finished: AtomicBool::new(false),
        })))
    }

    /// Notes that the call has come to the stack. Whether one had before: whoever brings such a trail is a new call.
    pub fn begin(&self) -> bool {
        let kept = self.0.as_ref();
        kept.is_some_and(|kept| kept.begun.swap(true, Relaxed))
    }

    /// A new one of the same origin, for a call that is made once more.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let Some(kept) = &self.0 else {
            return Self::NONE;
        };
        Self(Some(Arc::new(Kept {
            origin: kept.origin.clone(),
            lead: OnceLock::new(),
            begun: AtomicBool::new(false),
            facts: Mutex::default(),
            renews: Some(kept.renews.as_ref().unwrap_or(kept).clone()),
            cut: AtomicU8::new(0),
            finished: AtomicBool::new(false),
        })))
    }

    /// Whether somebody reads it.
    pub const fn is_read(&self) -> bool {
        self.0.is_some()
    }

    /// Where the call came in.
    pub fn origin(&self) -> Option<&Origin> {
        self.0.as_ref().map(|kept| &kept.origin)
    }

    /// From now on the call has a span.
    pub fn leads(&self, lead: Lead) {
        if let Some(kept) = &self.0 {
            // A trail is one call's, and a call has one span.
            drop(kept.lead.set(lead));
        }
    }

    /// To the call's span, where it has one.
    pub fn lead(&self) -> Option<&Lead> {
        self.0.as_ref()?.lead.get()
    }

    /// The upstream that the call leads to, and the name or URI there, as soon as that is known.
    pub fn route(&self) -> Option<(UpstreamId, Arc<str>)> {
        self.0.as_ref()?.facts().route.clone()
    }

    /// Notes something, where somebody reads it.
    pub fn note(&self, with: impl FnOnce(&mut Facts)) {
        if let Some(kept) = &self.0 {
            with(&mut kept.facts());
        }
    }

    /// Notes that the call is to be sent to its upstream once more, if nothing is in the way.
    pub fn goes_again(&self) {
        self.note(|facts| facts.again = true);
    }

    /// Notes that the call is sent to its upstream. Whether it is once more.
    pub fn is_sent(&self) -> bool {
        let mut again = false;
        self.note(|facts| {
            again = std::mem::take(&mut facts.again);
            if again {
                facts.attempts = facts.attempts.max(1) + 1;
            }
        });
        again
    }

    /// Notes that what [`Trail::is_sent`] said of a sending once more was not so, as no connection came about.
    pub fn was_not_sent(&self) {
        self.note(|facts| {
            facts.attempts = match facts.attempts {
                0..=2 => 0,
                more => more - 1,
            }
        });
    }

    /// Notes that the gateway ends the request, if nothing else does first.
    pub fn cut(&self, why: Option<Cut>) {
        if let Some(kept) = &self.0 {
            kept.of_request().cut.store(Cut::number(why), Relaxed);
        }
    }

    /// Notes that the gateway ends this call, whatever becomes of the request that it runs for.
    pub fn cut_alone(&self, why: Cut) {
        if let Some(kept) = &self.0 {
            kept.cut.store(Cut::number(Some(why)), Relaxed);
        }
    }

    /// Why the gateway ended the call, or the request that it runs for, where it did.
    pub fn cut_reason(&self) -> Option<Cut> {
        let kept = self.0.as_ref()?;
        let why = |kept: &Kept| Cut::of(kept.cut.load(Relaxed));
        why(kept).or_else(|| why(kept.of_request()))
    }

    /// Notes that its client wants no more of what goes on until somebody ends it: it is not given up by that, it is over.
    pub fn finish(&self) {
        if let Some(kept) = &self.0 {
            kept.of_request().finished.store(true, Relaxed);
        }
    }

    /// Whether its client has ended it so.
    pub fn is_finished(&self) -> bool {
        let kept = self.0.as_ref();
        kept.is_some_and(|kept| kept.of_request().finished.load(Relaxed))
    }

    /// Reads what was noted until now. Nothing is noted meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&Facts) -> T) -> T {
        match &self.0 {
            Some(kept) => read(&kept.facts()),
            None => read(&Facts::default()),
        }
    }
}

impl Kept {
    /// That of the request.
    fn of_request(&self) -> &Self {
        self.renews.as_deref().unwrap_or(self)
    }

    /// Whoever panicked while noting left facts that are whole.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("Trail(unread)"),
            Some(kept) => f.debug_tuple("Trail").field(&*kept.facts()).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_by_every_clone_and_by_no_renewed_one() {
        let trail = Trail::of(Origin {
            listener: Listener::Stdio,
            ..Origin::default()
        });
        assert!(!trail.is_sent());
        trail.clone().goes_again();
        assert_eq!(
            trail.read(|facts| facts.attempts),
            0,
            "it may not come to that"
        );
        assert!(trail.is_sent());
        assert!(!trail.begin() && trail.clone().begin());
        assert_eq!(trail.read(|facts| facts.attempts), 2);
        assert!(!trail.is_sent(), "a round of its own is no repetition");
        trail.goes_again();
        assert!(trail.clone().is_sent());
        assert_eq!(trail.read(|facts| facts.attempts), 3);
        let renewed = trail.renewed();
        assert_eq!(renewed.read(|facts| facts.attempts), 0);
        assert!(!renewed.begin());
        let listener = renewed.origin().map(|origin| origin.listener);
        assert_eq!(listener, Some(Listener::Stdio));
    }

    #[test]
    fn what_was_not_sent_after_all_is_no_attempt() {
        let trail = Trail::of(Origin::default());
        for (sent, attempts) in [(false, 0), (true, 2), (false, 2), (true, 3)] {
            trail.goes_again();
            assert!(trail.is_sent());
            if !sent {
                trail.was_not_sent();
            }
            assert_eq!(trail.read(|facts| facts.attempts), attempts);
        }
    }

    #[test]
    fn the_end_of_a_request_is_the_end_of_whatever_runs_for_it() {
        let trail = Trail::of(Origin::default());
        let renewed = trail.renewed().renewed();
        assert_eq!(renewed.cut_reason(), None);
        for why in Cut::ALL {
            trail.cut(Some(why));
            assert_eq!(renewed.cut_reason(), Some(why));
            assert_eq!(trail.cut_reason(), Some(why));
        }
        renewed.cut(None);
        assert_eq!(trail.cut_reason(), None);
    }

    #[test]
    fn what_is_ended_alone_is_no_end_of_what_it_ran_for() {
        let trail = Trail::of(Origin::default());
        let (one, two) = (trail.renewed(), trail.renewed());
        one.cut_alone(Cut::Late);
        trail.cut(Some(Cut::Stopping));
        assert_eq!(one.cut_reason(), Some(Cut::Late));
        assert_eq!(two.cut_reason(), Some(Cut::Stopping));
        assert_eq!(trail.cut_reason(), Some(Cut::Stopping));
    }

    #[test]
    fn nothing_is_noted_where_nobody_reads() {
        Trail::NONE.note(|_| panic!("it is not even asked"));
        assert!(!Trail::NONE.renewed().is_read());
    }
}
