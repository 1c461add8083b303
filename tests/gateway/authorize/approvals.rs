//! Calls that a person has to agree to before they leave (PRODUCT 9).

use std::future::IntoFuture as _;

use serde_json::{Value, json};

use super::{LEGACY, MODERN, governed};
use crate::{
    harness::{
        Gate, Gateway, Pairing, Play, Revision, Says, Upstream, again, call_result, member, parse,
        resource, tool,
    },
    tasks,
    two_way::{ALL, FORM, NAMED, asking},
};

/// A person agrees to `risky`, and everything else needs nobody.
const CAREFUL: &str = r#"
@id("all") permit(principal, action, resource) unless { resource is Tool && resource.name like "*risky*" };
@id("risky") @require("approval") permit(principal, action, resource is Tool) when { resource.name like "*risky*" };
"#;
const FORMS: &str = r#"{"elicitation":{}}"#;

fn risky(revision: Revision) -> Upstream {
    Upstream::http(revision).tools([tool("risky"), tool("t")])
}

fn yes(_: &str, _: &Value) -> Says {
    Says::Result(r#"{"action":"accept","content":{"approve":true}}"#.into())
}

pairings! {
    /// PRODUCT 9
    async fn a_person_is_asked_before_the_call_leaves_and_a_yes_lets_it_go(pair: Pairing) {
        let notes = risky(pair.upstream);
        let gateway = governed(&notes, CAREFUL).await;
        let client = gateway.client_as("ana", pair.client, FORMS).await;
        let arguments = r#"{"path":"/tmp/x","n":1.0}"#;
        let talk = client.call("notes_risky", arguments).answering(|method, params| {
            assert!(notes.heard("tools/call").is_empty(), "asked before it left");
            yes(method, params)
        }).await;
        assert_eq!(talk.answer.text(), "called risky");
        assert_eq!(talk.asked.len(), 1, "{talk:?}");
        let (method, params) = &talk.asked[0];
        assert_eq!(method, "elicitation/create");
        let message = params["message"].as_str().unwrap();
        for said in ["risky", "notes", "/tmp/x"] {
            assert!(message.contains(said), "{message}");
        }
        assert_eq!(params["requestedSchema"]["properties"]["approve"]["type"], "boolean");
        // The upstream gets the call as it was sent, and nothing of the asking.
        let calls = notes.heard("tools/call");
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].arguments(), arguments);
        assert!(!calls[0].params.contains("approv"), "{}", calls[0].params);
        assert_eq!(member(&calls[0].params, "requestState"), None);
        // The result names the approval, under which it is in the record; what needs nobody asks nobody and names none.
        let reference = talk.answer.value()["_meta"]["dev.usher/approval"]["ref"].clone();
        let reference = reference.as_str().unwrap();
        assert!(reference.len() == 32 && reference.bytes().all(|byte| byte.is_ascii_hexdigit()), "{reference}");
        let plain = client.call("notes_t", "{}").await;
        assert_eq!(plain.text(), "called t");
        assert!(!plain.body.contains("dev.usher/approval"), "{}", plain.body);
    }
}

