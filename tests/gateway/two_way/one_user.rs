//! Servers to which all callers are one user: nobody with a name is sent to an address by them (PROTOCOL F9).
//!
//! What somebody allows there, a login at a third party above all, would be allowed for everybody.

use super::{ALL, FORM, VISIT, asking, usual};
use crate::{
    harness::{Client, EVERYTHING, Gateway, Heard, Pairing, Play, Revision, Upstream, parse, tool},
    tasks::{self, about},
};

/// Sent with every request, whoever asks.
const SHARED: &str = "headers: { x-team: red }";

async fn before(notes: &Upstream, more: &str) -> Gateway {
    let gateway = Gateway::of().policies(EVERYTHING);
    gateway.upstream_with("notes", notes, more).start().await
}

async fn ana(gateway: &Gateway, pair: Pairing) -> Client {
    gateway.client_as("ana", pair.client, ALL).await
}

/// The modes in which the server of the last call may elicit.
fn modes(notes: &Upstream, pair: Pairing) -> Vec<String> {
    let promised = if pair.upstream_is_modern() {
        let call = notes.last("tools/call");
        parse(
            &call
                .meta("io.modelcontextprotocol/clientCapabilities")
                .unwrap(),
        )
    } else {
        notes.last("initialize").value()["capabilities"].clone()
    };
    let modes = promised["elicitation"].as_object().unwrap();
    modes.keys().cloned().collect()
}

pairings! {
    async fn nobody_with_a_name_is_sent_to_an_address_by_a_server_that_takes_all_for_one(pair: Pairing) {
        let notes = asking(pair, &[VISIT]);
        let gateway = before(&notes, SHARED).await;
        let ana = ana(&gateway, pair).await;
        let talk = ana.call("notes_ask", "{}").answering(|_, _| panic!("asked")).await;
        if pair.upstream_is_modern() {
            assert_eq!(talk.answer.tool_error(), "upstream_protocol_error", "{talk:?}");
        } else {
            assert!(parse(&talk.answer.text())[0]["code"].is_i64(), "{talk:?}");
        }
        assert_eq!(modes(&notes, pair), ["form"]);
        // Those without a name are one user here, too.
        let anybody = gateway.client_able(pair.client, ALL).await;
        let talk = anybody.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked.len(), 1, "{talk:?}");
        assert_eq!(modes(&notes, pair), ["form", "url"]);
    }
}

pairings! {
    async fn whoever_is_sent_to_an_address_as_themselves_or_as_the_operator_says_still_is(pair: Pairing) {
        let shared = format!("{SHARED}, url_elicitation: shared");
        for more in ["", shared.as_str()] {
            let notes = asking(pair, &[VISIT]);
            let gateway = before(&notes, more).await;
            let ana = ana(&gateway, pair).await;
            let talk = ana.call("notes_ask", "{}").answering(usual).await;
            assert_eq!(talk.asked.len(), 1, "{talk:?}");
        }
        let notes = asking(pair, &[FORM]);
        let gateway = before(&notes, SHARED).await;
        let ana = ana(&gateway, pair).await;
        let talk = ana.call("notes_ask", "{}").answering(usual).await;
        assert_eq!(talk.asked.len(), 1, "a form: {talk:?}");
    }
}

pairings! {
    async fn an_error_that_wants_an_address_visited_is_told_without_it(pair: Pairing) {
        let error = if pair.upstream_is_modern() {
            r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}"#
        } else {
            r#"{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a.example/x","message":"m"}]}}"#
        };
        let notes = pair.upstream().tools([tool("t")]).on("tools/call", move |_: &Heard| Play::Error(error.into()));
        let gateway = before(&notes, SHARED).await;
        let answer = ana(&gateway, pair).await.call("notes_t", "{}").await;
        assert_eq!(answer.tool_error(), "capability_missing", "{answer:?}");
        assert!(answer.text().contains("all callers are one user"), "{answer:?}");
        assert!(!answer.message().contains("a.example"), "{answer:?}");
    }
}

#[tokio::test]
async fn the_state_of_a_task_sends_nobody_there_either() {
    const WITH_TASKS: &str =
        r#"{"elicitation":{"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let notes = tasks::modern().on("tasks/get", |_: &Heard| {
        let (method, params) = VISIT;
        Play::Result(format!(
            r#"{{"taskId":"local-7","status":"input_required","createdAt":"c","lastUpdatedAt":"l","ttlMs":1,"inputRequests":{{"k":{{"method":"{method}","params":{params}}}}}}}"#
        ))
    });
    for (more, asked) in [("", true), (SHARED, false)] {
        let gateway = before(&notes, more).await;
        let ana = gateway
            .client_as("ana", Revision::V2026_07_28, WITH_TASKS)
            .await;
        let made = ana.call("notes_slow", "{}").await.value();
        let state = about(&ana, "tasks/get", made["taskId"].as_str().unwrap()).await;
        if asked {
            assert_eq!(state.value()["status"], "input_required");
        } else {
            assert_eq!(state.refusal().1, "upstream_protocol_error");
        }
    }
}
