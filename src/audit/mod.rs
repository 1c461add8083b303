//! What happened, provably: records of every operation, chained, signed and kept.

mod auditor;
pub mod canonical;
pub mod chain;
pub mod entry;
pub mod export;
pub mod follow;
pub mod home;
mod index;
pub mod journal;
pub mod key;
mod kind;
mod left;
pub mod log;
mod place;
pub mod query;
pub mod record;
pub mod recorder;
mod rules;
pub mod sinks;
mod stamp;
pub mod verify;
mod words;

/// JSON Schema of a line of the log, for whoever reads it with a program of their own.
pub const LINE_SCHEMA: &str = include_str!("line.schema.json");

pub use auditor::Auditor;
pub use rules::{Level, Rule, Rules};
pub(crate) use stamp::{stamp, stamped};
pub use words::{EVENTS, End, OUTCOMES};
