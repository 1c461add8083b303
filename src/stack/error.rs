//! Why the gateway itself refuses or fails a call. Variants hold facts; what a client is told is written in `downstream::problem`.

use std::sync::Arc;

use crate::{
    json::Json,
    jsonrpc::Method,
    limits::Limited,
    protocol::{Features, UpstreamId, codes},
    sanitize::Blocked,
    schema::Problem,
    upstream::{FromUpstream, UpstreamError},
};

/// A refusal or failure of ours. An upstream's own JSON-RPC error is an `Outcome::Failed` instead.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The name leads nowhere from this endpoint.
    #[error("no such {0}")]
    Unknown(Missing),
    /// The definition is not the one that was approved, or nobody approved it (SECURITY CAT-2).
    #[error("{0} is withheld until its definition is approved")]
    Quarantined(Missing),
    /// The endpoint's scope is gone (a reload removed it).
    #[error("no such endpoint")]
    NoScope,
    /// A cursor is altered, foreign or expired (SECURITY STATE-1).
    #[error("cursor is not valid here")]
    BadCursor,
    /// State that a call brings back is altered, another's, for another call, or late (SECURITY STATE-2).
    #[error("state is not valid here")]
    StateInvalid,
    /// An answer is not one that its question may have (SECURITY STATE-3).
    #[error("an answer does not fit its question")]
    BadAnswer {
        /// The question's key, where it is about one.
        key: Option<Arc<str>>,
    },
    /// The client would not, or did not in time, give what the upstream needs.
    #[error("the client refused input")]
    InputRefused,
    /// The principal has to log in to the upstream, and the client cannot be asked to send somebody there.
    #[error("somebody has to log in to `{}`", .0.upstream)]
    LoginNeeded(LoginNeeded),
    /// A mirrored header disagrees with the body (SECURITY MSG-9).
    #[error("header `{header}` disagrees with the body")]
    HeaderMismatch {
        /// Which one, in lower case.
        header: Arc<str>,
    },
    /// The arguments do not fit the tool's input schema (SECURITY MSG-12).
    #[error("the arguments do not fit the tool's input schema")]
    InvalidArguments(Arc<[Problem]>),
    /// The result does not fit the tool's output schema.
    #[error("the result of a tool of `{upstream}` does not fit its output schema")]
    InvalidResult {
        /// Whose tool.
        upstream: UpstreamId,
        /// Where, and what the schema wants there.
        problems: Arc<[Problem]>,
    },
    /// The method is gated by a capability that this endpoint does not have.
    #[error("method `{0}` is not offered")]
    NotOffered(Method),
    /// The tool is for apps of its own server, and whose app asks cannot be told (PROTOCOL G16).
    #[error("the tool is for apps of its own server")]
    OnlyForApps,
    /// A session cannot listen for changes of the resource.
    #[error("changes of the resource are not told")]
    NotSubscribable {
        /// Whether it is not there for whoever asks, and not only its upstream that does not tell, or not now.
        gone: bool,
    },
    /// The method is for clients that declare these capabilities.
    #[error("needs client capabilities that were not declared")]
    NeedsCapabilities(Json),
    /// The principal may do this with a token of these scopes (PROTOCOL F5); the one it has lacks some of them.
    #[error("insufficient scope")]
    InsufficientScope {
        /// Everything that this use needs, not only what is lacking.
        scopes: Arc<[Arc<str>]>,
    },
    /// No policy permits it, or one cannot be evaluated (SECURITY AUTHZ-1, AUTHZ-2, AUTHZ-5).
    #[error("{reason}: {text}")]
    Denied {
        /// Which of the reasons.
        reason: &'static str,
        /// What the model, or its user, may read.
        text: Arc<str>,
    },
    /// The person at the client did not agree.
    #[error("the person at the client did not agree")]
    NotApproved,
    /// Nobody can be asked to agree.
    #[error("nobody can be asked to agree")]
    CannotApprove,
    /// Over a configured rule, or a bound of calls in flight (SECURITY REL-3).
    #[error(transparent)]
    OverLimit(#[from] Limited),
    /// What was sent holds what must not reach the upstream; it was not contacted (SECURITY 7).
    #[error("arguments held {} at `{}`", .0.kind, .0.place)]
    Withheld(Box<Blocked>),
    /// What came back holds what must not reach the client (SECURITY 7).
    #[error("an answer held {} at `{}`", .0.kind, .0.place)]
    Blocked(Box<Blocked>),
    /// More at once than one may have.
    #[error("{0}")]
    Limited(&'static str),
    /// The upstream did not answer, or not properly.
    #[error(transparent)]
    Upstream(FromUpstream),
    /// The call's own deadline passed.
    #[error("deadline passed")]
    Deadline,
    /// The gateway is stopping, and this was not begun.
    #[error("shutting down")]
    ShuttingDown,
    /// The gateway has stopped before this had ended: whether it took effect is unknown.
    #[error("shut down before the call had ended")]
    CutOff,
    /// The session that this ran for was ended before this had: whether it took effect is unknown.
    #[error("its session was ended")]
    SessionEnded,
    /// Something of ours panicked (SECURITY REL-1).
    #[error("panicked")]
    Panicked,
    /// What is done cannot be recorded now, so it is not done (SECURITY AUD-2).
    #[error("audit records cannot be written")]
    AuditUnavailable,
}

/// Where somebody has to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginNeeded {
    /// To what.
    pub upstream: UpstreamId,
    /// The page; `None` where there is none, or where it was told before and may still be open.
    pub url: Option<Arc<str>>,
    /// A name for the login that gives nobody anything.
    pub notice: Arc<str>,
}

