//! What is taken and refused on a connection, and that what panics is answered.

use std::{
    future,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use futures_util::stream;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use tower::service_fn;

use super::*;
use crate::{
    audit::journal::Journal,
    call::{Call, Cut, Event, LogLevel, Op, Outcome, Reply, ReplyStream, ServerCard, Step, Trail},
    downstream::{Backing, DrainDeadline, MessageBounds, SessionBounds, Sessions, Starting, stdio},
    json::{Json, Limits},
    metrics::{Bound, seen},
    protocol::Revision,
    stack::{Error, McpService},
    tasks::{PerLaneArc, Tasks},
};

fn reason(refused: &Problem) -> Option<&'static str> {
    refused.early.map(|early| early.reason)
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}}}"#;

fn door(service: McpService) -> Door {
    let tasks = Tasks::new();
    Door {
        backing: PerLaneArc::from(Backing {
            service,
            tasks: tasks.clone(),
            drain_deadline: DrainDeadline::default(),
        }),
        sessions: Sessions::new(SessionBounds::default(), Arc::default(), &tasks),
        deadline: Duration::from_secs(60),
        closing: CancellationToken::new(),
        starting: Starting::default(),
        observed: false,
        bounds: MessageBounds::default(),
        journal: Journal::off(),
    }
}

fn piped(service: McpService) -> (Channel, mpsc::Receiver<Bytes>) {
    channel(service, true)
}

fn channel(service: McpService, piped: bool) -> (Channel, mpsc::Receiver<Bytes>) {
    over(door(service), piped)
}

fn over(door: Door, piped: bool) -> (Channel, mpsc::Receiver<Bytes>) {
    let (to, lines) = mpsc::channel(64);
    let identity = Identity::anonymous();
    let wrap = |segments: &[Bytes]| Bytes::from(segments.concat());
    let channel = Channel::new(Arc::new(door), identity, None, Scope::All, piped, to, wrap);
    (channel, lines)
}

/// The next line that answers the call.
async fn answer(lines: &mut mpsc::Receiver<Bytes>) -> String {
    loop {
        let line = timeout(Duration::from_secs(10), lines.recv());
        let line = line.await.expect("a line").expect("it is open");
        let line = String::from_utf8(line.to_vec()).unwrap();
        if line.contains("\"id\":1") {
            return line;
        }
    }
}

/// A stack that panics when it is called, when it is looked at, or in the middle of its answer.
fn panicking(when: u8) -> McpService {
    let stack = service_fn(move |_: Box<Call>| {
        assert!(when > 0, "as the test wants");
        future::ready(()).map(move |()| {
            assert!(when > 1, "as the test wants");
            let log = Event::Log(LogLevel::Error, Json::empty_object());
            let first = stream::once(future::ready(Step::Event(log)));
            let then = stream::once(async { panic!("as the test wants") });
            Ok(Reply::Stream(ReplyStream::new(first.chain(then).boxed())))
        })
    });
    McpService::new(|| stack)
}

#[tokio::test]
async fn lists_alone_wait_on_a_pipe_for_servers_that_are_starting() {
    let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
    let mut door = door(McpService::new(|| stack));
    let over = CancellationToken::new();
    door.starting = Starting::now(over.clone());
    let (channel, mut lines) = self::over(door, true);
    let list = CALL
        .replace("tools/call", "tools/list")
        .replace(":1,", ":2,");
    for line in [list, CALL.to_owned()] {
        let taken = channel.take(&channel.identity, line.into()).await;
        assert!(taken.is_ok());
    }
    let mut next = async || String::from_utf8(lines.recv().await.unwrap().to_vec()).unwrap();
    let first = next().await;
    assert!(first.contains("\"id\":1"), "{first}");
    over.cancel();
    let second = next().await;
    assert!(second.contains("\"id\":2"), "{second}");
}

