//! Tests: what operators see of what went wrong: with the upstream, and with calls while it is there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep, timeout};

use super::tests::{Kept, called, healthy, serving, started, telling};
use crate::{
    call::{Call, Grantee, Outcome, Reply, Step},
    catalog::Contribution,
    protocol::UpstreamId,
    upstream::{
        Past, Sink, State, Upstream, UpstreamError,
        scripted::{Play, a_pipe, a_route, a_tool_call, an_address, note, terms},
        words,
    },
};

fn last(upstream: &Upstream) -> Option<Past> {
    let status = upstream.status();
    assert_eq!(status.state, State::Ready);
    status.error
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_is_what_went_wrong_last_and_an_error_of_the_server_is_an_answer() {
    let plays = [
        Play::Error(200, -32603, ""),
        Play::Status(500),
        Play::Fail(UpstreamError::answered("reset")),
        Play::Error(200, -32602, ""),
    ];
    let played = std::sync::Mutex::new(plays.into_iter());
    let played = Arc::new(played);
    let processes = serving(move |number, sent| match sent.method.as_str() {
        "tools/call" => played.lock().unwrap().next().unwrap(),
        _ => healthy(number, sent),
    });
    let (_sink, upstream, _tasks) = started(&an_address(), &processes);
    for failed in [None, Some("HTTP 500"), Some("reset"), Some("reset")] {
        let before = Instant::now();
        drop(called(&upstream).await);
        let last = last(&upstream);
        match (failed, last) {
            (None, None) => {}
            (Some(why), Some(last)) => {
                assert!(last.words.contains(why), "{last:?}");
                assert!(last.at <= before);
            }
            other => panic!("{other:?}"),
        }
        sleep(Duration::from_secs(30)).await;
    }
    // It is told with its time, which is not that of the answers since.
    let last = last(&upstream).unwrap();
    assert_eq!(last.at.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_leaves_its_cause_though_its_caller_is_told_none() {
    for spec in [a_pipe(), an_address()] {
        let processes = serving(|number, sent| match sent.method.as_str() {
            "tools/call" => {
                let progress = note(
                    "notifications/progress",
                    r#"{"progressToken":$id,"progress":1}"#,
                );
                Play::Stream(vec![(0, progress)], false)
            }
            _ => healthy(number, sent),
        });
        let (_sink, upstream, _tasks) = started(&spec, &processes);
        let call = Call {
            wants_progress: true,
            ..a_tool_call()
        };
        let Ok(Reply::Stream(steps)) = upstream.call(call, a_route("t")).await else {
            panic!()
        };
        let steps: Vec<_> = steps.collect().await;
        assert!(matches!(
            steps[..],
            [Step::Event(_), Step::Outcome(Outcome::Lost(_))]
        ));
        let words = last(&upstream).unwrap().words;
        assert!(words.contains("ended before its answer"), "{words}");
    }
}

/// Panics where it is told of lists, as often as that is said.
#[derive(Default)]
struct Breaks {
    kept: Kept,
    left: AtomicUsize,
}

impl Sink for Breaks {
    fn publish(&self, id: &UpstreamId, contribution: Contribution) {
        let left = |left: usize| left.checked_sub(1);
        let broken = (self.left).fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        assert!(broken.is_err(), "a fault of ours");
        self.kept.publish(id, contribution);
    }

    fn confirm(&self, _: &UpstreamId, _: Instant) {}

    fn publish_to(&self, _: &Grantee, _: &UpstreamId, _: Option<Contribution>) {}
}

#[tokio::test(start_paused = true)]
async fn an_upstream_survives_a_panic_of_the_work_for_it_and_attempts_are_spaced_then_too() {
    let sink = Arc::new(Breaks::default());
    sink.left.store(3, Ordering::SeqCst);
    let (spec, processes) = (an_address(), serving(healthy));
    let told: Arc<dyn Sink> = Arc::<Breaks>::clone(&sink);
    let (upstream, _tasks) = telling(told, &spec, terms(&spec), &processes);
    let began = Instant::now();
    let settled = timeout(Duration::from_secs(60), upstream.settled());
    settled.await.expect("what broke is noticed");
    let status = upstream.status();
    assert_eq!(status.state, State::Away);
    let words = status.error.unwrap().words;
    assert!(words.contains("the gateway's own work"), "{words}");
    // Marked as away, and then as it is.
    sink.kept.reach(2).await;
    assert!(began.elapsed() >= Duration::from_secs(3));
    assert!(!sink.kept.last().away);
    assert!(called(&upstream).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_wants_something_does_not_wait_until_a_panic_is_mended() {
    let sink = Arc::new(Breaks::default());
    // So many that the wait is long.
    sink.left.store(20, Ordering::SeqCst);
    let (spec, processes) = (an_address(), serving(healthy));
    let told: Arc<dyn Sink> = Arc::<Breaks>::clone(&sink);
    let (upstream, _tasks) = telling(told, &spec, terms(&spec), &processes);
    sleep(Duration::from_secs(300)).await;
    assert_eq!(upstream.status().state, State::Away);
    upstream.disable();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(upstream.status().state, State::Disabled);
    // Though what it is amidst still breaks.
    sleep(Duration::from_secs(20)).await;
    assert_eq!(upstream.status().state, State::Disabled);
    sink.left.store(0, Ordering::SeqCst);
    upstream.enable();
    let enabled = Instant::now();
    upstream.heeded().await;
    assert!(called(&upstream).await.is_ok());
    assert!(enabled.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_wanted_is_no_error_of_what_is_used_again() {
    let processes = serving(healthy);
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    assert!(called(&upstream).await.is_ok());
    upstream.restart();
    sink.reach(3).await;
    assert!(called(&upstream).await.is_ok());
    assert_eq!(last(&upstream), None);
    upstream.disable();
    upstream.heeded().await;
    // Nothing was sent, and so nothing can have taken effect.
    let refused = called(&upstream).await.unwrap_err();
    let told = words::describe(upstream.id(), &refused);
    assert!(told.ends_with("the call was not sent"), "{told}");
    let disabled = upstream.status().error.unwrap().words;
    assert!(disabled.contains("disabled by an operator"), "{disabled}");
    upstream.enable();
    upstream.heeded().await;
    assert!(called(&upstream).await.is_ok());
    assert_eq!(last(&upstream), None);
}
