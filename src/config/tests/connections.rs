//! Upstreams that people log in to: what may be said of them, and what is wrong with the rest.

use secrecy::ExposeSecret;

use super::*;
use crate::connect::spec::{ClientSpec, Registration, ServerSpec};

const WIKI: &str = "upstreams:\n  wiki:\n    url: https://wiki.example/mcp\n";

fn with(auth: &str, rest: &str) -> String {
    format!("{WIKI}    auth: {{ authorization_code: {{ {auth} }} }}\n{rest}")
}

#[test]
fn a_login_that_is_only_named_is_found_out_whole() {
    let plan = Files::with(&with("", "")).plan();
    let (id, account) = plan.connect.accounts.iter().next().unwrap();
    assert_eq!(id.as_str(), "wiki");
    assert_eq!(account.address, "https://wiki.example/mcp");
    assert_eq!(account.server, ServerSpec::Discovered);
    assert!(matches!(
        account.client,
        ClientSpec::Registered(Registration::Auto)
    ));
    assert!(account.scopes.is_none() && account.resource.is_none());
    assert!(plan.connect.store.is_none() && plan.connect.url.is_none());
    assert!(Files::with(WIKI).plan().connect.accounts.is_empty());
}

#[test]
fn an_upstream_that_is_logged_in_to_is_found_out_about_with_its_own_tls() {
    let issued = rcgen::generate_simple_self_signed(vec!["usher.test".into()]).unwrap();
    let tls = "    tls: { ca: \"${file:cert.pem}\", cert: \"${file:cert.pem}\", key: \"${file:key.pem}\" }\n";
    let files = Files::with(&with("", tls));
    files.add("cert.pem", &issued.cert.pem());
    files.add("key.pem", &issued.signing_key.serialize_pem());
    let plan = files.plan();
    let account = plan.connect.accounts.values().next().unwrap();
    let (cert, secret) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    let (chain, key) = account.tls.identity.as_ref().unwrap();
    for shown in [account.tls.ca.as_ref().unwrap(), chain] {
        assert_eq!(shown.trim_ascii_end(), cert.trim_end().as_bytes());
    }
    assert_eq!(key.expose_secret().trim_end(), secret.trim_end());
    let without = Files::with(&with("", "")).plan();
    let account = without.connect.accounts.values().next().unwrap();
    assert!(account.tls.is_default());
}

#[test]
fn everything_about_a_login_can_be_said() {
    let files = Files::with(&with(
        "client_id: c, client_secret: \"${file:secret}\", scopes: [a, b], issuer: \"https://login.example\", resource: r",
        "listen: { hosts: [mcp.example.com] }\nconnections: { store: /x/y, keys: [\"${file:new}\", \"${file:old}\"], url: \"https://mcp.example.com/\" }\n",
    ));
    files.add("secret", "s3cret");
    files.add("new", "new-0123456789abcdef0123456789abcdef");
    files.add("old", "old-0123456789abcdef0123456789abcdef");
    let connect = files.plan().connect;
    let account = connect.accounts.values().next().unwrap();
    assert_eq!(
        account.server,
        ServerSpec::Issuer("https://login.example".into())
    );
    let ClientSpec::Given {
        id,
        secret: Some(secret),
    } = &account.client
    else {
        panic!("{account:?}");
    };
    assert_eq!((id.as_str(), secret.expose_secret()), ("c", "s3cret"));
    assert_eq!(account.scopes.as_deref().unwrap(), ["a", "b"]);
    let store = connect.store.as_ref().unwrap();
    assert_eq!(store.directory, Path::new("/x/y"));
    assert!(store.keys[0].expose_secret().starts_with("new-"));
    assert_eq!(connect.url.as_deref(), Some("https://mcp.example.com"));
    let shown = format!("{connect:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("0123456789"));
}

#[test]
fn what_is_wrong_with_a_login_is_said_where_it_stands() {
    let own = "connections: { url: \"https://other.example\" }\n";
    for (yaml, path, message) in [
        (
            with("client_secret: \"${env:TOKEN}\"", ""),
            "client_id",
            "without its `client_id`",
        ),
        (
            with("client_id: c, client_secret: plain", ""),
            "client_secret",
            "in the file itself",
        ),
        (
            with("client_id: c, registration: dynamic", ""),
            "registration",
            "beside `client_id`",
        ),
        (
            with("issuer: \"http://login.example\"", ""),
            "issuer",
            "not an https address",
        ),
        (
            with("issuer: \"https://a\", token_url: \"https://a/t\"", ""),
            "issuer",
            "beside",
        ),
        (
            with("authorize_url: \"https://a/a\", client_id: c", ""),
            "token_url",
            "without `token_url`",
        ),
        (
            with(
                "authorize_url: \"https://a/a\", token_url: \"https://a/t\"",
                "",
            ),
            "client_id",
            "no client",
        ),
        (with("scopes: [\"a b\"]", ""), "scopes[0]", "not a scope"),
        (
            with("", "connections: { keys: [\"${env:TOKEN}\"] }\n"),
            "connections.store",
            "nothing to encrypt",
        ),
        (
            with("", "connections: { store: /x }\n"),
            "connections.keys",
            "without a key",
        ),
        (
            with("", "connections: { store: /x, keys: [\"${env:TOKEN}\"] }\n"),
            "keys[0]",
            "fewer than 32",
        ),
        (with("", own), "connections.url", "not among `listen.hosts`"),
        (
            with("", "connections: { url: \"https://localhost/x\" }\n"),
            "connections.url",
            "with a path",
        ),
        (
            with("", "endpoint: /connect/mcp\n"),
            "endpoint",
            "where the page is",
        ),
        (
            format!("{WIKI}connections: {{}}\n"),
            "connections",
            "nobody logs in",
        ),
        (
            "upstreams:\n  a:\n    command: [x]\n    auth: { authorization_code: {} }\n".to_owned(),
            "upstreams.a.auth",
            "means nothing beside `command`",
        ),
        (
            with("", "").replace("    auth", "    isolation: shared\n    auth"),
            "upstreams.wiki.isolation",
            "one session for all",
        ),
        (
            with("", "").replace("    auth", "    transport: sse\n    auth"),
            "upstreams.wiki.transport",
            "one stream for all",
        ),
        (
            with("", "").replace(
                "    auth",
                "    headers: { Authorization: \"${env:TOKEN}\" }\n    auth",
            ),
            "upstreams.wiki.auth",
            "both set `authorization`",
        ),
    ] {
        let problem = only(&yaml);
        assert!(problem.path.ends_with(path), "{} of\n{yaml}", problem.path);
        assert!(
            problem.message.contains(message),
            "{} of\n{yaml}",
            problem.message
        );
    }
}
