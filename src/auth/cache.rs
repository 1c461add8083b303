//! Tokens that were verified, by digest: bounded in bytes, and never the last word.
//!
//! A hit costs one SHA-256 of the token and one look into a sharded table. What is found is judged again by whoever asked:
//! by time, by key and by audience.

use std::sync::Arc;

use aws_lc_rs::digest;

use super::{Proof, Verified};
use crate::call::Identity;

/// Bytes that verified tokens may take.
const BYTES: u64 = 32 << 20;
/// What an entry takes beside the token's own text.
const OVERHEAD: usize = 1 << 10;
/// Introspected tokens that are looked after at once.
const IN_USE: usize = 1_024;

/// SHA-256 of a token.
pub(super) type Digest = [u8; 32];

/// The table.
pub(super) struct Cache(moka::sync::Cache<Digest, Arc<Entry>>);

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
        Self(table)
    }

    pub(super) fn digest(token: &str) -> Digest {
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        bytes
    }

    pub(super) fn find(&self, digest: &Digest) -> Option<Found> {
        self.0.get(digest).map(Found)
    }

    pub(super) fn keep(&self, digest: Digest, token_bytes: usize, verified: Verified) {
        let bytes = u32::try_from(token_bytes + OVERHEAD).unwrap_or(u32::MAX);
        self.0.insert(digest, Arc::new(Entry { verified, bytes }));
    }

    pub(super) fn forget(&self, digest: &Digest) {
        self.0.invalidate(digest);
    }

    pub(super) fn introspected_in_use(&self) -> Vec<Arc<Identity>> {
        let introspected = |entry: &Entry| matches!(entry.verified.proof, Proof::Introspected(_));
        self.0
            .iter()
            .filter(|(_, entry)| introspected(entry))
            // One is the table's own.
            .filter(|(_, entry)| Arc::strong_count(&entry.verified.identity) > 1)
            .map(|(_, entry)| entry.verified.identity.clone())
            .take(IN_USE)
            .collect()
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
