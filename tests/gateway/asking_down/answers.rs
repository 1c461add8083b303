//! What comes back from a client that was asked: state and answers that fit, and all that do not (SECURITY STATE-2, STATE-3).

use serde_json::{Value, json};

use super::{
    ALL, LEGACY, MODERN, asking, asking_on, asks, end, gateway, go_on, is_retry, reply, state_of,
};
use crate::harness::{Gateway, Piped, Play, Revision, member, parse};

#[tokio::test]
async fn answers_brought_along_reach_a_server_that_asks_for_just_these_and_gives_no_state() {
    const ASKS: &str = r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string","minLength":2}},"required":["n"]}}}}"#;
    const FITS: &str = r#"{"who":{"action":"accept","content":{"n":"Ann"}},"other":{"x":1}}"#;
    for (state, brought, taken) in [
        (None, FITS, true),
        // It does not fit, or is of another question.
        (
            None,
            r#"{"who":{"action":"accept","content":{"n":"A"}}}"#,
            false,
        ),
        (None, r#"{"other":{"action":"decline"}}"#, false),
        // Nobody knows what a server remembers of a question but whoever was asked it.
        (Some(r#""s""#), FITS, false),
    ] {
        let notes = asking(ASKS, state);
        let gateway = gateway(&notes).await;
        let client = gateway.client_able(MODERN, ALL).await;
        let answer = go_on(&client, &format!(r#""inputResponses":{brought}"#)).await;
        let heard = notes.heard("tools/call");
        assert_eq!(member(&heard[0].params, "inputResponses"), None);
        if taken {
            assert_eq!(answer.text(), "done");
            assert_eq!(
                member(&heard[1].params, "inputResponses").unwrap(),
                r#"{"who":{"action":"accept","content":{"n":"Ann"}}}"#
            );
        } else {
            state_of(&answer.value());
        }
        assert_eq!(heard.len(), 1 + usize::from(taken), "{brought}");
    }
}

/// PROTOCOL D5, SECURITY STATE-5
#[tokio::test]
async fn what_comes_of_answers_that_a_read_brought_along_is_kept_by_nobody() {
    const READ: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","contents":[{"uri":"a://x","text":"t"}],"ttlMs":60000,"cacheScope":"public"}}"#;
    let notes = asking_on("resources/read", "{}", None, String::new());
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(MODERN, ALL).await;
    let uri = client.all("resources/list", "uri").await.remove(0);
    let brought = format!(
        r#"{{"uri":{},"inputResponses":{{"r":{{"roots":[]}}}}}}"#,
        crate::harness::quote(&uri)
    );
    let hints = |read: Value| (read["ttlMs"].clone(), read["cacheScope"].clone());
    notes.now_on("resources/read", |_| Play::Raw(READ.into()));
    let read = client.read(&uri).await.value();
    assert_eq!(hints(read), (json!(60_000), json!("public")));
    notes.now_on("resources/read", |heard| {
        if is_retry(heard) {
            Play::Raw(READ.into())
        } else {
            asks(r#"{"r":{"method":"roots/list"}}"#, None)
        }
    });
    let read = client.ask("resources/read", &brought).await.value();
    assert_eq!(hints(read), (json!(0), json!("private")));
    let retries = notes.heard("resources/read");
    assert_eq!(retries.iter().filter(|heard| is_retry(heard)).count(), 1);
}

#[tokio::test]
async fn state_that_was_altered_or_belongs_to_another_call_is_refused_before_the_upstream_hears_of_it()
 {
    let notes = asking(r#"{"r":{"method":"roots/list"}}"#, None);
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(MODERN, ALL).await;
    let state = state_of(&client.call("notes_t", r#"{"a":1}"#).await.value());
    let heard = notes.heard("tools/call").len();
    let with = |state: &str| format!(r#""requestState":"{state}","inputResponses":{{}}"#);
    let mut altered = state.clone().into_bytes();
    altered[40] = if altered[40] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).unwrap();
    for bad in [&*altered, "", "x", &state[1..]] {
        let refused = go_on(&client, &with(bad)).await.refusal();
        assert_eq!(refused, (-32602, "state_invalid".into()), "{bad}");
    }
    let good = with(&state);
    for other in [
        format!(r#"{{"name":"notes_t","arguments":{{"a":2}},{good}}}"#),
        format!(r#"{{"name":"notes_t",{good}}}"#),
        format!(r#"{{"name":"notes_u","arguments":{{"a":1}},{good}}}"#),
    ] {
        let refused = client.ask("tools/call", &other).await.refusal();
        assert_eq!(refused, (-32602, "state_invalid".into()), "{other}");
    }
    let elsewhere = gateway.client_at("/mcp/u/notes", MODERN).await;
    let params = format!(r#"{{"name":"t","arguments":{{"a":1}},{good}}}"#);
    let refused = elsewhere.ask("tools/call", &params).await.refusal();
    assert_eq!(refused, (-32602, "state_invalid".into()));
    let odd = r#""requestState":3"#;
    assert_eq!(
        go_on(&client, odd).await.refusal(),
        (-32602, "invalid_params".into())
    );
    assert_eq!(
        notes.heard("tools/call").len(),
        heard,
        "it reached the upstream"
    );
    assert_eq!(go_on(&client, &good).await.text(), "done");
    let last = notes.last("tools/call");
    assert!(
        member(&last.params, "requestState").is_none(),
        "absent stays absent"
    );
}

#[tokio::test]
async fn answers_that_do_not_fit_are_refused() {
    let notes = asking(
        r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string","minLength":2}},"required":["n"]}}}}"#,
        None,
    );
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(MODERN, ALL).await;
    let state = state_of(&client.call("notes_t", r#"{"a":1}"#).await.value());
    for bad in [
        r#"{"who":{"action":"accept","content":{"n":"x"}}}"#,
        r#"{"who":{"action":"accept"}}"#,
        r#"{"who":{"action":"perhaps"}}"#,
        "[]",
    ] {
        let more = format!(r#""inputResponses":{bad},"requestState":"{state}""#);
        let refused = go_on(&client, &more).await.refusal();
        assert_eq!(refused, (-32602, "invalid_input_response".into()), "{bad}");
    }
    assert_eq!(notes.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn a_refusal_is_a_cancelled_form_or_the_end_of_the_call_and_never_consent() {
    let error = r#""error":{"code":-1,"message":"no"}"#;
    let notes = asking(
        r#"{"who":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}"#,
        None,
    );
    let place = gateway(&notes).await;
    let client = place.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    reply(&client, &talk.hear().await, error).await;
    assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");
    let heard = notes.last("tools/call").value();
    assert_eq!(
        heard["inputResponses"],
        json!({"who": {"action": "cancel"}})
    );

    let both = r#"{"m":{"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[]}},"r":{"method":"roots/list"}}"#;
    let notes = asking(both, None);
    let place = gateway(&notes).await;
    let client = place.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let questions = [talk.hear().await, talk.hear().await];
    let [sample, roots] = if questions[0].contains("sampling") {
        questions
    } else {
        let [one, two] = questions;
        [two, one]
    };
    reply(&client, &sample, error).await;
    let withdrawn = parse(&talk.hear().await);
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], parse(&roots)["id"]);
    let last = end(talk).await;
    assert_eq!(last["result"]["isError"], true, "{last}");
    assert_eq!(last["result"]["_meta"]["dev.usher/reason"], "input_refused");
    assert_eq!(notes.heard("tools/call").len(), 1, "it does not go on");

    let notes = asking_on("prompts/get", both, None, r#"{"messages":[]}"#.into());
    let place = gateway(&notes).await;
    let client = place.client_able(LEGACY, ALL).await;
    let mut talk = client
        .ask("prompts/get", r#"{"name":"notes_p"}"#)
        .begin()
        .await;
    reply(&client, &talk.hear().await, error).await;
    assert!(talk.hear().await.contains("roots/list"));
    assert!(talk.hear().await.contains("notifications/cancelled"));
    let last = end(talk).await;
    assert_eq!(last["error"]["data"]["reason"], "input_refused", "{last}");
}

/// PROTOCOL D2b
#[tokio::test]
async fn an_answer_that_is_no_message_is_refused_and_counts_as_an_error() {
    const ASKS: &str = r#"{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}"#;
    let notes = asking(ASKS, None);
    let place = gateway(&notes).await;
    let client = place.client_able(LEGACY, ALL).await;
    for bad in [
        r#""result":null"#,
        r#""result":"x""#,
        r#""error":"no""#,
        r#""error":{"code":"x"}"#,
    ] {
        let mut talk = client.call("notes_t", "{}").begin().await;
        let id = member(&talk.hear().await, "id").unwrap();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{bad}}}"#);
        // Whoever was not asked this spoils nothing.
        let stranger = place.client_able(LEGACY, ALL).await;
        for who in [&stranger, &client] {
            let refused = who.post(&body, &[]).await;
            assert_eq!(refused.status, 400, "{bad}");
            assert_eq!(refused.refusal(), (-32600, "invalid_request".into()));
            assert_eq!(refused.id(), None, "{bad}");
        }
        assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");
        let heard = notes.last("tools/call").value();
        assert_eq!(
            heard["inputResponses"],
            json!({"who": {"action": "cancel"}})
        );
    }

    let notes = asking(r#"{"r":{"method":"roots/list"}}"#, None);
    let mut pipe = Piped::start(&Gateway::of().upstream("notes", &notes).text()).await;
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{ALL},"clientInfo":{{"name":"raw","version":"1"}}}}}}"#
    );
    pipe.ask(&hello).await;
    let call = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"notes_t"}}"#;
    let question = parse(&pipe.until_listed(call).await);
    let bad = format!(r#"{{"jsonrpc":"2.0","id":{},"result":[]}}"#, question["id"]);
    let told = [parse(&pipe.ask(&bad).await), parse(&pipe.hear().await)];
    let of = |id: Value| told.iter().find(|told| told["id"] == id).unwrap();
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    let end = &of(json!(4))["result"]["_meta"];
    assert_eq!(end["dev.usher/reason"], "input_refused");
    pipe.end().await;
}

/// PROTOCOL D2b
#[tokio::test]
async fn an_answer_in_a_batch_that_is_refused_counts_as_an_error() {
    const ROOTS: &str = r#"{"r":{"method":"roots/list"}}"#;
    const OLD: Revision = Revision::V2025_03_26;
    const CONFUSABLE: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"RequestId":98}}"#;
    let notes = asking(ROOTS, None);
    let place = gateway(&notes).await;
    let batch = |question: &str, beside: &str| {
        let id = member(question, "id").unwrap();
        format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}},{beside}]"#)
    };
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    for (revision, beside) in [
        (LEGACY, told),
        (OLD, r#"{"jsonrpc":"2.0","method":"tools/call"}"#),
        (OLD, CONFUSABLE),
        (
            OLD,
            r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        ),
        (OLD, r#"{"jsonrpc":"2.0","id":8,"method":"initialize"}"#),
    ] {
        let client = place.client_able(revision, ALL).await;
        let mut talk = client.call("notes_t", "{}").begin().await;
        let batch = batch(&talk.hear().await, beside);
        let refused = client.post(&batch, &[]).await;
        assert_eq!(refused.status, 400, "{batch}");
        let last = end(talk).await;
        let reason = &last["result"]["_meta"]["dev.usher/reason"];
        assert_eq!(reason, "input_refused", "{batch}: {last}");
    }

    let mut pipe = Piped::start(&Gateway::of().upstream("notes", &notes).text()).await;
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"initialize","params":{{"protocolVersion":"{OLD}","capabilities":{ALL},"clientInfo":{{"name":"raw","version":"1"}}}}}}"#
    );
    pipe.ask(&hello).await;
    let call = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"notes_t"}}"#;
    let question = pipe.until_listed(call).await;
    let batch = batch(&question, CONFUSABLE);
    let told = [parse(&pipe.ask(&batch).await), parse(&pipe.hear().await)];
    let of = |id: Value| told.iter().find(|told| told["id"] == id).unwrap();
    let refusal = &of(Value::Null)["error"]["data"];
    assert_eq!(refusal["reason"], "confusable_member");
    let end = &of(json!(4))["result"]["_meta"];
    assert_eq!(end["dev.usher/reason"], "input_refused");
    pipe.end().await;
}

#[tokio::test]
async fn only_the_session_that_was_asked_can_answer_and_only_once() {
    let notes = asking(r#"{"r":{"method":"roots/list"}}"#, None);
    let gateway = gateway(&notes).await;
    let client = gateway.client_able(LEGACY, ALL).await;
    let stranger = gateway.client_able(LEGACY, ALL).await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let question = talk.hear().await;
    let id = member(&question, "id").unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#);
    for (who, body) in [
        (&stranger, answer.clone()),
        (&client, answer.replace(&id, "1073741923")),
        (&client, answer.replace(&id, "0")),
    ] {
        let refused = who.post(&body, &[]).await;
        assert_eq!(refused.status, 400, "{body}");
        assert_eq!(refused.refusal().1, "unexpected_response", "{body}");
    }
    assert_eq!(client.post(&answer, &[]).await.status, 202);
    assert_eq!(end(talk).await["result"]["content"][0]["text"], "done");
    assert_eq!(client.post(&answer, &[]).await.status, 400, "not twice");
    assert_eq!(notes.heard("tools/call").len(), 2);
}
