//! Upstreams: how each is reached, which era it speaks, whether it is there.
//!
//! Guarantees: ids are unique per connection; dropping a reply cancels upstream; callers share a legacy session only
//! under one key; one bad upstream delays nobody else; a change that an upstream tells of is told on, and so is that some
//! may have been missed. Deliberately absent: names, URIs and policy, which are decided above.

mod asking;
mod card_cache;
mod connector;
mod credentials;
mod deadline;
mod exchange;
mod exchange_span;
mod handle;
mod health;
mod holdings;
mod legacy;
mod line;
mod lists;
mod mishaps;
mod modern;
mod own;
mod params;
mod patience;
mod probe;
mod promised;
mod refresh_signal;
mod shared;
mod sink;
pub mod spec;
mod supervisor;
mod tally;
mod terms;
pub mod transport;
mod visits;
pub mod words;

#[cfg(test)]
mod scripted;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::time::Instant;

use crate::{
    call::{Call, Identity, Reply, ServerCard},
    catalog::{Contribution, Listing, Route},
    events::ResourceInterest,
    json::Json,
    jsonrpc::{
        RpcError,
        decode::{DecodeError, Fault},
    },
    memory,
    metrics::{self, Bound},
    protocol::{UpstreamId, codes, methods::ListKind},
};

use holdings::Holder;
use refresh_signal::RefreshSignal;

pub use credentials::{Bearer, CredentialError};
pub use deadline::Deadline;
pub use handle::{State, Status, Upstream};
pub use mishaps::Past;
pub use own::Claim;
pub use sink::Sink;
pub use tally::Counts;

/// One upstream, spoken to in the era it understands.
///
/// A peer is made by a probe and is good for as long as its connection lives; then the supervisor makes another.
pub trait Peer: Send + Sync + 'static {
    /// What the server said of itself last.
    fn card(&self) -> Arc<ServerCard>;

    /// Every page of one list; empty when the server does not offer the kind.
    fn list(&self, kind: ListKind) -> BoxFuture<'_, Result<Listing, UpstreamError>>;

    /// What it offers to one principal, read with their token, as far as `holder` has room for it. Nothing of it is to be told of
    /// anybody else.
    fn offer_to<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        holder: &'a Holder,
    ) -> BoxFuture<'a, Result<Contribution, UpstreamError>>;

    /// Watches the upstream for one principal, with their token, as [`Peer::watch`] does for everybody: rings `refresh` when lists
    /// have changed, or may have without a word, and keeps the upstream telling of what `interest` wants, for as long as the
    /// future is polled. It does not end by itself.
    fn watch_for<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        refresh: &'a RefreshSignal,
        interest: &'a Arc<ResourceInterest>,
    ) -> BoxFuture<'a, ()>;

    /// Carries one call to the upstream. The name or URI in `call.params` is still the outward one; the peer puts
    /// `route.local` in its place. Dropping the future, or the reply, cancels upstream.
    fn call(&self, call: Call, route: Route) -> BoxFuture<'_, Result<Reply, UpstreamError>>;

    /// Whether what carries one call carries them all, so that where one cannot reach the upstream, none can. It does not where
    /// each key has a process or an event stream of its own.
    fn carries_all(&self) -> bool;

    /// Whether it is spoken to over Streamable HTTP, and not on a pipe or an event stream.
    fn is_streamable(&self) -> bool;

    /// Watches the upstream for changes, for as long as the future is polled: has lists read again that changed, or whose
    /// changes may have been missed; keeps the upstream telling of the resources that are wanted of it, and tells who wants them;
    /// keeps its card from growing old, where its era has a question for that. It does not end by itself.
    fn watch(&self) -> BoxFuture<'_, ()>;

    /// Resolves when this peer can serve no more: its process ended, its stream closed.
    fn lost(&self) -> BoxFuture<'_, UpstreamError>;

    /// Resolves when an answer speaks against the era that it was reached in, and again for a later one. It may have been one
    /// caller's request that was wrong, so this alone ends nothing.
    fn doubted(&self) -> BoxFuture<'_, ()>;

    /// Ends what it holds open, in the protocol's orderly way, within a few seconds.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Why an upstream did not answer. Variants hold facts; what a client is told is written in [`words`], and how in
