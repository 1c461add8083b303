//! Tests: calls that are refused for their headers: what is read anew, and whether they are made once more (PROTOCOL B3, D6).

use super::{
    tests::{done, over_http, text},
    *,
};
use crate::upstream::scripted::{Play, Sent, a_call, a_route, result};

const ASKING: &str = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}"#;

fn calling() -> Call {
    a_call(
        Op::CallTool("u_t".into()),
        r#"{"name":"u_t","arguments":{"a":"x"}}"#,
    )
}

/// It was not carried out, and so is made no second time where that counts (SECURITY REL-6).
#[tokio::test]
async fn a_call_is_made_once_more_with_the_headers_that_its_tool_asks_for_now() {
    let (transport, peer) = over_http(|sent: &Sent| match sent.method.as_str() {
        "tools/list" => result(ASKING),
        _ if sent.header("mcp-param-a") == Some("x") => result("{}"),
        _ => Play::Error(400, -32020, ""),
    });
    let reply = peer.call(calling(), a_route("t")).await;
    assert_eq!(text(&done(reply)), "{}");
    assert_eq!(transport.sent_of("tools/call").len(), 2);
    assert_eq!(transport.sent_of("tools/list").len(), 1);
}

#[tokio::test]
async fn a_call_is_refused_where_its_tool_asks_for_nothing_else_and_where_it_is_refused_again() {
    let same = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let another = r#"{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}"#;
    for (tools, status, calls) in [
        (ASKING, 400, 2),
        (same, 400, 1),
        (another, 400, 1),
        // Whoever says so with a result's status may have looked at more than headers.
        (ASKING, 200, 1),
    ] {
        let (transport, peer) = over_http(move |sent: &Sent| match sent.method.as_str() {
            "tools/list" => result(tools),
            _ => Play::Error(status, -32020, ""),
        });
        let reply = peer.call(calling(), a_route("t")).await;
        assert!(
            matches!(reply, Err(UpstreamError::Protocol(_))),
            "{reply:?}"
        );
        assert_eq!(transport.sent_of("tools/call").len(), calls, "{tools}");
    }
}
