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
        let code = if let UpstreamError::Refused(error) = &error {
            Some(error.code)
        } else {
            None
        };
        let lost = status == 404;
        assert_eq!(code, lost.then_some(codes::SESSION_NOT_FOUND), "{status}");
        assert_eq!(error.status(), (!lost).then_some(status), "{error}");
    }
}

/// The same of what is posted and of a stream that is to be opened, by what they named and what was said.
#[tokio::test]
async fn a_session_is_lost_to_posts_and_to_streams_by_what_they_showed() {
    const FORGOTTEN: &str = "Unauthorized: Session not found";
    for (status, named, said, posted, lost) in [
        (401, true, FORGOTTEN, Some(404), true),
        (401, true, "no", None, false),
        (401, false, FORGOTTEN, None, false),
        (404, true, "no", Some(404), true),
        (400, true, "no", Some(400), false),
        (400, false, "no", Some(400), false),
    ] {
        let tasks = Tasks::new();
        let http = against(&tasks, move || answer(status, "text/plain", full(said))).await;
        let mut headers = HeaderMap::new();
        if named {
            headers.insert("mcp-session-id", HeaderValue::from_static("s"));
        }
        let mut out = request(1);
        out.headers.extend(headers.clone());
        let told = match http.send(out).await {
            Ok(Answer::Status(head)) => Some(head.status.as_u16()),
            Err(UpstreamError::Auth(_)) => None,
            _ => panic!("{status}"),
        };
        assert_eq!(told, posted, "{status} {named} {said}");
        let refused = http.unsolicited(headers).await.err().unwrap();
        let is_lost = matches!(
            refused,
            UpstreamError::Refused(error) if error.code == codes::SESSION_NOT_FOUND
        );
        assert_eq!(is_lost, lost, "{status} {named} {said}");
    }
}
