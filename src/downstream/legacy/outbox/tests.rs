//! Streams, their readers, and what is kept of them, without sockets.

use std::task::Poll;

use futures_util::{StreamExt, stream, task::noop_waker};
use tokio::sync::mpsc;

use super::{
    streams::{ALL_KEPT_BYTES, RESUMABLE},
    *,
};
use crate::downstream::legacy::Session;
use crate::{metrics::seen, protocol::methods::ListKind, tasks::Tasks};

/// The most notices that wait here, and resources that are watched.
const WAITING: usize = 20;
const WATCHED: usize = 4;
const ROOM: Room = Room {
    notices: WAITING,
    bytes: 1_000,
    watched: WATCHED,
};

fn outbox() -> Outbox {
    Outbox::new(Arc::new(Shared::keeping(ROOM)), None)
}

fn updated(uri: &str) -> Notice {
    Notice::updated(uri.into())
}

fn below(watched: &str, uri: &str) -> Notice {
    let (uri, watched) = (uri.into(), watched.into());
    Notice::Updated { uri, watched }
}

/// What a reader gets now: events as text, then how it stands.
fn read(outbox: &Outbox, place: &mut Place) -> (Vec<String>, bool) {
    let waker = noop_waker();
    let cx = &mut Context::from_waker(&waker);
    let mut events = Vec::new();
    loop {
        match outbox.look(place, cx) {
            Look::Event(event) => events.push(text(&event)),
            Look::Wait => return (events, true),
            Look::Over => return (events, false),
            Look::Ask(feed) => match feed.lock().unwrap().poll_next_unpin(cx) {
                Poll::Pending => return (events, true),
                Poll::Ready(frame) => match outbox.fed(place, frame) {
                    Some(event) => events.push(text(&event)),
                    None => return (events, false),
                },
            },
        }
    }
}

fn text(event: &Bytes) -> String {
    String::from_utf8(event.to_vec()).unwrap()
}

fn id(event: &str) -> String {
    let line = event.lines().find_map(|line| line.strip_prefix("id: "));
    line.unwrap().to_owned()
}

fn data(events: &[String]) -> Vec<&str> {
    events
        .iter()
        .map(|event| {
            event
                .lines()
                .find_map(|line| line.strip_prefix("data: "))
                .unwrap()
        })
        .collect()
}

/// A feed that the test says the frames of.
fn feed() -> (mpsc::Sender<&'static str>, Feed) {
    let (say, heard) = mpsc::channel(2_000);
    let frames = stream::unfold(heard, |mut heard| async move {
        let frame: &str = heard.recv().await?;
        Some((vec![Bytes::from_static(frame.as_bytes())], heard))
    });
    (say, Arc::new(Mutex::new(frames.boxed())))
}

#[test]
fn a_stream_is_replayed_from_any_of_its_events_and_goes_on_live() {
    let outbox = outbox();
    let (say, frames) = feed();
    let (other, _) = (feed(), feed());
    let mut place = outbox.carry(frames);
    let mut strange = outbox.carry(other.1);
    let from_start = outbox.first_id(&place);
    for frame in ["a", "b", "c"] {
        say.try_send(frame).unwrap();
    }
    other.0.try_send("not this").unwrap();
    let (first, open) = read(&outbox, &mut place);
    assert!(open);
    assert_eq!(data(&first), ["a", "b", "c"]);
    read(&outbox, &mut strange);

    let mut again = outbox.resume(&id(&first[0])).unwrap();
    say.try_send("d").unwrap();
    assert_eq!(
        read(&outbox, &mut place),
        (vec![], false),
        "taken over from"
    );
    let (rest, _) = read(&outbox, &mut again);
    assert_eq!(data(&rest), ["b", "c", "d"]);
    assert_eq!(id(&rest[0]), id(&first[1]), "the same ids");
    let mut all = outbox.resume(&from_start).unwrap();
    drop(say);
    let (all, open) = read(&outbox, &mut all);
    assert_eq!((data(&all), open), (vec!["a", "b", "c", "d"], false));
}

#[test]
fn an_answer_goes_on_without_its_reader_and_is_there_when_it_comes_back() {
    let outbox = outbox();
    let (say, frames) = feed();
    let mut place = outbox.carry(frames);
    say.try_send("a").unwrap();
    let (events, _) = read(&outbox, &mut place);
    let mut alone = outbox.leave(&place).expect("somebody drives it on");
    assert!(!outbox.is_read());
    say.try_send("b").unwrap();
    read(&outbox, &mut alone);
    say.try_send("c").unwrap();
    drop(say);
    assert!(!read(&outbox, &mut alone).1);
    let mut back = outbox.resume(&id(&events[0])).unwrap();
    let (rest, open) = read(&outbox, &mut back);
    assert_eq!((data(&rest), open), (vec!["b", "c"], false));
    assert!(outbox.leave(&back).is_none(), "nothing left to drive");
}

