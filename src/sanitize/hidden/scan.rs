//! Runs of hidden characters, and whether the characters around them give them a place.
//!
//! A run is judged as one: what stands to its left and right is seen by a reader, so that taking the run away does not change
//! what another run is judged by.

use std::ops::Range;

use super::{
    bidi, search,
    tables::{self, Kind},
};
use crate::sanitize::{survey::Found, work::looked};

/// Marks in one run that may pass: more of them say nothing that fewer would not.
const MARKS: usize = 2;

/// Tells `found` every span that has no place in `text`. Linear: what is looked at for one character, a word or a paragraph,
/// is remembered for the next in it.
pub(super) fn scan(text: &str, suspects: &[Found], found: &mut impl FnMut(Kind, Range<usize>)) {
    let mut suspects = search::Suspects::of(text.as_bytes(), suspects);
    let Some(first) = suspects.next(0) else {
        return;
    };
    let mut scan = Scan {
        text,
        right_to_left: None,
        word: Judged::default(),
        braille: Judged::default(),
        paragraph_end: 0,
    };
    let mut next = Some(first);
    while let Some(at) = next {
        let end = usual(text.as_bytes(), at).unwrap_or_else(|| scan.run(at, found));
        next = suspects.next(end);
    }
}

/// Where the run at `at` ends, if it is one of those that every text with emoji or in Persian is full of, and in its place: one
/// selector behind an emoji or what may be one, one joiner between two, both, or a joiner behind an Arabic letter. [`Scan::run`]
/// says the same.
#[inline]
fn usual(text: &[u8], at: usize) -> Option<usize> {
    let (before, rest) = text.split_at_checked(at)?;
    // U+1F300 to U+1FAFF: all of them pictures, and none hidden.
    let picture = matches!(before, [.., 0xF0, 0x9F, 0x8C..=0xAB, 0x80..=0xBF]);
    let (length, stays) = match rest {
        [0xEF, 0xB8, 0x8F, 0xE2, 0x80, 0x8D, then @ ..] => (6, picture && is_picture(then)),
        [0xEF, 0xB8, 0x8F, ..] => {
            // U+2100 to U+27FF.
            let varies = matches!(before, [.., 0xE2, 0x84..=0x9F, _]);
            (3, picture || varies)
        }
        [0xE2, 0x80, 0x8D, then @ ..] => (3, picture && is_picture(then)),
        // An Arabic letter, but not the Arabic letter mark.
        [0xE2, 0x80, 0x8C, ..] => {
            let arabic = matches!(before, [.., first @ 0xD8..=0xDB, second] if (first, second) != (&0xD8, &0x9C));
            (3, arabic)
        }
        _ => return None,
    };
    let end = at + length;
    // No picture is hidden, and behind most of these stands one.
    let suspect = || !is_picture(&text[end..]) && search::suspect(text, end);
    (stays && !suspect()).then_some(end)
}

/// Whether a picture begins a text.
#[inline]
const fn is_picture(text: &[u8]) -> bool {
    matches!(text, [0xF0, 0x9F, 0x8C..=0xAB, 0x80..=0xBF, ..])
}

struct Scan<'t> {
    text: &'t str,
    /// Whether the text holds a letter that is written from right to left.
    right_to_left: Option<bool>,
    /// The word around the soft hyphen that was last looked at.
    word: Judged,
    /// The stretch of Braille around the empty cell that was last looked at.
    braille: Judged,
    /// Up to here bidi controls have been judged.
    paragraph_end: usize,
}

/// A stretch of the text and what was found about it.
#[derive(Default)]
struct Judged {
    span: Range<usize>,
    plain: bool,
}

/// What a run holds beside bidi controls and marks.
#[derive(Default)]
struct Others {
    count: usize,
    first: Option<(Kind, char, usize)>,
    second: Option<char>,
}

