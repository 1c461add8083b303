//! What is found is what matches, with an index and without.

use std::{
    fs,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use super::*;
use crate::audit::{
    key::SigningKey,
    log::{
        Cuts, INDEX, Log, event,
        testing::{Faulty, Shared, origin},
    },
};

/// Records of 200 calls in several segments, of which all but the last have an index.
fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let cuts = Cuts {
        segment: 8_000,
        ..Cuts::default()
    };
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    for n in 0..200_usize {
        let call = event(|object| {
            object
                .text("call", &format!("3f9a-{n}"))
                .text("decision", if n % 7 == 0 { "deny" } else { "permit" })
                .text("event", "call")
                .objects("findings", (n % 50 == 3).then_some(()), 9, |found, ()| {
                    found.text("class", "secret").text("rule", "a\"b");
                })
                .object("principal", |who| {
                    _ = who.text("name", if n < 100 { "ana" } else { "bo\n" })
                })
                .text("stage", "decision")
                .object("target", |target| {
                    target
                        .text("exposed", "x_tool")
                        .text("name", &format!("tool{}", n / 20))
                        .text("upstream", "x");
                })
                .text("time", &format!("2026-11-21T00:{:02}:00.000000000Z", n / 4));
        });
        log.append(&[call].into()).unwrap();
    }
    for ended in log.take_ended() {
        ended.write_index().unwrap();
    }
    directory
}

fn asked(directory: &Path, filter: &Filter, order: Order) -> (Vec<usize>, Scanned) {
    let mut all = Vec::new();
    let scanned = query(directory, filter, order, |hit| {
        if let Some(call) = hit.entry.call {
            all.push(call.trim_start_matches("3f9a-").parse().unwrap());
        }
        ControlFlow::Continue(())
    });
    (all, scanned.unwrap())
}

#[test]
fn every_filter_finds_what_matches_and_an_index_rules_only_others_out() {
    let directory = written();
    let some = |text: &str| Some(text.to_owned());
    type Wanted = fn(usize) -> bool;
    let filters: [(Filter, Wanted); 9] = [
        (
            Filter {
                principal: some("bo\n"),
                ..Filter::default()
            },
            |n| n >= 100,
        ),
        (
            Filter {
                decision: some("deny"),
                ..Filter::default()
            },
            |n| n % 7 == 0,
        ),
        (
            Filter {
                name: some("tool3"),
                ..Filter::default()
            },
            |n| n / 20 == 3,
        ),
        (
            Filter {
                name: some("x_tool"),
                ..Filter::default()
            },
            |_| true,
        ),
        (
            Filter {
                finding: some("a\"b"),
                ..Filter::default()
            },
            |n| n % 50 == 3,
        ),
        (
            Filter {
                finding: some("secret"),
                principal: some("ana"),
                ..Filter::default()
            },
            |n| n % 50 == 3 && n < 100,
        ),
        (
            Filter {
                upstream: some("y"),
                ..Filter::default()
            },
            |_| false,
        ),
        (
            Filter {
                call: some("3f9a-150"),
                ..Filter::default()
            },
            |n| n == 150,
        ),
        (
            Filter {
                since: some("2026-11-21T00:10"),
                until: some("2026-11-21T00:12"),
                ..Filter::default()
            },
            |n| (10..12).contains(&(n / 4)),
        ),
    ];
    for (filter, wanted) in &filters {
        let wanted: Vec<usize> = (0..200).filter(|n| wanted(*n)).collect();
        let (mut found, with) = asked(directory.path(), filter, Order::Newest);
        found.reverse();
        assert_eq!(found, wanted, "{filter:?}");
        assert_eq!(asked(directory.path(), filter, Order::Oldest).0, wanted);
        for segment in segments(directory.path()).unwrap() {
            let index = segment.path.with_extension(INDEX);
            if index.exists() {
                fs::rename(&index, index.with_extension("away")).unwrap();
            }
        }
        let (found, without) = asked(directory.path(), filter, Order::Oldest);
        assert_eq!((found, without.skipped), (wanted, 0));
        for segment in segments(directory.path()).unwrap() {
            let index = segment.path.with_extension(INDEX);
            _ = fs::rename(index.with_extension("away"), &index);
        }
        assert_eq!(
            with.read + with.skipped,
            without.read,
            "every segment is read or ruled out"
        );
    }
    let tool = Filter {
        name: some("tool3"),
        ..Filter::default()
    };
    assert!(asked(directory.path(), &tool, Order::Newest).1.skipped > 2);
    let call = Filter {
        call: some("3f9a-150"),
        ..Filter::default()
    };
    // One of them, and the one that has no index.
    assert!(asked(directory.path(), &call, Order::Newest).1.read <= 2);
}

