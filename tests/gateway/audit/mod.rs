//! Records: who called what, how it was decided and how it ended, of every call there is (SECURITY 8).

mod answered;
mod asked;
mod beside;
mod command;
mod delivered;
mod full;
mod kept;
mod killed;
mod lines;
mod listened;
mod planted;
mod refused;
mod unsynced;
mod withheld;

use std::{future::IntoFuture as _, ops::ControlFlow, path::Path, sync::LazyLock};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use usher::audit::{
    LINE_SCHEMA, OUTCOMES,
    query::{Filter, Order, query},
};

use crate::harness::{
    Gateway, GatewayBuilder, Heard, Pairing, Play, Revision, Upstream, eventually, member,
    text_result, tool,
};

/// A gateway that records in a directory of its own, in front of `notes`.
pub(crate) fn recording(directory: &Path, notes: &Upstream) -> GatewayBuilder {
    recording_by(directory, "", notes)
}

/// The same with more of the block `audit`.
pub(crate) fn recording_by(directory: &Path, more: &str, notes: &Upstream) -> GatewayBuilder {
    let setting = format!("audit: {{ dir: '{}', {more} }}", directory.display());
    Gateway::of().setting(&setting).upstream("notes", notes)
}

/// The records of calls of one method, in their order.
pub(crate) fn records(directory: &Path, method: &str) -> Vec<Value> {
    let all = events(directory).into_iter();
    all.filter(|event| event["event"] == "call" && event["method"] == method)
        .collect()
}

/// Everything that is recorded, in its order.
pub(crate) fn events(directory: &Path) -> Vec<Value> {
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
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            // Whatever a test has recorded.
            if let Err(wrong) = format().validate(&line) {
                panic!("{wrong} at {} of {line}", wrong.instance_path());
            }
            let record = line["record"]["event"].take();
            let results =
                ["outcome", "state", "action"].map(|name| record["detail"][name].as_str());
            for word in results.into_iter().flatten() {
                assert!(
                    OUTCOMES.contains(&word),
                    "nobody can ask for {word}: {record}"
                );
            }
            record
        })
        .collect()
}

/// What lines are said to be like.
fn format() -> &'static jsonschema::Validator {
    static FORMAT: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(LINE_SCHEMA).unwrap();
        jsonschema::validator_for(&schema).unwrap()
    });
    &FORMAT
}

/// SHA-256 of the canonical text of what [`tool`] defines.
fn digest_of_tool(name: &str) -> String {
    let text = format!(r#"{{"inputSchema":{{"type":"object"}},"name":"{name}"}}"#);
    let hash = digest(&SHA256, text.as_bytes());
    let digits = hash.as_ref().iter();
    digits.map(|byte| format!("{byte:02x}")).collect()
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
        assert_eq!(decision["principal"]["auth_method"], Value::Null);
        assert_eq!(decision["definition"], *digest_of_tool("t"));
        assert_eq!(decision["listener"], "http");
        assert_eq!(outcome["stage"], "outcome");
        assert_eq!(outcome["outcome"], "ok");
        assert_eq!(outcome["call"], decision["call"]);
        assert!(!format!("{told:?}").contains("planted"));
    }
}

/// A tool whose argument policies may ask for.
const TYPED: &str =
    r#"{"name":"seen","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}"#;

