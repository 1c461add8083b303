//! Exports against what their schemas require, written down here from the published ones.

#![expect(
    clippy::disallowed_types,
    reason = "tests look at single values of what was written"
)]

use serde_json::{Value, json};

use super::*;
use crate::audit::{
    canonical::Object,
    chain::{ChainPosition, Origin, link},
    log::{Event, event},
};

/// Lines of a decision, an outcome, a denial and a start.
fn lines() -> Vec<Vec<u8>> {
    let events = [
        call("decision", &|object| {
            object
                .text("decision", "permit")
                .text("event", "call")
                .text("method", "tools/call")
                .texts("policies", ["readers"], 9);
        }),
        call("outcome", &|object| {
            object
                .text("event", "call")
                .text("method", "tools/call")
                .text("outcome", "ok");
        }),
        call("both", &|object| {
            object
                .text("decision", "deny")
                .text("event", "call")
                .text("method", "resources/read")
                .text("outcome", "denied");
        }),
        event(|object| {
            object
                .text("event", "start")
                .text("time", "2026-11-21T12:00:00.000000000Z")
                .number("v", 1);
        }),
    ];
    chained(&events)
}

/// The line of a call that ended so, of which these are the stage and, where there are any, the decision and the reason.
fn ended(
    outcome: &str,
    stage: &'static str,
    decision: Option<&str>,
    reason: Option<&str>,
) -> Vec<u8> {
    let event = call_with(stage, reason, &|object| {
        object
            .maybe("decision", decision)
            .text("event", "call")
            .text("method", "tools/call")
            .text("outcome", outcome);
    });
    chained(&[event]).remove(0)
}

/// A record of a call at this stage, with what else there is to tell.
fn call(stage: &'static str, fill: &dyn Fn(&mut Object<'_>)) -> Event {
    call_with(stage, None, fill)
}

/// The same for a reason, where there is one.
fn call_with(stage: &'static str, reason: Option<&str>, fill: &dyn Fn(&mut Object<'_>)) -> Event {
    let who = |who: &mut Object<'_>| {
        who.text("client", "agent-7")
            .texts("groups", ["ops"], 9)
            .text("issuer", "https://id.example")
            .text("name", "ana");
    };
    let to = |to: &mut Object<'_>| {
        to.text("exposed", "notes_read")
            .text("name", "read")
            .text("upstream", "notes");
    };
    event(|object| {
        // As records of calls have it: an end whose decision has a record of its own does not repeat it.
        let address = (stage != "outcome").then_some("192.0.2.7");
        object.maybe("address", address).text("call", "3f9a-1");
        fill(object);
        object
            .object("principal", who)
            .maybe("reason", reason)
            .text("request", r#""request-7""#)
            .text("revision", "2026-07-28")
            .text("stage", stage)
            .object("target", to)
            .text("time", "2026-11-21T12:00:00.123456789Z")
            .object("trace", |trace| {
                trace
                    .text("parent", "b7ad6b7169203331")
                    .text("span", "00f067aa0ba902b7")
                    .text("trace", "4bf92f3577b34da6a3ce929d0e0e4736");
            })
            .number("v", 1);
    })
}

/// The lines of these records.
fn chained(events: &[Event]) -> Vec<Vec<u8>> {
    let origin = Origin {
        node: "node-1".to_owned(),
        boot: "3f9a".to_owned(),
    };
    let mut last = ChainPosition::START;
    events
        .iter()
        .map(|event| {
            let mut line = Vec::new();
            last = link(&mut line, event, &last, &origin);
            line.pop();
            line
        })
        .collect()
}

fn has(value: &Value, path: &str) -> bool {
    value.pointer(path).is_some_and(|value| !value.is_null())
}

/// SECURITY AUD-9: what class 6003 of OCSF 1.8.0 requires, and the base event, and the constraints of their objects.
#[test]
fn every_record_is_an_ocsf_event_with_what_its_class_requires() {
    let mut out = Vec::new();
    for line in lines() {
        assert!(ocsf(&mut out, &line));
    }
    assert!(!ocsf(&mut out, b"no record"));
    let text = String::from_utf8(out).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 4);
    for (n, event) in events.iter().enumerate() {
        let base = [
            "/activity_id",
            "/category_uid",
            "/class_uid",
            "/metadata/product/name",
            "/metadata/version",
            "/severity_id",
            "/time",
            "/type_uid",
        ];
        let activity = [
            "/actor/user/name",
            "/api/operation",
            "/api/request/uid",
            "/src_endpoint",
            "/trace/uid",
        ];
        let required = base.iter().chain(activity.iter().filter(|_| n < 3));
        for path in required {
            assert!(has(event, path), "{path} of {event:#}");
        }
        let number = |name: &str| event[name].as_u64().unwrap();
        assert_eq!(
            number("type_uid"),
            number("class_uid") * 100 + number("activity_id")
        );
        assert_eq!(event["metadata"]["sequence"], n as u64 + 1);
        assert!(has(event, "/unmapped/usher/time"));
    }
    let [decision, outcome, denied, start] = &events[..] else {
        panic!("four");
    };
    for told in [decision, denied] {
        assert_eq!(told["src_endpoint"], json!({"ip": "192.0.2.7"}));
    }
    assert_eq!(decision["class_uid"], 6003);
    assert_eq!(decision["time"], 1_795_262_400_123_u64);
    assert_eq!(decision["action_id"], 1);
    assert_eq!(decision["authorizations"][0]["policy"]["uid"], "readers");
    assert_eq!(outcome["status_id"], 1);
    assert_eq!(outcome["resources"][0]["uid"], "read");
    assert_eq!(denied["disposition_id"], 2);
    assert_eq!(denied["activity_id"], 2);
    assert_eq!(start["class_uid"], 0);
    assert!(!has(start, "/actor"));
}

