//! Streams of sessions: ids, replay, notices, cancelling, log levels, and the transport of 2024-11-05 (PROTOCOL B4, B5).

use http::Method;
use usher::protocol::Era;

use crate::harness::{
    Client, Event, EventStream, Gate, Gateway, Heard, Play, Revision, Upstream, call_result,
    eventually, exchange, parse, tool,
};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;

/// Tools of these names, whose calls tell progress and then wait at the gate.
fn gated(revision: Revision, gate: &Gate) -> Upstream {
    let gate = gate.clone();
    Upstream::http(revision)
        .tools([tool("t"), tool("u")])
        .on("tools/call", move |heard: &Heard| {
            let name = heard.text("name").unwrap();
            let result = Play::Result(call_result(&name));
            Play::Gated(vec![PROGRESS.into()], gate.clone(), Box::new(result))
        })
}

async fn before(notes: &Upstream) -> Gateway {
    Gateway::of().upstream("notes", notes).start().await
}

/// A call that asks for progress, so that its answer is a stream.
fn call(id: &str, name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"notes_{name}","arguments":{{}},"_meta":{{"progressToken":"p{name}"}}}}}}"#
    )
}

fn cancelled(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no longer"}}}}"#
    )
}

fn id(event: &Event) -> String {
    event.id.clone().expect("an id")
}

fn is_answer(event: &Event, to: &str, text: &str) {
    let answer = parse(&event.data);
    assert_eq!(answer["id"].to_string(), to, "{event:?}");
    assert_eq!(answer["result"]["content"][0]["text"], text, "{event:?}");
}

#[tokio::test]
async fn an_answer_whose_client_is_lost_goes_on_and_is_fetched_with_the_last_event_id() {
    let gate = Gate::new();
    let notes = gated(Revision::V2025_11_25, &gate);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let mut stream = client.post_open(&call("7", "t")).await;
    let first = stream.next().await.unwrap();
    assert_eq!((first.data.as_str(), first.id.is_some()), ("", true));
    let progress = stream.next().await.unwrap();
    assert_eq!(parse(&progress.data)["params"]["progressToken"], "pt");
    drop(stream);
    gate.open();
    // It goes on without anybody: its id is taken until it has ended.
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    eventually("the call has ended", async || {
        (client.post(list, &[]).await.status == 200).then_some(())
    })
    .await;

    let mut rest = client.reading(Some(&id(&progress))).await;
    assert_eq!(rest.status, 200);
    let answer = rest.message().await;
    is_answer(&answer, "7", "called t");
    assert_eq!(rest.next().await, None);
    let all = client.reading(Some(&id(&first))).await.rest().await;
    assert_eq!(all, [progress, answer.clone()]);
    // Whoever has the answer and asks for more is not told to come again.
    assert_eq!(client.reading(Some(&id(&answer))).await.status, 410);
    assert!(!gate.is_left());
    assert_eq!(notes.heard("tools/call").len(), 1);
    assert!(notes.heard("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn a_client_that_comes_back_takes_over_a_stream_that_still_runs() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let mut stream = client.post_open(&call("7", "t")).await;
    let progress = stream.message().await;
    // The first connection is still open: as far as the gateway knows, it may be dead.
    let mut second = client.reading(Some(&id(&progress))).await;
    assert_eq!(stream.next().await, None);
    gate.open();
    is_answer(&second.message().await, "7", "called t");
    assert_eq!(second.next().await, None);
}

#[tokio::test]
async fn streams_open_as_their_revision_has_it() {
    for revision in &Revision::ALL[..4] {
        let gate = Gate::new();
        let notes = gated(Revision::V2026_07_28, &gate);
        let gateway = before(&notes).await;
        let client = gateway.client(*revision).await;
        gate.open();
        let events = client.post_open(&call("1", "t")).await.rest().await;
        let primed = *revision >= Revision::V2025_11_25;
        let numbered = *revision >= Revision::V2025_03_26;
        assert_eq!(events.len(), 2 + usize::from(primed), "{revision}");
        assert_eq!(events[0].data.is_empty(), primed, "{revision}");
        for event in &events {
            assert_eq!(event.id.is_some(), numbered, "{revision}: {event:?}");
        }
        // A stream of its own: it is open, and says at least something.
        let stream = client.reading(None).await;
        assert_eq!(stream.status, 200);
        assert_eq!(stream.headers["content-type"], "text/event-stream");
    }
}

#[tokio::test]
async fn an_answer_that_comes_at_once_is_plain_json() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let answer = client.post(&call("1", "t"), &[]).await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.text(), "called t");
}

