//! Travel on a pair of pipes, as a client of 2025-11-25 sees it.
#![expect(
    clippy::disallowed_types,
    reason = "tests compare messages as documents"
)]

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio_util::sync::CancellationToken;

use super::{assert_fits_schema, failure, soon};
use crate::{
    demo::{
        server::DemoServer as _,
        stdio::{self, LONGEST},
        travel::Travel,
    },
    tasks::Tasks,
};

struct Pipe {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    /// Cancelled once the server has ended.
    ended: CancellationToken,
}

impl Pipe {
    /// A server that nobody has spoken to.
    fn to_new_server() -> Self {
        let (here, there) = duplex(4 << 20);
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        Tasks::new().spawn(async move {
            let (input, output) = split(there);
            let travel = Travel::new();
            stdio::serve(&travel, input, output)
                .await
                .expect("pipes that work");
            drop(guard);
        });
        let (input, output) = split(here);
        let input = BufReader::new(input);
        Self {
            input,
            output,
            ended,
        }
    }

    async fn initialized(capabilities: Value) -> Self {
        let mut pipe = Self::to_new_server();
        pipe.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        )
        .await;
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        pipe
    }

    async fn write(&mut self, text: &str) {
        self.output
            .write_all(text.as_bytes())
            .await
            .expect("the server reads");
    }

    async fn send(&mut self, message: &Value) {
        self.write(&format!("{message}\n")).await;
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        soon(self.input.read_line(&mut line)).await.expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    async fn request(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": "t-1", "method": method, "params": params}))
            .await;
    }

    /// Sends a request; the next message must be its answer.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.request(method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], "t-1", "{answer}");
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    async fn tools(&mut self) -> Vec<String> {
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let answer = self.ask("tools/list", params).await;
            let page = answer["result"]["tools"].as_array().expect("tools");
            names.extend(
                page.iter()
                    .filter_map(|tool| tool["name"].as_str().map(str::to_owned)),
            );
            match answer["result"].get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return names,
            }
        }
    }
}

#[tokio::test]
async fn handshake_follows_a_refused_probe() {
    let mut pipe = Pipe::to_new_server();
    let probe = pipe
        .ask(
            "server/discover",
            json!({"_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }}),
        )
        .await;
    assert_eq!(
        probe,
        json!({"jsonrpc": "2.0", "id": "t-1", "error": {
            "code": -32601, "message": "method not found: server/discover",
        }})
    );
    assert_eq!(pipe.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(
        pipe.ask("tools/list", json!({})).await["error"]["code"],
        -32600
    );
    let hello = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let mut answer = pipe.ask("initialize", hello.clone()).await;
    answer["result"]
        .as_object_mut()
        .expect("a result")
        .remove("instructions")
        .expect("instructions");
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "t-1", "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}},
            "serverInfo": {"name": "usher-demo-travel", "title": "Travel (demo)", "version": env!("CARGO_PKG_VERSION")},
        }})
    );
    assert_eq!(pipe.ask("initialize", hello).await["error"]["code"], -32600);
}

