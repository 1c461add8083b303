//! What `usher demo` prints, and what happens when one talks to it.

use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use rmcp::{ServiceExt, model::CallToolRequestParams, transport::StreamableHttpClientTransport};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::{
    ADDRESS,
    told::{blocks, commands, words},
};

/// Everything that the three servers offer, under the head of the table that shows it.
const OFFERED: [(&str, &[&str]); 4] = [
    (
        "TOOL",
        &[
            "travel_search_flights",
            "travel_add_to_trip",
            "travel_view_trip",
            "travel_clear_trip",
            "weather_get_weather",
            "weather_get_forecast",
            "weather_compare_cities",
            "weather_plan_outing",
            "weather_describe_weather",
            "calendar_create_event",
            "calendar_list_events",
            "calendar_delete_event",
            "calendar_send_email",
            "calendar_draft_invitation",
        ],
    ),
    (
        "PROMPT",
        &[
            "travel_plan_vacation",
            "travel_review_trip",
            "weather_what_to_wear",
            "calendar_prepare_day",
            "calendar_announce_event",
        ],
    ),
    (
        "RESOURCE",
        &[
            "travel+travel://destinations",
            "travel+travel://trip",
            "travel+travel://guides/packing",
            "weather+weather://cities",
            "weather+weather://station/rooftop",
            "weather+weather://icons/sun",
            "calendar+calendar://agenda",
            "calendar+calendar://outbox",
            "calendar+calendar://holidays",
        ],
    ),
    (
        "TEMPLATE",
        &[
            "travel+travel://flights/{origin}/{destination}",
            "travel+travel://outlook/{city}/{date}",
            "weather+weather://forecast/{city}/{date}",
            "weather+weather://current/{city}",
            "calendar+calendar://events/{id}",
            "calendar+calendar://days/{date}",
        ],
    ),
];

/// Until the endpoint is ready; 2 s are promised, for a machine that does nothing else meanwhile.
const READY_WITHIN: Duration = Duration::from_secs(10);

#[test]
fn what_the_demo_prints_is_what_is_shown_and_the_examples_run() {
    let demo = Demo::start();
    let printed = demo.said.replace(&demo.address, ADDRESS);
    for line in blocks("text")[0].lines() {
        assert!(
            printed
                .lines()
                .any(|other| other.trim_end() == line.trim_end()),
            "not printed: {line}\n{printed}"
        );
    }
    let close = |text: &str| -> String { text.split_whitespace().collect() };
    for language in ["python", "js"] {
        let block = &blocks(language)[0];
        assert!(close(&printed).contains(&close(block)), "{block}");
    }

    let curl = blocks("sh")
        .into_iter()
        .find(|block| block.starts_with("curl "))
        .expect("an example");
    assert!(printed.contains(curl.trim_end()), "{curl}");

    let call = commands()
        .into_iter()
        .find(|line| line.starts_with("target/demo/usher call"))
        .expect("an example");
    let told = Command::new(env!("CARGO_BIN_EXE_usher"))
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(&words(&call.replace(ADDRESS, &demo.address))[1..])
        .output()
        .expect("it runs");
    assert!(told.status.success(), "{told:?}");
    assert!(String::from_utf8_lossy(&told.stdout).contains("Paris"));

    // The HTTP client of the SDK takes the provider of the process.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    tokio::runtime::Runtime::new()
        .expect("a runtime")
        .block_on(with_rmcp(&format!("http://{}/mcp", demo.address)))
        .expect("the SDK's call");
}

#[test]
fn the_printed_catalog_shows_all_that_the_three_servers_offer_and_no_more() {
    let begin = Instant::now();
    let demo = Demo::start();
    let waited = begin.elapsed();
    assert!(waited < READY_WITHIN, "ready after {waited:?}");
    for (head, offered) in OFFERED {
        let head = format!("{head} ");
        let table = demo
            .said
            .lines()
            .skip_while(|line| !line.starts_with(&head));
        let rows = table.skip(1).take_while(|line| !line.is_empty());
        let shown: Vec<&str> = rows.filter_map(|row| row.split(' ').next()).collect();
        assert_eq!(shown, offered, "{head}");
    }
    // What each server says to offer, added up, is what is shown of it.
    for name in ["travel", "weather", "calendar"] {
        let mut lines = demo.said.lines().map(|line| line.split_whitespace());
        let row = lines.find(|row| row.clone().next() == Some(name));
        let counted: Vec<usize> = row
            .into_iter()
            .flat_map(|row| row.skip(4))
            .filter_map(|count| count.parse().ok())
            .collect();
        let of_it = |offered: &[&str]| {
            let all = offered.iter();
            all.filter(|item| item.starts_with(name)).count()
        };
        assert_eq!(counted, OFFERED.map(|(_, all)| of_it(all)), "{name}");
    }
}

#[test]
fn the_transcript_is_what_happens() {
    let demo = Demo::start();
    let happened = transcript(&demo.address);
    assert!(
        blocks("console").contains(&happened),
        "what happens is\n{happened}"
    );
}

