//! Files of other programs become a configuration, which is checked, served and listed.

use std::{fs, process::Output};

use serde_json::json;
use tokio::process::Command;

use crate::{
    ask_directly, ask_through,
    client::{Client, node, package, venv},
    compare, lengths,
    servers::{World, free_port},
    usher::Usher,
};

const SECRET: &str = "sk-live-0123456789abcdef";

#[tokio::test]
async fn files_of_claude_desktop_vs_code_and_cursor_are_imported_checked_and_served() {
    let world = World::new().await;
    let [claude, vs_code, cursor] = files(&world);
    let all = ["everything", "files", "fixture", "time"];
    is_served(&world, &[&claude, &vs_code, &cursor], &all).await;
}

#[tokio::test]
async fn a_file_of_claude_desktop_alone_is_imported_checked_and_served() {
    let world = World::new().await;
    let [claude, ..] = files(&world);
    is_served(&world, &[&claude], &["everything"]).await;
}

#[tokio::test]
async fn a_file_of_vs_code_alone_is_imported_checked_and_served() {
    let world = World::new().await;
    let [_, vs_code, _] = files(&world);
    is_served(&world, &[&vs_code], &["files", "fixture"]).await;
}

#[tokio::test]
async fn a_file_of_cursor_alone_is_imported_checked_and_served() {
    let world = World::new().await;
    let [.., cursor] = files(&world);
    is_served(&world, &[&cursor], &["time"]).await;
}

/// Imports `from`, has the result checked and served, and compares what these servers, all that is in it, answer directly and
/// through it.
async fn is_served(world: &World, from: &[&str], prefixes: &[&str]) {
    let file = world.path("usher.yaml");
    let imported = usher(&[&["import"], from, &["-o", &file]].concat(), &[]).await;
    assert!(imported.status.success(), "{imported:?}");
    let mut text = fs::read_to_string(&file).expect("the import is there");
    assert!(!text.contains(SECRET), "{text}");

    let mut variables = Vec::new();
    let told = String::from_utf8_lossy(&imported.stderr);
    let is_secret = prefixes.contains(&"time");
    assert_eq!(told.contains("export CLOCK_API_KEY="), is_secret, "{told}");
    if is_secret {
        let refused = usher(&["check", "-c", &file], &variables).await;
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        variables.push(("CLOCK_API_KEY", SECRET));
    }
    let accepted = usher(&["check", "-c", &file], &variables).await;
    assert!(accepted.status.success(), "{accepted:?}");

    // Where it listens by itself may be taken.
    let port = free_port();
    text.push_str(&format!("listen: {{address: \"127.0.0.1:{port}\"}}\n"));
    // The servers' own words about arguments are compared.
    text.push_str("validate: {arguments: off}\n");
    fs::write(&file, text).expect("the world can be written to");
    let usher = Usher::serve(world, &file, port, &variables).await;
    let client = Client::node("typescript-1.mjs");
    let servers = world.servers_named(prefixes);
    let mut direct = Vec::new();
    for server in &servers {
        direct.push(ask_directly(&client, server, &client).await);
    }
    usher.wait_until_it_lists(lengths(&direct)).await;
    let through = ask_through(&client, usher.connection(), &servers).await;
    usher.stop().await;
    let differences = compare::all(&servers, &direct, &client, &through);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The three files, as those programs write them.
fn files(world: &World) -> [String; 3] {
    let node = node();
    let everything = package("server-everything/dist/index.js");
    let filesystem = package("server-filesystem/dist/index.js");
    let claude = json!({
        "mcpServers": {"everything": {"command": node, "args": [everything, "stdio"]}},
    });
    let stdio = json!({
        "type": "stdio",
        "command": node,
        "args": [filesystem, "${workspaceFolder}/files"],
    });
    let http = json!({"type": "http", "url": world.fixture()});
    let vs_code = format!(
        "{{\n  // what the team uses\n  \"servers\": {{\"files\": {stdio}, \"fixture\": {http},}},\n}}\n"
    );
    let cursor = json!({
        "mcpServers": {
            "time": {
                "command": venv("mcp-server-time"),
                "args": ["--local-timezone=UTC"],
                "env": {"CLOCK_API_KEY": SECRET},
            },
        },
    });
    let write = |name: &str, text: String| {
        let path = world.path(name);
        fs::write(&path, text).expect("the world can be written to");
        path
    };
    for directory in [".vscode", ".cursor"] {
        fs::create_dir(world.path(directory)).expect("likewise");
    }
    [
        write("claude_desktop_config.json", claude.to_string()),
        write(".vscode/mcp.json", vs_code),
        write(".cursor/mcp.json", cursor.to_string()),
    ]
}

async fn usher(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_usher"));
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.args(arguments).envs(variables.iter().copied());
    command.output().await.expect("usher starts")
}