#[tokio::test]
async fn broken_lines_are_refused_and_the_next_one_is_served() {
    let mut pipe = Pipe::initialized(json!({})).await;
    pipe.write("\n{nonsense\n").await;
    let refusal = pipe.next().await;
    assert_eq!(
        (&refusal["error"]["code"], refusal.get("id")),
        (&json!(-32700), None)
    );
    pipe.write(&format!("\"{}\"\n", "x".repeat(LONGEST))).await;
    assert_eq!(pipe.next().await["error"]["code"], -32700);
    pipe.write("[]\n").await;
    assert_eq!(pipe.next().await["error"]["code"], -32600);
    assert_eq!(
        pipe.ask("logging/setLevel", json!({"level": "debug"}))
            .await["error"]["code"],
        -32601
    );
    assert_eq!(pipe.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn server_ends_with_its_input() {
    let mut pipe = Pipe::initialized(json!({})).await;
    pipe.output.shutdown().await.expect("an open pipe");
    soon(pipe.ended.cancelled()).await;
}

#[tokio::test]
async fn flights_are_searched_by_city_and_price() {
    let mut pipe = Pipe::initialized(json!({})).await;
    let search = json!({"origin": "Paris", "destination": "tokyo", "date": "2026-09-12"});
    let answer = pipe.call("search_flights", search).await;
    assert_fits_schema(&Travel::new(), "search_flights", &answer);
    let found = &answer["result"]["structuredContent"];
    assert_eq!(found["date"], "2026-09-12");
    assert_eq!(
        found["flights"][0],
        json!({
            "id": "PAR-TYO-1", "carrier": "Northwind", "origin": "Paris", "destination": "Tokyo",
            "departs": "06:00", "duration_minutes": 753, "price_eur": 727,
        })
    );
    assert_eq!(
        answer["result"]["content"][1],
        json!({
            "type": "resource_link", "uri": "travel://flights/Paris/Tokyo", "name": "flights",
            "title": "Paris to Tokyo", "mimeType": "application/json",
        })
    );
    let cheap = pipe
        .call(
            "search_flights",
            json!({"origin": "Paris", "destination": "Tokyo", "max_price_eur": 1}),
        )
        .await;
    assert_eq!(cheap["result"]["structuredContent"]["flights"], json!([]));
    let missing = pipe
        .call("search_flights", json!({"origin": "Paris"}))
        .await;
    assert_eq!(
        failure(&missing),
        "search_flights: missing argument `destination`"
    );
    let nowhere = pipe
        .call(
            "search_flights",
            json!({"origin": "Paris", "destination": "Mars"}),
        )
        .await;
    assert!(failure(&nowhere).starts_with("argument `destination`: no city \"Mars\""));
    let unknown = pipe.call("teleport", json!({})).await;
    assert_eq!(
        unknown["error"],
        json!({"code": -32602, "message": "unknown tool: teleport"})
    );
}

#[tokio::test]
async fn booking_appears_with_the_first_flight_reports_progress_and_goes() {
    let mut pipe = Pipe::initialized(json!({})).await;
    let before = ["search_flights", "add_to_trip", "view_trip", "clear_trip"];
    assert_eq!(pipe.tools().await, before);
    assert_eq!(
        pipe.ask("resources/subscribe", json!({"uri": "travel://trip"}))
            .await["result"],
        json!({})
    );
    let list_changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let trip_changed = json!({
        "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "travel://trip"},
    });

    let added = pipe
        .call(
            "add_to_trip",
            json!({"flight": "PAR-TYO-1", "travellers": 2}),
        )
        .await;
    assert_fits_schema(&Travel::new(), "add_to_trip", &added);
    assert_eq!(
        [pipe.next().await, pipe.next().await],
        [list_changed.clone(), trip_changed.clone()]
    );
    assert_eq!(pipe.tools().await, [&before[..], &["book_trip"]].concat());
    pipe.call("add_to_trip", json!({"flight": "TYO-PAR-3"}))
        .await;
    assert_eq!(pipe.next().await, trip_changed); // the list is as it was
    let bad = pipe
        .call("add_to_trip", json!({"flight": "PAR-TYO-4"}))
        .await;
    assert!(failure(&bad).starts_with("no flight \"PAR-TYO-4\""));
    let trip = pipe.call("view_trip", json!({})).await["result"]["structuredContent"].take();
    let read = pipe
        .ask("resources/read", json!({"uri": "travel://trip"}))
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], trip.to_string());

    pipe.request(
        "tools/call",
        json!({"name": "book_trip", "_meta": {"progressToken": "p"}}),
    )
    .await;
    for (done, message) in ["booking PAR-TYO-1", "booking TYO-PAR-3", "booked"]
        .iter()
        .enumerate()
    {
        assert_eq!(
            pipe.next().await,
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": "p", "progress": done, "total": 2, "message": message},
            })
        );
    }
    let booked = pipe.next().await;
    assert_eq!(
        booked["result"]["structuredContent"]["total_eur"],
        trip["total_eur"]
    );
    assert_eq!(
        [pipe.next().await, pipe.next().await],
        [list_changed, trip_changed]
    );
    assert_eq!(pipe.tools().await, before);
}

#[tokio::test]
async fn full_trip_takes_no_more() {
    let mut pipe = Pipe::initialized(json!({})).await;
    for _ in 0..8 {
        pipe.request(
            "tools/call",
            json!({"name": "add_to_trip", "arguments": {"flight": "PAR-LON-1"}}),
        )
        .await;
        while pipe.next().await.get("result").is_none() {}
    }
    let full = pipe
        .call("add_to_trip", json!({"flight": "PAR-LON-1"}))
        .await;
    assert_eq!(failure(&full), "the trip is full: it holds 8 flights");
}

