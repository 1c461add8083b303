//! One request that a script answers step by step: it may tell, ask back, wait, and see the caller go.

use std::{fmt, future::Future, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    PATIENCE,
    json::{parse, quote},
    script::Heard,
    stage::{Out, Stage},
    within,
};

/// What does so.
#[derive(Clone)]
pub(crate) struct Live(Arc<dyn Fn(Turn) -> BoxFuture<'static, ()> + Send + Sync>);

/// A request in the making of its answer. Dropping it ends the stream without one.
pub(crate) struct Turn {
    pub(crate) heard: Heard,
    pub(super) id: String,
    pub(super) stage: Arc<Stage>,
    pub(super) out: mpsc::Sender<Out>,
}

impl Live {
    pub(super) fn new<F>(script: impl Fn(Turn) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |turn| script(turn).boxed()))
    }

    pub(super) fn begin(&self, turn: Turn) -> BoxFuture<'static, ()> {
        (self.0)(turn)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Live")
    }
}

impl Turn {
    /// Tells a message as it is; `$token` and `$id` become the request's own.
    pub(crate) async fn say(&self, message: &str) {
        let token = self.heard.meta("progressToken");
        let message = message
            .replace("$token", token.as_deref().unwrap_or("null"))
            .replace("$id", &self.id);
        // The gateway may have gone; the script notices where it matters.
        drop(self.out.send(Out::Frame(message)).await);
    }

    /// Tells of progress under the request's token.
    pub(crate) async fn progress(&self, progress: u32, message: &str) {
        let message = quote(message);
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":{progress},"message":{message}}}}}"#
        ))
        .await;
    }

    /// Tells a log line.
    pub(crate) async fn log(&self, level: &str, data: &str) {
        let data = quote(data);
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":{data}}}}}"#
        ))
        .await;
    }

    /// Sends a request of the server's own, as the handshake era has them, and waits for the response: the whole message.
    pub(crate) async fn ask(&self, method: &str, params: &str) -> Value {
        let (_, answer) = self.put(method, params).await;
        let answer = within(PATIENCE, &format!("an answer to `{method}`"), answer).await;
        parse(&answer.expect("the upstream is there"))
    }

    /// The same without waiting: the request's id, and the response.
    pub(crate) async fn put(&self, method: &str, params: &str) -> (u64, oneshot::Receiver<String>) {
        let (id, answer) = self.stage.awaiting();
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
        .await;
        (id, answer)
    }

    /// Waits until the gateway closes this stream; never on a pipe, where nothing is closed.
    pub(crate) async fn gone(&self) {
        self.out.closed().await;
    }

    /// Ends with this result, to which is added what the revision demands.
    pub(crate) async fn result(self, result: &str) {
        let frame = self.stage.result_frame(result, &self.heard, &self.id);
        drop(self.out.send(Out::Frame(frame)).await);
    }
}
