//! Limits as clients meet them: who is refused, by which rule, in which form, and who is not (PRODUCT 6, 10, SECURITY 5.9, 6).

mod at_once;

use usher::config;

use crate::harness::{
    Answer, Client, Gateway, Heard, Pairing, Piped, Play, Revision, Upstream, call_result, parse,
    tool,
};

/// A server with tools `t` and `u` and prompt `p`.
fn notes(revision: Revision) -> Upstream {
    Upstream::http(revision)
        .tools([tool("t"), tool("u")])
        .prompts(&["p"])
        .on("tools/call", |heard: &Heard| {
            Play::Result(call_result(&heard.text("name").unwrap()))
        })
}

async fn limited(notes: &Upstream, rules: &str) -> Gateway {
    Gateway::of()
        .upstream("notes", notes)
        .toolset("few", "tools: [notes_t]")
        .setting(&format!("limits: {rules}"))
        .start()
        .await
}

/// What the header says, in seconds.
fn retry_after(answer: &Answer) -> u64 {
    let value = answer.headers["retry-after"].to_str().unwrap();
    value.parse().unwrap()
}

/// Checks a refusal of a request as such.
fn refused(answer: &Answer, status: u16, code: i64, reason: &str, rule: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.refusal(), (code, reason.to_owned()));
    let error = answer.error();
    assert_eq!(error["data"]["rule"], rule);
    assert!(error["message"].as_str().unwrap().contains(rule), "{error}");
    let millis = error["data"]["retryAfterMs"].as_u64().unwrap();
    assert_eq!(
        retry_after(answer),
        millis.div_ceil(1_000).max(1),
        "{error}"
    );
}

const CALLS: &str = "match: { method: tools/call }";

pairings! {
    /// SECURITY REL-3, MSG-11
    async fn requests_over_a_rate_are_429_and_say_which_rule_and_when_to_retry(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = limited(&notes, &format!("[{{ per: principal, {CALLS}, rate: 2/h }}]")).await;
        let client = pair.client(&gateway).await;
        for _ in 0..2 {
            assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        }
        let over = client.call("notes_t", "{}").await;
        refused(&over, 429, -31011, "rate_limited", "2/h per principal (method tools/call)");
        assert!((1_790..=1_800).contains(&retry_after(&over)));
        // First refusal before any lookup: what does not exist is refused in the same words.
        let unknown = client.call("nothing", "{}").await;
        refused(&unknown, 429, -31011, "rate_limited", "2/h per principal (method tools/call)");
        // Other methods are not meant.
        assert_eq!(client.tools().await.len(), 2);
        assert_eq!(notes.heard("tools/call").len(), 2);
        let status = gateway.app.limits();
        assert_eq!((status[0].admitted, status[0].refused), (2, 2));
    }
}

pairings! {
    /// What the gateway asks on a client's behalf without its asking is not at its expense.
    async fn what_a_client_hears_of_changes_is_counted_once_at_most(pair: Pairing) {
        let notes = notes(pair.upstream).telling();
        let gateway = limited(&notes, "[{ per: principal, daily: 1000 }]").await;
        let counted = || gateway.app.limits()[0].admitted;
        let client = pair.client(&gateway).await;
        // What it asks for, and no list: that a session hears of them is counted nowhere, a modern client's listen once.
        let mut watch = client.watch(&["tools"], &[]).await;
        notes.offer(0, [tool("t")]);
        notes.announce("tools").await;
        watch.change().await;
        let before = counted();
        client.tools().await;
        assert_eq!((before, counted()), (1, 2));
    }
}

