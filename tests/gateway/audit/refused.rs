//! What is refused has its record where nothing else has one (SECURITY 8).

use super::{TYPED, events, recording_by, records};
use crate::harness::{Pairing, Play, Revision, Upstream, text_result, tool};

pairings! {
    /// `none`: never for what is refused.
    async fn a_call_that_does_not_fit_is_found_by_what_its_client_was_told_and_one_that_fits_is_not_recorded(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([TYPED]).on("tools/call", |_| {
            Play::Result(text_result("done"))
        });
        let setting = r#"content: [{ names: ["notes_*"], level: none }]"#;
        let gateway = recording_by(directory.path(), setting, &notes).start().await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.call("notes_seen", r#"{"x":"fits"}"#).await.text(), "done");
        let unfit = client.call("notes_seen", r#"{"x":5}"#).await;
        assert_eq!(unfit.tool_error(), "invalid_arguments");
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let [record] = &told[..] else { panic!("{told:#?}") };
        assert_eq!(record["outcome"], "invalid");
        assert_eq!(record["reason"], "invalid_arguments");
        assert_eq!(record["call"], unfit.value()["_meta"]["dev.usher/ref"]);
    }
}

#[tokio::test]
async fn whatever_is_refused_before_it_is_decided_is_found_by_what_its_client_was_told() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Result(text_result("done")));
    let gateway = recording_by(directory.path(), "content: [{ level: none }]", &notes);
    let gateway = gateway.start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    assert_eq!(client.call("notes_t", "{}").await.text(), "done");
    let mut expected = Vec::new();
    for (method, params, reason) in [
        (
            "tools/call",
            r#"{"name":"notes_t","arguments":{},"requestState":"x","inputResponses":{"r":{"roots":[]}}}"#,
            "state_invalid",
        ),
        ("tools/list", r#"{"cursor":"x"}"#, "invalid_cursor"),
    ] {
        let refused = client.ask(method, params).await;
        let data = refused.error()["data"].clone();
        assert_eq!(data["reason"], reason, "{data}");
        expected.push((data["ref"].clone(), data["reason"].clone()));
    }
    gateway.app.clone().shutdown().await;
    let told = events(directory.path()).into_iter();
    let told: Vec<_> = told
        .filter(|event| event["event"] == "call")
        .map(|event| (event["call"].clone(), event["reason"].clone()))
        .collect();
    assert_eq!(told, expected);
}
