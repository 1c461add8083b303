//! Cursors: a place in a merged list that stays right while the list changes, sealed so that nobody else can make or move one.
//!
//! A [`Position`] names what was listed last, not a generation of the catalog: it is good on every replica and after a
//! restart. As long as an upstream keeps the order of what stays and one of the last sixteen names listed is still there,
//! going on from it repeats nothing and misses only what was removed. When all sixteen are gone at once the place is
//! estimated from below; then something may come twice, or be missed if more was removed than that.

use crate::{
    call::Owner,
    protocol::{UpstreamId, methods::ListKind},
    seal::{Purpose, SealError, Sealer},
};

/// Where to go on in a merged list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    pub(super) after: Option<Mark>,
    /// Whether an earlier page of this run was not public: then no later one is (PROTOCOL D5).
    pub(super) private: bool,
}

/// The last item listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// Whose it was.
    pub(super) upstream: UpstreamId,
    /// Where that upstream stood in the configured order.
    pub(super) rank: u16,
    /// How many of its items were before or at the mark.
    pub(super) index: u32,
    /// Fingerprints of the last names listed of it, newest first; at most [`TAIL`].
    pub(super) tail: Vec<u64>,
}

/// Names remembered in a position.
pub(super) const TAIL: usize = 16;
/// Seconds a cursor is good for.
pub const CURSOR_LIFE: u64 = 3_600;
/// Most characters of a cursor; ours have fewer than 400.
pub const CURSOR_CHARS: usize = 1_024;
/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;

/// A cursor that is not good here: altered, foreign, expired, or for another list. Answered with `-32602` (SECURITY STATE-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cursor is not valid here")]
pub struct BadCursor;

impl From<SealError> for BadCursor {
    fn from(_: SealError) -> Self {
        Self
    }
}

impl Position {
    /// The beginning of a list.
    pub const fn start() -> Self {
        Self {
            after: None,
            private: false,
        }
    }

    /// The cursor that stands for this position in this list, for this owner, from `now` in seconds since 1970.
    pub fn seal(&self, sealer: &Sealer, owner: &Owner, kind: ListKind, now: u64) -> String {
        let mut plain = now.to_le_bytes().to_vec();
        plain.push(u8::from(self.private));
        if let Some(mark) = &self.after {
            let key = mark.upstream.as_str();
            plain.extend_from_slice(&mark.rank.to_le_bytes());
            plain.extend_from_slice(&mark.index.to_le_bytes());
            plain.extend(u8::try_from(key.len()));
            plain.extend_from_slice(key.as_bytes());
            for print in &mark.tail {
                plain.extend_from_slice(&print.to_le_bytes());
            }
        }
        sealer.seal(Purpose::Cursor, &binding(owner, kind), &plain)
    }

    /// The position that `cursor` stands for.
    ///
    /// # Errors
    /// [`BadCursor`] when it was altered, sealed for another list or owner or with another secret, or is older than
    /// [`CURSOR_LIFE`].
    pub fn open(
        sealer: &Sealer,
        cursor: &str,
        owner: &Owner,
        kind: ListKind,
        now: u64,
    ) -> Result<Self, BadCursor> {
        if cursor.len() > CURSOR_CHARS {
            return Err(BadCursor);
        }
        let plain = sealer.open(Purpose::Cursor, &binding(owner, kind), cursor)?;
        let (issued, rest) = plain.split_first_chunk().ok_or(BadCursor)?;
        let issued = u64::from_le_bytes(*issued);
        if now > issued.saturating_add(CURSOR_LIFE) || issued > now.saturating_add(SKEW) {
            return Err(BadCursor);
        }
        let (private, rest) = rest.split_first().ok_or(BadCursor)?;
        Ok(Self {
            private: *private != 0,
            after: if rest.is_empty() {
                None
            } else {
                Some(mark(rest).ok_or(BadCursor)?)
            },
        })
    }
}

fn mark(text: &[u8]) -> Option<Mark> {
    let (rank, text) = text.split_first_chunk()?;
    let (index, text) = text.split_first_chunk()?;
    let (length, text) = text.split_first()?;
    let (key, text) = text.split_at_checked(usize::from(*length))?;
    let (tail, rest) = text.as_chunks();
    if !rest.is_empty() || tail.len() > TAIL {
        return None;
    }
    Some(Mark {
        upstream: UpstreamId::parse(std::str::from_utf8(key).ok()?)?,
        rank: u16::from_le_bytes(*rank),
        index: u32::from_le_bytes(*index),
        tail: tail
            .iter()
            .map(|print| u64::from_le_bytes(*print))
            .collect(),
    })
}

/// What a cursor is tied to.
fn binding(owner: &Owner, kind: ListKind) -> Vec<&[u8]> {
    owner.parts().chain([kind.method().as_bytes()]).collect()
}

impl Mark {
    /// Where to go on among names with these fingerprints: after the newest that is still there.
    pub(super) fn resume(&self, prints: &[u64]) -> usize {
        let index = usize::try_from(self.index).unwrap_or(usize::MAX);
        // The common case, nothing changed before the mark, costs one comparison.
        if let (Some(at), Some(newest)) = (index.checked_sub(1), self.tail.first())
            && prints.get(at) == Some(newest)
        {
            return index;
        }
        let found = self
            .tail
            .iter()
            .find_map(|print| prints.iter().position(|other| other == print));
        match found {
            Some(at) => at + 1,
            // All that are remembered are gone: at least that many fewer stand before the mark.
            None => index.saturating_sub(self.tail.len()).min(prints.len()),
        }
    }
}

/// The mark after `listed`, whose last element was listed last.
pub(super) fn mark_after(upstream: &UpstreamId, rank: u16, listed: &[u64]) -> Mark {
    Mark {
        upstream: upstream.clone(),
        rank,
        index: u32::try_from(listed.len()).unwrap_or(u32::MAX),
        tail: listed.iter().rev().take(TAIL).copied().collect(),
    }
}

/// A stable fingerprint of an outward name: the same on every replica and in every version.
/// FNV-1a; an upstream that makes two of its names collide confuses only its own section.
pub(super) fn print(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
