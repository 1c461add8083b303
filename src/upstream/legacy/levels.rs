//! Tests: log lines of servers of the handshake era: who asks for them, and whom they reach (PROTOCOL D0.4, D1).

use std::time::Duration;

use futures_util::StreamExt;

use super::{tests::on_pipes, *};
use crate::{
    call::{Caller, Event, LogLevel, Outcome, Step},
    upstream::{
        asking::Offer,
        scripted::{Play, Scripted, a_caller, a_route, a_tool_call, an_address, note, result},
        spec::UpstreamSpec,
    },
};

const LOUD: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}}}"#;

fn wanting(key: &str, level: Option<LogLevel>) -> Call {
    Call {
        caller: Arc::new(Caller {
            log_level: level,
            ..a_caller(key)
        }),
        ..a_tool_call()
    }
}

/// A peer over HTTP whose sessions have `logging` or not, and take a level so.
async fn logging(
    spec: &UpstreamSpec,
    greeting: &'static str,
    levels: Play,
) -> (Arc<Scripted>, Legacy) {
    let transport = Scripted::new(move |sent| match sent.method.as_str() {
        "logging/setLevel" => levels.clone(),
        "initialize" => Play::Session("s", greeting.into()),
        "notifications/initialized" => Play::Status(202),
        _ => result("{}"),
    });
    let wire = Wire::new(Arc::<Scripted>::clone(&transport), true);
    let terms = crate::upstream::scripted::terms(spec);
    let deadline = Instant::now() + Duration::from_secs(5);
    let newest = Proposal {
        service: true,
        of_one: false,
        revision: crate::protocol::Revision::LATEST_LEGACY,
        exact: false,
    };
    let first = Session::open(&wire, newest, Offer::NONE, &terms, deadline)
        .await
        .unwrap();
    let opener = Opener::Shared(wire);
    let peer = Legacy::new(first, opener, newest, spec.isolation, &terms);
    (transport, peer)
}

fn levels(transport: &Scripted) -> Vec<String> {
    transport
        .sent_of("logging/setLevel")
        .into_iter()
        .map(|sent| sent.params)
        .collect()
}

#[tokio::test]
async fn a_session_is_set_to_the_lowest_level_that_its_calls_want_and_only_when_it_falls() {
    let (transport, peer) = logging(&an_address(), LOUD, result("{}")).await;
    for level in [
        None,
        Some(LogLevel::Error),
        Some(LogLevel::Warning),
        Some(LogLevel::Emergency),
        Some(LogLevel::Warning),
    ] {
        peer.call(wanting("k", level), a_route("t")).await.unwrap();
    }
    assert_eq!(
        levels(&transport),
        [r#"{"level":"error"}"#, r#"{"level":"warning"}"#]
    );
    let sent = transport.sent();
    let position = |method: &str| sent.iter().position(|sent| sent.method == method);
    assert!(position("tools/call") < position("logging/setLevel"));
}

#[tokio::test]
async fn a_server_without_logging_and_a_call_without_a_level_ask_for_nothing() {
    let quiet = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let (transport, peer) = logging(&an_address(), quiet, result("{}")).await;
    let wants = wanting("k", Some(LogLevel::Debug));
    peer.call(wants.clone(), a_route("t")).await.unwrap();
    assert!(levels(&transport).is_empty());
    let (transport, peer) = logging(&an_address(), LOUD, result("{}")).await;
    peer.call(wanting("k", None), a_route("t")).await.unwrap();
    assert!(levels(&transport).is_empty());

    // On a pipe that all share, nobody could say whose a line is.
    let (processes, peer) = on_pipes(Isolation::Shared, |_, _| result("{}")).await;
    peer.call(wants, a_route("t")).await.unwrap();
    assert!(levels(&processes.made()[0]).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_over_its_level_delays_a_call_by_two_seconds_and_once() {
    let (_, peer) = logging(&an_address(), LOUD, Play::Hang).await;
    let wants = wanting("k", Some(LogLevel::Debug));
    let began = Instant::now();
    for _ in 0..2 {
        peer.call(wants.clone(), a_route("t")).await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(2));
    }
}

#[tokio::test(start_paused = true)]
async fn on_a_pipe_of_its_own_a_line_reaches_the_only_call_in_flight_and_nobody_when_there_are_two()
{
    let (processes, peer) = on_pipes(Isolation::Session, |_, sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        _ => result("{}"),
    })
    .await;
    let wants = wanting("k", Some(LogLevel::Info));
    let mut lines = peer.call(wants.clone(), a_route("t"));
    while processes.made().len() < 2 || processes.made()[1].sent_of("tools/call").is_empty() {
        assert!(futures_util::poll!(lines.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    let pipe = processes.made().remove(1);
    let say = |level: &str, data: u32| {
        let params = format!(r#"{{"level":"{level}","data":{data}}}"#);
        pipe.say(&note("notifications/message", &params));
    };
    say("info", 1);
    say("debug", 2);
    let Ok(Reply::Stream(mut stream)) = lines.await else {
        panic!()
    };
    let Some(Step::Event(Event::Log(LogLevel::Info, first))) = stream.next().await else {
        panic!()
    };
    assert!(first.as_str().contains(r#""data":1"#));
    let mut other = peer.call(wanting("k", None), a_route("t"));
    while pipe.sent_of("tools/call").len() < 2 {
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    let before = peer
        .terms
        .dropped
        .load(std::sync::atomic::Ordering::Relaxed);
    say("error", 3);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let after = peer
        .terms
        .dropped
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(after, before + 1);
    for nth in 0..2 {
        pipe.tell(nth, r#"{"jsonrpc":"2.0","id":$id,"result":{}}"#);
    }
    let last = stream.next().await;
    assert!(
        matches!(last, Some(Step::Outcome(Outcome::Complete(_)))),
        "{last:?}"
    );
    other.await.unwrap();
}
