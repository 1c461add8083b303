//! Records in the forms of others: OCSF events and log records of OpenTelemetry (SECURITY AUD-9).
//!
//! Guarantees: every record becomes one event, in order, which names its number and its hash, so that it can be found again and an
//! export be gone on with; nothing of a record is lost, since it comes along whole. Deliberately absent: proof. That is in the
//! file alone.

mod ocsf;
mod otel;

#[cfg(test)]
mod tests;

pub use ocsf::ocsf;
pub use otel::{Resource, logs};

/// Milliseconds since 1970 of a time as records have it, or 0.
fn millis(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>()
        .map_or(0, jiff::Timestamp::as_millisecond)
}

/// Nanoseconds since 1970 of a time as records have it, or 0.
fn nanos(time: &str) -> i128 {
    time.parse::<jiff::Timestamp>()
        .map_or(0, jiff::Timestamp::as_nanosecond)
}
