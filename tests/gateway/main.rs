//! The gateway as its users see it: real servers behind it, real clients before it, one module per behaviour.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_types,
    reason = "a test that cannot go on fails, and looks at single values of answers as trees"
)]

#[macro_use]
mod harness;

mod admin;
mod asking_down;
mod asking_up;
mod audit;
mod auth;
mod authorize;
mod bounds;
mod catalog_limits;
mod commands;
mod connect;
mod duplicates;
mod egress;
mod envelope;
mod extensions;
mod floods;
mod hostile;
mod http_edge;
mod limits;
mod listening;
mod lookalikes;
mod memory;
mod messages;
mod namespacing;
mod observed;
mod pagination;
mod pins;
mod regressions;
mod revisions;
mod routing;
mod sanitize;
mod sessions;
mod splicing;
mod starting;
mod stopping;
mod streams;
mod tasks;
mod two_way;
mod validation;