/// `downstream::problem`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UpstreamError {
    /// Not connected, or the connection was lost. The message is for logs.
    #[error("unavailable: {cause}")]
    Unavailable {
        /// What happened, for logs and operators; may name hosts and must not reach a client.
        cause: String,
        /// When the next attempt is due, if one is planned.
        retry_at: Option<Instant>,
        /// The HTTP status that it answered with, where that is what happened, and to this very request.
        status: Option<u16>,
        /// Whether it was reached all the same.
        reached: Reached,
    },
    /// A deadline passed.
    #[error("no answer in time: {0}")]
    Timeout(Deadline),
    /// Bad JSON, a foreign id, a wrong content type, an unknown `resultType` … (SECURITY EGR-11).
    #[error("broke the protocol: {0}")]
    Protocol(String),
    /// Asks for this capability, of which it was not told that the caller has it.
    #[error("asks for `{0}`, which was not declared to it")]
    Undeclared(&'static str),
    /// Answered this HTTP status, and no message with it.
    #[error("answered with HTTP {0} and no message")]
    Status(u16),
    /// Answered 401 or 403 (SECURITY EGR-6): how, or `None` where it had just refused others' and was not asked again.
    #[error("refused {}{}", refused(.0.as_ref()), with(.0.as_ref()))]
    Auth(Option<Denial>),
    /// There is no credential to ask it with (SECURITY EGR-2, EGR-10).
    #[error("has no credential for this: {0}")]
    Credential(#[from] CredentialError),
    /// Answered with a redirect, which is never followed (SECURITY EGR-3): where to, for logs and operators, if it said so.
    #[error("answered with a redirect{}", whither(.0.as_deref()))]
    Redirect(Option<Box<str>>),
    /// A message over its size bound.
    #[error("a message of more than {0} bytes")]
    TooLarge(usize),
    /// There is no memory for its answer now (SECURITY 6).
    #[error("there was no memory for its answer")]
    NoMemory,
    /// HTTP 413: the upstream takes no request of this size.
    #[error("takes no request of this size")]
    RequestTooLarge,
    /// Too many calls in flight to it, and the queue's time ran out.
    #[error("too many calls in flight")]
    Overloaded,
    /// Another call of the same session waits for a person's answer, and could be asked in the place of this one.
    #[error("another call of its session waits for a person's answer")]
    Engaged,
    /// Needs client capabilities that the caller did not declare, and no dialect could stand in for: this object.
    #[error("needs client capabilities that were not declared")]
    NeedsCapabilities(Json),
    /// Wants its user sent to an address, and nobody is.
    #[error("wants its user to visit an address, {0}")]
    CannotVisit(NoVisit),
    /// The exchange that a call wanted to go on with is gone. Whether the work was done cannot be known, and it is not done
    /// again (PROTOCOL D2c, D7).
    #[error("the call that was to go on is no longer known")]
    OutcomeUnknown,
    /// What a caller brings is no answer that a question of its task may have; the question's key, where it is about one. It
    /// was not asked (SECURITY STATE-3).
    #[error("an answer does not fit its question")]
    BadAnswer(Option<Arc<str>>),
    /// The person at the client does not visit an address that it wants its user sent to. It has no words for being told so,
    /// and would want the same again: nothing was sent (PROTOCOL D2d).
    #[error("wants its user to visit an address, and the user does not")]
    Declined,
    /// A JSON-RPC error to one of our own requests (handshake, list).
    #[error("answered with error {}", in_words(.0))]
    Refused(RpcError),
}

impl From<memory::Full> for UpstreamError {
    fn from(full: memory::Full) -> Self {
        metrics::reached(full.into());
        Self::NoMemory
    }
}

/// The most characters of what an upstream says that are told.
const SAID: usize = 200;

/// The code of an error, and the beginning of its message, which is an upstream's text.
fn in_words(error: &RpcError) -> String {
    let said = error.message.chars().take(SAID);
    let said: String = said.flat_map(char::escape_debug).collect();
    match said.as_str() {
        "" => error.code.to_string(),
        said => format!("{}: {said}", error.code),
    }
}

/// Why nobody is sent to an address that an upstream names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoVisit {
    /// The caller's revision has no words for that (PROTOCOL D7).
    #[error("which the caller cannot be told")]
    Revision,
    /// All callers are one user to the upstream, and what one of them allows is allowed for all (PROTOCOL F9).
    #[error("and takes all callers for one user")]
    Shared,
}

