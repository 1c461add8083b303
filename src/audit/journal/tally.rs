//! Counting what comes in floods. Time is handed in.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::Kind;
use crate::call::{CallId, Identity, IdentityKind, Principal};

/// How long failures of one address and one somebody are counted together, and findings of one upstream.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// How many of them in a window are told one by one.
const SINGLE: u64 = 10;
/// How much is told of failures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure {
    /// The most that are counted apart, by address and by who it is; those beyond are counted as one.
    addresses: usize,
    /// The most that are told one by one in a second, of all addresses together.
    at_once: u32,
}

impl Measure {
    /// Of who was kept out.
    pub(super) const AUTHENTICATION: Self = Self {
        addresses: 4_096,
        at_once: 100,
    };
    /// Of what was no message: anybody who reaches the listener can send that. The same of somebody who is known, counted apart so
    /// that strangers do not hide them.
    pub(super) const MESSAGES: Self = Self {
        addresses: 256,
        at_once: 10,
    };
}
/// An episode is over when there was nothing for so long.
const QUIET: Duration = Duration::from_secs(60);
/// The most episodes at once; those beyond are not told apart.
const EPISODES: usize = 1_024;
/// What episodes beyond are called.
const OTHERS: &str = "(others)";

/// References that are told of a window.
pub(super) const REFS: usize = 32;
/// Methods that are told of a window.
pub(super) const METHODS: usize = 16;
/// The longest name of a method that is told, in bytes: the protocol's are shorter, and others may be of any length.
const METHOD: usize = 64;

/// Failures to tell of: one, or those of a window.
#[derive(Debug, Clone)]
pub(super) struct Failed {
    /// `None`: of many addresses, or of none.
    pub(super) address: Option<IpAddr>,
    /// Who, where they are known.
    pub(super) who: Option<Arc<Identity>>,
    pub(super) count: u64,
    /// Why, each reason once.
    pub(super) reasons: Vec<&'static str>,
    /// What they did not stand up to, each check once.
    pub(super) checks: Vec<&'static str>,
    /// What they asked for, each method once, as they wrote it.
    pub(super) methods: Vec<Box<str>>,
    /// What they were told to refer to, of the first of them.
    pub(super) refs: Vec<CallId>,
    /// In which time; none for a single one.
    pub(super) over: Duration,
}

/// Failures by address, and by who it is.
pub(super) struct Failures {
    measure: Measure,
    windows: HashMap<Key, Window>,
    /// The second that is running, and how many were told in it.
    second: Option<(Instant, u32)>,
}

/// Whose failures are counted together; those of many where it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Key {
    address: Option<IpAddr>,
    who: Option<Principal>,
}

struct Window {
    who: Option<Arc<Identity>>,
    since: Instant,
    count: u64,
    /// How many were told one by one.
    told: u64,
    /// Of those that were not told.
    reasons: Vec<&'static str>,
    checks: Vec<&'static str>,
    methods: Vec<Box<str>>,
    refs: Vec<CallId>,
}

/// Who sent what was refused, as far as that is known, and what it asked for.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    address: Option<IpAddr>,
    identity: Option<&'a Arc<Identity>>,
    method: Option<&'a str>,
}

impl<'a> Sender<'a> {
    /// Somebody at this address; `None` on a pipe.
    pub const fn at(address: Option<IpAddr>) -> Self {
        Self {
            address,
            identity: None,
            method: None,
        }
    }

    /// Who has proved to be this. Of whoever came in where nobody was asked nothing is known.
    pub fn by(self, identity: &'a Arc<Identity>) -> Self {
        let known = identity.kind != IdentityKind::Anonymous;
        Self {
            identity: known.then_some(identity),
            ..self
        }
    }

    /// With this method, as far as there is one; of one that is too long to be any nothing is told.
    pub fn asking(self, method: Option<&'a str>) -> Self {
        Self {
            method: method.filter(|method| method.len() <= METHOD),
            ..self
        }
    }

    /// Whether it is known who it is.
    pub(super) const fn is_known(&self) -> bool {
        self.identity.is_some()
    }
}

/// What was refused, and what there is to say of it.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// The word that it was told, from the published list.
    pub reason: &'static str,
    /// What it did not stand up to, where that is told to nobody but whoever reads records.
    pub check: Option<&'static str>,
    /// What it was told to refer to, where the answer has a place for that.
    pub reference: Option<CallId>,
}

impl Refused {
    /// For this reason, and nothing more to say.
    pub const fn of(reason: &'static str) -> Self {
        Self {
            reason,
            check: None,
            reference: None,
        }
    }
}

impl Failures {
    pub(super) fn new(measure: Measure) -> Self {
        Self {
            measure,
            windows: HashMap::new(),
            second: None,
        }
    }

