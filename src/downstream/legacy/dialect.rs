//! The dialect of the handshake era: `initialize`, and what follows it in a session, batches included (PROTOCOL B4).

use std::{borrow::Cow, future::poll_fn, net::IpAddr, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::join_all};
use http::{HeaderValue, StatusCode};

use super::{
    asks,
    converse::Converse,
    flights::{Flight, Flights, NotNow, Over},
    session::Session,
    sessions::{Refused, Sessions},
    words::Words,
};
use crate::{
    call::{CallId, Caller, LogLevel, Op, Outcome, Reply, ServerCard, Trail},
    downstream::{
        Answer, Door, FrameResponse, Inbound, Next,
        exchange::{Exchange, Wording},
        extensions, invalid, named_in_answer,
        problem::{Problem, problem},
        read::{self, BadParams, Head},
        sent::{self, Sent},
        wants::{Accepts, progress_token},
    },
    json::{Json, Node},
    jsonrpc::{Frame, Notification, Request, RequestId, Response, RpcError, encode},
    protocol::{ClientCapabilities, Era, Revision, codes, methods, mirror},
};

/// The most bytes of what a client says that it can do: what is known of that is a few hundred.
const CAPABILITIES: usize = 64 << 10;

/// Speaks the handshake era to clients.
#[derive(Clone, Copy)]
pub(in crate::downstream) struct Legacy<'a> {
    pub(in crate::downstream) door: &'a Door,
}

