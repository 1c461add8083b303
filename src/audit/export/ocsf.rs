//! OCSF 1.8.0: calls as API Activity (class 6003), everything else as Base Event (class 0).
//!
//! What OCSF has no place for comes along under `unmapped`, where the whole record is.

use serde::Serialize;
use serde_json::value::RawValue;

use super::millis;
use crate::audit::{chain::Line, entry::Entry};

/// Which OCSF.
const VERSION: &str = "1.8.0";

/// Adds the event of a record's line to `out`, with a line feed; `false` if it is no record.
pub fn ocsf(out: &mut Vec<u8>, line: &[u8]) -> bool {
    let Some(parsed) = Line::parse(line) else {
        return false;
    };
    let Some(entry) = Entry::parse(parsed.event) else {
        return false;
    };
    let Ok(raw) = serde_json::from_slice(parsed.event) else {
        return false;
    };
    let event = Event::of(&parsed, &entry, raw);
    if serde_json::to_writer(&mut *out, &event).is_err() {
        return false;
    }
    out.push(b'\n');
    true
}

#[derive(Serialize)]
struct Event<'a> {
    activity_id: u32,
    activity_name: &'static str,
    category_uid: u32,
    category_name: &'static str,
    class_uid: u32,
    class_name: &'static str,
    type_uid: u64,
    time: i64,
    severity_id: u32,
    severity: &'static str,
    status_id: u32,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_code: Option<&'a str>,
    message: String,
    metadata: Metadata<'a>,
    #[serde(flatten)]
    call: Option<Call<'a>>,
    unmapped: Unmapped<'a>,
}

/// What only API Activity has.
#[derive(Serialize)]
struct Call<'a> {
    action_id: u32,
    action: &'static str,
    disposition_id: u32,
    disposition: &'static str,
    actor: Actor<'a>,
    api: Api<'a>,
    src_endpoint: Endpoint<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dst_endpoint: Option<Endpoint<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Resource<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorizations: Vec<Authorization<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Trace<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    version: &'static str,
    product: Product,
    profiles: &'static [&'static str],
    log_name: &'static str,
    event_code: String,
    original_time: &'a str,
    original_event_uid: String,
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant_uid: Option<&'a str>,
    log_source: &'a str,
}

#[derive(Serialize)]
struct Product {
    name: &'static str,
    vendor_name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Actor<'a> {
    user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_name: Option<&'a str>,
}

#[derive(Serialize)]
struct User<'a> {
    name: &'a str,
    type_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Api<'a> {
    operation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Request<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Named<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

#[derive(Serialize)]
struct Request<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
struct Response<'a> {
    error: &'a str,
}

#[derive(Serialize)]
struct Endpoint<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    svc_name: Option<&'a str>,
}

#[derive(Serialize)]
struct Resource<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(rename = "type")]
    sort: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
}

#[derive(Serialize)]
struct Authorization<'a> {
    decision: &'a str,
    policy: Policy<'a>,
}

#[derive(Serialize)]
struct Policy<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
struct Trace<'a> {
    uid: &'a str,
}

/// The record as it is.
#[derive(Serialize)]
struct Unmapped<'a> {
    usher: &'a RawValue,
}

impl<'a> Event<'a> {
    fn of(line: &Line<'a>, entry: &'a Entry, raw: &'a RawValue) -> Self {
        let is_call = entry.method.is_some();
        let (activity_id, activity_name) = match entry.method.as_deref() {
            Some("prompts/get" | "resources/read" | "completion/complete") => (2, "Read"),
            Some(method) if method.ends_with("/list") => (2, "Read"),
            Some("tools/call") => (99, "Call"),
            _ => (99, "Other"),
        };
        let (class_uid, class_name, category_uid, category_name) = if is_call {
            (6003, "API Activity", 6, "Application Activity")
        } else {
            (0, "Base Event", 0, "Uncategorized")
        };
        let kept_out = is_denied(entry);
        let (status_id, status) = status(entry);
        let (severity_id, severity) = if kept_out {
            (2, "Low")
        } else {
            (1, "Informational")
        };
        Self {
            activity_id,
            activity_name,
            category_uid,
            category_name,
            class_uid,
            class_name,
            type_uid: u64::from(class_uid) * 100 + u64::from(activity_id),
            time: millis(&entry.time),
            severity_id,
            severity,
            status_id,
            status,
            status_code: entry.reason.as_deref().or(entry.outcome.as_deref()),
            message: message(entry),
            metadata: Metadata {
                version: VERSION,
                product: Product {
                    name: "Usher",
                    vendor_name: "Usher",
                    version: env!("CARGO_PKG_VERSION"),
                },
                profiles: if is_call {
                    &["security_control", "trace"]
                } else {
                    &[]
                },
                log_name: "audit",
                event_code: code(entry),
                original_time: &entry.time,
                original_event_uid: line.hash.to_string(),
                sequence: line.seq,
                correlation_uid: entry.call.as_deref(),
                tenant_uid: entry.principal.tenant.as_deref(),
                log_source: line.node,
            },
            call: is_call.then(|| Call::of(entry, kept_out)),
            unmapped: Unmapped { usher: raw },
        }
    }
}

