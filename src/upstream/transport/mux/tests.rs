//! The mux without a channel: frames in, answers out.

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::time::Duration;

use super::{
    super::rig::*,
    inbox::{MAX_NOISE, STALL},
    *,
};
use crate::{
    json::Node,
    metrics::{Bound, seen},
};

pub(super) fn mux() -> (Mux, Inbox) {
    Mux::new(UpstreamId::parse("u").unwrap(), Limits::UPSTREAM)
}

pub(super) fn id(number: u64) -> RequestId {
    RequestId::minted(number)
}

async fn all(exchange: Exchange) -> Vec<String> {
    match Mux::answer(exchange).await.unwrap() {
        Answer::One(_, frame) => vec![gist(&frame)],
        Answer::Stream(_, frames) => {
            frames
                .map(|frame| gist(&frame.unwrap()))
                .collect::<Vec<_>>()
                .await
        }
        Answer::Accepted(_) | Answer::Status(_) => panic!(),
    }
}

#[tokio::test]
async fn frames_reach_the_exchange_they_belong_to() {
    let (mux, mut inbox) = mux();
    let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
    for text in [
        progress(2, 1),
        result(1, 10),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}".to_owned(),
        format!("[{},{}]", progress(2, 2), result(2, 20)),
        progress(9, 1),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}".to_owned(),
    ] {
        inbox.take(text.into()).await.unwrap();
    }
    assert_eq!(all(first).await, ["{\"n\":10}"]);
    let progress = "notifications/progress";
    assert_eq!(all(second).await, [progress, progress, "{\"n\":20}"]);
    drop(inbox);
    let unsolicited = mux.unsolicited().unwrap();
    let unsolicited: Vec<_> = unsolicited
        .map(|frame| gist(&frame.unwrap()))
        .collect()
        .await;
    assert_eq!(
        unsolicited,
        ["notifications/message", progress, "roots/list"]
    );
    assert!(mux.unsolicited().is_err());
}

