//! What servers call things, and what clients see (PRODUCT 5).

use crate::harness::{Gateway, Pairing, resource, tool};

pairings! {
    async fn a_prefix_is_the_key_or_what_the_operator_says_or_nothing(pair: Pairing) {
        let servers = [pair.upstream(), pair.upstream(), pair.upstream()]
            .map(|server| server.tools([tool("add")]).prompts(&["plan"]).resources([resource("n://1")]));
        let [a, b, c] = &servers;
        let gateway = Gateway::of()
            .upstream("alpha", a)
            .upstream_with("beta", b, "prefix: bb")
            .upstream_with("gamma", c, "prefix: \"\"")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["alpha_add", "bb_add", "add"]);
        assert_eq!(client.all("prompts/list", "name").await, ["alpha_plan", "bb_plan", "plan"]);
        assert_eq!(client.all("resources/list", "uri").await, ["alpha+n://1", "bb+n://1", "n://1"]);
        for (name, server) in [("alpha_add", a), ("bb_add", b), ("add", c)] {
            client.call(name, "{}").await.result();
            assert_eq!(server.heard("tools/call").len(), 1, "{name}");
        }
        for (uri, server) in [("alpha+n://1", a), ("bb+n://1", b), ("n://1", c)] {
            assert_eq!(client.read(uri).await.value()["contents"][0]["uri"], uri);
            assert_eq!(server.last("resources/read").value()["uri"], "n://1");
        }
    }
}

pairings! {
    async fn names_that_clients_may_not_take_are_shortened_and_still_lead_home(pair: Pairing) {
        let long = "very_long_".repeat(12);
        let notes = pair.upstream().tools([tool("files.read"), tool("files/read"), tool(&long), tool("größe"), tool("ok_1-2")]);
        let (_gateway, client) = pair.alone(&notes).await;
        let names = client.tools().await;
        assert_eq!(names.len(), 5);
        assert_eq!(names[4], "notes_ok_1-2");
        for (name, original) in names.iter().zip(["files.read", "files/read", &long, "größe", "ok_1-2"]) {
            assert!(name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{name}");
            client.call(name, "{}").await.result();
            assert_eq!(notes.last("tools/call").value()["name"], original);
        }
        let again = pair.client(&_gateway).await;
        assert_eq!(again.tools().await, names);
    }
}

pairings! {
    async fn a_wider_alphabet_lets_names_be(pair: Pairing) {
        let notes = pair.upstream().tools([tool("files.read"), tool(&"x".repeat(100))]);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .setting("names: { max: 128, charset: spec }")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["notes_files.read".to_owned(), format!("notes_{}", "x".repeat(100))]);
    }
}

pairings! {
    async fn the_operator_chooses_renames_and_describes_tools(pair: Pairing) {
        let notes = pair.upstream().tools([tool("query_sql"), tool("query_log"), tool("drop")]);
        let gateway = Gateway::of()
            .upstream_with(
                "notes",
                &notes,
                r#"tools: { allow: ["query_*"], deny: ["*_log"], rename: { query_sql: sql }, describe: { query_sql: "Asks." } }"#,
            )
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let listed = client.ask("tools/list", "{}").await.value();
        assert_eq!(listed["tools"].as_array().unwrap().len(), 1);
        assert_eq!((&listed["tools"][0]["name"], &listed["tools"][0]["description"]), (&"notes_sql".into(), &"Asks.".into()));
        client.call("notes_sql", "{}").await.result();
        assert_eq!(notes.last("tools/call").value()["name"], "query_sql");
        for hidden in ["notes_query_sql", "notes_query_log", "notes_drop"] {
            assert_eq!(client.call(hidden, "{}").await.refusal().0, -32602, "{hidden}");
        }
        assert_eq!(notes.heard("tools/call").len(), 1);
    }
}

pairings! {
    async fn a_prefix_that_looks_like_anothers_name_confuses_nobody(pair: Pairing) {
        let a = pair.upstream().tools([tool("b_c")]);
        let b = pair.upstream().tools([tool("c")]);
        let gateway = Gateway::of().upstream("a", &a).upstream("a-b", &b).start().await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["a_b_c", "a-b_c"]);
        client.call("a_b_c", "{}").await.result();
        assert_eq!((a.heard("tools/call").len(), b.heard("tools/call").len()), (1, 0));
    }
}