#[test]
fn ids_of_other_sessions_are_unknown_and_those_no_longer_kept_expired() {
    let (own, other) = (outbox(), outbox());
    let place = own.carry(feed().1);
    let foreign = other.first_id(&other.carry(feed().1));
    assert_eq!(own.resume(&foreign).unwrap_err(), CannotResume::Unknown);
    assert_eq!(own.resume("0-0").unwrap_err(), CannotResume::Unknown);
    let id = own.first_id(&place);
    own.lock().forget(place.stream, &own.shared);
    assert_eq!(own.resume(&id).unwrap_err(), CannotResume::Expired);
    let notices = own.open(Form::Events).unwrap();
    let id = own.first_id(&notices);
    own.lock().forget(notices.stream, &own.shared);
    let expired = own.resume(&id).unwrap_err();
    assert_eq!(expired, CannotResume::ExpiredNotices);
}

#[test]
fn an_answer_that_is_over_is_resumed_only_for_what_is_left_of_it() {
    let outbox = outbox();
    let (say, frames) = feed();
    let mut place = outbox.carry(frames);
    let first = outbox.first_id(&place);
    say.try_send("a").unwrap();
    let (events, _) = read(&outbox, &mut place);
    assert!(outbox.resume(&id(&events[0])).is_ok(), "it may go on");
    let mut place = outbox.resume(&id(&events[0])).unwrap();
    drop(say);
    read(&outbox, &mut place);
    assert!(outbox.resume(&first).is_ok());
    let over = outbox.resume(&id(&events[0])).unwrap_err();
    assert_eq!(over, CannotResume::Expired);
}

#[test]
fn what_is_kept_is_bounded_in_events_and_in_bytes_and_gaps_are_refused() {
    let outbox = outbox();
    let (say, frames) = feed();
    let mut place = outbox.carry(frames);
    let start = outbox.first_id(&place);
    for _ in 0..KEPT_EVENTS {
        say.try_send("x").unwrap();
    }
    let (events, _) = read(&outbox, &mut place);
    assert_eq!(outbox.resume(&start).map(drop), Ok(()));
    let mut place = outbox.resume(&id(events.last().unwrap())).unwrap();
    say.try_send("one more").unwrap();
    read(&outbox, &mut place);
    assert_eq!(outbox.resume(&start).unwrap_err(), CannotResume::Expired);
    let mut place = outbox.resume(&id(&events[0])).unwrap();
    assert_eq!(read(&outbox, &mut place).0.len(), KEPT_EVENTS);

    let big: &'static str = Box::leak("y".repeat(KEPT_BYTES / 2).into_boxed_str());
    say.try_send(big).unwrap();
    say.try_send(big).unwrap();
    let (bigs, _) = read(&outbox, &mut place);
    assert_eq!(bigs.len(), 2);
    assert!(outbox.resume(&id(&bigs[0])).is_ok());
    assert_eq!(
        outbox.resume(&id(events.last().unwrap())).unwrap_err(),
        CannotResume::Expired
    );
    assert!(outbox.shared.kept.load(Ordering::Relaxed) <= KEPT_BYTES);

    let mut place = outbox.resume(&id(&bigs[1])).unwrap();
    let huge: &'static str = Box::leak("z".repeat(KEPT_BYTES + 1).into_boxed_str());
    say.try_send(huge).unwrap();
    say.try_send("after").unwrap();
    let (last, _) = read(&outbox, &mut place);
    assert_eq!(last.len(), 2, "it is told, and not kept");
    assert_eq!(
        outbox.resume(&id(&bigs[1])).unwrap_err(),
        CannotResume::Expired
    );
    assert!(outbox.resume(&id(&last[0])).is_ok());
    outbox.close();
    assert_eq!(outbox.shared.kept.load(Ordering::Relaxed), 0);
}

