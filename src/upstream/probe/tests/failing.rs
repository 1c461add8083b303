//! The probe of a server that fails on the question itself.

use super::*;

/// What such an answer looks like: that of the Java SDK's stateless servers is the first.
fn failing() -> [Play; 4] {
    [
        Play::Error(500, -32603, ""),
        Play::Error(500, -32022, r#"{"supported":["2027-01-01"]}"#),
        Play::Status(500),
        Play::Status(501),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_on_the_question_is_offered_the_handshake_and_asked_again_in_an_hour() {
    for question in failing() {
        let processes = answering(question, welcome());
        let mut probe = probe(&an_address(), &processes);
        let peer = probe.peer().await.unwrap();
        assert_eq!(peer.card().revision, Revision::V2025_11_25);
        let opened = [DISCOVER, INITIALIZE, "notifications/initialized"];
        assert_eq!(methods(&processes), opened);
        assert_eq!(probe.stale_at(), Some(Instant::now() + SOON));
        // It fails again, which is no better known.
        tokio::time::advance(SOON).await;
        assert!(probe.upgraded().await.is_none());
        assert_eq!(probe.stale_at(), Some(Instant::now() + SOON));
    }
}

#[tokio::test]
async fn a_server_that_fails_on_the_question_and_refuses_the_handshake_failed_on_the_question() {
    for question in failing() {
        for handshake in [
            Play::Error(400, -32022, ""),
            Play::Status(404),
            Play::Status(503),
        ] {
            let processes = answering(question.clone(), handshake);
            let mut probe = probe(&an_address(), &processes);
            let found = probe.peer().await.err();
            assert!(
                matches!(
                    found,
                    Some(UpstreamError::Unavailable {
                        status: Some(500 | 501),
                        ..
                    })
                ),
                "{found:?}"
            );
            assert!(probe.legacy_since.is_none());
            assert_eq!(methods(&processes), [DISCOVER, INITIALIZE]);
            assert_eq!(processes.asked(), [HttpTransport::Streamable]);
        }
    }
    // Whoever lets nobody in says what would help.
    let processes = answering(Play::Status(500), Play::Fail(UpstreamError::denied(401)));
    let found = probe(&an_address(), &processes).peer().await.err();
    assert!(matches!(found, Some(UpstreamError::Auth(_))), "{found:?}");
    // Nothing is offered to what must be modern.
    let processes = answering(Play::Status(500), welcome());
    let spec = pinned(an_address(), Pin::Modern);
    assert!(revision(&spec, &processes).await.is_err());
    assert_eq!(methods(&processes), [DISCOVER]);
}
