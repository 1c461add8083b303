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
    assert_eq!(full, Full::Budget);
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

/// SECURITY 6
#[test]
fn what_is_refused_in_time_is_never_the_reason_why() {
    for (bytes, fits) in [(79_000 - 1, true), (79_000, true), (79_000 + 1, false)] {
        let memory = memory(100_000);
        let mut hold = memory.hold().below(Work::Stream);
        assert_eq!(hold.reach(bytes).is_ok(), fits, "{bytes}");
        assert!(hold.another().reach(100_000).is_err());
        drop(hold);
        assert!(memory.hold().reach(bytes).is_ok(), "an answer");
    }
}

/// SECURITY 6, REL-3
#[test]
fn once_half_of_it_is_held_nobody_gets_more_than_a_quarter_but_for_one_message() {
    const BUDGET: usize = 1_000_000;
    for (bytes, fits) in [(250_000 - 1, true), (250_000, true), (250_000 + 1, false)] {
        let memory = memory(BUDGET as u64);
        let of = |who: &str| memory.hold().paid_by(Some(who.into()));
        let (mut first, mut second) = (of("one"), of("one"));
        first.reach(100_000).unwrap();
        second.reach(400_000).unwrap();
        // Others have the rest.
        let mut others = of("other");
        others.reach(bytes - 50_000).unwrap();
        let mut more = others.another();
        let fitted = more.reach(50_000);
        assert_eq!(fitted.is_ok(), fits, "{bytes}");
        if !fits {
            assert_eq!(fitted, Err(Full::Share));
        }
        let left = 500_000 + bytes - if fits { 0 } else { 50_000 };
        assert_eq!(memory.held(), left as u64, "what is refused leaves nothing");
        // One who has all that there is for one gets no more, but may have it again once it is given back.
        assert_eq!(second.reach(450_000), Err(Full::Share));
        drop((first, second));
        let mut alone = of("one");
        alone.reach(300_000).unwrap();
        alone.reach(600_000).unwrap();
        drop((alone, others, more));
        assert_eq!((memory.held(), memory.shares.known()), (0, 0));
    }
}

#[test]
fn what_was_read_for_somebody_is_theirs_again_while_it_is_sent_to_them() {
    let memory = memory(1_000_000);
    let who: Arc<str> = "one".into();
    let mut read = memory.hold().paid_by(Some(who.clone()));
    read.reach(300_000).unwrap();
    let message = read.unpaid().with(Bytes::from(vec![7; 300_000]));
    assert_eq!((memory.held(), memory.shares.known()), (300_000, 0));
    let sent = memory.sent_to(Some(&who), message.slice(..200_000));
    drop(message);
    let part = sent.slice(9..10);
    drop(sent);
    let mut more = memory.hold().paid_by(Some(who.clone()));
    assert_eq!(more.reach(300_000), Err(Full::Share));
    drop(part);
    more.reach(300_000).unwrap();
    drop(more);
    assert_eq!((memory.held(), memory.shares.known()), (0, 0));
    let small = memory.sent_to(Some(&who), Bytes::from(vec![7; SMALL]));
    let theirs = memory.sent_to(None, Bytes::from(vec![7; SMALL + 1]));
    assert_eq!((memory.held(), memory.shares.known()), (0, 0));
    drop((small, theirs));
}

/// SECURITY REL-3
#[test]
fn what_makes_room_is_never_too_much_for_one_and_counts_all_the_same() {
    let memory = memory(1_000_000);
    let of = |who: &str| memory.hold().paid_by(Some(who.into()));
    let mut answer = of("one").below(Work::Connection).making_room();
    let mut before = of("one");
    before.reach(500_000).unwrap();
    answer.reach(300_000).unwrap();
    assert_eq!(of("one").reach(100_000), Err(Full::Share));
    assert!(!memory.has_room_for(|| Some("one".into())));
    assert!(memory.has_room_for(|| Some("other".into())));
    assert!(memory.has_room_for(|| None));
    drop(before);
    assert!(memory.has_room_for(|| Some("one".into())), "half is free");
    assert_eq!(answer.reach(940_001), Err(Full::Budget));
    answer.reach(940_000).unwrap();
    assert!(!memory.has_room_for(|| Some("one".into())));
}

#[test]
fn what_is_held_for_nobody_is_nobodys_share() {
    let memory = memory(1_000_000);
    let mut all: Vec<_> = (0..9).map(|_| memory.hold().paid_by(None)).collect();
    for hold in &mut all {
        hold.reach(100_000).unwrap();
    }
    assert_eq!(memory.shares.known(), 0);
}

#[test]
fn a_share_is_whole_whoever_comes_and_goes_meanwhile() {
    let memory = memory(u64::MAX / 100);
    let turns = |_: ()| {
        for n in 0..2_000_usize {
            let mut hold = memory.hold().paid_by(Some(format!("{}", n % 3).into()));
            hold.reach(100_000 + n).unwrap();
            hold.count(50_000);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| turns(()));
        }
    });
    assert_eq!((memory.held(), memory.shares.known()), (0, 0));
}
