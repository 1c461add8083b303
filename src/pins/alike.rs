//! Names that people or models could take for one another.

use strsim::levenshtein;
use unicode_security::skeleton;

/// The most slips between two names that are taken for one another.
const SLIPS: usize = 3;
/// The longest outline that is compared by slips, in characters.
const LONGEST: usize = 256;

/// What a name looks like: letters that look alike are one, and case and joints do not count.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outline {
    text: String,
    /// In characters.
    length: usize,
}

/// How much comparing is left, in cells of the tables that it fills. Names are what servers choose: thousands of long ones, each
/// compared with each, would take minutes.
pub(super) struct Effort(pub(super) usize);

impl Outline {
    pub(super) fn of(name: &str) -> Self {
        let plain: String = name
            .chars()
            .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
            .flat_map(char::to_lowercase)
            .collect();
        // Upper-case `I` and `l` look alike only before case is taken away; digits are for both.
        let text: String = skeleton(&plain)
            .flat_map(char::to_lowercase)
            .map(|c| match c {
                '1' | '|' => 'l',
                '0' => 'o',
                c => c,
            })
            .collect();
        let length = text.chars().count();
        Self { text, length }
    }

    /// Whether a slip or a few lie between the two; no, where it would take more effort than is left to tell.
    pub(super) fn is_near(&self, other: &Self, effort: &mut Effort) -> bool {
        let longest = self.length.max(other.length);
        let slips = (longest / 4).min(SLIPS);
        slips > 0
            && longest <= LONGEST
            && self.length.abs_diff(other.length) <= slips
            && effort.spend(self.length * other.length)
            && levenshtein(&self.text, &other.text) <= slips
    }
}

impl Effort {
    /// Takes this much, if it is there.
    const fn spend(&mut self, cells: usize) -> bool {
        match self.0.checked_sub(cells) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        let (one, other) = (Outline::of(one), Outline::of(other));
        one == other || one.is_near(&other, &mut Effort(usize::MAX))
    }

    #[test]
    fn names_that_look_alike_are_told_from_those_that_do_not() {
        for (one, other) in [
            ("send_email", "sendEmail"),
            ("send_email", "send_emai1"),
            ("paypal", "раураl"),
            ("read_file", "read_files"),
            ("search", "serch"),
        ] {
            assert!(are_alike(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("get", "set"),
            ("read_file", "write_file"),
            ("a", "b"),
            ("list_users", "list_groups"),
        ] {
            assert!(!are_alike(one, other), "{one} {other}");
        }
        assert_eq!(Outline::of("Send-Mail"), Outline::of("send_mail"));
        assert_ne!(Outline::of("send_mail"), Outline::of("read_mail"));
    }

    #[test]
    fn no_effort_goes_into_what_is_too_long_or_of_another_length() {
        let long = "x".repeat(LONGEST);
        let near = |one: &str, other: &str, cells| {
            let mut effort = Effort(cells);
            let near = Outline::of(one).is_near(&Outline::of(other), &mut effort);
            (near, cells - effort.0)
        };
        let cells = LONGEST * (LONGEST - 1);
        assert_eq!(near(&long, &long[1..], cells), (true, cells));
        assert_eq!(near(&long, &long[1..], cells - 1), (false, 0));
        assert_eq!(near(&long, &long[SLIPS + 1..], cells), (false, 0));
        assert_eq!(near(&long, &format!("{long}y"), usize::MAX), (false, 0));
    }
}
