//! What an answer says of the session that its request named.

use super::*;

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