    /// Counts one; what is to be told now.
    pub(super) fn add(
        &mut self,
        sender: Sender<'_>,
        refused: Refused,
        now: Instant,
    ) -> Vec<Failed> {
        let Sender {
            address,
            identity,
            method,
        } = sender;
        let Refused {
            reason,
            check,
            reference,
        } = refused;
        let mut told = Vec::new();
        let mut key = Key {
            address: address.map(network),
            who: identity.map(|identity| identity.principal.clone()),
        };
        if let Some(window) = self.windows.get(&key)
            && now.duration_since(window.since) >= WINDOW
            && let Some(window) = self.windows.remove(&key)
        {
            told.extend(window.rest(key.address, now));
        }
        if self.windows.len() >= self.measure.addresses && !self.windows.contains_key(&key) {
            key = Key::default();
        }
        let room = self.has_room(now);
        let counted = identity.filter(|_| key.who.is_some());
        let window = self.windows.entry(key).or_insert_with(|| Window {
            who: counted.cloned(),
            since: now,
            count: 0,
            told: 0,
            reasons: Vec::new(),
            checks: Vec::new(),
            methods: Vec::new(),
            refs: Vec::new(),
        });
        window.count += 1;
        if window.told < SINGLE && room {
            window.told += 1;
            if let Some((_, told)) = &mut self.second {
                *told += 1;
            }
            told.push(Failed {
                address,
                who: identity.cloned(),
                count: 1,
                reasons: vec![reason],
                checks: check.into_iter().collect(),
                methods: method.into_iter().map(Box::from).collect(),
                refs: reference.into_iter().collect(),
                over: Duration::ZERO,
            });
        } else {
            if !window.reasons.contains(&reason) {
                window.reasons.push(reason);
            }
            window
                .checks
                .extend(check.filter(|check| !window.checks.contains(check)));
            if let Some(method) = method
                && window.methods.len() < METHODS
                && !window.methods.iter().any(|known| **known == *method)
            {
                window.methods.push(method.into());
            }
            if window.refs.len() < REFS {
                window.refs.extend(reference);
            }
        }
        told
    }

    /// Whether one more may be told in this second.
    fn has_room(&mut self, now: Instant) -> bool {
        let (began, told) = *self.second.get_or_insert((now, 0));
        if now.duration_since(began) >= Duration::from_secs(1) {
            self.second = Some((now, 0));
            return true;
        }
        told < self.measure.at_once
    }

    /// What is over, or at the end everything.
    pub(super) fn sweep(&mut self, now: Instant, ending: bool) -> Vec<Failed> {
        let over = |window: &Window| ending || now.duration_since(window.since) >= WINDOW;
        let ended = self.windows.extract_if(|_, window| over(window));
        ended
            .filter_map(|(key, window)| window.rest(key.address, now))
            .collect()
    }
}

impl Window {
    /// Those that were not told one by one.
    fn rest(self, address: Option<IpAddr>, now: Instant) -> Option<Failed> {
        let count = self.count.saturating_sub(self.told);
        (count > 0).then(|| Failed {
            address,
            who: self.who,
            count,
            reasons: self.reasons,
            checks: self.checks,
            methods: self.methods,
            refs: self.refs,
            over: now.duration_since(self.since),
        })
    }
}

/// One subscriber of IPv6 has 2^64 addresses: they count as one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// What to tell of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Began,
    Ended { count: u64, over: Duration },
}

/// Times in which something was refused for one cause.
#[derive(Default)]
pub(super) struct Episodes {
    open: HashMap<(Kind, String), Episode>,
}

struct Episode {
    since: Instant,
    last: Instant,
    count: u64,
}

impl Episodes {
    /// Counts one; whether an episode began with it.
    pub(super) fn add(&mut self, kind: Kind, name: &str, now: Instant) -> bool {
        let mut key = (kind, name.to_owned());
        if self.open.len() >= EPISODES && !self.open.contains_key(&key) {
            OTHERS.clone_into(&mut key.1);
        }
        let mut began = false;
        let episode = self.open.entry(key).or_insert_with(|| {
            began = true;
            Episode {
                since: now,
                last: now,
                count: 0,
            }
        });
        episode.last = now;
        episode.count += 1;
        began
    }

    /// What is over, or at the end everything.
    pub(super) fn sweep(&mut self, now: Instant, ending: bool) -> Vec<(Kind, String, Step)> {
        let over = |episode: &Episode| ending || now.duration_since(episode.last) >= QUIET;
        let ended = self.open.extract_if(|_, episode| over(episode));
        ended
            .map(|((kind, name), episode)| {
                let step = Step::Ended {
                    count: episode.count,
                    over: episode.last.duration_since(episode.since),
                };
                (kind, name, step)
            })
            .collect()
    }
}
