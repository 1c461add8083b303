//! Streams end with the proof they were opened by, with a last word (SECURITY AUTHN-5).

use std::time::{Duration, SystemTime};

use http::Method;

use super::{before, call, scene, scene_with};
use crate::{
    audit::{recording, records},
    harness::{
        Authority, Client, EventStream, Gateway, PATIENCE, Play, Revision, Turn, Upstream,
        eventually, now, parse, tool, within,
    },
};

/// How long a token lives whose end a test waits for.
const SHORT: u64 = 3;
/// How long after the end a stream may go on.
const GRACE: Duration = Duration::from_secs(5);

/// A call that says that it works and then nothing more.
fn endless() -> Upstream {
    Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .telling()
        .on("tools/call", |_| {
            Play::live(|turn: Turn| async move {
                turn.progress(1, "working").await;
                std::future::pending().await
            })
        })
}

async fn with(gateway: &Gateway, revision: Revision, token: &str) -> Client {
    gateway.client_with(revision, token).await
}

/// The end of what runs for a token must come soon after the token's.
fn in_time(until: u64) {
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(until);
    let late = SystemTime::now().duration_since(end);
    let late = late.expect("not before its time");
    assert!(late < GRACE, "{late:?} late");
}

async fn last_error(mut stream: EventStream) -> serde_json::Value {
    let mut last = None;
    while let Some(event) = stream.next().await {
        if !event.data.is_empty() {
            last = Some(event.data);
        }
    }
    parse(&last.unwrap())["error"].clone()
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_a_listen_and_a_long_call_end_with_their_token_and_are_told_so() {
    let notes = endless();
    let authority = Authority::start().await;
    let gateway = before(&notes, &authority, |_| {}).await;
    let until = now() + SHORT;
    let client = with(
        &gateway,
        Revision::V2026_07_28,
        &authority.token_until("ana", until, ""),
    )
    .await;
    let mut watch = client.watch(&["tools"], &[]).await;
    let call = client.call("notes_t", "{}").meta(r#""progressToken":1"#);
    let ended = watch.end().await.expect("a last word");
    in_time(until);
    assert_eq!(ended["error"]["data"]["reason"], "token_expired");
    drop(call);
}

/// SECURITY AUTHN-5: the tolerance is for who comes late, not for whose stream begins late.
#[tokio::test]
async fn authn_5_a_call_that_says_nothing_until_its_token_is_over_ends_no_later_for_that() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| {
            Play::live(|turn: Turn| async move {
                std::future::pending::<()>().await;
                drop(turn);
            })
        });
    let authority = Authority::start().await;
    let gateway = before(&notes, &authority, |_| {}).await;
    // The stream begins after ten seconds.
    let until = now() + 8;
    let token = authority.token_until("ana", until, "");
    let client = with(&gateway, Revision::V2026_07_28, &token).await;
    let answer = client.call("notes_t", "{}").await;
    assert_eq!(answer.refusal(), (-31008, "token_expired".to_owned()));
    in_time(until);
}

