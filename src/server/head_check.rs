//! What HTTP itself refuses, in the order of the answers: names, methods, sizes, ambiguous headers.
//!
//! Guarantees: a request that passes names one well-formed allowed host, has no `Origin` or an allowed one, repeats no
//! singleton header, carries no two names that differ only by `_` and `-`, and brings no forwarding header along. Nothing
//! of the body is read. Deliberately absent: framing of HTTP/1 (that is `framing`), paths (that is `Routes`).

use http::{HeaderMap, Method, Request, StatusCode, Version, header, uri::Uri};
use memchr::memchr;

use super::{framing::Violation, spec::ServerBounds};
use crate::metrics::{self, Bound};

/// One answer of the gate. The text is for people and says nothing about us.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// The word for it in records.
    pub(super) reason: &'static str,
    pub(super) text: &'static str,
    pub(super) allow: Option<&'static str>,
}

/// Hosts that may be named.
#[derive(Debug)]
pub(super) struct Names {
    /// Whether loopback names count: on a loopback bind only.
    pub(super) loopback: bool,
    /// Lower case, without port.
    pub(super) hosts: Vec<String>,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Headers that mean something to us and must therefore mean one thing (SECURITY HTTP-8), beside `mcp-param-*`.
const SINGLETONS: [&str; 8] = [
    "authorization",
    "content-type",
    "content-length",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// Methods that any path may meet; what an endpoint allows is its own affair.
const ALLOW: &str = "GET, POST, DELETE";

/// Judges the head of a request and drops its forwarding headers.
///
/// # Errors
/// The refusal to answer with.
pub(super) fn check<B>(
    request: &mut Request<B>,
    names: &Names,
    bounds: &ServerBounds,
) -> Result<(), Refusal> {
    let repeats = request.headers().len() != request.headers().keys_len();
    check_host(request, names, repeats)?;
    check_origin(request.headers(), names, repeats)?;
    check_method(request.method())?;
    if request.version() == Version::HTTP_2 {
        check_sizes(request.uri(), request.headers(), bounds)?;
    }
    ignore_offer(request);
    if check_fields(request.headers(), repeats)? == Forwarding::Present {
        drop_forwarding(request.headers_mut());
    }
    Ok(())
}

impl Refusal {
    pub(super) const NOT_FOUND: Self = Self::new(StatusCode::NOT_FOUND, "not_found", "not found\n");
    const BAD_HOST: Self = Self::new(StatusCode::BAD_REQUEST, "bad_host", "bad host\n");
    const BAD_FIELDS: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "ambiguous_header",
        "ambiguous header\n",
    );
    const MALFORMED: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "malformed_request",
        "malformed request\n",
    );
    const HOST: Self = Self::new(
        StatusCode::FORBIDDEN,
        "host_not_allowed",
        "host not allowed\n",
    );
    const ORIGIN: Self = Self::new(
        StatusCode::FORBIDDEN,
        "origin_not_allowed",
        "origin not allowed\n",
    );
    const TARGET: Self = Self::new(
        StatusCode::URI_TOO_LONG,
        "target_too_long",
        "target too long\n",
    );
    const FIELDS: Self = Self::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "headers_too_large",
        "headers too large\n",
    );
    const TUNNEL: Self = Self::new(
        StatusCode::NOT_IMPLEMENTED,
        "not_implemented",
        "not implemented\n",
    );
    const TRACE: Self = Self {
        status: StatusCode::METHOD_NOT_ALLOWED,
        reason: "method_not_allowed",
        text: "method not allowed\n",
        allow: Some(ALLOW),
    };

    const fn new(status: StatusCode, reason: &'static str, text: &'static str) -> Self {
        Self {
            status,
            reason,
            text,
            allow: None,
        }
    }
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::Malformed => Self::MALFORMED,
            Violation::TargetTooLong => {
                metrics::reached(Bound::HttpTarget);
                Self::TARGET
            }
            // Which of the three, HTTP/1 does not tell.
            Violation::FieldsTooLarge => {
                metrics::reached(Bound::HttpHead);
                Self::FIELDS
            }
            Violation::Tunnel => Self::TUNNEL,
            Violation::Trace => Self::TRACE,
        }
    }
}

impl Names {
    fn allow(&self, host: &str) -> bool {
        let same = |name: &str| name.eq_ignore_ascii_case(host);
        (self.loopback && LOOPBACK.into_iter().any(same))
            || self.hosts.iter().any(|name| same(name))
    }
}

// SECURITY HTTP-2, HTTP-3
fn check_host<B>(request: &Request<B>, names: &Names, repeats: bool) -> Result<(), Refusal> {
    let headers = request.headers();
    let named = match headers.get(header::HOST) {
        None => None,
        Some(_) if repeats && headers.get_all(header::HOST).iter().count() > 1 => {
            return Err(Refusal::BAD_HOST);
        }
        Some(value) => Some(value.to_str().map_err(|_| Refusal::BAD_HOST)?),
    };
    let uri = request.uri();
    if !matches!(uri.scheme_str(), None | Some("http" | "https")) {
        return Err(Refusal::BAD_HOST);
    }
    let target = uri.authority().map(http::uri::Authority::as_str);
    let authority = match (target, named) {
        // Absolute form, or HTTP/2 with both: they must agree, and HTTP/1 needs the header in any case.
        (Some(target), Some(named)) if target.eq_ignore_ascii_case(named) => named,
        (Some(target), None) if request.version() == Version::HTTP_2 => target,
        (None, Some(named)) => named,
        (Some(_), _) | (None, None) => return Err(Refusal::BAD_HOST),
    };
    let host = host_of(authority).ok_or(Refusal::BAD_HOST)?;
    if names.allow(host) {
        Ok(())
    } else {
        Err(Refusal::HOST)
    }
}

