//! Floods on virtual time, and what of them stands in the log.

use std::{
    borrow::Cow,
    net::IpAddr,
    path::Path,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use tokio::time::advance;

use super::*;
use crate::{
    audit::{
        key::SigningKey,
        log::{
            Cuts, Log,
            testing::{Faulty, Shared as Storage, origin},
            tests::records,
        },
        recorder::{Bounds, Durability, Keeper},
    },
    call::{Identity, IdentityKind, Principal},
    findings::{Action, Direction},
    json::Json,
    tasks::Tasks,
};

/// Takes out one word.
#[derive(Debug)]
struct Words;

impl Scrub for Words {
    fn content(&self, value: &Json, _: Option<&UpstreamId>, _: Option<&str>) -> Json {
        value.clone()
    }

    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        name.replace("hunter2", "[redacted]").into()
    }

    fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        id.into()
    }
}

fn journal(directory: &Path) -> (Journal, Keeper) {
    journal_on(&Arc::default(), directory, Bounds::default())
}

fn journal_on(disk: &Arc<Faulty>, directory: &Path, bounds: Bounds) -> (Journal, Keeper) {
    let disk = Arc::new(Storage(disk.clone()));
    let key = SigningKey::generate().0;
    let (log, _) = Log::open(disk, directory, origin(), key, Cuts::default()).unwrap();
    let (recorder, keeper) = Recorder::start(
        log,
        Durability::Kernel,
        bounds,
        Duration::from_secs(10),
        Box::new(|_| {}),
    )
    .unwrap();
    (Journal::of(recorder, Arc::new(Words)), keeper)
}

/// The details of the records of one kind, once all that was told is written.
fn written(journal: &Journal, directory: &Path, kind: Kind) -> Vec<String> {
    while journal.0.as_ref().unwrap().recorder.lag() > 0 {
        std::thread::yield_now();
    }
    details(directory, kind)
}

