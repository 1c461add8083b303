//! Records: who called what, how it was decided and how it ended, of every call there is (SECURITY 8).

use std::path::Path;

use serde_json::Value;

use crate::harness::{Gateway, GatewayBuilder, Pairing, Play, Upstream, text_result, tool};

/// A gateway that records in a directory of its own, in front of `notes`.
fn recording(directory: &Path, notes: &Upstream) -> GatewayBuilder {
    Gateway::of()
        .setting(&format!("audit: {{ dir: '{}' }}", directory.display()))
        .upstream("notes", notes)
}

/// The records of calls of one method, in their order.
fn records(directory: &Path, method: &str) -> Vec<Value> {
    let mut segments: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|it| it == usher::audit::log::EXTENSION)
        })
        .collect();
    segments.sort();
    let text: String = segments
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["record"]["event"].take())
        .filter(|event| event["event"] == "call" && event["method"] == method)
        .collect()
}

pairings! {
    async fn a_call_has_its_decision_and_its_outcome(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::Result(text_result("done"))
        });
        let gateway = recording(directory.path(), &notes).start().await;
        let client = pair.client(&gateway).await;
        client.call("notes_t", r#"{"x":"planted"}"#).await;
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let [decision, outcome] = &told[..] else { panic!("{told:#?}") };
        assert_eq!(decision["stage"], "decision");
        assert_eq!(decision["decision"], "permit");
        assert_eq!(decision["target"]["exposed"], "notes_t");
        assert_eq!(decision["target"]["name"], "t");
        assert_eq!(decision["target"]["upstream"], "notes");
        assert_eq!(decision["arguments"]["bytes"], 15);
        assert_eq!(decision["principal"]["name"], "anonymous");
        assert_eq!(decision["listener"], "http");
        assert_eq!(outcome["stage"], "outcome");
        assert_eq!(outcome["outcome"], "ok");
        assert_eq!(outcome["call"], decision["call"]);
        assert!(!format!("{told:?}").contains("planted"));
    }
}
