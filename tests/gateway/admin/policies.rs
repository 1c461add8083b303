//! What operators are told of policies that cannot be used (SECURITY AUTHZ-3, PRODUCT 9).

use super::{OPERATOR, Plane, plane, problem};
use crate::harness::{Gateway, Revision, Upstream, eventually, tool};

const MODERN: Revision = Revision::V2026_07_28;
const ALL: &str = "permit(principal, action, resource);";
const BROKEN: &str = "permit(principal, action";

/// How often policies were recorded to stand like this.
async fn noted(plane: &Plane, state: &str) -> usize {
    let told = plane.get("/api/audit?event=policy").await;
    let items = told["items"].as_array().unwrap();
    let states = items.iter().map(|item| &item["record"]["detail"]["state"]);
    states.filter(|it| *it == state).count()
}

async fn until_noted(plane: &Plane, state: &str, times: usize) {
    eventually(state, async || {
        (noted(plane, state).await == times).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_second_attempt_that_fails_like_the_first_is_told_again_and_the_same_files_once() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
    let builder = Gateway::of().upstream("notes", &notes).setting(&audit);
    let plane = plane(builder.policies(ALL)).await;
    let again = async || {
        let answer = plane.done(OPERATOR, "/reload", "{}").await;
        assert_eq!(problem(&answer), (409, "not_reloaded".into()));
    };
    plane.gateway.rewrite(BROKEN);
    until_noted(&plane, "refused", 1).await;
    again().await;
    again().await;
    plane.gateway.rewrite(BROKEN);
    until_noted(&plane, "refused", 2).await;
    again().await;
    plane
        .gateway
        .rewrite(r#"permit(principal, action, resource == Tool::"notes_t");"#);
    until_noted(&plane, "in_force", 1).await;
    assert_eq!(noted(&plane, "refused").await, 2);
}
