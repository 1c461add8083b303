//! Tests: servers that begin a process or a stream for each key, of which there may be few: who gets them, and who gives way.

use std::{sync::atomic::Ordering, time::Duration};

use super::{
    rounds::{able, again, asked, asked_on_own_pipe},
    tests::{of, on_pipes},
    *,
};
use crate::{
    call::{Caller, Principal},
    upstream::{
        asking::Offer,
        scripted::{Play, Processes, a_route, result},
    },
};

/// A call of `name`'s, on a session of theirs.
fn by(name: &str, session: &str) -> Call {
    let call = of(session);
    let caller = Caller {
        principal: Principal::new(name),
        ..(*call.caller).clone()
    };
    Call {
        caller: Arc::new(caller),
        ..call
    }
}

/// One after the other, so that it can be told what was used least lately.
async fn goes_through(peer: &Legacy, call: Call) {
    tokio::time::advance(Duration::from_millis(5)).await;
    let reply = peer.call(call, a_route("t")).await;
    assert!(reply.is_ok(), "{reply:?}");
}

async fn is_refused(peer: &Legacy, call: Call) {
    let reply = peer.call(call, a_route("t")).await;
    assert!(matches!(reply, Err(UpstreamError::Overloaded)), "{reply:?}");
}

/// Which processes were ended, of those that were begun for somebody.
fn ended(processes: &Processes) -> Vec<usize> {
    let made = processes.made();
    let ended = made.iter().skip(1).enumerate();
    let ended = ended.filter(|(_, process)| process.closed.load(Ordering::SeqCst) > 0);
    ended.map(|(nth, _)| nth).collect()
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

#[tokio::test(start_paused = true)]
async fn one_principal_leaves_processes_for_others_however_many_sessions_it_has() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, _| result("{}")).await;
    // Whoever is alone has half of them, and no more.
    for n in 0..16 {
        goes_through(&peer, by("ana", &format!("a{n}"))).await;
    }
    is_refused(&peer, by("ana", "more")).await;
    for name in ["ben", "eve"] {
        for n in 0..8 {
            goes_through(&peer, by(name, &format!("{name}{n}"))).await;
        }
    }
    is_refused(&peer, by("kim", "kim0")).await;
    assert_eq!(processes.made().len(), 33);
    assert!(ended(&processes).is_empty());
    // Among one's own, what was used least lately gives way.
    minutes(1).await;
    goes_through(&peer, by("ana", "a0")).await;
    goes_through(&peer, by("ana", "more")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ended(&processes), [1]);
    assert_eq!(peer.keyed.len(), 32);
}

#[tokio::test(start_paused = true)]
async fn who_has_had_nothing_to_do_with_theirs_for_a_minute_gives_way_to_who_has_none() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, _| result("{}")).await;
    for n in 0..32 {
        goes_through(&peer, of(&format!("k{n}"))).await;
    }
    minutes(1).await;
    goes_through(&peer, of("k0")).await;
    goes_through(&peer, of("more")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ended(&processes), [1]);
    assert_eq!(peer.keyed.len(), 32);
    // Whose was given away begins anew, at the expense of the next.
    goes_through(&peer, of("k1")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ended(&processes), [1, 2]);
    for n in 3..32 {
        goes_through(&peer, of(&format!("k{n}"))).await;
    }
    is_refused(&peer, of("too many")).await;
}

/// However long it takes, and for a while after that; and so does one whose caller is asked.
#[tokio::test(start_paused = true)]
async fn a_call_under_way_keeps_its_process() {
    let (processes, peer) = on_pipes(Isolation::Session, |number, sent| {
        match (number, sent.method.as_str()) {
            (1, "tools/call") => Play::Open,
            (2, "tools/call") => Play::After(59, Box::new(result("{}"))),
            _ => result("{}"),
        }
    })
    .await;
    let peer = Arc::new(peer);
    let call = able("asked");
    let (pipe, first) = asked_on_own_pipe(&processes, &peer, call.clone()).await;
    let question = asked(first);
    let others = async {
        while processes.made().len() < 3 {
            tokio::task::yield_now().await;
        }
        for n in 2..32 {
            goes_through(&peer, of(&format!("k{n}"))).await;
        }
    };
    tokio::join!(goes_through(&peer, of("slow")), others);
    tokio::time::sleep(Duration::from_secs(2)).await;
    goes_through(&peer, of("more")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ended(&processes), [2]);
    let answer = again(&call, &question, r#"{"ask-1":{"action":"accept"}}"#);
    let speaking = async {
        pipe.until_count("", 1).await;
        pipe.tell(0, r#"{"jsonrpc":"2.0","id":$id,"result":{}}"#);
    };
    tokio::join!(goes_through(&peer, answer), speaking);
}

/// Whoever began a task may come for it seldom.
#[tokio::test(start_paused = true)]
async fn a_process_with_tasks_gives_way_to_nobody_for_a_quarter_of_an_hour() {
    let (processes, peer) = on_pipes(Isolation::Session, |_, _| result("{}")).await;
    goes_through(&peer, of("k0")).await;
    peer.slot(&of("k0"), Offer::NONE).unwrap().runs_tasks();
    for n in 1..32 {
        goes_through(&peer, of(&format!("k{n}"))).await;
    }
    minutes(2).await;
    // It was used before all the others.
    goes_through(&peer, of("more")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ended(&processes), [1]);
}
