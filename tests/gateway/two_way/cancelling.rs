//! Giving up: in the manner of the client's era, in the manner of the server's, and only the request that is meant.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::{ALL, FORM, NAMED, asking, asking_at};
use crate::harness::{
    Client, Gateway, Heard, Pairing, Play, Says, Talk, Turn, Upstream, call_result, eventually,
    member, parse, text_result, tool, within,
};

/// How soon the upstream is to hear of it (SECURITY REL-5), with room for a loaded machine.
const SOON: Duration = Duration::from_secs(5);

/// A server whose tool `slow` tells a step and then works until it is released; how many of its streams were closed.
struct Slow {
    notes: Upstream,
    release: Arc<Notify>,
    gone: Arc<AtomicUsize>,
    pair: Pairing,
}

impl Slow {
    fn new(pair: Pairing, piped: bool) -> Self {
        let server = if piped {
            Upstream::pipe(pair.upstream)
        } else {
            pair.upstream()
        };
        let (release, gone) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (waiting, left) = (Arc::clone(&release), Arc::clone(&gone));
        let notes = server.tools([tool("slow"), tool("t")]).on(
            "tools/call",
            move |heard: &Heard| {
                if heard.text("name").as_deref() == Some("t") {
                    return Play::Result(call_result("t"));
                }
                let (waiting, left) = (Arc::clone(&waiting), Arc::clone(&left));
                Play::live(move |turn: Turn| {
                    let (waiting, left) = (Arc::clone(&waiting), Arc::clone(&left));
                    async move {
                        turn.progress(1, "begun").await;
                        tokio::select! {
                            () = waiting.notified() => turn.result(&text_result("worked")).await,
                            () = turn.gone() => {
                                left.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                })
            },
        );
        Self {
            notes,
            release,
            gone,
            pair,
        }
    }

    /// A call that is under way: it has told its first step.
    async fn begun(&self, client: &Client, id: &str) -> Talk {
        let ask = client
            .call("notes_slow", "{}")
            .id(id)
            .meta(r#""progressToken":"p""#);
        let mut talk = ask.begin().await;
        assert!(talk.hear().await.contains("begun"));
        talk
    }

    /// Waits until the server was told that its call number `n`, counted from zero, is given up; and no other one.
    async fn is_told(&self, n: usize, piped: bool) {
        let calls = self.notes.heard("tools/call");
        let id = calls[n].id.clone();
        if self.pair.upstream_is_modern() && !piped {
            let closed = eventually("its stream is closed", || async {
                let gone = self.gone.load(Ordering::SeqCst);
                (gone > 0).then_some(gone)
            });
            assert_eq!(within(SOON, "the upstream is told", closed).await, 1);
            return;
        }
        let told = self.notes.until_heard("notifications/cancelled", 1);
        let told = within(SOON, "the upstream is told", told).await;
        assert_eq!(
            member(&told.params, "requestId"),
            id,
            "another request was meant"
        );
        assert_eq!(self.notes.heard("notifications/cancelled").len(), 1);
    }
}

pairings! {
    /// Feature: Cancel
    async fn a_call_that_is_given_up_is_given_up_at_its_server_and_no_other_is(pair: Pairing) {
        for piped in [false, true] {
            let slow = Slow::new(pair, piped);
            let (gateway, client) = pair.alone(&slow.notes).await;
            let other = pair.client(&gateway).await;
            // Equal ids, as clients have them.
            let kept = slow.begun(&other, "1").await;
            let given_up = slow.begun(&client, "1").await;
            if pair.client_is_modern() {
                drop(given_up);
                slow.is_told(1, piped).await;
            } else {
                client.notify("notifications/cancelled", r#"{"requestId":1,"reason":"enough"}"#).await;
                slow.is_told(1, piped).await;
                let rest = given_up.rest().await;
                assert!(rest.frames.iter().all(|frame| parse(frame)["result"].is_null()), "{rest:?}");
            }
            slow.release.notify_waiters();
            let rest = kept.rest().await;
            assert_eq!(rest.text(), "worked");
            assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        }
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        legacy_client_modern_server = LEGACY_MODERN,
    ] because "in the stateless era going away is giving up";
    /// Feature: Disconnect is no cancel
    async fn a_legacy_client_that_loses_its_connection_has_not_given_up(pair: Pairing) {
        let slow = Slow::new(pair, false);
        let (_gateway, client) = pair.alone(&slow.notes).await;
        drop(slow.begun(&client, "1").await);
        // Something after it, so that whatever the loss caused would have been told by now.
        for _ in 0..20 {
            assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
        }
        assert!(slow.notes.heard("notifications/cancelled").is_empty());
        assert_eq!(slow.gone.load(Ordering::SeqCst), 0);
    }
}

pairings! {
    /// Feature: Cancel
    async fn cancelling_what_is_done_or_never_was_harms_nothing(pair: Pairing) {
        let slow = Slow::new(pair, false);
        let (_gateway, client) = pair.alone(&slow.notes).await;
        assert_eq!(client.call("notes_t", "{}").id("5").await.text(), "called t");
        for params in [
            r#"{"requestId":5}"#,
            r#"{"requestId":"5"}"#,
            r#"{"requestId":null}"#,
            r#"{"requestId":99,"reason":"x"}"#,
            "{}",
        ] {
            let told = format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#);
            let version = [("mcp-protocol-version", pair.client.as_str())];
            let status = client.post(&told, if pair.client_is_modern() { &version } else { &[] }).await.status;
            assert!(status == 202 || status == 400, "{params}: {status}");
        }
        assert!(slow.notes.heard("notifications/cancelled").is_empty());
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        legacy_client_modern_server = LEGACY_MODERN,
    ] because "in the stateless era there is nothing that a client could send: what is held for it ends by itself";
    /// Feature: Cancel while the client is asked
    async fn giving_up_instead_of_answering_ends_the_servers_waiting(pair: Pairing) {
        let notes = asking(pair, &[FORM]);
        let (_gateway, client) = pair.able(&notes, ALL).await;
        let mut talk = client.call("notes_ask", "{}").id("9").begin().await;
        let asked = talk.hear().await;
        assert!(asked.contains("elicitation/create"), "{asked}");
        client.notify("notifications/cancelled", r#"{"requestId":9}"#).await;
        if pair.upstream_is_modern() {
            // It was asked and nothing runs there; it is never called again.
            assert_eq!(talk.rest().await.frames.iter().filter(|frame| frame.contains("\"result\"")).count(), 0);
            assert_eq!(notes.heard("tools/call").len(), 1);
        } else {
            notes.until_heard("notifications/cancelled", 1).await;
        }
        // A late answer belongs to nothing any more.
        let late = client.reply(&asked, ("result", NAMED)).await;
        assert!([202, 400].contains(&late.status), "{late:?}");
        assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        modern_client_legacy_server = MODERN_LEGACY,
    ] because "in the stateless era a stream that is gone has been cancelled";
    async fn a_call_whose_stream_ends_or_goes_silent_before_its_answer_is_cancelled_at_its_server(pair: Pairing) {
        for (tells, ends) in [(true, true), (true, false), (false, true), (false, false)] {
            let notes = pair.upstream().tools([tool("slow")]).on("tools/call", move |_: &Heard| {
                Play::live(move |turn: Turn| async move {
                    if tells {
                        turn.progress(1, "begun").await;
                    }
                    if !ends {
                        turn.gone().await;
                    }
                })
            });
            let gateway = Gateway::of()
                .upstream_with("notes", &notes, "timeout: { silence: 1s }")
                .start()
                .await;
            let client = pair.client(&gateway).await;
            let answer = client.call("notes_slow", "{}").meta(r#""progressToken":"p""#).await;
            assert_eq!(answer.value()["isError"], true, "{answer:?}");
            let told = notes.until_heard("notifications/cancelled", 1);
            let told = within(SOON, "the upstream is told", told).await;
            assert_eq!(member(&told.params, "requestId"), notes.last("tools/call").id);
        }
    }
}

pairings! {
    only [
        legacy_client_legacy_server = LEGACY_LEGACY,
        modern_client_legacy_server = MODERN_LEGACY,
    ] because "only there a call is parked";
    async fn a_question_that_is_withheld_frees_the_server_that_waits_and_the_pipe_it_waits_on(pair: Pairing) {
        const SECRET: &str = r#"{"message":"Fill in","requestedSchema":{"type":"object","properties":{"password":{"type":"string"}}}}"#;
        let server = Upstream::pipe(pair.upstream);
        let notes = asking_at(server, pair, &[("elicitation/create", SECRET)]);
        let (_gateway, client) = on_own_pipe(pair, &notes).await;
        let refused = client.call("notes_ask", "{}").await;
        assert_eq!(refused.tool_error(), "content_blocked");
        let told = notes.until_heard("notifications/cancelled", 1);
        within(SOON, "the upstream is told", told).await;
        let next = client.call("notes_t", "{}");
        assert_eq!(within(SOON, "the pipe is free", next.into_future()).await.text(), "called t");
    }
}

pairings! {
    only [legacy_client_legacy_server = LEGACY_LEGACY]
        because "in the stateless era a client may answer once more, and better";
    async fn an_answer_that_does_not_fit_frees_the_server_that_waits_and_the_pipe_it_waits_on(pair: Pairing) {
        let notes = asking_at(Upstream::pipe(pair.upstream), pair, &[FORM]);
        let (_gateway, client) = on_own_pipe(pair, &notes).await;
        let nameless = |_: &str, _: &_| Says::Result(r#"{"action":"accept","content":{}}"#.to_owned());
        let talk = client.call("notes_ask", "{}").answering(nameless).await;
        assert_eq!(talk.answer.error()["code"], -32602);
        let told = notes.until_heard("notifications/cancelled", 1);
        within(SOON, "the upstream is told", told).await;
        let next = client.call("notes_t", "{}");
        assert_eq!(within(SOON, "the pipe is free", next.into_future()).await.text(), "called t");
    }
}

/// A server on a pipe of each session's own, and a client.
async fn on_own_pipe(pair: Pairing, notes: &Upstream) -> (Gateway, Client) {
    let gateway = Gateway::of()
        .upstream_with("notes", notes, "isolation: session")
        .start()
        .await;
    let client = gateway.client_able(pair.client, ALL).await;
    (gateway, client)
}

/// Feature: Cancel by ending the session (LL, LM)
#[tokio::test]
async fn ending_a_session_gives_up_its_calls() {
    for pair in [Pairing::LEGACY_LEGACY, Pairing::LEGACY_MODERN] {
        let slow = Slow::new(pair, false);
        let gateway = Gateway::of().upstream("notes", &slow.notes).start().await;
        let client = pair.client(&gateway).await;
        let _begun = slow.begun(&client, "1").await;
        assert_eq!(client.other(http::Method::DELETE).await.status, 204);
        if pair.upstream_is_modern() {
            slow.is_told(0, false).await;
        } else {
            // The server's session was this client's, and ends with it; its call is given up first or with it.
            eventually("the server hears of it", || async {
                let told = slow.notes.heard("notifications/cancelled").len()
                    + slow.notes.heard("DELETE").len();
                (told > 0).then_some(())
            })
            .await;
        }
    }
}
