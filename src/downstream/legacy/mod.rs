//! The handshake era, facing clients: sessions and what goes on in them, and above those the dialect (PROTOCOL B4).

mod asks;
mod converse;
mod convert;
pub(super) mod dialect;
mod event_id;
mod flights;
mod listening;
mod notice;
mod outbox;
mod questions;
mod reader;
mod session;
mod sessions;
mod subscriptions;
mod tasks;
mod words;

pub(super) use asks::Answering;
pub(super) use converse::{Converse, Kept, Talk, Turn};
pub(super) use flights::{Flight, Over};
pub(super) use outbox::CannotResume;
pub(super) use session::Session;
pub use session::SessionSeen;
pub(super) use sessions::random_id;
pub use sessions::{SessionBounds, Sessions};
