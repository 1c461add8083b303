//! Subscriptions of resources: shared upstream, told by the client's own URI, ended when the last one leaves.

use std::time::Duration;

use serde_json::json;

use crate::harness::{
    Gateway, Pairing, Play, Revision, Turn, Upstream, eventually, member, parse, resource, within,
};

const ONE: &str = "note://one";
const MINE: &str = "notes+note://one";

fn watched(pair: Pairing) -> Upstream {
    pair.upstream()
        .resources([resource(ONE), resource("note://two")])
        .telling()
}

pairings! {
    /// Feature: Resource subscribe
    async fn a_watched_resource_is_told_of_by_the_clients_own_uri(pair: Pairing) {
        let notes = watched(pair);
        let (_gateway, client) = pair.alone(&notes).await;
        let mut watch = client.watch(&[], &[MINE]).await;
        assert!(notes.is_watched(ONE), "granted before it was in force");
        notes.updated(ONE, ONE).await;
        assert_eq!(watch.resource().await, MINE);
        // Below it, too: the server says which one.
        notes.updated(ONE, "note://one/part").await;
        assert_eq!(watch.resource().await, "notes+note://one/part");
    }
}

pairings! {
    /// Feature: Resource subscribe
    async fn only_those_who_watch_a_resource_are_told(pair: Pairing) {
        let notes = watched(pair);
        let (gateway, one) = pair.alone(&notes).await;
        let two = pair.client(&gateway).await;
        let mut watch_one = one.watch(&[], &[MINE]).await;
        let mut watch_two = two.watch(&[], &["notes+note://two"]).await;
        notes.updated(ONE, ONE).await;
        assert_eq!(watch_one.resource().await, MINE);
        notes.updated("note://two", "note://two").await;
        assert_eq!(watch_two.resource().await, "notes+note://two");
    }
}