/// How an upstream refused a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// 401 or 403.
    pub status: u16,
    /// The words of its challenge, or without one the beginning of what it said, for logs and operators; `None` where it said
    /// nothing.
    pub said: Option<Box<str>>,
    /// Whether it asks for a credential, or another one. A 403 without a challenge does not: it may be about anything.
    pub asks: bool,
}

/// Whether an upstream was reached that is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// The connection failed, or what stands in front of the upstream says that it could not reach it either.
    No,
    /// It answered: this cannot be had of it, and others may get what they want on the same connection.
    Yes,
    /// It answered that it takes no more requests now, so that it did not take this one.
    Busy,
    /// It answered that it does not know the session any more, so that what was sent on that was not carried out.
    Forgotten,
    /// It answered that it is not spoken to in this way any more, so that what was sent in it was not carried out.
    Misspoken,
    /// No connection came about, and so nothing was sent.
    Never,
    /// Nothing was sent, since it had gone wrong a moment before.
    Unsent,
}

impl Reached {
    /// Whether the upstream itself said something.
    pub(in crate::upstream) const fn is_answer(self) -> bool {
        match self {
            Self::Yes | Self::Busy | Self::Forgotten | Self::Misspoken => true,
            Self::No | Self::Never | Self::Unsent => false,
        }
    }
}

impl UpstreamError {
    /// The bound that was reached, where that is what went wrong; queues tell of theirs themselves.
    pub const fn bound(&self) -> Option<Bound> {
        match self {
            Self::Timeout(deadline) => Some(deadline.bound()),
            // Counted where it is found, which knows of what it is one too many.
            Self::TooLarge(_)
            | Self::NoMemory
            | Self::Unavailable { .. }
            | Self::Protocol(_)
            | Self::Undeclared(_)
            | Self::Status(_)
            | Self::Auth(_)
            | Self::Credential(_)
            | Self::Redirect(_)
            | Self::RequestTooLarge
            | Self::Overloaded
            | Self::Engaged
            | Self::NeedsCapabilities(_)
            | Self::CannotVisit(_)
            | Self::OutcomeUnknown
            | Self::BadAnswer(_)
            | Self::Declined
            | Self::Refused(_) => None,
        }
    }

