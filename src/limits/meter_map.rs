//! A map of meters: one entry for each key, bounded however many keys there are.
//!
//! Guarantees: never more than about the configured number of entries, in 64 shards of equal size; an entry goes only when it
//! is indistinguishable from a fresh one, so that nobody gets a new start by bringing many keys. **When it is full** of
//! entries that still mean something, new keys share one entry between all of them: they are held to the rule together,
//! which is stricter than each for itself and never looser, and those who have an entry are not disturbed. Keys are 128 bits
//! of two keyed hashes, so that nobody can choose keys that fall together; what they are made of is not kept. Reading an
//! entry takes a shard's read lock for as long as an atomic operation; only new keys write.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState},
    sync::{PoisonError, RwLock},
};

use super::clock::Clock;

/// Shards, so that keys seldom wait for each other.
const SHARDS: usize = 64;
/// A full shard is not searched for entries to let go of more often than this, in nanoseconds: 100 ms.
const PAUSE: u64 = 100_000_000;

/// What keys are hashed with; one for all maps of a process, or they would differ after a reload.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys([RandomState; 2]);

/// What an entry is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key([u64; 2]);

/// A key that is being made of its parts.
pub(super) struct Making([std::hash::DefaultHasher; 2]);

/// See the module.
#[derive(Debug)]
pub(super) struct MeterMap<V> {
    shards: Box<[RwLock<Shard<V>>]>,
    /// The most entries of one shard.
    most: usize,
    /// The entry that those share who find no place.
    shared: V,
    clock: Clock,
}

/// Whose entry it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of the key alone.
    Own,
    /// That of all who found no place.
    Shared,
}

#[derive(Debug)]
struct Shard<V> {
    entries: HashMap<Key, V, BuildHasherDefault<First>>,
    /// When it was last searched; 0: never.
    searched: u64,
}

/// What an entry has to tell of itself.
pub(super) trait Entry: Default {
    /// The time that its freshness is judged by, in a unit of its own.
    fn now(clock: Clock) -> u64;

    /// Whether it is as good as a new one at this time.
    fn is_fresh(&self, now: u64) -> bool;
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}

impl Keys {
    /// A key, to be made of parts.
    pub(super) fn make(&self) -> Making {
        Making([self.0[0].build_hasher(), self.0[1].build_hasher()])
    }
}

impl Making {
    /// Adds a part; `None` differs from every text.
    pub(super) fn part(&mut self, bytes: Option<&[u8]>) {
        for hasher in &mut self.0 {
            match bytes {
                None => hasher.write_u8(0),
                Some(bytes) => {
                    hasher.write_u8(1);
                    hasher.write_usize(bytes.len());
                    hasher.write(bytes);
                }
            }
        }
    }

    pub(super) fn done(&self) -> Key {
        Key([self.0[0].finish(), self.0[1].finish()])
    }
}

impl<V: Entry> MeterMap<V> {
    /// An empty map for about so many keys.
    pub(super) fn new(keys: usize, clock: Clock) -> Self {
        let shard = |_| {
            RwLock::new(Shard {
                entries: HashMap::default(),
                searched: 0,
            })
        };
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            most: keys.div_ceil(SHARDS).max(1),
            shared: V::default(),
            clock,
        }
    }

    /// Does something with the entry of a key, which is made if it is not there.
    pub(super) fn with<R>(&self, key: Key, act: impl FnOnce(&V, Whose) -> R) -> R {
        // INVARIANT: a remainder by the number of shards is the number of one.
        let shard = &self.shards[(key.0[1] % SHARDS as u64) as usize];
        {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(entry) = shard.entries.get(&key) {
                return act(entry, Whose::Own);
            }
        }
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if !shard.has_room(self.most, self.clock) && !shard.entries.contains_key(&key) {
            drop(shard);
            return act(&self.shared, Whose::Shared);
        }
        act(shard.entries.entry(key).or_default(), Whose::Own)
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        let count = |shard: &RwLock<Shard<V>>| {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            shard.entries.len()
        };
        self.shards.iter().map(count).sum()
    }
}

impl<V: Entry> Shard<V> {
    fn has_room(&mut self, most: usize, clock: Clock) -> bool {
        if self.entries.len() < most {
            return true;
        }
        let now = clock.nanos();
        if self.searched != 0 && now < self.searched.saturating_add(PAUSE) {
            return false;
        }
        self.searched = now.max(1);
        let now = V::now(clock);
        self.entries.retain(|_, entry| !entry.is_fresh(now));
        self.entries.len() < most
    }
}

