//! What a text ends with at some place: a name, of which it is known again what was found out.
//!
//! Few names stand before most values of a text.
//!
//! Guarantees: what is known again is the same, byte for byte. Deliberately absent: what was found out.

/// A name at the end of a text, and what stands before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    bytes: u128,
    /// Which of these are of the name, or stand before it.
    known: u128,
    /// How long the name is with what belongs to it, in bytes.
    length: usize,
}

impl Ending {
    /// How long such a name may be with what belongs to it and stands before it, in bytes.
    pub(super) const MOST: usize = 16;
    /// How many are kept.
    pub(super) const KEPT: usize = 8;

    /// So many of the last of these bytes.
    pub(super) const fn of(bytes: [u8; Self::MOST], length: usize) -> Self {
        Self {
            bytes: u128::from_le_bytes(bytes),
            known: u128::MAX << (8 * (Self::MOST - 1 - length)),
            length,
        }
    }

    /// Whether these end with it, and so many of them are looked at.
    #[inline]
    pub(super) const fn is(&self, bytes: &[u8; Self::MOST], count: usize) -> bool {
        (u128::from_le_bytes(*bytes) ^ self.bytes) & self.known == 0 && self.length <= count
    }

    /// Where it is kept.
    #[inline]
    pub(super) const fn slot(bytes: &[u8; Self::MOST]) -> usize {
        let [.., a, b, _, c, _] = *bytes;
        (a as usize + 3 * b as usize + 5 * c as usize) % Self::KEPT
    }
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            length: usize::MAX,
            ..Self::of([0; Self::MOST], Self::MOST - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_by_all_its_bytes_and_the_one_before() {
        let known = Ending::of(*b"ET / request_id=", 11);
        assert!(known.is(b"other request_id="[1..].first_chunk().unwrap(), 11));
        for (text, count) in [
            (&b"other-request_id="[1..], 11),
            (&b"other sequest_id="[1..], 11),
            (&b"other request_id:"[1..], 11),
            (&b"other request_id="[1..], 10),
        ] {
            assert!(!known.is(text.first_chunk().unwrap(), count), "{text:?}");
        }
    }
}
