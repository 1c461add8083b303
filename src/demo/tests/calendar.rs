//! Calendar over Streamable HTTP, as a client of 2025-06-18 sees it.
#![expect(
    clippy::disallowed_types,
    reason = "tests compare messages as documents"
)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, assert_fits_schema, failure, send};
use crate::{
    demo::{calendar::Calendar, http, sessions::Sessions},
    tasks::Tasks,
};

/// A client with a session.
struct Client {
    url: String,
    session: String,
}

async fn served() -> (Arc<Calendar>, String) {
    let tasks = Tasks::new();
    let calendar = Arc::new(Calendar::new());
    let face = http::Face::Sessions(Sessions::new(calendar.clone(), tasks.clone()));
    let url = http::listen(&tasks, face).await.expect("a free port");
    (calendar, url)
}

async fn post(url: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let kinds = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    send(
        "POST",
        url,
        &[&kinds[..], headers].concat(),
        &body.to_string(),
    )
    .await
}

fn request(id: i64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialize(capabilities: Value) -> Value {
    request(
        0,
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }),
    )
}

impl Client {
    async fn open(url: &str, capabilities: Value) -> Self {
        let mut answer = post(url, &[], &initialize(capabilities)).await;
        let session = answer
            .header("mcp-session-id")
            .expect("a session")
            .to_owned();
        answer.json().await;
        let client = Self {
            url: url.to_owned(),
            session,
        };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.post(&initialized).await.status, 202);
        client
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [
            ("mcp-session-id", &self.session),
            ("mcp-protocol-version", "2025-06-18"),
        ]
    }

    async fn post(&self, body: &Value) -> Answer {
        post(&self.url, &self.headers(), body).await
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        self.post(&request(1, method, params)).await.last().await
    }

    fn call(tool: &str, arguments: Value) -> Value {
        request(
            1,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
    }

    async fn stream(&self) -> Answer {
        let headers = [&self.headers()[..], &[("accept", "text/event-stream")]].concat();
        send("GET", &self.url, &headers, "").await
    }
}

#[tokio::test]
async fn initialize_counters_with_its_revision_and_opens_a_session() {
    let (_, url) = served().await;
    let mut answer = post(&url, &[], &initialize(json!({}))).await;
    let session = answer
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    assert!(session.len() == 32 && session.bytes().all(|b| b.is_ascii_hexdigit()));
    let mut answer = answer.json().await;
    answer["result"]
        .as_object_mut()
        .expect("a result")
        .remove("instructions")
        .expect("instructions");
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 0, "result": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}},
            "serverInfo": {"name": "usher-demo-calendar", "title": "Calendar (demo)", "version": env!("CARGO_PKG_VERSION")},
        }})
    );
    let mut refused = post(
        &url,
        &[],
        &request(0, "initialize", json!({"protocolVersion": "2025-06-18"})),
    )
    .await;
    assert_eq!(refused.header("mcp-session-id"), None);
    assert_eq!(refused.json().await["error"]["code"], -32602);
}

