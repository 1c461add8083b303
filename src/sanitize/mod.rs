//! What may go through: detectors look at text and say what they found where, and nothing else.
//!
//! Guarantees: a detector is linear in the length of what it is given, awaits nothing, holds no state between texts, and
//! a finding never holds the text that was found. Deliberately absent: what becomes of a hit, which is decided by class, by
//! direction and by configuration.

mod class;
mod hit;

pub use class::Class;
pub use hit::{Detector, Hit};
