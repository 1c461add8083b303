//! Answers that are arrays of frames, which one revision alone has.

use super::{
    super::rig::*,
    tests::{TYPE, against},
    *,
};

#[tokio::test]
async fn an_array_answers_up_to_its_response() {
    let tasks = Tasks::new();
    let http = against(&tasks, || {
        let text = format!("[{},{}]", progress(1, 1), result(1, 3));
        answer(200, TYPE, full(text))
    })
    .await;
    let answer = ask(&http, request(1)).await.unwrap();
    assert_eq!(answer, ["notifications/progress", "{\"n\":3}"]);
}

/// SECURITY EGR-11, PROTOCOL A1
#[tokio::test]
async fn an_array_with_more_than_its_response_or_of_a_revision_without_arrays_is_refused() {
    let refused = |text: String, revision: Option<&'static str>| async move {
        let tasks = Tasks::new();
        let http = against(&tasks, move || answer(200, TYPE, full(text.clone()))).await;
        let mut out = request(1);
        if let Some(revision) = revision {
            let revision = HeaderValue::from_static(revision);
            out.headers
                .insert(&mirror::header::PROTOCOL_VERSION, revision);
        }
        matches!(ask(&http, out).await, Err(UpstreamError::Protocol(_)))
    };
    let (once, twice) = (
        format!("[{}]", result(1, 3)),
        format!("[{},{}]", result(1, 3), result(1, 4)),
    );
    let late = format!("[{},{}]", result(1, 3), progress(1, 1));
    assert!(!refused(once.clone(), None).await);
    for text in [&twice, &late] {
        assert!(refused(text.clone(), None).await, "{text}");
    }
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        for text in [&once, &twice, &late] {
            assert!(
                refused(text.clone(), Some(revision)).await,
                "{revision} {text}"
            );
        }
    }
}
