//! What cannot be asked, and the honest answer: of clients that cannot, of servers that may not, of state that is not ours.
//! See PROTOCOL D7, SECURITY STATE-2, STATE-3.

use std::time::Duration;

use serde_json::json;

use super::{ALL, FORM, NAMED, ROOTS, SAMPLE, VISIT, asking, response, state_of, usual};
use crate::harness::{
    Answer, Client, Gateway, Pairing, Play, Revision, Says, Turn, Upstream, again, eventually,
    member, members, parse, text_result, tool,
};

/// What a call came to: the code of its error, or the reason of the tool's.
fn refusal(answer: &Answer) -> String {
    match member(answer.message(), "error") {
        Some(error) => parse(&error)["code"].to_string(),
        None => answer.tool_error(),
    }
}

pairings! {
    /// Feature: Asking a client that cannot
    async fn a_server_that_asks_what_the_client_cannot_is_told_so_and_nobody_is_asked(pair: Pairing) {
        for question in [FORM, SAMPLE, ROOTS] {
            let questions: &'static [_] = match question.0 {
                "roots/list" => &[ROOTS],
                "sampling/createMessage" => &[SAMPLE],
                _ => &[FORM],
            };
            let notes = asking(pair, questions);
            let (_gateway, client) = pair.able(&notes, "{}").await;
            let talk = client.call("notes_ask", "{}").answering(|_, _| panic!("asked")).await;
            assert!(talk.asked.is_empty());
            if pair.upstream_is_modern() {
                // It asked for what nobody had promised it.
                assert_eq!(refusal(&talk.answer), "upstream_protocol_error", "{talk:?}");
            } else {
                // Its own question fails, and what it makes of that is its own.
                let told = parse(&talk.answer.text());
                assert!(told[0]["code"].is_i64(), "{told}");
            }
        }
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        legacy_client_modern_server = LEGACY_MODERN,
    ] because "only the handshake era can say no to a sample";
    /// Feature: A refused sample
    async fn a_client_that_refuses_is_heard(pair: Pairing) {
        let notes = asking(pair, &[SAMPLE]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let no = r#"{"code":-1,"message":"User rejected sampling request"}"#;
        let talk = client
            .call("notes_ask", "{}")
            .answering(|_, _| Says::Error(no.to_owned()))
            .await;
        if pair.upstream_is_modern() {
            // No way to say so upstream: the call ends, as one that a model can read.
            let value = talk.answer.value();
            assert_eq!(value["isError"], true, "{value}");
            assert_eq!(notes.heard("tools/call").len(), 1);
        } else {
            let told = parse(&talk.answer.text());
            assert_eq!(told[0]["code"], -1, "{told}");
        }
    }
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only in the stateless era a refused sample has no representation";
    /// Feature: A refused sample
    async fn a_client_that_does_not_come_back_is_sent_nothing_and_others_go_on(pair: Pairing) {
        let notes = asking(pair, &[SAMPLE]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let first = client.call("notes_ask", "{}").await.result();
        assert_eq!(parse(&first)["resultType"], "input_required");
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        assert_eq!(notes.heard("tools/call").len(), 2);
    }
}

pairings! {
    /// Feature: URL elicitation to a client that opens none
    async fn an_address_is_not_sent_to_a_client_that_opens_none(pair: Pairing) {
        let notes = asking(pair, &[VISIT]);
        let (_gateway, client) = pair.able(&notes, r#"{"elicitation":{"form":{}}}"#).await;
        let talk = client.call("notes_ask", "{}").answering(|_, _| panic!("asked")).await;
        if pair.upstream_is_modern() {
            assert_eq!(refusal(&talk.answer), "upstream_protocol_error", "{talk:?}");
        } else {
            assert!(parse(&talk.answer.text())[0]["code"].is_i64(), "{talk:?}");
        }
    }
}

/// Feature: Elicitation to clients before 2025-06-18 (LL, LM)
#[tokio::test]
async fn clients_of_revisions_without_elicitation_are_never_asked_for_any() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        for upstream in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let pair = Pairing::of(revision, upstream);
            let notes = asking(pair, &[FORM]);
            let (_gateway, client) = pair.able(&notes, ALL).await;
            let talk = client
                .call("notes_ask", "{}")
                .answering(|_, _| panic!("asked"))
                .await;
            assert!(talk.asked.is_empty(), "{revision} {upstream}");
            assert!(
                talk.answer.message().contains("notes") || talk.answer.message().contains("code")
            );
        }
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        modern_client_legacy_server = MODERN_LEGACY,
    ] because "modern servers cannot send requests at all";
    /// Feature: A request that belongs to no call
    async fn a_request_that_came_on_no_call_is_refused_and_never_guessed(pair: Pairing) {
        for piped in [false, true] {
            let server = if piped { Upstream::pipe(pair.upstream) } else { pair.upstream() };
            let notes = asking_nothing(server);
            let (_gateway, client) = pair.able(&notes, ALL).await;
            let mut watch = client.watch(&["tools"], &[]).await;
            // On the stream of its own, or anywhere on a pipe that all share.
            let told = notes.ask_unasked(FORM.0, FORM.1).await;
            assert!(told["error"]["code"].is_i64(), "{told}");
            notes.offer(0, [tool("t2")]);
            notes.announce("tools").await;
            assert_eq!(watch.change().await.0, "tools/list_changed", "nothing else came");
        }
    }
}

