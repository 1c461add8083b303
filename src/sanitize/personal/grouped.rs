//! How the digits of national numbers with letters are grouped, and what letters stand beside them.
//!
//! Guarantees: a look at what stands beside costs a byte or two, for most rows of digits have no letters. Deliberately absent:
//! whether it is such a number (`lettered.rs`).

use std::ops::Range;

use super::letters::is_corsica;

/// How the digits of those that are read from a row of digits are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lettered {
    Eight,
    Dotted,
    Seven,
    Nine,
    Seventeen,
    SixThree,
    SixFour,
    ThreeThreeTwo,
    Pairs,
    PairsDashed,
    TwoSix,
    EightSpaced,
    EightDashed,
    Ten,
    Eleven,
    Twelve,
    Thirteen,
    Threes,
    Fives,
    FivesTwelve,
    TwentyTwo,
}

impl Lettered {
    pub(super) const ALL: [Self; 21] = [
        Self::Eight,
        Self::Dotted,
        Self::Seven,
        Self::Nine,
        Self::Seventeen,
        Self::SixThree,
        Self::SixFour,
        Self::ThreeThreeTwo,
        Self::Pairs,
        Self::PairsDashed,
        Self::TwoSix,
        Self::EightSpaced,
        Self::EightDashed,
        Self::Ten,
        Self::Eleven,
        Self::Twelve,
        Self::Thirteen,
        Self::Threes,
        Self::Fives,
        Self::FivesTwelve,
        Self::TwentyTwo,
    ];

    /// How long the numbers of the bank and the branch of an account of France are.
    pub(super) const BRANCH: usize = 11;

    /// Every shape as rules write it: of an account of France with some of its own digits before the first letter, too.
    pub(super) fn shapes(self) -> impl Iterator<Item = String> {
        let more = if self == Self::Fives { 10 } else { 0 };
        let more = (1..=more).map(move |digits| format!("{} {digits}", self.shape()));
        std::iter::once(self.shape().to_owned()).chain(more)
    }

    /// As rules write it.
    const fn shape(self) -> &'static str {
        match self {
            Self::Eight => "8",
            Self::Dotted => "2.3.3",
            Self::Seven => "7",
            Self::Nine => "9",
            Self::Seventeen => "17",
            Self::SixThree => "6-3",
            Self::SixFour => "6-4",
            Self::ThreeThreeTwo => "3 3 2",
            Self::Pairs => "2 2 2",
            Self::PairsDashed => "2-2-2",
            Self::TwoSix => "2 6",
            Self::EightSpaced => "8 1",
            Self::EightDashed => "8-1",
            Self::Ten => "10",
            Self::Eleven => "11",
            Self::Twelve => "12",
            Self::Thirteen => "13",
            Self::Threes => "3 3 3",
            Self::Fives => "5 5",
            Self::FivesTwelve => "5 5 12",
            Self::TwentyTwo => "22",
        }
    }

    /// Whether such letters stand beside the digits as some number of this shape has: most have none, and are not read.
    #[inline]
    pub(super) fn is_beside(self, text: &[u8], span: &Range<usize>) -> bool {
        let before = span.start.checked_sub(1).map_or(b' ', |at| text[at]);
        let after = |more: usize| text.get(span.end + more).copied().unwrap_or(b' ');
        match self {
            Self::Eight | Self::Dotted => {
                let joint = usize::from(matches!(after(0), b'-' | b' '));
                let alone = !before.is_ascii_alphanumeric()
                    && after(joint).is_ascii_alphabetic()
                    && !after(joint + 1).is_ascii_alphanumeric();
                alone
                    || self == Self::Eight
                        && (before.is_ascii_uppercase() || after(0).is_ascii_uppercase())
            }
            // A space stands between the department and the rest.
            Self::ThreeThreeTwo => {
                let before = span.start.checked_sub(2).map_or(b' ', |at| text[at]);
                is_corsica(before)
            }
            Self::Pairs => before == b' ' && matches!(after(0), b' ' | b'A'..=b'D'),
            Self::PairsDashed => {
                before == b'-' && after(0) == b'-' && matches!(after(1), b'A'..=b'D')
            }
            Self::Seven => {
                before.is_ascii_uppercase()
                    || matches!(before, b'k'..=b'm' | b'x'..=b'z' | b'-')
                    || after(0).is_ascii_uppercase()
                    || after(0) == b'-' && matches!(after(1), b'K' | b'k')
                    || after(0) == b' ' && after(1).is_ascii_uppercase()
            }
            Self::Nine => before.is_ascii_uppercase() || after(0).is_ascii_uppercase(),
            Self::Seventeen => matches!(after(0), b'X' | b'x'),
            Self::TwoSix => after(0) == b' ' && after(1).is_ascii_uppercase() && after(2) == b' ',
            Self::EightSpaced => after(0) == b' ' && after(3).is_ascii_digit(),
            Self::EightDashed => before == b'-' || before.is_ascii_uppercase() || after(0) == b'-',
            Self::Ten => matches!(before, b'C' | b'G' | b'P' | b'Q' | b'V'),
            Self::Eleven => before.is_ascii_uppercase() && after(0).is_ascii_uppercase(),
            Self::Twelve => before.is_ascii_uppercase() && after(0) != b'-',
            Self::Thirteen => before.is_ascii_uppercase() && !after(0).is_ascii_alphanumeric(),
            Self::Threes if before.is_ascii_uppercase() => true,
            Self::Threes | Self::FivesTwelve => {
                let letter = span.start.checked_sub(2).map_or(b' ', |at| text[at]);
                before == b' ' && letter.is_ascii_uppercase()
            }
            Self::TwentyTwo => before.is_ascii_uppercase(),
            // The account may begin with digits, which are of the row then.
            Self::Fives => {
                let is_blank = |more: usize| text.get(span.start + more) == Some(&b' ');
                is_blank(11) && is_blank(23)
            }
            Self::SixThree => after(0).is_ascii_uppercase(),
            Self::SixFour => !before.is_ascii_alphanumeric() && !after(0).is_ascii_alphanumeric(),
        }
    }
}
