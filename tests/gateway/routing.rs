//! Calls reach the server that they are for, and what comes back names things as the client may (PROTOCOL D1, E).

use http::Method;
use serde_json::{Value, json};

use crate::harness::{
    Client, Gateway, Heard, Pairing, Play, Revision, Upstream, call_result, member, names, parse,
    resource, template, text_result, tool,
};

pairings! {
    /// Feature: Calls, prompts, resources
    async fn a_tool_call_reaches_its_server_under_its_own_name(pair: Pairing) {
        let notes = pair.upstream().tools([tool("add")]);
        let other = pair.upstream().tools([tool("add")]);
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream("other", &other).start().await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["notes_add", "other_add"]);
        let answer = client.call("other_add", r#"{"a":1}"#).await;
        assert_eq!((answer.status, answer.text()), (200, "called add".to_owned()));
        let heard = other.last("tools/call");
        assert_eq!(heard.value()["name"], "add");
        assert_eq!(heard.arguments(), r#"{"a":1}"#);
        assert!(notes.heard("tools/call").is_empty());
    }
}

pairings! {
    /// What a client writes as nothing is as if it had not written it.
    async fn optional_members_that_are_null_are_not_there(pair: Pairing) {
        let notes = pair.upstream().tools([tool("add")]);
        let (_gateway, client) = pair.alone(&notes).await;
        let listed = client.ask("tools/list", r#"{"cursor":null}"#).await.value();
        assert_eq!(names(&listed, "tools", "name"), ["notes_add"]);
        let answer = client.call("notes_add", "null").await;
        assert_eq!((answer.status, answer.text()), (200, "called add".to_owned()));
        assert_eq!(notes.last("tools/call").value().get("arguments"), None);
        if !pair.client_is_modern() {
            let listed = client.ask("tools/list", r#"{"_meta":null}"#).await.value();
            assert_eq!(names(&listed, "tools", "name"), ["notes_add"]);
        }
    }
}

pairings! {
    /// Feature: Calls, prompts, resources
    async fn a_prompt_is_got_from_its_server_under_its_own_name(pair: Pairing) {
        let notes = pair.upstream().prompts(&["plan"]);
        let (_gateway, client) = pair.alone(&notes).await;
        let listed = client.ask("prompts/list", "{}").await.value();
        assert_eq!(names(&listed, "prompts", "name"), ["notes_plan"]);
        let got = client
            .ask("prompts/get", r#"{"name":"notes_plan","arguments":{"b":"2"}}"#)
            .await
            .value();
        assert_eq!(got["messages"][0]["content"]["text"], "plan");
        assert_eq!(notes.last("prompts/get").arguments(), r#"{"b":"2"}"#);
    }
}

pairings! {
    /// Feature: Calls, prompts, resources
    async fn a_resource_is_read_by_its_own_uri_and_told_by_the_one_asked_for(pair: Pairing) {
        let notes = pair.upstream().resources([resource("note://one")]).on(
            "resources/read",
            |_| Play::Result(
                r#"{"contents":[{"uri":"note://one","text":"1"},{"uri":"note://one/child","text":"2"},{"uri":"https://web/x","text":"3"}]}"#
                    .into(),
            ),
        );
        let (_gateway, client) = pair.alone(&notes).await;
        let listed = client.ask("resources/list", "{}").await.value();
        assert_eq!(names(&listed, "resources", "uri"), ["notes+note://one"]);
        let read = client.read("notes+note://one").await.value();
        assert_eq!(
            names(&read, "contents", "uri"),
            ["notes+note://one", "notes+note://one/child", "https://web/x"]
        );
        assert_eq!(notes.last("resources/read").value()["uri"], "note://one");
    }
}

pairings! {
    async fn uris_that_no_list_has_are_routed_by_their_spelling(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let other = pair.upstream().tools([tool("t")]);
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream("other", &other).start().await;
        let client = pair.client(&gateway).await;
        for (outward, local) in [
            ("other+memo://deep/er?x=1#y", "memo://deep/er?x=1#y"),
            ("ui://other/app.html", "ui://app.html"),
            ("skill://other/pdf/SKILL.md", "skill://pdf/SKILL.md"),
            ("other+urn:isbn:1", "urn:isbn:1"),
        ] {
            let read = client.read(outward).await.value();
            assert_eq!(read["contents"][0]["uri"], outward);
            assert_eq!(other.last("resources/read").value()["uri"], local);
        }
        assert!(notes.heard("resources/read").is_empty());
    }
}

pairings! {
    async fn web_addresses_stay_as_they_are_and_go_to_who_lists_them(pair: Pairing) {
        let notes = pair.upstream().resources([resource("https://example.com/one")]);
        let other = pair.upstream().resources([resource("https://example.com/two")]);
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream("other", &other).start().await;
        let client = pair.client(&gateway).await;
        let read = client.read("https://example.com/two").await.value();
        assert_eq!(read["contents"][0]["uri"], "https://example.com/two");
        assert!(notes.heard("resources/read").is_empty());
        let unknown = client.read("https://example.com/three").await;
        let code = if pair.client_is_modern() { -32602 } else { -32002 };
        assert_eq!(unknown.refusal(), (code, "unknown_name".to_owned()));
        assert_eq!(unknown.error()["data"]["uri"], "https://example.com/three");
    }
}

pairings! {
    /// Feature: Completion
    async fn a_template_keeps_its_expressions_and_completes_as_its_server_knows_it(pair: Pairing) {
        let notes = pair.upstream().templates([template("note://{id}/{+rest}")]).prompts(&["plan"]);
        let (_gateway, client) = pair.alone(&notes).await;
        let listed = client.ask("resources/templates/list", "{}").await.value();
        assert_eq!(
            names(&listed, "resourceTemplates", "uriTemplate"),
            ["notes+note://{id}/{+rest}"]
        );
        assert_eq!(client.read("notes+note://7/a/b").await.value()["contents"][0]["text"], "note://7/a/b");
        let complete = async |reference: &str| {
            let params = format!(
                r#"{{"ref":{reference},"argument":{{"name":"id","value":"7"}},"context":{{"arguments":{{"x":"1"}}}}}}"#
            );
            client.ask("completion/complete", &params).await.value()["completion"]["values"][0].clone()
        };
        let of_template =
            complete(r#"{"type":"ref/resource","uri":"notes+note://{id}/{+rest}"}"#).await;
        assert_eq!(of_template, "note://{id}/{+rest}");
        assert_eq!(complete(r#"{"type":"ref/prompt","name":"notes_plan"}"#).await, "plan");
        let heard = notes.last("completion/complete").value();
        assert_eq!(heard["argument"], json!({"name":"id","value":"7"}));
        assert_eq!(heard["context"]["arguments"]["x"], "1");
    }
}

pairings! {
    /// Feature: structuredContent
    async fn uris_in_tool_results_and_prompt_messages_become_outward_ones(pair: Pairing) {
        let content = r#"[{"type":"resource_link","uri":"note://a","name":"a"},{"type":"resource","resource":{"uri":"note://b","text":"note://b"}},{"type":"text","text":"note://c"},{"type":"resource_link","uri":"ui://page","name":"p"},{"type":"resource_link","uri":"https://web/d","name":"d"}]"#;
        let result = format!(r#"{{"content":{content},"structuredContent":{{"uri":"note://e"}}}}"#);
        let messages = r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"note://f","text":"x"}}},{"role":"user","content":{"type":"resource_link","uri":"skill://g","name":"g"}}]}"#;
        let notes = pair
            .upstream()
            .tools([tool("t")])
            .prompts(&["p"])
            .on("tools/call", move |_| Play::Result(result.clone()))
            .on("prompts/get", |_| Play::Result(messages.into()));
        let (_gateway, client) = pair.alone(&notes).await;
        let value = client.call("notes_t", "{}").await.value();
        let content = &value["content"];
        assert_eq!(content[0]["uri"], "notes+note://a");
        assert_eq!(content[1]["resource"], json!({"uri":"notes+note://b","text":"note://b"}));
        assert_eq!(content[2]["text"], "note://c");
        assert_eq!(content[3]["uri"], "ui://notes/page");
        assert_eq!(content[4]["uri"], "https://web/d");
        assert_eq!(value["structuredContent"]["uri"], "note://e");
        let value = client.ask("prompts/get", r#"{"name":"notes_p"}"#).await.value();
        assert_eq!(value["messages"][0]["content"]["resource"]["uri"], "notes+note://f");
        assert_eq!(value["messages"][1]["content"]["uri"], "skill://notes/g");
    }
}

pairings! {
    async fn the_page_of_an_app_is_readable_by_the_address_that_its_tool_names(pair: Pairing) {
        let app = r#"{"name":"chart","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://chart/page.html","visibility":["app"]},"ui/resourceUri":"ui://chart/page.html"}}"#;
        let notes = pair.upstream().tools([app]);
        let (_gateway, client) = pair.alone(&notes).await;
        let meta = client.ask("tools/list", "{}").await.value()["tools"][0]["_meta"].clone();
        let address = meta["ui"]["resourceUri"].as_str().unwrap();
        assert_eq!(meta["ui/resourceUri"], address);
        assert_eq!(address, "ui://notes/chart/page.html");
        client.read(address).await.result();
        assert_eq!(notes.last("resources/read").value()["uri"], "ui://chart/page.html");
    }
}

pairings! {
    async fn names_that_nobody_has_are_refused_without_asking_anybody(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).prompts(&["p"]);
        let (_gateway, client) = pair.alone(&notes).await;
        for (method, params) in [
            ("tools/call", r#"{"name":"t","arguments":{}}"#),
            ("tools/call", r#"{"name":"notes_T","arguments":{}}"#),
            ("prompts/get", r#"{"name":"p"}"#),
            ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#),
        ] {
            let answer = client.ask(method, params).await;
            assert_eq!((answer.status, answer.refusal().0), (200, -32602), "{params}");
            assert!(notes.heard(method).is_empty());
        }
        let read = client.read("nobody+x://y").await;
        let code = if pair.client_is_modern() { -32602 } else { -32002 };
        assert_eq!((read.status, read.refusal().0), (200, code));
    }
}

pairings! {
    async fn an_errors_resource_is_the_one_the_client_asked_for(pair: Pairing) {
        let code = if pair.upstream_is_modern() { -32602 } else { -32002 };
        let error =
            format!(r#"{{"code":{code},"message":"gone","data":{{"uri":"note://one"}}}}"#);
        let notes = pair
            .upstream()
            .resources([resource("note://one")])
            .on("resources/read", move |_| Play::Error(error.clone()));
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = client.read("notes+note://one").await;
        let code = if pair.client_is_modern() { -32602 } else { -32002 };
        assert_eq!((answer.status, answer.refusal().0), (200, code));
        assert_eq!(answer.error()["data"]["uri"], "notes+note://one");
    }
}

pairings! {
    async fn an_upstreams_own_error_arrives_as_it_is(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", |_| {
            Play::Error(r#"{"code":-32602,"message":"bad é","data":{"x":[1.50,2E3]}}"#.into())
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = client.call("notes_t", "{}").await;
        assert_eq!(answer.status, 200);
        let error = member(answer.message(), "error").unwrap();
        assert_eq!(member(&error, "data").unwrap(), r#"{"x":[1.50,2E3]}"#);
        assert_eq!((&parse(&error)["code"], &parse(&error)["message"]), (&json!(-32602), &json!("bad é")));
    }
}

pairings! {
    async fn ids_of_every_spelling_come_back_as_spelled(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let (_gateway, client) = pair.alone(&notes).await;
        for id in ["0", "-1", "9007199254740993", "123456789012345678901234567890", r#""""#, r#""1""#, r#""\u00e9\/""#, r#""é""#] {
            let answer = client.call("notes_t", "{}").id(id).await;
            assert_eq!(answer.id().as_deref(), Some(id));
            let refused = client.call("nothing", "{}").id(id).await;
            assert_eq!(refused.id().as_deref(), Some(id));
            // A number of ours goes up, whatever came in.
            assert!(notes.last("tools/call").id.unwrap().parse::<u64>().is_ok());
        }
    }
}

pairings! {
    /// Feature: Progress
    async fn progress_comes_under_the_clients_own_token_before_the_answer(pair: Pairing) {
        let step = |n: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":{n}.0,"total":2,"message":"m{n}"}}}}"#
            )
        };
        let play = Play::Events(vec![step(1), step(2)], Box::new(Play::Result(call_result("t"))));
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |_| play.clone());
        let (_gateway, client) = pair.alone(&notes).await;
        for token in ["7", r#""a\u0062""#, r#""7""#] {
            let answer =
                client.call("notes_t", "{}").meta(&format!(r#""progressToken":{token}"#)).await;
            assert_eq!(answer.events().len(), 2, "{answer:?}");
            for (n, event) in answer.events().iter().enumerate() {
                assert_eq!(parse(event)["method"], "notifications/progress");
                let params = member(event, "params").unwrap();
                assert_eq!(member(&params, "progressToken").as_deref(), Some(token));
                assert_eq!(member(&params, "progress").unwrap(), format!("{}.0", n + 1));
            }
            assert_eq!(answer.text(), "called t");
            assert_ne!(notes.last("tools/call").meta("progressToken").as_deref(), Some(token));
        }
        // Nobody asked: nothing comes, and nothing is asked for upstream.
        let quiet = client.call("notes_t", "{}").await;
        assert!(quiet.events().is_empty(), "{quiet:?}");
        assert_eq!(notes.last("tools/call").meta("progressToken"), None);
    }
}

pairings! {
    async fn a_client_that_takes_no_stream_gets_its_answer_as_json(pair: Pairing) {
        let event = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;
        let play = Play::Events(vec![event.into()], Box::new(Play::Result(call_result("t"))));
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |_| play.clone());
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = client
            .call("notes_t", "{}")
            .meta(r#""progressToken":1"#)
            .header("accept", "application/json")
            .await;
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.text(), "called t");
    }
}

pairings! {
    /// SECURITY EGR-8
    ///
    /// Feature: Version and identity
    async fn of_meta_only_what_may_cross_crosses(pair: Pairing) {
        let result = r#"{"content":[],"_meta":{"com.example/b":{"n":1.0},"io.modelcontextprotocol/serverInfo":{"name":"secret"},"dev.usher/forged":1}}"#;
        let notes =
            pair.upstream().tools([tool("t")]).on("tools/call", move |_| Play::Result(result.into()));
        let (_gateway, client) = pair.alone(&notes).await;
        let answer = client
            .call("notes_t", "{}")
            .meta(r#""com.example/a":{"n":1.0},"traceparent":"00-x","baggage":"b","dev.usher/x":1,"io.modelcontextprotocol/unknown":1"#)
            .await;
        let heard = notes.last("tools/call");
        assert_eq!(heard.meta("com.example/a").as_deref(), Some(r#"{"n":1.0}"#));
        for key in ["baggage", "dev.usher/x", "io.modelcontextprotocol/unknown"] {
            assert_eq!(heard.meta(key), None, "{key}");
        }
        let meta = member(&answer.result(), "_meta").unwrap();
        assert_eq!(member(&meta, "com.example/b").as_deref(), Some(r#"{"n":1.0}"#));
        assert_eq!(member(&meta, "dev.usher/forged"), None);
        let info = member(&meta, "io.modelcontextprotocol/serverInfo");
        match info {
            Some(info) => assert_eq!(parse(&info)["name"], "usher"),
            None => assert!(!pair.client_is_modern()),
        }
    }
}

pairings! {
    /// PROTOCOL A7
    async fn of_the_meta_inside_results_only_what_may_cross_crosses(pair: Pairing) {
        const META: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"secret"},"dev.usher/forged":1,"com.example/b":{"n":1.0}}"#;
        let contents = format!(r#"{{"uri":"note://one","text":"b",{META}}}"#);
        let blocks = format!(
            r#"{{"type":"text","text":"a",{META}}},{{"type":"resource",{META},"resource":{contents}}},{{"type":"text","_meta":{{"dev.usher/forged":1}},"text":"c"}}"#
        );
        let prompt = format!(r#"{{"messages":[{{"role":"user","content":{{"type":"resource","resource":{contents}}}}}]}}"#);
        let (called, read) = (format!(r#"{{"content":[{blocks}]}}"#), format!(r#"{{"contents":[{contents}]}}"#));
        let notes = pair
            .upstream()
            .tools([tool("t")])
            .prompts(&["p"])
            .resources([resource("note://one")])
            .on("tools/call", move |_| Play::Result(called.clone()))
            .on("prompts/get", move |_| Play::Result(prompt.clone()))
            .on("resources/read", move |_| Play::Result(read.clone()));
        let (_gateway, client) = pair.alone(&notes).await;
        for (method, params, kept) in [
            ("tools/call", r#"{"name":"notes_t"}"#, 3),
            ("prompts/get", r#"{"name":"notes_p"}"#, 1),
            ("resources/read", r#"{"uri":"notes+note://one"}"#, 1),
        ] {
            let result = client.ask(method, params).await.result();
            assert!(!result.contains("secret") && !result.contains("forged"), "{result}");
            assert_eq!(result.matches(r#""com.example/b":{"n":1.0}"#).count(), kept, "{result}");
        }
    }
}

pairings! {
    /// PROTOCOL G25
    async fn what_its_one_server_does_not_offer_is_a_bad_name_to_a_client(pair: Pairing) {
        let none = |_: &Heard| Play::Error(r#"{"code":-32601,"message":"no such method"}"#.into());
        let notes = pair
            .upstream()
            .prompts(&["p"])
            .resources([resource("note://one")])
            .on("prompts/get", none)
            .on("resources/read", none)
            .on("completion/complete", none);
        let (_gateway, client) = pair.alone(&notes).await;
        for (method, params) in [
            ("prompts/get", r#"{"name":"notes_p"}"#),
            ("resources/read", r#"{"uri":"notes+note://one"}"#),
            ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"notes_p"},"argument":{"name":"a","value":""}}"#),
        ] {
            let answer = client.ask(method, params).await;
            assert_eq!((answer.status, answer.refusal().0), (200, -32602), "{method}");
        }
    }
}

pairings! {
    async fn a_toolset_offers_and_routes_its_selection_only(pair: Pairing) {
        let notes = pair.upstream().tools([tool("add"), tool("drop")]).prompts(&["plan"]);
        let files = pair.upstream().tools([tool("open")]).resources([resource("file:///a")]);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .upstream("files", &files)
            .toolset("oncall", r#"tools: ["*_add"], upstreams: [files]"#)
            .start()
            .await;
        let client = gateway.client_at("/mcp/oncall", pair.client).await;
        assert_eq!(client.tools().await, ["notes_add", "files_open"]);
        assert_eq!(client.all("prompts/list", "name").await, Vec::<String>::new());
        assert_eq!(client.all("resources/list", "uri").await, ["files+file:///a"]);
        assert_eq!(client.call("notes_add", "{}").await.text(), "called add");
        let denied = client.call("notes_drop", "{}").await;
        let absent = client.call("notes_nothing", "{}").await;
        assert_eq!(denied.refusal(), absent.refusal());
        assert_eq!(denied.error()["message"], absent.error()["message"]);
        assert!(client.ask("prompts/get", r#"{"name":"notes_plan"}"#).await.refusal().0 == -32602);
        assert_eq!(notes.heard("tools/call").len(), 1);
    }
}

pairings! {
    async fn one_upstream_alone_has_its_original_names(pair: Pairing) {
        let notes = pair
            .upstream()
            .tools([tool("add.it")])
            .prompts(&["plan"])
            .resources([resource("note://one")])
            .templates([template("note://{id}")])
            .on("tools/call", |_| {
                Play::Result(r#"{"content":[{"type":"resource_link","uri":"note://a","name":"a"}]}"#.into())
            });
        let other = pair.upstream().tools([tool("open")]);
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream("other", &other).start().await;
        let client = gateway.client_at("/mcp/u/notes", pair.client).await;
        assert_eq!(client.tools().await, ["add.it"]);
        assert_eq!(client.all("prompts/list", "name").await, ["plan"]);
        assert_eq!(client.all("resources/list", "uri").await, ["note://one"]);
        assert_eq!(client.all("resources/templates/list", "uriTemplate").await, ["note://{id}"]);
        let value = client.call("add.it", "{}").await.value();
        assert_eq!(value["content"][0]["uri"], "note://a");
        assert_eq!(client.read("note://one").await.value()["contents"][0]["uri"], "note://one");
        assert_eq!(client.call("other_open", "{}").await.refusal().0, -32602);
    }
}

#[tokio::test]
async fn a_path_that_is_configured_nowhere_is_not_found() {
    let notes = Upstream::http(Revision::V2026_07_28);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    for path in [
        "/mcp/nothing",
        "/mcp/u/nothing",
        "/mcp/",
        "/MCP",
        "/mcp/u/notes/",
        "/mcp/u",
    ] {
        let client = gateway.client_at(path, Revision::V2026_07_28).await;
        assert_eq!(client.ask("tools/list", "{}").await.status, 404, "{path}");
        assert_eq!(client.other(Method::GET).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn where_a_toolset_or_server_is_not_there_the_answer_is_a_message_that_says_so() {
    let notes = Upstream::http(Revision::V2026_07_28);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    for path in ["/mcp/nothing", "/mcp/u/nothing", "/mcp/u/notes/"] {
        let client = gateway.client_at(path, Revision::V2026_07_28).await;
        let answer = client.ask("tools/list", "{}").await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.refusal(), (-32600, "unknown_endpoint".into()));
        let error = answer.error();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("no toolset or server"), "{message}");
        let refused = gateway.try_client_at(path, Revision::V2025_11_25).await;
        assert!(refused.is_err(), "{path}");
    }
    for path in ["/MCP", "/mcpnothing", "/u/notes"] {
        let client = gateway.client_at(path, Revision::V2026_07_28).await;
        let answer = client.ask("tools/list", "{}").await;
        assert_eq!((answer.status, answer.body.as_str()), (404, "not found\n"));
    }
}

/// A tool with arguments that travel in headers too.
const WITH_HEADERS: &str = r#"{"name":"q","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"on":{"type":"boolean","x-mcp-header":"On"}}}}"#;

fn mirrored(heard: &Heard) -> [Option<&str>; 3] {
    ["mcp-param-region", "mcp-param-n", "mcp-param-on"].map(|name| heard.header(name))
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_modern_server = MODERN_MODERN,
    ] because "servers of the legacy era are sent no mirrored headers";

    /// Feature: Calls, prompts, resources
    async fn mirrored_arguments_are_built_from_the_body(pair: Pairing) {
        let notes = pair.upstream().tools([WITH_HEADERS]);
        // What is null is not mirrored, whether the schema allows it or not.
        let gateway = Gateway::of()
            .upstream_with("notes", &notes, "validate: { arguments: off }")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let ask = |arguments: &str, headers: [&str; 3]| {
            let mut ask = client.call("notes_q", arguments);
            if pair.client_is_modern() {
                for (name, value) in ["mcp-param-region", "mcp-param-n", "mcp-param-on"].into_iter().zip(headers) {
                    if !value.is_empty() {
                        ask = ask.header(name, value);
                    }
                }
                ask = ask.header("mcp-param-unknown", "x");
            }
            ask
        };
        let all = r#"{"region":"eu west","deep":{"n":42},"on":true}"#;
        ask(all, ["eu west", "42", "true"]).await.result();
        let heard = notes.last("tools/call");
        assert_eq!(mirrored(&heard), [Some("eu west"), Some("42"), Some("true")]);
        assert_eq!(heard.header("mcp-param-unknown"), None);

        // However an integer is spelled, it goes on in decimal.
        for (spelled, decimal) in [("5.0", "5"), ("-0", "0"), ("1e3", "1000"), ("-9007199254740991", "-9007199254740991")] {
            let arguments = format!(r#"{{"deep":{{"n":{spelled}}}}}"#);
            ask(&arguments, ["", decimal, ""]).await.result();
            let heard = notes.last("tools/call");
            assert_eq!(mirrored(&heard), [None, Some(decimal), None]);
            assert_eq!(heard.arguments(), arguments);
        }

        let unicode = r#"{"region":"zürich","on":null}"#;
        ask(unicode, ["=?base64?esO8cmljaA==?=", "", ""]).await.result();
        assert_eq!(mirrored(&notes.last("tools/call")), [Some("=?base64?esO8cmljaA==?="), None, None]);
    }
}

pairings! {
    only [
        modern_client_legacy_server = MODERN_LEGACY,
        modern_client_modern_server = MODERN_MODERN,
    ] because "clients of the legacy era send no mirrored headers";

    async fn mirrored_arguments_that_disagree_with_the_body_are_refused(pair: Pairing) {
        let notes = pair.upstream().tools([WITH_HEADERS]);
        let (_gateway, client) = pair.alone(&notes).await;
        for (arguments, name, value) in [
            (r#"{"region":"eu"}"#, "mcp-param-region", "us"),
            (r#"{"region":"eu"}"#, "mcp-param-other", "eu"),
            (r#"{}"#, "mcp-param-region", "eu"),
            (r#"{"deep":{"n":42}}"#, "mcp-param-n", "43"),
            (r#"{"on":true}"#, "mcp-param-on", "True"),
            (r#"{"region":"eu"}"#, "mcp-param-region", "=?base64?e?="),
        ] {
            let answer = client.call("notes_q", arguments).header(name, value).await;
            assert_eq!((answer.status, answer.refusal().0), (400, -32020), "{arguments} {name}: {value}");
        }
        assert!(notes.heard("tools/call").is_empty());
        // Numbers are compared as numbers.
        let answer = client.call("notes_q", r#"{"deep":{"n":42}}"#).header("mcp-param-n", "042").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        // Those that a double would round are none that may travel so, and nothing with a fraction is an integer.
        for beyond in ["9007199254740992", "-9007199254740993", "1e400"] {
            let arguments = format!(r#"{{"deep":{{"n":{beyond}}}}}"#);
            let answer = client.call("notes_q", &arguments).header("mcp-param-n", beyond).await;
            assert_eq!((answer.status, answer.refusal().0), (400, -32020), "{beyond}");
        }
    }
}

/// All answers, by the number that was sent, when each client has a call in flight at once.
async fn many(clients: &[Client]) -> Vec<(String, Value)> {
    let calls = clients.iter().enumerate().map(|(n, client)| async move {
        let answer = client
            .call("notes_t", &format!(r#"{{"n":{n}}}"#))
            .id("1")
            .await;
        assert_eq!(answer.id().as_deref(), Some("1"));
        (n.to_string(), parse(&answer.text()))
    });
    futures_util::future::join_all(calls).await
}

pairings! {
    async fn answers_of_calls_with_equal_ids_never_cross(pair: Pairing) {
        let notes = pair
            .upstream()
            .tools([tool("t")])
            .on("tools/call", |heard| Play::Result(text_result(&heard.value()["arguments"]["n"].to_string())));
        let (gateway, _client) = pair.alone(&notes).await;
        // In one session an id names one request at a time; those of different clients may all be the same.
        let clients = futures_util::future::join_all((0..50).map(|_| pair.client(&gateway))).await;
        for (asked, answered) in many(&clients).await {
            assert_eq!(asked, answered.to_string());
        }
    }
}
