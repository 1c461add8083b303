//! Every revision on either side, over every transport it has, and values as each revision knows them (acceptance 4, PROTOCOL D6).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    Gateway, Heard, Piped, Play, Revision, Upstream, call_result, parse, quote, resource, template,
    text_result, tool, within,
};

/// Every revision in every transport that it has.
fn servers() -> Vec<(&'static str, Upstream)> {
    use Revision as R;
    let servers = vec![
        ("a-sse", Upstream::sse()),
        ("a-pipe", Upstream::pipe(R::V2024_11_05)),
        ("b-http", Upstream::http(R::V2025_03_26)),
        ("b-pipe", Upstream::pipe(R::V2025_03_26)),
        ("c-http", Upstream::http(R::V2025_06_18)),
        ("c-pipe", Upstream::pipe(R::V2025_06_18)),
        ("d-http", Upstream::http(R::V2025_11_25)),
        ("d-pipe", Upstream::pipe(R::V2025_11_25)),
        ("e-http", Upstream::http(R::V2026_07_28)),
        ("e-pipe", Upstream::pipe(R::V2026_07_28)),
    ];
    let offering = |(key, server): (&'static str, Upstream)| {
        let server = server
            .tools([tool("t")])
            .prompts(&["p"])
            .resources([resource("n://r")])
            .templates([template("n://t/{x}")]);
        (key, server)
    };
    servers.into_iter().map(offering).collect()
}

