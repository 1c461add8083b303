//! Tokens that were verified, by digest: bounded in bytes, and never the last word.
//!
//! A hit costs one SHA-256 of the token and one look into a sharded table. What is found is judged again by whoever asked:
//! by time, by key and by audience. What was introspected is looked after beside the table for as long as anything hangs on it,
//! whether it is still in the table or has made room.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use aws_lc_rs::digest;

use super::Verified;
use crate::call::Identity;

/// Bytes that verified tokens may take.
const BYTES: u64 = 32 << 20;
/// What an entry takes beside the token's own text.
const OVERHEAD: usize = 1 << 10;

/// SHA-256 of a token.
pub(super) type Digest = [u8; 32];

/// The table, and what was introspected.
pub(super) struct Cache {
    table: moka::sync::Cache<Digest, Arc<Entry>>,
    /// Taken where a server was asked about a token, for a look-up. As many as are in the table or in use, and what has come
    /// and gone since [`Cache::introspected_in_use`].
    introspected: Mutex<HashMap<Digest, Vec<Introspected>>>,
}

/// What a server said of a token at one time or another, for as long as that is in the table or in use.
struct Introspected {
    identity: Weak<Identity>,
    audiences: Vec<Arc<str>>,
}

struct Entry {
    verified: Verified,
    bytes: u32,
}

impl Cache {
    pub(super) fn new() -> Self {
        let table = moka::sync::Cache::builder()
            .max_capacity(BYTES)
            .weigher(|_: &Digest, entry: &Arc<Entry>| entry.bytes)
            .build();
        Self {
            table,
            introspected: Mutex::default(),
        }
    }

    pub(super) fn digest(token: &str) -> Digest {
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        bytes
    }

    pub(super) fn find(&self, digest: &Digest) -> Option<Found> {
        self.table.get(digest).map(Found)
    }

    pub(super) fn keep(&self, digest: Digest, token_bytes: usize, verified: Verified) {
        let bytes = u32::try_from(token_bytes + OVERHEAD).unwrap_or(u32::MAX);
        let entry = Arc::new(Entry { verified, bytes });
        self.table.insert(digest, entry);
    }

    /// Keeps what a server says of a token. The same somebody stays the same; where only the end is another, whatever hangs on
    /// either is taken back with both; where anything else is, what hangs on what was said before ends.
    // SECURITY AUTHN-5, AUTHZ-10
    pub(super) fn keep_introspected(
        &self,
        digest: Digest,
        token_bytes: usize,
        mut verified: Verified,
    ) -> Arc<Identity> {
        let mut introspected = self.introspected();
        let all = introspected.entry(digest).or_default();
        let mut alike = Vec::new();
        all.retain(|one| {
            let Some(identity) = one.identity.upgrade() else {
                return false;
            };
            let goes_on = one.audiences == verified.audiences && identity.same(&verified.identity);
            if goes_on {
                alike.push(identity);
            } else {
                identity.revoked.cancel();
            }
            goes_on
        });
        match alike.iter().find(|it| it.until == verified.identity.until) {
            Some(same) => verified.identity = Arc::clone(same),
            None => {
                if let Some(earlier) = alike.first()
                    && let Some(identity) = Arc::get_mut(&mut verified.identity)
                {
                    identity.revoked = earlier.revoked.clone();
                }
                all.push(Introspected {
                    identity: Arc::downgrade(&verified.identity),
                    audiences: verified.audiences.clone(),
                });
            }
        }
        let identity = Arc::clone(&verified.identity);
        self.keep(digest, token_bytes, verified);
        identity
    }

    /// A server takes a token back: what hangs on it ends.
    pub(super) fn take_back(&self, digest: &Digest) {
        for one in self.introspected().remove(digest).unwrap_or_default() {
            if let Some(identity) = one.identity.upgrade() {
                identity.revoked.cancel();
            }
        }
        self.table.invalidate(digest);
    }

    /// Whose tokens were introspected and are in use: a stream or a session hangs on them. One for each token.
    pub(super) fn introspected_in_use(&self) -> Vec<Arc<Identity>> {
        let mut introspected = self.introspected();
        introspected.retain(|_, all| {
            all.retain(|one| one.identity.strong_count() > 0);
            !all.is_empty()
        });
        let in_use = |(digest, all): (&Digest, &Vec<Introspected>)| {
            let kept = self.find(digest);
            all.iter()
                .filter_map(|one| one.identity.upgrade())
                .find(|identity| {
                    let is_kept = kept
                        .as_ref()
                        .is_some_and(|kept| Arc::ptr_eq(&kept.identity, identity));
                    // One is our own here, one the table's.
                    Arc::strong_count(identity) > 1 + usize::from(is_kept)
                })
        };
        introspected.iter().filter_map(in_use).collect()
    }

    /// As if others had taken all the room.
    #[cfg(test)]
    pub(super) fn evict_all(&self) {
        self.table.invalidate_all();
    }

    fn introspected(&self) -> MutexGuard<'_, HashMap<Digest, Vec<Introspected>>> {
        let introspected = self.introspected.lock();
        introspected.unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry that was found.
pub(super) struct Found(Arc<Entry>);

impl std::ops::Deref for Found {
    type Target = Verified;

    fn deref(&self) -> &Verified {
        &self.0.verified
    }
}