// SECURITY HTTP-3; PROTOCOL B1.8
fn check_origin(headers: &HeaderMap, names: &Names, repeats: bool) -> Result<(), Refusal> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    if repeats && headers.get_all(header::ORIGIN).iter().count() > 1 {
        return Err(Refusal::ORIGIN);
    }
    let host = origin
        .to_str()
        .ok()
        .and_then(|origin| {
            origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"))
        })
        .and_then(host_of);
    match host {
        Some(host) if names.allow(host) => Ok(()),
        Some(_) | None => Err(Refusal::ORIGIN),
    }
}

// SECURITY HTTP-7. The framing guard has already refused these on HTTP/1.
fn check_method(method: &Method) -> Result<(), Refusal> {
    match *method {
        Method::CONNECT => Err(Refusal::TUNNEL),
        Method::TRACE => Err(Refusal::TRACE),
        _ => Ok(()),
    }
}

/// SECURITY 6, for HTTP/2; on HTTP/1 the framing guard has counted.
fn check_sizes(uri: &Uri, headers: &HeaderMap, bounds: &ServerBounds) -> Result<(), Refusal> {
    let target = uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if target > bounds.target_bytes {
        metrics::reached(Bound::HttpTarget);
        return Err(Refusal::TARGET);
    }
    let mut sum = 0;
    for (name, value) in headers {
        let field = name.as_str().len() + value.len();
        if field > bounds.field_bytes {
            metrics::reached(Bound::HttpField);
            return Err(Refusal::FIELDS);
        }
        sum += field;
    }
    if sum > bounds.head_bytes {
        metrics::reached(Bound::HttpHead);
        return Err(Refusal::FIELDS);
    }
    if headers.len() > bounds.fields {
        metrics::reached(Bound::HttpFields);
        return Err(Refusal::FIELDS);
    }
    Ok(())
}

/// Drops an offer of h2c, as if it had not been made; any other wish for another protocol is left for the check of fields.
/// What passed the framing guard makes no other.
fn ignore_offer<B>(request: &mut Request<B>) {
    let headers = request.headers_mut();
    if headers
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"h2c"))
    {
        headers.remove(header::UPGRADE);
        headers.remove("http2-settings");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forwarding {
    Absent,
    Present,
}

// SECURITY HTTP-7, HTTP-8
fn check_fields(headers: &HeaderMap, repeats: bool) -> Result<Forwarding, Refusal> {
    let mut forwarding = Forwarding::Absent;
    let mut underscores = false;
    for name in headers.keys() {
        let name = name.as_str();
        underscores |= memchr(b'_', name.as_bytes()).is_some();
        if is_forwarding(name) {
            forwarding = Forwarding::Present;
        }
        if name == "upgrade" {
            return Err(Refusal::MALFORMED);
        }
    }
    if repeats {
        check_repeats(headers)?;
    }
    if underscores {
        check_underscores(headers)?;
    }
    Ok(forwarding)
}

fn check_repeats(headers: &HeaderMap) -> Result<(), Refusal> {
    for name in headers.keys() {
        let single = SINGLETONS.contains(&name.as_str()) || name.as_str().starts_with("mcp-param-");
        if single && headers.get_all(name).iter().count() > 1 {
            return Err(Refusal::BAD_FIELDS);
        }
    }
    Ok(())
}

/// Refuses a singleton or framing header spelled with `_`, and any two names that are one after folding `_` to `-`.
fn check_underscores(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut folded: Vec<String> = Vec::with_capacity(headers.keys_len());
    for name in headers.keys() {
        let name = name.as_str();
        let fold = name.replace('_', "-");
        let known = SINGLETONS.contains(&fold.as_str()) || fold == "transfer-encoding";
        if known && fold != name {
            return Err(Refusal::BAD_FIELDS);
        }
        folded.push(fold);
    }
    folded.sort_unstable();
    if folded.is_sorted_by(|a, b| a < b) {
        Ok(())
    } else {
        Err(Refusal::BAD_FIELDS)
    }
}

// SECURITY HTTP-12
fn is_forwarding(name: &str) -> bool {
    match name.as_bytes().first() {
        Some(b'x') => name.starts_with("x-forwarded-") || name == "x-real-ip",
        Some(b'f') => name == "forwarded",
        Some(_) | None => false,
    }
}

fn drop_forwarding(headers: &mut HeaderMap) {
    let names: Vec<_> = headers
        .keys()
        .filter(|name| is_forwarding(name.as_str()))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// The host of `host[:port]`, brackets included; `None` for anything else.
fn host_of(authority: &str) -> Option<&str> {
    let end = if authority.starts_with('[') {
        let end = authority.find(']')? + 1;
        let inside = authority.get(1..end - 1)?;
        let address = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
        if inside.is_empty() || !inside.bytes().all(address) {
            return None;
        }
        end
    } else {
        let colon = authority.bytes().position(|byte| byte == b':');
        let end = colon.unwrap_or(authority.len());
        let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if end == 0 || !authority.bytes().take(end).all(name) {
            return None;
        }
        end
    };
    let (host, rest) = authority.split_at_checked(end)?;
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some(host),
        Some(port)
            if (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            Some(host)
        }
        Some(_) | None => None,
    }
}