#[test]
fn what_a_terminal_would_act_upon_is_found_by_what_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
    let long = "ä".repeat(2_000);
    let names = ["a\u{1B}[2Jb", "a\u{202E}b", long.as_str()];
    for (n, name) in names.iter().enumerate() {
        let call = event(|object| {
            object
                .text("call", &n.to_string())
                .object("principal", |who| _ = who.text("name", name));
        });
        log.append(&[call].into()).unwrap();
    }
    log.rotate().unwrap();
    for ended in log.take_ended() {
        ended.write_index().unwrap();
    }
    for (n, name) in names.iter().enumerate() {
        let filter = Filter {
            principal: Some((*name).to_owned()),
            ..Filter::default()
        };
        assert_eq!(asked(directory.path(), &filter, Order::Newest).0, [n]);
    }
}

#[test]
fn a_query_stops_when_it_has_enough() {
    let directory = written();
    let mut count = 0;
    let scanned = query(directory.path(), &Filter::default(), Order::Newest, |_| {
        count += 1;
        if count == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!((count, scanned.unwrap().read), (3, 1));
}

/// What a page of `count` records before `before` holds, and where the next one begins.
fn page(directory: &Path, before: u64, count: usize) -> (Vec<u64>, Scanned) {
    let mut all = Vec::new();
    let reach = Reach {
        before,
        ..Reach::ALL
    };
    let scanned = newest(directory, &Filter::default(), &reach, |hit| {
        all.push(hit.seq);
        if all.len() == count {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    (all, scanned.unwrap())
}

#[test]
fn whoever_goes_on_finds_the_rest_and_reads_nothing_again() {
    // Records of 1 KB in segments of 3 MB: many pieces each.
    let directory = tempfile::tempdir().unwrap();
    let cuts = Cuts {
        segment: 3 << 20,
        ..Cuts::default()
    };
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
    let text = "x".repeat(1_000);
    for _ in 0..120 {
        let some = (0..80).map(|_| event(|object| _ = object.text("text", &text)));
        log.append(&some.collect()).unwrap();
    }
    let last = log.written().seq;
    assert!(segments(directory.path()).unwrap().len() > 2);
    let (mut all, mut before) = (Vec::new(), u64::MAX);
    let (mut bytes, mut pages) = (0, 0);
    loop {
        let (found, scanned) = page(directory.path(), before, 200);
        assert!(scanned.read <= 2, "{scanned:?}");
        bytes += scanned.bytes;
        pages += 1;
        let Some(least) = found.last() else { break };
        before = *least;
        all.extend(found);
    }
    assert_eq!(all, (1..=last).rev().collect::<Vec<_>>());
    // Each page finds its place by a few looks, and may read a piece further than it needs.
    let length: u64 = segments(directory.path())
        .unwrap()
        .iter()
        .map(|segment| fs::metadata(&segment.path).unwrap().len())
        .sum();
    assert!(bytes < length + pages * 3 * pieces::PIECE, "{bytes}");
}

#[test]
fn a_query_that_is_ended_says_how_far_it_came_and_goes_on_there() {
    let directory = written();
    let filters = [
        Filter::default(),
        Filter {
            name: Some("tool3".to_owned()),
            ..Filter::default()
        },
        Filter {
            name: Some("nothing".to_owned()),
            ..Filter::default()
        },
    ];
    for filter in filters {
        let (mut all, mut before, mut turns) = (Vec::new(), u64::MAX, 0);
        loop {
            let reach = Reach {
                before,
                enough: &|| true,
            };
            let scanned = newest(directory.path(), &filter, &reach, |hit| {
                all.extend(hit.entry.call.map(|_| hit.seq));
                ControlFlow::Continue(())
            });
            let scanned = scanned.unwrap();
            assert!(scanned.read + scanned.skipped <= 1, "{scanned:?}");
            let Some(stopped) = scanned.stopped else {
                break;
            };
            assert!(stopped < before, "it goes on");
            assert!(all.last().is_none_or(|last| *last >= stopped));
            before = stopped;
            turns += 1;
        }
        assert!(turns > 3, "{turns}");
        let mut wanted = Vec::new();
        let found = query(directory.path(), &filter, Order::Newest, |hit| {
            wanted.extend(hit.entry.call.map(|_| hit.seq));
            ControlFlow::Continue(())
        });
        assert_eq!((all, found.unwrap().stopped), (wanted, None));
    }
}

/// SECURITY AUD-7: what stood in a segment that was given up stands in the next one.
#[test]
fn what_was_written_again_is_found_once() {
    let directory = tempfile::tempdir().unwrap();
    let faulty = Arc::new(Faulty::default());
    faulty.keeps.store(true, Relaxed);
    let disk = Arc::new(Shared(faulty.clone()));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
    let call = |n: usize| event(|object| _ = object.text("call", &n.to_string()));
    for n in 0..9 {
        log.append(&[call(n)].into()).unwrap();
        // What holds something durable stays.
        if n % 3 != 1 {
            faulty.lying.store(n % 3 / 2, Relaxed);
            let syncing = log.syncing().unwrap();
            log.synced(&syncing, &syncing.wait()).unwrap();
        }
    }
    assert_eq!(log.take_ended().len(), 3);
    let (mut newest, _) = asked(directory.path(), &Filter::default(), Order::Newest);
    newest.reverse();
    assert_eq!(newest, (0..9).collect::<Vec<_>>());
    let (oldest, _) = asked(directory.path(), &Filter::default(), Order::Oldest);
    assert_eq!(oldest, newest);
}

#[test]
fn what_was_permitted_is_found_by_how_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
    let record = |n: usize, stage: &str, decision: Option<&str>, outcome: Option<&str>| {
        event(|object| {
            object.text("call", &format!("3f9a-{n}"));
            object.maybe("decision", decision).text("event", "call");
            object.maybe("outcome", outcome).text("stage", stage);
        })
    };
    // A segment of its own for how they ended, in whose index there is no decision.
    log.append(
        &[
            record(1, "decision", Some("permit"), None),
            record(2, "decision", Some("permit"), None),
            record(3, "both", Some("deny"), Some("denied")),
            record(4, "both", None, Some("timeout")),
        ]
        .into(),
    )
    .unwrap();
    log.rotate().unwrap();
    log.append(
        &[
            record(1, "outcome", None, Some("timeout")),
            record(2, "outcome", None, Some("ok")),
        ]
        .into(),
    )
    .unwrap();
    log.rotate().unwrap();
    for ended in log.take_ended() {
        ended.write_index().unwrap();
    }
    let some = |text: &str| Some(text.to_owned());
    let found = |decision: &str, outcome: Option<&str>| {
        let filter = Filter {
            decision: some(decision),
            outcome: outcome.and_then(some),
            ..Filter::default()
        };
        asked(directory.path(), &filter, Order::Oldest).0
    };
    assert_eq!(found("permit", Some("timeout")), [1]);
    assert_eq!(found("permit", Some("ok")), [2]);
    assert_eq!(found("deny", Some("denied")), [3]);
    assert!(found("deny", Some("timeout")).is_empty());
    // One record for each where only the decision is asked for.
    assert_eq!(found("permit", None), [1, 2]);
}

/// Records of each sort that is of no call, and of a key's call and a listen; with what each is found by.
const BESIDE: [(&str, &str); 9] = [
    (
        r#"{"detail":{"address":"127.0.0.1","by":"operator","operation":"disable_upstream","outcome":"refused","reason":"role_required","subject":"leg"},"event":"administration"}"#,
        "principal=operator method=disable_upstream outcome=refused reason=role_required upstream=leg name=leg",
    ),
    (
        r#"{"detail":{"action":"flag","class":"definition","item":"echo","place":"name","rule":"shadows","upstream":"leg"},"event":"quarantine"}"#,
        "upstream=leg name=echo finding=definition finding=shadows reason=shadows",
    ),
    (
        r#"{"detail":{"address":"127.0.0.1","checks":["unknown API key"],"count":2,"reasons":["credential_invalid","rate_limited"],"refs":["3f9a-7","3f9a-9"],"seconds":60},"event":"authentication"}"#,
        "reason=credential_invalid reason=rate_limited reason=check call=3f9a-7 call=3f9a-9",
    ),
    (
        r#"{"detail":{"address":"192.0.2.1","count":2,"methods":["tools/call","tools/list"],"principal":{"kind":"user","name":"mallory","owner":"eve"},"reasons":["header_mismatch"],"seconds":0},"event":"refused"}"#,
        "principal=mallory principal=eve method=tools/call method=tools/list reason=header_mismatch",
    ),
    (
        r#"{"detail":{"count":9,"found":[{"action":"flag","class":"definition_changed","count":4,"rule":"new"},{"action":"flag","class":"injection","count":5,"rule":"override"}],"seconds":60,"upstream":"evil"},"event":"quarantine"}"#,
        "upstream=evil finding=definition_changed finding=new finding=injection finding=override reason=new reason=override",
    ),
    (
        r#"{"detail":{"problems":3,"state":"refused"},"event":"policy"}"#,
        "outcome=refused",
    ),
    (
        r#"{"detail":{"name":"per_tool","state":"began"},"event":"limit"}"#,
        "name=per_tool",
    ),
    (
        r#"{"call":"3f9a-3","event":"call","principal":{"kind":"key","name":"ci","owner":"ana@x.org"}}"#,
        "principal=ci principal=ana@x.org call=3f9a-3",
    ),
    (
        r#"{"call":"3f9a-4","event":"call","not_watched":["a://2"],"principal":{"name":"ben"},"watched":["a://1"]}"#,
        "name=a://1 name=a://2",
    ),
];

/// The filter that asks for this alone, as `member=text`.
fn alone(asked: &str) -> Filter {
    let (member, text) = asked.split_once('=').unwrap();
    let text = Some(text.replace("check", "unknown API key"));
    let mut filter = Filter::default();
    match member {
        "principal" => filter.principal = text,
        "upstream" => filter.upstream = text,
        "name" => filter.name = text,
        "method" => filter.method = text,
        "outcome" => filter.outcome = text,
        "reason" => filter.reason = text,
        "finding" => filter.finding = text,
        "call" => filter.call = text,
        other => panic!("{other}"),
    }
    filter
}

#[test]
fn what_is_of_no_call_is_found_by_what_its_details_say_with_an_index_and_without() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
    // A segment of its own for each.
    for (record, _) in BESIDE {
        log.append(&[record.as_bytes().to_vec()].into()).unwrap();
        log.rotate().unwrap();
    }
    for ended in log.take_ended() {
        ended.write_index().unwrap();
    }
    let all = || BESIDE.iter().flat_map(|(_, asked)| asked.split(' '));
    let look = |indexed: bool| {
        for asked in all() {
            let mut found = Vec::new();
            let scanned = query(directory.path(), &alone(asked), Order::Oldest, |hit| {
                found.push(String::from_utf8(hit.event.to_vec()).unwrap());
                ControlFlow::Continue(())
            });
            let wanted = BESIDE
                .iter()
                .filter(|(_, by)| by.split(' ').any(|by| by == asked));
            let wanted: Vec<_> = wanted.map(|(record, _)| *record).collect();
            assert_eq!(found, wanted, "{asked}");
            assert_eq!(scanned.unwrap().skipped > 3, indexed, "{asked}");
        }
    };
    look(true);
    for segment in segments(directory.path()).unwrap() {
        _ = fs::remove_file(segment.path.with_extension(INDEX));
    }
    look(false);
}

#[test]
fn an_index_of_a_version_that_listed_less_rules_nothing_out_and_is_made_anew() {
    let directory = written();
    let each = |work: &dyn Fn(&Path)| {
        for segment in segments(directory.path()).unwrap() {
            work(&segment.path);
        }
    };
    each(&|path| _ = fs::rename(path.with_extension(INDEX), path.with_extension("idx")));
    let tool = alone("name=tool3");
    let (found, scanned) = asked(directory.path(), &tool, Order::Oldest);
    assert_eq!((found.len(), scanned.skipped), (20, 0));
    let disk = Arc::new(Shared(Arc::new(Faulty::default())));
    let key = SigningKey::generate().0;
    let (mut log, _) = Log::open(disk, directory.path(), origin(), key, Cuts::default()).unwrap();
    for ended in log.take_ended() {
        ended.write_index().unwrap();
    }
    each(&|path| assert!(!path.with_extension("idx").exists()));
    let (found, scanned) = asked(directory.path(), &tool, Order::Oldest);
    assert!(found.len() == 20 && scanned.skipped > 2, "{scanned:?}");
}
