//! Lists show what may be used and nothing else, and say that they are for one caller only.

use serde_json::Value;

use super::{ANA_AND_BOB, LEGACY, MODERN, governed, notes};
use crate::harness::{Client, Gateway, Pairing, Upstream, names, parse, resource, tool};

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "name"),
    ("prompts/list", "name"),
    ("resources/list", "uri"),
    ("resources/templates/list", "uriTemplate"),
];

/// Every item of each list.
const EVERYTHING: [[&str; 2]; 4] = [
    ["notes_a", "notes_b"],
    ["notes_a", "notes_b"],
    ["notes+note://a", "notes+note://b"],
    ["notes+note://a/{x}", "notes+note://b/{x}"],
];

/// Whether an item can be used.
async fn usable(client: &Client, list: usize, item: &str) -> bool {
    let answer = match list {
        0 => client.call(item, "{}").await,
        1 => {
            client
                .ask("prompts/get", &format!(r#"{{"name":"{item}"}}"#))
                .await
        }
        _ => client.read(&item.replace("{x}", "1")).await,
    };
    parse(answer.message())["error"].is_null()
}

pairings! {
    /// SECURITY AUTHZ-6
    async fn what_is_listed_can_be_used_and_what_is_not_listed_cannot(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = governed(&notes, ANA_AND_BOB).await;
        for (who, count) in [("ana", 2), ("bob", 1), ("carl", 0)] {
            let client = gateway.client_as(who, pair.client, "{}").await;
            for (list, (method, key)) in LISTS.into_iter().enumerate() {
                let listed = client.all(method, key).await;
                // What a template may expand to is not known, so that bob sees both.
                let open = list == 3 && who == "bob";
                assert!(open || listed.len() == count, "{who} {method} {listed:?}");
                for item in EVERYTHING[list] {
                    let seen = listed.iter().any(|name| name == item);
                    let usable = usable(&client, list, item).await;
                    assert!(usable == seen || open && seen, "{who} {item}");
                }
            }
        }
        // What was refused was not sent.
        assert_eq!(notes.heard("tools/call").len(), 3);
        assert_eq!(notes.heard("prompts/get").len(), 3);
    }
}

/// SECURITY AUTHZ-6, AUTHZ-9
#[tokio::test]
async fn authz_9_a_twisted_address_is_neither_listed_nor_read_with_policies_and_without() {
    let plain = ["file:///a b", "file:///c:/x%20y?z=../w"];
    let twisted = ["file:///pub/../x", "file:///100%.txt"];
    let uris = plain.iter().chain(&twisted);
    let notes = Upstream::http(MODERN).resources(uris.map(|uri| resource(uri)));
    let open = Gateway::of().upstream("notes", &notes).start().await;
    let closed = governed(&notes, "permit(principal, action, resource);").await;
    for (gateway, client) in [
        (&open, open.client(MODERN).await),
        (&closed, closed.client_as("ana", MODERN, "{}").await),
    ] {
        let listed = client.all("resources/list", "uri").await;
        assert_eq!(listed, plain.map(|uri| format!("notes+{uri}")));
        for uri in &listed {
            client.read(uri).await.result();
        }
        for uri in twisted {
            let answer = client.read(&format!("notes+{uri}")).await;
            assert_eq!(answer.refusal().1, "unknown_name", "{uri}");
        }
        let reports = gateway.reports("notes");
        assert_eq!(reports.len(), 2, "{reports:?}");
        let told = |report: &String| report.contains("may mean another address than it reads as");
        assert!(reports.iter().all(told), "{reports:?}");
    }
    assert_eq!(notes.heard("resources/read").len(), 2 * plain.len());
}

#[tokio::test]
async fn a_filtered_list_is_private_whatever_the_upstream_says() {
    let notes = notes(MODERN).cached(60_000, "public");
    let gateway = governed(&notes, ANA_AND_BOB).await;
    for who in ["ana", "bob"] {
        let client = gateway.client_as(who, MODERN, "{}").await;
        for (method, _) in LISTS {
            let page = client.ask(method, "{}").await.value();
            assert_eq!(page["cacheScope"], "private", "{who} {method}");
            assert!(page["ttlMs"].as_u64().unwrap() > 0, "{page}");
        }
    }
    let open = Gateway::of().upstream("notes", &notes).start().await;
    let client = open.client(MODERN).await;
    assert_eq!(
        client.ask("tools/list", "{}").await.value()["cacheScope"],
        "public"
    );
}

#[tokio::test]
async fn pages_of_a_filtered_list_go_on_where_they_ended_and_only_for_their_reader() {
    let all = (0..60).map(|n| tool(&format!("{}{n:02}", if n % 3 == 0 { "x" } else { "y" })));
    let notes = Upstream::http(MODERN).tools(all);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .setting("page_size: { items: 7 }")
        .policies(
            r#"permit(principal == User::"ana", action, resource) when { resource.name like "notes_x*" };
               permit(principal == User::"bob", action, resource);"#,
        )
        .start()
        .await;
    let ana = gateway.client_as("ana", MODERN, "{}").await;
    let bob = gateway.client_as("bob", MODERN, "{}").await;
    let listed = ana.tools().await;
    assert_eq!(listed.len(), 20);
    assert!(listed.iter().all(|name| name.starts_with("notes_x")));
    assert_eq!(bob.tools().await.len(), 60);
    let page = ana.ask("tools/list", "{}").await.value();
    let cursor = page["nextCursor"].to_string();
    let stolen = bob
        .ask("tools/list", &format!(r#"{{"cursor":{cursor}}}"#))
        .await;
    assert_eq!(stolen.refusal(), (-32602, "invalid_cursor".into()));
}

#[tokio::test]
async fn an_endpoint_speaks_only_of_upstreams_of_which_something_is_seen() {
    let (notes, mail) = (notes(MODERN), notes(LEGACY).instructions("how to mail"));
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("mail", &mail)
        .policies(ANA_AND_BOB)
        .start()
        .await;
    let told = async |who: &str| {
        let client = gateway.client_as(who, MODERN, "{}").await;
        let card = client.ask("server/discover", "{}").await.value();
        card["instructions"].as_str().unwrap_or_default().to_owned()
    };
    assert!(told("ana").await.contains("how to take notes"));
    assert!(!told("ana").await.contains("mail"));
    assert_eq!(told("carl").await, "");
    let greeting = gateway.client_as("ana", LEGACY, "{}").await.greeting;
    let greeting = greeting.unwrap().value()["instructions"].to_string();
    assert!(
        greeting.contains("how to take notes") && !greeting.contains("mail"),
        "{greeting}"
    );
}

// SECURITY AUTHZ-8
#[tokio::test]
async fn a_toolset_and_an_upstreams_own_endpoint_are_under_the_same_policies() {
    let notes = notes(MODERN);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .toolset("both", r#"tools: ["*"]"#)
        .policies(
            r#"permit(principal, action, resource == Tool::"notes_a");
               permit(principal, action, resource in Toolset::"both") when { resource.name == "notes_b" && context has toolset && context.toolset == "both" };"#,
        )
        .start()
        .await;
    let listed = async |path: &str| {
        let client = gateway.client_as_at(path, "ana", MODERN, "{}");
        let page = client.await.unwrap().ask("tools/list", "{}").await.value();
        names(&page, "tools", "name")
    };
    assert_eq!(listed("/mcp").await, ["notes_a"]);
    assert_eq!(listed("/mcp/u/notes").await, ["a"]);
    assert_eq!(listed("/mcp/both").await, ["notes_a", "notes_b"]);
    let own = gateway.client_as_at("/mcp/u/notes", "ana", MODERN, "{}");
    let own = own.await.unwrap();
    assert_eq!(own.call("a", "{}").await.text(), "called a");
    assert_eq!(
        own.call("b", "{}").await.refusal(),
        (-32602, "unknown_name".into())
    );
    // No endpoint that is not there falls back to a wider one.
    for path in ["/mcp/other", "/mcp/u/other", "/mcp/u/notes/x"] {
        let client = gateway.client_as_at(path, "ana", MODERN, "{}");
        let answer = client.await.unwrap().ask("tools/list", "{}").await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

// SECURITY AUTHZ-11
#[tokio::test]
async fn authz_11_what_a_client_calls_itself_and_what_a_server_calls_itself_permits_nothing() {
    let notes = notes(MODERN);
    // `raw` is what these clients call themselves, `scripted` what the server does.
    let gateway = governed(
        &notes,
        r#"permit(principal == User::"raw", action, resource);
           permit(principal == Agent::"raw", action, resource);
           permit(principal == Key::"raw", action, resource);
           permit(principal, action, resource) when { context has client && context.client == "raw" };
           permit(principal, action, resource in Upstream::"scripted");"#,
    )
    .await;
    for revision in [MODERN, LEGACY] {
        let bob = gateway.client_as("bob", revision, "{}").await;
        let answer = bob
            .call("notes_a", "{}")
            .meta(r#""io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"user":"raw","client":"raw""#)
            .await;
        assert_eq!(answer.tool_error(), "policy_denied");
    }
    assert!(notes.heard("tools/call").is_empty());
}

// SECURITY AUTHZ-11
#[tokio::test]
async fn what_an_upstream_claims_of_its_tools_permits_nothing_until_the_operator_says_it() {
    let claimed =
        r#"{"name":"c","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#;
    let notes = Upstream::http(MODERN).tools([claimed.to_owned(), tool("p"), tool("t")]);
    let gateway = Gateway::of()
        .upstream_with(
            "notes",
            &notes,
            r#"tools: { annotations: { p: { read_only: true } } }, tags: { "t*": [safe] }"#,
        )
        .policies(
            r#"permit(principal, action, resource is Tool) when { resource has read_only && resource.read_only };
               permit(principal, action, resource is Tool) when { resource.tags.contains("safe") };"#,
        )
        .start()
        .await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    assert_eq!(client.tools().await, ["notes_p", "notes_t"]);
    assert_eq!(
        client.call("notes_c", "{}").await.refusal(),
        (-32602, "unknown_name".into())
    );
    assert_eq!(client.call("notes_p", "{}").await.text(), "called p");
    let seen: Value = client.ask("tools/list", "{}").await.value();
    assert_eq!(seen["tools"].as_array().unwrap().len(), 2);
}
