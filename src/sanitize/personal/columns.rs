//! Columns of tables, and lists: what the number above is the one below it is, too, where the name of the column is far.
//!
//! Guarantees: looks no farther back than [`FAR`] twice, and only behind a number that was told. Deliberately absent: cells in
//! which what parts them stands between quotes.

use std::ops::Range;

use super::tables::{is_joint, is_outside};
use crate::sanitize::work::looked;

/// How far apart the two may stand, and how long a line may be before a number, in bytes.
const FAR: usize = 512;

/// Whether what begins at `start` stands in the column of the number above, on a line behind it.
#[inline(never)]
pub(super) fn beneath(text: &[u8], above: &Range<usize>, start: usize) -> bool {
    // Letters of the number may go before its digits.
    let letters = text[..start].iter().rev().take(4);
    let letters = letters.take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-');
    let start = start - letters.count();
    let Some(between) = text.get(above.end..start) else {
        return false;
    };
    let from = above.start.saturating_sub(FAR);
    let before = &text[from..above.start];
    looked(before.len() + between.len().min(FAR));
    if between.len() > FAR {
        return false;
    }
    // Tables end with an empty line, and lists with a bracket.
    if memchr::memmem::find(between, b"\n\n").is_some() || between.contains(&b']') {
        return false;
    }
    let Some(feed) = memchr::memrchr(b'\n', between) else {
        return false;
    };
    let first = match memchr::memrchr(b'\n', before) {
        Some(feed) => &before[feed + 1..],
        None if from == 0 => before,
        None => return false,
    };
    // The first column is told by what is behind it.
    let first_ends = between.iter().find(|byte| !is_outside(byte));
    column(first).is_some_and(|place| {
        column(&between[feed + 1..]) == Some(place)
            && (place.1 > 0 || first_ends.is_some_and(|byte| *byte == b'\n' || is_joint(*byte)))
    })
}

/// What parts the columns, and how many stand before the one that begins behind this piece of a line. What is listed stands in
/// the first behind the sign that is before it.
fn column(line: &[u8]) -> Option<(u8, usize)> {
    let Some(last) = line.iter().rev().find(|byte| !is_outside(byte)) else {
        return Some((b' ', 0));
    };
    let count = || line.iter().filter(|byte| *byte == last).count();
    if is_joint(*last) {
        return Some((*last, count()));
    }
    (is_listed(line) && !last.is_ascii_alphanumeric()).then_some((*last, 1))
}

/// Whether a line is one of a list: `- `, `* `, `12. `, `3) `.
fn is_listed(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let signs: &[u8] = match digits {
        0 => b"-*+",
        1..=3 => b".)",
        _ => return false,
    };
    let sign = line.get(digits).is_some_and(|sign| signs.contains(sign));
    sign && line.get(digits + 1) == Some(&b' ')
}

#[cfg(test)]
mod tests {
    use super::super::tests::names;

    #[test]
    fn a_number_in_the_column_of_another_is_what_that_one_is() {
        let name = "Maria de los Angeles Fernandez de la Torre y Montenegro";
        for rows in [
            [
                "{n},1234563218,a\n",
                "{n},1060000062,b\n",
                "{n},5260001246,c\n",
            ],
            [
                "{n};\"1234563218\"\n",
                "{n};\"1060000062\"\n",
                "{n};\"5260001246\"\n",
            ],
            [
                "| {n} | 1234563218 |\n",
                "| {n} | 1060000062 |\n",
                "| {n} | 5260001246 |\n",
            ],
            [
                "1234563218\t{n}\n",
                "1060000062\t{n}\n",
                "5260001246\t{n}\n",
            ],
            [
                "{n}\t1234563218\r\n",
                "{n}\t1060000062\r\n",
                "{n}\t5260001246\r\n",
            ],
        ] {
            let rows = rows.concat().replace("{n}", name);
            assert_eq!(names(&format!("nip\n{rows}")), ["pl_nip"; 3], "{rows}");
            assert_eq!(names(&rows), [""; 0], "{rows}");
        }
        for rows in [
            "1. {n} - 1234563218\n2. {n} - 1060000062\n3. {n} - 5260001246",
            "- {n}: 1234563218\n- {n}: 1060000062\n- {n}: 5260001246\n",
            "  * {n} \u{2013} `1234563218`\n  * {n} \u{2013} `1060000062`\n  * {n} \u{2013} `5260001246`",
        ] {
            let rows = rows.replace("{n}", name);
            assert_eq!(names(&format!("nip:\n{rows}")), ["pl_nip"; 3], "{rows}");
            assert_eq!(names(&rows), [""; 0], "{rows}");
        }
        for rows in [
            "nip:\n1. {n} - 1234563218\n2. {n}: 1060000062\n",
            "nip:\n1. {n} - 1234563218\n{n} - 1060000062\n",
            "nip:\n1. {n} - 1234563218\n\n2. {n} - 1060000062\n",
            // Another column, another line, nothing of a table, and a check digit that does not hold.
            "nip,{n},1234563218\n{n},{n},{n},1060000062",
            "nip,1234563218,{n},{n},1060000062",
            "nip is 1234563218\n{n} and so is 1060000062",
            "nip\n1234563218 is of {n}\n1060000062 is of another",
            "nip,{n}\n1,1234563218,{n},{n}\n1,1060000063",
        ] {
            let rows = rows.replace("{n}", name);
            assert_eq!(names(&rows), ["pl_nip"], "{rows}");
        }
        let rows = format!("rif\n{name},V-11672698-6\n{name},V-80636841-1\n");
        assert_eq!(names(&rows), ["ve_rif"; 2]);
    }
}
