//! Error codes, each with its section.

/// Not JSON (JSON-RPC 5.1).
pub const PARSE_ERROR: i64 = -32700;
/// Not a request (JSON-RPC 5.1).
pub const INVALID_REQUEST: i64 = -32600;
/// Unknown or unadvertised method (JSON-RPC 5.1); HTTP 404 in 2026-07-28.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Unknown name, bad cursor, missing `_meta` field, bad argument (JSON-RPC 5.1, PROTOCOL A6).
pub const INVALID_PARAMS: i64 = -32602;
/// Everything that is our fault (JSON-RPC 5.1).
pub const INTERNAL_ERROR: i64 = -32603;
/// Resource not found; legacy only, must not be emitted in 2026-07-28 (PROTOCOL A6).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// Header and body disagree; 2026-07-28, HTTP 400.
pub const HEADER_MISMATCH: i64 = -32020;
/// A client capability is needed that the request did not declare; 2026-07-28, HTTP 400.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The version is not served; 2026-07-28, HTTP 400.
pub const UNSUPPORTED_VERSION: i64 = -32022;
/// The user must visit URLs first; 2025-11-25 only (PROTOCOL A6, D2d).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// A session is unknown (field usage on legacy HTTP, with status 404).
pub const SESSION_NOT_FOUND: i64 = -32001;

// Ours, outside -32768..-32000 (PROTOCOL A6, SECURITY 4).

/// The upstream is away, or the connection to it was lost.
pub const UPSTREAM_UNAVAILABLE: i64 = -31001;
/// The upstream did not answer in time.
pub const UPSTREAM_TIMEOUT: i64 = -31002;
/// The upstream broke the protocol.
pub const UPSTREAM_PROTOCOL: i64 = -31003;
/// The upstream refused our credential.
pub const UPSTREAM_AUTH: i64 = -31004;
/// The upstream's answer is over a size limit.
pub const UPSTREAM_TOO_LARGE: i64 = -31005;
/// More work than capacity.
pub const OVERLOADED: i64 = -31006;
/// The gateway is stopping.
pub const SHUTTING_DOWN: i64 = -31007;
/// Who calls was not proved (SECURITY AUTHN-1); HTTP 401.
pub const UNAUTHENTICATED: i64 = -31008;
/// The token lacks a scope; HTTP 403.
pub const FORBIDDEN: i64 = -31009;
/// No policy permits it, or a person did not agree (SECURITY 5.4).
pub const DENIED: i64 = -31010;
/// Over a configured rate or quota.
pub const LIMITED: i64 = -31011;
/// Content holds what must not go through (SECURITY 7).
pub const CONTENT_BLOCKED: i64 = -31015;
/// What is done cannot be recorded, so it is not done (SECURITY AUD-2); HTTP 503.
pub const AUDIT_UNAVAILABLE: i64 = -31016;
/// The client would not give the input that the upstream needs.
pub const INPUT_REFUSED: i64 = -31020;
/// The user has to log in to the upstream first, at the URL in `data.url`.
pub const LOGIN_REQUIRED: i64 = -31021;

/// Whether only a server of 2026-07-28 has this code, about this one hop (PROTOCOL A6, D6).
pub const fn is_modern(code: i64) -> bool {
    matches!(
        code,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION
    )
}
