//! Servers of the handshake era that ask, behind clients of both eras.
//! Whose question it is, what is said to the server, and that no call is made twice (PROTOCOL D0, D2c, D2d, D7).

use http::Method;
use serde_json::Value;
use usher::tasks::Tasks;

use crate::harness::{
    Answer, Client, Gate, Gateway, Heard, Play, Revision, Talk, Upstream, eventually, member, open,
    parse, text_result, tool,
};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
const ELICIT: &str = r#"{"jsonrpc":"2.0","id":"q\u0031","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}}}"#;
const ROOTS: &str = r#"{"jsonrpc":"2.0","id":2,"method":"roots/list"}"#;

/// A server over HTTP whose tool says these on the call's stream and ends when the gate is opened.
fn asking(says: &[&str], gate: &Gate) -> Upstream {
    let (says, gate) = (
        says.iter().map(|&one| one.to_owned()).collect::<Vec<_>>(),
        gate.clone(),
    );
    Upstream::http(LEGACY)
        .tools([tool("t")])
        .on("tools/call", move |_| {
            let done = Play::Result(text_result("done"));
            Play::Gated(says.clone(), gate.clone(), Box::new(done))
        })
}

async fn before(notes: &Upstream, more: &str) -> Gateway {
    Gateway::of()
        .upstream_with("notes", notes, more)
        .start()
        .await
}

fn state_of(asked: &Answer) -> String {
    let result = asked.value();
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["requestState"].as_str().unwrap().to_owned()
}

/// The params of a call that goes on.
fn on(state: &str, responses: &str) -> String {
    format!(
        r#"{{"name":"notes_t","arguments":{{}},"inputResponses":{responses},"requestState":"{state}"}}"#
    )
}

async fn reply(client: &Client, question: &str, body: &str) {
    let id = member(question, "id").unwrap();
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#);
    assert_eq!(client.post(&text, &[]).await.status, 202);
}

async fn end(mut talk: Talk) -> Value {
    let last = talk.hear().await;
    assert!(talk.next().await.is_none(), "something after {last}");
    parse(&last)
}

/// What the gateway declared when it opened its last session.
fn declared(notes: &Upstream) -> String {
    member(&notes.last("initialize").params, "capabilities").unwrap()
}

/// The id of the only call.
fn only_call(notes: &Upstream) -> String {
    let calls: Vec<Heard> = notes.heard("tools/call");
    assert_eq!(calls.len(), 1, "made more than once");
    calls[0].id.clone().unwrap()
}

