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
