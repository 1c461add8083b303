//! What an answer says of the session that its request named.

use super::*;

/// PROTOCOL B4: what a 400 to a GET means is for whoever knows whether the stream was ever there.
#[tokio::test]
async fn of_the_refusals_of_a_stream_404_alone_says_that_there_is_no_session() {
    let tasks = Tasks::new();
    for status in [400, 404, 503] {
        let http = against(&tasks, move || answer(status, "text/plain", full(""))).await;
        let session = HeaderValue::from_static("s");
        let headers = HeaderMap::from_iter([(mirror::header::SESSION_ID.clone(), session)]);
        let Err(error) = http.unsolicited(headers).await else {
            panic!("{status}: it was not refused")
        };
        match error {
            UpstreamError::Refused(error) => {
                assert_eq!((status, error.code), (404, codes::SESSION_NOT_FOUND));
            }
            error => assert_eq!(error.status(), Some(status).filter(|it| *it != 404)),
        }
    }
}

// PROTOCOL B4, SECURITY EGR-6
#[test]
fn a_401_without_a_challenge_is_a_lost_session_to_whoever_showed_one_and_no_credential() {
    let read = |session, credential, challenge: Option<&str>| {
        let mut answer = Response::builder().status(401);
        if let Some(challenge) = challenge {
            answer = answer.header("www-authenticate", challenge);
        }
        let shows = Shows {
            session,
            credential,
        };
        let answer = shows.understood(answer.body(()).unwrap());
        answer.status().as_u16()
    };
    assert_eq!(read(true, false, None), 404);
    assert_eq!(read(true, false, Some("Bearer")), 401);
    assert_eq!(read(true, true, None), 401);
    assert_eq!(read(false, false, None), 401);
}