#[test]
fn who_reads_an_answer_when_the_session_ends_gets_its_last_word_and_nobody_else_anything() {
    let outbox = outbox();
    let (say, frames) = feed();
    let mut read_on = outbox.carry(frames);
    let (lost, frames) = feed();
    let alone = outbox.carry(frames);
    outbox.leave(&alone);
    let mut notices = outbox.open(Form::Events).unwrap();
    outbox.notify(updated("a://x"));
    for say in [&say, &lost] {
        say.try_send("ended").unwrap();
    }
    outbox.close();
    assert!(lost.is_closed() && say.is_closed(), "they are let go of");
    assert_eq!(read(&outbox, &mut notices), (vec![], false));
    let (last, more) = read(&outbox, &mut read_on);
    assert_eq!((data(&last), more), (vec!["ended"], false));
    outbox.leave(&read_on);
    assert_eq!(outbox.shared.kept.load(Ordering::Relaxed), 0);
    // Nor does what comes to be a stream only now wait for ever.
    let (say, frames) = feed();
    say.try_send("ended").unwrap();
    let mut late = outbox.carry(frames);
    let (last, more) = read(&outbox, &mut late);
    assert_eq!((data(&last), more), (vec!["ended"], false));
    let mut idle = outbox.open(Form::Events).unwrap();
    assert_eq!(read(&outbox, &mut idle), (vec![], false));
}

#[test]
fn a_reader_that_comes_to_ask_when_all_is_said_gets_the_last_word() {
    let outbox = outbox();
    let (say, frames) = feed();
    let mut place = outbox.carry(frames);
    let mut context = Context::from_waker(Waker::noop());
    let Look::Ask(feed) = outbox.look(&mut place, &context) else {
        panic!("nothing is said yet")
    };
    say.try_send("ended").unwrap();
    drop(say);
    outbox.close();
    assert!(outbox.reads(&place));
    let frame = feed.lock().unwrap().poll_next_unpin(&mut context);
    assert!(matches!(frame, Poll::Ready(None)));
    let event = outbox.fed(&mut place, None).map(|event| text(&event));
    assert_eq!(data(&[event.unwrap()]), ["ended"]);
    assert!(matches!(outbox.look(&mut place, &context), Look::Over));
}

#[test]
fn the_process_keeps_only_so_much_of_all_sessions() {
    let shared = Arc::new(Shared::keeping(ROOM));
    let (full, other) = (
        Outbox::new(shared.clone(), None),
        Outbox::new(shared.clone(), None),
    );
    shared.kept.store(ALL_KEPT_BYTES - 80, Ordering::Relaxed);
    let kept = |outbox: &Outbox| {
        let (say, frames) = feed();
        let mut place = outbox.carry(frames);
        say.try_send("x").unwrap();
        read(outbox, &mut place);
        let id = outbox.first_id(&place);
        outbox.resume(&id).is_ok()
    };
    assert!(kept(&full));
    assert!(!kept(&other), "there is no room for a second");
    assert!(kept(&full), "its own oldest goes");
    drop(full);
    assert!(kept(&other));
    drop(other);
    assert_eq!(shared.kept.load(Ordering::Relaxed), ALL_KEPT_BYTES - 80);
}

#[test]
fn each_notice_goes_to_the_one_stream_opened_last_and_waits_where_none_is() {
    let outbox = outbox();
    outbox.notify(updated("a"));
    let mut first = outbox.open(Form::Events).unwrap();
    let (early, _) = read(&outbox, &mut first);
    assert!(early[0].contains("\"uri\":\"a\""), "{early:?}");
    let mut second = outbox.open(Form::Events).unwrap();
    outbox.notify(updated("b"));
    assert!(read(&outbox, &mut first).0.is_empty());
    assert_eq!(read(&outbox, &mut second).0.len(), 1);
    assert!(outbox.leave(&second).is_none());
    outbox.notify(updated("c"));
    assert_eq!(read(&outbox, &mut first).0.len(), 1);
    // Coming back is opening, too.
    let mut second = outbox.resume(&outbox.first_id(&second)).unwrap();
    assert_eq!(read(&outbox, &mut second).0.len(), 1, "only its own again");
    outbox.notify(updated("d"));
    assert!(read(&outbox, &mut first).0.is_empty());
    assert_eq!(read(&outbox, &mut second).0.len(), 1);
}

#[test]
fn notices_that_say_the_same_wait_as_one() {
    let outbox = outbox();
    for _ in 0..1_000 {
        outbox.notify(Notice::list(ListKind::Tools));
        outbox.notify(Notice::list(ListKind::Resources));
        outbox.notify(Notice::list(ListKind::Templates));
        outbox.notify(updated("a"));
    }
    let mut place = outbox.open(Form::Frames).unwrap();
    assert_eq!(
        read(&outbox, &mut place).0,
        [
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}"#,
        ]
    );
}

