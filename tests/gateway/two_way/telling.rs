//! Progress and log lines: under the caller's own token and at the caller's own level, on the caller's own stream.

use serde_json::json;

use super::{ALL, FORM, usual};
use crate::harness::{
    Client, Gateway, Heard, Pairing, Play, Revision, Turn, Upstream, member, parse, text_result,
    tool,
};

/// A server whose tool tells of three steps and of five lines before it answers.
fn talkative(server: Upstream) -> Upstream {
    server
        .tools([tool("t")])
        .telling()
        .on("tools/call", |heard: &Heard| {
            let name = heard.arguments();
            Play::live(move |turn: Turn| {
                let name = name.clone();
                async move {
                    let asked = turn.heard.meta("progressToken").is_some();
                    for step in 1..=3 {
                        if asked {
                            turn.progress(step, &name).await;
                        }
                    }
                    // A modern server tells only those who asked it to.
                    let level = turn.heard.meta("io.modelcontextprotocol/logLevel");
                    let silent = turn.heard.header("mcp-method").is_some() && level.is_none();
                    if !silent {
                        for level in ["debug", "info", "warning", "error", "critical"] {
                            turn.log(level, &name).await;
                        }
                    }
                    turn.result(&text_result("done")).await;
                }
            })
        })
}

/// The params of notifications of one method.
fn told(events: &[String], method: &str) -> Vec<serde_json::Value> {
    events
        .iter()
        .map(|event| parse(event))
        .filter(|event| event["method"] == method)
        .map(|mut event| event["params"].take())
        .collect()
}

/// A call at this level, in the manner of the client's era.
async fn called_at(client: &Client, level: Option<&str>) -> crate::harness::Answer {
    let ask = client.call("notes_t", "{}");
    match level {
        None => ask.await,
        Some(level) if client.session.is_none() => {
            ask.meta(&format!(r#""io.modelcontextprotocol/logLevel":"{level}""#))
                .await
        }
        Some(level) => {
            let params = format!(r#"{{"level":"{level}"}}"#);
            client.ask("logging/setLevel", &params).await.result();
            ask.await
        }
    }
}

fn levels(answer: &crate::harness::Answer) -> Vec<String> {
    let lines = told(answer.events(), "notifications/message");
    lines
        .iter()
        .map(|line| line["level"].as_str().unwrap().to_owned())
        .collect()
}

pairings! {
    /// Feature: Progress
    async fn progress_comes_whole_and_in_order_under_the_clients_token(pair: Pairing) {
        let notes = talkative(pair.upstream());
        let (_gateway, client) = pair.alone(&notes).await;
        for token in ["\"tok\"", "700700", "\"7\""] {
            let meta = format!(r#""progressToken":{token}"#);
            let answer = client.call("notes_t", r#"{"x":1}"#).meta(&meta).await;
            let steps = told(answer.events(), "notifications/progress");
            let wanted: Vec<_> = (1..=3)
                .map(|step| json!({"progressToken": parse(token), "progress": step, "message": "{\"x\":1}"}))
                .collect();
            assert_eq!(steps, wanted);
            assert_ne!(notes.last("tools/call").meta("progressToken").as_deref(), Some(token));
        }
        let answer = client.call("notes_t", "{}").await;
        assert!(told(answer.events(), "notifications/progress").is_empty());
    }
}

pairings! {
    /// Feature: Progress
    async fn equal_tokens_of_two_clients_never_cross(pair: Pairing) {
        let notes = talkative(pair.upstream());
        let (gateway, one) = pair.alone(&notes).await;
        let two = pair.client(&gateway).await;
        let asking = async |client: &Client, mark: &str| {
            for _ in 0..20 {
                let arguments = format!(r#"{{"mark":"{mark}"}}"#);
                let answer = client
                    .call("notes_t", &arguments)
                    .id("1")
                    .meta(r#""progressToken":1"#)
                    .await;
                let steps = told(answer.events(), "notifications/progress");
                assert_eq!(steps.len(), 3);
                assert!(steps.iter().all(|step| step["message"] == arguments), "{steps:?}");
            }
        };
        tokio::join!(asking(&one, "one"), asking(&two, "two"));
    }
}

pairings! {
    /// Feature: Progress
    async fn progress_goes_on_after_the_client_was_asked(pair: Pairing) {
        let modern = pair.upstream_is_modern();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |heard| {
            let answered = member(&heard.params, "inputResponses").is_some();
            Play::live(move |turn: Turn| async move {
                if modern && !answered {
                    turn.progress(1, "before").await;
                    let ask = format!(
                        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"{}","params":{}}}}}}}"#,
                        FORM.0, FORM.1
                    );
                    return turn.result(&ask).await;
                }
                if !modern {
                    turn.progress(1, "before").await;
                    turn.ask(FORM.0, FORM.1).await;
                }
                turn.progress(2, "after").await;
                turn.result(&text_result("done")).await;
            })
        });
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client
            .call("notes_t", "{}")
            .meta(r#""progressToken":"mine""#)
            .answering(usual)
            .await;
        assert_eq!(talk.asked.len(), 1);
        let steps = told(talk.answer.events(), "notifications/progress");
        let last = steps.last().expect("progress after the answer");
        assert_eq!(last, &json!({"progressToken":"mine","progress":2,"message":"after"}));
    }
}

pairings! {
    only [legacy_client_modern_server = LEGACY_MODERN]
        because "only there is one request of the client's made as several upstream";
    async fn progress_only_rises_when_the_call_is_made_again(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |heard| {
            let answered = member(&heard.params, "inputResponses").is_some();
            Play::live(move |turn: Turn| async move {
                turn.progress(1, "one").await;
                turn.progress(2, "two").await;
                if !answered {
                    let ask = format!(
                        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"{}","params":{}}}}}}}"#,
                        FORM.0, FORM.1
                    );
                    return turn.result(&ask).await;
                }
                turn.progress(3, "three").await;
                turn.result(&text_result("done")).await;
            })
        });
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let talk = client
            .call("notes_t", "{}")
            .meta(r#""progressToken":"mine""#)
            .answering(usual)
            .await;
        let steps = told(talk.answer.events(), "notifications/progress");
        let steps: Vec<_> = steps.iter().map(|step| step["message"].as_str().unwrap()).collect();
        assert_eq!(steps, ["one", "two", "three"]);
        assert_eq!(talk.answer.text(), "done");
    }
}

