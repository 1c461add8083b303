//! A server of one era behind the address of one of the other: both ways, and what only looks like it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    others::{by, of_the_older_era},
    tests::{healthy, serving, started},
    *,
};
use crate::{
    protocol::Revision,
    upstream::scripted::{Play, an_address, greeting},
};

/// PROTOCOL C4: as when an upgrade is taken back.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_back_to_the_older_era_is_spoken_to_in_that() {
    for (status, code) in [(400, -32600), (404, -32001), (400, -32000)] {
        let back = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&back);
        let processes = serving(move |number, sent| {
            if !now.load(Ordering::SeqCst) {
                return healthy(number, sent);
            }
            match sent.method.as_str() {
                "initialize" => Play::Session("s", greeting("2025-06-18")),
                _ if sent.header("mcp-session-id").is_none() => Play::Error(status, code, ""),
                _ => of_the_older_era(sent),
            }
        });
        let (_sink, upstream, _tasks) = started(&an_address(), &processes);
        upstream.settled().await;
        back.store(true, Ordering::SeqCst);
        let reply = by(&upstream, "ana").await;
        assert!(
            matches!(reply, Err(UpstreamError::Unavailable { .. })),
            "{reply:?}"
        );
        sleep(Duration::from_secs(3)).await;
        assert!(by(&upstream, "ana").await.is_ok(), "{status} {code}");
        assert_eq!(upstream.status().revision, Some(Revision::V2025_06_18));
    }
}
