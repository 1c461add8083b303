//! The specification's vocabulary: every revision, method, key, header and code is spelled here and nowhere else.
//!
//! Pure data and pure functions over it; the clauses they serve stand beside them.

pub mod capability;
pub mod codes;
pub mod definition;
pub mod extensions;
pub mod members;
pub mod meta;
pub mod methods;
pub mod mirror;
pub mod names;
pub mod revision;
pub mod trace;

pub use capability::ClientCapabilities;
pub use names::UpstreamId;
pub use revision::{Era, Features, Revision};
