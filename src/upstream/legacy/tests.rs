//! The peer of the handshake era against scripted servers: opening, sharing and ending sessions, and calls on them.

use std::{sync::atomic::Ordering, time::Duration};

use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::{
    call::{Caller, Event, LogLevel, Op, Outcome, Principal, Step},
    json::Json,
    protocol::Revision,
    upstream::{
        Reached,
        asking::Offer,
        connector::Connector,
        health::Circuit,
        scripted::{
            Play, Processes, Scripted, Sent, a_call, a_caller, a_pipe, a_route, a_tool_call,
            an_address, greeting, last, note, result, terms,
        },
        spec::{HttpTransport, UpstreamSpec},
    },
};

pub(super) const NEWEST: Proposal = Proposal {
    service: true,
    of_one: false,
    revision: Revision::LATEST_LEGACY,
    exact: false,
};

pub(super) async fn opened(
    transport: &Arc<Scripted>,
    streamable: bool,
    proposal: Proposal,
) -> Result<Session, UpstreamError> {
    let wire = Wire::new(Arc::<Scripted>::clone(transport), streamable);
    let terms = terms(&a_pipe());
    let deadline = Instant::now() + Duration::from_secs(5);
    Ok(Session::open(&wire, proposal, Offer::NONE, &terms, deadline).await?)
}

/// A peer on Streamable HTTP; `script` sees everything after the handshakes, whose sessions are `s0`, `s1`, ….
pub(super) async fn over_http(
    spec: &UpstreamSpec,
    mut script: impl FnMut(&Sent) -> Play + Send + 'static,
) -> (Arc<Scripted>, Legacy) {
    let mut sessions = ["s0", "s1", "s2", "s3", "s4", "s5"].into_iter();
    let transport = Scripted::new(move |sent| match sent.method.as_str() {
        "initialize" => Play::Session(sessions.next().unwrap(), greeting("2025-06-18")),
        "notifications/initialized" => Play::Status(202),
        _ => script(sent),
    });
    let peer = over(&transport, spec).await;
    (transport, peer)
}

/// A peer over HTTP on this transport, which has opened its first session.
pub(super) async fn over(transport: &Arc<Scripted>, spec: &UpstreamSpec) -> Legacy {
    let wire = Wire::new(Arc::<Scripted>::clone(transport), true);
    let terms = terms(spec);
    let deadline = Instant::now() + Duration::from_secs(5);
    let first = Session::open(&wire, NEWEST, Offer::NONE, &terms, deadline)
        .await
        .unwrap();
    Legacy::new(first, Opener::Shared(wire), NEWEST, spec.isolation, &terms)
}

/// A peer on a pipe, further processes by the same script.
pub(super) async fn on_pipes(
    isolation: Isolation,
    script: impl Fn(usize, &Sent) -> Play + Send + Sync + Clone + 'static,
) -> (Arc<Processes>, Legacy) {
    let spec = UpstreamSpec {
        isolation,
        ..a_pipe()
    };
    on_pipes_of(spec, script).await
}

pub(super) async fn on_pipes_of(
    spec: UpstreamSpec,
    script: impl Fn(usize, &Sent) -> Play + Send + Sync + Clone + 'static,
) -> (Arc<Processes>, Legacy) {
    let processes = Processes::new(move |number, _| {
        let script = script.clone();
        Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => result(greeting("2025-11-25")),
            _ => script(number, sent),
        })
    });
    let terms = terms(&spec);
    let transport = processes.connect(HttpTransport::Auto).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(5);
    let wire = Wire::new(transport, false);
    let first = Session::open(&wire, NEWEST, Offer::NONE, &terms, deadline)
        .await
        .unwrap();
    let connector: Arc<dyn Connector> = Arc::<Processes>::clone(&processes);
    let opener = Opener::Own(connector, HttpTransport::Auto);
    (
        processes,
        Legacy::new(first, opener, NEWEST, spec.isolation, &terms),
    )
}