// SECURITY AUTHN-5, 6
#[tokio::test]
async fn authn_5_a_stream_of_a_token_that_is_late_by_a_clock_ends_when_the_token_counts_no_more() {
    const SKEW: u64 = 4;
    let (_notes, authority, gateway) = scene_with(|spec| spec.limits.skew = SKEW).await;
    let until = now() - 1;
    let token = authority.token_until("ana", until, "");
    let client = with(&gateway, Revision::V2026_07_28, &token).await;
    let mut watch = client.watch(&["tools"], &[]).await;
    let ended = watch.end().await.expect("a last word");
    in_time(until + SKEW);
    assert_eq!(ended["error"]["data"]["reason"], "token_expired");
    assert_eq!(call(&gateway, &token).await.status, 401);
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_a_long_call_of_either_era_ends_with_its_token_and_is_cancelled_upstream() {
    let notes = endless();
    let authority = Authority::start().await;
    let directory = tempfile::tempdir().unwrap();
    let gateway = recording(directory.path(), &notes).auth(authority.spec());
    let gateway = gateway.start().await;
    for revision in [
        Revision::V2026_07_28,
        Revision::V2025_11_25,
        Revision::V2025_03_26,
    ] {
        let until = now() + SHORT;
        let client = with(&gateway, revision, &authority.token_until("ana", until, "")).await;
        let answer = client
            .call("notes_t", "{}")
            .meta(r#""progressToken":1"#)
            .await;
        in_time(until);
        assert_eq!(
            answer.refusal(),
            (-31008, "token_expired".to_owned()),
            "{revision}"
        );
        assert_eq!(answer.status, 200, "{revision}");
    }
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    let told: Vec<_> = told.iter().filter(|it| it["stage"] == "outcome").collect();
    assert_eq!(told.len(), 3);
    for outcome in told {
        // Its client has not given it up.
        assert_eq!(outcome["outcome"], "denied");
        assert_eq!(outcome["reason"], "token_expired");
    }
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_streams_of_sessions_end_with_their_token_and_a_new_token_goes_on() {
    let (_notes, authority, gateway) = scene().await;
    let until = now() + SHORT;
    let mut client = with(
        &gateway,
        Revision::V2025_11_25,
        &authority.token_until("ana", until, ""),
    )
    .await;
    let get = client.reading(None).await;
    let headers = [
        ("accept", "text/event-stream"),
        ("authorization", client.own[0].1.as_str()),
    ];
    let old = EventStream::open(gateway.address, Method::GET, "/sse", &headers, "").await;
    assert_eq!((get.status, old.status), (200, 200));
    for stream in [get, old] {
        within(PATIENCE, "the end of a stream", stream.rest()).await;
        in_time(until);
    }
    // Refused until the tolerance is over too; with a new token the session is there as before.
    client.own[0].1 = format!("Bearer {}", authority.token("ana", ""));
    assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    assert_eq!(client.reading(None).await.status, 200);
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_streams_end_when_the_key_that_signed_their_token_is_gone() {
    let (_notes, authority, gateway) =
        scene_with(|spec| spec.issuers[0].refresh = Duration::from_millis(200)).await;
    let client = with(&gateway, Revision::V2026_07_28, &authority.token("ana", "")).await;
    let mut watch = client.watch(&["tools"], &[]).await;
    authority.rotate("second");
    let ended = watch.end().await.expect("a last word");
    assert_eq!(ended["error"]["data"]["reason"], "credential_revoked");
    assert_eq!(client.call("notes_t", "{}").await.status, 401);
    // The same where no other key takes its place.
    let client = with(&gateway, Revision::V2026_07_28, &authority.token("ana", "")).await;
    let mut watch = client.watch(&["tools"], &[]).await;
    authority.forget();
    let ended = watch.end().await.expect("a last word");
    assert_eq!(ended["error"]["data"]["reason"], "credential_revoked");
    assert_eq!(client.call("notes_t", "{}").await.status, 401);
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_a_call_that_a_client_fetches_later_ends_with_the_token_that_it_was_made_by() {
    let notes = endless();
    let authority = Authority::start().await;
    let gateway = before(&notes, &authority, |_| {}).await;
    let until = now() + SHORT;
    let client = with(
        &gateway,
        Revision::V2025_11_25,
        &authority.token_until("ana", until, ""),
    )
    .await;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"notes_t","arguments":{},"_meta":{"progressToken":1}}}"#;
    let mut stream = client.post_open(body).await;
    let id = stream.next().await.unwrap().id.unwrap();
    drop(stream);
    let mut again = client.clone();
    again.own[0].1 = format!("Bearer {}", authority.token("ana", ""));
    let error = last_error(again.reading(Some(&id)).await).await;
    in_time(until);
    assert_eq!(error["data"]["reason"], "token_expired");
    eventually("its slot is free", || async {
        let answer = again.ask("ping", "{}").await;
        (answer.status == 200).then_some(())
    })
    .await;
}
