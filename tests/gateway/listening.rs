//! Listening beyond what the pairings tell: every way to reach an upstream, what is refused, pipes, and how soon.

use std::time::{Duration, Instant};

use super::harness::*;

const MODERN: Revision = Revision::V2026_07_28;

/// Every way in which an upstream may be reached and may tell of changes.
fn upstreams() -> Vec<(&'static str, Upstream)> {
    vec![
        ("modern over HTTP", Upstream::http(MODERN)),
        ("modern on a pipe", Upstream::pipe(MODERN)),
        ("the first over HTTP", Upstream::http(Revision::V2025_03_26)),
        ("the last over HTTP", Upstream::http(Revision::V2025_11_25)),
        ("legacy on a pipe", Upstream::pipe(Revision::V2025_06_18)),
        ("two endpoints", Upstream::sse()),
    ]
    .into_iter()
    .map(|(how, upstream)| (how, upstream.telling()))
    .collect()
}

#[tokio::test]
async fn a_list_change_reaches_each_listen_exactly_once_however_the_upstream_is_reached() {
    for (how, notes) in upstreams() {
        let notes = notes.tools([tool("a")]);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(MODERN).await;
        let mut all = client.watch(&["tools", "prompts", "resources"], &[]).await;
        let mut tools = client.watch(&["tools"], &[]).await;
        notes.offer(0, [tool("a"), tool("b")]);
        notes.announce("tools").await;
        for watch in [&mut all, &mut tools] {
            assert_eq!(watch.change().await.0, "tools/list_changed", "{how}");
            assert_eq!(client.tools().await, ["notes_a", "notes_b"], "{how}");
        }
        // Nothing changed, so nothing is told; the next that is told is the next that changes.
        notes.announce("tools").await;
        notes.offer(2, [resource("note:1")]);
        notes.announce("resources").await;
        assert_eq!(all.change().await.0, "resources/list_changed", "{how}");
    }
}

#[tokio::test]
async fn updates_are_told_by_outward_uris_however_the_upstream_is_reached() {
    for (how, notes) in upstreams() {
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(MODERN).await;
        let mut one = client.watch(&[], &["notes+note://d"]).await;
        let mut other = client
            .watch(&[], &["notes+note://e", "notes+note://d/x"])
            .await;
        notes.one_listen_at_most().await;
        notes.updated("note://d", "note://d").await;
        assert_eq!(one.resource().await, "notes+note://d", "{how}");
        notes.updated("note://d", "note://d/x").await;
        assert_eq!(one.resource().await, "notes+note://d/x", "{how}");
        assert_eq!(other.resource().await, "notes+note://d/x", "{how}");
        // At the upstream's own endpoint the same is told in its own words.
        let own = gateway.client_at("/mcp/u/notes", MODERN).await;
        let mut own = own.watch(&[], &["note://d"]).await;
        notes.one_listen_at_most().await;
        notes.updated("note://d", "note://d/y").await;
        assert_eq!(own.resource().await, "note://d/y", "{how}");
        assert_eq!(one.resource().await, "notes+note://d/y", "{how}");
    }
}

#[tokio::test]
async fn after_an_upstream_was_lost_watchers_look_again_however_it_is_reached() {
    for (how, notes) in upstreams() {
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(MODERN).await;
        let mut watch = client.watch(&[], &["notes+a:1"]).await;
        notes.down();
        notes.up();
        assert_eq!(watch.resource().await, "notes+a:1", "{how}");
        notes.updated("a:1", "a:1").await;
        assert_eq!(watch.resource().await, "notes+a:1", "{how}");
    }
}

#[tokio::test]
async fn a_change_is_told_within_a_second() {
    for revision in [MODERN, Revision::V2025_11_25] {
        let mut late = Vec::new();
        // Once out of three times: the machine may be busy with something else. Anew, since changes have their distance.
        while late.len() < 3 {
            let notes = Upstream::http(revision).telling().tools([tool("a")]);
            let gateway = Gateway::of().upstream("notes", &notes).start().await;
            let client = gateway.client(MODERN).await;
            let mut watch = client.watch(&["tools"], &[]).await;
            notes.offer(0, [tool("b")]);
            notes.announce("tools").await;
            let said = Instant::now();
            assert_eq!(watch.change().await.0, "tools/list_changed");
            let took = said.elapsed();
            if took < Duration::from_secs(1) {
                break;
            }
            late.push(took);
        }
        assert!(late.len() < 3, "{late:?}");
    }
}

