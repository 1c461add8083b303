//! The end of what came before: where texts are read one after the other, what the next may go on from.
//!
//! Guarantees: at most [`SEAM`] bytes, in whole characters, however many texts there were; a text with nothing in it changes
//! nothing. Deliberately absent: what is found where they meet (`views.rs`).

/// Of a text beside another, as many bytes at each end are read together with it.
pub(super) const SEAM: usize = 512;

/// The end of the texts of earlier events of the same answer: nothing hides in the seams. At most 512 bytes.
#[derive(Debug, Default, Clone)]
pub struct Tail {
    text: String,
    /// Where in it the last of them begins.
    last: usize,
}

impl Tail {
    /// The last text, and what came before that.
    pub(super) fn pieces(&self) -> (&str, &str) {
        self.text.split_at(self.last)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Goes on with this.
    pub(super) fn add(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let end = &text[text.ceil_char_boundary(text.len().saturating_sub(SEAM))..];
        let kept = self.text.len().min(SEAM - end.len());
        let lost = self.text.ceil_char_boundary(self.text.len() - kept);
        self.text.drain(..lost);
        self.last = self.text.len();
        self.text.push_str(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_kept_as_fits_and_the_last_text_is_known() {
        let mut tail = Tail::default();
        tail.add("");
        assert!(tail.is_empty());
        for (text, earlier, last) in [
            ("one ", "", "one "),
            ("two", "one ", "two"),
            ("", "one ", "two"),
            ("three", "one two", "three"),
        ] {
            tail.add(text);
            assert_eq!(tail.pieces(), (earlier, last));
        }
        tail.add(&"é".repeat(SEAM / 2 - 1));
        let (earlier, last) = tail.pieces();
        assert_eq!((earlier, last.len()), ("ee", SEAM - 2));
        // Of a character that does not fit as a whole nothing is kept.
        for kept in [SEAM - 1, SEAM - 1, SEAM - 2] {
            tail.add("x");
            let (earlier, last) = tail.pieces();
            assert_eq!((earlier.len(), last), (kept, "x"));
        }
        tail.add(&"é".repeat(SEAM));
        assert_eq!(tail.pieces(), ("", "é".repeat(SEAM / 2).as_str()));
    }
}
