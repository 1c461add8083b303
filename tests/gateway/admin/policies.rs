//! What operators are told of policies that cannot be used, or fit no more (SECURITY AUTHZ-3, PRODUCT 9).

use std::sync::Arc;

use serde_json::json;
use usher::config;

use super::{OPERATOR, Plane, plane, plane_with, problem, spec};
use crate::harness::{Authority, Gateway, Revision, Upstream, eventually, parse, tool};

const MODERN: Revision = Revision::V2026_07_28;
const ALL: &str = "permit(principal, action, resource);";
const BROKEN: &str = "permit(principal, action";
const FIVE: &str = r#"permit(principal, action == Action::"call", resource == Tool::"notes_t") when { context.args.n > 5 };"#;

/// A tool whose argument `n` is of this type.
fn typed(ty: &str) -> String {
    format!(
        r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{"n":{{"type":"{ty}"}}}},"required":["n"]}}}}"#
    )
}

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

#[tokio::test]
async fn policies_that_do_not_fit_what_comes_are_told_and_stay_in_force() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).telling().tools([typed("string")]);
    let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
    let builder = Gateway::of().upstream("notes", &notes).setting(&audit);
    let plane = plane(builder.policies(FIVE)).await;
    let app = &plane.gateway.app;
    let digest = app.policy_digest();
    let [told] = &eventually("it is told", async || {
        let problems = app.policy_problems();
        (!problems.is_empty()).then_some(problems)
    })
    .await[..] else {
        panic!("{:?}", app.policy_problems());
    };
    assert_eq!((told.line, told.column > 0), (1, true), "{told}");
    assert!(told.message.contains("does not fit `notes_t`"), "{told}");
    until_noted(&plane, "unfit", 1).await;
    assert_eq!(
        plane.get("/api/policy").await["problems"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // Whoever reads them again is told so, and they stay what they are. No file is wrong: limits are taken all the same.
    let text = format!(
        "limits: [{{ per: principal, rate: 9/s }}]\nupstreams: {{ notes: {{ {} }} }}\n",
        notes.place()
    );
    app.reloads_from(Arc::new(move || config::of_text(&text)));
    for _ in 0..2 {
        let answer = plane.post("/reload", "{}").await;
        assert_eq!(answer["reloaded"], json!(["policies", "limits"]));
        assert_eq!(answer["unfit"][0]["line"], 1, "{answer}");
        assert_eq!(app.limits().len(), 1);
        assert_eq!(app.reload_policies().await.unwrap()[0], *told);
    }
    assert_eq!((app.policy_digest(), digest.is_empty()), (digest, false));
    // Another set that does not fit is refused, and limits with it.
    plane.gateway.rewrite(
        r#"permit(principal, action == Action::"call", resource == Tool::"notes_t") when { context.args.n > 6 };"#,
    );
    let answer = plane.done(OPERATOR, "/reload", "{}").await;
    assert_eq!(problem(&answer), (409, "not_reloaded".into()));
    until_noted(&plane, "refused", 1).await;
    plane.gateway.rewrite(FIVE);
    // The server mends it.
    notes.offer(0, [typed("integer")]);
    notes.announce("tools").await;
    eventually("it fits", async || {
        app.policy_problems().is_empty().then_some(())
    })
    .await;
    let answer = plane.post("/reload", "{}").await;
    assert_eq!(answer["unfit"], json!([]));
    // And breaks it again.
    notes.offer(0, [typed("string")]);
    notes.announce("tools").await;
    until_noted(&plane, "unfit", 2).await;
    assert_eq!(noted(&plane, "refused").await, 1);
}

// SECURITY AUTHZ-1
#[tokio::test]
async fn whoever_has_no_policies_that_can_be_used_is_not_ready() {
    let ready = async |plane: &Plane| {
        let answer = plane.seen(OPERATOR, "/readyz").await;
        (answer.status, parse(&answer.body)["reason"].clone())
    };
    for spoil in ["missing", "", BROKEN] {
        let notes = Upstream::http(MODERN).tools([tool("t")]);
        let builder = Gateway::of().upstream("notes", &notes).policies(spoil);
        let builder = match spoil {
            "missing" => builder.missing_policies(),
            _ => builder,
        };
        let plane = plane(builder).await;
        let unusable = (503, json!("policy_unusable"));
        assert_eq!(ready(&plane).await, unusable, "{spoil}");
        std::fs::create_dir_all(plane.gateway.policy_dir()).unwrap();
        plane.gateway.rewrite(ALL);
        plane.gateway.app.reload_policies().await.unwrap();
        assert_eq!(ready(&plane).await, (200, json!(null)), "{spoil}");
        // A set that is in force already stays.
        plane.gateway.rewrite(BROKEN);
        plane.gateway.app.reload_policies().await.unwrap_err();
        assert_eq!(ready(&plane).await, (200, json!(null)), "{spoil}");
    }
    // Nor is who has none although callers are asked who they are; where nobody is asked, everything is permitted.
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let authority = Authority::start().await;
    let builder = Gateway::of().upstream("notes", &notes);
    let plane = plane_with(builder.auth(authority.spec()).unguided(), spec()).await;
    assert_eq!(ready(&plane).await, (503, json!("policy_unusable")));
    let plane = plane_with(Gateway::of().upstream("notes", &notes), spec()).await;
    assert_eq!(ready(&plane).await, (200, json!(null)));
}
