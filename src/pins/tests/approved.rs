//! Approvals: where somebody approved something it is told, before anything is judged by it, and nowhere else.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::*;

/// SECURITY 8: approvals are recorded, and nothing else as one.
#[test]
fn an_approval_is_told_where_somebody_approved_something_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pins");
    let ledger = ledger(Mode::Quarantine, Some(&path));
    offer(&ledger, &[tool("a", ""), tool("b", "")]);
    offer(&ledger, &[tool("a", r#","description":"new""#)]);
    assert!(kept(&ledger).is_empty());
    let file = path.join("notes.pins");
    let before = fs::read(&file).unwrap();
    let store = Store::open(&path).unwrap();
    let approve = |name: &str| {
        let approve = |record: &mut Record| record.approve("tools", name);
        let approved = store.lock().unwrap().change(&id(), approve);
        assert_eq!(approved.unwrap(), Some(true));
        fs::read(&file).unwrap()
    };
    let becomes = |bytes: &[u8], approved: bool| {
        fs::write(&file, bytes).unwrap();
        assert_eq!(kept(&ledger), anew(approved));
    };
    // Damaged, and mended.
    becomes(b"no record", false);
    becomes(b"nor is this", false);
    becomes(&before, false);
    // The same, of which less is kept to be shown.
    let mut shorter = store.read(&id()).unwrap().unwrap();
    for pin in shorter.pins.values_mut() {
        for known in pin.approved.iter_mut().chain(&mut pin.seen) {
            known.text = None;
        }
    }
    store.lock().unwrap().write(&id(), &shorter).unwrap();
    assert_eq!(kept(&ledger), anew(false));
    // What is another one, that one is gone, and what is new.
    approve("a");
    assert_eq!(kept(&ledger), anew(true));
    approve("b");
    assert_eq!(kept(&ledger), anew(true));
    offer(
        &ledger,
        &[tool("a", r#","description":"new""#), tool("c", "")],
    );
    assert!(kept(&ledger).is_empty());
    let older = fs::read(&file).unwrap();
    let newer = approve("c");
    assert_eq!(kept(&ledger), anew(true));
    // An older copy is put back, and damaged; then it is mended with more than there was in it.
    becomes(&older, false);
    becomes(b"no record", false);
    becomes(&newer, true);
    // Moved away because it cannot be read: what is offered next counts.
    becomes(b"no record", false);
    fs::remove_file(&file).unwrap();
    assert_eq!(kept(&ledger), anew(true));
}

/// SECURITY 8: what is in force is on record.
#[test]
fn an_approval_is_told_before_anything_is_judged_by_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pins");
    let ledger = ledger(Mode::Quarantine, Some(&path));
    offer(&ledger, &[tool("a", "")]);
    let new = [tool("a", r#","description":"new""#)];
    assert_eq!(offer(&ledger, &new), ["a"]);
    assert!(kept(&ledger).is_empty());
    let store = Store::open(&path).unwrap();
    let approve = |record: &mut Record| record.approve("tools", "a");
    store.lock().unwrap().change(&id(), approve).unwrap();
    let told = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (send, judged) = std::sync::mpsc::channel();
        let (ledger, told, new) = (&ledger, &told, &new);
        ledger.keep(|_| {
            let send = send.clone();
            scope.spawn(move || {
                let withheld = offer(ledger, new);
                _ = send.send((withheld, told.load(Ordering::SeqCst)));
            });
            // Whoever refreshes now waits until it is told.
            std::thread::park_timeout(Duration::from_millis(20));
            told.store(true, Ordering::SeqCst);
        });
        let judged = judged.recv_timeout(Duration::from_secs(60));
        assert_eq!(judged, Ok((Vec::new(), true)));
    });
}

#[test]
fn what_another_process_took_in_first_nobody_approved() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pins");
    let [one, other] = [(); 2].map(|()| ledger(Mode::Quarantine, Some(&path)));
    offer(&one, &[tool("a", "")]);
    offer(&other, &[tool("b", "")]);
    assert!(kept(&other).is_empty());
    assert_eq!(kept(&one), anew(false));
    assert_eq!(offer(&one, &[tool("a", ""), tool("b", "")]), ["a"]);
}
