//! `limits:`: rules on how much one caller may have.

use std::time::Duration;

use super::{Check, secs};
use crate::{
    config::{
        raw::limits::{Limit, Matching, WAIT},
        units::Time,
    },
    limits::{Amount, Concurrency, Dimension, Glob, Pattern, Rate, Rule},
    protocol::UpstreamId,
};

/// Which dimension a bare pattern is for: the first of these that a rule counts by.
const NAMED: [Dimension; 9] = [
    Dimension::Tool,
    Dimension::Upstream,
    Dimension::Toolset,
    Dimension::Method,
    Dimension::Client,
    Dimension::Tenant,
    Dimension::Group,
    Dimension::Principal,
    Dimension::Address,
];

/// The longest pattern, in bytes.
const PATTERN: usize = 256;

/// The most rules.
const RULES: usize = 1_000;

/// What there is to be limited.
pub(super) struct Known<'a> {
    /// Keys of upstreams.
    pub(super) upstreams: Vec<&'a str>,
    /// Names of toolsets.
    pub(super) toolsets: Vec<&'a str>,
}

/// Every rule.
pub(super) fn rules(check: &mut Check<'_>, raw: &[Limit], known: &Known<'_>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for (number, limit) in raw.iter().enumerate() {
        let number = number.to_string();
        let mistakes = check.findings.problems.len();
        for rule in one(check, &number, limit, known) {
            // What was not understood is no second rule of the same kind.
            let understood = check.findings.problems.len() == mistakes;
            if understood && rules.iter().any(|before| before.meters_like(&rule)) {
                check.wrong_key(
                    &["limits", &number],
                    "another rule before this one limits the same calls in the same way",
                    "keep one of them; what counts together has one limit",
                );
                continue;
            }
            rules.push(rule);
        }
    }
    if rules.len() > RULES {
        check.wrong(
            &["limits"],
            format!("more than {RULES} rules"),
            "fewer, with patterns",
        );
        rules.truncate(RULES);
    }
    rules
}

/// The rules of one entry: one for each amount in it.
fn one(check: &mut Check<'_>, number: &str, raw: &Limit, known: &Known<'_>) -> Vec<Rule> {
    let at = |key: &'static str| ["limits", number, key];
    let per = per(check, number, raw);
    let only = only(check, number, raw, &per, known);
    let mut amounts = Vec::new();
    if let Some(rate) = raw.rate {
        let calls = rate.calls as usize;
        let burst = check.count(&at("burst"), raw.burst, calls, (1, 1_000_000));
        let rate = Rate {
            calls: rate.calls,
            period: secs(rate.seconds),
            burst: u32::try_from(burst).unwrap_or(rate.calls),
        };
        if rate.burst > Rate::most_at_once(rate.period / rate.calls.max(1)) {
            check.wrong(
                &at("burst"),
                format!("{burst} calls at once take more than ten years to be earned at this rate"),
                "a smaller burst, or a higher rate",
            );
        }
        amounts.push(Amount::Rate(rate));
    }
    if raw.concurrency.is_some() {
        let wait = Time::parse(WAIT).map_or(secs(2), |time| time.0);
        amounts.push(Amount::Concurrency(Concurrency {
            calls: check.count(&at("concurrency"), raw.concurrency, 1, (1, 100_000)),
            queue: check.count(&at("queue"), raw.queue, 0, (0, 10_000)),
            wait: check.time(
                &at("wait"),
                raw.wait,
                wait,
                (Duration::from_millis(1), secs(60)),
            ),
        }));
    }
    if let Some(most) = raw.daily {
        if !(1..=Rule::MOST_DAILY).contains(&most) {
            check.wrong(
                &at("daily"),
                format!("{most} is out of range"),
                format!("between 1 and {}", Rule::MOST_DAILY),
            );
        }
        amounts.push(Amount::Daily(most.clamp(1, Rule::MOST_DAILY)));
    }
    for (key, given, needs, there) in [
        ("burst", raw.burst.is_some(), "rate", raw.rate.is_some()),
        (
            "queue",
            raw.queue.is_some(),
            "concurrency",
            raw.concurrency.is_some(),
        ),
        ("wait", raw.wait.is_some(), "queue", raw.queue.is_some()),
    ] {
        if given && !there && !check.was_struck(&["limits", number, needs]) {
            check.missing(
                &["limits", number, key],
                format!("`{key}` without `{needs}`"),
                format!("it says more about `{needs}`"),
            );
        }
    }
    let struck = ["rate", "concurrency", "daily"]
        .iter()
        .any(|key| check.was_struck(&["limits", number, key]));
    if amounts.is_empty() && !struck {
        check.missing(
            &["limits", number],
            "a rule that limits nothing",
            "give it `rate: 50/s`, `concurrency: 16` or `daily: 1000`",
        );
    }
    amounts
        .into_iter()
        .map(|amount| Rule {
            per: per.clone(),
            only: only.clone(),
            amount,
        })
        .collect()
}

