//! What is refused, with what status, and what the refusal says and does not say.

use std::sync::Arc;

use http::Method;

use super::{call, call_at, call_with, challenge, get, scene, scene_with};
use crate::harness::{Authority, Client, RESOURCE, Revision, exchange, now, parse};

#[tokio::test]
async fn without_a_token_every_revision_is_told_where_to_sign_in_and_for_which_scopes() {
    let (notes, _authority, gateway) =
        scene_with(|spec| spec.required_scopes = Arc::new(["mcp".into(), "tools".into()])).await;
    for path in ["/mcp", "/mcp/one", "/mcp/u/notes"] {
        let answer = call_at(&gateway, path, &[]).await;
        assert_eq!(answer.status, 401);
        assert_eq!(
            challenge(&answer),
            format!(
                "Bearer scope=\"mcp tools\", resource_metadata=\"{RESOURCE}/.well-known/oauth-protected-resource{path}\""
            )
        );
        assert_eq!(answer.refusal(), (-31008, "credential_missing".to_owned()));
    }
    for revision in &Revision::ALL[..4] {
        let refused = Client::connect(gateway.address, "/mcp", *revision)
            .await
            .err()
            .unwrap();
        assert_eq!(refused.0.status, 401, "{revision}");
    }
    for path in ["/mcp", "/sse", "/messages", "/messages?session=00"] {
        assert_eq!(
            get(&gateway, path).await.status,
            if path.starts_with("/messages") {
                405
            } else {
                401
            },
            "{path}"
        );
    }
    assert!(notes.heard("tools/call").is_empty());
}

// PROTOCOL F4
#[tokio::test]
async fn metadata_is_at_the_path_of_each_endpoint_and_at_the_root_for_anybody_to_read() {
    let (_notes, authority, gateway) = scene_with(|spec| {
        spec.required_scopes = Arc::new(["mcp".into()]);
        spec.supported_scopes = vec!["admin".into()];
    })
    .await;
    for (place, resource) in [
        ("", "/mcp"),
        ("/mcp", "/mcp"),
        ("/mcp/one", "/mcp/one"),
        ("/mcp/u/notes", "/mcp/u/notes"),
        ("/sse", "/sse"),
    ] {
        let answer = get(
            &gateway,
            &format!("/.well-known/oauth-protected-resource{place}"),
        )
        .await;
        assert_eq!(answer.status, 200, "{place}");
        let metadata = parse(&answer.body);
        assert_eq!(metadata["resource"], format!("{RESOURCE}{resource}"));
        assert_eq!(
            metadata["authorization_servers"],
            serde_json::json!([authority.issuer])
        );
        assert_eq!(
            metadata["scopes_supported"],
            serde_json::json!(["mcp", "admin"])
        );
    }
    let other = get(&gateway, "/.well-known/oauth-protected-resource/mcp/two").await;
    assert_eq!(other.status, 404);
}

// PROTOCOL F12: a browser asks without the token that it is about to send.
#[tokio::test]
async fn a_page_learns_where_to_sign_in() {
    let (_notes, _authority, gateway) = scene().await;
    let page = ("origin", "http://127.0.0.1:6274");
    let asks = ("access-control-request-method", "POST");
    let allowed = |answer: &crate::harness::Answer| {
        let origin = answer.headers.get("access-control-allow-origin");
        origin.map(|origin| origin.to_str().unwrap().to_owned())
    };
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    for path in ["/mcp", metadata, "/sse", "/messages"] {
        let head = [page, asks];
        let answer = exchange(gateway.address, Method::OPTIONS, path, &head, b"").await;
        assert_eq!(
            (answer.status, allowed(&answer).as_deref()),
            (204, Some(page.1))
        );
    }
    let refused = exchange(gateway.address, Method::POST, "/mcp", &[page], b"{}").await;
    assert_eq!(
        (refused.status, allowed(&refused).as_deref()),
        (401, Some(page.1))
    );
    let read = refused.headers["access-control-expose-headers"].to_str();
    assert!(read.unwrap().contains("www-authenticate"));
    challenge(&refused);
    let told = exchange(gateway.address, Method::GET, metadata, &[page], b"").await;
    assert_eq!(
        (told.status, allowed(&told).as_deref()),
        (200, Some(page.1))
    );
    // What is kept is kept for each origin alone.
    let plain = get(&gateway, metadata).await;
    assert_eq!((plain.status, allowed(&plain)), (200, None));
    assert_eq!(plain.headers["vary"], "origin");
}

