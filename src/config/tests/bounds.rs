//! `bounds:`: every key reaches the plan, and none leaves its range.

use std::time::Duration;

use super::*;
use crate::{auth::spec::ProofLimits, json::Limits, resume, upstream::spec::PeerBounds};

/// A server, and somebody who may come in.
const AROUND: &str = "upstreams: { a: { command: [run] } }\nauth: { anonymous: true }\n";

/// The plan of these bounds.
fn plan(bounds: &str) -> Plan {
    Files::with(&format!("{AROUND}bounds: {{ {bounds} }}\n")).plan()
}

#[test]
fn every_bound_of_messages_questions_and_proofs_reaches_whoever_holds_to_it() {
    let plan = plan(
        "http: { body: 3MiB }, \
         json: { depth: 9, values: 101, members: 33, key: 129B, number: 34 }, \
         upstream: { depth: 10, message: 5KiB, answer: 6KiB, cursor: 65B }, \
         stdio: { line: 7KiB, stderr: 8KiB, restarts: 2 }, \
         resume: { state: 66B, life: 70s, rounds: 3, inputs: 4 }, \
         auth: { token: 1KiB, metadata: 2KiB, key_set: 3KiB, keys: 5, clock_skew: 6s }, \
         catalog: { schema_time: 9ms }, \
         subscriptions: { addresses: 11, buffer: 12, buffer_bytes: 32KiB }",
    );
    let json = Limits {
        depth: 9,
        values: 101,
        members: 33,
        key_bytes: 129,
        number_bytes: 34,
    };
    let asking = resume::Bounds {
        life: 70,
        rounds: 3,
        inputs: 4,
        state_bytes: 66,
    };
    assert_eq!(
        (plan.messages.json, plan.messages.line_bytes),
        (json, 3 << 20)
    );
    assert_eq!(plan.messages.patience, Duration::from_secs(60));
    assert_eq!(plan.asking, asking);
    assert_eq!(
        plan.upstreams[0].bounds,
        PeerBounds {
            json: Limits { depth: 10, ..json },
            message_bytes: 5 << 10,
            answer_bytes: 6 << 10,
            line_bytes: 7 << 10,
            stderr_bytes: 8 << 10,
            restarts: 2,
            asking,
        }
    );
    let catalog = plan.catalog.bounds;
    assert_eq!(
        (catalog.cursor_bytes, catalog.schema_time),
        (65, Duration::from_millis(9))
    );
    assert_eq!(
        plan.auth.map(|auth| auth.limits),
        Some(ProofLimits {
            token_bytes: 1 << 10,
            metadata_bytes: 2 << 10,
            key_set_bytes: 3 << 10,
            keys: 5,
            skew: 6,
        })
    );
    assert_eq!(
        (plan.listens.addresses, plan.listens.buffer),
        (11, (12, 32 << 10))
    );
    // A session listens no otherwise.
    assert_eq!(
        (plan.sessions.addresses, plan.sessions.waiting),
        (11, (12, 32 << 10))
    );
}

#[test]
fn what_is_left_out_is_the_default() {
    let plan = plan("");
    assert_eq!(plan.messages, crate::downstream::MessageBounds::default());
    assert_eq!(plan.upstreams[0].bounds, PeerBounds::default());
    assert_eq!(plan.asking, resume::Bounds::default());
    assert_eq!(plan.listens, crate::events::Bounds::default());
    let limits = plan.auth.map(|auth| auth.limits);
    assert_eq!(limits, Some(ProofLimits::default()));
}

/// Block, key, what is just too little, least, most, and just too much.
const RANGES: &[(&str, &str, [&str; 4])] = &[
    ("json", "depth", ["7", "8", "128", "129"]),
    ("json", "values", ["99", "100", "4000000", "4000001"]),
    ("json", "members", ["31", "32", "200000", "200001"]),
    ("json", "key", ["127B", "128B", "64KiB", "65537B"]),
    ("json", "number", ["31", "32", "4096", "4097"]),
    ("upstream", "depth", ["7", "8", "256", "257"]),
    ("upstream", "cursor", ["63B", "64B", "64KiB", "65537B"]),
    ("stdio", "line", ["1023B", "1KiB", "256MiB", "257MiB"]),
    ("stdio", "stderr", ["1023B", "1KiB", "4MiB", "5MiB"]),
    ("stdio", "restarts", ["0", "1", "100", "101"]),
    ("resume", "state", ["63B", "64B", "48KiB", "49153B"]),
    ("resume", "life", ["59s", "60s", "1h", "3601s"]),
    ("resume", "rounds", ["0", "1", "64", "65"]),
    ("resume", "inputs", ["0", "1", "64", "65"]),
    ("auth", "token", ["511B", "512B", "64KiB", "65537B"]),
    ("auth", "metadata", ["1023B", "1KiB", "1MiB", "1048577B"]),
    ("auth", "key_set", ["1023B", "1KiB", "4MiB", "5MiB"]),
    ("auth", "keys", ["0", "1", "1000", "1001"]),
    ("catalog", "schema_time", ["0ms", "1ms", "1s", "1001ms"]),
    ("subscriptions", "addresses", ["0", "1", "10000", "10001"]),
    ("subscriptions", "buffer", ["7", "8", "10000", "10001"]),
    (
        "subscriptions",
        "buffer_bytes",
        ["16383B", "16KiB", "16MiB", "17MiB"],
    ),
];

#[test]
fn each_bound_may_be_moved_to_both_ends_of_its_range_and_no_further() {
    for (block, key, [below, least, most, above]) in RANGES {
        for value in [least, most] {
            plan(&format!("{block}: {{ {key}: {value} }}"));
        }
        for value in [below, above] {
            let problem = only(&format!(
                "{AROUND}bounds: {{ {block}: {{ {key}: {value} }} }}\n"
            ));
            assert_eq!(problem.path, format!("bounds.{block}.{key}"), "{value}");
            assert!(problem.hint.unwrap_or_default().contains("the default is"));
        }
    }
    // Clocks may agree.
    plan("auth: { clock_skew: 0s }");
    assert_eq!(
        only("bounds: { auth: { clock_skew: 301s } }\n").path,
        "bounds.auth.clock_skew"
    );
}

#[test]
fn one_message_of_a_server_is_not_larger_than_all_together() {
    plan("upstream: { message: 9KiB, answer: 9KiB }");
    let problem = only("bounds: { upstream: { message: 9217B, answer: 9KiB } }\n");
    assert_eq!(problem.path, "bounds.upstream.message");
    for (key, ok) in [("message", "256MiB, answer: 1GiB"), ("answer", "1GiB")] {
        plan(&format!("upstream: {{ {key}: {ok} }}"));
    }
    for (yaml, path) in [
        ("message: 1023B", "bounds.upstream.message"),
        ("message: 257MiB, answer: 1GiB", "bounds.upstream.message"),
        ("answer: 1025MiB", "bounds.upstream.answer"),
    ] {
        let problem = only(&format!("bounds: {{ upstream: {{ {yaml} }} }}\n"));
        assert_eq!(problem.path, path);
    }
}
