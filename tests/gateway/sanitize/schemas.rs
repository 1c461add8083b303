//! What is taken out of a result never leaves one that its tool does not give: it fits the declared output schema, or it does
//! not come (SECURITY 7).

use std::collections::BTreeMap;

use bytes::Bytes;
use usher::{
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
        r#""properties":{"note":{"enum":["falcon-123456","plain"]}}"#,
    ),
    (
        "constant",
        r#""properties":{"note":{"const":"falcon-123456"}}"#,
    ),
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
    ("given", r#""required":["falcon-123456"]"#),
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
    r#"{"note":"ZmFsY29uLTEyMzQ1NiBpcyBpdA==","list":["4111 1111 1111 1111"]}"#,
];

pairings! {
    /// Issue 5, acceptance 4: a redaction never breaks the declared output schema.
    async fn what_comes_through_fits_the_schema_that_was_declared_or_does_not_come(pair: Pairing) {
        let declared = |wants: &str| format!(r#"{{"type":"object",{wants}}}"#);
        let tools = WANTS.iter().map(|(name, wants)| {
            format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"outputSchema":{}}}"#, declared(wants))
        });
        let notes = pair.upstream().tools(tools).on("tools/call", |heard: &Heard| {
            let n = heard.value()["arguments"]["n"].as_u64().unwrap() as usize;
            Play::Result(format!(r#"{{"content":[],"structuredContent":{}}}"#, ANSWERS[n]))
        });
        let (gateway, client) = before(pair, &notes).await;
        assert!(gateway.reports("notes").is_empty(), "{:?}", gateway.reports("notes"));
        let json = |text: &str| Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap();
        let mut came = BTreeMap::new();
        for (name, wants) in WANTS {
            let text = json(&declared(wants));
            let schema = Schema::compile(text.root()).unwrap();
            for (n, given) in ANSWERS.iter().enumerate() {
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
                        assert!(answer.text().contains("output_schema"), "{}", answer.text());
                        "blocked"
                    }
                    Some(other) => panic!("{name} {given}: {other}"),
                    None => {
                        let told = value["structuredContent"].to_string();
                        assert!(schema.conforms(json(&told).root(), 100_000), "{name}: {given} -> {told}");
                        assert!(!told.contains("falcon-1"), "{told}");
                        if told == parse(given).to_string() { "as it was" } else { "changed" }
                    }
                };
                *came.entry(how).or_insert(0) += 1;
            }
        }
        // Each of them happens, or nothing was shown.
        let counts = came.values().copied().collect::<Vec<i32>>();
        assert!(counts.len() == 4 && counts.iter().all(|count| *count >= 10), "{came:?}");
    }
}
