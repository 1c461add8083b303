//! Bounds that an operator sets hold: one less passes, just as much passes, one more is refused and counted (SECURITY 6).
//!
//! Deliberately absent: what is seen beside the code (times, sizes of streams, what is kept), and the listener's own (`edge`).

use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::harness::{
    Client, EventStream, Gateway, Heard, PATIENCE, Pairing, Play, Revision, Served, Upstream,
    parse, reached, resource, text_result, tool, within,
};

/// How many values a message has.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(all) => 1 + all.iter().map(values).sum::<usize>(),
        Value::Object(all) => 1 + all.values().map(values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

const JSON: &str =
    "bounds: { json: { depth: 9, values: 100, members: 32, key: 128B, number: 32 } }";

/// Arguments that are so deep in a message, have so many members, so long a name, so long a number.
fn deep(depth: usize) -> String {
    let inner = depth - 3;
    format!(r#"{{"a":{}{}}}"#, "[".repeat(inner), "]".repeat(inner))
}

fn wide(members: usize) -> String {
    let all: Vec<_> = (0..members).map(|n| format!("\"{n}\":1")).collect();
    format!("{{{}}}", all.join(","))
}

fn named(length: usize) -> String {
    format!(r#"{{"{}":1}}"#, "k".repeat(length))
}

fn digits(count: usize) -> String {
    format!(r#"{{"a":{}}}"#, "1".repeat(count))
}

/// Arguments with which a call has so many values.
fn many(client: &Client, count: usize) -> String {
    let list = |n: usize| format!(r#"{{"a":[{}]}}"#, vec!["1"; n].join(","));
    let of = |n: usize| {
        let params = format!(r#"{{"name":"notes_t","arguments":{}}}"#, list(n));
        values(&parse(&client.spelled("tools/call", &params).0))
    };
    list(count - of(0))
}

/// A bound, the reason of a refusal, the most, and arguments that have so much.
type Case<'a> = (&'a str, &'a str, usize, Box<dyn Fn(usize) -> String + 'a>);

pairings! {
    async fn json_of_a_client_holds_what_was_set_and_no_more(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let gateway = Gateway::of().setting(JSON).upstream("notes", &notes).start().await;
        let client = pair.client(&gateway).await;
        let cases: [Case<'_>; 5] = [
            ("json.depth", "too_deep", 9, Box::new(deep)),
            ("json.values", "too_many_values", 100, Box::new(|count| many(&client, count))),
            ("json.members", "too_many_members", 32, Box::new(wide)),
            ("json.key", "key_too_long", 128, Box::new(named)),
            ("json.number", "number_too_long", 32, Box::new(digits)),
        ];
        for (bound, reason, most, arguments) in &cases {
            for fits in [most - 1, *most] {
                let answer = client.call("notes_t", &arguments(fits)).await;
                assert_eq!(answer.text(), "called t", "{bound} {fits}");
            }
            let (heard, before) = (notes.heard("tools/call").len(), reached(bound));
            let answer = client.call("notes_t", &arguments(most + 1)).await;
            assert_eq!(answer.status, 400, "{bound}");
            assert_eq!(answer.refusal(), (-32700, (*reason).to_owned()), "{bound}");
            assert!(reached(bound) > before, "{bound}");
            assert_eq!(notes.heard("tools/call").len(), heard, "{bound} went on");
        }
    }
}

/// A whole answer to a request, of just so many bytes.
fn padded(heard: &Heard, length: usize) -> String {
    let id = heard.id.as_deref().unwrap();
    let frame = |pad: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"fits"}}],"pad":"{pad}"}}}}"#
        )
    };
    frame(&"x".repeat(length - frame("").len()))
}

/// A tool for each length.
fn lengths(notes: Upstream, lengths: [usize; 3]) -> Upstream {
    notes
        .tools(lengths.map(|length| tool(&format!("of_{length}"))))
        .on("tools/call", |heard: &Heard| {
            let name = heard.text("name").unwrap();
            let length = name.trim_start_matches("of_").parse().unwrap();
            Play::Raw(padded(heard, length))
        })
}

