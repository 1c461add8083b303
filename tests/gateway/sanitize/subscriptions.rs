//! What is watched is named to a server, and what changed is named by it: both are looked at as all else that is said.

use super::*;
use crate::harness::resource;

const WATCHED: &str = "note://d";
const MINE: &str = "notes+note://d";

pairings! {
    async fn what_may_not_be_read_for_its_address_may_not_be_watched_either(pair: Pairing) {
        let notes = pair.upstream().resources([resource(WATCHED)]).telling();
        let (gateway, client) = before(pair, &notes).await;
        let local = format!("note://x/{SECRET}");
        let refused = (-31015, "content_blocked".to_owned());
        assert_eq!(client.read(&format!("notes+{local}")).await.refusal(), refused);
        let uri = quote(&format!("notes+{local}"));
        let answer = if pair.client_is_modern() {
            let both = format!(r#"{{"notifications":{{"resourceSubscriptions":["{MINE}",{uri}]}}}}"#);
            client.ask("subscriptions/listen", &both).await
        } else {
            client.ask("resources/subscribe", &format!(r#"{{"uri":{uri}}}"#)).await
        };
        assert_eq!(answer.refusal(), refused);
        assert!(!answer.message().contains(SECRET), "{answer:?}");
        let found = gateway.app.findings().recent();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|finding| &*finding.place == "/uri"), "{found:?}");
        // What is asked for later is watched, and the other was not asked for before it.
        let _watch = client.watch(&[], &[MINE]).await;
        assert!(notes.is_watched(WATCHED) && !notes.is_watched(&local));
        assert!(!notes.heard("resources/subscribe").iter().any(|heard| heard.params.contains(SECRET)));
        assert!(!notes.heard("subscriptions/listen").iter().any(|heard| heard.params.contains(SECRET)));
    }
}

pairings! {
    async fn a_change_whose_address_would_be_altered_is_told_by_the_watched_one(pair: Pairing) {
        let notes = pair.upstream().resources([resource(WATCHED)]).telling();
        let (gateway, client) = before(pair, &notes).await;
        let mut watch = client.watch(&[], &[MINE]).await;
        notes.one_listen_at_most().await;
        for part in [SECRET, "a\u{200b}b", "\u{1b}[31mred", "\u{202e}b"] {
            notes.updated(WATCHED, &format!("{WATCHED}/{part}")).await;
            assert_eq!(watch.resource().await, MINE, "{part:?}");
        }
        assert!(gateway.app.findings().recent().len() >= 4);
        notes.updated(WATCHED, "note://d/part").await;
        assert_eq!(watch.resource().await, "notes+note://d/part");
    }
}
