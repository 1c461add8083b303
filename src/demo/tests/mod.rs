//! The demo servers, driven from outside over their own transports, each feature once.
//! Golden frames are literal and follow the schema of each server's revision.
#![expect(
    clippy::disallowed_types,
    reason = "tests compare messages as documents"
)]

mod calendar;
mod travel;
mod weather;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{server::DemoServer, start};
use crate::tasks::Tasks;

/// Waits for what the server must do; a server that does not is a failed test rather than a hanging one.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    let patience = std::time::Duration::from_secs(20);
    tokio::time::timeout(patience, what)
        .await
        .expect("an answer in time")
}

/// An answer whose body is still to be read.
struct Answer {
    status: u16,
    /// Lower-case names.
    headers: Vec<(String, String)>,
    body: BufReader<TcpStream>,
}

/// Sends one request. HTTP/1.0 keeps the client small: the body of the answer is all that follows the head.
async fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let (host, path) = url
        .trim_start_matches("http://")
        .split_once('/')
        .expect("a path");
    let mut request = format!(
        "{method} /{path} HTTP/1.0\r\ncontent-length: {}\r\n",
        body.len()
    );
    if !headers.iter().any(|(name, _)| *name == "host") {
        request += &format!("host: {host}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    request += body;
    let mut stream = TcpStream::connect(host).await.expect("the server listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the server reads");
    let mut body = BufReader::new(stream);
    let mut line = String::new();
    soon(body.read_line(&mut line))
        .await
        .expect("a status line");
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .expect("a status");
    let mut headers = Vec::new();
    loop {
        line.clear();
        soon(body.read_line(&mut line)).await.expect("a header");
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    Answer {
        status,
        headers,
        body,
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The whole body.
    async fn text(&mut self) -> String {
        let mut text = String::new();
        soon(self.body.read_to_string(&mut text))
            .await
            .expect("a body");
        text
    }

    async fn json(&mut self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&self.text().await).expect("JSON")
    }

    /// The next message of an event stream; `None` at its end.
    async fn event(&mut self) -> Option<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        let mut line = String::new();
        loop {
            line.clear();
            if soon(self.body.read_line(&mut line)).await.expect("a line") == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// The answer to a request, however it was sent, without what came before it.
    async fn last(&mut self) -> Value {
        if self.header("content-type") != Some("text/event-stream") {
            return self.json().await;
        }
        let mut last = Value::Null;
        while let Some(event) = self.event().await {
            last = event;
        }
        last
    }
}

/// The text of a failed tool call.
fn failure(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"]
        .as_str()
        .expect("a text")
}

/// Checks that a tool's structured result is what its output schema says, and that the text block says the same.
fn assert_fits_schema(server: &dyn DemoServer, tool: &str, answer: &Value) {
    let tools = server.tools();
    let tool = tools
        .iter()
        .find(|one| one["name"] == tool)
        .expect("a listed tool");
    let result = &answer["result"];
    jsonschema::validate(&tool["outputSchema"], &result["structuredContent"])
        .unwrap_or_else(|error| panic!("{error} in {answer}"));
    let text = result["content"][0]["text"].as_str().expect("a text block");
    let text: Value = serde_json::from_str(text).expect("JSON in the text block");
    assert_eq!(text, result["structuredContent"]);
}

/// Checks what holds for the items of any server: valid schemas, unique names, and unique URIs that can be read.
fn assert_items_are_sound(server: &dyn DemoServer) {
    let tools = server.tools();
    for tool in &tools {
        for schema in ["inputSchema", "outputSchema"] {
            if let Some(schema) = tool.get(schema) {
                assert!(jsonschema::meta::is_valid(schema), "{schema}");
                assert_eq!(schema["type"], "object");
            }
        }
    }
    for resource in server.resources() {
        let uri = resource["uri"].as_str().expect("a URI");
        let contents = server.read(uri).expect("a listed resource can be read");
        assert_eq!(
            (&contents["uri"], &contents["mimeType"]),
            (&resource["uri"], &resource["mimeType"])
        );
    }
    let lists = [
        ("name", tools),
        ("name", server.prompts()),
        ("uri", server.resources()),
        ("uriTemplate", server.templates()),
    ];
    for (key, items) in lists {
        let names: std::collections::BTreeSet<&str> =
            items.iter().filter_map(|one| one[key].as_str()).collect();
        assert_eq!(names.len(), items.len());
    }
}

#[test]
fn items_of_all_three_servers_are_sound() {
    assert_items_are_sound(&super::travel::Travel::new());
    assert_items_are_sound(&super::weather::Weather::new());
    assert_items_are_sound(&super::calendar::Calendar::new());
}

#[tokio::test]
async fn both_http_servers_start_answer_and_end_with_their_tasks() {
    let tasks = Tasks::new();
    let demo = start(&tasks).await.expect("two free ports");
    assert_ne!(demo.weather_url, demo.calendar_url);
    for (url, status) in [(&demo.weather_url, 405), (&demo.calendar_url, 400)] {
        let stream = [("accept", "text/event-stream")];
        assert_eq!(send("GET", url, &stream, "").await.status, status);
        assert_eq!(send("PUT", url, &[], "").await.status, 405);
        assert_eq!(
            send("GET", &url.replace("/mcp", "/else"), &[], "")
                .await
                .status,
            404
        );
        assert_eq!(
            send("GET", url, &[("host", "evil.example")], "")
                .await
                .status,
            403
        );
        assert_eq!(
            send("GET", url, &[("origin", "https://evil.example")], "")
                .await
                .status,
            403
        );
        assert_eq!(
            send("POST", url, &[("accept", "*/*")], "{}").await.status,
            415
        );
        let kinds = [
            ("content-type", "application/json"),
            ("accept", "application/json"),
        ];
        assert_eq!(send("POST", url, &kinds, "{}").await.status, 406);
    }
    // A stream that is open when the demo ends is ended by it.
    let mut listening = weather::Client::new(&demo.weather_url)
        .post("subscriptions/listen", json!({"notifications": {}}))
        .await;
    listening.event().await.expect("an acknowledgement");
    tasks.token().cancel();
    let end = listening.event().await.expect("a closing result");
    assert_eq!(end["result"]["resultType"], "complete");
    assert_eq!(listening.event().await, None);
}