#[tokio::test]
async fn only_what_is_in_force_is_acknowledged_and_nobody_waits_long_for_it() {
    let (fine, slow, deaf, gone) = (
        Upstream::http(MODERN).telling(),
        Upstream::http(Revision::V2025_11_25)
            .telling()
            .on("resources/subscribe", |_| Play::Hang),
        Upstream::http(Revision::V2025_11_25),
        Upstream::http(Revision::V2025_11_25).telling(),
    );
    gone.down();
    let gateway = Gateway::of()
        .upstream("fine", &fine)
        .upstream("slow", &slow)
        .upstream("deaf", &deaf)
        .upstream("gone", &gone)
        .start()
        .await;
    let client = gateway.client(MODERN).await;
    let asked = ["deaf+a:1", "fine+a:1", "gone+a:1", "nobody+a:1", "slow+a:1"];
    let watch = client.partial_watch(&["tools"], &asked);
    let mut watch = within(Duration::from_secs(5), "an acknowledgement", watch).await;
    assert_eq!(
        watch.acknowledged,
        parse(r#"{"toolsListChanged":true,"resourceSubscriptions":["fine+a:1"]}"#)
    );
    fine.updated("a:1", "a:1").await;
    assert_eq!(watch.resource().await, "fine+a:1");
}

#[tokio::test]
async fn listens_that_cannot_be_are_refused() {
    let notes = Upstream::http(MODERN).telling();
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(MODERN).await;
    let uris: Vec<_> = (0..257)
        .map(|number| quote(&format!("notes+a:{number}")))
        .collect();
    let many = format!(r#"{{"resourceSubscriptions":[{}]}}"#, uris.join(","));
    let listen = |filter: &str| format!(r#"{{"notifications":{filter}}}"#);
    let method = "subscriptions/listen";
    let many = client.ask(method, &listen(&many)).await;
    assert_eq!(
        (many.status, many.refusal().1.as_str()),
        (429, "rate_limited")
    );
    let tasks = client.ask(method, &listen(r#"{"taskIds":["t"]}"#)).await;
    assert_eq!((tasks.status, tasks.refusal().0), (400, -32021));
    let deaf = client
        .ask(method, &listen("{}"))
        .header("accept", "application/json")
        .await;
    assert_eq!(deaf.status, 406);
    let legacy = gateway.client(Revision::V2025_11_25).await;
    let unknown = legacy.ask(method, &listen("{}")).await;
    assert_eq!(unknown.refusal().0, -32601);
}

#[tokio::test]
async fn endpoints_promise_changes_and_subscriptions_where_some_upstream_has_them() {
    let (telling, mute) = (
        Upstream::http(Revision::V2025_11_25).telling(),
        Upstream::http(MODERN),
    );
    let gateway = Gateway::of()
        .upstream("telling", &telling)
        .upstream("mute", &mute)
        .start()
        .await;
    for (path, subscribes) in [("/mcp", true), ("/mcp/u/mute", false)] {
        let client = gateway.client_at(path, MODERN).await;
        let card = client.ask("server/discover", "{}").await.value();
        for list in ["tools", "prompts", "resources"] {
            assert_eq!(card["capabilities"][list]["listChanged"], true);
        }
        let resources = &card["capabilities"]["resources"];
        assert_eq!(resources["subscribe"] == true, subscribes, "{path}");
    }
}

#[tokio::test]
async fn on_a_pipe_listens_are_told_apart_cancelled_and_ended() {
    const TAG: &str = "io.modelcontextprotocol/subscriptionId";
    let notes = Upstream::http(Revision::V2025_11_25)
        .telling()
        .tools([tool("a")]);
    let configuration = Gateway::of().upstream("notes", &notes).text();
    let mut usher = Piped::start(&configuration).await;
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let request = |id: &str, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{meta}}}}}"#)
    };
    let call = request("0", "tools/call", r#""name":"notes_a","#);
    usher.until_listed(&call).await;
    let filter = r#""notifications":{"toolsListChanged":true},"#;
    for id in ["1", "\"1\""] {
        let listen = request(id, "subscriptions/listen", filter);
        let first = parse(&usher.ask(&listen).await);
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["_meta"][TAG], parse(id));
    }
    usher
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    // Lines are read one after the other, so an answer shows that the cancellation was read.
    usher.ask(&call).await;
    notes.offer(0, [tool("b")]);
    notes.announce("tools").await;
    let told = parse(&usher.hear().await);
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"][TAG], "1");
    let after = usher.ask(&request("2", "tools/list", "")).await;
    assert_eq!(parse(&after)["id"], 2, "{after}");
    // A listen that is open does not keep the program alive.
    usher.end().await;
}

#[tokio::test]
async fn on_a_pipe_a_stopping_gateway_ends_a_listen_with_its_result_and_then_says_so() {
    let notes = Upstream::http(MODERN).telling();
    let configuration = Gateway::of().upstream("notes", &notes).text();
    let mut usher = Piped::start(&configuration).await;
    let listen = r#"{"jsonrpc":"2.0","id":"x","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    usher.ask(listen).await;
    usher.terminate();
    let result = parse(&usher.hear().await);
    assert_eq!(result["id"], "x");
    assert_eq!(
        result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "x"
    );
    let last = parse(&usher.hear().await);
    assert_eq!(last["method"], "notifications/cancelled");
    assert_eq!(last["params"]["requestId"], "x");
}
