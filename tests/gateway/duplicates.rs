//! A member name that stands twice in what an upstream says is refused, wherever it stands (SECURITY MSG-2, EGR-11).
//!
//! It is read neither as the first nor as the last of the two.

use std::time::Duration;

use crate::harness::{
    Answer, Client, Gateway, Pairing, Play, Revision, Upstream, call_result, eventually, parse,
    tool,
};

/// The same name, spelled in two ways.
const TWICE: &str = r#""b":1,"\u0062":2"#;

/// Every way there is to a server of this pairing.
fn servers(pair: Pairing) -> Vec<Upstream> {
    let mut all = vec![pair.upstream(), Upstream::pipe(pair.upstream)];
    if !pair.upstream_is_modern() {
        all.push(Upstream::sse());
    }
    all
}

fn progress(more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":1{more}}}}}"#
    )
}

/// A response with this member.
fn response(member: &str) -> Play {
    Play::Raw(format!(r#"{{"jsonrpc":"2.0","id":$id,{member}}}"#))
}

/// A call, and what was told on the way to its answer.
async fn call(client: &Client) -> Answer {
    client
        .call("notes_t", "{}")
        .meta(r#""progressToken":7"#)
        .await
}

/// What fails is this call alone.
async fn refuses(notes: &Upstream, client: &Client, what: &str, play: Play) {
    let before = notes.heard("tools/call").len();
    notes.now_on("tools/call", move |_| play.clone());
    let answer = call(client).await;
    assert_eq!(answer.status, 200, "{what}: {answer:?}");
    assert_eq!(
        answer.tool_error(),
        "upstream_protocol_error",
        "{what}: {answer:?}"
    );
    assert!(!answer.body.contains("\\u0062"), "{what}: {answer:?}");
    assert_eq!(
        notes.heard("tools/call").len(),
        before + 1,
        "{what}: a tool call is sent at most once"
    );
    notes.as_usual("tools/call");
    assert_eq!(call(client).await.text(), "called t", "{what}");
}

pairings! {
    async fn msg_2_a_repeated_name_in_a_result_or_an_error_is_the_upstreams_fault_on_every_way(pair: Pairing) {
        for notes in servers(pair) {
            let notes = notes.tools([tool("t")]).prompts(&["p"]);
            let (_gateway, client) = pair.alone(&notes).await;
            for (what, member) in [
                ("a result", format!(r#""result":{{"content":[],{TWICE}}}"#)),
                ("deep in a result", format!(r#""result":{{"content":[],"x":[{{"y":{{{TWICE}}}}}]}}"#)),
                ("two results", r#""result":{"content":[]},"result":{"content":[]}"#.to_owned()),
                ("an error", r#""error":{"code":1,"code":2,"message":"x"}"#.to_owned()),
                ("the data of an error", format!(r#""error":{{"code":1,"message":"x","data":{{{TWICE}}}}}"#)),
            ] {
                refuses(&notes, &client, what, response(&member)).await;
            }
            for (method, params, member) in [
                ("prompts/get", r#"{"name":"notes_p"}"#, format!(r#""result":{{"messages":[],{TWICE}}}"#)),
                ("resources/read", r#"{"uri":"notes+n://a"}"#, format!(r#""result":{{"contents":[],"_meta":{{{TWICE}}}}}"#)),
            ] {
                notes.now_on(method, move |_| response(&member));
                let answer = client.ask(method, params).await;
                assert_eq!(answer.refusal().1, "upstream_protocol_error", "{method}: {answer:?}");
            }
        }
    }
}

pairings! {
    async fn msg_2_a_repeated_name_in_a_later_event_of_an_answer_ends_it(pair: Pairing) {
        for notes in servers(pair) {
            let notes = notes.tools([tool("t")]);
            let (_gateway, client) = pair.alone(&notes).await;
            let broken = response(&format!(r#""result":{{"content":[],{TWICE}}}"#));
            let play = Play::Events(vec![progress("")], Box::new(broken));
            notes.now_on("tools/call", move |_| play.clone());
            let answer = call(&client).await;
            // What was sound was told before.
            assert_eq!(answer.events().len(), 1, "{answer:?}");
            assert_eq!(answer.tool_error(), "upstream_protocol_error");
            notes.as_usual("tools/call");
            assert_eq!(call(&client).await.text(), "called t");
        }
    }
}

pairings! {
    async fn msg_2_a_notification_with_a_repeated_name_is_never_passed_on(pair: Pairing) {
        for (at, notes) in servers(pair).into_iter().enumerate() {
            let notes = notes.tools([tool("t")]);
            let (_gateway, client) = pair.alone(&notes).await;
            for repeated in [
                r#","progress":2"#.to_owned(),
                r#","message":"a","mess\u0061ge":"b""#.to_owned(),
                format!(r#","_meta":{{{TWICE}}}"#),
            ] {
                let events = vec![progress(""), progress(&repeated), progress(r#","message":"last""#)];
                let play = Play::Events(events, Box::new(Play::Result(call_result("t"))));
                notes.now_on("tools/call", move |_| play.clone());
                let answer = call(&client).await;
                let told: Vec<_> = answer.events().iter().map(|event| parse(event)).collect();
                assert_eq!(told[0]["params"]["progressToken"], 7, "{answer:?}");
                if at == 0 {
                    // A stream that answers one request is broken as a whole.
                    assert_eq!(told.len(), 1, "{answer:?}");
                    assert_eq!(answer.tool_error(), "upstream_protocol_error");
                } else {
                    // A channel that many share is not: what cannot be read answers nobody.
                    assert_eq!(told.len(), 2, "{answer:?}");
                    assert_eq!(told[1]["params"]["message"], "last");
                    assert_eq!(answer.text(), "called t");
                }
            }
        }
    }
}

pairings! {
    async fn msg_2_a_page_with_a_repeated_name_is_no_page_and_the_last_good_list_stays(pair: Pairing) {
        for notes in servers(pair) {
            let notes = notes.tools([tool("a"), tool("b"), tool("c")]).paged(2);
            let gateway =
                Gateway::of().upstream("notes", &notes).polling(Duration::from_millis(20)).start().await;
            let client = pair.client(&gateway).await;
            let good = ["notes_a", "notes_b", "notes_c"];
            assert_eq!(client.tools().await, good);
            let one = tool("x");
            for (what, first, second) in [
                ("in a definition", format!(r#"{{"tools":[{{{TWICE},{}],"nextCursor":"mine"}}"#, &one[1..]), r#"{"tools":[]}"#.to_owned()),
                ("beside them", format!(r#"{{"tools":[{one}],"tools":[]}}"#), "{}".to_owned()),
                ("on the second page", format!(r#"{{"tools":[{one}],"nextCursor":"mine"}}"#), format!(r#"{{"tools":[],{TWICE}}}"#)),
            ] {
                let heard = notes.heard("tools/list").len();
                notes.now_on("tools/list", move |heard| {
                    match heard.text("cursor").as_deref() {
                        None => Play::Result(first.clone()),
                        Some("mine") => Play::Result(second.clone()),
                        // Whoever read the first page before goes on in a list that is gone.
                        Some(_) => Play::Error(r#"{"code":-32602,"message":"no such cursor"}"#.to_owned()),
                    }
                });
                notes.until_heard("tools/list", heard + 4).await;
                assert_eq!(client.tools().await, good, "{what}");
            }
            notes.offer(0, [tool("d")]);
            notes.as_usual("tools/list");
            eventually("the next good list is there", || async { (client.tools().await == ["notes_d"]).then_some(()) }).await;
        }
    }
}

/// Nothing is known of a server whose first list cannot be read, and others do not care.
#[tokio::test]
async fn msg_2_a_server_whose_first_page_has_a_repeated_name_offers_nothing() {
    let notes = Upstream::http(Revision::V2026_07_28).on("tools/list", |_| {
        Play::Result(format!(r#"{{"tools":[{}],{TWICE}}}"#, tool("t")))
    });
    let other = Upstream::http(Revision::V2025_11_25).tools([tool("t")]);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("other", &other)
        .start()
        .await;
    for revision in Revision::ALL {
        let client = gateway.client(revision).await;
        assert_eq!(client.tools().await, ["other_t"], "{revision}");
        assert_eq!(client.call("other_t", "{}").await.text(), "called t");
    }
}