/// What is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// A tool, by outward name.
    #[error("tool")]
    Tool(Arc<str>),
    /// A prompt, by outward name.
    #[error("prompt")]
    Prompt(Arc<str>),
    /// A resource, by outward URI.
    #[error("resource")]
    Resource(Arc<str>),
    /// A task, by a handle that is none or is not the caller's.
    #[error("task")]
    Task,
}

impl From<FromUpstream> for Error {
    /// What the client would not give is no fault of the upstream.
    fn from(from: FromUpstream) -> Self {
        if matches!(from.error, UpstreamError::Declined) {
            Self::InputRefused
        } else {
            Self::Upstream(from)
        }
    }
}

impl Error {
    /// Whether what was asked for is not, or no longer, there for whoever asks: to ask again changes nothing.
    pub const fn is_gone(&self) -> bool {
        matches!(
            self,
            Self::Unknown(_)
                | Self::Quarantined(_)
                | Self::NoScope
                | Self::StateInvalid
                | Self::NotOffered(_)
                | Self::NotSubscribable { gone: true }
                | Self::OnlyForApps
                | Self::NeedsCapabilities(_)
                | Self::InsufficientScope { .. }
                | Self::Denied { .. }
        )
    }

    /// For the record: the code of one that a client of a revision with these features is told of by an error, whatever it has asked
    /// for. `None` of the others, which a tool's caller gets as a result that a model can act on. It is `downstream::problem` that
    /// tells it, and that its tests hold this against.
    pub const fn code(&self, features: &Features) -> Option<i64> {
        Some(match self {
            Self::Unknown(Missing::Resource(_)) if !features.names_missing => {
                codes::RESOURCE_NOT_FOUND
            }
            Self::Unknown(_)
            | Self::BadCursor
            | Self::StateInvalid
            | Self::BadAnswer { .. }
            | Self::NotSubscribable { .. }
            | Self::OnlyForApps => codes::INVALID_PARAMS,
            Self::NoScope => codes::INVALID_REQUEST,
            Self::HeaderMismatch { .. } => codes::HEADER_MISMATCH,
            Self::NotOffered(_) => codes::METHOD_NOT_FOUND,
            Self::NeedsCapabilities(_) => codes::MISSING_CAPABILITY,
            Self::InsufficientScope { .. } => codes::FORBIDDEN,
            Self::Limited(_) => codes::OVERLOADED,
            Self::ShuttingDown | Self::CutOff => codes::SHUTTING_DOWN,
            Self::Panicked => codes::INTERNAL_ERROR,
            Self::AuditUnavailable => codes::AUDIT_UNAVAILABLE,
            Self::Quarantined(_)
            | Self::InputRefused
            | Self::LoginNeeded(_)
            | Self::InvalidArguments(_)
            | Self::InvalidResult { .. }
            | Self::Denied { .. }
            | Self::NotApproved
            | Self::CannotApprove
            | Self::OverLimit(_)
            | Self::Withheld(_)
            | Self::Blocked(_)
            | Self::Upstream(_)
            | Self::Deadline
            | Self::SessionEnded => return None,
        })
    }

    /// The stable word for `data.reason`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown_name",
            Self::Quarantined(_) => "definition_quarantined",
            Self::NoScope => "unknown_endpoint",
            Self::BadCursor => "invalid_cursor",
            Self::StateInvalid => "state_invalid",
            Self::BadAnswer { .. } => "invalid_input_response",
            Self::InputRefused => "input_refused",
            Self::LoginNeeded(_) => "login_required",
            Self::HeaderMismatch { .. } => "header_mismatch",
            Self::InvalidArguments(_) => "invalid_arguments",
            Self::InvalidResult { .. } => "invalid_result",
            Self::NotOffered(_) => "method_not_offered",
            Self::NotSubscribable { .. } => "not_subscribable",
            Self::OnlyForApps => "only_for_apps",
            Self::NeedsCapabilities(_) => "capability_missing",
            Self::InsufficientScope { .. } => "insufficient_scope",
            Self::Denied { reason, .. } => reason,
            Self::NotApproved => "approval_declined",
            Self::CannotApprove => "approval_unavailable",
            Self::OverLimit(limited) => limited.refusal.as_str(),
            Self::Withheld(blocked) | Self::Blocked(blocked) => blocked.reason,
            Self::Limited(_) => "rate_limited",
            Self::Upstream(from) => from.error.reason(),
            Self::Deadline => "deadline_exceeded",
            Self::ShuttingDown | Self::CutOff => "shutting_down",
            Self::SessionEnded => "outcome_unknown",
            Self::Panicked => "internal_error",
            Self::AuditUnavailable => "audit_unavailable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is the client that refused, whatever the upstream was to be told of it.
    #[test]
    fn a_visit_that_was_declined_is_input_that_was_refused_and_no_fault_of_the_upstream() {
        let of = |error| {
            let upstream = UpstreamId::parse("a").unwrap();
            Error::from(FromUpstream { upstream, error })
        };
        let declined = of(UpstreamError::Declined);
        assert!(matches!(declined, Error::InputRefused), "{declined:?}");
        assert_eq!(declined.reason(), UpstreamError::Declined.reason());
        let other = of(UpstreamError::OutcomeUnknown);
        assert!(matches!(other, Error::Upstream(_)), "{other:?}");
    }
}