pairings! {
    async fn what_never_goes_upstream_has_one_record_that_says_why(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let hidden = tool("hidden");
        let notes = pair.upstream().tools([TYPED, &hidden]);
        let policy = r#"@id("never") permit (principal, action == Action::"call", resource == Tool::"notes_seen")
            when { context.args has x && context.args.x == "never" };"#;
        let gateway = recording(directory.path(), &notes).policies(policy).start().await;
        let client = pair.client(&gateway).await;
        for name in ["notes_seen", "notes_hidden", "notes_nothing"] {
            client.call(name, r#"{"x":"planted"}"#).await;
        }
        assert!(notes.heard("tools/call").is_empty());
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let [seen, hidden, unknown] = &told[..] else { panic!("{told:#?}") };
        for record in [seen, hidden, unknown] {
            assert_eq!(record["stage"], "both");
            assert_eq!(record["decision"], "deny");
            assert_eq!(record["outcome"], "denied");
            assert_eq!(record["arguments"]["bytes"], 15);
            assert!(record["arguments"]["digest"].is_string());
        }
        assert_eq!(seen["reason"], "policy_denied");
        assert_eq!(hidden["reason"], "policy_denied");
        assert_eq!(hidden["hidden"], 1);
        assert_eq!(hidden["target"]["name"], "hidden");
        assert_eq!(hidden["definition"], *digest_of_tool("hidden"));
        assert_eq!(unknown["definition"], Value::Null);
        assert_eq!(unknown["reason"], "unknown_name");
        assert_eq!(unknown["code"], -32602);
        assert_eq!(seen["code"], Value::Null, "it was a tool's result: {seen}");
        assert_eq!(unknown["target"]["exposed"], "notes_nothing");
        assert!(!format!("{told:?}").contains("planted"));
    }
}

pairings! {
    async fn a_call_that_does_not_fit_is_recorded_with_where_it_would_have_gone_and_what_it_brought(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([TYPED]);
        let setting = "content: [{ level: request }]";
        let gateway = recording_by(directory.path(), setting, &notes).start().await;
        let client = pair.client(&gateway).await;
        client.call("notes_seen", r#"{"x":5}"#).await;
        assert!(notes.heard("tools/call").is_empty());
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let [record] = &told[..] else { panic!("{told:#?}") };
        assert_eq!(record["outcome"], "invalid");
        assert_eq!(record["target"]["upstream"], "notes");
        assert_eq!(record["target"]["name"], "seen");
        assert_eq!(record["content"], r#"{"x":5}"#);
    }
}

pairings! {
    /// Whoever sends more than is taken must not cost more by it: how long it was is told, and nothing is made of the rest.
    async fn what_there_is_too_much_of_is_told_by_its_length(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]);
        let gateway = recording_by(directory.path(), "content: [{ level: request }]", &notes)
            .setting("limits: [{ per: upstream, name: notes, rate: 1/h }]");
        let gateway = gateway.start().await;
        let client = pair.client(&gateway).await;
        for _ in 0..2 {
            client.call("notes_t", r#"{"x":"planted"}"#).await;
        }
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let shed = told.iter().find(|record| record["outcome"] == "shed").unwrap();
        assert_eq!(shed["arguments"], serde_json::json!({"bytes": 15}));
        assert_eq!(shed["content"], Value::Null);
        assert_eq!(shed["target"]["upstream"], "notes");
    }
}

pairings! {
    async fn a_call_that_its_client_gives_up_is_recorded_as_cancelled(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| Play::Hang);
        let gateway = recording(directory.path(), &notes).start().await;
        let client = pair.client(&gateway).await;
        let gives_up = async {
            notes.until_heard("tools/call", 1).await;
            if !pair.client_is_modern() {
                client.notify("notifications/cancelled", r#"{"requestId":1}"#).await;
            }
        };
        let call = client.call("notes_t", "{}").id("1");
        tokio::select! {
            biased;
            () = gives_up => {}
            answer = call.into_future() => panic!("{answer:?}"),
        }
        let told = eventually("its end is recorded", || async {
            let told = records(directory.path(), "tools/call");
            (told.len() == 2).then_some(told)
        });
        let told = told.await;
        assert_eq!(told[1]["outcome"], "cancelled");
        let upstream = told[1]["spent"]["upstream_us"].as_u64();
        assert!(upstream > Some(0), "{}", told[1]["spent"]);
    }
}

/// SECURITY 8
#[tokio::test]
async fn what_the_end_of_a_session_cancels_is_recorded_with_the_reason_that_its_client_hears() {
    for heard in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("t")])
            .on("tools/call", |_| Play::Hang);
        let gateway = recording(directory.path(), &notes).start().await;
        let client = gateway.client(Revision::V2025_11_25).await;
        let mut call = client.call("notes_t", "{}").into_future();
        tokio::select! {
            biased;
            _ = notes.until_heard("tools/call", 1) => {}
            answer = &mut call => panic!("{answer:?}"),
        }
        // Whoever only goes away has not given it up, in this era.
        let call = heard.then_some(call);
        assert_eq!(client.other(http::Method::DELETE).await.status, 204);
        if let Some(call) = call {
            assert_eq!(call.await.tool_error(), "outcome_unknown");
        }
        let told = eventually("its end is recorded", || async {
            let told = records(directory.path(), "tools/call");
            (told.len() == 2).then_some(told)
        });
        let told = told.await;
        assert_eq!(told[1]["outcome"], "cancelled");
        assert_eq!(told[1]["reason"], "outcome_unknown");
        assert_eq!(told[1]["code"], Value::Null);
    }
}

