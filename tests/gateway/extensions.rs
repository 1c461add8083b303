//! Extensions: who is told of which, and how apps and skills pass through an endpoint of many servers (PROTOCOL D4, E, G16).

use serde_json::{Value, json};

use crate::harness::{
    Client, Gateway, Heard, Pairing, Play, Revision, Upstream, member, names, parse, quote,
    resource, tool,
};

const SKILLS: &str = r#"{"tools":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}"#;
const PLAIN_SKILLS: &str = r#"{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}"#;
const ENTRY: &str = r#"{"uri":"skill://acme/refunds/SKILL.md","frontmatter":{"name":"refunds","description":"d","metadata":{"n":1.50}},"resources":[{"uri":"skill://acme/refunds/SKILL.md","digest":"sha256:aa","size":10},{"uri":"skill://acme/refunds/a.md","digest":"sha256:bb","size":1e1}]}"#;

fn skilled(capabilities: &str, entries: &'static str) -> Upstream {
    Upstream::http(Revision::V2026_07_28)
        .capabilities(capabilities)
        .tools([tool("t")])
        .on("skills/list", move |_| {
            Play::Result(format!(r#"{{"skills":[{entries}]}}"#))
        })
}

fn app_tool(name: &str, visibility: &str) -> String {
    format!(
        r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"_meta":{{"ui":{{"resourceUri":"ui://dash/{name}.html","visibility":{visibility}}},"ui/resourceUri":"ui://dash/{name}.html"}}}}"#
    )
}

fn declared(heard: &Heard) -> Value {
    parse(
        &heard
            .meta("io.modelcontextprotocol/clientCapabilities")
            .unwrap(),
    )
}

async fn modern(gateway: &Gateway) -> Client {
    gateway.client(Revision::V2026_07_28).await
}

#[tokio::test]
async fn extensions_are_offered_that_some_server_has_and_we_know() {
    let notes = Upstream::http(Revision::V2026_07_28).capabilities(
        r#"{"tools":{},"extensions":{"com.example/x":{},"io.modelcontextprotocol/skills":{"directoryRead":false,"odd":1},"io.modelcontextprotocol/ui":{"a":1}}}"#,
    );
    let other = skilled(SKILLS, "");
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("other", &other)
        .toolset("few", "upstreams: [notes]")
        .start()
        .await;
    let face = modern(&gateway)
        .await
        .ask("server/discover", "{}")
        .await
        .value();
    assert_eq!(
        face["capabilities"]["extensions"],
        json!({"io.modelcontextprotocol/ui": {"a": 1}, "io.modelcontextprotocol/skills": {"directoryRead": true}})
    );
    let few = gateway.client_at("/mcp/few", Revision::V2026_07_28).await;
    let face = few.ask("server/discover", "{}").await.value();
    assert_eq!(
        face["capabilities"]["extensions"]["io.modelcontextprotocol/skills"],
        json!({})
    );
    let legacy = gateway.client(Revision::V2025_11_25).await;
    let greeting = legacy.greeting.as_ref().unwrap().value();
    assert_eq!(
        greeting["capabilities"]["extensions"],
        json!({"io.modelcontextprotocol/ui": {"a": 1}})
    );
    let plain = Pairing::MODERN_MODERN.upstream().tools([tool("t")]);
    let (_gateway, client) = Pairing::MODERN_MODERN.alone(&plain).await;
    let face = client.ask("server/discover", "{}").await.value();
    assert!(face["capabilities"].get("extensions").is_none(), "{face}");
}

#[tokio::test]
async fn what_a_client_can_show_goes_to_modern_servers_with_each_of_its_calls_and_no_others() {
    let apps = r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
    let more = r#"{"extensions":{"com.example/x":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
    for revision in [Revision::V2026_07_28, Revision::V2025_06_18] {
        let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let shows = gateway.client_able(revision, more).await;
        shows.call("notes_t", "{}").await.text();
        assert_eq!(
            declared(&notes.last("tools/call")),
            parse(apps),
            "{revision}"
        );
        let bare = gateway.client(revision).await;
        bare.call("notes_t", "{}").await.text();
        assert_eq!(declared(&notes.last("tools/call")), json!({}), "{revision}");
        // Lists are read for everybody.
        assert_eq!(declared(&notes.last("tools/list")), parse(apps));
        assert_eq!(declared(&notes.last("server/discover")), json!({}));
    }
}

