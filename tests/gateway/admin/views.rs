//! What operators see, and what comes of what they do.

use std::sync::Arc;

use serde_json::{Value, json};
use usher::config;

use super::{OPERATOR, Plane, plane, problem};
use crate::{
    egress::markers::Written,
    harness::{
        Gateway, Pairing, Play, Revision, Upstream, call_result, eventually, parse, resource, tool,
    },
};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// Waits until an upstream is in this state.
async fn until(plane: &Plane, name: &str, state: &str) -> Value {
    let path = format!("/api/upstreams/{name}");
    eventually(state, async || {
        let told = plane.get(&path).await;
        (told["state"] == state).then_some(told)
    })
    .await
}

pairings! {
    async fn an_upstream_is_shown_with_what_it_speaks_and_how_it_did(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t"), tool("u")]).resources([resource("note:1")]);
        let plane = plane(Gateway::of().upstream("notes", &notes)).await;
        let client = pair.client(&plane.gateway).await;
        client.call("notes_t", "{}").await;
        client.call("notes_u", "{}").await;
        let told = plane.get("/api/upstreams/notes").await;
        let revision = told["revision"].as_str().unwrap();
        let era = if revision == "2026-07-28" { "modern" } else { "legacy" };
        assert_eq!(told["era"], era);
        assert_eq!(told["state"], "ready");
        assert_eq!(told["breaker"], json!({"state": "closed", "failures": 0}));
        assert_eq!(told["offers"]["tools"], 2);
        assert_eq!(told["offers"]["resources"], 1);
        assert_eq!(told["calls"]["total"], 2);
        assert_eq!(told["calls"]["failed"], 0);
        assert!(told["calls"]["p99_ms"].as_f64().unwrap() > 0.0);
        let listed = plane.get("/api/upstreams").await;
        assert_eq!(listed["items"][0]["name"], "notes");
        assert_eq!(listed["next_cursor"], Value::Null);
    }

}

pairings! {
    async fn a_disabled_upstream_is_gone_from_lists_and_calls_until_it_is_enabled(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let other = pair.upstream().tools([tool("o")]);
        let plane = plane(Gateway::of().upstream("notes", &notes).upstream("other", &other)).await;
        let client = pair.client(&plane.gateway).await;
        assert_eq!(client.tools().await, ["notes_t", "other_o"]);
        let told = plane.post("/api/upstreams/notes/disable", "{}").await;
        assert_eq!(told["state"], "disabled", "the answer is what came of it");
        assert!(told["last_error"].as_str().unwrap().contains("disabled by an operator"));
        eventually("it is gone", async || (client.tools().await == ["other_o"]).then_some(())).await;
        let heard = notes.heard("tools/call").len();
        let refused = client.call("notes_t", "{}").await;
        assert_eq!(refused.refusal().0, -32602);
        assert_eq!(notes.heard("tools/call").len(), heard);
        assert!(client.call("other_o", "{}").await.text().contains('o'));
        let told = plane.post("/api/upstreams/notes/enable", "{}").await;
        assert_ne!(told["state"], "disabled", "the answer is what came of it");
        until(&plane, "notes", "ready").await;
        eventually("it is back", async || (client.tools().await.len() == 2).then_some(())).await;
        assert!(client.call("notes_t", "{}").await.text().contains('t'));
        let told = plane.get("/api/upstreams/notes").await;
        assert_eq!((&told["last_error"], &told["last_error_ago_ms"]), (&Value::Null, &Value::Null));
    }
}