pairings! {
    /// PRODUCT 6
    async fn over_a_quota_of_a_tool_a_model_is_told_in_a_result_whichever_endpoint_it_uses(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = limited(&notes, "[{ per: [principal, tool], match: \"notes_*\", daily: 2 }]").await;
        let client = pair.client(&gateway).await;
        let own = gateway.client_at("/mcp/u/notes", pair.client).await;
        let few = gateway.client_at("/mcp/few", pair.client).await;
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        assert_eq!(own.call("t", "{}").await.text(), "called t");
        for (client, name) in [(&client, "notes_t"), (&own, "t"), (&few, "notes_t")] {
            let over = client.call(name, "{}").await;
            assert_eq!((over.status, over.tool_error().as_str()), (200, "quota_exceeded"));
            assert!(over.headers.get("retry-after").is_none());
            let text = over.text();
            assert!(text.contains("2 a day per principal and tool (tool notes_*)"), "{text}");
            let meta = over.value()["_meta"].clone();
            assert_eq!(meta["dev.usher/rule"], "2 a day per principal and tool (tool notes_*)");
            let millis = meta["dev.usher/retryAfterMs"].as_u64().unwrap();
            assert!(millis <= 86_400_000 && meta["dev.usher/ref"].is_string(), "{meta}");
        }
        assert_eq!(client.call("notes_u", "{}").await.text(), "called u");
        assert_eq!(notes.heard("tools/call").len(), 3);
    }
}

pairings! {
    async fn over_a_rate_of_an_upstream_other_methods_than_calls_get_an_error_of_our_own(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = limited(&notes, "[{ per: upstream, name: notes, rate: 1/h }]").await;
        let client = pair.client(&gateway).await;
        client.ask("prompts/get", r#"{"name":"notes_p"}"#).await.result();
        let over = client.ask("prompts/get", r#"{"name":"notes_p"}"#).await;
        assert_eq!((over.status, over.refusal()), (200, (-31011, "rate_limited".into())));
        let data = over.error()["data"].clone();
        assert_eq!(data["rule"], "1/h per upstream (upstream notes)");
        assert!(data["retryAfterMs"].as_u64().unwrap() > 3_500_000, "{data}");
        assert_eq!(client.call("notes_t", "{}").await.tool_error(), "rate_limited");
        // Lists go to no upstream.
        assert_eq!(client.tools().await.len(), 2);
    }
}

#[tokio::test]
async fn whoever_opens_a_session_over_a_rate_is_told_so_and_not_that_there_is_no_endpoint() {
    let notes = notes(Revision::V2026_07_28);
    let gateway = limited(&notes, "[{ per: principal, rate: 1/h }]").await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let over = gateway.try_client_at("/mcp", Revision::V2025_11_25).await;
    let over = over.err().unwrap().0;
    refused(&over, 429, -31011, "rate_limited", "1/h per principal");
    drop(client);
}

#[tokio::test]
async fn principals_have_meters_of_their_own_and_groups_share_one() {
    let notes = notes(Revision::V2026_07_28);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .policies("permit(principal, action, resource);")
        .setting("limits: [{ per: principal, match: { method: tools/call }, rate: 2/h }, { per: group, match: interns, rate: 3/h }]")
        .start()
        .await;
    let client = async |who: &str| gateway.client_as(who, Revision::V2026_07_28, "{}").await;
    let status = async |client: &Client| client.call("notes_t", "{}").await.status;
    let (ana, sue) = (
        client("ana group:interns").await,
        client("sue group:interns").await,
    );
    assert_eq!([status(&ana).await, status(&ana).await], [200, 200]);
    assert_eq!([status(&sue).await, status(&sue).await], [200, 429]);
    // The group is over, the principal is not.
    let max = client("max group:interns").await;
    assert_eq!(
        max.call("notes_t", "{}").await.error()["data"]["rule"],
        "3/h per group (group interns)"
    );
    let eve = client("eve group:staff").await;
    assert_eq!(status(&eve).await, 200);
}

#[tokio::test]
async fn a_rule_for_a_tool_does_not_tell_of_one_that_is_hidden() {
    let notes = notes(Revision::V2026_07_28);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .policies(
            r#"permit(principal, action, resource == Tool::"notes_t");
               permit(principal == User::"ana", action, resource == Tool::"notes_u");"#,
        )
        .setting("limits: [{ per: tool, rate: 1/h }]")
        .start()
        .await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let ana = gateway.client_as("ana", revision, "{}").await;
        ana.call("notes_u", "{}").await.result();
        let sue = gateway.client_as("sue", revision, "{}").await;
        let hidden = sue.call("notes_u", "{}").await;
        let absent = sue.call("notes_x", "{}").await;
        assert_eq!(hidden.refusal(), absent.refusal());
        assert_eq!(hidden.refusal().0, -32602);
    }
    // Used up by the first ana; the second was told.
    assert_eq!(notes.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn each_request_of_a_batch_counts_and_is_answered_for_itself() {
    let notes = notes(Revision::V2026_07_28);
    let gateway = limited(
        &notes,
        &format!("[{{ per: principal, {CALLS}, rate: 2/h }}]"),
    )
    .await;
    let client = gateway.client(Revision::V2025_03_26).await;
    let call = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"notes_t","arguments":{{}}}}}}"#
        )
    };
    let batch = format!("[{},{},{}]", call(1), call(2), call(3));
    let answer = client.post(&batch, &[]).await;
    assert_eq!(answer.status, 200);
    let answers = parse(&answer.body);
    let reasons: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["error"]["data"]["reason"].as_str())
        .collect();
    assert_eq!(reasons, [None, None, Some("rate_limited")]);
}

