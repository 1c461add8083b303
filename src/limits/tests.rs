//! Limits as a whole, in virtual time.

use std::{cell::Cell, net::IpAddr, sync::Arc, time::Duration};

use tokio::time::{Instant, advance};

use super::*;
use crate::{
    call::{Identity, IdentityKind},
    metrics::seen,
    protocol::{UpstreamId, names::Scope},
};

const SECOND: Duration = Duration::from_secs(1);

/// Somebody with a key of this name, in these groups.
fn somebody(name: &str, groups: &[&str]) -> Identity {
    Identity {
        principal: Principal::new(format!("key|{name}")),
        groups: groups.iter().map(|group| Arc::from(*group)).collect(),
        ..Identity::named(IdentityKind::Key, name)
    }
}

fn calls<'a>(identity: &'a Identity, tool: Option<&'a str>) -> Subject<'a> {
    Subject {
        identity,
        address: None,
        scope: &Scope::All,
        method: "tools/call",
        tool,
        upstream: None,
    }
}

fn rate(calls: u32, seconds: u64, burst: u32) -> Amount {
    Amount::Rate(Rate {
        calls,
        period: Duration::from_secs(seconds),
        burst,
    })
}

fn per(per: &[Dimension], amount: Amount) -> Rule {
    Rule {
        per: per.to_vec(),
        only: Vec::new(),
        amount,
    }
}

fn only(rule: Rule, dimension: Dimension, glob: &str) -> Rule {
    let pattern = Pattern::Like(Glob::parse(glob).unwrap());
    Rule {
        only: vec![(dimension, pattern)],
        ..rule
    }
}

fn rules(rules: Vec<Rule>) -> LimitRules {
    LimitRules {
        rules,
        ..LimitRules::default()
    }
}

fn limits(all: Vec<Rule>) -> Limits {
    Limits::new(rules(all))
}

