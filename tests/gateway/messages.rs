//! What is not a sound message is refused on the wire with the status and code of PROTOCOL B1 and C1 (SECURITY MSG-1 to MSG-10).

use serde_json::json;

use crate::harness::{
    Answer, Client, Gateway, Heard, Pairing, Play, Revision, Upstream, call_result, exchange,
    member, parse, tool,
};

/// A server with tool `t` and prompt `p`, and a client of each era.
pub(crate) struct Scene {
    pub(crate) notes: Upstream,
    pub(crate) gateway: Gateway,
    pub(crate) clients: [Client; 2],
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let notes = Upstream::http(Revision::V2026_07_28)
            .tools([tool("t")])
            .prompts(&["p"]);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let clients = [
            gateway.client(Revision::V2025_11_25).await,
            gateway.client(Revision::V2026_07_28).await,
        ];
        Self {
            notes,
            gateway,
            clients,
        }
    }

    /// Posts a body that stands for itself, as either client would, and expects the same refusal.
    async fn refuses(&self, body: &[u8], code: i64, reason: &str) {
        for client in &self.clients {
            let answer = self.bytes(client, body).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(120)]).into_owned();
            assert_eq!(answer.status, 400, "{shown}: {answer:?}");
            let (got, why) = answer.refusal();
            assert_eq!((got, why.as_str()), (code, reason), "{shown}");
        }
        self.nothing_went_on();
    }

    fn nothing_went_on(&self) {
        assert!(
            self.notes.heard("tools/call").is_empty(),
            "it reached the upstream"
        );
    }

    async fn bytes(&self, client: &Client, body: &[u8]) -> Answer {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        if let Some(session) = &client.session {
            headers.push(("mcp-session-id", session));
        } else {
            headers.push(("mcp-protocol-version", "2026-07-28"));
            headers.push(("mcp-method", "tools/call"));
            headers.push(("mcp-name", "notes_t"));
        }
        exchange(
            self.gateway.address,
            http::Method::POST,
            "/mcp",
            &headers,
            body,
        )
        .await
    }

    /// A call of `t` with these arguments, as the client spells it.
    fn call(&self, client: &Client, arguments: &str) -> String {
        let params = format!(r#"{{"name":"notes_t","arguments":{arguments}}}"#);
        client.spelled("tools/call", &params).0
    }

    async fn called(&self, client: &Client, arguments: &str) -> Answer {
        let body = self.call(client, arguments);
        self.bytes(client, body.as_bytes()).await
    }
}

#[tokio::test]
async fn msg_1_what_is_not_one_message_is_refused() {
    let scene = Scene::new().await;
    let sound = scene.call(&scene.clients[0], "{}");
    for text in [
        "",
        "{",
        "nonsense",
        "{'a':1}",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call",}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"} // comment"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":NaN}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":Infinity}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":01}}"#,
    ] {
        scene.refuses(text.as_bytes(), -32700, "parse_error").await;
    }
    let twice = format!("{sound}{sound}");
    scene.refuses(twice.as_bytes(), -32700, "parse_error").await;
    let marked = format!("\u{feff}{sound}");
    scene
        .refuses(marked.as_bytes(), -32700, "parse_error")
        .await;
    let wide: Vec<u8> = sound.encode_utf16().flat_map(u16::to_le_bytes).collect();
    scene.refuses(&wide, -32700, "parse_error").await;
    for text in [
        "1",
        "\"x\"",
        "null",
        "true",
        "[]",
        "[[]]",
        "[1]",
        "{}",
        r#"{"jsonrpc":"2.0","id":1}"#,
    ] {
        scene
            .refuses(text.as_bytes(), -32600, "invalid_request")
            .await;
    }
    for version in ["\"1.0\"", "2.0", "\"2\""] {
        let text = format!(r#"{{"jsonrpc":{version},"id":1,"method":"tools/call"}}"#);
        scene
            .refuses(text.as_bytes(), -32600, "invalid_request")
            .await;
    }
    // Batches and responses: neither has a place in these revisions.
    for client in &scene.clients {
        let batch = format!("[{}]", scene.call(client, "{}"));
        let answer = scene.bytes(client, batch.as_bytes()).await;
        assert_eq!((answer.status, answer.refusal().0), (400, -32600));
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let answer = scene.bytes(client, response).await;
        assert_eq!((answer.status, answer.refusal().0), (400, -32600));
    }
    scene.nothing_went_on();
}

