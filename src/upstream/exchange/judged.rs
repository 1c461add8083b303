//! What a response means for the caller, by the era that it came in.
//!
//! Guarantees: what concerns this hop alone is never passed on as if it were the server's word to the caller (PROTOCOL G6); no kind
//! of result comes through that was not offered to the server (EGR-11).

use http::StatusCode;

use super::{Exchange, hints};
use crate::{
    call::Outcome,
    json::{Json, Kind},
    jsonrpc::RpcError,
    protocol::{Era, codes, meta},
    upstream::{
        NoVisit, UpstreamError,
        asking::{self, NotOffered},
        credentials::Credentials,
        visits,
    },
};

/// A server was reached in the older era, and answers so.
const AS_NEWER: &str = "it refused a request as a server of the newer era would";

impl Exchange {
    /// What a response means for the caller.
    ///
    /// # Errors
    /// [`UpstreamError::Protocol`] for what only concerns this hop, [`UpstreamError::NeedsCapabilities`] for what the caller
    /// lacks, [`UpstreamError::CannotVisit`] for an address that nobody is sent to, [`UpstreamError::Unavailable`] when the
    /// server turns out to speak in another way than it did.
    pub(in crate::upstream) fn judge(
        &self,
        status: StatusCode,
        body: Result<Json, RpcError>,
    ) -> Result<Outcome, UpstreamError> {
        match (self.line.era, body) {
            (Era::Legacy, Ok(result)) => Ok(Outcome::Complete(self.kept(result))),
            // Hop-local codes of the other era are never passed on (PROTOCOL G6).
            (Era::Legacy, Err(error)) if codes::is_modern(error.code) => {
                // One that lacks a capability says so of this caller. A process speaks one era for as long as it lives
                // (PROTOCOL C4), and all calls on it would end.
                if self.line.wire.streamable && error.code != codes::MISSING_CAPABILITY {
                    let misspoken = self.misspoken();
                    // With any other status it may have been at work before (PROTOCOL B1).
                    if status == StatusCode::BAD_REQUEST {
                        return Err(misspoken);
                    }
                }
                Err(UpstreamError::answered(AS_NEWER))
            }
            (Era::Legacy, Err(error)) if error.code == codes::URL_ELICITATION_REQUIRED => {
                if self.is_one_of_many() {
                    return Err(UpstreamError::CannotVisit(NoVisit::Shared));
                }
                visits::required(
                    &self.line.terms.id,
                    self.line.terms.peer.asking.inputs,
                    error,
                    self.wants.caller.as_deref(),
                    self.wants.rounds,
                )
            }
            (Era::Legacy, Err(error)) => {
                self.suspect(status, &error);
                Ok(Outcome::Failed(error))
            }
            (Era::Modern, Ok(result)) => match (ResultKind::of(&result), self.wants.rounds) {
                (ResultKind::Complete | ResultKind::Task, _)
                    if self.wants.looks
                        && self.is_one_of_many()
                        && asking::sends_somewhere(&result) =>
                {
                    Err(UpstreamError::Protocol(NotOffered::Mode.to_string()))
                }
                (ResultKind::Complete, _) => Ok(Outcome::Complete(self.kept(result))),
                (ResultKind::InputRequired, Some(offer)) => {
                    let bounds = &self.line.terms.peer.asking;
                    asking::input_required(&result, offer, bounds).map(Outcome::InputRequired)
                }
                (ResultKind::Task, _) if self.wants.task => Ok(Outcome::Task(result)),
                (ResultKind::InputRequired | ResultKind::Task | ResultKind::Other, _) => {
                    Err(not_offered())
                }
            },
            (Era::Modern, Err(error)) => self.modern_error(status, error),
        }
    }

    /// A refusal that only a server of the newer era gives: nothing was carried out, and it is spoken to in that soon.
    fn misspoken(&self) -> UpstreamError {
        self.line.wire.doubt.cast();
        UpstreamError::misspoken(AS_NEWER)
    }

    /// What `error` means where it says that a request with these params does not describe itself. There is nothing about that
    /// which its caller could mend, as there is about arguments that are wrong under the same code.
    pub(in crate::upstream) fn undescribed(
        &self,
        status: StatusCode,
        error: &RpcError,
        params: &Json,
    ) -> Option<UpstreamError> {
        let refused = self.line.wire.streamable
            && status == StatusCode::BAD_REQUEST
            && error.code == codes::INVALID_PARAMS
            && misses_description(error, params);
        refused.then(|| self.misspoken())
    }

