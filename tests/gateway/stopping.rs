//! What still runs when the gateway has no more time to wait for it: answered, not cut off (SECURITY REL-7, 6).

use std::{process::Stdio, time::Duration};

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::Command,
    time::Instant,
};

use crate::{
    audit::events,
    harness::{
        Client, Gate, Gateway, Heard, Pairing, Piped, Play, Revision, Upstream, call_result,
        eventually, tool,
    },
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;

/// A call on a pipe.
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"notes_t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A tool that tells this and then waits at the gate, and one that does not.
fn gated(notes: Upstream, told: &[&str], gate: &Gate) -> Upstream {
    let (told, gate) = (
        told.iter().map(ToString::to_string).collect::<Vec<_>>(),
        gate.clone(),
    );
    notes
        .tools([tool("t"), tool("u")])
        .on("tools/call", move |heard: &Heard| {
            let result = Play::Result(call_result("t"));
            match heard.text("name").as_deref() {
                Some("u") => result,
                _ => Play::Gated(told.clone(), gate.clone(), Box::new(result)),
            }
        })
}

pairings! {
    async fn a_call_that_outlasts_the_drain_is_answered_with_why_and_ended_upstream(pair: Pairing) {
        for told in [&[][..], &[PROGRESS]] {
            let gate = Gate::new();
            let notes = gated(pair.upstream(), told, &gate);
            let gateway = Gateway::of()
                .setting("bounds: { http: { drain: 200ms } }")
                .upstream("notes", &notes)
                .start()
                .await;
            let client = pair.client(&gateway).await;
            let asking = client.call("notes_t", "{}").id("7").meta(r#""progressToken":1"#);
            let answer = if told.is_empty() {
                let stopping = async {
                    notes.until_heard("tools/call", 1).await;
                    gateway.app.clone().shutdown().await;
                };
                tokio::join!(asking, stopping).0
            } else {
                let mut talk = asking.begin().await;
                let first = talk.hear().await;
                assert!(first.contains("notifications/progress"), "{first}");
                tokio::join!(talk.rest(), gateway.app.clone().shutdown()).0
            };
            assert_eq!(answer.refusal().1, "shutting_down", "{answer:?}");
            // It may have been done: whoever reads this must not simply do it again.
            let words = answer.error()["message"].to_string();
            assert!(words.contains("whether the call took effect is unknown"), "{words}");
            assert!(!words.contains("try again"), "{words}");
            assert_eq!(answer.id().as_deref(), Some("7"));
            assert_eq!(answer.events().len(), 0, "nothing is told twice");
            gate.left().await;
        }
    }
}

#[tokio::test]
async fn a_call_on_a_pipe_that_outlasts_the_drain_is_answered_with_why() {
    let gate = Gate::new();
    let notes = gated(Upstream::http(Revision::V2026_07_28), &[], &gate);
    let configuration = format!("upstreams: {{ notes: {{ {} }} }}\n", notes.place());
    let mut piped = Piped::start(&configuration).await;
    piped
        .until_listed(&CALL.replace("notes_t", "notes_u"))
        .await;
    piped.say(CALL).await;
    notes.until_heard("tools/call", 2).await;
    piped.terminate();
    let line = piped.hear().await;
    assert!(
        line.contains("shutting_down") && line.contains("\"id\":7"),
        "{line}"
    );
    assert!(
        line.contains("whether the call took effect is unknown") && !line.contains("try again"),
        "{line}"
    );
    piped.end().await;
}

/// Two kinds of signal, since two of one kind may arrive as one.
#[tokio::test]
async fn a_second_signal_has_a_pipe_wait_for_no_call() {
    let gate = Gate::new();
    let notes = gated(Upstream::http(Revision::V2026_07_28), &[], &gate);
    let configuration = format!("upstreams: {{ notes: {{ {} }} }}\n", notes.place());
    let mut piped = Piped::start(&configuration).await;
    piped
        .until_listed(&CALL.replace("notes_t", "notes_u"))
        .await;
    piped.say(CALL).await;
    notes.until_heard("tools/call", 2).await;
    let began = Instant::now();
    piped.signal(Signal::SIGTERM);
    piped.signal(Signal::SIGINT);
    let line = piped.hear().await;
    assert!(
        line.contains("shutting_down") && line.contains("\"id\":7"),
        "{line}"
    );
    let ended = piped.ended().await;
    let taken = began.elapsed();
    assert!(taken < Duration::from_secs(4), "{taken:?}");
    assert_eq!(ended.code(), Some(1), "{ended:?}");
}

/// SECURITY 8: who is in more of a hurry than the drain does not leave calls without their second record.
#[tokio::test]
async fn a_second_signal_cuts_calls_short_and_each_has_its_answer_and_its_record_before_the_log_is_closed()
 {
    let gate = Gate::new();
    let notes = gated(Upstream::http(Revision::V2026_07_28), &[], &gate);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usher.yaml");
    let configuration = format!(
        "listen: {{ address: \"127.0.0.1:0\" }}\naudit: {{ dir: audit }}\nupstreams: {{ notes: {{ {} }} }}\n",
        notes.place()
    );
    std::fs::write(&file, configuration).unwrap();
    let mut usher = Command::new(env!("CARGO_BIN_EXE_usher"))
        .args(["serve", "-c"])
        .arg(&file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(usher.stdout.take().unwrap()).lines();
    let ready = said.next_line().await.unwrap().unwrap();
    let (_, url) = ready.split_once("ready at http://").unwrap();
    let address = url.split_once("/mcp").unwrap().0.parse().unwrap();
    let client = Client::connect(address, "/mcp", Revision::V2026_07_28).await;
    let client = client.unwrap();
    eventually("it is there", async || {
        (client.tools().await.len() == 2).then_some(())
    })
    .await;
    let id = nix::unistd::Pid::from_raw(usher.id().unwrap().try_into().unwrap());
    let signal = || nix::sys::signal::kill(id, Signal::SIGTERM).unwrap();
    let mut logged = BufReader::new(usher.stderr.take().unwrap()).lines();
    let stopping = async {
        notes.until_heard("tools/call", 1).await;
        signal();
        let mut all = String::new();
        while let Some(line) = logged.next_line().await.unwrap() {
            if line.contains("stopping: ") {
                signal();
            }
            all += &(line + "\n");
        }
        (all, usher.wait().await.unwrap())
    };
    let (answer, (all, ended)) = tokio::join!(client.call("notes_t", "{}"), stopping);
    assert_eq!(answer.refusal().1, "shutting_down", "{answer:?}");
    assert!(
        all.contains("calls in flight that are cut short: 1"),
        "{all}"
    );
    assert_eq!(ended.code(), Some(1));
    let audit = directory.path().join("audit");
    let told: Vec<_> = events(&audit)
        .into_iter()
        .filter(|event| event["method"] == "tools/call" || event["event"] == "stop")
        .map(|event| {
            (
                event["event"].clone(),
                event["stage"].clone(),
                event["reason"].clone(),
            )
        })
        .collect();
    let expected = [
        ("call".into(), "decision".into(), Value::Null),
        ("call".into(), "outcome".into(), "shutting_down".into()),
        ("stop".into(), Value::Null, Value::Null),
    ];
    assert_eq!(told, expected);
}

/// What was never received whole is not in flight: it has a second more, and keeps nobody waiting for the rest.
#[tokio::test]
async fn rel_7_a_request_whose_body_does_not_end_delays_no_stop() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of()
        .setting("listen: { legacy_sse: true }")
        .upstream("notes", &notes)
        .start()
        .await;
    let mut slow = Vec::new();
    for path in ["/mcp", "/messages?session=none"] {
        let mut socket = TcpStream::connect(gateway.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n{{",
            gateway.address
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        slow.push(socket);
    }
    // An answer on each connection says that what was sent before has come: there is none yet.
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(200), slow[1].read(&mut byte));
    assert!(early.await.is_err(), "answered before its body was there");
    let began = Instant::now();
    let answers = async {
        let mut answers = Vec::new();
        for socket in &mut slow {
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.unwrap();
            answers.push(answer);
        }
        answers
    };
    let (answers, ()) = tokio::join!(answers, gateway.app.clone().shutdown());
    // A drain has 30 s, and so has a body.
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("shutting_down"), "{answer}");
    }
}
