//! What is recorded of those who watch resources (SECURITY 8).

use std::ops::ControlFlow;

use http::Method;
use serde_json::{Value, json};
use usher::audit::query::{Filter, Order, query};

use super::{recording, records};
use crate::harness::{Revision, Upstream, eventually, resource};

const ONE: &str = "notes+note://one";
const TWO: &str = "notes+note://two";

fn notes(revision: Revision) -> Upstream {
    let resources = [resource("note://one"), resource("note://two")];
    Upstream::http(revision).resources(resources).telling()
}

#[tokio::test]
async fn a_subscription_is_recorded_with_its_resource_and_ends_well_where_it_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let notes = notes(Revision::V2025_11_25);
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(Revision::V2025_11_25).await;
    let until = async |count: usize| {
        eventually("it is recorded", async || {
            let told = records(directory.path(), "resources/subscribe");
            (told.len() == count).then_some(told)
        })
        .await
    };
    let one = format!(r#"{{"uri":"{ONE}"}}"#);
    client.ask("resources/subscribe", &one).await.result();
    client.ask("resources/unsubscribe", &one).await.result();
    until(2).await;
    // Who only goes away has given it up.
    let two = format!(r#"{{"uri":"{TWO}"}}"#);
    client.ask("resources/subscribe", &two).await.result();
    assert_eq!(client.other(Method::DELETE).await.status, 204);
    let told = until(4).await;
    let outcomes = [&told[1]["outcome"], &told[3]["outcome"]];
    assert_eq!(outcomes, ["ok", "cancelled"], "{told:#?}");
    for (at, name) in ["one", "one", "two", "two"].into_iter().enumerate() {
        let target = json!({
            "exposed": format!("notes+note://{name}"), "name": format!("note://{name}"), "upstream": "notes",
        });
        assert_eq!(told[at]["target"], target);
    }
    gateway.app.clone().shutdown().await;
    let found = |filter: Filter| {
        let mut found = 0;
        let filter = Filter {
            method: Some("resources/subscribe".to_owned()),
            ..filter
        };
        query(directory.path(), &filter, Order::Oldest, |_| {
            found += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        found
    };
    let of_notes = Filter {
        upstream: Some("notes".to_owned()),
        ..Filter::default()
    };
    let of_one = Filter {
        name: Some(ONE.to_owned()),
        ..Filter::default()
    };
    assert_eq!((found(of_notes), found(of_one)), (4, 2));
}

#[tokio::test]
async fn a_listen_for_one_resource_is_about_that_and_one_for_more_about_none() {
    let directory = tempfile::tempdir().unwrap();
    let notes = notes(Revision::V2026_07_28);
    let gateway = recording(directory.path(), &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let cases: [(&[&str], &[&str], Value); 3] = [
        (
            &[],
            &[ONE],
            json!({"exposed": ONE, "name": "note://one", "upstream": "notes"}),
        ),
        (&["tools"], &[ONE], json!({})),
        (&[], &[ONE, TWO], json!({})),
    ];
    for (before, (lists, uris, target)) in cases.into_iter().enumerate() {
        drop(client.watch(lists, uris).await);
        let told = eventually("it is recorded", async || {
            let told = records(directory.path(), "subscriptions/listen");
            (told.len() == 2 * (before + 1)).then_some(told)
        })
        .await;
        for record in &told[2 * before..] {
            assert_eq!(record["target"], target, "{record}");
        }
    }
}
