//! The checkpoint that a log ends with, which no other one covers: what somebody without the key could make of it.

use std::sync::Arc;

use super::{tests::sync, *};
use crate::audit::{
    chain::{Origin, link},
    key::SigningKey,
    log::{
        Cuts, Log,
        testing::{Faulty, Shared, happened, origin},
    },
};

/// SECURITY AUD-3: each clean stop ends with a checkpoint that no other one covers.
#[test]
fn a_checkpoint_that_nothing_follows_is_proven_by_its_own_signature_in_all_but_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = SigningKey::generate();
    let key = || SigningKey::parse(&text).unwrap();
    let report = || verify(directory.path(), &[key().public()], &[], |_| {}).unwrap();
    for life in 1..4 {
        let mut origin = origin();
        origin.boot = format!("boot-{life}");
        let disk = Arc::new(Shared(Arc::new(Faulty::default())));
        let (mut log, _) =
            Log::open(disk, directory.path(), origin, key(), Cuts::default()).unwrap();
        log.append(&[happened(life)].into()).unwrap();
        log.sign().unwrap();
        sync(&mut log);
        let last = log.written().seq;
        let now = report();
        assert_eq!((now.faults, now.gaps, now.in_gaps), (vec![], vec![], 0));
        assert_eq!((now.signed, now.proven), (last - 1, last));
    }
    let path = segments(directory.path()).unwrap().pop().unwrap().path;
    let whole = fs::read(&path).unwrap();
    let feeds: Vec<usize> = memchr::memchr_iter(b'\n', &whole).collect();
    let begin = feeds[feeds.len() - 2] + 1;
    let before = Line::parse(&whole[feeds[feeds.len() - 3] + 1..begin - 1]).unwrap();
    let own = Line::parse(&whole[begin..whole.len() - 1]).unwrap();
    let event = str::from_utf8(own.event).unwrap();
    // Whether all of it counts as proven once somebody without the key has written this in its place.
    let proven = |event: &str, node: &str| {
        let origin = Origin {
            node: node.to_owned(),
            boot: own.boot.to_owned(),
        };
        let mut text = whole[..begin].to_vec();
        link(&mut text, event.as_bytes(), &before.place(), &origin);
        fs::write(&path, text).unwrap();
        let now = report();
        assert_eq!((now.faults, now.signed), (vec![], before.seq), "{event}");
        now.proven > now.signed
    };
    let is = |event: &str| proven(event, own.node);
    assert!(is(event));
    let other = SigningKey::generate().0.public().to_string();
    let changed = [
        event.replace(&key().public().to_string(), &other),
        event.replace("\"event\":", "\"detail\":{},\"event\":"),
        event.replace("\"v\":1", "\"v\":2"),
        event.replace("\"time\":\"2", "\"time\":\"x2"),
        event.replace("Z\",\"v\"", "+00:00\",\"v\""),
    ];
    for changed in changed {
        assert_ne!(changed, event);
        assert!(!is(&changed), "{changed}");
    }
    assert!(!proven(event, "another"));
    // The one thing that nothing binds before a later record is signed.
    assert!(is(&event.replace("\"time\":\"2", "\"time\":\"1")));
}