#[tokio::test]
async fn a_modern_client_answers_a_legacy_server_and_the_call_is_made_once() {
    let gate = Gate::new();
    let notes = asking(&[ELICIT, ROOTS], &gate);
    let gateway = before(&notes, "").await;
    let client = gateway.client_able(MODERN, ALL).await;
    let asked = client.call("notes_t", "{}").await;
    let state = state_of(&asked);
    let requests = &asked.value()["inputRequests"];
    let keys: Vec<_> = requests.as_object().unwrap().iter().collect();
    assert_eq!(keys.len(), 2);
    let (form, roots) = (keys[0], keys[1]);
    assert_eq!(form.1["params"]["message"], "[notes] Who?");
    assert_eq!(roots.1["method"], "roots/list");
    assert_eq!(declared(&notes), ALL);
    let responses = format!(
        r#"{{"{}":{{"action":"accept","content":{{"n":"Ann"}}}},"{}":{{"roots":[]}}}}"#,
        form.0, roots.0
    );
    let params = on(&state, &responses);
    let answered = async {
        notes.until_heard("", 2).await;
        gate.open();
    };
    let (done, ()) = tokio::join!(client.ask("tools/call", &params), answered);
    assert_eq!(done.text(), "done");
    let mut told: Vec<_> = notes
        .heard("")
        .into_iter()
        .map(|heard| (heard.id.unwrap(), heard.params))
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            (
                r#""q\u0031""#.into(),
                r#"{"action":"accept","content":{"n":"Ann"}}"#.into()
            ),
            ("2".into(), r#"{"roots":[]}"#.into()),
        ]
    );
    only_call(&notes);
    // Brought again, the state opens nothing.
    let again = client.ask("tools/call", &params).await;
    assert_eq!(again.refusal(), (-31001, "outcome_unknown".into()));
    only_call(&notes);
    assert!(notes.heard("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn a_legacy_client_is_asked_on_the_stream_of_its_call_and_its_answer_goes_to_the_server() {
    let gate = Gate::new();
    let notes = asking(&[ELICIT], &gate);
    let gateway = before(&notes, "").await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let question = talk.hear().await;
    assert_eq!(parse(&question)["params"]["message"], "[notes] Who?");
    reply(&client, &question, r#""result":{"action":"decline"}"#).await;
    let told = notes.until_heard("", 1).await;
    assert_eq!(told.id.as_deref(), Some(r#""q\u0031""#));
    assert_eq!(told.params, r#"{"action":"decline"}"#);
    gate.open();
    assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");
    only_call(&notes);
}

#[tokio::test]
async fn two_clients_with_equal_questions_open_never_get_each_others_answers() {
    let gates = [Gate::new(), Gate::new()];
    let each = gates.clone();
    let notes = Upstream::http(LEGACY)
        .tools([tool("t")])
        .on("tools/call", move |heard| {
            let n: usize = heard.value()["arguments"]["n"]
                .as_u64()
                .unwrap()
                .try_into()
                .unwrap();
            let done = Play::Result(text_result(&format!("done {n}")));
            Play::Gated(vec![ELICIT.into()], each[n].clone(), Box::new(done))
        });
    let gateway = before(&notes, "").await;
    let clients = [
        gateway.client_able(LEGACY, ALL).await,
        gateway.client_able(LEGACY, ALL).await,
    ];
    let mut talks = Vec::new();
    for (n, client) in clients.iter().enumerate() {
        let mut talk = client
            .call("notes_t", &format!(r#"{{"n":{n}}}"#))
            .begin()
            .await;
        let question = talk.hear().await;
        talks.push((talk, question));
    }
    let calls = notes.heard("tools/call");
    assert_ne!(
        calls[0].session, calls[1].session,
        "one session for two owners"
    );
    // The later one is answered first.
    for n in [1, 0] {
        let (talk, question) = talks.pop().unwrap();
        let body = format!(r#""result":{{"action":"accept","content":{{"n":"client {n}"}}}}"#);
        reply(&clients[n], &question, &body).await;
        let told = notes.until_heard("", 2 - n).await;
        assert_eq!(told.session, calls[n].session);
        assert!(told.params.contains(&format!("client {n}")), "{told:?}");
        gates[n].open();
        let last = end(talk).await;
        assert_eq!(last["result"]["content"][0]["text"], format!("done {n}"));
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_on_its_retry_cancels_the_right_call_upstream() {
    let gate = Gate::new();
    let notes = asking(&[ELICIT], &gate);
    let gateway = before(&notes, "").await;
    let client = gateway.client_able(MODERN, ALL).await;
    let state = state_of(&client.call("notes_t", "{}").await);
    // The end of the response that asked was no cancellation.
    let params = on(&state, r#"{"ask-1":{"action":"decline"}}"#);
    let (body, headers) = client.spelled("tools/call", &params);
    let mut headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    headers.push(("content-type", "application/json"));
    headers.push(("accept", "application/json, text/event-stream"));
    let connection = Tasks::new();
    let address = gateway.address;
    let retry = open(
        &connection,
        address,
        Method::POST,
        "/mcp",
        &headers,
        body.as_bytes(),
    );
    tokio::select! {
        _ = retry => panic!("answered"),
        _ = notes.until_heard("", 1) => {}
    }
    assert!(notes.heard("notifications/cancelled").is_empty());
    connection.stop();
    let told = notes.until_heard("notifications/cancelled", 1).await;
    assert_eq!(
        member(&told.params, "requestId").unwrap(),
        only_call(&notes)
    );
}

#[tokio::test]
async fn the_end_of_a_session_ends_what_it_was_asked() {
    let gate = Gate::new();
    let notes = asking(&[ELICIT], &gate);
    let gateway = before(&notes, "").await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    talk.hear().await;
    client.other(Method::DELETE).await;
    let told = notes.until_heard("notifications/cancelled", 1).await;
    assert_eq!(
        member(&told.params, "requestId").unwrap(),
        only_call(&notes)
    );
    assert_eq!(notes.heard("")[0].params, r#"{"action":"cancel"}"#);
}

#[tokio::test]
async fn a_server_that_is_gone_while_its_caller_is_asked_is_not_called_again() {
    let gate = Gate::new();
    let notes = asking(&[ELICIT], &gate);
    let gateway = before(&notes, "").await;
    let client = gateway.client_able(MODERN, ALL).await;
    let state = state_of(&client.call("notes_t", "{}").await);
    notes.down();
    gate.left().await;
    notes.up();
    let params = on(&state, r#"{"ask-1":{"action":"decline"}}"#);
    let lost = client.ask("tools/call", &params).await;
    assert_eq!(lost.tool_error(), "upstream_unavailable");
    only_call(&notes);
}

#[tokio::test]
async fn what_the_client_cannot_be_asked_is_not_declared_and_refused() {
    let gate = Gate::new();
    gate.open();
    let notes = asking(&[ELICIT, ROOTS], &gate);
    let gateway = before(&notes, "").await;
    for revision in [MODERN, LEGACY] {
        let client = gateway
            .client_able(revision, r#"{"sampling":{},"x":{}}"#)
            .await;
        assert_eq!(client.call("notes_t", "{}").await.text(), "done");
        assert_eq!(declared(&notes), r#"{"sampling":{}}"#);
        gate.open();
    }
    eventually("both are refused, twice", async || {
        (notes.heard("").len() == 4).then_some(())
    })
    .await;
    for refused in notes.heard("") {
        assert_eq!(member(&refused.params, "code").unwrap(), "-32601");
    }
}

#[tokio::test]
async fn a_server_on_a_pipe_of_its_owners_own_may_ask_and_one_that_all_share_may_not() {
    for (isolation, may) in [("principal", true), ("shared", false)] {
        let notes = Upstream::pipe(LEGACY)
            .tools([tool("t")])
            .on("tools/call", |_| Play::Hang);
        let gateway = before(&notes, &format!("isolation: {isolation}")).await;
        let client = gateway.client_able(MODERN, ALL).await;
        let asks = async {
            notes.until_heard("tools/call", 1).await;
            notes.say(ELICIT).await;
            let done = format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
                only_call(&notes),
                text_result("done")
            );
            if may {
                return done;
            }
            let refused = notes.until_heard("", 1).await;
            assert_eq!(member(&refused.params, "code").unwrap(), "-32601");
            notes.say(&done).await;
            done
        };
        let (answer, done) = tokio::join!(client.call("notes_t", "{}"), asks);
        // What no server can ask about is said all the same.
        let apps = r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
        assert_eq!(declared(&notes), if may { ALL } else { apps });
        if !may {
            assert_eq!(answer.text(), "done");
            continue;
        }
        let params = on(&state_of(&answer), r#"{"ask-1":{"action":"decline"}}"#);
        let answered = async {
            // On every pipe that is open, the answer being expected on one.
            eventually("it is answered", async || {
                let declined = |heard: &Heard| heard.params == r#"{"action":"decline"}"#;
                notes.heard("").iter().any(declined).then_some(())
            })
            .await;
            notes.say(&done).await;
        };
        let (answer, ()) = tokio::join!(client.ask("tools/call", &params), answered);
        assert_eq!(answer.text(), "done");
        only_call(&notes);
    }
}

#[tokio::test]
async fn a_required_visit_is_a_question_to_a_modern_client_and_the_error_to_a_legacy_one() {
    const VISIT: &str = r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"7"}]}}"#;
    let notes = Upstream::http(LEGACY).tools([tool("t")]);
    let gateway = before(&notes, "").await;
    notes.now_on("tools/call", |_| Play::Error(VISIT.into()));
    let legacy = gateway.client_able(LEGACY, ALL).await;
    let error = legacy.call("notes_t", "{}").await.error();
    assert_eq!(error["code"], -32042, "{error}");
    assert_eq!(
        error["data"]["elicitations"][0]["url"],
        "https://example.com/x"
    );
    // As every question (PROTOCOL F17, SECURITY C11).
    assert_eq!(
        error["data"]["elicitations"][0]["message"],
        "[notes] Go (example.com)"
    );
    // Whoever reads no stream cannot be asked, and can be told so all the same.
    let unasked = legacy
        .call("notes_t", "{}")
        .header("accept", "application/json");
    let error = unasked.await.error();
    assert_eq!(error["code"], -32042, "{error}");
    let blind = gateway.client_able(MODERN, r#"{"elicitation":{}}"#).await;
    let error = blind.call("notes_t", "{}").await.error();
    assert_eq!(error["code"], -32021, "{error}");
    assert!(error["data"]["requiredCapabilities"]["elicitation"]["url"].is_object());
    let client = gateway.client_able(MODERN, ALL).await;
    let asked = client.call("notes_t", "{}").await;
    let (key, question) = {
        let value = asked.value();
        let (key, question) = value["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        (key.clone(), question.clone())
    };
    assert_eq!(question["params"]["url"], "https://example.com/x");
    assert!(question["params"].get("elicitationId").is_none());
    notes.as_usual("tools/call");
    let before = notes.heard("tools/call").len();
    let params = on(
        &state_of(&asked),
        &format!(r#"{{"{key}":{{"action":"accept"}}}}"#),
    );
    assert_eq!(client.ask("tools/call", &params).await.text(), "called t");
    assert_eq!(notes.heard("tools/call").len(), before + 1);
}

/// PROTOCOL A5, A6
#[tokio::test]
async fn a_required_visit_is_told_in_words_to_a_client_that_never_said_it_shows_urls() {
    const VISIT: &str = r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"7"}]}}"#;
    let notes = Upstream::http(LEGACY)
        .tools([tool("t")])
        .prompts(&["p"])
        .on("tools/call", |_| Play::Error(VISIT.into()))
        .on("prompts/get", |_| Play::Error(VISIT.into()));
    let gateway = before(&notes, "").await;
    for declared in ["{}", r#"{"elicitation":{}}"#] {
        let client = gateway.client_able(LEGACY, declared).await;
        let answer = client.call("notes_t", "{}").await;
        assert_eq!(answer.tool_error(), "capability_missing", "{declared}");
        assert!(answer.text().contains("elicitation"), "{answer:?}");
        let refused = client.ask("prompts/get", r#"{"name":"notes_p"}"#).await;
        assert_eq!(
            (refused.status, refused.refusal()),
            (200, (-32603, "capability_missing".to_owned())),
            "{declared}"
        );
        for told in [answer, refused] {
            assert!(!told.body.contains("example.com"), "{told:?}");
        }
    }
}

/// PROTOCOL A6, D7
#[tokio::test]
async fn a_required_visit_is_told_in_words_where_a_revision_has_no_such_error() {
    const VISIT: &str = r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"7"}]}}"#;
    let notes = Upstream::http(LEGACY)
        .tools([tool("t")])
        .prompts(&["p"])
        .on("tools/call", |_| Play::Error(VISIT.into()))
        .on("prompts/get", |_| Play::Error(VISIT.into()));
    let gateway = before(&notes, "").await;
    for revision in [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
    ] {
        let client = gateway.client_able(revision, r#"{"elicitation":{}}"#).await;
        let answer = client.call("notes_t", "{}").await;
        assert_eq!(answer.tool_error(), "capability_missing", "{revision}");
        assert!(answer.text().contains("cannot open URLs"), "{answer:?}");
        let refused = client.ask("prompts/get", r#"{"name":"notes_p"}"#).await;
        assert_eq!(
            (refused.status, refused.refusal()),
            (200, (-32603, "capability_missing".to_owned())),
            "{revision}"
        );
        for told in [answer, refused] {
            assert!(!told.body.contains("example.com"), "{told:?}");
        }
    }
}