#[tokio::test]
async fn event_ids_of_another_session_altered_or_made_up_are_refused() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = before(&notes).await;
    let (client, other) = (
        gateway.client(Revision::V2025_11_25).await,
        gateway.client(Revision::V2025_11_25).await,
    );
    gate.open();
    let events = client.post_open(&call("1", "t")).await.rest().await;
    let own = id(&events[0]);
    assert_eq!(client.reading(Some(&own)).await.status, 200);
    let mut wrong = vec![
        own.clone() + "0",
        "0".into(),
        "0-0".into(),
        "x".repeat(5_000),
    ];
    for place in 0..own.len() {
        let mut bytes = own.clone().into_bytes();
        bytes[place] ^= 1;
        wrong.push(String::from_utf8(bytes).unwrap());
    }
    for id in &wrong {
        let refused = client.reading(Some(id)).await;
        assert_eq!(refused.status, 400, "{id}");
    }
    assert_eq!(other.reading(Some(&own)).await.status, 400);
    // Nor does the session of another endpoint get anywhere.
    let mut elsewhere = client.clone();
    elsewhere.path = "/mcp/u/notes".into();
    assert_eq!(elsewhere.reading(Some(&own)).await.status, 404);
}

#[tokio::test]
async fn a_client_that_goes_away_before_any_event_cancels_nothing() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let gate = Gate::new();
        let notes = gated(revision, &gate);
        let gateway = before(&notes).await;
        let client = gateway.client(Revision::V2025_06_18).await;
        // Without a token nothing is told, and the answer waits for its outcome.
        let silent = call("1", "t").replace("_meta", "other");
        {
            let waiting = client.post_open(&silent);
            tokio::select! {
                _ = waiting => panic!("nothing to answer yet"),
                _ = notes.until_heard("tools/call", 1) => {}
            }
        }
        // Its id is taken as long as it runs.
        let again = client.post(&call("1", "t"), &[]).await;
        assert_eq!(
            (again.status, again.refusal().1.as_str()),
            (400, "duplicate_id")
        );
        gate.open();
        eventually("the id is free again", async || {
            gate.open();
            let answer = client.post(&silent, &[]).await;
            (answer.status == 200).then_some(())
        })
        .await;
        assert!(!gate.is_left());
        assert!(notes.heard("notifications/cancelled").is_empty());
    }
}

