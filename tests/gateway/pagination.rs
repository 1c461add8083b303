//! Every client reads every item exactly once, whatever the pages are (acceptance 5, SECURITY STATE-1).

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;

use crate::harness::{
    Client, Gateway, GatewayBuilder, Heard, Pairing, Play, Revision, Upstream, eventually, names,
    resource, tool,
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

/// What a server lists beside what stays, and without every fourth tool: guests at both ends and in the middle.
fn churned() -> Vec<String> {
    let stays = |n: &usize| n % 4 != 3;
    let middle = TOOLS / 2;
    named(300..305)
        .into_iter()
        .chain((0..middle).filter(stays).map(|n| tool(&format!("t{n:03}"))))
        .chain(named(400..411))
        .chain(
            (middle..TOOLS)
                .filter(stays)
                .map(|n| tool(&format!("t{n:03}"))),
        )
        .chain(named(500..506))
        .collect()
}

pairings! {
    /// Acceptance 5, at its size.
    async fn of_two_thousand_tools_those_that_stay_are_read_once_while_others_come_and_go_between_pages(pair: Pairing) {
        // Half of the servers begin with all their tools, half with guests and some tools away.
        let list = |whole: bool| if whole { named(0..TOOLS) } else { churned() };
        let mut whole: Vec<_> = (0..UPSTREAMS).map(|n| n < UPSTREAMS / 2).collect();
        let servers: Vec<_> =
            whole.iter().map(|whole| pair.upstream().telling().tools(list(*whole)).paged(7)).collect();
        let gateway = before(&servers, pages_of(50)).start().await;
        let client = pair.client(&gateway).await;
        let (mut told, mut next, mut changes) = (Vec::new(), None, [0, 0]);
        for round in 0.. {
            let (names, cursor) = page(&client, next.as_deref()).await;
            assert!(names.len() <= 50);
            told.extend(names);
            next = cursor;
            if next.is_none() {
                break;
            }
            // Between any two pages one server loses tools and another gets them back, and guests the other way round.
            for at in [round % UPSTREAMS, (round + UPSTREAMS / 2) % UPSTREAMS] {
                whole[at] = !whole[at];
                changes[usize::from(whole[at])] += 1;
                let tools = list(whole[at]);
                let count = tools.len();
                servers[at].offer(0, tools);
                servers[at].announce("tools").await;
                eventually("the change is listed", || async {
                    (gateway.app.statuses()[at].counts[0] == count).then_some(())
                })
                .await;
            }
        }
        assert!(changes.iter().all(|count| *count > 20), "{changes:?}");
        let once: BTreeSet<_> = told.iter().collect();
        assert_eq!(once.len(), told.len(), "something came twice");
        // And all of it in order, whatever came in between.
        let stays = |server: usize| (0..TOOLS).filter(|n| n % 4 != 3).map(move |n| format!("u{server}_t{n:03}"));
        let wanted: Vec<_> = (0..UPSTREAMS).flat_map(stays).collect();
        assert_eq!(wanted.len(), 1_500);
        let lasting: BTreeSet<_> = wanted.iter().collect();
        told.retain(|name| lasting.contains(name));
        assert_eq!(told, wanted);
    }
}

/// How a server goes on with its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoesOn {
    /// After the name that it told last, whatever is there by then.
    AfterName,
    /// At a number, which may be another tool's by then.
    AtNumber,
}

/// Lists two hundred tools in pages of seven, and at each page others beside them, until it is calm.
fn shifting(goes_on: GoesOn, calm: &Arc<AtomicBool>) -> impl Fn(&Heard) -> Play + use<> {
    let (calm, turn) = (Arc::clone(calm), AtomicUsize::new(0));
    move |heard| {
        let turn = turn.fetch_add(1, Ordering::SeqCst);
        let full = turn % 2 == 1 && !calm.load(Ordering::SeqCst);
        let guests = |n: usize| full && n % 5 == turn % 5;
        let mut names: Vec<_> = if full {
            vec![format!("s{turn}")]
        } else {
            Vec::new()
        };
        for n in 0..TOOLS {
            names.push(format!("t{n:03}"));
            names.extend(guests(n).then(|| format!("t{n:03}x")));
        }
        let start = heard.text("cursor").map_or(0, |cursor| match goes_on {
            GoesOn::AfterName => names.partition_point(|name| *name <= cursor),
            GoesOn::AtNumber => cursor.parse().unwrap(),
        });
        let end = names.len().min(start + 7);
        let shown = names.get(start..end).unwrap_or_default();
        let next = match (shown.last(), goes_on) {
            (Some(last), GoesOn::AfterName) if end < names.len() => {
                format!(r#","nextCursor":"{last}""#)
            }
            (Some(_), GoesOn::AtNumber) if end < names.len() => format!(r#","nextCursor":"{end}""#),
            _ => String::new(),
        };
        let tools: Vec<_> = shown.iter().map(|name| tool(name)).collect();
        Play::Result(format!(r#"{{"tools":[{}]{next}}}"#, tools.join(",")))
    }
}

pairings! {
    async fn a_server_that_changes_between_its_own_pages_is_read_as_it_says(pair: Pairing) {
        for goes_on in [GoesOn::AfterName, GoesOn::AtNumber] {
            let calm = Arc::default();
            let notes = pair.upstream().on("tools/list", shifting(goes_on, &calm));
            let gateway = pages_of(50).upstream("notes", &notes).polling(Duration::from_millis(20)).start().await;
            let client = pair.client(&gateway).await;
            let wanted: Vec<_> = (0..TOOLS).map(|n| format!("notes_t{n:03}")).collect();
            for _ in 0..5 {
                let told = client.tools().await;
                let once: BTreeSet<_> = told.iter().collect();
                assert_eq!(once.len(), told.len(), "something came twice: {goes_on:?}");
                // At a number something may slip through between two pages, of which nobody can know.
                let stays: Vec<_> = told.iter().filter(|name| wanted.contains(name)).collect();
                match goes_on {
                    GoesOn::AfterName => assert!(stays.into_iter().eq(&wanted), "{told:?}"),
                    GoesOn::AtNumber => assert!(stays.len() > TOOLS / 2, "{told:?}"),
                }
                let heard = notes.heard("tools/list").len();
                notes.until_heard("tools/list", heard + 40).await;
            }
            calm.store(true, Ordering::SeqCst);
            eventually("the list is whole", || async { (client.tools().await == wanted).then_some(()) }).await;
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
        const NEW: &str = "another key, also of more than thirty-two bytes";
        for key in [NEW, ""] {
            let other = keyed(key).start().await;
            refuses(&pair.client(&other).await, "tools/list", &cursor).await;
        }
        // SECURITY 10: and the replacement of that key, where the old one is still named.
        let third = keyed(NEW).key(KEY).start().await;
        let (names, next) = page(&pair.client(&third).await, Some(&cursor)).await;
        assert_eq!(names[0], "notes_t010");
        let fourth = keyed(NEW).start().await;
        let (names, _) = page(&pair.client(&fourth).await, next.as_deref()).await;
        assert_eq!(names[0], "notes_t020");
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
