//! The probe on every rung of both ladders: what is evidence of an era, and what is none.

mod failing;

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::upstream::{
    scripted::{
        Play, Processes, Scripted, Sent, a_pipe, an_address, discovery, greeting, result, terms,
    },
    spec::HttpSpec,
};

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

fn probe(spec: &UpstreamSpec, processes: &Arc<Processes>) -> Probe {
    let connector: Arc<dyn Connector> = Arc::<Processes>::clone(processes);
    Probe::new(spec.clone(), connector, terms(spec))
}

/// Every transport plays the same script.
fn all(
    script: impl Fn(HttpTransport, &Sent) -> Play + Send + Sync + Clone + 'static,
) -> Arc<Processes> {
    Processes::new(move |_, http| {
        let script = script.clone();
        Scripted::new(move |sent| match sent.method.as_str() {
            "notifications/initialized" => Play::Status(202),
            _ => script(http, sent),
        })
    })
}

/// Answers the question with one play and the handshake with another.
fn answering(question: Play, handshake: Play) -> Arc<Processes> {
    all(move |_, sent| {
        if sent.method == DISCOVER {
            question.clone()
        } else {
            handshake.clone()
        }
    })
}

fn pinned(spec: UpstreamSpec, protocol: Pin) -> UpstreamSpec {
    UpstreamSpec { protocol, ..spec }
}

fn over(transport: HttpTransport) -> UpstreamSpec {
    let mut spec = an_address();
    if let Endpoint::Http(http) = &mut spec.endpoint {
        *http = HttpSpec {
            transport,
            ..http.clone()
        };
    }
    spec
}

fn methods(processes: &Processes) -> Vec<String> {
    let sent = processes.made().into_iter().flat_map(|made| made.sent());
    sent.map(|sent| sent.method).collect()
}

fn welcome() -> Play {
    result(greeting("2025-11-25"))
}

async fn revision(
    spec: &UpstreamSpec,
    processes: &Arc<Processes>,
) -> Result<Revision, UpstreamError> {
    let peer = probe(spec, processes).peer().await?;
    Ok(peer.card().revision)
}

