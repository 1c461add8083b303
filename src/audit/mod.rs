//! What happened, provably: records of every operation, chained, signed and kept.

pub mod canonical;
pub mod chain;
pub mod entry;
pub mod key;
pub mod log;
pub mod query;
pub mod recorder;
pub mod verify;

use std::time::SystemTime;

/// A time as records have it: UTC, in nanoseconds.
pub(crate) fn stamp(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.9}"))
}
