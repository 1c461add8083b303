//! Tests: a server of one era behind the address of one of the other: both ways, and what only looks like it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::poll;

use super::{
    others::{by, closed, of_the_older_era, refused_ten_times_and_unharmed},
    tests::{healthy, serving, started},
    *,
};
use crate::{
    call::{Outcome, Reply},
    protocol::Revision,
    upstream::{
        Reached,
        scripted::{Play, Processes, Scripted, an_address, greeting, result},
        spec::{Endpoint, HttpTransport},
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
        let refused = match &reply {
            // It names no session, so that it may be a tool's own error as well.
            Ok(Reply::Done(Outcome::Failed(error))) => code == -32600 && error.code == code,
            reply => matches!(reply, Err(UpstreamError::Unavailable { .. })),
        };
        assert!(refused, "{reply:?}");
        sleep(Duration::from_secs(3)).await;
        let reply = by(&upstream, "ana").await;
        let done = matches!(&reply, Ok(Reply::Done(Outcome::Complete(_))));
        assert!(done, "{status} {code}: {reply:?}");
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

/// PROTOCOL C4: it is asked again what it speaks, and as long as that is the same nothing ends.
#[tokio::test(start_paused = true)]
async fn what_one_caller_is_answered_casts_doubt_and_ends_nothing_where_the_era_is_the_same() {
    let calls = Arc::new(AtomicUsize::new(0));
    let changed = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&changed);
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "tools/call" if number == 0 => match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Play::Hang,
            _ => Play::Status(404),
        },
        _ if now.load(Ordering::SeqCst) => of_the_older_era(sent),
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let mut anas = by(&upstream, "ana");
    assert!(poll!(anas.as_mut()).is_pending());
    for _ in 0..2 {
        assert!(by(&upstream, "ben").await.is_err());
        sleep(Duration::from_secs(10)).await;
        assert!(poll!(anas.as_mut()).is_pending());
    }
    assert_eq!(closed(&processes), [0, 1, 1], "it was asked each time");
    assert_eq!((sink.count(), upstream.status().restarts), (1, 0));
    // And when it speaks in another way, it is spoken to in that.
    changed.store(true, Ordering::SeqCst);
    assert!(by(&upstream, "ben").await.is_err());
    sink.reach(2).await;
    assert!(!sink.last().away);
    assert_eq!(upstream.status().revision, Some(Revision::V2025_11_25));
    assert!(by(&upstream, "ben").await.is_ok());
}

