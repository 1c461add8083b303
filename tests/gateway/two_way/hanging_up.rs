//! Hosts that end their pipe while a server waits for what they would say.

use serde_json::json;

use super::{ALL, FORM, asking};
use crate::harness::{Gateway, Pairing, Piped, Play, Turn, Upstream, parse};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"notes_ask"}}"#;

/// A program on a pipe whose host can be asked.
async fn started(pair: Pairing, notes: &Upstream) -> Piped {
    greeted(pair, Piped::start(&place(notes)).await).await
}

fn place(notes: &Upstream) -> String {
    let place = Gateway::of().upstream_with("notes", notes, "isolation: session");
    place.text()
}

async fn greeted(pair: Pairing, mut pipe: Piped) -> Piped {
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{ALL},"clientInfo":{{"name":"raw","version":"1"}}}}}}"#,
        pair.client
    );
    pipe.ask(&hello).await;
    pipe
}

/// The same, whose host has been asked.
async fn asked(pair: Pairing, notes: &Upstream) -> Piped {
    asked_on(started(pair, notes).await).await
}

async fn asked_on(mut pipe: Piped) -> Piped {
    let question = parse(&pipe.until_listed(CALL).await);
    assert_eq!(question["method"], FORM.0, "{question}");
    pipe
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        legacy_client_modern_server = LEGACY_MODERN,
    ] because "in the stateless era nobody is asked by requests";
    async fn a_host_that_ends_its_input_while_it_is_asked_has_not_answered(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let pipe = asked(pair, &notes).await;
        let rest = pipe.rest().await;
        let [withdrawal, answer] = rest.as_slice() else {
            panic!("one answer: {rest:?}");
        };
        let withdrawal = parse(withdrawal);
        assert_eq!(withdrawal["method"], "notifications/cancelled", "{withdrawal}");
        let answer = parse(answer);
        assert_eq!(answer["id"], 4, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(parse(text), json!([{"action": "cancel"}]));
    }
}

#[tokio::test]
async fn a_host_that_goes_away_while_it_is_asked_is_not_waited_for_whatever_the_server_does() {
    let pair = Pairing::LEGACY_LEGACY;
    let notes = asking(pair, &[FORM]);
    notes.now_on("tools/call", |_| {
        Play::live(|turn: Turn| async move {
            turn.ask(FORM.0, FORM.1).await;
            // It is told that nobody answers, and never ends all the same.
            turn.gone().await;
        })
    });
    asked(pair, &notes).await.hang_up().await;
    asked(pair, &notes).await.hang_up_later().await;
    let socket = Piped::start_on_socket(&place(&notes)).await;
    let socket = asked_on(greeted(pair, socket).await).await;
    socket.hang_up_later().await;
}

#[tokio::test]
async fn a_host_that_reads_no_more_is_waited_for_no_more() {
    let pair = Pairing::LEGACY_LEGACY;
    let notes = asking(pair, &[FORM]).prompts(&["p"]);
    let pipe = asked(pair, &notes).await;
    pipe.deafen(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#)
        .await;

    // Nor when its call never ends.
    notes.now_on("tools/call", |_| Play::Hang);
    let mut pipe = started(pair, &notes).await;
    pipe.until_listed(
        r#"{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"notes_p"}}"#,
    )
    .await;
    pipe.say(CALL).await;
    notes.until_heard("tools/call", 2).await;
    pipe.deafen(r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#)
        .await;
}