// SECURITY 6
#[tokio::test]
async fn a_line_over_the_bound_is_refused_and_the_next_one_is_taken() {
    for (length, refused, bounds) in [
        (CALL.len(), "-32700", vec![]),
        (CALL.len() + 1, "body_too_large", vec![Bound::HttpBody]),
        (1 << 20, "body_too_large", vec![Bound::HttpBody]),
    ] {
        let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
        let mut door = door(McpService::new(|| stack));
        door.bounds.line_bytes = CALL.len();
        let (mut client, gateway) = tokio::io::duplex(64 << 10);
        let (input, output) = tokio::io::split(gateway);
        seen::take();
        let asking = async {
            let lines = format!("{}\n{CALL}\n", "x".repeat(length));
            client.write_all(lines.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            said
        };
        let serving = stdio::serve(Arc::new(door), input, output, future::pending());
        let (served, said) = tokio::join!(serving, asking);
        served.unwrap();
        let said: Vec<_> = said.lines().collect();
        assert_eq!(said.len(), 2, "{length}: {said:?}");
        assert!(
            said[0].contains(refused) && !said[0].contains("\"id\""),
            "{}",
            said[0]
        );
        assert_eq!(said[0].contains("-32600"), !bounds.is_empty());
        assert!(said[1].contains("\"id\":1"), "{}", said[1]);
        assert_eq!(seen::take(), bounds, "{length}");
    }
}

/// PROTOCOL B1.9: on a pipe nothing else says whose an answer is.
#[tokio::test]
async fn a_request_that_is_too_much_or_says_something_twice_is_refused_under_its_id() {
    let stack = service_fn(async |_: Box<Call>| panic!("nothing is called"));
    let mut door = door(McpService::new(|| stack));
    door.bounds.json = Limits {
        depth: 4,
        values: 16,
        members: 6,
        key_bytes: 16,
        number_bytes: 16,
    };
    let channel = over(door, true).0;
    for (arguments, word) in [
        (r#"{"a":[[1]]}"#, "too_deep"),
        (r#"{"a":[1,2,3,4,5,6,7,8,9]}"#, "too_many_values"),
        (
            r#"{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}"#,
            "too_many_members",
        ),
        (r#"{"a_name_that_is_too_long":1}"#, "key_too_long"),
        (r#"{"a":12345678901234567}"#, "number_too_long"),
        (r#"{"a":1,"a":2}"#, "duplicate_member"),
    ] {
        let call = OLD_CALL.replace("{}", arguments);
        let refused = channel.take(&channel.identity, call.into()).await;
        let refused = refused.unwrap_err();
        assert_eq!(reason(&refused), Some(word));
        let id = refused.id.as_ref().map(RequestId::as_str);
        assert_eq!(id, Some("1"), "{word}");
    }
    let broken = OLD_CALL.replace("{}", "{,}");
    let refused = channel.take(&channel.identity, broken.into()).await;
    assert!(refused.unwrap_err().id.is_none());
}

// SECURITY REL-1
#[tokio::test]
async fn rel_1_a_call_that_panics_is_answered_once_and_its_id_is_free_again() {
    for when in 0..3 {
        let (channel, mut lines) = piped(panicking(when));
        for _ in 0..2 {
            channel.take(&channel.identity, CALL.into()).await.unwrap();
            let line = answer(&mut lines).await;
            assert!(line.contains("-32603"), "{when}: {line}");
            assert_eq!(seen::take_panicked(), 1, "{when}");
        }
        timeout(Duration::from_secs(10), channel.finish())
            .await
            .unwrap();
        assert_eq!(lines.recv().await, None, "{when}");
    }
}

// SECURITY REL-1, 8
#[tokio::test]
async fn rel_1_the_trail_of_a_call_that_panicked_says_so_when_the_call_is_dropped() {
    /// Watches a call as its record does.
    struct Watch(Trail, Arc<Mutex<Vec<Option<Cut>>>>);
    impl Drop for Watch {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0.cut_reason());
        }
    }
    let told = Arc::<Mutex<Vec<_>>>::default();
    let noted = told.clone();
    let stack = service_fn(move |call: Box<Call>| {
        let watch = Watch(call.trail.clone(), noted.clone());
        // What is in a future stays when that panics.
        future::poll_fn(move |_| -> Poll<Result<Reply, Error>> {
            assert!(!watch.0.is_read(), "as the test wants");
            Poll::Pending
        })
    });
    let mut door = door(McpService::new(|| stack.clone()));
    door.observed = true;
    let (channel, mut lines) = over(door, true);
    channel.take(&channel.identity, CALL.into()).await.unwrap();
    assert!(answer(&mut lines).await.contains("-32603"));
    channel.finish().await;
    assert_eq!(*told.lock().unwrap(), [Some(Cut::Panicked)]);
}

// SECURITY REL-1
#[tokio::test]
async fn rel_1_who_is_owed_nothing_is_answered_nothing_where_it_panics() {
    let (channel, mut lines) = piped(panicking(0));
    caught(&channel.out, Owed::Nothing, async {
        panic!("as the test wants")
    })
    .await;
    assert_eq!(seen::take_panicked(), 1);
    caught(&channel.out, Owed::Response(None), async {
        panic!("as the test wants")
    })
    .await;
    let line = lines.recv().await.unwrap();
    let line = String::from_utf8(line.to_vec()).unwrap();
    assert!(
        line.contains("-32603") && !line.contains("\"id\":1"),
        "{line}"
    );
    assert!(lines.try_recv().is_err());
}

// SECURITY MSG-3
#[tokio::test(start_paused = true)]
async fn msg_3_what_is_refused_for_a_name_is_not_carried_out() {
    let stack = service_fn(async |_: Box<Call>| {
        // By a clock that stands until nothing else is left to do.
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(Error::Deadline)
    });
    let (channel, mut lines) = piped(McpService::new(|| stack));
    channel.take(&channel.identity, CALL.into()).await.unwrap();
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"RequestId":2}}"#;
    let refused = channel.take(&channel.identity, told.into()).await;
    assert_eq!(reason(&refused.unwrap_err()), Some("confusable_member"));
    // It runs on, and is answered.
    answer(&mut lines).await;
    let call = CALL.replace("\"name\"", "\"Name\":1,\"name\"");
    channel.take(&channel.identity, call.into()).await.unwrap();
    assert!(answer(&mut lines).await.contains("confusable_member"));
}

/// SECURITY REL-3, REL-5: what makes room comes on the same pipe, and must not wait for it.
#[tokio::test]
async fn what_there_is_no_room_for_on_a_pipe_is_refused_and_what_makes_room_is_taken() {
    let stack = service_fn(async |_: Box<Call>| future::pending().await);
    let (channel, mut lines) = piped(McpService::new(|| stack));
    let call = |id: u32| CALL.replace("\"id\":1,", &format!("\"id\":{id},"));
    let take = async |text: String| {
        let taken = channel.take(&channel.identity, text.into());
        taken.now_or_never().expect("nothing waits")
    };
    for id in 1..=IN_FLIGHT {
        take(call(id)).await.unwrap();
    }
    let begin = r#"{"jsonrpc":"2.0","id":257,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    for text in [call(IN_FLIGHT + 1), begin.to_owned()] {
        let refused = take(text).await.unwrap_err();
        assert_eq!(reason(&refused), Some("overloaded"));
        assert_eq!(refused.id.unwrap().as_str(), "257");
    }
    let batch = r#"[{"jsonrpc":"2.0","id":257,"method":"ping"}]"#;
    let refused = take(batch.to_owned()).await.unwrap_err();
    assert_eq!(reason(&refused), Some("overloaded"));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    take(cancel.to_owned()).await.unwrap();
    timeout(Duration::from_secs(10), async {
        while channel.room.available_permits() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it was cancelled");
    take(call(IN_FLIGHT + 1)).await.unwrap();
    assert!(lines.try_recv().is_err());
}

/// PROTOCOL A4: a cancellation on a pipe says nothing of its era.
#[tokio::test]
async fn notifications_on_a_pipe_without_a_session_are_taken_and_not_answered() {
    let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
    let (channel, mut lines) = piped(McpService::new(|| stack));
    for told in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        let message = decode(told.into(), &channel.door.bounds.json).unwrap();
        let inbound = channel.inbound(&channel.identity);
        let answer = channel.door.accept_decoded(inbound, message).await;
        assert!(matches!(answer, Answer::Accepted), "{told}");
        channel.take(&channel.identity, told.into()).await.unwrap();
    }
    assert!(lines.try_recv().is_err());
    // Elsewhere it says by its headers that it belongs to a session.
    let (channel, mut lines) = self::channel(McpService::new(|| stack), false);
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    channel.take(&channel.identity, told.into()).await.unwrap();
    let line = lines.try_recv().unwrap();
    assert!(String::from_utf8_lossy(&line).contains("session_required"));
}

#[tokio::test]
async fn a_session_that_nobody_was_told_of_ends() {
    let stack = service_fn(async |_: Box<Call>| future::pending().await);
    let (channel, _lines) = piped(McpService::new(|| stack));
    let begin = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let mut beginning = Box::pin(channel.take(&channel.identity, begin.into()));
    assert!(beginning.as_mut().now_or_never().is_none(), "it waits");
    assert_eq!(channel.door.sessions.count(), 1);
    drop(beginning);
    assert_eq!(channel.door.sessions.count(), 0);
}

#[tokio::test]
async fn a_handshake_that_is_read_when_its_connection_is_over_leaves_no_session() {
    let card = ServerCard {
        revision: Revision::V2024_11_05,
        capabilities: Json::empty_object(),
        instructions: None,
        server_info: None,
        ttl_millis: 0,
    };
    let stack =
        service_fn(move |_: Box<Call>| future::ready(Ok(Reply::Done(Outcome::Card(card.clone())))));
    let begin = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}"#;
    for over in [false, true] {
        let (channel, _lines) = channel(McpService::new(|| stack.clone()), false);
        if over {
            channel.end();
        }
        channel.take(&channel.identity, begin.into()).await.unwrap();
        let open = usize::from(!over);
        assert_eq!(channel.door.sessions.count(), open);
        assert_eq!(usize::from(channel.state().session.is_some()), open);
    }
}

#[tokio::test]
async fn the_last_line_may_end_with_the_input() {
    for last in ["", "\n", " "] {
        let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
        let door = door(McpService::new(|| stack));
        let (mut client, gateway) = tokio::io::duplex(64 << 10);
        let (input, output) = tokio::io::split(gateway);
        let asking = async {
            let lines = format!("{CALL}{last}");
            client.write_all(lines.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            said
        };
        let serving = stdio::serve(Arc::new(door), input, output, future::pending());
        let (served, said) = tokio::join!(serving, asking);
        served.unwrap();
        assert_eq!(said.lines().count(), 1, "{last:?}: {said}");
        assert!(said.contains("\"id\":1"), "{said}");
    }
}

/// One of the era with sessions, for a connection that is no pipe.
const OLD_CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;

#[tokio::test]
async fn who_gives_up_while_there_is_no_room_may_come_again() {
    let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
    let (channel, mut lines) = channel(McpService::new(|| stack), false);
    let all = channel.room.clone().acquire_many_owned(IN_FLIGHT).await;
    let waiting = channel.take(&channel.identity, OLD_CALL.into());
    assert!(waiting.now_or_never().is_none(), "it waits");
    drop(all);
    let taken = channel.take(&channel.identity, OLD_CALL.into());
    taken.await.unwrap();
    let answer = answer(&mut lines).await;
    assert!(!answer.contains("duplicate"), "{answer}");
}

#[tokio::test]
async fn what_is_cancelled_while_there_is_no_room_for_it_is_not_carried_out() {
    let stack = service_fn(async |_: Box<Call>| panic!("it was cancelled"));
    let (channel, mut lines) = channel(McpService::new(|| stack), false);
    let all = channel.room.clone().acquire_many_owned(IN_FLIGHT).await;
    let mut waiting = Box::pin(channel.take(&channel.identity, OLD_CALL.into()));
    assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    channel
        .take(&channel.identity, cancel.into())
        .await
        .unwrap();
    drop(all);
    waiting.await.unwrap();
    // Its id is free again, and nothing was said to it.
    assert!(channel.state().running.is_empty());
    assert!(lines.try_recv().is_err());
    assert_eq!(channel.room.available_permits(), IN_FLIGHT as usize);
}

// SECURITY REL-7
#[tokio::test]
async fn rel_7_what_comes_when_all_is_answered_is_refused_by_its_id_which_stays_free() {
    let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
    let (channel, _lines) = piped(McpService::new(|| stack));
    channel.settle().await;
    for _ in 0..2 {
        let refused = channel.take(&channel.identity, CALL.into()).await;
        let refused = refused.unwrap_err();
        assert_eq!(reason(&refused), Some("shutting_down"));
        assert_eq!(refused.id.unwrap().as_str(), "1");
    }
}

// SECURITY REL-7
#[tokio::test]
async fn rel_7_what_comes_when_the_gateway_stops_is_refused() {
    let stack = service_fn(async |_: Box<Call>| Err(Error::Deadline));
    let (channel, _lines) = piped(McpService::new(|| stack));
    channel.door.closing.cancel();
    let refused = channel.take(&channel.identity, CALL.into()).await;
    let refused = refused.unwrap_err();
    assert_eq!(reason(&refused), Some("shutting_down"));
    assert_eq!(refused.id.unwrap().as_str(), "1");
    // What is no request may be what a running one waits for.
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(channel.take(&channel.identity, told.into()).await.is_ok());
}

/// SECURITY REL-3
#[tokio::test]
async fn what_is_on_the_way_is_held_for_whoever_is_told() {
    let who: Arc<str> = "of the channel".into();
    let (to, mut told) = mpsc::channel(1);
    let out = Out {
        to,
        wrap: |segments| segments.concat().into(),
        payer: Some(who.clone()),
        asked: CancellationToken::new(),
    };
    let frame = Bytes::from(vec![b'x'; memory::SMALL + 1]);
    let length = frame.len() as u64;
    out.tell(Answer::Frame(FrameResponse::ok(vec![frame])))
        .await;
    let held = || memory::process().held_for(&who);
    assert_eq!(held(), length);
    drop(told.recv().await);
    assert_eq!(held(), 0);
}

/// PROTOCOL B7: what has no end of its own keeps nobody from being heard, whoever ends it among them.
#[tokio::test]
async fn as_many_listens_as_anybody_likes_leave_room_for_all_else() {
    let stack = service_fn(async |call: Box<Call>| {
        let Op::Listen(filter) = call.op else {
            return Err(Error::Deadline);
        };
        let heard = future::ready(Step::Event(Event::Acknowledged(filter)));
        let all = stream::once(heard).chain(stream::pending());
        Ok(Reply::Stream(ReplyStream::new(all.boxed())))
    });
    let (channel, mut lines) = piped(McpService::new(|| stack));
    let listen = |id: u32| {
        let listen = CALL.replace("tools/call", "subscriptions/listen");
        let listen = listen.replace("\"name\":\"t\",\"arguments\":{}", "\"notifications\":{}");
        listen.replace("\"id\":1,", &format!("\"id\":{id},"))
    };
    let first = 2_000;
    let most = first + LISTENS;
    let take = async |text: String| {
        let taken = channel.take(&channel.identity, text.into());
        timeout(Duration::from_secs(10), taken)
            .await
            .expect("it is taken")
    };
    for id in first..most {
        take(listen(id)).await.unwrap();
    }
    for id in most..most + IN_FLIGHT {
        let refused = take(listen(id)).await.unwrap_err();
        assert_eq!(reason(&refused), Some("rate_limited"));
        assert_eq!(refused.id.unwrap().as_str(), id.to_string());
    }
    take(CALL.into()).await.unwrap();
    let answer = answer(&mut lines).await;
    assert!(answer.contains("deadline_exceeded"), "{answer}");
    // One ends, and another may begin.
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2000}}"#;
    take(cancel.into()).await.unwrap();
    timeout(Duration::from_secs(10), async {
        while channel.listens.available_permits() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it ended");
    take(listen(2_000)).await.unwrap();
    // So do all when nothing more comes.
    let told = async { while lines.recv().await.is_some() {} };
    timeout(
        Duration::from_secs(10),
        futures_util::future::join(channel.finish(), told),
    )
    .await
    .expect("all ended");
}

/// PROTOCOL G22: an id is what it reads as, not how it is spelled.
#[tokio::test]
async fn who_cancels_may_spell_the_id_in_another_way() {
    let stack = service_fn(async |_: Box<Call>| future::pending().await);
    let (channel, mut lines) = piped(McpService::new(|| stack));
    let call = |id: &str| CALL.replace("\"id\":1,", &format!("\"id\":{id},"));
    let take = async |text: String| channel.take(&channel.identity, text.into()).await.unwrap();
    take(call(r#""\u0061""#)).await;
    take(call(r#""a""#)).await;
    let twice = timeout(Duration::from_secs(10), lines.recv());
    let twice = twice.await.expect("it is refused").unwrap();
    assert!(
        String::from_utf8(twice.to_vec())
            .unwrap()
            .contains("duplicate_id")
    );
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
    take(cancel.into()).await;
    timeout(Duration::from_secs(10), async {
        while channel.room.available_permits() < IN_FLIGHT as usize {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it was cancelled");
}

/// PRODUCT 5: that nothing could be heard for a while is no change.
#[tokio::test(start_paused = true)]
async fn a_session_whose_listen_is_refused_is_told_nothing_until_it_hears_again() {
    let (tries, mut tried) = mpsc::channel(16);
    let stack = service_fn(move |call: Box<Call>| {
        assert!(call.unasked);
        tries.try_send(tokio::time::Instant::now()).unwrap();
        future::ready(Err(Error::Deadline))
    });
    let (channel, _lines) = piped(McpService::new(|| stack.clone()));
    let session = Session::for_tests();
    let mut notices = session.notices(&channel.door.backing.tasks).unwrap();
    Legacy {
        door: &channel.door,
    }
    .hear(&session);
    let mut at = Vec::new();
    for _ in 0..7 {
        at.push(tried.recv().await.unwrap());
    }
    let waits: Vec<_> = at
        .windows(2)
        .map(|two| (two[1] - two[0]).as_secs())
        .collect();
    assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    assert!(
        notices.next().now_or_never().is_none(),
        "nothing has changed"
    );
}