impl Scan<'_> {
    /// Judges the run that begins at `start` and says where it ends.
    fn run(&mut self, start: usize, found: &mut impl FnMut(Kind, Range<usize>)) -> usize {
        let mut others = Others::default();
        let mut marks = 0;
        let mut end = start;
        while let Some((ch, kind)) = self.hidden(end) {
            if kind == Kind::Bidi {
                if end >= self.paragraph_end {
                    self.paragraph_end = bidi::paragraph(self.text, end, found);
                }
            } else if kind == Kind::Mark {
                marks += 1;
            } else {
                others.add(kind, ch, end);
            }
            end += ch.len_utf8();
        }
        if end == start {
            // It is seen, or belongs where it is.
            return start + self.char_at(start).map_or(1, char::len_utf8);
        }
        looked(end - start);
        let left = self.text[..start].chars().next_back();
        // A flag is whole before what only hides behind it.
        if let Some(flag) = others.flag(left, &self.text[start..end], start)
            && self.text[start + flag..end].contains(is_tag)
        {
            return start + flag;
        }
        let right = self.char_at(end);
        let marks_stay = marks == 0 || (marks <= MARKS && self.marks_stay(left, right));
        let others_stay =
            others.count == 0 || others.stay(left, right, &self.text[start..end], start);
        if !marks_stay || !others_stay {
            self.tell(start..end, marks_stay, others_stay, found);
        }
        end
    }

    /// Tells what stays not of a run, in stretches of one kind of verdict.
    fn tell(
        &self,
        run: Range<usize>,
        marks_stay: bool,
        others_stay: bool,
        found: &mut impl FnMut(Kind, Range<usize>),
    ) {
        let mut open: Option<(Kind, Range<usize>)> = None;
        for (offset, ch) in self.text[run.clone()].char_indices() {
            let at = run.start + offset;
            let goes = tables::kind(ch).filter(|kind| {
                let stays = *kind == Kind::Bidi
                    || if *kind == Kind::Mark {
                        marks_stay
                    } else {
                        others_stay
                    };
                !stays
            });
            match (goes, &mut open) {
                (Some(_), Some((_, span))) => span.end = at + ch.len_utf8(),
                (Some(kind), None) => open = Some((kind, at..at + ch.len_utf8())),
                (None, _) => {
                    if let Some((kind, span)) = open.take() {
                        found(kind, span);
                    }
                }
            }
        }
        if let Some((kind, span)) = open {
            found(kind, span);
        }
    }

    /// The hidden character at `at`, unless it has a place by what stands right beside it.
    fn hidden(&mut self, at: usize) -> Option<(char, Kind)> {
        if !search::suspect(self.text.as_bytes(), at) {
            return None;
        }
        let ch = self.char_at(at)?;
        let kind = tables::kind(ch)?;
        let before = self.text[..at].chars().next_back();
        let after = at + ch.len_utf8();
        let next = self.char_at(after);
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "what is not named here has no place by its neighbours"
        )]
        let placed = match kind {
            Kind::ByteOrder => at == 0,
            Kind::SoftHyphen => self.hyphenates(at),
            Kind::Braille => self.in_braille(at),
            Kind::Space => separates(before, next),
            Kind::GraphemeJoiner => {
                let point = |ch: Option<char>| matches!(ch, Some('\u{591}'..='\u{5EA}'));
                point(before) && point(next)
            }
            Kind::Mongolian => self.mongolian(ch, at, next),
            Kind::HangulFiller => self.old_hangul(ch, before, next, after),
            _ => false,
        };
        (!placed).then_some((ch, kind))
    }

    /// Whether a soft hyphen stands in a word of letters, where a line may end: not beside a digit, not near an end, and not
    /// in what looks like a key.
    fn hyphenates(&mut self, at: usize) -> bool {
        // Those that are seen: fillers are letters, too.
        let letter = |ch: Option<char>| {
            ch.is_some_and(|ch| ch.is_alphabetic() && tables::kind(ch).is_none())
        };
        let mut before = self.text[..at].chars().rev();
        let mut after = self.text[at..].chars().skip(1);
        let inside = letter(before.next())
            && letter(before.next())
            && letter(after.next())
            && letter(after.next());
        if !inside {
            return false;
        }
        if !self.word.span.contains(&at) {
            let span = around(self.text, at, |ch| {
                ch.is_alphanumeric() || ch == '_' || tables::kind(ch).is_some()
            });
            let mut seen = self.text[span.clone()]
                .chars()
                .filter(|ch| tables::kind(*ch).is_none());
            let plain = seen.next().is_some_and(char::is_alphabetic)
                && seen.all(|ch| !ch.is_uppercase() && !ch.is_numeric() && ch != '_');
            self.word = Judged { span, plain };
        }
        self.word.plain
    }

    /// Whether an empty cell stands among others that are not empty, as in a text or picture in Braille.
    fn in_braille(&mut self, at: usize) -> bool {
        if !self.braille.span.contains(&at) {
            let span = around(self.text, at, |ch| {
                matches!(ch, '\u{2800}'..='\u{28FF}' | ' ' | '\t' | '\n' | '\r')
                    || tables::kind(ch).is_some()
            });
            let plain = self.text[span.clone()]
                .chars()
                .any(|ch| matches!(ch, '\u{2801}'..='\u{28FF}'));
            self.braille = Judged { span, plain };
        }
        self.braille.plain
    }

    /// Whether it shapes a Mongolian letter.
    fn mongolian(&self, ch: char, at: usize, next: Option<char>) -> bool {
        let letter = |ch: Option<char>| {
            matches!(ch, Some('\u{1807}' | '\u{180A}' | '\u{1820}'..='\u{18AA}'))
        };
        let mut before = self.text[..at].chars().rev();
        if ch != '\u{180E}' {
            return letter(before.next());
        }
        let before = match before.next() {
            Some('\u{180B}'..='\u{180D}' | '\u{180F}') => before.next(),
            other => other,
        };
        letter(before) && letter(next)
    }

    /// Whether it stands for a missing part of an old Hangul syllable that has another part.
    fn old_hangul(&self, ch: char, before: Option<char>, next: Option<char>, after: usize) -> bool {
        let vowel = |ch: Option<char>| {
            matches!(ch, Some('\u{1161}'..='\u{11A7}' | '\u{D7B0}'..='\u{D7C6}'))
        };
        let last = |ch: Option<char>| {
            matches!(ch, Some('\u{11A8}'..='\u{11FF}' | '\u{D7CB}'..='\u{D7FB}'))
        };
        let first = |ch: Option<char>| {
            matches!(ch, Some('\u{1100}'..='\u{115E}' | '\u{A960}'..='\u{A97C}'))
        };
        if ch == '\u{115F}' {
            let then = || self.text[after..].chars().nth(1);
            return vowel(next) || (next == Some('\u{1160}') && last(then()));
        }
        first(before) || (before == Some('\u{115F}') && last(next))
    }

    /// Whether marks between these two have something to order: nothing does inside a word of Latin letters, nor in a text
    /// that has nothing written from right to left.
    fn marks_stay(&mut self, left: Option<char>, right: Option<char>) -> bool {
        let latin = |ch: Option<char>| ch.is_some_and(|ch| ch.is_ascii_alphanumeric());
        let text = self.text;
        !(latin(left) && latin(right))
            && *self.right_to_left.get_or_insert_with(|| {
                looked(text.len());
                text.chars().any(tables::right_to_left)
            })
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..).and_then(|rest| rest.chars().next())
    }
}