fn per(check: &mut Check<'_>, number: &str, raw: &Limit) -> Vec<Dimension> {
    let path = ["limits", number, "per"];
    let Some(words) = &raw.per else {
        check.missing(
            &path[..2],
            "a rule without `per`",
            "say by what calls are told apart, such as `per: principal`; `per: []` counts all together",
        );
        return Vec::new();
    };
    let mut per = Vec::new();
    for word in &words.0 {
        match Dimension::parse(word) {
            Some(dimension) => per.push(dimension),
            None => check.wrong(
                &path,
                format!("calls are not told apart by `{word}`"),
                dimensions(),
            ),
        }
    }
    per.sort_unstable();
    let all = per.len();
    per.dedup();
    if per.len() < all {
        check.wrong(&path, "the same twice", "once is enough");
    }
    per
}

fn only(
    check: &mut Check<'_>,
    number: &str,
    raw: &Limit,
    per: &[Dimension],
    known: &Known<'_>,
) -> Vec<(Dimension, Pattern)> {
    let path = |key: &'static str| ["limits", number, key];
    let bare = NAMED.into_iter().find(|dimension| per.contains(dimension));
    let mut only: Vec<(Dimension, Pattern)> = Vec::new();
    let nameless = |check: &mut Check<'_>, key: &'static str| {
        if raw.per.is_some() {
            check.wrong(
                &path(key),
                "nothing that this could be the name of",
                "with `per: []` write what it is for, such as `match: { tool: \"github_*\" }`",
            );
        }
    };
    match (&raw.matching, bare) {
        (None, _) => {}
        (Some(Matching::One(text)), Some(dimension)) => {
            let pattern = glob(check, &path("match"), text);
            only.extend(pattern.map(|pattern| (dimension, pattern)));
        }
        (Some(Matching::One(_)), None) => nameless(check, "match"),
        (Some(Matching::Each(each)), _) => {
            for (word, text) in &each.0 {
                let path = ["limits", number, "match", word];
                match Dimension::parse(word) {
                    Some(dimension) => {
                        let pattern = glob(check, &path, text);
                        only.extend(pattern.map(|pattern| (dimension, pattern)));
                    }
                    None => {
                        let message = format!("calls are not told apart by `{word}`");
                        check.wrong_key(&path, message, dimensions());
                    }
                }
            }
        }
    }
    if let Some(name) = &raw.name {
        match bare {
            None => nameless(check, "name"),
            Some(dimension) if only.iter().any(|(other, _)| *other == dimension) => check.wrong(
                &path("name"),
                "`match` says already which calls are meant",
                "keep one of them",
            ),
            Some(dimension) => only.push((dimension, Pattern::Exactly(name.as_str().into()))),
        }
    }
    only.sort_by_key(|(dimension, _)| *dimension);
    for (dimension, pattern) in &only {
        let Pattern::Exactly(name) = pattern else {
            continue;
        };
        let (there, what) = match dimension {
            Dimension::Upstream => (&known.upstreams, "upstream"),
            Dimension::Toolset => (&known.toolsets, "toolset"),
            Dimension::Principal
            | Dimension::Group
            | Dimension::Tenant
            | Dimension::Client
            | Dimension::Address
            | Dimension::Tool
            | Dimension::Method => continue,
        };
        if !there.contains(&&**name) {
            let message = format!("there is no {what} `{name}`");
            check.wrong(&path("name"), message, listed(there));
        }
    }
    only
}

fn glob(check: &mut Check<'_>, path: &[&str], text: &str) -> Option<Pattern> {
    let glob = (1..=PATTERN)
        .contains(&text.len())
        .then(|| Glob::parse(text))
        .flatten();
    if glob.is_none() {
        check.wrong(
            path,
            "not a pattern",
            "a name, in which `*` is any run of characters and `?` any one",
        );
    }
    glob.map(Pattern::Like)
}

fn dimensions() -> String {
    let words: Vec<&str> = Dimension::words().collect();
    format!("one of {}", words.join(", "))
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "none is configured".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    }
}

/// Keys that can be upstreams.
pub(super) fn upstream_keys<'a>(keys: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    keys.map(String::as_str)
        .filter(|key| UpstreamId::parse(key).is_some())
        .collect()
}