#[tokio::test]
async fn msg_2_a_repeated_member_name_is_refused_wherever_it_stands() {
    let scene = Scene::new().await;
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","n\u0061me":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","arguments":{"a":[{"b":1,"c":2,"b":1}]}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","arguments":{"é":1,"\u00e9":1}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","arguments":{"😀":1,"\ud83d\ude00":1}}}"#,
    ] {
        scene
            .refuses(text.as_bytes(), -32700, "duplicate_member")
            .await;
    }
    for (text, id) in [
        (
            r#"{"jsonrpc":"2.0","id":"q","method":"ping","params":{"a":1,"a":2}}"#,
            Some("\"q\""),
        ),
        // Of two ids neither is known to be the one that somebody waits for.
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None),
    ] {
        for client in &scene.clients {
            let answer = scene.bytes(client, text.as_bytes()).await;
            assert_eq!(answer.refusal().1, "duplicate_member");
            assert_eq!(answer.id().as_deref(), id, "{text}");
        }
    }
    // What only looks alike is not repeated.
    for client in &scene.clients {
        let answer = scene
            .called(client, r#"{"a":1,"A":1,"é":1,"e\u0301":1}"#)
            .await;
        assert_eq!(answer.text(), "called t");
    }
}

pairings! {
    async fn msg_2_a_repeated_member_name_from_an_upstream_is_its_own_fault(pair: Pairing) {
        let answer = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[],"structuredContent":{"a":{"b":1,"\u0062":2}}}}"#;
        let notes = pair.upstream().tools([tool("t"), tool("u")]).on("tools/call", move |heard| {
            if heard.value()["name"] == "t" {
                Play::Raw(answer.into())
            } else {
                Play::Result(call_result("u"))
            }
        });
        let (_gateway, client) = pair.alone(&notes).await;
        let refused = client.call("notes_t", "{}").await;
        assert_eq!((refused.status, refused.tool_error()), (200, "upstream_protocol_error".to_owned()));
        assert_eq!(client.call("notes_u", "{}").await.text(), "called u");
    }
}

#[tokio::test]
async fn msg_3_names_that_only_look_like_protocol_names_are_refused() {
    let scene = Scene::new().await;
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"Method":"tools/call","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","ｐarams":{}}"#,
    ] {
        scene
            .refuses(text.as_bytes(), -32600, "confusable_member")
            .await;
    }
    scene.nothing_went_on();
    // Arguments are data: their names may be anything.
    for client in &scene.clients {
        let arguments = r#"{"Name":1,"METHOD":2,"_META":3,"ｎame":4}"#;
        assert_eq!(scene.called(client, arguments).await.text(), "called t");
        assert_eq!(scene.notes.last("tools/call").arguments(), arguments);
    }
}

#[tokio::test]
async fn msg_4_broken_text_is_refused() {
    let scene = Scene::new().await;
    for bytes in [
        &b"\xff"[..],
        b"\xc0\xaf",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        br"\ud800",
        br"\udc00",
        br"\ud800\ud800",
        br"\ud800x",
    ] {
        let mut body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","arguments":{"a":""#.to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(br#""}}}"#);
        scene.refuses(&body, -32700, "invalid_encoding").await;
    }
}

