//! Limits: what rules may say, what bounds may be, and what is wrong with the rest.

use std::time::Duration;

use super::*;
use crate::limits::LimitRules;

/// The example of the product description.
const EXAMPLE: &str = "\
upstreams: { warehouse: { command: [run] } }
limits:
  - { per: principal, rate: 50/s, burst: 200 }
  - { per: [principal, tool], match: \"github_*\", rate: 30/min }
  - { per: upstream, name: warehouse, concurrency: 16, queue: 32 }
  - { per: tenant, daily: 100000 }
";

fn named(yaml: &str) -> Vec<String> {
    let rules = Files::with(yaml).plan().limits.rules;
    rules.iter().map(ToString::to_string).collect()
}

#[test]
fn what_only_goes_with_a_broken_amount_is_no_second_problem() {
    for (broken, path) in [
        ("rate: 50/fortnight, burst: 3", "limits[0].rate"),
        (
            "concurrency: many, queue: 3, wait: 1s",
            "limits[0].concurrency",
        ),
        ("concurrency: 3, queue: many, wait: 1s", "limits[0].queue"),
    ] {
        let problem = only(&format!("limits: [{{ per: principal, {broken} }}]\n"));
        assert_eq!(problem.path, path);
    }
}

#[test]
fn the_published_example_loads_and_means_what_it_says() {
    assert_eq!(
        named(EXAMPLE),
        [
            "50/s, burst 200, per principal",
            "30/min per principal and tool (tool github_*)",
            "16 at once per upstream (upstream warehouse)",
            "100000 a day per tenant",
        ]
    );
    assert_eq!(
        Files::with("# nothing\n").plan().limits,
        LimitRules::default()
    );
}

#[test]
fn one_entry_may_say_several_things_and_name_what_it_is_about() {
    let yaml = "\
limits:
  - { per: [], rate: 1000/h, concurrency: 9, queue: 3, wait: 500ms, daily: 10000 }
  - { per: [address, method], match: { method: \"tools/*\", group: interns }, rate: 9/d }
";
    assert_eq!(
        named(yaml),
        [
            "1000/h",
            "9 at once",
            "10000 a day",
            "9/d per address and method (group interns, method tools/*)",
        ]
    );
}

#[test]
fn every_mistake_in_a_rule_is_told_where_it_stands() {
    let yaml = "\
toolsets: { oncall: { tools: [x] } }
limits:
  - { per: user, rate: 50/s }
  - { per: tool, rate: 50 }
  - { per: tool, rate: 0/s }
  - { rate: 1/s }
  - { per: tool }
  - { per: tool, daily: 0 }
  - { per: tool, rate: 1/s, queue: 3 }
  - { per: tenant, rate: 1/s, burst: 0 }
  - { per: upstream, name: nobody, rate: 1/s }
  - { per: toolset, name: on-call, rate: 1/s }
  - { per: [], match: x, daily: 1 }
  - { per: group, match: { user: x }, rate: 1/s }
  - { per: client, match: x, name: x, rate: 1/s }
  - { per: method, rate: 1/s }
  - { per: method, rate: 2/s }
  - { per: tool, rate: 1/d, burst: 300000 }
";
    let found: Vec<(usize, String)> = lines(yaml)
        .into_iter()
        .map(|(line, _, _, message)| (line, message))
        .collect();
    let found: Vec<(usize, &str)> = found.iter().map(|(line, text)| (*line, &**text)).collect();
    assert_eq!(
        found,
        [
            (3, "calls are not told apart by `user`"),
            (4, "not a rate"),
            (5, "not a rate"),
            (6, "a rule without `per`"),
            (7, "a rule that limits nothing"),
            (8, "0 is out of range"),
            (9, "`queue` without `concurrency`"),
            (10, "0 is out of range"),
            (11, "there is no upstream `nobody`"),
            (12, "there is no toolset `on-call`"),
            (13, "nothing that this could be the name of"),
            (14, "calls are not told apart by `user`"),
            (15, "`match` says already which calls are meant"),
            (
                17,
                "another rule before this one limits the same calls in the same way"
            ),
            (
                18,
                "300000 calls at once take more than ten years to be earned at this rate"
            ),
        ]
    );
}

#[test]
fn bounds_of_calls_in_flight_hold_at_both_ends_of_their_ranges() {
    let plan = Files::with(
        "bounds: { in_flight: { principal: 1, principal_upstream: 100000, upstream: 7, process: 1000000 }, queue: { length: 0, time: 1ms }, subscriptions: { per_principal: 1, total: 1000000 }, meters: 1000, memory: 64MiB }\nupstreams: { a: { command: [run], concurrency: 7 }, b: { command: [run] } }\n",
    )
    .plan();
    let most = plan.limits.in_flight;
    assert_eq!(
        (most.principal, most.principal_upstream, most.process),
        (1, 100_000, 1_000_000)
    );
    assert_eq!((plan.limits.keys, plan.listens.total), (1_000, 1_000_000));
    assert_eq!(plan.memory, Some(64 << 20));
    let queue = plan.upstreams[0].queue;
    assert_eq!(
        (queue.length, queue.time, queue.in_flight),
        (0, Duration::from_millis(1), 7)
    );
    // The default gives way to the bound.
    assert_eq!(plan.upstreams[1].concurrency, 7);
    for (yaml, path) in [
        ("in_flight: { principal: 0 }", "bounds.in_flight.principal"),
        (
            "in_flight: { principal_upstream: 100001 }",
            "bounds.in_flight.principal_upstream",
        ),
        ("in_flight: { upstream: 0 }", "bounds.in_flight.upstream"),
        (
            "in_flight: { process: 1000001 }",
            "bounds.in_flight.process",
        ),
        ("queue: { length: 10001 }", "bounds.queue.length"),
        ("queue: { time: 61s }", "bounds.queue.time"),
        ("subscriptions: { total: 0 }", "bounds.subscriptions.total"),
        (
            "subscriptions: { per_principal: 0 }",
            "bounds.subscriptions.per_principal",
        ),
        ("meters: 999", "bounds.meters"),
        ("memory: 15MiB", "bounds.memory"),
        ("memory: 1025GiB", "bounds.memory"),
    ] {
        let problem = only(&format!("bounds: {{ {yaml} }}\n"));
        assert_eq!(problem.path, path);
        assert!(problem.hint.unwrap_or_default().contains("the default is"));
    }
    let problem = only("bounds: { memory: 63MiB }\n");
    assert_eq!(problem.path, "bounds.memory");
    assert!(
        problem
            .hint
            .unwrap_or_default()
            .contains("bounds.http.body")
    );
    let plan = Files::with("bounds: { memory: 16MiB, http: { body: 4MiB } }\n").plan();
    assert_eq!(plan.memory, Some(16 << 20));
}