#[tokio::test]
async fn cancelling_ends_exactly_one_call_and_gives_it_no_answer() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let gates = [Gate::new(), Gate::new()];
        let [first, second] = gates.clone();
        let notes = Upstream::http(revision).tools([tool("t"), tool("u")]).on(
            "tools/call",
            move |heard: &Heard| {
                let name = heard.text("name").unwrap();
                let gate = if name == "t" { &first } else { &second };
                let result = Play::Result(call_result(&name));
                Play::Gated(vec![PROGRESS.into()], gate.clone(), Box::new(result))
            },
        );
        let gateway = before(&notes).await;
        let client = gateway.client(Revision::V2025_11_25).await;
        let stranger = gateway.client(Revision::V2025_11_25).await;
        let mut streams = Vec::new();
        for (id, name) in [("1", "t"), (r#""1""#, "u")] {
            let mut stream = client.post_open(&call(id, name)).await;
            stream.message().await;
            streams.push(stream);
        }
        for nobody in ["2", "null", "\"t\"", "{}"] {
            assert_eq!(client.post(&cancelled(nobody), &[]).await.status, 202);
        }
        assert_eq!(stranger.post(&cancelled("1"), &[]).await.status, 202);
        assert_eq!(client.post(&cancelled("1"), &[]).await.status, 202);
        let (second, first) = (streams.pop().unwrap(), streams.pop().unwrap());
        assert_eq!(first.rest().await, [], "no answer");
        gates[0].left().await;
        gates[1].open();
        let rest = second.rest().await;
        is_answer(rest.last().unwrap(), r#""1""#, "called u");
        assert!(!gates[1].is_left());
        if revision.era() == Era::Legacy {
            let told = notes.until_heard("notifications/cancelled", 1).await;
            let calls = notes.heard("tools/call");
            let of = |name: &str| {
                let call = calls.iter().find(|call| call.text("name").unwrap() == name);
                call.unwrap().id.clone().unwrap()
            };
            assert_eq!(told.value()["requestId"].to_string(), of("t"));
            assert_eq!(notes.heard("notifications/cancelled").len(), 1);
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_that_said_nothing_yet_ends_as_an_empty_stream() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let silent = call("1", "t").replace("_meta", "other");
    let cancelling = async {
        notes.until_heard("tools/call", 1).await;
        client.post(&cancelled("1"), &[]).await
    };
    let (answer, _) = tokio::join!(client.post(&silent, &[]), cancelling);
    assert_eq!((answer.status, answer.frames.len()), (200, 0), "{answer:?}");
    gate.left().await;
}

/// An id and then an end without an answer says: come again. Of a cancelled call nothing comes any more, and clients would ask
/// every second to the end of their session.
#[tokio::test]
async fn nobody_is_invited_to_come_again_for_a_cancelled_call() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let mut stream = client.post_open(&call("1", "t")).await;
    let primed = stream.next().await.unwrap();
    let progress = stream.message().await;
    assert_eq!(client.post(&cancelled("1"), &[]).await.status, 202);
    assert_eq!(stream.rest().await, [], "no answer");
    assert_eq!(client.reading(Some(&id(&progress))).await.status, 410);
    // What it missed it may still have, and nothing after that.
    let missed = client.reading(Some(&id(&primed))).await.rest().await;
    assert_eq!(missed, [progress]);

    let silent = call("2", "t").replace("_meta", "other");
    let cancelling = async {
        notes.until_heard("tools/call", 2).await;
        client.post(&cancelled("2"), &[]).await
    };
    let (silenced, _) = tokio::join!(client.post_open(&silent), cancelling);
    assert_eq!(silenced.rest().await, [], "nor any id");
}

#[tokio::test]
async fn a_stream_of_notices_that_is_forgotten_is_followed_by_a_new_one() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let first = client.reading(None).await.next().await.unwrap();
    // More streams than can be resumed.
    for _ in 0..70 {
        client.reading(None).await.next().await.unwrap();
    }
    for _ in 0..2 {
        let mut again = client.reading(Some(&id(&first))).await;
        assert_eq!(again.status, 200);
        assert_eq!(again.next().await.unwrap().data, "", "primed");
        let told = again.message().await.data;
        assert!(told.contains("notifications/tools/list_changed"), "{told}");
    }
}

#[tokio::test]
async fn ending_a_session_ends_its_running_calls() {
    let gate = Gate::new();
    let notes = gated(Revision::V2025_11_25, &gate);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let mut stream = client.post_open(&call("1", "t")).await;
    let progress = stream.message().await;
    let silent = call("2", "u").replace("_meta", "other");
    let ending = async {
        notes.until_heard("tools/call", 2).await;
        client.other(Method::DELETE).await
    };
    let (waiting, ended) = tokio::join!(client.post(&silent, &[]), ending);
    assert_eq!(ended.status, 204);
    // Its server has it: to a client that hears of a lost session instead, it would be a call to make again.
    assert_eq!(waiting.status, 200);
    assert_eq!(waiting.tool_error(), "outcome_unknown");
    assert_eq!(waiting.id().as_deref(), Some("2"));
    assert_eq!(client.post(&silent, &[]).await.status, 404);
    // So is what is answered on a stream.
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let answer = parse(&rest[0].data);
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&1.into(), &true.into())
    );
    let about = &answer["result"]["_meta"];
    assert_eq!(about["dev.usher/reason"], "outcome_unknown");
    assert!(about["dev.usher/ref"].is_string(), "{answer}");
    notes.until_heard("notifications/cancelled", 2).await;
    assert_eq!(client.reading(Some(&id(&progress))).await.status, 404);
}

fn logging(revision: Revision) -> Upstream {
    let lines = ["debug", "warning", "error"].map(|level| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"{level} line"}}}}"#
        )
    });
    Upstream::http(revision)
        .tools([tool("t")])
        .capabilities(r#"{"tools":{},"logging":{}}"#)
        .on("tools/call", move |_: &Heard| {
            Play::Events(lines.to_vec(), Box::new(Play::Result(call_result("t"))))
        })
}

