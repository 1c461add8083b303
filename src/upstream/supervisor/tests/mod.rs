//! The supervisor in paused time, through each way that an upstream can fail and come back.

mod refused;

use std::{
    sync::{Mutex, atomic::AtomicUsize},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{sync::Notify, time::Instant};

use super::*;
use crate::{
    call::{Grantee, Outcome, Reply},
    catalog::Contribution,
    protocol::{Revision, UpstreamId},
    tasks::Tasks,
    upstream::{
        Deadline, State, Upstream,
        scripted::{
            Play, Processes, Scripted, Sent, a_pipe, a_route, a_tool_call, an_address, discovery,
            greeting, result, terms,
        },
        spec::UpstreamSpec,
        terms::Terms,
    },
};

/// Keeps what was published.
#[derive(Default)]
pub(super) struct Kept {
    all: Mutex<Vec<(Instant, Contribution)>>,
    confirmed: Mutex<Vec<Instant>>,
    news: Notify,
}

impl Sink for Kept {
    fn publish(&self, id: &UpstreamId, contribution: Contribution) {
        assert_eq!(id.as_str(), "u");
        self.all
            .lock()
            .unwrap()
            .push((Instant::now(), contribution));
        self.news.notify_one();
    }

    fn confirm(&self, id: &UpstreamId, read_at: Instant) {
        assert_eq!(id.as_str(), "u");
        self.confirmed.lock().unwrap().push(read_at);
    }

    fn publish_to(&self, _: &Grantee, _: &UpstreamId, _: Option<Contribution>) {}
}

impl Kept {
    pub(super) fn count(&self) -> usize {
        self.all.lock().unwrap().len()
    }

    pub(super) fn last(&self) -> Contribution {
        self.all.lock().unwrap().last().unwrap().1.clone()
    }

    fn when(&self, number: usize) -> Instant {
        self.all.lock().unwrap()[number].0
    }

    /// Waits for the `number`th publication, from 1.
    pub(super) async fn reach(&self, number: usize) {
        while self.count() < number {
            self.news.notified().await;
        }
    }
}

pub(super) fn tools(names: &[&str], ttl_millis: u64) -> Play {
    let items: Vec<_> = names
        .iter()
        .map(|name| format!(r#"{{"name":"{name}"}}"#))
        .collect();
    result(format!(
        r#"{{"resultType":"complete","tools":[{}],"ttlMs":{ttl_millis},"cacheScope":"public"}}"#,
        items.join(",")
    ))
}

fn modern() -> Play {
    result(discovery(r#"["2026-07-28"]"#))
}

/// A modern server whose calls go as `script` says.
pub(super) fn serving(
    script: impl Fn(usize, &Sent) -> Play + Send + Sync + Clone + 'static,
) -> Arc<Processes> {
    Processes::new(move |number, _| {
        let script = script.clone();
        Scripted::new(move |sent| match sent.method.as_str() {
            "notifications/cancelled" => Play::Status(202),
            _ => script(number, sent),
        })
    })
}

pub(super) fn healthy(_: usize, sent: &Sent) -> Play {
    match sent.method.as_str() {
        "server/discover" => modern(),
        "tools/list" => tools(&["a", "b"], 0),
        _ => result(r#"{"content":[]}"#),
    }
}

pub(super) fn started(
    spec: &UpstreamSpec,
    processes: &Arc<Processes>,
) -> (Arc<Kept>, Arc<Upstream>, Tasks) {
    started_on(spec, terms(spec), processes)
}

pub(super) fn started_on(
    spec: &UpstreamSpec,
    terms: Arc<Terms>,
    processes: &Arc<Processes>,
) -> (Arc<Kept>, Arc<Upstream>, Tasks) {
    let sink = Arc::new(Kept::default());
    let told: Arc<dyn Sink> = Arc::<Kept>::clone(&sink);
    let (upstream, tasks) = telling(told, spec, terms, processes);
    (sink, upstream, tasks)
}

pub(super) fn telling(
    sink: Arc<dyn Sink>,
    spec: &UpstreamSpec,
    terms: Arc<Terms>,
    processes: &Arc<Processes>,
) -> (Arc<Upstream>, Tasks) {
    let tasks = Tasks::new();
    let connector: Arc<dyn Connector> = Arc::<Processes>::clone(processes);
    let upstream = Upstream::over(spec.clone(), terms, connector, sink, &tasks);
    (upstream, tasks)
}

pub(super) async fn called(upstream: &Arc<Upstream>) -> Result<Reply, UpstreamError> {
    upstream.call(a_tool_call(), a_route("t")).await
}

fn lists(processes: &Processes) -> usize {
    processes
        .made()
        .iter()
        .map(|made| made.sent_of("tools/list").len())
        .sum()
}

#[tokio::test(start_paused = true)]
async fn what_an_upstream_offers_is_published_and_it_can_be_called() {
    for spec in [a_pipe(), an_address()] {
        let processes = serving(healthy);
        let (sink, upstream, _tasks) = started(&spec, &processes);
        assert_eq!(upstream.status().state, State::Connecting);
        // The very first attempt is waited for.
        assert!(matches!(
            called(&upstream).await,
            Ok(Reply::Done(Outcome::Complete(_)))
        ));
        let status = upstream.status();
        assert_eq!(
            (status.state, status.revision),
            (State::Ready, Some(Revision::V2026_07_28))
        );
        let told = sink.last();
        assert!(!told.away && told.card.is_some());
        let items: Vec<_> = told
            .tools
            .items
            .iter()
            .map(|item| item.as_str().to_owned())
            .collect();
        assert_eq!(items, [r#"{"name":"a"}"#, r#"{"name":"b"}"#]);
        assert_eq!(sink.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_restarts_disables_and_enables_an_upstream() {
    for spec in [a_pipe(), an_address()] {
        let processes = serving(healthy);
        let (sink, upstream, _tasks) = started(&spec, &processes);
        assert!(called(&upstream).await.is_ok());
        let made = processes.made().len();
        upstream.restart();
        // It is marked as away, and then there again.
        sink.reach(3).await;
        assert!(called(&upstream).await.is_ok());
        assert!(processes.made().len() > made);
        assert!(upstream.disable() && !upstream.disable());
        sink.reach(5).await;
        assert!(sink.last().tools.items.is_empty() && sink.last().card.is_none());
        assert_eq!(upstream.status().state, State::Disabled);
        let made = processes.made().len();
        // Nothing brings it back but the operator.
        upstream.restart();
        sleep(Duration::from_secs(3_600)).await;
        let refused = called(&upstream).await;
        assert!(matches!(refused, Err(UpstreamError::Unavailable { .. })));
        assert_eq!((processes.made().len(), sink.count()), (made, 5));
        assert!(upstream.enable() && !upstream.enable());
        sink.reach(6).await;
        assert!(called(&upstream).await.is_ok());
        let counts = upstream.status().counts;
        assert_eq!((counts.calls, counts.failed), (4, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_down_at_start_fails_fast_and_is_added_when_it_comes() {
    let processes = serving(|number, sent| match number {
        0..=2 => Play::Fail(UpstreamError::unreached("refused")),
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let began = Instant::now();
    let Err(UpstreamError::Unavailable {
        cause,
        retry_at: Some(at),
        status: None,
        ..
    }) = called(&upstream).await
    else {
        panic!()
    };
    assert_eq!(cause, "refused");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(at > began);
    assert!(sink.last().away && sink.last().card.is_none());
    let status = upstream.status();
    assert_eq!(status.state, State::Away);
    assert!(status.error.unwrap().words.contains("refused"));
    sink.reach(2).await;
    assert!(!sink.last().away);
    assert!(called(&upstream).await.is_ok());
    assert_eq!(upstream.status().restarts, 3);
    let waited = sink.when(1) - sink.when(0);
    assert!(
        waited >= Duration::from_millis(5600) && waited <= Duration::from_millis(8400),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_in_a_call_answers_that_call_and_comes_back() {
    let processes = serving(|number, sent| match sent.method.as_str() {
        "tools/call" if number == 0 => Play::Die,
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&a_pipe(), &processes);
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Unavailable { .. })
    ));
    sink.reach(2).await;
    assert!(sink.last().away);
    assert_eq!(
        sink.last().tools.items.len(),
        2,
        "what is known stays listed"
    );
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Unavailable {
            retry_at: Some(_),
            ..
        })
    ));
    sink.reach(3).await;
    assert!(!sink.last().away);
    assert!(called(&upstream).await.is_ok());
    assert_eq!(processes.made().len(), 2);
    assert_eq!(upstream.status().restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hang_in_initialize_holds_nobody_past_the_connect_deadline() {
    let processes = serving(|_, _| Play::Hang);
    let (_sink, upstream, _tasks) = started(&a_pipe(), &processes);
    let began = Instant::now();
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Timeout(Deadline::Connect))
    ));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    upstream.settled().await;
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Unavailable { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn garbage_for_an_answer_concerns_that_call_only() {
    let calls = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "tools/call" => match calls.fetch_add(1, Ordering::SeqCst) {
            0 => Play::Fail(UpstreamError::Protocol("not JSON".into())),
            1 => Play::Raw(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.into()),
            _ => result("{}"),
        },
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    for _ in 0..2 {
        assert!(matches!(
            called(&upstream).await,
            Err(UpstreamError::Protocol(_))
        ));
    }
    assert!(called(&upstream).await.is_ok());
    assert_eq!(sink.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_notifications_ends_with_the_calls_deadline() {
    let processes = serving(|number, sent| match sent.method.as_str() {
        "tools/call" => {
            let note = crate::upstream::scripted::note("notifications/x", "{}");
            Play::Stream(
                (0..2000)
                    .map(|n| (u64::from(n % 20 == 0), note.clone()))
                    .collect(),
                true,
            )
        }
        _ => healthy(number, sent),
    });
    let (_sink, upstream, _tasks) = started(&a_pipe(), &processes);
    upstream.settled().await;
    let began = Instant::now();
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Timeout(_))
    ));
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    assert!(upstream.status().dropped_frames > 1000);
}

#[tokio::test(start_paused = true)]
async fn what_is_stale_is_marked_at_once_and_gone_after_stale_for() {
    let processes = serving(|number, sent| match number {
        0 => healthy(number, sent),
        _ => Play::Fail(UpstreamError::unreached("down")),
    });
    let (sink, upstream, _tasks) = started(&a_pipe(), &processes);
    upstream.settled().await;
    processes.made()[0].die();
    sink.reach(2).await;
    assert!(sink.last().away);
    assert_eq!(sink.last().tools.items.len(), 2);
    sink.reach(3).await;
    assert_eq!(sink.when(2) - sink.when(1), a_pipe().stale_for);
    assert!(sink.last().away && sink.last().card.is_none());
    assert_eq!(sink.last().tools.items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_keeps_its_last_good_value_and_is_asked_again_sooner() {
    let reads = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "tools/list" => match reads.fetch_add(1, Ordering::SeqCst) {
            1 => Play::Error(200, -32603, ""),
            2 => tools(&["c"], 0),
            _ => tools(&["a"], 0),
        },
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let began = Instant::now();
    sink.reach(2).await;
    assert_eq!(sink.last().tools.items[0].as_str(), r#"{"name":"c"}"#);
    let waited = began.elapsed().as_secs();
    assert!((240 + 5..=360 + 7).contains(&waited), "{waited}");
}

/// It is there, and would be taken for one that offers nothing.
#[tokio::test(start_paused = true)]
async fn why_a_list_cannot_be_read_is_told_until_it_can() {
    let reads = Arc::new(AtomicUsize::new(0));
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "tools/list" => match reads.fetch_add(1, Ordering::SeqCst) {
            0 => result("{}"),
            1 | 3 => result(r#"{"tools":{}}"#),
            _ => tools(&["a"], 0),
        },
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let status = upstream.status();
    assert_eq!(status.state, State::Ready);
    let told = status.unread.unwrap().words;
    assert!(
        told.starts_with("its `tools/list` could not be read: broke the protocol"),
        "{told}"
    );
    processes.made()[0].until_count("tools/list", 2).await;
    sleep(Duration::from_secs(1)).await;
    assert!(upstream.status().unread.is_some());
    sink.reach(2).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(upstream.status().unread, None);
    // The same where its last good value is kept.
    processes.made()[0].until_count("tools/list", 4).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(sink.last().tools.items.len(), 1);
    assert!(upstream.status().unread.is_some());
    upstream.disable();
    upstream.heeded().await;
    assert_eq!(upstream.status().unread, None);
}

/// SECURITY CAT-6
#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_does_not_take_the_place_of_one_that_had_one() {
    let whole = Arc::new(AtomicUsize::new(1));
    let is_whole = Arc::clone(&whole);
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "tools/list" if is_whole.load(Ordering::SeqCst) == 0 => {
            result(r#"{"tools":[{"name":"z"}],"nextCursor":"n"}"#)
        }
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    whole.store(0, Ordering::SeqCst);
    upstream.refresh();
    sleep(Duration::from_secs(1)).await;
    let told = upstream.status().unread.unwrap().words;
    assert!(told.ends_with("its pages come to no end"), "{told}");
    assert_eq!((sink.count(), sink.last().tools.items.len()), (1, 2));
    // Where nothing better is known what there is of it is offered.
    upstream.disable();
    upstream.heeded().await;
    upstream.enable();
    upstream.heeded().await;
    sleep(Duration::from_secs(1)).await;
    assert!(sink.last().tools.truncated && !sink.last().tools.items.is_empty());
    assert_eq!(upstream.status().unread, None);
}

#[tokio::test(start_paused = true)]
async fn lists_are_read_again_by_time_to_live_else_by_poll_and_equal_ones_are_not_told() {
    for (ttl, least, most) in [
        (0, 240, 360),
        (60_000, 48, 72),
        (1, 5, 6),
        (86_400_000, 240, 360),
    ] {
        let processes = serving(move |number, sent| match sent.method.as_str() {
            "tools/list" => tools(&["a"], ttl),
            _ => healthy(number, sent),
        });
        let (sink, upstream, _tasks) = started(&an_address(), &processes);
        upstream.settled().await;
        let began = Instant::now();
        processes.made()[0].until_count("tools/list", 2).await;
        let waited = began.elapsed().as_secs();
        assert!((least..=most).contains(&waited), "{ttl}: {waited}");
        processes.made()[0].until_count("tools/list", 3).await;
        assert_eq!(sink.count(), 1);
        assert!(
            sink.confirmed.lock().unwrap()[0] >= began,
            "what is the same may be kept for longer"
        );
    }
}

/// SECURITY CAT-6: storms of `list_changed`.
#[tokio::test(start_paused = true)]
async fn cat_6_the_first_asking_for_a_refresh_is_heard_at_once_and_then_one_per_two_seconds() {
    let processes = serving(healthy);
    let (_sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let began = Instant::now();
    for _ in 0..100 {
        upstream.refresh();
    }
    processes.made()[0].until_count("tools/list", 2).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    for _ in 0..100 {
        upstream.refresh();
    }
    processes.made()[0].until_count("tools/list", 3).await;
    assert_eq!(began.elapsed(), COALESCE);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lists(&processes), 3);
}

#[tokio::test(start_paused = true)]
async fn five_calls_that_cannot_connect_open_the_circuit_until_it_was_probed() {
    let down = Arc::new(AtomicUsize::new(0));
    let broken = Arc::clone(&down);
    let processes = serving(move |number, sent| match broken.load(Ordering::SeqCst) {
        0 => healthy(number, sent),
        _ => Play::Fail(UpstreamError::unreached("refused")),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    down.store(1, Ordering::SeqCst);
    for _ in 0..5 {
        assert!(called(&upstream).await.is_err());
    }
    sink.reach(2).await;
    assert!(sink.last().away);
    let before = processes
        .made()
        .iter()
        .map(|made| made.sent_of("tools/call").len())
        .sum::<usize>();
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Unavailable {
            retry_at: Some(_),
            ..
        })
    ));
    let after = processes
        .made()
        .iter()
        .map(|made| made.sent_of("tools/call").len())
        .sum::<usize>();
    assert_eq!((before, after), (5, 5));
    down.store(0, Ordering::SeqCst);
    sink.reach(3).await;
    assert!(!sink.last().away);
    assert!(called(&upstream).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_changes_its_era_is_probed_again_without_going_away() {
    let processes = serving(|number, sent| match (number, sent.method.as_str()) {
        (0, "tools/call") => Play::Error(400, -32022, r#"{"supported":["2025-11-25"]}"#),
        (0, _) => healthy(number, sent),
        (_, "initialize") => result(greeting("2025-11-25")),
        (_, "server/discover") => Play::Error(404, -32601, ""),
        _ => tools(&["new"], 0),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    assert!(matches!(
        called(&upstream).await,
        Err(UpstreamError::Unavailable { .. })
    ));
    sink.reach(2).await;
    assert!(!sink.last().away);
    assert_eq!(sink.last().tools.items[0].as_str(), r#"{"name":"new"}"#);
    assert_eq!(upstream.status().revision, Some(Revision::V2025_11_25));
    assert!(called(&upstream).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn restarts_are_at_most_five_in_five_minutes() {
    let processes = serving(|_, _| Play::Die);
    let (_sink, upstream, _tasks) = started(
        &UpstreamSpec {
            protocol: crate::upstream::spec::Pin::Legacy,
            ..a_pipe()
        },
        &processes,
    );
    upstream.settled().await;
    sleep(Duration::from_secs(300)).await;
    // Five quick ones, and then one a minute for what is left of the five minutes.
    let made = processes.made().len();
    assert!((8..=12).contains(&made), "{made}");
    let restarts = upstream.status().restarts;
    assert_eq!(usize::try_from(restarts).unwrap(), made - 1);
}

#[tokio::test(start_paused = true)]
async fn closing_or_dropping_ends_the_process_and_every_task() {
    let processes = serving(healthy);
    let (_sink, upstream, tasks) = started(&a_pipe(), &processes);
    upstream.settled().await;
    upstream.close().await;
    assert_eq!(processes.made()[0].closed.load(Ordering::SeqCst), 1);
    assert!(called(&upstream).await.is_err());
    tasks.finish().await;

    let processes = serving(healthy);
    let (_sink, upstream, tasks) = started(&a_pipe(), &processes);
    upstream.settled().await;
    drop(upstream);
    tasks.finish().await;
    assert_eq!(processes.made()[0].closed.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn one_upstream_that_hangs_delays_no_other() {
    let hanging = serving(|number, sent| match sent.method.as_str() {
        "tools/call" => Play::Hang,
        _ => healthy(number, sent),
    });
    let (_a, bad, _tasks) = started(&an_address(), &hanging);
    let (_b, good, _other) = started(&an_address(), &serving(healthy));
    bad.settled().await;
    good.settled().await;
    let mut held = Box::pin(join_all((0..200).map(|_| called(&bad))));
    assert!(futures_util::poll!(held.as_mut()).is_pending());
    let began = Instant::now();
    for _ in 0..100 {
        assert!(called(&good).await.is_ok());
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    let ends = held.await;
    let timed_out = ends
        .iter()
        .filter(|end| matches!(end, Err(UpstreamError::Timeout(_))))
        .count();
    let refused = ends
        .iter()
        .filter(|end| matches!(end, Err(UpstreamError::Overloaded)))
        .count();
    assert_eq!((timed_out, refused), (4, 196));
    assert_eq!(began.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn what_a_peer_fails_at_after_another_took_its_place_does_not_count_against_that() {
    let processes = serving(|number, sent| match (number, sent.method.as_str()) {
        (0, "tools/call") => {
            let late = Play::Fail(UpstreamError::unreached("late"));
            Play::After(30, Box::new(late))
        }
        _ => healthy(number, sent),
    });
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    let calls = join_all((0..5).map(|_| called(&upstream)));
    let replaced = async {
        sleep(Duration::from_secs(1)).await;
        upstream.restart();
        sink.reach(3).await;
    };
    let (calls, ()) = tokio::join!(calls, replaced);
    assert!(calls.iter().all(Result::is_err));
    assert_eq!(processes.made().len(), 2);
    let status = upstream.status();
    assert_eq!((status.state, status.failures), (State::Ready, 0));
}
