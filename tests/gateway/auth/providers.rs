//! Identity providers that are slow to change, flooded, away, or asked about each token.

use std::time::Duration;

use futures_util::future::join_all;
use usher::{
    auth::spec::{AuthSpec, ClaimNames, IntrospectionSpec, KeySource},
    fetch::Address,
};

use super::{call, call_with, challenge, scene, scene_with};
use crate::harness::{Authority, Gateway, RESOURCE, Revision, Upstream, eventually, tool};

// SECURITY AUTHN-6
#[tokio::test]
async fn authn_6_a_flood_of_unknown_keys_costs_one_refresh_and_known_keys_keep_working() {
    let (_notes, authority, gateway) = scene().await;
    let good = authority.token("ana", "");
    assert_eq!(call(&gateway, &good).await.text(), "called t");
    assert_eq!(authority.fetches(), 1);
    let flood = (0..40).map(|n| {
        let token = authority.with_header(&format!(r#"{{"alg":"EdDSA","kid":"unknown-{n}"}}"#));
        let gateway = &gateway;
        async move { call(gateway, &token).await.status }
    });
    assert!(join_all(flood).await.iter().all(|status| *status == 401));
    assert_eq!(authority.fetches(), 2);
    assert_eq!(call(&gateway, &good).await.text(), "called t");
}

#[tokio::test]
async fn a_key_that_is_new_is_found_by_the_first_token_that_names_it() {
    let (_notes, authority, gateway) = scene().await;
    let old = authority.token("ana", "");
    assert_eq!(call(&gateway, &old).await.text(), "called t");
    authority.rotate("second");
    assert_eq!(
        call(&gateway, &authority.token("ana", "")).await.text(),
        "called t"
    );
    assert_eq!(authority.fetches(), 2);
    assert_eq!(call(&gateway, &old).await.status, 401, "its key is gone");
}

// SECURITY AUTHN-7
#[tokio::test]
async fn authn_7_keys_serve_while_the_provider_is_away_and_then_it_is_503_and_never_let_in() {
    let (notes, authority, gateway) = scene_with(|spec| {
        spec.issuers[0].refresh = Duration::from_millis(200);
        spec.issuers[0].lifetime = Duration::from_secs(6);
    })
    .await;
    let token = authority.token("ana", "");
    assert_eq!(call(&gateway, &token).await.text(), "called t");
    authority.down(true);
    let fetched = authority.fetches();
    assert_eq!(call(&gateway, &token).await.text(), "called t");
    let answer = eventually("the keys' lifetime ends", || async {
        let answer = call(&gateway, &token).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!(
        (answer.status, answer.refusal().1.as_str()),
        (503, "identity_unavailable")
    );
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(authority.fetches(), fetched);
    let heard = notes.heard("tools/call").len();
    assert_eq!(
        call(&gateway, &authority.token("eve", "")).await.status,
        503
    );
    assert_eq!(notes.heard("tools/call").len(), heard);
    authority.down(false);
    eventually("the provider is there again", || async {
        (call(&gateway, &token).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_provider_that_is_away_at_the_start_is_503_and_serves_when_it_comes() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let authority = Authority::start().await;
    authority.down(true);
    let gateway = super::before(&notes, &authority, |_| {}).await;
    let token = authority.token("ana", "");
    assert_eq!(call(&gateway, &token).await.status, 503);
    authority.down(false);
    eventually("its keys are read", || async {
        (call(&gateway, &token).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn keys_of_a_file_are_read_anew_when_it_changes_and_metadata_of_another_issuer_is_refused() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let authority = Authority::start().await;
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("jwks.json");
    std::fs::write(&file, r#"{"keys":[]}"#).unwrap();
    let mut spec = authority.spec();
    spec.issuers[0].keys = KeySource::File(file.clone());
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .auth(spec)
        .start()
        .await;
    let token = authority.token("ana", "");
    assert_eq!(call(&gateway, &token).await.status, 503);
    std::fs::write(&file, authority.jwks()).unwrap();
    eventually("the file is read", || async {
        (call(&gateway, &token).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(authority.fetches(), 0);
    // What the metadata at an address says must be of the issuer that was configured, byte for byte.
    let (_notes, authority, gateway) = scene_with(|spec| {
        let issuer = &mut spec.issuers[0];
        issuer.issuer = format!("{}/", issuer.issuer).into();
    })
    .await;
    assert_eq!(authority.fetches(), 0);
    let (issuer, soon) = (&authority.issuer, crate::harness::now() + 600);
    let token = authority.signed(&format!(
        r#"{{"iss":"{issuer}/","sub":"ana","aud":"{RESOURCE}/mcp","exp":{soon}}}"#
    ));
    assert_eq!(call(&gateway, &token).await.status, 503);
}

/// Tokens that only the authority can read; its answers are kept this long.
fn introspected(spec: &mut AuthSpec, cache: Duration) {
    let issuer = spec.issuers.remove(0).issuer;
    spec.introspection = Some(IntrospectionSpec {
        url: Address::configured(&format!("{issuer}/introspect"), false).unwrap(),
        client_id: "usher".into(),
        client_secret: "s/cret".into(),
        issuer,
        audiences: Vec::new(),
        require_audience: true,
        cache,
        claims: ClaimNames::default(),
    });
}

/// What the authority says of a token that is Ana's.
fn active() -> String {
    format!(r#"{{"active":true,"sub":"ana","aud":"{RESOURCE}/mcp"}}"#)
}

#[tokio::test]
async fn a_token_that_only_its_server_can_read_is_asked_about_once_and_counts_as_it_says() {
    let (_notes, authority, gateway) =
        scene_with(|spec| introspected(spec, Duration::from_secs(45))).await;
    authority.worth("opaque", &active());
    authority.worth(
        "elsewhere",
        r#"{"active":true,"sub":"ana","aud":"https://other.example"}"#,
    );
    for _ in 0..3 {
        assert_eq!(call(&gateway, "opaque").await.text(), "called t");
    }
    assert_eq!(authority.asked(), 1);
    assert_eq!(call(&gateway, "elsewhere").await.status, 401);
    assert_eq!(call(&gateway, "unheard-of").await.status, 401);
    authority.down(true);
    assert_eq!(call(&gateway, "opaque").await.text(), "called t");
    let unknown = call(&gateway, "another").await;
    assert_eq!(
        (unknown.status, unknown.refusal().1.as_str()),
        (503, "identity_unavailable")
    );
}

// SECURITY AUTHN-1, AUTHN-5
#[tokio::test]
async fn a_flood_of_one_token_is_one_question_to_its_server_whether_it_is_good_or_bad() {
    let (notes, authority, gateway) =
        scene_with(|spec| introspected(spec, Duration::from_secs(45))).await;
    authority.worth("opaque", &active());
    for (token, status, questions) in [("unheard-of", 401, 1), ("opaque", 200, 2)] {
        authority.hold(true);
        let flood = (0..40).map(|_| async { call(&gateway, token).await.status });
        let release = async {
            eventually("it is asked", || async {
                (authority.asked() == questions).then_some(())
            })
            .await;
            // As many again as could be on the way at once come while the first one waits.
            let late = (0..16).map(|_| call_with(&gateway, &[]));
            join_all(late).await;
            authority.hold(false);
        };
        let (statuses, ()) = tokio::join!(join_all(flood), release);
        assert!(statuses.iter().all(|it| *it == status), "{statuses:?}");
        assert_eq!(authority.asked(), questions, "{token}");
        assert_eq!(call(&gateway, token).await.status, status);
        assert_eq!(authority.asked(), questions, "{token}, a moment later");
    }
    assert_eq!(notes.heard("tools/call").len(), 41);
    // What was worth nothing may be worth something soon.
    authority.worth("unheard-of", &active());
    eventually("it is asked about again", || async {
        (call(&gateway, "unheard-of").await.status == 200).then_some(())
    })
    .await;
}

// SECURITY AUTHN-1, 6
#[tokio::test]
async fn authn_1_what_can_be_no_token_is_401_and_its_server_is_not_asked_about_it() {
    let (notes, authority, gateway) = scene_with(|spec| {
        introspected(spec, Duration::from_secs(45));
        spec.limits.token_bytes = 100;
    })
    .await;
    let of = |bytes| "x".repeat(bytes);
    for bytes in [99, 100, 101] {
        authority.worth(&of(bytes), &active());
    }
    let over = format!("Bearer {}", of(101));
    for odd in ["Basic YW5hOmFuYQ==", "Bearer", "Bearer a b", over.as_str()] {
        let answer = call_with(&gateway, &[("authorization", odd.to_owned())]).await;
        assert_eq!(
            (answer.status, answer.refusal().1.as_str()),
            (401, "credential_invalid"),
            "{odd}"
        );
        assert!(challenge(&answer).starts_with("Bearer error=\"invalid_token\""));
    }
    assert_eq!(authority.asked(), 0);
    assert!(notes.heard("tools/call").is_empty());
    for bytes in [99, 100] {
        assert_eq!(call(&gateway, &of(bytes)).await.text(), "called t");
    }
    assert_eq!(authority.asked(), 2);
}

// SECURITY AUTHN-8
#[tokio::test]
async fn authn_8_an_address_that_fails_too_often_is_429_and_its_tokens_are_asked_about_as_before() {
    let (_notes, authority, gateway) = scene_with(|spec| {
        introspected(spec, Duration::from_secs(1));
        spec.failures_per_minute = 3;
    })
    .await;
    authority.worth("opaque", &active());
    authority.worth("new", &active());
    assert_eq!(call(&gateway, "opaque").await.text(), "called t");
    let wrong: Vec<_> = (0..100).map(|n| format!("wrong-{n}")).collect();
    let flood = join_all(wrong.iter().map(|token| call(&gateway, token))).await;
    let of = |status| flood.iter().filter(|it| it.status == status).count();
    assert_eq!((of(401), of(429)), (3, 97));
    let asked = authority.asked();
    eventually("it is asked again about the one that it knows", || async {
        assert_eq!(call(&gateway, "opaque").await.text(), "called t");
        (authority.asked() > asked).then_some(())
    })
    .await;
    assert_eq!(call(&gateway, "new").await.text(), "called t");
    assert_eq!(call(&gateway, "wrong").await.status, 429);
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_a_token_that_its_server_takes_back_ends_the_streams_that_hang_on_it() {
    let (_notes, authority, gateway) =
        scene_with(|spec| introspected(spec, Duration::from_secs(1))).await;
    authority.worth("opaque", &active());
    let client = gateway.client_with(Revision::V2026_07_28, "opaque").await;
    let mut watch = client.watch(&["tools"], &[]).await;
    // What else it says of a token ends them as well.
    authority.worth("opaque", &active().replace('}', r#","groups":["b"]}"#));
    let ended = watch.end().await.expect("a last word");
    assert_eq!(ended["error"]["data"]["reason"], "credential_revoked");
    let mut watch = client.watch(&["tools"], &[]).await;
    authority.worth("opaque", r#"{"active":false}"#);
    let ended = watch.end().await.expect("a last word");
    assert_eq!(ended["error"]["data"]["reason"], "credential_revoked");
    assert_eq!(call(&gateway, "opaque").await.status, 401);
}