impl Others {
    fn add(&mut self, kind: Kind, ch: char, at: usize) {
        match self.count {
            0 => self.first = Some((kind, ch, at)),
            1 => self.second = Some(ch),
            _ => {}
        }
        self.count += 1;
    }

    /// Whether these, in `run`, which begins at `start`, say something about the characters they stand between.
    fn stay(&self, left: Option<char>, right: Option<char>, run: &str, start: usize) -> bool {
        let (Some((kind, ch, at)), Some(left)) = (self.first, left) else {
            return false;
        };
        match (kind, self.count, self.second) {
            (Kind::Joiner, 1, _) => joins(ch, left, right),
            (Kind::Variation, 1, _) => {
                at == start && (tables::varies(left, ch) || tables::keyed(left, ch, right))
            }
            (Kind::Variation, 2, Some('\u{200D}')) => {
                at == start
                    && tables::varies(left, ch)
                    && tables::pictograph(left)
                    && right.is_some_and(tables::pictograph)
            }
            (Kind::Tag, _, _) => self.flag(Some(left), run, start).is_some(),
            _ => false,
        }
    }

    /// Where in `run`, which begins at `start`, the tags end that say whose the black flag before it is.
    fn flag(&self, left: Option<char>, run: &str, start: usize) -> Option<usize> {
        let tagged = matches!(self.first, Some((Kind::Tag, _, at)) if at == start);
        (tagged && left == Some('\u{1F3F4}'))
            .then(|| tables::flag(run))
            .flatten()
    }
}