fn asking_nothing(server: Upstream) -> Upstream {
    server.tools([tool("t")]).telling()
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_modern_server = MODERN_MODERN,
        legacy_client_legacy_server = LEGACY_LEGACY,
    ] because "a parked call is asked in one round by its own server, which the next test bounds";
    /// Feature: Loops of questions
    async fn a_server_that_asks_for_ever_is_stopped(pair: Pairing) {
        let server = pair.upstream().tools([tool("ask")]);
        let notes = if pair.upstream_is_modern() {
            server.on("tools/call", |_| {
                Play::Result(format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"{}","params":{}}}}},"requestState":"s"}}"#,
                    FORM.0, FORM.1
                ))
            })
        } else {
            server.on("tools/call", |_| {
                Play::live(|turn: Turn| async move {
                    for _ in 0..60 {
                        turn.ask(FORM.0, FORM.1).await;
                    }
                    turn.result(&text_result("tired")).await;
                })
            })
        };
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert!(talk.asked.len() <= 10, "asked {} times", talk.asked.len());
        assert!(!refusal(&talk.answer).is_empty());
    }
}

/// A call that waits for an answer: its params, the key it asked under, and our state.
async fn waiting(client: &Client) -> (&'static str, String, String) {
    let params = r#"{"name":"notes_ask","arguments":{"a":1}}"#;
    let first = client.ask("tools/call", params).await.result();
    let (key, _) = members(&member(&first, "inputRequests").unwrap()).remove(0);
    (params, key, state_of(&first))
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern clients bring state";
    /// Feature: Sealed request state
    async fn state_altered_in_any_byte_or_brought_elsewhere_is_refused_and_the_server_hears_nothing(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .toolset("all", "upstreams: [notes]")
            .start()
            .await;
        let client = gateway.client_able(pair.client, ALL).await;
        let (params, key, state) = waiting(&client).await;
        let answer = response(&key, NAMED);
        let heard = || notes.heard("tools/call").len() + notes.heard("").len();
        let before = heard();
        let refused = async |client: &Client, method: &str, params: &str, state: &str| {
            let again = again(params, &answer, Some(state));
            let said = client.ask(method, &again).await;
            assert_eq!(said.refusal(), (-32602, "state_invalid".to_owned()), "{again}");
            let text = said.message().to_owned();
            assert!(!text.contains("server's own") && !text.contains("seal"), "{text}");
        };
        let text = parse(&state).as_str().unwrap().to_owned();
        // Every character; the last one may hold bits that mean nothing.
        for at in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            refused(&client, "tools/call", params, &format!("\"{altered}\"")).await;
        }
        for altered in ["\"\"", "\"x\"", &format!("\"{text}A\""), &format!("\"{}\"", &text[1..])] {
            refused(&client, "tools/call", params, altered).await;
        }
        // On another call: other arguments, another tool, another method, another endpoint.
        for other in [
            r#"{"name":"notes_ask","arguments":{"a":2}}"#,
            r#"{"name":"notes_ask","arguments":{"a":1.0}}"#,
            r#"{"name":"notes_ask"}"#,
            r#"{"name":"notes_t","arguments":{"a":1}}"#,
        ] {
            refused(&client, "tools/call", other, &state).await;
        }
        let elsewhere = Client::connect_able(gateway.address, "/mcp/all", pair.client, ALL).await.unwrap();
        refused(&elsewhere, "tools/call", params, &state).await;
        assert_eq!(heard(), before, "the server was contacted");
        // All that harmed nothing: it is still good where it belongs.
        let done = client.ask("tools/call", &again(params, &answer, Some(&state))).await;
        assert_eq!(parse(&done.text()), json!([parse(NAMED)]));
    }
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern clients bring state";
    /// Feature: Sealed request state
    async fn answers_that_were_not_asked_for_are_dropped_and_bad_ones_refused(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let (params, key, state) = waiting(&client).await;
        let heard = || notes.heard("tools/call").len() + notes.heard("").len();
        let before = heard();
        for bad in [
            r#"{"action":"accept","content":{"name":7}}"#,
            r#"{"action":"accept","content":{}}"#,
            r#"{"action":"perhaps"}"#,
            "7",
        ] {
            let said = client.ask("tools/call", &again(params, &response(&key, bad), Some(&state))).await;
            assert_eq!(said.error()["code"], -32602, "{bad}");
        }
        assert_eq!(heard(), before, "the server was contacted");
        let both = format!("{},{}", response("other", NAMED), response(&key, NAMED));
        let done = client.ask("tools/call", &again(params, &both, Some(&state))).await;
        assert_eq!(parse(&done.text()), json!([parse(NAMED)]));
        let responses = member(&notes.last("tools/call").params, "inputResponses");
        assert!(!responses.unwrap_or_default().contains("other"));
    }
}

