//! Clients that share a server and collide in everything never get a byte of each other's (acceptance 3).
//!
//! Every payload of a client holds its mark: arguments, results, progress, questions, answers, watched addresses and what is
//! told of them. There are ten thousand calls in all, and ids, tokens and names are the same for everybody. While they run,
//! both clients watch a resource of their own, and the server tells of both in turn.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::ALL;
use crate::harness::{
    Authority, Client, Gateway, Heard, Pairing, Play, Says, Turn, Upstream, Watch, member, parse,
    quote, resource, text_result, tool,
};

/// Calls of one client in one pairing; four pairings and two clients make ten thousand.
const CALLS: usize = 1_250;
/// Calls of one client at the same time.
const AT_ONCE: usize = 8;
/// Every so many calls, the server asks back.
const ASKS: usize = 25;
/// Changes that each client hears of at least.
const CHANGES: usize = 50;
/// What each client puts into everything it says.
const MARKS: [&str; 2] = ["mark-of-one", "mark-of-two"];

/// A server that says back what it is told: in progress, in questions and in results.
fn echo(pair: Pairing) -> Upstream {
    let modern = pair.upstream_is_modern();
    let watched = MARKS.map(|mark| resource(&format!("note://{mark}")));
    let server = pair
        .upstream()
        .tools([tool("echo"), tool("ask")])
        .resources(watched)
        .telling();
    server.on("tools/call", move |heard: &Heard| {
        let said = heard.arguments();
        let asks = heard.text("name").as_deref() == Some("ask");
        let answers = member(&heard.params, "inputResponses");
        let form = format!(
            r#"{{"mode":"form","message":{},"requestedSchema":{{"type":"object","properties":{{"said":{{"type":"string"}}}}}}}}"#,
            quote(&said)
        );
        Play::live(move |turn: Turn| {
            let (said, form, answers) = (said.clone(), form.clone(), answers.clone());
            async move {
                turn.progress(1, &said).await;
                let mut got = answers.clone().unwrap_or_default();
                if asks && modern && answers.is_none() {
                    let result = format!(
                        r#"{{"resultType":"input_required","inputRequests":{{"q":{{"method":"elicitation/create","params":{form}}}}},"requestState":{}}}"#,
                        quote(&said)
                    );
                    return turn.result(&result).await;
                }
                if asks && !modern {
                    got = turn.ask("elicitation/create", &form).await.to_string();
                }
                turn.result(&text_result(&format!("{said} {got}"))).await;
            }
        })
    })
}

/// Nothing of the other's, and something of one's own.
fn mine(text: &str, own: &str, other: &str) {
    assert!(!text.contains(other), "got what is another's: {text}");
    assert!(text.contains(own), "got what is nobody's: {text}");
}

async fn works(client: &Client, own: &str, other: &str) {
    let calls = (0..CALLS).map(|n| async move {
        let arguments = format!(r#"{{"mark":"{own}","n":{}}}"#, n % 7);
        // Everybody's ids and tokens are the same few.
        let id = (n % AT_ONCE + 1).to_string();
        let token = format!(r#""progressToken":{id}"#);
        if n % ASKS == 0 {
            let talk = client
                .call("notes_ask", &arguments)
                .id(&format!("\"ask-{n}\""))
                .meta(&token)
                .answering(|_, params: &Value| {
                    mine(params["message"].as_str().unwrap(), own, other);
                    Says::Result(format!(
                        r#"{{"action":"accept","content":{{"said":"{own}"}}}}"#
                    ))
                })
                .await;
            assert_eq!(talk.asked.len(), 1);
            for frame in &talk.answer.frames {
                mine(frame, own, other);
            }
            return;
        }
        // Ids of requests in flight must differ within one client.
        let answer = client
            .call("notes_echo", &arguments)
            .id(&n.to_string())
            .meta(&token)
            .await;
        for frame in &answer.frames {
            mine(frame, own, other);
        }
        assert_eq!(answer.id(), Some(n.to_string()));
        let told = answer
            .events()
            .iter()
            .filter(|event| event.contains("progress"))
            .count();
        assert_eq!(told, 1);
        assert_eq!(
            parse(&answer.events()[0])["params"]["progressToken"].to_string(),
            id
        );
        assert!(answer.text().starts_with(&arguments), "{}", answer.text());
    });
    stream::iter(calls)
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<()>>()
        .await;
}

/// Tells of both resources in turn for as long as the calls go on. Each client hears of its own, in order, and of nothing
/// else.
async fn news(notes: &Upstream, ears: &mut [Watch; 2], over: &AtomicBool) {
    let mut n = 0;
    while n < CHANGES || !over.load(Ordering::Relaxed) {
        for mark in MARKS {
            let watched = format!("note://{mark}");
            notes.updated(&watched, &format!("{watched}/{n}")).await;
        }
        for (ear, mark) in ears.iter_mut().zip(MARKS) {
            let (method, params) = ear.change().await;
            assert_eq!(method, "resources/updated", "{params}");
            assert_eq!(params["uri"], format!("notes+note://{mark}/{n}"));
        }
        n += 1;
    }
}

/// Two principals, who share nothing but the server.
async fn strangers(gateway: &Gateway, authority: &Authority, pair: Pairing) -> [Client; 2] {
    let stranger = async |name| {
        let token = authority.token(name, "");
        let headers = [("authorization", format!("Bearer {token}"))];
        Client::connect_with(gateway.address, "/mcp", pair.client, ALL, &headers)
            .await
            .unwrap()
    };
    [stranger("ana").await, stranger("bob").await]
}

pairings! {
    /// Feature: Isolation
    async fn two_clients_who_collide_in_everything_never_meet(pair: Pairing) {
        let notes = echo(pair);
        let authority = Authority::start().await;
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .auth(authority.spec())
            .start()
            .await;
        let clients = strangers(&gateway, &authority, pair).await;
        let [one, two] = &clients;
        let mut ears = [
            one.watch(&[], &["notes+note://mark-of-one"]).await,
            two.watch(&[], &["notes+note://mark-of-two"]).await,
        ];
        let over = AtomicBool::new(false);
        let calls = async {
            tokio::join!(works(one, MARKS[0], MARKS[1]), works(two, MARKS[1], MARKS[0]));
            over.store(true, Ordering::Relaxed);
        };
        tokio::join!(calls, news(&notes, &mut ears, &over));
        let rounds = if pair.upstream_is_modern() { 2 * CALLS / ASKS } else { 0 };
        let heard = notes.heard("tools/call");
        assert_eq!(heard.len(), 2 * CALLS + rounds, "each was executed once");
        for call in heard {
            let both = MARKS.iter().all(|mark| call.params.contains(mark));
            assert!(!both, "{}", call.params);
        }
    }
}
