//! Where the long values of a scanned text end, so that walking past them costs nothing.
//!
//! A message is scanned once and then looked at by many: the dialect, the gates, the peer, the wraps. Each walks along the
//! members of the outer few objects and past arguments and contents that none of them reads. What is not noted here, because
//! it is short, deep, or one too many, is walked past byte by byte, with the same result.

/// Values shorter than this are walked past as fast as they are looked up.
const LONG: usize = 48;
/// Values inside more containers than this are not noted: nobody looks that deep.
const DEEP: usize = 5;
/// The most values noted.
const ALL: usize = 16;
/// The most of them that lie deeper than the members of `params` or `result`, which a long list would else crowd out.
const INNER: usize = 10;

/// Ends of long values, by where they begin in the text that was scanned.
#[derive(Debug, Clone, Default)]
pub(super) struct Skips {
    count: usize,
    spans: [(u32, u32); ALL],
}

impl Skips {
    /// Whether a value of this length is worth a look at the notes.
    pub(super) const fn matter_to(length: usize) -> bool {
        length >= LONG
    }

    /// Whether nothing was noted.
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Notes a value inside `depth` containers, if it is worth it.
    pub(super) fn note(&mut self, depth: usize, start: usize, end: usize) {
        let room = if depth > 2 { INNER } else { ALL };
        if end - start < LONG || depth > DEEP || self.count >= room {
            return;
        }
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) {
            self.spans[self.count] = (start, end);
            self.count += 1;
        }
    }

    /// One past the end of the value that begins at `start`, if it was noted.
    pub(super) fn end_of(&self, start: usize) -> Option<usize> {
        let start = u32::try_from(start).ok()?;
        let noted = self.spans[..self.count]
            .iter()
            .find(|(begins, _)| *begins == start)?;
        Some(noted.1 as usize)
    }
}