    /// The HTTP status that the upstream answered the request with, where that is what went wrong and is known.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Unavailable { status, .. } => *status,
            Self::Auth(Some(denial)) => Some(denial.status),
            Self::Status(status) => Some(*status),
            Self::RequestTooLarge => Some(413),
            Self::Auth(None)
            | Self::Protocol(_)
            | Self::Timeout(_)
            | Self::Undeclared(_)
            | Self::Credential(_)
            | Self::Redirect(_)
            | Self::TooLarge(_)
            | Self::NoMemory
            | Self::Overloaded
            | Self::Engaged
            | Self::NeedsCapabilities(_)
            | Self::CannotVisit(_)
            | Self::OutcomeUnknown
            | Self::BadAnswer(_)
            | Self::Declined
            | Self::Refused(_) => None,
        }
    }

    /// In the words that operators are told: where nothing was sent that `proves` who asks, none of it was refused.
    pub(in crate::upstream) fn told(&self, proves: bool) -> String {
        let Self::Auth(denial) = self else {
            return self.to_string();
        };
        if proves || denial.as_ref().is_some_and(|denial| !denial.asks) {
            return self.to_string();
        }
        let Some(denial) = denial else {
            return String::from("asks for a login");
        };
        let status = denial.status;
        let mut told = if status == 403 {
            format!("lets nobody in who proves nothing (HTTP {status})")
        } else {
            format!("asks for a login (HTTP {status})")
        };
        if let Some(said) = &denial.said {
            told.push_str(": ");
            told.push_str(said);
        }
        told
    }

    /// The stable word for `data.reason`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "upstream_unavailable",
            Self::Timeout(_) => "upstream_timeout",
            Self::Protocol(_) | Self::Undeclared(_) | Self::Status(_) | Self::Refused(_) => {
                "upstream_protocol_error"
            }
            Self::Auth(_) => "upstream_auth_failed",
            Self::Credential(error) => error.reason(),
            Self::Redirect(_) => "upstream_redirect",
            Self::TooLarge(_) => "upstream_too_large",
            Self::RequestTooLarge => "upstream_request_too_large",
            Self::Overloaded | Self::Engaged | Self::NoMemory => "overloaded",
            Self::NeedsCapabilities(_) | Self::CannotVisit(_) => "capability_missing",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::BadAnswer(_) => "invalid_input_response",
            Self::Declined => "input_refused",
        }
    }

    /// The code of the gateway's own that it goes out with in every era; the newer one has another for what a client has to declare.
    pub const fn code(&self) -> i64 {
        match self {
            Self::Unavailable { .. } | Self::OutcomeUnknown => codes::UPSTREAM_UNAVAILABLE,
            Self::Timeout(_) => codes::UPSTREAM_TIMEOUT,
            Self::Protocol(_)
            | Self::Undeclared(_)
            | Self::Status(_)
            | Self::Refused(_)
            | Self::Redirect(_) => codes::UPSTREAM_PROTOCOL,
            // The older era has no code for either (PROTOCOL D6, D7), and after the first event it is too late for HTTP 400.
            Self::NeedsCapabilities(_) | Self::CannotVisit(_) => codes::INTERNAL_ERROR,
            Self::BadAnswer(_) => codes::INVALID_PARAMS,
            Self::Declined => codes::INPUT_REFUSED,
            Self::Credential(error) if error.pause().is_some() => codes::UPSTREAM_UNAVAILABLE,
            Self::Auth(_) | Self::Credential(_) => codes::UPSTREAM_AUTH,
            Self::TooLarge(_) | Self::RequestTooLarge => codes::UPSTREAM_TOO_LARGE,
            Self::Overloaded | Self::Engaged | Self::NoMemory => codes::OVERLOADED,
        }
    }

    /// This error where nobody can log in for more scopes: lacking them is then a refusal like any other.
    pub(in crate::upstream) fn past_login(self) -> Self {
        let Self::Credential(CredentialError::Lacks(scopes)) = self else {
            return self;
        };
        let scopes: String = scopes.join(" ").chars().take(SAID).collect();
        let said = format!("error=\"insufficient_scope\", scope=\"{scopes}\"");
        Self::Auth(Some(Denial {
            status: 403,
            said: Some(said.into()),
            asks: true,
        }))
    }

    /// A credential that was refused without a word.
    #[cfg(test)]
    pub(in crate::upstream) const fn denied(status: u16) -> Self {
        Self::Auth(Some(Denial {
            status,
            said: None,
            asks: true,
        }))
    }

    /// Something beyond `limit` bytes, which is counted as `bound`.
    pub(in crate::upstream) fn too_large(bound: Bound, limit: usize) -> Self {
        metrics::reached(bound);
        Self::TooLarge(limit)
    }

    /// A text that is no message; where it is over a bound, that is counted.
    pub(in crate::upstream) fn undecodable(error: &DecodeError) -> Self {
        if let Fault::Scan(scan) = error.fault {
            metrics::overstepped(scan, Bound::UpstreamDepth);
        }
        Self::Protocol(error.to_string())
    }

    /// An `Unavailable` because there is no connection, or it failed.
    pub fn unreached(cause: impl ToString) -> Self {
        Self::unavailable(cause, None, Reached::No)
    }

    /// An `Unavailable` because no connection came about.
    pub(in crate::upstream) fn unconnected(cause: impl ToString) -> Self {
        Self::unavailable(cause, None, Reached::Never)
    }

    /// What it means for a call that was sent long before: what became of that nobody knows.
    pub(in crate::upstream) fn of_a_call_under_way(self) -> Self {
        // What was not sent, or not taken, was not that call.
        if self.says_unsent() || self.says_not_taken() {
            Self::OutcomeUnknown
        } else {
            self
        }
    }

    const fn says_not_taken(&self) -> bool {
        matches!(
            self,
            Self::Unavailable {
                reached: Reached::Busy | Reached::Forgotten | Reached::Misspoken,
                ..
            } | Self::Overloaded
                | Self::Engaged
        )
    }

    /// Whether what was to be sent was not, as there is no connection.
    const fn says_unsent(&self) -> bool {
        match self {
            Self::Unavailable { reached, .. } => match reached {
                Reached::Never | Reached::Unsent => true,
                Reached::No
                | Reached::Yes
                | Reached::Busy
                | Reached::Forgotten
                | Reached::Misspoken => false,
            },
            Self::Timeout(deadline) => !deadline.was_sent(),
            Self::Protocol(_)
            | Self::Undeclared(_)
            | Self::Status(_)
            | Self::Auth(_)
            | Self::Credential(_)
            | Self::Redirect(_)
            | Self::TooLarge(_)
            | Self::NoMemory
            | Self::RequestTooLarge
            | Self::Overloaded
            | Self::Engaged
            | Self::NeedsCapabilities(_)
            | Self::CannotVisit(_)
            | Self::OutcomeUnknown
            | Self::BadAnswer(_)
            | Self::Declined
            | Self::Refused(_) => false,
        }
    }

    /// An `Unavailable` because of what the upstream itself answered: it was reached, whatever cannot be had of it.
    pub(in crate::upstream) fn answered(cause: impl ToString) -> Self {
        Self::unavailable(cause, None, Reached::Yes)
    }

    /// An `Unavailable` because it does not know the session any more that this was sent on.
    pub(in crate::upstream) fn forgotten(cause: impl ToString) -> Self {
        Self::unavailable(cause, None, Reached::Forgotten)
    }

    /// An `Unavailable` because it refuses requests of the era, or revision, that it was reached in.
    pub(in crate::upstream) fn misspoken(cause: impl ToString) -> Self {
        Self::unavailable(cause, None, Reached::Misspoken)
    }

    /// An `Unavailable` because of this HTTP status. There are some by which what stands in front of the upstream says that it
    /// could not reach it, and one that says that it was not let through.
    pub(in crate::upstream) fn away(cause: impl ToString, status: StatusCode) -> Self {
        let reached = match status.as_u16() {
            429 => Reached::Busy,
            502..=504 => Reached::No,
            _ => Reached::Yes,
        };
        Self::unavailable(cause, Some(status), reached)
    }

    /// The same where the upstream said in how long it is to be asked again, if it did.
    pub(in crate::upstream) fn again_in(mut self, wait: Option<Duration>) -> Self {
        if let Self::Unavailable { retry_at, .. } = &mut self {
            *retry_at = wait.map(|wait| Instant::now() + wait);
        }
        self
    }

    /// An `Unavailable` without a planned attempt.
    fn unavailable(cause: impl ToString, status: Option<StatusCode>, reached: Reached) -> Self {
        Self::Unavailable {
            cause: cause.to_string(),
            retry_at: None,
            status: status.map(|status| status.as_u16()),
            reached,
        }
    }

    /// This error for a call that waited for the connection of another: its own was not sent, and a failure is counted once.
    pub(in crate::upstream) fn with_others(&self) -> Self {
        match self {
            Self::Timeout(Deadline::Connect) => Self::Timeout(Deadline::ConnectOfAnother),
            Self::Unavailable {
                cause,
                retry_at,
                status,
                ..
            } => Self::Unavailable {
                cause: cause.clone(),
                retry_at: *retry_at,
                status: *status,
                reached: Reached::Unsent,
            },
            Self::Timeout(_)
            | Self::Protocol(_)
            | Self::Undeclared(_)
            | Self::Status(_)
            | Self::Auth(_)
            | Self::Credential(_)
            | Self::Redirect(_)
            | Self::TooLarge(_)
            | Self::NoMemory
            | Self::RequestTooLarge
            | Self::Overloaded
            | Self::Engaged
            | Self::NeedsCapabilities(_)
            | Self::CannotVisit(_)
            | Self::OutcomeUnknown
            | Self::BadAnswer(_)
            | Self::Declined
            | Self::Refused(_) => self.clone(),
        }
    }

    /// This error for a call for which nothing was sent, because it went wrong for others just now: the next attempt is at
    /// `again`, and no status answered this call.
    pub(in crate::upstream) fn unsent(&self, again: Instant) -> Self {
        match self {
            Self::Unavailable { cause, .. } => Self::Unavailable {
                cause: cause.clone(),
                retry_at: Some(again),
                status: None,
                reached: Reached::Unsent,
            },
            Self::Auth(_) => Self::Auth(None),
            Self::Status(_) | Self::RequestTooLarge => Self::Protocol(self.to_string()),
            Self::Timeout(_)
            | Self::Protocol(_)
            | Self::Undeclared(_)
            | Self::Credential(_)
            | Self::Redirect(_)
            | Self::TooLarge(_)
            | Self::NoMemory
            | Self::Overloaded
            | Self::Engaged
            | Self::NeedsCapabilities(_)
            | Self::CannotVisit(_)
            | Self::OutcomeUnknown
            | Self::BadAnswer(_)
            | Self::Declined
            | Self::Refused(_) => self.clone(),
        }
    }
}

