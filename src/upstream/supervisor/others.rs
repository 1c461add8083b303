//! Tests: what goes wrong for one caller, and what it means to all the others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture, poll};

use super::{
    tests::{Kept, healthy, serving, started, tools},
    *,
};
use crate::{
    call::{Call, Reply},
    logged::Logged,
    tasks::Tasks,
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
pub(super) fn by(
    upstream: &Arc<Upstream>,
    key: &str,
) -> BoxFuture<'static, Result<Reply, UpstreamError>> {
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

pub(super) fn of_the_older_era(sent: &Sent) -> Play {
    match sent.method.as_str() {
        "initialize" => result(greeting("2025-11-25")),
        "notifications/initialized" => Play::Status(202),
        "tools/list" => tools(&["a"], 0),
        "server/discover" => Play::Error(404, -32601, ""),
        _ => result("{}"),
    }
}

pub(super) fn closed(processes: &Processes) -> Vec<usize> {
    let made = processes.made();
    let closed = made.iter().map(|made| made.closed.load(Ordering::SeqCst));
    closed.collect()
}

/// Polls a call until something has come about that it does not end with.
async fn under_way(
    call: &mut BoxFuture<'_, Result<Reply, UpstreamError>>,
    come_about: impl Fn() -> bool,
) {
    while !come_about() {
        assert!(poll!(call.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
}

/// Ten calls of somebody's are refused, and the upstream is there as before: how often each of its transports was closed.
pub(super) async fn refused_ten_times_and_unharmed(processes: &Arc<Processes>) -> Vec<usize> {
    let (sink, upstream, _tasks) = started(&an_address(), processes);
    upstream.settled().await;
    for _ in 0..10 {
        assert!(by(&upstream, "ana").await.is_err());
    }
    sleep(Duration::from_secs(5)).await;
    let status = upstream.status();
    assert_eq!((status.state, status.failures), (State::Ready, 0));
    assert_eq!(sink.count(), 1);
    closed(processes)
}

/// Nothing was told of the upstream but that it came, and its first two processes go on.
fn assert_unharmed(sink: &Kept, upstream: &Upstream, processes: &Processes) {
    assert_eq!((upstream.status().state, sink.count()), (State::Ready, 1));
    assert_eq!(closed(processes)[..2], [0, 0]);
}

/// SECURITY OPS-3, REL-2
#[tokio::test(start_paused = true)]
async fn ops_3_whose_own_process_dies_again_and_again_takes_nobody_elses_along() {
    let logged = Logged::new();
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
    under_way(&mut bens, || processes.made().len() >= 2).await;
    for _ in 0..50 {
        assert!(by(&upstream, "ana").await.is_err());
        sleep(Duration::from_secs(1)).await;
    }
    assert!(processes.made().len() >= 2 + 5, "five of hers died");
    assert!(logged.text().contains("transport is lost upstream=u"));
    assert!(poll!(bens.as_mut()).is_pending());
    assert_unharmed(&sink, &upstream, &processes);
}

/// A server of which the first process, once it is told to, answers nothing that `hangs` means.
fn hanging(
    spec: &UpstreamSpec,
    hangs: fn(&str) -> bool,
) -> (
    Arc<Processes>,
    Arc<Kept>,
    Arc<Upstream>,
    Tasks,
    Arc<AtomicBool>,
) {
    let hung = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&hung);
    let processes = serving(move |number, sent| match number {
        0 if now.load(Ordering::SeqCst) && hangs(&sent.method) => Play::Hang,
        _ => healthy(number, sent),
    });
    let (sink, upstream, tasks) = started(spec, &processes);
    (processes, sink, upstream, tasks, hung)
}

async fn in_ten_seconds(upstream: &Arc<Upstream>) -> Result<Reply, UpstreamError> {
    let call = Call {
        deadline: Instant::now() + Duration::from_secs(10),
        ..a_tool_call()
    };
    upstream.call(call, a_route("t")).await
}

/// SECURITY REL-2
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_any_more_is_begun_anew() {
    for spec in [a_pipe(), an_address()] {
        let (processes, _sink, upstream, _tasks, hung) = hanging(&spec, |_| true);
        upstream.settled().await;
        hung.store(true, Ordering::SeqCst);
        for _ in 0..5 {
            let reply = in_ten_seconds(&upstream).await;
            assert!(matches!(reply, Err(UpstreamError::Timeout(_))), "{reply:?}");
        }
        assert_eq!(processes.made().len(), 1);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(processes.made().len(), 2);
        assert_eq!(closed(&processes), [1, 0]);
        let status = upstream.status();
        assert_eq!((status.state, status.restarts), (State::Ready, 1));
        let error = status.error.unwrap().words;
        assert!(error.contains("answers nothing any more"), "{error}");
        assert!(in_ten_seconds(&upstream).await.is_ok());
    }
}

/// SECURITY REL-2
#[tokio::test(start_paused = true)]
async fn a_server_that_nobody_calls_and_that_answers_nothing_any_more_is_begun_anew() {
    let (processes, _sink, upstream, _tasks, hung) = hanging(&a_pipe(), |_| true);
    upstream.settled().await;
    hung.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(900)).await;
    assert_eq!(closed(&processes), [1, 0]);
    assert_eq!(upstream.status().state, State::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_long_over_calls_or_over_its_lists_alone_is_left_alone() {
    let (processes, _sink, upstream, _tasks, hung) =
        hanging(&a_pipe(), |method| method == "tools/call");
    upstream.settled().await;
    hung.store(true, Ordering::SeqCst);
    for _ in 0..20 {
        assert!(in_ten_seconds(&upstream).await.is_err());
    }
    sleep(Duration::from_secs(900)).await;
    assert_eq!(closed(&processes), [0]);

    let (processes, _sink, upstream, _tasks, hung) =
        hanging(&a_pipe(), |method| method.ends_with("/list"));
    upstream.settled().await;
    hung.store(true, Ordering::SeqCst);
    for _ in 0..200 {
        assert!(in_ten_seconds(&upstream).await.is_ok());
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(closed(&processes), [0]);
}

/// What it has to read first may take it minutes: begun anew it would never come to an end of that.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_slow_to_answer_its_first_lists_is_waited_for() {
    let (processes, sink, upstream, _tasks, hung) =
        hanging(&a_pipe(), |method| method.ends_with("/list"));
    hung.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(300)).await;
    assert_eq!(closed(&processes), [0]);
    hung.store(false, Ordering::SeqCst);
    sleep(Duration::from_secs(400)).await;
    assert_eq!(closed(&processes), [0]);
    assert_eq!(upstream.status().state, State::Ready);
    assert!(sink.count() >= 2, "its lists are there: {}", sink.count());
}

const HOUR: Duration = Duration::from_secs(3_600);

/// What takes its time may be what it is asked for.
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nothing_while_a_call_may_be_answered_is_left_alone() {
    let mut spec = a_pipe();
    (spec.timeouts.call, spec.timeouts.silence) = (HOUR, HOUR);
    let (processes, _sink, upstream, _tasks, hung) = hanging(&spec, |_| true);
    upstream.settled().await;
    hung.store(true, Ordering::SeqCst);
    let mut call = by(&upstream, "ana");
    let called = || processes.made()[0].sent_of("tools/call").len();
    under_way(&mut call, || called() == 1).await;
    let reply = timeout(Duration::from_secs(900), &mut call).await;
    assert!(reply.is_err(), "{reply:?}");
    let lists = processes.made()[0].sent_of("tools/list").len();
    assert!(lists > 3, "{lists}");
    assert_eq!(closed(&processes), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_was_reached_whatever_it_answers() {
    for status in [408, 425, 429, 500, 501] {
        let processes = serving(move |number, sent| match sent.method.as_str() {
            "tools/call" => Play::Status(status),
            _ => healthy(number, sent),
        });
        assert_eq!(refused_ten_times_and_unharmed(&processes).await, [0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_answered_with_a_status_keeps_its_value_and_ends_nobodys_call() {
    for status in [429, 500] {
        let busy = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::clone(&busy);
        let processes = serving(move |number, sent| match sent.method.as_str() {
            "tools/call" => Play::Hang,
            "tools/list" if is_busy.load(Ordering::SeqCst) => Play::Status(status),
            _ => healthy(number, sent),
        });
        let spec = UpstreamSpec {
            poll: Duration::from_secs(5),
            ..an_address()
        };
        let (sink, upstream, _tasks) = started(&spec, &processes);
        upstream.settled().await;
        let mut call = by(&upstream, "ana");
        assert!(poll!(call.as_mut()).is_pending());
        busy.store(true, Ordering::SeqCst);
        let before = processes.made()[0].sent_of("tools/list").len();
        sleep(Duration::from_secs(20)).await;
        assert!(processes.made()[0].sent_of("tools/list").len() > before);
        assert!(poll!(call.as_mut()).is_pending());
        assert_eq!((upstream.status().state, sink.count()), (State::Ready, 1));
        assert_eq!(closed(&processes), [0]);
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
    assert_eq!(refused_ten_times_and_unharmed(&processes).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_a_process_of_their_own_takes_nobody_elses_along() {
    let processes = serving(|number, sent| match (number, sent.method.as_str()) {
        (1, "tools/call") => Play::Hang,
        (2, "initialize") => Play::Error(200, -32602, ""),
        _ => of_the_older_era(sent),
    });
    let (sink, upstream, _tasks) = started(&each_their_own(), &processes);
    upstream.settled().await;
    let mut anas = by(&upstream, "ana");
    under_way(&mut anas, || processes.made().len() >= 2).await;
    assert!(by(&upstream, "ben").await.is_err());
    sleep(Duration::from_secs(30)).await;
    assert!(poll!(anas.as_mut()).is_pending());
    assert_unharmed(&sink, &upstream, &processes);
}

/// PRODUCT 5, PROTOCOL D5, SECURITY CAT-6: as where it began anew, and there is no stream of its own on which to miss it.
#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_session_any_more_is_asked_for_its_lists_again_and_once_for_all() {
    let starts = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&starts);
    let processes = serving(move |_, sent| {
        let all = [("old", "a"), ("new", "b"), ("newest", "c")];
        let (session, tool) = all[now.load(Ordering::SeqCst)];
        match sent.method.as_str() {
            "initialize" => Play::Session(session, greeting("2025-11-25")),
            "server/discover" | "notifications/initialized" => of_the_older_era(sent),
            _ if sent.header("mcp-session-id") != Some(session) => Play::Error(404, -32001, ""),
            "tools/list" => tools(&[tool], 0),
            _ => result("{}"),
        }
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let all = ["ana", "ben", "eve", "kim"];
    for key in all {
        assert!(by(&upstream, key).await.is_ok());
    }
    starts.store(1, Ordering::SeqCst);
    for key in all {
        assert!(by(&upstream, key).await.is_err(), "{key} had a session");
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(sink.count(), 2);
    assert_eq!(sink.last().tools.items[0].as_str(), r#"{"name":"b"}"#);
    let lists = processes.made()[0].sent_of("tools/list").len();
    assert!((3..=4).contains(&lists), "read, refused, read: {lists}");
    // What begins anew again and again is not asked each time, and the last time it is.
    assert!(by(&upstream, "ana").await.is_ok());
    starts.store(2, Ordering::SeqCst);
    assert!(by(&upstream, "ana").await.is_err());
    sleep(Duration::from_secs(30)).await;
    assert_eq!(sink.count(), 2);
    sleep(Duration::from_secs(35)).await;
    assert_eq!(sink.last().tools.items[0].as_str(), r#"{"name":"c"}"#);
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_a_session_takes_nobody_elses_along() {
    let opened = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match (number, sent.method.as_str()) {
        (0, "initialize") => match opened.fetch_add(1, Ordering::SeqCst) {
            0 => Play::Session("s0", greeting("2025-11-25")),
            1 => Play::Session("s1", greeting("2025-11-25")),
            _ => Play::Error(400, -32602, ""),
        },
        (_, "tools/call") => Play::Hang,
        _ => of_the_older_era(sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let mut anas = by(&upstream, "ana");
    let called = || processes.made()[0].sent_of("tools/call").len();
    under_way(&mut anas, || called() == 1).await;
    assert!(by(&upstream, "ben").await.is_err());
    sleep(Duration::from_secs(10)).await;
    assert!(poll!(anas.as_mut()).is_pending());
    assert_eq!((sink.count(), upstream.status().state), (1, State::Ready));
    assert_eq!(closed(&processes)[0], 0);
    assert!(processes.made()[0].ended.lock().unwrap().is_empty());
}

/// SECURITY REL-2: it was restarted, and is there.
#[tokio::test(start_paused = true)]
async fn sessions_that_a_server_forgot_are_no_connections_that_failed() {
    let known_from = Arc::new(AtomicUsize::new(0));
    let opened = Arc::new(AtomicUsize::new(0));
    let (known, sessions) = (Arc::clone(&known_from), Arc::clone(&opened));
    let processes = serving(move |_, sent| {
        let session = sent.header("mcp-session-id").map(|id| id.parse().unwrap());
        match sent.method.as_str() {
            "initialize" => {
                let number = sessions.fetch_add(1, Ordering::SeqCst).to_string();
                Play::Session(number.leak(), greeting("2025-11-25"))
            }
            "tools/call" if session < Some(known.load(Ordering::SeqCst)) => Play::Status(404),
            "tools/call" if session == Some(7) => Play::Hang,
            _ => of_the_older_era(sent),
        }
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let keys = ["a", "b", "c", "d", "e", "f"];
    for key in keys {
        assert!(by(&upstream, key).await.is_ok());
    }
    known_from.store(opened.load(Ordering::SeqCst), Ordering::SeqCst);
    let mut bens = by(&upstream, "ben");
    let called = || processes.made()[0].sent_of("tools/call").len();
    under_way(&mut bens, || called() == 7).await;
    for key in keys {
        let reply = by(&upstream, key).await;
        assert!(matches!(reply, Err(UpstreamError::Unavailable { .. })));
    }
    assert_eq!(upstream.status().failures, 0);
    sleep(Duration::from_secs(5)).await;
    assert!(poll!(bens.as_mut()).is_pending());
    assert_eq!((sink.count(), closed(&processes)), (1, vec![0]));
    for key in keys {
        assert!(by(&upstream, key).await.is_ok());
    }
}

/// REL-5: an error that means something else in another era ends its call and no other.
#[tokio::test(start_paused = true)]
async fn a_process_that_gives_a_code_of_the_other_era_goes_on() {
    let calls = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |_, sent| match sent.method.as_str() {
        "tools/call" => match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Play::Hang,
            1 => Play::Error(200, -32021, ""),
            _ => Play::Error(200, -32022, ""),
        },
        _ => of_the_older_era(sent),
    });
    let spec = UpstreamSpec {
        isolation: Isolation::Shared,
        ..each_their_own()
    };
    let (sink, upstream, _tasks) = started(&spec, &processes);
    upstream.settled().await;
    let mut bens = by(&upstream, "ben");
    let called = || processes.made()[0].sent_of("tools/call").len();
    under_way(&mut bens, || called() == 1).await;
    for _ in 0..2 {
        assert!(by(&upstream, "ana").await.is_err());
        sleep(Duration::from_secs(10)).await;
    }
    assert!(poll!(bens.as_mut()).is_pending());
    assert_eq!((sink.count(), processes.made().len()), (1, 1));
    assert_eq!(
        (upstream.status().restarts, closed(&processes)),
        (0, vec![0])
    );
}
