//! Configuration: a file is read, checked whole, and becomes a plan.

mod plan;

pub use plan::Plan;