/// Keys are hashes already: their first half is as good as any.
#[derive(Default)]
struct First(u64);

impl Hasher for First {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering::Relaxed},
        time::Duration,
    };

    use tokio::time::advance;

    use super::*;

    /// Fresh from its time on.
    #[derive(Debug, Default)]
    struct Until(AtomicU64);

    impl Entry for Until {
        fn now(clock: Clock) -> u64 {
            clock.nanos()
        }

        fn is_fresh(&self, now: u64) -> bool {
            self.0.load(Relaxed) <= now
        }
    }

    fn key(keys: &Keys, text: &str) -> Key {
        let mut making = keys.make();
        making.part(Some(text.as_bytes()));
        making.done()
    }

    #[test]
    fn keys_differ_where_their_parts_do() {
        let keys = Keys::default();
        let of = |parts: &[Option<&[u8]>]| {
            let mut making = keys.make();
            for part in parts {
                making.part(*part);
            }
            making.done()
        };
        let all = [
            of(&[Some(b"ab"), Some(b"c")]),
            of(&[Some(b"a"), Some(b"bc")]),
            of(&[Some(b"abc")]),
            of(&[None, Some(b"abc")]),
            of(&[Some(b""), Some(b"abc")]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
        assert_eq!(of(&[Some(b"ab"), Some(b"c")]), all[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_still_means_something_stays_and_who_finds_no_place_shares_one() {
        let keys = Keys::default();
        let map = MeterMap::<Until>::new(640, Clock::start());
        let soon = Duration::from_secs(1);
        let mut shared = 0;
        for number in 0..10_000 {
            map.with(key(&keys, &number.to_string()), |entry, whose| {
                entry.0.store(soon.as_nanos() as u64, Relaxed);
                shared += usize::from(whose == Whose::Shared);
            });
        }
        assert_eq!((map.len(), shared), (640, 10_000 - 640));
        // Those that were first have entries; later all are as good as new, and give way.
        let found = |text: &str| {
            map.with(key(&keys, text), |entry, whose| {
                (entry.0.load(Relaxed) > 0, whose)
            })
        };
        assert_eq!(found("0"), (true, Whose::Own));
        advance(soon - Duration::from_nanos(1)).await;
        assert_eq!(found("new"), (true, Whose::Shared));
        advance(Duration::from_millis(101)).await;
        assert_eq!(found("new"), (false, Whose::Own));
        assert_eq!(map.len(), 640 - 10 + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_million_keys_take_less_than_five_mebibytes_with_the_default_of_a_hundred_thousand() {
        let keys = Keys::default();
        let map = MeterMap::<Until>::new(100_000, Clock::start());
        for number in 0..1_000_000 {
            map.with(key(&keys, &number.to_string()), |entry, _| {
                entry.0.store(u64::MAX, Relaxed);
            });
        }
        let bytes = |shard: &RwLock<Shard<Until>>| {
            let room = shard.read().unwrap().entries.capacity();
            // One in eight places stays free, and each has a byte of its own.
            (room * 8).div_ceil(7) * (size_of::<(Key, Until)>() + 1)
        };
        let bytes: usize = map.shards.iter().map(bytes).sum();
        assert!(bytes < 5 << 20, "{bytes}");
        assert_eq!(map.len(), 100_032);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_shelf_is_not_searched_again_and_again() {
        let keys = Keys::default();
        let map = MeterMap::<Until>::new(1, Clock::start());
        advance(Duration::from_secs(1)).await;
        let put = |text: &str, until: u64| {
            map.with(key(&keys, text), |entry, whose| {
                entry.0.store(until, Relaxed);
                whose
            })
        };
        for number in 0..10_000 {
            put(&number.to_string(), u64::MAX);
        }
        assert_eq!(map.len(), SHARDS);
        // What is in the shard is fresh, but it was searched a moment ago.
        for shard in &map.shards {
            for entry in shard.read().unwrap().entries.values() {
                entry.0.store(0, Relaxed);
            }
        }
        assert_eq!(put("x", 0), Whose::Shared);
        advance(Duration::from_nanos(PAUSE)).await;
        assert_eq!(put("x", 0), Whose::Own);
    }
}
