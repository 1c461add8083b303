//! Tests: a server that comes to say something else of itself while it is there, in either era (PROTOCOL C4, D4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::poll;

use super::{
    others::{by, closed, of_the_older_era},
    tests::{healthy, serving, started, tools},
    *,
};
use crate::upstream::{
    scripted::{Play, Processes, a_pipe, an_address, discovery, greeting, result, saying},
    spec::UpstreamSpec,
};

const NEW: &str = "new";

/// How often all transports together were asked this.
fn asked(processes: &Processes, method: &str) -> usize {
    let made = processes.made();
    made.iter().map(|made| made.sent_of(method).len()).sum()
}

/// A newer server that has come to offer prompts, and tells of their changes.
fn discovered(instructions: &str) -> String {
    let has = r#"{"tools":{},"prompts":{"listChanged":true}}"#;
    saying(&discovery(r#"["2026-07-28"]"#), has, instructions)
}

/// An older one, which tells of nothing.
fn greeted(instructions: &str) -> String {
    let has = r#"{"tools":{},"prompts":{}}"#;
    saying(&greeting("2025-11-25"), has, instructions)
}

fn prompts() -> Play {
    let prompts = r#""prompts":[{"name":"p"}],"ttlMs":0,"cacheScope":"public""#;
    result(format!(r#"{{"resultType":"complete",{prompts}}}"#))
}

fn polled_soon(spec: UpstreamSpec) -> UpstreamSpec {
    UpstreamSpec {
        poll: Duration::from_secs(5),
        ..spec
    }
}

/// As where it is redeployed without an outage.
#[tokio::test(start_paused = true)]
async fn a_server_that_comes_to_offer_more_is_asked_for_that_too_and_no_call_ends() {
    for spec in [a_pipe(), an_address()] {
        let redeployed = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&redeployed);
        let processes = serving(move |number, sent| match sent.method.as_str() {
            "server/discover" if now.load(Ordering::SeqCst) => result(discovered(NEW)),
            "prompts/list" => prompts(),
            "tools/call" | "subscriptions/listen" => Play::Hang,
            _ => healthy(number, sent),
        });
        let (sink, upstream, _tasks) = started(&polled_soon(spec), &processes);
        upstream.settled().await;
        let mut anas = by(&upstream, "ana");
        assert!(poll!(anas.as_mut()).is_pending());
        sleep(Duration::from_secs(10)).await;
        assert_eq!(sink.count(), 1, "the same is no news");
        let quiet = ["prompts/list", "subscriptions/listen"].map(|it| asked(&processes, it));
        assert_eq!(quiet, [0, 0]);
        redeployed.store(true, Ordering::SeqCst);
        sleep(Duration::from_secs(10)).await;
        let told = sink.last();
        assert_eq!(told.prompts.items[0].as_str(), r#"{"name":"p"}"#);
        assert_eq!(told.card.unwrap().instructions.as_deref(), Some(NEW));
        let card = upstream.card().unwrap();
        assert_eq!(card.instructions.as_deref(), Some(NEW));
        assert!(asked(&processes, "subscriptions/listen") > 0);
        assert!(poll!(anas.as_mut()).is_pending());
        assert_eq!(
            (upstream.status().restarts, closed(&processes)),
            (0, vec![0])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_again_when_its_time_is_over_and_what_it_does_not_answer_changes_nothing()
{
    let looks = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "server/discover" => match looks.fetch_add(1, Ordering::SeqCst) {
            0 => result(discovered(NEW).replace(r#""ttlMs":0"#, r#""ttlMs":600000"#)),
            1 => Play::Status(503),
            // As if it were for ever.
            _ => result(discovered(NEW).replace(r#""ttlMs":0"#, r#""ttlMs":9000000000000000"#)),
        },
        "prompts/list" => prompts(),
        "subscriptions/listen" => Play::Hang,
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&polled_soon(an_address()), &processes);
    upstream.settled().await;
    let discovers = || asked(&processes, "server/discover");
    sleep(Duration::from_secs(470)).await;
    assert_eq!(discovers(), 1);
    while discovers() < 2 {
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(2)).await;
    assert_eq!(discovers(), 2, "spaced as the poll is");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(discovers(), 3);
    sleep(Duration::from_secs(9 * 3600)).await;
    assert_eq!(discovers(), 3);
    sleep(Duration::from_secs(6 * 3600)).await;
    assert_eq!(discovers(), 4);
    assert_eq!((sink.count(), closed(&processes)), (1, vec![0]));
    assert_eq!(upstream.status().restarts, 0);
}

/// A clock among its instructions, say.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_something_else_each_time_is_asked_no_more_often_and_no_call_ends() {
    let looks = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "server/discover" => {
            let look = looks.fetch_add(1, Ordering::SeqCst);
            result(discovered(&look.to_string()))
        }
        "prompts/list" => prompts(),
        "tools/call" | "subscriptions/listen" => Play::Hang,
        _ => healthy(number, sent),
    });
    let mut spec = polled_soon(an_address());
    spec.timeouts.connect = Duration::from_secs(3600);
    (spec.timeouts.call, spec.timeouts.silence) = (spec.timeouts.connect, spec.timeouts.connect);
    let (sink, upstream, _tasks) = started(&spec, &processes);
    upstream.settled().await;
    let mut anas = by(&upstream, "ana");
    assert!(poll!(anas.as_mut()).is_pending());
    sleep(Duration::from_secs(300)).await;
    let looks = asked(&processes, "server/discover");
    assert!((50..=76).contains(&looks), "{looks}");
    let lists = asked(&processes, "tools/list");
    assert!(lists <= 2 * looks, "{lists}");
    assert!(sink.count() >= looks - 1, "the last is told");
    assert_eq!(asked(&processes, "subscriptions/listen"), 1);
    assert!(poll!(anas.as_mut()).is_pending());
    assert_eq!(
        (upstream.status().restarts, closed(&processes)),
        (0, vec![0])
    );
}

/// As where it began anew and has no stream on which to tell anything.
#[tokio::test(start_paused = true)]
async fn a_server_that_offers_more_with_a_new_session_is_asked_for_that_too_and_no_call_ends() {
    let again = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&again);
    let calls = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |_, sent| {
        let again = now.load(Ordering::SeqCst);
        let session = if again { NEW } else { "old" };
        match sent.method.as_str() {
            "initialize" if again => Play::Session(session, greeted(NEW)),
            "initialize" => Play::Session(session, greeting("2025-11-25")),
            "server/discover" | "notifications/initialized" => of_the_older_era(sent),
            // What it works at it brings to an end.
            "tools/call" if calls.fetch_add(1, Ordering::SeqCst) == 0 => Play::Hang,
            _ if sent.header("mcp-session-id") != Some(session) => Play::Error(404, -32001, ""),
            "tools/list" => tools(&["a"], 0),
            "prompts/list" => prompts(),
            _ => result("{}"),
        }
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let mut anas = by(&upstream, "ana");
    let called = || asked(&processes, "tools/call") == 1;
    while !called() {
        assert!(poll!(anas.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    assert!(by(&upstream, "ben").await.is_ok());
    again.store(true, Ordering::SeqCst);
    assert!(by(&upstream, "ben").await.is_err(), "his session is gone");
    sleep(Duration::from_secs(5)).await;
    let told = sink.last();
    assert_eq!(told.prompts.items[0].as_str(), r#"{"name":"p"}"#);
    assert_eq!(told.card.unwrap().instructions.as_deref(), Some(NEW));
    let card = upstream.card().unwrap();
    assert_eq!(card.instructions.as_deref(), Some(NEW));
    assert!(poll!(anas.as_mut()).is_pending());
    assert_eq!(
        (upstream.status().restarts, closed(&processes)),
        (0, vec![0])
    );
}

/// It forgets each session when it is asked on it a second time, and greets otherwise with the next.
#[tokio::test(start_paused = true)]
async fn a_server_that_greets_otherwise_each_time_is_read_once_a_minute_for_that_at_most() {
    let opened = Arc::new(AtomicUsize::new(0));
    let listed = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |_, sent| match sent.method.as_str() {
        "initialize" => {
            let number = opened.fetch_add(1, Ordering::SeqCst).to_string();
            let greeting = greeted(&number);
            listed.store(0, Ordering::SeqCst);
            Play::Session(number.leak(), greeting)
        }
        "tools/list" => match listed.fetch_add(1, Ordering::SeqCst) {
            0 => tools(&["a"], 0),
            _ => Play::Error(404, -32001, ""),
        },
        "prompts/list" => prompts(),
        _ => of_the_older_era(sent),
    });
    let (_sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    sleep(Duration::from_secs(1800)).await;
    let opened = asked(&processes, "initialize");
    assert!((6..=40).contains(&opened), "{opened}");
    assert_eq!(
        (upstream.status().restarts, closed(&processes)),
        (0, vec![0])
    );
}
