//! Finds the characters that may be hidden, a block of bytes at a time: text without them is read once and nothing is decoded.
//!
//! What is found is decided by bytes alone; whether it is out of place is decided by its neighbours, elsewhere.

use crate::sanitize::survey::Found;

/// The suspects of one text, asked for in rising order.
pub(super) struct Suspects<'t> {
    text: &'t [u8],
    /// Those that the survey found and nobody asked about yet.
    rest: &'t [Found],
    /// Where the stride begins that was looked at last.
    at: usize,
    /// One bit for each place in it that may be a suspect, the first lowest.
    left: u64,
}

impl<'t> Suspects<'t> {
    pub(super) fn of(text: &'t [u8], found: &'t [Found]) -> Self {
        Self {
            text,
            rest: found,
            at: 0,
            left: 0,
        }
    }

    /// The first byte of the next suspect at or after `from`, which lies between characters. What lies before it is forgotten.
    pub(super) fn next(&mut self, from: usize) -> Option<usize> {
        loop {
            while self.left != 0 {
                let place = self.at + self.left.trailing_zeros() as usize;
                // Of the shorter ones the survey told no other.
                let longest = || self.text.get(place).is_some_and(|first| *first >= 0xF0);
                if place >= from && (!longest() || is_suspect(self.text, place)) {
                    return Some(place);
                }
                self.left &= self.left - 1;
            }
            let (first, rest) = self.rest.split_first()?;
            (self.at, self.left, self.rest) = (first.at, first.marks, rest);
        }
    }
}

/// Whether the character that begins at `at` may be hidden.
#[inline]
pub(super) fn suspect(text: &[u8], at: usize) -> bool {
    // Most text is not beyond ASCII where this is asked.
    text.get(at).is_some_and(|first| *first >= 0xC2) && is_suspect(text, at)
}

fn is_suspect(text: &[u8], at: usize) -> bool {
    let byte = |nth: usize| text.get(at + nth).copied().unwrap_or(0);
    match byte(0) {
        0xC2 => byte(1) == 0xAD,
        0xCD => byte(1) == 0x8F,
        0xD8 => byte(1) == 0x9C,
        0xE1 => matches!(
            (byte(1), byte(2)),
            (0x85, 0x9F | 0xA0) | (0x9E, 0xB4 | 0xB5) | (0xA0, 0x8B..=0x8F)
        ),
        0xE2 => matches!(
            (byte(1), byte(2)),
            (0x80, 0x8B..=0x8F | 0xAA..=0xAE) | (0x81, 0xA0..=0xAF) | (0xA0, 0x80)
        ),
        0xE3 => (byte(1), byte(2)) == (0x85, 0xA4),
        0xEF => matches!(
            (byte(1), byte(2)),
            (0xB7, 0x90..=0xAF)
                | (0xB8, 0x80..=0x8F)
                | (0xBB, 0xBF)
                | (0xBE, 0xA0)
                | (0xBF, 0xB0..=0xBB | 0xBE | 0xBF)
        ),
        0xF0..=0xF4 => match (byte(0), byte(1), byte(2), byte(3)) {
            (0xF3, 0xA0, _, _)
            | (0xF0, 0x9B, 0xB2, 0xA0..=0xA3)
            | (0xF0, 0x9D, 0x85, 0x99 | 0xB3..=0xBA) => true,
            // The last two of each plane.
            (_, second, 0xBF, 0xBE | 0xBF) => second & 0x0F == 0x0F,
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sanitize::{
        hidden::{scan::scan, tables},
        survey::{BLOCK, Survey},
    };

    /// All suspects of a text, in their place or not.
    fn all(text: &str) -> Vec<Found> {
        let places = text.char_indices().map(|(at, _)| at);
        let places = places.filter(|at| suspect(text.as_bytes(), *at));
        let block = |place| place / BLOCK * BLOCK;
        let mut all: Vec<Found> = Vec::new();
        for place in places {
            if all.last().is_none_or(|last| last.at != block(place)) {
                let (at, marks) = (block(place), 0);
                all.push(Found { at, marks });
            }
            all.last_mut().unwrap().marks |= 1 << (place % BLOCK);
        }
        all
    }

    #[test]
    fn every_character_is_suspected_by_its_bytes_exactly_if_it_has_a_kind() {
        for ch in '\0'..=char::MAX {
            let mut bytes = [0; 4];
            let text = ch.encode_utf8(&mut bytes).as_bytes();
            assert_eq!(
                suspect(text, 0),
                tables::kind(ch).is_some(),
                "{:x}",
                u32::from(ch)
            );
        }
    }

    #[test]
    fn of_all_characters_the_search_finds_those_that_have_a_kind() {
        let text: String = ('\0'..=char::MAX).collect();
        let survey = Survey::of(&text);
        let mut all = Suspects::of(text.as_bytes(), &survey.hidden);
        let mut from = 0;
        for (at, ch) in text.char_indices() {
            if tables::kind(ch).is_some() {
                assert_eq!(all.next(from), Some(at), "{:x}", u32::from(ch));
                from = at + 1;
            }
        }
        assert_eq!(all.next(from), None);
    }

    proptest! {
        #[test]
        fn the_search_finds_what_a_plain_loop_finds(text in "[a-z]{0,40}([a-zà-ÿ一-丏\u{200B}-\u{200F}\u{E0020}-\u{E0030}😀]{0,9}[ -~]{0,150}){0,4}", from in 0_usize..30) {
            let starts = || text.char_indices().map(|(at, _)| at);
            let from = starts().find(|at| *at >= from).unwrap_or(text.len());
            let plain = starts().find(|at| *at >= from && suspect(text.as_bytes(), *at));
            let found = all(&text);
            prop_assert_eq!(Suspects::of(text.as_bytes(), &found).next(from), plain);
            let mut all = Suspects::of(text.as_bytes(), &found);
            let mut at = 0;
            for place in starts().filter(|at| suspect(text.as_bytes(), *at)) {
                prop_assert_eq!(all.next(at), Some(place));
                at = place + 1;
            }
            prop_assert_eq!(all.next(at), None);
        }

        #[test]
        fn of_what_the_survey_leaves_out_nothing_is_told(text in "[a-z]{0,70}(([❤0-9#*😀👩\u{1F300}\u{1FAFF}]\u{FE0F}?|[0-9#]\u{FE0F}\u{20E3}|[ 😀👩]\u{FE0F}?\u{200D}|[ی\u{61C}و]\u{200C}|[\u{200C}-\u{200F}\u{FE0E}\u{FE0F}\u{1FFFE}\u{E0020} a])[a ]{0,3}){0,60}") {
            let told = |suspects: &[Found]| {
                let mut told = Vec::new();
                scan(&text, suspects, &mut |_, span| told.push(span));
                told
            };
            let left = Survey::of(&text).hidden;
            prop_assert_eq!(told(&left), told(&all(&text)));
            let places = |found: &[Found]| crate::sanitize::survey::all_places(found).collect::<Vec<_>>();
            let every = places(&all(&text));
            for place in places(&left) {
                let four = text.as_bytes()[place] >= 0xF0;
                prop_assert!(four || every.contains(&place), "{place}");
            }
        }
    }
}
