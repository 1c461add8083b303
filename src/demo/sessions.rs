//! Streamable HTTP with sessions, as in 2025-06-18: POST, one GET stream per session, DELETE.
//!
//! Guarantees at most [`MAX_SESSIONS`] sessions: one more ends the one that was used least recently, whose client then meets
//! 404 and starts again. A lost connection is not a cancellation, save that a question to the client ends with the stream
//! it was asked on. Streams cannot be resumed.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{
    answers::{Body, accepts, empty, event_stream, json as document, refused, unacceptable},
    frame::{self, INTERNAL_ERROR, INVALID_REQUEST, Message, Refusal, Request},
    server::DemoServer,
    session::Session,
};
use crate::tasks::Tasks;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

/// The revision spoken on HTTP with sessions.
const REVISION: &str = "2025-06-18";
const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
pub(super) const MAX_SESSIONS: usize = 128;

/// The face of a demo server that keeps sessions.
pub(super) struct Sessions {
    server: Arc<dyn DemoServer>,
    tasks: Tasks,
    /// Guarded for one lookup at a time.
    open: Mutex<HashMap<String, Arc<Open>>>,
    clock: AtomicU64,
}

struct Open {
    session: Arc<Session>,
    /// When it was last used, counted in requests to this server.
    used: AtomicU64,
    /// Whether the session's GET stream is open.
    streaming: AtomicBool,
}

impl Sessions {
    pub(super) fn new(server: Arc<dyn DemoServer>, tasks: Tasks) -> Self {
        Self {
            server,
            tasks,
            open: Mutex::default(),
            clock: AtomicU64::default(),
        }
    }

    pub(super) async fn post(&self, headers: &HeaderMap, body: &[u8]) -> Response<Body> {
        if let Some(response) = unacceptable(headers) {
            return response;
        }
        let message = match frame::parse(body) {
            Ok(Message::Request(request)) if request.method == "initialize" => {
                return self.initialize(request).await;
            }
            Ok(message) => message,
            Err(refusal) => return document(StatusCode::BAD_REQUEST, &refusal),
        };
        let id = match &message {
            Message::Request(request) => Some(request.id.clone()),
            Message::Notification { .. } | Message::Response { .. } => None,
        };
        let open = match self.find(headers) {
            Ok(open) => open,
            Err((status, why)) => {
                let refusal = Refusal::new(INVALID_REQUEST, why);
                return refused(status, id.as_ref(), &refusal);
            }
        };
        match message {
            Message::Request(request) => self.request(&open, request).await,
            Message::Notification { method, params } => {
                open.session.hear(&method, &params);
                empty(StatusCode::ACCEPTED)
            }
            Message::Response { id, body } => {
                if open.session.resolve(&id, body) {
                    return empty(StatusCode::ACCEPTED);
                }
                let refusal = Refusal::new(INVALID_REQUEST, "no such question is open");
                refused(StatusCode::BAD_REQUEST, None, &refusal)
            }
        }
    }

    /// Opens the session's stream for what belongs to no request.
    pub(super) fn stream(&self, headers: &HeaderMap) -> Response<Body> {
        if !accepts(headers, "text/event-stream") {
            return empty(StatusCode::NOT_ACCEPTABLE);
        }
        let open = match self.find(headers) {
            Ok(open) => open,
            Err((status, why)) => {
                return refused(status, None, &Refusal::new(INVALID_REQUEST, why));
            }
        };
        if open.streaming.swap(true, Ordering::AcqRel) {
            let refusal = Refusal::new(INVALID_REQUEST, "this session's stream is open already");
            return refused(StatusCode::CONFLICT, None, &refusal);
        }
        let mut changes = self.server.changes().subscribe();
        let (out, response) = event_stream();
        let server = self.server.clone();
        self.tasks.spawn(async move {
            loop {
                let change = tokio::select! {
                    () = open.session.ended().cancelled() => break,
                    () = out.closed() => break,
                    change = changes.recv() => change,
                };
                for notice in open.session.notices(&*server, change) {
                    drop(out.send(notice).await); // a closed stream ends the loop above
                }
            }
            open.streaming.store(false, Ordering::Release);
        });
        response
    }