impl<'a> Legacy<'a> {
    /// Begins to answer one request.
    pub(in crate::downstream) fn request(
        self,
        inbound: Inbound,
        request: Request,
        params: &Json,
        head: Result<Head<'_>, BadParams>,
    ) -> Next<'a> {
        if &*request.method == methods::INITIALIZE {
            let answer = async move { self.initialize(&inbound, &request).await };
            return Next::Legacy(answer.boxed());
        }
        match self.session(&inbound, Some(&request.id)) {
            Ok(session) => self.in_session(&inbound, &session, request, params, head),
            Err(problem) => Next::Done(problem.into()),
        }
    }

    /// Takes a notification. Those that mean nothing here are taken and nothing follows (PROTOCOL A4).
    pub(in crate::downstream) fn notification(
        &self,
        inbound: &Inbound,
        notification: &Notification,
    ) -> Answer {
        match self.session(inbound, None) {
            Ok(session) => {
                self.noted(&session, notification);
                Answer::Accepted
            }
            // On a pipe without a session it may be of the other era, whose notifications do not say so.
            Err(_) if inbound.headers.is_none() && inbound.session.is_none() => Answer::Accepted,
            Err(problem) => problem.into(),
        }
    }

    fn noted(&self, session: &Arc<Session>, notification: &Notification) {
        match &*notification.method {
            methods::INITIALIZED => self.hear(session),
            methods::CANCELLED => {
                if let Some(params) = &notification.params
                    && let Some(id) = params.root().member("requestId")
                {
                    session.flights.cancel(params, id);
                }
            }
            _ => {}
        }
    }

    /// A response must answer a request of ours that is open in its session (PROTOCOL C1.4). One that is no answer, for the
    /// names in it, ends the question all the same: nobody sends a response twice.
    pub(in crate::downstream) fn response(&self, inbound: &Inbound, response: Response) -> Answer {
        if let Err(problem) = named_in_answer(&response) {
            self.spoilt(inbound, response.id, &problem.error);
            return problem.into();
        }
        match self.session(inbound, None) {
            Ok(session) if session.asks.answer(response) != asks::Receipt::Unasked => {
                Answer::Accepted
            }
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

    /// Ends the questions with these ids as if the client had refused them: what came for an answer is none (PROTOCOL D2b).
    pub(in crate::downstream) fn spoilt(
        &self,
        inbound: &Inbound,
        answered: impl IntoIterator<Item = RequestId>,
        why: &RpcError,
    ) {
        let mut answered = answered.into_iter().peekable();
        if answered.peek().is_none() {
            return;
        }
        if let Ok(session) = self.session(inbound, None) {
            for id in answered {
                let (id, body) = (Some(id), Err(why.clone()));
                session.asks.answer(Response { id, body });
            }
        }
    }

    /// What a batch was to answer that is refused is over all the same, as if it had come alone: so the refusal is told.
    pub(in crate::downstream) fn unbatched(
        &self,
        inbound: &Inbound,
        frames: &[Frame],
        why: Problem,
    ) -> Problem {
        let answered = frames.iter().filter_map(|frame| match frame {
            Frame::Response(response) => response.id.clone(),
            Frame::Request(_) | Frame::Notification(_) => None,
        });
        self.spoilt(inbound, answered, &why.error);
        why
    }

    /// Answers a batch together: revision 2025-03-26 alone has them (PROTOCOL B4).
    pub(in crate::downstream) async fn batch(self, inbound: Inbound, frames: Vec<Frame>) -> Answer {
        let session = match self.session(&inbound, None) {
            Ok(session) => session,
            Err(problem) => return problem.into(),
        };
        if !session.revision.features().batches {
            let why = invalid("a batch, in a revision that has none");
            return self.unbatched(&inbound, &frames, why).into();
        }
        let begins = |frame: &Frame| matches!(frame, Frame::Request(request) if &*request.method == methods::INITIALIZE);
        if frames.iter().any(begins) {
            let why = invalid("`initialize` inside a batch");
            return self.unbatched(&inbound, &frames, why).into();
        }
        // Answers travel together, so events of single calls have no place to go.
        let inbound = Inbound {
            accepts: Accepts::JSON,
            ..inbound
        };
        let mut requests = Vec::new();
        for frame in frames {
            match frame {
                Frame::Request(request) => requests.push(request),
                Frame::Notification(notification) => self.noted(&session, &notification),
                Frame::Response(response) => _ = session.asks.answer(response),
            }
        }
        // After all else: what is cancelled in a batch began before it. Each is begun where it is first looked at, so that what
        // is answered at once is over before the next begins; of many only those are looked at again that are woken themselves.
        let (inbound, session) = (&inbound, &session);
        let requests = requests.into_iter().map(|request| {
            self.door.backing.drain_deadline.observed_by(async move {
                let params = request.params.clone().unwrap_or(Json::empty_object());
                let head = read::head(&request.method, &params);
                let sent = Sent::by(&inbound.identity, sent::method(&request.method));
                let next = self.in_session(inbound, session, request, &params, head);
                next.answer(self.door, inbound.address, Some(sent)).await
            })
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
        Answer::Frame(FrameResponse::ok(segments))
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
        // A session keeps them for as long as it lives (SECURITY REL-3).
        if capabilities.json().len() > CAPABILITIES {
            return invalid("`params.capabilities` is over 64 KiB");
        }
        // What is said now holds for as long as the session, whatever is learned of servers that are still starting.
        self.door.starting.handshake(&self.door.closing).await;
        let opened = self.door.sessions.open(
            (inbound.identity.clone(), inbound.address),
            inbound.scope.clone(),
            revision,
            asks::deliverable(revision, capabilities),
            inbound.headers.is_none(),
        );
        let mut opened = match opened {
            Ok(session) => Untold {
                sessions: &self.door.sessions,
                session,
                told: false,
            },
            Err(Refused) => {
                let error = RpcError::new(
                    codes::OVERLOADED,
                    "too many sessions; end one, or try again later",
                );
                return refuse(StatusCode::TOO_MANY_REQUESTS, error, "rate_limited");
            }
        };
        let head = read::head(methods::INITIALIZE, &params).ok();
        let trail = self.door.trail(
            inbound,
            &request.id,
            head.as_ref(),
            Some((methods::INITIALIZE, &params)),
        );
        let card = match self.card(&opened.session, (inbound.address, trail)).await {
            Ok((card, _)) => card,
            Err(problem) => {
                let id = Some(request.id.clone());
                return Problem { id, ..problem }.into();
            }
        };
        opened.told = true;
        Answer::Frame(FrameResponse {
            status: StatusCode::OK,
            segments: encode::result(&request.id, &Words.card(&card, revision)).into(),
            session: HeaderValue::from_str(&opened.session.id).ok(),
            scopes: None,
            retry: None,
            refused: None,
        })
    }

    /// Begins to answer a request in its session.
    fn in_session(
        self,
        inbound: &Inbound,
        session: &Arc<Session>,
        request: Request,
        params: &Json,
        head: Result<Head<'_>, BadParams>,
    ) -> Next<'a> {
        if &*request.method == methods::PING {
            return Next::Done(done(&request.id));
        }
        let flight = match Flights::enter(session, &request.id) {
            Ok(flight) => flight,
            Err(not_now) => return Next::Done(refused(not_now, request.id).into()),
        };
        let refuse = |id: RequestId, bad: BadParams| {
            let problem = Problem::new(StatusCode::OK, Some(id), bad.error, bad.reason);
            Next::Done(problem.into())
        };
        let head = match head {
            Ok(head) => head,
            Err(bad) => return refuse(request.id, bad),
        };
        let op = match read::op(&request.method, &head) {
            Ok(None) => {
                let features = session.revision.features();
                extensions::op(&request.method, &head, features)
            }
            known => known,
        };
        match op {
            Ok(Some(op)) => self.call(inbound, (request.id, op), params, &head, flight),
            Ok(None) => self.own_request(inbound, request, params, &head, flight),
            Err(bad) => refuse(request.id, bad),
        }
    }

    /// Begins the call that a request is.
    fn call(
        self,
        inbound: &Inbound,
        (id, op): (RequestId, Op),
        params: &Json,
        head: &Head<'_>,
        flight: Flight,
    ) -> Next<'a> {
        let session = flight.session();
        let progress_token = progress_token(params, head);
        let streams = inbound.accepts.stream;
        let mut call = session.call(
            &inbound.identity,
            op.clone(),
            params.clone(),
            self.door.deadline,
        );
        call.wants_progress = progress_token.is_some();
        call.address = inbound.address;
        call.trail = self.door.trail(inbound, &id, Some(head), None);
        if !streams && let Some(capabilities) = asks::mute(&call.caller.capabilities) {
            let caller = Caller {
                capabilities,
                ..(*call.caller).clone()
            };
            call.caller = Arc::new(caller);
        }
        let converse = methods::may_ask_back(op.method())
            .then(|| Converse::new(self.door.bounds.patience, session, &call));
        let exchange = Exchange {
            wording: &Words,
            id,
            op,
            revision: session.revision,
            call: call.id,
            trail: call.trail.clone(),
            progress_token,
            streams,
            flight: Some(flight),
            converse,
        };
        Next::Running(exchange.begin(self.door, call), inbound.identity.clone())
    }

    /// Begins to answer a request that only a session has. It is in flight until it is answered.
    fn own_request(
        self,
        inbound: &Inbound,
        request: Request,
        params: &Json,
        head: &Head<'_>,
        flight: Flight,
    ) -> Next<'a> {
        let (session, params) = (Arc::clone(flight.session()), params.clone());
        let method = match &*request.method {
            methods::SUBSCRIBE => methods::SUBSCRIBE,
            _ => methods::SET_LEVEL,
        };
        let other = Some((method, &params));
        let trail = self.door.trail(inbound, &request.id, Some(head), other);
        let address = inbound.address;
        let answer = async move {
            let own = self.own(&session, &request.method, &params, (address, trail));
            tokio::select! {
                biased;
                answered = own => match answered {
                    Ok(()) => done(&request.id),
                    Err(no) => Problem {
                        id: Some(request.id),
                        ..no
                    }
                    .into(),
                },
                over = poll_fn(|cx| flight.poll_over(cx)) => match over {
                    Over::Cancelled => Answer::Accepted,
                    Over::Ended => Problem::session_unknown(Some(request.id)).into(),
                },
            }
        };
        Next::Legacy(answer.boxed())
    }

    /// The requests that only a session has, each answered with an empty result.
    async fn own(
        &self,
        session: &Arc<Session>,
        method: &str,
        params: &Json,
        came: (Option<IpAddr>, Trail),
    ) -> Result<(), Problem> {
        let text = |name: &str| {
            let text = params.root().member(name).and_then(Node::as_str);
            text.ok_or_else(|| {
                let text = format!("`params.{name}` is missing or not a string");
                in_band(codes::INVALID_PARAMS, &text, "invalid_params")
            })
        };
        match method {
            methods::SET_LEVEL => {
                let level = LogLevel::parse(&text("level")?).ok_or_else(|| {
                    let text = "`params.level` is no log level";
                    in_band(codes::INVALID_PARAMS, text, "invalid_params")
                })?;
                let (card, call) = self
                    .card(session, came)
                    .await
                    .map_err(Problem::in_session)?;
                if !card.logs() {
                    let text = "this endpoint does not offer the method";
                    let refused = in_band(codes::METHOD_NOT_FOUND, text, "method_not_found");
                    return Err(refused.about(call));
                }
                session.log_at(level);
                Ok(())
            }
            methods::SUBSCRIBE => {
                let uri = text("uri")?.as_ref().into();
                self.subscribe(session, uri, came).await
            }
            methods::UNSUBSCRIBE => {
                session.unsubscribe(&text("uri")?);
                Ok(())
            }
            // Never with HTTP 404: to a client of this era that means a lost session (PROTOCOL B4).
            _ => Err(in_band(
                codes::METHOD_NOT_FOUND,
                "no such method",
                "method_not_found",
            )),
        }
    }

    /// What the session's endpoint offers, if it is there and may be asked now, and the call that asked. A refusal is nobody's
    /// yet.
    async fn card(
        &self,
        session: &Session,
        (address, trail): (Option<IpAddr>, Trail),
    ) -> Result<(ServerCard, CallId), Problem> {
        let mut call = session.call(
            &session.identity(),
            Op::Discover,
            Json::empty_object(),
            self.door.deadline,
        );
        (call.address, call.trail) = (address, trail);
        let number = call.id;
        match self.door.backing.service.call(call).await {
            Ok(Reply::Done(Outcome::Card(card))) => Ok((card, number)),
            Err(error) => {
                let refused = problem(&error, Era::Legacy, RequestId::minted(0), number);
                Err(Problem {
                    id: None,
                    ..refused
                })
            }
            Ok(_) => {
                let error = RpcError::new(codes::INVALID_REQUEST, "no such endpoint");
                let status = StatusCode::NOT_FOUND;
                Err(Problem::new(status, None, error, "unknown_endpoint"))
            }
        }
    }

    /// The session a message belongs to: known, of this principal and endpoint, and named with its own revision.
    pub(in crate::downstream) fn session(
        &self,
        inbound: &Inbound,
        id: Option<&RequestId>,
    ) -> Result<Arc<Session>, Problem> {
        let refuse = |status, code, text: &str, reason: &'static str| {
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
                .get(&mirror::header::SESSION_ID)
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
                .find(id, &inbound.identity, &inbound.scope)
        });
        let Some(session) = session else {
            return Err(Problem::session_unknown(id.cloned()));
        };
        if session.revision.features().version_header
            && inbound.named.differs_from(session.revision)
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