// SECURITY AUTHN-1, AUTHN-2, AUTHN-3
#[tokio::test]
async fn authn_1_2_3_a_token_that_proves_nothing_is_401_and_which_check_failed_is_not_told() {
    let (notes, authority, gateway) = scene().await;
    let stranger = Authority::start().await;
    let issuer = &authority.issuer;
    let (soon, past) = (now() + 600, now() - 31);
    let claims =
        |rest: &str| authority.signed(&format!(r#"{{"iss":"{issuer}","sub":"ana",{rest}}}"#));
    let fits = format!(r#""aud":"{RESOURCE}/mcp""#);
    let bad = [
        ("no token of any kind", "nonsense".to_owned()),
        ("expired", authority.token_until("ana", past, "")),
        (
            "not yet valid",
            authority.token("ana", &format!(r#","nbf":{}"#, now() + 60)),
        ),
        ("of another issuer", stranger.token("ana", "")),
        (
            "for another audience",
            claims(&format!(r#""aud":"{RESOURCE}/mcp/","exp":{soon}"#)),
        ),
        ("for no audience", claims(&format!(r#""exp":{soon}"#))),
        ("without an end", claims(&fits)),
        (
            "with an end that is text",
            claims(&format!(r#"{fits},"exp":"{soon}""#)),
        ),
        (
            "with an end twice",
            claims(&format!(r#"{fits},"exp":{soon},"exp":{soon}"#)),
        ),
        (
            "with an issuer that is a list",
            authority.signed(&format!(
                r#"{{"iss":["{issuer}"],"sub":"ana",{fits},"exp":{soon}}}"#
            )),
        ),
        (
            "with a user that is a number",
            authority.signed(&format!(
                r#"{{"iss":"{issuer}","sub":7,{fits},"exp":{soon}}}"#
            )),
        ),
        (
            "with a user twice, once in disguise",
            claims(&format!(r#"{fits},"exp":{soon},"s\u0075b":"eve""#)),
        ),
        (
            "with two audiences of which one is this one",
            claims(&format!(
                r#"{fits},"aud":"https://other.example","exp":{soon}"#
            )),
        ),
        (
            "with groups that are an object",
            claims(&format!(r#"{fits},"exp":{soon},"groups":{{"admin":true}}"#)),
        ),
        (
            "with scopes that are numbers",
            claims(&format!(r#"{fits},"exp":{soon},"scope":[1]"#)),
        ),
        (
            "with a start that is text",
            claims(&format!(r#"{fits},"exp":{soon},"nbf":"0""#)),
        ),
        (
            "unsigned",
            format!(
                "{}.",
                authority
                    .with_header(r#"{"alg":"none"}"#)
                    .rsplit_once('.')
                    .unwrap()
                    .0
            ),
        ),
        (
            "with a critical header",
            authority.with_header(r#"{"alg":"EdDSA","kid":"first","crit":["x"]}"#),
        ),
        (
            "with a place for keys",
            authority.with_header(r#"{"alg":"EdDSA","kid":"first","jku":"https://evil.example"}"#),
        ),
        (
            "by a key that is a path",
            authority.with_header(r#"{"alg":"EdDSA","kid":"../first"}"#),
        ),
    ];
    let mut bodies = Vec::new();
    for (what, token) in &bad {
        let answer = call(&gateway, token).await;
        assert_eq!(answer.status, 401, "{what}");
        assert!(
            challenge(&answer).starts_with("Bearer error=\"invalid_token\""),
            "{what}"
        );
        let mut error = answer.error();
        error["data"]["ref"] = "".into();
        bodies.push((error.to_string(), challenge(&answer).to_owned()));
        assert!(!answer.body.contains(token.as_str()), "{what}");
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "they can be told apart: {bodies:#?}");
    assert!(notes.heard("tools/call").is_empty());
    assert_eq!(
        call(&gateway, &authority.token("ana", "")).await.text(),
        "called t"
    );
    // A header that is no bearer token is a credential that proves nothing.
    let basic = call_with(&gateway, &[("authorization", "Basic YW5hOmFuYQ==".into())]).await;
    assert_eq!(basic.status, 401);
}

// SECURITY AUTHN-4
#[tokio::test]
async fn authn_4_two_credentials_or_one_in_the_address_or_a_cookie_are_400_and_shown_to_nobody() {
    let (notes, authority, gateway) = scene().await;
    let token = authority.token("ana", "");
    let bearer = ("authorization", format!("Bearer {token}"));
    let two = call_with(
        &gateway,
        &[bearer.clone(), ("x-api-key", "usher_00_x".into())],
    )
    .await;
    let query = call_at(&gateway, &format!("/mcp?access_token={token}"), &[]).await;
    let both = call_at(
        &gateway,
        &format!("/mcp?x={token}"),
        std::slice::from_ref(&bearer),
    )
    .await;
    let cookie = call_with(&gateway, &[("cookie", format!("a=b; token={token}"))]).await;
    for answer in [two, query, both, cookie] {
        assert_eq!(
            (answer.status, answer.refusal().1.as_str()),
            (400, "credential_misplaced")
        );
        assert!(!answer.body.contains(&token));
    }
    let own = [bearer];
    let client = Client::connect_with(gateway.address, "/mcp", Revision::V2026_07_28, "{}", &own);
    let client = client.await.unwrap();
    let form = client
        .call("notes_t", "{}")
        .header("content-type", "application/x-www-form-urlencoded")
        .await;
    assert_eq!(form.status, 415, "a token in a body would be a form");
    assert!(notes.heard("tools/call").is_empty());
}

// SECURITY AUTHN-8
#[tokio::test]
async fn authn_8_an_address_that_fails_too_often_is_429_and_a_valid_token_from_it_still_works() {
    let (_notes, authority, gateway) = scene_with(|spec| spec.failures_per_minute = 10).await;
    for _ in 0..10 {
        assert_eq!(call(&gateway, "wrong").await.status, 401);
    }
    let over = call(&gateway, "wrong").await;
    assert_eq!(
        (over.status, over.refusal().1.as_str()),
        (429, "rate_limited")
    );
    let wait: u64 = over.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait));
    assert_eq!(
        call(&gateway, &authority.token("ana", "")).await.text(),
        "called t"
    );
    // Whoever brings nothing has not failed: that is how signing in begins.
    assert_eq!(call_with(&gateway, &[]).await.status, 401);
}

// PROTOCOL F5
#[tokio::test]
async fn a_token_without_a_scope_that_all_need_is_403_and_is_told_all_of_them_at_once() {
    let (notes, authority, gateway) =
        scene_with(|spec| spec.required_scopes = Arc::new(["mcp".into(), "tools".into()])).await;
    let less = call(&gateway, &authority.token("ana", r#","scope":"mcp other""#)).await;
    assert_eq!(
        (less.status, less.refusal().1.as_str()),
        (403, "insufficient_scope")
    );
    assert_eq!(
        challenge(&less),
        format!(
            "Bearer error=\"insufficient_scope\", error_description=\"this needs a token with more scopes\", scope=\"mcp tools\", resource_metadata=\"{RESOURCE}/.well-known/oauth-protected-resource/mcp\""
        )
    );
    assert!(notes.heard("tools/call").is_empty());
    let enough = call(&gateway, &authority.token("ana", r#","scope":"tools mcp""#)).await;
    assert_eq!(enough.text(), "called t");
}

#[tokio::test]
async fn a_token_for_a_narrower_endpoint_is_not_one_for_all_of_them() {
    let (_notes, authority, gateway) = scene().await;
    let (issuer, soon) = (&authority.issuer, now() + 600);
    let narrow = authority.signed(&format!(
        r#"{{"iss":"{issuer}","sub":"ana","aud":"{RESOURCE}/mcp/one","exp":{soon}}}"#
    ));
    let at = async |path: &str, token: &str| {
        let headers = [("authorization", format!("Bearer {token}"))];
        call_at(&gateway, path, &headers).await.status
    };
    assert_eq!(at("/mcp/one", &narrow).await, 200);
    assert_eq!(at("/mcp", &narrow).await, 401);
    assert_eq!(at("/mcp/u/notes", &narrow).await, 401);
    assert_eq!(at("/mcp/one", &authority.token("ana", "")).await, 200);
}

#[tokio::test]
async fn anonymous_is_let_in_only_where_it_is_written_down_and_a_bad_token_is_not_anonymous() {
    let (_notes, authority, gateway) = scene_with(|spec| spec.anonymous = true).await;
    assert_eq!(call_with(&gateway, &[]).await.text(), "called t");
    assert_eq!(call(&gateway, "wrong").await.status, 401);
    assert_eq!(
        call(&gateway, &authority.token("ana", "")).await.text(),
        "called t"
    );
}