/// ` to` where it leads, if that is known.
fn whither(location: Option<&str>) -> String {
    location.map_or_else(String::new, |location| format!(" to `{location}`"))
}

/// What was refused: the request itself, where no credential was asked for.
fn refused(denial: Option<&Denial>) -> &'static str {
    if denial.is_some_and(|denial| !denial.asks) {
        "the request"
    } else {
        "our credential"
    }
}

/// ` with HTTP 401` and what was said, where it was refused just now.
fn with(denial: Option<&Denial>) -> String {
    match denial {
        None => String::new(),
        Some(Denial {
            status, said: None, ..
        }) => format!(" with HTTP {status}"),
        Some(Denial {
            status,
            said: Some(said),
            ..
        }) => format!(" with HTTP {status}: {said}"),
    }
}

/// An error, and whose it is.
#[derive(Debug, Clone, thiserror::Error)]
#[error("upstream `{upstream}` {error}")]
pub struct FromUpstream {
    /// Whose.
    pub upstream: UpstreamId,
    /// What.
    #[source]
    pub error: UpstreamError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_not_asked_for_has_no_status_and_the_reason_of_who_was() {
        let again = Instant::now();
        for (error, status) in [
            (
                UpstreamError::away("HTTP 503", StatusCode::SERVICE_UNAVAILABLE),
                503,
            ),
            (UpstreamError::denied(401), 401),
            (UpstreamError::Status(404), 404),
            (UpstreamError::RequestTooLarge, 413),
        ] {
            assert_eq!(error.status(), Some(status), "{error}");
            assert_eq!(error.unsent(again).status(), None, "{error}");
        }
        let told = |error: &UpstreamError| (error.to_string(), error.unsent(again).to_string());
        let refused = UpstreamError::denied(401);
        let (asked, unasked) = told(&refused);
        assert_eq!(asked, "refused our credential with HTTP 401");
        assert_eq!(unasked, "refused our credential");
        assert_eq!(refused.reason(), refused.unsent(again).reason());
    }