#[tokio::test]
async fn requests_need_a_live_session_and_its_revision() {
    let (_, url) = served().await;
    let ping = request(1, "ping", json!({}));
    let client = Client::open(&url, json!({})).await;
    let session = ("mcp-session-id", client.session.as_str());
    assert_eq!(post(&url, &[], &ping).await.status, 400);
    assert_eq!(
        post(&url, &[("mcp-session-id", "guessed")], &ping)
            .await
            .status,
        404
    );
    assert_eq!(
        post(
            &url,
            &[session, ("mcp-protocol-version", "2025-11-25")],
            &ping
        )
        .await
        .status,
        400
    );
    assert_eq!(post(&url, &[session], &json!([ping])).await.status, 400);
    let unasked = json!({"jsonrpc": "2.0", "id": 9, "result": {}});
    assert_eq!(post(&url, &[session], &unasked).await.status, 400);
    let mut pong = post(&url, &[session], &ping).await;
    assert_eq!(
        (pong.status, pong.json().await),
        (200, json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
    );
    // A newer client's probe: refused without a session, an unknown method within one.
    assert_eq!(
        post(
            &url,
            &[("mcp-protocol-version", "2026-07-28")],
            &request(1, "server/discover", json!({}))
        )
        .await
        .status,
        400
    );
    assert_eq!(
        client.ask("server/discover", json!({})).await["error"]["code"],
        -32601
    );

    assert_eq!(send("DELETE", &url, &[session], "").await.status, 204);
    assert_eq!(client.post(&ping).await.status, 404);
    assert_eq!(send("DELETE", &url, &[session], "").await.status, 404);
}

#[tokio::test]
async fn event_is_created_listed_read_and_deleted() {
    let (calendar, url) = served().await;
    let client = Client::open(&url, json!({})).await;
    let arguments = json!({"title": "Picnic", "date": "2026-09-05", "time": "12:30", "attendees": ["ann@example.org"]});
    let created = client
        .post(&Client::call("create_event", arguments))
        .await
        .last()
        .await;
    let picnic = json!({
        "id": 4, "title": "Picnic", "date": "2026-09-05", "time": "12:30", "attendees": ["ann@example.org"],
    });
    assert_eq!(
        created,
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "content": [{"type": "text", "text": picnic.to_string()}],
            "structuredContent": picnic,
        }})
    );
    assert_fits_schema(&*calendar, "create_event", &created);
    // The calendar is one, whatever the session.
    let other = Client::open(&url, json!({})).await;
    let listed = other
        .post(&Client::call(
            "list_events",
            json!({"from": "2026-09-03", "to": "2026-09-05"}),
        ))
        .await
        .last()
        .await;
    assert_fits_schema(&*calendar, "list_events", &listed);
    assert_eq!(listed["result"]["structuredContent"]["events"][1], picnic);
    let read = client
        .ask(
            "resources/read",
            json!({"uri": "calendar://days/2026-09-05"}),
        )
        .await;
    assert_eq!(
        read["result"]["contents"],
        json!([{
            "uri": "calendar://days/2026-09-05", "mimeType": "application/json", "text": json!([picnic]).to_string(),
        }])
    );
    let prompt = client
        .ask(
            "prompts/get",
            json!({"name": "announce_event", "arguments": {"id": "4"}}),
        )
        .await;
    assert_eq!(
        prompt["result"]["messages"][1]["content"]["resource"]["uri"],
        "calendar://events/4"
    );
    let completed = client.ask("completion/complete", json!({
        "ref": {"type": "ref/prompt", "name": "announce_event"}, "argument": {"name": "id", "value": ""},
    })).await;
    assert_eq!(
        completed["result"]["completion"]["values"],
        json!(["1", "2", "3", "4"])
    );

    let deleted = client
        .post(&Client::call("delete_event", json!({"id": 4})))
        .await
        .last()
        .await;
    assert_fits_schema(&*calendar, "delete_event", &deleted);
    let again = client
        .post(&Client::call("delete_event", json!({"id": 4})))
        .await
        .last()
        .await;
    assert_eq!(
        failure(&again),
        "no event 4; `list_events` lists those there are"
    );
    let gone = client
        .ask("resources/read", json!({"uri": "calendar://events/4"}))
        .await;
    let error = json!({"code": -32002, "message": "resource not found", "data": {"uri": "calendar://events/4"}});
    assert_eq!(gone["error"], error);
}

#[tokio::test]
async fn subscriber_hears_of_changes_on_the_sessions_one_stream() {
    let (_, url) = served().await;
    let client = Client::open(&url, json!({})).await;
    assert_eq!(
        client
            .ask("resources/subscribe", json!({"uri": "calendar://agenda"}))
            .await["result"],
        json!({})
    );
    assert_eq!(
        client
            .ask("resources/subscribe", json!({"uri": "calendar://holidays"}))
            .await["error"]["code"],
        -32602
    );
    assert_eq!(
        client
            .ask("resources/subscribe", json!({"uri": "calendar://moon"}))
            .await["error"]["code"],
        -32002
    );
    let mut stream = client.stream().await;
    assert_eq!(client.stream().await.status, 409);
    let other = Client::open(&url, json!({})).await; // watches nothing
    let mut silent = other.stream().await;
    client
        .post(&Client::call("delete_event", json!({"id": 1})))
        .await
        .last()
        .await;
    let updated = json!({
        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "calendar://agenda"},
    });
    assert_eq!(stream.event().await, Some(updated));
    client
        .ask("resources/unsubscribe", json!({"uri": "calendar://agenda"}))
        .await;
    client
        .post(&Client::call("delete_event", json!({"id": 2})))
        .await
        .last()
        .await;
    assert_eq!(
        send("DELETE", &url, &client.headers(), "").await.status,
        204
    );
    assert_eq!(stream.event().await, None);
    let headers = [("mcp-session-id", "none")];
    assert_eq!(send("GET", &url, &headers, "").await.status, 406);
    assert_eq!(send("DELETE", &url, &other.headers(), "").await.status, 204);
    assert_eq!(silent.event().await, None);
}

