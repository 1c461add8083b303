//! Policies that change while clients listen and call (SECURITY AUTHZ-3, AUTHZ-10).

use std::time::Duration;

use tokio::time::Instant;

use super::{ANA_AND_BOB, MODERN, governed, notes};
use crate::harness::{Gateway, Pairing, Revision, Upstream, eventually, parse, tool, within};

const ALL: &str = "permit(principal, action, resource);";
const ONLY_B: &str = r#"permit(principal, action, resource == Tool::"notes_b");"#;

/// How soon a change must be in force.
const SOON: Duration = Duration::from_secs(1);
/// How soon it must be for what is listened to.
const LIMIT: Duration = Duration::from_secs(5);

// SECURITY AUTHZ-10
#[tokio::test]
async fn a_change_of_the_directory_is_in_force_within_a_second() {
    let notes = notes(MODERN);
    let gateway = governed(&notes, ALL).await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    assert_eq!(client.call("notes_a", "{}").await.text(), "called a");
    let mut late = Vec::new();
    // Once out of three times: the machine may be busy with something else.
    for _ in 0..3 {
        gateway.rewrite(ONLY_B);
        let changed = Instant::now();
        eventually("the tool is not seen any more", || async {
            let answer = client.call("notes_a", "{}").await;
            parse(answer.message())["error"].is_object().then_some(())
        })
        .await;
        let took = changed.elapsed();
        assert_eq!(client.tools().await, ["notes_b"]);
        if took < SOON {
            return;
        }
        late.push(took);
        gateway.rewrite(ALL);
        gateway.app.reload_policies().await.unwrap();
    }
    panic!("{late:?}");
}

#[tokio::test]
async fn a_reload_that_was_asked_for_is_in_force_when_it_is_answered() {
    let notes = notes(MODERN);
    let gateway = governed(&notes, ALL).await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    let before = gateway.app.policy_digest();
    gateway.rewrite(ONLY_B);
    gateway.app.reload_policies().await.unwrap();
    assert_ne!(gateway.app.policy_digest(), before);
    assert_eq!(client.tools().await, ["notes_b"]);
}

// SECURITY AUTHZ-3
#[tokio::test]
async fn a_set_with_anything_wrong_changes_nothing_and_says_where() {
    let notes = notes(MODERN);
    let gateway = governed(&notes, ONLY_B).await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    let before = gateway.app.policy_digest();
    for spoilt in [
        "permit(principal, action, resource);\npermit(principal",
        "permit(principal, action, resource);\npermit(principal, action, resource) when { resource.colour == 1 };",
        "",
    ] {
        gateway.rewrite(spoilt);
        let problems = gateway.app.reload_policies().await.unwrap_err();
        assert_eq!(gateway.app.policy_digest(), before, "{spoilt}");
        assert_eq!(client.tools().await, ["notes_b"], "{spoilt}");
        let told = problems[0].to_string();
        assert!(
            spoilt.is_empty() || told.contains("main.cedar:2:"),
            "{told}"
        );
    }
    // What is not there any more does not permit everything either.
    std::fs::remove_dir_all(gateway.policy_dir()).unwrap();
    gateway.app.reload_policies().await.unwrap_err();
    assert_eq!(client.tools().await, ["notes_b"]);
    std::fs::create_dir(gateway.policy_dir()).unwrap();
    gateway.rewrite(ALL);
    gateway.app.reload_policies().await.unwrap();
    assert_eq!(client.tools().await, ["notes_a", "notes_b"]);
    assert_eq!(gateway.app.policy_problems(), []);
}

