//! Log records of OpenTelemetry, in the JSON encoding of OTLP, with the attributes of its MCP conventions.
//!
//! The whole line comes along as `log.record.original`: a receiver that keeps it keeps what can be proved.

use bytes::Bytes;
use serde::Serialize;

use super::{
    nanos,
    ocsf::{code, is_success, message},
};
use crate::{
    audit::{chain::Line, entry::Entry},
    json::Json,
    jsonrpc,
    metrics::names,
};

/// Who sends.
#[derive(Debug, Clone)]
pub struct Resource {
    /// `service.name`.
    pub service: String,
    /// `service.instance.id`: the node.
    pub node: String,
}

/// The body of a request to a receiver's `/v1/logs` with these lines; what is no record is left out.
pub fn logs<'a>(resource: &Resource, lines: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let records: Vec<Record> = lines.filter_map(Record::of).collect();
    let version = env!("CARGO_PKG_VERSION");
    let request = Request {
        resource_logs: [ResourceLogs {
            resource: About {
                attributes: vec![
                    text("service.name", &resource.service),
                    text("service.instance.id", &resource.node),
                    text("service.version", version),
                ],
            },
            scope_logs: [ScopeLogs {
                scope: Scope {
                    name: "usher.audit",
                    version,
                },
                log_records: records,
            }],
        }],
    };
    Json::of(&request).bytes().clone()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    resource_logs: [ResourceLogs; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs {
    resource: About,
    scope_logs: [ScopeLogs; 1],
}

#[derive(Serialize)]
struct About {
    attributes: Vec<Attribute>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs {
    scope: Scope,
    log_records: Vec<Record>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    time_unix_nano: String,
    observed_time_unix_nano: String,
    severity_number: u32,
    severity_text: &'static str,
    event_name: String,
    body: Value,
    attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
}

#[derive(Serialize)]
struct Attribute {
    key: &'static str,
    value: Value,
}

#[derive(Serialize)]
enum Value {
    #[serde(rename = "stringValue")]
    Text(String),
    /// A number of 64 bits is a text in this encoding.
    #[serde(rename = "intValue")]
    Whole(String),
    #[serde(rename = "arrayValue")]
    Many(Values),
}

#[derive(Serialize)]
struct Values {
    values: Vec<Value>,
}

fn text(key: &'static str, value: &str) -> Attribute {
    Attribute {
        key,
        value: Value::Text(value.to_owned()),
    }
}

impl Record {
    fn of(line: &[u8]) -> Option<Self> {
        let parsed = Line::parse(line)?;
        let entry = Entry::parse(parsed.event)?;
        let time = nanos(&entry.time).to_string();
        let failed = entry.outcome.as_deref().is_some_and(|it| !is_success(it))
            || entry.decision.as_deref() == Some("deny");
        let (severity_number, severity_text) = if failed { (13, "WARN") } else { (9, "INFO") };
        Some(Self {
            time_unix_nano: time.clone(),
            observed_time_unix_nano: time,
            severity_number,
            severity_text,
            event_name: format!("usher.audit.{}", code(&entry)),
            body: Value::Text(message(&entry)),
            attributes: attributes(&parsed, &entry, line, failed),
            trace_id: entry.trace.trace.filter(|id| is_hex(id, 32)),
            span_id: (entry.trace.span.or(entry.trace.parent)).filter(|id| is_hex(id, 16)),
        })
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn attributes(parsed: &Line<'_>, entry: &Entry, line: &[u8], failed: bool) -> Vec<Attribute> {
    let method = entry.method.as_deref();
    let exposed = entry.target.exposed.as_deref();
    let named = match method {
        Some("tools/call") => Some("gen_ai.tool.name"),
        Some("prompts/get") => Some("gen_ai.prompt.name"),
        Some(method) if method.starts_with("resources/") => Some("mcp.resource.uri"),
        _ => None,
    };
    let tool = (method == Some("tools/call")).then_some("execute_tool");
    // As the conventions say of a tool's own error; for others the word of our published list.
    let error = failed.then(|| match entry.outcome.as_deref() {
        Some("tool_error") => "tool_error",
        _ => entry.reason.as_deref().unwrap_or("_OTHER"),
    });
    let request = entry.request.as_deref().map(jsonrpc::id_in_words);
    let who = &entry.principal;
    let name = Some(who.name.as_str()).filter(|name| !name.is_empty());
    let original = String::from_utf8_lossy(line);
    let hash = parsed.hash.to_string();
    let texts = [
        ("mcp.method.name", method),
        ("mcp.protocol.version", entry.revision.as_deref()),
        (names::REQUEST, request.as_deref()),
        (named.unwrap_or_default(), named.and(exposed)),
        ("gen_ai.operation.name", tool),
        ("error.type", error),
        ("client.address", entry.address.as_deref()),
        ("gateway.upstream", entry.target.upstream.as_deref()),
        ("gateway.principal", name),
        ("usher.audit.principal.issuer", who.issuer.as_deref()),
        ("usher.audit.principal.tenant", who.tenant.as_deref()),
        ("usher.audit.principal.client", who.client.as_deref()),
        ("usher.audit.call", entry.call.as_deref()),
        ("usher.audit.limit", entry.limit.as_deref()),
        ("usher.audit.stage", entry.stage.as_deref()),
        ("usher.audit.decision", entry.decision.as_deref()),
        ("usher.audit.reason", entry.reason.as_deref()),
        ("usher.audit.outcome", entry.outcome.as_deref()),
        ("usher.audit.node", Some(parsed.node)),
        ("usher.audit.boot", Some(parsed.boot)),
        ("log.record.uid", Some(hash.as_str())),
        ("log.record.original", Some(&*original)),
    ];
    let mut all: Vec<Attribute> = texts
        .into_iter()
        .filter_map(|(key, value)| Some(text(key, value?)))
        .collect();
    all.push(Attribute {
        key: "usher.audit.seq",
        value: Value::Whole(parsed.seq.to_string()),
    });
    let lists: [(&'static str, Vec<&str>); 2] = [
        (
            "usher.audit.policies",
            entry.policies.iter().map(String::as_str).collect(),
        ),
        (
            "usher.audit.findings",
            entry
                .findings
                .iter()
                .map(|found| found.rule.as_str())
                .collect(),
        ),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            let values = list
                .into_iter()
                .map(|value| Value::Text(value.to_owned()))
                .collect();
            all.push(Attribute {
                key,
                value: Value::Many(Values { values }),
            });
        }
    }
    all
}
