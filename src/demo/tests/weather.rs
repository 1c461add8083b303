//! Weather over Streamable HTTP, as a client of 2026-07-28 sees it.
#![expect(
    clippy::disallowed_types,
    reason = "tests compare messages as documents"
)]

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, assert_fits_schema, failure, send, soon};
use crate::{
    demo::{http, modern::Modern, server::DemoServer as _, weather::Weather},
    tasks::Tasks,
};

const KINDS: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A stateless client; every request says all there is to know.
pub(super) struct Client {
    url: String,
    capabilities: Value,
    extra: Vec<(&'static str, &'static str)>,
}

impl Client {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            capabilities: json!({}),
            extra: Vec::new(),
        }
    }

    fn able_to(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.extra.push((name, value));
        self
    }

    pub(super) async fn post(&self, method: &str, mut params: Value) -> Answer {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        let mut headers = KINDS.to_vec();
        headers.extend([
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ]);
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name", name)));
        headers.extend(&self.extra);
        let body = json!({"jsonrpc": "2.0", "id": "w-1", "method": method, "params": params});
        send("POST", &self.url, &headers, &body.to_string()).await
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        self.post(method, params).await.last().await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }
}

async fn served() -> (Arc<Weather>, Client) {
    let tasks = Tasks::new();
    let weather = Arc::new(Weather::new());
    let face = http::Face::Modern(Modern::new(weather.clone(), tasks.clone()));
    let url = http::listen(&tasks, face).await.expect("a free port");
    (weather, Client::new(&url))
}

fn identity() -> Value {
    json!({"io.modelcontextprotocol/serverInfo": {
        "name": "usher-demo-weather", "title": "Weather (demo)", "version": env!("CARGO_PKG_VERSION"),
    }})
}

#[tokio::test]
async fn discovery_names_the_revision_and_what_is_offered() {
    let (_, client) = served().await;
    let mut answer = client.ask("server/discover", json!({})).await;
    answer["result"]
        .as_object_mut()
        .expect("a result")
        .remove("instructions")
        .expect("instructions");
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "w-1", "result": {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}},
            "ttlMs": 3_600_000,
            "cacheScope": "public",
            "_meta": identity(),
        }})
    );
}

#[tokio::test]
async fn lists_come_in_pages_with_caching_hints() {
    let (_, client) = served().await;
    let first = client.ask("tools/list", json!({})).await["result"].take();
    assert_eq!(
        (first["ttlMs"].as_u64(), first["cacheScope"].as_str()),
        (Some(3_600_000), Some("public"))
    );
    let second = client
        .ask("tools/list", json!({"cursor": first["nextCursor"]}))
        .await["result"]
        .take();
    assert_eq!(second.get("nextCursor"), None);
    let tools = [first["tools"].as_array(), second["tools"].as_array()];
    let names: Vec<&str> = tools
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "get_weather",
            "get_forecast",
            "compare_cities",
            "plan_outing",
            "describe_weather"
        ]
    );
    let bad = client
        .ask("tools/list", json!({"cursor": "from-999"}))
        .await;
    assert_eq!(
        bad["error"],
        json!({"code": -32602, "message": "invalid cursor"})
    );
}

#[tokio::test]
async fn weather_of_a_city_is_structured_and_says_so_in_text_too() {
    let (weather, client) = served().await;
    let answer = client.call("get_weather", json!({"city": "Paris"})).await;
    let paris = json!({
        "city": "Paris", "country": "France", "observed": "2026-09-01T12:00", "conditions": "sunny",
        "temperature": 22, "units": "celsius", "wind_kmh": 20,
    });
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "w-1", "result": {
            "resultType": "complete",
            "content": [{"type": "text", "text": paris.to_string()}],
            "structuredContent": paris,
            "_meta": identity(),
        }})
    );
    assert_fits_schema(&*weather, "get_weather", &answer);
    let warm = client
        .call(
            "get_weather",
            json!({"city": "paris", "units": "fahrenheit"}),
        )
        .await;
    assert_eq!(warm["result"]["structuredContent"]["temperature"], 71);
}

#[tokio::test]
async fn wrong_arguments_are_a_tool_failure_and_a_wrong_tool_is_an_error() {
    let (_, client) = served().await;
    let missing = client.call("get_weather", json!({"town": "Paris"})).await;
    assert_eq!(
        failure(&missing),
        "get_weather: missing argument `city`; unknown argument `town`"
    );
    let nowhere = client
        .call("get_weather", json!({"city": "Atlantis"}))
        .await;
    assert!(failure(&nowhere).starts_with("no city \"Atlantis\"; known are Paris, Park City"));
    let mut unknown = client
        .post("tools/call", json!({"name": "rain_dance"}))
        .await;
    assert_eq!(unknown.status, 200);
    let error = json!({"code": -32602, "message": "unknown tool: rain_dance"});
    assert_eq!(unknown.json().await["error"], error);
}

