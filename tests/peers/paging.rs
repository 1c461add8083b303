//! Lists of many pages, read to their end by every client (issue 2, acceptance 5).
//!
//! Ten servers of the Rust SDK, half of them modern over HTTP and half legacy on pipes, offer two hundred items of each kind,
//! seven on a page; Usher shows fifty on a page. What happens while servers change is for `tests/gateway/pagination.rs`.

use serde_json::{Value, json};
use tokio::process::Child;

use crate::{
    LISTS,
    client::{Client, Connection, example},
    servers::{Server, World, free_port, start_fixture},
    usher::{Usher, configure},
};

const KEYS: [&str; 10] = ["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"];
const ITEMS: usize = 200;

#[tokio::test]
async fn every_client_reads_two_thousand_items_of_each_kind_exactly_once() {
    let world = World::new().await;
    let (servers, _processes) = crowd().await;
    for server in &servers {
        assert_eq!(first_page(server.era, &server.connection).await, (7, true));
    }
    let port = free_port();
    let settings = json!({
        "listen": {"address": format!("127.0.0.1:{port}")},
        "page_size": {"items": 50},
    });
    let file = configure(&world, &servers, settings);
    let usher = Usher::serve(&world, &file, port, &[]).await;
    usher
        .wait_until_it_lists([KEYS.len() * ITEMS; LISTS.len()])
        .await;
    assert_eq!(first_page("modern", usher.connection()).await, (50, true));
    let wanted = LISTS.map(offered);
    for (name, client) in [
        ("TypeScript 1", Client::node("typescript-1.mjs")),
        (
            "TypeScript 2, legacy",
            Client::node("typescript-2.mjs").era("legacy"),
        ),
        (
            "TypeScript 2, modern",
            Client::node("typescript-2.mjs").era("modern"),
        ),
        ("Python, legacy", Client::python("python.py").era("legacy")),
        ("Python, modern", Client::python("python.py").era("modern")),
        ("rmcp, legacy", Client::example("rmcp-client").era("legacy")),
        ("rmcp, modern", Client::example("rmcp-client").era("modern")),
        ("the Inspector, legacy", Client::inspector().era("legacy")),
        ("the Inspector, modern", Client::inspector().era("modern")),
    ] {
        let steps = LISTS.map(|op| json!({"op": op}));
        let results = client.run(usher.connection(), &steps).await;
        for (list, (result, wanted)) in LISTS.iter().zip(results.iter().zip(&wanted)) {
            let told = told(list, result);
            let pairs = told.iter().zip(wanted);
            let first = pairs.enumerate().find(|(_, (told, wanted))| told != wanted);
            let (count, place) = (told.len(), first);
            assert!(
                told == *wanted,
                "{name} reads {count} by {list}; what is told and what is wanted first differs at {place:?}"
            );
        }
    }
    usher.stop().await;
}

/// The servers, and the processes of those that no client starts.
async fn crowd() -> (Vec<Server>, Vec<Child>) {
    let items = ITEMS.to_string();
    let paged = ["--crowd", &items, "--page", "7"];
    let (mut servers, mut processes) = (Vec::new(), Vec::new());
    for (number, prefix) in KEYS.into_iter().enumerate() {
        let (era, connection) = if number % 2 == 0 {
            let (url, process) = start_fixture(&paged).await;
            processes.push(process);
            ("modern", Connection::Url(url))
        } else {
            let program = example("fixture");
            let paged = paged.join(" ");
            let command = format!(
                "'{}' --stdio --revision 2025-11-25 {paged}",
                program.display()
            );
            ("legacy", Connection::Command(command))
        };
        servers.push(Server {
            prefix,
            connection,
            era,
            tasks: false,
            configuration: json!({"timeout": {"connect": "30s"}}),
            calls: Vec::new(),
        });
    }
    (servers, processes)
}

/// How many tools somebody gets who follows no cursors, and whether there is one to follow.
async fn first_page(era: &'static str, connection: &Connection) -> (usize, bool) {
    let client = Client::example("rmcp-client").era(era);
    let steps = [json!({"op": "first_page"})];
    let page = client.run(connection, &steps).await.remove(0);
    let tools = page["ok"]["tools"].as_array().map_or(0, Vec::len);
    (tools, page["ok"]["nextCursor"].is_string())
}

/// Everything on a list, in the order of the configuration and of the servers' own lists.
fn offered(list: &str) -> Vec<String> {
    let item = |key: &str, number: usize| match list {
        "list_tools" => format!("{key}_tool{number:03}"),
        "list_prompts" => format!("{key}_prompt{number:03}"),
        "list_resources" => format!("{key}+crowd://{number:03}"),
        _ => format!("{key}+crowd://{number:03}/{{part}}"),
    };
    let of = |key| (0..ITEMS).map(move |number| item(key, number));
    KEYS.into_iter().flat_map(of).collect()
}

/// What a client was told, by the names that items go by.
fn told(list: &str, result: &Value) -> Vec<String> {
    let (key, field) = match list {
        "list_tools" => ("tools", "name"),
        "list_prompts" => ("prompts", "name"),
        "list_resources" => ("resources", "uri"),
        _ => ("resourceTemplates", "uriTemplate"),
    };
    let items = result["ok"][key].as_array();
    let items = items.unwrap_or_else(|| panic!("{list} failed: {result}"));
    let names = items.iter().filter_map(|item| item[field].as_str());
    names.map(str::to_owned).collect()
}
