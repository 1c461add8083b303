//! Tests: sessions that come of no whole handshake, or are replaced: whether the server is told, and what costs no session.

use std::time::Duration;

use super::{
    tests::{NEWEST, opened, over_http},
    *,
};
use crate::upstream::{
    Reached,
    scripted::{Play, Scripted, an_address, greeting, result},
};

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_in_initialize_is_given_up_and_never_told_so() {
    let transport = Scripted::new(|_| Play::Hang);
    let began = Instant::now();
    let session = opened(&transport, false, NEWEST).await;
    assert!(matches!(
        session,
        Err(UpstreamError::Timeout(Deadline::Initialize))
    ));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(
        transport.sent().len(),
        1,
        "`initialize` must not be cancelled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_handshake_has_its_time_to_the_end_and_a_session_that_came_of_none_is_left() {
    for (initialized, opens, left) in [
        (Play::After(4, Box::new(Play::Status(202))), true, &[][..]),
        (Play::After(6, Box::new(Play::Status(202))), false, &["s0"]),
        (Play::Status(500), false, &["s0"]),
    ] {
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => Play::Session("s0", greeting("2025-11-25")),
            _ => initialized.clone(),
        });
        let session = opened(&transport, true, NEWEST).await;
        assert_eq!(session.is_ok(), opens);
        if let Err(UpstreamError::Timeout(deadline)) = session {
            assert_eq!(deadline, Deadline::Initialize, "no call was sent");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*transport.ended.lock().unwrap(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_handshake_agreed_on_nothing_is_left() {
    let transport = Scripted::new(|_| Play::Session("s", greeting("1999-01-01")));
    assert!(opened(&transport, true, NEWEST).await.is_err());
    assert_eq!(*transport.ended.lock().unwrap(), ["s"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_comes_at_a_bad_time_keeps_its_session_and_a_session_that_is_replaced_is_left()
{
    let (transport, peer) = over_http(&an_address(), |_| Play::Error(429, -32000, "")).await;
    let listed = peer.list(ListKind::Tools).await;
    assert!(
        matches!(
            listed,
            Err(UpstreamError::Unavailable {
                reached: Reached::Busy,
                ..
            })
        ),
        "{listed:?}"
    );
    assert_eq!(transport.sent_of("initialize").len(), 1);

    // One that the server does not know need not be told of.
    for (status, left) in [(409, &["s0"][..]), (404, &[])] {
        let (transport, peer) = over_http(&an_address(), move |sent| {
            match sent.header("mcp-session-id") {
                Some("s0") => Play::Error(status, -32600, ""),
                _ => result(r#"{"tools":[]}"#),
            }
        })
        .await;
        assert!(peer.list(ListKind::Tools).await.is_ok());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(*transport.ended.lock().unwrap(), left, "{status}");
    }
}
