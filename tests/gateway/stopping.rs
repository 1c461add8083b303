//! What still runs when the gateway has no more time to wait for it: answered, not cut off (SECURITY REL-7, 6).

use crate::harness::{
    Gate, Gateway, Heard, Pairing, Piped, Play, Revision, Upstream, call_result, tool,
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;

/// A tool that tells this and then waits at the gate, and one that does not.
fn gated(notes: Upstream, told: &[&str], gate: &Gate) -> Upstream {
    let (told, gate) = (
        told.iter().map(ToString::to_string).collect::<Vec<_>>(),
        gate.clone(),
    );
    notes
        .tools([tool("t"), tool("u")])
        .on("tools/call", move |heard: &Heard| {
            let result = Play::Result(call_result("t"));
            match heard.text("name").as_deref() {
                Some("u") => result,
                _ => Play::Gated(told.clone(), gate.clone(), Box::new(result)),
            }
        })
}

pairings! {
    async fn a_call_that_outlasts_the_drain_is_answered_with_why_and_ended_upstream(pair: Pairing) {
        for told in [&[][..], &[PROGRESS]] {
            let gate = Gate::new();
            let notes = gated(pair.upstream(), told, &gate);
            let gateway = Gateway::of()
                .setting("bounds: { http: { drain: 200ms } }")
                .upstream("notes", &notes)
                .start()
                .await;
            let client = pair.client(&gateway).await;
            let asking = client.call("notes_t", "{}").id("7").meta(r#""progressToken":1"#);
            let answer = if told.is_empty() {
                let stopping = async {
                    notes.until_heard("tools/call", 1).await;
                    gateway.app.clone().shutdown().await;
                };
                tokio::join!(asking, stopping).0
            } else {
                let mut talk = asking.begin().await;
                let first = talk.hear().await;
                assert!(first.contains("notifications/progress"), "{first}");
                tokio::join!(talk.rest(), gateway.app.clone().shutdown()).0
            };
            assert_eq!(answer.refusal().1, "shutting_down", "{answer:?}");
            // It may have been done: whoever reads this must not simply do it again.
            let words = answer.error()["message"].to_string();
            assert!(words.contains("whether the call took effect is unknown"), "{words}");
            assert!(!words.contains("try again"), "{words}");
            assert_eq!(answer.id().as_deref(), Some("7"));
            assert_eq!(answer.events().len(), 0, "nothing is told twice");
            gate.left().await;
        }
    }
}

#[tokio::test]
async fn a_call_on_a_pipe_that_outlasts_the_drain_is_answered_with_why() {
    let gate = Gate::new();
    let notes = gated(Upstream::http(Revision::V2026_07_28), &[], &gate);
    let configuration = format!("upstreams: {{ notes: {{ {} }} }}\n", notes.place());
    let mut piped = Piped::start(&configuration).await;
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"notes_t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    piped
        .until_listed(&call.replace("notes_t", "notes_u"))
        .await;
    piped.say(call).await;
    notes.until_heard("tools/call", 2).await;
    piped.terminate();
    let line = piped.hear().await;
    assert!(
        line.contains("shutting_down") && line.contains("\"id\":7"),
        "{line}"
    );
    assert!(
        line.contains("whether the call took effect is unknown") && !line.contains("try again"),
        "{line}"
    );
    piped.end().await;
}
