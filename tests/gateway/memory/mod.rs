//! The budget of memory: what is refused as it fills up, and that it empties (SECURITY 6, REL-3, REL-9).

mod shares;
mod slow;

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use http::{Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use usher::tasks::Tasks;

use crate::{
    audit::events,
    harness::{
        Client, Heard, Play, Revision, Served, Upstream, eventually, exchange, member, open, parse,
        text_result, tool,
    },
    splicing::UNSEEN,
};

/// The least budget that requests of 16 MiB leave.
const BUDGET: usize = 64 << 20;
/// How many clients fill it.
const FILLERS: usize = 4;

/// What a message comes with, whatever it says.
const ANY: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

/// Bytes of a result of the tool `big`: more than what the system takes of it for a client that does not read.
const BIG: usize = 25 << 20;

/// A server with a small tool, one with big results, and one that asks first.
fn notes() -> Upstream {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t"), tool("big"), tool("asks")]);
    notes.on("tools/call", |heard: &Heard| {
        let answered = member(&heard.params, "inputResponses").is_some();
        match heard.text("name").as_deref() {
            Some("big") => Play::Result(text_result(&"x".repeat(BIG))),
            Some("asks") if !answered => Play::Result(ASKS.into()),
            _ => Play::Result(text_result("called t")),
        }
    })
}

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"}"#;

async fn served(notes: &Upstream, more: &str) -> Served {
    let place = notes.place();
    Served::start(&format!(
        "bounds: {{ memory: 64MiB, http: {{ {more}\nupstreams: {{ notes: {{ {place} }} }}\n"
    ))
    .await
}

/// An address that is nobody's.
fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
}

/// Whether a client sees its tools.
async fn sees_tools(client: &Client) {
    eventually("the tools are there", async || {
        (client.tools().await.len() == 3).then_some(())
    })
    .await;
}