pairings! {
    /// Feature: Resource unsubscribe
    async fn the_server_is_watched_until_the_last_client_leaves(pair: Pairing) {
        let notes = watched(pair);
        let (gateway, one) = pair.alone(&notes).await;
        let two = pair.client(&gateway).await;
        let mut watch_one = one.watch(&[], &[MINE]).await;
        let watch_two = two.watch(&[], &[MINE]).await;
        if pair.client_is_modern() {
            drop(watch_two);
        } else {
            let params = format!(r#"{{"uri":"{MINE}"}}"#);
            two.ask("resources/unsubscribe", &params).await.result();
        }
        notes.updated(ONE, ONE).await;
        assert_eq!(watch_one.resource().await, MINE);
        if pair.client_is_modern() {
            drop(watch_one);
        } else {
            // Ending a session ends what it watched.
            assert_eq!(one.other(http::Method::DELETE).await.status, 204);
        }
        eventually("nobody is watched any more", || async { (!notes.is_watched(ONE)).then_some(()) }).await;
    }
}

pairings! {
    /// Feature: Resource subscribe refused
    async fn what_cannot_be_watched_is_refused_by_name(pair: Pairing) {
        let notes = pair.upstream().resources([resource(ONE)]);
        let other = watched(pair);
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream("other", &other).start().await;
        let client = pair.client(&gateway).await;
        if pair.client_is_modern() {
            let watch = client.partial_watch(&[], &[MINE, "other+note://one", "nowhere+note://x"]).await;
            let granted = json!({"resourceSubscriptions": ["other+note://one"]});
            assert_eq!(watch.acknowledged, granted);
        } else {
            for uri in [MINE, "nowhere+note://x"] {
                let params = format!(r#"{{"uri":"{uri}"}}"#);
                let refused = client.ask("resources/subscribe", &params).await.error();
                assert!(refused["code"].is_i64(), "{refused}");
            }
            client.ask("resources/subscribe", r#"{"uri":"other+note://one"}"#).await.result();
        }
        assert!(notes.heard("resources/subscribe").is_empty());
        assert!(other.is_watched(ONE));
    }
}

pairings! {
    /// Feature: Acknowledgement with what is in force
    async fn a_subscription_that_the_server_refuses_is_not_granted(pair: Pairing) {
        let notes = watched(pair)
            .on("resources/subscribe", |_| Play::Error(r#"{"code":-32602,"message":"not that one"}"#.into()))
            .on("subscriptions/listen", |heard| {
                let lists = heard.value()["notifications"].as_object().cloned().unwrap();
                let lists: serde_json::Map<_, _> = lists.into_iter().filter(|(key, _)| key != "resourceSubscriptions").collect();
                let granted = serde_json::Value::Object(lists).to_string();
                Play::live(move |turn| {
                    let granted = granted.clone();
                    async move { turn.acknowledge(&granted).await }
                })
            });
        let (_gateway, client) = pair.alone(&notes).await;
        if pair.client_is_modern() {
            let watch = client.partial_watch(&["tools"], &[MINE]).await;
            assert_eq!(watch.acknowledged, json!({"toolsListChanged": true}));
        } else {
            let answer = client.ask("resources/subscribe", &format!(r#"{{"uri":"{MINE}"}}"#)).await;
            assert!(answer.error()["code"].is_i64());
        }
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        legacy_client_modern_server = LEGACY_MODERN,
    ] because "an acknowledgement of the stateless era has a time of its own";
    async fn a_server_that_takes_its_time_is_waited_for(pair: Pairing) {
        let slow = || tokio::time::sleep(Duration::from_millis(1_500));
        let notes = watched(pair)
            .on("resources/subscribe", move |_| {
                Play::live(move |turn: Turn| async move {
                    slow().await;
                    turn.result("{}").await;
                })
            })
            .on("subscriptions/listen", move |_| {
                Play::live(move |turn: Turn| async move {
                    slow().await;
                    let asked = member(&turn.heard.params, "notifications").unwrap();
                    turn.acknowledge(&asked).await;
                })
            });
        let (_gateway, client) = pair.alone(&notes).await;
        let params = format!(r#"{{"uri":"{MINE}"}}"#);
        client.ask("resources/subscribe", &params).await.result();
    }
}

/// PROTOCOL A4: a subscription that takes its time is given up like any request, and by its own end, too.
#[tokio::test]
async fn a_subscription_that_is_not_confirmed_yet_is_given_up_at_once() {
    const PARAMS: &str = r#"{"uri":"notes+note://one"}"#;
    for (how, status, body) in [
        ("cancelled", 202, ""),
        ("unsubscribed", 200, r#""result":{}"#),
        ("ended", 404, "unknown_session"),
    ] {
        let notes = Upstream::http(Revision::V2025_11_25)
            .resources([resource(ONE)])
            .telling()
            .on("resources/subscribe", |_| Play::Hang);
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(Revision::V2025_11_25).await;
        let asking = client.ask("resources/subscribe", PARAMS).id("77");
        let giving_up = async {
            notes.until_heard("resources/subscribe", 1).await;
            match how {
                "cancelled" => {
                    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#;
                    assert_eq!(client.post(told, &[]).await.status, 202);
                }
                "unsubscribed" => {
                    let ended = client.ask("resources/unsubscribe", PARAMS).await;
                    assert_eq!(ended.result(), "{}");
                }
                _ => assert_eq!(client.other(http::Method::DELETE).await.status, 204),
            }
        };
        // The server has fifteen seconds.
        let both = async { tokio::join!(asking.into_future(), giving_up).0 };
        let answer = within(Duration::from_secs(8), how, both).await;
        assert_eq!(answer.status, status, "{how}: {answer:?}");
        assert!(answer.body.contains(body), "{how}: {answer:?}");
        assert!(!body.is_empty() || answer.body.is_empty(), "{answer:?}");
    }
}

pairings! {
    /// Feature: Acknowledgement with what is in force
    async fn a_server_that_never_answers_does_not_hold_up_the_acknowledgement(pair: Pairing) {
        let slow = watched(pair)
            .on("resources/subscribe", |_| Play::Hang)
            .on("subscriptions/listen", |_| Play::Hang);
        let notes = watched(pair);
        let gateway =
            Gateway::of().upstream("notes", &notes).upstream_with("slow", &slow, "timeout: { list: 2s }").start().await;
        let client = pair.client(&gateway).await;
        if pair.client_is_modern() {
            let watch = client.partial_watch(&["tools"], &[MINE, "slow+note://one"]).await;
            assert_eq!(watch.acknowledged["resourceSubscriptions"], json!([MINE]));
        } else {
            client.ask("resources/subscribe", &format!(r#"{{"uri":"{MINE}"}}"#)).await.result();
            let answer = client.ask("resources/subscribe", r#"{"uri":"slow+note://one"}"#).await;
            assert!(answer.error()["code"].is_i64());
        }
    }
}

pairings! {
    /// Feature: Lost upstream listen
    async fn after_a_reconnect_watchers_are_told_to_look_again_and_stay_subscribed(pair: Pairing) {
        for piped in [false, true] {
            let server = if piped { Upstream::pipe(pair.upstream) } else { pair.upstream() };
            let notes = server.resources([resource(ONE)]).telling();
            let (_gateway, client) = pair.alone(&notes).await;
            let mut watch = client.watch(&[], &[MINE]).await;
            notes.updated(ONE, ONE).await;
            assert_eq!(watch.resource().await, MINE);
            // Else the end of an older one tells them, too.
            notes.one_listen_at_most().await;
            notes.down();
            notes.up();
            assert_eq!(watch.resource().await, MINE, "whatever happened meanwhile was missed");
            notes.updated(ONE, "note://one/later").await;
            assert_eq!(watch.resource().await, "notes+note://one/later");
        }
    }
}

pairings! {
    only [
        legacy_client_modern_server = LEGACY_MODERN,
        modern_client_modern_server = MODERN_MODERN,
    ] because "only modern servers end a listen";
    /// Feature: Lost upstream listen
    async fn a_listen_that_the_server_ends_is_opened_again(pair: Pairing) {
        let notes = watched(pair);
        let (_gateway, client) = pair.alone(&notes).await;
        let mut watch = client.watch(&[], &[MINE]).await;
        notes.updated(ONE, ONE).await;
        assert_eq!(watch.resource().await, MINE);
        notes.end_listens().await;
        assert_eq!(watch.resource().await, MINE, "told to look again");
        notes.updated(ONE, "note://one/later").await;
        while watch.resource().await != "notes+note://one/later" {}
    }
}

/// Feature: Graceful end of a listen (ML, MM)
#[tokio::test]
async fn a_listen_ends_with_a_result_when_the_gateway_stops() {
    for upstream in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let notes = Upstream::http(upstream)
            .resources([resource(ONE)])
            .telling();
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(Revision::V2026_07_28).await;
        let mut watch = client.watch(&["tools"], &[MINE]).await;
        let (ended, ()) = tokio::join!(watch.end(), gateway.app.clone().shutdown());
        let ended = ended.expect("a result");
        assert_eq!(ended["result"]["resultType"], "complete", "{ended}");
        let tag = &ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(tag, &ended["id"]);
    }
}

/// Feature: Graceful end of a listen (LL, LM)
#[tokio::test]
async fn streams_of_sessions_end_when_the_gateway_stops() {
    for upstream in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let notes = Upstream::http(upstream)
            .resources([resource(ONE)])
            .telling();
        let gateway = Gateway::of().upstream("notes", &notes).start().await;
        let client = gateway.client(Revision::V2025_11_25).await;
        let mut watch = client.watch(&[], &[MINE]).await;
        let (ended, ()) = tokio::join!(watch.end(), gateway.app.clone().shutdown());
        assert_eq!(ended, None);
    }
}

/// Feature: Subscription id (ML, MM)
#[tokio::test]
async fn ids_of_listens_keep_their_type_and_a_wrong_filter_is_refused() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([crate::harness::tool("t")])
        .telling();
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    for id in ["7", "\"7\"", "\"listen-é\"", "12345678901234567890"] {
        let params = r#"{"notifications":{"toolsListChanged":true}}"#;
        let mut talk = client
            .ask("subscriptions/listen", params)
            .id(id)
            .begin()
            .await;
        let first = talk.hear().await;
        let spelled = format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#);
        assert!(first.replace(": ", ":").contains(&spelled), "{first}");
    }
    for bad in [
        r#"{}"#,
        r#"{"notifications":7}"#,
        r#"{"notifications":{"resourceSubscriptions":"note://one"}}"#,
    ] {
        let answer = client.ask("subscriptions/listen", bad).await;
        assert_eq!(answer.error()["code"], -32602, "{bad}");
    }
    let told = parse(r#"{"notifications":{"taskIds":["t"]}}"#).to_string();
    let answer = client.ask("subscriptions/listen", &told).await;
    assert_eq!(
        (answer.status, answer.error()["code"].as_i64()),
        (400, Some(-32021)),
        "tasks without the extension"
    );
}

#[tokio::test]
async fn a_listen_that_waits_for_a_server_waits_no_longer_than_the_gateway_goes_on() {
    let notes = Upstream::http(Revision::V2025_11_25)
        .resources([resource("note://1")])
        .telling();
    notes.now_on("resources/subscribe", |_| Play::Hang);
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let wanted = r#"{"notifications":{"resourceSubscriptions":["notes+note://1"]}}"#;
    let stopping = async {
        notes.until_heard("resources/subscribe", 1).await;
        gateway.app.drain();
    };
    let listen = client.ask("subscriptions/listen", wanted).into_future();
    let (answer, ()) = tokio::join!(listen, stopping);
    assert_eq!(answer.refusal().1, "shutting_down", "{answer:?}");
}