pairings! {
    /// Feature: Extensions
    async fn the_page_of_an_app_is_named_and_read_by_its_outward_address(pair: Pairing) {
        let dash = pair.upstream().tools([app_tool("show", r#"["model","app"]"#)]);
        let (_gateway, client) = pair.alone(&dash).await;
        let listed = client.ask("tools/list", "{}").await.value();
        let meta = &listed["tools"][0]["_meta"];
        assert_eq!(meta["ui"]["resourceUri"], "ui://notes/dash/show.html");
        assert_eq!(meta["ui/resourceUri"], "ui://notes/dash/show.html");
        let read = client.read("ui://notes/dash/show.html").await.value();
        assert_eq!(read["contents"][0]["uri"], "ui://notes/dash/show.html");
        assert_eq!(dash.last("resources/read").value()["uri"], "ui://dash/show.html");
    }
}

pairings! {
    async fn the_apps_of_the_only_server_with_apps_use_its_own_names(pair: Pairing) {
        let dash = pair
            .upstream()
            .tools([
                app_tool("show", r#"["model","app"]"#),
                app_tool("refresh", r#"["app"]"#),
                app_tool("think", r#"["model"]"#),
            ])
            .resources([resource("dash://data")]);
        let other = pair.upstream().tools([tool("add"), tool("show")]);
        let gateway = Gateway::of().upstream("dash", &dash).upstream("other", &other).start().await;
        let client = pair.client(&gateway).await;
        for name in ["refresh", "dash_refresh", "show", "dash_show", "dash_think"] {
            let own = name.trim_start_matches("dash_");
            assert_eq!(client.call(name, "{}").await.text(), format!("called {own}"));
            assert_eq!(dash.last("tools/call").value()["name"], own);
        }
        // Not what its server keeps from apps, and never what another server has.
        for name in ["think", "add"] {
            assert_eq!(client.call(name, "{}").await.refusal(), (-32602, "unknown_name".to_owned()));
        }
        assert!(other.heard("tools/call").is_empty());
        let read = client.read("dash://data").await.value();
        assert_eq!(read["contents"][0]["uri"], "dash://data");
        let page = client.read("ui://dash/show.html").await.value();
        assert_eq!(page["contents"][0]["text"], "ui://dash/show.html");
    }
}

pairings! {
    /// Feature: Extensions
    async fn where_several_servers_have_apps_none_reaches_the_app_only_tools_of_another(pair: Pairing) {
        let dash = pair.upstream().tools([app_tool("show", r#"["model","app"]"#), app_tool("refresh", r#"["app"]"#)]);
        let maps = pair.upstream().tools([app_tool("pan", r#"["model","app"]"#)]);
        let plain = pair.upstream().tools([tool("add")]);
        let gateway = Gateway::of()
            .upstream("dash", &dash)
            .upstream("maps", &maps)
            .upstream("plain", &plain)
            .toolset("calm", "upstreams: [dash, plain]")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        // Hosts want to see them.
        assert_eq!(client.tools().await, ["dash_show", "dash_refresh", "maps_pan", "plain_add"]);
        assert_eq!(client.call("dash_refresh", "{}").await.refusal(), (-32602, "only_for_apps".to_owned()));
        for name in ["refresh", "show", "pan", "add"] {
            assert_eq!(client.call(name, "{}").await.refusal(), (-32602, "unknown_name".to_owned()));
        }
        assert!(dash.heard("tools/call").is_empty());
        assert_eq!(client.call("dash_show", "{}").await.text(), "called show");
        // Where one server's apps are alone, they are served.
        let own = gateway.client_at("/mcp/u/dash", pair.client).await;
        assert_eq!(own.call("refresh", "{}").await.text(), "called refresh");
        let calm = gateway.client_at("/mcp/calm", pair.client).await;
        assert_eq!(calm.call("refresh", "{}").await.text(), "called refresh");
        assert_eq!(calm.call("pan", "{}").await.refusal().1, "unknown_name");
    }
}

#[tokio::test]
async fn skills_of_all_servers_are_one_list_and_keep_everything_but_their_addresses() {
    let notes = skilled(SKILLS, ENTRY);
    let other = skilled(
        PLAIN_SKILLS,
        r#"{"uri":"github://o/r/refunds/SKILL.md","frontmatter":{"name":"refunds","description":"d"},"resources":"dynamic"},{"uri":"skill://bad/SKILL.md","frontmatter":{"name":"bad"},"resources":[]}"#,
    );
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("other", &other)
        .start()
        .await;
    let client = modern(&gateway).await;
    let answer = client.ask("skills/list", "{}").await;
    let value = answer.value();
    assert_eq!(
        names(&value, "skills", "uri"),
        [
            "skill://notes/acme/refunds/SKILL.md",
            "other+github://o/r/refunds/SKILL.md"
        ]
    );
    assert_eq!(
        (&value["resultType"], &value["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(value["ttlMs"].is_number());
    let wanted = ENTRY.replace("skill://acme", "skill://notes/acme");
    assert!(answer.result().contains(&wanted), "{}", answer.result());
    assert_eq!(
        gateway.reports("other").len(),
        1,
        "an entry that no host may load is left out"
    );
    let own = gateway
        .client_at("/mcp/u/notes", Revision::V2026_07_28)
        .await;
    assert!(own.ask("skills/list", "{}").await.result().contains(ENTRY));
}

#[tokio::test]
async fn a_skill_is_got_and_its_files_are_read_where_they_are() {
    let get = |entry: &str| format!(r#"{{"skill":{entry}}}"#);
    let notes = skilled(SKILLS, ENTRY).on("skills/get", move |heard| {
        match heard.text("uri").as_deref() {
            Some("skill://acme/refunds/SKILL.md") => Play::Result(get(ENTRY)),
            _ => Play::Error(r#"{"code":-32602,"message":"no such skill"}"#.into()),
        }
    });
    let plain = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("plain", &plain)
        .start()
        .await;
    let client = modern(&gateway).await;
    let ask = async |uri: &str| {
        client
            .ask("skills/get", &format!(r#"{{"uri":{}}}"#, quote(uri)))
            .await
    };
    let got = ask("skill://notes/acme/refunds/SKILL.md").await;
    let skill = member(&got.result(), "skill").unwrap();
    assert_eq!(skill, ENTRY.replace("skill://acme", "skill://notes/acme"));
    let value = got.value();
    assert_eq!(
        (&value["ttlMs"], &value["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let read = client.read("skill://notes/acme/refunds/a.md").await.value();
    assert_eq!(
        read["contents"][0]["uri"],
        "skill://notes/acme/refunds/a.md"
    );
    assert_eq!(
        notes.last("resources/read").value()["uri"],
        "skill://acme/refunds/a.md"
    );
    for uri in [
        "skill://notes/none/SKILL.md",
        "skill://acme/refunds/SKILL.md",
        "skill://plain/a/SKILL.md",
    ] {
        assert_eq!(ask(uri).await.refusal().0, -32602, "{uri}");
    }
    assert!(plain.heard("skills/get").is_empty());
}

#[tokio::test]
async fn directories_are_read_page_by_page_and_only_where_they_can_be() {
    let notes = skilled(SKILLS, ENTRY).on("resources/directory/read", |heard| {
        Play::Result(match heard.text("cursor").as_deref() {
            None => r#"{"resources":[{"uri":"skill://acme/refunds/a.md","icons":[{"src":"https://tracker.example/i"}],"name":"a.md"}],"nextCursor":""}"#.into(),
            Some("") => r#"{"resources":[{"uri":"skill://acme/refunds/sub","name":"sub","mimeType":"inode/directory"}]}"#.into(),
            Some(other) => panic!("{other}"),
        })
    });
    let other = skilled(PLAIN_SKILLS, "");
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("other", &other)
        .start()
        .await;
    let client = modern(&gateway).await;
    let read = async |uri: &str, cursor: Option<&str>| {
        let cursor = cursor.map_or_else(String::new, |cursor| {
            format!(r#","cursor":{}"#, quote(cursor))
        });
        let params = format!(r#"{{"uri":{}{cursor}}}"#, quote(uri));
        client.ask("resources/directory/read", &params).await
    };
    let dir = "skill://notes/acme/refunds";
    let first = read(dir, None).await.value();
    assert_eq!(
        names(&first, "resources", "uri"),
        ["skill://notes/acme/refunds/a.md"]
    );
    assert!(first["resources"][0].get("icons").is_none(), "{first}");
    let cursor = first["nextCursor"].as_str().unwrap();
    assert!(cursor.len() > 20, "sealed: {cursor}");
    let rest = read(dir, Some(cursor)).await.value();
    assert_eq!(
        names(&rest, "resources", "uri"),
        ["skill://notes/acme/refunds/sub"]
    );
    assert!(rest.get("nextCursor").is_none());
    let heard = notes.heard("resources/directory/read").len();
    for (uri, cursor) in [(dir, ""), (dir, "x"), ("skill://notes/acme", cursor)] {
        let refused = read(uri, Some(cursor)).await;
        assert_eq!(refused.refusal(), (-32602, "invalid_cursor".to_owned()));
    }
    assert_eq!(notes.heard("resources/directory/read").len(), heard);
    let refused = read("skill://other/x", None).await;
    assert_eq!(refused.refusal(), (-32602, "unknown_name".to_owned()));
    assert!(other.heard("resources/directory/read").is_empty());
}

#[tokio::test]
async fn skills_are_no_method_where_no_server_has_them_nor_in_older_revisions() {
    let plain = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let skilled = skilled(PLAIN_SKILLS, ENTRY);
    let gateway = Gateway::of()
        .upstream("plain", &plain)
        .upstream("skilled", &skilled)
        .start()
        .await;
    let params = r#"{"uri":"skill://skilled/acme/refunds/SKILL.md"}"#;
    let without = gateway
        .client_at("/mcp/u/plain", Revision::V2026_07_28)
        .await;
    for method in ["skills/list", "skills/get", "resources/directory/read"] {
        let refused = without.ask(method, params).await;
        assert_eq!(
            (refused.status, refused.refusal().0),
            (404, -32601),
            "{method}"
        );
        let legacy = gateway
            .client(Revision::V2025_11_25)
            .await
            .ask(method, params)
            .await;
        assert_eq!(
            (legacy.status, legacy.refusal().0),
            (200, -32601),
            "{method}"
        );
    }
    let undirected = modern(&gateway)
        .await
        .ask("resources/directory/read", params)
        .await;
    assert_eq!(undirected.refusal().0, -32601);
}

pairings! {
    /// SECURITY EGR-8
    ///
    /// Feature: Trace context
    async fn a_trace_goes_on_upstream_as_a_child_of_the_clients_span(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let meta = format!(r#""traceparent":"{parent}","tracestate":"a=1","baggage":"user=1""#);
        let asked = client.call("notes_t", "{}").meta(&meta).header("traceparent", parent);
        assert_eq!(asked.await.text(), "called t");
        let heard = notes.last("tools/call");
        let child = parse(&heard.meta("traceparent").unwrap());
        let child = child.as_str().unwrap();
        assert!(child.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && child.ends_with("-01"), "{child}");
        assert_ne!(child, parent);
        assert_eq!(heard.meta("tracestate").as_deref(), Some(r#""a=1""#));
        assert_eq!((heard.meta("baggage"), heard.header("traceparent")), (None, None));
        client.call("notes_t", "{}").meta(r#""traceparent":"00-1","tracestate":"a=1""#).await;
        let heard = notes.last("tools/call");
        assert_eq!((heard.meta("traceparent"), heard.meta("tracestate")), (None, None));
    }
}
