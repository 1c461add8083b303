//! What goes wrong for one caller, and what it means to all the others.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{FutureExt, future::BoxFuture, poll};

use super::{
    tests::{healthy, serving, started, tools},
    *,
};
use crate::{
    call::{Call, Reply},
    upstream::{
        State, Upstream,
        scripted::{
            Play, Processes, Sent, a_caller, a_pipe, a_route, a_tool_call, an_address, greeting,
            result,
        },
        spec::{Isolation, Pin, UpstreamSpec},
    },
};

/// A call by somebody whose sessions are theirs alone.
fn by<'a>(upstream: &'a Upstream, key: &str) -> BoxFuture<'a, Result<Reply, UpstreamError>> {
    let call = Call {
        caller: Arc::new(a_caller(key)),
        ..a_tool_call()
    };
    upstream.call(call, a_route("t")).boxed()
}

/// A program of the handshake era of which each session has a process of its own.
fn each_their_own() -> UpstreamSpec {
    UpstreamSpec {
        isolation: Isolation::Session,
        protocol: Pin::Legacy,
        ..a_pipe()
    }
}

fn of_the_older_era(sent: &Sent) -> Play {
    match sent.method.as_str() {
        "initialize" => result(greeting("2025-11-25")),
        "notifications/initialized" => Play::Status(202),
        "tools/list" => tools(&["a"], 0),
        "server/discover" => Play::Error(404, -32601, ""),
        _ => result("{}"),
    }
}

fn closed(processes: &Processes) -> Vec<usize> {
    let made = processes.made();
    let closed = made.iter().map(|made| made.closed.load(Ordering::SeqCst));
    closed.collect()
}

/// SECURITY OPS-3, REL-2
#[tokio::test(start_paused = true)]
async fn ops_3_whose_own_process_dies_again_and_again_takes_nobody_elses_along() {
    let processes = serving(|number, sent| match (number, sent.method.as_str()) {
        (1, "tools/call") => Play::Hang,
        (2.., "tools/call") => Play::Die,
        _ => of_the_older_era(sent),
    });
    let (sink, upstream, _tasks) = started(&each_their_own(), &processes);
    upstream.settled().await;
    let mut bens = by(&upstream, "ben");
    assert!(poll!(bens.as_mut()).is_pending());
    processes.made()[0].until_count("tools/list", 1).await;
    while processes.made().len() < 2 {
        assert!(poll!(bens.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    for _ in 0..50 {
        assert!(by(&upstream, "ana").await.is_err());
        sleep(Duration::from_secs(1)).await;
    }
    assert!(processes.made().len() >= 2 + 5, "five of hers died");
    assert!(poll!(bens.as_mut()).is_pending());
    assert_eq!(upstream.status().state, State::Ready);
    assert_eq!(
        (sink.count(), closed(&processes)[..2].to_vec()),
        (1, vec![0, 0])
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_was_reached_whatever_it_answers() {
    for status in [408, 425, 429, 500, 501] {
        let processes = serving(move |number, sent| match sent.method.as_str() {
            "tools/call" => Play::Status(status),
            _ => healthy(number, sent),
        });
        let (sink, upstream, _tasks) = started(&an_address(), &processes);
        upstream.settled().await;
        for _ in 0..10 {
            assert!(by(&upstream, "ana").await.is_err());
        }
        sleep(Duration::from_secs(5)).await;
        let status = upstream.status();
        assert_eq!((status.state, status.failures), (State::Ready, 0));
        assert_eq!((sink.count(), closed(&processes)), (1, vec![0]));
    }
}

/// Also where it is not asked again for a while.
#[tokio::test(start_paused = true)]
async fn a_session_that_one_caller_is_refused_is_no_connection_that_failed() {
    let opened = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |_, sent| match sent.method.as_str() {
        "initialize" if opened.fetch_add(1, Ordering::SeqCst) > 0 => Play::Status(429),
        _ => of_the_older_era(sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    for _ in 0..10 {
        assert!(by(&upstream, "ana").await.is_err());
    }
    sleep(Duration::from_secs(5)).await;
    let status = upstream.status();
    assert_eq!((status.state, status.failures), (State::Ready, 0));
    assert_eq!((sink.count(), closed(&processes)), (1, vec![0]));
}
