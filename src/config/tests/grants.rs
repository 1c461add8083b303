//! How tokens for upstreams are configured, and what is refused.

use super::*;
use crate::upstream::spec::{
    ClientAuth, Endpoint, Grant, GrantSpec, ListsAs, SubjectType, TokenEndpoint,
};

/// One upstream with this `auth`, and these keys beside it.
fn with(auth: &str, beside: &str) -> String {
    format!(
        "upstreams:\n  a:\n    url: https://files.example/mcp\n    auth: {{ {auth} }}\n{beside}"
    )
}

const US: &str = "client_id: usher, client_secret: \"${env:TOKEN}\"";

fn accepted(auth: &str) -> GrantSpec {
    let plan = Files::with(&with(auth, "")).plan();
    match &plan.upstreams[0].endpoint {
        Endpoint::Http(http) => *http.grant.clone().unwrap(),
        Endpoint::Stdio(_) => unreachable!(),
    }
}

#[test]
fn each_grant_loads_with_its_defaults() {
    let spec = accepted(&format!(
        "client_credentials: {{ token_url: https://login.example/token, {US} }}"
    ));
    assert!(matches!(spec.grant, Grant::ClientCredentials));
    assert!(
        matches!(&spec.server.token_endpoint, TokenEndpoint::Url(at) if at.to_string() == "https://login.example/token")
    );
    assert_eq!(spec.resource, "https://files.example/mcp");
    assert_eq!(spec.server.client_auth, ClientAuth::Basic);
    assert_eq!((spec.audience, spec.scopes.len()), (None, 0));

    let spec = accepted(&format!(
        "token_exchange: {{ issuer: https://login.example/t, {US}, audience: files, scopes: [a, b], subject_token_type: jwt, lists: nobody, client_auth: post }}"
    ));
    let subject = SubjectType::Jwt;
    assert!(matches!(spec.grant, Grant::TokenExchange { subject: given } if given == subject));
    assert!(
        matches!(&spec.server.token_endpoint, TokenEndpoint::Issuer(_, text) if text == "https://login.example/t")
    );
    assert_eq!(spec.audience.as_deref(), Some("files"));
    assert_eq!(spec.scopes, ["a", "b"]);
    assert_eq!(spec.lists, ListsAs::Nobody);
    assert_eq!(spec.server.client_auth, ClientAuth::Post);

    let spec = accepted(&format!(
        "id_jag: {{ issuer: https://auth.files.example, {US}, idp: {{ token_url: https://login.example/token, {US} }} }}"
    ));
    let Grant::IdJag {
        audience, subject, ..
    } = spec.grant
    else {
        unreachable!()
    };
    assert_eq!(audience, "https://auth.files.example");
    assert_eq!(subject, SubjectType::AccessToken);
    assert_eq!(spec.lists, ListsAs::Principal);
}

#[test]
fn what_is_wrong_with_a_grant_is_told_where_it_stands() {
    let url = "token_url: https://login.example/token";
    for (auth, path, word) in [
        (
            format!("client_credentials: {{ {US} }}"),
            "client_credentials",
            "neither",
        ),
        (
            format!("client_credentials: {{ {url}, client_secret: \"${{env:TOKEN}}\" }}"),
            "client_credentials.client_id",
            "missing",
        ),
        (
            format!("token_exchange: {{ {url}, client_id: usher }}"),
            "token_exchange.client_secret",
            "missing",
        ),
        (
            format!("token_exchange: {{ {url}, client_id: usher, client_secret: plain }}"),
            "token_exchange.client_secret",
            "in the file itself",
        ),
        (
            format!("client_credentials: {{ token_url: http://login.example/token, {US} }}"),
            "client_credentials.token_url",
            "http to an address",
        ),
        (
            format!("client_credentials: {{ issuer: login.example, {US} }}"),
            "client_credentials.issuer",
            "not an absolute address",
        ),
        (
            format!("client_credentials: {{ {url}, {US}, lists: service }}"),
            "client_credentials.lists",
            "means nothing",
        ),
        (
            format!("token_exchange: {{ {url}, {US}, idp: {{ {url}, {US} }} }}"),
            "token_exchange.idp",
            "means nothing",
        ),
        (
            format!("token_exchange: {{ {url}, {US}, scopes: [\"a b\"] }}"),
            "token_exchange.scopes[0]",
            "not a scope",
        ),
        (
            format!("token_exchange: {{ {url}, {US}, resource: files }}"),
            "token_exchange.resource",
            "not a resource",
        ),
        (
            format!("token_exchange: {{ {url}, {US}, ca: none }}"),
            "token_exchange.ca",
            "PEM",
        ),
        (
            format!("id_jag: {{ issuer: https://files.example, {US} }}"),
            "id_jag.idp",
            "missing",
        ),
        (
            format!("id_jag: {{ {url}, {US}, idp: {{ {url}, {US} }} }}"),
            "id_jag.audience",
            "whom the assertion is for",
        ),
    ] {
        let problem = only(&with(&auth, ""));
        assert_eq!(problem.path, format!("upstreams.a.auth.{path}"), "{auth}");
        assert!(problem.message.contains(word), "{}", problem.message);
        assert!(problem.hint.is_some() || word == "PEM", "{auth}");
    }
}

#[test]
fn state_8_a_session_for_everybody_does_not_go_with_each_users_own_token() {
    let url = "token_url: https://login.example/token";
    let exchange = format!("token_exchange: {{ {url}, {US} }}");
    let problem = only(&with(&exchange, "    isolation: shared\n"));
    assert_eq!(problem.path, "upstreams.a.isolation");
    assert!(problem.hint.unwrap().contains("`principal`"));
    let problem = only(&with(&exchange, "    transport: sse\n"));
    assert_eq!(problem.path, "upstreams.a.transport");
    // One token for everybody may ride on it.
    let service = format!("client_credentials: {{ {url}, {US} }}");
    for beside in ["    isolation: shared\n", "    transport: sse\n"] {
        Files::with(&with(&service, beside)).plan();
    }
    let both = "    headers: { Authorization: \"${env:TOKEN}\" }\n";
    assert_eq!(only(&with(&service, both)).path, "upstreams.a.auth");
}