    /// A result, with what it may say of being kept.
    fn kept(&self, result: Json) -> Json {
        if !self.wants.keeps {
            return result;
        }
        let credentials = self.line.terms.credentials.as_ref();
        let own = credentials.is_some_and(Credentials::is_per_principal);
        hints::held(result, self.line.era, own)
    }

    /// Takes note of a refusal that may be of the stateless era. Some servers of the handshake era send what a request is wrong in
    /// with such a status, too, so it stays their answer.
    pub(in crate::upstream) fn suspect(&self, status: StatusCode, error: &RpcError) {
        let wire = &self.line.wire;
        if wire.streamable && is_of_newer_era(status, error.code) {
            wire.doubt.cast();
        }
    }

    fn modern_error(&self, status: StatusCode, error: RpcError) -> Result<Outcome, UpstreamError> {
        match error.code {
            codes::HEADER_MISMATCH => Err(UpstreamError::Protocol(
                "found our mirrored headers and our body to disagree".into(),
            )),
            codes::MISSING_CAPABILITY => Err(self.missing_capability(&error)),
            codes::URL_ELICITATION_REQUIRED => Err(UpstreamError::Protocol(
                "answered with an error that its revision forbids".into(),
            )),
            codes::UNSUPPORTED_VERSION => {
                self.line.wire.doubt.cast();
                Err(UpstreamError::misspoken(
                    "it no longer serves the revision it was reached in",
                ))
            }
            code if is_of_older_era(status, code) => {
                self.line.wire.doubt.cast();
                // The Python SDK's servers say so, and with this status, what is wrong with a call, too: that no question can be put
                // in this era, or what a tool's own error is. Whoever misses a session names it.
                if code == codes::INVALID_REQUEST && !names_a_session(&error) {
                    return Ok(Outcome::Failed(error));
                }
                Err(UpstreamError::answered(
                    "it refused a request as a server of the older era would",
                ))
            }
            _ => Ok(Outcome::Failed(error)),
        }
    }

    /// Whether its caller is told apart from others here, and not there (PROTOCOL F9).
    fn is_one_of_many(&self) -> bool {
        let identity = self.wants.identity.as_ref();
        identity.is_some_and(|identity| self.line.terms.is_one_for_all(identity))
    }

    /// A server needs what was not declared to it. A caller that did not declare it either is told; to all others it is a
    /// matter of this hop (PROTOCOL D6).
    fn missing_capability(&self, error: &RpcError) -> UpstreamError {
        let needed = error.data.as_ref().and_then(|data| {
            let needed = data.root().member("requiredCapabilities")?;
            (needed.kind() == Kind::Object).then(|| data.slice(needed))
        });
        let modes = needed
            .as_ref()
            .and_then(|needed| needed.root().member("elicitation"));
        if modes.is_some_and(|modes| modes.member("url").is_some()) && self.is_one_of_many() {
            return UpstreamError::CannotVisit(NoVisit::Shared);
        }
        let caller = self.wants.caller.as_ref();
        let lacks = |needed: &Json| caller.is_some_and(|caller| !caller.capabilities.cover(needed));
        match needed.filter(lacks) {
            Some(needed) => UpstreamError::NeedsCapabilities(needed),
            None => UpstreamError::Protocol(
                "needs a client capability that was not declared to it".into(),
            ),
        }
    }
}

/// Whether an error is about a session, which nothing has in the stateless era.
fn names_a_session(error: &RpcError) -> bool {
    let mut words = error.message.split(|sign: char| !sign.is_alphanumeric());
    words.any(|word| word.eq_ignore_ascii_case("session"))
}

/// Whether a refusal is no answer of the stateless era to a request that is well formed: how servers of the handshake era refuse
/// what comes without a session of theirs. What it refuses as no request is not what we sent (PROTOCOL B1), and the range above
/// means nothing (PROTOCOL A6).
pub(in crate::upstream) fn is_of_older_era(status: StatusCode, code: i64) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
        && match code {
            codes::RESOURCE_NOT_FOUND => false,
            codes::INVALID_REQUEST | -32019..=-32000 => true,
            _ => false,
        }
}

