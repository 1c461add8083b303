//! What went wrong, as RFC 9457 has it: a status, a reason word that stays the same, and a sentence for people.

use http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::reply;
use crate::{json::Json, policy, server::Body};

/// Why a request was not answered as asked.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    /// A word of [`REASONS`].
    pub(super) reason: &'static str,
    pub(super) detail: String,
    /// What is wrong, place by place.
    pub(super) problems: Vec<policy::Problem>,
    /// After how many seconds to try again.
    pub(super) retry: Option<u64>,
    /// The methods that there are.
    pub(super) allow: Option<String>,
}

/// A problem as it is told (RFC 9457).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct ProblemBody<'a> {
    /// Always `about:blank`: the status says what sort it is, the reason which.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'a str,
    /// The status.
    status: u16,
    /// Which problem: a word that stays the same.
    reason: &'a str,
    /// What happened, in a sentence.
    detail: &'a str,
    /// What is wrong, place by place, where files are.
    #[serde(skip_serializing_if = "<[policy::Problem]>::is_empty")]
    problems: &'a [policy::Problem],
}

impl Problem {
    pub(super) fn new(status: StatusCode, reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            detail: detail.into(),
            problems: Vec::new(),
            retry: None,
            allow: None,
        }
    }

    pub(super) fn bad_request(reason: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason, detail)
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("there is no such {what}"),
        )
    }

    /// Something of ours broke; the log says what.
    pub(super) fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "something broke; the log says more",
        )
    }

    pub(super) fn busy(detail: impl Into<String>) -> Self {
        Self {
            retry: Some(5),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
        }
    }

    pub(super) fn answer(&self) -> Response<Body> {
        let told = Json::of(&ProblemBody {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            reason: self.reason,
            detail: &self.detail,
            problems: &self.problems,
        });
        let mut answer = reply::full(
            self.status,
            "application/problem+json",
            told.bytes().clone(),
        );
        let headers = answer.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(retry) = self.retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(retry));
        }
        if let Some(allow) = self.allow.as_deref().map(HeaderValue::from_str) {
            // Methods are plain words.
            headers.extend(allow.ok().map(|allow| (header::ALLOW, allow)));
        }
        answer
    }
}
