//! Tasks, in both designs and across them (PROTOCOL D3): handles of our own, and the honest answer where there is none.

mod answered;
mod asked;
mod broken;
mod killing;
mod watching;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::harness::{
    Answer, Client, Gateway, Heard, Pairing, Play, Revision, Turn, Upstream, eventually, member,
    quote, tool,
};

const EXTENSION: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const MODERN: &str = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const CORE: &str =
    r#"{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

/// An upstream of the extension whose tool `slow` becomes task `local-7`, which has completed by the time one asks.
pub(crate) fn modern() -> Upstream {
    modern_at(Upstream::http(Revision::V2026_07_28))
}

/// The same, however it is reached.
fn modern_at(server: Upstream) -> Upstream {
    server
        .capabilities(MODERN)
        .tools([tool("slow")])
        .on("tools/call", |_| Play::Raw(
            r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"local-7","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":5}}"#.into(),
        ))
        .on("tasks/get", |heard| known(heard, r#"{"taskId":"local-7","status":"completed","createdAt":"c","lastUpdatedAt":"l","ttlMs":60000,"result":{"content":[{"type":"resource_link","uri":"note://1","name":"n"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"hidden"}}}}"#))
        .on("tasks/update", |heard| known(heard, "{}"))
        .on("tasks/cancel", |heard| known(heard, "{}"))
}

fn known(heard: &Heard, result: &str) -> Play {
    if heard.text("taskId").as_deref() == Some("local-7") {
        Play::Result(result.to_owned())
    } else {
        Play::Error(r#"{"code":-32602,"message":"no task of that name"}"#.into())
    }
}

/// An upstream of 2025-11-25 with a tool `slow` that must be run as a task, and one that may be.
pub(crate) fn core() -> Upstream {
    core_at(Upstream::http(Revision::V2025_11_25))
}

/// The same, however it is reached.
fn core_at(server: Upstream) -> Upstream {
    let executed = |name: &str, support: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"execution":{{"taskSupport":"{support}"}}}}"#
        )
    };
    let polls = Arc::new(AtomicUsize::new(0));
    server
        .capabilities(CORE)
        .tools([executed("slow", "required"), executed("maybe", "optional")])
        .on("tools/call", |heard| {
            if heard.value()["task"].is_null() {
                if heard.text("name").as_deref() == Some("slow") {
                    return Play::Error(r#"{"code":-32601,"message":"only as a task"}"#.into());
                }
                return Play::Result(r#"{"content":[]}"#.into());
            }
            Play::Result(r#"{"task":{"taskId":"local-7","status":"working","createdAt":"c","lastUpdatedAt":"l","ttl":60000,"pollInterval":50},"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait"}}"#.into())
        })
        .on("tasks/get", move |heard| {
            let done = polls.fetch_add(1, Ordering::SeqCst) > 0;
            let status = if done { "failed" } else { "working" };
            known(heard, &format!(r#"{{"taskId":"local-7","status":"{status}","createdAt":"c","lastUpdatedAt":"l","ttl":60000,"pollInterval":50}}"#))
        })
        .on("tasks/result", |heard| known(heard, r#"{"content":[{"type":"resource_link","uri":"note://1","name":"n"}],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"local-7"}}}"#))
        .on("tasks/cancel", |heard| known(heard, r#"{"taskId":"local-7","status":"cancelled","createdAt":"c","lastUpdatedAt":"l","ttl":60000}"#))
}

pub(crate) async fn about(client: &Client, method: &str, handle: &str) -> Answer {
    let params = format!(r#"{{"taskId":{}}}"#, quote(handle));
    client.ask(method, &params).await
}

async fn alone(upstream: &Upstream, revision: Revision, capabilities: &str) -> (Gateway, Client) {
    let gateway = Gateway::of().upstream("notes", upstream).start().await;
    let client = gateway.client_able(revision, capabilities).await;
    (gateway, client)
}

fn text(value: &serde_json::Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}

/// Feature: Tasks (MM)
#[tokio::test]
async fn modern_client_modern_server_a_task_is_known_by_a_handle_of_ours() {
    let notes = modern();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let made = client.call("notes_slow", "{}").await.value();
    assert_eq!(made["resultType"], "task");
    assert_eq!(made["ttlMs"], serde_json::Value::Null);
    let handle = text(&made["taskId"]);
    assert!(!made.to_string().contains("local-7"), "{made}");
    let heard = notes.last("tools/call");
    let declared = heard
        .meta("io.modelcontextprotocol/clientCapabilities")
        .unwrap();
    assert_eq!(declared, EXTENSION);

    let state = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(state["resultType"], "complete");
    assert_eq!(
        (&state["taskId"], &state["ttlMs"]),
        (&made["taskId"], &60_000.into())
    );
    assert_eq!(state["result"]["content"][0]["uri"], "notes+note://1");
    assert!(!state.to_string().contains("hidden"), "{state}");
    // The harness holds `Mcp-Name` to the upstream's id.
    assert_eq!(notes.last("tasks/get").value()["taskId"], "local-7");

    let update = format!(
        r#"{{"taskId":{},"inputResponses":{{"k":{{"action":"accept"}}}}}}"#,
        quote(&handle)
    );
    let told = client.ask("tasks/update", &update).await.value();
    assert_eq!(told["resultType"], "complete");
    assert_eq!(
        notes.last("tasks/update").value()["inputResponses"]["k"]["action"],
        "accept"
    );
    assert_eq!(
        about(&client, "tasks/cancel", &handle).await.value()["resultType"],
        "complete"
    );
    assert_eq!(notes.last("tasks/cancel").value()["taskId"], "local-7");
    for method in ["tasks/result", "tasks/list"] {
        let answer = about(&client, method, &handle).await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (404, -32601),
            "{method}"
        );
    }
}

/// Declares tasks and forms.
const ASKABLE: &str = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

#[tokio::test]
async fn a_modern_task_asks_for_what_was_declared_under_its_servers_own_keys() {
    let notes = modern().on("tasks/get", |heard| known(heard, r#"{"taskId":"local-7","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttlMs":1,"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}}}"#));
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client_able(Revision::V2026_07_28, ASKABLE).await;
    let made = client.call("notes_slow", "{}").await.value();
    let handle = text(&made["taskId"]);
    let state = about(&client, "tasks/get", &handle).await.value();
    let asked = &state["inputRequests"]["k"];
    assert_eq!(
        (&asked["method"], &asked["params"]["message"]),
        (&"elicitation/create".into(), &"[notes] Sure?".into())
    );
    // Whoever did not declare it is not asked.
    let mute = gateway.client_able(Revision::V2026_07_28, EXTENSION).await;
    let refused = about(&mute, "tasks/get", &handle).await;
    assert_eq!(refused.refusal().1, "upstream_protocol_error");
}

/// A core upstream whose task asks once on the stream of its result, and completes when it is answered.
fn inquiring() -> Upstream {
    let answered = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&answered);
    core()
        .on("tasks/get", move |heard| {
            let status = if answered.load(Ordering::SeqCst) { "completed" } else { "input_required" };
            known(heard, &format!(r#"{{"taskId":"local-7","status":"{status}","createdAt":"c","lastUpdatedAt":"l","ttl":1,"pollInterval":50}}"#))
        })
        .on("tasks/result", move |_| {
            let done = Arc::clone(&done);
            Play::live(move |turn: Turn| {
                let done = Arc::clone(&done);
                async move {
                    if !done.load(Ordering::SeqCst) {
                        let answer = turn.ask("elicitation/create", r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"local-7"}}}"#).await;
                        assert_eq!(answer["result"]["content"]["n"], "yes");
                        done.store(true, Ordering::SeqCst);
                    }
                    turn.result(r#"{"content":[{"type":"text","text":"sure"}]}"#).await;
                }
            })
        })
}

const SURE: &str = r#"{"action":"accept","content":{"n":"yes"}}"#;

#[tokio::test]
async fn modern_client_legacy_server_what_a_task_asks_stands_in_its_state_until_it_is_answered() {
    let notes = inquiring();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, ASKABLE).await;
    let made = client.call("notes_slow", "{}").await.value();
    let handle = text(&made["taskId"]);
    let first = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(first["status"], "input_required");
    let (key, asked) = first["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    assert_eq!(asked["params"]["message"], "[notes] Sure?");
    assert!(!first.to_string().contains("local-7"), "{first}");
    let again = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(again["inputRequests"], first["inputRequests"]);
    assert_eq!(notes.heard("tasks/result").len(), 1);
    let update = format!(
        r#"{{"taskId":{},"inputResponses":{{{}:{SURE},"other":{{}}}}}}"#,
        quote(&handle),
        quote(key)
    );
    assert_eq!(
        client.ask("tasks/update", &update).await.value()["resultType"],
        "complete"
    );
    let state = eventually("the task completes", async || {
        let state = about(&client, "tasks/get", &handle).await.value();
        (state["status"] == "completed").then_some(state)
    })
    .await;
    assert_eq!(state["result"]["content"][0]["text"], "sure");
}

#[tokio::test]
async fn a_tool_that_runs_as_a_task_asks_a_client_without_tasks_like_any_other() {
    let notes = inquiring();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, r#"{"elicitation":{}}"#).await;
    // The task asks as soon as it is looked at.
    let asked = client.call("notes_slow", "{}").await.value();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, _) = asked["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    let params = format!(
        r#"{{"name":"notes_slow","arguments":{{}},"inputResponses":{{{}:{SURE}}},"requestState":{}}}"#,
        quote(key),
        asked["requestState"]
    );
    assert_eq!(client.ask("tools/call", &params).await.text(), "sure");
    assert_eq!(notes.heard("tools/call").len(), 1);
    assert!(notes.heard("tasks/cancel").is_empty());
}

#[tokio::test]
async fn legacy_client_legacy_server_a_task_asks_on_the_stream_of_its_result() {
    let notes = inquiring();
    let (_gateway, client) = alone(&notes, Revision::V2025_11_25, r#"{"elicitation":{}}"#).await;
    let params = r#"{"name":"notes_slow","arguments":{},"task":{}}"#;
    let made = client.ask("tools/call", params).await.value();
    let handle = made["task"]["taskId"].to_string();
    let mut talk = client
        .ask("tasks/result", &format!(r#"{{"taskId":{handle}}}"#))
        .begin()
        .await;
    let question = loop {
        let frame = talk.hear().await;
        if frame.contains("elicitation/create") {
            break frame;
        }
    };
    assert!(!question.contains("local-7"), "{question}");
    let id = member(&question, "id").unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{SURE}}}"#);
    assert_eq!(client.post(&answer, &[]).await.status, 202);
    let last = loop {
        let frame = talk.hear().await;
        if frame.contains("\"result\"") {
            break frame;
        }
    };
    assert!(last.contains("sure"), "{last}");
}

#[tokio::test]
async fn an_altered_foreign_or_unknown_handle_gets_one_answer_and_no_server_hears_of_it() {
    let notes = modern();
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client_able(Revision::V2026_07_28, EXTENSION).await;
    let made = client.call("notes_slow", "{}").await.value();
    let handle = text(&made["taskId"]);
    let mut answers = Vec::new();
    for at in 0..handle.len() {
        let mut altered = handle.clone().into_bytes();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        answers.push(about(&client, "tasks/get", &altered).await);
    }
    for unknown in ["local-7", "786512e2-9e0d-44bd-8f29-789f320fe840"] {
        answers.push(about(&client, "tasks/get", unknown).await);
        answers.push(about(&client, "tasks/cancel", unknown).await);
    }
    let mut elsewhere = client.clone();
    elsewhere.path = "/mcp/u/notes".into();
    answers.push(about(&elsewhere, "tasks/get", &handle).await);
    assert!(notes.heard("tasks/get").is_empty() && notes.heard("tasks/cancel").is_empty());
    // A handle that opens, of a task that its server has forgotten.
    notes.now_on("tasks/get", |_| {
        Play::Error(r#"{"code":-32602,"message":"Task local-7 not found"}"#.into())
    });
    answers.push(about(&client, "tasks/get", &handle).await);
    for answer in answers {
        assert_eq!(answer.refusal(), (-32602, "unknown_name".to_owned()));
        assert_eq!(answer.error()["message"], "no such task");
    }
}

#[tokio::test]
async fn a_modern_client_that_did_not_declare_tasks_is_told_to() {
    let notes = modern();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, "{}").await;
    let answer = about(&client, "tasks/get", "x").await;
    assert_eq!((answer.status, answer.refusal().0), (400, -32021));
    let error = answer.error();
    let needed = &error["data"]["requiredCapabilities"]["extensions"];
    assert!(
        needed["io.modelcontextprotocol/tasks"].is_object(),
        "{error}"
    );
    // Nor is a task taken for it that was not declared.
    assert_eq!(
        client.call("notes_slow", "{}").await.tool_error(),
        "upstream_protocol_error"
    );
}

#[tokio::test]
async fn tasks_are_not_offered_where_no_server_has_them() {
    for pair in [
        Pairing::MODERN_MODERN,
        Pairing::LEGACY_LEGACY,
        Pairing::MODERN_LEGACY,
        Pairing::LEGACY_MODERN,
    ] {
        let plain = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = alone(&plain, pair.client, EXTENSION).await;
        let answer = about(&client, "tasks/get", "x").await;
        assert_eq!(answer.refusal().0, -32601, "{pair:?}");
        assert_eq!(
            answer.status,
            if pair.client_is_modern() { 404 } else { 200 }
        );
        let params = r#"{"name":"notes_t","arguments":{},"task":{"ttl":1}}"#;
        assert_eq!(client.ask("tools/call", params).await.text(), "called t");
        assert!(plain.last("tools/call").value()["task"].is_null());
    }
}

#[tokio::test]
async fn a_task_that_is_null_is_none_that_is_wished_for() {
    let notes = core();
    let (_gateway, client) = alone(&notes, Revision::V2025_11_25, "{}").await;
    let params = r#"{"name":"notes_maybe","arguments":{},"task":null}"#;
    let told = client.ask("tools/call", params).await.value();
    assert!(told["content"].is_array(), "{told}");
    let sent = notes.last("tools/call").value();
    assert!(sent.get("task").is_none(), "{sent}");
}

/// Feature: Tasks (LL)
#[tokio::test]
async fn legacy_client_legacy_server_tasks_pass_with_ids_of_ours() {
    let notes = core();
    let (_gateway, client) = alone(&notes, Revision::V2025_11_25, "{}").await;
    let greeting = client.greeting.as_ref().unwrap().value();
    let tasks = &greeting["capabilities"]["tasks"];
    assert!(
        tasks["requests"]["tools"]["call"].is_object() && tasks["cancel"].is_object(),
        "{greeting}"
    );
    assert!(
        greeting["capabilities"]["extensions"].is_null(),
        "{greeting}"
    );
    let listed = client.ask("tools/list", "{}").await.value();
    assert_eq!(listed["tools"][0]["execution"]["taskSupport"], "required");

    let params = r#"{"name":"notes_slow","arguments":{"a":1.0},"task":{"ttl":60000}}"#;
    let made = client.ask("tools/call", params).await.value();
    assert_eq!(made["task"]["ttl"], 60_000, "{made}");
    assert_eq!(made["task"]["pollInterval"], 50);
    assert_eq!(
        made["_meta"]["io.modelcontextprotocol/model-immediate-response"],
        "wait"
    );
    assert!(!made.to_string().contains("local-7"), "{made}");
    assert_eq!(notes.last("tools/call").value()["task"]["ttl"], 60_000);
    let handle = text(&made["task"]["taskId"]);

    about(&client, "tasks/get", &handle).await;
    let state = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(
        (&state["taskId"], &state["status"]),
        (&made["task"]["taskId"], &"failed".into())
    );
    assert!(
        state["ttlMs"].is_null() && state["ttl"] == 60_000,
        "{state}"
    );
    let result = about(&client, "tasks/result", &handle).await.value();
    assert_eq!(result["content"][0]["uri"], "notes+note://1");
    let related = &result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
    assert_eq!(related, &made["task"]["taskId"]);
    let cancelled = about(&client, "tasks/cancel", &handle).await.value();
    assert_eq!(
        (&cancelled["taskId"], &cancelled["status"]),
        (&made["task"]["taskId"], &"cancelled".into())
    );
    let unknown = about(&client, "tasks/get", "local-7").await;
    assert_eq!(unknown.refusal().0, -32602);
    assert_eq!(
        about(&client, "tasks/update", &handle).await.refusal().0,
        -32601
    );
}

#[tokio::test]
async fn a_list_of_tasks_holds_what_this_client_made_and_nothing_else() {
    let notes = core();
    let (gateway, client) = alone(&notes, Revision::V2025_11_25, "{}").await;
    let params = r#"{"name":"notes_slow","arguments":{},"task":{}}"#;
    let mut handles = Vec::new();
    for _ in 0..22 {
        let made = client.ask("tools/call", params).await.value();
        handles.push(text(&made["task"]["taskId"]));
    }
    assert_eq!(client.all("tasks/list", "taskId").await, handles);
    let first = client.ask("tasks/list", "{}").await.value();
    assert_eq!(first["tasks"].as_array().unwrap().len(), 20);
    assert_eq!(first["tasks"][0]["ttl"], 60_000);
    assert!(!first.to_string().contains("local-7"));
    let other = gateway.client(Revision::V2025_11_25).await;
    assert_eq!(
        other.ask("tasks/list", "{}").await.value(),
        serde_json::json!({"tasks": []})
    );
    assert_eq!(
        other
            .ask("tasks/list", r#"{"cursor":"x"}"#)
            .await
            .refusal()
            .0,
        -32602
    );
    notes.now_on("tasks/get", |_| {
        Play::Error(r#"{"code":-32602,"message":"gone"}"#.into())
    });
    assert!(client.all("tasks/list", "taskId").await.is_empty());
    assert!(
        notes.heard("tasks/list").is_empty(),
        "it would hold everybody's"
    );
}

/// SECURITY 7: actions are per class, per upstream and per tool.
#[tokio::test]
async fn states_of_tasks_are_judged_by_the_rules_of_their_server_and_tool_alone_and_in_a_list() {
    let notes = core().on("tasks/get", |heard| {
        known(heard, r#"{"taskId":"local-7","status":"working","statusMessage":"about falcon-7, 4111 7392 5018 3747","createdAt":"c","lastUpdatedAt":"l","ttl":60000}"#)
    });
    let gateway = Gateway::of()
        .upstream_with(
            "notes",
            &notes,
            "sanitize: { classes: { personal_checked: off }, tools: { maybe: { personal_checked: redact } } }",
        )
        .start()
        .await;
    let client = gateway.client_able(Revision::V2025_11_25, "{}").await;
    let mut handles = Vec::new();
    for tool in ["notes_slow", "notes_maybe"] {
        let params = format!(r#"{{"name":"{tool}","arguments":{{}},"task":{{}}}}"#);
        let made = client.ask("tools/call", &params).await.value();
        handles.push(text(&made["task"]["taskId"]));
    }
    let listed = client.ask("tasks/list", "{}").await.value();
    for (at, kept) in [(0, true), (1, false)] {
        let alone = about(&client, "tasks/get", &handles[at]).await.value();
        for state in [&alone, &listed["tasks"][at]] {
            assert_eq!(state["taskId"], handles[at]);
            let said = text(&state["statusMessage"]);
            assert!(said.starts_with("about falcon-7"), "{state}");
            assert_eq!(said.contains("4111"), kept, "{state}");
        }
    }
}

/// Feature: Tasks (LM)
#[tokio::test]
async fn legacy_clients_hear_nothing_of_tasks_that_only_modern_servers_have() {
    let notes = modern();
    let (_gateway, client) = alone(&notes, Revision::V2025_11_25, EXTENSION).await;
    let greeting = client.greeting.as_ref().unwrap().value();
    assert!(
        greeting["capabilities"]["tasks"].is_null()
            && greeting["capabilities"]["extensions"].is_null(),
        "{greeting}"
    );
    notes.as_usual("tools/call");
    assert_eq!(client.call("notes_slow", "{}").await.text(), "called slow");
    let declared = notes
        .last("tools/call")
        .meta("io.modelcontextprotocol/clientCapabilities");
    assert_eq!(declared.unwrap(), "{}");
    assert_eq!(about(&client, "tasks/get", "x").await.refusal().0, -32601);
}

/// Feature: Tasks (ML)
#[tokio::test]
async fn modern_client_legacy_server_a_tool_that_only_runs_as_a_task_becomes_one() {
    let notes = core();
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, EXTENSION).await;
    let face = client.ask("server/discover", "{}").await.value();
    assert!(
        face["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(),
        "{face}"
    );
    assert!(face["capabilities"]["tasks"].is_null());
    let made = client.call("notes_slow", r#"{"a":1.0}"#).await.value();
    assert_eq!(
        (&made["resultType"], &made["ttlMs"], &made["pollIntervalMs"]),
        (&"task".into(), &60_000.into(), &50.into())
    );
    assert!(
        made["ttl"].is_null() && !made.to_string().contains("local-7"),
        "{made}"
    );
    assert!(notes.last("tools/call").value()["task"].is_object());
    let handle = text(&made["taskId"]);
    let working = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(
        (&working["status"], &working["resultType"]),
        (&"working".into(), &"complete".into())
    );
    assert!(notes.heard("tasks/result").is_empty());
    // `failed` with a tool's result has completed in this design.
    let state = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(
        (&state["status"], &state["result"]["isError"]),
        (&"completed".into(), &true.into())
    );
    assert_eq!(state["result"]["content"][0]["uri"], "notes+note://1");
    assert!(!state.to_string().contains("local-7"), "{state}");
    // And a JSON-RPC error is what has failed.
    notes.now_on("tasks/result", |_| {
        Play::Error(r#"{"code":-32603,"message":"broke","data":{"uri":"note://1"}}"#.into())
    });
    let state = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(
        (&state["status"], &state["error"]["code"]),
        (&"failed".into(), &(-32603).into())
    );
    assert_eq!(state["error"]["data"]["uri"], "notes+note://1");
    // Nor is a code told that this revision must not have (PROTOCOL A6).
    notes.now_on("tasks/result", |_| {
        Play::Error(r#"{"code":-32002,"message":"gone"}"#.into())
    });
    let state = about(&client, "tasks/get", &handle).await.value();
    assert_eq!(state["error"]["code"], -32602, "{state}");
    // Over is no error to cancel here.
    notes.now_on("tasks/cancel", |_| {
        Play::Error(r#"{"code":-32602,"message":"already over"}"#.into())
    });
    assert_eq!(
        about(&client, "tasks/cancel", &handle).await.value()["resultType"],
        "complete"
    );
    let update = format!(r#"{{"taskId":{},"inputResponses":{{}}}}"#, quote(&handle));
    assert_eq!(
        client.ask("tasks/update", &update).await.value()["resultType"],
        "complete"
    );
    // A tool that may do without is called without.
    assert!(client.call("notes_maybe", "{}").await.value()["content"].is_array());
}

#[tokio::test]
async fn clients_without_tasks_get_what_comes_of_a_tool_that_only_runs_as_one() {
    for revision in [Revision::V2026_07_28, Revision::V2025_06_18] {
        let notes = core();
        let (_gateway, client) = alone(&notes, revision, "{}").await;
        let result = client.call("notes_slow", "{}").await.value();
        assert_eq!(
            (&result["isError"], &result["content"][0]["uri"]),
            (&true.into(), &"notes+note://1".into()),
            "{result}"
        );
        assert!(!result.to_string().contains("local-7"), "{result}");
        assert_eq!(notes.heard("tools/call").len(), 1);
        assert!(notes.heard("tasks/cancel").is_empty());
    }
}

#[tokio::test]
async fn giving_up_on_a_tool_that_runs_as_a_task_cancels_the_task_once() {
    let notes = core().on("tasks/get", |heard| known(heard, r#"{"taskId":"local-7","status":"working","createdAt":"c","lastUpdatedAt":"l","ttl":1,"pollInterval":50}"#));
    let (_gateway, client) = alone(&notes, Revision::V2026_07_28, "{}").await;
    {
        let call = IntoFuture::into_future(client.call("notes_slow", "{}"));
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            _ = notes.until_heard("tasks/get", 2) => {}
        }
    }
    let told = notes.until_heard("tasks/cancel", 1).await;
    assert_eq!(told.value()["taskId"], "local-7");
    assert_eq!(notes.heard("tools/call").len(), 1);
}
