//! The peer of the stateless era against scripted servers: what is sent, what counts as an answer, how calls end.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::StreamExt;
use http::StatusCode;

use super::*;
use crate::{
    call::{Event, LogLevel, Outcome, Stake, Step},
    json::Limits,
    jsonrpc::RpcError,
    protocol::{ClientCapabilities, mirror::ParamHeader, mirror::ParamKind},
    upstream::{
        CredentialError, Deadline, Reached,
        scripted::{
            Play, Scripted, a_call, a_caller, a_pipe, a_route, a_tool_call, an_address, last, note,
            result, terms,
        },
        spec::{Timeouts, UpstreamSpec},
    },
};

const CARD: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"instructions":"do","ttlMs":5,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;

pub(super) fn peer_of(spec: &UpstreamSpec, transport: &Arc<Scripted>, streamable: bool) -> Modern {
    let revision = Revision::V2026_07_28;
    let wire = Wire::new(Arc::<Scripted>::clone(transport), streamable);
    let text = Json::parse(CARD.into(), &Limits::UPSTREAM).unwrap();
    Modern::new(
        card(&text, revision).unwrap(),
        line(wire, revision, terms(spec)),
    )
}

pub(super) fn over_http(
    script: impl FnMut(&crate::upstream::scripted::Sent) -> Play + Send + 'static,
) -> (Arc<Scripted>, Modern) {
    let transport = Scripted::new(script);
    let peer = peer_of(&an_address(), &transport, true);
    (transport, peer)
}

fn over_a_pipe(
    script: impl FnMut(&crate::upstream::scripted::Sent) -> Play + Send + 'static,
) -> (Arc<Scripted>, Modern) {
    let transport = Scripted::new(script);
    let peer = peer_of(&a_pipe(), &transport, false);
    (transport, peer)
}

