//! Every client reads every item exactly once, whatever the pages are (acceptance 5, SECURITY STATE-1).

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use crate::harness::{
    Client, Gateway, GatewayBuilder, Pairing, Revision, Upstream, eventually, names, resource, tool,
};

const UPSTREAMS: usize = 10;
const TOOLS: usize = 200;
const KEY: &str = "an example of a key of more than thirty-two bytes";

fn named(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| tool(&format!("t{n:03}"))).collect()
}

fn pages_of(items: usize) -> GatewayBuilder {
    Gateway::of().setting(&format!("page_size: {{ items: {items} }}"))
}

/// Ten upstreams of different revisions, each with two hundred tools in pages of seven.
fn crowd() -> Vec<Upstream> {
    let revisions = Revision::ALL
        .into_iter()
        .filter(|revision| *revision != Revision::V2024_11_05);
    let kinds: Vec<_> = revisions.collect();
    (0..UPSTREAMS)
        .map(|n| {
            Upstream::http(kinds[n % kinds.len()])
                .tools(named(0..TOOLS))
                .paged(7)
        })
        .collect()
}

fn before(crowd: &[Upstream], mut builder: GatewayBuilder) -> GatewayBuilder {
    for (n, upstream) in crowd.iter().enumerate() {
        builder = builder.upstream(&format!("u{n}"), upstream);
    }
    builder
}