#[tokio::test]
async fn msg_5_what_is_deeper_or_longer_than_the_bounds_is_refused_at_the_bound() {
    let scene = Scene::new().await;
    // The message, its params and the arguments are three containers already.
    let deep = |depth: usize| {
        format!(
            r#"{{"a":{}1{}}}"#,
            "[".repeat(depth - 3),
            "]".repeat(depth - 3)
        )
    };
    let members = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"k{n}\":0")).collect();
        format!("{{{}}}", members.join(","))
    };
    let key = |bytes: usize| format!(r#"{{"{}":0}}"#, "k".repeat(bytes));
    let number = |bytes: usize| format!(r#"{{"a":{}}}"#, "9".repeat(bytes));
    for (name, within, beyond) in [
        ("too_deep", deep(64), deep(65)),
        ("too_many_members", members(20_000), members(20_001)),
        ("key_too_long", key(1_024), key(1_025)),
        ("number_too_long", number(128), number(129)),
    ] {
        for client in &scene.clients {
            let body = scene.call(client, &beyond);
            let refused = scene.bytes(client, body.as_bytes()).await;
            assert_eq!(
                (refused.status, refused.refusal()),
                (400, (-32700, name.to_owned()))
            );
            // Whose it is can be told all the same (PROTOCOL B1.9).
            let id = refused.id().map(|id| format!(r#""id":{id},"#));
            assert!(id.is_some_and(|id| body.contains(&id)), "{refused:?}");
            let heard = scene.notes.heard("tools/call").len();
            assert_eq!(
                scene.called(client, &within).await.text(),
                "called t",
                "{name}"
            );
            assert_eq!(scene.notes.heard("tools/call").len(), heard + 1);
        }
    }
    let values = format!(r#"{{"a":[{}]}}"#, vec!["0"; 200_000].join(","));
    for client in &scene.clients {
        let refused = scene.called(client, &values).await;
        assert_eq!(
            (refused.status, refused.refusal()),
            (400, (-32700, "too_many_values".to_owned()))
        );
    }
    // A hundred thousand brackets take no stack.
    let brackets = "[".repeat(100_000);
    scene_refuses_brackets(&scene, &brackets).await;
}

async fn scene_refuses_brackets(scene: &Scene, brackets: &str) {
    for client in &scene.clients {
        let refused = scene.bytes(client, brackets.as_bytes()).await;
        assert_eq!(
            (refused.status, refused.refusal()),
            (400, (-32700, "too_deep".to_owned()))
        );
    }
}

pairings! {
    async fn msg_6_numbers_text_and_order_arrive_digit_for_digit(pair: Pairing) {
        let payload = r#"{"z":-0,"big":123456789012345678901234567890,"exp":1E+400,"tiny":1e-400,"frac":0.10000000000000000000000000001,"neg":-0.0,"zeros":1.000,"s":"\u0041\/é\ud83d\ude00\u0000","a": [ 1 , 2 ]	,"":{}}"#;
        let result = format!(r#"{{"content":[],"structuredContent":{payload},"x":{payload}}}"#);
        let notes =
            pair.upstream().tools([tool("t")]).on("tools/call", move |_| Play::Result(result.clone()));
        // A NUL is a control character like any other.
        let gateway = Gateway::of().upstream("notes", &notes);
        let gateway = gateway.setting("sanitize: { classes: { terminal_control: off } }");
        let gateway = gateway.start().await;
        let client = pair.client(&gateway).await;
        let answer = client.call("notes_t", payload).await;
        assert_eq!(notes.last("tools/call").arguments(), payload);
        for name in ["structuredContent", "x"] {
            assert_eq!(member(&answer.result(), name).as_deref(), Some(payload), "{name}");
        }
    }
}

#[tokio::test]
async fn msg_7_ids_that_are_none_are_refused_and_the_longest_is_echoed() {
    let scene = Scene::new().await;
    for id in [
        "null",
        "1.5",
        "1.0",
        "1e3",
        "{}",
        "[]",
        "true",
        &format!("\"{}\"", "x".repeat(257)),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#);
        scene
            .refuses(body.as_bytes(), -32600, "invalid_request")
            .await;
    }
    let longest = format!("\"{}\"", "x".repeat(256));
    for client in &scene.clients {
        let answer = client.call("notes_t", "{}").id(&longest).await;
        assert_eq!(answer.id(), Some(longest.clone()));
    }
}

#[tokio::test]
async fn msg_8_a_request_without_an_id_is_never_executed() {
    let scene = Scene::new().await;
    for client in &scene.clients {
        let (body, _) = client.spelled("tools/call", r#"{"name":"notes_t","arguments":{}}"#);
        let body = body.replacen(r#""id":"#, r#""x":"#, 1);
        let answer = scene.bytes(client, body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(answer.refusal().0, -32600);
        assert_eq!(answer.id(), None);
    }
    scene.nothing_went_on();
}

#[tokio::test]
async fn msg_9_headers_that_do_not_say_what_the_body_says_are_refused() {
    let scene = Scene::new().await;
    let client = &scene.clients[1];
    for (header, value) in [
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2099-01-01"),
        ("mcp-method", "tools/list"),
        ("mcp-method", "Tools/call"),
        ("mcp-name", "t"),
        ("mcp-name", "Notes_t"),
        ("mcp-name", "=?base64?bm90ZXNfdA=?="),
        ("mcp-name", "=?base64?bm90ZXNf!A==?="),
        ("mcp-name", "=?BASE64?bm90ZXNfdA==?="),
        ("mcp-param-x", "=?base64?!?="),
    ] {
        let answer = client
            .call("notes_t", "{}")
            .header(header, value)
            .id("77")
            .await;
        let refused = (400, (-32020, "header_mismatch".to_owned()));
        assert_eq!(
            (answer.status, answer.refusal()),
            refused,
            "{header}: {value}"
        );
        assert_eq!(answer.id().as_deref(), Some("77"));
    }
    for header in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let answer = client.call("notes_t", "{}").without(header).await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (400, -32020),
            "without {header}"
        );
    }
    scene.nothing_went_on();
    // Surrounding blanks and the coded spelling say the same.
    for value in ["  notes_t\t", "=?base64?bm90ZXNfdA==?="] {
        let answer = client.call("notes_t", "{}").header("mcp-name", value).await;
        assert_eq!(answer.text(), "called t", "{value}");
    }
}

#[tokio::test]
async fn msg_10_metadata_that_is_missing_or_not_served_is_refused() {
    let scene = Scene::new().await;
    let client = &scene.clients[1];
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let post = async |meta: &str, header: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{{meta}"name":"notes_t","arguments":{{}}}}}}"#
        );
        let headers = [
            ("mcp-protocol-version", header),
            ("mcp-method", "tools/call"),
            ("mcp-name", "notes_t"),
        ];
        client.post(&body, &headers).await
    };
    let wrong = [
        String::new(),
        r#""_meta":{},"#.to_owned(),
        r#""_meta":[],"#.to_owned(),
        format!(r#""_meta":{{{version}}},"#),
        format!(r#""_meta":{{{capabilities}}},"#),
        format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":[]}},"#),
        format!(r#""_meta":{{{capabilities},"io.modelcontextprotocol/protocolVersion":1}},"#),
        format!(r#""_meta":{{{version},{capabilities},"io.modelcontextprotocol/clientInfo":1}},"#),
        format!(
            r#""_meta":{{{version},{capabilities},"io.modelcontextprotocol/logLevel":"loud"}},"#
        ),
        format!(r#""_meta":{{{version},{capabilities},"progressToken":{{}}}},"#),
    ];
    for meta in wrong {
        let answer = post(&meta, "2026-07-28").await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (400, -32602),
            "{meta}: {answer:?}"
        );
        assert_eq!(answer.id().as_deref(), Some("5"), "{meta}");
    }
    for claimed in ["2025-11-25", "2099-01-01", "DRAFT"] {
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{claimed}",{capabilities}}},"#
        );
        let answer = post(&meta, claimed).await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (400, -32022),
            "{claimed}"
        );
        let mut data = answer.error()["data"].clone();
        let named = data.as_object_mut().unwrap().remove("ref");
        assert!(named.is_some_and(|named| named.is_string()), "{answer:?}");
        assert_eq!(
            data,
            json!({"supported":["2026-07-28"],"requested":claimed,"reason":"unsupported_version"})
        );
    }
    scene.nothing_went_on();
    let sound = format!(r#""_meta":{{{version},{capabilities}}},"#);
    assert_eq!(post(&sound, "2026-07-28").await.text(), "called t");
}

#[tokio::test]
async fn msg_10_a_capability_that_a_server_needs_and_the_client_lacks_is_named() {
    let needs = |_: &Heard| {
        Play::Error(
            r#"{"code":-32021,"message":"need","data":{"requiredCapabilities":{"sampling":{}}}}"#
                .into(),
        )
    };
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .prompts(&["p"])
        .on("tools/call", needs)
        .on("prompts/get", needs);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let modern = gateway.client(Revision::V2026_07_28).await;
    let answer = modern.call("notes_t", "{}").await;
    assert_eq!(
        (answer.status, answer.refusal().0),
        (400, -32021),
        "{answer:?}"
    );
    assert_eq!(
        answer.error()["data"]["requiredCapabilities"],
        json!({"sampling":{}})
    );
    // To the older era the code means nothing: it is told in words, and nothing is said to have broken the protocol.
    for revision in Revision::ALL.into_iter().take(4) {
        let legacy = gateway.client(revision).await;
        let answer = legacy.call("notes_t", "{}").await;
        assert_eq!(answer.status, 200);
        assert!(!answer.message().contains("-32021"), "{answer:?}");
        assert_eq!(answer.tool_error(), "capability_missing", "{revision}");
        assert!(answer.text().contains("capabilities"), "{answer:?}");
        assert!(answer.text().ends_with("`sampling`"), "{answer:?}");
        let refused = legacy.ask("prompts/get", r#"{"name":"notes_p"}"#).await;
        assert_eq!(
            (refused.status, refused.refusal()),
            (200, (-32603, "capability_missing".to_owned())),
            "{revision}"
        );
    }
    // Who has it is not told that it lacks it.
    let able = r#"{"sampling":{}}"#;
    let able = gateway.client_able(Revision::V2025_11_25, able).await;
    let answer = able.call("notes_t", "{}").await;
    assert_eq!(answer.tool_error(), "upstream_protocol_error");
}

#[tokio::test]
async fn the_body_decides_the_era_and_a_contradicting_header_is_refused() {
    let scene = Scene::new().await;
    let [legacy, modern] = &scene.clients;
    // A modern `initialize` or `ping` does not exist, and is not taken for the older one.
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "tasks/list",
        "nonsense",
    ] {
        let answer = modern.ask(method, "{}").await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (404, -32601),
            "{method}"
        );
        assert!(answer.headers.get("mcp-session-id").is_none());
    }
    // In a session an unknown method is told in-band, and so is `server/discover`.
    for method in ["nonsense", "server/discover"] {
        let answer = legacy.ask(method, "{}").await;
        assert_eq!(
            (answer.status, answer.refusal().0),
            (200, -32601),
            "{method}"
        );
    }
    let bare = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
    let answer = modern.post(&bare("server/discover"), &[]).await;
    assert_eq!((answer.status, answer.refusal().0), (400, -32602));
    let named = [("mcp-protocol-version", "2026-07-28")];
    let answer = modern.post(&bare("tools/list"), &named).await;
    assert_eq!((answer.status, answer.refusal().0), (400, -32602));
    let answer = modern.post(&bare("initialize"), &named).await;
    assert_eq!((answer.status, answer.refusal().0), (400, -32020));
    // Headers of the newer era on requests of the older one decide nothing (PROTOCOL J1).
    let answer = legacy
        .call("notes_t", "{}")
        .header("mcp-method", "x")
        .header("mcp-name", "y")
        .await;
    assert_eq!(answer.text(), "called t");
}

#[tokio::test]
async fn initialize_is_never_answered_with_a_revision_of_the_newer_era() {
    let scene = Scene::new().await;
    let client = &scene.clients[1];
    for (proposed, agreed) in [
        ("2026-07-28", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{proposed}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        );
        let answer = client.post(&body, &[]).await;
        assert_eq!(answer.value()["protocolVersion"], agreed, "{proposed}");
        assert!(answer.headers.contains_key("mcp-session-id"));
        assert_eq!(parse(&answer.result())["serverInfo"]["name"], "usher");
    }
}