#[tokio::test]
async fn a_change_that_breaks_a_case_is_refused_where_cases_are_enforced() {
    let notes = notes(MODERN);
    let cases = "cases:\n  - { name: ana keeps b, user: ana, call: notes_b, expect: allow }\n";
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .policies(ONLY_B)
        .enforced_cases(cases)
        .start()
        .await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    gateway.app.reload_policies().await.unwrap();
    assert_eq!(client.tools().await, ["notes_b"]);
    gateway.rewrite(r#"permit(principal, action, resource == Tool::"notes_a");"#);
    let problems = gateway.app.reload_policies().await.unwrap_err();
    let told = problems[0].to_string();
    assert!(
        told.contains("cases.yaml:2:") && told.contains("ana keeps b"),
        "{told}"
    );
    assert_eq!(client.tools().await, ["notes_b"]);
    gateway.rewrite(ALL);
    gateway.app.reload_policies().await.unwrap();
    assert_eq!(client.tools().await.len(), 2);
}

// PRODUCT 9
#[tokio::test]
async fn a_set_that_breaks_a_case_is_told_of_where_a_start_puts_it_in_force() {
    let notes = notes(MODERN);
    let cases = "cases:\n  - { name: b is hidden, user: ana, call: notes_b, expect: hidden }\n  - { name: c too, user: ana, call: notes_c, expect: hidden }\n";
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .policies(ALL)
        .enforced_cases(cases)
        .start()
        .await;
    let told = eventually("it is told", async || {
        let problems = gateway.app.policy_problems();
        (!problems.is_empty()).then_some(problems)
    })
    .await;
    // Nobody offers what the second is about: of that nothing can be said.
    let [told] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(told.line, 2, "{told}");
    assert!(told.message.contains("b is hidden"), "{told}");
    // Where nobody offers it, nothing is mended, whoever looks.
    notes.offer(0, [tool("a")]);
    notes.announce("tools").await;
    let client = gateway.client_as("ana", MODERN, "{}").await;
    eventually("it is gone", async || {
        (client.tools().await == ["notes_a"]).then_some(())
    })
    .await;
    for _ in 0..2 {
        let again = gateway.app.reload_policies().await.unwrap();
        assert_eq!(again, std::slice::from_ref(told));
    }
    notes.offer(0, [tool("a"), tool("b")]);
    notes.announce("tools").await;
    eventually("it is back", async || {
        (client.tools().await.len() == 2).then_some(())
    })
    .await;
    // Nothing was changed: a reload is not refused, and says so too.
    let again = gateway.app.reload_policies().await.unwrap();
    assert_eq!(again, std::slice::from_ref(told));
    assert_eq!(client.tools().await, ["notes_a", "notes_b"]);
    // The case is mended.
    let file = gateway.policy_dir().join("cases.yaml");
    std::fs::write(&file, cases.replace("expect: hidden", "expect: allow")).unwrap();
    assert_eq!(gateway.app.reload_policies().await.unwrap(), []);
    std::fs::write(&file, cases).unwrap();
    assert_eq!(gateway.app.reload_policies().await.unwrap().len(), 1);
    // A set that keeps it mends that too; of one that is new all cases are asked for, so nothing is said of what nobody offers.
    let (first, _) = cases.rsplit_once("  - ").unwrap();
    std::fs::write(&file, first).unwrap();
    let keeps = r#"forbid(principal, action, resource == Tool::"notes_b"); "#;
    gateway.rewrite(&format!("{keeps}{ALL}"));
    eventually("it is mended", async || {
        gateway.app.policy_problems().is_empty().then_some(())
    })
    .await;
    assert_eq!(client.tools().await, ["notes_a"]);
}

pairings! {
    /// SECURITY AUTHZ-10
    async fn whoever_listens_hears_that_its_own_list_changed_and_of_no_other(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = governed(&notes, ANA_AND_BOB).await;
        let ana = gateway.client_as("ana", pair.client, "{}").await;
        let bob = gateway.client_as("bob", pair.client, "{}").await;
        let (mut anas, mut bobs) = (ana.watch(&["tools"], &[]).await, bob.watch(&["tools"], &[]).await);
        // Only ana sees what comes.
        notes.offer(0, [tool("a"), tool("b"), tool("c")]);
        notes.announce("tools").await;
        assert_eq!(anas.change().await.0, "tools/list_changed");
        assert_eq!(ana.tools().await.len(), 3);
        // Only bob sees other tools by other policies; what he hears first is that.
        gateway.rewrite(&format!(r#"{ANA_AND_BOB} permit(principal == User::"bob", action, resource == Tool::"notes_c");"#));
        assert_eq!(bobs.change().await.0, "tools/list_changed");
        assert_eq!(bob.tools().await, ["notes_b", "notes_c"]);
        // The next that ana hears is the next that she sees.
        notes.offer(0, [tool("b")]);
        notes.announce("tools").await;
        assert_eq!(anas.change().await.0, "tools/list_changed");
        assert_eq!(ana.tools().await, ["notes_b"]);
        assert_eq!(bobs.change().await.0, "tools/list_changed");
    }
}

const READERS: &str = r#"permit(principal == User::"ana", action, resource in Upstream::"notes");
                         permit(principal == User::"bob", action, resource) when { resource is Resource && resource.uri like "note://a*" };"#;

// SECURITY AUTHZ-10
#[tokio::test]
async fn a_listen_for_what_may_not_be_heard_any_more_ends_with_a_result() {
    let notes = notes(MODERN);
    let gateway = governed(&notes, READERS).await;
    let bob = gateway.client_as("bob", MODERN, "{}").await;
    let ana = gateway.client_as("ana", MODERN, "{}").await;
    let mut bobs = bob.watch(&[], &["notes+note://a"]).await;
    let mut anas = ana.watch(&[], &["notes+note://a"]).await;
    notes.updated("note://a", "note://a").await;
    assert_eq!(bobs.resource().await, "notes+note://a");
    assert_eq!(anas.resource().await, "notes+note://a");
    gateway.rewrite(
        r#"permit(principal == User::"ana", action, resource in Upstream::"notes");
           permit(principal == User::"bob", action, resource == Tool::"notes_b");"#,
    );
    let end = within(LIMIT, "the listen ends", bobs.end()).await.unwrap();
    assert!(end["result"].is_object(), "{end}");
    // Others go on, and the next listen says what is in force.
    notes.updated("note://a", "note://a").await;
    assert_eq!(anas.resource().await, "notes+note://a");
    let next = bob.partial_watch(&["tools"], &["notes+note://a"]).await;
    assert!(next.acknowledged["resourceSubscriptions"].is_null());
}

pairings! {
    /// SECURITY AUTHZ-10, whichever eras meet.
    async fn what_may_not_be_heard_of_any_more_is_watched_no_more(pair: Pairing) {
        let notes = notes(pair.upstream);
        let gateway = governed(&notes, READERS).await;
        let bob = gateway.client_as("bob", pair.client, "{}").await;
        let mut watch = bob.watch(&[], &["notes+note://a"]).await;
        notes.updated("note://a", "note://a").await;
        assert_eq!(watch.resource().await, "notes+note://a");
        assert!(notes.is_watched("note://a"));
        gateway.rewrite(r#"permit(principal == User::"bob", action, resource == Tool::"notes_b");"#);
        // Nobody watches it any more, so the upstream hears that, and nobody is told.
        let given_up = eventually("the upstream is told", || async {
            (!notes.is_watched("note://a")).then_some(())
        });
        within(2 * LIMIT, "it is given up", given_up).await;
        if pair.client_is_modern() {
            let end = within(LIMIT, "the listen ends", watch.end()).await.unwrap();
            assert!(end["result"].is_object(), "{end}");
            let next = bob.partial_watch(&["tools"], &["notes+note://a"]).await;
            assert!(next.acknowledged["resourceSubscriptions"].is_null());
        } else {
            let refused = async |uri: &str| {
                let params = format!(r#"{{"uri":"{uri}"}}"#);
                bob.ask("resources/subscribe", &params).await.refusal()
            };
            let unknown = refused("notes+note://z").await;
            assert_eq!(unknown, (-32602, "not_subscribable".into()));
            assert_eq!(refused("notes+note://a").await, unknown);
        }
    }
}

// SECURITY AUTHZ-10
#[tokio::test]
async fn a_session_hears_by_the_rights_that_its_user_proved_last() {
    let notes = notes(MODERN);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource == Tool::"notes_b");
           permit(principal in Group::"readers", action, resource in Upstream::"notes");"#,
    )
    .await;
    let legacy = Revision::V2025_11_25;
    let mut bob = gateway.client_as("bob group:readers", legacy, "{}").await;
    let mut watch = bob.watch(&["tools"], &["notes+note://a"]).await;
    notes.updated("note://a", "note://a").await;
    assert_eq!(watch.resource().await, "notes+note://a");
    // Another token of the same rights changes nothing.
    let same = gateway.client_as("bob group:readers", MODERN, "{}").await;
    bob.own.clone_from(&same.own);
    assert_eq!(bob.tools().await, ["notes_a", "notes_b"]);
    notes.updated("note://a", "note://a").await;
    assert_eq!(watch.resource().await, "notes+note://a");
    // One of less rights: nobody watches for it any more, and the list that it sees is told to be another.
    let less = gateway.client_as("bob", MODERN, "{}").await;
    bob.own.clone_from(&less.own);
    assert_eq!(bob.tools().await, ["notes_b"]);
    let given_up = eventually("the upstream is told", || async {
        (!notes.is_watched("note://a")).then_some(())
    });
    within(LIMIT, "it is given up", given_up).await;
    assert_eq!(watch.change().await.0, "tools/list_changed");
}

#[tokio::test]
async fn what_lies_below_a_watched_resource_is_told_only_to_who_may_hear_of_it() {
    let notes = notes(MODERN);
    let gateway = governed(
        &notes,
        r#"permit(principal, action, resource is Resource) when { resource.uri like "note://a*" };
           forbid(principal == User::"bob", action, resource is Resource) when { resource.uri like "note://a/hush*" };"#,
    )
    .await;
    let bob = gateway.client_as("bob", MODERN, "{}").await;
    let mut watch = bob.watch(&[], &["notes+note://a"]).await;
    notes.updated("note://a", "note://a/hush/1").await;
    notes.updated("note://a", "note://a/open").await;
    assert_eq!(watch.resource().await, "notes+note://a/open");
}

#[tokio::test]
async fn a_task_is_its_owners_for_as_long_as_its_tool_is_seen() {
    const EXTENSION: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let notes = notes(MODERN)
        .capabilities(r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        .on("tools/call", |_| {
            crate::harness::Play::Raw(
                r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"l","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":null,"pollIntervalMs":5}}"#.into(),
            )
        })
        .on("tasks/get", |_| {
            crate::harness::Play::Result(
                r#"{"taskId":"l","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":null}"#.into(),
            )
        });
    let gateway = governed(&notes, ANA_AND_BOB).await;
    let ana = gateway.client_as("ana", MODERN, EXTENSION).await;
    let bob = gateway.client_as("bob", MODERN, EXTENSION).await;
    let task = ana.call("notes_a", "{}").await.value()["taskId"].to_string();
    let params = format!(r#"{{"taskId":{task}}}"#);
    assert_eq!(
        ana.ask("tasks/get", &params).await.value()["status"],
        "working"
    );
    let stolen = bob.ask("tasks/get", &params).await;
    assert_eq!(stolen.refusal(), (-32602, "unknown_name".into()));
    gateway.rewrite(ONLY_B);
    gateway.app.reload_policies().await.unwrap();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let params = match method {
            "tasks/update" => format!(r#"{{"taskId":{task},"inputResponses":{{}}}}"#),
            _ => params.clone(),
        };
        let answer = ana.ask(method, &params).await;
        assert_eq!(
            answer.refusal(),
            (-32602, "unknown_name".into()),
            "{method}"
        );
        assert!(answer.body.contains("no such task"), "{}", answer.body);
    }
}

/// SECURITY AUTHZ-6
#[tokio::test]
async fn a_task_is_not_seen_by_a_tool_of_the_same_name_that_another_server_has() {
    const EXTENSION: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let notes = Upstream::http(MODERN)
        .tools([tool("other_t"), tool("stays")])
        .telling()
        .capabilities(r#"{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        .on("tools/call", |_| {
            crate::harness::Play::Raw(
                r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"task","taskId":"l","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":null,"pollIntervalMs":5}}"#.into(),
            )
        })
        .on("tasks/get", |_| {
            crate::harness::Play::Result(
                r#"{"taskId":"l","status":"working","createdAt":"c","lastUpdatedAt":"l","ttlMs":null}"#.into(),
            )
        });
    let other = Upstream::http(MODERN).tools([tool("t"), tool("u")]);
    let gateway = Gateway::of()
        .upstream_with("notes", &notes, "prefix: \"\"")
        .upstream("other", &other)
        .policies("permit(principal, action, resource);")
        .start()
        .await;
    let ana = gateway.client_as("ana", MODERN, EXTENSION).await;
    assert_eq!(ana.tools().await, ["other_t", "stays", "other_u"]);
    let task = ana.call("other_t", "{}").await.value()["taskId"].to_string();
    let params = format!(r#"{{"taskId":{task}}}"#);
    let state = ana.ask("tasks/get", &params).await.value();
    assert_eq!(state["status"], "working");
    notes.offer(0, [tool("stays")]);
    notes.announce("tools").await;
    eventually("the name is the other server's", || async {
        (ana.tools().await == ["stays", "other_t", "other_u"]).then_some(())
    })
    .await;
    let asked = notes.heard("tasks/get").len();
    let answer = ana.ask("tasks/get", &params).await;
    assert_eq!(answer.refusal(), (-32602, "unknown_name".into()));
    assert_eq!(notes.heard("tasks/get").len(), asked);
}

#[tokio::test]
async fn without_a_policy_block_everything_is_as_it_was() {
    let notes = notes(MODERN).cached(60_000, "public");
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(MODERN).await;
    assert_eq!(client.tools().await, ["notes_a", "notes_b"]);
    assert_eq!(gateway.app.policy_digest(), "");
    gateway.app.reload_policies().await.unwrap();
    assert_eq!(client.call("notes_a", "{}").await.text(), "called a");
}