#[tokio::test]
async fn mail_is_sent_only_when_the_user_agrees() {
    let (calendar, url) = served().await;
    let mail = Client::call(
        "send_email",
        json!({"to": "ann@example.org", "subject": "Hi", "body": "Hello"}),
    );
    let silent = Client::open(&url, json!({"elicitation": {"url": {}}})).await;
    let nobody = silent.post(&mail).await.last().await;
    assert!(failure(&nobody).contains("did not declare the `elicitation` capability"));

    let client = Client::open(&url, json!({"elicitation": {}})).await;
    let answered = async |answer: Value| {
        let mut stream = client.post(&mail).await;
        let mut question = stream.event().await.expect("a question");
        let id = question["id"].take();
        assert_eq!(
            question,
            json!({
                "jsonrpc": "2.0",
                "id": null,
                "method": "elicitation/create",
                "params": {
                    "message": "Send the mail \"Hi\" to ann@example.org?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"send": {"type": "boolean", "title": "Send it", "default": false}},
                        "required": ["send"],
                    },
                },
            })
        );
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        response
            .as_object_mut()
            .expect("an object")
            .extend(answer.as_object().expect("an object").clone());
        assert_eq!(client.post(&response).await.status, 202);
        let answer = stream.event().await.expect("a result");
        assert_eq!(stream.event().await, None);
        answer
    };
    let unsure =
        answered(json!({"result": {"action": "accept", "content": {"send": false}}})).await;
    assert_eq!(
        failure(&unsure),
        "the user did not want it sent; no mail was sent"
    );
    let cancelled = answered(json!({"result": {"action": "cancel"}})).await;
    assert_eq!(
        failure(&cancelled),
        "the user gave no answer; no mail was sent"
    );
    let refused = answered(json!({"error": {"code": -1, "message": "not now"}})).await;
    assert_eq!(
        failure(&refused),
        "the client refused to be asked: not now; nothing was done"
    );
    let sent = answered(json!({"result": {"action": "accept", "content": {"send": true}}})).await;
    assert_fits_schema(&*calendar, "send_email", &sent);
    let outbox = client
        .ask("resources/read", json!({"uri": "calendar://outbox"}))
        .await;
    let only = json!([{"to": "ann@example.org", "subject": "Hi", "body": "Hello"}]);
    assert_eq!(outbox["result"]["contents"][0]["text"], only.to_string());
}

#[tokio::test]
async fn invitation_is_drafted_by_the_clients_model() {
    let (calendar, url) = served().await;
    let draft = Client::call("draft_invitation", json!({"id": 1, "tone": "brief"}));
    let silent = Client::open(&url, json!({})).await;
    let nobody = silent.post(&draft).await.last().await;
    assert!(failure(&nobody).contains("did not declare the `sampling` capability"));
    let client = Client::open(&url, json!({"sampling": {}})).await;
    let mut stream = client.post(&draft).await;
    let question = stream.event().await.expect("a question");
    assert_eq!(question["method"], "sampling/createMessage");
    assert_eq!(question["params"]["maxTokens"], 200);
    let message = json!({"role": "assistant", "model": "test-1", "content": {"type": "text", "text": "Come at nine."}});
    let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": message});
    assert_eq!(client.post(&response).await.status, 202);
    let drafted = stream.event().await.expect("a result");
    assert_fits_schema(&*calendar, "draft_invitation", &drafted);
    let expected = json!({"event": 1, "invitation": "Come at nine.", "model": "test-1"});
    assert_eq!(drafted["result"]["structuredContent"], expected);
}

#[tokio::test]
async fn cancelled_call_takes_its_question_back_and_has_no_answer() {
    let (_, url) = served().await;
    let client = Client::open(&url, json!({"elicitation": {}})).await;
    let mail = Client::call(
        "send_email",
        json!({"to": "ann@example.org", "subject": "Hi", "body": "Hello"}),
    );
    let mut stream = client.post(&mail).await;
    let question = stream.event().await.expect("a question");
    // A second request may not borrow the id of one that runs.
    let twin = client.post(&mail).await.last().await;
    assert_eq!(twin["error"]["code"], -32600);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(client.post(&cancel).await.status, 202);
    let taken_back = stream.event().await.expect("a notification");
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    assert_eq!(stream.event().await, None);
    let late = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    assert_eq!(client.post(&late).await.status, 400);
}

#[tokio::test]
async fn session_used_least_recently_ends_when_there_are_too_many() {
    let (_, url) = served().await;
    let (first, second) = (
        Client::open(&url, json!({})).await,
        Client::open(&url, json!({})).await,
    );
    let ping = request(1, "ping", json!({}));
    assert_eq!(first.post(&ping).await.status, 200);
    for _ in 2..=crate::demo::sessions::MAX_SESSIONS {
        post(&url, &[], &initialize(json!({}))).await.json().await;
    }
    assert_eq!(second.post(&ping).await.status, 404);
    assert_eq!(first.post(&ping).await.status, 200);
}