#[tokio::test]
async fn every_revision_serves_clients_of_every_revision() {
    let servers = servers();
    let mut builder = Gateway::of();
    for (key, server) in &servers {
        builder = builder.upstream(key, server);
    }
    let gateway = builder.start().await;
    let spoken: Vec<_> = gateway
        .app
        .statuses()
        .iter()
        .map(|one| one.revision.unwrap())
        .collect();
    let wanted: Vec<_> = Revision::ALL
        .into_iter()
        .flat_map(|revision| [revision; 2])
        .collect();
    assert_eq!(spoken, wanted);
    for revision in Revision::ALL {
        let client = gateway.client(revision).await;
        if let Some(greeting) = &client.greeting {
            assert_eq!(greeting.value()["protocolVersion"], revision.as_str());
        }
        let keys = || servers.iter().map(|(key, _)| *key);
        assert_eq!(
            client.tools().await,
            keys().map(|key| format!("{key}_t")).collect::<Vec<_>>()
        );
        for (key, _) in &servers {
            let answer = client.call(&format!("{key}_t"), r#"{"a":1.0}"#).await;
            assert_eq!(answer.text(), "called t", "{revision} {key}");
            let got = client
                .ask("prompts/get", &format!(r#"{{"name":"{key}_p"}}"#))
                .await
                .value();
            assert_eq!(got["messages"][0]["content"]["text"], "p");
            let uri = format!("{key}+n://r");
            let read = client.read(&uri).await.value();
            assert_eq!(
                (&read["contents"][0]["uri"], &read["contents"][0]["text"]),
                (&json!(uri), &json!("n://r"))
            );
            let params = format!(
                r#"{{"ref":{{"type":"ref/resource","uri":"{key}+n://t/{{x}}"}},"argument":{{"name":"x","value":"1"}}}}"#
            );
            let completed = client.ask("completion/complete", &params).await.value();
            assert_eq!(completed["completion"]["values"][0], "n://t/{x}");
        }
    }
    for (key, server) in &servers {
        assert_eq!(
            server.last("tools/call").arguments(),
            r#"{"a":1.0}"#,
            "{key}"
        );
    }
}

/// PROTOCOL A5
#[tokio::test]
async fn a_server_of_the_oldest_revision_completes_though_it_cannot_say_so() {
    for (revision, completes) in [
        (Revision::V2024_11_05, true),
        (Revision::V2025_03_26, false),
    ] {
        let old = Upstream::pipe(revision)
            .capabilities(r#"{"prompts":{},"resources":{}}"#)
            .prompts(&["p"])
            .templates([template("n://t/{x}")]);
        let gateway = Gateway::of().upstream("old", &old).start().await;
        let client = Revision::V2025_11_25;
        for (path, name) in [("/mcp", "old_p"), ("/mcp/u/old", "p")] {
            let client = gateway.client_at(path, client).await;
            let greeting = client.greeting.as_ref().unwrap().value();
            let promised = greeting["capabilities"].get("completions");
            assert_eq!(promised.is_some(), completes, "{revision} {path}");
            let params = format!(
                r#"{{"ref":{{"type":"ref/prompt","name":"{name}"}},"argument":{{"name":"x","value":"1"}}}}"#
            );
            let answer = client.ask("completion/complete", &params).await;
            if completes {
                let completed = answer.value();
                assert_eq!(completed["completion"]["values"][0], "p", "{path}");
            } else {
                assert_eq!(answer.error()["code"], -32601, "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_client_on_a_pipe_is_greeted_while_a_program_is_still_starting() {
    let slow = Upstream::pipe(Revision::V2025_11_25)
        .tools([tool("t")])
        .on("server/discover", |_| Play::Hang)
        .on("initialize", |_| Play::Hang);
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let builder = Gateway::of()
        .upstream("slow", &slow)
        .upstream("notes", &notes);
    let mut pipe = Piped::start(&builder.text()).await;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let greeting = within(Duration::from_secs(12), "a greeting", pipe.ask(hello)).await;
    assert_eq!(parse(&greeting)["result"]["protocolVersion"], "2025-11-25");
    pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"notes_t","arguments":{}}}"#;
    assert!(pipe.until_listed(call).await.contains("called t"));
}

#[tokio::test]
async fn a_client_on_a_pipe_speaks_any_revision_and_both_eras_at_once() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let old = Upstream::pipe(Revision::V2024_11_05).tools([tool("t")]);
    let builder = Gateway::of()
        .upstream("notes", &notes)
        .upstream("old", &old);
    let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    for revision in Revision::ALL {
        let mut pipe = Piped::start(&builder.text()).await;
        let mut meta = String::new();
        if revision == Revision::V2026_07_28 {
            meta = format!("{modern},");
        } else {
            let answer = pipe
                .ask(&format!(r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#))
                .await;
            assert_eq!(
                parse(&answer)["result"]["protocolVersion"],
                revision.as_str()
            );
            pipe.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
                .await;
        }
        for key in ["notes", "old"] {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":"{key}","method":"tools/call","params":{{{meta}"name":"{key}_t","arguments":{{}}}}}}"#
            );
            let answer = pipe.until_listed(&call).await;
            assert_eq!(parse(&answer)["id"], key);
            assert_eq!(
                parse(&answer)["result"]["content"][0]["text"],
                "called t",
                "{revision}: {answer}"
            );
        }
        // A self-describing request may come in between, whatever the pipe agreed on.
        let list =
            format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{{{modern}}}}}"#);
        let answer = parse(&pipe.ask(&list).await);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        let broken = parse(&pipe.ask("{nonsense").await);
        assert_eq!(broken["error"]["code"], -32700);
        pipe.end().await;
    }
}

/// The result of calling `t`, and its definition, as a client of each revision sees them.
async fn as_seen(
    definition: &str,
    result: &str,
    server: Revision,
) -> Vec<(Revision, Value, Value)> {
    let result = result.to_owned();
    let notes = Upstream::http(server)
        .capabilities(r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#)
        .tools([definition])
        .on("tools/call", move |_| Play::Result(result.clone()));
    // The media in these results are none.
    let gateway = Gateway::of().upstream("notes", &notes);
    let gateway = gateway.setting("sanitize: { classes: { media: off } }");
    let gateway = gateway.start().await;
    let mut seen = Vec::new();
    for revision in Revision::ALL {
        let client = gateway.client(revision).await;
        let tool = client.ask("tools/list", "{}").await.value()["tools"][0].clone();
        seen.push((revision, tool, client.call("notes_t", "{}").await.value()));
    }
    seen
}

#[tokio::test]
async fn structured_results_and_their_schemas_are_told_to_those_who_know_them() {
    let definition =
        r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}"#;
    let result = r#"{"content":[],"structuredContent":{"n":1}}"#;
    for (revision, tool, result) in as_seen(definition, result, Revision::V2026_07_28).await {
        let knows = revision >= Revision::V2025_06_18;
        assert_eq!(tool.get("outputSchema").is_some(), knows, "{revision}");
        assert_eq!(
            result.get("structuredContent").is_some(),
            knows,
            "{revision}"
        );
        if !knows {
            assert_eq!(
                result["content"][0],
                json!({"type":"text","text":"{\"n\":1}"}),
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn structured_results_that_are_no_objects_are_told_to_the_newest_only() {
    let definition = r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":["array","null","string"]}}"#;
    for (spelled, text) in [("[1.0,2]", "[1.0,2]"), ("null", "null"), ("\"x\"", "\"x\"")] {
        let result = format!(r#"{{"content":[],"structuredContent":{spelled}}}"#);
        for (revision, tool, result) in as_seen(definition, &result, Revision::V2026_07_28).await {
            let knows = revision == Revision::V2026_07_28;
            assert_eq!(tool.get("outputSchema").is_some(), knows, "{revision}");
            assert_eq!(
                result.get("structuredContent").is_some(),
                knows,
                "{revision} {result}"
            );
            if !knows {
                assert_eq!(result["content"][0]["text"], text, "{revision}");
            }
        }
    }
}

/// PROTOCOL D6
#[tokio::test]
async fn structured_results_that_are_no_objects_are_lost_to_nobody_whatever_stands_beside_them() {
    for (content, texts) in [
        (
            r#"{"type":"text","text":"a summary"}"#,
            ["a summary", "[1.0,2]"].as_slice(),
        ),
        // It is there already, if in other spelling.
        (r#"{"type":"text","text":"[1.0, 2]"}"#, &["[1.0, 2]"]),
    ] {
        let result = format!(r#"{{"content":[{content}],"structuredContent":[1.0,2]}}"#);
        for (revision, _, result) in as_seen(&tool("t"), &result, Revision::V2026_07_28).await {
            if revision == Revision::V2026_07_28 {
                continue;
            }
            assert_eq!(result.get("structuredContent"), None, "{revision}");
            let blocks = result["content"].as_array().unwrap().iter();
            let told: Vec<_> = blocks
                .map(|block| block["text"].as_str().unwrap())
                .collect();
            assert_eq!(told, texts, "{revision}");
        }
    }
}

#[tokio::test]
async fn content_that_came_later_is_said_in_older_terms() {
    let result = r#"{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","uri":"n://x","name":"x","title":"The X","mimeType":"text/plain"}]}"#;
    for (revision, _, result) in as_seen(&tool("t"), result, Revision::V2025_11_25).await {
        let (audio, link) = (&result["content"][0], &result["content"][1]);
        if revision == Revision::V2024_11_05 {
            assert_eq!(audio["type"], "resource");
            assert_eq!(
                (&audio["resource"]["blob"], &audio["resource"]["mimeType"]),
                (&json!("AAAA"), &json!("audio/wav"))
            );
        } else {
            assert_eq!(audio["type"], "audio", "{revision}");
        }
        if revision < Revision::V2025_06_18 {
            assert_eq!(
                *link,
                json!({"type":"text","text":"The X: notes+n://x (text/plain)"}),
                "{revision}"
            );
        } else {
            assert_eq!(link["uri"], "notes+n://x", "{revision}");
        }
    }
}

#[tokio::test]
async fn definitions_keep_what_a_revision_knows_of_them() {
    let definition = r#"{"name":"t","title":"The T","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"annotations":{"readOnlyHint":true},"icons":[],"x-vendor":1}"#;
    for (revision, tool, _) in as_seen(definition, &call_result("t"), Revision::V2025_11_25).await {
        assert_eq!(tool["x-vendor"], 1);
        assert_eq!(
            tool["title"], "The T",
            "{revision}: an extra member harms nobody"
        );
        let hinted = tool["annotations"]["title"] == "The T";
        assert_eq!(hinted, revision == Revision::V2025_03_26, "{revision}");
        assert_eq!(
            tool.get("execution").is_some(),
            revision == Revision::V2025_11_25,
            "{revision}"
        );
    }
}

#[tokio::test]
async fn only_the_newest_era_is_told_of_kinds_and_lifetimes_of_results() {
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let notes = Upstream::http(server)
            .tools([tool("t")])
            .resources([resource("n://r")]);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        for revision in Revision::ALL {
            let client = gateway.client(revision).await;
            let modern = revision == Revision::V2026_07_28;
            for (method, params) in [
                ("tools/list", "{}"),
                ("resources/list", "{}"),
                ("resources/read", r#"{"uri":"notes+n://r"}"#),
                ("tools/call", r#"{"name":"notes_t"}"#),
            ] {
                let value = client.ask(method, params).await.value();
                let has = |key: &str| value.get(key).is_some();
                assert_eq!(has("resultType"), modern, "{revision} {method}");
                let cacheable = modern && method != "tools/call";
                assert_eq!(has("ttlMs"), cacheable, "{revision} {method}");
                assert_eq!(has("cacheScope"), cacheable, "{revision} {method}");
                assert_eq!(has("_meta"), modern, "{revision} {method}: {value}");
            }
        }
    }
}

#[tokio::test]
async fn the_context_of_a_completion_goes_to_those_who_know_it() {
    let params = r#"{"ref":{"type":"ref/prompt","name":"notes_p"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":"1"}}}"#;
    for server in [
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ] {
        let notes = Upstream::http(server).prompts(&["p"]);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        gateway
            .client(Revision::V2026_07_28)
            .await
            .ask("completion/complete", params)
            .await
            .result();
        let heard = notes.last("completion/complete").value();
        assert_eq!(
            heard.get("context").is_some(),
            server >= Revision::V2025_06_18,
            "{server}"
        );
    }
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_told_in_each_eras_own_code() {
    for (server, code, data) in [
        (Revision::V2025_11_25, -32002, r#"{"uri":"n://r"}"#),
        (Revision::V2025_11_25, -32602, r#"{"uri":"n://r"}"#),
        (Revision::V2025_11_25, -32603, r#"{"uri":"n://r"}"#),
        (Revision::V2026_07_28, -32602, r#"{"uri":"n://r"}"#),
        // Without evidence of what it is about a code is left alone.
        (Revision::V2026_07_28, -32602, r#"{"x":1}"#),
    ] {
        let error = format!(r#"{{"code":{code},"message":"gone","data":{data}}}"#);
        let notes =
            Upstream::http(server).on("resources/read", move |_| Play::Error(error.clone()));
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        for revision in Revision::ALL {
            let answer = gateway.client(revision).await.read("notes+n://r").await;
            let known = data.contains("uri");
            let wanted = if revision < Revision::V2026_07_28 && known {
                -32002
            } else {
                -32602
            };
            assert_eq!(
                (answer.status, answer.refusal().0),
                (200, wanted),
                "{server} {code} to {revision}"
            );
            if known {
                assert_eq!(answer.error()["data"]["uri"], "notes+n://r");
            }
        }
    }
}

/// PROTOCOL D6: servers that say in words alone what is not there.
#[tokio::test]
async fn a_resource_that_is_not_there_by_an_errors_text_is_told_so_to_modern_clients() {
    for (error, told) in [
        (r#"{"code":0,"message":"Unknown resource: n://r"}"#, true),
        (
            r#"{"code":-32602,"message":"Resource n://r not found"}"#,
            true,
        ),
        (
            r#"{"code":-32603,"message":"no such resource: n://r"}"#,
            true,
        ),
        (
            r#"{"code":-32602,"message":"MCP error -32602: Resource 'n://r' not found."}"#,
            true,
        ),
        (r#"{"code":-32603,"message":"n://r does not exist"}"#, true),
        (
            r#"{"code":-32602,"message":"Unknown resource URI: 'n://r'"}"#,
            true,
        ),
        (
            r#"{"code":-32602,"message":"Resource not found for uri: \"n://r/\""}"#,
            true,
        ),
        (
            r#"{"code":-32603,"message":"Unknown resource: n://r/x"}"#,
            false,
        ),
        (r#"{"code":-32603,"message":"n://r timed out"}"#, false),
        (
            r#"{"code":0,"message":"Error reading resource n://r: host not found"}"#,
            false,
        ),
        (
            r#"{"code":0,"message":"Error reading resource n://r: table x does not exist"}"#,
            false,
        ),
        (
            r#"{"code":-32603,"message":"Resource n://r2 not found"}"#,
            false,
        ),
        (
            r#"{"code":-32603,"message":"Unknown resource: n://r2"}"#,
            false,
        ),
        (
            r#"{"code":-32603,"message":"Unknown resource: n://other"}"#,
            false,
        ),
        (r#"{"code":-32000,"message":"n://r not found"}"#, false),
        (
            r#"{"code":0,"message":"n://r not found","data":{"uri":"n://other"}}"#,
            false,
        ),
    ] {
        let notes = Upstream::http(Revision::V2025_11_25)
            .on("resources/read", move |_| Play::Error(error.into()));
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(Revision::V2026_07_28).await;
        let answer = client.read("notes+n://r").await.error();
        let found = (
            answer["code"] == -32602,
            answer["data"]["uri"] == "notes+n://r",
        );
        assert_eq!(found, (told, told), "{error}: {answer}");
        // Clients of the older era are told what the server said.
        let client = gateway.client(Revision::V2025_06_18).await;
        let answer = client.read("notes+n://r").await.error();
        assert_eq!(answer["code"], parse(error)["code"], "{answer}");
    }
}

/// PROTOCOL A6, G33
#[tokio::test]
async fn the_older_code_for_a_resource_is_never_told_in_the_newest_revision() {
    let gone = |_: &Heard| Play::Error(r#"{"code":-32002,"message":"gone","data":{"x":1}}"#.into());
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let notes = Upstream::http(server)
            .tools([tool("t")])
            .prompts(&["p"])
            .on("tools/call", gone)
            .on("prompts/get", gone)
            .on("completion/complete", gone);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        for revision in Revision::ALL {
            let client = gateway.client(revision).await;
            let modern = revision == Revision::V2026_07_28;
            for (method, params) in [
                ("tools/call", r#"{"name":"notes_t"}"#),
                ("prompts/get", r#"{"name":"notes_p"}"#),
                (
                    "completion/complete",
                    r#"{"ref":{"type":"ref/prompt","name":"notes_p"},"argument":{"name":"a","value":""}}"#,
                ),
            ] {
                let answer = client.ask(method, params).await;
                let code = if modern { -32602 } else { -32002 };
                assert_eq!(
                    (answer.status, answer.refusal().0),
                    (200, code),
                    "{server} to {revision}: {method}"
                );
                assert_eq!(answer.error()["data"]["x"], 1);
            }
        }
    }
}

#[tokio::test]
async fn a_pinned_revision_is_the_one_that_is_spoken() {
    let notes = Upstream::http(Revision::V2025_06_18).tools([tool("t")]);
    let gateway = Gateway::of()
        .upstream_with("notes", &notes, "protocol: \"2025-06-18\"")
        .start()
        .await;
    assert_eq!(
        gateway.app.statuses()[0].revision,
        Some(Revision::V2025_06_18)
    );
    assert!(notes.heard("server/discover").is_empty());
    assert_eq!(
        notes.last("initialize").value()["protocolVersion"],
        "2025-06-18"
    );

    let modern = Upstream::http(Revision::V2025_06_18);
    let gateway = Gateway::of()
        .upstream_with("notes", &modern, "protocol: modern")
        .start()
        .await;
    assert_eq!(gateway.state("notes"), "away");
    assert!(modern.heard("initialize").is_empty());
}

/// Feature: instructions (LL, LM, ML, MM)
#[tokio::test]
async fn instructions_of_all_servers_are_told_together() {
    let notes = Upstream::http(Revision::V2025_11_25).instructions("Use `add`.");
    let other = Upstream::http(Revision::V2026_07_28).instructions("Ask first.");
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("other", &other)
        .start()
        .await;
    for revision in Revision::ALL {
        let client = gateway.client(revision).await;
        let value = match &client.greeting {
            Some(greeting) => greeting.value(),
            None => client.ask("server/discover", "{}").await.value(),
        };
        let text = value["instructions"].as_str().unwrap().to_owned();
        let (first, second) = (
            text.find("Use `add`.").unwrap(),
            text.find("Ask first.").unwrap(),
        );
        assert!(
            first < second && text.contains("`notes`"),
            "{}",
            quote(&text)
        );
        for capability in ["tools", "prompts", "resources", "completions"] {
            assert!(
                value["capabilities"][capability].is_object(),
                "{revision} {capability}"
            );
        }
        if revision == Revision::V2026_07_28 {
            assert_eq!(value["supportedVersions"], json!(["2026-07-28"]));
        }
    }
}

#[tokio::test]
async fn text_of_tools_is_the_same_for_everybody() {
    for server in [Revision::V2025_03_26, Revision::V2026_07_28] {
        for (_, _, result) in as_seen(&tool("t"), &text_result("é\u{2028}"), server).await {
            assert_eq!(result["content"][0]["text"], "é\u{2028}");
        }
    }
}