pairings! {
    /// Feature: Log level
    async fn lines_come_at_the_level_that_was_asked_for_and_no_lower(pair: Pairing) {
        let notes = talkative(pair.upstream());
        let (_gateway, client) = pair.alone(&notes).await;
        for (level, heard) in [
            ("warning", &["warning", "error", "critical"][..]),
            ("critical", &["critical"][..]),
            ("debug", &["debug", "info", "warning", "error", "critical"][..]),
        ] {
            let answer = called_at(&client, Some(level)).await;
            assert_eq!(levels(&answer), heard, "{level}");
            if pair.upstream_is_modern() {
                let asked = notes.last("tools/call").meta("io.modelcontextprotocol/logLevel");
                assert_eq!(asked.map(|text| parse(&text)), Some(json!(level)));
            }
        }
    }
}

pairings! {
    /// Feature: Log level
    async fn who_asks_for_no_lines_of_a_modern_server_gets_none(pair: Pairing) {
        let notes = talkative(pair.upstream());
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = called_at(&client, None).await;
        if pair.client_is_modern() || pair.upstream_is_modern() {
            assert_eq!(levels(&answer), [""; 0]);
        }
        assert_eq!(answer.text(), "done");
    }
}

pairings! {
    /// Feature: Log level
    async fn a_level_that_is_none_is_refused(pair: Pairing) {
        let notes = talkative(pair.upstream());
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = if pair.client_is_modern() {
            client.call("notes_t", "{}").meta(r#""io.modelcontextprotocol/logLevel":"loud""#).await
        } else {
            client.ask("logging/setLevel", r#"{"level":"loud"}"#).await
        };
        assert_eq!(answer.error()["code"], -32602);
        assert!(notes.heard("tools/call").is_empty());
    }
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_modern_server = MODERN_MODERN,
    ] because "a line on a pipe of the stateless era belongs to no request";
    /// Feature: Log lines on a shared pipe
    async fn lines_on_a_pipe_go_to_nobody_or_to_the_only_one_who_asked(pair: Pairing) {
        let notes = talkative(Upstream::pipe(pair.upstream));
        let (gateway, one) = pair.alone(&notes).await;
        let two = pair.client(&gateway).await;
        let quiet = async {
            for _ in 0..20 {
                let answer = called_at(&two, None).await;
                assert_eq!(levels(&answer), [""; 0], "lines of somebody else's call");
            }
        };
        let loud = async {
            for _ in 0..20 {
                called_at(&one, Some("debug")).await;
            }
        };
        tokio::join!(quiet, loud);
    }
}

/// Feature: Notifications that answer nothing (LL, LM, ML, MM)
#[tokio::test]
async fn progress_under_a_token_of_nobody_goes_nowhere() {
    for pair in [
        Pairing::LEGACY_LEGACY,
        Pairing::LEGACY_MODERN,
        Pairing::MODERN_LEGACY,
        Pairing::MODERN_MODERN,
    ] {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            let events = ["424242", "\"x\"", "null", "1"].map(|token| {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#)
            });
            let unknown = r#"{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"uri":"note://x"}}"#;
            let all = events.into_iter().chain([unknown.to_owned()]).collect();
            Play::Events(all, Box::new(Play::Result(text_result("done"))))
        });
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = pair.client(&gateway).await;
        let answer = client
            .call("notes_t", "{}")
            .meta(r#""progressToken":"p""#)
            .await;
        let foreign: Vec<&String> = answer
            .events()
            .iter()
            .filter(|event| !event.contains(r#""progressToken":"p""#))
            .collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        assert_eq!(answer.text(), "done");
    }
}

/// Keys of `_meta` that end at the hop or are only ours to write, and one that goes on.
const OF_THE_HOP: &str = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"local-7"},"io.modelcontextprotocol/subscriptionId":5,"io.modelcontextprotocol/serverInfo":{"name":"hidden","version":"1"},"io.modelcontextprotocol/unknown":1,"progressToken":9,"baggage":"b=1","dev.usher/approval":"forged","com.example/own":{"n":1}}"#;

