//! Servers that ask: forms, addresses, samples and roots reach the client in its own manner, and its answers the server.

use serde_json::{Value, json};

use super::{
    ALL, FORM, HOME, NAMED, PARIS, ROOTS, SAMPLE, STATE, VISIT, asking, asking_at, response,
    state_of, usual,
};
use crate::harness::{
    Gateway, Pairing, Play, Revision, Says, Turn, Upstream, again, member, members, parse,
    text_result, tool,
};

/// What the server got, as its tool tells it.
fn told(text: &str) -> Value {
    parse(text)
}

pairings! {
    /// Feature: Elicitation by form
    async fn a_form_reaches_the_client_and_its_answer_the_server(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", r#"{"a":1.0}"#).answering(usual).await;
        assert_eq!(talk.asked.len(), 1, "{talk:?}");
        let (method, params) = &talk.asked[0];
        assert_eq!(method, "elicitation/create");
        assert_eq!(params["requestedSchema"], parse(FORM.1)["requestedSchema"]);
        let message = params["message"].as_str().unwrap();
        assert!(message.contains("Your name?") && message.contains("notes"), "who asks? {message}");
        assert_eq!(told(&talk.answer.text()), json!([parse(NAMED)]));
        let calls = notes.heard("tools/call");
        assert_eq!(calls.len(), if pair.upstream_is_modern() { 2 } else { 1 });
        assert!(calls.iter().all(|call| call.arguments() == r#"{"a":1.0}"#));
        if pair.upstream_is_modern() {
            // Byte for byte what it gave, and nothing of what the client holds instead.
            assert_eq!(member(&calls[1].params, "requestState").as_deref(), Some(STATE));
            assert_eq!(member(&calls[0].params, "requestState"), None);
        }
    }
}

pairings! {
    /// Feature: Sampling
    async fn a_sample_is_drawn_by_the_clients_model(pair: Pairing) {
        let notes = asking(pair, &[SAMPLE]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        let (method, params) = &talk.asked[0];
        assert_eq!(method, "sampling/createMessage");
        assert_eq!(params["messages"], parse(SAMPLE.1)["messages"]);
        assert_eq!(params["maxTokens"], 100);
        assert_eq!(told(&talk.answer.text()), json!([parse(PARIS)]));
    }
}

pairings! {
    /// Feature: Sampling
    async fn context_of_other_servers_is_never_asked_for(pair: Pairing) {
        const GREEDY: (&str, &str) = (
            "sampling/createMessage",
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":1,"includeContext":"allServers"}"#,
        );
        let notes = asking(pair, &[GREEDY]);
        let able = r#"{"sampling":{"context":{}}}"#;
        let (_gateway, client) = pair.able(&notes, able).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        let context = &talk.asked[0].1["includeContext"];
        assert!(context.is_null() || context == "none", "{talk:?}");
    }
}

pairings! {
    /// Feature: Roots
    async fn roots_are_told_to_the_server_that_asks(pair: Pairing) {
        let notes = asking(pair, &[ROOTS]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked[0].0, "roots/list");
        assert_eq!(told(&talk.answer.text()), json!([parse(HOME)]));
    }
}

pairings! {
    /// Feature: Sampling / elicitation / roots together
    async fn questions_of_all_kinds_are_answered_in_one_call(pair: Pairing) {
        let notes = asking(pair, &[FORM, SAMPLE, ROOTS]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        let mut methods: Vec<&str> = talk.asked.iter().map(|(method, _)| method.as_str()).collect();
        methods.sort_unstable();
        assert_eq!(methods, ["elicitation/create", "roots/list", "sampling/createMessage"]);
        let all = json!([parse(NAMED), parse(PARIS), parse(HOME)]);
        assert_eq!(told(&talk.answer.text()), all);
    }
}

pairings! {
    /// Feature: Elicitation by form
    async fn a_person_who_declines_is_heard_to_decline(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        for action in ["decline", "cancel"] {
            let said = format!(r#"{{"action":"{action}"}}"#);
            let talk = client
                .call("notes_ask", "{}")
                .answering(|_, _| Says::Result(said.clone()))
                .await;
            assert_eq!(told(&talk.answer.text())[0]["action"], action);
        }
    }
}

pairings! {
    /// Feature: URL elicitation
    async fn an_address_reaches_the_client_as_it_is(pair: Pairing) {
        let notes = asking(pair, &[VISIT]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        let params = &talk.asked[0].1;
        assert_eq!(params["mode"], "url");
        assert_eq!(params["url"], "https://accounts.example/sign-in?x=1");
        assert_eq!(told(&talk.answer.text())[0]["action"], "accept");
        // Only the handshake era has ids of elicitations, and each hop its own.
        assert_eq!(params["elicitationId"].is_string(), !pair.client_is_modern(), "{params}");
    }
}

pairings! {
    /// Feature: Prompts and resources that ask
    async fn prompts_and_resources_may_ask_too(pair: Pairing) {
        let modern = pair.upstream_is_modern();
        let play = move |result: &'static str| {
            move |heard: &crate::harness::Heard| {
                if !modern {
                    return Play::live(move |turn: Turn| async move {
                        turn.ask(FORM.0, FORM.1).await;
                        turn.result(result).await;
                    });
                }
                match member(&heard.params, "inputResponses") {
                    Some(_) => Play::Result(result.into()),
                    None => Play::Result(format!(
                        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"{}","params":{}}}}}}}"#,
                        FORM.0, FORM.1
                    )),
                }
            }
        };
        let notes = pair
            .upstream()
            .prompts(&["p"])
            .resources([crate::harness::resource("note://r")])
            .on("prompts/get", play(r#"{"messages":[{"role":"user","content":{"type":"text","text":"done"}}]}"#))
            .on("resources/read", play(r#"{"contents":[{"uri":"note://r","text":"done"}]}"#));
        let (_gateway, client) = pair.able(&notes, ALL).await;
        for ask in [
            client.ask("prompts/get", r#"{"name":"notes_p"}"#),
            client.read("notes+note://r"),
        ] {
            let talk = ask.answering(usual).await;
            assert_eq!(talk.asked.len(), 1);
            assert!(talk.answer.result().contains("done"), "{talk:?}");
        }
        if modern {
            // What gave no state gets none.
            assert_eq!(member(&notes.last("resources/read").params, "requestState"), None);
        }
    }
}

pairings! {
    /// Feature: Several rounds
    async fn a_server_may_ask_again_after_it_was_answered(pair: Pairing) {
        let server = pair.upstream().tools([tool("ask")]);
        let notes = if pair.upstream_is_modern() {
            server.on("tools/call", |heard| {
                let state = heard.text("requestState");
                let round = state.as_deref().unwrap_or("0").parse::<u32>().unwrap();
                let responses = member(&heard.params, "inputResponses");
                // The answers of this round only.
                let count = responses.as_deref().map_or(0, |it| members(it).len());
                if round == 3 {
                    return Play::Result(text_result(&format!("{count} in the last round")));
                }
                Play::Result(format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"q{round}":{{"method":"{}","params":{}}}}},"requestState":"{}"}}"#,
                    FORM.0, FORM.1, round + 1
                ))
            })
        } else {
            server.on("tools/call", |_| {
                Play::live(|turn: Turn| async move {
                    for _ in 0..3 {
                        turn.ask(FORM.0, FORM.1).await;
                    }
                    turn.result(&text_result("1 in the last round")).await;
                })
            })
        };
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked.len(), 3);
        assert_eq!(talk.answer.text(), "1 in the last round");
        if !pair.upstream_is_modern() {
            assert_eq!(notes.heard("tools/call").len(), 1, "never executed twice");
        }
    }
}

