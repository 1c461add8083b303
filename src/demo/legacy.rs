//! The revisions that open with `initialize`: what both legacy demo servers do alike on stdio and on HTTP.
//!
//! Does not frame or carry messages.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{broadcast::error::RecvError, mpsc};

use super::{
    frame::{self, INTERNAL_ERROR, INVALID_REQUEST, Object, Refusal, Request},
    server::{self, Change, DemoServer, Listing},
    session::{Running, Session, lock},
    turn::{Asking, Stop, Turn},
};

const RESOURCE_NOT_FOUND: i64 = -32002;

impl Session {
    /// Answers one request. `out` carries what the request has to say before its answer. `None` when the client
    /// cancelled, or the session ended.
    pub(super) async fn answer(
        self: &Arc<Self>,
        server: &dyn DemoServer,
        revision: &str,
        request: Request,
        out: Option<mpsc::Sender<Value>>,
    ) -> Option<Value> {
        let Request { id, method, params } = request;
        let running = match Running::begin(self, &id) {
            Ok(running) => running,
            Err(refusal) => return Some(refusal.frame(Some(&id))),
        };
        let reply = tokio::select! {
            reply = self.reply(server, revision, &method, &params, out) => reply,
            () = running.cancelled.cancelled() => return None,
        };
        Some(match reply {
            Ok(result) => frame::result(&id, result),
            Err(Stop::Refused(refusal)) => refusal.frame(Some(&id)),
            Err(Stop::NoResource(uri)) => {
                let refusal = Refusal::new(RESOURCE_NOT_FOUND, "resource not found");
                refusal.with(json!({"uri": uri})).frame(Some(&id))
            }
            Err(Stop::Failed(_) | Stop::Input(_)) => {
                Refusal::new(INTERNAL_ERROR, "internal error").frame(Some(&id))
            }
        })
    }

    /// The notifications that tell this client of a change. One that missed some is told that everything changed.
    pub(super) fn notices(
        &self,
        server: &dyn DemoServer,
        change: Result<Change, RecvError>,
    ) -> Vec<Value> {
        if !self.is_open() {
            return Vec::new();
        }
        let watched = lock(&self.watched);
        let changes = match change {
            Ok(change) => vec![change],
            Err(_) => {
                let resources = watched.iter().cloned().map(Change::Resource);
                let tools = (server.card().tools == Listing::Changing).then_some(Change::ToolList);
                tools.into_iter().chain(resources).collect()
            }
        };
        let notice = |change| match change {
            Change::ToolList => Some(frame::notification(
                "notifications/tools/list_changed",
                None,
            )),
            Change::Resource(uri) => watched.contains(&uri).then(|| {
                let params = json!({"uri": uri});
                frame::notification("notifications/resources/updated", Some(params))
            }),
        };
        changes.into_iter().filter_map(notice).collect()
    }

    async fn reply(
        self: &Arc<Self>,
        server: &dyn DemoServer,
        revision: &str,
        method: &str,
        params: &Object,
        out: Option<mpsc::Sender<Value>>,
    ) -> Result<Value, Stop> {
        match method {
            "initialize" => Ok(self.open(server, revision, params)?),
            "ping" => Ok(json!({})),
            // A newer client's first question. The answer tells it to go on with `initialize`.
            "server/discover" => Err(Refusal::no_method(method).into()),
            _ if !self.is_open() => {
                let message = "`initialize` must come first";
                Err(Refusal::new(INVALID_REQUEST, message).into())
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let uri = server::wanted_text(params, "uri")?;
                if !server.is_watchable(uri) {
                    return Err(match server.read(uri) {
                        None => Stop::NoResource(uri.to_owned()),
                        Some(_) => Refusal::invalid(format!("{uri} never changes")).into(),
                    });
                }
                let mut watched = lock(&self.watched);
                if method == "resources/subscribe" {
                    watched.insert(uri.to_owned());
                } else {
                    watched.remove(uri);
                }
                Ok(json!({}))
            }
            _ => {
                let token = params.get("_meta").map(|meta| &meta["progressToken"]);
                let turn = Turn {
                    asking: Asking::Session(self.clone()),
                    progress_token: token
                        .filter(|t| t.is_string() || t.is_i64() || t.is_u64())
                        .cloned(),
                    out,
                };
                server::answer(server, method, params, &turn).await
            }
        }
    }

    fn open(
        &self,
        server: &dyn DemoServer,
        revision: &str,
        params: &Object,
    ) -> Result<Value, Refusal> {
        server::wanted_text(params, "protocolVersion")?;
        let object = |name: &str| {
            let missing =
                || Refusal::invalid(format!("`params.{name}` is missing or not an object"));
            params
                .get(name)
                .filter(|value| value.is_object())
                .ok_or_else(missing)
        };
        object("clientInfo")?;
        let capabilities = object("capabilities")?.clone();
        if self.capabilities.set(capabilities).is_err() {
            return Err(Refusal::new(
                INVALID_REQUEST,
                "this session is initialized already",
            ));
        }
        let card = server.card();
        Ok(json!({
            "protocolVersion": revision,
            "capabilities": card.capabilities(),
            "serverInfo": card.identity(),
            "instructions": card.instructions,
        }))
    }
}
