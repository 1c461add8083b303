//! The budget of memory: what is refused as it fills up, and that it empties (SECURITY 6, REL-3, REL-9).

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};
use usher::tasks::Tasks;

use crate::{
    audit::events,
    harness::{
        Client, Play, Revision, Served, Upstream, eventually, exchange, open, parse, text_result,
        tool,
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

async fn served(notes: &Upstream, more: &str) -> Served {
    let place = notes.place();
    let served = Served::start(&format!(
        "bounds: {{ memory: 64MiB }}\n{more}upstreams: {{ notes: {{ {place} }} }}\n"
    ))
    .await;
    let client = served.client(Revision::V2026_07_28).await;
    eventually("the tool is there", async || {
        (client.tools().await == ["notes_t"]).then_some(())
    })
    .await;
    served
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
            stream.write_all(&vec![b' '; each - self.1]).await.unwrap();
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
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = free.local_addr().unwrap();
    drop(free);
    let records = tempfile::tempdir().unwrap();
    let directory = records.path().display();
    let served = served(
        &notes,
        &format!("audit: {{ dir: '{directory}' }}\nadmin: {{ address: '{admin}' }}\n"),
    )
    .await;
    let ready = async || {
        let answer = exchange(admin, Method::GET, "/readyz", &[], b"").await;
        (answer.status, parse(&answer.body)["reason"].clone())
    };
    let modern = served.client(Revision::V2026_07_28).await;
    let legacy = served.client(Revision::V2025_11_25).await;
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

    fillers.fill(92).await;
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
    // What gives something up is heard.
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(legacy.post(cancel, &[]).await.status, 202);

    fillers.fill(97).await;
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

    drop(fillers);
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

#[tokio::test]
async fn rel_3_results_that_nobody_reads_count_until_whoever_asked_is_gone_and_what_there_is_no_room_for_is_an_error()
 {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let served = served(&notes, &format!("audit: off\n{UNSEEN}\n")).await;
    let client = served.client(Revision::V2026_07_28).await;
    // More than what the system takes of it for a client that does not read.
    notes.now_on("tools/call", |_| {
        Play::Result(text_result(&"x".repeat(25 << 20)))
    });
    let (body, headers) = client.spelled("tools/call", r#"{"name":"notes_t"}"#);
    let tasks = Tasks::new();
    let mut unread = Vec::new();
    let refused = loop {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .chain(ANY)
            .collect();
        let asked = open(
            &tasks,
            client.address,
            Method::POST,
            "/mcp",
            &headers,
            body.as_bytes(),
        )
        .await;
        if asked.headers().contains_key("content-length")
            && asked.body().size_hint().exact() > Some(1 << 20)
        {
            unread.push(asked);
            assert!(unread.len() < 4, "more is held than there is memory for");
            continue;
        }
        break asked;
    };
    assert_eq!(unread.len(), 2, "{refused:?}");
    let text = refused.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains(r#""overloaded""#), "{text}");
    assert!(
        text.contains("the gateway has no memory for the answer of the server `notes` now; whether the call took effect is unknown"),
        "{text}"
    );
    drop(unread);
    tasks.stop();
    notes.now_on("tools/call", |_| Play::Result(text_result("small")));
    eventually("there is room again", async || {
        let answer = client.call("notes_t", "{}").await;
        (answer.status == 200 && answer.text() == "small").then_some(())
    })
    .await;
    notes.now_on("tools/call", |_| {
        Play::Result(text_result(&"x".repeat(25 << 20)))
    });
    eventually("and for a large one", async || {
        let answer = client.call("notes_t", "{}").await;
        (answer.status == 200 && answer.text().len() == 25 << 20).then_some(())
    })
    .await;
}