async fn levels(client: &Client) -> Vec<String> {
    let answer = client.call("notes_t", "{}").await;
    assert_eq!(answer.text(), "called t");
    answer
        .events()
        .iter()
        .map(|event| parse(event)["params"]["level"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn log_lines_come_from_the_level_on_that_the_session_asked_for() {
    let notes = logging(Revision::V2026_07_28);
    let gateway = before(&notes).await;
    let (client, other) = (
        gateway.client(Revision::V2025_11_25).await,
        gateway.client(Revision::V2025_06_18).await,
    );
    let greeting = client.greeting.as_ref().unwrap().value();
    assert!(greeting["capabilities"]["logging"].is_object());
    assert!(levels(&client).await.is_empty(), "nobody asked");
    for (level, heard) in [
        ("warning", &["warning", "error"][..]),
        ("debug", &["debug", "warning", "error"]),
        ("emergency", &[]),
    ] {
        let set = client
            .ask("logging/setLevel", &format!(r#"{{"level":"{level}"}}"#))
            .await;
        assert_eq!(set.result(), "{}");
        assert_eq!(levels(&client).await, heard, "{level}");
        let asked = notes.last("tools/call");
        let asked = asked.meta("io.modelcontextprotocol/logLevel").unwrap();
        assert_eq!(asked, format!("\"{level}\""));
    }
    assert!(levels(&other).await.is_empty(), "another session");
    for wrong in ["{}", r#"{"level":"loud"}"#, r#"{"level":3}"#] {
        let refused = client.ask("logging/setLevel", wrong).await;
        assert_eq!(
            (refused.status, refused.refusal().0),
            (200, -32602),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_level_cannot_be_set_where_no_server_logs() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = before(&notes).await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let greeting = client.greeting.as_ref().unwrap().value();
    assert!(greeting["capabilities"]["logging"].is_null());
    let refused = client.ask("logging/setLevel", r#"{"level":"info"}"#).await;
    assert_eq!((refused.status, refused.refusal().0), (200, -32601));
}

/// A client of the transport of 2024-11-05.
struct Old {
    stream: EventStream,
    messages: String,
    address: std::net::SocketAddr,
}

impl Old {
    async fn open(gateway: &Gateway, path: &str) -> Self {
        let headers = [("accept", "text/event-stream")];
        let mut stream = EventStream::open(gateway.address, Method::GET, path, &headers, "").await;
        assert_eq!(stream.status, 200);
        let first = stream.next().await.unwrap();
        assert_eq!(first.name, "endpoint");
        Self {
            stream,
            messages: first.data,
            address: gateway.address,
        }
    }

    async fn say(&self, body: &str) -> u16 {
        let headers = [("content-type", "application/json")];
        let answer = exchange(
            self.address,
            Method::POST,
            &self.messages,
            &headers,
            body.as_bytes(),
        );
        let answer = answer.await;
        if answer.status == 202 {
            assert_eq!(answer.body, "");
        }
        answer.status
    }

    async fn ask(&mut self, body: &str) -> Event {
        assert_eq!(self.say(body).await, 202);
        self.stream.message().await
    }

    async fn begin(&mut self) {
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}"#;
        let greeting = self.ask(body).await;
        assert_eq!((greeting.name.as_str(), greeting.id), ("message", None));
        let greeting = parse(&greeting.data);
        assert_eq!(greeting["result"]["protocolVersion"], "2024-11-05");
        let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.say(told).await, 202);
    }
}

async fn with_sse(notes: &Upstream) -> Gateway {
    Gateway::of()
        .upstream("notes", notes)
        .setting("listen: { legacy_sse: true }")
        .start()
        .await
}

#[tokio::test]
async fn a_client_of_2024_11_05_is_answered_on_its_one_stream() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = with_sse(&notes).await;
    let mut old = Old::open(&gateway, "/sse").await;
    assert_eq!(
        parse(&old.ask(&call("1", "t")).await.data)["error"]["code"],
        -32600,
        "no handshake yet"
    );
    old.begin().await;
    let progress = old.ask(&call("1", "t")).await;
    assert_eq!(parse(&progress.data)["params"]["progressToken"], "pt");
    // Others are answered meanwhile; and an id is not used twice at once.
    let pong = old.ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
    assert_eq!(parse(&pong.data)["id"], 2);
    let twice = old.ask(&call("1", "u")).await;
    assert_eq!(
        parse(&twice.data)["error"]["data"]["reason"],
        "duplicate_id"
    );
    gate.open();
    is_answer(&old.stream.message().await, "1", "called t");
    // Cancelled, a call gets no answer; the next thing that comes is something else.
    old.ask(&call("3", "u")).await;
    assert_eq!(old.say(&cancelled("3")).await, 202);
    gate.left().await;
    let pong = old.ask(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#).await;
    assert_eq!(parse(&pong.data)["id"], 4);
    // What is no message is told where it was posted.
    assert_eq!(old.say("{").await, 400);
    let modern = gateway.client(Revision::V2026_07_28).await;
    let claimed = modern.spelled("tools/call", r#"{"name":"notes_t"}"#).0;
    assert_eq!(old.say(&claimed).await, 400);
}

/// PROTOCOL D2b
#[tokio::test]
async fn an_answer_that_is_no_message_ends_its_question_on_the_transport_of_2024_11_05() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", |_| {
            let asks =
                r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#;
            Play::Raw(format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{asks}}}"#))
        });
    let gateway = with_sse(&notes).await;
    let mut old = Old::open(&gateway, "/sse").await;
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"old","version":"1"}}}"#;
    old.ask(hello).await;
    let question = parse(&old.ask(&call("1", "t")).await.data);
    assert_eq!(question["method"], "roots/list", "{question}");
    let bad = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":null}}"#,
        question["id"]
    );
    assert_eq!(old.say(&bad).await, 400);
    let end = parse(&old.stream.message().await.data);
    let reason = &end["result"]["_meta"]["dev.usher/reason"];
    assert_eq!(
        (&end["id"], reason.as_str()),
        (&1.into(), Some("input_refused"))
    );
}