pairings! {
    async fn a_call_that_failed_at_its_upstream_leaves_its_cause_with_operators_and_in_the_log(pair: Pairing) {
        let written = Written::default();
        let _hearing = written.hears_everything();
        let notes = pair.upstream().tools([tool("t")]);
        let plane = plane(Gateway::of().upstream("notes", &notes)).await;
        let client = pair.client(&plane.gateway).await;
        let lines = || -> Vec<String> {
            let text = written.text();
            let told = text.lines().filter(|line| line.contains("failed at its upstream"));
            told.map(str::to_owned).collect()
        };
        for (play, cause) in [
            (Play::Status(500), "HTTP 500"),
            (Play::Die, "unavailable"),
            (Play::Status(429), "HTTP 429"),
        ] {
            let before = lines().len();
            notes.now_on("tools/call", move |_| play.clone());
            let refused = client.call("notes_t", r#"{"x":"mk-of-a-caller"}"#).await;
            refused.tool_error();
            let of = refused.value()["_meta"]["dev.usher/ref"].as_str().unwrap().to_owned();
            let told = lines();
            assert_eq!(told.len(), before + 1, "{told:#?}");
            let line = &told[before];
            for part in [" WARN ", "upstream=notes", cause, &format!("call={of}")] {
                assert!(line.contains(part), "{part}: {line}");
            }
            let told = plane.get("/api/upstreams/notes").await;
            assert!(told["last_error"].as_str().unwrap().contains(cause), "{told}");
            assert!(told["last_error_ago_ms"].as_u64().unwrap() < 60_000, "{told}");
        }
        // What the server says is an answer; and a flood is told by its count, at the end at the latest.
        notes.now_on("tools/call", |_| Play::Error(r#"{"code":-32603,"message":"mk-of-a-server"}"#.into()));
        client.call("notes_t", "{}").await;
        notes.now_on("tools/call", |_| Play::Status(500));
        for _ in 0..7 {
            client.call("notes_t", "{}").await;
        }
        assert_eq!(lines().len(), 3);
        plane.gateway.app.clone().shutdown().await;
        let told = written.text();
        let rest = told.lines().find(|line| line.contains("more calls failed"));
        let rest = rest.unwrap_or_else(|| panic!("{told}"));
        assert!(rest.contains("count=7 ") && rest.contains("upstream_unavailable"), "{rest}");
        let told = told.lines().filter(|line| line.contains(" WARN "));
        let told: Vec<_> = told.filter(|line| line.contains("mk-of-")).collect();
        assert!(told.is_empty(), "{told:#?}");
    }
}

#[tokio::test]
async fn a_restarted_program_is_another_one_and_a_refreshed_list_is_read_again() {
    let notes = Upstream::pipe(LEGACY).tools([tool("t")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    let before = plane.get("/api/upstreams/notes").await["restarts"]
        .as_u64()
        .unwrap();
    let greeted = notes.heard("initialize").len();
    plane.post("/api/upstreams/notes/restart", "{}").await;
    eventually("another handshake", async || {
        (notes.heard("initialize").len() > greeted).then_some(())
    })
    .await;
    let told = until(&plane, "notes", "ready").await;
    assert!(told["restarts"].as_u64().unwrap() > before);
    let read = notes.heard("tools/list").len();
    notes.offer(0, [tool("t"), tool("fresh")]);
    plane.post("/api/upstreams/notes/refresh", "{}").await;
    eventually("the list is read", async || {
        (notes.heard("tools/list").len() > read).then_some(())
    })
    .await;
    eventually("what is new is offered", async || {
        let told = plane.get("/api/upstreams/notes").await;
        (told["offers"]["tools"] == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_catalog_is_searched_in_pages_and_shows_definitions_as_they_came() {
    let definition = r#"{"name":"weigh","description":"Weighs a PARCEL.","inputSchema":{"type":"object","x-own":1.50}}"#;
    let notes = Upstream::http(MODERN)
        .tools([definition.to_owned(), tool("b"), tool("a")])
        .resources([resource("note:1")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    let mut seen = Vec::new();
    let mut path = "/api/catalog?limit=3".to_owned();
    loop {
        let page = plane.get(&path).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 3);
        seen.extend(
            items
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/api/catalog?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, ["notes+note:1", "notes_a", "notes_b", "notes_weigh"]);
    let found = plane.get("/api/catalog?q=parcel&kind=tool").await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(found["items"][0]["pin"], "approved");
    assert_eq!(found["items"][0]["local"], "weigh");
    let shown = plane
        .seen(OPERATOR, "/api/catalog/item?kind=tool&name=notes_weigh")
        .await;
    assert!(shown.body.contains(definition), "{}", shown.body);
}

#[tokio::test]
async fn a_definition_that_changes_is_shown_with_what_was_found() {
    let notes = Upstream::http(MODERN).tools([tool("t"), tool("still")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    notes.offer(
        0,
        [
            r#"{"name":"t","description":"Another.","inputSchema":{"type":"object"}}"#.to_owned(),
            tool("still"),
        ],
    );
    plane.post("/api/upstreams/notes/refresh", "{}").await;
    let item = eventually("the change is seen", async || {
        let item = plane.get("/api/catalog/item?kind=tool&name=notes_t").await;
        (item["pin"] == "changed").then_some(item)
    })
    .await;
    assert_eq!(item["findings"][0]["class"], "definition_changed");
    let changed = plane.get("/api/catalog?pin=changed").await;
    assert_eq!(changed["items"].as_array().unwrap().len(), 1);
    let findings = plane
        .get("/api/findings?class=definition_changed&upstream=notes")
        .await;
    assert_eq!(findings["items"][0]["item"], "t");
    let none = plane
        .get("/api/findings?class=definition_changed&upstream=others")
        .await;
    assert_eq!(none["items"], json!([]));
}

#[tokio::test]
async fn a_session_is_shown_without_its_id_and_can_be_ended() {
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    let (one, other) = (
        plane.gateway.client(LEGACY).await,
        plane.gateway.client(LEGACY).await,
    );
    let sessions = plane.seen(OPERATOR, "/api/sessions").await;
    let told = parse(&sessions.body);
    assert_eq!(told["items"].as_array().unwrap().len(), 2);
    assert_eq!(told["items"][0]["revision"], "2025-11-25");
    assert_eq!(told["items"][0]["endpoint"], "all");
    for session in told["items"].as_array().unwrap() {
        let reference = session["session"].as_str().unwrap();
        plane
            .post(&format!("/api/sessions/{reference}/end"), "{}")
            .await;
        let again = plane
            .done(OPERATOR, &format!("/api/sessions/{reference}/end"), "{}")
            .await;
        assert_eq!(problem(&again), (404, "not_found".into()));
    }
    for client in [one, other] {
        assert!(!sessions.body.contains(client.session.as_deref().unwrap()));
        assert_eq!(client.ask("tools/list", "{}").await.status, 404);
    }
    assert_eq!(plane.get("/api/sessions").await["items"], json!([]));
}

#[tokio::test]
async fn a_stream_is_shown_and_ends_in_good_order_when_it_is_ended() {
    let notes = Upstream::http(MODERN).telling().tools([tool("t")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    let client = plane.gateway.client(MODERN).await;
    let mut watch = client.watch(&["tools"], &[]).await;
    let streams = plane.get("/api/streams").await;
    assert_eq!(streams["items"][0]["lists"], json!(["tools"]));
    let stream = streams["items"][0]["stream"].as_u64().unwrap();
    plane
        .post(&format!("/api/streams/{stream}/end"), "{}")
        .await;
    assert!(watch.end().await.is_some());
    eventually("it is gone", async || {
        let streams = plane.get("/api/streams").await;
        (streams["items"] == json!([])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn limits_are_shown_with_what_they_refused() {
    let notes = Upstream::http(MODERN)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(call_result("t")));
    let limits = "limits: [{ per: principal, match: anonymous, rate: 1/h, burst: 1 }]";
    let plane = plane(Gateway::of().upstream("notes", &notes).setting(limits)).await;
    let client = plane.gateway.client(MODERN).await;
    for _ in 0..3 {
        client.call("notes_t", "{}").await;
    }
    let told = plane.get("/api/limits").await;
    let rule = &told["items"][0];
    assert!(
        rule["rule"].as_str().unwrap().contains("principal"),
        "{told}"
    );
    assert_eq!(rule["keys"], 1);
    assert!(rule["refused"].as_u64().unwrap() >= 2, "{told}");
    assert_eq!(told["in_flight"]["principal"], 512);
}

#[tokio::test]
async fn decisions_are_explained_and_policies_read_again_all_or_nothing() {
    let notes = Upstream::http(MODERN).tools([tool("t"), tool("u")]);
    let builder = Gateway::of().upstream("notes", &notes).policies(
        r#"@id("ana") permit(principal == User::"ana", action, resource == Tool::"notes_t");"#,
    );
    let plane = plane(builder).await;
    let explain = async |who: &str, tool: &str| {
        let question = json!({"who": {"user": who}, "action": "call", "name": tool});
        plane
            .post("/api/policy/explain", &question.to_string())
            .await
    };
    let allowed = explain("ana", "notes_t").await;
    assert_eq!(
        (&allowed["decision"], &allowed["by"][0]),
        (&json!("allow"), &json!("ana"))
    );
    assert_ne!(explain("bob", "notes_t").await["decision"], "allow");
    let standing = plane.get("/api/policy").await;
    assert_eq!(
        (&standing["rule"], &standing["count"]),
        (&json!("policies"), &json!(1))
    );
    assert_eq!(
        plane.get("/api/policy/policies").await["items"][0]["policy"],
        "ana"
    );
    plane
        .gateway
        .rewrite("permit(principal, action, ressource);");
    let broken = plane.done(OPERATOR, "/reload", "{}").await;
    assert_eq!(problem(&broken), (409, "not_reloaded".into()));
    let trouble = &parse(&broken.body)["problems"][0];
    assert!(
        trouble["file"].as_str().unwrap().ends_with("main.cedar"),
        "{trouble}"
    );
    assert_eq!(trouble["line"], 1);
    assert_eq!(explain("ana", "notes_t").await["decision"], "allow");
    assert!(
        !plane.get("/api/policy").await["problems"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    plane
        .gateway
        .rewrite(r#"permit(principal == User::"bob", action, resource);"#);
    assert_eq!(
        plane.post("/reload", "{}").await["reloaded"],
        json!(["policies"])
    );
    assert_ne!(explain("ana", "notes_t").await["decision"], "allow");
    assert_eq!(explain("bob", "notes_u").await["decision"], "allow");
}

#[tokio::test]
async fn what_is_read_again_changes_limits_and_leaves_bounds_to_a_restart_as_it_says() {
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    let text = format!(
        "bounds: {{ in_flight: {{ process: 7 }} }}\nlimits: [{{ per: principal, rate: 9/s }}]\nupstreams: {{ notes: {{ {} }} }}\n",
        notes.place()
    );
    let load = move || config::of_text(&text);
    plane.gateway.app.reloads_from(Arc::new(load));
    let told = plane.post("/reload", "{}").await;
    assert_eq!(told["restart_needed"], true, "{told}");
    let keys = told["restart_keys"].to_string();
    assert!(keys.contains("bounds"), "{told}");
    let limits = plane.get("/api/limits").await;
    assert_eq!(limits["items"].as_array().unwrap().len(), 1, "{limits}");
    assert_eq!(limits["in_flight"]["process"], 16_384, "{limits}");
}