/// Whether an error is about the description that requests have in the stateless era alone (PROTOCOL B1): it names something of
/// that, and nowhere in `params` was it sent, so that no argument can be meant, nor repeated.
fn misses_description(error: &RpcError, params: &Json) -> bool {
    let data = error.data.as_ref().map(Json::as_str).unwrap_or_default();
    let description = [
        meta::META,
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES,
    ];
    description.into_iter().any(|key| {
        let is_named = names(&error.message, key) || names(data, key);
        is_named && !params.as_str().contains(key)
    })
}

/// Whether a text has this name, and not one that goes on or begins before it: an argument may be called `file_meta`.
fn names(text: &str, name: &str) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        !goes_on(before.chars().next_back()) && !goes_on(behind.chars().next())
    })
}

/// Whether a server of the stateless era refuses so what does not describe itself, or what it has no method for (PROTOCOL B1, C1).
fn is_of_newer_era(status: StatusCode, code: i64) -> bool {
    match status {
        StatusCode::BAD_REQUEST => matches!(code, codes::INVALID_PARAMS | codes::INVALID_REQUEST),
        StatusCode::NOT_FOUND => code == codes::METHOD_NOT_FOUND,
        _ => false,
    }
}

/// The result itself when it is a final one, for requests that nothing else was offered to.
///
/// # Errors
/// [`UpstreamError::Protocol`] for any other `resultType`.
pub(in crate::upstream) fn complete(result: Json) -> Result<Json, UpstreamError> {
    match ResultKind::of(&result) {
        ResultKind::Complete => Ok(result),
        ResultKind::InputRequired | ResultKind::Task | ResultKind::Other => Err(not_offered()),
    }
}

/// What a `resultType` says.
enum ResultKind {
    Complete,
    InputRequired,
    /// The tasks extension.
    Task,
    Other,
}

impl ResultKind {
    /// A server that says nothing means a complete result (PROTOCOL A1).
    fn of(result: &Json) -> Self {
        let Some(kind) = result.root().member("resultType") else {
            return Self::Complete;
        };
        match kind.as_str().as_deref() {
            Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired,
            Some("task") => Self::Task,
            _ => Self::Other,
        }
    }
}

fn not_offered() -> UpstreamError {
    UpstreamError::Protocol("answered with a kind of result that was not offered to it".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    #[test]
    fn whoever_misses_a_session_names_it() {
        for (message, names) in [
            ("Bad Request: Missing session ID", true),
            ("Session not found", true),
            ("Bad Request: No valid session ID provided", true),
            ("Cannot send 'elicitation/create': no back-channel", false),
            ("the obsession is no word", false),
        ] {
            let error = RpcError::new(codes::INVALID_REQUEST, message);
            assert_eq!(names_a_session(&error), names, "{message}");
        }
    }

    #[test]
    fn an_argument_that_is_wrong_is_told_from_a_request_that_does_not_describe_itself() {
        let json = |text: &str| Json::parse(text.to_owned().into(), &Limits::UPSTREAM).unwrap();
        let bare = r#"{"name":"t","arguments":{}}"#;
        let with_progress = r#"{"name":"t","_meta":{"progressToken":1}}"#;
        let about_mcp =
            r#"{"name":"t","arguments":{"q":"io.modelcontextprotocol/protocolVersion"}}"#;
        for (message, data, params, misses) in [
            ("missing _meta", "null", bare, true),
            ("bad request", r#"{"path":["params","_meta"]}"#, bare, true),
            (
                "`io.modelcontextprotocol/protocolVersion` is required",
                "null",
                with_progress,
                true,
            ),
            (
                "no io.modelcontextprotocol/clientCapabilities",
                "null",
                bare,
                true,
            ),
            ("bad argument `q`", "null", bare, false),
            ("missing required argument: file_meta", "null", bare, false),
            (
                "no include_metadata",
                r#"{"path":["page_meta"]}"#,
                bare,
                false,
            ),
            ("no file_meta, no _meta", "null", bare, true),
            ("unknown key _meta", "null", with_progress, false),
            (
                "bad q: io.modelcontextprotocol/protocolVersion",
                "null",
                about_mcp,
                false,
            ),
            ("bad q", about_mcp, about_mcp, false),
        ] {
            let error = RpcError {
                data: Some(json(data)),
                ..RpcError::new(codes::INVALID_PARAMS, message)
            };
            assert_eq!(
                misses_description(&error, &json(params)),
                misses,
                "{message}"
            );
        }
    }
}