pairings! {
    only [modern_client_legacy_server = MODERN_LEGACY] because "only there a call is parked";
    /// Feature: A parked call
    async fn a_parked_call_goes_on_once_and_a_second_time_is_told_that_nobody_knows(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let (params, key, state) = waiting(&client).await;
        let retry = again(params, &response(&key, NAMED), Some(&state));
        let done = client.ask("tools/call", &retry).await;
        assert_eq!(parse(&done.text()), json!([parse(NAMED)]));
        for _ in 0..3 {
            let replayed = client.ask("tools/call", &retry).await;
            let told = replayed.message().to_owned();
            assert!(member(&told, "error").is_some() || replayed.value()["isError"] == true, "{told}");
        }
        assert_eq!(notes.heard("tools/call").len(), 1, "never executed again");
    }
}

pairings! {
    only [modern_client_legacy_server = MODERN_LEGACY] because "only there a call is parked";
    /// Feature: A parked call
    async fn a_parked_call_that_is_lost_is_told_as_unknown_and_never_executed_again(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .key("a secret that outlives the process")
            .start()
            .await;
        let client = gateway.client_able(pair.client, ALL).await;
        let (params, key, state) = waiting(&client).await;
        drop(gateway);
        let after = Gateway::of()
            .upstream("notes", &notes)
            .key("a secret that outlives the process")
            .start()
            .await;
        let client = after.client_able(pair.client, ALL).await;
        let told = client.ask("tools/call", &again(params, &response(&key, NAMED), Some(&state))).await;
        assert!(told.message().contains("unknown"), "{told:?}");
        assert_eq!(notes.heard("tools/call").len(), 1);
    }
}

/// Time passes, and nothing else happens.
async fn passes(time: Duration) {
    let began = tokio::time::Instant::now();
    eventually("time passes", || async {
        (began.elapsed() > time).then_some(())
    })
    .await;
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        modern_client_legacy_server = MODERN_LEGACY,
    ] because "only there a stream is open while a person thinks";
    async fn what_a_person_takes_to_think_is_not_taken_from_the_time_that_a_server_may_be_silent(pair: Pairing) {
        let notes = pair.upstream().tools([tool("ask")]).on("tools/call", |_| {
            Play::live(|turn: Turn| async move {
                turn.ask(FORM.0, FORM.1).await;
                passes(Duration::from_secs(2)).await;
                turn.result(&text_result("worked")).await;
            })
        });
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, "timeout: { call: 20s, silence: 5s }")
            .start()
            .await;
        let client = gateway.client_able(pair.client, ALL).await;
        // Less than the server may be silent; and with what it works then, more.
        let think = || passes(Duration::from_secs(4));
        if pair.client_is_modern() {
            let (params, key, state) = waiting(&client).await;
            think().await;
            let done = client.ask("tools/call", &again(params, &response(&key, NAMED), Some(&state))).await;
            assert_eq!(done.text(), "worked");
        } else {
            let mut talk = client.call("notes_ask", "{}").begin().await;
            let asked = talk.hear().await;
            think().await;
            assert_eq!(client.reply(&asked, ("result", NAMED)).await.status, 202);
            assert_eq!(talk.rest().await.text(), "worked");
        }
    }
}

pairings! {
    /// Feature: Keep-alive while people think
    async fn a_call_that_waits_for_a_person_is_not_given_up_after_the_time_of_machines(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, "timeout: { call: 3s, silence: 3s, list: 3s }")
            .start()
            .await;
        let client = gateway.client_able(pair.client, ALL).await;
        // Longer than any deadline of this server; nothing else happens meanwhile.
        let think = || passes(Duration::from_secs(4));
        if pair.client_is_modern() {
            let (params, key, state) = waiting(&client).await;
            think().await;
            let done = client.ask("tools/call", &again(params, &response(&key, NAMED), Some(&state))).await;
            assert_eq!(parse(&done.text()), json!([parse(NAMED)]));
        } else {
            let mut talk = client.call("notes_ask", "{}").begin().await;
            let asked = talk.hear().await;
            think().await;
            assert_eq!(client.reply(&asked, ("result", NAMED)).await.status, 202);
            assert_eq!(parse(&talk.rest().await.text()), json!([parse(NAMED)]));
        }
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        legacy_client_modern_server = LEGACY_MODERN,
    ] because "in the stateless era answers are part of a call, and bound by its state";
    /// Feature: Answers of other clients
    async fn a_clients_answer_to_what_another_was_asked_is_refused(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (gateway, client) = pair.able(&notes, ALL).await;
        let other = gateway.client_able(pair.client, ALL).await;
        let mut talk = client.call("notes_ask", "{}").begin().await;
        let asked = talk.hear().await;
        let stolen = other.reply(&asked, ("result", r#"{"action":"accept","content":{"name":"Eve"}}"#)).await;
        assert_eq!(stolen.status, 400);
        assert_eq!(client.reply(&asked, ("result", NAMED)).await.status, 202);
        assert_eq!(parse(&talk.rest().await.text()), json!([parse(NAMED)]));
    }
}
