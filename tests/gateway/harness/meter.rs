//! What is counted in this process, read as a scrape would.
//!
//! Tests run beside each other: a count may grow by another's doing, so what is asked is whether it grew.

use std::sync::LazyLock;

use usher::telemetry::{Telemetry, spec::TelemetrySpec};

static METER: LazyLock<Telemetry> =
    LazyLock::new(|| Telemetry::start(&TelemetrySpec::default()).unwrap());

/// Begins to count: before anything of the gateway does. What is counted can be read there.
pub(crate) fn metered() -> &'static Telemetry {
    &METER
}

/// What a counter has come to under these labels, over all others that it has.
pub(crate) fn counted(name: &str, labels: &[(&str, &str)]) -> u64 {
    let text = String::from_utf8(METER.metrics_text()).unwrap();
    let name = format!("{}_total", name.replace('.', "_"));
    let labels: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{}=\"{value}\"", key.replace('.', "_")))
        .collect();
    // Labels follow the name, or where it has none the count.
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let lines = text.lines().filter(is_it);
    lines
        .filter(|line| labels.iter().all(|label| line.contains(label.as_str())))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum()
}

/// How often a bound was reached.
pub(crate) fn reached(bound: &str) -> u64 {
    counted("usher.bounds.reached", &[("usher.bound", bound)])
}
