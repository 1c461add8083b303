//! Lists that differ from user to user: read with each user's token, shown to them and to nobody else.
//! See SECURITY STATE-1, STATE-5, AUTHZ-7, PROTOCOL D4, D5.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use http::Method;

use super::*;
use crate::{
    admin,
    harness::{Answer, Authority, Gate, Heard, eventually, exchange, resource, text_result},
};

/// What the server offers to whom; to whom it is not said, nothing.
type Offered = Arc<Mutex<BTreeMap<String, Vec<&'static str>>>>;

/// A server where people see what is theirs, a gateway that exchanges their tokens, and whose tokens those are.
struct Scene {
    notes: Upstream,
    authority: Authority,
    offered: Offered,
    gateway: Secretive,
    _issuer: Issuer,
}

/// Who a request is on behalf of: the issuer of the tests puts what it was shown into what it gives.
fn subject(heard: &Heard) -> Option<String> {
    let token = heard.header("authorization")?;
    let claims = token.strip_prefix("Bearer t0k-")?.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    Some(claims["sub"].as_str()?.to_owned())
}

/// `settings` are lines at the top, `more` is of the upstream's block.
async fn scene(notes: Upstream, settings: &str, lists: &str) -> Scene {
    let offered: Offered = Arc::default();
    let mine = Arc::clone(&offered);
    let notes = notes
        .on("tools/list", move |heard| {
            let offered = mine.lock().unwrap();
            let own = subject(heard).and_then(|who| offered.get(&who).cloned());
            let tools: Vec<_> = own.unwrap_or_default().into_iter().map(tool).collect();
            Play::Result(format!(r#"{{"tools":[{}]}}"#, tools.join(",")))
        })
        .on("tools/call", |heard| {
            Play::Result(text_result(&subject(heard).unwrap_or_default()))
        });
    for (who, tools) in [("ana", vec!["a", "b", "c"]), ("ben", vec!["b"])] {
        offered.lock().unwrap().insert(who.to_owned(), tools);
    }
    let (issuer, authority) = (Issuer::start(), Authority::start().await);
    let auth = grant("token_exchange", &issuer).replace("scopes:", &format!("{lists} scopes:"));
    let (mut plan, directory) = plan_with(&notes, &auth, &[], settings);
    plan.auth = Some(authority.spec());
    plan.admin = Some(admin::spec());
    let gateway = Secretive::of(plan, directory).await;
    Scene {
        notes,
        authority,
        offered,
        gateway,
        _issuer: issuer,
    }
}

impl Scene {
    async fn person(&self, name: &str, revision: Revision) -> Client {
        let token = self.authority.token(name, "");
        let headers = [("authorization", format!("Bearer {token}"))];
        Client::connect_with(self.gateway.address, "/mcp", revision, "{}", &headers)
            .await
            .unwrap()
    }

    /// What an operator does to the server.
    async fn operate(&self, what: &str) {
        let at = self.gateway.app.admin().unwrap().address;
        let bearer = format!("Bearer {}", admin::OPERATOR);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let path = format!("/api/upstreams/notes/{what}");
        let answer = exchange(at, Method::POST, &path, &headers, b"{}").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// How often the server was asked this on somebody's behalf.
    fn asked(&self, method: &str, who: &str) -> usize {
        let heard = self.notes.heard(method);
        let theirs = |heard: &&Heard| subject(heard).as_deref() == Some(who);
        heard.iter().filter(theirs).count()
    }

    fn offer(&self, who: &str, tools: &[&'static str]) {
        self.offered
            .lock()
            .unwrap()
            .insert(who.to_owned(), tools.to_vec());
    }
}

/// An error without what is new each time.
fn said(answer: &Answer, name: &str) -> String {
    let mut error = answer.error();
    if let Some(data) = error["data"].as_object_mut() {
        data.remove("ref");
    }
    format!(
        "{} {}",
        answer.status,
        error.to_string().replace(name, "$name")
    )
}

pairings! {
    /// STATE-5, whether the server answers to nobody without a token or has nothing for them.
    async fn state_5_each_sees_what_was_read_with_their_own_token_and_calls_what_they_see(pair: Pairing) {
        for closed in [false, true] {
            let notes = if closed { pair.upstream().closed() } else { pair.upstream() };
            let scene = scene(notes, "", "").await;
            let (ana, ben) = (scene.person("ana", pair.client).await, scene.person("ben", pair.client).await);
            let eve = scene.person("eve", pair.client).await;
            assert_eq!(ana.tools().await, ["notes_a", "notes_b", "notes_c"]);
            assert_eq!(ben.tools().await, ["notes_b"]);
            assert!(eve.tools().await.is_empty());
            // From memory, and still each their own.
            let asked = scene.notes.heard("tools/list").len();
            for _ in 0..3 {
                assert_eq!(ben.tools().await, ["notes_b"]);
                assert_eq!(ana.tools().await.len(), 3);
            }
            assert_eq!(scene.notes.heard("tools/list").len(), asked, "a list is answered from memory");
            assert_eq!(ana.call("notes_a", "{}").await.text(), "ana");
            assert_eq!(ben.call("notes_b", "{}").await.text(), "ben");
            // What is only another's does not exist.
            let hidden = said(&ben.call("notes_a", "{}").await, "notes_a");
            assert_eq!(hidden, said(&ben.call("notes_q", "{}").await, "notes_q"));
            assert_eq!(scene.notes.heard("tools/call").len(), 2);
            for heard in scene.notes.heard("tools/list") {
                assert!(subject(&heard).is_some() || !closed, "{heard:?}");
            }
        }
    }
}

pairings! {
    /// A call needs no list before it.
    async fn who_calls_first_is_read_for_first(pair: Pairing) {
        let scene = scene(pair.upstream().closed(), "", "").await;
        let ana = scene.person("ana", pair.client).await;
        assert_eq!(ana.call("notes_c", "{}").await.text(), "ana");
    }
}

pairings! {
    /// SECURITY 6, REL-3: what is held of a server, for however many it is read.
    async fn what_a_server_offers_to_each_is_bounded_together_and_the_same_counts_once(pair: Pairing) {
        let settings = "bounds: { catalog: { total: 1MiB } }\n";
        let scene = scene(pair.upstream(), settings, "").await;
        scene.notes.now_on("tools/list", |heard| {
            let of = match subject(heard).as_deref() {
                None => return Play::Result(r#"{"tools":[]}"#.into()),
                Some("ben") => "ben",
                Some("kim") => "kim",
                Some(_) => "most",
            };
            let long = "x".repeat(200 << 10);
            let tool = |n: u32| format!(r#"{{"name":"{of}{n}","inputSchema":{{"type":"object"}},"x":"{long}"}}"#);
            let tools: Vec<_> = (0..3).map(tool).collect();
            Play::Result(format!(r#"{{"tools":[{}]}}"#, tools.join(",")))
        });
        for (who, count) in [("ana", 3), ("ben", 2), ("eve", 3), ("kim", 0), ("zoe", 3)] {
            let client = scene.person(who, pair.client).await;
            assert_eq!(client.tools().await.len(), count, "{who}");
        }
    }
}

/// STATE-1, where the pages are of one's own.
#[tokio::test]
async fn pages_of_ones_own_go_on_for_oneself_alone() {
    let revision = Revision::V2026_07_28;
    let scene = scene(Upstream::http(revision), "page_size: { items: 1 }\n", "").await;
    let (ana, ben) = (
        scene.person("ana", revision).await,
        scene.person("ben", revision).await,
    );
    let first = ana.ask("tools/list", "{}").await.value();
    assert_eq!(first["tools"][0]["name"], "notes_a");
    assert_eq!(first["cacheScope"], "private");
    let cursor = format!(r#"{{"cursor":{}}}"#, first["nextCursor"]);
    let second = ana.ask("tools/list", &cursor).await.value();
    assert_eq!(second["tools"][0]["name"], "notes_b");
    assert_eq!(ben.ask("tools/list", &cursor).await.refusal().0, -32602);
    let only = ben.ask("tools/list", "{}").await.value();
    assert_eq!(
        (&only["tools"][0]["name"], &only["nextCursor"]),
        (&"notes_b".into(), &serde_json::Value::Null)
    );
    // What goes before the mark changes nothing of what follows.
    assert_eq!(ana.tools().await.len(), 3);
}

pairings! {
    /// Who is told, and who is not, when a server says that lists have changed.
    async fn a_change_is_read_for_whom_it_is_told_and_told_to_who_sees_it(pair: Pairing) {
        let scene = scene(pair.upstream().telling(), "", "").await;
        let (ana, ben) = (scene.person("ana", pair.client).await, scene.person("ben", pair.client).await);
        let (mut to_ana, mut to_ben) =
            (ana.watch(&["tools"], &[]).await, ben.watch(&["tools"], &[]).await);
        assert_eq!((ana.tools().await.len(), ben.tools().await.len()), (3, 1));
        scene.offer("ana", &["a", "d"]);
        eventually("ana is told", async || {
            scene.notes.announce("tools").await;
            let new = ana.tools().await == ["notes_a", "notes_d"];
            new.then_some(())
        })
        .await;
        assert_eq!(to_ana.change().await.0, "tools/list_changed");
        assert_eq!(ben.tools().await, ["notes_b"]);
        scene.offer("ben", &["e"]);
        eventually("ben is told", async || {
            scene.notes.announce("tools").await;
            (ben.tools().await == ["notes_e"]).then_some(())
        })
        .await;
        assert_eq!(to_ben.change().await.0, "tools/list_changed");
        assert_eq!(ana.call("notes_d", "{}").await.text(), "ana");
    }
}

/// What each may read: their own note, and one that all have.
fn own_notes(heard: &Heard) -> Play {
    let own = subject(heard).map(|who| format!("note://{who}"));
    let all = own.into_iter().chain(["note://all".to_owned()]);
    let all: Vec<_> = all.map(|uri| resource(&uri)).collect();
    Play::Result(format!(r#"{{"resources":[{}]}}"#, all.join(",")))
}

pairings! {
    /// A resource is watched with the token of whoever watches it, from their first word on, and told to nobody else.
    async fn a_resource_of_ones_own_is_watched_for_oneself_alone(pair: Pairing) {
        let notes = pair.upstream().telling().on("resources/list", own_notes);
        let scene = scene(notes, "", "").await;
        let (ana, ben) = (scene.person("ana", pair.client).await, scene.person("ben", pair.client).await);
        let mut anas = ana.watch(&[], &["notes+note://ana", "notes+note://all"]).await;
        let mut bens = ben.watch(&[], &["notes+note://ben", "notes+note://all"]).await;
        scene.notes.updated("note://ana", "note://ana").await;
        assert_eq!(anas.resource().await, "notes+note://ana");
        scene.notes.updated("note://all", "note://all").await;
        assert_eq!(anas.resource().await, "notes+note://all");
        assert_eq!(bens.resource().await, "notes+note://all");
        // What the server says to one is not said to another, though both watch it.
        scene.notes.updated("note://ana", "note://all").await;
        assert_eq!(anas.resource().await, "notes+note://all");
        scene.notes.updated("note://ben", "note://ben").await;
        assert_eq!(bens.resource().await, "notes+note://ben");
        // Whether somebody may hear of it is for the server to say, who sees whose token it is.
        for method in ["resources/subscribe", "subscriptions/listen"] {
            for heard in scene.notes.heard(method) {
                let who = subject(&heard);
                assert!(!heard.params.contains("note://") || who.is_some(), "{heard:?}");
                for name in ["ana", "ben"] {
                    let theirs = heard.params.contains(&format!("\"note://{name}\""));
                    assert!(!theirs || who.as_deref() == Some(name), "{heard:?}");
                }
            }
        }
    }
}

/// Reading again is no reason to stop listening.
#[tokio::test]
async fn what_is_watched_is_heard_of_while_lists_are_read_again_and_after_that() {
    let revision = Revision::V2026_07_28;
    let notes = Upstream::http(revision).telling().cached(5_000, "private");
    let scene = scene(notes.on("resources/list", own_notes), "", "").await;
    let ana = scene.person("ana", revision).await;
    let mut watch = ana.watch(&[], &["notes+note://ana"]).await;
    assert_eq!(ana.tools().await.len(), 3);
    let listens = scene.asked("subscriptions/listen", "ana");
    let gate = Gate::new();
    let held = gate.clone();
    scene.notes.now_on("tools/list", move |_| {
        let tools = format!(r#"{{"tools":[{}]}}"#, tool("a"));
        Play::Gated(Vec::new(), held.clone(), Box::new(Play::Result(tools)))
    });
    let reading = async |count| {
        let now = async || (scene.asked("tools/list", "ana") >= count).then_some(());
        eventually("lists are read again", now).await;
    };
    let before = scene.asked("tools/list", "ana");
    reading(before + 1).await;
    scene.notes.updated("note://ana", "note://ana").await;
    assert_eq!(watch.resource().await, "notes+note://ana");
    for _ in 0..100 {
        gate.open();
    }
    reading(before + 3).await;
    assert_eq!(scene.asked("subscriptions/listen", "ana"), listens);
}

pairings! {
    /// Nothing goes on for anybody at a server that operators do not want used.
    async fn a_server_that_is_disabled_is_asked_on_behalf_of_nobody_until_it_is_enabled(pair: Pairing) {
        let notes = pair.upstream().telling().on("resources/list", own_notes);
        let scene = scene(notes, "", "").await;
        let (ana, ben) = (scene.person("ana", pair.client).await, scene.person("ben", pair.client).await);
        let _watch = ana.watch(&[], &["notes+note://ana"]).await;
        assert_eq!(ana.tools().await.len(), 3);
        scene.operate("disable").await;
        eventually("nothing is offered", async || ana.tools().await.is_empty().then_some(())).await;
        eventually("nothing is watched", async || (!scene.notes.is_watched("note://ana")).then_some(())).await;
        let asked = || SAID.map(|method| scene.asked(method, "ana") + scene.asked(method, "ben"));
        let before = asked();
        for _ in 0..10 {
            assert!(ana.tools().await.is_empty() && ben.tools().await.is_empty());
        }
        assert_eq!(asked(), before);
        scene.operate("enable").await;
        eventually("it is read again", async || (ana.tools().await.len() == 3).then_some(())).await;
        eventually("it is watched again", async || scene.notes.is_watched("note://ana").then_some(())).await;
        assert_eq!(ben.tools().await, ["notes_b"]);
    }
}

/// Whoever is not known at the server any more sees nothing of what was read for them.
#[tokio::test]
async fn who_is_refused_keeps_nothing_of_what_was_read_for_them() {
    let revision = Revision::V2026_07_28;
    let scene = scene(Upstream::http(revision).telling(), "", "").await;
    let (ana, ben) = (
        scene.person("ana", revision).await,
        scene.person("ben", revision).await,
    );
    assert_eq!((ana.tools().await.len(), ben.tools().await.len()), (3, 1));
    scene
        .notes
        .now_on("tools/list", |heard| match subject(heard).as_deref() {
            Some("ana") => Play::Status(403),
            _ => Play::Result(format!(r#"{{"tools":[{}]}}"#, tool("b"))),
        });
    eventually("it is looked at", async || {
        scene.notes.announce("tools").await;
        ana.tools()
            .await
            .iter()
            .all(|name| name == "notes_b")
            .then_some(())
    })
    .await;
    assert_eq!(ben.tools().await, ["notes_b"]);
}

/// Where configuration says that lists are everybody's, they are.
#[tokio::test]
async fn lists_that_are_everybodys_are_read_once_by_the_gateway() {
    let revision = Revision::V2026_07_28;
    let scene = scene(Upstream::http(revision), "", "lists: service,").await;
    scene.notes.as_usual("tools/list");
    let heard = scene.notes.heard("tools/list").len();
    for name in ["ana", "ben", "eve"] {
        scene.person(name, revision).await.tools().await;
    }
    assert_eq!(scene.notes.heard("tools/list").len(), heard);
    let listed = scene.notes.last("tools/list");
    assert!(
        listed
            .header("authorization")
            .unwrap()
            .starts_with("Bearer t0k-service-")
    );
}

/// SECURITY 7, C3: not even to the person that it stands for.
#[tokio::test]
async fn a_token_that_was_got_for_a_person_comes_back_to_nobody() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let scene = scene(Upstream::http(revision), "", "").await;
        scene.notes.now_on("tools/call", |heard| {
            Play::Result(text_result(
                heard.header("authorization").unwrap_or_default(),
            ))
        });
        let ana = scene.person("ana", revision).await;
        for _ in 0..2 {
            let answer = ana.call("notes_a", "{}").await;
            assert!(!answer.body.contains("t0k-"), "{answer:?}");
            let marks = answer.value()["_meta"]["dev.usher/content"].to_string();
            assert!(marks.contains(r#""rule":"own_credential""#), "{marks}");
        }
    }
}
