//! The dialect of the handshake era: sessions, `initialize`, batches (PROTOCOL B4).

mod asks;
mod converse;
mod convert;
mod questions;
mod sessions;

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::{
    Answer, Door, Inbound, Told,
    exchange::{Exchange, Wording},
    modern::{progress_token, takes_stream},
    problem::{Problem, resource_not_found},
    read,
};
use crate::{
    call::{Call, CallId, Caller, InputRequired, Op, Outcome, Page, Reply, ServerCard},
    json::{Edits, Fate, Json, Node},
    jsonrpc::{Frame, Notification, Request, RequestId, Response, RpcError, encode},
    protocol::{ClientCapabilities, Era, Revision, codes, meta, methods, mirror},
};

pub(super) use converse::{Converse, Talk, Turn};
pub(super) use sessions::{Refused, Session};
pub use sessions::{SessionBounds, Sessions};

/// Speaks the handshake era to clients.
pub(super) struct Legacy<'a> {
    pub(super) door: &'a Door,
}

/// Words things for the handshake era.
struct Words;

impl Legacy<'_> {
    /// Answers one request.
    pub(super) async fn request(&self, inbound: Inbound, request: Request) -> Answer {
        if &*request.method == methods::INITIALIZE {
            return self.initialize(&inbound, &request).await;
        }
        match self.session(&inbound, Some(&request.id)) {
            Ok(session) => self.in_session(&inbound, &session, request).await,
            Err(problem) => problem.into(),
        }
    }

    /// Takes a notification: there is none yet that changes anything.
    pub(super) fn notification(&self, inbound: &Inbound, _: &Notification) -> Answer {
        match self.session(inbound, None) {
            Ok(_) => Answer::Accepted,
            Err(problem) => problem.into(),
        }
    }

    /// A response must answer a request of ours that is open in its session (PROTOCOL C1.4).
    pub(super) fn response(&self, inbound: &Inbound, response: Response) -> Answer {
        match self.session(inbound, None) {
            Ok(session) if session.asks.answer(response) => Answer::Accepted,
            Ok(_) => {
                let error = RpcError::new(
                    codes::INVALID_REQUEST,
                    "a response to no open request of this server",
                );
                Problem::new(StatusCode::BAD_REQUEST, None, error, "unexpected_response").into()
            }
            Err(problem) => problem.into(),
        }
    }

    /// Answers a batch together: revision 2025-03-26 alone has them (PROTOCOL B4).
    pub(super) async fn batch(&self, inbound: Inbound, frames: Vec<Frame>) -> Answer {
        let session = match self.session(&inbound, None) {
            Ok(session) => session,
            Err(problem) => return problem.into(),
        };
        if !session.caller.revision.features().batches {
            return super::invalid("a batch, in a revision that has none").into();
        }
        let begins = |frame: &Frame| matches!(frame, Frame::Request(request) if &*request.method == methods::INITIALIZE);
        if frames.iter().any(begins) {
            return super::invalid("`initialize` inside a batch").into();
        }
        // Answers travel together, so events of single calls have no place to go.
        let inbound = Inbound {
            headers: Some(without_streams()),
            ..inbound
        };
        let requests = frames.into_iter().filter_map(|frame| match frame {
            Frame::Request(request) => Some(self.in_session(&inbound, &session, request)),
            Frame::Response(response) => {
                session.asks.answer(response);
                None
            }
            Frame::Notification(_) => None,
        });
        let mut segments = Vec::new();
        for answer in join_all(requests).await {
            let Answer::Frame(told) = answer else {
                continue;
            };
            segments.push(Bytes::from_static(if segments.is_empty() {
                b"["
            } else {
                b","
            }));
            segments.extend(told.segments);
        }
        if segments.is_empty() {
            return Answer::Accepted;
        }
        segments.push(Bytes::from_static(b"]"));
        Answer::Frame(Told::ok(segments))
    }

    /// Opens a session. The proposal is echoed if it is one of the four, else answered with the newest (PROTOCOL C1).
    async fn initialize(&self, inbound: &Inbound, request: &Request) -> Answer {
        let refuse = |status, error, reason| {
            Answer::from(Problem::new(
                status,
                Some(request.id.clone()),
                error,
                reason,
            ))
        };
        let invalid = |text: &str| {
            refuse(
                StatusCode::OK,
                RpcError::new(codes::INVALID_PARAMS, text),
                "invalid_params",
            )
        };
        let params = request.params.clone().unwrap_or(Json::empty_object());
        let Some(proposed) = params
            .root()
            .member("protocolVersion")
            .and_then(Node::as_str)
        else {
            return invalid("`params.protocolVersion` is missing or not a string");
        };
        let proposed = Revision::parse(&proposed).filter(|revision| revision.era() == Era::Legacy);
        let revision = proposed.unwrap_or(Revision::LATEST_LEGACY);
        let capabilities = match params.root().member("capabilities") {
            None => Some(ClientCapabilities::NONE),
            Some(node) => ClientCapabilities::read(params.slice(node)),
        };
        let Some(capabilities) = capabilities else {
            return invalid("`params.capabilities` is not an object");
        };
        let opened = self.door.sessions.open(
            inbound.principal.clone(),
            inbound.scope.clone(),
            revision,
            asks::deliverable(revision, capabilities),
        );
        let session = match opened {
            Ok(session) => session,
            Err(Refused) => {
                let error = RpcError::new(
                    codes::OVERLOADED,
                    "too many sessions; end one, or try again later",
                );
                return refuse(StatusCode::TOO_MANY_REQUESTS, error, "rate_limited");
            }
        };
        let call = self.call(&session, inbound, Op::Discover, params, false);
        let reply = tower::Service::call(&mut self.door.service.clone(), call).await;
        let Ok(Reply::Done(Outcome::Card(card))) = reply else {
            self.door.sessions.end(&session);
            let error = RpcError::new(codes::INVALID_REQUEST, "no such endpoint");
            return refuse(StatusCode::NOT_FOUND, error, "unknown_endpoint");
        };
        Answer::Frame(Told {
            status: StatusCode::OK,
            segments: encode::result(&request.id, &Words.card(&card, revision)).into(),
            session: HeaderValue::from_str(&session.id).ok(),
        })
    }

    async fn in_session(
        &self,
        inbound: &Inbound,
        session: &Arc<Session>,
        request: Request,
    ) -> Answer {
        if &*request.method == methods::PING {
            return Answer::Frame(Told::ok(
                encode::result(&request.id, &Json::empty_object()).into(),
            ));
        }
        let params = request.params.unwrap_or(Json::empty_object());
        let refuse = |id: RequestId, error: RpcError, reason: &str| {
            Answer::from(Problem::new(StatusCode::OK, Some(id), error, reason))
        };
        let head = match read::head(&params) {
            Ok(head) => head,
            Err(bad) => return refuse(request.id, bad.error, bad.reason),
        };
        let op = match read::op(&request.method, &head) {
            Ok(Some(op)) => op,
            // Never with HTTP 404: to a client of this era that means a lost session (PROTOCOL B4).
            Ok(None) => {
                return refuse(
                    request.id,
                    RpcError::new(codes::METHOD_NOT_FOUND, "no such method"),
                    "method_not_found",
                );
            }
            Err(bad) => return refuse(request.id, bad.error, bad.reason),
        };
        let progress_token = progress_token(&params, &head);
        let streams = takes_stream(inbound.headers.as_ref());
        let mut call = self.call(
            session,
            inbound,
            op.clone(),
            params.clone(),
            progress_token.is_some(),
        );
        if !streams && let Some(capabilities) = asks::mute(&call.caller.capabilities) {
            let caller = Caller {
                capabilities,
                ..(*call.caller).clone()
            };
            call.caller = Arc::new(caller);
        }
        let converse = methods::may_ask_back(op.method())
            .then(|| Converse::new(self.door.service.clone(), session, &self.door.tasks, &call));
        let exchange = Exchange {
            wording: &Words,
            id: request.id,
            op,
            revision: session.caller.revision,
            call: call.id,
            progress_token,
            streams,
            converse,
        };
        exchange.run(self.door, call).await
    }

    fn call(
        &self,
        session: &Session,
        inbound: &Inbound,
        op: Op,
        params: Json,
        wants_progress: bool,
    ) -> Call {
        Call {
            id: CallId::new(),
            op,
            params,
            caller: session.caller.clone(),
            scope: inbound.scope.clone(),
            resume: None,
            wants_progress,
            mirrored: None,
            deadline: Instant::now() + self.door.deadline,
        }
    }

    /// The session a message belongs to: known, of this principal and endpoint, and named with its own revision.
    pub(super) fn session(
        &self,
        inbound: &Inbound,
        id: Option<&RequestId>,
    ) -> Result<Arc<Session>, Problem> {
        let refuse = |status, code, text: &str, reason: &str| {
            Err(Problem::new(
                status,
                id.cloned(),
                RpcError::new(code, text),
                reason,
            ))
        };
        let named = match (&inbound.session, &inbound.headers) {
            (Some(session), _) => Some(Cow::Borrowed(session.as_bytes())),
            (None, Some(headers)) => headers
                .get(mirror::SESSION_ID)
                .map(|value| Cow::Borrowed(value.as_bytes())),
            (None, None) => None,
        };
        let Some(named) = named else {
            let text = "no session: send `initialize` first, or describe each request in `_meta` (2026-07-28)";
            return refuse(
                StatusCode::BAD_REQUEST,
                codes::INVALID_REQUEST,
                text,
                "session_required",
            );
        };
        let session = std::str::from_utf8(&named).ok().and_then(|id| {
            self.door
                .sessions
                .find(id, &inbound.principal, &inbound.scope)
        });
        let Some(session) = session else {
            return refuse(
                StatusCode::NOT_FOUND,
                codes::SESSION_NOT_FOUND,
                "no such session; send `initialize` again",
                "unknown_session",
            );
        };
        if session.caller.revision.features().version_header
            && let Some(version) = inbound
                .headers
                .as_ref()
                .and_then(|headers| headers.get(mirror::PROTOCOL_VERSION))
            && version.as_bytes().trim_ascii() != session.caller.revision.as_str().as_bytes()
        {
            let text = "`MCP-Protocol-Version` is not the revision this session agreed on";
            return refuse(
                StatusCode::BAD_REQUEST,
                codes::INVALID_REQUEST,
                text,
                "version_mismatch",
            );
        }
        Ok(session)
    }
}