#[tokio::test]
async fn each_check_of_the_status_table_has_its_status_and_code() {
    let (_, client) = served().await;
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#);
    let old = list.replace("2026-07-28", "2025-11-25");
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_weather","arguments":{{"city":"Oslo"}},{meta}}}}}"#
    );
    let ping = list.replace("tools/list", "ping");
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let no_capabilities = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let notification =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let now = ("mcp-protocol-version", "2026-07-28");
    let lists = ("mcp-method", "tools/list");
    let calls = ("mcp-method", "tools/call");
    let cases: [(&str, Headers, u16, i64); 17] = [
        ("{", &[now, lists], 400, -32700),
        (&format!("[{list}]"), &[now, lists], 400, -32600),
        (response, &[now], 400, -32600),
        (bare, &[now, lists], 400, -32602),
        (no_capabilities, &[now, lists], 400, -32602),
        (&list, &[lists], 400, -32020),
        (
            &list,
            &[("mcp-protocol-version", "2025-11-25"), lists],
            400,
            -32020,
        ),
        (
            &old,
            &[("mcp-protocol-version", "2025-11-25"), lists],
            400,
            -32022,
        ),
        (&list, &[now], 400, -32020),
        (&list, &[now, ("mcp-method", "Tools/List")], 400, -32020),
        (&list, &[now, lists, lists], 400, -32020),
        (&call, &[now, calls], 400, -32020),
        (
            &call,
            &[now, calls, ("mcp-name", "get_forecast")],
            400,
            -32020,
        ),
        (
            &call,
            &[now, calls, ("mcp-name", "=?base64?Z2V0X3dlYXRoZXI?=")],
            400,
            -32020,
        ),
        (&ping, &[now, ("mcp-method", "ping")], 404, -32601),
        (initialize, &[], 400, -32022),
        (notification, &[], 202, 0),
    ];
    for (body, headers, status, code) in cases {
        let mut answer = send("POST", &client.url, &[&KINDS[..], headers].concat(), body).await;
        assert_eq!(answer.status, status, "{body} {headers:?}");
        if code != 0 {
            assert_eq!(
                answer.json().await["error"]["code"],
                code,
                "{body} {headers:?}"
            );
        }
    }
    let encoded = [now, calls, ("mcp-name", "=?base64?Z2V0X3dlYXRoZXI=?=")];
    let answer = send("POST", &client.url, &[&KINDS[..], &encoded].concat(), &call).await;
    assert_eq!(answer.status, 200);
    let mut refused = send(
        "POST",
        &client.url,
        &[&KINDS[..], &[("mcp-protocol-version", "2025-11-25")]].concat(),
        &old,
    )
    .await;
    assert_eq!(
        refused.json().await,
        json!({"jsonrpc": "2.0", "id": 1, "error": {
            "code": -32022,
            "message": "unsupported protocol version; this server speaks 2026-07-28",
            "data": {"supported": ["2026-07-28"], "requested": "2025-11-25"},
        }})
    );
}

#[tokio::test]
async fn mirrored_arguments_must_agree_with_the_body() {
    let (weather, client) = served().await;
    let url = client.url.clone();
    let arguments = json!({"city": "Reykjavík", "date": "2026-12-31", "days": 2});
    let city = ("mcp-param-city", "=?base64?UmV5a2phdsOtaw==?=");
    let agreeing = client
        .with(city.0, city.1)
        .with("mcp-param-days", "2")
        .with("mcp-param-moon", "full");
    let answer = agreeing.call("get_forecast", arguments.clone()).await;
    assert_fits_schema(&*weather, "get_forecast", &answer);
    let days = answer["result"]["structuredContent"]["days"]
        .as_array()
        .expect("days");
    let dates: Vec<&str> = days.iter().filter_map(|day| day["date"].as_str()).collect();
    assert_eq!(dates, ["2026-12-31", "2027-01-01"]);

    let code = async |client: Client, arguments: &Value| {
        let params = json!({"name": "get_forecast", "arguments": arguments});
        let mut answer = client.post("tools/call", params).await;
        (answer.status, answer.json().await["error"]["code"].as_i64())
    };
    let with_city = || Client::new(&url).with(city.0, city.1);
    let mismatch = (400, Some(-32020));
    assert_eq!(code(with_city(), &arguments).await, mismatch); // days are missing
    assert_eq!(
        code(with_city().with("mcp-param-days", "3"), &arguments).await,
        mismatch
    );
    assert_eq!(
        code(with_city().with("mcp-param-days", "two"), &arguments).await,
        mismatch
    );
    let fewer = json!({"city": "Reykjavík", "date": "2026-12-31"});
    assert_eq!(
        code(with_city().with("mcp-param-days", "2"), &fewer).await,
        mismatch
    );
    assert_eq!(code(with_city(), &fewer).await, (200, None));
}

