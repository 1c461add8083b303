//! Calls at once: how many are under way, who waits and for how long, and when a place is free again.

use tokio::task::JoinHandle;

use super::refused;
use crate::harness::{
    Answer, Client, Gate, Gateway, Heard, Pairing, Play, Revision, Upstream, call_result,
    eventually, parse, reached, tool,
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;

/// A tool whose calls tell progress and then wait at the gate.
fn gated(revision: Revision, gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::http(revision)
        .tools([tool("t"), tool("free")])
        .on("tools/call", move |heard: &Heard| {
            let name = heard.text("name").unwrap();
            let result = Play::Result(call_result(&name));
            if name == "t" {
                Play::Gated(vec![PROGRESS.into()], gate.clone(), Box::new(result))
            } else {
                result
            }
        })
}

async fn behind(notes: &Upstream, setting: &str) -> Gateway {
    Gateway::of()
        .upstream("notes", notes)
        .policies("permit(principal, action, resource);")
        .setting(setting)
        .start()
        .await
}

/// A call of `notes_t`, under way.
fn begin(client: &Client) -> JoinHandle<Answer> {
    started(client, "{}".to_owned())
}

/// The same with these arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "clients of their own, which end with the test"
)]
fn started(client: &Client, arguments: String) -> JoinHandle<Answer> {
    let client = client.clone();
    tokio::spawn(async move { client.call("notes_t", &arguments).await })
}

pairings! {
    async fn a_place_is_free_again_when_the_answer_has_come(pair: Pairing) {
        let gate = Gate::new();
        let notes = gated(pair.upstream, &gate);
        let gateway = behind(&notes, "limits: [{ per: tool, concurrency: 1 }]").await;
        let ana = gateway.client_as("ana", pair.client, "{}").await;
        let first = begin(&ana);
        notes.until_heard("tools/call", 1).await;
        let over = ana.call("notes_t", "{}").await;
        assert_eq!(over.tool_error(), "overloaded");
        assert_eq!(over.value()["_meta"]["dev.usher/rule"], "1 at once per tool");
        assert_eq!(over.value()["_meta"]["dev.usher/retryAfterMs"], 1_000);
        assert_eq!(ana.call("notes_free", "{}").await.text(), "called free");
        gate.open();
        assert_eq!(first.await.unwrap().text(), "called t");
        gate.open();
        assert_eq!(ana.call("notes_t", "{}").await.text(), "called t");
    }
}

/// SECURITY REL-5
#[tokio::test]
async fn a_stream_holds_its_place_until_it_ends_or_is_dropped() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = behind(&notes, "limits: [{ per: [], concurrency: 2 }]").await;
    let ana = gateway.client_as("ana", Revision::V2026_07_28, "{}").await;
    let call = ana.call("notes_t", "{}").meta(r#""progressToken":"p""#);
    let mut stream = call.begin().await;
    assert!(stream.hear().await.contains("notifications/progress"));
    let second = begin(&ana);
    notes.until_heard("tools/call", 2).await;
    refused(
        &ana.call("notes_free", "{}").await,
        429,
        -31006,
        "overloaded",
        "2 at once",
    );
    drop(stream);
    eventually("its place is free", || async {
        (ana.call("notes_free", "{}").await.status == 200).then_some(())
    })
    .await;
    gate.open();
    assert_eq!(second.await.unwrap().text(), "called t");
}

#[tokio::test]
async fn those_who_wait_go_on_in_turn_and_too_many_are_refused() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = behind(
        &notes,
        "limits: [{ per: tool, concurrency: 1, queue: 1, wait: 30s }]",
    )
    .await;
    let ana = gateway.client_as("ana", Revision::V2026_07_28, "{}").await;
    let first = begin(&ana);
    notes.until_heard("tools/call", 1).await;
    let second = begin(&ana);
    // Whichever comes last finds the line full.
    let third = begin(&ana);
    let (refused, waiting) = {
        let (mut second, mut third) = (second, third);
        tokio::select! {
            refused = &mut second => (refused.unwrap(), third),
            refused = &mut third => (refused.unwrap(), second),
        }
    };
    assert_eq!(refused.tool_error(), "overloaded");
    gate.open();
    gate.open();
    assert_eq!(first.await.unwrap().text(), "called t");
    assert_eq!(waiting.await.unwrap().text(), "called t");
}

