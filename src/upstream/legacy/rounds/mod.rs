//! Tests: servers of the handshake era that ask: whose question it is, where a call waits, how it goes on, how it is given up.

mod awaited;
mod given_up;
mod going_on;
mod inquired;
mod overheard;
mod visits;
mod whose;

use std::time::Duration;

use futures_util::StreamExt;

use super::{
    tests::{on_pipes, over_http},
    *,
};
use crate::{
    call::{
        Caller, Event, Hold, InputRequired, LogLevel, Op, Outcome, Principal, Resume, State, Step,
    },
    json::{Json, Limits},
    protocol::{ClientCapabilities, Revision},
    upstream::{
        scripted::{
            Play, Scripted, Sent, a_caller, a_route, a_tool_call, an_address, note, result,
        },
        spec::UpstreamSpec,
    },
};
/// How long a person is waited for, where the configuration says nothing.
const PATIENCE: Duration = Duration::from_secs(600);
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#;
const ROOTS: &str = r#"{"jsonrpc":"2.0","id":"r\u0031","method":"roots/list"}"#;
const ELICIT: &str = r#"{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}},"task":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), &Limits::UPSTREAM).unwrap()
}

pub(super) fn able(key: &str) -> Call {
    able_to(key, ALL)
}

fn able_to(key: &str, declared: &str) -> Call {
    Call {
        caller: Arc::new(Caller {
            capabilities: ClientCapabilities::read(json(declared)).unwrap(),
            ..a_caller(key)
        }),
        ..a_tool_call()
    }
}

pub(super) fn again(call: &Call, asked: &InputRequired, responses: &str) -> Call {
    Call {
        resume: Some(Resume {
            responses: Some(json(responses)),
            state: Some(asked.state.clone()),
            ..Resume::default()
        }),
        ..call.clone()
    }
}

/// A server over HTTP whose tools are played by hand.
async fn played(spec: &UpstreamSpec) -> (Arc<Scripted>, Arc<Legacy>) {
    let (transport, peer) = over_http(spec, |sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        "" | "notifications/cancelled" => Play::Status(202),
        _ => result("{}"),
    })
    .await;
    (transport, Arc::new(peer))
}

/// Begins a call and lets the server speak on its stream.
async fn begun(
    transport: &Arc<Scripted>,
    peer: &Arc<Legacy>,
    call: Call,
    nth: usize,
    says: &[&str],
) -> Result<Reply, UpstreamError> {
    let carried = peer.call(call, a_route("t"));
    let speaking = async {
        transport.until_count("tools/call", nth + 1).await;
        for text in says {
            transport.tell(nth, text);
        }
    };
    tokio::join!(carried, speaking).0
}

/// What was asked, of a caller who is told so.
pub(super) fn asked(reply: Result<Reply, UpstreamError>) -> InputRequired {
    match reply {
        Ok(Reply::Done(Outcome::InputRequired(asked))) => {
            asked.hold.iter().for_each(Hold::told);
            asked
        }
        other => panic!("{other:?}"),
    }
}

/// The first call on its owner's own pipe, which asks; and the pipe.
pub(super) async fn asked_on_own_pipe(
    processes: &crate::upstream::scripted::Processes,
    peer: &Arc<Legacy>,
    call: Call,
) -> (Arc<Scripted>, Result<Reply, UpstreamError>) {
    let first = peer.call(call, a_route("t"));
    let speaking = async {
        while processes.made().len() < 2 {
            tokio::task::yield_now().await;
        }
        let pipe = processes.made().remove(1);
        pipe.until_count("tools/call", 1).await;
        pipe.say(ELICIT);
        pipe
    };
    let (reply, pipe) = tokio::join!(first, speaking);
    (pipe, reply)
}

/// Makes another call, which the pipe answers once it has it.
async fn goes_out(pipe: &Scripted, peer: &Arc<Legacy>, nth: usize) {
    let speaking = async {
        pipe.until_count("tools/call", nth + 1).await;
        pipe.tell(nth, &last(r#"{"n":2}"#));
    };
    let (reply, ()) = tokio::join!(peer.call(able("k"), a_route("t")), speaking);
    assert_eq!(text(reply), r#"{"n":2}"#);
}

fn text(reply: Result<Reply, UpstreamError>) -> String {
    match reply {
        Ok(Reply::Done(Outcome::Complete(result))) => result.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

fn last(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#)
}

fn answers(transport: &Scripted) -> Vec<String> {
    transport
        .sent_of("")
        .into_iter()
        .map(|sent| sent.text)
        .collect()
}

fn id_of(sent: &Sent) -> String {
    let frame = json(&sent.text);
    frame.root().member("id").unwrap().raw().to_owned()
}

/// A server on pipes of its owners' own, whose tools are played by hand.
async fn on_own_pipes() -> (Arc<crate::upstream::scripted::Processes>, Arc<Legacy>) {
    let (processes, peer) = on_pipes(Isolation::Session, |_, sent| match sent.method.as_str() {
        "tools/call" => Play::Open,
        "" | "notifications/cancelled" => Play::Status(202),
        _ => result("{}"),
    })
    .await;
    (processes, Arc::new(peer))
}