/// Capabilities without the one for `logging/setLevel`, which no session takes yet.
fn without_logging(capabilities: &Json) -> Json {
    let mut edits = Edits::new();
    let fate = |name: &str, _: Node<'_>| {
        if name == "logging" {
            Fate::Remove
        } else {
            Fate::Keep
        }
    };
    edits.members(capabilities.root(), fate, &[]);
    capabilities.splice(&edits)
}

/// Headers that admit no event stream.
fn without_streams() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        http::header::ACCEPT,
        HeaderValue::from_static("application/json"),
    );
    headers
}

impl Wording for Words {
    fn era(&self) -> Era {
        Era::Legacy
    }

    fn result(&self, op: &Op, revision: Revision, result: Json) -> Json {
        convert::result(op, revision, result)
    }

    fn input_required(&self, _: &InputRequired) -> Option<Json> {
        // Asked with requests of ours, never with a result.
        None
    }

    fn failure(&self, op: &Op, mut error: RpcError) -> RpcError {
        // With the evidence of `data.uri` this is the older code for a resource that is not there (PROTOCOL D6).
        if let Op::ReadResource(uri) = op
            && super::is_about(&error, uri)
        {
            error.code = resource_not_found(Era::Legacy);
        }
        super::hop_local(op, error, Era::Legacy)
    }

    fn page_tail(&self, page: &Page) -> Vec<u8> {
        let mut out = Vec::with_capacity(160);
        super::push_cursor(&mut out, page);
        if let Some(away) = super::away(page) {
            out.extend_from_slice(b",\"_meta\":");
            out.extend_from_slice(meta::object_of(&[away]).bytes());
        }
        out.push(b'}');
        out
    }

    fn card(&self, card: &ServerCard, revision: Revision) -> Json {
        let mut members = vec![
            ("protocolVersion", Json::string(revision.as_str())),
            ("capabilities", without_logging(&card.capabilities)),
            ("serverInfo", Json::literal(super::SERVER_INFO)),
        ];
        if let Some(instructions) = &card.instructions {
            members.push(("instructions", Json::string(instructions)));
        }
        meta::object_of(&members)
    }
}
