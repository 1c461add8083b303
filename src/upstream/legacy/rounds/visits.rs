//! Tests: URLs that a user is asked to visit.

use std::sync::Mutex;

use super::*;
use crate::events;

/// Keeps the pages that it hears are done with.
#[derive(Debug, Default)]
struct Visitor(Mutex<Vec<String>>);

impl events::Sender for Visitor {
    fn done(&self, page: &str) -> bool {
        self.0.lock().unwrap().push(page.to_owned());
        true
    }
}

/// It comes on the call that may be asked just then, and its caller may be of the era that is told nothing.
#[tokio::test(start_paused = true)]
async fn that_a_page_is_done_with_is_told_to_who_sent_somebody_there_also_on_anothers_call() {
    let (transport, peer) = played(&an_address()).await;
    let visitor = Arc::<Visitor>::default();
    peer.terms.interest.pages().sent("u/e", &visitor);
    let complete = note(
        "notifications/elicitation/complete",
        r#"{"elicitationId":"e"}"#,
    );
    let says = [complete.as_str(), complete.as_str(), &last("{}")];
    let reply = begun(&transport, &peer, able("k"), 0, &says).await;
    assert_eq!(text(reply), "{}");
    assert_eq!(*visitor.0.lock().unwrap(), ["u/e"]);
}

#[tokio::test(start_paused = true)]
async fn urls_have_outward_ids_for_their_own_era_and_none_for_the_other() {
    let (transport, peer) = played(&an_address()).await;
    let url = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://a","elicitationId":"e"}}"#;
    let modern = asked(begun(&transport, &peer, able("k"), 0, &[url]).await);
    assert!(!modern.requests.as_str().contains("elicitationId"));
    let mut call = able("k");
    call.caller = Arc::new(Caller {
        revision: Revision::V2025_11_25,
        ..Caller::clone(&call.caller)
    });
    let legacy = asked(begun(&transport, &peer, call.clone(), 1, &[url]).await);
    assert!(
        legacy
            .requests
            .as_str()
            .contains(r#""elicitationId":"u/e""#)
    );
    let again = again(&call, &legacy, r#"{"ask-1":{"action":"accept"}}"#);
    let complete = note(
        "notifications/elicitation/complete",
        r#"{"elicitationId":"e"}"#,
    );
    let going_on = peer.call(again, a_route("t"));
    let speaking = async {
        transport.until_count("", 1).await;
        transport.tell(1, &complete);
    };
    let (Ok(Reply::Stream(stream)), ()) = tokio::join!(going_on, speaking) else {
        panic!()
    };
    transport.tell(1, &last("{}"));
    let steps: Vec<_> = stream.collect().await;
    assert!(
        matches!(&steps[..], [Step::Event(Event::Elicited(params)), Step::Outcome(_)] if params.as_str() == r#"{"elicitationId":"u/e"}"#),
        "{steps:?}"
    );
}

#[tokio::test]
async fn a_visit_that_is_required_is_asked_for_and_the_request_is_then_sent_again() {
    let mut plays = [
        Play::Error(
            200,
            -32042,
            r#"{"elicitations":[{"mode":"url","message":"m","url":"https://a","elicitationId":"e"}]}"#,
        ),
        result("{}"),
    ]
    .into_iter();
    let (transport, peer) = over_http(&an_address(), move |_| plays.next().unwrap()).await;
    let call = able("k");
    let asked = asked(peer.call(call.clone(), a_route("t")).await);
    assert_eq!(asked.state, State::Upstream(None));
    let again = again(&call, &asked, r#"{"visit-1":{"action":"accept"}}"#);
    assert_eq!(text(peer.call(again, a_route("t")).await), "{}");
    let sent = transport.sent_of("tools/call");
    assert_eq!(sent[1].params, sent[0].params);
}

/// Sent again it would be answered with the same question, until the server is blamed for asking too often.
#[tokio::test]
async fn a_visit_that_is_declined_ends_the_call_and_nothing_is_sent_again() {
    for action in ["decline", "cancel"] {
        let (transport, peer) = over_http(&an_address(), |_| {
            Play::Error(
                200,
                -32042,
                r#"{"elicitations":[{"mode":"url","message":"m","url":"https://a","elicitationId":"e"}]}"#,
            )
        })
        .await;
        let call = able("k");
        let asked = asked(peer.call(call.clone(), a_route("t")).await);
        let answers = format!(r#"{{"visit-1":{{"action":"{action}"}}}}"#);
        let refused = peer
            .call(again(&call, &asked, &answers), a_route("t"))
            .await;
        assert!(
            matches!(refused, Err(UpstreamError::Declined)),
            "{action}: {refused:?}"
        );
        assert_eq!(transport.sent_of("tools/call").len(), 1, "{action}");
    }
}
