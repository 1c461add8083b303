//! Real servers behind one Usher, seen by real clients.
//!
//! Each test takes one client and asks every server for everything it lists and for one call of each kind, first directly and
//! then through an Usher which has all the servers behind it. The answers have to be the same JSON, once the rewrites that
//! Usher documents are undone; every item has to be listed exactly once, in its server's order, and nothing else.
//!
//! Needs what `tests/run` installs. What the peers send on the wire below JSON is not looked at here.
#![expect(
    clippy::disallowed_types,
    reason = "the answers of peers are compared as trees"
)]
#![expect(
    clippy::expect_used,
    reason = "this file is all test; what is expected is the setting up"
)]

mod admin;
mod client;
mod compare;
mod connect;
mod exchange;
mod import;
mod login;
mod observed;
mod paging;
mod pins;
mod pipe;
mod prometheus;
mod servers;
mod two_way;
mod usher;

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::{
    client::{Client, Connection},
    servers::{Server, World},
    usher::Usher,
};

const LISTS: [&str; 4] = [
    "list_tools",
    "list_prompts",
    "list_resources",
    "list_templates",
];

#[tokio::test]
async fn typescript_1_sees_through_usher_what_it_sees_directly() {
    let client = Client::node("typescript-1.mjs");
    compare(&client.clone(), &client).await;
}

#[tokio::test]
async fn typescript_2_modern_sees_through_usher_what_it_sees_directly() {
    let client = Client::node("typescript-2.mjs");
    compare(&client.era("auto"), &client.era("modern")).await;
}

#[tokio::test]
async fn python_modern_sees_through_usher_what_it_sees_directly() {
    let client = Client::python("python.py");
    compare(&client.era("auto"), &client.era("modern")).await;
}

#[tokio::test]
async fn python_legacy_sees_through_usher_what_it_sees_directly() {
    let client = Client::python("python.py").era("legacy");
    compare(&client, &client).await;
}

#[tokio::test]
async fn rmcp_modern_sees_through_usher_what_it_sees_directly() {
    let client = Client::example("rmcp-client");
    compare(&client.era("auto"), &client.era("modern")).await;
}

#[tokio::test]
async fn rmcp_legacy_sees_through_usher_what_it_sees_directly() {
    let client = Client::example("rmcp-client").era("legacy");
    compare(&client, &client).await;
}

/// The Inspector is built on the TypeScript client, starts once per step and takes seconds per server directly, so that
/// client stands in for it there.
#[tokio::test]
async fn the_inspector_sees_through_usher_what_its_sdk_sees_directly() {
    let reference = Client::node("typescript-2.mjs").era("legacy");
    compare(&reference, &Client::inspector()).await;
}

/// Compares what `reference` gets directly with what `client` gets through Usher.
///
/// One server's answer holds today's date, so a run over midnight says nothing and is repeated.
async fn compare(reference: &Client, client: &Client) {
    let mut differences = Vec::new();
    for _ in 0..2 {
        let day = today();
        differences = differences_between(reference, client).await;
        if today() == day {
            break;
        }
    }
    let count = differences.len();
    let first = differences.iter().take(40).cloned().collect::<Vec<_>>();
    assert!(count == 0, "{count} differences\n{}", first.join("\n"));
}

async fn differences_between(reference: &Client, client: &Client) -> Vec<String> {
    let world = World::new().await;
    let servers = world.servers();
    let mut direct = Vec::new();
    for server in &servers {
        direct.push(ask_directly(reference, server, client).await);
    }
    let usher = Usher::start(&world, &servers).await;
    usher.wait_until_it_lists(lengths(&direct)).await;
    let through = ask_through(client, usher.connection(), &servers).await;
    usher.stop().await;
    compare::all(&servers, &direct, client, &through)
}

/// How many items the lists of all servers hold together.
fn lengths(answers: &[Answers]) -> [usize; 4] {
    LISTS.map(|list| answers.iter().map(|all| all.items(list).len()).sum())
}

/// What one server answered: its lists by operation, and its calls in order.
pub(crate) struct Answers {
    lists: Vec<(&'static str, Vec<Value>)>,
    calls: Vec<(Value, Value)>,
}

impl Answers {
    fn items(&self, list: &str) -> &[Value] {
        let found = self.lists.iter().find(|(name, _)| *name == list);
        found.map_or(&[], |(_, items)| items)
    }
}

async fn ask_directly(reference: &Client, server: &Server, client: &Client) -> Answers {
    let calls = server.calls.iter().filter(|step| client.can(step));
    let calls = calls.cloned().collect::<Vec<_>>();
    let mut results = reference
        .knowing(server.era)
        .run(&server.connection, &with_lists(calls.clone()))
        .await;
    let called = results.split_off(LISTS.len());
    for (step, result) in calls.iter().zip(&called) {
        let prefix = server.prefix;
        assert!(
            result.get("ok").is_some(),
            "{prefix} refuses {step} directly: {result}"
        );
    }
    let lists = LISTS.into_iter().zip(results.into_iter().map(items));
    let answers = Answers {
        lists: lists.collect(),
        calls: calls.into_iter().zip(called).collect(),
    };
    let (prefix, missed) = (server.prefix, compare::not_asked_for(&answers));
    assert!(
        missed.is_empty(),
        "{prefix} lists what nothing asks for: {missed:?}"
    );
    answers
}

async fn ask_through(client: &Client, connection: &Connection, servers: &[Server]) -> Vec<Answers> {
    let calls = servers.iter().flat_map(|server| {
        let can = server.calls.iter().filter(|step| client.can(step));
        can.map(move |step| {
            (
                server.prefix,
                step.clone(),
                compare::exposed(step, server.prefix),
            )
        })
    });
    let calls = calls.collect::<Vec<_>>();
    let steps = calls.iter().map(|(_, _, step)| step.clone()).collect();
    let mut results = client.run(connection, &with_lists(steps)).await;
    let called = results.split_off(LISTS.len());
    let lists = LISTS.into_iter().zip(results.into_iter().map(items));
    let mut lists = compare::by_server(servers, lists.collect());
    let mut answers = Vec::new();
    for server in servers {
        let of_server = calls.iter().zip(&called);
        let of_server = of_server.filter(|((prefix, ..), _)| *prefix == server.prefix);
        let calls = of_server.map(|((_, step, _), result)| (step.clone(), result.clone()));
        answers.push(Answers {
            lists: lists.remove(0),
            calls: calls.collect(),
        });
    }
    answers
}

fn with_lists(calls: Vec<Value>) -> Vec<Value> {
    let lists = LISTS.into_iter().map(|op| json!({"op": op}));
    lists.chain(calls).collect()
}

/// The items of a list's result. A server without the capability has none.
fn items(result: Value) -> Vec<Value> {
    if let Some(lists) = result["ok"].as_object() {
        let items = lists.values().filter_map(Value::as_array);
        return items.flatten().cloned().collect();
    }
    assert_eq!(result["error"]["code"], -32601, "a list failed: {result}");
    Vec::new()
}

fn today() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() / 86_400)
}
