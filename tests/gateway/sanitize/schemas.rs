//! What is taken out of a result never leaves one that its tool does not give (SECURITY 7).
//! It fits the declared output schema, or it does not come.

use std::collections::BTreeMap;

use bytes::Bytes;
use usher::{
    findings::Action,
    json::{Json, Limits},
    schema::Schema,
};

use super::*;

/// What a tool may say of the text `note` of its results, or of their members.
const WANTS: &[(&str, &str)] = &[
    ("anything", r#""properties":{"note":{"type":"string"}}"#),
    (
        "closed",
        r#""properties":{"note":{"type":"string"},"n":{"type":"integer"},"list":{"type":"array"}},"required":["note"],"additionalProperties":false"#,
    ),
    ("short", r#""properties":{"note":{"maxLength":16}}"#),
    ("long", r#""properties":{"note":{"minLength":22}}"#),
    (
        "pattern",
        r#""properties":{"note":{"pattern":"^[A-Za-z0-9 .:-]*$"}}"#,
    ),
    ("falcon", r#""properties":{"note":{"pattern":"falcon"}}"#),
    (
        "choice",
        r#""properties":{"note":{"enum":["falcon-12345","plain",CARD]}}"#,
    ),
    ("constant", r#""properties":{"note":{"const":CARD}}"#),
    (
        "not",
        r#""properties":{"note":{"not":{"pattern":"redacted"}}}"#,
    ),
    ("names", r#""propertyNames":{"pattern":"^[a-z0-9-]*$"}"#),
    (
        "list",
        r#""properties":{"list":{"items":{"pattern":"^[^\\[]*$"},"uniqueItems":true}}"#,
    ),
    (
        "either",
        r#""oneOf":[{"properties":{"note":{"pattern":"falcon"}}},{"properties":{"note":{"maxLength":3}}}]"#,
    ),
    ("given", r#""required":[CARD]"#),
];

/// What tools answer: clean, or with something to be taken out, here or there.
const ANSWERS: &[&str] = &[
    r#"{"note":"plain"}"#,
    r#"{"note":"falcon-123456"}"#,
    r#"{"note":"it is falcon-123456","n":1}"#,
    r#"{"note":"zero\u200bwidth"}"#,
    r#"{"note":"plain","list":["falcon-123456","falcon-654321"]}"#,
    r#"{"note":"plain","list":["a","a\u200b"]}"#,
    r#"{"note":"plain","falcon-123456":1}"#,
    r#"{"note":"ZmFsY29uLTEyMzQ1NiBpcyBpdA==","list":[CARD]}"#,
    r#"{"note":CARD}"#,
    r#"{"note":"a card",CARD:1}"#,
];

/// The number of a card that nobody has: in definitions such a number is told of only, in results it is redacted.
fn card() -> String {
    let digits = "492918734056213";
    let sum: u32 = digits
        .chars()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = digit.to_digit(10).unwrap();
            match at % 2 {
                0 if digit > 4 => digit * 2 - 9,
                0 => digit * 2,
                _ => digit,
            }
        })
        .sum();
    format!("\"{digits}{}\"", (10 - sum % 10) % 10)
}

pairings! {
    /// Issue 5, acceptance 4: a redaction never breaks the declared output schema.
    async fn what_comes_through_fits_the_schema_that_was_declared_or_does_not_come(pair: Pairing) {
        let card = card();
        let declared = |wants: &str| format!(r#"{{"type":"object",{wants}}}"#).replace("CARD", &card);
        let answers: Vec<String> = ANSWERS.iter().map(|answer| answer.replace("CARD", &card)).collect();
        let given = answers.clone();
        let tools = WANTS.iter().map(|(name, wants)| {
            format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"outputSchema":{}}}"#, declared(wants))
        });
        let notes = pair.upstream().tools(tools).on("tools/call", move |heard: &Heard| {
            let n = heard.value()["arguments"]["n"].as_u64().unwrap() as usize;
            Play::Result(format!(r#"{{"content":[],"structuredContent":{}}}"#, given[n]))
        });
        let (gateway, client) = before(pair, &notes).await;
        assert_eq!(client.tools().await.len(), WANTS.len(), "{:?}", gateway.reports("notes"));
        let json = |text: &str| Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap();
        let mut came = BTreeMap::new();
        for (name, wants) in WANTS {
            let text = json(&declared(wants));
            let schema = Schema::compile(text.root()).unwrap();
            for (n, given) in answers.iter().enumerate() {
                let answer = client.call(&format!("notes_{name}"), &format!(r#"{{"n":{n}}}"#)).await;
                let value = answer.value();
                let fitted = schema.conforms(json(given).root(), 100_000);
                let how = match value["_meta"]["dev.usher/reason"].as_str() {
                    // The server's own fault.
                    Some("invalid_result") => {
                        assert!(!fitted, "{name} {given}");
                        "not given"
                    }
                    Some("content_blocked") => {
                        assert!(fitted, "{name} {given}");
                        let text = answer.text();
                        let said = "; without that it would not fit the tool's output schema";
                        assert!(text.contains(said) && !text.contains("(integrity)"), "{text}");
                        let last = gateway.app.findings().recent().pop().unwrap();
                        assert_eq!((&*last.rule, last.action), ("output_schema", Action::Block), "{last:?}");
                        "blocked"
                    }
                    Some(other) => panic!("{name} {given}: {other}"),
                    None => {
                        let same = value["structuredContent"] == parse(given);
                        let told = value["structuredContent"].to_string();
                        assert!(schema.conforms(json(&told).root(), 100_000), "{name}: {given} -> {told}");
                        assert!(!told.contains("falcon-123456") && !told.contains(&card[1..17]), "{told}");
                        if same { "as it was" } else { "changed" }
                    }
                };
                *came.entry(how).or_insert(0) += 1;
            }
        }
        // Each of them happens, or nothing was shown.
        let counts = came.values().copied().collect::<Vec<i32>>();
        assert!(counts.len() == 4 && counts.iter().all(|count| *count >= 5), "{came:?}");
    }
}

/// Issue 5, acceptance 4: the result of a task, too.
#[tokio::test]
async fn the_result_inside_a_task_fits_the_schema_or_does_not_come() {
    const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    for (wants, comes) in [("falcon", false), ("", true)] {
        let schema = format!(
            r#"{{"type":"object","properties":{{"note":{{"type":"string","pattern":"{wants}"}}}}}}"#
        );
        let slow = format!(
            r#"{{"name":"slow","inputSchema":{{"type":"object"}},"outputSchema":{schema}}}"#
        );
        let notes = Upstream::http(Revision::V2026_07_28)
            .capabilities(r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
            .tools([slow])
            .on("tools/call", |_| Play::Raw(
                r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"local-7","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":5}}"#.into(),
            ))
            .on("tasks/get", |_| Play::Result(format!(
                r#"{{"taskId":"local-7","status":"completed","createdAt":"c","lastUpdatedAt":"l","ttlMs":60000,"result":{{"content":[],"structuredContent":{{"note":"{SECRET}"}}}}}}"#
            )));
        let gateway = Gateway::of()
            .setting(RULE)
            .upstream("notes", &notes)
            .start()
            .await;
        let client = gateway.client_able(Revision::V2026_07_28, TASKS).await;
        let made = client.call("notes_slow", "{}").await.value();
        let asked = json!({"taskId": made["taskId"]}).to_string();
        let answer = client.ask("tasks/get", &asked).await;
        assert!(!answer.message().contains(SECRET), "{answer:?}");
        if comes {
            assert_eq!(answer.value()["result"]["structuredContent"]["note"], GONE);
        } else {
            assert_eq!(answer.refusal().1, "content_blocked", "{answer:?}");
        }
    }
}
