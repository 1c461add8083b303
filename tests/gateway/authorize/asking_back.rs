//! Whether an upstream may ask the client for something is policy's to say, kind by kind.

use crate::{
    authorize::governed,
    harness::{Pairing, Play, Revision, Upstream, member, parse, tool},
    two_way::{ALL, FORM, ROOTS, SAMPLE, asking, usual},
};

/// Everything may be used, and these may be asked for.
fn may(asks: &str) -> String {
    format!(
        r#"permit(principal, action in Action::"use", resource);
           permit(principal, action in [{asks}], resource);"#
    )
}

pairings! {
    /// PRODUCT 9
    async fn what_policy_lets_an_upstream_ask_for_is_asked(pair: Pairing) {
        let notes = asking(pair, &[FORM, SAMPLE, ROOTS]);
        let gateway = governed(&notes, &may(r#"Action::"ask""#)).await;
        let client = gateway.client_as("ana", pair.client, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked.len(), 3, "{talk:?}");
        assert_eq!(parse(&talk.answer.text()).as_array().unwrap().len(), 3);
    }
}

pairings! {
    /// PRODUCT 9
    async fn what_it_does_not_never_reaches_the_client_and_the_call_ends(pair: Pairing) {
        let gateway_for = async |notes: &Upstream| {
            governed(notes, &may(r#"Action::"elicit""#)).await
        };
        for questions in [&[SAMPLE] as &[_], &[ROOTS], &[FORM, ROOTS]] {
            let questions: &'static [(&str, &str)] = Box::leak(questions.to_vec().into());
            let notes = asking(pair, questions);
            let gateway = gateway_for(&notes).await;
            let client = gateway.client_as("ana", pair.client, ALL).await;
            let talk = client.call("notes_ask", "{}").answering(usual).await;
            let kinds: Vec<_> = talk.asked.iter().map(|(method, _)| method.as_str()).collect();
            assert!(kinds.iter().all(|kind| *kind == "elicitation/create"), "{talk:?}");
            if pair.upstream_is_modern() {
                // It was told what it may not ask for, and asked all the same: that is ours to explain, not its fault.
                assert_eq!(talk.answer.tool_error(), "policy_denied", "{talk:?}");
                assert!(talk.answer.text().contains("no policy lets it ask for"), "{talk:?}");
            } else {
                // It was refused at once, and said what it made of that.
                let told = parse(&talk.answer.text());
                let refused = told.as_array().unwrap().iter().filter(|it| it["code"].is_i64());
                assert_eq!(refused.count(), 1, "{told}");
            }
        }
        let plain = Upstream::http(pair.upstream).tools([tool("t")]);
        let gateway = gateway_for(&plain).await;
        let client = gateway.client_as("ana", pair.client, ALL).await;
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    }
}

/// To be sent to an address by an error is to be asked, too (PRODUCT 9).
#[tokio::test]
async fn an_upstream_that_may_not_ask_sends_nobody_to_an_address_by_an_error_either() {
    const VISIT: &str = r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"7"}]}}"#;
    let legacy = Revision::V2025_11_25;
    let notes = Upstream::http(legacy)
        .tools([tool("t")])
        .prompts(&["p"])
        .on("tools/call", |_| Play::Error(VISIT.into()))
        .on("completion/complete", |_| Play::Error(VISIT.into()));
    for (asks, accept, reason) in [
        (
            r#"Action::"sample""#,
            "application/json, text/event-stream",
            Some("policy_denied"),
        ),
        // What it declared is not held against it, since it could not be asked.
        (
            r#"Action::"sample""#,
            "application/json",
            Some("capability_missing"),
        ),
        (r#"Action::"elicit""#, "application/json", None),
    ] {
        let gateway = governed(&notes, &may(asks)).await;
        let client = gateway.client_as("ana", legacy, ALL).await;
        let answer = client.call("notes_t", "{}").header("accept", accept).await;
        match reason {
            Some(reason) => {
                assert_eq!(answer.tool_error(), reason, "{answer:?}");
                assert!(!answer.body.contains("example.com"), "{answer:?}");
            }
            None => assert_eq!(answer.error()["code"], -32042, "{answer:?}"),
        }
        // Nor by what it answers to a request by which it could not ask.
        let params =
            r#"{"ref":{"type":"ref/prompt","name":"notes_p"},"argument":{"name":"n","value":"v"}}"#;
        let answer = client.ask("completion/complete", params).await;
        let is_sent = reason.is_none();
        assert_eq!(answer.error()["code"] == -32042, is_sent, "{answer:?}");
        assert_eq!(answer.body.contains("example.com"), is_sent, "{answer:?}");
    }
}

pairings! {
    /// PROTOCOL D0.2
    async fn an_upstream_is_told_only_of_what_it_may_ask_for(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let gateway = governed(&notes, &may(r#"Action::"elicit""#)).await;
        let client = gateway.client_as("ana", pair.client, ALL).await;
        client.call("notes_ask", "{}").answering(usual).await.answer.text();
        let told = if pair.upstream_is_modern() {
            notes.last("tools/call").meta("io.modelcontextprotocol/clientCapabilities").unwrap()
        } else {
            let heard = notes.heard("initialize");
            let declared = heard.iter().map(|heard| member(&heard.params, "capabilities").unwrap());
            // Sessions that only list offer everything, and nobody is asked on them.
            declared.collect::<Vec<_>>().pop().unwrap()
        };
        assert!(told.contains("elicitation"), "{told}");
        assert!(!told.contains("sampling") && !told.contains("roots"), "{told}");
    }
}

pairings! {
    only [modern_client_modern_server = MODERN_MODERN]
        because "only the stateless era has an error for capabilities that were not declared";
    /// PROTOCOL B3
    async fn an_upstream_that_cannot_go_on_without_asking_fails_by_policy_and_not_for_the_client(pair: Pairing) {
        let notes = Upstream::http(pair.upstream).tools([tool("ask")]).on("tools/call", |_| {
            Play::Error(r#"{"code":-32021,"message":"needs roots","data":{"requiredCapabilities":{"roots":{}}}}"#.into())
        });
        let gateway = governed(&notes, &may(r#"Action::"elicit""#)).await;
        let client = gateway.client_as("ana", pair.client, ALL).await;
        let answer = client.call("notes_ask", "{}").await;
        assert_eq!(answer.tool_error(), "policy_denied", "{}", answer.body);
    }
}
