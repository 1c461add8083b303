//! Connections of one user's credential each (SECURITY STATE-8).
//!
//! Guarantees: a connection that carried one token carries no other, so that an upstream which ties who somebody is to a
//! connection ties it to one person. Bounds: [`MAX`] tokens, forgotten when unused for as long as an idle connection is kept; a
//! connection of one that is forgotten ends with its last answer.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use http::header::AUTHORIZATION;
use moka::sync::Cache;

use super::{Outgoing, Pool};

/// The most tokens with connections of their own.
const MAX: u64 = 1_024;
/// As long as an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);

/// Pools by the digest of the credential that goes over them. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Apart(Cache<[u8; 32], Pool>);

impl Default for Apart {
    fn default() -> Self {
        Self(
            Cache::builder()
                .max_capacity(MAX)
                .time_to_idle(IDLE)
                .build(),
        )
    }
}

impl Apart {
    /// The pool that a request goes over; `None` for one without a credential, which goes over `shared`.
    pub(super) fn pool(&self, shared: &Pool, request: &Outgoing) -> Option<Pool> {
        let credential = request.headers().get(AUTHORIZATION)?;
        let print = digest(&SHA256, credential.as_bytes());
        let print = <[u8; 32]>::try_from(print.as_ref()).ok()?;
        Some(self.0.get_with(print, || shared.apart()))
    }
}