/// A page: the names on it, and the cursor of the next.
async fn page(client: &Client, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let params = cursor.map_or_else(
        || "{}".to_owned(),
        |cursor| format!(r#"{{"cursor":"{cursor}"}}"#),
    );
    let value = client.ask("tools/list", &params).await.value();
    let next = value["nextCursor"].as_str().map(str::to_owned);
    (names(&value, "tools", "name"), next)
}

async fn refuses(client: &Client, method: &str, cursor: &str) {
    let cursor = Value::from(cursor);
    let answer = client
        .ask(method, &format!(r#"{{"cursor":{cursor}}}"#))
        .await;
    assert_eq!(
        (answer.status, answer.refusal().0),
        (200, -32602),
        "{method} {cursor}: {answer:?}"
    );
}

#[tokio::test]
async fn two_thousand_tools_of_ten_servers_are_read_exactly_once_by_every_client() {
    let crowd = crowd();
    let gateway = before(&crowd, pages_of(50)).start().await;
    let wanted: Vec<_> = (0..UPSTREAMS)
        .flat_map(|u| (0..TOOLS).map(move |t| format!("u{u}_t{t:03}")))
        .collect();
    for revision in Revision::ALL {
        let client = gateway.client(revision).await;
        let mut told = Vec::new();
        let mut next = None;
        let mut pages = 0;
        loop {
            let (names, cursor) = page(&client, next.as_deref()).await;
            assert!(names.len() <= 50);
            told.extend(names);
            pages += 1;
            next = cursor;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(told, wanted, "{revision}");
        assert_eq!(pages, 40, "{revision}");
    }
    for upstream in &crowd {
        // Seven on a page make twenty-nine pages.
        assert_eq!(upstream.heard("tools/list").len(), 29);
    }
}

pairings! {
    async fn tools_that_come_and_go_between_pages_make_nothing_come_twice_or_vanish(pair: Pairing) {
        let servers: Vec<_> = (0..3).map(|_| pair.upstream().tools(named(100..140)).paged(7)).collect();
        let gateway = before(&servers, pages_of(11).polling(Duration::from_millis(20))).start().await;
        let client = pair.client(&gateway).await;
        let mut told = Vec::new();
        let mut next = None;
        for round in 0.. {
            let (names, cursor) = page(&client, next.as_deref()).await;
            told.extend(names);
            next = cursor;
            if next.is_none() {
                break;
            }
            // Between any two pages each server gains tools at both ends and in the middle, or loses them again. What was
            // there from the beginning stays.
            let extra: Vec<_> = if round % 2 == 0 {
                named(0..5 + round).into_iter().chain(named(100..120)).chain([tool("t119x")])
                    .chain(named(120..140)).chain(named(300..305)).collect()
            } else {
                named(100..140)
            };
            let count = extra.len();
            servers.iter().for_each(|server| server.offer(0, extra.clone()));
            eventually("the change is listed", || async {
                let statuses = gateway.app.statuses();
                statuses.iter().all(|status| status.counts[0] == count).then_some(())
            })
            .await;
        }
        let once: BTreeSet<_> = told.iter().collect();
        assert_eq!(once.len(), told.len(), "something came twice");
        for server in 0..3 {
            for n in 100..140 {
                assert!(once.contains(&format!("u{server}_t{n}")), "u{server}_t{n} was missed");
            }
        }
    }
}

pairings! {
    async fn a_removed_place_does_not_end_the_list(pair: Pairing) {
        let notes = pair.upstream().tools(named(0..40));
        let gateway = pages_of(10).upstream("notes", &notes).polling(Duration::from_millis(20)).start().await;
        let client = pair.client(&gateway).await;
        let (first, next) = page(&client, None).await;
        assert_eq!(first.last().unwrap(), "notes_t009");
        // The very item that the cursor stands at goes, and two before it.
        notes.offer(0, named(0..7).into_iter().chain(named(10..40)));
        eventually("the tools are gone", || async { (client.tools().await.len() == 37).then_some(()) }).await;
        let (second, _) = page(&client, next.as_deref()).await;
        assert_eq!(second.first().unwrap(), "notes_t010");
    }
}

pairings! {
    async fn a_cursor_altered_in_any_byte_is_refused(pair: Pairing) {
        let notes = pair.upstream().tools(named(0..30));
        let gateway = pages_of(10).upstream("notes", &notes).start().await;
        let client = pair.client(&gateway).await;
        let cursor = page(&client, None).await.1.unwrap();
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        for at in 0..cursor.len() {
            let mut bytes = cursor.clone().into_bytes();
            let place = alphabet.iter().position(|byte| *byte == bytes[at]);
            bytes[at] = alphabet[(place.unwrap() + 1) % alphabet.len()];
            refuses(&client, "tools/list", std::str::from_utf8(&bytes).unwrap()).await;
        }
        for other in [&cursor[1..], &cursor[..cursor.len() - 1], "", "x", "0", &format!("{cursor}A"), &format!("{cursor}="), &cursor.repeat(40)] {
            refuses(&client, "tools/list", other).await;
        }
        let number = client.ask("tools/list", r#"{"cursor":7}"#).await;
        assert_eq!(number.refusal().0, -32602);
        assert_eq!(page(&client, Some(&cursor)).await.0.len(), 10);
    }
}

pairings! {
    async fn a_cursor_is_good_for_its_own_list_and_endpoint_only(pair: Pairing) {
        let notes = pair
            .upstream()
            .tools(named(0..30))
            .resources((0..30).map(|n| resource(&format!("note://{n}"))));
        let gateway = pages_of(10)
            .upstream("notes", &notes)
            .toolset("one", "upstreams: [notes]")
            .toolset("two", "upstreams: [notes]")
            .start()
            .await;
        let client = pair.client(&gateway).await;
        let cursor = page(&client, None).await.1.unwrap();
        for method in ["resources/list", "prompts/list", "resources/templates/list"] {
            refuses(&client, method, &cursor).await;
        }
        let one = gateway.client_at("/mcp/one", pair.client).await;
        let own = page(&one, None).await.1.unwrap();
        refuses(&client, "tools/list", &own).await;
        for path in ["/mcp/one", "/mcp/two", "/mcp/u/notes"] {
            let other = gateway.client_at(path, pair.client).await;
            refuses(&other, "tools/list", &cursor).await;
            if path != "/mcp/one" {
                refuses(&other, "tools/list", &own).await;
            }
        }
        assert_eq!(page(&one, Some(&own)).await.0[0], "notes_t010");
        // A cursor belongs to a place and a principal, not to a connection, a session or a revision.
        let another = pair.client(&gateway).await;
        assert_eq!(page(&another, Some(&cursor)).await.0[0], "notes_t010");
    }
}

pairings! {
    async fn a_cursor_survives_a_restart_with_the_same_key_and_no_other(pair: Pairing) {
        let notes = pair.upstream().tools(named(0..30));
        let keyed = |key: &str| {
            let builder = pages_of(10).upstream("notes", &notes);
            if key.is_empty() { builder } else { builder.key(key) }
        };
        let first = keyed(KEY).start().await;
        let cursor = page(&pair.client(&first).await, None).await.1.unwrap();
        drop(first);
        let second = keyed(KEY).start().await;
        let client = pair.client(&second).await;
        let (names, next) = page(&client, Some(&cursor)).await;
        assert_eq!((names[0].as_str(), names.len()), ("notes_t010", 10));
        assert!(next.is_some());
        for key in ["another key, also of more than thirty-two bytes", ""] {
            let other = keyed(key).start().await;
            refuses(&pair.client(&other).await, "tools/list", &cursor).await;
        }
    }
}

pairings! {
    async fn an_upstreams_own_cursors_never_come_out(pair: Pairing) {
        let notes = pair.upstream().tools(named(0..30)).paged(7);
        let gateway = pages_of(10).upstream("notes", &notes).start().await;
        let client = pair.client(&gateway).await;
        let cursor = page(&client, None).await.1.unwrap();
        // Four characters each: shorter ones turn up in sealed text by chance.
        for own in ["t006", "t013", "t020", "t027"] {
            assert!(!cursor.contains(own), "{cursor}");
        }
        refuses(&client, "tools/list", "t006").await;
    }
}

pairings! {
    /// Feature: Lists
    async fn resources_prompts_and_templates_are_paged_alike(pair: Pairing) {
        let many = |what: &str| (0..25).map(|n| format!("{what}{n:02}")).collect::<Vec<_>>();
        let prompts = many("p");
        let notes = pair
            .upstream()
            .prompts(&prompts.iter().map(String::as_str).collect::<Vec<_>>())
            .resources(many("note://r").iter().map(|uri| resource(uri)))
            .templates(many("note://t").iter().map(|uri| crate::harness::template(&format!("{uri}/{{x}}"))))
            .paged(4);
        let gateway = pages_of(10).upstream("notes", &notes).start().await;
        let client = pair.client(&gateway).await;
        for (method, key, first, last) in [
            ("prompts/list", "name", "notes_p00", "notes_p24"),
            ("resources/list", "uri", "notes+note://r00", "notes+note://r24"),
            ("resources/templates/list", "uriTemplate", "notes+note://t00/{x}", "notes+note://t24/{x}"),
        ] {
            let all = client.all(method, key).await;
            assert_eq!((all.len(), all[0].as_str(), all[24].as_str()), (25, first, last));
        }
    }
}
