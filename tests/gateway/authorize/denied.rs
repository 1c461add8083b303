//! What is denied though it is seen: with which word, and in a form that its reader can act on.

use super::{LEGACY, MODERN, governed, notes};
use crate::harness::{Authority, Gateway, Pairing, Upstream, parse};

const TYPED: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{"repo":{"type":"string"},"n":{"type":"integer"}}}}"#;

const BY_ARGUMENTS: &str = r#"
@id("acme") permit(principal == User::"ana", action == Action::"call", resource == Tool::"notes_t")
    when { context.args has repo && context.args.repo like "acme/*" };
@id("sums") permit(principal == User::"sue", action == Action::"call", resource == Tool::"notes_t")
    when { context.args has n && context.args.n + 9223372036854775807 > 0 };
"#;

pairings! {
    /// SECURITY AUTHZ-1, AUTHZ-2, AUTHZ-5
    async fn a_seen_tool_is_denied_with_a_reason_that_a_model_can_read(pair: Pairing) {
        let notes = Upstream::http(pair.upstream).tools([TYPED]);
        let gateway = governed(&notes, BY_ARGUMENTS).await;
        let ana = gateway.client_as("ana", pair.client, "{}").await;
        assert_eq!(ana.tools().await, ["notes_t"]);
        assert_eq!(ana.call("notes_t", r#"{"repo":"acme/site"}"#).await.text(), "called t");
        let denied = ana.call("notes_t", r#"{"repo":"other/site"}"#).await;
        assert_eq!(denied.tool_error(), "policy_denied");
        assert!(denied.text().contains("repo"), "{}", denied.text());
        assert!(!denied.text().contains("other/site"), "{}", denied.text());
        assert!(denied.value()["_meta"]["dev.usher/ref"].is_string());
        let sue = gateway.client_as("sue", pair.client, "{}").await;
        assert_eq!(sue.call("notes_t", r#"{"n":1}"#).await.tool_error(), "policy_error");
        for odd in ["92233720368547758070", "1.5", r#""1""#] {
            let answer = sue.call("notes_t", &format!(r#"{{"n":{odd}}}"#)).await;
            assert_eq!(answer.tool_error(), "policy_unrepresentable", "{odd}");
        }
        assert_eq!(notes.heard("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_denied_resource_or_prompt_is_an_error_of_our_own_with_the_reason() {
    let notes = notes(MODERN);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource) when { context has client };
           permit(principal == User::"ana", action == Action::"complete", resource);"#,
    )
    .await;
    for revision in [MODERN, LEGACY] {
        let client = gateway.client_as("ana", revision, "{}").await;
        let read = client.read("notes+note://a").await;
        assert_eq!(read.refusal(), (-31010, "policy_denied".into()));
        assert_eq!(read.status, 200);
        let got = client.ask("prompts/get", r#"{"name":"notes_a"}"#).await;
        assert_eq!(got.refusal(), (-31010, "policy_denied".into()));
        assert!(got.error()["data"]["ref"].is_string());
    }
}

// SECURITY AUTHZ-1
#[tokio::test]
async fn a_token_that_lacks_a_scope_is_answered_with_403_and_the_scope() {
    let notes = notes(MODERN);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource) when { context.scopes.contains("notes:write") };"#,
    )
    .await;
    for revision in [MODERN, LEGACY] {
        let without = gateway.client_as("ana", revision, "{}").await;
        let denied = without.call("notes_a", "{}").await;
        assert_eq!(denied.status, 403);
        assert_eq!(denied.refusal().1, "insufficient_scope");
        assert!(denied.body.contains("notes:write"), "{}", denied.body);
        let with = gateway
            .client_as("ana scope:notes:write", revision, "{}")
            .await;
        assert_eq!(with.call("notes_a", "{}").await.text(), "called a");
    }
}

// SECURITY 9, AUTHZ-1
#[tokio::test]
async fn authz_1_with_auth_and_no_policy_nobody_may_use_anything_and_it_is_reported() {
    let notes = notes(MODERN);
    let authority = Authority::start().await;
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .auth(authority.spec())
        .unguided()
        .start()
        .await;
    for revision in [MODERN, LEGACY] {
        let client = gateway
            .client_with(revision, &authority.token("ana", ""))
            .await;
        assert_eq!(client.tools().await, Vec::<String>::new());
        for (method, params) in [
            ("tools/call", r#"{"name":"notes_a","arguments":{}}"#),
            ("prompts/get", r#"{"name":"notes_a"}"#),
            ("resources/read", r#"{"uri":"notes+note://a"}"#),
        ] {
            let answer = client.ask(method, params).await;
            assert_eq!(answer.refusal().1, "unknown_name", "{method}");
            assert!(notes.heard(method).is_empty());
        }
    }
    let [problem] = &gateway.app.policy_problems()[..] else {
        panic!("{:?}", gateway.app.policy_problems());
    };
    assert!(problem.to_string().contains("usher init"), "{problem}");
}

// SECURITY AUTHZ-1
#[tokio::test]
async fn policies_that_cannot_be_used_permit_nothing_and_are_reported() {
    for spoil in ["nothing", "no policy", "not Cedar", "not valid"] {
        let notes = notes(MODERN);
        let gateway = Gateway::of().upstream("notes", &notes);
        let gateway = match spoil {
            "nothing" => gateway.policies("").missing_policies(),
            "no policy" => gateway.policies("// soon"),
            "not Cedar" => gateway.policies("permit(principal, action, resource"),
            _ => gateway
                .policies("permit(principal, action, resource) when { resource.colour == 1 };"),
        };
        let gateway = gateway.start().await;
        for revision in [MODERN, LEGACY] {
            let client = gateway.client_as("ana", revision, "{}").await;
            assert_eq!(client.tools().await, Vec::<String>::new(), "{spoil}");
            let answer = client.call("notes_a", "{}").await;
            assert_eq!(answer.refusal(), (-32602, "unknown_name".into()), "{spoil}");
        }
        assert!(!gateway.app.policy_problems().is_empty(), "{spoil}");
    }
}

// SECURITY AUTHZ-9
#[tokio::test]
async fn policy_sees_the_very_string_that_is_sent_and_twisted_ones_lead_nowhere() {
    let notes = notes(MODERN);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource is Resource) when { resource.uri like "file:///pub/*" };"#,
    )
    .await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    for fine in ["x", "x%20y", "a.b/..c", "x?q=../y", "%2Fx"] {
        let uri = format!("file:///pub/{fine}");
        client.read(&format!("notes+{uri}")).await.result();
        assert_eq!(notes.last("resources/read").text("uri").unwrap(), uri);
    }
    let read = notes.heard("resources/read").len();
    for twisted in [
        "file:///pub/../secret",
        "file:///pub/./x",
        "file:///pub/%2e%2E/secret",
        "file:///pub/.%2e/secret",
        "file:///pub/..%2fsecret",
        "file:///pub/..\\\\secret",
        "file:///pub/..",
        "file:///pub/%",
        "file:///pub/%zz",
        "file:///pub/\\u0007",
        "FILE:///pub/x",
        "file://host/pub/x",
        "file:///PUB/x",
        "file:///%70ub/x",
    ] {
        let params = format!(r#"{{"uri":"notes+{twisted}"}}"#);
        let answer = client
            .ask("resources/read", &params)
            .without("mcp-name")
            .await;
        let refused = parse(answer.message())["error"]["data"]["reason"].clone();
        let header = client.ask("resources/read", &params).await;
        assert_eq!(header.refusal().1, "unknown_name", "{twisted} {refused}");
    }
    assert_eq!(notes.heard("resources/read").len(), read);
}

// SECURITY AUTHZ-9
#[tokio::test]
async fn a_twisted_address_leads_nowhere_even_where_its_server_lists_it() {
    let notes = Upstream::http(MODERN).resources([
        crate::harness::resource("file:///pub/../secret"),
        crate::harness::resource("file:///pub/x"),
    ]);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource is Resource) when { resource.uri like "file:///pub/*" };"#,
    )
    .await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    client.read("notes+file:///pub/x").await.result();
    let answer = client.read("notes+file:///pub/../secret").await;
    assert_eq!(answer.refusal().1, "unknown_name");
    assert_eq!(notes.heard("resources/read").len(), 1);
}