    pub(super) fn delete(&self, headers: &HeaderMap) -> Response<Body> {
        if let Err((status, why)) = self.find(headers) {
            return refused(status, None, &Refusal::new(INVALID_REQUEST, why));
        }
        let id = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        if let Some(open) = id.and_then(|id| self.lock().remove(id)) {
            open.session.end();
        }
        empty(StatusCode::NO_CONTENT)
    }

    async fn initialize(&self, request: Request) -> Response<Body> {
        let session = Arc::new(Session::default());
        let answer = session.answer(&*self.server, REVISION, request, None).await;
        let answer = answer.unwrap_or_default(); // nobody can have cancelled it
        let mut response = document(StatusCode::OK, &answer);
        if session.is_open() {
            let Some((id, header)) = new_id() else {
                let refusal = Refusal::new(INTERNAL_ERROR, "no session id can be made");
                return refused(StatusCode::INTERNAL_SERVER_ERROR, None, &refusal);
            };
            response.headers_mut().insert(SESSION_HEADER, header);
            self.keep(id, session);
        }
        response
    }

    fn keep(&self, id: String, session: Arc<Session>) {
        let open = Arc::new(Open {
            session,
            used: self.clock.fetch_add(1, Ordering::Relaxed).into(),
            streaming: AtomicBool::new(false),
        });
        let mut all = self.lock();
        if all.len() >= MAX_SESSIONS {
            let oldest = all
                .iter()
                .min_by_key(|(_, open)| open.used.load(Ordering::Relaxed));
            let oldest = oldest.map(|(id, _)| id.clone());
            if let Some(oldest) = oldest.and_then(|id| all.remove(&id)) {
                oldest.session.end();
            }
        }
        all.insert(id, open);
    }

    async fn request(&self, open: &Open, request: Request) -> Response<Body> {
        let session = open.session.clone();
        if request.method != "tools/call" {
            let answer = session.answer(&*self.server, REVISION, request, None).await;
            // A request cancelled by its client has no answer, only an end.
            return answer.map_or_else(
                || empty(StatusCode::NO_CONTENT),
                |answer| document(StatusCode::OK, &answer),
            );
        }
        // A tool may report progress or ask: it gets a stream.
        let (out, response) = event_stream();
        let server = self.server.clone();
        self.tasks.spawn(async move {
            let answer = session.answer(&*server, REVISION, request, Some(out.clone()));
            if let Some(answer) = answer.await {
                drop(out.send(answer).await); // a lost stream loses its answer
            }
        });
        response
    }

    /// The session that a request names, provided that the revision fits.
    fn find(&self, headers: &HeaderMap) -> Result<Arc<Open>, (StatusCode, &'static str)> {
        let bad = |why| Err((StatusCode::BAD_REQUEST, why));
        if headers
            .get(VERSION_HEADER)
            .is_some_and(|version| version != REVISION)
        {
            return bad("MCP-Protocol-Version: this server speaks 2025-06-18 only");
        }
        let Some(id) = headers.get(SESSION_HEADER) else {
            return bad("Mcp-Session-Id is missing; `initialize` first");
        };
        let id = id.to_str().unwrap_or_default();
        let open = self.lock().get(id).cloned();
        let open = open.ok_or((StatusCode::NOT_FOUND, "no such session"))?;
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        open.used.store(now, Ordering::Relaxed);
        Ok(open)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 random bits as hex: nobody guesses another client's session.
fn new_id() -> Option<(String, HeaderValue)> {
    let mut bytes = [0_u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).ok()?;
    let id = format!("{:032x}", u128::from_be_bytes(bytes));
    let header = HeaderValue::from_str(&id).ok()?;
    Some((id, header))
}
