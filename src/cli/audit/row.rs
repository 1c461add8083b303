//! A record as a person reads it.

use crate::{
    audit::{entry::Entry, query::Hit},
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
    let some = |text: &Option<String>| short(text.as_deref().unwrap_or_default());
    let result = entry.outcome.as_ref().or(entry.decision.as_ref());
    let result = some(&result.cloned());
    let reason = match entry.findings.as_slice() {
        [] => some(&entry.reason),
        found => {
            let rules: Vec<_> = found.iter().map(|found| found.rule.as_str()).collect();
            let reason = entry.reason.iter().map(String::as_str);
            short(&reason.chain(rules).collect::<Vec<_>>().join(", "))
        }
    };
    vec![
        time(&entry.time),
        short(&entry.principal.name),
        short(entry.method.as_deref().unwrap_or(&entry.event)),
        some(&entry.target.exposed),
        some(&entry.stage),
        coloured(&result),
        reason,
        some(&entry.call),
    ]
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
