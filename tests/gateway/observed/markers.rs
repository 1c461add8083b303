//! Values planted wherever a call holds something, and a search for them in metrics, spans and logs (issue 6, acceptance 6).

use super::*;
use crate::egress::markers::{Written, finds};

const ARGUMENT: &str = "mk1-argument-9d2c";
const RESULT: &str = "mk2-result-9d2c";
const FAILURE: &str = "mk3-failure-9d2c";
const SUBJECT_TOKEN: &str = "mk4-claim-9d2c";
const BEARER: &str = "mk5-bearer-9d2c";
const URI: &str = "mk6-uri-9d2c";
const UNKNOWN: &str = "mk7-unknown-9d2c";
const BAGGAGE: &str = "mk8-baggage-9d2c";
const HEADER: &str = "mk9-header-9d2c";

#[tokio::test]
async fn no_credential_and_no_content_is_in_metrics_spans_or_logs() {
    let written = Written::default();
    let _hearing = written.hears_everything();
    let (telemetry, exporter) = watched();
    let upstream = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t"), tool("fails"), tool("breaks")])
        .resources([resource(&format!("notes://{URI}"))])
        .on("tools/call", |heard| match heard.text("name").as_deref() {
            Some("t") => Play::Result(text_result(RESULT)),
            Some("fails") => Play::Result(format!(
                r#"{{"content":[{{"type":"text","text":"{FAILURE}"}}],"isError":true}}"#
            )),
            _ => Play::Error(format!(r#"{{"code":-32603,"message":"{FAILURE}"}}"#)),
        });
    let authority = Authority::start().await;
    let gateway = Gateway::of()
        .upstream("notes", &upstream)
        .auth(authority.spec())
        .observed(telemetry)
        .start()
        .await;
    let token = authority.token("ana", &format!(r#","secret":"{SUBJECT_TOKEN}""#));
    let bearer = [
        ("authorization", format!("Bearer {token}")),
        ("x-other", HEADER.to_owned()),
    ];
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = Client::connect_with(gateway.address, "/mcp", revision, "{}", &bearer).await;
        let client = client.unwrap();
        let arguments = format!(r#"{{"a":"{ARGUMENT}"}}"#);
        let meta = format!(r#""traceparent":"00-{TRACE}-{OWN}-01","baggage":"a={BAGGAGE}""#);
        for name in ["notes_t", "notes_fails", "notes_breaks", UNKNOWN] {
            client.call(name, &arguments).meta(&meta).await;
        }
        client.read(&format!("notes+notes://{URI}")).await;
        client.read(&format!("{URI}://nowhere")).await;
        client.ask(UNKNOWN, "{}").await;
    }
    // A credential that proves nothing.
    let wrong = [("authorization", format!("Bearer {BEARER}"))];
    let modern = Revision::V2026_07_28;
    let client = Client::connect_with(gateway.address, "/mcp", modern, "{}", &wrong).await;
    assert_eq!(client.unwrap().call("notes_t", "{}").await.status, 401);

    let [server, asked] = spans(&exporter, "tools/call");
    assert_eq!((server.len(), asked.len()), (8, 6));
    let spans = format!("{:?}", exporter.get_finished_spans().unwrap());
    assert!(spans.contains("tools/call notes_t") && spans.contains("ana"));
    let metrics = String::from_utf8(metered().metrics_text()).unwrap();
    let logs = written.text();
    assert!(logs.contains("the log is heard"));
    let signature = token.rsplit_once('.').unwrap().1.to_owned();
    let markers = [
        ARGUMENT,
        RESULT,
        FAILURE,
        SUBJECT_TOKEN,
        BEARER,
        URI,
        UNKNOWN,
        BAGGAGE,
        HEADER,
        &signature,
    ];
    for (what, text) in [("spans", &spans), ("metrics", &metrics), ("logs", &logs)] {
        for marker in markers {
            let found = finds(text, marker);
            assert_eq!(found, None, "{marker} in {what}");
        }
    }
    assert!(!metrics.contains("ana"), "a principal is a label");
}
