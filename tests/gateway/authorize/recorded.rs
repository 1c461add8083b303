//! What the record of a call says of the approval that it went by (PRODUCT 9, SECURITY 8).

use std::ops::ControlFlow;

use usher::audit::query::{Filter, Order, query};

use super::{MODERN, notes};
use crate::{
    audit::{recording, recording_by, records},
    harness::{Pairing, Play, Revision, Says, now, tool},
};

/// Who watched what, and what they were not let watch.
#[tokio::test]
async fn the_record_of_a_listen_says_what_is_watched_and_what_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let notes = notes(MODERN);
    let only_a = r#"permit(principal, action, resource is Tool);
        permit(principal, action, resource is Resource) when { resource.uri like "note://a*" };"#;
    let gateway = recording(directory.path(), &notes)
        .policies(only_a)
        .start()
        .await;
    let client = gateway.client(MODERN).await;
    let uris = [
        "notes+note://a",
        "notes+note://b?token=mk-parameter",
        "notes+note://z",
    ];
    let watch = client.partial_watch(&["tools"], &uris).await;
    drop(watch);
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "subscriptions/listen");
    let decision = told
        .iter()
        .find(|record| record["stage"] == "decision")
        .unwrap();
    assert_eq!(decision["watched"], serde_json::json!(["notes+note://a"]));
    assert_eq!(
        decision["not_watched"],
        serde_json::json!([
            "notes+note://b?token=[redacted:parameter]",
            "notes+note://z"
        ])
    );
}

/// SECURITY 4: whoever is refused can say which record tells of it, and nothing tells what is hidden from what is not there.
#[tokio::test]
async fn a_session_that_may_not_subscribe_is_told_which_record_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let notes = notes(MODERN);
    let only_a = r#"permit(principal, action, resource is Resource) when { resource.uri like "note://a*" };"#;
    let gateway = recording(directory.path(), &notes)
        .policies(only_a)
        .start()
        .await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let mut refused = Vec::new();
    for uri in ["notes+note://b", "notes+note://nothing"] {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        let answer = client.ask("resources/subscribe", &params).await;
        assert_eq!(answer.refusal(), (-32602, "not_subscribable".into()));
        let reference = answer.error()["data"]["ref"].as_str().unwrap().to_owned();
        refused.push((uri, reference));
    }
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "resources/subscribe");
    for (uri, reference) in refused {
        let decision = told
            .iter()
            .find(|record| record["stage"] == "decision" && record["call"] == reference);
        let decision = decision.unwrap_or_else(|| panic!("{uri} {reference}: {told:#?}"));
        assert_eq!(decision["not_watched"], serde_json::json!([uri]));
        assert_eq!(decision["watched"], serde_json::Value::Null);
        assert_eq!(decision["address"], "127.0.0.1", "{decision}");
        assert!(!decision["request"].is_null(), "{decision}");
        let outcome = told
            .iter()
            .find(|record| record["stage"] == "outcome" && record["call"] == reference);
        let outcome = outcome.unwrap_or_else(|| panic!("{uri} {reference}: {told:#?}"));
        let ended = [&outcome["outcome"], &outcome["reason"], &outcome["code"]];
        assert_eq!(
            serde_json::json!(ended),
            serde_json::json!(["denied", "not_subscribable", -32602]),
            "{outcome}"
        );
    }
}

/// SECURITY 4: and so is one whose server does not tell of it, where nothing else is recorded too.
#[tokio::test]
async fn a_session_that_cannot_subscribe_is_told_which_record_says_so() {
    for more in ["", "content: [{ level: none }]"] {
        let directory = tempfile::tempdir().unwrap();
        let notes = notes(Revision::V2025_11_25).on("resources/subscribe", |_| {
            Play::Error(r#"{"code":-32602,"message":"not that one"}"#.into())
        });
        let gateway = recording_by(directory.path(), more, &notes).start().await;
        let client = gateway.client(Revision::V2025_11_25).await;
        let params = r#"{"uri":"notes+note://a"}"#;
        let answer = client.ask("resources/subscribe", params).await;
        assert_eq!(answer.refusal(), (-32602, "not_subscribable".into()));
        let reference = answer.error()["data"]["ref"].clone();
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "resources/subscribe");
        let ended = told.iter().find(|record| record["outcome"].is_string());
        let ended = ended.unwrap_or_else(|| panic!("{more}: {told:#?}"));
        assert_eq!(ended["call"], reference);
        assert_eq!(
            (&ended["outcome"], &ended["reason"]),
            (&"invalid".into(), &"not_subscribable".into()),
            "{ended}"
        );
    }
}

