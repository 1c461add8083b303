//! What is counted, and what is refused at the bounds.

use super::*;

fn memory(budget: u64) -> &'static Memory {
    Box::leak(Box::new(Memory::of(budget)))
}

/// SECURITY 6
#[test]
fn streams_requests_and_connections_are_refused_from_their_parts_of_the_budget_on() {
    for (work, bound) in [
        (Work::Stream, 80 << 20),
        (Work::Request, 90 << 20),
        (Work::Connection, 95 << 20),
    ] {
        let memory = memory(100 << 20);
        let mut hold = memory.hold();
        for (bytes, taken) in [(bound - 1, true), (bound, false), (bound + 1, false)] {
            hold.reach(bytes).unwrap();
            assert_eq!(memory.takes(work), taken, "{work:?} at {bytes}");
        }
        drop(hold);
        assert!(memory.takes(work), "taken again once it is given back");
    }
}

/// SECURITY 6
#[test]
fn no_more_than_the_budget_is_ever_held_and_what_is_refused_leaves_nothing_behind() {
    let budget = 1 << 20;
    for (bytes, fits) in [(budget - 1, true), (budget, true), (budget + 1, false)] {
        let memory = memory(budget as u64);
        let mut hold = memory.hold();
        assert_eq!(hold.reach(bytes).is_ok(), fits, "{bytes}");
        drop(hold);
        assert_eq!(memory.held(), 0);
    }
    let memory = memory(budget as u64);
    let (mut one, mut other) = (memory.hold(), memory.hold());
    one.reach(budget - SMALL - 1).unwrap();
    let full = other.reach(budget).unwrap_err();
    assert_eq!(full, Full { left: SMALL + 1 });
    other.reach(SMALL + 1).unwrap();
    assert_eq!(memory.held(), budget as u64);
    drop(one);
    other.reach(budget).unwrap();
}

#[test]
fn a_message_is_counted_until_the_last_part_of_it_is_let_go_and_a_small_one_never() {
    let memory = memory(1 << 20);
    let mut hold = memory.hold();
    hold.reach(200_000).unwrap();
    let message = hold.with(Bytes::from(vec![7; 200_000]));
    let part = message.slice(5..9);
    drop(message);
    assert_eq!(memory.held(), 200_000);
    assert_eq!(&part[..], [7; 4]);
    drop(part);
    assert_eq!(memory.held(), 0);

    let mut hold = memory.hold();
    hold.reach(SMALL).unwrap();
    let small = hold.with(Bytes::from(vec![7; SMALL]));
    assert_eq!(memory.held(), 0);
    drop(small);

    // Ours is never refused.
    let ours = memory.counted(Bytes::from(vec![7; 2 << 20]));
    assert_eq!(memory.held(), 2 << 20);
    assert!(!memory.takes(Work::Stream));
    drop(ours);
    assert_eq!(memory.held(), 0);
}

#[test]
fn what_shrinks_is_given_back() {
    let memory = memory(1 << 20);
    let mut hold = memory.hold();
    hold.reach(900_000).unwrap();
    hold.reach(100).unwrap();
    assert_eq!(memory.held(), 100);
    drop(hold);
    assert_eq!(memory.held(), 0);
}
