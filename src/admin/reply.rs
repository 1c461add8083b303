//! Answers of the admin plane: never kept, never guessed at, never framed, never read by another site.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Body as _;

use crate::{
    json::Json,
    server::{Body, body},
};

/// What a browser is told about everything that comes from here.
const HEADERS: [(&str, &str); 7] = [
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

/// A value.
pub(super) fn json(json: &Json) -> Response<Body> {
    full(StatusCode::OK, "application/json", json.bytes().clone())
}

/// Any bytes.
pub(super) fn full(status: StatusCode, media: &'static str, bytes: Bytes) -> Response<Body> {
    guarded(body::full(status, media, bytes))
}

/// An open event stream.
pub(super) fn events(stream: Body) -> Response<Body> {
    guarded(body::event_stream(stream))
}

/// The same without the body, whose length is told all the same.
pub(super) fn bare(answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Body::default())
}

fn guarded(mut answer: Response<Body>) -> Response<Body> {
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        let name = header::HeaderName::from_static(name);
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    answer
}
