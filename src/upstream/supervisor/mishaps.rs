//! What operators see of what went wrong: with the upstream, and with calls while it is there.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep};

use super::tests::{called, healthy, serving, started};
use crate::{
    call::{Call, Outcome, Reply, Step},
    upstream::{
        Past, State, Upstream, UpstreamError,
        scripted::{Play, a_pipe, a_route, a_tool_call, an_address, note},
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
    let played = std::sync::Arc::new(played);
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
    assert!(called(&upstream).await.is_err());
    let disabled = upstream.status().error.unwrap().words;
    assert!(disabled.contains("disabled by an operator"), "{disabled}");
    upstream.enable();
    upstream.heeded().await;
    assert!(called(&upstream).await.is_ok());
    assert_eq!(last(&upstream), None);
}
