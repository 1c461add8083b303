//! What somebody does not see is answered as what does not exist, byte for byte (SECURITY AUTHZ-7).

use serde_json::Value;

use super::{LEGACY, MODERN, governed, notes};
use crate::harness::{
    Answer, Gateway, Pairing, Revision, Upstream, eventually, parse, resource, tool,
};

const BOB: &str = r#"
permit(principal == User::"bob", action, resource == Tool::"notes_b");
permit(principal == User::"bob", action, resource == Prompt::"notes_b");
permit(principal == User::"bob", action, resource == Resource::"notes+note://b");
permit(principal == User::"tim", action, resource == Tool::"notes_b");
"#;

/// Everything of an answer but what may differ: the name asked for, the id, the reference.
fn comparable(answer: &Answer, name: &str) -> (u16, Vec<String>, String) {
    let mut body = answer.body.replace(name, "NAME");
    if let Some(reference) = parse(answer.message())["error"]["data"]["ref"].as_str() {
        body = body.replace(&format!(r#""ref":"{reference}""#), r#""ref":"""#);
    }
    let id = answer.id().unwrap_or_default();
    body = body.replace(&format!(r#""id":{id}"#), r#""id":0"#);
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| !["date", "content-length"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort();
    (answer.status, headers, body)
}

/// Requests about something called so, of every method that takes a name; those after `|` are for one era.
fn requests(revision: Revision, name: &str, uri: &str) -> Vec<(&'static str, String, String)> {
    let of = |method, params: String, asked: &str| (method, params, asked.to_owned());
    let template = format!("{uri}/{{x}}");
    let argument = r#""argument":{"name":"x","value":"1"}"#;
    let mut all = vec![
        of(
            "tools/call",
            format!(r#"{{"name":"{name}","arguments":{{"q":1}}}}"#),
            name,
        ),
        of(
            "tools/call",
            format!(r#"{{"name":"{name}","requestState":"made up","inputResponses":{{}}}}"#),
            name,
        ),
        of("prompts/get", format!(r#"{{"name":"{name}"}}"#), name),
        of("resources/read", format!(r#"{{"uri":"{uri}"}}"#), uri),
        of(
            "resources/read",
            format!(r#"{{"uri":"{uri}/deeper"}}"#),
            uri,
        ),
        of(
            "completion/complete",
            format!(r#"{{"ref":{{"type":"ref/prompt","name":"{name}"}},{argument}}}"#),
            name,
        ),
        of(
            "completion/complete",
            format!(r#"{{"ref":{{"type":"ref/resource","uri":"{template}"}},{argument}}}"#),
            &template,
        ),
    ];
    if revision == LEGACY {
        all.push(of(
            "resources/subscribe",
            format!(r#"{{"uri":"{uri}"}}"#),
            uri,
        ));
    }
    all
}

pairings! {
    /// SECURITY AUTHZ-7
    async fn a_hidden_name_and_an_unknown_one_get_identical_answers(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = governed(&notes, BOB).await;
        let bob = gateway.client_as("bob", pair.client, "{}").await;
        // What a template may expand to is not known, so that bob may see both.
        let tim = gateway.client_as("tim", pair.client, "{}").await;
        let hidden = requests(pair.client, "notes_a", "notes+note://a");
        let unknown = requests(pair.client, "notes_z", "notes+note://z");
        for (hidden, unknown) in hidden.into_iter().zip(unknown) {
            let (method, params, name) = &hidden;
            let client = if name.contains("{x}") { &tim } else { &bob };
            let first = client.ask(method, params).await;
            let second = client.ask(unknown.0, &unknown.1).await;
            assert!(!parse(first.message())["error"].is_null(), "{method}: {}", first.body);
            assert_eq!(comparable(&first, name), comparable(&second, &unknown.2), "{method} {params}");
        }
        for method in ["tools/call", "prompts/get", "resources/read", "completion/complete", "resources/subscribe"] {
            assert!(notes.heard(method).is_empty(), "{method} reached the upstream");
        }
    }
}

#[tokio::test]
async fn a_listen_does_not_tell_hidden_from_unknown() {
    let notes = notes(MODERN);
    let gateway = governed(&notes, BOB).await;
    let client = gateway.client_as("bob", MODERN, "{}").await;
    let uris = ["notes+note://a", "notes+note://z", "notes+note://b"];
    let watch = client.partial_watch(&["tools"], &uris).await;
    assert_eq!(
        watch.acknowledged["resourceSubscriptions"],
        serde_json::json!(["notes+note://b"])
    );
    let heard = notes.heard("subscriptions/listen");
    let asked: Vec<Value> = heard
        .iter()
        .map(|heard| heard.value()["notifications"]["resourceSubscriptions"].clone())
        .collect();
    assert!(
        !asked
            .iter()
            .any(|uris| uris.to_string().contains("note://a")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn headers_and_app_only_tools_do_not_give_a_hidden_tool_away() {
    let mirrored = r#"{"name":"m","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#;
    let app = |name: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"_meta":{{"ui":{{"resourceUri":"ui://{name}","visibility":["app"]}}}}}}"#
        )
    };
    let notes = Upstream::http(MODERN).tools([mirrored.to_owned(), app("only"), tool("b")]);
    let mail = Upstream::http(MODERN).tools([app("other")]);
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .upstream("mail", &mail)
        .policies(
            r#"permit(principal == User::"bob", action, resource == Tool::"notes_b");
               permit(principal == User::"ana", action, resource);"#,
        )
        .start()
        .await;
    let bob = gateway.client_as("bob", MODERN, "{}").await;
    let ana = gateway.client_as("ana", MODERN, "{}").await;
    let unknown = bob.call("notes_z", "{}").await;
    for hidden in ["notes_m", "notes_only"] {
        let answer = bob
            .call(hidden, r#"{"r":"x"}"#)
            .header("mcp-param-region", "y")
            .await;
        assert_eq!(
            comparable(&answer, hidden),
            comparable(&unknown, "notes_z"),
            "{hidden}"
        );
        // Whoever sees it is told what is wrong.
        let told = ana
            .call(hidden, r#"{"r":"x"}"#)
            .header("mcp-param-region", "y")
            .await;
        assert_ne!(told.refusal().1, "unknown_name", "{hidden}");
    }
}

#[tokio::test]
async fn a_page_of_a_hidden_directory_or_skill_is_as_unknown_as_any() {
    let capabilities = r#"{"tools":{},"resources":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}"#;
    let notes = Upstream::http(MODERN)
        .capabilities(capabilities)
        .resources([
            resource("skill://a/SKILL.md"),
            resource("skill://b/SKILL.md"),
        ]);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource is Resource) when { resource.uri like "skill://b/*" };"#,
    )
    .await;
    let client = gateway.client_as("bob", MODERN, "{}").await;
    for method in ["resources/directory/read", "skills/get"] {
        for more in ["", r#","cursor":"made up""#] {
            let ask = async |uri: &str| {
                let params = format!(r#"{{"uri":"{uri}"{more}}}"#);
                comparable(&client.ask(method, &params).await, uri)
            };
            let hidden = ask("skill://notes/a/SKILL.md").await;
            let unknown = ask("skill://nothing/a/SKILL.md").await;
            assert_eq!(hidden, unknown, "{method} {more}");
            assert!(hidden.2.contains("unknown_name"), "{}", hidden.2);
        }
    }
    assert!(notes.heard("resources/directory/read").is_empty());
}

pairings! {
    /// SECURITY AUTHZ-7
    async fn who_may_not_use_a_server_does_not_learn_that_it_is_away(pair: Pairing) {
        let (away, good) = (pair.upstream(), pair.upstream().tools([tool("t")]).prompts(&["t"]));
        away.down();
        let gateway = Gateway::of()
            .upstream("away", &away)
            .upstream("good", &good)
            .toolset("some", r#"tools: ["away_x*"]"#)
            .policies(
                r#"permit(principal == User::"ana", action, resource);
                   permit(principal == User::"bob", action, resource in Upstream::"good");
                   permit(principal == User::"eve", action, resource == Tool::"away_xq");"#,
            )
            .unsettled()
            .start()
            .await;
        assert_eq!(gateway.app.policy_problems(), []);
        eventually("one is there and one is not", || async {
            (gateway.offers("good") && gateway.state("away") == "away").then_some(())
        })
        .await;
        let calls = |name: &str| {
            let mut all = requests(pair.client, name, "none");
            all.retain(|(_, _, asked)| asked == name);
            all
        };
        let ask = async |who: &str, path: &str, name: &str| {
            let client = gateway.client_as_at(path, who, pair.client, "{}").await.unwrap();
            let mut answers = Vec::new();
            for (method, params, _) in calls(name) {
                answers.push(comparable(&client.ask(method, &params).await, name));
            }
            answers
        };
        let bodies = |answers: &[(u16, Vec<String>, String)], reason: &str| {
            answers.iter().filter(|(_, _, body)| body.contains(reason)).count()
        };
        let count = calls("xq").len();
        let told = ask("ana", "/mcp", "away_xq").await;
        assert_eq!(bodies(&told, "upstream_unavailable"), count, "{told:?}");
        let told = ask("ana", "/mcp/u/away", "xq").await;
        // Completions, too: nobody knows yet whether it offers them.
        assert_eq!(bodies(&told, "upstream_unavailable"), count, "{told:?}");
        for (who, path, hidden, unknown) in [
            ("bob", "/mcp", "away_xq", "none_xq"),
            ("eve", "/mcp", "away_yq", "none_yq"),
            // What the endpoint would not serve if it were there is unknown to everybody.
            ("ana", "/mcp/some", "away_yq", "none_yq"),
        ] {
            let (hidden, unknown) = (ask(who, path, hidden).await, ask(who, path, unknown).await);
            assert_eq!(hidden, unknown, "{who} {path}");
            assert_eq!(bodies(&hidden, "away"), 0, "{hidden:?}");
        }
        // Under the name that it will have, whatever it is called by.
        for (path, name) in [("/mcp", "away_xq"), ("/mcp/u/away", "xq"), ("/mcp/some", "away_xq")] {
            let eve = gateway.client_as_at(path, "eve", pair.client, "{}").await.unwrap();
            assert_eq!(eve.call(name, "{}").await.tool_error(), "upstream_unavailable", "{path}");
        }
    }
}
