//! Servers of the handshake era that ask and tell on the stream of the session instead of the call's (PROTOCOL B4, D0.4).
//! So do those made with the official SDKs whose tools do not say which request it is for.

use super::{ALL, FORM, NAMED, ROOTS, usual};
use crate::harness::{
    Gate, Heard, Pairing, Play, Turn, Upstream, eventually, parse, text_result, tool,
};

/// A server whose tool asks there at once, and then tells what came of that.
fn asking(server: Upstream) -> Upstream {
    server.tools([tool("ask")]).telling().on("tools/call", |_| {
        Play::live(|turn: Turn| async move {
            let mut told = Vec::new();
            for (method, params) in [FORM, ROOTS] {
                told.push(turn.ask_beside(method, params).await["result"].to_string());
            }
            turn.result(&text_result(&told.join(" "))).await;
        })
    })
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        modern_client_legacy_server = MODERN_LEGACY,
    ] because "modern servers cannot send requests at all";
    async fn what_is_asked_there_in_the_course_of_one_call_is_put_to_its_client(pair: Pairing) {
        let notes = asking(pair.upstream());
        let (_gateway, client) = pair.able(&notes, ALL).await;
        // The first of a session, and another.
        for _ in 0..2 {
            let talk = client.call("notes_ask", "{}").answering(usual).await;
            let asked: Vec<_> = talk.asked.iter().map(|(method, _)| method.as_str()).collect();
            assert_eq!(asked, [FORM.0, ROOTS.0]);
            let text = talk.answer.text();
            assert!(text.starts_with(NAMED), "{text}");
            assert!(text.contains("file:///home/ada"), "{text}");
        }
        assert_eq!(notes.heard("tools/call").len(), 2);
    }
}

#[tokio::test]
async fn what_is_asked_there_while_two_calls_are_under_way_is_refused_at_once() {
    for pair in [Pairing::LEGACY_LEGACY, Pairing::MODERN_LEGACY] {
        let gate = Gate::new();
        let may_end = gate.clone();
        let notes = pair
            .upstream()
            .tools([tool("ask"), tool("wait")])
            .telling()
            .on("tools/call", move |heard: &Heard| {
                if heard.text("name").as_deref() == Some("wait") {
                    let done = Play::Result(text_result("waited"));
                    return Play::Gated(Vec::new(), may_end.clone(), Box::new(done));
                }
                Play::live(|turn: Turn| async move {
                    let told = turn.ask_beside(FORM.0, FORM.1).await;
                    turn.result(&text_result(&told["error"].to_string())).await;
                })
            });
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let waiting = async { client.call("notes_wait", "{}").await };
        let asking = async {
            notes.until_heard("tools/call", 1).await;
            let talk = client.call("notes_ask", "{}").answering(usual).await;
            gate.open();
            talk
        };
        let (waited, talk) = tokio::join!(waiting, asking);
        assert!(talk.asked.is_empty(), "{talk:?}");
        let error = parse(&talk.answer.text());
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(waited.text(), "waited");
    }
}

#[tokio::test]
async fn a_line_that_comes_there_is_told_on_the_only_call_under_way() {
    let pair = Pairing::LEGACY_LEGACY;
    let gate = Gate::new();
    let may_end = gate.clone();
    let notes = pair
        .upstream()
        .tools([tool("t")])
        .telling()
        .on("tools/call", move |_| {
            let gate = may_end.clone();
            Play::live(move |turn: Turn| {
                let gate = gate.clone();
                async move {
                    for level in ["debug", "warning"] {
                        let params = format!(r#"{{"level":"{level}","data":"beside"}}"#);
                        let line = format!(
                            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#
                        );
                        turn.say_beside(&line).await;
                    }
                    gate.pass().await;
                    turn.result(&text_result("done")).await;
                }
            })
        });
    // Nothing can be asked of this client.
    let (_gateway, client) = pair.alone(&notes).await;
    client
        .ask("logging/setLevel", r#"{"level":"info"}"#)
        .await
        .result();
    let mut talk = client.call("notes_t", "{}").begin().await;
    let told = parse(&talk.hear().await);
    assert_eq!(told["method"], "notifications/message", "{told}");
    assert_eq!(told["params"]["level"], "warning", "{told}");
    gate.open();
    assert_eq!(talk.rest().await.text(), "done");
}

#[tokio::test]
async fn a_server_without_such_a_stream_is_asked_for_it_once_and_called_as_ever() {
    let pair = Pairing::LEGACY_LEGACY;
    let notes = pair.upstream().tools([tool("ask")]).on("tools/call", |_| {
        Play::live(|turn: Turn| async move {
            let told = turn.ask(FORM.0, FORM.1).await;
            turn.result(&text_result(&told["result"].to_string())).await;
        })
    });
    let (_gateway, client) = pair.able(&notes, ALL).await;
    for _ in 0..3 {
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.answer.text(), NAMED);
    }
    let session = notes.last("tools/call").session;
    let mut asked = notes.heard("refused GET");
    asked.retain(|heard| heard.session == session);
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn the_stream_ends_with_the_clients_session() {
    let pair = Pairing::LEGACY_LEGACY;
    let notes = asking(pair.upstream());
    let (_gateway, client) = pair.able(&notes, ALL).await;
    client.call("notes_ask", "{}").answering(usual).await;
    let session = notes.last("tools/call").session.unwrap();
    assert_eq!(notes.streams_of(&session), 1);
    client.other(http::Method::DELETE).await;
    notes.until_heard("DELETE", 1).await;
    eventually("the stream is closed", || async {
        (notes.streams_of(&session) == 0).then_some(())
    })
    .await;
}