fn is_tag(ch: char) -> bool {
    matches!(tables::kind(ch), Some(Kind::Tag))
}

/// Whether a joiner between these two says how letters, a conjunct or an emoji are drawn.
fn joins(joiner: char, left: char, right: Option<char>) -> bool {
    let hebrew = |ch: char| matches!(ch, '\u{591}'..='\u{5EA}');
    let right_is = |test: fn(char) -> bool| right.is_some_and(test);
    tables::cursive(left)
        || right_is(tables::cursive)
        || tables::virama(left)
        // Before a virama, between a consonant and a vowel, before a sign of Khmer: writers and fonts differ in what needs one.
        || (tables::brahmic(left) && right_is(tables::brahmic))
        || (hebrew(left) && right.is_some_and(hebrew))
        || (joiner == '\u{200D}' && tables::pictograph(left) && right_is(tables::pictograph))
}

/// Whether a zero-width space between these two says where a line may end.
fn separates(before: Option<char>, next: Option<char>) -> bool {
    let fits = |ch: Option<char>| {
        ch.is_some_and(|ch| !ch.is_ascii_alphanumeric() && tables::kind(ch).is_none())
    };
    let unspaced = |ch: Option<char>| ch.is_some_and(tables::unspaced);
    (unspaced(before) && fits(next)) || (fits(before) && unspaced(next))
}

/// The longest stretch around `at` of characters of which `belongs` holds; the one at `at` does.
fn around(text: &str, at: usize, belongs: impl Fn(char) -> bool) -> Range<usize> {
    let start = text[..at]
        .char_indices()
        .rev()
        .find(|(_, ch)| !belongs(*ch))
        .map_or(0, |(before, ch)| before + ch.len_utf8());
    let end = text[at..]
        .find(|ch| !belongs(ch))
        .map_or(text.len(), |after| at + after);
    looked(end - start);
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_usual_is_judged_like_any_run(text in "([0-9#*a]|[\u{20FF}-\u{2102}✔❤⠁⟿]|[🌀🚀👩💻🏴🫿🬀]|[دم\u{61C}]|[\u{FE0E}\u{FE0F}\u{200C}\u{200D}]{1,2}|[\u{AD}\u{200B}]){0,30}") {
            for (at, _) in text.char_indices() {
                let Some(end) = usual(text.as_bytes(), at) else {
                    continue;
                };
                let mut scan = Scan {
                    text: &text,
                    right_to_left: None,
                    word: Judged::default(),
                    braille: Judged::default(),
                    paragraph_end: 0,
                };
                let mut found = 0;
                let judged = scan.run(at, &mut |_, _| found += 1);
                prop_assert_eq!((judged, found), (end, 0), "{} of {:?}", at, text);
            }
        }
    }
}
