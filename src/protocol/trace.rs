//! Trace context in `_meta`: `traceparent` and `tracestate` as W3C Trace Context spells them (PROTOCOL A7, SEP-414).
//!
//! Guarantees: the trace a client began goes on upstream, as a child of the client's span; what is malformed goes nowhere.
//! Headers of these names mean the same, and less than what stands in `_meta`. Deliberately absent: spans of our own (`spans`), and
//! `baggage`, which never crosses.

use std::fmt;

/// Names the trace and the caller's span.
pub const PARENT: &str = "traceparent";
/// Vendors' own state of the trace; means nothing without [`PARENT`].
pub const STATE: &str = "tracestate";

/// The same, as transports look them up in every request.
pub mod header {
    use http::HeaderName;

    /// [`super::PARENT`]
    pub static PARENT: HeaderName = HeaderName::from_static(super::PARENT);
    /// [`super::STATE`]
    pub static STATE: HeaderName = HeaderName::from_static(super::STATE);
}

/// Bytes of a `traceparent` of version 00.
const PARENT_BYTES: usize = 55;
/// The most bytes of a `tracestate`: what everybody must be able to carry.
const STATE_BYTES: usize = 512;
/// The most entries of a `tracestate`.
const STATE_ENTRIES: usize = 32;

/// The `traceparent` of a child of `parent`: its trace and flags, with `span` as the new parent id; `None` when `parent` is
/// malformed. Of a later version what version 00 knows is kept. A `span` of zeros is no span and becomes one.
pub fn child(parent: &str, span: [u8; 8]) -> Option<String> {
    let (trace, flags) = read(parent)?;
    let span = u64::from_be_bytes(span).max(1);
    Some(format!("00-{trace}-{span:016x}-{flags:02x}"))
}

/// Whether `parent` is a `traceparent`.
pub fn is_parent(parent: &str) -> bool {
    read(parent).is_some()
}

/// Whether `state` is a `tracestate` that may be carried on: a bounded list of `key=value`.
pub fn is_state(state: &str) -> bool {
    let entry = |entry: &str| {
        let entry = entry.trim_matches([' ', '\t']);
        entry.is_empty()
            || entry
                .split_once('=')
                .is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    state.len() <= STATE_BYTES
        && state
            .bytes()
            .all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && state.split(',').count() <= STATE_ENTRIES
        && state.split(',').all(entry)
}

/// What a `traceparent` says, in small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace: u128,
    /// The span of whoever calls.
    pub span: u64,
    /// The flags; the lowest bit says that the trace is recorded.
    pub flags: u8,
}

impl Parent {
    /// Reads a `traceparent`; `None` when it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (trace, flags) = read(text)?;
        Some(Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(text.get(36..52)?, 16).ok()?,
            flags,
        })
    }
}

impl fmt::Display for Parent {
    /// The `traceparent` of version 00.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

/// The trace id and the flags.
fn read(parent: &str) -> Option<(&str, u8)> {
    let bytes = parent.as_bytes();
    let version = hex(parent.get(..2)?)?;
    let whole = match version {
        0xFF => false,
        0 => bytes.len() == PARENT_BYTES,
        _ => bytes.len() == PARENT_BYTES || bytes.get(PARENT_BYTES) == Some(&b'-'),
    };
    if !whole || [2, 35, 52].iter().any(|at| bytes[*at] != b'-') {
        return None;
    }
    let (trace, span, flags) = (parent.get(3..35)?, parent.get(36..52)?, parent.get(53..55)?);
    let named = |id: &str| id.bytes().all(is_hex) && id.bytes().any(|byte| byte != b'0');
    if !named(trace) || !named(span) {
        return None;
    }
    let flags = hex(flags)?;
    // Only `sampled` is known to mean the same in a version yet to come.
    Some((trace, if version == 0 { flags } else { flags & 1 }))
}

fn hex(digits: &str) -> Option<u8> {
    digits
        .bytes()
        .all(is_hex)
        .then(|| u8::from_str_radix(digits, 16).ok())?
}

const fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn a_child_keeps_trace_and_flags_and_gets_a_span_of_its_own() {
        let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
        assert_eq!(
            child(&parent, [0, 0, 0, 0, 0, 0, 0, 0x2A]).as_deref(),
            Some(&*format!("00-{TRACE}-000000000000002a-01"))
        );
        assert_eq!(
            child(&parent, [0; 8]).as_deref(),
            Some(&*format!("00-{TRACE}-0000000000000001-01"))
        );
        let later = format!("01-{TRACE}-b7ad6b7169203331-03-more");
        assert_eq!(
            child(&later, [0xFF; 8]).as_deref(),
            Some(&*format!("00-{TRACE}-ffffffffffffffff-01"))
        );
    }

    #[test]
    fn malformed_parents_have_no_child() {
        let zeros = "0".repeat(32);
        for parent in [
            String::new(),
            "00".to_owned(),
            "é".repeat(40),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-01-x"),
            format!("01-{TRACE}-b7ad6b7169203331-01x"),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{zeros}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}-b7ad6b7169203331-+1"),
            format!("00_{TRACE}-b7ad6b7169203331-01"),
        ] {
            assert_eq!(child(&parent, [1; 8]), None, "{parent}");
        }
    }

    #[test]
    fn states_are_bounded_lists_of_pairs() {
        for state in ["a=1", "rojo=00f067, congo=t61", "", "a=1,,b=2"] {
            assert!(is_state(state), "{state}");
        }
        let many = vec!["a=1"; 33].join(",");
        for state in [
            "a",
            "=1",
            "a=\n",
            "a=é",
            &many,
            &format!("a={}", "x".repeat(512)),
        ] {
            assert!(!is_state(state), "{state}");
        }
    }
}