#[tokio::test]
async fn progress_comes_before_the_result_on_the_same_stream() {
    let (weather, client) = served().await;
    let params = json!({
        "name": "compare_cities",
        "arguments": {"cities": ["Oslo", "Paris"], "date": "2026-09-01"},
        "_meta": {"progressToken": 7},
    });
    let mut stream = client.post("tools/call", params).await;
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    for (done, message) in ["looking at Oslo", "looking at Paris", "ranking"]
        .iter()
        .enumerate()
    {
        assert_eq!(
            stream.event().await,
            Some(json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": 7, "progress": done, "total": 2, "message": message},
            }))
        );
    }
    let answer = stream.event().await.expect("a result");
    assert_fits_schema(&*weather, "compare_cities", &answer);
    assert_eq!(
        answer["result"]["structuredContent"]["best_first"][0]["city"],
        "Paris"
    );
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn outing_is_planned_with_the_answer_of_the_user() {
    let (weather, client) = served().await;
    let arguments = json!({"city": "Paris", "date": "2026-09-01"});
    let nobody = client.call("plan_outing", arguments.clone()).await;
    assert!(failure(&nobody).contains("did not declare the `elicitation` capability"));
    let client = client.able_to(json!({"elicitation": {}}));
    let mut asked = client.call("plan_outing", arguments.clone()).await["result"].take();
    let state = asked["requestState"].take();
    assert!(state.is_string());
    assert_eq!(
        asked,
        json!({
            "resultType": "input_required",
            "inputRequests": {"activity": {"method": "elicitation/create", "params": {
                "message": "What would you like to do in Paris on 2026-09-01?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"activity": {
                        "type": "string", "title": "Activity", "enum": ["picnic", "hike", "museum", "sailing"],
                    }},
                    "required": ["activity"],
                },
            }}},
            "requestState": null,
            "_meta": identity(),
        })
    );
    let again = async |arguments: &Value, answer: Value| {
        let params = json!({
            "name": "plan_outing", "arguments": arguments, "requestState": state, "inputResponses": answer,
        });
        client.ask("tools/call", params).await
    };
    let accepted = json!({"activity": {"action": "accept", "content": {"activity": "picnic"}}});
    let planned = again(&arguments, accepted.clone()).await;
    assert_fits_schema(&*weather, "plan_outing", &planned);
    assert_eq!(planned["result"]["structuredContent"]["suitable"], true);
    let declined = again(&arguments, json!({"activity": {"action": "decline"}})).await;
    assert_eq!(
        failure(&declined),
        "the user chose no activity; no outing was planned"
    );
    let unanswered = again(&arguments, json!({"something": {"action": "accept"}})).await;
    assert_eq!(unanswered["result"]["resultType"], "input_required");
    let malformed = again(&arguments, json!({"activity": {"action": "perhaps"}})).await;
    assert_eq!(malformed["error"]["code"], -32602);
    let elsewhere = again(&json!({"city": "Oslo", "date": "2026-09-01"}), accepted).await;
    assert_eq!(elsewhere["error"]["code"], -32602);
}

#[tokio::test]
async fn weather_is_described_by_the_clients_model() {
    let (_, client) = served().await;
    let arguments = json!({"city": "Oslo", "date": "2026-09-01"});
    let nobody = client.call("describe_weather", arguments.clone()).await;
    assert!(failure(&nobody).contains("did not declare the `sampling` capability"));
    let client = client.able_to(json!({"sampling": {}}));
    let asked = client.call("describe_weather", arguments.clone()).await["result"].take();
    let request = &asked["inputRequests"]["report"];
    assert_eq!(request["method"], "sampling/createMessage");
    assert_eq!(request["params"]["maxTokens"], 200);
    assert_eq!(request["params"]["messages"][0]["role"], "user");
    let answer = client.ask("tools/call", json!({
        "name": "describe_weather",
        "arguments": arguments,
        "requestState": asked["requestState"],
        "inputResponses": {"report": {
            "role": "assistant", "model": "test-1", "content": {"type": "text", "text": "Take a coat."},
        }},
    })).await;
    let text = "Take a coat.\n(written by test-1)";
    assert_eq!(
        answer["result"]["content"],
        json!([{"type": "text", "text": text}])
    );
}

