//! What a definition that changed asks to have in headers (PROTOCOL B3, SECURITY CAT-2).

use super::*;
use crate::harness::{Play, Revision};

const ASKING: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{"secret":{"type":"string","x-mcp-header":"Secret"}}}}"#;
const BEFORE: &str =
    r#"{"name":"t","inputSchema":{"type":"object","properties":{"secret":{"type":"string"}}}}"#;

/// CAT-2
#[tokio::test]
async fn cat_2_no_argument_is_put_into_a_header_by_a_definition_that_nobody_approved() {
    let lacking = r#"{"code":-32020,"message":"no"}"#;
    for (mode, sent) in [("watch", true), ("quarantine", false)] {
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([BEFORE.to_owned()])
            .on("tools/call", |heard| {
                match heard.header("mcp-param-secret") {
                    Some(_) => Play::Result(crate::harness::text_result("done")),
                    None => Play::Refused(400, lacking.into()),
                }
            });
        let state = State::of(mode);
        let gateway = state.gateway(&notes).start().await;
        // Which has no headers of its own to bring.
        let client = gateway.client(Revision::V2025_11_25).await;
        assert_eq!(client.tools().await, ["notes_t"], "{mode}");
        state.written().await;
        // It tells nobody, and refuses what does not go by it.
        notes.offer(0, vec![ASKING.to_owned()]);
        let call = async || client.call("notes_t", r#"{"secret":"s3cret"}"#).await;
        let answer = call().await;
        if sent {
            assert_eq!(answer.text(), "done");
        } else {
            assert_eq!(answer.tool_error(), "upstream_protocol_error");
        }
        // The list was asked for by that, and judged.
        let rows = state.unapproved(1).await;
        assert_eq!(rows, [("t".to_owned(), "changed".to_owned())], "{mode}");
        if !sent {
            eventually("it is withheld", || async {
                client.tools().await.is_empty().then_some(())
            })
            .await;
            assert_eq!(call().await.tool_error(), "definition_quarantined");
            state.usher(&["approve", "notes", "t"]);
            eventually("what is approved is back", || async {
                (client.tools().await == ["notes_t"]).then_some(())
            })
            .await;
            let seen = |heard: &crate::harness::Heard| heard.header("mcp-param-secret").is_some();
            assert!(!notes.heard("tools/call").iter().any(seen));
            assert_eq!(call().await.text(), "done");
        }
    }
}