/// The acceptance of issue 5: fairness between two principals under overload.
#[tokio::test]
async fn a_principal_that_floods_an_upstream_leaves_another_every_other_turn() {
    let gate = Gate::new();
    let notes = {
        let gate = gate.clone();
        Upstream::http(Revision::V2026_07_28).tools([tool("t")]).on(
            "tools/call",
            move |heard: &Heard| {
                let who = parse(&heard.arguments())["who"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                Play::Gated(
                    Vec::new(),
                    gate.clone(),
                    Box::new(Play::Result(call_result(&who))),
                )
            },
        )
    };
    let gateway = Gateway::of()
        .upstream_with("notes", &notes, "concurrency: 1")
        .policies("permit(principal, action, resource);")
        .setting("bounds: { queue: { length: 8, time: 60s } }")
        .start()
        .await;
    let of = async |who: &str| gateway.client_as(who, Revision::V2026_07_28, "{}").await;
    let (loud, quiet) = (of("loud").await, of("quiet").await);
    let call = |client: &Client, who: &str| started(client, format!(r#"{{"who":"{who}"}}"#));
    let mut calls = vec![call(&loud, "loud")];
    notes.until_heard("tools/call", 1).await;
    // Twenty more than the line holds: twelve are refused at once.
    let mut flood: Vec<_> = (0..20).map(|_| call(&loud, "loud")).collect();
    let mut refusals = 0;
    while refusals < 12 {
        let (over, _, rest) = futures_util::future::select_all(flood).await;
        assert_eq!(over.unwrap().tool_error(), "overloaded");
        (flood, refusals) = (rest, refusals + 1);
    }
    // Four of the other come in all the same, and as many of the flood give way.
    calls.extend((0..4).map(|_| call(&quiet, "quiet")));
    while refusals < 16 {
        let (over, _, rest) = futures_util::future::select_all(flood).await;
        assert_eq!(over.unwrap().tool_error(), "overloaded");
        (flood, refusals) = (rest, refusals + 1);
    }
    calls.append(&mut flood);
    for _ in 0..calls.len() {
        gate.open();
    }
    for call in calls {
        call.await.unwrap().result();
    }
    let turns: Vec<String> = notes
        .heard("tools/call")
        .iter()
        .map(|heard| {
            parse(&heard.arguments())["who"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(turns.len(), 9);
    // The first was under way; of the eight that waited each has every other turn.
    for pair in turns[1..].chunks(2) {
        assert_ne!(pair[0], pair[1], "{turns:?}");
    }
}

/// SECURITY 6: requests in flight of one principal, of one principal to one upstream, in the process.
#[tokio::test]
async fn fixed_bounds_of_requests_in_flight_hold_at_the_limit_and_one_more() {
    for (bound, status, rule) in [
        ("principal: 2", 429, "requests in flight of one principal"),
        ("process: 2", 503, "requests in flight"),
        (
            "principal_upstream: 2",
            200,
            "requests in flight of one principal to one server",
        ),
    ] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let gate = Gate::new();
            let notes = gated(Revision::V2026_07_28, &gate);
            let gateway = behind(&notes, &format!("bounds: {{ in_flight: {{ {bound} }} }}")).await;
            let ana = gateway.client_as("ana", revision, "{}").await;
            let first = begin(&ana);
            notes.until_heard("tools/call", 1).await;
            // One less than the limit: there is room.
            assert_eq!(ana.call("notes_free", "{}").await.text(), "called free");
            let second = begin(&ana);
            notes.until_heard("tools/call", 3).await;
            let over = ana.call("notes_free", "{}").await;
            if status == 200 {
                assert_eq!(over.tool_error(), "overloaded");
                assert_eq!(over.value()["_meta"]["dev.usher/rule"], rule);
            } else {
                refused(&over, status, -31006, "overloaded", rule);
            }
            gate.open();
            gate.open();
            first.await.unwrap().result();
            second.await.unwrap().result();
            assert_eq!(ana.call("notes_free", "{}").await.text(), "called free");
        }
    }
}

/// SECURITY 6: requests in flight to one upstream, whoever makes them, and those that wait for it among them.
#[tokio::test]
async fn requests_in_flight_to_one_server_are_as_many_as_were_set_and_no_more() {
    // How many of three are under way; the others wait.
    for at_once in [3, 1] {
        let gate = Gate::new();
        let notes = gated(Revision::V2026_07_28, &gate);
        let other = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, &format!("concurrency: {at_once}"))
            .upstream("other", &other)
            .policies("permit(principal, action, resource);")
            .setting("bounds: { in_flight: { upstream: 3 }, queue: { time: 60s } }")
            .start()
            .await;
        let mut clients = Vec::new();
        for who in ["ana", "bob", "eve", "zoe"] {
            clients.push(gateway.client_as(who, Revision::V2026_07_28, "{}").await);
        }
        let before = reached("in_flight.upstream");
        let mut calls = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            calls.push(begin(client));
            notes
                .until_heard("tools/call", at_once.min(number + 1))
                .await;
        }
        // One less and just as many have room; of four it is whoever comes last that has none.
        let (over, _, calls) = futures_util::future::select_all(calls).await;
        assert_eq!(over.unwrap().tool_error(), "overloaded");
        assert!(reached("in_flight.upstream") > before);
        assert_eq!(notes.heard("tools/call").len(), at_once);
        // Of another server nothing is in flight.
        assert_eq!(clients[0].call("other_t", "{}").await.text(), "called t");
        for _ in &calls {
            gate.open();
        }
        for call in calls {
            assert_eq!(call.await.unwrap().text(), "called t");
        }
        assert_eq!(notes.heard("tools/call").len(), 3);
        assert_eq!(
            clients[0].call("notes_free", "{}").await.text(),
            "called free"
        );
    }
}