/// The answer to a call of the tool `big`, of which nothing is read but its head.
async fn unread(tasks: &Tasks, client: &Client) -> Response<Incoming> {
    let (body, headers) = client.spelled("tools/call", r#"{"name":"notes_big"}"#);
    let own = client.own.iter();
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .chain(own.map(|(name, value)| (*name, &**value)))
        .chain(ANY)
        .collect();
    let (address, body) = (client.address, body.as_bytes());
    open(tasks, address, Method::POST, "/mcp", &headers, body).await
}

/// Whether it is the result, and not an error in its place.
fn is_big(answer: &Response<Incoming>) -> bool {
    answer.body().size_hint().exact() >= Some(BIG as u64)
}

/// What there was no room for.
async fn refusal(answer: Response<Incoming>) -> String {
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(text.to_vec()).unwrap()
}

/// Clients whose requests never end.
struct Fillers(Vec<TcpStream>, usize);

impl Fillers {
    async fn begin(served: &Served) -> Self {
        let mut all = Vec::new();
        for _ in 0..FILLERS {
            let mut stream = TcpStream::connect(served.address).await.unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
                served.address,
                16 << 20
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            all.push(stream);
        }
        Self(all, 0)
    }

    /// Has them hold this part of the budget, in hundredths.
    async fn fill(&mut self, percent: usize) {
        let each = BUDGET / 100 * percent / FILLERS;
        for stream in &mut self.0 {
            // Who is refused is not heard any more.
            let _ = stream.write_all(&vec![b' '; each - self.1]).await;
        }
        self.1 = each;
    }
}

async fn listens(client: &Client) -> u16 {
    let (body, headers) = client.spelled(
        "subscriptions/listen",
        r#"{"notifications":{"toolsListChanged":true}}"#,
    );
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    let asked = client.post(&body, &headers);
    // One that is open has no end.
    timeout(Duration::from_secs(1), asked)
        .await
        .map_or(200, |answer| answer.status)
}

#[tokio::test]
async fn rel_3_as_the_budget_fills_up_streams_then_requests_then_connections_are_refused_until_it_empties()
 {
    let notes = notes();
    let admin = free_address();
    let records = tempfile::tempdir().unwrap();
    let directory = records.path().display();
    let served = served(
        &notes,
        &format!("body_time: 5m, write_stall: 2m }} }}\naudit: {{ dir: '{directory}' }}\nadmin: {{ address: '{admin}' }}"),
    )
    .await;
    let ready = async || {
        let answer = exchange(admin, Method::GET, "/readyz", &[], b"").await;
        (answer.status, parse(&answer.body)["reason"].clone())
    };
    let modern = served.client(Revision::V2026_07_28).await;
    let legacy = served.client(Revision::V2025_11_25).await;
    let roots = r#"{"roots":{}}"#;
    let asked = Client::connect_able(served.address, "/mcp", Revision::V2025_11_25, roots);
    let asked = asked.await.unwrap();
    sees_tools(&modern).await;
    let mut fillers = Fillers::begin(&served).await;

    fillers.fill(70).await;
    assert_eq!(ready().await, (200, Value::Null));
    assert_eq!(modern.call("notes_t", "{}").await.text(), "called t");
    assert_eq!(listens(&modern).await, 200);

    fillers.fill(85).await;
    eventually("streams are refused", async || {
        (listens(&modern).await == 503).then_some(())
    })
    .await;
    let stream = legacy.other(Method::GET).await;
    assert_eq!(
        (stream.status, stream.refusal().1.as_str()),
        (503, "overloaded")
    );
    assert!(stream.headers.contains_key("retry-after"));
    for client in [&modern, &legacy] {
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    }

    // With requests alone it comes no further.
    fillers.fill(95).await;
    eventually("those are refused that do not fit", async || {
        (listens(&modern).await == 200).then_some(())
    })
    .await;
    assert_eq!(modern.call("notes_t", "{}").await.text(), "called t");
    drop(fillers);
    eventually("nothing is held", async || {
        let told = exchange(admin, Method::GET, "/metrics", &[], b"")
            .await
            .body;
        let mut held = told
            .lines()
            .filter(|line| line.starts_with("usher_memory_held_bytes"));
        held.next()?.ends_with(" 0").then_some(())
    })
    .await;
    let mut fillers = Fillers::begin(&served).await;
    fillers.fill(53).await;
    let mut talk = asked.call("notes_asks", "{}").begin().await;
    let question = talk.hear().await;
    // With an answer that nobody reads it is 92 % now.
    let tasks = Tasks::new();
    let answer = unread(&tasks, &modern).await;
    assert!(is_big(&answer));

    eventually("requests are refused", async || {
        (modern.call("notes_t", "{}").await.status == 503).then_some(())
    })
    .await;
    let heard = notes.heard("tools/call").len();
    let mut large_ones = Vec::new();
    for client in [&modern, &legacy] {
        let refused = client.call("notes_t", "{}").id("9").await;
        assert_eq!(refused.status, 503);
        assert_eq!(refused.refusal().1, "overloaded");
        assert_eq!(refused.id().as_deref(), Some("9"));
        assert!(refused.headers.contains_key("retry-after"));
        // Of a large one nothing is read.
        let large = format!(r#"{{"note":"{}"}}"#, "x".repeat(100_000));
        let refused = client.call("notes_t", &large).await;
        assert_eq!((refused.status, refused.id()), (503, None));
        assert_eq!(refused.headers["connection"], "close");
        large_ones.push(refused.error()["data"]["ref"].clone());
    }
    assert_eq!(
        notes.heard("tools/call").len(),
        heard,
        "before any work is done"
    );
    assert_eq!(ready().await, (503, "overloaded".into()));
    // What gives something up is heard, and so is who goes on with something.
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(legacy.post(cancel, &[]).await.status, 202);
    assert_eq!(in_chunks(&served, cancel, &legacy).await, "HTTP/1.1 202");
    let large = "x".repeat(100_000);
    assert_eq!(in_chunks(&served, &large, &legacy).await, "HTTP/1.1 503");
    let params = r#"{"name":"notes_t","requestState":"s"}"#;
    let goes_on = modern.ask("tools/call", params).await;
    assert_eq!(goes_on.refusal().1, "state_invalid");
    let params = r#"{"taskId":"nobodys"}"#;
    let gives_up = modern.ask("tasks/cancel", params).await;
    assert_ne!(gives_up.refusal().1, "overloaded");
    let roots = format!(r#"{{"roots":[{{"uri":"file:///{large}"}}]}}"#);
    let taken = asked.reply(&question, ("result", &roots)).await;
    assert_eq!(taken.status, 202);
    assert_eq!(talk.rest().await.text(), "called t");

    // The same at 97 %.
    tasks.stop();
    drop(answer);
    eventually("requests are taken", async || {
        (modern.call("notes_t", "{}").await.status == 200).then_some(())
    })
    .await;
    fillers.fill(58).await;
    let tasks = Tasks::new();
    let answer = unread(&tasks, &modern).await;
    assert!(is_big(&answer));
    eventually("connections are taken no more", async || {
        let asked = modern.call("notes_t", "{}");
        timeout(Duration::from_millis(500), asked)
            .await
            .is_err()
            .then_some(())
    })
    .await;

    // Operators are, and whoever asks whether the process is alive.
    assert_eq!(ready().await, (503, "overloaded".into()));
    let health = exchange(admin, Method::GET, "/healthz", &[], b"").await;
    assert_eq!(health.status, 200);

    tasks.stop();
    drop((fillers, answer));
    eventually("all is taken again", async || {
        let answer = modern.call("notes_t", "{}").await;
        (answer.status == 200 && answer.text() == "called t").then_some(())
    })
    .await;
    assert_eq!(listens(&modern).await, 200);

    // Of each that was refused a record says so.
    let named = |wanted: &Value| {
        let told = events(records.path()).into_iter();
        let mut refs = told.flat_map(|event| {
            let refs = event["detail"]["refs"].as_array();
            refs.cloned().unwrap_or_default()
        });
        refs.any(|told| told == *wanted)
    };
    for refused in large_ones {
        eventually("it is recorded", async || named(&refused).then_some(())).await;
    }
}

/// Posts a body whose length is not told; the beginning of the answer.
async fn in_chunks(served: &Served, body: &str, client: &Client) -> String {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-session-id: {}\r\nmcp-protocol-version: 2025-11-25\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        served.address,
        client.session.as_deref().unwrap(),
        body.len()
    );
    // It may be answered and closed before all of it is there.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut head = vec![0; "HTTP/1.1 202".len()];
    stream.read_exact(&mut head).await.unwrap();
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn rel_3_results_that_nobody_reads_count_until_whoever_asked_is_gone_and_what_there_is_no_room_for_is_an_error()
 {
    let notes = notes();
    let served = served(
        &notes,
        &format!("write_stall: 2m }} }}\naudit: off\n{UNSEEN}"),
    )
    .await;
    let client = served.client(Revision::V2026_07_28).await;
    sees_tools(&client).await;
    let tasks = Tasks::new();
    let mut all = Vec::new();
    let refused = loop {
        let answer = unread(&tasks, &client).await;
        if !is_big(&answer) {
            break answer;
        }
        all.push(answer);
        assert!(all.len() < 4, "more is held than there is memory for");
    };
    assert_eq!(all.len(), 2, "{refused:?}");
    let text = refusal(refused).await;
    assert!(text.contains(r#""overloaded""#), "{text}");
    assert!(
        text.contains("the gateway has no memory for the answer of the server `notes` now; whether the call took effect is unknown"),
        "{text}"
    );
    drop(all);
    tasks.stop();
    eventually("there is room again, for a large one too", async || {
        let answer = client.call("notes_big", "{}").await;
        (answer.status == 200 && answer.text().len() == BIG).then_some(())
    })
    .await;
}

/// SECURITY 6: limits count bytes that are held.
#[tokio::test]
async fn an_event_that_comes_in_many_pieces_is_counted_once() {
    const SIZE: usize = 28 << 20;
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t"), tool("u"), tool("v")]);
    let notes = notes.on("tools/call", |_| {
        let told = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
        let result = Play::Result(text_result(&"x".repeat(SIZE)));
        Play::Events(vec![told.into()], Box::new(result))
    });
    let served = served(
        &notes,
        &format!("body_time: 5m }} }}\naudit: off\n{UNSEEN}"),
    )
    .await;
    let client = served.client(Revision::V2026_07_28).await;
    sees_tools(&client).await;
    // Twice its size is over the budget with this.
    let mut fillers = Fillers::begin(&served).await;
    fillers.fill(20).await;
    assert_eq!(client.call("notes_t", "{}").await.text().len(), SIZE);
}
