//! Servers that talk back, behind one Usher.
//! Real servers of both eras ask real clients of both eras, log, report progress and tell of changes.
//!
//! Legacy is `server-everything` and modern the fixture made with `rmcp`; each of the four pairings has a test. Every step is
//! held against what the server makes of the answer, and what the client heard against what the server was to say.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::{
    client::Client,
    servers::{Server, World, start_beside},
    usher::Usher,
};

/// How long an interpreter and Usher's own connections may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_everything_server_asks_typescript_1_and_tells_it_what_changes() {
    let heard = everything(&Client::node("two_way-1.mjs"), "-32042").await;
    // An older client comes back by itself, if it likes; this one does not.
    assert_eq!(count(&heard, "elicitation/create"), 3);
}

#[tokio::test]
async fn the_everything_server_asks_typescript_2_modern_and_tells_it_what_changes() {
    let heard = everything(&Client::node("two_way-2.mjs"), "completed the URL").await;
    assert_eq!(count(&heard, "elicitation/create"), 5);
}

#[tokio::test]
async fn the_rmcp_server_asks_python_legacy_and_tells_it_what_changes() {
    fixture(&Client::python("two_way.py").era("legacy")).await;
}

#[tokio::test]
async fn the_rmcp_server_asks_python_modern_and_tells_it_what_changes() {
    fixture(&Client::python("two_way.py").era("modern")).await;
}

#[tokio::test]
async fn the_rmcp_server_asks_typescript_2_modern_and_tells_it_what_changes() {
    fixture(&Client::node("two_way-2.mjs")).await;
}

/// Servers of the official SDKs do so whose tools do not say which request they are at work on.
#[tokio::test]
async fn a_typescript_1_server_that_asks_beside_the_call_is_answered_by_clients_of_both_eras() {
    for client in ["two_way-1.mjs", "two_way-2.mjs"] {
        let steps = [
            (json!({"op": "level", "level": "debug"}), ""),
            (call("beside_elicit", json!({})), r#""name":"Ada""#),
            (call("beside_sample", json!({})), "parrot heard: hello"),
            (call("beside_roots", json!({})), "file:///home/ada"),
            (call("beside_log", json!({})), "logged"),
            (json!({"op": "wait", "method": "notifications/message"}), ""),
        ];
        let world = World::new().await;
        let (server, _process) = start_beside().await;
        let heard = talk_to(&world, &[server], &Client::node(client), &steps).await;
        for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
            assert_eq!(count(&heard, method), 1, "{client}: {method}");
        }
        let logged = params(&heard, "notifications/message");
        assert_eq!(logged.len(), 1, "{client}: {logged:?}");
        assert_eq!(logged[0]["data"], "said beside the call");
    }
}

/// Over HTTP with a session for each client, on a pipe that all share, and on a pipe for each client: which of them a thing
/// needs is said in `deploy/manual/upstreams.md`. `asked_by_error` is how a call ends that demands a visit to a URL by an error.
async fn everything(client: &Client, asked_by_error: &str) -> Vec<Value> {
    let agenda = "shared+demo://resource/dynamic/text/1";
    let steps = [
        (json!({"op": "level", "level": "debug"}), ""),
        (
            call("web_trigger-elicitation-request", json!({})),
            "- Name: Ada",
        ),
        (
            call(
                "web_trigger-sampling-request",
                json!({"prompt": "over HTTP"}),
            ),
            "parrot heard: Resource trigger-sampling-request context: over HTTP",
        ),
        (
            call(
                "web_trigger-url-elicitation",
                json!({"url": "https://example.com/"}),
            ),
            "completed the URL",
        ),
        (
            call(
                "web_trigger-url-elicitation",
                json!({"url": "https://example.org/", "errorPath": true}),
            ),
            asked_by_error,
        ),
        (
            call(
                "web_trigger-long-running-operation",
                json!({"duration": 0.4, "steps": 4}),
            ),
            "Steps: 4",
        ),
        (
            call("own_trigger-elicitation-request", json!({})),
            "- Name: Ada",
        ),
        (
            call(
                "own_trigger-sampling-request",
                json!({"prompt": "on a pipe"}),
            ),
            "parrot heard: Resource trigger-sampling-request context: on a pipe",
        ),
        (call("own_get-roots-list", json!({})), "file:///home/ada"),
        // Which asks beside the call.
        (call("web_get-roots-list", json!({})), "file:///home/ada"),
        // It logs every five seconds.
        (call("own_toggle-simulated-logging", json!({})), "Started"),
        (
            call(
                "own_trigger-long-running-operation",
                json!({"duration": 6, "steps": 1}),
            ),
            "Steps: 1",
        ),
        (json!({"op": "wait", "method": "notifications/message"}), ""),
        (json!({"op": "subscribe", "uri": agenda}), ""),
        (
            call("shared_toggle-subscriber-updates", json!({})),
            "Started",
        ),
        (
            json!({"op": "wait", "method": "notifications/resources/updated"}),
            "",
        ),
    ];
    let heard = talk(client, &steps).await;
    assert_eq!(count(&heard, "sampling/createMessage"), 2);
    assert_eq!(progress(&heard), [1.0, 2.0, 3.0, 4.0, 1.0]);
    let updated = params(&heard, "notifications/resources/updated");
    assert!(updated.iter().all(|params| params["uri"] == agenda));
    let logged = params(&heard, "notifications/message");
    let logger = |line: &&Value| line["logger"].as_str().unwrap_or_default().to_owned();
    let of_one = ["own", "web"];
    assert!(
        logged
            .iter()
            .all(|line| of_one.iter().any(|own| logger(line).starts_with(own))),
        "{logged:?}"
    );
    let simulated = |line: &&Value| line["data"].to_string().contains("evel");
    assert!(logged.iter().any(simulated), "{logged:?}");
    heard
}