#[tokio::test]
async fn listener_is_acknowledged_and_hears_of_each_measurement() {
    let (weather, client) = served().await;
    let mut stream = client
        .post(
            "subscriptions/listen",
            json!({"notifications": {
                "toolsListChanged": true,
                "resourceSubscriptions": ["weather://station/rooftop", "weather://cities"],
            }}),
        )
        .await;
    assert_eq!(
        stream.event().await,
        Some(json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {"io.modelcontextprotocol/subscriptionId": "w-1"},
                "notifications": {"resourceSubscriptions": ["weather://station/rooftop"]},
            },
        }))
    );
    let read = json!({"uri": "weather://station/rooftop"});
    let before = client.ask("resources/read", read.clone()).await;
    weather.measure();
    assert_eq!(
        stream.event().await,
        Some(json!({
            "jsonrpc": "2.0",
            "method": "notifications/resources/updated",
            "params": {
                "_meta": {"io.modelcontextprotocol/subscriptionId": "w-1"},
                "uri": "weather://station/rooftop",
            },
        }))
    );
    let after = client.ask("resources/read", read).await;
    assert_eq!(after["result"]["ttlMs"], 1_000);
    assert_ne!(before["result"]["contents"], after["result"]["contents"]);
    let malformed = client
        .ask(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": 1}}),
        )
        .await;
    assert_eq!(malformed["error"]["code"], -32602);
}

#[tokio::test]
async fn closed_listener_is_forgotten() {
    let (weather, client) = served().await;
    let everything = json!({"notifications": {}});
    let mut stream = client.post("subscriptions/listen", everything).await;
    stream.event().await.expect("an acknowledgement");
    assert_eq!(weather.changes().receiver_count(), 1);
    drop(stream);
    let forgotten = async {
        while weather.changes().receiver_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(forgotten).await;
}

#[tokio::test(start_paused = true)]
async fn station_measures_by_itself() {
    let weather = Weather::new();
    let mut changes = weather.changes().subscribe();
    let watching = async {
        changes.recv().await.expect("a first measurement");
        changes.recv().await.expect("a second one");
    };
    tokio::select! {
        () = weather.keep_measuring() => panic!("the station stopped"),
        () = watching => {}
    }
}

#[tokio::test]
async fn resources_are_read_by_uri_and_template() {
    let (_, client) = served().await;
    let read = async |uri: &str| client.ask("resources/read", json!({"uri": uri})).await;
    assert_eq!(
        read("weather://forecast/Park%20City/2026-09-01").await,
        json!({
            "jsonrpc": "2.0",
            "id": "w-1",
            "result": {
                "resultType": "complete",
                "contents": [{
                    "uri": "weather://forecast/Park%20City/2026-09-01",
                    "mimeType": "application/json",
                    "text": read("weather://current/Park%20City").await["result"]["contents"][0]["text"],
                }],
                "ttlMs": 3_600_000,
                "cacheScope": "public",
                "_meta": identity(),
            },
        })
    );
    let sun = read("weather://icons/sun").await;
    assert!(
        sun["result"]["contents"][0]["blob"]
            .as_str()
            .expect("a blob")
            .starts_with("iVBORw0KGgo")
    );
    for uri in [
        "weather://forecast/Atlantis/2026-09-01",
        "weather://forecast/Paris/2026-02-30",
        "weather://moon",
    ] {
        let error = json!({"code": -32602, "message": "resource not found", "data": {"uri": uri}});
        assert_eq!(read(uri).await["error"], error);
    }
}

#[tokio::test]
async fn cities_are_completed_and_prompts_carry_the_forecast() {
    let (_, client) = served().await;
    let complete = async |of: Value, argument: &str| {
        let params = json!({"ref": of, "argument": {"name": argument, "value": "Par"}});
        client.ask("completion/complete", params).await
    };
    let template = json!({"type": "ref/resource", "uri": "weather://forecast/{city}/{date}"});
    let expected = json!({"values": ["Paris", "Park City"], "total": 2, "hasMore": false});
    assert_eq!(
        complete(template.clone(), "city").await["result"]["completion"],
        expected
    );
    assert_eq!(complete(template, "moon").await["error"]["code"], -32602);
    let unknown = json!({"type": "ref/prompt", "name": "what_to_eat"});
    assert_eq!(complete(unknown, "city").await["error"]["code"], -32602);

    let prompt = async |name: &str, arguments: Value| {
        client
            .ask("prompts/get", json!({"name": name, "arguments": arguments}))
            .await
    };
    let answer = prompt(
        "what_to_wear",
        json!({"city": "Oslo", "date": "2026-12-24"}),
    )
    .await;
    let resource = &answer["result"]["messages"][1]["content"]["resource"];
    assert_eq!(resource["uri"], "weather://forecast/Oslo/2026-12-24");
    let missing = json!({"code": -32602, "message": "what_to_wear: missing argument `city`"});
    assert_eq!(prompt("what_to_wear", json!({})).await["error"], missing);
    assert_eq!(
        prompt("what_to_eat", json!({})).await["error"]["code"],
        -32602
    );
}