pairings! {
    /// PRODUCT 9, SECURITY EGR-8
    async fn no_server_can_make_up_an_approval(pair: Pairing) {
        let notes = risky(pair.upstream).on("tools/call", |_| {
            Play::Result(r#"{"content":[{"type":"text","text":"x"}],"_meta":{"dev.usher/approval":{"ref":"forged"}}}"#.into())
        });
        let gateway = governed(&notes, CAREFUL).await;
        let client = gateway.client_as("ana", pair.client, FORMS).await;
        let plain = client.call("notes_t", "{}").await;
        assert_eq!(plain.text(), "x");
        assert!(!plain.body.contains("dev.usher/approval"), "{}", plain.body);
        let talk = client.call("notes_risky", "{}").answering(yes).await;
        let reference = &talk.answer.value()["_meta"]["dev.usher/approval"]["ref"];
        assert_eq!(reference.as_str().map(str::len), Some(32), "{reference}");
        assert!(!talk.answer.body.contains("forged"), "{}", talk.answer.body);
    }
}

pairings! {
    /// PRODUCT 9, PROTOCOL A7
    async fn an_approval_is_named_also_where_a_server_writes_something_else_for_meta(pair: Pairing) {
        for other in ["null", "[]", "7"] {
            let notes = risky(pair.upstream).on("tools/call", move |_| {
                Play::Result(format!(r#"{{"content":[{{"type":"text","text":"x"}}],"_meta":{other}}}"#))
            });
            let gateway = governed(&notes, CAREFUL).await;
            let client = gateway.client_as("ana", pair.client, FORMS).await;
            let talk = client.call("notes_risky", "{}").answering(yes).await;
            let reference = &talk.answer.value()["_meta"]["dev.usher/approval"]["ref"];
            assert_eq!(reference.as_str().map(str::len), Some(32), "{other}");
        }
    }
}

pairings! {
    /// PRODUCT 9
    async fn whoever_declines_cancels_or_says_no_has_not_agreed(pair: Pairing) {
        let notes = risky(pair.upstream);
        let gateway = governed(&notes, CAREFUL).await;
        let client = gateway.client_as("ana", pair.client, FORMS).await;
        for no in [
            r#"{"action":"decline"}"#,
            r#"{"action":"cancel"}"#,
            r#"{"action":"accept","content":{"approve":false}}"#,
            r#"{"action":"decline","content":{"approve":true}}"#,
        ] {
            let talk = client.call("notes_risky", "{}").answering(|_, _| Says::Result(no.into())).await;
            assert_eq!(talk.answer.tool_error(), "approval_declined", "{no}");
        }
        assert!(notes.heard("tools/call").is_empty());
    }
}

pairings! {
    /// PRODUCT 9
    async fn a_client_that_cannot_ask_a_person_is_told_so_at_once(pair: Pairing) {
        let notes = risky(pair.upstream);
        let gateway = governed(&notes, CAREFUL).await;
        for capabilities in ["{}", r#"{"sampling":{},"roots":{}}"#, r#"{"elicitation":{"url":{}}}"#] {
            let client = gateway.client_as("ana", pair.client, capabilities).await;
            let answer = client.call("notes_risky", "{}").await;
            assert_eq!(answer.tool_error(), "approval_unavailable", "{capabilities}");
            // It is listed all the same.
            assert_eq!(client.tools().await, ["notes_risky", "notes_t"]);
        }
        assert!(notes.heard("tools/call").is_empty());
    }
}

pairings! {
    /// PRODUCT 9, PROTOCOL D2
    async fn an_upstream_that_asks_for_itself_asks_after_the_approval(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let gateway = governed(
            &notes,
            r#"@require("approval") permit(principal, action == Action::"call", resource);
               permit(principal, action in Action::"ask", resource);"#,
        ).await;
        let client = gateway.client_as("ana", pair.client, ALL).await;
        let talk = client.call("notes_ask", "{}").answering(|method, params| {
            let message = params["message"].as_str().unwrap();
            if message.contains("Approval needed") {
                yes(method, params)
            } else {
                Says::Result(NAMED.into())
            }
        }).await;
        assert_eq!(talk.asked.len(), 2, "{talk:?}");
        assert!(talk.asked[1].1["message"].as_str().unwrap().contains("Your name?"));
        assert_eq!(parse(&talk.answer.text()), json!([parse(NAMED)]));
    }
}

pairings! {
    /// PRODUCT 9
    async fn policy_that_keeps_an_upstream_from_asking_does_not_keep_us(pair: Pairing) {
        let notes = risky(pair.upstream);
        let gateway = governed(
            &notes,
            r#"@require("approval") permit(principal, action == Action::"call", resource);"#,
        ).await;
        let client = gateway.client_as("ana", pair.client, FORMS).await;
        let talk = client.call("notes_risky", "{}").answering(yes).await;
        assert_eq!(talk.answer.text(), "called risky");
    }
}

/// The params of the first round and what it asks: state, and the key of the question.
async fn first_round(client: &crate::harness::Client, params: &str) -> (String, String) {
    let result = client.ask("tools/call", params).await.result();
    assert_eq!(
        member(&result, "resultType").as_deref(),
        Some(r#""input_required""#)
    );
    let asked = parse(&member(&result, "inputRequests").unwrap());
    let key = asked.as_object().unwrap().keys().next().unwrap().clone();
    (member(&result, "requestState").unwrap(), key)
}

#[tokio::test]
async fn an_approval_counts_once_for_one_principal_one_tool_and_its_arguments() {
    let notes = risky(MODERN);
    let gateway = governed(&notes, CAREFUL).await;
    let ana = gateway.client_as("ana", MODERN, FORMS).await;
    let bob = gateway.client_as("bob", MODERN, FORMS).await;
    let params = r#"{"name":"notes_risky","arguments":{"n":1}}"#;
    let (state, key) = first_round(&ana, params).await;
    let approve = format!(r#""{key}":{{"action":"accept","content":{{"approve":true}}}}"#);
    let go = |params: &str| again(params, &approve, Some(&state));
    let others = [
        r#"{"name":"notes_risky","arguments":{"n":2}}"#,
        r#"{"name":"notes_risky"}"#,
    ];
    for other in others {
        let answer = ana.ask("tools/call", &go(other)).await;
        assert_eq!(answer.refusal().1, "state_invalid", "{other}");
    }
    let answer = bob.ask("tools/call", &go(params)).await;
    assert_eq!(answer.refusal().1, "state_invalid");
    assert!(notes.heard("tools/call").is_empty());
    assert_eq!(
        ana.ask("tools/call", &go(params)).await.text(),
        "called risky"
    );
    for _ in 0..3 {
        let answer = ana.ask("tools/call", &go(params)).await;
        assert_eq!(answer.refusal().1, "state_invalid");
    }
    assert_eq!(notes.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn an_approval_that_was_refused_is_not_given_after_all_with_the_same_state() {
    let notes = risky(MODERN);
    let gateway = governed(&notes, CAREFUL).await;
    let ana = gateway.client_as("ana", MODERN, FORMS).await;
    let params = r#"{"name":"notes_risky","arguments":{}}"#;
    for no in [
        r#"{"action":"decline"}"#,
        r#"{"action":"cancel"}"#,
        r#"{"action":"accept","content":{"approve":false}}"#,
    ] {
        let (state, key) = first_round(&ana, params).await;
        let answered = |with: &str| again(params, &format!(r#""{key}":{with}"#), Some(&state));
        let refused = ana.ask("tools/call", &answered(no)).await;
        assert_eq!(refused.tool_error(), "approval_declined", "{no}");
        let yes = answered(r#"{"action":"accept","content":{"approve":true}}"#);
        let answer = ana.ask("tools/call", &yes).await;
        assert_eq!(answer.refusal().1, "state_invalid", "{no}");
    }
    assert!(notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn of_many_uses_of_one_approval_at_once_one_goes_through() {
    let notes = risky(MODERN);
    let gateway = governed(&notes, CAREFUL).await;
    let ana = gateway.client_as("ana", MODERN, FORMS).await;
    let params = r#"{"name":"notes_risky","arguments":{}}"#;
    let (state, key) = first_round(&ana, params).await;
    let approve = format!(r#""{key}":{{"action":"accept","content":{{"approve":true}}}}"#);
    let params = again(params, &approve, Some(&state));
    let uses = (0..20).map(|_| ana.ask("tools/call", &params).into_future());
    let answers = futures_util::future::join_all(uses).await;
    let through = answers
        .iter()
        .filter(|answer| member(answer.message(), "result").is_some());
    assert_eq!(through.count(), 1);
    assert_eq!(notes.heard("tools/call").len(), 1);
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "a legacy client brings nothing back: it is asked while its call is open";
    /// SECURITY REL-3, PROTOCOL D2a
    async fn an_approval_is_as_good_as_before_where_its_call_was_refused_and_never_sent(pair: Pairing) {
        let gate = Gate::new();
        let held = gate.clone();
        let notes = risky(pair.upstream).on("tools/call", move |heard| {
            let name = heard.text("name").unwrap();
            let answer = Play::Result(call_result(&name));
            if name == "t" {
                Play::Gated(Vec::new(), held.clone(), Box::new(answer))
            } else {
                answer
            }
        });
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .policies(CAREFUL)
            .setting("limits: [{ per: upstream, concurrency: 1 }]")
            .start()
            .await;
        let ana = gateway.client_as("ana", pair.client, FORMS).await;
        let params = r#"{"name":"notes_risky","arguments":{}}"#;
        let (state, key) = first_round(&ana, params).await;
        let approve = format!(r#""{key}":{{"action":"accept","content":{{"approve":true}}}}"#);
        let params = again(params, &approve, Some(&state));
        let busy = async {
            assert_eq!(ana.call("notes_t", "{}").await.text(), "called t");
        };
        let refused = async {
            notes.until_heard("tools/call", 1).await;
            for _ in 0..2 {
                let refused = ana.ask("tools/call", &params).await;
                assert_eq!(refused.tool_error(), "overloaded");
            }
            gate.open();
        };
        tokio::join!(busy, refused);
        assert_eq!(ana.ask("tools/call", &params).await.text(), "called risky");
        let twice = ana.ask("tools/call", &params).await;
        assert_eq!(twice.refusal().1, "state_invalid");
        assert_eq!(notes.heard("tools/call").len(), 2);
    }
}

#[tokio::test]
async fn a_call_that_was_approved_once_and_asks_is_not_repeated_by_its_state() {
    let pair = Pairing::MODERN_MODERN;
    let notes = asking(pair, &[FORM]);
    let gateway = governed(
        &notes,
        r#"@require("approval") permit(principal, action == Action::"call", resource);
           permit(principal, action in Action::"ask", resource);"#,
    )
    .await;
    let ana = gateway.client_as("ana", MODERN, ALL).await;
    let params = r#"{"name":"notes_ask","arguments":{}}"#;
    let (state, key) = first_round(&ana, params).await;
    let approve = format!(r#""{key}":{{"action":"accept","content":{{"approve":true}}}}"#);
    let second = ana
        .ask("tools/call", &again(params, &approve, Some(&state)))
        .await
        .result();
    let state = member(&second, "requestState").unwrap();
    let third = again(params, &format!(r#""q0":{NAMED}"#), Some(&state));
    let done = ana.ask("tools/call", &third).await;
    assert_eq!(parse(&done.text()), json!([parse(NAMED)]));
    // The reference of the approval is still known two rounds later, and what the server was sent says nothing of it.
    let reference = &done.value()["_meta"]["dev.usher/approval"]["ref"];
    assert_eq!(reference.as_str().map(str::len), Some(32), "{reference}");
    for heard in notes.heard("tools/call") {
        assert!(!heard.params.contains("approv"), "{}", heard.params);
    }
    assert_eq!(
        ana.ask("tools/call", &third).await.refusal().1,
        "state_invalid"
    );
    assert_eq!(notes.heard("tools/call").len(), 2);
}

#[tokio::test]
async fn answers_that_nobody_asked_for_approve_nothing() {
    let notes = risky(MODERN);
    let gateway = governed(&notes, CAREFUL).await;
    let ana = gateway.client_as("ana", MODERN, FORMS).await;
    let params = r#"{"name":"notes_risky","arguments":{}}"#;
    let approve = r#""dev.usher/approval":{"action":"accept","content":{"approve":true}}"#;
    let unasked = again(params, approve, None);
    let (state, _) = first_round(&ana, &unasked).await;
    // Without an answer the question is put again.
    let empty = again(params, "", Some(&state));
    let (state, _) = first_round(&ana, &empty).await;
    for bad in [
        r#""dev.usher/approval":{"action":"accept"}"#,
        r#""dev.usher/approval":{"action":"accept","content":{"approve":"true"}}"#,
        r#""dev.usher/approval":true"#,
    ] {
        let answer = ana
            .ask("tools/call", &again(params, bad, Some(&state)))
            .await;
        assert_eq!(answer.refusal().1, "invalid_input_response", "{bad}");
    }
    assert!(notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn a_policy_that_changes_while_a_person_thinks_is_the_one_that_counts() {
    let notes = risky(MODERN);
    let gateway = governed(&notes, CAREFUL).await;
    let ana = gateway.client_as("ana", MODERN, FORMS).await;
    let params = r#"{"name":"notes_risky","arguments":{}}"#;
    let (state, key) = first_round(&ana, params).await;
    gateway.rewrite(r#"permit(principal, action, resource == Tool::"notes_t");"#);
    gateway.app.reload_policies().await.unwrap();
    let approve = format!(r#""{key}":{{"action":"accept","content":{{"approve":true}}}}"#);
    let answer = ana
        .ask("tools/call", &again(params, &approve, Some(&state)))
        .await;
    assert_eq!(answer.refusal(), (-32602, "unknown_name".into()));
    assert!(notes.heard("tools/call").is_empty());
}

#[tokio::test]
async fn a_batch_or_an_answer_without_a_stream_cannot_ask_and_is_told_so() {
    let notes = risky(MODERN);
    let gateway = governed(&notes, CAREFUL).await;
    let client = gateway.client_as("ana", LEGACY, FORMS).await;
    let answer = client
        .call("notes_risky", "{}")
        .header("accept", "application/json")
        .await;
    assert_eq!(answer.tool_error(), "approval_unavailable");
    for old in [Revision::V2025_03_26, Revision::V2024_11_05] {
        let client = gateway.client_as("ana", old, FORMS).await;
        let answer = client.call("notes_risky", "{}").await;
        let value = answer.value();
        assert_eq!(value["isError"], true, "{value}");
        assert!(
            value["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("approval"),
            "{value}"
        );
    }
    let client = gateway.client_as("ana", Revision::V2025_06_18, FORMS).await;
    let talk = client.call("notes_risky", "{}").answering(yes).await;
    assert_eq!(talk.answer.text(), "called risky");
}

#[tokio::test]
async fn prompts_and_resources_may_need_a_person_too() {
    let notes = Upstream::http(MODERN)
        .prompts(&["p"])
        .resources([resource("note://r")]);
    let gateway = governed(
        &notes,
        r#"@require("approval") permit(principal, action, resource);"#,
    )
    .await;
    for revision in [MODERN, LEGACY] {
        let client = gateway.client_as("ana", revision, FORMS).await;
        for (method, params) in [
            ("prompts/get", r#"{"name":"notes_p"}"#),
            ("resources/read", r#"{"uri":"notes+note://r"}"#),
        ] {
            let heard = notes.heard(method).len();
            let talk = client.ask(method, params).answering(yes).await;
            assert_eq!(talk.asked.len(), 1, "{method} {talk:?}");
            talk.answer.result();
            assert_eq!(notes.heard(method).len(), heard + 1);
            let says_no = |_: &str, _: &Value| Says::Result(r#"{"action":"decline"}"#.into());
            let talk = client.ask(method, params).answering(says_no).await;
            assert_eq!(talk.answer.refusal(), (-31010, "approval_declined".into()));
        }
        // Nobody can be asked in the middle of a completion.
        let argument = r#""argument":{"name":"x","value":"1"}"#;
        let params = format!(r#"{{"ref":{{"type":"ref/prompt","name":"notes_p"}},{argument}}}"#);
        let answer = client.ask("completion/complete", &params).await;
        assert_eq!(answer.refusal(), (-31010, "approval_unavailable".into()));
    }
}

/// PRODUCT 9, PROTOCOL D3
#[tokio::test]
async fn what_comes_of_a_task_names_the_approval_that_its_call_went_by() {
    for (notes, revision, capabilities, last) in [
        (
            tasks::modern(),
            MODERN,
            r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
            "tasks/get",
        ),
        (tasks::core(), LEGACY, FORMS, "tasks/result"),
    ] {
        let gateway = governed(
            &notes,
            r#"@require("approval") permit(principal, action == Action::"call", resource);"#,
        )
        .await;
        let ana = gateway.client_as("ana", revision, capabilities).await;
        let params = r#"{"name":"notes_slow","arguments":{},"task":{}}"#;
        let talk = ana.ask("tools/call", params).answering(yes).await;
        assert_eq!(talk.asked.len(), 1, "{talk:?}");
        let made = talk.answer.value();
        let reference = made["_meta"]["dev.usher/approval"]["ref"].clone();
        assert_eq!(reference.as_str().map(str::len), Some(32), "{made}");
        let task = made.get("task").unwrap_or(&made);
        let handle = task["taskId"].as_str().unwrap();
        let done = tasks::about(&ana, last, handle).await.value();
        assert_eq!(
            done["_meta"]["dev.usher/approval"]["ref"], reference,
            "{done}"
        );
    }
}

#[tokio::test]
async fn a_call_that_began_when_nobody_had_to_agree_does_not_go_on_when_somebody_has_to() {
    let notes = asking(Pairing::MODERN_MODERN, &[FORM]);
    let gateway = governed(&notes, "permit(principal, action, resource);").await;
    let ana = gateway.client_as("ana", MODERN, ALL).await;
    let params = r#"{"name":"notes_ask","arguments":{}}"#;
    let (state, _) = first_round(&ana, params).await;
    gateway.rewrite(
        r#"@require("approval") permit(principal, action == Action::"call", resource);
           permit(principal, action in Action::"ask", resource);"#,
    );
    gateway.app.reload_policies().await.unwrap();
    let second = again(params, &format!(r#""q0":{NAMED}"#), Some(&state));
    let answer = ana.ask("tools/call", &second).await;
    assert_eq!(answer.refusal().1, "state_invalid");
    assert_eq!(notes.heard("tools/call").len(), 1);
}
