//! Names that people or models could take for one another.

use strsim::levenshtein;
use unicode_security::skeleton;

/// What a name looks like: letters that look alike are one, and case and joints do not count.
pub fn outline(name: &str) -> String {
    let plain: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .flat_map(char::to_lowercase)
        .collect();
    // Upper-case `I` and `l` look alike only before case is taken away; digits are for both.
    skeleton(&plain)
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            '1' | '|' => 'l',
            '0' => 'o',
            c => c,
        })
        .collect()
}

/// Whether two names are one slip apart, or look alike.
pub fn are_alike(one: &str, other: &str) -> bool {
    let (one, other) = (outline(one), outline(other));
    let slips = one.chars().count().max(other.chars().count()) / 4;
    one == other || slips > 0 && levenshtein(&one, &other) <= slips.min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(outline("Send-Mail"), outline("send_mail"));
        assert_ne!(outline("send_mail"), outline("read_mail"));
    }
}
