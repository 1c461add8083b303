//! Servers that ask, as clients of both eras see it: who is asked for what, what the answers must be, and what goes on.
//! See PROTOCOL D2, SECURITY STATE-2, STATE-3.

mod answers;
mod held_open;
mod questions;

use serde_json::{Value, json};

use crate::harness::{
    Client, Gateway, Heard, PATIENCE, Piped, Play, Revision, Talk, Upstream, member, parse,
    text_result, tool, within,
};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;

/// What asks for these, with this state.
fn asks(requests: &str, state: Option<&str>) -> Play {
    let state = state.map_or_else(String::new, |state| format!(r#","requestState":{state}"#));
    let result = format!(r#"{{"resultType":"input_required","inputRequests":{requests}{state}}}"#);
    Play::Raw(format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#))
}

/// A server whose tools `t` and `u` ask once, and then say `done`.
fn asking(requests: &'static str, state: Option<&'static str>) -> Upstream {
    asking_on("tools/call", requests, state, text_result("done"))
}

fn asking_on(
    method: &str,
    requests: &'static str,
    state: Option<&'static str>,
    result: String,
) -> Upstream {
    let notes = Upstream::http(MODERN)
        .tools([tool("t"), tool("u")])
        .prompts(&["p"])
        .resources([crate::harness::resource("a://x")]);
    notes.on(method, move |heard| {
        if is_retry(heard) {
            Play::Result(result.clone())
        } else {
            asks(requests, state)
        }
    })
}

fn is_retry(heard: &Heard) -> bool {
    member(&heard.params, "inputResponses").is_some()
        || member(&heard.params, "requestState").is_some()
}

async fn gateway(notes: &Upstream) -> Gateway {
    Gateway::of().upstream("notes", notes).start().await
}

/// Goes on with a call of `t`, with more members of its params.
async fn go_on(client: &Client, more: &str) -> crate::harness::Answer {
    let params = format!(r#"{{"name":"notes_t","arguments":{{"a":1}},{more}}}"#);
    client.ask("tools/call", &params).await
}

fn state_of(result: &Value) -> String {
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["requestState"].as_str().unwrap().to_owned()
}

/// Answers a question on a talk with a result, or an error.
async fn reply(client: &Client, question: &str, body: &str) {
    let id = member(question, "id").unwrap();
    let answer = client
        .post(&format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#), &[])
        .await;
    assert_eq!(answer.status, 202, "{answer:?}");
}

/// The last message of a talk.
async fn end(mut talk: Talk) -> Value {
    let last = talk.hear().await;
    assert!(talk.next().await.is_none(), "something after {last}");
    parse(&last)
}

#[tokio::test]
async fn a_modern_client_is_asked_by_a_result_and_goes_on_with_the_sealed_state() {
    let notes = asking(
        r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string","minLength":2}},"required":["n"]}}}}"#,
        Some(r#""s\/\u0031""#),
    );
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(MODERN, ALL).await;
    let asked = client.call("notes_t", r#"{"a":1}"#).await;
    assert_eq!(asked.status, 200);
    let result = asked.value();
    let question = &result["inputRequests"]["who"]["params"];
    assert_eq!(question["message"], "[notes] Who?");
    assert_eq!(
        question["requestedSchema"]["properties"]["n"]["minLength"],
        2
    );
    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "usher");
    let state = state_of(&result);
    assert!(state != "s/1" && !state.contains("s/"), "{state}");
    let answers = r#"{"who":{"action":"accept","content":{"n":"Ann"}},"other":{"x":1}}"#;
    let done = go_on(
        &client,
        &format!(r#""inputResponses":{answers},"requestState":"{state}""#),
    )
    .await;
    assert_eq!(done.text(), "done");
    let heard = notes.last("tools/call");
    assert_eq!(
        member(&heard.params, "inputResponses").unwrap(),
        r#"{"who":{"action":"accept","content":{"n":"Ann"}}}"#
    );
    assert_eq!(
        member(&heard.params, "requestState").unwrap(),
        r#""s\/\u0031""#
    );
    assert_eq!(heard.arguments(), r#"{"a":1}"#);
    assert_eq!(notes.heard("tools/call").len(), 2);
}

#[tokio::test]
async fn a_legacy_client_is_asked_by_requests_on_its_stream_and_answers_beside_it() {
    let notes = asking(
        r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}},"roots":{"method":"roots/list"},"m":{"method":"sampling/createMessage","params":{"includeContext":"allServers","maxTokens":5,"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}}}"#,
        Some(r#""s""#),
    );
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", r#"{"a":1}"#).begin().await;
    let mut questions = Vec::new();
    for _ in 0..3 {
        questions.push(talk.hear().await);
    }
    let of = |method: &str| {
        let found = questions
            .iter()
            .find(|question| parse(question)["method"] == method);
        found.unwrap_or_else(|| panic!("no {method}: {questions:?}"))
    };
    let (form, sample, roots) = (
        of("elicitation/create"),
        of("sampling/createMessage"),
        of("roots/list"),
    );
    assert_eq!(parse(form)["params"]["message"], "[notes] Who?");
    assert_eq!(parse(sample)["params"]["includeContext"], "none");
    assert!(member(roots, "id") != member(form, "id"));
    assert_eq!(
        notes.heard("tools/call").len(),
        1,
        "not before all is answered"
    );
    // In any order.
    reply(
        &client,
        roots,
        r#""result":{"roots":[{"uri":"file:///r"}]}"#,
    )
    .await;
    reply(
        &client,
        sample,
        r#""result":{"role":"assistant","model":"m","content":{"type":"text","text":"yo"}}"#,
    )
    .await;
    reply(
        &client,
        form,
        r#""result":{"action":"accept","content":{"n":"Ann"},"_meta":{"progressToken":1}}"#,
    )
    .await;
    let last = end(talk).await;
    assert_eq!(last["result"]["content"][0]["text"], "done", "{last}");
    assert!(last["result"].get("resultType").is_none());
    let heard = notes.last("tools/call").value();
    assert_eq!(
        heard["inputResponses"],
        json!({
            "who": {"action": "accept", "content": {"n": "Ann"}},
            "roots": {"roots": [{"uri": "file:///r"}]},
            "m": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yo"}},
        })
    );
    assert_eq!(heard["requestState"], "s");
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it_and_one_that_never_ends_is_stopped() {
    let notes = asking("{}", Some(r#""later""#));
    let place = gateway(&notes).await;
    let client = place.client(LEGACY).await;
    for accept in ["application/json, text/event-stream", "application/json"] {
        let done = client.call("notes_t", "{}").header("accept", accept).await;
        assert_eq!(done.text(), "done");
        let heard = notes.last("tools/call");
        assert_eq!(heard.value()["requestState"], "later");
        assert!(member(&heard.params, "inputResponses").is_none());
    }

    let endless = Upstream::http(MODERN)
        .tools([tool("t")])
        .on("tools/call", |_| asks("{}", Some(r#""s""#)));
    let place = gateway(&endless).await;
    let client = place.client(MODERN).await;
    let mut answer = client.call("notes_t", r#"{"a":1}"#).await;
    for _ in 0..7 {
        let state = state_of(&answer.value());
        assert!(answer.value().get("inputRequests").is_none());
        answer = go_on(&client, &format!(r#""requestState":"{state}""#)).await;
    }
    let state = state_of(&answer.value());
    let last = go_on(&client, &format!(r#""requestState":"{state}""#)).await;
    assert_eq!(last.tool_error(), "upstream_protocol_error");
    assert_eq!(endless.heard("tools/call").len(), 9);
}

#[tokio::test]
async fn what_comes_of_a_retried_read_is_never_kept() {
    let contents = r#"{"contents":[{"uri":"a://x","text":"t"}],"ttlMs":5,"x":"y"}"#;
    let notes = asking_on(
        "resources/read",
        r#"{"r":{"method":"roots/list"}}"#,
        None,
        contents.into(),
    );
    // The harness writes its own hints beside these; the script's are what counts here.
    let raw = format!(
        r#"{{"jsonrpc":"2.0","id":$id,"result":{{"resultType":"complete","cacheScope":"public",{}}}"#,
        &contents[1..]
    );
    notes.now_on("resources/read", move |heard| {
        if is_retry(heard) {
            Play::Raw(raw.clone())
        } else {
            asks(r#"{"r":{"method":"roots/list"}}"#, None)
        }
    });
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(MODERN, ALL).await;
    let uri = client.all("resources/list", "uri").await.remove(0);
    let state = state_of(&client.read(&uri).await.value());
    let more = format!(
        r#"{{"uri":{},"requestState":"{state}","inputResponses":{{"r":{{"roots":[]}}}}}}"#,
        crate::harness::quote(&uri)
    );
    let read = client.ask("resources/read", &more).await.value();
    assert_eq!(
        (&read["ttlMs"], &read["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    assert_eq!(read["x"], "y");
}

#[tokio::test]
async fn a_conversation_ends_with_its_session_and_outlives_its_connection() {
    let notes = asking(r#"{"r":{"method":"roots/list"}}"#, None);
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let question = talk.hear().await;
    drop(talk);
    // A lost connection is no cancellation in this era: the answer is still taken.
    reply(&client, &question, r#""result":{"roots":[]}"#).await;
    notes.until_heard("tools/call", 2).await;

    let mut talk = client.call("notes_t", "{}").begin().await;
    talk.hear().await;
    client.other(http::Method::DELETE).await;
    while talk.next().await.is_some() {}
    assert_eq!(notes.heard("tools/call").len(), 3, "nothing went on");
}

#[tokio::test]
async fn who_is_asked_on_a_pipe_is_heard_though_the_gateway_is_to_stop() {
    let notes = asking(r#"{"r":{"method":"roots/list"}}"#, Some(r#""s""#));
    let mut pipe = Piped::start(&Gateway::of().upstream("notes", &notes).text()).await;
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{ALL},"clientInfo":{{"name":"raw","version":"1"}}}}}}"#
    );
    pipe.ask(&hello).await;
    let call = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"notes_t"}}"#;
    let question = parse(&pipe.until_listed(call).await);
    assert_eq!(question["method"], "roots/list", "{question}");
    pipe.terminate();
    // It has begun to stop.
    let asking = async {
        loop {
            let ping = parse(
                &pipe
                    .ask(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#)
                    .await,
            );
            if ping["error"]["data"]["reason"] == "shutting_down" {
                return;
            }
        }
    };
    within(PATIENCE, "a refusal", asking).await;
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#,
        question["id"]
    );
    let done = parse(&pipe.ask(&answer).await);
    assert_eq!(
        (&done["id"], &done["result"]["content"][0]["text"]),
        (&json!(4), &json!("done"))
    );
    pipe.end().await;
}

#[tokio::test]
async fn clients_of_both_eras_are_asked_on_one_pipe() {
    let notes = asking(r#"{"r":{"method":"roots/list"}}"#, Some(r#""s""#));
    let mut pipe = Piped::start(&Gateway::of().upstream("notes", &notes).text()).await;
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{ALL}}}"#
    );
    let call = |id: u8, more: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"notes_t"{more}}}}}"#
        )
    };
    let asked = pipe.until_listed(&call(1, &format!(",{meta}"))).await;
    let state = state_of(&parse(&asked)["result"]);
    let answers = r#""inputResponses":{"r":{"roots":[]}}"#;
    let more = format!(r#",{meta},{answers},"requestState":"{state}""#);
    let done = parse(&pipe.ask(&call(2, &more)).await);
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");

    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{ALL},"clientInfo":{{"name":"raw","version":"1"}}}}}}"#
    );
    pipe.ask(&hello).await;
    let question = parse(&pipe.ask(&call(4, "")).await);
    assert_eq!(question["method"], "roots/list", "{question}");
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#,
        question["id"]
    );
    let done = parse(&pipe.ask(&answer).await);
    assert_eq!(
        (&done["id"], &done["result"]["content"][0]["text"]),
        (&json!(4), &json!("done"))
    );
    pipe.end().await;
}
