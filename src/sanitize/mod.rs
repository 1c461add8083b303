//! What may go through: detectors look at text and say what they found where; the engine decides what becomes of it.
//!
//! Guarantees: a detector is linear in the length of what it is given, awaits nothing, holds no state between texts, and
//! a finding never holds the text that was found. Patterns of the operator's own are linear for each match, and the clock is
//! looked at between them. What comes out is a value of the same shape, or nothing; content that is clean is not copied; what
//! cannot be read to the end within its budget is blocked (SECURITY 7). Deliberately absent: that anybody is protected from
//! instructions in text, which policy and isolation are for.

pub mod active;
mod asking;
mod begin;
mod blob;
mod built_in;
mod called;
mod class;
mod decoded;
mod engine;
mod everyday;
pub mod hidden;
mod hit;
pub mod injection;
mod look;
mod media;
mod own;
pub mod personal;
mod placeholder;
mod plain;
mod readable;
pub mod rules;
mod scrub;
pub mod secrets;
mod spot;
mod survey;
mod tail;
pub mod terminal;
#[cfg(test)]
mod tests;
mod verdict;
mod views;
mod work;

pub use asking::{ask_the_same, host_of};
pub use class::Class;
pub use engine::Sanitizer;
pub use hit::{Detector, Hit};
pub use own::OwnCredentials;
pub use scrub::{Scrubber, WITHHELD, without_secrets, without_secrets_before};
pub use survey::Survey;
pub use tail::Tail;
pub use verdict::{BUDGET, Blocked, Blocks, Found, MISFIT, Marks, Questions, Subject, Verdict};
