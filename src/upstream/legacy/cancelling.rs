//! Tests: calls that are given up, run out of time or lose their stream: whether the server is told (PROTOCOL D1, Cancel).

use std::time::Duration;

use super::{
    tests::{of, on_pipes, over_http},
    *,
};
use crate::{
    call::Op,
    upstream::{
        scripted::{Play, Sent, a_route, an_address, note},
        spec::Timeouts,
    },
};

#[tokio::test(start_paused = true)]
async fn giving_a_call_up_is_told_over_http_and_on_pipes() {
    let hang = |sent: &Sent| match sent.method.as_str() {
        "tools/call" => Play::Hang,
        _ => Play::Status(202),
    };
    let (transport, peer) = over_http(&an_address(), hang).await;
    let reply = peer.call(of("k"), a_route("t"));
    let reply = tokio::time::timeout(Duration::from_secs(1), reply).await;
    assert!(reply.is_err());
    let told = transport
        .until(|sent| sent.method == "notifications/cancelled")
        .await;
    assert_eq!(told.header("mcp-session-id"), Some("s1"));

    let (processes, peer) = on_pipes(Isolation::Shared, move |_, sent| hang(sent)).await;
    let reply = peer.call(of("k"), a_route("t"));
    let reply = tokio::time::timeout(Duration::from_secs(1), reply).await;
    assert!(reply.is_err());
    let call = processes.made()[0].sent_of("tools/call").remove(0);
    let id = call
        .text
        .split_once(r#""id":"#)
        .unwrap()
        .1
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    let told = processes.made()[0]
        .until(|sent| sent.method == "notifications/cancelled")
        .await;
    assert!(
        told.params.contains(&format!(r#""requestId":{id}"#)),
        "{}",
        told.params
    );
}

/// SECURITY 6: past its deadline a call is cancelled upstream.
#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_is_cancelled_over_http_and_on_pipes() {
    let hang = |sent: &Sent| match sent.method.as_str() {
        "tools/call" => Play::Hang,
        _ => Play::Status(202),
    };
    let soon = || Call {
        deadline: Instant::now() + Duration::from_secs(1),
        ..of("k")
    };
    let (transport, peer) = over_http(&an_address(), hang).await;
    let reply = peer.call(soon(), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Timeout(Deadline::Call))));
    transport.until_count("notifications/cancelled", 1).await;

    let (processes, peer) = on_pipes(Isolation::Shared, move |_, sent| hang(sent)).await;
    let reply = peer.call(soon(), a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Timeout(Deadline::Call))));
    let pipe = processes.made().remove(0);
    pipe.until_count("notifications/cancelled", 1).await;
}

/// SECURITY 6: list/get, call.
#[tokio::test(start_paused = true)]
async fn a_prompt_has_the_time_of_a_list_over_http_and_on_pipes() {
    let hang = |sent: &Sent| match sent.method.as_str() {
        "prompts/get" => Play::Hang,
        _ => Play::Status(202),
    };
    let (_http, by_http) = over_http(&an_address(), hang).await;
    let (_pipes, by_pipe) = on_pipes(Isolation::Shared, move |_, sent| hang(sent)).await;
    for peer in [by_http, by_pipe] {
        let call = Call {
            op: Op::GetPrompt("t".into()),
            ..of("k")
        };
        let began = Instant::now();
        let reply = peer.call(call, a_route("t")).await;
        assert!(matches!(reply, Err(UpstreamError::Timeout(Deadline::Call))));
        assert_eq!(began.elapsed(), Timeouts::default().list);
    }
}

/// PROTOCOL D1, Cancel: that its stream is gone does not end the work.
#[tokio::test(start_paused = true)]
async fn a_call_whose_stream_breaks_is_cancelled_and_one_that_never_began_is_not() {
    let step = note(
        "notifications/progress",
        r#"{"progressToken":$id,"progress":1}"#,
    );
    let broken = UpstreamError::unreached("broken");
    let mut plays = [
        Play::Fail(broken),
        Play::Stream(vec![(0, step.clone())], false),
        Play::Stream(vec![(0, step)], true),
    ]
    .into_iter();
    let (transport, peer) = over_http(&an_address(), move |sent| match sent.method.as_str() {
        "tools/call" => plays.next().unwrap(),
        _ => Play::Status(202),
    })
    .await;
    for told in 0..3 {
        assert!(peer.call(of("k"), a_route("t")).await.is_err());
        transport.until_count("notifications/cancelled", told).await;
        assert_eq!(transport.sent_of("notifications/cancelled").len(), told);
    }
}