impl<'a> Call<'a> {
    fn of(entry: &'a Entry, kept_out: bool) -> Self {
        let (action_id, action, disposition_id, disposition) = if kept_out {
            (2, "Denied", 2, "Blocked")
        } else {
            (1, "Allowed", 1, "Allowed")
        };
        let who = &entry.principal;
        let target = &entry.target;
        let upstream = target.upstream.as_deref();
        let decision = entry.decision.as_deref().unwrap_or(action);
        Self {
            action_id,
            action,
            disposition_id,
            disposition,
            actor: Actor {
                user: User {
                    name: &who.name,
                    type_id: 1,
                    domain: who.issuer.as_deref(),
                    groups: who.groups.iter().map(|name| Named { name }).collect(),
                },
                app_name: who.client.as_deref(),
            },
            api: Api {
                operation: entry.method.as_deref().unwrap_or_default(),
                request: entry.call.as_deref().map(|uid| Request { uid }),
                response: entry.reason.as_deref().map(|error| Response { error }),
                service: upstream.map(|name| Named { name }),
                version: entry.revision.as_deref(),
            },
            src_endpoint: source(entry),
            dst_endpoint: upstream.map(|name| Endpoint {
                ip: None,
                name: None,
                svc_name: Some(name),
            }),
            resources: target
                .exposed
                .as_deref()
                .map(|name| Resource {
                    name,
                    uid: target.name.as_deref(),
                    sort: sort(entry),
                    namespace: upstream,
                })
                .into_iter()
                .collect(),
            authorizations: entry
                .policies
                .iter()
                .map(|uid| Authorization {
                    decision,
                    policy: Policy { uid },
                })
                .collect(),
            trace: entry.trace.trace.as_deref().map(|uid| Trace { uid }),
        }
    }
}

/// Where a request came from: an address, or the process that started us. The record of an end leaves that to the one of the
/// decision, with which it has its `correlation_uid` in common; and an endpoint has a name.
fn source(entry: &Entry) -> Endpoint<'_> {
    let ip = entry.address.as_deref();
    let name = match entry.stage.as_deref() {
        Some("outcome") => "unknown",
        Some(_) | None => "local",
    };
    Endpoint {
        ip,
        name: ip.is_none().then_some(name),
        svc_name: None,
    }
}

fn sort(entry: &Entry) -> &'static str {
    match entry.method.as_deref() {
        Some("tools/call") => "Tool",
        Some("prompts/get") => "Prompt",
        Some(method) if method.starts_with("resources/") => "Resource",
        _ => "Item",
    }
}

/// Whether something was kept from being done.
fn is_denied(entry: &Entry) -> bool {
    // What ended for a reason of ours was let by nobody, and no upstream heard of it, where no decision is on record, here or in
    // a record of its own: what did not fit, or could not be recorded, or came too late.
    let undecided = entry.decision.is_none() && entry.stage.as_deref() == Some("both");
    match entry.outcome.as_deref() {
        Some("denied" | "blocked") => true,
        Some("invalid") if undecided => true,
        Some(_) if undecided && entry.reason.is_some() => true,
        _ => entry.decision.as_deref() == Some("deny"),
    }
}

/// Whether a call that ended so did what it was to do; one that asks its user something goes on with the answer.
pub(super) fn is_success(outcome: &str) -> bool {
    matches!(outcome, "ok" | "input_required")
}

fn status(entry: &Entry) -> (u32, &'static str) {
    match (entry.outcome.as_deref(), entry.decision.as_deref()) {
        (Some(outcome), _) if is_success(outcome) => (1, "Success"),
        (Some(_), _) | (None, Some("deny")) => (2, "Failure"),
        (None, _) => (0, "Unknown"),
    }
}

/// The event and its stage in one word.
pub(super) fn code(entry: &Entry) -> String {
    match &entry.stage {
        Some(stage) => format!("{}.{stage}", entry.event),
        None => entry.event.clone(),
    }
}

/// One line for people.
pub(super) fn message(entry: &Entry) -> String {
    let mut parts = vec![entry.method.as_deref().unwrap_or(&entry.event)];
    parts.extend(entry.target.exposed.as_deref());
    if !entry.principal.name.is_empty() {
        parts.extend(["by", &entry.principal.name]);
    }
    let ended = [&entry.decision, &entry.outcome, &entry.reason];
    let ended: Vec<_> = ended.into_iter().flatten().map(String::as_str).collect();
    if ended.is_empty() {
        parts.join(" ")
    } else {
        format!("{}: {}", parts.join(" "), ended.join(", "))
    }
}
