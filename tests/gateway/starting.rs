//! What clients are told while servers are in their first start.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Gate, Gateway, Piped, Play, Revision, Upstream, parse, tool, within};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// A server whose list takes until this opens.
fn slow(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::http(MODERN)
        .instructions("Use `t`.")
        .on("tools/list", move |_| {
            let list = format!(r#"{{"tools":[{}]}}"#, tool("t"));
            let list = Play::Result(list);
            Play::Gated(Vec::new(), gate.clone(), Box::new(list))
        })
}

#[tokio::test]
async fn the_first_lists_on_a_pipe_wait_for_servers_that_take_longer_than_the_handshake() {
    let gate = Gate::new();
    let server = slow(&gate);
    let builder = Gateway::of().upstream("slow", &server);
    let mut pipe = Piped::start(&builder.text()).await;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let greeting = within(Duration::from_secs(12), "a greeting", pipe.ask(hello)).await;
    assert_eq!(parse(&greeting)["result"]["protocolVersion"], "2025-11-25");
    pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    pipe.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)
        .await;
    pipe.say(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#)
        .await;
    let ping = pipe
        .ask(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#)
        .await;
    assert_eq!(parse(&ping)["id"], 4, "{ping}");
    gate.open();
    for _ in 0..2 {
        // That lists changed may be said before.
        let mut list = pipe.hear().await;
        while !list.contains("\"id\":") {
            list = pipe.hear().await;
        }
        assert_eq!(
            parse(&list)["result"]["tools"][0]["name"],
            "slow_t",
            "{list}"
        );
    }
}

/// Whether its handshake or each of its requests says who it is.
#[tokio::test]
async fn a_client_that_gives_up_soon_is_not_kept_waiting_for_a_list() {
    let gate = Gate::new();
    let server = slow(&gate);
    let builder = Gateway::of().upstream("slow", &server);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rmcp","version":"1"}}}"#;
    let legacy = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    let modern = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"rmcp","version":"1"}}}}"#;
    for (first, list) in [(Some(hello), legacy), (None, modern)] {
        let mut pipe = Piped::start(&builder.text()).await;
        if let Some(hello) = first {
            pipe.ask(hello).await;
        }
        // Fifteen seconds after the start anybody is answered.
        let list = within(Duration::from_secs(10), "a list", pipe.ask(list)).await;
        assert_eq!(parse(&list)["result"]["tools"], json!([]), "{list}");
    }
    gate.open();
}

#[tokio::test]
async fn a_session_that_begins_while_a_server_starts_is_told_what_it_says() {
    let gate = Gate::new();
    let server = slow(&gate);
    let gateway = Gateway::of()
        .upstream("slow", &server)
        .unsettled()
        .start()
        .await;
    let opens = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        gate.open();
    };
    let (client, ()) = tokio::join!(gateway.client(LEGACY), opens);
    let greeting = client.greeting.as_ref().unwrap().value();
    let said = greeting["instructions"].as_str().unwrap_or_default();
    assert!(said.contains("Use `t`."), "{greeting}");
}

#[tokio::test]
async fn a_session_is_promised_what_a_server_may_do_that_does_not_come_in_time() {
    let gate = Gate::new();
    let server = slow(&gate);
    let gateway = Gateway::of()
        .upstream("slow", &server)
        .unsettled()
        .start()
        .await;
    let modern = gateway.client(MODERN).await;
    let before = Instant::now();
    let face = modern.ask("server/discover", "{}").await.value();
    assert!(
        before.elapsed() < Duration::from_millis(1500),
        "nobody waits"
    );
    assert_eq!(face["ttlMs"], 0);
    let before = Instant::now();
    let client = gateway.client(LEGACY).await;
    let took = before.elapsed();
    assert!(took < Duration::from_secs(12), "{took:?}");
    let greeting = client.greeting.as_ref().unwrap().value();
    let said = &greeting["capabilities"];
    for capability in ["completions", "logging"] {
        assert!(said[capability].is_object(), "{said}");
    }
    assert_eq!(said["resources"]["subscribe"], json!(true), "{said}");
    let said = greeting["instructions"].as_str().unwrap_or_default();
    assert!(said.contains("by its prefix"), "{greeting}");
    let level = client.ask("logging/setLevel", r#"{"level":"info"}"#).await;
    assert!(level.value().is_object());
    // What it turns out not to do is refused by name.
    gate.open();
    gateway.app.settled(Duration::from_secs(20)).await;
    let params =
        r#"{"ref":{"type":"ref/prompt","name":"slow_p"},"argument":{"name":"x","value":"1"}}"#;
    let refused = client.ask("completion/complete", params).await;
    let refused = refused.error()["code"].as_i64().unwrap();
    assert!(matches!(refused, -32601 | -32602), "{refused}");
    let params = r#"{"uri":"slow+n://x"}"#;
    let refused = client.ask("resources/subscribe", params).await;
    let refused = refused.error()["code"].as_i64().unwrap();
    assert!(matches!(refused, -32002 | -32601 | -32602), "{refused}");
}