pairings! {
    /// Feature: Sampling / elicitation / roots together
    async fn a_server_on_a_pipe_that_is_nobody_elses_may_ask(pair: Pairing) {
        let notes = asking_at(Upstream::pipe(pair.upstream), pair, &[FORM]);
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, "isolation: session")
            .start()
            .await;
        let client = gateway.client_able(pair.client, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked.len(), 1);
        assert_eq!(told(&talk.answer.text()), json!([parse(NAMED)]));
    }
}

pairings! {
    /// Feature: Capabilities promised upstream
    async fn a_server_is_promised_what_this_client_can_and_no_more(pair: Pairing) {
        let notes = asking(pair, &[]);
        let (gateway, _) = pair.able(&notes, "{}").await;
        for (can, asks) in [
            (r#"{"elicitation":{"form":{}}}"#, vec!["elicitation"]),
            (r#"{"roots":{}}"#, vec!["roots"]),
            ("{}", vec![]),
            (ALL, vec!["elicitation", "roots", "sampling"]),
        ] {
            let client = gateway.client_able(pair.client, can).await;
            client.call("notes_t", "{}").await.result();
            let call = notes.last("tools/call");
            let promised = if pair.upstream_is_modern() {
                parse(&call.meta("io.modelcontextprotocol/clientCapabilities").unwrap())
            } else {
                let opened = notes.heard("initialize").into_iter();
                // The session that carried the call is the newest one.
                opened.last().unwrap().value()["capabilities"].clone()
            };
            let mut kinds: Vec<&str> = promised
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .filter(|kind| ["elicitation", "roots", "sampling"].contains(kind))
                .collect();
            kinds.sort_unstable();
            assert_eq!(kinds, asks, "{can}: {promised}");
        }
    }
}

pairings! {
    only [
        modern_client_modern_server = MODERN_MODERN,
        modern_client_legacy_server = MODERN_LEGACY,
    ] because "only there the client holds state";
    /// Feature: Sealed request state
    async fn a_client_sees_none_of_the_servers_state_and_must_bring_ours_back(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let first = client.call("notes_ask", "{}").await.result();
        assert!(!first.contains("the server's own"), "{first}");
        assert_eq!(parse(&first)["resultType"], "input_required");
        let (key, _) = members(&member(&first, "inputRequests").unwrap()).remove(0);
        let state = state_of(&first);
        let heard = notes.heard("tools/call").len();
        // Without it, nobody knows which call goes on.
        let params = r#"{"name":"notes_ask","arguments":{}}"#;
        let bare = again(params, &response(&key, NAMED), None);
        let answer = client.ask("tools/call", &bare).await.value();
        assert_eq!(answer["resultType"], "input_required", "asked anew: {answer}");
        let full = again(params, &response(&key, NAMED), Some(&state));
        let answer = client.ask("tools/call", &full).await;
        assert_eq!(told(&answer.text()), json!([parse(NAMED)]));
        let now = notes.heard("tools/call").len();
        assert_eq!(now - heard, if pair.upstream_is_modern() { 2 } else { 1 });
    }
}

pairings! {
    /// Feature: -32042
    async fn an_address_that_must_be_visited_first_is_asked_for(pair: Pairing) {
        const MUST: &str = r#"{"code":-32042,"message":"Sign in first","data":{"elicitations":[{"mode":"url","elicitationId":"e-9","url":"https://accounts.example/sign-in","message":"Sign in"}]}}"#;
        let notes = pair.upstream().tools([tool("t")]);
        let calls = std::sync::atomic::AtomicUsize::new(0);
        notes.now_on("tools/call", move |_| {
            match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => Play::Error(MUST.into()),
                _ => Play::Result(text_result("signed in")),
            }
        });
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client.call("notes_t", "{}").answering(usual).await;
        if pair.upstream_is_modern() {
            // A modern server may not say so at all.
            let answer = talk.answer;
            let reason = match member(answer.message(), "error") {
                Some(error) => parse(&error)["code"].to_string(),
                None => answer.tool_error(),
            };
            assert!(["-32603", "upstream_protocol_error"].contains(&reason.as_str()), "{answer:?}");
        } else if pair.client_is_modern() {
            assert_eq!(talk.asked.len(), 1);
            assert_eq!(talk.asked[0].1["url"], "https://accounts.example/sign-in");
            assert_eq!(talk.answer.text(), "signed in");
            assert_eq!(notes.heard("tools/call").len(), 2);
            assert_eq!(member(&notes.last("tools/call").params, "inputResponses"), None);
        } else {
            let error = talk.answer.error();
            assert_eq!(error["code"], -32042);
            let told = &error["data"]["elicitations"][0];
            assert_eq!(told["url"], "https://accounts.example/sign-in");
            assert_ne!(told["elicitationId"], "e-9", "each hop has ids of its own");
            assert_eq!(client.call("notes_t", "{}").await.text(), "signed in");
        }
    }
}

/// Feature: Elicitation completed (LL)
#[tokio::test]
async fn that_an_elicitation_is_complete_is_told_to_its_own_client_by_our_id() {
    let pair = Pairing::LEGACY_LEGACY;
    let notes = pair.upstream().tools([tool("ask")]).on("tools/call", |_| {
        Play::live(|turn: Turn| async move {
            turn.ask(VISIT.0, VISIT.1).await;
            let told = r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e-1"}}"#;
            turn.say(told).await;
            turn.result(&text_result("done")).await;
        })
    });
    let (_gateway, client) = pair.able(&notes, ALL).await;
    let talk = client.call("notes_ask", "{}").answering(usual).await;
    let id = &talk.asked[0].1["elicitationId"];
    assert!(id.is_string() && *id != "e-1");
    let told = talk.answer.events().iter().map(|event| parse(event));
    let told: Vec<_> = told
        .filter(|event| event["method"] == "notifications/elicitation/complete")
        .collect();
    assert_eq!(told.len(), 1, "{talk:?}");
    assert_eq!(&told[0]["params"]["elicitationId"], id);
    assert_eq!(talk.answer.text(), "done");
}

/// Feature: Elicitation completed (LL). As a rule the call is over by then; after -32042 always.
#[tokio::test]
async fn that_a_page_is_done_with_is_told_after_the_call_to_who_was_sent_there_and_to_nobody_else()
{
    const MUST: &str = r#"{"code":-32042,"message":"Sign in first","data":{"elicitations":[{"mode":"url","elicitationId":"e-9","url":"https://accounts.example/sign-in","message":"Sign in"}]}}"#;
    const COMPLETE: &str = "notifications/elicitation/complete";
    let legacy = Revision::V2025_11_25;
    let notes = Upstream::pipe(legacy)
        .telling()
        .tools([tool("ask"), tool("must")])
        .on("tools/call", |heard| {
            if heard.params.contains("must") {
                return Play::Error(MUST.into());
            }
            Play::live(|turn: Turn| async move {
                turn.ask(VISIT.0, VISIT.1).await;
                turn.result(&text_result("done")).await;
            })
        });
    let gateway = Gateway::of()
        .upstream_with("notes", &notes, "isolation: session")
        .start()
        .await;
    let client = gateway.client_able(legacy, ALL).await;
    let other = gateway.client_able(legacy, ALL).await;
    let talk = client.call("notes_ask", "{}").answering(usual).await;
    let asked = talk.asked[0].1["elicitationId"].clone();
    let refused = client.call("notes_must", "{}").await.error();
    let required = refused["data"]["elicitations"][0]["elicitationId"].clone();
    let (mut own, mut others) = (client.reading(None).await, other.reading(None).await);
    for (theirs, ours) in [("e-9", required), ("e-1", asked)] {
        // Told twice, it is told once.
        for _ in 0..2 {
            let params = format!(r#"{{"elicitationId":"{theirs}"}}"#);
            notes.say_unasked(COMPLETE, &params).await;
        }
        let heard = parse(&own.message().await.data);
        assert_eq!(heard["method"], COMPLETE, "{heard}");
        assert_eq!(heard["params"]["elicitationId"], ours);
    }
    notes.offer(0, [tool("ask")]);
    notes.announce("tools").await;
    for stream in [&mut own, &mut others] {
        let next = parse(&stream.message().await.data);
        assert_eq!(next["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn msg_3_an_answer_that_is_refused_for_a_name_ends_its_question() {
    for upstream in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let pair = Pairing::of(Revision::V2025_11_25, upstream);
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let mut talk = client.call("notes_ask", "{}").begin().await;
        let question = talk.hear().await;
        let said = r#"{"action":"accept","content":{"name":"Ada"},"_Meta":{}}"#;
        let refused = client.reply(&question, ("result", said)).await;
        assert_eq!(refused.status, 400);
        assert_eq!(refused.refusal(), (-32600, "confusable_member".to_owned()));
        // Nobody sends a response twice, so nobody waits for one.
        let answer = talk.rest().await;
        assert!(!answer.message().contains("Ada"), "{answer:?}");
        // What a form holds is data.
        let talk = client.call("notes_ask", "{}").answering(|_, _| {
            Says::Result(r#"{"action":"accept","content":{"name":"Ada","Name":"Bob"}}"#.to_owned())
        });
        let told = talk.await.answer.text();
        assert!(
            told.contains("Ada") && !told.contains("confusable"),
            "{told}"
        );
    }
}
