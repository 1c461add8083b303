//! Two people at one gateway: what belongs to one is to the other as if it did not exist.
//! See SECURITY STATE-1, 2, 6, 7, PROTOCOL F7, F10, F11.

use http::Method;

use super::before;
use crate::harness::{
    Authority, Client, EventStream, Gateway, Play, Revision, Upstream, exchange, member, parse,
    quote, tool,
};

const EXTENSION: &str =
    r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

fn notes() -> Upstream {
    Upstream::http(Revision::V2026_07_28)
        .capabilities(r#"{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        .tools([tool("ask"), tool("slow"), tool("t")])
        .on("tools/call", |heard| match heard.text("name").as_deref() {
            Some("slow") => Play::Raw(r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"local","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":5}}"#.into()),
            Some("ask") if member(&heard.params, "inputResponses").is_none() => Play::Result(r#"{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}},"requestState":"mine"}"#.into()),
            _ => Play::Result(r#"{"content":[{"type":"text","text":"done"}]}"#.into()),
        })
        .on("tasks/get", |_| Play::Result(r#"{"taskId":"local","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":60000}"#.into()))
        .on("tasks/cancel", |_| Play::Result("{}".into()))
}

/// The gateway, and Ana and Eve with all capabilities.
async fn scene(revision: Revision) -> (Upstream, Authority, Gateway, Client, Client) {
    scene_with(revision, EVE).await
}

/// Somebody, and what else their token says.
type Somebody = (&'static str, &'static str);

const EVE: Somebody = ("eve", "");

/// Ana, by another client than that of hers, which has no name.
const ANA_ELSEWHERE: Somebody = ("ana", r#","client_id":"other""#);

/// The same, with this somebody in the place of Eve.
async fn scene_with(
    revision: Revision,
    (name, more): Somebody,
) -> (Upstream, Authority, Gateway, Client, Client) {
    let (notes, authority) = (notes(), Authority::start().await);
    let gateway = before(&notes, &authority, |_| {}).await;
    let person = async |name: &str, more: &str| {
        let headers = [(
            "authorization",
            format!("Bearer {}", authority.token(name, more)),
        )];
        Client::connect_with(gateway.address, "/mcp", revision, EXTENSION, &headers)
            .await
            .unwrap()
    };
    let (ana, eve) = (person("ana", "").await, person(name, more).await);
    (notes, authority, gateway, ana, eve)
}

/// Everything that tells one refusal from another, but for what is new each time.
fn said(answer: &crate::harness::Answer) -> (u16, serde_json::Value) {
    let mut error = answer.error();
    if let Some(data) = error["data"].as_object_mut() {
        data.remove("ref");
    }
    (answer.status, error)
}

// SECURITY STATE-6, PROTOCOL F10
#[tokio::test]
async fn a_session_of_another_is_unknown_to_post_get_delete_and_resume() {
    let (notes, authority, _gateway, ana, eve) = scene(Revision::V2025_11_25).await;
    let mut thief = eve.clone();
    thief.session = ana.session.clone();
    let mut nowhere = eve.clone();
    nowhere.session = Some("0".repeat(32));
    let stolen = thief.call("notes_t", "{}").await;
    assert_eq!(stolen.status, 404);
    assert_eq!(said(&stolen), said(&nowhere.call("notes_t", "{}").await));
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(thief.other(method).await.status, 404);
    }
    let mut stream = ana.reading(None).await;
    let id = stream.next().await.unwrap().id.unwrap();
    assert_eq!(thief.reading(Some(&id)).await.status, 404);
    // With a session of one's own, the event ids of another mean nothing.
    assert_eq!(eve.reading(Some(&id)).await.status, 400);
    assert_eq!(ana.call("notes_t", "{}").await.text(), "done");
    // The same somebody with another token is the same somebody.
    let mut later = ana.clone();
    later.own[0].1 = format!("Bearer {}", authority.token("ana", r#","jti":"2""#));
    assert_eq!(later.call("notes_t", "{}").await.text(), "done");
    assert_eq!(notes.heard("tools/call").len(), 2);
}

#[tokio::test]
async fn the_stream_of_2024_11_05_of_another_takes_no_message() {
    let (_notes, _authority, gateway, ana, eve) = scene(Revision::V2026_07_28).await;
    let authorization = |client: &Client| client.own[0].1.clone();
    let own = authorization(&ana);
    let headers = [
        ("accept", "text/event-stream"),
        ("authorization", own.as_str()),
    ];
    let mut stream = EventStream::open(gateway.address, Method::GET, "/sse", &headers, "").await;
    let place = stream.next().await.unwrap().data;
    let say = async |who: &Client| {
        let who = authorization(who);
        let headers = [
            ("content-type", "application/json"),
            ("authorization", who.as_str()),
        ];
        let body = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}"#;
        exchange(gateway.address, Method::POST, &place, &headers, body)
            .await
            .status
    };
    assert_eq!(say(&eve).await, 404);
    assert_eq!(say(&ana).await, 202);
    assert_eq!(parse(&stream.message().await.data)["id"], 0);
}

// SECURITY STATE-1, STATE-2, STATE-7
#[tokio::test]
async fn cursors_state_and_tasks_of_another_are_as_if_they_were_made_up() {
    nothing_of_anas_is_there_for(EVE).await;
}

#[tokio::test]
async fn cursors_state_and_tasks_of_another_client_of_the_same_person_are_as_if_they_were_made_up()
{
    nothing_of_anas_is_there_for(ANA_ELSEWHERE).await;
}

async fn nothing_of_anas_is_there_for((name, more): Somebody) {
    let (notes, _authority, gateway, ana, eve) =
        scene_with(Revision::V2026_07_28, (name, more)).await;

    let asked = ana.call("notes_ask", "{}").await.value();
    let again = |state: &str| {
        let params = r#"{"name":"notes_ask","arguments":{},"inputResponses":{"#;
        let key = asked["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        format!(
            r#"{params}{}:{{"action":"accept","content":{{"a":"b"}}}}}},"requestState":{}}}"#,
            quote(key),
            quote(state)
        )
    };
    let state = asked["requestState"].as_str().unwrap();
    let stolen = eve.ask("tools/call", &again(state)).await;
    assert_eq!(stolen.refusal(), (-32602, "state_invalid".to_owned()));
    assert_eq!(
        said(&stolen),
        said(&eve.ask("tools/call", &again("made up")).await)
    );
    assert_eq!(ana.ask("tools/call", &again(state)).await.text(), "done");

    let task = ana.call("notes_slow", "{}").await.value();
    let handle = task["taskId"].as_str().unwrap_or_else(|| panic!("{task}"));
    let about = |handle: &str| format!(r#"{{"taskId":{}}}"#, quote(handle));
    for method in ["tasks/get", "tasks/cancel"] {
        let stolen = eve.ask(method, &about(handle)).await;
        assert_eq!(stolen.refusal().0, -32602, "{method}");
        assert_eq!(
            said(&stolen),
            said(&eve.ask(method, &about("made up")).await),
            "{method}"
        );
    }
    assert!(notes.heard("tasks/get").is_empty() && notes.heard("tasks/cancel").is_empty());
    assert!(
        ana.ask("tasks/get", &about(handle))
            .await
            .result()
            .contains("working")
    );

    let small = Gateway::of()
        .setting("page_size: { items: 1 }")
        .key("an example of a key of more than thirty-two bytes")
        .upstream("notes", &notes)
        .auth(_authority.spec())
        .start()
        .await;
    let person = async |name: &str, more: &str| {
        small
            .client_with(Revision::V2026_07_28, &_authority.token(name, more))
            .await
    };
    let (ana, eve) = (person("ana", "").await, person(name, more).await);
    let page = ana.ask("tools/list", "{}").await.value();
    let cursor = |text: &str| format!(r#"{{"cursor":{}}}"#, quote(text));
    let next = page["nextCursor"].as_str().unwrap();
    let stolen = eve.ask("tools/list", &cursor(next)).await;
    assert_eq!(stolen.refusal().0, -32602);
    assert_eq!(
        said(&stolen),
        said(&eve.ask("tools/list", &cursor("made up")).await)
    );
    ana.ask("tools/list", &cursor(next)).await.result();
    drop(gateway);
}
