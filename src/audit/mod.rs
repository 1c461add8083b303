//! What happened, provably: records of every operation, chained, signed and kept.

mod auditor;
pub mod canonical;
pub mod chain;
pub mod entry;
pub mod export;
pub mod follow;
pub mod home;
pub mod journal;
pub mod key;
pub mod log;
pub mod query;
pub mod record;
pub mod recorder;
mod rules;
pub mod sinks;
pub mod verify;
mod words;

use std::time::SystemTime;

pub use auditor::Auditor;
pub use rules::{Level, Rule, Rules};
pub use words::{End, events};

/// A time as records have it: UTC, in nanoseconds.
pub(crate) fn stamp(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.9}"))
}