const CAREFUL: &str =
    r#"@id("risky") @require("approval") permit(principal, action, resource is Tool);"#;
const FORMS: &str = r#"{"elicitation":{}}"#;

pairings! {
    /// Who agreed, when and by what, once: in the decision that the call left by.
    async fn the_record_says_who_approved_a_call(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("risky")]);
        let gateway = recording(directory.path(), &notes).policies(CAREFUL).start().await;
        let client = gateway.client_as("ana", pair.client, FORMS).await;
        let talk = client.call("notes_risky", r#"{"n":1}"#).answering(|_, _| {
            Says::Result(r#"{"action":"accept","content":{"approve":true}}"#.into())
        }).await;
        let reference = talk.answer.value()["_meta"]["dev.usher/approval"]["ref"].clone();
        assert!(reference.is_string(), "{talk:?}");
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let approved: Vec<_> = told.iter().filter(|record| !record["approval"].is_null()).collect();
        assert!(!approved.is_empty(), "{told:#?}");
        for record in approved {
            let approval = &record["approval"];
            assert_eq!(approval["reference"], reference);
            assert_eq!(approval["how"], "elicitation");
            let by = approval["by"].as_str().unwrap();
            assert!(by.ends_with("ana"), "{by}");
            let at = approval["at"].as_u64().unwrap();
            assert!(at <= now() && now() - at < 120, "{at}");
        }
        let left = told.iter().find(|record| record["stage"] == "decision");
        assert_eq!(left.unwrap()["approval"]["reference"], reference, "{told:#?}");
        // And it is found by that.
        let filter = Filter { call: reference.as_str().map(str::to_owned), ..Filter::default() };
        let mut found = Vec::new();
        query(directory.path(), &filter, Order::Oldest, |hit| {
            found.push(hit.entry.call);
            ControlFlow::Continue(())
        }).unwrap();
        assert_eq!(found, [left.unwrap()["call"].as_str().map(str::to_owned)]);
    }
}

pairings! {
    /// SECURITY 8: whoever was asked, could not be asked or did not agree is in a record that says which policy wanted it.
    async fn the_record_of_a_call_that_nobody_approved_says_by_which_policy_somebody_had_to(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("risky")]);
        let gateway = recording(directory.path(), &notes).policies(CAREFUL).start().await;
        let client = gateway.client_as("ana", pair.client, FORMS).await;
        let no = |_: &str, _: &serde_json::Value| Says::Result(r#"{"action":"decline"}"#.into());
        let talk = client.call("notes_risky", "{}").answering(no).await;
        assert_eq!(talk.answer.tool_error(), "approval_declined");
        let talk = client.call("notes_risky", "{}").answering(|_, _| {
            Says::Result(r#"{"action":"accept","content":{"approve":true}}"#.into())
        }).await;
        talk.answer.result();
        let mute = gateway.client_as("ana", pair.client, "{}").await;
        assert_eq!(mute.call("notes_risky", "{}").await.tool_error(), "approval_unavailable");
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let left = told.iter().find(|record| record["stage"] == "decision").unwrap();
        let whole: Vec<_> = told.iter().filter(|record| record["stage"] == "both").collect();
        let ended = |record: &&serde_json::Value| record["reason"].as_str().unwrap_or("input_required").to_owned();
        let ends: Vec<_> = whole.iter().map(ended).collect();
        assert_eq!(ends, ["input_required", "approval_declined", "input_required", "approval_unavailable"], "{told:#?}");
        for record in whole {
            let asks = record["outcome"] == "input_required";
            assert_eq!(record["bytes"]["out"].as_u64() > Some(0), asks, "{record}");
            for member in ["policies", "policy", "definition"] {
                assert!(!left[member].is_null(), "{left}");
                assert_eq!(record[member], left[member], "{member} of {record}");
            }
        }
        let outcome = told.iter().find(|record| record["stage"] == "outcome").unwrap();
        assert!(outcome["policy"].is_null(), "its decision said so: {outcome}");
    }
}
