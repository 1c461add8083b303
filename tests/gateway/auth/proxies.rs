//! Whence a request comes where proxies stand in front: by what trusted ones say and by nothing else (SECURITY HTTP-12, AUTHN-8).

use super::call_with;
use crate::harness::{Authority, Gateway, Revision, Upstream, tool};

const NEAR: &str = "203.0.113.9";

/// What came of a call with this token, which a proxy says came from there.
async fn from(gateway: &Gateway, token: &str, place: &str) -> u16 {
    let headers = [
        ("authorization", format!("Bearer {token}")),
        ("x-forwarded-for", place.to_owned()),
    ];
    call_with(gateway, &headers).await.status
}

async fn scene(listen: &str) -> (Authority, Gateway) {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let authority = Authority::start().await;
    let mut spec = authority.spec();
    spec.failures_per_minute = 2;
    let gateway = Gateway::of()
        .setting(listen)
        .upstream("notes", &notes)
        .auth(spec)
        .start()
        .await;
    (authority, gateway)
}

// SECURITY AUTHN-8, HTTP-12
#[tokio::test]
async fn authn_8_failures_count_for_the_address_that_a_trusted_proxy_tells_of() {
    let (authority, gateway) = scene("listen: { trusted_proxies: [127.0.0.1] }").await;
    for status in [401, 401, 429] {
        assert_eq!(from(&gateway, "wrong", NEAR).await, status);
    }
    assert_eq!(from(&gateway, "wrong", "203.0.113.10").await, 401);
    // What the client wrote itself stands before what the proxy wrote.
    assert_eq!(
        from(&gateway, "wrong", &format!("192.0.2.7, {NEAR}")).await,
        429
    );
    assert_eq!(from(&gateway, &authority.token("ana", ""), NEAR).await, 200);
}

// SECURITY HTTP-12
#[tokio::test]
async fn without_a_trusted_proxy_no_header_says_whence_a_request_comes() {
    for listen in ["", "listen: { trusted_proxies: [10.0.0.0/8] }"] {
        let (_authority, gateway) = scene(listen).await;
        for (place, status) in [(NEAR, 401), ("203.0.113.10", 401), ("203.0.113.11", 429)] {
            assert_eq!(from(&gateway, "wrong", place).await, status, "{listen}");
        }
    }
}

// SECURITY HTTP-12
#[tokio::test]
async fn policies_see_the_address_that_a_trusted_proxy_tells_of_and_else_that_of_the_connection() {
    let inside = |net: &str| {
        format!(
            r#"permit(principal, action, resource) when {{ context has address && context.address.isInRange(ip("{net}")) }};"#
        )
    };
    for (listen, net, allowed) in [
        (
            "listen: { trusted_proxies: [127.0.0.1] }",
            "203.0.113.0/24",
            true,
        ),
        (
            "listen: { trusted_proxies: [127.0.0.1] }",
            "127.0.0.0/8",
            false,
        ),
        ("", "203.0.113.0/24", false),
        ("", "127.0.0.0/8", true),
    ] {
        let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
        let gateway = Gateway::of()
            .setting(listen)
            .upstream("notes", &notes)
            .policies(&inside(net))
            .start()
            .await;
        let answer = call_with(&gateway, &[("x-forwarded-for", NEAR.to_owned())]).await;
        let called = notes.heard("tools/call").len() == 1;
        assert_eq!(called, allowed, "{listen} {net}: {}", answer.body);
    }
}