// SECURITY REL-7
#[tokio::test]
async fn rel_7_what_runs_when_the_gateway_stops_is_answered_on_the_stream_of_2024_11_05() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = with_sse(&notes).await;
    let mut old = Old::open(&gateway, "/sse").await;
    let mut idle = Old::open(&gateway, "/sse").await;
    old.begin().await;
    old.ask(&call("1", "t")).await;
    let client = async {
        assert_eq!(idle.stream.next().await, None, "it owes nothing");
        gate.open();
        is_answer(&old.stream.message().await, "1", "called t");
        assert_eq!(old.stream.next().await, None);
    };
    tokio::join!(gateway.app.clone().shutdown(), client);
    assert!(!gate.is_left());
}

#[tokio::test]
async fn with_its_stream_the_session_of_2024_11_05_ends() {
    let gate = Gate::new();
    let notes = gated(Revision::V2026_07_28, &gate);
    let gateway = with_sse(&notes).await;
    let mut old = Old::open(&gateway, "/sse").await;
    let other = Old::open(&gateway, "/sse/u/notes").await;
    old.begin().await;
    old.ask(&call("1", "t")).await;
    let Old {
        stream, messages, ..
    } = old;
    drop(stream);
    gate.left().await;
    let headers = [("content-type", "application/json")];
    let body = call("2", "t");
    let post = async |path: &str| {
        exchange(
            gateway.address,
            Method::POST,
            path,
            &headers,
            body.as_bytes(),
        )
        .await
    };
    assert_eq!(post(&messages).await.status, 404);
    // A stream's name opens nothing at another endpoint.
    let elsewhere = other.messages.replace("/messages/u/notes", "/messages");
    assert_ne!(elsewhere, other.messages);
    assert_eq!(post(&elsewhere).await.status, 404);
    assert_eq!(notes.heard("tools/call").len(), 1);
}

#[tokio::test]
async fn the_transport_of_2024_11_05_is_off_unless_it_is_asked_for() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = before(&notes).await;
    for path in ["/sse", "/messages", "/sse/u/notes"] {
        let headers = [("accept", "text/event-stream")];
        let answer = exchange(gateway.address, Method::GET, path, &headers, b"");
        assert_eq!(answer.await.status, 404, "{path}");
    }
}