#[tokio::test]
async fn an_id_is_never_used_twice_and_a_late_answer_matches_nobody() {
    let (mux, mut inbox) = mux();
    let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    assert!(mux.begin(&id(1), Limits::UPSTREAM).is_err());
    drop(first);
    assert!(mux.begin(&id(1), Limits::UPSTREAM).is_err());
    let mut second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
    for text in [result(1, 1), result(7, 1), progress(1, 1)] {
        inbox.take(text.into()).await.unwrap();
    }
    assert!(second.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_second_answer_is_swallowed() {
    let (mux, mut inbox) = mux();
    let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    for n in [1, 2] {
        inbox.take(result(1, n).into()).await.unwrap();
    }
    assert_eq!(all(first).await, ["{\"n\":1}"]);
}

#[tokio::test]
async fn a_refusal_that_names_no_request_is_that_of_the_first_while_there_is_no_other() {
    const REFUSAL: &str = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}"#;
    let (mux, mut inbox) = mux();
    inbox.take(REFUSAL.into()).await.unwrap();
    let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let named = REFUSAL.replacen('{', r#"{"id":null,"#, 1);
    inbox.take(named.into()).await.unwrap();
    let answered = all(first).now_or_never();
    assert_eq!(answered.as_deref(), Some(&["error -32601".to_owned()][..]));
    // Whose it is is not known any more.
    let mut second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
    inbox.take(REFUSAL.into()).await.unwrap();
    assert!(second.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_spoiled_answer_fails_its_own_exchange_only() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"Result":{},"result":{}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\\ud800\"}}",
    ] {
        let (mux, mut inbox) = mux();
        let mut first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
        let mut second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
        inbox.take(text.into()).await.unwrap();
        let error = first.next().await.unwrap().unwrap_err();
        assert_eq!(error.reason(), "upstream_protocol_error", "{text}");
        assert!(first.next().await.is_none());
        assert!(second.next().now_or_never().is_none());
    }
    // An ill-formed request of theirs says nothing about ours of the same number.
    let (mux, mut inbox) = mux();
    let mut first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#;
    inbox.take(text.into()).await.unwrap();
    assert!(first.next().now_or_never().is_none());
}

#[tokio::test]
async fn an_answer_is_held_to_the_limits_of_its_own_exchange() {
    let values = Limits::UPSTREAM.values;
    for (count, limits, good) in [
        (values - 10, Limits::UPSTREAM, true),
        (values + 10, Limits::UPSTREAM, false),
        (values + 10, Limits::LIST, true),
    ] {
        let (mux, mut inbox) = mux();
        let mut exchange = mux.begin(&id(1), limits).unwrap();
        let array = vec!["0"; count].join(",");
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":[{array}]}}}}"#);
        inbox.take(text.into()).await.unwrap();
        assert_eq!(exchange.next().await.unwrap().is_ok(), good, "{count}");
    }
}

#[tokio::test]
async fn noise_is_forgiven_until_there_is_nothing_else() {
    let (_mux, mut inbox) = mux();
    for _ in 0..3 {
        for _ in 0..MAX_NOISE {
            inbox.take("Server ready \u{1b}[0m".into()).await.unwrap();
        }
        inbox.take(result(1, 1).into()).await.unwrap();
    }
    for _ in 0..MAX_NOISE {
        inbox.take("noise".into()).await.unwrap();
    }
    let error = inbox.take("noise".into()).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_protocol_error");
}

/// As [`all`], with how far it is in the place of each progress.
async fn steps(exchange: &mut Exchange) -> Vec<String> {
    let mut steps = Vec::new();
    while let Some(frame) = exchange.next().await {
        let frame = frame.unwrap();
        let said = match &frame {
            Frame::Notification(notification) => notification.params.as_ref(),
            Frame::Request(_) | Frame::Response(_) => None,
        };
        let progress = said.and_then(|params| params.root().member("progress"));
        steps.push(match progress.and_then(Node::as_i64) {
            Some(progress) => progress.to_string(),
            None => gist(&frame),
        });
    }
    steps
}

fn up_to(end: usize) -> Vec<String> {
    (0..end).map(|n| n.to_string()).collect()
}

/// How often something was left out since the last look.
fn unread() -> usize {
    let seen = seen::take();
    assert!(seen.iter().all(|bound| *bound == Bound::UpstreamUnread));
    seen.len()
}

/// SECURITY REL-4: what is left out is counted, and never how it stands in the end.
#[tokio::test]
async fn of_progress_that_nobody_reads_the_last_comes_and_then_the_answer() {
    unread();
    let (mux, mut inbox) = mux();
    let mut exchange = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    for n in 0..10_000 {
        inbox.take(progress(1, n).into()).await.unwrap();
    }
    inbox.take(result(1, 1).into()).await.unwrap();
    let mut expected = up_to(QUEUE - 1);
    expected.extend(["9999".to_owned(), "{\"n\":1}".to_owned()]);
    assert_eq!(steps(&mut exchange).await, expected);
    assert_eq!(unread(), 10_000 - QUEUE);

    let mut exchange = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
    let padding = " ".repeat(HELD_BYTES / 4);
    for n in 0..10 {
        inbox
            .take((progress(2, n) + &padding).into())
            .await
            .unwrap();
    }
    inbox.take(result(2, 1).into()).await.unwrap();
    assert_eq!(steps(&mut exchange).await, ["0", "1", "9", "{\"n\":1}"]);
    assert_eq!(unread(), 10 - 3);
}

#[tokio::test(start_paused = true)]
async fn unsolicited_frames_wait_for_room_once_somebody_takes_them() {
    let text = || Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}");
    // Not taken: the channel is never held up.
    let (mux, mut inbox) = mux();
    for _ in 0..2 * QUEUE {
        inbox.take(text()).await.unwrap();
    }
    // Taken but not read: held up, and after a while given up.
    let mut frames = mux.unsolicited().unwrap();
    let mut stalled = Box::pin(inbox.take(text()));
    assert!(futures_util::poll!(&mut stalled).is_pending());
    frames.next().await.unwrap().unwrap();
    stalled.await.unwrap();
    let error = inbox.take(text()).await.unwrap_err();
    assert_eq!(error.reason(), "upstream_protocol_error");
    // No longer wanted: nothing holds anything up.
    drop(frames);
    for _ in 0..2 * QUEUE {
        inbox.take(text()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn unsolicited_frames_are_bounded_in_bytes() {
    let (mux, mut inbox) = mux();
    let mut frames = mux.unsolicited().unwrap();
    let padding = " ".repeat(HELD_BYTES);
    let large = || Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"m\"}}{padding}"));
    inbox.take(large()).await.unwrap();
    let mut stalled = Box::pin(inbox.take(large()));
    assert!(futures_util::poll!(&mut stalled).is_pending());
    frames.next().await.unwrap().unwrap();
    stalled.await.unwrap();
}

#[tokio::test]
async fn the_end_is_told_to_everyone() {
    let (mux, inbox) = mux();
    let waiting = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let frames = mux.unsolicited().unwrap();
    assert!(mux.lost().now_or_never().is_none());
    drop(inbox);
    mux.end(UpstreamError::TooLarge(7));
    mux.end(UpstreamError::Redirect(None));
    let error = Mux::answer(waiting).await.err().unwrap();
    assert_eq!(error.reason(), "upstream_unavailable");
    assert!(error.to_string().contains("more than 7 bytes"));
    assert!(matches!(mux.lost().await, UpstreamError::TooLarge(7)));
    let refused = mux.begin(&id(2), Limits::UPSTREAM).err().unwrap();
    assert_eq!(refused.reason(), "upstream_unavailable");
    assert!(refused.to_string().contains("more than 7 bytes"));
    assert_eq!(frames.count().await, 0);
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let (mux, _inbox) = mux();
    let number = |index: usize| id(u64::try_from(index).unwrap());
    let held: Vec<_> = (0..MAX_WAITING)
        .map(|index| mux.begin(&number(index), Limits::UPSTREAM).unwrap())
        .collect();
    let more = mux.begin(&number(MAX_WAITING), Limits::UPSTREAM);
    assert_eq!(more.err().unwrap().reason(), "overloaded");
    drop(held);
    assert!(mux.begin(&number(MAX_WAITING), Limits::UPSTREAM).is_ok());
}

#[tokio::test]
async fn a_waiting_exchange_wakes_when_its_answer_comes() {
    let (mux, mut inbox) = mux();
    let exchange = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let answering = async {
        tokio::task::yield_now().await;
        inbox.take(result(1, 1).into()).await.unwrap();
    };
    let both = async { tokio::join!(all(exchange), answering) };
    let (frames, ()) = tokio::time::timeout(Duration::from_secs(10), both)
        .await
        .unwrap();
    assert_eq!(frames, ["{\"n\":1}"]);
}

/// A notification that belongs to the listen `id`.
fn of_listen(id: u64, method: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

#[tokio::test]
async fn what_names_a_listen_reaches_it_and_no_request_of_another_kind() {
    let (mux, mut inbox) = mux();
    let first = mux.begin_listen(&id(1), Limits::UPSTREAM).unwrap();
    let second = mux.begin_listen(&id(2), Limits::UPSTREAM).unwrap();
    let call = mux.begin(&id(3), Limits::UPSTREAM).unwrap();
    let cancelled = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    for text in [
        of_listen(2, "two"),
        of_listen(1, "one"),
        of_listen(3, "stray"),
        of_listen(9, "stray"),
        cancelled(1),
        cancelled(3),
        result(1, 10),
        result(2, 20),
        result(3, 30),
    ] {
        inbox.take(text.into()).await.unwrap();
    }
    let ended = "notifications/cancelled";
    assert_eq!(all(first).await, ["one", ended, "{\"n\":10}"]);
    assert_eq!(all(second).await, ["two", "{\"n\":20}"]);
    assert_eq!(all(call).await, ["{\"n\":30}"]);
    drop(inbox);
    let unsolicited: Vec<_> = mux
        .unsolicited()
        .unwrap()
        .map(|frame| gist(&frame.unwrap()))
        .collect()
        .await;
    assert_eq!(unsolicited, ["stray", "stray", ended]);
}

#[tokio::test]
async fn a_listen_that_is_not_read_ends_and_never_loses_a_change_in_silence() {
    let (mux, mut inbox) = mux();
    let listen = mux.begin_listen(&id(1), Limits::UPSTREAM).unwrap();
    for _ in 0..=QUEUE {
        inbox.take(of_listen(1, "n").into()).await.unwrap();
    }
    let Answer::Stream(_, frames) = Mux::answer(listen).await.unwrap() else {
        panic!()
    };
    // All of it is there already, or never comes.
    let frames: Option<Vec<_>> = frames.take(QUEUE + 1).collect().now_or_never();
    let frames = frames.unwrap();
    assert!(matches!(
        frames.last(),
        Some(Err(UpstreamError::Unavailable { .. }))
    ));
}

/// Says of each request and log line that it is of exchange 1, and of nothing else. Keeps whose answer came late.
#[derive(Debug, Default)]
struct First {
    of_one: bool,
    late: Mutex<Vec<u64>>,
}

impl Owners for First {
    fn whose(&self, frame: &Frame) -> Option<u64> {
        match frame {
            Frame::Request(_) => Some(1),
            Frame::Notification(notification) => (&*notification.method == "log").then_some(1),
            Frame::Response(_) => None,
        }
    }

    fn late(&self, number: u64) {
        self.late.lock().unwrap().push(number);
    }

    fn is_of_one(&self) -> bool {
        self.of_one
    }
}

#[tokio::test]
async fn that_an_answer_came_too_late_is_told_to_who_knows_whose_it_was() {
    let (mux, mut inbox) = mux();
    let owners = Arc::new(First::default());
    mux.sort_by(Arc::<First>::clone(&owners));
    drop(mux.begin(&id(1), Limits::UPSTREAM).unwrap());
    let _second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
    for number in [1, 2, 3] {
        inbox.take(result(number, 1).into()).await.unwrap();
    }
    assert_eq!(*owners.late.lock().unwrap(), [1]);
}

#[tokio::test]
async fn that_an_answer_came_which_nobody_can_read_is_told_to_who_knows_whose_it_was() {
    let array = vec!["0"; Limits::UPSTREAM.values + 10].join(",");
    for result in ["7".to_owned(), format!(r#"{{"a":[{array}]}}"#)] {
        let (mux, mut inbox) = mux();
        let owners = Arc::new(First::default());
        mux.sort_by(Arc::<First>::clone(&owners));
        let mut first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        inbox.take(text.into()).await.unwrap();
        assert!(first.next().await.unwrap().is_err());
        assert_eq!(*owners.late.lock().unwrap(), [1]);
    }
}

pub(super) const ASKED: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}";
const LOG: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{}}";

/// A mux of one caller's, and its first exchange.
fn of_one() -> (Mux, Inbox, Exchange) {
    let (mux, inbox) = mux();
    mux.sort_by(Arc::new(First {
        of_one: true,
        ..First::default()
    }));
    let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    (mux, inbox, first)
}

/// PROTOCOL D1: also where it comes faster than anybody could read it.
#[tokio::test]
async fn on_a_channel_of_one_caller_nothing_of_a_burst_is_lost_and_least_of_all_a_question() {
    unread();
    let (mux, mut inbox, mut first) = of_one();
    let speaking = async {
        for n in 0..1_000 {
            inbox.take(progress(1, n).into()).await.unwrap();
        }
        for _ in 0..1_000 {
            inbox.take(LOG.into()).await.unwrap();
        }
        inbox.take(ASKED.into()).await.unwrap();
        inbox.take(result(1, 1).into()).await.unwrap();
    };
    let (heard, ()) = tokio::join!(steps(&mut first), speaking);
    let mut expected = up_to(1_000);
    expected.extend(vec!["log".to_owned(); 1_000]);
    expected.extend(["roots/list".to_owned(), "{\"n\":1}".to_owned()]);
    assert_eq!(heard, expected);
    assert_eq!(unread(), 0);
    drop(inbox);
    assert_eq!(mux.unsolicited().unwrap().count().await, 0);
}

#[tokio::test]
async fn who_reads_at_once_misses_no_progress_where_others_must_not_be_held_up() {
    unread();
    let (mux, mut inbox) = mux();
    let mut exchange = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let speaking = async {
        for n in 0..1_000 {
            inbox.take(progress(1, n).into()).await.unwrap();
        }
        inbox.take(result(1, 1).into()).await.unwrap();
    };
    let (heard, ()) = tokio::join!(steps(&mut exchange), speaking);
    assert_eq!(heard.len(), 1_001);
    assert_eq!(unread(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_what_is_theirs_alone_holds_it_up_for_ten_seconds_and_is_asked_all_the_same()
 {
    unread();
    let (_mux, mut inbox, mut first) = of_one();
    let began = tokio::time::Instant::now();
    for n in 0..QUEUE {
        let n = u64::try_from(n).unwrap();
        inbox.take(progress(1, n).into()).await.unwrap();
    }
    // Whoever is asked need not have read what was told.
    inbox.take(ASKED.into()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    inbox.take(progress(1, 700).into()).await.unwrap();
    assert_eq!(began.elapsed(), STALL);
    for text in [progress(1, 701), LOG.to_owned(), progress(1, 702)] {
        inbox.take(text.into()).await.unwrap();
    }
    inbox.take(ASKED.into()).await.unwrap();
    assert_eq!(began.elapsed(), STALL, "once, until all of it is read");
    assert_eq!(unread(), 4);
    let mut heard = Vec::new();
    for _ in 0..QUEUE + 2 {
        heard.push(gist(&first.next().await.unwrap().unwrap()));
    }
    assert_eq!(heard.iter().filter(|it| *it == "roots/list").count(), 2);
    for _ in 0..QUEUE {
        inbox.take(LOG.into()).await.unwrap();
    }
    let mut waiting = Box::pin(inbox.take(progress(1, 800).into()));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    first.next().await.unwrap().unwrap();
    waiting.await.unwrap();
    inbox.take(result(1, 1).into()).await.unwrap();
    let rest = steps(&mut first).await;
    assert_eq!(rest.len(), QUEUE + 1);
    assert_eq!(rest[QUEUE - 1], "800");
    assert_eq!(unread(), 0);
}

/// A picture in a question is larger than all that waits beside it may be.
#[tokio::test]
async fn a_question_of_any_size_comes_behind_whatever_was_told_and_more_than_can_wait_are_refused()
{
    let (mux, mut inbox) = mux();
    mux.sort_by(Arc::new(First::default()));
    let mut first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    inbox.take(progress(1, 1).into()).await.unwrap();
    let large = ASKED.to_owned() + &" ".repeat(2 * HELD_BYTES);
    inbox.take(large.into()).await.unwrap();
    inbox.take(result(1, 1).into()).await.unwrap();
    assert_eq!(steps(&mut first).await, ["1", "roots/list", "{\"n\":1}"]);

    let (mux, mut inbox) = self::mux();
    mux.sort_by(Arc::new(First::default()));
    let mut first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    for _ in 0..=RESERVE {
        inbox.take(ASKED.into()).await.unwrap();
    }
    inbox.take(result(1, 1).into()).await.unwrap();
    assert_eq!(steps(&mut first).await.len(), RESERVE + 1);
    drop(inbox);
    assert_eq!(mux.unsolicited().unwrap().count().await, 1);
}

/// A frame of a batch costs what it carries, and what is too large for any queue is missed by nobody who must not miss it.
#[tokio::test]
async fn what_is_told_beside_something_large_comes_and_what_is_large_itself_is_missed_and_counted()
{
    unread();
    let (mux, mut inbox) = mux();
    let mut first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let batch = format!(
        "[{},{}{}]",
        progress(1, 7),
        result(1, 1),
        " ".repeat(HELD_BYTES)
    );
    inbox.take(batch.into()).await.unwrap();
    assert_eq!(steps(&mut first).await, ["7", "{\"n\":1}"]);
    assert_eq!(unread(), 0);

    let mut second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
    let large = |text: String| Bytes::from(text + &" ".repeat(HELD_BYTES));
    inbox.take(large(progress(2, 8))).await.unwrap();
    inbox.take(result(2, 2).into()).await.unwrap();
    assert_eq!(steps(&mut second).await, ["{\"n\":2}"]);
    assert_eq!(unread(), 1);

    let listen = mux.begin_listen(&id(3), Limits::UPSTREAM).unwrap();
    inbox.take(large(of_listen(3, "n"))).await.unwrap();
    let ended = Mux::answer(listen).await;
    assert!(matches!(ended, Err(UpstreamError::Unavailable { .. })));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_room_in_what_was_given_up_or_in_a_channel_that_is_about_to_end() {
    let began = tokio::time::Instant::now();
    for hurried in [false, true] {
        let (mux, mut inbox, first) = of_one();
        for _ in 0..QUEUE {
            inbox.take(LOG.into()).await.unwrap();
        }
        let mut waiting = Box::pin(inbox.take(LOG.into()));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let kept = if hurried {
            mux.hurry();
            Some(first)
        } else {
            drop(first);
            None
        };
        waiting.await.unwrap();
        inbox.take(LOG.into()).await.unwrap();
        drop(kept);
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// PROTOCOL D0.4: what names no exchange takes the way of the one it belongs to, and is not overtaken by what came after it.
#[tokio::test]
async fn what_belongs_to_an_exchange_without_naming_it_comes_in_its_turn_and_to_others_when_it_is_over()
 {
    let (mux, mut inbox) = mux();
    mux.sort_by(Arc::new(First::default()));
    let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
    let asked = || ASKED.to_owned();
    let line =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}".to_owned();
    for text in [
        asked(),
        progress(1, 1),
        line,
        asked(),
        result(1, 10),
        asked(),
    ] {
        inbox.take(text.into()).await.unwrap();
    }
    let its = [
        "roots/list",
        "notifications/progress",
        "roots/list",
        "{\"n\":10}",
    ];
    assert_eq!(all(first).await, its);
    drop(inbox);
    let others = mux.unsolicited().unwrap();
    let others: Vec<_> = others.map(|frame| gist(&frame.unwrap())).collect().await;
    assert_eq!(others, ["notifications/message", "roots/list"]);
}

/// SECURITY EGR-11: whoever waits is told at once, though the text is no JSON at all.
#[tokio::test]
async fn an_answer_that_is_no_json_is_told_to_whom_it_was_meant_for_and_to_nobody_else() {
    for text in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":\"a\u{1}b\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":NaN}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":",
    ] {
        let (mux, mut inbox) = mux();
        let first = mux.begin(&id(1), Limits::UPSTREAM).unwrap();
        let mut second = mux.begin(&id(2), Limits::UPSTREAM).unwrap();
        inbox.take(text.into()).await.unwrap();
        let told = Mux::answer(first).now_or_never().expect("told at once");
        assert!(matches!(told, Err(UpstreamError::Protocol(_))), "{text}");
        assert!(second.next().now_or_never().is_none(), "{text}");
    }
}