/// The details of the records of one kind.
fn details(directory: &Path, kind: Kind) -> Vec<String> {
    let mark = format!(r#","event":"{}","time":""#, kind.word());
    let all = records(directory);
    let ours = all.iter().filter_map(|event| event.split_once(&mark));
    ours.map(|(detail, _)| detail.trim_start_matches(r#"{"detail":"#).to_owned())
        .collect()
}

/// SECURITY 8: aggregated after the first ten per minute per address.
#[tokio::test(start_paused = true)]
async fn failed_authentications_are_told_one_by_one_ten_times_a_minute_and_then_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    let tasks = Tasks::new();
    let keeping = journal.clone().keep(tasks.token().clone());
    tasks.spawn_orderly(keeping);
    let one = Some("192.0.2.1".parse().unwrap());
    let other = Some("192.0.2.2".parse().unwrap());
    for n in 0..25 {
        let reason = if n % 2 == 0 {
            "token_expired"
        } else {
            "token_invalid"
        };
        journal.refused(Sender::at(one), Refused::of(reason));
        advance(Duration::from_secs(1)).await;
    }
    journal.refused(Sender::at(other), Refused::of("no_token"));
    advance(Duration::from_secs(41)).await;
    tokio::task::yield_now().await;
    let single = |address: &str, reason: &str| {
        format!(r#"{{"address":"{address}","count":1,"reasons":["{reason}"],"seconds":0}}"#)
    };
    let mut expected: Vec<_> = (0..10)
        .map(|n| {
            single(
                "192.0.2.1",
                if n % 2 == 0 {
                    "token_expired"
                } else {
                    "token_invalid"
                },
            )
        })
        .collect();
    expected.push(single("192.0.2.2", "no_token"));
    let told = written(&journal, directory.path(), Kind::Authentication);
    assert_eq!(told[..11], expected);
    assert_eq!(told.len(), 12, "{told:?}");
    let rest = r#"{"address":"192.0.2.1","count":15,"reasons":["token_expired","token_invalid"],"seconds":"#;
    assert!(told[11].starts_with(rest), "{}", told[11]);
    // A new minute begins with single ones, and what is not over at the end is told.
    for _ in 0..12 {
        journal.refused(Sender::at(one), Refused::of("no_token"));
    }
    tasks.finish().await;
    let told = written(&journal, directory.path(), Kind::Authentication);
    assert_eq!(told.len(), 12 + 10 + 1);
    assert!(told[22].contains(r#""count":2"#), "{}", told[22]);
    drop(keeper);
}

/// SECURITY 4, 8: what an answer refers to is in a record, be it one of its own or that of a minute.
#[tokio::test(start_paused = true)]
async fn who_was_kept_out_is_found_by_the_reference_and_with_the_check_that_was_told_to_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    let tasks = Tasks::new();
    tasks.spawn_orderly(journal.clone().keep(tasks.token().clone()));
    let one = Some("192.0.2.1".parse().unwrap());
    let mut references = Vec::new();
    for check in ["expired", "signature"].into_iter().cycle().take(14) {
        let reference = CallId::new();
        references.push(reference.to_string());
        let refused = Refused {
            check: Some(check),
            reference: Some(reference),
            ..Refused::of("credential_invalid")
        };
        journal.refused(Sender::at(one), refused);
    }
    tasks.finish().await;
    drop((journal, keeper));
    let told = details(directory.path(), Kind::Authentication);
    assert_eq!(told.len(), 11, "{told:?}");
    let single = format!(
        r#"{{"address":"192.0.2.1","checks":["expired"],"count":1,"reasons":["credential_invalid"],"refs":["{}"],"seconds":0}}"#,
        references[0]
    );
    assert_eq!(told[0], single);
    let rest = r#"{"address":"192.0.2.1","checks":["expired","signature"],"count":4,"reasons":["credential_invalid"],"refs":["#;
    assert!(told[10].starts_with(rest), "{}", told[10]);
    let named = references
        .iter()
        .map(|reference| format!("\"{reference}\""));
    let told_of = |named: String| told.iter().filter(|it| it.contains(&named)).count();
    assert!(named.map(told_of).all(|count| count == 1), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn many_addresses_are_counted_as_one_beyond_a_bound_and_all_of_them_are_counted() {
    let mut failures = Failures::new(Measure::AUTHENTICATION);
    let now = Instant::now();
    let mut told = 0;
    for n in 0..10_000_u32 {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
        for failed in failures.add(
            Sender::at(Some(address.into())),
            Refused::of("no_token"),
            now,
        ) {
            told += failed.count;
        }
    }
    // So many one by one in a second, whoever they are.
    assert_eq!(told, 100);
    let rest = failures.sweep(now + Duration::from_secs(60), false);
    assert_eq!(
        rest.iter().map(|failed| failed.count).sum::<u64>() + told,
        10_000
    );
    assert_eq!(rest.len(), 4_096 - 100 + 1);
    let others = rest.iter().find(|failed| failed.address.is_none());
    assert_eq!(others.unwrap().count, 10_000 - 4_096);
    // The addresses of one network of IPv6 are one.
    let mut told = 0;
    for n in 0..100_u128 {
        let address = std::net::Ipv6Addr::from_bits((0x2001_0db8 << 96) + n);
        let later = now + Duration::from_secs(120);
        told += failures
            .add(
                Sender::at(Some(address.into())),
                Refused::of("no_token"),
                later,
            )
            .len();
    }
    assert_eq!(told, 10);
}

#[tokio::test(start_paused = true)]
async fn an_episode_is_told_by_its_beginning_and_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    let tasks = Tasks::new();
    let keeping = journal.clone().keep(tasks.token().clone());
    tasks.spawn_orderly(keeping);
    for _ in 0..30 {
        journal.exceeded(Kind::Limit, "50/s per principal");
        advance(Duration::from_secs(2)).await;
    }
    journal.exceeded(Kind::Overload, "queue of docs");
    tokio::task::yield_now().await;
    let began = r#"{"name":"50/s per principal","state":"began"}"#;
    assert_eq!(written(&journal, directory.path(), Kind::Limit), [began]);
    advance(Duration::from_secs(66)).await;
    tokio::task::yield_now().await;
    let ended = r#"{"count":30,"name":"50/s per principal","seconds":58,"state":"ended"}"#;
    assert_eq!(
        written(&journal, directory.path(), Kind::Limit),
        [began, ended]
    );
    journal.exceeded(Kind::Limit, "50/s per principal");
    tasks.finish().await;
    let all = written(&journal, directory.path(), Kind::Limit);
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(written(&journal, directory.path(), Kind::Overload).len(), 2);
    drop(keeper);
}

#[tokio::test]
async fn a_note_is_in_the_log_and_a_journal_that_is_off_notes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    journal.note(Kind::Configuration, |detail| {
        detail.text("digest", "abc").text("state", "in_force");
    });
    Journal::off().note(Kind::Stop, |_| {});
    drop(keeper);
    let told = details(directory.path(), Kind::Configuration);
    assert_eq!(told, [r#"{"digest":"abc","state":"in_force"}"#]);
    assert!(details(directory.path(), Kind::Stop).is_empty());
}

/// Nobody fills the log with what is no message, from however many addresses.
#[tokio::test(start_paused = true)]
async fn messages_that_are_none_are_told_ten_in_a_second_and_counted_all() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    let tasks = Tasks::new();
    tasks.spawn_orderly(journal.clone().keep(tasks.token().clone()));
    for second in 0..3_u8 {
        for n in 0..1_000_u16 {
            let [high, low] = n.to_be_bytes();
            let address = IpAddr::from([10, second, high, low]);
            journal.turned_away(Sender::at(Some(address)), "invalid_json", None);
        }
        advance(Duration::from_secs(1)).await;
    }
    tasks.finish().await;
    drop((journal, keeper));
    let told = details(directory.path(), Kind::Refused);
    let single = told.iter().filter(|told| told.contains(r#""seconds":0}"#));
    assert!(single.count() <= 30 + 256, "{}", told.len());
    // Ten in each second one by one, and 256 addresses and all others when it is over.
    assert!(told.len() <= 30 + 257, "{}", told.len());
    let counts = told.iter().map(|told| {
        let (_, rest) = told.split_once(r#""count":"#).unwrap();
        let (count, _) = rest.split_once(',').unwrap();
        count.parse::<u64>().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), 3_000);
}

/// SECURITY AUD-2: who was kept out is nobody that was let in, and may come any number of times.
#[tokio::test(start_paused = true)]
async fn strangers_fill_no_memory_while_nothing_can_be_written_and_all_of_them_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let bounds = Bounds {
        records: 4,
        ..Bounds::default()
    };
    let (journal, keeper) = journal_on(&disk, directory.path(), bounds);
    disk.full.store(true, Relaxed);
    for n in 0..250_u32 {
        // As many in a second as are told one by one.
        if n % 10 == 0 {
            advance(Duration::from_secs(1)).await;
        }
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
        journal.refused(Sender::at(Some(address.into())), Refused::of("no_token"));
        journal.turned_away(Sender::at(Some(address.into())), "invalid_json", None);
    }
    let kept = journal.0.as_ref().unwrap().recorder.lag();
    assert!(kept <= 4, "{kept}");
    // What the gateway itself did is told whatever waits.
    journal.note(Kind::Configuration, |_| {});
    disk.full.store(false, Relaxed);
    drop(keeper);
    assert_eq!(details(directory.path(), Kind::Configuration).len(), 1);
    let there = [Kind::Authentication, Kind::Refused].map(|kind| details(directory.path(), kind));
    let all = records(directory.path());
    let lost = all.iter().filter_map(|event| {
        let (_, count) = event.split_once(r#""lost":"#)?;
        count.split_once(',')?.0.parse::<usize>().ok()
    });
    assert_eq!(there.concat().len() + lost.sum::<usize>(), 500);
}

fn found(upstream: &str, class: &'static str, rule: &str) -> Finding {
    Finding {
        kind: class,
        rule: rule.into(),
        action: Action::Flag,
        direction: Direction::Definitions,
        place: "/tools".into(),
        length: 0,
        digest: None,
        upstream: UpstreamId::parse(upstream),
        item: Some("t".into()),
        call: None,
        at: SystemTime::UNIX_EPOCH,
    }
}

/// One server that offers thousands of definitions anew each second does not fill the log, and hides nothing of another.
#[tokio::test(start_paused = true)]
async fn definitions_are_told_one_by_one_a_hundred_times_a_minute_and_then_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    let tasks = Tasks::new();
    tasks.spawn_orderly(journal.clone().keep(tasks.token().clone()));
    for _ in 0..30 {
        for _ in 0..900 {
            journal.defined(&found("evil", "definition_changed", "new"));
        }
        for _ in 0..90 {
            journal.defined(&found("evil", "injection", "override"));
        }
        advance(Duration::from_secs(1)).await;
    }
    journal.defined(&found("good", "definition_changed", "changed"));
    advance(Duration::from_secs(36)).await;
    tokio::task::yield_now().await;
    let told = written(&journal, directory.path(), Kind::Quarantine);
    assert_eq!(told.len(), 100 + 10 + 1 + 1);
    let single = |upstream: &str, rule: &str| {
        format!(
            r#"{{"action":"flag","class":"definition_changed","item":"t","place":"/tools","rule":"{rule}","upstream":"{upstream}"}}"#
        )
    };
    assert!(told[..100].iter().all(|it| *it == single("evil", "new")));
    let hidden = single("evil", "override").replace("definition_changed", "injection");
    assert!(told[100..110].iter().all(|it| *it == hidden));
    assert_eq!(told[110], single("good", "changed"));
    let rest = r#"{"count":29590,"found":[{"action":"flag","class":"definition_changed","count":26900,"rule":"new"},{"action":"flag","class":"injection","count":2690,"rule":"override"}],"seconds":6"#;
    assert!(told[111].starts_with(rest), "{}", told[111]);
    assert!(told[111].ends_with(r#","upstream":"evil"}"#));
    // The minute after begins anew, and what is not over at the end is told.
    for _ in 0..102 {
        journal.defined(&found("evil", "definition_changed", "new"));
    }
    tasks.finish().await;
    let told = written(&journal, directory.path(), Kind::Quarantine);
    assert_eq!(told.len(), 112 + 100 + 1);
    assert!(told[212].starts_with(r#"{"count":2,"#), "{}", told[212]);
    drop(keeper);
}

/// SECURITY 4, 8, MSG-9: who is known is named, and what was asked for; however many strangers there are.
#[tokio::test(start_paused = true)]
async fn who_is_known_is_named_where_what_they_sent_was_no_call() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, keeper) = journal(directory.path());
    let tasks = Tasks::new();
    tasks.spawn_orderly(journal.clone().keep(tasks.token().clone()));
    let somebody = |name: &str, kind| {
        Arc::new(Identity {
            principal: Principal::new(format!("test {name}")),
            issuer: Some("https://login.example".into()),
            ..Identity::named(kind, name)
        })
    };
    let mallory = somebody("mallory", IdentityKind::User);
    let ana = somebody("ana", IdentityKind::User);
    let nobody = somebody("anonymous", IdentityKind::Anonymous);
    let address: Option<IpAddr> = Some("192.0.2.1".parse().unwrap());
    // Strangers take all that is told one by one, and all that is counted apart.
    for n in 0..1_000_u16 {
        let [high, low] = n.to_be_bytes();
        let sender = Sender::at(Some(IpAddr::from([10, 0, high, low])));
        journal.turned_away(sender, "invalid_json", None);
    }
    let by = |who, method| Sender::at(address).by(who).asking(Some(method));
    journal.turned_away(by(&nobody, "x/y"), "method_not_found", None);
    for n in 0..14 {
        let (method, reason) = [
            ("tools/call", "header_mismatch"),
            ("admin/hunter2", "method_not_found"),
        ][n % 2];
        journal.turned_away(by(&mallory, method), reason, None);
    }
    let long = "x".repeat(65);
    journal.turned_away(by(&ana, &long), "confusable_member", None);
    tasks.finish().await;
    drop((journal, keeper));
    let told = details(directory.path(), Kind::Refused);
    let of = |who: &str| {
        let principal = format!(
            r#""principal":{{"auth_method":"token","issuer":"https://login.example","kind":"user","name":"{who}"}}"#
        );
        let told = told.iter().filter(|it| it.contains(&principal));
        told.map(|it| it.replace(&principal, "P"))
            .collect::<Vec<_>>()
    };
    let mallory = of("mallory");
    assert_eq!(mallory.len(), 10 + 1, "{mallory:?}");
    assert_eq!(
        mallory[0],
        r#"{"address":"192.0.2.1","count":1,"methods":["tools/call"],P,"reasons":["header_mismatch"],"seconds":0}"#
    );
    assert_eq!(
        mallory[10],
        r#"{"address":"192.0.2.1","count":4,"methods":["tools/call","admin/[redacted]"],P,"reasons":["header_mismatch","method_not_found"],"seconds":0}"#
    );
    let ana = of("ana");
    assert_eq!(
        ana,
        [r#"{"address":"192.0.2.1","count":1,P,"reasons":["confusable_member"],"seconds":0}"#]
    );
    let named = told.iter().filter(|it| it.contains("principal"));
    assert_eq!(named.count(), 12, "nobody is named who is not known");
}

#[test]
fn whoever_is_turned_away_is_counted_where_nothing_is_recorded() {
    metrics::seen::take_turned_away();
    let journal = Journal::off();
    journal.refused(Sender::at(None), Refused::of("credential_invalid"));
    journal.turned_away(Sender::at(None), "unknown_session", None);
    let counted = metrics::seen::take_turned_away();
    assert_eq!(counted, ["credential_invalid", "unknown_session"]);
}
