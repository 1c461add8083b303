//! Connections of one user's credential each (SECURITY STATE-8).
//!
//! Guarantees: a connection that carried one token carries no other, so that an upstream which ties who somebody is to a
//! connection ties it to one person. Bounds: [`MAX`] tokens, forgotten when unused for as long as an idle connection is kept; a
//! connection of one that is forgotten ends with its last answer.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use http::header::AUTHORIZATION;
use moka::sync::Cache;
use tokio::time::sleep;

use super::{Outgoing, Pool};
use crate::tasks::Tasks;

/// The most tokens with connections of their own.
const MAX: u64 = 1_024;
/// As long as an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);

/// Pools by the digest of the credential that goes over them. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Apart(Cache<[u8; 32], Pool>);

impl Apart {
    /// No pools yet; those that are unused are forgotten in `tasks`.
    pub(super) fn new(tasks: &Tasks) -> Self {
        Self::forgetting(IDLE, tasks)
    }

    /// The same after any time.
    fn forgetting(idle: Duration, tasks: &Tasks) -> Self {
        let pools = Cache::builder()
            .max_capacity(MAX)
            .time_to_idle(idle)
            .build();
        let kept = pools.clone();
        tasks.spawn(async move {
            // By itself the cache only looks when it is asked for something.
            loop {
                sleep(IDLE).await;
                kept.run_pending_tasks();
            }
        });
        Self(pools)
    }

    /// The pool that a request goes over; `None` for one without a credential, which goes over `shared`.
    pub(super) fn pool(&self, shared: &Pool, request: &Outgoing) -> Option<Pool> {
        let credential = request.headers().get(AUTHORIZATION)?;
        let print = digest(&SHA256, credential.as_bytes());
        let print = <[u8; 32]>::try_from(print.as_ref()).ok()?;
        Some(self.0.get_with(print, || shared.apart()))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::upstream::transport::{
        http::assemble,
        rig::{dial, spec},
    };

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_not_used_is_forgotten_though_no_other_comes() {
        let tasks = Tasks::new();
        let apart = Apart::forgetting(Duration::ZERO, &tasks);
        let spec = spec("http", "localhost", "127.0.0.1:1".parse().unwrap(), "/");
        let shared = Pool::new(dial(&spec), &tasks);
        let mut headers = http::HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer ana"));
        let request = assemble(http::Method::POST, &spec.url, headers, bytes::Bytes::new());
        let is_kept = apart.pool(&shared, &request).unwrap().watched();
        assert!(is_kept());
        // The cache lets go of what it forgot in one of its next turns.
        for _ in 0..100_000 {
            if !is_kept() {
                return;
            }
            sleep(IDLE).await;
        }
        panic!("never forgotten");
    }
}
