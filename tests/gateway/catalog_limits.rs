//! What a server may offer, and what becomes of the rest (SECURITY CAT-1, CAT-5, CAT-6, CAT-7).

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::harness::{
    Gateway, Pairing, Play, Revision, Upstream, eventually, metered, resource, tool,
};

pairings! {
    async fn cat_1_a_later_server_never_takes_over_a_name(pair: Pairing) {
        let first = pair.upstream().tools([tool("b")]);
        let second = pair.upstream();
        let gateway = Gateway::of()
            .upstream_with("second", &second, "prefix: \"\"")
            .upstream("a", &first)
            .polling(Duration::from_millis(20))
            .start()
            .await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["a_b"]);
        // The other stands first in the configuration, but the name is taken.
        second.offer(0, [tool("a_b"), tool("own")]);
        eventually("the new list is there", || async { (client.tools().await.len() == 2).then_some(()) }).await;
        assert_eq!(client.tools().await, ["own", "a_b"]);
        client.call("a_b", "{}").await.result();
        assert_eq!((first.heard("tools/call").len(), second.heard("tools/call").len()), (1, 0));
        let reports = gateway.reports("second");
        assert!(reports.iter().any(|report| report.contains("`a_b`") && report.contains("taken by `a`")), "{reports:?}");
    }
}

pairings! {
    async fn cat_1_names_that_could_fool_are_left_out_and_reported(pair: Pairing) {
        let fools = ["pay\u{200b}", "p\u{430}y", "pay\u{202e}", "pay\u{7}", "ｐay", ""];
        let notes = pair.upstream().tools(fools.iter().map(|name| tool(name)).chain([tool("pay"), tool("pay")]));
        let (gateway, client) = pair.alone(&notes).await;
        assert_eq!(client.tools().await, ["notes_pay"]);
        assert_eq!(gateway.reports("notes").len(), fools.len() + 1, "{:?}", gateway.reports("notes"));
    }
}

/// What metrics say of how much of an upstream is left out or doubtful.
fn told_of(key: &str) -> Option<u64> {
    let text = String::from_utf8(metered().metrics_text()).unwrap();
    let upstream = format!("\"{key}\"");
    let mut lines = text.lines();
    let line = lines
        .find(|line| line.starts_with("usher_catalog_reports{") && line.contains(&upstream))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

pairings! {
    async fn cat_1_what_is_left_out_is_counted(pair: Pairing) {
        let era = |modern: bool| if modern { "modern" } else { "legacy" };
        // Every gateway of this process is in the same metrics.
        let key = |name: &str| format!("{name}-{}-{}", era(pair.client_is_modern()), era(pair.upstream_is_modern()));
        let (holder, later) = (key("holder"), key("later"));
        let first = pair.upstream().tools([tool("b"), tool("c")]);
        let second = pair.upstream();
        let gateway = Gateway::of()
            .upstream_with(&holder, &first, "prefix: a")
            .upstream_with(&later, &second, "prefix: \"\"")
            .observed(metered().clone())
            .polling(Duration::from_millis(20))
            .start()
            .await;
        let client = pair.client(&gateway).await;
        assert_eq!((told_of(&holder), told_of(&later)), (Some(0), Some(0)));
        // Two that clash, two that fool, one twice, and one that is as it should be.
        second.offer(0, [tool("a_b"), tool("a_c"), tool("pay\u{200b}"), tool("p\u{430}y"), tool("own"), tool("own")]);
        eventually("the new list is there", || async { (client.tools().await.len() == 3).then_some(()) }).await;
        assert_eq!(client.tools().await, ["a_b", "a_c", "own"]);
        assert_eq!(gateway.reports(&later).len(), 5);
        eventually("five are counted", || async { (told_of(&later) == Some(5)).then_some(()) }).await;
        assert_eq!(told_of(&holder), Some(0));
        second.offer(0, [tool("own"), tool("a_b")]);
        eventually("it mends its ways", || async { (told_of(&later) == Some(1)).then_some(()) }).await;
    }
}

/// A tool with this input schema.
fn of_schema(name: &str, schema: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)
}