pub(super) fn done(reply: Result<Reply, UpstreamError>) -> Outcome {
    match reply {
        Ok(Reply::Done(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

pub(super) fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Complete(json) => json.as_str(),
        Outcome::Listed(_)
        | Outcome::Card(_)
        | Outcome::InputRequired(_)
        | Outcome::Task(_)
        | Outcome::Failed(_)
        | Outcome::Lost(_) => {
            panic!("{outcome:?}")
        }
    }
}

#[tokio::test]
async fn a_request_describes_itself_and_its_headers_mirror_the_body_that_is_sent() {
    let (transport, peer) = over_http(|_| result(r#"{"resultType":"complete", "n" : 1.50}"#));
    let call = a_call(
        Op::CallTool("u_t".into()),
        r#"{"name":"u_t","arguments":{"region":"é","deep":{"n":42},"none":null,"q":1.0},"_meta":{"progressToken":"theirs","com.example/x":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
    );
    let header = |name: &str, path: &[&str], kind| ParamHeader {
        header: format!("mcp-param-{name}"),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        kind,
    };
    let route = Route {
        headers: Arc::new([
            header("region", &["region"], ParamKind::String),
            header("n", &["deep", "n"], ParamKind::Integer),
            header("none", &["none"], ParamKind::String),
        ]),
        ..a_route("täl")
    };
    let outcome = done(peer.call(call, route).await);
    assert_eq!(text(&outcome), r#"{"resultType":"complete", "n" : 1.50}"#);
    let sent = transport.sent().remove(0);
    assert_eq!(sent.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(sent.header("mcp-method"), Some("tools/call"));
    assert_eq!(sent.header("mcp-name"), Some("=?base64?dMOkbA==?="));
    assert_eq!(sent.header("mcp-param-region"), Some("=?base64?w6k=?="));
    assert_eq!(sent.header("mcp-param-n"), Some("42"));
    assert_eq!(sent.header("mcp-param-none"), None);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        sent.params,
        format!(
            r#"{{"name":"täl","arguments":{{"region":"é","deep":{{"n":42}},"none":null,"q":1.0}},"_meta":{{"com.example/x":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"usher","version":"{version}"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#
        )
    );
}

#[tokio::test]
async fn a_pipe_gets_no_headers_and_is_asked_for_no_log_lines() {
    let (transport, peer) = over_a_pipe(|_| result("{}"));
    let mut call = a_tool_call();
    call.caller = Arc::new(crate::call::Caller {
        log_level: Some(LogLevel::Debug),
        ..a_caller("k")
    });
    done(peer.call(call, a_route("t")).await);
    let sent = transport.sent().remove(0);
    assert!(sent.headers.is_empty());
    assert!(!sent.params.contains("logLevel"), "{}", sent.params);
}

#[tokio::test]
async fn progress_under_our_token_and_wanted_log_lines_come_before_the_outcome() {
    let (transport, peer) = over_http(|_| {
        Play::Stream(
            vec![
                (0, note("notifications/unknown", "{}")),
                (
                    0,
                    note(
                        "notifications/progress",
                        r#"{"progressToken":999,"progress":1}"#,
                    ),
                ),
                (
                    0,
                    note(
                        "notifications/progress",
                        r#"{"progressToken":$id,"progress":1.0}"#,
                    ),
                ),
                (
                    0,
                    note("notifications/message", r#"{"level":"info","data":"low"}"#),
                ),
                (
                    0,
                    note(
                        "notifications/message",
                        r#"{"level":"error","data":"high"}"#,
                    ),
                ),
                (0, last(r#"{"ok":true}"#)),
            ],
            false,
        )
    });
    let mut call = a_tool_call();
    call.wants_progress = true;
    call.caller = Arc::new(crate::call::Caller {
        log_level: Some(LogLevel::Warning),
        ..a_caller("k")
    });
    let Ok(Reply::Stream(stream)) = peer.call(call, a_route("t")).await else {
        panic!()
    };
    let steps: Vec<_> = stream.collect().await;
    let [
        Step::Event(Event::Progress(progress)),
        Step::Event(Event::Log(LogLevel::Error, log)),
        Step::Outcome(outcome),
    ] = &steps[..]
    else {
        panic!("{steps:?}")
    };
    assert_eq!(progress.as_str(), r#"{"progressToken":1,"progress":1.0}"#);
    assert_eq!(log.as_str(), r#"{"level":"error","data":"high"}"#);
    assert_eq!(text(outcome), r#"{"ok":true}"#);
    let params = transport.sent().remove(0).params;
    assert!(params.contains(r#""progressToken":1"#), "{params}");
    assert!(
        params.contains(r#""io.modelcontextprotocol/logLevel":"warning""#),
        "{params}"
    );
    assert_eq!(peer.line.terms.dropped.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn events_that_nobody_wants_make_no_stream() {
    let (_, peer) = over_http(|_| {
        Play::Stream(
            vec![
                (
                    0,
                    note(
                        "notifications/progress",
                        r#"{"progressToken":$id,"progress":1}"#,
                    ),
                ),
                (
                    0,
                    note("notifications/message", r#"{"level":"error","data":1}"#),
                ),
                (0, last("{}")),
            ],
            false,
        )
    });
    assert_eq!(
        text(&done(peer.call(a_tool_call(), a_route("t")).await)),
        "{}"
    );
}

#[tokio::test]
async fn what_is_not_this_calls_own_answer_breaks_this_call_only() {
    let mut plays = vec![
        Play::Raw(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#.into()),
        Play::Raw(r#"{"jsonrpc":"2.0","id":"$id","result":{}}"#.into()),
        Play::Raw(note("notifications/x", "{}")),
        Play::Status(202),
        Play::Stream(
            vec![(
                0,
                r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#.into(),
            )],
            true,
        ),
        Play::Stream(
            vec![(0, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.into())],
            true,
        ),
        result(r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}"#),
        result(r#"{"resultType":"task"}"#),
        result(r#"{"resultType":7}"#),
        Play::Error(400, -32020, ""),
        // Read anew because of that.
        result(r#"{"tools":[]}"#),
        Play::Error(400, -32021, r#"{"requiredCapabilities":{"sampling":{}}}"#),
        result("{}"),
    ]
    .into_iter();
    let (_, peer) = over_http(move |_| plays.next().unwrap());
    let mut call = a_tool_call();
    call.caller = Arc::new(crate::call::Caller {
        capabilities: ClientCapabilities::read(
            Json::parse(r#"{"sampling":{}}"#.into(), &Limits::CLIENT).unwrap(),
        )
        .unwrap(),
        ..a_caller("k")
    });
    for n in 0..11 {
        let reply = peer.call(call.clone(), a_route("t")).await;
        // The seventh asks for what was not declared to it.
        let undeclared = matches!(reply, Err(UpstreamError::Undeclared("roots")));
        let broken = matches!(reply, Err(UpstreamError::Protocol(_)));
        let fits = if n == 6 { undeclared } else { broken };
        assert!(fits, "{n}: {reply:?}");
    }
    assert_eq!(text(&done(peer.call(call, a_route("t")).await)), "{}");
    assert!(!peer.line.wire.doubt.take());
}

#[tokio::test]
async fn errors_are_passed_on_as_they_came() {
    let (_, peer) = over_http(|_| Play::Error(404, -32601, r#"{"a":1.0}"#));
    let Outcome::Failed(RpcError { code, data, .. }) =
        done(peer.call(a_tool_call(), a_route("t")).await)
    else {
        panic!()
    };
    assert_eq!((code, data.unwrap().as_str()), (-32601, r#"{"a":1.0}"#));
    let (_, peer) =
        over_http(|_| Play::Error(400, -32021, r#"{"requiredCapabilities":{"sampling":{}}}"#));
    let reply = peer.call(a_tool_call(), a_route("t")).await;
    let Err(UpstreamError::NeedsCapabilities(needed)) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(needed.as_str(), r#"{"sampling":{}}"#);
}

#[tokio::test]
async fn statuses_without_a_frame_are_told_apart() {
    let error = |status: u16| {
        exchange::bare(&Head {
            status: StatusCode::from_u16(status).unwrap(),
            ..Head::default()
        })
    };
    for status in [408, 425, 429, 500, 503] {
        let away = matches!(error(status), UpstreamError::Unavailable { .. });
        assert_eq!((away, error(status).status()), (true, Some(status)));
    }
    assert!(matches!(error(418), UpstreamError::Status(418)));
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_come_again_later_is_told_when_and_whether_the_call_was_taken() {
    for (status, said) in [
        (429, Reached::Busy),
        (503, Reached::No),
        (500, Reached::Yes),
    ] {
        let wait = Duration::from_secs(7);
        let error = exchange::bare(&Head {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: Some(wait),
            ..Head::default()
        });
        let UpstreamError::Unavailable {
            retry_at, reached, ..
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!((retry_at, reached), (Some(Instant::now() + wait), said));
    }
}

#[tokio::test(start_paused = true)]
async fn over_http_dropping_the_call_lets_go_of_the_stream_and_says_nothing() {
    let (transport, peer) = over_http(|_| Play::Hang);
    let mut call = Box::pin(peer.call(a_tool_call(), a_route("t")));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    drop(call);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(transport.dropped.load(Ordering::SeqCst), 1);
    assert_eq!(transport.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn on_a_pipe_dropping_the_call_or_its_stream_tells_the_upstream() {
    let (transport, peer) = over_a_pipe(|_| Play::Hang);
    let mut call = Box::pin(peer.call(a_tool_call(), a_route("t")));
    assert!(futures_util::poll!(call.as_mut()).is_pending());
    drop(call);
    let told = transport
        .until(|sent| sent.method == "notifications/cancelled")
        .await;
    assert!(told.params.contains(r#""requestId":1"#), "{}", told.params);

    let (transport, peer) = over_a_pipe(|_| {
        let progress = note(
            "notifications/progress",
            r#"{"progressToken":$id,"progress":1}"#,
        );
        Play::Stream(vec![(0, progress)], true)
    });
    let mut call = a_tool_call();
    call.wants_progress = true;
    let Ok(Reply::Stream(mut stream)) = peer.call(call, a_route("t")).await else {
        panic!()
    };
    assert!(matches!(stream.next().await, Some(Step::Event(_))));
    drop(stream);
    transport
        .until(|sent| sent.method == "notifications/cancelled")
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_answered_call_is_not_cancelled() {
    let (transport, peer) = over_a_pipe(|_| result("{}"));
    done(peer.call(a_tool_call(), a_route("t")).await);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(transport.sent().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_ends_at_its_deadline_and_progress_that_nobody_asked_for_does_not_extend_it()
 {
    let progress = || {
        note(
            "notifications/progress",
            r#"{"progressToken":$id,"progress":1}"#,
        )
    };
    let (transport, peer) = over_a_pipe(move |sent| {
        if sent.method == "tools/call" {
            Play::Stream((0..100).map(|_| (10, progress())).collect(), true)
        } else {
            Play::Status(202)
        }
    });
    let began = Instant::now();
    let call = peer.call(a_tool_call(), a_route("t"));
    assert!(matches!(
        call.await,
        Err(UpstreamError::Timeout(Deadline::Call))
    ));
    assert_eq!(began.elapsed(), Timeouts::default().call);
    transport
        .until(|sent| sent.method == "notifications/cancelled")
        .await;

    let began = Instant::now();
    let mut call = a_tool_call();
    call.wants_progress = true;
    call.deadline = began + Duration::from_secs(35);
    let Ok(Reply::Stream(stream)) = peer.call(call, a_route("t")).await else {
        panic!()
    };
    let steps: Vec<_> = stream.collect().await;
    assert_eq!(steps.len(), 4);
    let Some(Step::Outcome(Outcome::Lost(lost))) = steps.last() else {
        panic!("{steps:?}")
    };
    assert_eq!(lost.code, codes::UPSTREAM_TIMEOUT);
    assert_eq!(
        lost.message,
        "the server `u` did not answer in time; the call was cancelled, whether it took effect is unknown"
    );
    assert_eq!(began.elapsed(), Duration::from_secs(35));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_ends_before_the_deadline() {
    let transport = Scripted::new(|_| {
        let progress = note(
            "notifications/progress",
            r#"{"progressToken":$id,"progress":1}"#,
        );
        Play::Stream(vec![(0, progress)], true)
    });
    let mut spec = a_pipe();
    spec.timeouts.call = Duration::from_secs(300);
    let peer = peer_of(&spec, &transport, false);
    let began = Instant::now();
    let reply = peer.call(a_tool_call(), a_route("t")).await;
    assert!(matches!(
        reply,
        Err(UpstreamError::Timeout(Deadline::Silence))
    ));
    assert_eq!(began.elapsed(), spec.timeouts.silence);
}

#[tokio::test]
async fn a_stream_that_ends_or_breaks_early_is_an_error() {
    let (_, peer) = over_http(|_| Play::Stream(vec![], false));
    let reply = peer.call(a_tool_call(), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Unavailable { .. })));
}

/// SECURITY REL-3
#[tokio::test(start_paused = true)]
async fn what_is_at_stake_is_used_by_a_call_that_may_have_left_and_by_no_other() {
    for (play, used) in [
        (result("{}"), true),
        (Play::Status(503), true),
        (Play::Hang, true),
        (Play::Fail(UpstreamError::unreached("broke")), true),
        (Play::Fail(UpstreamError::unconnected("refused")), false),
        (Play::Fail(UpstreamError::Timeout(Deadline::Connect)), false),
        (Play::Fail(UpstreamError::Overloaded), false),
        (
            Play::Fail(UpstreamError::Credential(CredentialError::NoSubject)),
            false,
        ),
    ] {
        let mut play = Some(play);
        let (_, peer) = over_http(move |_| play.take().unwrap());
        let given_back = Arc::<AtomicBool>::default();
        let back = Arc::clone(&given_back);
        let mut call = a_tool_call();
        call.stake = Some(Stake::new(move || back.store(true, Ordering::SeqCst)));
        let reply = peer.call(call, a_route("t")).await;
        let told = format!("{reply:?}");
        drop((reply, peer));
        assert_eq!(given_back.load(Ordering::SeqCst), !used, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_concurrency_wait_and_are_refused_when_it_takes_too_long() {
    let (transport, peer) = over_http(|_| Play::Hang);
    let mut held: Vec<_> = (0..4)
        .map(|_| peer.call(a_tool_call(), a_route("t")))
        .collect();
    for call in &mut held {
        assert!(futures_util::poll!(call.as_mut()).is_pending());
    }
    let reply = peer.call(a_tool_call(), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Overloaded)));
    assert_eq!(transport.sent().len(), 4);
    drop(held);
    let mut free = peer.call(a_tool_call(), a_route("t"));
    assert!(futures_util::poll!(free.as_mut()).is_pending());
    assert_eq!(transport.sent().len(), 5);
}

#[tokio::test]
async fn lists_are_asked_for_page_by_page_and_only_where_promised() {
    let (transport, peer) = over_http(|sent| match sent.method.as_str() {
        "tools/list" if sent.params.contains("cursor") => result(
            r#"{"resultType":"complete","tools":[{"name":"b"}],"ttlMs":7,"cacheScope":"public"}"#,
        ),
        "tools/list" => result(
            r#"{"tools":[{"name":"a"}],"nextCursor":"\u00e9\"","ttlMs":9,"cacheScope":"public"}"#,
        ),
        "resources/templates/list" => Play::Error(404, -32601, ""),
        _ => Play::Error(200, -32603, ""),
    });
    let tools = peer.list(ListKind::Tools).await.unwrap();
    assert_eq!(tools.items.len(), 2);
    assert_eq!(tools.ttl, Some(Duration::from_millis(7)));
    let second = &transport.sent()[1];
    assert!(
        second.params.starts_with(r#"{"cursor":"é\"","_meta":{"#),
        "{}",
        second.params
    );
    assert_eq!(second.header("mcp-method"), Some("tools/list"));
    assert_eq!(second.header("mcp-name"), None);
    assert!(
        peer.list(ListKind::Templates)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert!(matches!(
        peer.list(ListKind::Resources).await,
        Err(UpstreamError::Refused(_))
    ));
    let before = transport.sent().len();
    assert!(peer.list(ListKind::Prompts).await.unwrap().items.is_empty());
    assert_eq!(transport.sent().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_stops_at_the_list_deadline() {
    let (_, peer) =
        over_http(|_| Play::After(10, Box::new(result(r#"{"tools":[],"nextCursor":"x"}"#))));
    let began = Instant::now();
    assert!(matches!(
        peer.list(ListKind::Tools).await,
        Err(UpstreamError::Timeout(_))
    ));
    assert_eq!(began.elapsed(), Timeouts::default().list);
}

#[test]
fn a_card_is_read_and_what_is_none_is_not() {
    let read = |text: &'static str| {
        card(
            &Json::parse(text.into(), &Limits::UPSTREAM).unwrap(),
            Revision::V2026_07_28,
        )
    };
    let found = read(CARD).unwrap();
    assert_eq!(found.instructions.as_deref(), Some("do"));
    assert_eq!(
        found.server_info.unwrap().as_str(),
        r#"{"name":"s","version":"1"}"#
    );
    assert_eq!(found.ttl_millis, 5);
    assert!(read("{}").is_none());
    assert!(read(r#"{"capabilities":[]}"#).is_none());
}

/// SECURITY 6: past its deadline a call is cancelled upstream; over HTTP its stream is closed, which says it all.
#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_is_cancelled_in_the_manner_of_its_transport() {
    let soon = || Call {
        deadline: Instant::now() + Duration::from_secs(1),
        ..a_tool_call()
    };
    let (transport, peer) = over_a_pipe(|sent| match sent.method.as_str() {
        "tools/call" => Play::Hang,
        _ => Play::Status(202),
    });
    let reply = peer.call(soon(), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Timeout(Deadline::Call))));
    transport.until_count("notifications/cancelled", 1).await;

    let (transport, peer) = over_http(|_| Play::Hang);
    let reply = peer.call(soon(), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Timeout(Deadline::Call))));
    assert_eq!(transport.dropped.load(Ordering::SeqCst), 1);
    assert_eq!(transport.sent().len(), 1);
}
