//! Names that only look like the protocol's are refused wherever the protocol gives names a meaning, and nowhere else.
//! They are SECURITY MSG-3.

use serde_json::{Value, json};

use crate::{
    harness::{Answer, Client, Revision, exchange},
    messages::Scene,
};

/// Posts a body as `client` would, with headers that agree with it.
async fn post(scene: &Scene, client: &Client, body: &Value) -> Answer {
    let method = body["method"].as_str().unwrap_or_default();
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    match &client.session {
        Some(session) => headers.push(("mcp-session-id", session)),
        None => {
            headers.push(("mcp-protocol-version", "2026-07-28"));
            headers.push(("mcp-method", method));
            if let Some(name) = body["params"]["name"].as_str() {
                headers.push(("mcp-name", name));
            }
        }
    }
    let (to, body) = (scene.gateway.address, body.to_string());
    exchange(to, http::Method::POST, "/mcp", &headers, body.as_bytes()).await
}

/// A request as `client` spells it, with these params and these more members in their `_meta`.
fn request(client: &Client, method: &str, params: &Value, in_meta: &Value) -> Value {
    let (body, _) = client.spelled(method, &params.to_string());
    let mut body: Value = serde_json::from_str(&body).unwrap();
    for (key, value) in in_meta.as_object().unwrap() {
        body["params"]["_meta"][key] = value.clone();
    }
    body
}

fn confused(answer: &Answer, what: &Value) {
    assert_eq!(answer.status, 400, "{what}: {answer:?}");
    let refusal = answer.refusal();
    assert_eq!(refusal, (-32600, "confusable_member".to_owned()), "{what}");
    // Only a request has an id that an answer can name; of a batch it is that of the one.
    if what.is_object() {
        let id = what.get("method").and(what.get("id"));
        assert_eq!(answer.id(), id.map(Value::to_string), "{what}");
    }
}

#[tokio::test]
async fn msg_3_in_params_and_in_the_objects_that_stand_in_them() {
    let scene = Scene::new().await;
    let reference = json!({"type": "ref/prompt", "name": "notes_p"});
    let argument = json!({"name": "a", "value": "x"});
    let with = |mut object: Value, name: &str| {
        object[name] = json!("x");
        object
    };
    let completion = |reference, argument, context: Value| json!({"ref": reference, "argument": argument, "context": context});
    let call = json!({"name": "notes_t", "arguments": {}});
    let mut cases = Vec::new();
    for name in [
        "Name",
        "NAME",
        "Arguments",
        "_META",
        "ｎame",
        "TaskId",
        "InputResponses",
    ] {
        cases.push(("tools/call", with(call.clone(), name)));
    }
    for name in ["Name", "ｎame", "Type", "URI"] {
        let reference = with(reference.clone(), name);
        let params = completion(reference, argument.clone(), json!({}));
        cases.push(("completion/complete", params));
    }
    for name in ["Name", "VALUE"] {
        let argument = with(argument.clone(), name);
        let params = completion(reference.clone(), argument, json!({}));
        cases.push(("completion/complete", params));
    }
    let context = json!({"arguments": {}, "Arguments": {}});
    let params = completion(reference.clone(), argument.clone(), context);
    cases.push(("completion/complete", params));
    for answer in [
        json!({"Action": "accept"}),
        json!({"action": "accept", "_Meta": {}}),
        json!({"role": "user", "model": "m", "content": {"type": "text", "Text": "x"}}),
        json!({"roots": [{"uri": "file:///a", "Uri": "file:///b"}]}),
    ] {
        let mut params = call.clone();
        params["inputResponses"] = json!({ "q": answer });
        cases.push(("tools/call", params));
    }
    cases.push(("tools/list", json!({"Cursor": "x"})));
    cases.push((
        "logging/setLevel",
        json!({"level": "error", "Level": "debug"}),
    ));
    cases.push((
        "subscriptions/listen",
        json!({"notifications": {"ToolsListChanged": true}}),
    ));
    for client in &scene.clients {
        for (method, params) in &cases {
            let body = request(client, method, params, &json!({}));
            confused(&post(&scene, client, &body).await, &body);
        }
    }
    assert!(scene.notes.heard("tools/call").is_empty());
    assert!(scene.notes.heard("completion/complete").is_empty());
}

