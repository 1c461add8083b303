//! Tests: a server of one era behind the address of one of the other: both ways, and what only looks like it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    others::{by, closed, of_the_older_era},
    tests::{healthy, serving, started},
    *,
};
use crate::{
    call::{Outcome, Reply},
    protocol::Revision,
    upstream::{
        Reached,
        scripted::{Play, an_address, greeting, result},
    },
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

/// PROTOCOL C4: its sessions are not looked at any more, and refused as requests that do not describe themselves.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_replaced_by_a_newer_one_while_it_has_sessions_is_spoken_to_in_the_newer_era()
 {
    for (status, code, session) in [
        (400, -32602, Some("s")),
        (400, -32602, None),
        (400, -32600, Some("s")),
        (404, -32601, Some("s")),
        (404, -32601, None),
    ] {
        let upgraded = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&upgraded);
        let processes = serving(move |number, sent| {
            let described = sent
                .params
                .contains("io.modelcontextprotocol/protocolVersion");
            match (now.load(Ordering::SeqCst), sent.method.as_str()) {
                (true, _) if !described => Play::Error(status, code, ""),
                (true, _) => healthy(number, sent),
                (false, "initialize") => match session {
                    Some(session) => Play::Session(session, greeting("2025-11-25")),
                    None => result(greeting("2025-11-25")),
                },
                (false, _) => of_the_older_era(sent),
            }
        });
        let (_sink, upstream, _tasks) = started(&an_address(), &processes);
        upstream.settled().await;
        assert!(by(&upstream, "ana").await.is_ok());
        upgraded.store(true, Ordering::SeqCst);
        drop(by(&upstream, "ana").await);
        sleep(Duration::from_secs(3)).await;
        let answered = |reply| matches!(reply, Ok(Reply::Done(Outcome::Complete(_))));
        assert!(
            answered(by(&upstream, "ana").await),
            "{status} {code} {session:?}"
        );
        assert_eq!(upstream.status().revision, Some(Revision::V2026_07_28));
    }
}

/// PROTOCOL B1, C4: that a request does not describe itself is nothing that its caller could mend.
#[tokio::test(start_paused = true)]
async fn what_a_newer_server_refuses_of_the_older_era_is_not_told_as_the_callers_fault_and_is_looked_at_at_once()
 {
    for (code, data) in [
        (-32602, r#""missing _meta""#),
        (-32602, r#"["io.modelcontextprotocol/protocolVersion"]"#),
        (-32020, ""),
        (
            -32022,
            r#"{"supported":["2026-07-28"],"requested":"2025-11-25"}"#,
        ),
    ] {
        let upgraded = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&upgraded);
        let processes = serving(move |number, sent| {
            let described = sent.params.contains("clientCapabilities");
            match (now.load(Ordering::SeqCst), sent.method.as_str()) {
                (true, _) if !described => Play::Error(400, code, data),
                (true, _) => healthy(number, sent),
                (false, "initialize") => Play::Session("s", greeting("2025-11-25")),
                (false, _) => of_the_older_era(sent),
            }
        });
        let (_sink, upstream, _tasks) = started(&an_address(), &processes);
        upstream.settled().await;
        assert!(by(&upstream, "ana").await.is_ok());
        upgraded.store(true, Ordering::SeqCst);
        let reply = by(&upstream, "ana").await;
        let Err(UpstreamError::Unavailable { reached, .. }) = reply else {
            panic!("{code} {data}: {reply:?}")
        };
        assert_eq!(reached, Reached::Misspoken, "{code} {data}");
        sleep(Duration::from_millis(10)).await;
        let reply = by(&upstream, "ana").await;
        assert!(reply.is_ok(), "{code} {data}: {reply:?}");
        assert_eq!(upstream.status().revision, Some(Revision::V2026_07_28));
    }
}

/// PROTOCOL J, B1: some send the errors of a request so, and each of them is no reason to begin anew.
#[tokio::test(start_paused = true)]
async fn errors_of_a_server_of_the_older_era_stay_its_own_whatever_their_status() {
    let processes = serving(|_, sent| match sent.method.as_str() {
        "initialize" => Play::Session("s", greeting("2025-11-25")),
        "tools/call" => Play::Error(400, -32602, ""),
        _ => of_the_older_era(sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    for _ in 0..60 {
        let reply = by(&upstream, "ana").await;
        let Ok(Reply::Done(Outcome::Failed(error))) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(error.code, -32602);
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((sink.count(), closed(&processes)[0]), (1, 0));
    let asked = closed(&processes).len() - 1;
    assert!((1..=7).contains(&asked), "spaced: {asked}");
}