pairings! {
    async fn a_message_of_a_server_has_the_bytes_that_were_set_and_no_more(pair: Pairing) {
        for (notes, setting, bound, reason) in [
            (pair.upstream(), "upstream: { message: 4KiB }", "upstream.message", "upstream_too_large"),
            // A process that goes on so is ended.
            (Upstream::pipe(pair.upstream), "stdio: { line: 4KiB }", "stdio.line", "upstream_unavailable"),
        ] {
            let notes = lengths(notes, [4_095, 4_096, 4_097]);
            let gateway = Gateway::of()
                .setting(&format!("bounds: {{ {setting} }}"))
                .upstream("notes", &notes)
                .start()
                .await;
            let client = pair.client(&gateway).await;
            for fits in ["notes_of_4095", "notes_of_4096"] {
                assert_eq!(client.call(fits, "{}").await.text(), "fits", "{setting}");
            }
            let before = reached(bound);
            let answer = client.call("notes_of_4097", "{}").await;
            assert_eq!(answer.tool_error(), reason);
            assert!(reached(bound) > before, "{bound}");
        }
    }
}

pairings! {
    async fn json_of_a_server_holds_what_was_set_and_no_more(pair: Pairing) {
        let structured = |arguments: String| format!(r#"{{"content":[{{"type":"text","text":"fits"}}],"structuredContent":{arguments}}}"#);
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |heard: &Heard| {
            let wanted = heard.value()["arguments"].clone();
            let (what, size) = (wanted["what"].as_str().unwrap(), wanted["size"].as_u64().unwrap() as usize);
            Play::Result(structured(match what {
                "depth" => deep(size),
                "members" => wide(size),
                "key" => named(size),
                _ => digits(size),
            }))
        });
        let gateway = Gateway::of()
            .setting("bounds: { json: { members: 32, key: 128B, number: 32 }, upstream: { depth: 12 } }")
            .upstream("notes", &notes)
            .start()
            .await;
        let client = pair.client(&gateway).await;
        for (what, bound, most) in [
            ("depth", "upstream.depth", 12),
            ("members", "json.members", 32),
            ("key", "json.key", 128),
            ("number", "json.number", 32),
        ] {
            let call = |size: usize| {
                let arguments = format!(r#"{{"what":"{what}","size":{size}}}"#);
                let client = &client;
                async move { client.call("notes_t", &arguments).await }
            };
            for fits in [most - 1, most] {
                assert_eq!(call(fits).await.text(), "fits", "{what} {fits}");
            }
            let before = reached(bound);
            assert_eq!(call(most + 1).await.tool_error(), "upstream_protocol_error", "{what}");
            assert!(reached(bound) > before, "{bound}");
        }
    }
}

/// Asks for so many inputs, with a state of so many bytes as written, until it has asked so often.
fn asks(inputs: usize, state: usize, rounds: usize) -> impl Fn(&Heard) -> Play + Send + Sync {
    let questions: Vec<_> = (0..inputs)
        .map(|n| format!(r#""k{n}":{{"method":"roots/list"}}"#))
        .collect();
    let questions = questions.join(",");
    let asked = std::sync::atomic::AtomicUsize::new(0);
    move |_: &Heard| {
        if asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= rounds {
            return Play::Result(text_result("done"));
        }
        Play::Result(format!(
            r#"{{"resultType":"input_required","inputRequests":{{{questions}}},"requestState":"{}"}}"#,
            "s".repeat(state)
        ))
    }
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_modern_server = MODERN_MODERN,
    ] because "a server of the handshake era has no state, and asks while a call runs";
    async fn a_call_asks_as_much_and_as_often_as_was_set_and_no_more(pair: Pairing) {
        let modern = pair.client_is_modern();
        for (bound, inputs, state, rounds, passes) in [
            ("resume.inputs", 2, 64, 1, true),
            ("resume.inputs", 3, 64, 1, true),
            ("resume.inputs", 4, 64, 1, false),
            ("resume.state", 1, 99, 1, true),
            ("resume.state", 1, 100, 1, true),
            ("resume.state", 1, 101, 1, false),
            ("resume.rounds", 1, 64, 1, true),
            ("resume.rounds", 1, 64, 2, true),
            ("resume.rounds", 1, 64, 3, false),
        ] {
            let notes = pair.upstream().tools([tool("t")]).on("tools/call", asks(inputs, state, rounds));
            let gateway = Gateway::of()
                .setting("bounds: { resume: { inputs: 3, state: 100B, rounds: 2 } }")
                .upstream("notes", &notes)
                .start()
                .await;
            let client = gateway.client_able(pair.client, r#"{"roots":{}}"#).await;
            let before = reached(bound);
            let talk = client
                .call("notes_t", "{}")
                .answering(|_, _| crate::harness::Says::Result(r#"{"roots":[]}"#.to_owned()))
                .await;
            if passes {
                assert_eq!(talk.answer.text(), "done", "{bound} {inputs} {state} {rounds} {modern}");
            } else {
                assert_eq!(talk.answer.tool_error(), "upstream_protocol_error", "{bound}");
                assert!(reached(bound) > before, "{bound}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_has_the_bytes_that_were_set_and_no_more() {
    let notes = Upstream::http(Revision::V2025_11_25).tools([tool("t")]);
    let gateway = Gateway::of()
        .setting("bounds: { http: { body: 1KiB } }")
        .upstream("notes", &notes)
        .start()
        .await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let body = |length: usize| {
        let body = |pad: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"notes_t","arguments":{{"a":"{pad}"}}}}}}"#
            )
        };
        body(&"x".repeat(length - body("").len()))
    };
    for fits in [1_023, 1_024] {
        assert_eq!(client.post(&body(fits), &[]).await.text(), "called t");
    }
    let before = reached("http.body");
    assert_eq!(client.post(&body(1_025), &[]).await.status, 413);
    assert!(reached("http.body") > before);
}

#[tokio::test]
async fn a_cursor_of_a_server_has_the_bytes_that_were_set_and_no_more() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for (length, listed) in [(64, 2), (65, 2), (66, 1)] {
            let before = reached("upstream.cursor");
            // The cursor is the name of the last item told.
            let first = tool(&"n".repeat(length));
            let notes = Upstream::http(revision).tools([first, tool("t")]).paged(1);
            let gateway = Gateway::of()
                .setting("bounds: { upstream: { cursor: 65B } }")
                .upstream("notes", &notes)
                .start()
                .await;
            let client = gateway.client(Revision::V2026_07_28).await;
            assert_eq!(client.tools().await.len(), listed, "{revision} {length}");
            if listed == 1 {
                assert!(reached("upstream.cursor") > before);
            }
        }
    }
}

#[tokio::test]
async fn a_listen_names_as_many_resources_as_was_set_and_no_more() {
    let uris = ["note://1", "note://2", "note://3"];
    let notes = Upstream::http(Revision::V2025_11_25)
        .resources(uris.map(resource))
        .telling();
    let gateway = Gateway::of()
        .setting("bounds: { subscriptions: { addresses: 2 } }")
        .upstream("notes", &notes)
        .start()
        .await;
    let mine = uris.map(|uri| format!("notes+{uri}"));
    let mine: Vec<_> = mine.iter().map(String::as_str).collect();
    let client = gateway.client(Revision::V2026_07_28).await;
    for count in [1, 2] {
        drop(client.watch(&[], &mine[..count]).await);
    }
    let before = reached("subscriptions.addresses");
    let filter = format!(
        r#"{{"notifications":{{"resourceSubscriptions":{}}}}}"#,
        serde_json::to_string(&mine).unwrap()
    );
    let refused = client.ask("subscriptions/listen", &filter).await;
    assert_eq!(
        (refused.status, refused.refusal().1.as_str()),
        (429, "rate_limited")
    );
    assert!(reached("subscriptions.addresses") > before);
    // And a session of the older era is subscribed to no more.
    let client = gateway.client(Revision::V2025_11_25).await;
    let before = reached("subscriptions.addresses");
    for (number, uri) in mine.iter().enumerate() {
        let params = format!(r#"{{"uri":"{uri}"}}"#);
        let answer = client.ask("resources/subscribe", &params).await;
        if number < 2 {
            answer.result();
        } else {
            assert_eq!(answer.refusal().1, "rate_limited");
        }
    }
    assert!(reached("subscriptions.addresses") > before);
}

/// SECURITY 6: sessions of one caller and of all, and as many streams of 2024-11-05.
#[tokio::test]
async fn as_many_streams_of_2024_11_05_are_open_as_was_set_and_no_more() {
    for (bounds, bound) in [
        ("per_principal: 2, total: 9", "sessions.per_principal"),
        ("per_principal: 9, total: 2", "sessions.total"),
    ] {
        let notes = Upstream::http(Revision::V2026_07_28);
        let gateway = Gateway::of()
            .setting("listen: { legacy_sse: true }")
            .setting(&format!("bounds: {{ sessions: {{ {bounds} }} }}"))
            .upstream("notes", &notes)
            .start()
            .await;
        let headers = [("accept", "text/event-stream")];
        let open =
            async || EventStream::open(gateway.address, Method::GET, "/sse", &headers, "").await;
        let before = reached(bound);
        let held = [open().await, open().await];
        assert!(held.iter().all(|stream| stream.status == 200));
        assert_eq!(open().await.status, 429);
        assert!(reached(bound) > before, "{bound}");
        drop(held);
    }
}

#[tokio::test]
async fn a_check_against_a_schema_takes_the_time_that_was_set_and_no_more() {
    let schema = r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"items":{"type":"integer"}}}}}"#;
    let notes = Upstream::http(Revision::V2026_07_28).tools([schema]);
    let gateway = Gateway::of()
        .setting("bounds: { catalog: { schema_time: 1ms } }")
        .upstream("notes", &notes)
        .start()
        .await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let list = |count: usize| format!(r#"{{"a":[{}]}}"#, vec!["1"; count].join(","));
    // Two steps for each element, 25,000 in a millisecond.
    assert_eq!(
        client.call("notes_t", &list(12_000)).await.text(),
        "called t"
    );
    let before = reached("catalog.schema_time");
    let refused = client.call("notes_t", &list(13_000)).await;
    assert_eq!(refused.tool_error(), "invalid_arguments");
    assert!(reached("catalog.schema_time") > before);
}

/// SECURITY REL-9: whoever opens connections leaves others some, however few files there may be.
#[tokio::test]
async fn rel_9_where_few_files_may_be_open_one_peer_does_not_have_them_all() {
    let served = Served::start_with_files("audit: off\n", 128).await;
    let mut held = Vec::new();
    for _ in 0..200 {
        held.push(TcpStream::connect(served.address).await.unwrap());
    }
    // 64 connections are taken at once, 16 of one peer; the others are closed at once.
    let mut closed = 0;
    for stream in &mut held {
        let ended = timeout(Duration::from_millis(20), stream.read_u8()).await;
        closed += usize::from(ended.is_ok());
    }
    assert!(closed >= 200 - 16, "{closed}");
    // Somebody else is served meanwhile.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(served.address).await.unwrap();
    other
        .write_all(b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 12];
    within(PATIENCE, "it is answered", other.read_exact(&mut answer))
        .await
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 404");
    drop(held);
}