/// An empty result.
fn done(id: &RequestId) -> Answer {
    Answer::Frame(FrameResponse::ok(
        encode::result(id, &Json::empty_object()).into(),
    ))
}

/// A session just opened. It ends with this unless its client is told of it: nobody else knows it, or would end it.
struct Untold<'a> {
    sessions: &'a Sessions,
    session: Arc<Session>,
    told: bool,
}

impl Drop for Untold<'_> {
    fn drop(&mut self) {
        if !self.told {
            self.sessions.end(&self.session);
        }
    }
}

/// Why a request may not start.
fn refused(why: NotNow, id: RequestId) -> Problem {
    let error = |code, text: &str| RpcError::new(code, text);
    let id = Some(id);
    match why {
        NotNow::Duplicate => {
            let error = error(
                codes::INVALID_REQUEST,
                "a request with this id is still running in this session",
            );
            Problem::new(StatusCode::BAD_REQUEST, id, error, "duplicate_id")
        }
        NotNow::TooMany => {
            let error = error(
                codes::OVERLOADED,
                "too many requests are running in this session",
            );
            Problem::new(StatusCode::TOO_MANY_REQUESTS, id, error, "rate_limited")
        }
        NotNow::Ended => Problem::session_unknown(id),
    }
}

/// A refusal of one request whose message was sound; the id is the caller's to add.
pub(super) fn in_band(code: i64, text: &str, reason: &'static str) -> Problem {
    Problem::new(StatusCode::OK, None, RpcError::new(code, text), reason)
}