    #[test]
    fn who_was_sent_no_credential_has_refused_none() {
        let told = |status| UpstreamError::denied(status).told(false);
        assert_eq!(told(401), "asks for a login (HTTP 401)");
        let unasked = UpstreamError::Auth(None);
        assert_eq!(unasked.told(false), "asks for a login");
        assert_eq!(unasked.told(true), unasked.to_string());
        assert!(told(403).ends_with("(HTTP 403)"));
        let other = UpstreamError::Redirect(None);
        assert_eq!(other.told(false), other.to_string());
        let mute = UpstreamError::Auth(Some(Denial {
            status: 403,
            said: None,
            asks: false,
        }));
        assert_eq!(mute.told(false), "refused the request with HTTP 403");
        assert_eq!(mute.told(true), mute.told(false));
        let upstream = UpstreamId::parse("x").unwrap();
        let told = |error: &UpstreamError| words::describe(&upstream, error);
        assert!(told(&mute).contains("refused the request with HTTP 403;"));
        assert!(told(&unasked).contains("a moment ago"));
    }

    #[test]
    fn an_error_of_a_server_is_told_in_words_that_stay_on_their_line() {
        let told =
            |message: &str| UpstreamError::Refused(RpcError::new(-32601, message)).to_string();
        assert_eq!(
            told("no such method"),
            "answered with error -32601: no such method"
        );
        assert_eq!(told(""), "answered with error -32601");
        assert_eq!(
            told("a\nb\u{1b}"),
            "answered with error -32601: a\\nb\\u{1b}"
        );
        assert!(told(&"x".repeat(9_000)).len() < 300);
    }

    /// A status is a fact, and not what words happen to look like.
    #[test]
    fn no_status_is_read_out_of_words() {
        for words in ["HTTP 503", "HTTP 404 without a message"] {
            assert_eq!(UpstreamError::unreached(words).status(), None);
            assert_eq!(UpstreamError::Protocol(words.to_owned()).status(), None);
        }
    }
}