/// A client of 2026-07-28 sees all that the demo has to show: `>` is what it sends, `<` what it gets.
fn transcript(address: &str) -> String {
    let filter =
        r#"{"toolsListChanged":true,"resourceSubscriptions":["calendar+calendar://agenda"]}"#;
    let (mut said, listen) = (String::new(), "subscriptions/listen");
    let mut changes = ask(address, listen, "", &format!(r#""notifications":{filter}"#));
    let mut say = |line: &str| said.extend([line, "\n"]);
    let mut next_change = || worded(&changes.next().expect("the stream stays open"));
    let call = |name: &str, params: &str| ask(address, "tools/call", name, params);

    say(&format!("> {listen} {filter}"));
    say(&next_change());
    for (name, arguments, answer, then) in [
        ("travel_add_to_trip", r#"{"flight":"PAR-TYO-1"}"#, "", true),
        ("travel_book_trip", "{}", "", true),
        (
            "weather_compare_cities",
            r#"{"cities":["Paris","Oslo"],"date":"2026-09-12"}"#,
            "",
            false,
        ),
        (
            "calendar_send_email",
            r#"{"to":"ada@example.com","subject":"Lunch","body":"At noon?"}"#,
            r#"{"action":"accept","content":{"send":true}}"#,
            false,
        ),
        (
            "calendar_draft_invitation",
            r#"{"id":1}"#,
            r#"{"role":"assistant","model":"yours","content":{"type":"text","text":"Come and eat!"}}"#,
            false,
        ),
        (
            "calendar_create_event",
            r#"{"title":"Lunch","date":"2026-09-02"}"#,
            "",
            true,
        ),
    ] {
        let params = format!(r#""name":"{name}","arguments":{arguments}"#);
        say(&format!("> tools/call {name} {arguments}"));
        let mut state = None;
        for message in call(name, &params) {
            say(&worded(&message));
            state = message["result"].get("requestState").cloned().or(state);
            if let Some(asked) = message["result"]["inputRequests"].as_object() {
                let key = asked.keys().next().expect("one question");
                state = Some(json!([key, state]));
            }
        }
        if let Some(state) = state {
            say(&format!("> the same again, with the answer {answer}"));
            let (key, state) = (&state[0], &state[1]);
            let again =
                format!(r#"{params},"inputResponses":{{{key}:{answer}}},"requestState":{state}"#);
            call(name, &again).for_each(|message| say(&worded(&message)));
        }
        if then {
            say(&next_change());
        }
    }
    said
}

/// A message as a line of the transcript.
fn worded(message: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let result = &message["result"];
    if let Some(asked) = result["inputRequests"].as_object() {
        let question = asked.values().next().expect("one question");
        let params = &question["params"];
        let words = [
            &params["message"],
            &params["messages"][0]["content"]["text"],
        ];
        let words = cut(&words.map(text).concat());
        return format!("< input_required: {}: {words}", text(&question["method"]));
    }
    if result.is_object() {
        let words = cut(&text(&result["content"][0]["text"]));
        return format!("< result: {words}");
    }
    let params = &message["params"];
    let words = [&params["uri"], &params["message"]].map(text).concat();
    format!("< {} {words}", text(&message["method"]))
        .trim_end()
        .to_owned()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Sends one request and hands over the messages of its answer as they come.
fn ask(
    address: &str,
    method: &str,
    name: &str,
    params: &str,
) -> impl Iterator<Item = Value> + use<> {
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"progressToken":1"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},"_meta":{{{meta}}}}}}}"#
    );
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("mcp-name: {name}\r\n")
    };
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n\
         {name}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(request.as_bytes()).expect("sent");
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.filter_map(|line| {
        let json = line.strip_prefix("data: ").unwrap_or(&line);
        serde_json::from_str::<Value>(json)
            .ok()
            .filter(Value::is_object)
    })
}

#[test]
fn the_rust_example_is_the_one_that_is_run() {
    let run = include_str!("demo.rs")
        .split_once("// From here on as in the README.\n")
        .and_then(|(_, rest)| rest.split_once("// To here.\n"))
        .expect("marks")
        .0;
    let shown = blocks("rust")[0].replace(&format!("\"http://{ADDRESS}/mcp\""), "url");
    let close = |text: &str| -> String { text.split_whitespace().collect() };
    assert!(close(&shown).contains(&close(run)), "{shown}");
}

#[expect(clippy::print_stdout, reason = "it is an example")]
async fn with_rmcp(url: &str) -> Result<(), Box<dyn Error>> {
    // From here on as in the README.
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = ().serve(transport).await?;
    let arguments = serde_json::from_str(r#"{"city":"Paris"}"#)?;
    let call = CallToolRequestParams::new("weather_get_weather").with_arguments(arguments);
    println!("{:?}", client.call_tool(call).await?);
    client.cancel().await?;
    Ok(())
    // To here.
}

/// `usher demo` on a free port; killed when dropped.
pub(crate) struct Demo {
    child: Child,
    /// Where it listens: address and port.
    pub(crate) address: String,
    /// What it printed.
    pub(crate) said: String,
}

impl Demo {
    pub(crate) fn start() -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(["demo", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut demo = Self {
            child,
            address: String::new(),
            said: String::new(),
        };
        let stdout = demo.child.stdout.take().expect("a pipe");
        for line in BufReader::new(stdout).lines() {
            let line = line.expect("text");
            demo.said.push_str(&line);
            demo.said.push('\n');
            if let Some(url) = line.strip_prefix("usher is ready at http://") {
                demo.address = url.trim_end_matches("/mcp").to_owned();
            }
            // The last thing it prints.
            if line.starts_with("claude mcp add") {
                return demo;
            }
        }
        panic!("it ended: {}", demo.said);
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
