//! What clients wait for while servers start for the first time, since hosts that ask once never see what comes later.
//!
//! Guarantees: nobody waits once each server was reached once or failed once, nor for longer than the bounds here, which count
//! from the start, so that it is once for a process; nor while the gateway drains. Deliberately absent: waiting before a call,
//! a ping or `server/discover`, whose answers say how things are now.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    json::Node,
    jsonrpc::{Frame, Message},
    protocol::methods::ListKind,
};

/// How long after the start a handshake waits at most. What it says of the endpoint holds for as long as the session; others
/// learn that the lists changed. Cline gives a program 3 s to come up and answer, ends it then and starts another one.
pub const HEAD_START: Duration = Duration::from_secs(2);
/// How long after the start lists wait at most that are asked for on a pipe: hosts that keep the first one have no tools of a
/// program that is downloaded meanwhile. Continue gives up on all servers of a program whose handshake and first lists together take
/// 20 s.
pub const FIRST_LISTS: Duration = Duration::from_secs(15);

/// How long a client may be kept waiting for a list, by the name in its `clientInfo`: some give up on the whole program after a few
/// seconds. Whoever gives a wrong name has itself to blame.
pub(super) fn patience(client: Option<Node<'_>>) -> Duration {
    let name = client.and_then(|info| info.member("name")?.as_str());
    match name.as_deref().unwrap_or_default() {
        // The SDK of Python's own, under which agents come that give each request five seconds.
        "mcp" => Duration::from_secs(3),
        // The SDK of Rust's own, under which a desktop comes that gives two.
        "rmcp" => Duration::from_secs(1),
        // Ten, for the handshake and the first list.
        codex if codex.starts_with("codex") => Duration::from_secs(5),
        _ => FIRST_LISTS,
    }
}

/// Whether servers are in their first start. A cheap handle.
#[derive(Debug, Clone)]
pub struct Starting {
    since: Instant,
    /// Cancelled once each was reached or failed.
    over: CancellationToken,
}

impl Starting {
    /// The gateway starts now; `over` is cancelled once every server was reached once or failed once.
    pub fn now(over: CancellationToken) -> Self {
        let since = Instant::now();
        Self { since, over }
    }

    /// Before a handshake is answered.
    pub(super) async fn handshake(&self, closing: &CancellationToken) {
        self.wait(self.since + HEAD_START, closing).await;
    }

    /// Before lists are answered on a pipe, to a client of so much [`patience`].
    pub(super) async fn lists(&self, patience: Duration, closing: &CancellationToken) {
        let until = self.since + FIRST_LISTS;
        self.wait(until.min(Instant::now() + patience), closing)
            .await;
    }

    async fn wait(&self, until: Instant, closing: &CancellationToken) {
        let over = async {
            tokio::select! {
                biased;
                () = self.over.cancelled() => {}
                () = closing.cancelled() => {}
            }
        };
        drop(timeout_at(until, over).await);
    }
}

/// Nothing starts.
impl Default for Starting {
    fn default() -> Self {
        let over = CancellationToken::new();
        over.cancel();
        Self::now(over)
    }
}

/// Whether a message asks for any list.
pub(super) fn asks_for_a_list(message: &Message) -> bool {
    let lists = |frame: &Frame| matches!(frame, Frame::Request(request) if ListKind::EVERY.iter().any(|kind| kind.method() == &*request.method));
    match message {
        Message::One(frame) => lists(frame),
        Message::Batch(frames) => frames.iter().any(lists),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json::{Json, Limits},
        jsonrpc::decode,
    };

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_bounded_from_the_start_on_and_ends_with_what_it_is_for() {
        let open = CancellationToken::new();
        let starting = Starting::now(open.clone());
        let start = Instant::now();
        starting.handshake(&open).await;
        assert_eq!(start.elapsed().as_secs(), HEAD_START.as_secs());
        starting.handshake(&open).await;
        // Of little patience each list is answered in its time.
        for asked in 1..=2 {
            starting.lists(Duration::from_secs(3), &open).await;
            let so_far = HEAD_START + Duration::from_secs(3 * asked);
            assert_eq!(start.elapsed().as_secs(), so_far.as_secs());
        }
        starting.lists(FIRST_LISTS, &open).await;
        // The second handshake waited for nothing, and the list not from when it was asked for.
        assert_eq!(start.elapsed().as_secs(), FIRST_LISTS.as_secs());
        for drains in [false, true] {
            let (over, closing) = (CancellationToken::new(), CancellationToken::new());
            let ends = if drains { &closing } else { &over };
            let starting = Starting::now(over.clone());
            let start = Instant::now();
            let end = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                ends.cancel();
            };
            tokio::join!(starting.lists(FIRST_LISTS, &closing), end);
            let took = start.elapsed();
            assert!(took < Duration::from_secs(2), "{took:?}");
        }
        let start = Instant::now();
        Starting::default().lists(FIRST_LISTS, &open).await;
        assert!(start.elapsed().is_zero());
    }

    #[test]
    fn clients_that_give_up_soon_are_known_by_their_names() {
        for (info, seconds) in [
            (r#"{"name":"mcp","version":"0.1.0"}"#, 3),
            (r#"{"name":"rmcp","version":"1"}"#, 1),
            (r#"{"name":"codex-mcp-client","version":"1"}"#, 5),
            (r#"{"name":"mcp-remote","version":"1"}"#, 15),
            (r#"{"name":7}"#, 15),
            ("null", 15),
        ] {
            let info = Json::literal(info);
            assert_eq!(patience(Some(info.root())).as_secs(), seconds, "{info:?}");
        }
        assert_eq!(patience(None), FIRST_LISTS);
    }

    #[test]
    fn what_asks_for_a_list_is_known_also_in_a_batch() {
        for (text, asks) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, true),
            (r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#, true),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#,
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/templates/list"}"#,
                true,
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]"#,
                true,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/list"}"#, false),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                false,
            ),
        ] {
            let message = decode(text.into(), &Limits::CLIENT).unwrap();
            assert_eq!(asks_for_a_list(&message), asks, "{text}");
        }
    }
}