/// How many of `tries` calls at once are let through.
fn admitted(limits: &Limits, stage: Stage, subject: &Subject<'_>, tries: usize) -> usize {
    (0..tries)
        .filter(|_| limits.admit(stage, subject).is_ok())
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_50_a_second_with_a_burst_of_100_admits_what_it_says_over_60_seconds() {
    let limits = limits(vec![per(&[Dimension::Principal], rate(50, 1, 100))]);
    let who = somebody("a", &[]);
    let mut count = 0;
    // 1,000 calls a second, at a pace that shares no beat with the rule's.
    let step = Duration::from_micros(997);
    let began = Instant::now();
    while began.elapsed() < 60 * SECOND {
        count += admitted(&limits, Stage::Entry, &calls(&who, None), 1);
        advance(step).await;
    }
    // The burst, and one each 20 ms.
    let exact = 100 + 60 * 50;
    let off = f64::from((count as i32 - exact).abs()) / f64::from(exact);
    assert!(off < 0.01, "{count} for {exact}");
    assert!(count as i32 <= exact + 1, "{count} for {exact}");
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_takes_longer_than_anybody_lives_to_be_earned_is_bounded() {
    let limits = limits(vec![per(
        &[Dimension::Principal],
        rate(1, 86_400, 1_000_000),
    )]);
    let who = somebody("a", &[]);
    assert_eq!(
        admitted(&limits, Stage::Entry, &calls(&who, None), 5_000),
        3_650
    );
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_let_through_to_the_last_and_the_refusal_says_when_the_next_is() {
    let limits = limits(vec![per(&[Dimension::Principal], rate(2, 1, 3))]);
    let (who, other) = (somebody("a", &[]), somebody("b", &[]));
    let subject = calls(&who, None);
    assert_eq!(admitted(&limits, Stage::Entry, &subject, 3), 3);
    let refused = limits.admit(Stage::Entry, &subject).unwrap_err();
    assert_eq!(
        (&*refused.rule, refused.refusal, refused.retry),
        (
            "2/s, burst 3, per principal",
            Refusal::Rate,
            Duration::from_millis(500)
        )
    );
    assert!(limits.admit(Stage::Entry, &calls(&other, None)).is_ok());
    advance(refused.retry - Duration::from_nanos(1)).await;
    assert!(limits.admit(Stage::Entry, &subject).is_err());
    advance(Duration::from_nanos(1)).await;
    assert!(limits.admit(Stage::Entry, &subject).is_ok());
    assert_eq!(
        limits.status(),
        [RuleStatus {
            name: "2/s, burst 3, per principal".into(),
            admitted: 5,
            refused: 2,
            keys: 2,
        }]
    );
}

#[tokio::test(start_paused = true)]
async fn each_dimension_tells_calls_apart_and_patterns_choose_among_them() {
    let (a, b) = (somebody("a", &["dev", "ops"]), somebody("b", &["dev"]));
    let one = |dimension| limits(vec![per(&[dimension], rate(1, 60, 1))]);
    let second = |limits: &Limits, stage, first: &Subject<'_>, second: &Subject<'_>| {
        limits.admit(stage, first).unwrap();
        limits.admit(stage, second).is_ok()
    };
    let (entry, route) = (Stage::Entry, Stage::Route);
    let (from_a, from_b) = (calls(&a, None), calls(&b, None));
    assert!(second(&one(Dimension::Principal), entry, &from_a, &from_b));
    assert!(!second(&one(Dimension::Principal), entry, &from_a, &from_a));
    // Both are in `dev`.
    assert!(!second(&one(Dimension::Group), entry, &from_a, &from_b));
    // Neither has a tenant or a client: they count together.
    assert!(!second(&one(Dimension::Tenant), entry, &from_a, &from_b));
    assert!(!second(&one(Dimension::Client), entry, &from_a, &from_b));
    let at = |address: &str| Subject {
        address: Some(address.parse::<IpAddr>().unwrap()),
        ..from_a
    };
    let by_address = one(Dimension::Address);
    assert!(second(
        &by_address,
        entry,
        &at("192.0.2.1"),
        &at("192.0.2.2")
    ));
    assert!(!second(
        &by_address,
        entry,
        &at("2001:db8::1"),
        &at("2001:db8::2")
    ));
    let scope = Scope::Toolset("oncall".into());
    let through = Subject {
        scope: &scope,
        ..from_a
    };
    assert!(second(&one(Dimension::Toolset), entry, &from_a, &through));
    let listing = Subject {
        method: "tools/list",
        ..from_a
    };
    assert!(second(&one(Dimension::Method), entry, &from_a, &listing));
    let (x, y) = (calls(&a, Some("x")), calls(&a, Some("y")));
    assert!(second(&one(Dimension::Tool), route, &x, &y));
    let (first, other) = (
        UpstreamId::parse("first").unwrap(),
        UpstreamId::parse("other").unwrap(),
    );
    let to = |upstream| Subject {
        upstream: Some(upstream),
        ..from_a
    };
    assert!(second(
        &one(Dimension::Upstream),
        route,
        &to(&first),
        &to(&other)
    ));
    assert!(!second(
        &one(Dimension::Upstream),
        route,
        &to(&first),
        &to(&first)
    ));
    // Not a tool call, and not to an upstream: not meant.
    let by_tool = one(Dimension::Tool);
    assert_eq!(admitted(&by_tool, route, &from_a, 9), 9);
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_one_group_counts_its_members_by_that_group_alone() {
    let rule = only(
        per(&[Dimension::Group], rate(1, 60, 1)),
        Dimension::Group,
        "ops",
    );
    let limits = limits(vec![rule]);
    let (a, b) = (somebody("a", &["dev", "ops"]), somebody("b", &["dev"]));
    assert_eq!(admitted(&limits, Stage::Entry, &calls(&a, None), 5), 1);
    assert_eq!(admitted(&limits, Stage::Entry, &calls(&b, None), 5), 5);
}

#[tokio::test(start_paused = true)]
async fn several_dimensions_and_a_pattern_meet_as_in_the_published_example() {
    let rule = only(
        per(&[Dimension::Principal, Dimension::Tool], rate(30, 60, 30)),
        Dimension::Tool,
        "github_*",
    );
    let limits = limits(vec![rule]);
    let (a, b) = (somebody("a", &[]), somebody("b", &[]));
    let of = |who, tool| admitted(&limits, Stage::Route, &calls(who, Some(tool)), 40);
    assert_eq!(of(&a, "github_list"), 30);
    assert_eq!(of(&a, "github_read"), 30);
    assert_eq!(of(&b, "github_list"), 30);
    assert_eq!(of(&a, "wh_sql"), 40);
}

thread_local! {
    /// The time of day, in seconds since 1970.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

#[tokio::test(start_paused = true)]
async fn a_quota_ends_with_the_utc_day() {
    NOW.set(3 * 86_400 - 10);
    let rules = rules(vec![per(&[Dimension::Tenant], Amount::Daily(3))]);
    let limits = Limits::with(rules, Clock::with(|| NOW.get()));
    let who = somebody("a", &[]);
    let subject = calls(&who, None);
    assert_eq!(admitted(&limits, Stage::Entry, &subject, 5), 3);
    let refused = limits.admit(Stage::Entry, &subject).unwrap_err();
    assert_eq!(
        (refused.refusal, refused.retry),
        (Refusal::Quota, Duration::from_secs(10))
    );
    NOW.set(3 * 86_400);
    assert_eq!(admitted(&limits, Stage::Entry, &subject, 5), 3);
    // A clock that is set back opens no more than that day.
    NOW.set(3 * 86_400 - 1);
    assert_eq!(admitted(&limits, Stage::Entry, &subject, 5), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_rate_or_a_later_quota_refuses_does_not_count_with_quotas() {
    NOW.set(0);
    let rules = rules(vec![
        per(&[Dimension::Principal], Amount::Daily(100)),
        per(&[Dimension::Tenant], Amount::Daily(4)),
        per(&[Dimension::Principal], rate(1, 1, 2)),
    ]);
    let limits = Limits::with(rules, Clock::with(|| NOW.get()));
    let who = somebody("a", &[]);
    for _ in 0..3 {
        admitted(&limits, Stage::Entry, &calls(&who, None), 50);
        advance(2 * SECOND).await;
    }
    let admitted: Vec<u64> = limits.status().iter().map(|rule| rule.admitted).collect();
    // The rate let six through; of those the tenant's quota let four.
    assert_eq!(admitted, [6, 4, 4]);
}

#[tokio::test(start_paused = true)]
async fn rules_swap_and_meters_stay() {
    let first = limits(vec![
        per(&[Dimension::Principal], rate(1, 60, 4)),
        per(&[Dimension::Method], Amount::Daily(10)),
        per(
            &[],
            Amount::Concurrency(Concurrency {
                calls: 1,
                queue: 0,
                wait: SECOND,
            }),
        ),
    ]);
    let who = somebody("a", &[]);
    let subject = calls(&who, None);
    assert_eq!(admitted(&first, Stage::Entry, &subject, 9), 4);
    let held = first.acquire(Stage::Entry, &subject).unwrap();
    // In another order, with other amounts.
    let next = first.swapped(rules(vec![
        per(&[Dimension::Method], Amount::Daily(6)),
        per(
            &[],
            Amount::Concurrency(Concurrency {
                calls: 2,
                queue: 0,
                wait: SECOND,
            }),
        ),
        per(&[Dimension::Principal], rate(60, 60, 4)),
    ]));
    assert!(next.admit(Stage::Entry, &subject).is_err());
    advance(Duration::from_secs(240)).await;
    assert_eq!(admitted(&next, Stage::Entry, &subject, 9), 2);
    let status: Vec<(String, u64)> = next
        .status()
        .iter()
        .map(|rule| (rule.name.to_string(), rule.admitted))
        .collect();
    assert_eq!(status[1], ("6 a day per method".to_owned(), 6));
    let other = next.acquire(Stage::Entry, &subject).unwrap();
    assert!(next.acquire(Stage::Entry, &subject).is_err());
    drop((held, other));
    assert!(next.acquire(Stage::Entry, &subject).is_ok());
    // A rule that is asked in another way begins anew.
    let new = next.swapped(rules(vec![per(&[Dimension::Toolset], Amount::Daily(6))]));
    assert_eq!(admitted(&new, Stage::Entry, &subject, 9), 6);
}

#[tokio::test(start_paused = true)]
async fn fixed_bounds_hold_at_one_less_at_the_limit_and_one_more() {
    let most = InFlight {
        principal: 3,
        principal_upstream: 2,
        process: 5,
    };
    let limits = Limits::new(LimitRules {
        in_flight: most,
        ..LimitRules::default()
    });
    let (a, b) = (somebody("a", &[]), somebody("b", &[]));
    let nobody = Identity::anonymous();
    let seat = |stage, subject: &Subject<'_>| match limits.acquire(stage, subject) {
        Ok(Acquired::Now(held)) => Ok(held),
        Ok(Acquired::Later(_)) => panic!("no bound has a line"),
        Err(limited) => Err((limited.rule.to_string(), limited.whole)),
    };
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(seat(Stage::Entry, &calls(&a, None)).unwrap());
    }
    assert_eq!(
        seat(Stage::Entry, &calls(&a, None)).unwrap_err(),
        ("requests in flight of one principal".to_owned(), false)
    );
    // Nobody in particular is everybody: the process alone bounds it.
    held.push(seat(Stage::Entry, &calls(&nobody, None)).unwrap());
    held.push(seat(Stage::Entry, &calls(&b, None)).unwrap());
    assert_eq!(
        seat(Stage::Entry, &calls(&b, None)).unwrap_err(),
        ("requests in flight".to_owned(), true)
    );
    held.pop();
    assert!(seat(Stage::Entry, &calls(&b, None)).is_ok());

    let upstream = UpstreamId::parse("u").unwrap();
    let to = |identity| Subject {
        upstream: Some(&upstream),
        ..calls(identity, None)
    };
    let mut ways = vec![
        seat(Stage::Route, &to(&a)).unwrap(),
        seat(Stage::Route, &to(&a)).unwrap(),
    ];
    assert!(seat(Stage::Route, &to(&a)).is_err());
    assert!(seat(Stage::Route, &to(&b)).is_ok());
    ways.pop();
    assert!(seat(Stage::Route, &to(&a)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_wait_in_line_and_a_refused_one_holds_nothing() {
    let terms = |calls, queue| {
        Amount::Concurrency(Concurrency {
            calls,
            queue,
            wait: 2 * SECOND,
        })
    };
    let limits = limits(vec![
        per(&[Dimension::Method], terms(2, 1)),
        per(&[Dimension::Principal], terms(2, 0)),
    ]);
    let (a, b) = (somebody("a", &[]), somebody("b", &[]));
    let far = Instant::now() + 60 * SECOND;
    let seat = |who| limits.acquire(Stage::Entry, &calls(who, None));
    let Ok(Acquired::Now(first)) = seat(&a) else {
        panic!()
    };
    let Ok(Acquired::Now(_second)) = seat(&a) else {
        panic!()
    };
    // The method's line first; then there is no room for the principal, once it is its turn.
    let Ok(Acquired::Later(waiting)) = seat(&a) else {
        panic!()
    };
    let began = Instant::now();
    let refused = waiting.turn(far).await.unwrap_err();
    assert_eq!(
        (&*refused.rule, refused.refusal, refused.retry),
        ("2 at once per method", Refusal::Overload, SECOND)
    );
    assert_eq!(began.elapsed(), 2 * SECOND);
    let Ok(Acquired::Later(waiting)) = seat(&b) else {
        panic!()
    };
    let mut turn = Box::pin(waiting.turn(far));
    assert!(futures_util::poll!(turn.as_mut()).is_pending());
    drop(first);
    let held = turn.await.unwrap();
    assert!(!held.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_million_keys_stay_within_the_stated_number_and_are_still_held_to_the_rule() {
    let limits = limits(vec![
        per(&[Dimension::Client], rate(1, 3_600, 1)),
        per(&[Dimension::Client], Amount::Daily(1)),
    ]);
    let mut who = somebody("a", &[]);
    let mut let_through = 0;
    for number in 0..1_000_000_u32 {
        who.client = Some(number.to_string().into());
        let_through += admitted(&limits, Stage::Entry, &calls(&who, None), 1);
    }
    let most = limits.rules().keys.next_multiple_of(64) + 64;
    for rule in limits.status() {
        assert!(rule.keys <= most, "{rule:?}");
    }
    // Each key that found a place, and one for all that found none.
    assert!(let_through <= most + 1, "{let_through}");
    // Those who came first are known still.
    who.client = Some("0".into());
    assert!(limits.admit(Stage::Entry, &calls(&who, None)).is_err());
}

#[tokio::test(start_paused = true)]
async fn keys_that_find_no_place_are_counted_whatever_they_are_held_to() {
    let at_once = Amount::Concurrency(Concurrency {
        calls: 1_000,
        queue: 0,
        wait: SECOND,
    });
    for amount in [rate(1_000, 3_600, 1_000), Amount::Daily(1_000), at_once] {
        let limits = Limits::new(LimitRules {
            keys: 64,
            ..rules(vec![per(&[Dimension::Client], amount)])
        });
        seen::take_overflowed();
        let mut held = Vec::new();
        for number in 0..200_u32 {
            let mut who = somebody("a", &[]);
            who.client = Some(number.to_string().into());
            let subject = calls(&who, None);
            limits.admit(Stage::Entry, &subject).unwrap();
            held.push(limits.acquire(Stage::Entry, &subject).unwrap());
        }
        let kept = limits.status()[0].keys;
        assert_eq!(seen::take_overflowed(), 200 - kept, "{amount:?}");
    }
}