#[test]
fn a_reader_that_lets_the_queue_fill_is_cut_off_and_another_goes_on() {
    let outbox = outbox();
    let mut other = outbox.open(Form::Events).unwrap();
    let mut slow = outbox.open(Form::Events).unwrap();
    for number in 0..WAITING {
        outbox.notify(updated(&number.to_string()));
    }
    assert_eq!(outbox.shared.slow.load(Ordering::Relaxed), 0);
    outbox.notify(updated("too much"));
    assert_eq!(outbox.shared.slow.load(Ordering::Relaxed), 1);
    assert_eq!(read(&outbox, &mut slow), (vec![], false));
    let (told, open) = read(&outbox, &mut other);
    // Nothing was lost by that.
    assert_eq!((told.len(), open), (WAITING + 1, true));
    assert!(told[WAITING].contains("too much"));
}

/// SECURITY REL-4, 6: where nobody reads, that a list is another one now waits as long as it takes, and a watched resource stands
/// for what is too much below it.
#[test]
fn what_nobody_reads_is_merged_and_counted_and_no_list_is_lost() {
    const LENGTH: usize = "dir:/100".len();
    for (room, notices) in [
        (ROOM, WAITING + 1),
        (
            Room {
                bytes: 3 * LENGTH,
                ..ROOM
            },
            3 + 2,
        ),
        (
            Room {
                bytes: 4 * LENGTH - 1,
                ..ROOM
            },
            3 + 2,
        ),
    ] {
        let outbox = Outbox::new(Arc::new(Shared::keeping(room)), None);
        outbox.notify(Notice::list(ListKind::Tools));
        seen::take();
        for number in 100..400 {
            outbox.notify(below("dir:", &format!("dir:/{number}")));
        }
        let noted = seen::take();
        assert!(!noted.is_empty());
        assert!(noted.iter().all(|bound| *bound == Bound::StreamBuffer));
        outbox.notify(Notice::list(ListKind::Prompts));
        let mut place = outbox.open(Form::Events).unwrap();
        let (told, _) = read(&outbox, &mut place);
        assert_eq!(told.len(), notices + 1, "{told:?}");
        assert!(told[0].contains("tools/list_changed"));
        assert!(told[notices - 1].contains(r#""uri":"dir:""#), "{told:?}");
        assert!(told[notices].contains("prompts/list_changed"));
        assert_eq!(outbox.shared.slow.load(Ordering::Relaxed), 0);
        // What was taken has left its room behind.
        outbox.notify(below("dir:", "dir:/100"));
        assert_eq!(seen::take(), []);
        assert_eq!(read(&outbox, &mut place).0.len(), 1);
    }
}

#[test]
fn what_is_watched_has_room_of_its_own_and_who_watches_ever_others_loses_the_oldest_of_those() {
    let outbox = outbox();
    outbox.notify(Notice::list(ListKind::Tools));
    seen::take();
    for number in 1..WAITING + WATCHED {
        outbox.notify(updated(&number.to_string()));
    }
    assert_eq!(seen::take(), []);
    outbox.notify(updated("last"));
    assert_eq!(seen::take(), [Bound::StreamBuffer]);
    // A resource that is watched no more is not told of.
    outbox.forget("3");
    let mut place = outbox.open(Form::Frames).unwrap();
    let (told, _) = read(&outbox, &mut place);
    assert_eq!(told.len(), WAITING + WATCHED - 1);
    assert!(told[0].contains("tools/list_changed"), "{told:?}");
    assert!(told[1].contains(r#""uri":"2""#), "{told:?}");
    assert!(told[2].contains(r#""uri":"4""#), "{told:?}");
}

#[test]
fn a_change_that_waits_for_two_watched_resources_is_told_once_and_for_the_one_that_is_left() {
    for (unwatched, more) in [(None, 1), (Some("dir:"), 0)] {
        let outbox = outbox();
        outbox.notify(below("dir:", "dir:/a"));
        outbox.notify(updated("dir:/a"));
        outbox.notify(below("dir:", "dir:/b"));
        if let Some(watched) = unwatched {
            outbox.forget(watched);
        }
        let mut place = outbox.open(Form::Frames).unwrap();
        let (told, _) = read(&outbox, &mut place);
        assert_eq!(told.len(), 1 + more, "{told:?}");
        assert!(told[0].contains(r#""uri":"dir:/a""#), "{told:?}");
        // It is told of again when it changes again.
        outbox.notify(updated("dir:/a"));
        assert_eq!(read(&outbox, &mut place).0.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_lets_a_notice_wait_is_cut_off_and_a_pipe_is_not() {
    let outbox = outbox();
    let mut pipe = outbox.open(Form::Frames).unwrap();
    outbox.notify(updated("a"));
    tokio::time::advance(SLOW).await;
    outbox.sweep(Instant::now());
    assert_eq!(read(&outbox, &mut pipe).0.len(), 1);
    let mut slow = outbox.open(Form::Events).unwrap();
    outbox.notify(updated("b"));
    tokio::time::advance(SLOW).await;
    outbox.sweep(Instant::now());
    assert_eq!(read(&outbox, &mut slow), (vec![], false));
    assert_eq!(outbox.shared.slow.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn streams_are_forgotten_some_time_after_their_reader_left_and_after_their_end() {
    let outbox = outbox();
    let (say, frames) = feed();
    let place = outbox.carry(frames);
    let first = outbox.first_id(&place);
    let mut alone = outbox.leave(&place).unwrap();
    tokio::time::advance(KEEP * 2).await;
    outbox.sweep(Instant::now());
    assert!(outbox.is_answer(&alone), "it is still running");
    say.try_send("a").unwrap();
    drop(say);
    read(&outbox, &mut alone);
    tokio::time::advance(KEEP - Duration::from_millis(1)).await;
    outbox.sweep(Instant::now());
    let back = outbox.resume(&first).unwrap();
    outbox.leave(&back);
    tokio::time::advance(KEEP).await;
    outbox.sweep(Instant::now());
    assert_eq!(outbox.resume(&first).unwrap_err(), CannotResume::Expired);
    assert_eq!(outbox.shared.kept.load(Ordering::Relaxed), 0);
}

#[test]
fn only_so_many_streams_of_notices_are_open_and_only_so_many_are_remembered() {
    let outbox = outbox();
    let open: Vec<_> = (0..OPEN)
        .map(|_| outbox.open(Form::Events).unwrap())
        .collect();
    assert!(outbox.open(Form::Events).is_none());
    for place in &open {
        outbox.leave(place);
    }
    for _ in 0..RESUMABLE * 2 {
        let place = outbox.open(Form::Events).unwrap();
        outbox.leave(&place);
    }
    assert!(outbox.lock().streams.len() <= RESUMABLE + 1);
}

#[tokio::test]
async fn a_dropped_reader_leaves_its_answer_running_and_the_end_of_the_session_ends_it() {
    let (tasks, session) = (Tasks::new(), Session::for_tests());
    let (say, frames) = feed();
    let place = session.outbox.carry(frames);
    let first = session.outbox.first_id(&place);
    session.outbox.leave(&place);
    let reader = session.resume(&tasks, &first).unwrap();
    drop(reader);
    say.send("a").await.unwrap();
    let mut reader = session.resume(&tasks, &first).unwrap();
    let mut next = async || text(&reader.next().await.unwrap());
    assert_eq!(next().await, ": open\n");
    assert!(next().await.contains("data: a"));
    session.end();
    assert!(reader.next().await.is_none());
    say.closed().await;
}

#[tokio::test]
async fn an_answer_that_becomes_a_stream_when_its_session_has_ended_is_kept_by_nobody() {
    let session = Session::for_tests();
    let (say, frames) = feed();
    session.end();
    let mut place = session.outbox.carry(frames);
    assert_eq!(read(&session.outbox, &mut place), (vec![], false));
    assert!(session.outbox.leave(&place).is_none());
    let gone = tokio::time::timeout(Duration::from_secs(10), say.closed());
    assert!(gone.await.is_ok(), "somebody still holds it");
}

/// SECURITY REL-3
#[test]
fn what_goes_out_is_held_for_its_client_and_what_is_kept_is_not() {
    let who: Arc<str> = "of the outbox".into();
    let outbox = Outbox::new(Arc::new(Shared::keeping(ROOM)), Some(who.clone()));
    let held = || memory::process().held_for(&who);
    let waker = noop_waker();
    let cx = &mut Context::from_waker(&waker);
    let (say, frames) = feed();
    let mut place = outbox.carry(frames);
    say.try_send("x".repeat(memory::SMALL).leak()).unwrap();
    let Look::Ask(feed) = outbox.look(&mut place, cx) else {
        panic!("an answer is asked for")
    };
    let Poll::Ready(frame) = feed.lock().unwrap().poll_next_unpin(cx) else {
        panic!("it is there")
    };
    let event = outbox.fed(&mut place, frame).unwrap();
    let (length, first) = (event.len() as u64, id(&text(&event)));
    assert_eq!(held(), length);
    drop(event);
    assert_eq!(held(), 0, "it was read");
    // The one before it is told again from what is kept.
    let before = outbox.first_id(&place);
    assert_ne!(before, first);
    let mut again = outbox.resume(&before).unwrap();
    let Look::Event(event) = outbox.look(&mut again, cx) else {
        panic!("it is kept")
    };
    assert_eq!(held(), length);
    drop(event);
    assert_eq!(held(), 0);
}
