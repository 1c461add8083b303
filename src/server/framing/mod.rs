//! HTTP/1 framing, read strictly before hyper sees a byte: where each message begins and ends, beyond doubt.
//!
//! hyper settles some ambiguities silently (a length beside chunked coding, a length given twice). An intermediary in front
//! of us may settle them the other way, and then one of its requests is two of ours. Guarantees: bytes pass only as whole,
//! unambiguous heads and as body bytes counted by them; after a violation nothing passes (SECURITY HTTP-1, HTTP-7). Cost: one
//! pass over heads and chunk sizes, none over bodies. Deliberately absent: what headers mean, other than to framing.

mod chunked;
mod head;

use chunked::Chunked;
use head::{BodyLength, Head};

use super::spec::ServerBounds;

/// Why a head cannot pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Violation {
    /// Not HTTP/1.x, or not to be told apart: `400`.
    Malformed,
    /// Target over [`ServerBounds::target_bytes`]: `414`.
    TargetTooLong,
    /// Fields over one of the other bounds: `431`.
    FieldsTooLarge,
    /// `CONNECT`: `501`.
    Tunnel,
    /// `TRACE`: `405`.
    Trace,
}

impl Violation {
    /// The inverse of `as u8`.
    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::TargetTooLong,
            2 => Self::FieldsTooLarge,
            3 => Self::Tunnel,
            4 => Self::Trace,
            _ => Self::Malformed,
        }
    }
}

/// Sizes a head may have, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadBounds {
    pub(super) target: usize,
    pub(super) field: usize,
    pub(super) fields: usize,
    pub(super) count: usize,
}

impl From<&ServerBounds> for HeadBounds {
    fn from(bounds: &ServerBounds) -> Self {
        Self {
            target: bounds.target_bytes,
            field: bounds.field_bytes,
            fields: bounds.head_bytes,
            count: bounds.fields,
        }
    }
}

/// What broke, and with what consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// In a head, none of which has passed.
    Head(Violation),
    /// In the framing of a body, whose head has passed.
    Body,
}

/// The reading side of one connection.
#[derive(Debug)]
pub(super) struct Framing {
    bounds: HeadBounds,
    state: State,
    heads: u32,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum State {
    Head(Head),
    Fixed(u64),
    Chunked(Chunked),
}

/// Where a connection stands between two reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At a boundary: nothing of a next message is there.
    Between,
    InHead,
    InBody,
}

impl Framing {
    pub(super) fn new(bounds: HeadBounds) -> Self {
        Self {
            bounds,
            state: State::Head(Head::default()),
            heads: 0,
            fault: None,
        }
    }

    /// Looks at `bytes` and says how many of the first ones may pass. What is left is either the beginning of a head, to be
    /// given again with more behind it, or what comes at and after a fault, to be thrown away.
    pub(super) fn admit(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.fault.is_some() {
                break;
            }
            at += match &mut self.state {
                State::Head(head) => match head.read(rest, &self.bounds) {
                    Ok(None) => break,
                    Ok(Some((length, body))) => {
                        self.heads = self.heads.wrapping_add(1);
                        self.state = State::after_head(body);
                        length
                    }
                    Err(violation) => {
                        self.fault = Some(Fault::Head(violation));
                        break;
                    }
                },
                State::Fixed(left) => {
                    let take = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= take as u64;
                    if *left == 0 {
                        self.state = State::Head(Head::default());
                    }
                    take
                }
                State::Chunked(chunked) => {
                    let (passed, end) = chunked.read(rest, &self.bounds);
                    match end {
                        Ok(false) => {}
                        Ok(true) => self.state = State::Head(Head::default()),
                        Err(chunked::Broken) => self.fault = Some(Fault::Body),
                    }
                    passed
                }
            };
        }
        at
    }

    /// What broke, if something did. It stays broken.
    pub(super) const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Heads that passed so far.
    pub(super) const fn heads(&self) -> u32 {
        self.heads
    }

    pub(super) const fn place(&self) -> Place {
        match &self.state {
            State::Head(head) if head.is_begun() => Place::InHead,
            State::Head(_) => Place::Between,
            State::Fixed(_) | State::Chunked(_) => Place::InBody,
        }
    }
}

impl State {
    fn after_head(body: BodyLength) -> Self {
        match body {
            BodyLength::Fixed(0) => Self::Head(Head::default()),
            BodyLength::Fixed(length) => Self::Fixed(length),
            BodyLength::Chunked => Self::Chunked(Chunked::default()),
        }
    }
}

#[cfg(test)]
mod tests;