pub(super) fn of(key: &str) -> Call {
    Call {
        caller: Arc::new(a_caller(key)),
        ..a_tool_call()
    }
}

async fn done(peer: &Legacy, call: Call) -> Outcome {
    match peer.call(call, a_route("t")).await {
        Ok(Reply::Done(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_is_opened_by_the_handshake_and_named_afterwards() {
    let (transport, peer) =
        over_http(&an_address(), |_| result(r#"{"content":[], "n":1.0}"#)).await;
    let Outcome::Complete(json) = done(&peer, of("k")).await else {
        panic!()
    };
    assert_eq!(json.as_str(), r#"{"content":[], "n":1.0}"#);
    let sent = transport.sent();
    let methods: Vec<_> = sent.iter().map(|sent| sent.method.as_str()).collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "notifications/initialized",
            "initialize",
            "notifications/initialized",
            "tools/call"
        ]
    );
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        sent[0].params,
        format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"usher","version":"{version}"}}}}"#
        )
    );
    assert_eq!(sent[0].header("mcp-protocol-version"), None);
    assert_eq!(sent[1].header("mcp-session-id"), Some("s0"));
    assert_eq!(sent[4].header("mcp-session-id"), Some("s1"));
    assert_eq!(sent[4].header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(sent[4].header("mcp-method"), None);
    assert_eq!(sent[4].params, r#"{"name":"t","arguments":{"a":1.0}}"#);
    let card = peer.card();
    assert_eq!(card.revision, Revision::V2025_06_18);
    assert_eq!(card.instructions.as_deref(), Some("do"));
}

#[tokio::test]
async fn a_session_at_an_older_revision_sends_no_version_header() {
    let transport = Scripted::new(|_| Play::Session("s", greeting("2025-03-26")));
    let session = opened(&transport, true, NEWEST).await.unwrap();
    assert_eq!(session.line.headers.len(), 1);
    let transport = Scripted::new(|_| result(greeting("2024-11-05")));
    let session = opened(&transport, true, NEWEST).await.unwrap();
    assert!(session.line.headers.is_empty());
}

#[tokio::test]
async fn a_version_that_is_not_ours_or_not_the_pinned_one_is_refused() {
    let pinned = Proposal {
        service: true,
        of_one: false,
        revision: Revision::V2025_06_18,
        exact: true,
    };
    for (answer, proposal, fine) in [
        ("2025-06-18", pinned, true),
        ("2025-11-25", pinned, false),
        ("2026-07-28", NEWEST, false),
        ("2023-01-01", NEWEST, false),
    ] {
        let transport = Scripted::new(move |_| result(greeting(answer)));
        let session = opened(&transport, false, proposal).await;
        assert_eq!(session.is_ok(), fine, "{answer}");
        assert_eq!(
            transport.sent_of("notifications/initialized").len(),
            usize::from(fine)
        );
    }
    let transport = Scripted::new(|_| result("{}"));
    let session = opened(&transport, false, NEWEST).await;
    assert!(matches!(session, Err(UpstreamError::Protocol(_))));
}

#[tokio::test]
async fn pings_are_answered_and_whatever_else_a_server_asks_is_refused() {
    let transport = Scripted::new(|_| result(greeting("2025-11-25")));
    transport.say(r#"{"jsonrpc":"2.0","id":"p\u0031","method":"ping"}"#);
    transport.say(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    transport.say(r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#);
    let session = opened(&transport, false, NEWEST).await.unwrap();
    let pong = transport.until(|sent| sent.text.contains("p\\u0031")).await;
    assert_eq!(pong.text, r#"{"jsonrpc":"2.0","id":"p\u0031","result":{}}"#);
    let refusal = transport
        .until(|sent| sent.text.contains(r#""id":2,"error""#))
        .await;
    assert!(refusal.text.contains("-32601"), "{}", refusal.text);
    drop(session);
}

#[tokio::test]
async fn a_request_on_a_calls_own_stream_is_answered_there_too() {
    let (transport, peer) = over_http(&an_address(), |sent| match sent.method.as_str() {
        "tools/call" => Play::Stream(
            vec![
                (0, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#.into()),
                (
                    0,
                    r#"{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage"}"#.into(),
                ),
                (
                    0,
                    note("notifications/message", r#"{"level":"info","data":1}"#),
                ),
                (0, last("{}")),
            ],
            false,
        ),
        _ => Play::Status(202),
    })
    .await;
    let mut call = of("k");
    call.caller = Arc::new(Caller {
        log_level: Some(LogLevel::Info),
        ..a_caller("k")
    });
    let Ok(Reply::Stream(stream)) = peer.call(call, a_route("t")).await else {
        panic!()
    };
    let steps: Vec<_> = stream.collect().await;
    assert!(matches!(
        steps[..],
        [
            Step::Event(Event::Log(LogLevel::Info, _)),
            Step::Outcome(Outcome::Complete(_))
        ]
    ));
    let answers = transport.sent_of("");
    assert_eq!(answers.len(), 2);
    assert!(answers[0].text.contains(r#""id":7,"result":{}"#));
    assert!(answers[1].text.contains(r#""id":8,"error""#));
    assert_eq!(answers[1].header("mcp-session-id"), Some("s1"));
}

#[tokio::test]
async fn a_progress_token_is_sent_only_when_progress_is_wanted() {
    let (transport, peer) = over_http(&an_address(), |_| result("{}")).await;
    let mut call = of("k");
    call.wants_progress = true;
    done(&peer, call).await;
    let sent = transport.sent_of("tools/call").remove(0);
    let id = sent
        .text
        .split_once(r#""id":"#)
        .unwrap()
        .1
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    assert!(
        sent.params
            .ends_with(&format!(r#""_meta":{{"progressToken":{id}}}}}"#)),
        "{}",
        sent.params
    );
}

#[tokio::test]
async fn callers_share_a_session_only_under_one_key() {
    let session_of = |sent: &Sent| sent.header("mcp-session-id").unwrap().to_owned();
    for (isolation, want) in [
        (Isolation::Shared, ["s0", "s0", "s0"]),
        (Isolation::Session, ["s1", "s2", "s1"]),
        (Isolation::Principal, ["s1", "s1", "s1"]),
    ] {
        let spec = UpstreamSpec {
            isolation,
            ..an_address()
        };
        let (transport, peer) = over_http(&spec, |_| result("{}")).await;
        for key in ["a", "b", "a"] {
            done(&peer, of(key)).await;
        }
        let used: Vec<_> = transport
            .sent_of("tools/call")
            .iter()
            .map(session_of)
            .collect();
        assert_eq!(used, want, "{isolation:?}");
    }
    assert_eq!(Principal::anonymous().as_str(), "anonymous");
}

#[tokio::test]
async fn a_session_is_opened_once_however_many_wait_for_it() {
    let (transport, peer) = over_http(&an_address(), |_| result("{}")).await;
    let calls = (0..4).map(|_| peer.call(of("k"), a_route("t")));
    for reply in futures_util::future::join_all(calls).await {
        assert!(reply.is_ok());
    }
    assert_eq!(transport.sent_of("initialize").len(), 2);
}

#[tokio::test]
async fn a_session_ends_with_its_owner() {
    let (transport, peer) = over_http(&an_address(), |_| result("{}")).await;
    let call = of("k");
    let ended = call.caller.affinity.ended.clone().unwrap();
    done(&peer, call).await;
    assert_eq!(peer.keyed.len(), 1);
    ended.cancel();
    while transport.ended.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*transport.ended.lock().unwrap(), ["s1"]);
    assert_eq!(peer.keyed.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_closed_opens_nothing_any_more() {
    for isolation in [Isolation::Session, Isolation::Shared] {
        let (processes, peer) = on_pipes(isolation, |_, _| result("{}")).await;
        done(&peer, of("a")).await;
        let made = processes.made().len();
        peer.close().await;
        for key in ["a", "b"] {
            let reply = peer.call(of(key), a_route("t")).await;
            assert!(matches!(reply, Err(UpstreamError::Unavailable { .. })));
            // Nor did any connection fail.
            let circuit = Circuit::default();
            circuit.learn(&reply);
            assert_eq!(circuit.failures(), 0);
        }
        assert_eq!(processes.made().len(), made);
        assert_eq!(peer.keyed.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_closed_after_fifteen_minutes_and_a_used_one_is_not() {
    let (transport, peer) = over_http(&an_address(), |_| result("{}")).await;
    done(&peer, of("idle")).await;
    for _ in 0..3 {
        done(&peer, of("used")).await;
        tokio::time::sleep(Duration::from_secs(6 * 60)).await;
    }
    assert_eq!(*transport.ended.lock().unwrap(), ["s1"]);
    assert_eq!(peer.keyed.len(), 1);
}

#[tokio::test]
async fn closing_ends_every_session_and_the_transport() {
    let (transport, peer) = over_http(&an_address(), |_| result("{}")).await;
    done(&peer, of("a")).await;
    done(&peer, of("b")).await;
    peer.close().await;
    let mut ended = transport.ended.lock().unwrap().clone();
    ended.sort_unstable();
    assert_eq!(ended, ["s0", "s1", "s2"]);
    assert_eq!(transport.closed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn processes_are_per_key_and_bounded() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, _| result("{}")).await;
    done(&peer, of("k0")).await;
    done(&peer, of("k0")).await;
    assert_eq!(processes.made().len(), 2);
    for n in 1..32 {
        done(&peer, of(&format!("k{n}"))).await;
    }
    let reply = peer.call(of("one more"), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Overloaded)));
    done(&peer, of("k7")).await;
    assert_eq!(processes.made().len(), 33);
    peer.close().await;
    for process in processes.made() {
        assert_eq!(process.closed.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_of_one_key_that_dies_hurts_nobody_else_and_comes_back() {
    let (processes, peer) = on_pipes(Isolation::Session, |number, sent| match number {
        1 if sent.method == "tools/call" => Play::Die,
        _ => result("{}"),
    })
    .await;
    let reply = peer.call(of("a"), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Unavailable { .. })));
    done(&peer, of("b")).await;
    // It died at once, so it is not started again at once.
    let reply = peer.call(of("a"), a_route("t")).await;
    let Err(UpstreamError::Unavailable {
        retry_at: Some(at), ..
    }) = reply
    else {
        panic!("{reply:?}")
    };
    tokio::time::sleep_until(at).await;
    done(&peer, of("a")).await;
    assert_eq!(processes.made().len(), 4);
    assert!(futures_util::poll!(peer.lost()).is_pending());
    processes.made()[0].die();
    assert!(matches!(
        peer.lost().await,
        UpstreamError::Unavailable { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_opened_is_an_error_and_is_not_tried_again_at_once() {
    let mut handshakes = 0;
    let transport = Scripted::new(move |sent| {
        handshakes += usize::from(sent.method == "initialize");
        match (sent.method.as_str(), handshakes) {
            ("initialize", 2) => Play::Status(503),
            ("initialize", _) => Play::Session("s", greeting("2025-06-18")),
            _ => result("{}"),
        }
    });
    let peer = over(&transport, &an_address()).await;
    let reply = peer.call(of("k"), a_route("t")).await;
    assert_eq!(reply.unwrap_err().status(), Some(503));
    // Nothing is asked for the second, so nothing answered it.
    let Err(UpstreamError::Unavailable {
        retry_at: Some(at),
        status: None,
        ..
    }) = peer.call(of("k"), a_route("t")).await
    else {
        panic!()
    };
    assert_eq!(transport.sent_of("initialize").len(), 2);
    tokio::time::sleep_until(at).await;
    done(&peer, of("k")).await;
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again_and_only_reads_are_repeated() {
    for gone in [
        Play::Status(404),
        Play::Error(404, -32001, ""),
        Play::Error(400, -32000, ""),
    ] {
        let (transport, peer) = over_http(&an_address(), move |sent| {
            match sent.header("mcp-session-id") {
                Some("s1") => gone.clone(),
                _ => result("{}"),
            }
        })
        .await;
        let read = Call {
            caller: Arc::new(a_caller("k")),
            ..a_call(Op::ReadResource("u+a:b".into()), r#"{"uri":"u+a:b"}"#)
        };
        done(&peer, read.clone()).await;
        assert_eq!(transport.sent_of("resources/read").len(), 2);
    }
    let (transport, peer) = over_http(&an_address(), |sent| match sent.header("mcp-session-id") {
        Some("s1") => Play::Status(404),
        _ => result("{}"),
    })
    .await;
    let reply = peer.call(of("k"), a_route("t")).await;
    let reached = Reached::Forgotten;
    assert!(
        matches!(reply, Err(UpstreamError::Unavailable { reached: said, .. }) if said == reached)
    );
    assert_eq!(transport.sent_of("tools/call").len(), 1);
    done(&peer, of("k")).await;
    assert_eq!(transport.sent_of("tools/call").len(), 2);
}

#[tokio::test]
async fn an_upstreams_own_error_is_passed_on_and_codes_of_the_other_era_are_not() {
    let mut plays = [
        Play::Error(200, -32042, r#"{"elicitations":[]}"#),
        Play::Error(200, -32002, ""),
        Play::Error(400, -32602, ""),
        Play::Error(400, -32022, ""),
    ]
    .into_iter();
    let (_, peer) = over_http(&an_address(), move |_| plays.next().unwrap()).await;
    assert!(!peer.wire.doubt.take());
    // With such a status the last may be of another era all the same.
    for (code, doubt) in [(-32042, false), (-32002, false), (-32602, true)] {
        let mut call = of("k");
        call.caller = Arc::new(Caller {
            revision: Revision::V2025_11_25,
            visits: true,
            ..a_caller("k")
        });
        let outcome = done(&peer, call).await;
        assert!(matches!(outcome, Outcome::Failed(error) if error.code == code));
        assert_eq!(peer.wire.doubt.take(), doubt);
    }
    let reply = peer.call(of("k"), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Unavailable { .. })));
    assert!(peer.wire.doubt.take());
}

#[tokio::test]
async fn lists_are_read_on_the_service_session_and_again_when_it_was_forgotten() {
    let (transport, peer) = over_http(&an_address(), |sent| {
        match (sent.header("mcp-session-id"), sent.params.as_str()) {
            (Some("s0"), "{}") => result(r#"{"tools":[{"name":"a"}],"nextCursor":"1"}"#),
            (Some("s0"), _) => Play::Status(404),
            (_, "{}") => result(r#"{"tools":[{"name":"b"}],"nextCursor":"2"}"#),
            // Many servers of this era end their lists with an empty cursor.
            _ => result(r#"{"tools":[{"name":"c"}],"nextCursor":""}"#),
        }
    })
    .await;
    let listing = peer.list(ListKind::Tools).await.unwrap();
    let items: Vec<_> = listing.items.iter().map(Json::as_str).collect();
    assert_eq!(items, [r#"{"name":"b"}"#, r#"{"name":"c"}"#]);
    assert_eq!((listing.ttl, listing.public), (None, false));
    assert!(!listing.truncated);
    assert!(peer.list(ListKind::Prompts).await.unwrap().items.is_empty());
    assert_eq!(transport.sent_of("prompts/list").len(), 0);
}

#[tokio::test]
async fn a_server_that_stops_speaking_the_era_casts_doubt() {
    let mut handshakes = 0;
    let transport = Scripted::new(move |sent| {
        handshakes += usize::from(sent.method == "initialize");
        match (sent.method.as_str(), handshakes) {
            ("initialize", 1) => Play::Session("s", greeting("2025-06-18")),
            ("notifications/initialized", _) => Play::Status(202),
            _ => Play::Error(400, -32602, ""),
        }
    });
    let peer = over(&transport, &an_address()).await;
    assert!(!peer.wire.doubt.take());
    assert!(peer.list(ListKind::Tools).await.is_err());
    assert!(peer.wire.doubt.take());
}

/// Where sessions have no id, nothing is opened anew that could be refused (PROTOCOL C4).
#[tokio::test]
async fn a_list_that_is_refused_without_a_session_casts_doubt() {
    for (play, doubt) in [
        (
            Play::Error(400, -32022, r#"{"supported":["2026-07-28"]}"#),
            true,
        ),
        (Play::Error(400, -32602, ""), true),
        (Play::Status(404), true),
        (Play::Error(200, -32603, ""), false),
        (Play::Status(503), false),
    ] {
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => result(greeting("2025-11-25")),
            "notifications/initialized" => Play::Status(202),
            _ => play.clone(),
        });
        let peer = over(&transport, &an_address()).await;
        assert!(peer.list(ListKind::Tools).await.is_err());
        assert_eq!(peer.wire.doubt.take(), doubt);
    }
    // What it does not have is none, and there is doubt where that does not come as its errors should.
    for (status, doubt) in [(200, false), (404, true)] {
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => result(greeting("2025-11-25")),
            "notifications/initialized" => Play::Status(202),
            _ => Play::Error(status, -32601, ""),
        });
        let peer = over(&transport, &an_address()).await;
        assert!(peer.list(ListKind::Tools).await.unwrap().items.is_empty());
        assert_eq!(peer.wire.doubt.take(), doubt);
    }
}

/// PROTOCOL C4: the same where no list is asked for.
#[tokio::test]
async fn a_call_that_is_refused_without_a_session_casts_doubt() {
    for (play, doubt) in [
        (Play::Status(404), true),
        (Play::Status(405), true),
        (Play::Status(503), false),
        (Play::Error(400, -32022, ""), true),
        (Play::Error(400, -32020, ""), true),
        // That is about one caller.
        (Play::Error(400, -32021, ""), false),
    ] {
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => result(greeting("2025-11-25")),
            "notifications/initialized" => Play::Status(202),
            _ => play.clone(),
        });
        let peer = over(&transport, &an_address()).await;
        assert!(peer.call(of("k"), a_route("t")).await.is_err());
        assert_eq!(peer.wire.doubt.take(), doubt);
    }
}

/// It is one refusal, however often its caller comes back.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_remembered_casts_no_doubt_again() {
    let mut handshakes = 0;
    let transport = Scripted::new(move |sent| {
        handshakes += usize::from(sent.method == "initialize");
        match (sent.method.as_str(), handshakes) {
            ("initialize", 2..) => Play::Error(400, -32602, ""),
            ("initialize", _) => Play::Session("s", greeting("2025-06-18")),
            _ => result("{}"),
        }
    });
    let peer = over(&transport, &an_address()).await;
    let doubted = || peer.doubted().now_or_never().is_some();
    for (handshakes, doubt) in [(2, true), (2, false), (2, false)] {
        let reply = peer.call(of("k"), a_route("t")).await;
        assert!(matches!(reply, Err(UpstreamError::Refused(_))));
        assert_eq!(transport.sent_of("initialize").len(), handshakes);
        assert_eq!(doubted(), doubt);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(peer.call(of("k"), a_route("t")).await.is_err());
    assert_eq!(transport.sent_of("initialize").len(), 3);
    assert!(doubted());
}