#[tokio::test]
async fn msg_3_in_meta_and_in_what_a_client_says_of_itself() {
    let scene = Scene::new().await;
    let call = json!({"name": "notes_t", "arguments": {}});
    for client in &scene.clients {
        for name in [
            "ProgressToken",
            "progressTo\u{212a}en",
            "TraceParent",
            "Baggage",
            "IO.modelcontextprotocol/logLevel",
            "io.modelcontextprotocol/ProtocolVersion",
            "io.modelcontextprotocol/clientcapabilities",
        ] {
            let body = request(client, "tools/call", &call, &json!({ name: "x" }));
            confused(&post(&scene, client, &body).await, &body);
        }
        for (key, value) in [
            (
                "clientInfo",
                json!({"name": "a", "Name": "b", "version": "1"}),
            ),
            (
                "clientInfo",
                json!({"name": "a", "version": "1", "icons": [{"Src": "x"}]}),
            ),
            ("clientCapabilities", json!({"Sampling": {}})),
            ("clientCapabilities", json!({"sampling": {"Tools": {}}})),
        ] {
            let key = format!("io.modelcontextprotocol/{key}");
            let body = request(client, "tools/call", &call, &json!({ key: value }));
            confused(&post(&scene, client, &body).await, &body);
        }
    }
    assert!(scene.notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn msg_3_in_initialize_in_notifications_and_in_answers() {
    let scene = Scene::new().await;
    let [legacy, _] = &scene.clients;
    let sound = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    });
    let open = |params: &Value| json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    for (place, name) in [
        ("", "ProtocolVersion"),
        ("", "Capabilities"),
        ("/capabilities", "Roots"),
        ("/clientInfo", "Version"),
    ] {
        let mut params = sound.clone();
        params.pointer_mut(place).unwrap()[name] = json!({});
        let body = open(&params);
        confused(&post(&scene, legacy, &body).await, &body);
    }
    // A value that is none hides no name that is none.
    let mut params = sound.clone();
    params["_meta"] = json!(null);
    params["ProtocolVersion"] = json!("2024-11-05");
    let body = open(&params);
    confused(&post(&scene, legacy, &body).await, &body);
    assert_eq!(post(&scene, legacy, &open(&sound)).await.status, 200);
    for body in [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "RequestId": 2}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "Progress": 2}}),
        json!({"jsonrpc": "2.0", "id": "x", "result": {"Action": "accept"}}),
    ] {
        confused(&post(&scene, legacy, &body).await, &body);
    }
    // In a batch one such frame is no message of the batch's, and none of the others is begun.
    let old = scene.gateway.client(Revision::V2025_03_26).await;
    let call = request(&old, "tools/call", &json!({"name": "notes_t"}), &json!({}));
    let mut other = call.clone();
    other["id"] = json!("other");
    other["params"]["Name"] = json!("x");
    let batch = json!([call, other]);
    confused(&post(&scene, &old, &batch).await, &batch);
    let told =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"RequestId": 1}});
    let batch = json!([call, told]);
    confused(&post(&scene, &old, &batch).await, &batch);
    assert!(scene.notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn msg_3_what_vendors_say_in_messages_of_their_own_is_data() {
    let scene = Scene::new().await;
    let [legacy, _] = &scene.clients;
    let told = json!({"jsonrpc": "2.0", "method": "notifications/com.example/x", "params": {"Status": "x"}});
    assert_eq!(post(&scene, legacy, &told).await.status, 202);
    let asked =
        json!({"jsonrpc": "2.0", "id": 1, "method": "com.example/x", "params": {"Level": 1}});
    let answer = post(&scene, legacy, &asked).await;
    assert_eq!(
        (answer.status, answer.error()["code"].as_i64()),
        (200, Some(-32601))
    );
    // But what every message has is the protocol's in theirs, too.
    let traced = json!({"jsonrpc": "2.0", "id": 1, "method": "com.example/x", "params": {"_meta": {"Traceparent": "x"}}});
    confused(&post(&scene, legacy, &traced).await, &traced);
}

#[tokio::test]
async fn msg_3_data_may_be_named_anything() {
    let scene = Scene::new().await;
    for client in &scene.clients {
        let named = json!({"Name": 1, "METHOD": 2, "_META": 3, "ｎame": 4});
        let vendor = json!({"com.example/ProgressToken": named, "com.example/x": named});
        let params = json!({"name": "notes_t", "arguments": named});
        let body = request(client, "tools/call", &params, &vendor);
        let answer = post(&scene, client, &body).await;
        assert_eq!(answer.text(), "called t");
        let heard = scene.notes.last("tools/call");
        assert_eq!(heard.value()["arguments"], named);
        assert_eq!(heard.value()["_meta"]["com.example/x"], named);

        let params = json!({
            "ref": {"type": "ref/prompt", "name": "notes_p"},
            "argument": {"name": "Name", "value": "x"},
            "context": {"arguments": {"Value": "1", "Arguments": "2"}},
        });
        let body = request(client, "completion/complete", &params, &json!({}));
        assert_eq!(post(&scene, client, &body).await.status, 200);
        let heard = scene.notes.last("completion/complete");
        assert_eq!(heard.value()["context"], params["context"]);
    }
}
