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

/// A gateway, and where its operators ask.
struct Scene {
    served: Served,
    admin: SocketAddr,
}

impl Scene {
    /// In front of `notes`, with more of the block `bounds.http` and of the file.
    async fn of(notes: &Upstream, http: &str, more: &str) -> Self {
        let (place, admin) = (notes.place(), free_address());
        let served = Served::start(&format!(
            "bounds: {{ memory: 64MiB, http: {{ {http} }} }}\nadmin: {{ address: '{admin}' }}\n{more}\nupstreams: {{ notes: {{ {place} }} }}\n"
        ))
        .await;
        Self { served, admin }
    }

    /// Bytes that are held.
    async fn held(&self) -> usize {
        let told = exchange(self.admin, Method::GET, "/metrics", &[], b"")
            .await
            .body;
        let mut lines = told.lines();
        let line = lines.find(|line| line.starts_with("usher_memory_held_bytes"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or(0)
    }

    async fn until_held(&self, is_so: impl Fn(usize) -> bool) {
        eventually("so much is held", async || {
            is_so(self.held().await).then_some(())
        })
        .await;
    }
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

/// Clients whose requests never end.
struct Fillers<'s> {
    scene: &'s Scene,
    streams: Vec<TcpStream>,
    each: usize,
}

impl<'s> Fillers<'s> {
    async fn begin(scene: &'s Scene) -> Self {
        let mut streams = Vec::new();
        let address = scene.served.address;
        for _ in 0..FILLERS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
                16 << 20
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            streams.push(stream);
        }
        Self {
            scene,
            streams,
            each: 0,
        }
    }

    /// Has them hold this part of the budget, in hundredths, where nobody else holds anything.
    async fn fill(&mut self, percent: usize) {
        let before = self.each * FILLERS;
        self.scene.until_held(|held| held == before).await;
        self.send(percent).await;
        let all = self.each * FILLERS;
        self.scene.until_held(|held| held == all).await;
    }

    async fn send(&mut self, percent: usize) {
        let each = BUDGET / 100 * percent / FILLERS;
        for stream in &mut self.streams {
            // Who is refused is not heard any more.
            let _ = stream.write_all(&vec![b' '; each - self.each]).await;
        }
        self.each = each;
    }
}

/// An answer of which nothing is read but its head, until this is dropped.
struct Unread {
    answer: Response<Incoming>,
    tasks: Tasks,
}

impl Unread {
    /// That of the tool `big`.
    async fn of(client: &Client) -> Self {
        let (body, headers) = client.spelled("tools/call", r#"{"name":"notes_big"}"#);
        let own = client.own.iter();
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .chain(own.map(|(name, value)| (*name, &**value)))
            .chain(ANY)
            .collect();
        let tasks = Tasks::new();
        let (address, body) = (client.address, body.as_bytes());
        let answer = open(&tasks, address, Method::POST, "/mcp", &headers, body).await;
        Self { answer, tasks }
    }

    /// Whether it is the result, and not an error in its place.
    fn is_big(&self) -> bool {
        self.answer.body().size_hint().exact() >= Some(BIG as u64)
    }

    /// All of it.
    async fn read(mut self) -> String {
        let body = self.answer.body_mut().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.tasks.stop();
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
    let records = tempfile::tempdir().unwrap();
    let audit = format!("audit: {{ dir: '{}' }}\n{UNSEEN}", records.path().display());
    let scene = Scene::of(&notes, "body_time: 5m, write_stall: 2m", &audit).await;
    let served = &scene.served;
    let ready = async || {
        let answer = exchange(scene.admin, Method::GET, "/readyz", &[], b"").await;
        (answer.status, parse(&answer.body)["reason"].clone())
    };
    let modern = served.client(Revision::V2026_07_28).await;
    let legacy = served.client(Revision::V2025_11_25).await;
    let roots = r#"{"roots":{}}"#;
    let asked = Client::connect_able(served.address, "/mcp", Revision::V2025_11_25, roots);
    let asked = asked.await.unwrap();
    sees_tools(&modern).await;
    let mut fillers = Fillers::begin(&scene).await;

    // With an answer that nobody reads, which is 39 %.
    fillers.fill(40).await;
    let answer = Unread::of(&modern).await;
    assert!(answer.is_big());
    assert_eq!(ready().await, (200, Value::Null));
    assert_eq!(modern.call("notes_t", "{}").await.text(), "called t");
    assert_eq!(listens(&modern).await, 200);

    drop(answer);
    fillers.fill(46).await;
    let answer = Unread::of(&modern).await;
    assert!(answer.is_big());
    assert_eq!(listens(&modern).await, 503);
    let stream = legacy.other(Method::GET).await;
    assert_eq!(
        (stream.status, stream.refusal().1.as_str()),
        (503, "overloaded")
    );
    assert!(stream.headers.contains_key("retry-after"));
    for client in [&modern, &legacy] {
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    }

    drop(answer);
    fillers.fill(53).await;
    let mut talk = asked.call("notes_asks", "{}").begin().await;
    let question = talk.hear().await;
    let answer = Unread::of(&modern).await;
    assert!(answer.is_big());
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
    // Nor does it help to look as if it went on with something.
    for (client, member) in [
        (&legacy, r#""requestState":"s""#),
        (&modern, r#""requestState":1"#),
        (&modern, r#""inputResponses":{}"#),
    ] {
        let params = format!(r#"{{"name":"notes_t",{member}}}"#);
        let refused = client.ask("tools/call", &params).await;
        assert_eq!(refused.status, 503, "{member}");
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
    let large = "x".repeat(100_000);
    for (body, status) in [(cancel, "202"), (&large, "503")] {
        let sent = format!(
            "transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        );
        let mut stream = posting(served, &legacy, &sent).await;
        let mut head = vec![0; "HTTP/1.1 202".len()];
        stream.read_exact(&mut head).await.unwrap();
        let head = String::from_utf8(head).unwrap();
        assert_eq!(head, format!("HTTP/1.1 {status}"));
    }
    let params = r#"{"name":"notes_t","requestState":"s"}"#;
    let goes_on = modern.ask("tools/call", params).await;
    assert_eq!(goes_on.refusal().1, "state_invalid");
    let gives_up = modern.ask("tasks/cancel", r#"{"taskId":"nobodys"}"#).await;
    assert_ne!(gives_up.refusal().1, "overloaded");
    // Whoever was asked may send as many large messages at once as there are questions.
    let junk = async || asked.post(&large, &[]).await.status;
    let coming = eventually("another is refused", async || {
        let coming = posting(served, &asked, "content-length: 100000\r\n\r\nx").await;
        (junk().await == 503).then_some(coming)
    })
    .await;
    drop(coming);
    eventually("it is read", async || (junk().await == 400).then_some(())).await;
    let roots = format!(r#"{{"roots":[{{"uri":"file:///{large}"}}]}}"#);
    let taken = asked.reply(&question, ("result", &roots)).await;
    assert_eq!(taken.status, 202);
    assert_eq!(talk.rest().await.text(), "called t");

    drop(answer);
    fillers.fill(58).await;
    let answer = Unread::of(&modern).await;
    assert!(answer.is_big());
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
    let health = exchange(scene.admin, Method::GET, "/healthz", &[], b"").await;
    assert_eq!(health.status, 200);

    // With requests alone it comes no further than where nothing is refused but they.
    drop(answer);
    scene.until_held(|held| held < BUDGET / 100 * 60).await;
    fillers.send(95).await;
    eventually("those are refused that do not fit", async || {
        let mut head = [0; 12];
        let mut told = fillers.streams.iter();
        let refused =
            told.any(|stream| stream.try_read(&mut head).is_ok() && head == *b"HTTP/1.1 503");
        assert!(scene.held().await <= BUDGET / 100 * 79);
        refused.then_some(())
    })
    .await;
    assert_eq!(listens(&modern).await, 200);
    drop(fillers);
    scene.until_held(|held| held == 0).await;

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

/// A request of this session with these further headers and this beginning of a body.
async fn posting(served: &Served, client: &Client, rest: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-session-id: {}\r\nmcp-protocol-version: 2025-11-25\r\n{rest}",
        served.address,
        client.session.as_deref().unwrap()
    );
    // It may be answered and closed before all of it is there.
    let _ = stream.write_all(request.as_bytes()).await;
    stream
}

#[tokio::test]
async fn rel_3_results_that_nobody_reads_count_until_whoever_asked_is_gone_and_what_there_is_no_room_for_is_an_error()
 {
    let notes = notes();
    let scene = Scene::of(&notes, "write_stall: 2m", &format!("audit: off\n{UNSEEN}")).await;
    let client = scene.served.client(Revision::V2026_07_28).await;
    sees_tools(&client).await;
    let mut all = Vec::new();
    let refused = loop {
        let answer = Unread::of(&client).await;
        if !answer.is_big() {
            break answer;
        }
        all.push(answer);
        assert!(all.len() < 4, "more is held than there is memory for");
    };
    assert_eq!(all.len(), 2);
    let text = refused.read().await;
    assert!(text.contains(r#""overloaded""#), "{text}");
    assert!(
        text.contains("the gateway has no memory for the answer of the server `notes` now; whether the call took effect is unknown"),
        "{text}"
    );
    drop(all);
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
    let scene = Scene::of(&notes, "body_time: 5m", &format!("audit: off\n{UNSEEN}")).await;
    let client = scene.served.client(Revision::V2026_07_28).await;
    sees_tools(&client).await;
    // Twice its size is over the budget with this.
    let mut fillers = Fillers::begin(&scene).await;
    fillers.fill(20).await;
    assert_eq!(client.call("notes_t", "{}").await.text().len(), SIZE);
}

/// SECURITY HTTP-6: what is too large is not told to come again, whatever the bound.
#[tokio::test]
async fn a_body_over_a_bound_that_is_small_is_too_large_and_not_for_now() {
    let scene = Scene::of(&notes(), "body: 16KiB", "audit: off").await;
    let client = scene.served.client(Revision::V2026_07_28).await;
    let large = format!(r#"{{"note":"{}"}}"#, "x".repeat(17_000));
    assert_eq!(client.call("notes_t", &large).await.status, 413);
}
