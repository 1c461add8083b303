//! A 401 by which some servers say that they do not know a session, where 404 is what is owed (PROTOCOL B4).
//!
//! Every server on `rmcp` 0.2 to 0.16 does, and a credential that it takes has nothing to do with it. Guarantees: a 401 that asks
//! for a credential, as each one must that means it (RFC 9110 15.5.2), is none of these, nor is one that does not say in so many
//! words what it is about: many servers leave the challenge out, and who is refused by one of those is not helped by a session
//! more. Of such an answer no more than [`MOST`] bytes are looked at, and for no longer than [`PATIENCE`].

use std::time::Duration;

use http::{HeaderMap, Response, StatusCode, header::WWW_AUTHENTICATE};
use tokio::time::timeout;

use super::Arriving;
use crate::{protocol::mirror::header::SESSION_ID, upstream::transport::body::beginning};

/// What the words are, in whatever case. Before them stands `Unauthorized: `.
const WORDS: &[u8] = b"session not found";
/// The most bytes of a body that are looked at.
const MOST: usize = 512;
/// How long those may be in coming.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the session that a request with these headers named is one that this answer to it does not know.
pub(super) async fn names_none(is_named: bool, response: &mut Response<Arriving>) -> bool {
    if !is_named
        || response.status() != StatusCode::UNAUTHORIZED
        || response.headers().contains_key(WWW_AUTHENTICATE)
    {
        return false;
    }
    let said = timeout(PATIENCE, beginning(response.body_mut(), MOST)).await;
    said.is_ok_and(|said| {
        said.windows(WORDS.len())
            .any(|words| words.eq_ignore_ascii_case(WORDS))
    })
}

/// Whether a request with these headers names a session.
pub(super) fn is_named(headers: &HeaderMap) -> bool {
    headers.contains_key(&SESSION_ID)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::{
        tasks::Tasks,
        upstream::{
            Denial, UpstreamError,
            transport::{
                Http, Outbound, Transport,
                http::tests::against,
                rig::{answer, ask, full, request},
            },
        },
    };

    const KIND: &str = "text/plain; charset=utf-8";
    const RMCP: &str = "Unauthorized: Session not found";

    async fn saying(tasks: &Tasks, status: u16, text: String, challenge: bool) -> Http {
        against(tasks, move || {
            let mut answer = answer(status, KIND, full(text.clone()));
            if challenge {
                let bearer = HeaderValue::from_static("Bearer");
                answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
            }
            answer
        })
        .await
    }

    fn named() -> Outbound {
        let mut out = request(1);
        let session = HeaderValue::from_static("s");
        out.headers.insert(&SESSION_ID, session);
        out
    }

    fn is_denied<T>(outcome: Result<T, UpstreamError>) -> bool {
        matches!(
            outcome,
            Err(UpstreamError::Auth(Some(Denial { status: 401, .. })))
        )
    }

    /// PROTOCOL B4
    #[tokio::test]
    async fn a_401_that_names_the_session_and_asks_for_no_credential_is_a_404() {
        let tasks = Tasks::new();
        let before = format!("{}{RMCP}", " ".repeat(MOST - RMCP.len()));
        for text in [RMCP, "{\"error\":\"session not found\"}", &before] {
            let http = saying(&tasks, 401, text.to_owned(), false).await;
            assert_eq!(ask(&http, named()).await.unwrap(), ["status 404"], "{text}");
            let Err(UpstreamError::Refused(error)) = http.unsolicited(named().headers).await else {
                panic!("{text}: it was not refused")
            };
            assert_eq!(error.code, crate::protocol::codes::SESSION_NOT_FOUND);
        }
    }

    #[tokio::test]
    async fn every_other_401_is_a_refused_credential() {
        let tasks = Tasks::new();
        let late = format!("{}{RMCP}", " ".repeat(MOST));
        for (text, challenge, out) in [
            (RMCP, true, named()),
            // A handshake: it names no session that could be forgotten.
            (RMCP, false, request(1)),
            ("Unauthorized", false, named()),
            ("your session has expired, log in", false, named()),
            ("", false, named()),
            (&late, false, named()),
        ] {
            let http = saying(&tasks, 401, text.to_owned(), challenge).await;
            let headers = out.headers.clone();
            assert!(is_denied(http.unsolicited(headers).await), "{text}");
            assert!(is_denied(ask(&http, out).await), "{text}");
        }
        let http = saying(&tasks, 403, RMCP.to_owned(), false).await;
        let refused = ask(&http, named()).await;
        assert!(matches!(refused, Err(UpstreamError::Auth(_))));
    }
}