/// The answer with this id; what is told before it is not looked at.
async fn answer(pipe: &mut Piped, id: u32, line: &str) -> serde_json::Value {
    let mut heard = parse(&pipe.ask(line).await);
    while heard["id"] != id {
        heard = parse(&pipe.hear().await);
    }
    heard
}

#[tokio::test]
async fn on_a_pipe_limits_are_the_same_in_both_eras() {
    let notes = notes(Revision::V2026_07_28);
    let builder = Gateway::of()
        .upstream("notes", &notes)
        .setting("limits: [{ per: address, match: { method: tools/call }, rate: 2/h }, { per: tool, daily: 1 }]");
    let mut pipe = Piped::start(&builder.text()).await;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    pipe.ask(hello).await;
    pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let prompt = r#"{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"notes_p"}}"#;
    while answer(&mut pipe, 2, prompt).await.get("error").is_some() {}
    let call = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"notes_t","arguments":{{}}{meta}}}}}"#
        )
    };
    let modern = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let first = answer(&mut pipe, 3, &call("")).await;
    assert_eq!(first["result"]["content"][0]["text"], "called t");
    let over = answer(&mut pipe, 3, &call(modern)).await;
    assert_eq!(
        over["result"]["_meta"]["dev.usher/reason"],
        "quota_exceeded"
    );
    for meta in ["", modern] {
        let over = answer(&mut pipe, 3, &call(meta)).await;
        assert_eq!(over["error"]["data"]["reason"], "rate_limited", "{over}");
        assert_eq!(over["error"]["code"], -31011);
    }
    pipe.end().await;
}

#[tokio::test]
async fn other_rules_come_into_force_and_meters_stay() {
    let notes = notes(Revision::V2026_07_28);
    let rules = |daily: u32| {
        format!("[{{ per: tool, rate: 1/h }}, {{ per: principal, {CALLS}, daily: {daily} }}]")
    };
    let gateway = limited(&notes, &rules(100)).await;
    let client = gateway.client(Revision::V2026_07_28).await;
    client.call("notes_t", "{}").await.result();
    client.call("notes_u", "{}").await.result();
    let plan = config::of_text(&format!("limits: {}\n", rules(3))).unwrap();
    gateway.app.limit(plan.limits);
    // The rate knows of the call before; the quota of both.
    assert_eq!(
        client.call("notes_t", "{}").await.tool_error(),
        "rate_limited"
    );
    let over = client.call("notes_t", "{}").await;
    refused(
        &over,
        429,
        -31011,
        "quota_exceeded",
        "3 a day per principal (method tools/call)",
    );
    let none = config::of_text("# nothing\n").unwrap();
    gateway.app.limit(none.limits);
    client.call("notes_t", "{}").await.result();
}