/// The record of an end does not say where its call came from, and then nobody is named.
#[test]
fn a_call_is_local_only_where_its_record_would_tell_an_address() {
    let from = |stage: &str| {
        let event = event(|object| {
            object
                .text("event", "call")
                .text("method", "tools/call")
                .text("stage", stage)
                .text("time", "2026-11-21T12:00:00.123456789Z");
        });
        let mut out = Vec::new();
        assert!(ocsf(&mut out, &chained(&[event])[0]));
        let mut told: Value = serde_json::from_slice(&out).unwrap();
        told["src_endpoint"].take()
    };
    assert_eq!(from("decision"), json!({"name": "local"}));
    assert_eq!(from("both"), json!({"name": "local"}));
    assert_eq!(from("outcome"), json!({"name": "unknown"}));
}

/// SECURITY AUD-9: as the encoding of OTLP in JSON has it, with the attributes of the MCP conventions.
#[test]
fn every_record_is_a_log_record_with_the_attributes_of_the_conventions() {
    let lines = lines();
    let resource = Resource {
        service: "usher".to_owned(),
        node: "node-1".to_owned(),
    };
    let body = logs(&resource, lines.iter().map(Vec::as_slice));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let of = &body["resourceLogs"][0];
    assert_eq!(of["resource"]["attributes"][0]["key"], "service.name");
    let records = of["scopeLogs"][0]["logRecords"].as_array().unwrap();
    assert_eq!(records.len(), 4);
    let attribute = |n: usize, key: &str| {
        let all = records[n]["attributes"].as_array().unwrap();
        let mut found = all.iter().filter(|one| one["key"] == key);
        let value = found.next().map(|one| one["value"].clone());
        assert!(found.next().is_none(), "{key} twice");
        value.unwrap_or_default()
    };
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
        ("jsonrpc.request.id", "request-7"),
        ("gen_ai.tool.name", "notes_read"),
        ("gen_ai.operation.name", "execute_tool"),
        ("client.address", "192.0.2.7"),
        ("gateway.upstream", "notes"),
        ("usher.audit.decision", "permit"),
        ("log.record.original", str::from_utf8(&lines[0]).unwrap()),
    ] {
        assert_eq!(attribute(0, key)["stringValue"], value, "{key}");
    }
    assert_eq!(attribute(0, "usher.audit.seq")["intValue"], "1");
    let policies = attribute(0, "usher.audit.policies");
    assert_eq!(
        policies["arrayValue"]["values"][0]["stringValue"],
        "readers"
    );
    assert_eq!(attribute(0, "error.type"), Value::Null);
    assert_eq!(records[0]["timeUnixNano"], "1795262400123456789");
    assert_eq!(records[0]["eventName"], "usher.audit.call.decision");
    assert_eq!(records[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(records[0]["spanId"], "00f067aa0ba902b7");
    assert_eq!(records[0]["severityNumber"], 9);
    assert_eq!(records[2]["severityNumber"], 13);
    assert_eq!(
        attribute(2, "mcp.resource.uri")["stringValue"],
        "notes_read"
    );
    assert_eq!(attribute(2, "error.type")["stringValue"], "_OTHER");
    assert_eq!(attribute(3, "mcp.method.name"), Value::Null);
}

/// A call that asks its user something goes on with the answer, and what Usher ends before it goes on is not let through.
#[test]
fn a_question_is_no_failure_and_what_never_went_on_was_not_allowed() {
    let (unrecorded, late) = (Some("audit_unavailable"), Some("deadline_exceeded"));
    for (outcome, stage, decision, reason, success, allowed) in [
        ("input_required", "outcome", None, None, true, true),
        ("input_required", "both", Some("permit"), None, true, true),
        ("tool_error", "outcome", None, None, false, true),
        ("invalid", "both", None, None, false, false),
        // An upstream said so, or a call had gone on.
        ("invalid", "outcome", None, None, false, true),
        ("invalid", "both", Some("permit"), None, false, true),
        ("timeout", "both", Some("permit"), late, false, true),
        ("timeout", "outcome", None, late, false, true),
        ("unavailable", "outcome", None, unrecorded, false, true),
        // It ended before it could.
        ("timeout", "both", None, late, false, false),
        ("unavailable", "both", None, unrecorded, false, false),
        (
            "unavailable",
            "both",
            None,
            Some("shutting_down"),
            false,
            false,
        ),
        // Its client left, and nobody has turned it away.
        ("cancelled", "both", None, None, false, true),
        ("shed", "both", Some("deny"), None, false, false),
    ] {
        let what = format!("{outcome} {stage} {decision:?} {reason:?}");
        let line = ended(outcome, stage, decision, reason);
        let mut out = Vec::new();
        assert!(ocsf(&mut out, &line));
        let event: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(event["status_id"], if success { 1 } else { 2 }, "{what}");
        let action = if allowed { "Allowed" } else { "Denied" };
        assert_eq!(event["action"], action, "{what}");

        let resource = Resource {
            service: "usher".to_owned(),
            node: "node-1".to_owned(),
        };
        let body = logs(&resource, [line.as_slice()].into_iter());
        let body: Value = serde_json::from_slice(&body).unwrap();
        let record = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        let severity = if success { "INFO" } else { "WARN" };
        assert_eq!(record["severityText"], severity, "{what}");
        let attributes = record["attributes"].as_array().unwrap();
        let error = attributes.iter().any(|one| one["key"] == "error.type");
        assert_ne!(error, success, "{what}");
    }
}
