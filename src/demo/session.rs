//! A session of the revisions that open with `initialize`: what its client has declared, what runs for it, what it is asked.
//!
//! Guarantees at most [`MAX_RUNNING`] requests and [`MAX_ASKED`] open questions per session; more are refused. What is
//! answered is for [`super::legacy`].
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::frame::{self, INTERNAL_ERROR, INVALID_REQUEST, Object, Refusal};

const MAX_RUNNING: usize = 32;
const MAX_ASKED: usize = 32;
/// How long a question waits for a person.
const PATIENCE: Duration = Duration::from_secs(600);

/// A client's `initialize` and what follows from it. Dropping it, or [`Session::end`], ends its requests.
#[derive(Default)]
pub(super) struct Session {
    /// The client's capabilities, once it has initialized.
    pub(super) capabilities: OnceLock<Value>,
    /// URIs whose changes the client wants to hear of: at most one per watchable resource.
    pub(super) watched: Mutex<BTreeSet<String>>,
    /// Requests of the client that run now, by their id as JSON text.
    running: Mutex<HashMap<String, CancellationToken>>,
    /// Requests of ours that the client has not answered, by our id.
    asked: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Value>>>>,
    last_asked: AtomicI64,
    ended: CancellationToken,
}

impl Session {
    pub(super) fn capability(&self, name: &str) -> Value {
        self.capabilities
            .get()
            .map_or(Value::Null, |all| all[name].clone())
    }

    pub(super) fn is_open(&self) -> bool {
        self.capabilities.get().is_some()
    }

    /// Ends every running request without an answer.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Takes notice of a notification; unknown ones are ignored.
    pub(super) fn hear(&self, method: &str, params: &Object) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
            && let Some(request) = lock(&self.running).get(&id.to_string())
        {
            request.cancel();
        }
    }

    /// Takes the client's answer to a question of ours; `false` when no such question is open.
    pub(super) fn resolve(&self, id: &Value, body: Result<Value, Value>) -> bool {
        let asked = id.as_i64().and_then(|id| lock(&self.asked).remove(&id));
        asked.is_some_and(|asked| asked.send(body).is_ok())
    }

    /// Sends a request to the client and waits for its answer.
    ///
    /// # Errors
    /// A sentence for the caller of the tool: the client refused, went away, or took longer than [`PATIENCE`].
    pub(super) async fn ask(
        &self,
        out: &mpsc::Sender<Value>,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        let gone = || "the client went away before it answered".to_owned();
        let id = self.last_asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (answered, answer) = oneshot::channel();
        {
            let mut asked = lock(&self.asked);
            if asked.len() >= MAX_ASKED {
                return Err("too many questions to the client are open".to_owned());
            }
            asked.insert(id, answered);
        }
        let _question = Question {
            session: self,
            id,
            out,
        };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        out.send(request).await.map_err(|_| gone())?;
        tokio::select! {
            answer = answer => match answer {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => {
                    let message = error["message"].as_str().unwrap_or("no reason given");
                    Err(format!("the client refused to be asked: {message}"))
                }
                Err(_) => Err(gone()),
            },
            () = out.closed() => Err(gone()),
            () = tokio::time::sleep(PATIENCE) => Err("nobody answered in ten minutes".to_owned()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

/// A request of the client while it runs.
pub(super) struct Running<'a> {
    session: &'a Session,
    key: String,
    pub(super) cancelled: CancellationToken,
}

impl<'a> Running<'a> {
    pub(super) fn begin(session: &'a Session, id: &Value) -> Result<Self, Refusal> {
        let key = id.to_string();
        let mut running = lock(&session.running);
        if running.contains_key(&key) {
            return Err(Refusal::new(
                INVALID_REQUEST,
                "a request with this id is running",
            ));
        }
        if running.len() >= MAX_RUNNING {
            return Err(Refusal::new(INTERNAL_ERROR, "too many requests at a time"));
        }
        let cancelled = session.ended.child_token();
        running.insert(key.clone(), cancelled.clone());
        Ok(Self {
            session,
            key,
            cancelled,
        })
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.session.running).remove(&self.key);
    }
}

/// A question to the client while it is open; dropped unanswered, the client is told not to bother.
struct Question<'a> {
    session: &'a Session,
    id: i64,
    out: &'a mpsc::Sender<Value>,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if lock(&self.session.asked).remove(&self.id).is_some() {
            let params =
                json!({"requestId": self.id, "reason": "the request that asked has ended"});
            let notice = frame::notification("notifications/cancelled", Some(params));
            drop(self.out.try_send(notice)); // a full pipe is not worth waiting for here
        }
    }
}

/// Each lock of a session guards one map for the length of one lookup.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
