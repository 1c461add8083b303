//! Changes of lists: a server tells, everybody who sees the change hears of it once, nobody else hears anything.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Gateway, Pairing, Play, Revision, Upstream, eventually, resource, tool};

/// Nothing was ever said of a client's own wishes.
fn bare(list: &str) -> (String, serde_json::Value) {
    (format!("{list}/list_changed"), serde_json::Value::Null)
}

/// Without params or with empty ones.
fn same(told: (String, serde_json::Value), list: &str) {
    let (method, params) = told;
    assert_eq!(method, bare(list).0);
    assert!(params.is_null() || params == json!({}), "{params}");
}

pairings! {
    /// Feature: list_changed
    async fn a_changed_list_is_told_once_and_is_live_when_it_is(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a")]).prompts(&["p"]).telling();
        let (_gateway, client) = pair.alone(&notes).await;
        let mut watch = client.watch(&["tools", "prompts", "resources"], &[]).await;
        for (list, n) in [("tools", 0), ("prompts", 1), ("resources", 2)] {
            match n {
                0 => notes.offer(0, [tool("a"), tool("b")]),
                1 => notes.offer(1, [r#"{"name":"q"}"#]),
                _ => notes.offer(2, [resource("note://r")]),
            }
            notes.announce(list).await;
            same(watch.change().await, list);
            let listed = match n {
                0 => client.tools().await,
                1 => client.all("prompts/list", "name").await,
                _ => client.all("resources/list", "uri").await,
            };
            let wanted: &[&str] = match n {
                0 => &["notes_a", "notes_b"],
                1 => &["notes_q"],
                _ => &["notes+note://r"],
            };
            assert_eq!(listed, wanted, "told before it was so");
        }
    }
}

pairings! {
    /// Feature: list_changed
    async fn a_storm_of_changes_ends_in_what_is_so_and_a_change_of_nothing_is_not_told(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a")]).telling();
        let (_gateway, client) = pair.alone(&notes).await;
        let mut watch = client.watch(&["tools", "prompts"], &[]).await;
        // The same bytes as before.
        for _ in 0..20 {
            notes.announce("tools").await;
        }
        for n in 0..50 {
            notes.offer(0, [tool("a"), tool(&format!("b{n}"))]);
            notes.announce("tools").await;
        }
        notes.offer(1, [r#"{"name":"last"}"#]);
        notes.announce("prompts").await;
        let mut told = 0;
        while watch.change().await.0 != "prompts/list_changed" {
            told += 1;
        }
        // Both lists are read in one go or one after the other, so the prompts may come first.
        eventually("the last list is live", || async {
            client.tools().await.contains(&"notes_b49".to_owned()).then_some(())
        })
        .await;
        assert!(told <= 5, "told {told} times");
        let read = notes.heard("tools/list").len();
        assert!(read <= 6, "read {read} times");
    }
}

pairings! {
    /// Feature: list_changed
    async fn one_servers_change_is_read_from_that_server_alone(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a")]).telling();
        let other = pair.upstream().tools([tool("a")]).telling();
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream("other", &other).start().await;
        let client = pair.client(&gateway).await;
        let mut watch = client.watch(&["tools"], &[]).await;
        let before = other.heard("tools/list").len();
        notes.offer(0, [tool("b")]);
        notes.announce("tools").await;
        same(watch.change().await, "tools");
        assert_eq!(client.tools().await, ["notes_b", "other_a"]);
        assert_eq!(other.heard("tools/list").len(), before);
    }
}

pairings! {
    /// Feature: list_changed
    async fn an_endpoint_that_does_not_show_the_change_stays_silent(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a")]).telling();
        let other = pair.upstream().tools([tool("a")]).telling();
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .upstream("other", &other)
            .toolset("narrow", "tools: [\"*_a\"]")
            .start()
            .await;
        let everything = pair.client(&gateway).await;
        let narrow = gateway.client_at("/mcp/narrow", pair.client).await;
        let single = gateway.client_at("/mcp/u/other", pair.client).await;
        let mut watch = everything.watch(&["tools"], &[]).await;
        let mut deaf = [
            narrow.watch(&["tools"], &[]).await,
            single.watch(&["tools"], &[]).await,
        ];
        notes.offer(0, [tool("a"), tool("b")]);
        notes.announce("tools").await;
        same(watch.change().await, "tools");
        // What all of them see; whatever had been told before would come first.
        other.offer(0, [tool("a2_a")]);
        other.announce("tools").await;
        for watch in &mut deaf {
            same(watch.change().await, "tools");
        }
        assert_eq!(narrow.tools().await, ["notes_a", "other_a2_a"]);
        assert_eq!(single.tools().await, ["a2_a"]);
    }
}

pairings! {
    /// Feature: list_changed without a push
    async fn what_a_poll_finds_is_told_too(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a")]);
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .polling(Duration::from_millis(200))
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let mut watch = client.watch(&["tools"], &[]).await;
        notes.offer(0, [tool("b")]);
        same(watch.change().await, "tools");
        assert_eq!(client.tools().await, ["notes_b"]);
    }
}

pairings! {
    /// PROTOCOL C4, D4: as where it is redeployed without an outage.
    async fn a_server_that_comes_to_offer_more_is_shown_with_that(pair: Pairing) {
        let notes = pair
            .upstream()
            .tools([tool("a")])
            .prompts(&["p"])
            .capabilities(r#"{"tools":{}}"#)
            .instructions("Only tools.");
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .polling(Duration::from_millis(200))
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let mut watch = client.watch(&["prompts"], &[]).await;
        notes.redeployed(r#"{"tools":{},"prompts":{}}"#, "Prompts, too.");
        if !pair.upstream_is_modern() {
            // It says so with a new session, and knows the first no more.
            notes.now_on("tools/list", |heard| match heard.session.as_deref() {
                Some("session-0") => Play::Status(404),
                _ => Play::Result(format!(r#"{{"tools":[{}]}}"#, tool("a"))),
            });
        }
        same(watch.change().await, "prompts");
        assert_eq!(client.all("prompts/list", "name").await, ["notes_p"]);
        let newcomer = pair.client(&gateway).await;
        let face = match &newcomer.greeting {
            Some(greeting) => greeting.value(),
            None => newcomer.ask("server/discover", "{}").await.value(),
        };
        let instructions = face["instructions"].as_str().unwrap();
        assert!(instructions.contains("Prompts, too."), "{instructions}");
        assert_eq!(client.tools().await, ["notes_a"]);
    }
}

pairings! {
    /// Feature: list_changed without a push
    async fn a_server_that_comes_is_a_change_of_the_lists(pair: Pairing) {
        let notes = pair.upstream().tools([tool("a")]);
        let late = pair.upstream().tools([tool("b")]);
        late.down();
        let gateway = Gateway::of()
            .upstream("notes", &notes)
            .upstream("late", &late)
            .unsettled()
            .start()
            .await;
        eventually("the first is there", || async { gateway.offers("notes").then_some(()) }).await;
        let client = pair.client(&gateway).await;
        assert_eq!(client.tools().await, ["notes_a"]);
        let mut watch = client.watch(&["tools"], &[]).await;
        late.up();
        same(watch.change().await, "tools");
        assert_eq!(client.tools().await, ["notes_a", "late_b"]);
    }
}

pairings! {
    /// Feature: Lost upstream listen
    async fn after_a_server_was_lost_and_came_back_its_changes_are_told_again(pair: Pairing) {
        for piped in [false, true] {
            let server = if piped { Upstream::pipe(pair.upstream) } else { pair.upstream() };
            let notes = server.tools([tool("a")]).telling();
            let (gateway, client) = pair.alone(&notes).await;
            let mut watch = client.watch(&["tools"], &[]).await;
            notes.down();
            eventually("it is away", || async { (gateway.state("notes") == "away" || !piped).then_some(()) }).await;
            notes.offer(0, [tool("b")]);
            notes.up();
            // What happened meanwhile was missed, so it is looked at again.
            loop {
                same(watch.change().await, "tools");
                if client.tools().await == ["notes_b"] {
                    break;
                }
            }
            eventually("it can be called", || async {
                let answer = client.call("notes_b", "{}").await;
                answer.message().contains("called b").then_some(())
            })
            .await;
            notes.offer(0, [tool("c")]);
            notes.announce("tools").await;
            while client.tools().await != ["notes_c"] {
                same(watch.change().await, "tools");
            }
        }
    }
}

/// Feature: list_changed to a modern client without a listen (ML, MM)
#[tokio::test]
async fn a_modern_client_that_listens_to_nothing_is_told_nothing() {
    let notes = Upstream::http(Revision::V2025_11_25)
        .tools([tool("a")])
        .telling();
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let mut prompts = client.watch(&["prompts"], &[]).await;
    notes.offer(0, [tool("b")]);
    notes.announce("tools").await;
    eventually("the change is live", || async {
        (client.tools().await == ["notes_b"]).then_some(())
    })
    .await;
    notes.offer(1, [r#"{"name":"p"}"#]);
    notes.announce("prompts").await;
    assert_eq!(prompts.change().await.0, "prompts/list_changed");
}

/// Feature: Several streams of one client (LL, LM, ML, MM)
#[tokio::test]
async fn a_session_hears_on_one_of_its_streams_and_every_listen_hears_for_itself() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("a")])
        .telling();
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let modern = gateway.client(Revision::V2026_07_28).await;
    let mut first = modern.watch(&["tools"], &[]).await;
    let mut second = modern.watch(&["tools"], &[]).await;
    notes.offer(0, [tool("b")]);
    notes.announce("tools").await;
    same(first.change().await, "tools");
    same(second.change().await, "tools");
    let legacy = gateway.client(Revision::V2025_11_25).await;
    let older = legacy.watch(&[], &[]).await;
    let newer = legacy.watch(&[], &[]).await;
    notes.offer(0, [tool("c")]);
    notes.announce("tools").await;
    notes.offer(1, [r#"{"name":"p"}"#]);
    same(first.change().await, "tools");
    notes.announce("prompts").await;
    let mut streams = [older, newer];
    let (heard, other) = streams.split_at_mut(1);
    let (list, _) = tokio::select! {
        told = heard[0].change() => told,
        told = other[0].change() => told,
    };
    assert_eq!(list, "tools/list_changed");
    let (list, _) = tokio::select! {
        told = heard[0].change() => told,
        told = other[0].change() => told,
    };
    assert_eq!(
        list, "prompts/list_changed",
        "each message on one stream only"
    );
}