#[tokio::test]
async fn trip_is_cleared_when_the_user_or_the_caller_confirms() {
    let mut pipe = Pipe::initialized(json!({"elicitation": {"form": {}}})).await;
    pipe.call("add_to_trip", json!({"flight": "PAR-LON-1"}))
        .await;
    assert_eq!(
        pipe.next().await["method"],
        "notifications/tools/list_changed"
    );
    for (choice, expected) in [
        (json!({"action": "decline"}), None),
        (
            json!({"action": "accept", "content": {"remove": true}}),
            Some(0),
        ),
    ] {
        pipe.request("tools/call", json!({"name": "clear_trip"}))
            .await;
        let question = pipe.next().await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(
            question["params"]["message"],
            "Remove all 1 flights from the trip?"
        );
        // The pipe is not blocked while the question is open.
        pipe.send(&json!({"jsonrpc": "2.0", "id": "t-2", "method": "ping"}))
            .await;
        assert_eq!(pipe.next().await["id"], "t-2");
        pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": choice}))
            .await;
        let answer = pipe.next().await;
        assert_eq!(
            answer["result"]["structuredContent"]["total_eur"].as_i64(),
            expected
        );
    }

    let mut silent = Pipe::initialized(json!({})).await;
    silent
        .call("add_to_trip", json!({"flight": "PAR-LON-1"}))
        .await;
    silent.next().await;
    assert!(failure(&silent.call("clear_trip", json!({})).await).contains("`elicitation`"));
    let cleared = silent.call("clear_trip", json!({"confirm": true})).await;
    assert_eq!(cleared["result"]["structuredContent"]["flights"], json!([]));
}

#[tokio::test]
async fn vacation_is_planned_with_resources_that_can_be_read() {
    let mut pipe = Pipe::initialized(json!({})).await;
    let arguments = json!({"origin": "Paris", "destination": "São Paulo", "date": "2026-09-12", "budget": "2000"});
    let answer = pipe
        .ask(
            "prompts/get",
            json!({"name": "plan_vacation", "arguments": arguments}),
        )
        .await;
    assert_eq!(answer["result"]["description"], "A vacation in São Paulo");
    let messages = answer["result"]["messages"].as_array().expect("messages");
    assert!(
        messages[0]["content"]["text"]
            .as_str()
            .expect("a text")
            .contains("My budget is 2000 euros.")
    );
    let embedded: Vec<&str> = messages[1..]
        .iter()
        .filter_map(|m| m["content"]["resource"]["uri"].as_str())
        .collect();
    assert_eq!(
        embedded,
        [
            "travel://flights/Paris/S%C3%A3o%20Paulo",
            "travel://outlook/S%C3%A3o%20Paulo/2026-09-12",
            "travel://guides/packing",
        ]
    );
    for (at, uri) in embedded.iter().enumerate() {
        let read = pipe.ask("resources/read", json!({"uri": uri})).await;
        assert_eq!(
            read["result"]["contents"][0],
            messages[at + 1]["content"]["resource"]
        );
    }
    let missing = pipe
        .ask(
            "prompts/get",
            json!({"name": "plan_vacation", "arguments": {"origin": "Paris"}}),
        )
        .await;
    let message = "plan_vacation: missing argument `destination`; missing argument `date`";
    assert_eq!(
        missing["error"],
        json!({"code": -32602, "message": message})
    );
    let unknown = pipe.ask("prompts/get", json!({"name": "plan_heist"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let gone = pipe
        .ask(
            "resources/read",
            json!({"uri": "travel://flights/Paris/Mars"}),
        )
        .await;
    let error = json!({"code": -32002, "message": "resource not found", "data": {"uri": "travel://flights/Paris/Mars"}});
    assert_eq!(gone["error"], error);
}

#[tokio::test]
async fn cities_are_completed_with_a_look_at_the_other_argument() {
    let mut pipe = Pipe::initialized(json!({})).await;
    let complete = json!({
        "ref": {"type": "ref/resource", "uri": "travel://flights/{origin}/{destination}"},
        "argument": {"name": "destination", "value": "Par"},
    });
    let mut values =
        pipe.ask("completion/complete", complete.clone()).await["result"]["completion"]["values"]
            .take();
    assert_eq!(values, json!(["Paris", "Park City"]));
    let mut knowing = complete;
    knowing["context"] = json!({"arguments": {"origin": "Paris"}});
    values =
        pipe.ask("completion/complete", knowing).await["result"]["completion"]["values"].take();
    assert_eq!(values, json!(["Park City"]));
    let prompt = json!({
        "ref": {"type": "ref/prompt", "name": "plan_vacation"}, "argument": {"name": "date", "value": "2026-12"},
    });
    values = pipe.ask("completion/complete", prompt).await["result"]["completion"]["values"].take();
    assert_eq!(values, json!(["2026-12-24", "2026-12-31"]));
}

#[test]
fn trip_alone_can_be_watched() {
    let travel = Travel::new();
    let watchable = |uri: &Value| travel.is_watchable(uri.as_str().expect("a URI"));
    let watched: Vec<Value> = travel
        .resources()
        .iter()
        .map(|one| one["uri"].clone())
        .filter(watchable)
        .collect();
    assert_eq!(watched, ["travel://trip"]);
}
