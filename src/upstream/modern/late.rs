//! Tests: how long a server of the stateless era has for what.

use futures_util::StreamExt;

use super::{tests::over_http, *};
use crate::{
    call::{Outcome, Step},
    upstream::{
        Deadline,
        scripted::{Play, a_route, a_tool_call, last, note},
        spec::Timeouts,
    },
};

/// SECURITY 6: list/get, call. What is read may be long, and has the time of a call.
#[tokio::test(start_paused = true)]
async fn what_is_got_has_the_time_of_a_list_and_what_is_read_that_of_a_call() {
    let (_transport, peer) = over_http(|_| Play::Hang);
    let times = Timeouts::default();
    for (op, time) in [
        (Op::GetPrompt("t".into()), times.list),
        (Op::GetSkill("t".into()), times.list),
        (Op::ReadResource("t".into()), times.call),
        (Op::CallTool("t".into()), times.call),
    ] {
        let began = Instant::now();
        let method = op.method();
        let call = Call {
            op,
            ..a_tool_call()
        };
        let reply = peer.call(call, a_route("t")).await;
        assert!(
            matches!(reply, Err(UpstreamError::Timeout(Deadline::Call))),
            "{method}"
        );
        assert_eq!(began.elapsed(), time, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_reports_progress_has_its_time_again_up_to_five_times_of_it() {
    let progress = || {
        note(
            "notifications/progress",
            r#"{"progressToken":$id,"progress":1}"#,
        )
    };
    // Reports in all, the seconds after each, and when it is over: with a result, or without one.
    for (reports, pause, over) in [
        (7, 10, Ok(71)),
        (5, 59, Ok(296)),
        (100, 10, Err(300)),
        (2, 10, Err(80)),
    ] {
        let (_, peer) = over_http(move |_| {
            let mut frames: Vec<_> = (0..reports).map(|_| (pause, progress())).collect();
            if over.is_ok() {
                frames.push((1, last(r#"{"resultType":"complete","content":[]}"#)));
            }
            Play::Stream(frames, true)
        });
        let began = Instant::now();
        let mut call = a_tool_call();
        call.wants_progress = true;
        let Ok(Reply::Stream(stream)) = peer.call(call, a_route("t")).await else {
            panic!()
        };
        let mut steps: Vec<_> = stream.collect().await;
        let took = began.elapsed().as_secs();
        match (steps.pop(), over) {
            (Some(Step::Outcome(Outcome::Complete(_))), Ok(at)) => assert_eq!(took, at),
            (Some(Step::Outcome(Outcome::Lost(lost))), Err(at)) => {
                assert_eq!((lost.code, took), (codes::UPSTREAM_TIMEOUT, at));
            }
            (other, _) => panic!("{reports} {pause}: {other:?}"),
        }
    }
}
