//! Deadlines by a clock that is stopped, and who is woken.

use std::{sync::atomic::AtomicUsize, task::Wake};

use tokio::time::advance;

use super::*;

#[derive(Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn counted() -> (Waker, Arc<Counted>) {
    let counted = Arc::new(Counted::default());
    (Waker::from(Arc::clone(&counted)), counted)
}

fn wakes(counted: &Counted) -> usize {
    counted.0.load(Relaxed)
}

fn after(seconds: u64) -> u64 {
    seconds * 1_000
}

/// Two for each four kilobytes, as the most eager clients do.
#[tokio::test]
async fn a_client_that_makes_room_after_each_few_kilobytes_may_read_for_ever() {
    let watch = Watch::new(&ServerBounds::default());
    for _ in 0..10_000 {
        watch.wrote_piece(64 << 10);
        watch.read_frames(Seen {
            idle: 32,
            useful: 0,
        });
    }
    assert!(!watch.is_flooded());
    // Nor one that hears small events.
    for _ in 0..10_000 {
        watch.wrote_piece(100);
        watch.read_frames(Seen { idle: 3, useful: 0 });
    }
    assert!(!watch.is_flooded());
    let watch = Watch::new(&ServerBounds::default());
    for (idle, flooded) in [(IDLE_FRAMES, false), (1, true)] {
        watch.read_frames(Seen { idle, useful: 0 });
        assert_eq!(watch.is_flooded(), flooded);
    }
    watch.wrote_piece(64 << 20);
    assert!(watch.is_flooded(), "bytes that came are missing");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_makes_room_now_and_then_is_not_cut_off() {
    let watch = Watch::new(&ServerBounds::default());
    watch.enter(Phase::Idle);
    let _flight = watch.take_off();
    let turn = watch.client_turn();
    assert_eq!(watch.due(), Some(Due::Cut(after(30), Bound::WriteStall)));
    advance(Duration::from_secs(20)).await;
    turn.to_client();
    assert_eq!(watch.due(), Some(Due::Cut(after(50), Bound::WriteStall)));
    turn.to_endpoint();
    assert_eq!(watch.due(), None);
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_that_takes_long_makes_room_where_memory_is_short_and_only_there() {
    let memory: &'static Memory = Box::leak(Box::new(Memory::of(1_000_000)));
    let watch = Arc::new(Watch {
        memory,
        ..Arc::into_inner(Watch::new(&ServerBounds::default())).unwrap()
    });
    watch.enter(Phase::Idle);
    let _flight = watch.take_off();
    watch.sends(SMALL);
    assert_eq!(watch.due(), None, "small");
    watch.sends(SMALL + 1);
    advance(Duration::from_secs(20)).await;
    watch.sends(SMALL + 1);
    watch.write_blocked();
    assert_eq!(watch.due(), Some(Due::Cut(after(50), Bound::WriteStall)));
    let mut hold = memory.hold();
    hold.reach(900_000).unwrap();
    assert_eq!(watch.due(), Some(Due::Cut(after(30), Bound::Memory)));
    // Reading now and then gains no time.
    watch.wrote();
    assert_eq!(watch.due(), Some(Due::Cut(after(30), Bound::Memory)));
    advance(Duration::from_secs(9)).await;
    assert!(!watch.is_too_slow(0));
    advance(Duration::from_secs(1)).await;
    assert!(watch.is_too_slow(0) && !watch.is_too_slow(1));
    hold.reach(899_999).unwrap();
    assert!(!watch.is_too_slow(0));
    assert_eq!(watch.due(), None);
    hold.reach(900_000).unwrap();
    watch.sent();
    assert_eq!(watch.due(), None);
}

#[tokio::test(start_paused = true)]
async fn the_longest_held_answer_decides_and_a_dropped_one_does_not() {
    let watch = Watch::new(&ServerBounds::default());
    watch.enter(Phase::Idle);
    let _flight = watch.take_off();
    let first = watch.client_turn();
    advance(Duration::from_secs(1)).await;
    let second = watch.client_turn();
    assert_eq!(watch.due(), Some(Due::Cut(after(30), Bound::WriteStall)));
    drop(first);
    assert_eq!(watch.due(), Some(Due::Cut(after(31), Bound::WriteStall)));
    advance(Duration::from_secs(1)).await;
    let third = watch.client_turn();
    drop(second);
    assert_eq!(watch.due(), Some(Due::Cut(after(32), Bound::WriteStall)));
    drop(third);
    assert_eq!(watch.due(), None);
    assert_eq!(watch.turns().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_to_close_has_its_deadline_when_its_last_request_has_ended() {
    let watch = Watch::new(&ServerBounds::default());
    let flights = [watch.take_off(), watch.take_off()];
    watch.enter(Phase::Closing);
    advance(Duration::from_secs(40)).await;
    assert_eq!(watch.due(), None);
    watch.write_blocked();
    assert_eq!(watch.due(), Some(Due::Cut(after(70), Bound::WriteStall)));
    watch.wrote();
    let [first, last] = flights;
    drop(first);
    assert_eq!(watch.due(), None);
    drop(last);
    assert_eq!(watch.due(), Some(Due::Cut(after(70), Bound::WriteStall)));
    // Reading now and then gains no more time.
    advance(Duration::from_secs(1)).await;
    watch.write_blocked();
    watch.wrote();
    assert_eq!(watch.due(), Some(Due::Cut(after(70), Bound::WriteStall)));
}

#[tokio::test]
async fn who_waits_is_woken_once_and_at_once_where_all_were_woken_before() {
    let watch = Watch::new(&ServerBounds::default());
    let [mut first, mut second] = [watch.take_off(), watch.take_off()];
    let (before, one) = counted();
    let (after, other) = counted();
    first.waits_in(&Context::from_waker(&before));
    first.waits_in(&Context::from_waker(&before));
    assert_eq!(wakes(&one), 0);
    watch.wake();
    assert_eq!(wakes(&one), 1);
    second.waits_in(&Context::from_waker(&after));
    assert_eq!(wakes(&other), 1);
    drop([first, second]);
    watch.wake();
    assert_eq!((wakes(&one), wakes(&other)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn each_state_has_its_deadline_and_a_running_request_none() {
    let watch = Watch::new(&ServerBounds::default());
    assert_eq!(watch.due(), Some(Due::Cut(after(10), Bound::HeadersTime)));
    advance(Duration::from_secs(1)).await;
    watch.enter(Phase::Body);
    assert_eq!(
        watch.due(),
        Some(Due::Cut(after(31) + BODY_GRACE, Bound::BodyTime))
    );
    let flight = watch.take_off();
    watch.enter(Phase::Idle);
    assert_eq!(watch.due(), None);
    watch.write_blocked();
    assert_eq!(watch.due(), Some(Due::Cut(after(31), Bound::WriteStall)));
    advance(Duration::from_secs(1)).await;
    watch.wrote();
    drop(flight);
    assert_eq!(watch.due(), Some(Due::WindDown(after(77))));
    watch.enter(Phase::Closing);
    watch.enter(Phase::Head);
    assert_eq!(watch.due(), Some(Due::Cut(after(32), Bound::WriteStall)));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_behind_another_has_its_deadline_when_it_is_its_turn() {
    let watch = Watch::new(&ServerBounds::default());
    watch.read_heads(1);
    watch.enter(Phase::Body);
    watch.call().unwrap();
    let flight = watch.take_off();
    let body = |since: u64| Some(Due::Cut(after(since + 30) + BODY_GRACE, Bound::BodyTime));
    assert_eq!(watch.due(), body(0), "its own body is awaited");
    watch.enter(Phase::Head);
    assert_eq!(watch.due(), None, "a head behind it");
    watch.read_heads(2);
    watch.enter(Phase::Body);
    assert_eq!(watch.due(), None, "a body behind it");
    advance(Duration::from_secs(100)).await;
    drop(flight);
    assert_eq!(watch.due(), body(100));
    watch.call().unwrap();
    let _flight = watch.take_off();
    assert_eq!(watch.due(), body(100));
}