/// PROTOCOL C4: what was upgraded answers in the older era as it always did, and is asked again all the same; and nothing but that,
/// since a second handshake is more than some servers can do.
#[tokio::test(start_paused = true)]
async fn a_server_of_the_older_era_is_asked_again_after_twelve_hours() {
    let processes = serving(|number, sent| match number {
        0 | 1 => of_the_older_era(sent),
        2 => Play::Status(503),
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    assert_eq!(upstream.status().revision, Some(Revision::V2025_11_25));
    let asked = || {
        let made = processes.made();
        let asked = made
            .iter()
            .map(|made| made.sent_of("server/discover").len());
        (
            asked.collect::<Vec<_>>(),
            made.iter()
                .map(|made| made.sent_of("initialize").len())
                .sum::<usize>(),
        )
    };
    assert_eq!(asked(), (vec![1], 1));
    let (hours, minute) = (Duration::from_secs(12 * 3600), Duration::from_secs(60));
    // Still of the older era: nothing ends.
    sleep(hours + minute).await;
    assert_eq!((asked(), closed(&processes)), ((vec![1, 1], 1), vec![0, 1]));
    // It cannot be asked: nothing ends either, and an hour later it is asked once more.
    sleep(hours).await;
    assert_eq!(asked(), (vec![1, 1, 1], 1));
    assert_eq!((upstream.status().restarts, sink.last().away), (0, false));
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(asked(), (vec![1, 1, 1, 1], 1));
    sleep(minute).await;
    assert_eq!(upstream.status().revision, Some(Revision::V2026_07_28));
    assert!(!sink.last().away);
}

/// The two endpoints of the oldest revision know no other era.
#[tokio::test(start_paused = true)]
async fn a_server_of_the_two_endpoints_is_asked_nothing_again() {
    let processes = serving(|_, sent| of_the_older_era(sent));
    let mut spec = an_address();
    if let Endpoint::Http(http) = &mut spec.endpoint {
        http.transport = HttpTransport::Sse;
    }
    let (_sink, upstream, _tasks) = started(&spec, &processes);
    upstream.settled().await;
    sleep(Duration::from_secs(25 * 3600)).await;
    assert_eq!((processes.made().len(), upstream.status().restarts), (1, 0));
}

/// A server that cannot be asked for the moment is not known to speak in another way.
#[tokio::test(start_paused = true)]
async fn a_doubt_that_cannot_be_settled_ends_nothing_and_is_settled_later() {
    let calls = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match (number, sent.method.as_str()) {
        (0, "tools/call") => match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Play::Hang,
            _ => Play::Status(404),
        },
        (1, _) => Play::Status(503),
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let mut anas = by(&upstream, "ana");
    assert!(poll!(anas.as_mut()).is_pending());
    assert!(by(&upstream, "ben").await.is_err());
    sleep(Duration::from_secs(20)).await;
    assert!(poll!(anas.as_mut()).is_pending());
    assert_eq!((sink.count(), closed(&processes)), (1, vec![0, 1, 1]));
}

/// One tool may refuse so.
#[tokio::test(start_paused = true)]
async fn an_answer_as_of_the_other_era_is_no_connection_that_failed() {
    for (older, status, code) in [
        (false, 400, -32005),
        (false, 400, -32022),
        (true, 200, -32021),
    ] {
        let processes = serving(move |number, sent| match sent.method.as_str() {
            "tools/call" if number == 0 => Play::Error(status, code, ""),
            _ if older => of_the_older_era(sent),
            _ => healthy(number, sent),
        });
        assert_eq!(refused_ten_times_and_unharmed(&processes).await[0], 0);
    }
}

/// PROTOCOL C2: what was moved to the two-endpoint transport may speak the same revision there.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_moved_to_the_other_http_transport_is_spoken_to_on_that() {
    let moved = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&moved);
    let processes = Processes::new(move |_, http| {
        let now = Arc::clone(&now);
        Scripted::new(move |sent| {
            let moved = now.load(Ordering::SeqCst);
            match (http, sent.method.as_str()) {
                (HttpTransport::Sse, _) => of_the_older_era(sent),
                _ if moved => Play::Status(404),
                (_, "initialize") => Play::Session("s", greeting("2025-11-25")),
                _ => of_the_older_era(sent),
            }
        })
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    assert!(by(&upstream, "ana").await.is_ok());
    moved.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(by(&upstream, "ana").await.is_err());
    }
    sleep(Duration::from_secs(60)).await;
    assert!(by(&upstream, "ana").await.is_ok());
    assert_eq!(sink.count(), 2);
    assert_eq!(upstream.status().revision, Some(Revision::V2025_11_25));
    // First whether it is of the other era by now, then everything.
    let asked = [
        HttpTransport::Streamable,
        HttpTransport::Streamable,
        HttpTransport::Sse,
    ];
    assert_eq!(processes.asked()[1..4], asked);
    assert_eq!(closed(&processes)[..4], [1, 1, 1, 0]);
}

/// A wrong argument is answered by some as the other era answers a request that does not describe itself.
#[tokio::test(start_paused = true)]
async fn who_answers_errors_as_the_other_era_does_is_asked_for_no_second_handshake() {
    let processes = serving(|number, sent| match sent.method.as_str() {
        "tools/call" => Play::Error(400, -32602, ""),
        "server/discover" => Play::Error(400, -32600, ""),
        "initialize" if number > 0 => Play::Error(400, -32600, ""),
        _ => of_the_older_era(sent),
    });
    let (_sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    for _ in 0..60 {
        assert!(
            by(&upstream, "ana").await.is_ok(),
            "it is the server's own error"
        );
        sleep(Duration::from_secs(1)).await;
    }
    let made = processes.made();
    assert!(made.len() > 2, "there was doubt");
    let handshakes = made[1..].iter().map(|one| one.sent_of("initialize").len());
    assert_eq!(handshakes.sum::<usize>(), 0);
}

/// Two servers of two eras may stand behind one address.
#[tokio::test(start_paused = true)]
async fn changes_of_era_are_spaced_however_often_a_server_changes_it() {
    let processes = Processes::new(|number, _| {
        let mut opened = 0;
        Scripted::new(move |sent| match (number % 2, sent.method.as_str()) {
            (0, "tools/call") => Play::Status(404),
            (0, "notifications/cancelled") => Play::Status(202),
            (0, _) => healthy(number, sent),
            (_, "initialize") if opened > 0 => Play::Error(400, -32602, ""),
            (_, method) => {
                opened += usize::from(method == "initialize");
                of_the_older_era(sent)
            }
        })
    });
    let (_sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    for _ in 0..300 {
        assert!(by(&upstream, "ana").await.is_err());
        sleep(Duration::from_secs(1)).await;
    }
    let ended = closed(&processes);
    let ended = ended.iter().filter(|closed| **closed > 0).count();
    // 1, 2, 4, 8 and 16 s, and then every half minute.
    assert!((8..=20).contains(&ended), "{ended}");
}