/// SECURITY 8
#[tokio::test]
async fn a_call_that_is_given_up_in_a_queue_has_the_time_that_it_stood_there() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Hang);
    let gateway = recording(directory.path(), &notes)
        .setting("limits: [{ per: tool, concurrency: 1, queue: 1, wait: 60s }]")
        .start()
        .await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let mut first = client.call("notes_t", "{}").into_future();
    tokio::select! {
        biased;
        _ = notes.until_heard("tools/call", 1) => {}
        answer = &mut first => panic!("{answer:?}"),
    }
    let second = client.call("notes_t", "{}").into_future();
    let waits = eventually("the second one waits", || async {
        let at_once = gateway.app.snapshot().limits().in_flight();
        (at_once == 2).then_some(())
    });
    tokio::select! {
        biased;
        answer = second => panic!("{answer:?}"),
        () = waits => {}
    }
    let told = eventually("its end is recorded", || async {
        let told = records(directory.path(), "tools/call").into_iter();
        let mut given_up = told.filter(|record| record["outcome"] == "cancelled");
        given_up.next()
    });
    let spent = told.await["spent"].take();
    assert!(spent["queued_us"].as_u64() > Some(0), "{spent}");
    drop(first);
}

/// SECURITY 8
#[tokio::test]
async fn what_a_session_asks_for_is_recorded_as_what_it_was_and_with_whence_it_came() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2025_11_25)
        .tools([tool("t")])
        .telling();
    let gateway = recording(directory.path(), &notes).start().await;
    let meta = format!(r#"{{"_meta":{{"traceparent":"{PARENT}"}},"#);
    let params = format!(
        r#"{meta}"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
    );
    let hello =
        format!(r#"{{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{params}}}"#);
    let mut client = gateway.client(Revision::V2025_11_25).await;
    let session = client.session.take();
    assert_eq!(client.post(&hello, &[]).await.status, 200);
    client.session = session;
    let asked = format!(r#"{meta}"level":"warning"}}"#);
    client
        .ask("logging/setLevel", &asked)
        .id("7")
        .await
        .result();
    gateway.app.clone().shutdown().await;
    assert_eq!(
        records(directory.path(), "server/discover"),
        [] as [Value; 0]
    );
    let told = records(directory.path(), "initialize");
    assert_eq!(told.len(), 2);
    let level = records(directory.path(), "logging/setLevel");
    for (record, request, params) in [(&told[1], "\"hello\"", params), (&level[0], "7", asked)] {
        assert_eq!(record["stage"], "both");
        assert_eq!(record["outcome"], "ok");
        assert_eq!(record["listener"], "http");
        assert_eq!(record["address"], "127.0.0.1", "{record}");
        assert_eq!(record["request"], request, "{record}");
        assert_eq!(record["bytes"]["in"], params.len(), "{record}");
        assert!(record["bytes"]["out"].as_u64() > Some(0), "{record}");
        assert!(
            record
                .to_string()
                .contains("0af7651916cd43dd8448eb211c80319c")
        );
    }
}

/// SECURITY 8
#[tokio::test]
async fn a_level_that_nobody_has_a_use_for_is_recorded_as_refused_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2025_11_25).tools([tool("t")]);
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let refused = client.ask("logging/setLevel", r#"{"level":"info"}"#).await;
    assert_eq!(refused.refusal(), (-32601, "method_not_found".to_owned()));
    gateway.app.clone().shutdown().await;
    let [record] = &records(directory.path(), "logging/setLevel")[..] else {
        panic!("there is one record");
    };
    assert_eq!(record["outcome"], "invalid");
    assert_eq!(record["reason"], "method_not_found");
    assert_eq!(record["code"], -32601);
    assert_eq!(record["call"], refused.error()["data"]["ref"], "{record}");
    let refused = events(directory.path()).into_iter();
    let refused: Vec<_> = refused
        .filter(|event| event["event"] == "refused")
        .collect();
    assert_eq!(refused, [] as [Value; 0], "it was a call");
}

/// SECURITY 8
#[tokio::test]
async fn a_call_that_asked_its_client_and_is_cut_off_after_that_is_recorded_with_why() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |heard: &Heard| {
            if member(&heard.params, "inputResponses").is_some() {
                return Play::Hang;
            }
            Play::Result(r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"}"#.into())
        });
    let gateway = recording(directory.path(), &notes)
        .setting("bounds: { http: { drain: 200ms } }")
        .start()
        .await;
    let client = gateway
        .client_able(Revision::V2025_11_25, r#"{"roots":{}}"#)
        .await;
    let mut talk = client.call("notes_t", "{}").begin().await;
    let question = talk.hear().await;
    client.reply(&question, ("result", r#"{"roots":[]}"#)).await;
    notes.until_heard("tools/call", 2).await;
    let (answer, ()) = tokio::join!(talk.rest(), gateway.app.clone().shutdown());
    assert_eq!(answer.refusal().1, "shutting_down");
    let told = records(directory.path(), "tools/call");
    let outcomes: Vec<_> = told
        .iter()
        .filter_map(|record| record["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["input_required", "unavailable"], "{told:#?}");
    assert_eq!(told.last().unwrap()["reason"], "shutting_down");
}

pairings! {
    /// SECURITY 8
    async fn a_call_that_the_gateway_cuts_off_is_recorded_with_why_and_not_as_given_up(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| Play::Hang);
        let gateway = recording(directory.path(), &notes)
            .setting("bounds: { http: { drain: 200ms } }")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let stopping = async {
            notes.until_heard("tools/call", 1).await;
            gateway.app.clone().shutdown().await;
        };
        let (answer, ()) = tokio::join!(client.call("notes_t", "{}").into_future(), stopping);
        assert_eq!(answer.refusal().1, "shutting_down");
        let told = records(directory.path(), "tools/call");
        let [_, outcome] = &told[..] else { panic!("{told:#?}") };
        assert_eq!(outcome["outcome"], "unavailable");
        assert_eq!(outcome["reason"], "shutting_down");
    }
}

/// SECURITY 8
#[tokio::test]
async fn a_call_whose_client_lost_its_connection_is_cut_off_with_the_rest_and_not_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2025_11_25)
        .tools([tool("t")])
        .on("tools/call", |_| Play::Hang);
    let gateway = recording(directory.path(), &notes)
        .setting("bounds: { http: { drain: 200ms } }")
        .start()
        .await;
    let client = gateway.client(Revision::V2025_11_25).await;
    tokio::select! {
        biased;
        _ = notes.until_heard("tools/call", 1) => {}
        answer = client.call("notes_t", "{}").into_future() => panic!("{answer:?}"),
    }
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    let [_, outcome] = &told[..] else {
        panic!("{told:#?}")
    };
    assert_eq!(outcome["outcome"], "unavailable");
    assert_eq!(outcome["reason"], "shutting_down");
}

/// SECURITY 4
#[tokio::test]
async fn what_is_refused_before_it_is_a_call_says_which_record_tells_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let notes = Upstream::http(Revision::V2025_11_25).tools([tool("t")]);
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let mut refs = Vec::new();
    for (body, headers, reason) in [
        ("{", &[][..], "parse_error"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            &[],
            "session_required",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            &[("mcp-session-id", "nobody")],
            "unknown_session",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"taskIds":["t"]}}}"#,
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "subscriptions/listen"),
            ],
            "capability_missing",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
            &[
                ("mcp-protocol-version", "2099-01-01"),
                ("mcp-method", "tools/list"),
            ],
            "unsupported_version",
        ),
    ] {
        let refused = client.post(body, headers).await;
        let data = &refused.error()["data"];
        assert_eq!(data["reason"], reason, "{}", refused.body);
        refs.push(data["ref"].as_str().expect("a reference").to_owned());
    }
    gateway.app.clone().shutdown().await;
    let told = events(directory.path()).into_iter();
    let told = told.filter(|event| event["event"] == "refused");
    let told: Vec<_> = told
        .map(|event| event["detail"]["refs"][0].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(told, refs);
    // And it is found by that.
    let filter = Filter {
        call: refs.pop(),
        ..Filter::default()
    };
    let mut found = Vec::new();
    query(directory.path(), &filter, Order::Oldest, |hit| {
        found.push(hit.entry.event);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, ["refused"]);
}

#[test]
fn a_line_that_is_not_as_its_format_says_is_told() {
    let hash = "0".repeat(64);
    let line = |event: Value| serde_json::json!({"hash": hash, "record": {"event": event, "link": {"boot": "b", "node": "n", "prev": hash, "seq": 1}}});
    let gap =
        serde_json::json!({"event": "gap", "lost": 1, "time": "2026-11-27T00:00:00Z", "v": 1});
    assert!(format().is_valid(&line(gap.clone())));
    for (member, value) in [("lost", Value::Null), ("more", 1.into()), ("v", 2.into())] {
        let mut other = gap.clone();
        other[member] = value;
        assert!(!format().is_valid(&line(other)), "{member}");
    }
}
