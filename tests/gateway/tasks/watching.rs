//! Tasks that a listen watches (PROTOCOL D3).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{CORE, EXTENSION, MODERN, about, alone, core_at, known, modern_at, text};
use crate::harness::{
    Client, Gateway, Pairing, Play, Revision, Talk, Upstream, parse, quote, tool,
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The id of the listen.
const LISTEN: &str = "\"ears\"";

/// A server whose task works until it is told to be done.
fn lasting(pair: Pairing, done: &Arc<AtomicBool>) -> Upstream {
    let (own, listed) = if pair.upstream_is_modern() {
        (modern_at(pair.upstream().telling()), MODERN)
    } else {
        (core_at(pair.upstream().telling()), CORE)
    };
    let listed = listed.replacen(r#""tools":{}"#, r#""tools":{"listChanged":true}"#, 1);
    let (done, modern) = (Arc::clone(done), pair.upstream_is_modern());
    own.capabilities(&listed).on("tasks/get", move |heard| {
        let status = if done.load(Ordering::SeqCst) { "completed" } else { "working" };
        let result = if modern && status == "completed" {
            r#","result":{"content":[{"type":"resource_link","uri":"note://1","name":"n"}],"isError":true}"#
        } else {
            ""
        };
        known(heard, &format!(r#"{{"taskId":"local-7","status":"{status}","createdAt":"c","lastUpdatedAt":"l","ttl":1,"ttlMs":1,"pollInterval":200,"pollIntervalMs":200{result}}}"#))
    })
}

async fn made(client: &Client) -> String {
    let made = client.call("notes_slow", "{}").await.value();
    text(&made["taskId"])
}

/// A listen for these tasks and for the tool list: its stream, and what of the tasks is in force.
async fn listening(client: &Client, tasks: &[&str]) -> (Talk, Value) {
    let tasks: Vec<_> = tasks.iter().map(|task| quote(task)).collect();
    let params = format!(
        r#"{{"notifications":{{"toolsListChanged":true,"taskIds":[{}]}}}}"#,
        tasks.join(",")
    );
    let ask = client.ask("subscriptions/listen", &params);
    let mut talk = ask.id(LISTEN).begin().await;
    let first = parse(&talk.hear().await);
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "{first}"
    );
    assert_eq!(first["params"]["notifications"]["toolsListChanged"], true);
    let tasks = first["params"]["notifications"]["taskIds"].clone();
    (talk, tasks)
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern clients listen";
    /// Feature: Tasks watched by a listen
    async fn a_watched_task_is_told_of_once_in_the_words_of_its_state_and_nothing_else_is(pair: Pairing) {
        let done = Arc::new(AtomicBool::new(false));
        let notes = lasting(pair, &done);
        let (_gateway, client) = alone(&notes, pair.client, EXTENSION).await;
        let handle = made(&client).await;
        let mut elsewhere = client.clone();
        elsewhere.path = "/mcp/u/notes".into();
        let foreign = text(&elsewhere.call("slow", "{}").await.value()["taskId"]);
        let before = notes.heard("tasks/get").len();
        // What is not a task of this client's at this endpoint is not in force, and its server hears nothing of it.
        let (mut talk, granted) = listening(&client, &[&foreign, &handle, "local-7"]).await;
        assert_eq!(granted, json!([handle]));
        let looks = notes.heard("tasks/get").len();
        assert!(looks <= before + 2, "{looks} after {before}");
        // That it goes on working is no news; other changes come between.
        notes.until_heard("tasks/get", looks + 2).await;
        notes.offer(0, [tool("slow"), tool("b")]);
        notes.announce("tools").await;
        let change = talk.hear().await;
        assert!(change.contains("notifications/tools/list_changed"), "{change}");
        done.store(true, Ordering::SeqCst);
        let told = talk.hear().await;
        assert!(!told.contains("local-7"), "{told}");
        let told = parse(&told);
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        let state = &told["params"];
        assert_eq!(state["_meta"], json!({SUBSCRIPTION: parse(LISTEN)}));
        assert_eq!((&state["taskId"], &state["status"]), (&handle.clone().into(), &"completed".into()));
        assert_eq!(state["result"]["content"][0]["uri"], "notes+note://1");
        assert!(state["resultType"].is_null(), "{state}");
        // It is what asking for it answers.
        let asked = about(&client, "tasks/get", &handle).await.value();
        for key in ["status", "createdAt", "ttlMs", "pollIntervalMs"] {
            assert_eq!(state[key], asked[key], "{key}");
        }
        assert_eq!(state["result"]["content"], asked["result"]["content"]);
        // It is over: nobody looks at it again, and the listen goes on.
        let after = notes.heard("tasks/get").len();
        notes.offer(0, [tool("slow")]);
        notes.announce("tools").await;
        let change = talk.hear().await;
        assert!(change.contains("notifications/tools/list_changed"), "{change}");
        assert_eq!(notes.heard("tasks/get").len(), after);
    }
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern clients listen";
    /// How often a server wants its task looked at is not at the expense of whoever listens.
    async fn looks_at_a_watched_task_are_not_counted(pair: Pairing) {
        let notes = lasting(pair, &Arc::default());
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .setting("limits: [{ per: principal, daily: 1000 }]")
            .start()
            .await;
        let client = gateway.client_able(pair.client, EXTENSION).await;
        let handle = made(&client).await;
        let (_talk, granted) = listening(&client, &[&handle]).await;
        assert_eq!(granted, json!([handle]));
        let counted = || gateway.app.limits()[0].admitted;
        let (before, looks) = (counted(), notes.heard("tasks/get").len());
        notes.until_heard("tasks/get", looks + 3).await;
        assert_eq!(counted(), before);
        about(&client, "tasks/get", &handle).await.value();
        assert_eq!(counted(), before + 1);
    }
}

/// A server whose task ends with this result, where its tool promises a number `n`.
fn promising(pair: Pairing, done: &Arc<AtomicBool>, result: &'static str) -> Upstream {
    const SLOW: &str = r#"{"name":"slow","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"execution":{"taskSupport":"required"}}"#;
    let (done, modern) = (Arc::clone(done), pair.upstream_is_modern());
    let notes = lasting(pair, &done).tools([SLOW]);
    // The older revision gives it apart from the state.
    let notes = notes.on("tasks/result", move |heard| known(heard, result));
    notes.on("tasks/get", move |heard| {
        let status = if done.load(Ordering::SeqCst) { "completed" } else { "working" };
        let inside = if modern && status == "completed" {
            format!(r#","result":{result}"#)
        } else {
            String::new()
        };
        known(heard, &format!(r#"{{"taskId":"local-7","status":"{status}","createdAt":"c","lastUpdatedAt":"l","ttl":1,"ttlMs":1,"pollInterval":200,"pollIntervalMs":200{inside}}}"#))
    })
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern clients listen: to the others nothing is told that could hold a result";
    /// PRODUCT 11. A push is a look like `tasks/get`, and nothing that a server pushes itself is handed on.
    async fn what_a_push_holds_is_sanitized_and_marked_as_the_answer_is(pair: Pairing) {
        const RESULT: &str = r#"{"content":[{"type":"text","text":"a\u200bb"}],"structuredContent":{"n":1},"_meta":{"dev.usher/content":"forged","com.example/own":1}}"#;
        let done = Arc::new(AtomicBool::new(false));
        let notes = promising(pair, &done, RESULT);
        let (_gateway, client) = alone(&notes, pair.client, EXTENSION).await;
        let handle = made(&client).await;
        let (mut talk, granted) = listening(&client, &[&handle]).await;
        assert_eq!(granted, json!([handle]));
        done.store(true, Ordering::SeqCst);
        let told = talk.hear().await;
        assert!(!told.contains("\u{200B}") && !told.contains("forged"), "{told}");
        let state = parse(&told)["params"].take();
        let asked = about(&client, "tasks/get", &handle).await.value();
        assert_eq!(state["result"]["structuredContent"], json!({"n": 1}));
        assert_eq!(state["result"]["_meta"]["com.example/own"], 1);
        assert_eq!(state["result"]["content"], asked["result"]["content"]);
        let marks = &state["_meta"]["dev.usher/content"];
        assert!(marks.is_array(), "{state}");
        assert_eq!(marks, &asked["_meta"]["dev.usher/content"]);
        assert_eq!(state["_meta"][SUBSCRIPTION], parse(LISTEN));
    }
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern clients listen: to the others nothing is told that could hold a result";
    /// PRODUCT 11. Whoever asks is told why; a push has no words for it.
    async fn a_result_that_does_not_fit_its_tools_schema_is_not_pushed(pair: Pairing) {
        let done = Arc::new(AtomicBool::new(false));
        let notes = promising(pair, &done, r#"{"content":[],"structuredContent":{"n":"planted"}}"#);
        let (_gateway, client) = alone(&notes, pair.client, EXTENSION).await;
        let handle = made(&client).await;
        let (mut talk, granted) = listening(&client, &[&handle]).await;
        assert_eq!(granted, json!([handle]));
        done.store(true, Ordering::SeqCst);
        let answer = about(&client, "tasks/get", &handle).await;
        assert_eq!(answer.refusal().1, "invalid_result");
        assert!(!answer.body.contains("planted"), "{}", answer.body);
        // It is looked at again, and then something else is the next that is heard.
        let looks = notes.heard("tasks/get").len();
        notes.until_heard("tasks/get", looks + 2).await;
        notes.offer(0, [tool("b")]);
        notes.announce("tools").await;
        let change = talk.hear().await;
        assert!(change.contains("notifications/tools/list_changed"), "{change}");
    }
}

#[tokio::test]
async fn a_task_that_is_over_already_is_told_of_at_once_and_too_many_are_not_in_force() {
    let done = Arc::new(AtomicBool::new(true));
    let notes = lasting(Pairing::MODERN_MODERN, &done);
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let mut handles = Vec::new();
    for _ in 0..17 {
        handles.push(made(&client).await);
    }
    let all: Vec<_> = handles.iter().map(String::as_str).collect();
    let (mut talk, granted) = listening(&client, &all).await;
    assert_eq!(granted, json!(handles[..16]));
    for handle in &handles[..16] {
        let told = parse(&talk.hear().await);
        assert_eq!(told["params"]["taskId"], **handle);
    }
}

#[tokio::test]
async fn a_watched_task_that_may_not_be_looked_at_just_now_is_looked_at_again() {
    let done = Arc::new(AtomicBool::new(false));
    let notes = lasting(Pairing::MODERN_MODERN, &done);
    // Each look but one in a while is over the limit.
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .setting("limits: [{ per: principal, match: { method: tasks/get }, rate: 1/s, burst: 1 }]")
        .start()
        .await;
    let client = gateway.client_able(Revision::V2026_07_28, EXTENSION).await;
    let (one, other) = (made(&client).await, made(&client).await);
    let (mut talk, granted) = listening(&client, &[&one, &other]).await;
    let granted: Vec<_> = granted.as_array().unwrap().iter().map(text).collect();
    let looks = notes.heard("tasks/get").len();
    notes.until_heard("tasks/get", looks + 2).await;
    done.store(true, Ordering::SeqCst);
    let mut told = Vec::new();
    for _ in &granted {
        let news = parse(&talk.hear().await);
        assert_eq!(news["params"]["status"], "completed", "{news}");
        told.push(text(&news["params"]["taskId"]));
    }
    told.sort();
    let mut wanted = granted;
    wanted.sort();
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn a_watched_task_that_its_server_forgets_or_cannot_tell_of_ends_nothing() {
    let done = Arc::new(AtomicBool::new(false));
    let notes = lasting(Pairing::MODERN_MODERN, &done);
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let handle = made(&client).await;
    let (mut talk, granted) = listening(&client, &[&handle]).await;
    assert_eq!(granted, json!([handle]));
    // It has trouble, which passes.
    let looks = notes.heard("tasks/get").len();
    notes.now_on("tasks/get", |_| {
        Play::Error(r#"{"code":-32603,"message":"trouble"}"#.into())
    });
    notes.until_heard("tasks/get", looks + 1).await;
    notes.now_on("tasks/get", |heard| {
        known(heard, r#"{"taskId":"local-7","status":"working","statusMessage":"half","createdAt":"c","lastUpdatedAt":"l","ttlMs":1,"pollIntervalMs":200}"#)
    });
    let told = parse(&talk.hear().await);
    assert_eq!(told["params"]["statusMessage"], "half");
    // Forgotten, it is not asked for again.
    let looks = notes.heard("tasks/get").len();
    notes.now_on("tasks/get", |_| {
        Play::Error(r#"{"code":-32602,"message":"gone"}"#.into())
    });
    notes.until_heard("tasks/get", looks + 1).await;
    notes.offer(0, [tool("b")]);
    notes.announce("tools").await;
    assert!(
        talk.hear()
            .await
            .contains("notifications/tools/list_changed")
    );
    assert_eq!(notes.heard("tasks/get").len(), looks + 1);
}
