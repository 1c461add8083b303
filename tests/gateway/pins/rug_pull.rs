//! A server that is taken over: what it says of what it offers is another thing than what was approved.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{
    server::{CHANGES, Change, GONE, KINDS, NEW, STEADY, offered},
    *,
};
use crate::{
    audit::events,
    harness::{Answer, Client, Heard, Play, call_result, counted},
};

/// How the change comes to be known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Notification,
    Poll,
    Reconnect,
    Restart,
}

/// No two servers are counted as one.
static SERVERS: AtomicUsize = AtomicUsize::new(0);

/// The whole story, once.
async fn rug_pull(pair: Pairing, mode: &'static str, by: By) {
    // One of the tools comes to promise what an answer has.
    let notes = pair.upstream().on("tools/call", |heard: &Heard| {
        let said = call_result(&heard.text("name").unwrap());
        Play::Result(said.replacen('{', r#"{"structuredContent":{},"#, 1))
    });
    offer(&notes, false);
    let notes = if by == By::Notification {
        notes.telling()
    } else {
        notes
    };
    let key = format!("taken{}", SERVERS.fetch_add(1, Ordering::Relaxed));
    let state = State::under(mode, &key);
    let audit = state.dir.path().join("audit");
    let build = || {
        let recorded = format!("audit: {{ dir: '{}' }}", audit.display());
        let builder = state.gateway(&notes).setting(&recorded);
        match by {
            By::Poll => builder.polling(Duration::from_millis(100)),
            By::Notification | By::Reconnect | By::Restart => builder,
        }
    };
    let mut gateway = build().start().await;
    let mut client = pair.client(&gateway).await;
    for list in 0..KINDS.len() {
        let listed = listed(&client, list).await;
        let count = offered(list, false).len();
        assert_eq!(listed.len(), count, "what is offered first is approved");
    }
    state.written().await;
    match by {
        By::Notification => {
            offer(&notes, true);
            for list in ["tools", "prompts", "resources"] {
                notes.announce(list).await;
            }
        }
        By::Poll => offer(&notes, true),
        By::Reconnect => {
            notes.down();
            // It takes a few calls that fail.
            eventually("it is away", || async {
                drop(client.call("notes_steady", "{}").await);
                (gateway.state(&key) == "away").then_some(())
            })
            .await;
            offer(&notes, true);
            notes.up();
        }
        By::Restart => {
            gateway.app.clone().shutdown().await;
            drop(gateway);
            offer(&notes, true);
            gateway = build().start().await;
            client = pair.client(&gateway).await;
        }
    }
    let mut wanted: Vec<_> = CHANGES
        .iter()
        .map(|it| (it.name.to_owned(), "changed".to_owned()))
        .chain([(GONE, "gone"), (NEW, "new")].map(|(name, state)| (name.into(), state.into())))
        .collect();
    wanted.sort();
    assert_eq!(state.unapproved(wanted.len()).await, wanted);
    told(&gateway, &key, mode);
    shown(&state.usher(&["diff", &key]), &key);
    if mode == "quarantine" {
        withheld(&gateway, &client, &notes, &key).await;
        // One of each kind, and then the others.
        for list in 0..KINDS.len() {
            let first = CHANGES.iter().find(|it| it.list == list).unwrap().name;
            state.usher(&["approve", &key, first]);
            eventually("what is approved is back", || async {
                (names(&client, list).await == sorted([outward(list, first), steady(list)]))
                    .then_some(())
            })
            .await;
        }
        state.usher(&["approve", &key, "--all"]);
    }
    for list in 0..KINDS.len() {
        eventually("what changed is shown as it is", || async {
            let listed = listed(&client, list).await;
            let are_all = listed.len() == offered(list, true).len();
            let mut changes = CHANGES.iter().filter(|it| it.list == list);
            let is_shown = |it: &Change| {
                let named = |item: &&Value| item[KINDS[list].2] == outward(list, it.name);
                listed
                    .iter()
                    .find(named)
                    .is_some_and(|at| it.is_shown_by(at))
            };
            (are_all && changes.all(is_shown)).then_some(())
        })
        .await;
    }
    for change in &CHANGES {
        let answer = used(&client, change.list, change.name).await;
        assert!(answer.body.contains(&reached(change)), "{}", answer.body);
    }
    if mode == "watch" {
        state.usher(&["approve", &key, "--all"]);
    }
    // One of them still reads like an attempt on the model, and is told of as such.
    let reports = gateway.reports(&key);
    assert!(
        reports.len() == 1 && reports[0].contains("is offered, although"),
        "{reports:?}"
    );
    assert!(state.unapproved(0).await.is_empty());
    gateway.app.clone().shutdown().await;
    recorded(&audit, &key, mode);
}

fn offer(notes: &Upstream, taken_over: bool) {
    for list in 0..KINDS.len() {
        notes.offer(list, offered(list, taken_over));
    }
}

/// A change as it is told: the kind, the item, and what became of it.
fn changes() -> Vec<(String, String, String)> {
    let changes = CHANGES.iter().map(|it| (it.list, it.name, "changed"));
    let all = changes.chain([(3, NEW, "renamed")]);
    let told = all.map(|(list, name, rule)| {
        let place = format!("/{}", KINDS[list].0);
        (place, name.to_owned(), rule.to_owned())
    });
    sorted(told)
}

/// Each change is among the findings, and counted: once.
fn told(gateway: &Gateway, key: &str, mode: &str) {
    let findings = gateway.app.findings().recent();
    let found = findings.iter().filter(|it| it.kind == "definition_changed");
    let found = found.map(|it| {
        let action = if mode == "watch" { "flag" } else { mode };
        assert_eq!(it.action.word(), action, "{it:?}");
        assert_eq!(it.upstream.as_ref().unwrap().as_str(), key);
        let item = it.item.as_deref().unwrap().to_owned();
        (it.place.to_string(), item, it.rule.to_string())
    });
    assert_eq!(sorted(found), changes());
    let labels = [("gateway.upstream", key), ("usher.action", mode)];
    let count = counted("usher.definitions.changed", &labels);
    assert_eq!(count, changes().len() as u64);
    let all = counted("usher.definitions.changed", &labels[..1]);
    assert_eq!(all, count, "counted as something else");
}

/// And on record: once.
fn recorded(audit: &Path, key: &str, mode: &str) {
    let events = events(audit);
    let records = events.iter().filter(|it| it["event"] == "quarantine");
    let records = records.filter(|it| it["detail"]["class"] == "definition_changed");
    let records = records.map(|it| {
        let detail = &it["detail"];
        let action = if mode == "watch" { "flag" } else { mode };
        assert_eq!(detail["action"], action, "{it}");
        assert_eq!(detail["upstream"], key, "{it}");
        let text = |member: &str| detail[member].as_str().unwrap().to_owned();
        (text("place"), text("item"), text("rule"))
    });
    assert_eq!(sorted(records), changes());
}

/// What an operator is shown of the changes, and of nothing else.
fn shown(diff: &str, key: &str) {
    let parts: Vec<_> = diff.trim_end().split("\n\n").collect();
    let part = |list: usize, name: &str, state: &str| {
        let title = format!("{key} {} {name}: {state}\n  digest ", KINDS[list].0);
        let found = parts.iter().find(|part| part.starts_with(&title));
        let found = found.unwrap_or_else(|| panic!("{title:?} in\n{diff}"));
        found.lines().skip(2).collect::<Vec<_>>()
    };
    for it in &CHANGES {
        let lines: Vec<_> = it.diff.lines().collect();
        assert_eq!(part(it.list, it.name, "changed"), lines, "{}", it.name);
    }
    assert!(part(3, GONE, "gone").is_empty());
    let new = part(3, NEW, "new").join("\n");
    let like = format!("  may be `{GONE}` renamed, which is gone");
    assert!(new.starts_with(&like) && new.contains("+ A log."), "{new}");
    assert_eq!(parts.len(), CHANGES.len() + 2, "{diff}");
}

/// Nothing that changed is offered, nor reaches the server by whoever asks for it all the same.
async fn withheld(gateway: &Gateway, client: &Client, notes: &Upstream, key: &str) {
    for list in 0..KINDS.len() {
        eventually("only what was approved is listed", || async {
            (names(client, list).await == [steady(list)]).then_some(())
        })
        .await;
    }
    let reports = gateway.reports(key);
    let count = reports.iter().filter(|it| it.contains("withheld until"));
    assert_eq!(count.count(), CHANGES.len() + 1, "{reports:?}");
    let uses = ["tools/call", "prompts/get", "resources/read"];
    let heard = uses.map(|method| notes.heard(method).len());
    let new = CHANGES.iter().map(|it| (it.list, it.name));
    for (list, name) in new.chain([(3, NEW)]) {
        let answer = used(client, list, name).await;
        if list == 0 {
            let value = answer.value();
            assert_eq!(value["isError"], true, "{value}");
            assert_eq!(answer.tool_error(), "definition_quarantined");
        } else {
            assert_eq!(answer.refusal().1, "definition_quarantined", "{name}");
        }
    }
    let since = uses.map(|method| notes.heard(method).len());
    assert_eq!(heard, since, "it reached the server");
    for (list, name) in STEADY.into_iter().enumerate() {
        assert_eq!(used(client, list, name).await.status, 200);
    }
    let since = uses.map(|method| notes.heard(method).len());
    assert_eq!(since, [heard[0] + 1, heard[1] + 1, heard[2] + 2]);
}

/// Everything of one kind that a client is shown.
async fn listed(client: &Client, list: usize) -> Vec<Value> {
    let page = client.ask(KINDS[list].1, "{}").await.value();
    page[KINDS[list].0].as_array().unwrap().clone()
}

async fn names(client: &Client, list: usize) -> Vec<String> {
    let items = listed(client, list).await.into_iter();
    sorted(items.map(|item| item[KINDS[list].2].as_str().unwrap().to_owned()))
}

/// What clients know an item by.
fn outward(list: usize, name: &str) -> String {
    let joint = if list < 2 { '_' } else { '+' };
    format!("notes{joint}{name}")
}

fn steady(list: usize) -> String {
    outward(list, STEADY[list])
}

/// Uses an item, whatever it is for.
async fn used(client: &Client, list: usize, name: &str) -> Answer {
    // With something in the place of what a template leaves open.
    let name = name.replace("{id}", "7").replace("{day}/{hour}", "1/2");
    let outward = outward(list, &name);
    match list {
        0 => client.call(&outward, "{}").await,
        1 => {
            let params = json!({"name": outward, "arguments": {"day": "1"}});
            client.ask("prompts/get", &params.to_string()).await
        }
        _ => client.read(&outward).await,
    }
}

/// What the server answers to whoever uses an item.
fn reached(change: &Change) -> String {
    let name = change.name.replace("{id}", "7");
    match change.list {
        0 => format!(r#""called {name}""#),
        _ => format!(r#""text":"{name}""#),
    }
}

fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort();
    all
}

macro_rules! rug_pulls {
    ($($name:ident: $mode:literal by $by:ident;)+) => {
        $(
            pairings! {
                /// CAT-2
                async fn $name(pair: Pairing) {
                    rug_pull(pair, $mode, By::$by).await;
                }
            }
        )+
    };
}

rug_pulls! {
    cat_2_a_change_that_is_told_of_is_shown_under_watch: "watch" by Notification;
    cat_2_a_change_that_is_told_of_is_withheld_under_quarantine: "quarantine" by Notification;
    cat_2_a_change_that_a_poll_finds_is_shown_under_watch: "watch" by Poll;
    cat_2_a_change_that_a_poll_finds_is_withheld_under_quarantine: "quarantine" by Poll;
    cat_2_a_change_while_the_server_was_away_is_shown_under_watch: "watch" by Reconnect;
    cat_2_a_change_while_the_server_was_away_is_withheld_under_quarantine: "quarantine" by Reconnect;
    cat_2_a_change_while_the_gateway_was_away_is_shown_under_watch: "watch" by Restart;
    cat_2_a_change_while_the_gateway_was_away_is_withheld_under_quarantine: "quarantine" by Restart;
}