async fn fixture(client: &Client) {
    let watched = "fixture+test://watched-resource";
    let steps = [
        (json!({"op": "level", "level": "debug"}), ""),
        (
            call("fixture_test_elicitation", json!({"message": "Who?"})),
            r#"action=accept, content={"username":"Ada""#,
        ),
        (
            call("fixture_test_sampling", json!({"prompt": "hello"})),
            "LLM response: parrot heard: hello",
        ),
        (
            call(
                "fixture_test_input_required_result_multiple_inputs",
                json!({}),
            ),
            "All three are here",
        ),
        (
            call("fixture_test_input_required_result_multi_round", json!({})),
            "Both rounds are played",
        ),
        (
            call("fixture_test_input_required_result_list_roots", json!({})),
            "The roots are: file:///home/ada",
        ),
        (
            call("fixture_test_tool_with_progress", json!({})),
            "Progress was reported",
        ),
        (call("fixture_test_logging_tool", json!({})), "Done"),
        (json!({"op": "wait", "method": "notifications/message"}), ""),
        (json!({"op": "subscribe", "uri": watched}), ""),
        (
            call("fixture_test_trigger_resource_update", json!({})),
            "Everybody was told",
        ),
        (
            json!({"op": "wait", "method": "notifications/resources/updated"}),
            "",
        ),
    ];
    let heard = talk(client, &steps).await;
    assert_eq!(count(&heard, "elicitation/create"), 4);
    assert_eq!(count(&heard, "sampling/createMessage"), 2);
    assert_eq!(count(&heard, "roots/list"), 2);
    assert_eq!(progress(&heard), [0.0, 50.0, 100.0]);
    let messages = params(&heard, "elicitation/create");
    assert_eq!(messages[0]["message"], "[fixture] Who?");
    let logged = params(&heard, "notifications/message");
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert_eq!(logged[0]["data"], "The request asked for this");
    let updated = params(&heard, "notifications/resources/updated");
    assert_eq!(updated.len(), 1, "{updated:?}");
    assert_eq!(updated[0]["uri"], watched);
}

/// Performs the steps through Usher, holds each result against the text that it must contain, and returns what was heard.
async fn talk(client: &Client, steps: &[(Value, &str)]) -> Vec<Value> {
    let world = World::new().await;
    talk_to(&world, &servers(&world), client, steps).await
}

/// The same where Usher is in front of these.
async fn talk_to(
    world: &World,
    servers: &[Server],
    client: &Client,
    steps: &[(Value, &str)],
) -> Vec<Value> {
    let usher = Usher::start(world, servers).await;
    let list = [json!({"op": "list_tools"})];
    let listed = async {
        let mut every = interval(Duration::from_millis(250));
        loop {
            every.tick().await;
            let tools = client.run(usher.connection(), &list).await.remove(0);
            let tools = tools.to_string();
            if steps.iter().all(|(step, _)| is_listed(step, &tools)) {
                break;
            }
        }
    };
    let listed = timeout(PATIENCE, listed).await;
    assert!(listed.is_ok(), "not all tools are listed");
    let mut asked: Vec<Value> = steps.iter().map(|(step, _)| step.clone()).collect();
    asked.push(json!({"op": "heard"}));
    let mut results = client.run(usher.connection(), &asked).await;
    let heard = results.pop().map(|mut result| result["ok"].take());
    for ((step, expected), result) in steps.iter().zip(&results) {
        let mut said = result["error"].to_string();
        for block in result["ok"]["content"].as_array().into_iter().flatten() {
            said.push_str(block["text"].as_str().unwrap_or_default());
        }
        let ended_well = result.get("error").is_none() || !expected.is_empty();
        assert!(ended_well && said.contains(expected), "{step}: {result}");
    }
    usher.stop().await;
    let heard = heard.as_ref().and_then(Value::as_array);
    heard.expect("the client took notes").clone()
}

fn servers(world: &World) -> Vec<Server> {
    let mut servers = world.servers_named(&["web", "everything", "fixture"]);
    servers[0].configuration = json!({"isolation": "session"});
    servers[1].prefix = "shared";
    let mut own = world.servers_named(&["everything"]).remove(0);
    own.prefix = "own";
    own.configuration["isolation"] = json!("session");
    servers.push(own);
    servers
}

fn is_listed(step: &Value, tools: &str) -> bool {
    let name = step["name"].as_str();
    name.is_none_or(|name| tools.contains(&format!("\"{name}\"")))
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"op": "call", "name": name, "arguments": arguments})
}

fn params<'a>(heard: &'a [Value], method: &str) -> Vec<&'a Value> {
    let notes = heard.iter().filter(|note| note["method"] == method);
    notes.map(|note| &note["params"]).collect()
}

fn count(heard: &[Value], method: &str) -> usize {
    params(heard, method).len()
}

/// How far the servers said to be. The TypeScript client reports its own rounds in the same way, without a total; the Python
/// client reports each step a second time, with its token.
fn progress(heard: &[Value]) -> Vec<f64> {
    let steps = params(heard, "notifications/progress").into_iter();
    let steps = steps.filter(|step| step["progressToken"].is_null() && !step["total"].is_null());
    steps.filter_map(|step| step["progress"].as_f64()).collect()
}
