//! `usher stdio` as the command that a client launches.
//!
//! The client asks at once, as hosts do: nothing waits until the server behind Usher is there.

use serde_json::json;

use crate::{
    ask_directly, ask_through,
    client::{Client, Connection},
    compare,
    servers::World,
    usher::configure,
};

#[tokio::test]
async fn typescript_1_that_launches_usher_sees_what_it_sees_directly() {
    let client = Client::node("typescript-1.mjs");
    compare_launched(&client, &client).await;
}

#[tokio::test]
async fn python_modern_that_launches_usher_sees_what_it_sees_directly() {
    let client = Client::python("python.py");
    compare_launched(&client.era("auto"), &client.era("modern")).await;
}

async fn compare_launched(reference: &Client, client: &Client) {
    let world = World::new().await;
    let servers = world.servers_named(&["everything"]);
    let direct = [ask_directly(reference, &servers[0], client).await];
    let file = configure(&world, &servers, json!({}));
    let usher = env!("CARGO_BIN_EXE_usher");
    let command = Connection::Command(format!("'{usher}' stdio -c '{file}'"));
    let through = ask_through(client, &command, &servers).await;
    let differences = compare::all(&servers, &direct, client, &through);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
