//! A record as a person reads it.

use crate::{
    audit::{
        entry::{Detail, Entry},
        query::Hit,
    },
    cli::out,
};

/// The columns.
pub(super) const HEADING: [&str; 8] = [
    "TIME", "WHO", "WHAT", "TARGET", "STAGE", "RESULT", "REASON", "REF",
];

/// The most characters of a column that others fill.
const WIDEST: usize = 48;

/// The cells of a record.
pub(super) fn cells(entry: &Entry) -> Vec<String> {
    // What is no call has its own words for the same.
    let detail = |names: &[&str]| entry.detail.any(names);
    let some = |text: Option<&str>| short(text.unwrap_or_default());
    let result = entry.outcome.as_deref().or(entry.decision.as_deref());
    let result = some(result.or_else(|| detail(Detail::RESULT)));
    let rules = entry.findings.iter().map(|found| found.rule.as_str());
    let reasons = entry.reason.iter().map(String::as_str).chain(rules);
    let reasons: Vec<_> = reasons.chain(entry.detail.all(Detail::REASON)).collect();
    vec![
        time(&entry.time),
        match entry.principal.name.as_str() {
            "" => some(detail(Detail::WHO)),
            name => short(name),
        },
        match (&entry.method, detail(Detail::WHAT)) {
            (Some(method), _) => short(method),
            (None, Some(operation)) => short(&format!("{} {operation}", entry.event)),
            (None, None) => short(&entry.event),
        },
        some(
            entry
                .target
                .exposed
                .as_deref()
                .or_else(|| detail(&["subject", "item", "upstream", "address", "digest", "name"])),
        ),
        some(entry.stage.as_deref()),
        coloured(&result),
        short(&reasons.join(", ")),
        references(entry),
    ]
}

/// What the answer refers to; of a record of many, the first and how many more.
fn references(entry: &Entry) -> String {
    let mut all = entry
        .call
        .iter()
        .map(String::as_str)
        .chain(entry.detail.all(Detail::REFS));
    let first = all.next().unwrap_or_default();
    match all.count() {
        0 => short(first),
        more => short(&format!("{first} (+{more})")),
    }
}

/// A record as one line with columns that stand still, for lines that come one by one.
pub(super) fn line(hit: &Hit<'_>) -> String {
    let cells = cells(&hit.entry);
    let mut text = String::new();
    for (cell, width) in cells.iter().zip([23, 14, 16, 28, 8, 10, 0, 0]) {
        let shown = anstream::adapter::strip_str(cell).to_string();
        let shown = shown.chars().count();
        text.push_str(cell);
        if !cell.is_empty() || width > 0 {
            text.extend(std::iter::repeat_n(' ', width.max(shown) - shown + 1));
        }
    }
    let text = text.trim_end();
    if out::to_terminal() {
        text.to_owned()
    } else {
        anstream::adapter::strip_str(text).to_string()
    }
}

fn short(text: &str) -> String {
    out::short(text, WIDEST)
}

/// To the millisecond.
fn time(time: &str) -> String {
    let cut = time.get(..23).unwrap_or(time);
    short(&cut.replace('T', " "))
}

fn coloured(result: &str) -> String {
    match result {
        "ok" | "permit" | "" => result.to_owned(),
        "deny" | "denied" | "blocked" => out::paint(out::RED, result),
        other => out::paint(out::YELLOW, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_call_is_told_by_its_details() {
        let row = |event: &str| {
            let entry = Entry::parse(event.as_bytes()).unwrap();
            let cells = cells(&entry);
            let plain = cells
                .iter()
                .map(|cell| anstream::adapter::strip_str(cell).to_string());
            plain.collect::<Vec<_>>().join("|")
        };
        for (event, expected) in [
            (
                r#"{"detail":{"address":"127.0.0.1","by":"operator","operation":"disable","outcome":"ok","subject":"mini"},"event":"administration","time":"2026-11-26T10:00:00.000Z","v":1}"#,
                "2026-11-26 10:00:00.000|operator|administration disable|mini||ok||",
            ),
            (
                r#"{"detail":{"action":"flag","class":"definition","item":"echo","place":"name","rule":"shadows","upstream":"two"},"event":"quarantine","time":"2026-11-26T10:00:00.000Z","v":1}"#,
                "2026-11-26 10:00:00.000||quarantine|echo||flag|shadows|",
            ),
            (
                r#"{"detail":{"address":"10.0.0.1","checks":["unknown API key"],"count":2,"reasons":["credential_invalid"],"refs":["3f9a-1","3f9a-2"],"seconds":60},"event":"authentication","time":"2026-11-26T10:00:00.000Z","v":1}"#,
                "2026-11-26 10:00:00.000||authentication|10.0.0.1|||credential_invalid, unknown API key|3f9a-1 (+1)",
            ),
            (
                r#"{"detail":{"problems":3,"state":"refused"},"event":"policy","time":"2026-11-26T10:00:00.000Z","v":1}"#,
                "2026-11-26 10:00:00.000||policy|||refused||",
            ),
            (
                r#"{"call":"c1","event":"call","method":"tools/call","outcome":"ok","principal":{"name":"ana"},"stage":"outcome","target":{"exposed":"mini_echo"},"time":"2026-11-26T10:00:00.000Z","v":1}"#,
                "2026-11-26 10:00:00.000|ana|tools/call|mini_echo|outcome|ok||c1",
            ),
        ] {
            assert_eq!(row(event), expected);
        }
    }
}