#[tokio::test]
async fn a_discovered_server_is_modern_and_is_asked_nothing_else() {
    for spec in [a_pipe(), an_address()] {
        for versions in [
            r#"["2026-07-28"]"#,
            r#"["2025-11-25","2027-01-01","2026-07-28"]"#,
        ] {
            let processes = answering(result(discovery(versions)), welcome());
            assert_eq!(
                revision(&spec, &processes).await.unwrap(),
                Revision::V2026_07_28
            );
            assert_eq!(methods(&processes), [DISCOVER]);
        }
    }
    let processes = answering(result(discovery(r#"["2026-07-28"]"#)), welcome());
    drop(revision(&an_address(), &processes).await);
    let sent = processes.made()[0].sent().remove(0);
    assert_eq!(sent.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(sent.header("mcp-method"), Some("server/discover"));
    assert!(
        sent.params
            .contains(r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#)
    );
}

/// A server of the older era may begin one for whatever comes without, though it knows nothing of what comes.
#[tokio::test]
async fn a_session_that_a_server_begins_for_the_question_is_ended() {
    let named = |play| Play::Naming("asked", Box::new(play));
    for (question, ended) in [
        (named(Play::Error(400, -32600, "")), &["asked"][..]),
        (named(Play::Status(400)), &["asked"]),
        (named(result("{}")), &["asked"]),
        (named(Play::Error(503, -32600, "")), &[]),
        (Play::Status(400), &[]),
    ] {
        let welcome = Play::Session("ours", greeting("2025-11-25"));
        let processes = answering(question.clone(), welcome);
        let mut probe = probe(&an_address(), &processes);
        let peer = probe.peer().await;
        let first = processes.made()[0].clone();
        assert_eq!(*first.ended.lock().unwrap(), ended);
        if peer.is_err() {
            continue;
        }
        // And that of each later look.
        assert!(probe.upgraded().await.is_none());
        let looked = processes.made()[1].clone();
        assert_eq!(*looked.ended.lock().unwrap(), ended);
    }
    // A modern server has none.
    let card = result(discovery(r#"["2026-07-28"]"#));
    let processes = answering(named(card), welcome());
    assert!(probe(&an_address(), &processes).peer().await.is_ok());
    assert!(processes.made()[0].ended.lock().unwrap().is_empty());
}

#[tokio::test]
async fn whatever_does_not_know_the_question_is_asked_for_the_handshake() {
    let foreign = Play::Fail(UpstreamError::Protocol("a page".into()));
    let malformed = result(r#"{"supportedVersions":"2026-07-28","capabilities":{}}"#);
    let list = r#"{"supported":["2025-11-25"],"requested":"2026-07-28"}"#;
    for question in [
        Play::Error(200, -32601, ""),
        Play::Error(404, -32601, ""),
        Play::Error(400, -32000, ""),
        Play::Error(200, -32602, ""),
        Play::Error(400, -32022, list),
        Play::Error(400, -32022, ""),
        Play::Error(405, -32022, r#"{"supported":["2026-07-28"]}"#),
        // Codes of the stateless era, and not its status.
        Play::Error(200, -32020, ""),
        Play::Error(404, -32021, ""),
        Play::Status(400),
        Play::Status(404),
        Play::Status(405),
        Play::Status(406),
        foreign,
        malformed,
        result("{}"),
        result(discovery(r#"["2025-11-25"]"#)),
    ] {
        let processes = answering(question, welcome());
        assert_eq!(
            revision(&an_address(), &processes).await.unwrap(),
            Revision::V2025_11_25
        );
        assert_eq!(
            methods(&processes),
            [DISCOVER, INITIALIZE, "notifications/initialized"]
        );
        assert_eq!(processes.asked(), [HttpTransport::Streamable]);
    }
    for code in [-32601, -32602, -32000, -32020, -32021, -1] {
        let processes = answering(Play::Error(200, code, ""), welcome());
        assert_eq!(
            revision(&a_pipe(), &processes).await.unwrap(),
            Revision::V2025_11_25
        );
        assert_eq!(processes.made().len(), 1, "on the same pipe");
    }
}

#[tokio::test]
async fn a_named_mutual_version_is_asked_for_once_more() {
    for spec in [a_pipe(), an_address()] {
        let processes = Processes::new(|_, _| {
            let mut asked = 0;
            Scripted::new(move |_| {
                asked += 1;
                if asked == 1 {
                    Play::Error(
                        400,
                        -32022,
                        r#"{"supported":["2026-07-28"],"requested":"x"}"#,
                    )
                } else {
                    result(discovery(r#"["2026-07-28"]"#))
                }
            })
        });
        assert_eq!(
            revision(&spec, &processes).await.unwrap(),
            Revision::V2026_07_28
        );
        assert_eq!(methods(&processes), [DISCOVER, DISCOVER]);
        let always = Play::Error(
            400,
            -32022,
            r#"{"supported":["2026-07-28"],"requested":"x"}"#,
        );
        let processes = answering(always, welcome());
        assert!(revision(&spec, &processes).await.is_err());
        assert_eq!(methods(&processes), [DISCOVER, DISCOVER]);
    }
}

/// PROTOCOL B1: the message is looked at first.
#[tokio::test]
async fn versions_are_named_with_every_status_that_a_message_is_looked_for_with() {
    for status in [200, 400, 404] {
        let list = r#"{"supported":["2027-01-01"],"requested":"2026-07-28"}"#;
        let processes = answering(Play::Error(status, -32022, list), welcome());
        assert!(revision(&an_address(), &processes).await.is_err());
        assert_eq!(methods(&processes), [DISCOVER], "{status}");
    }
}

#[tokio::test]
async fn a_modern_server_that_cannot_be_used_is_not_asked_for_the_handshake() {
    for question in [
        Play::Error(
            400,
            -32022,
            r#"{"supported":["2027-01-01"],"requested":"2026-07-28"}"#,
        ),
        result(discovery(r#"["2027-01-01"]"#)),
        Play::Error(400, -32020, ""),
        Play::Error(400, -32021, ""),
    ] {
        let processes = answering(question, welcome());
        assert!(revision(&an_address(), &processes).await.is_err());
        assert_eq!(methods(&processes), [DISCOVER]);
        assert_eq!(processes.asked(), [HttpTransport::Streamable]);
    }
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_failures_and_silence_are_no_evidence() {
    for question in [
        Play::Fail(UpstreamError::denied(401)),
        Play::Fail(UpstreamError::denied(403)),
        Play::Fail(UpstreamError::Redirect(None)),
        Play::Fail(UpstreamError::unreached("refused")),
        Play::Status(502),
        Play::Status(503),
        Play::Status(504),
        Play::Error(502, -32603, ""),
        Play::Error(503, -32022, r#"{"supported":["2026-07-28"]}"#),
        Play::Error(429, -32022, r#"{"supported":["2025-11-25"]}"#),
        Play::Status(429),
        Play::Hang,
    ] {
        let processes = answering(question, welcome());
        let mut probe = probe(&an_address(), &processes);
        assert!(probe.peer().await.is_err());
        assert!(probe.legacy_since.is_none());
        assert_eq!(methods(&processes), [DISCOVER]);
    }
}

#[tokio::test]
async fn a_refused_handshake_leads_to_the_event_stream_and_other_failures_do_not() {
    for (handshake, events) in [
        (Play::Status(400), true),
        (Play::Status(404), true),
        (Play::Status(405), true),
        (Play::Error(400, -32000, ""), true),
        (Play::Error(400, -32022, ""), false),
        (Play::Error(200, -32602, ""), false),
        (Play::Fail(UpstreamError::denied(401)), false),
        (Play::Status(500), false),
    ] {
        let question = Play::Status(404);
        let processes = all(move |http, sent| match (http, sent.method.as_str()) {
            (HttpTransport::Sse, _) => result(greeting("2024-11-05")),
            (_, DISCOVER) => question.clone(),
            _ => handshake.clone(),
        });
        let found = revision(&an_address(), &processes).await;
        assert_eq!(found.is_ok(), events, "{found:?}");
        let streamable_only = over(HttpTransport::Streamable);
        assert!(revision(&streamable_only, &processes).await.is_err());
        let last = if events {
            assert_eq!(found.unwrap(), Revision::V2024_11_05);
            HttpTransport::Sse
        } else {
            HttpTransport::Streamable
        };
        let asked = processes.asked();
        assert_eq!(asked[asked.len() - 2], last);
    }
}

/// PROTOCOL C2: it speaks this transport, or it would have refused to begin.
#[tokio::test]
async fn a_handshake_that_is_refused_when_it_is_over_does_not_lead_to_the_event_stream() {
    for status in [400, 404, 405] {
        let processes = Processes::new(move |_, http| {
            Scripted::new(move |sent| match (http, sent.method.as_str()) {
                (HttpTransport::Sse, _) => result(greeting("2024-11-05")),
                (_, DISCOVER) => Play::Status(404),
                (_, INITIALIZE) => Play::Session("s", greeting("2025-11-25")),
                _ => Play::Status(status),
            })
        });
        let found = revision(&an_address(), &processes).await;
        assert!(
            matches!(found, Err(UpstreamError::Status(code)) if code == status),
            "{found:?}"
        );
        assert_eq!(processes.asked(), [HttpTransport::Streamable]);
        assert_eq!(*processes.made()[0].ended.lock().unwrap(), ["s"]);
    }
}

#[tokio::test]
async fn pins_are_honoured() {
    let revised = |date: &str| result(greeting(date));
    let modern = || result(discovery(r#"["2026-07-28"]"#));
    let exact = |revision| Pin::Revision(revision);
    for (pin, handshake, want, said) in [
        (
            Pin::Modern,
            welcome(),
            Some(Revision::V2026_07_28),
            DISCOVER,
        ),
        (
            exact(Revision::V2026_07_28),
            welcome(),
            Some(Revision::V2026_07_28),
            DISCOVER,
        ),
        (
            Pin::Legacy,
            revised("2025-03-26"),
            Some(Revision::V2025_03_26),
            INITIALIZE,
        ),
        (
            exact(Revision::V2025_06_18),
            revised("2025-06-18"),
            Some(Revision::V2025_06_18),
            INITIALIZE,
        ),
        (
            exact(Revision::V2025_06_18),
            revised("2025-11-25"),
            None,
            INITIALIZE,
        ),
    ] {
        for spec in [a_pipe(), an_address()] {
            let processes = answering(modern(), handshake.clone());
            let found = revision(&pinned(spec, pin), &processes).await;
            assert_eq!(found.ok(), want, "{pin:?}");
            assert_eq!(methods(&processes)[0], said);
        }
    }
    let pinned_old = pinned(a_pipe(), exact(Revision::V2025_06_18));
    let processes = answering(modern(), revised("2025-06-18"));
    revision(&pinned_old, &processes).await.unwrap();
    let sent = processes.made()[0].sent().remove(0);
    assert!(sent.params.contains(r#""protocolVersion":"2025-06-18""#));

    for spec in [a_pipe(), an_address()] {
        let processes = answering(Play::Error(404, -32601, ""), welcome());
        assert!(
            revision(&pinned(spec, Pin::Modern), &processes)
                .await
                .is_err()
        );
        assert_eq!(methods(&processes), [DISCOVER]);
    }
    let processes = answering(modern(), revised("2024-11-05"));
    let found = revision(&over(HttpTransport::Sse), &processes).await;
    assert_eq!(found.unwrap(), Revision::V2024_11_05);
    assert_eq!(processes.asked(), [HttpTransport::Sse]);
}

#[tokio::test]
async fn a_process_that_exits_on_the_question_is_started_again_and_not_asked() {
    let processes = answering(Play::Die, welcome());
    assert_eq!(
        revision(&a_pipe(), &processes).await.unwrap(),
        Revision::V2025_11_25
    );
    let made = processes.made();
    assert_eq!(made.len(), 2);
    assert_eq!(made[1].sent()[0].method, INITIALIZE);
    let processes = answering(Play::Die, Play::Die);
    let found = revision(&a_pipe(), &processes).await;
    assert!(matches!(found, Err(UpstreamError::Unavailable { .. })));
}

#[tokio::test(start_paused = true)]
async fn silence_on_a_pipe_leads_to_the_handshake_on_the_same_pipe() {
    let processes = answering(Play::Hang, welcome());
    let began = Instant::now();
    assert_eq!(
        revision(&a_pipe(), &processes).await.unwrap(),
        Revision::V2025_11_25
    );
    assert_eq!(began.elapsed(), Duration::from_millis(2500));
    assert_eq!(processes.made().len(), 1);
    assert!(!methods(&processes).contains(&"notifications/cancelled".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_answers_late_and_refuses_the_handshake_is_found() {
    let question = || Box::new(result(discovery(r#"["2026-07-28"]"#)));
    let refused = Play::Error(200, -32022, r#"{"supported":["2026-07-28"]}"#);
    for (answered, refused_after) in [(4, 5), (6, 0), (6, 4)] {
        let handshake = Play::After(refused_after, Box::new(refused.clone()));
        let processes = answering(Play::After(answered, question()), handshake);
        let found = revision(&a_pipe(), &processes).await;
        assert_eq!(
            found.unwrap(),
            Revision::V2026_07_28,
            "{answered} {refused_after}"
        );
        assert_eq!(processes.made().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_downloads_itself_first_is_waited_for_and_not_started_again() {
    let slowly = |play| Play::After(50, Box::new(play));
    let modern = || slowly(result(discovery(r#"["2026-07-28"]"#)));
    let older = || slowly(Play::Error(200, -32601, ""));
    for (protocol, question, handshake, found) in [
        (
            Pin::Auto,
            modern(),
            slowly(Play::Error(200, -32022, "")),
            Revision::V2026_07_28,
        ),
        (Pin::Auto, older(), slowly(welcome()), Revision::V2025_11_25),
        (Pin::Modern, modern(), Play::Hang, Revision::V2026_07_28),
        (
            Pin::Legacy,
            Play::Hang,
            slowly(welcome()),
            Revision::V2025_11_25,
        ),
    ] {
        let processes = answering(question, handshake);
        let spec = pinned(a_pipe(), protocol);
        assert_eq!(revision(&spec, &processes).await.unwrap(), found);
        assert_eq!(processes.made().len(), 1, "{protocol:?}");
    }
    // An address has no such patience.
    let processes = answering(modern(), slowly(welcome()));
    assert!(revision(&an_address(), &processes).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up_in_time_and_its_process_ended() {
    let processes = answering(Play::Hang, Play::Hang);
    let began = Instant::now();
    let found = revision(&a_pipe(), &processes).await;
    assert!(matches!(found, Err(UpstreamError::Timeout(_))));
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    tokio::task::yield_now().await;
    assert_eq!(processes.made()[0].closed.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_legacy_verdict_is_remembered_for_twelve_hours_and_forgotten_when_it_fails() {
    for spec in [a_pipe(), an_address()] {
        let processes = answering(Play::Error(200, -32601, ""), welcome());
        let mut probe = probe(&spec, &processes);
        let questions = || {
            methods(&processes)
                .iter()
                .filter(|method| *method == DISCOVER)
                .count()
        };
        probe.peer().await.unwrap();
        probe.peer().await.unwrap();
        assert_eq!(questions(), 1);
        tokio::time::advance(LEGACY_FOR / 2).await;
        probe.peer().await.unwrap();
        tokio::time::advance(LEGACY_FOR / 2).await;
        probe.peer().await.unwrap();
        assert_eq!(questions(), 2);
    }
    // The server was upgraded, and does not know the handshake any more.
    let processes = Processes::new(|number, _| {
        Scripted::new(move |sent| match (number, sent.method.as_str()) {
            (0, INITIALIZE) => welcome(),
            (0, _) => Play::Error(200, -32601, ""),
            (_, DISCOVER) => result(discovery(r#"["2026-07-28"]"#)),
            _ => Play::Error(400, -32602, ""),
        })
    });
    let mut probe = probe(&over(HttpTransport::Streamable), &processes);
    probe.peer().await.unwrap();
    let peer = probe.peer().await.unwrap();
    assert_eq!(peer.card().revision, Revision::V2026_07_28);
}

/// A server of the handshake era, reached by `http`, of which only the question is answered otherwise once it is told to; and
/// then the handshake is answered with `handshake`.
fn replaced(http: HttpTransport, handshake: Play) -> (Arc<Processes>, Arc<AtomicBool>) {
    let replaced = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&replaced);
    let processes =
        all(
            move |over, sent| match (now.load(Ordering::SeqCst), sent.method.as_str()) {
                (true, DISCOVER) => result(discovery(r#"["2026-07-28"]"#)),
                (true, _) => handshake.clone(),
                (false, INITIALIZE) if over == http => welcome(),
                (false, _) => Play::Status(404),
            },
        );
    (processes, replaced)
}

/// PROTOCOL C4
#[tokio::test(start_paused = true)]
async fn a_server_that_was_replaced_by_one_that_refuses_the_handshake_is_found_at_once() {
    for http in [HttpTransport::Streamable, HttpTransport::Sse] {
        for handshake in [
            Play::Error(400, -32602, ""),
            Play::Error(404, -32601, ""),
            Play::Error(400, -32022, ""),
            Play::Error(400, -32020, ""),
            Play::Error(200, -32601, ""),
            Play::Status(400),
            Play::Status(404),
            Play::Status(405),
        ] {
            let (processes, replaced) = replaced(http, handshake);
            let mut probe = probe(&an_address(), &processes);
            let peer = probe.peer().await.unwrap();
            assert_eq!(peer.card().revision, Revision::V2025_11_25);
            replaced.store(true, Ordering::SeqCst);
            let before = methods(&processes).len();
            let peer = probe.peer().await.unwrap();
            assert_eq!(peer.card().revision, Revision::V2026_07_28);
            // Once more with less, where it could not be read.
            let mut asked = methods(&processes).split_off(before);
            asked.dedup();
            assert_eq!(asked, [INITIALIZE, DISCOVER]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_not_forgotten_where_the_handshake_is_not_refused() {
    for handshake in [
        Play::Status(408),
        Play::Status(429),
        Play::Status(500),
        Play::Status(503),
        Play::Hang,
        Play::Fail(UpstreamError::unreached("refused")),
        Play::Fail(UpstreamError::denied(401)),
    ] {
        let (processes, replaced) = replaced(HttpTransport::Streamable, handshake);
        let mut probe = probe(&an_address(), &processes);
        probe.peer().await.unwrap();
        replaced.store(true, Ordering::SeqCst);
        let before = methods(&processes).len();
        assert!(probe.peer().await.is_err());
        let mut asked = methods(&processes).split_off(before);
        asked.dedup();
        assert_eq!(asked, [INITIALIZE]);
    }
}

#[tokio::test]
async fn a_remembered_event_stream_is_opened_at_once() {
    let processes = all(|http, _| match http {
        HttpTransport::Sse => result(greeting("2024-11-05")),
        HttpTransport::Auto | HttpTransport::Streamable => Play::Status(404),
    });
    let mut probe = probe(&an_address(), &processes);
    probe.peer().await.unwrap();
    probe.peer().await.unwrap();
    assert_eq!(
        processes.asked(),
        [
            HttpTransport::Streamable,
            HttpTransport::Sse,
            HttpTransport::Sse
        ]
    );
}

#[tokio::test]
async fn a_session_that_only_lists_declares_all_that_could_be_asked_and_one_that_carries_calls_only_apps()
 {
    let everything = r#""capabilities":{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
    let apps = r#""capabilities":{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
    for (isolation, declared) in [
        (Isolation::Session, everything),
        (Isolation::Principal, everything),
        (Isolation::Shared, apps),
    ] {
        for spec in [a_pipe(), an_address(), over(HttpTransport::Sse)] {
            let processes = answering(Play::Error(200, -32601, ""), welcome());
            let spec = UpstreamSpec { isolation, ..spec };
            let _ = revision(&spec, &processes).await.unwrap();
            let sent = processes.made().into_iter().flat_map(|made| made.sent());
            let opening = sent.into_iter().find(|sent| sent.method == INITIALIZE);
            let params = opening.unwrap().params;
            assert!(params.contains(declared), "{isolation:?}: {params}");
        }
    }
}