pairings! {
    async fn cat_5_a_bad_definition_costs_only_itself(pair: Pairing) {
        let property = |property: &str| format!(r#"{{"type":"object","properties":{{"a":{property},"b":{{"type":"string"}}}}}}"#);
        let deep = |depth: usize| format!("{}{{}}{}", r#"{"type":"object","properties":{"a":"#.repeat(depth), "}}".repeat(depth));
        let wide = format!(r#"{{"type":"object","properties":{{{}}}}}"#, (0..1_001).map(|n| format!(r#""p{n}":{{}}"#)).collect::<Vec<_>>().join(","));
        let bad = [
            of_schema("header-blank", &property(r#"{"type":"string","x-mcp-header":""}"#)),
            of_schema("header-space", &property(r#"{"type":"string","x-mcp-header":"a b"}"#)),
            of_schema("header-crlf", &property(r#"{"type":"string","x-mcp-header":"a\r\nB: c"}"#)),
            of_schema("header-number", &property(r#"{"type":"number","x-mcp-header":"A"}"#)),
            of_schema("header-array", &property(r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#)),
            of_schema("header-twice", r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#),
            of_schema("remote", &property(r#"{"$ref":"https://example.com/schema.json"}"#)),
            of_schema("file", &property(r#"{"$ref":"file:///etc/passwd"}"#)),
            of_schema("pattern", &property(&format!(r#"{{"type":"string","pattern":"{}"}}"#, "a".repeat(513)))),
            of_schema("seven", &property(r#"{"type":7}"#)),
            of_schema("deep", &deep(33)),
            of_schema("wide", &wide),
            format!(r#"{{"name":"large","inputSchema":{{"type":"object"}},"x":"{}"}}"#, "x".repeat(256 << 10)),
            format!(r#"{{"name":"wordy","inputSchema":{{"type":"object"}},"description":"{}"}}"#, "x".repeat((16 << 10) + 1)),
            r#"{"name":"untyped","inputSchema":[]}"#.to_owned(),
            r#"{"name":"bare"}"#.to_owned(),
            r#"{"inputSchema":{"type":"object"}}"#.to_owned(),
            "1".to_owned(),
        ];
        let good = [
            tool("first"),
            of_schema("local-ref", r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}"##),
            of_schema("nested", &deep(15)),
            of_schema("header", &property(r#"{"type":"string","x-mcp-header":"A"}"#)),
            // Zod's pattern for an e-mail address looks ahead.
            of_schema("mail", &property(r#"{"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}"#)),
        ];
        let all = good[..1].iter().chain(&bad).chain(&good[1..]).cloned();
        let notes = pair.upstream().tools(all);
        let (gateway, client) = pair.alone(&notes).await;
        assert_eq!(client.tools().await, ["notes_first", "notes_local-ref", "notes_nested", "notes_header", "notes_mail"]);
        assert_eq!(client.call("notes_mail", r#"{"a":"x@y.z"}"#).await.text(), "called mail");
        let reports = gateway.reports("notes");
        for (name, reason) in [
            ("header-blank", "`x-mcp-header` is not a header name"),
            ("header-space", "`x-mcp-header` is not a header name"),
            ("header-crlf", "`x-mcp-header` is not a header name"),
            ("header-number", "`x-mcp-header: A` is on a property that is no string, integer or boolean"),
            ("header-array", "`x-mcp-header` is not reachable through `properties` alone"),
            ("header-twice", "`x-mcp-header: a` is used twice"),
            ("remote", "its schema refers to something outside itself"),
            ("file", "its schema refers to something outside itself"),
            ("pattern", "its schema has a pattern of more than 512 characters"),
            ("seven", "its schema is no JSON Schema: "),
            ("deep", "its schema nests deeper than 32"),
            ("wide", "its schema has more than 1000 subschemas"),
            ("large", "is larger than 262144 bytes"),
            ("wordy", "has a description of more than 16384 bytes"),
            ("untyped", "has a `inputSchema` of the wrong type"),
            ("bare", "has no `inputSchema`"),
            ("", "has no `name`"),
            ("", "is not an object"),
        ] {
            let report = format!("tools `{name}`: {reason}");
            assert!(reports.iter().any(|told| told.starts_with(&report)), "{report}: {reports:#?}");
            if !name.is_empty() {
                assert_eq!(client.call(&format!("notes_{name}"), "{}").await.refusal().0, -32602);
            }
        }
        assert!(reports.iter().any(|report| report.contains("`mail`: is offered, although")), "{reports:#?}");
        assert_eq!(reports.len(), bad.len() + 1, "{reports:#?}");
        assert_eq!(notes.heard("tools/call").len(), 1);
    }
}

pairings! {
    async fn cat_6_lists_without_end_are_cut_short(pair: Pairing) {
        let endless = pair.upstream();
        let count = AtomicUsize::new(0);
        endless.now_on("tools/list", move |_| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            Play::Result(format!(r#"{{"tools":[{}],"nextCursor":"{}"}}"#, tool(&format!("t{n}")), n + 1))
        });
        let looping = pair.upstream().on("tools/list", |_| {
            Play::Result(format!(r#"{{"tools":[{}],"nextCursor":"again"}}"#, tool("l")))
        });
        let sound = pair.upstream().tools([tool("s")]);
        let gateway = Gateway::of()
            .upstream("endless", &endless)
            .upstream("looping", &looping)
            .upstream("sound", &sound)
            .setting("bounds: { catalog: { pages: 20 } }")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let tools = client.tools().await;
        let of = |key: &str| tools.iter().filter(|name| name.starts_with(key)).count();
        assert_eq!((of("endless_"), of("looping_"), of("sound_")), (20, 1, 1), "{tools:?}");
        assert_eq!(endless.heard("tools/list").len(), 20);
        assert_eq!(looping.heard("tools/list").len(), 2);
        let listed = client.ask("tools/list", "{}").await.value();
        let partial = listed["_meta"]["dev.usher/partial"].as_array();
        assert!(partial.is_some_and(|names| names == &["endless", "looping"]), "{listed}");
        let others = client.ask("prompts/list", "{}").await.value();
        assert!(others["_meta"].get("dev.usher/partial").is_none(), "{others}");
        for key in ["endless", "looping"] {
            let reports = gateway.reports(key);
            assert!(reports.iter().any(|report| report.contains("cut short")), "{reports:?}");
        }
    }
}

pairings! {
    async fn cat_6_items_beyond_the_bound_are_left_out(pair: Pairing) {
        let notes = pair.upstream().tools((0..31).map(|n| tool(&format!("t{n:02}")))).paged(7);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .setting("bounds: { catalog: { items: 30 } }")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let tools = client.tools().await;
        assert_eq!((tools.len(), tools[29].as_str()), (30, "notes_t29"));
        assert_eq!(client.call("notes_t30", "{}").await.refusal().0, -32602);
        assert!(!gateway.reports("notes").is_empty());
    }
}

pairings! {
    /// SECURITY 6, REL-3
    async fn cat_6_all_lists_of_a_server_are_bounded_together(pair: Pairing) {
        let long = "x".repeat(200 << 10);
        let wide = |text: String| text.replacen('{', &format!(r#"{{"x":"{long}","#), 1);
        let notes = pair
            .upstream()
            .tools((0..4).map(|n| wide(tool(&format!("t{n}")))))
            .resources((0..4).map(|n| wide(resource(&format!("note://{n}")))));
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .setting("bounds: { catalog: { total: 1MiB } }")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let (tools, resources) = (client.tools().await, client.all("resources/list", "uri").await);
        assert_eq!(tools.len() + resources.len(), 5, "{tools:?} {resources:?}");
        let reports = gateway.reports("notes");
        assert!(reports.iter().all(|report| report.contains("the list was cut short")), "{reports:?}");
        assert!(!reports.is_empty());
    }
}

pairings! {
    async fn cat_6_the_last_good_list_is_kept_when_the_next_is_broken(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a"), tool("b")]);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .polling(Duration::from_millis(20))
            .start()
            .await;
        let client = pair.client(&gateway).await;
        for broken in [r#"{"tools":{}}"#, "{}", r#"{"tools":"x"}"#] {
            let before = notes.heard("tools/list").len();
            notes.now_on("tools/list", move |_| Play::Result(broken.into()));
            notes.until_heard("tools/list", before + 2).await;
            assert_eq!(client.tools().await, ["notes_a", "notes_b"], "{broken}");
        }
        notes.offer(0, [tool("c")]);
        notes.as_usual("tools/list");
        eventually("the next good list is there", || async { (client.tools().await == ["notes_c"]).then_some(()) }).await;
    }
}

/// The hints of `tools/list` to a modern client, in front of these servers.
async fn hints(servers: &[Upstream], path: &str) -> (u64, String) {
    let mut builder = Gateway::of().toolset("some", r#"tools: ["*"]"#);
    for (n, server) in servers.iter().enumerate() {
        builder = builder.upstream(&format!("u{n}"), server);
    }
    let gateway = builder.start().await;
    let client = gateway.client_at(path, Revision::V2026_07_28).await;
    let listed = client.ask("tools/list", "{}").await.value();
    (
        listed["ttlMs"].as_u64().unwrap(),
        listed["cacheScope"].as_str().unwrap().to_owned(),
    )
}

fn cached(ttl_millis: u64, scope: &'static str) -> Upstream {
    Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .cached(ttl_millis, scope)
}

/// PROTOCOL D5, of what is read: what a server says of keeping it is judged as it is for lists.
#[tokio::test]
async fn cat_7_what_is_read_is_kept_no_longer_and_shown_no_wider_than_it_may_be() {
    let public = r#""ttlMs":9,"cacheScope":"public""#;
    for (revision, said, ttl, scope) in [
        (Revision::V2026_07_28, public, 9, "public"),
        (
            Revision::V2026_07_28,
            r#""ttlMs":-5.5,"cacheScope":"all""#,
            0,
            "private",
        ),
        (
            Revision::V2026_07_28,
            r#""ttlMs":"9","cacheScope":1"#,
            0,
            "private",
        ),
        (Revision::V2025_11_25, public, 0, "private"),
    ] {
        let notes = Upstream::http(revision).resources([resource("a://x")]);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":$id,"result":{{"resultType":"complete","contents":[],{said}}}}}"#
        );
        notes.now_on("resources/read", move |_| Play::Raw(body.clone()));
        let kept = async |gateway: Gateway| {
            let client = gateway.client(Revision::V2026_07_28).await;
            let uri = client.all("resources/list", "uri").await.remove(0);
            let read = client.read(&uri).await.value();
            (read["ttlMs"].clone(), read["cacheScope"].clone())
        };
        let open = Gateway::of().upstream("notes", &notes).start().await;
        assert_eq!(kept(open).await, (ttl.into(), scope.into()), "{said}");
        // What only some may read is for nobody else to keep.
        let governed = Gateway::of()
            .upstream("notes", &notes)
            .policies("permit(principal, action, resource);")
            .start()
            .await;
        assert_eq!(
            kept(governed).await,
            (ttl.into(), "private".into()),
            "{said}"
        );
    }
}

#[tokio::test]
async fn cat_7_a_list_is_kept_no_longer_and_shown_no_wider_than_its_parts() {
    let (ttl, scope) = hints(
        &[cached(60_000, "public"), cached(900_000, "public")],
        "/mcp/u/u0",
    )
    .await;
    assert!((50_000..=60_000).contains(&ttl), "{ttl}");
    assert_eq!(scope, "public");
    let (ttl, scope) = hints(
        &[cached(900_000, "public"), cached(60_000, "private")],
        "/mcp",
    )
    .await;
    assert!((50_000..=60_000).contains(&ttl), "{ttl}");
    assert_eq!(scope, "private");
    // A selection, and a server that gives no hints, make it private; the latter also short.
    let (_, scope) = hints(&[cached(60_000, "public")], "/mcp/some").await;
    assert_eq!(scope, "private");
    let legacy = Upstream::http(Revision::V2025_11_25).tools([tool("t")]);
    assert_eq!(
        hints(&[cached(60_000, "public"), legacy], "/mcp").await,
        (0, "private".to_owned())
    );
}

pairings! {
    async fn cat_7_the_order_is_the_configured_one_whoever_answers_first(pair: Pairing) {
        let slow = pair.upstream().tools([tool("z"), tool("a")]);
        let quick = pair.upstream().tools([tool("m"), tool("b")]);
        slow.down();
        let gateway = Gateway::of().upstream("z", &slow).upstream("a", &quick).start().await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["a_m", "a_b"]);
        slow.up();
        eventually("both are there", || async { (client.tools().await.len() == 4).then_some(()) }).await;
        assert_eq!(client.tools().await, ["z_z", "z_a", "a_m", "a_b"]);
    }
}
