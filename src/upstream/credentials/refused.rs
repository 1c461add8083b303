//! Tests: tokens that an upstream refuses: what is sent once more, and with which.

use futures_util::future::BoxFuture;
use http::StatusCode;

use super::{
    tests::{credentials, endpoint, exchanging, minting, somebody, spec},
    *,
};
use crate::{
    call::{Origin, Trail},
    fetch::answering::Answering,
    json::Limits,
    upstream::transport::{Credential, Frames, Head},
};

/// An upstream that takes one token and answers 401 to all others; remembers which came.
struct Picky {
    takes: &'static str,
    seen: std::sync::Mutex<Vec<String>>,
    status: u16,
    /// Where the last token was from.
    credential: std::sync::Mutex<Option<Arc<dyn Credential>>>,
}

impl Picky {
    fn taking(takes: &'static str, status: u16) -> Self {
        Self {
            takes,
            seen: std::sync::Mutex::default(),
            status,
            credential: std::sync::Mutex::default(),
        }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Transport for Picky {
    fn send(&self, out: Outbound) -> BoxFuture<'_, Result<Answer, UpstreamError>> {
        let token = out.headers.get(AUTHORIZATION).map_or("none", |value| {
            value.to_str().unwrap().strip_prefix("Bearer ").unwrap()
        });
        self.seen.lock().unwrap().push(token.to_owned());
        *self.credential.lock().unwrap() = out.credential;
        let answer = if token == self.takes {
            Ok(Answer::Accepted(Head {
                status: StatusCode::ACCEPTED,
                ..Head::default()
            }))
        } else {
            Err(UpstreamError::denied(self.status))
        };
        Box::pin(std::future::ready(answer))
    }

    fn unsolicited(&self, _: http::HeaderMap) -> BoxFuture<'_, Result<Frames, UpstreamError>> {
        Box::pin(std::future::pending())
    }

    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        Box::pin(std::future::pending())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn outbound() -> Outbound {
    Outbound {
        frame: bytes::Bytes::from_static(b"{}"),
        id: None,
        headers: http::HeaderMap::new(),
        limits: Limits::UPSTREAM,
        patience: None,
        payer: None,
        listens: false,
        resumes: false,
        credential: None,
        trail: Trail::NONE,
    }
}

#[tokio::test]
async fn a_request_refused_with_401_is_sent_once_more_with_a_fresh_token() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let ana = somebody("ana", Some("A"));
    let upstream = Picky::taking("for-A-1", 401);
    for attempts in [2, 0, 0] {
        let out = Outbound {
            trail: Trail::of(Origin::default()),
            ..outbound()
        };
        let trail = out.trail.clone();
        let answer = tokens.carry(&upstream, out, Some(&ana)).await;
        assert!(matches!(answer, Ok(Answer::Accepted(_))));
        assert_eq!(trail.read(|facts| facts.attempts), attempts);
    }
    assert_eq!(
        upstream.seen(),
        ["for-A-0", "for-A-1", "for-A-1", "for-A-1"]
    );
}

/// PROTOCOL B4
#[tokio::test]
async fn whoever_goes_on_with_an_answer_has_the_token_of_the_moment() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let ana = somebody("ana", Some("A"));
    let upstream = Picky::taking("for-A-0", 401);
    let out = Outbound {
        resumes: true,
        ..outbound()
    };
    tokens.carry(&upstream, out, Some(&ana)).await.unwrap();
    let credential = upstream.credential.lock().unwrap().take().unwrap();
    let first = credential.now().await.unwrap();
    assert_eq!(first, "Bearer for-A-0");
    let second = credential.instead(&first).await.unwrap().unwrap();
    assert_eq!(second, "Bearer for-A-1");
    assert_eq!(credential.now().await.unwrap(), second);
    // Whoever comes late with the old one finds the new one, and a fresh one that is refused is not refused for its age.
    assert_eq!(credential.instead(&first).await, Ok(Some(second.clone())));
    assert_eq!(credential.instead(&second).await, Ok(None));
    // What is never gone on with needs none.
    tokens.carry(&upstream, outbound(), Some(&ana)).await.ok();
    assert!(upstream.credential.lock().unwrap().is_none());
}

#[tokio::test]
async fn egr_6_an_upstream_that_takes_no_token_costs_one_fresh_one_and_not_one_a_call() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let ana = somebody("ana", Some("A"));
    let upstream = Picky::taking("nothing", 401);
    for _ in 0..5 {
        let answer = tokens.carry(&upstream, outbound(), Some(&ana)).await;
        assert!(matches!(
            answer,
            Err(UpstreamError::Auth(Some(Denial { status: 401, .. })))
        ));
    }
    assert_eq!(issuer.seen().len(), 2);
    assert_eq!(upstream.seen().len(), 6);
}

#[tokio::test]
async fn egr_6_what_is_forbidden_is_not_tried_again() {
    let issuer = Answering::by(minting()).await;
    let tokens = credentials(spec(exchanging(), endpoint(&issuer)));
    let upstream = Picky::taking("nothing", 403);
    let ana = somebody("ana", Some("A"));
    let answer = tokens.carry(&upstream, outbound(), Some(&ana)).await;
    assert!(matches!(
        answer,
        Err(UpstreamError::Auth(Some(Denial { status: 403, .. })))
    ));
    assert_eq!(upstream.seen(), ["for-A-0"]);
    assert_eq!(issuer.seen().len(), 1);
}
