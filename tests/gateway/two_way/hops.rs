//! What each hop keeps for itself: opening, discovering, pinging, streams that are resumed, kinds of results.

use serde_json::json;

use super::{HOME, ROOTS, asking, usual};
use crate::harness::{Gateway, Pairing, Play, Revision, Turn, Upstream, parse, text_result, tool};

pairings! {
    /// Feature: Opening
    /// Feature: server/discover
    async fn each_hop_is_opened_in_its_own_way_and_discovering_is_answered_here(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        let asked = notes.heard("server/discover").len();
        let answer = client.ask("server/discover", "{}").await;
        if pair.client_is_modern() {
            let card = answer.value();
            assert_eq!(card["supportedVersions"], json!(["2026-07-28"]));
            assert_eq!(card["resultType"], "complete");
            assert!(client.session.is_none() && client.greeting.is_none());
        } else {
            assert_eq!((answer.status, answer.error()["code"].as_i64()), (200, Some(-32601)));
            let greeting = client.greeting.as_ref().unwrap().value();
            assert_eq!(greeting["protocolVersion"], pair.client.as_str());
        }
        assert_eq!(notes.heard("server/discover").len(), asked, "not asked for this");
        client.call("notes_t", "{}").await.result();
        let opened = notes.heard("initialize").len();
        assert_eq!(opened == 0, pair.upstream_is_modern());
        assert_eq!(notes.heard("notifications/initialized").len(), opened);
    }
}

pairings! {
    /// Feature: ping
    async fn a_ping_is_answered_where_there_is_one_and_a_servers_own_at_once(pair: Pairing) {
        let modern = pair.upstream_is_modern();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |_| {
            Play::live(move |turn: Turn| async move {
                if !modern {
                    let answer = turn.ask("ping", "{}").await;
                    assert_eq!(answer["result"], json!({}), "{answer}");
                }
                turn.result(&text_result("called t")).await;
            })
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let before = notes.heard("ping").len();
        let answer = client.ask("ping", "{}").await;
        if pair.client_is_modern() {
            assert_eq!((answer.status, answer.error()["code"].as_i64()), (404, Some(-32601)));
        } else {
            assert_eq!(answer.result(), "{}");
        }
        assert_eq!(notes.heard("ping").len(), before);
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    }
}

pairings! {
    /// Feature: SSE resume
    async fn what_a_client_lost_is_fetched_again_where_that_exists(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::live(|turn: Turn| async move {
                turn.progress(1, "begun").await;
                turn.result(&text_result("called t")).await;
            })
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let ask = client.call("notes_t", "{}").meta(r#""progressToken":"p""#);
        let mut talk = ask.begin().await;
        let mut first = talk.event().await.unwrap();
        if pair.client_is_modern() {
            // No ids, and so nothing to name when resuming.
            assert_eq!(first.id, None);
            while let Some(event) = talk.event().await {
                assert_eq!(event.id, None);
                first = event;
            }
            assert!(first.data.contains("called t"));
            return;
        }
        let id = first.id.clone().expect("an id");
        drop(talk);
        let answer = client.stream(Some(&id)).await.rest().await;
        assert_eq!(answer.text(), "called t");
        assert_eq!(notes.heard("tools/call").len(), 1);
    }
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_modern_server = MODERN_MODERN,
    ] because "the handshake era has no kinds of results";
    /// Feature: Unknown resultType from upstream
    async fn a_kind_of_result_that_nobody_knows_is_not_passed_on(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::Result(r#"{"resultType":"riddle","content":[{"type":"text","text":"note://secret"}]}"#.into())
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = client.call("notes_t", "{}").await;
        assert!(!answer.message().contains("secret"), "{answer:?}");
        assert_eq!(answer.tool_error(), "upstream_protocol_error");
    }
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "a session's word of changed roots is not carried to its server yet";
    /// Feature: roots list_changed
    async fn changed_roots_are_promised_to_no_server_and_asked_for_afresh(pair: Pairing) {
        let notes = asking(pair, &[ROOTS]);
        let can = r#"{"roots":{"listChanged":true}}"#;
        let (_gateway, client) = pair.able(&notes, can).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(parse(&talk.answer.text()), json!([parse(HOME)]));
        for opened in notes.heard("initialize") {
            let promised = opened.value()["capabilities"]["roots"]["listChanged"].clone();
            assert_ne!(promised, json!(true));
        }
        if pair.client_is_modern() {
            // It has no way to say so.
            return;
        }
        client.notify("notifications/roots/list_changed", "{}").await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked.len(), 1, "asked again");
        assert!(notes.heard("notifications/roots/list_changed").is_empty());
    }
}

/// Feature: Batch (LL, LM)
#[tokio::test]
async fn requests_of_a_batch_go_to_their_servers_one_by_one_and_are_answered_together() {
    for upstream in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let notes = Upstream::http(upstream).tools([tool("t"), tool("u")]);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(Revision::V2025_03_26).await;
        let call = |id: u32, name: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"notes_{name}","arguments":{{}}}}}}"#
            )
        };
        let batch = format!("[{},{}]", call(1, "t"), call(2, "u"));
        let answer = client.post(&batch, &[]).await;
        let all = answer.frames.concat();
        for (id, name) in [(1, "t"), (2, "u")] {
            assert!(all.contains(&format!(r#""id":{id}"#)), "{all}");
            assert!(all.contains(&format!("called {name}")), "{all}");
        }
        assert_eq!(notes.heard("tools/call").len(), 2);
    }
}
