//! Tests: how long a server of the stateless era has for what.

use super::{tests::over_http, *};
use crate::upstream::{
    Deadline,
    scripted::{Play, a_route, a_tool_call},
    spec::Timeouts,
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
