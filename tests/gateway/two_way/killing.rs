//! A server that dies in the middle: everybody who waits gets one answer, and nothing is executed twice (acceptance 5).

use serde_json::json;

use super::{ALL, FORM, NAMED, asking, asking_at, response, state_of, usual};
use crate::harness::{
    Answer, Gateway, Pairing, Play, Turn, Upstream, again, call_result, eventually, member,
    members, parse, tool,
};

/// One response, whatever it says, and nothing after it.
fn answered_once(answer: &Answer) -> String {
    let responses = answer
        .frames
        .iter()
        .filter(|frame| member(frame, "method").is_none());
    assert_eq!(responses.count(), 1, "{answer:?}");
    match member(answer.message(), "error") {
        Some(error) => error,
        None => {
            let result = answer.value();
            assert_eq!(result["isError"], true, "{result}");
            result.to_string()
        }
    }
}

/// The server is there again and is called as if nothing had been.
async fn returns(gateway: &Gateway, client: &crate::harness::Client) {
    eventually("the server is back", || async {
        let well = gateway.state("notes") == "ready";
        let answer = client.call("notes_t", "{}").await;
        (well && answer.message().contains("called t")).then_some(())
    })
    .await;
}

pairings! {
    /// Feature: Lost upstream stream mid-call
    async fn a_call_whose_stream_breaks_is_answered_once_and_not_made_again(pair: Pairing) {
        for piped in [false, true] {
            let server = if piped { Upstream::pipe(pair.upstream) } else { pair.upstream() };
            let notes = server.tools([tool("slow"), tool("t")]).on("tools/call", |heard| {
                if heard.text("name").as_deref() == Some("t") {
                    return Play::Result(call_result("t"));
                }
                Play::live(|turn: Turn| async move {
                    turn.progress(1, "begun").await;
                    turn.gone().await;
                })
            });
            let (gateway, client) = pair.alone(&notes).await;
            let ask = client.call("notes_slow", "{}").meta(r#""progressToken":"p""#);
            let mut talk = ask.begin().await;
            assert!(talk.hear().await.contains("begun"));
            notes.down();
            answered_once(&talk.rest().await);
            notes.up();
            returns(&gateway, &client).await;
            let slow = notes.heard("tools/call").into_iter().filter(|call| call.text("name").as_deref() == Some("slow"));
            assert_eq!(slow.count(), 1, "executed again");
        }
    }
}

pairings! {
    /// Feature: Server lost while the client is asked
    async fn a_client_that_answers_a_dead_server_gets_one_honest_answer(pair: Pairing) {
        for piped in [false, true] {
            let server = if piped { Upstream::pipe(pair.upstream) } else { pair.upstream() };
            let notes = asking_at(server, pair, &[FORM]);
            let gateway = Gateway::of()
                .upstream_with("notes", &notes, "isolation: session")
                .start()
                .await;
            let client = gateway.client_able(pair.client, ALL).await;
            let answer = if pair.client_is_modern() {
                let params = r#"{"name":"notes_ask","arguments":{}}"#;
                let first = client.ask("tools/call", params).await.result();
                let (key, _) = members(&member(&first, "inputRequests").unwrap()).remove(0);
                notes.down();
                let retry = again(params, &response(&key, NAMED), Some(&state_of(&first)));
                client.ask("tools/call", &retry).await
            } else {
                let mut talk = client.call("notes_ask", "{}").begin().await;
                let asked = talk.hear().await;
                notes.down();
                let taken = client.reply(&asked, ("result", NAMED)).await;
                // The question may have been taken back already.
                assert!([202, 400].contains(&taken.status), "{taken:?}");
                talk.rest().await
            };
            answered_once(&answer);
            notes.up();
            returns(&gateway, &client).await;
            let asks = notes.heard("tools/call").into_iter().filter(|call| call.text("name").as_deref() == Some("ask"));
            assert_eq!(asks.count(), 1, "executed again");
        }
    }
}

pairings! {
    /// Feature: Server lost while the client is asked
    async fn a_server_that_asks_after_it_was_killed_asks_as_if_nothing_had_been(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (gateway, client) = pair.able(&notes, ALL).await;
        notes.down();
        notes.up();
        returns(&gateway, &client).await;
        let talk = client.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(parse(&talk.answer.text()), json!([parse(NAMED)]));
    }
}

pairings! {
    /// Feature: Server lost with many waiting
    async fn everybody_who_waits_for_a_dead_server_is_answered(pair: Pairing) {
        let notes = pair.upstream().tools([tool("slow"), tool("t")]).on("tools/call", |heard| {
            match heard.text("name").as_deref() {
                Some("t") => Play::Result(call_result("t")),
                _ => Play::Hang,
            }
        });
        let (gateway, client) = pair.alone(&notes).await;
        let waiting = futures_util::future::join_all((0..20).map(|_| async {
            client.call("notes_slow", "{}").await
        }));
        let killing = async {
            notes.until_heard("tools/call", 20).await;
            notes.down();
        };
        let (answers, ()) = tokio::join!(waiting, killing);
        for answer in &answers {
            answered_once(answer);
        }
        notes.up();
        returns(&gateway, &client).await;
        let slow = notes.heard("tools/call").into_iter().filter(|call| call.text("name").as_deref() == Some("slow"));
        assert_eq!(slow.count(), 20);
    }
}