pairings! {
    /// PROTOCOL A7, D0.1
    async fn of_the_meta_of_what_is_told_only_what_may_cross_crosses(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).telling().on("tools/call", |_| {
            Play::live(|turn: Turn| async move {
                for (method, params) in [
                    ("progress", r#""progressToken":$token,"progress":1"#),
                    ("message", r#""level":"error","data":1"#),
                ] {
                    turn.say(&format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{{params},{OF_THE_HOP}}}}}"#
                    ))
                    .await;
                }
                turn.result(&text_result("done")).await;
            })
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let mut meta = r#""progressToken":1"#.to_owned();
        if pair.client_is_modern() {
            meta.push_str(r#","io.modelcontextprotocol/logLevel":"info""#);
        } else {
            client.ask("logging/setLevel", r#"{"level":"info"}"#).await.result();
        }
        let answer = client.call("notes_t", "{}").meta(&meta).await;
        for method in ["notifications/progress", "notifications/message"] {
            let told = told(answer.events(), method);
            assert_eq!(told.len(), 1, "{answer:?}");
            assert_eq!(told[0]["_meta"], json!({"com.example/own": {"n": 1}}), "{method}");
        }
    }
}

/// PROTOCOL D1, SECURITY I3: pipes and event streams do not say whose a log line is; it comes before what was said after it.
#[tokio::test]
async fn lines_and_progress_come_in_the_order_in_which_they_were_said_and_before_the_answer() {
    for server in [Upstream::pipe(Revision::V2025_11_25), Upstream::sse()] {
        let notes = server
            .tools([tool("t")])
            .telling()
            .on("tools/call", |_: &Heard| {
                Play::live(|turn: Turn| async move {
                    for step in 1..=3 {
                        turn.log("info", &step.to_string()).await;
                        turn.progress(step, &step.to_string()).await;
                    }
                    turn.log("info", "4").await;
                    turn.result(&text_result("done")).await;
                })
            });
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, "isolation: session")
            .start()
            .await;
        for client in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let client = gateway.client(client).await;
            if client.session.is_some() {
                client
                    .ask("logging/setLevel", r#"{"level":"debug"}"#)
                    .await
                    .result();
            }
            for _ in 0..40 {
                let mut ask = client.call("notes_t", "{}").meta(r#""progressToken":"p""#);
                if client.session.is_none() {
                    ask = ask
                        .meta(r#""progressToken":"p","io.modelcontextprotocol/logLevel":"debug""#);
                }
                let answer = ask.await;
                let said: Vec<_> = answer
                    .events()
                    .iter()
                    .map(|event| parse(event))
                    .map(|event| match event["method"].as_str() {
                        Some("notifications/progress") => event["params"]["message"].clone(),
                        _ => event["params"]["data"].clone(),
                    })
                    .collect();
                assert_eq!(said, ["1", "1", "2", "2", "3", "3", "4"], "{answer:?}");
            }
        }
    }
}
