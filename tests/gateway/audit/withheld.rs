//! What is in no record, whatever passes through: secrets in content, in names and in ids (SECURITY 8, AUD-8).

use std::{
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use http::Method;
use usher::{
    admin::AdminSpec,
    audit::log::segments,
    findings::{Action, Direction, Finding, Findings, KEPT},
    server::spec::ListenSpec,
};

use super::{events, recording_by, records};
use crate::harness::{EventStream, Pairing, Play, eventually, quote, resource, tool};

/// A secret of a form that leaves no doubt.
const SECRET: &str = "glpat-k7Qd2ZrTn8VbXw4Ls9Yc";
/// One by the name of its parameter alone.
const PARAMETER: &str = "mk-parameter";
/// A card, and what looks like a password.
const CARD: &str = "4539 5787 6362 1486";
const PASSWORD: &str = "x8Kd-20qpL_zz7Wd";
/// What the operator calls a secret, and lets pass.
const OWN: &str = "falcon-123456";
const EVERYTHING: &str = "content: [{ level: request_response }]";
const AUDITOR: &str = "the-auditor-has-this-token-and-nobody-else";

fn planted() -> String {
    format!("before {SECRET} and {CARD} and password = '{PASSWORD}' and {OWN} after")
}

/// Where no class is off for the call, the call itself would not go through.
fn lets_pass(action: &str) -> String {
    let classes = [
        "secret",
        "weak_secret",
        "personal_checked",
        "own_credential",
    ];
    let classes = classes.map(|class| format!("{class}: {action}")).join(", ");
    format!(
        "sanitize: {{ classes: {{ {classes} }}, rules: [ {{ name: project, pattern: '{OWN}', action: flag }} ] }}"
    )
}

pairings! {
    /// SECURITY AUD-8
    async fn secrets_in_content_that_goes_through_are_in_no_record_of_it(pair: Pairing) {
        for action in ["off", "flag"] {
            let directory = tempfile::tempdir().unwrap();
            let notes = pair.upstream().tools([tool("t")]).on("tools/call", |heard| {
                assert!(heard.params.contains(SECRET), "it goes through");
                let text = quote(&planted());
                Play::Result(format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#))
            });
            let gateway = recording_by(directory.path(), EVERYTHING, &notes);
            let gateway = gateway.setting(&lets_pass(action)).start().await;
            let client = pair.client(&gateway).await;
            let arguments = format!(r#"{{"{SECRET}":{},"b":"kept"}}"#, quote(&planted()));
            let answer = client.call("notes_t", &arguments).await;
            assert!(answer.body.contains(SECRET), "it comes through: {answer:?}");
            gateway.app.clone().shutdown().await;
            let told = records(directory.path(), "tools/call");
            let [decision, outcome] = &told[..] else { panic!("{told:#?}") };
            for record in [decision, outcome] {
                let content = record["content"].as_str().unwrap();
                assert!(content.contains("before [redacted:"), "{content}");
                assert!(content.contains(" after"), "{content}");
            }
            assert!(decision["content"].as_str().unwrap().contains(r#""b":"kept""#));
            let all = format!("{told:?}");
            for secret in [SECRET, CARD, PASSWORD, OWN] {
                assert!(!all.contains(secret), "{secret} under `{action}`: {all}");
            }
        }
    }
}

pairings! {
    /// SECURITY AUD-8
    async fn a_secret_in_the_place_of_what_does_not_fit_a_schema_is_kept_nowhere(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let strict = r#"{"name":"t","inputSchema":{"type":"object","additionalProperties":false,
            "properties":{"deep":{"additionalProperties":{"additionalProperties":false}}}}}"#;
        let notes = pair.upstream().tools([strict]);
        let gateway = recording_by(directory.path(), "", &notes).start().await;
        let client = pair.client(&gateway).await;
        let long = "x".repeat(170);
        for arguments in [
            format!(r#"{{"{SECRET}":1}}"#),
            // What is cut off must not leave the beginning.
            format!(r#"{{"deep":{{"{long}":{{"{SECRET}":1}}}}}}"#),
        ] {
            let answer = client.call("notes_t", &arguments).await;
            assert_eq!(answer.value()["_meta"]["dev.usher/reason"], "invalid_arguments", "{answer:?}");
        }
        let findings = format!("{:?}", gateway.app.findings().recent());
        assert!(findings.contains("input_schema") && !findings.contains("glpat"), "{findings}");
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let places: Vec<_> = told.iter().map(|record| record["findings"][0]["place"].as_str().unwrap()).collect();
        let cut = format!("/deep/{long}/…");
        assert_eq!(places, ["/[redacted:gitlab_personal_token]", cut.as_str()]);
        assert!(!format!("{told:?}").contains("glpat"), "{told:?}");
    }
}

/// Something that was found in what nobody here has sent.
fn of_others() -> Finding {
    Finding {
        kind: "secret",
        rule: "aws_access_key".into(),
        action: Action::Block,
        direction: Direction::Results,
        place: "/0".into(),
        length: 20,
        digest: None,
        upstream: None,
        item: None,
        call: None,
        at: SystemTime::now(),
    }
}

pairings! {
    /// SECURITY 8: class, rule, location, count, action.
    async fn the_record_tells_all_that_was_found_in_a_call_and_how_often_whatever_is_found_in_others(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let all: Arc<OnceLock<Findings>> = Arc::default();
        let noted = all.clone();
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |_| {
            for _ in 0..=KEPT {
                noted.get().unwrap().note(of_others(), None);
            }
            let text = [SECRET; 100].join(" ");
            Play::Result(format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
        });
        let gateway = recording_by(directory.path(), "", &notes);
        let gateway = gateway.setting(&lets_pass("flag")).start().await;
        assert!(all.set(gateway.app.findings().clone()).is_ok());
        let client = pair.client(&gateway).await;
        let arguments = format!(r#"{{"a":"{SECRET}"}}"#);
        client.call("notes_t", &arguments).await;
        gateway.app.clone().shutdown().await;
        let told = records(directory.path(), "tools/call");
        let [_, outcome] = &told[..] else { panic!("{told:#?}") };
        let found = outcome["findings"].as_array().unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|it| {
                let word = |name: &str| it[name].as_str().unwrap();
                assert_eq!((word("class"), word("rule"), word("action")), ("secret", "gitlab_personal_token", "flag"));
                (word("place"), it["count"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(told, [("/arguments/a", 1), ("/content/0/text", 100)]);
    }
}

pairings! {
    /// SECURITY AUD-8
    async fn a_secret_in_the_name_of_a_definition_is_in_no_record_of_what_was_found_there(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("https://bob:{PASSWORD}@h.test/{SECRET}?token={PARAMETER}");
        let named = format!("t_{SECRET}");
        let notes = pair.upstream().tools([tool("t"), tool(&named)]).resources([resource(&address)]);
        let gateway = recording_by(directory.path(), "", &notes).start().await;
        pair.client(&gateway).await.tools().await;
        let told = eventually("it is recorded", async || {
            let told = events(directory.path());
            let of = |kind: &str| told.iter().filter(|event| event["event"] == kind).count();
            (of("quarantine") >= 2).then_some(told)
        });
        let all = format!("{:?}", told.await);
        for secret in [SECRET, PASSWORD, PARAMETER] {
            assert!(!all.contains(secret), "{secret}: {all}");
        }
        let findings = format!("{:?}", gateway.app.findings().recent());
        assert!(findings.contains("t_[redacted:") && !findings.contains(SECRET), "{findings}");
    }
}

pairings! {
    /// SECURITY AUD-8
    async fn secrets_in_names_addresses_and_ids_that_clients_write_are_kept_nowhere(pair: Pairing) {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("notes://x?token={PARAMETER}&page=2");
        let notes = pair.upstream().tools([tool("t")]).resources([resource(&address)]);
        let admin = AdminSpec {
            listen: ListenSpec {
                address: ([127, 0, 0, 1], 0).into(),
                hosts: Vec::new(),
                trusted_proxies: Vec::new(),
                tls: None,
                bounds: AdminSpec::bounds(),
            },
            token: None,
            auditor_token: Some(AUDITOR.into()),
        };
        let gateway = recording_by(directory.path(), "", &notes).admin(admin).start().await;
        let client = pair.client(&gateway).await;
        let bearer = format!("Bearer {AUDITOR}");
        let operators = gateway.app.admin().unwrap().address;
        let headers = [("authorization", bearer.as_str())];
        let mut feed = EventStream::open(operators, Method::GET, "/api/calls/follow", &headers, "").await;
        let looks = gateway.app.feed().clone();
        eventually("somebody looks", async || looks.is_watched().then_some(())).await;

        client.call(SECRET, "{}").await;
        client.call("notes_t", "{}").id(&quote(SECRET)).await;
        let read = client.read(&format!("notes+{address}")).await;
        assert!(read.body.contains("contents"), "{read:?}");
        client.read(&format!("https://ann:{PARAMETER}@nowhere/{SECRET}")).await;
        client.call("notes_t", "{}").await;

        let mut seen = String::new();
        while seen.matches("notes_t").count() < 2 {
            seen.push_str(&feed.message().await.data);
        }
        gateway.app.clone().shutdown().await;
        let told = [records(directory.path(), "tools/call"), records(directory.path(), "resources/read")].concat();
        assert_eq!(told.len(), 8, "{told:#?}");
        let text = format!("{told:?}");
        for secret in [SECRET, PARAMETER] {
            assert!(!text.contains(secret), "{secret}: {text}");
            assert!(!seen.contains(secret), "{secret}: {seen}");
            // Nor in what is recorded beside calls: the address was seen in a definition, too.
            for segment in segments(directory.path()).unwrap() {
                let text = std::fs::read_to_string(&segment.path).unwrap();
                assert!(!text.contains(secret), "{secret}: {text}");
            }
        }
        // What is no secret of it stays, so that one sees what was asked for.
        for kept in ["notes+notes://x?token=[redacted:parameter]&page=2", "\"notes_t\"", "https://ann:[redacted:parameter]@nowhere/"] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }
}
