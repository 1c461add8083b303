//! The HTTP edge as a client meets it: raw bytes in, raw bytes out, and a record of what reached an endpoint.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

mod framing;
mod h2;
mod harness;
mod lifecycle;
mod limits;
#[path = "../gateway/harness/meter.rs"]
mod meter;
mod names;
mod tls;
