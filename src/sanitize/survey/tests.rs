//! What one pass finds is what plain loops find.

use proptest::prelude::*;

use super::*;

fn bits(found: impl Iterator<Item = (usize, u64)>) -> Vec<usize> {
    found.flat_map(|(at, mask)| places(at, mask)).collect()
}

/// Where a run of bytes of which `of` holds has come to `length`.
fn runs(text: &[u8], length: usize, of: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut run = 0;
    (0..text.len())
        .filter(|at| {
            run = if of(*at) { run + 1 } else { 0 };
            run == length
        })
        .collect()
}

/// Every level that this machine has.
fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let others = [
        best.as_avx2().map(Level::Avx2),
        best.as_sse4_2().map(Level::Sse4_2),
        best.as_sse2().map(Level::Sse2),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let others: [Option<Level>; 0] = [];
    let others = others.into_iter().flatten();
    std::iter::once(best).chain(others).collect()
}

fn check(text: &str) {
    for level in levels() {
        let mut survey = Survey::default();
        survey.read_at(level, text);
        check_survey(text, &survey);
    }
}

fn check_survey(text: &str, survey: &Survey) {
    let bytes = text.as_bytes();
    let is = |at: usize, set: &[u8]| bytes.get(at).is_some_and(|byte| set.contains(byte));
    let alnum = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let secrets = |of: fn(&Secrets) -> u64| bits(survey.secrets.iter().map(|s| (s.at, of(s))));
    let numbers = |of: fn(&Numbers) -> u64| bits(survey.numbers.iter().map(|n| (n.at, of(n))));
    let every =
        |of: &dyn Fn(usize) -> bool| (0..bytes.len()).filter(|at| of(*at)).collect::<Vec<_>>();
    assert_eq!(
        secrets(|s| s.runs),
        runs(bytes, TOKEN, |at| alnum(at) || is(at, b"_-")),
        "{text:?}"
    );
    // A dash behind what no run has in it, in this block or the one before.
    let opens = |block: usize| {
        let near = |byte: &u8| (b'+'..0x80).contains(byte);
        let from = block.saturating_sub(1) * BLOCK;
        (from..bytes.len().min((block + 1) * BLOCK))
            .any(|at| is(at, b"-") && !(at > 0 && near(&bytes[at - 1])))
    };
    let flags = text.match_indices("-u").map(|(flag, _)| flag / BLOCK);
    let flags = flags.filter(|block| opens(*block));
    let flags: Vec<_> = flags.collect();
    let flag = |at: usize| {
        flags
            .iter()
            .any(|flag| (0..3).contains(&(at / BLOCK).wrapping_sub(*flag)))
    };
    for secrets in &survey.secrets {
        assert_eq!(secrets.flag, flag(secrets.at), "{text:?}");
    }
    let telling = |last: usize| {
        let end = &bytes[last.saturating_sub(1)..=last];
        let ends: [&[u8]; 10] = [
            b"rd", b"wd", b"nd", b"se", b"ue", b"ss", b"on", b"th", b"'d", b"\"d",
        ];
        ends.iter().any(|telling| end.eq_ignore_ascii_case(telling))
    };
    let ends = |last: usize| b"dsenh".contains(&(bytes[last] | 0x20));
    let said = |at: usize| {
        let quoted = usize::from(at > 0 && is(at - 1, b"\"'"));
        let last = at.checked_sub(1 + quoted);
        let plain = last.is_some_and(|last| alnum(last) && !telling(last));
        is(at, b"=:") && (!plain || is(at + 1, b"+/\\") || flag(at))
    };
    let six = |to: usize| to >= 5 && (to - 5..=to).all(digit);
    let numbered = |at: usize| {
        let quoted = usize::from(at > 0 && is(at - 1, b"\"'"));
        let last = at.checked_sub(1 + quoted);
        let plain = last.is_some_and(|last| alnum(last) && !ends(last));
        is(at, b"=:") && (!plain || flag(at)) && (6..=12).any(|far| six(at + far))
    };
    let mut found_numbered = bits(survey.numbered.iter().map(|found| (found.at, found.marks)));
    found_numbered.sort_unstable();
    found_numbered.dedup();
    assert_eq!(found_numbered, every(&numbered), "{text:?}");
    assert_eq!(secrets(|s| s.assign), every(&said), "{text:?}");
    assert_eq!(secrets(|s| s.signs), every(&|at| is(at, b"~@")));
    assert_eq!(secrets(|s| s.dashes), runs(bytes, 5, |at| is(at, b"-")));
    let joint = |at: usize| at > 0 && is(at, b" -./") && digit(at - 1) && digit(at + 1);
    assert_eq!(
        numbers(|n| n.digits),
        runs(bytes, DIGITS, |at| digit(at) || joint(at)),
        "{text:?}"
    );
    assert_eq!(numbers(|n| n.letters), runs(bytes, LETTERS, alnum));
    let head = |at: usize| {
        at >= 3
            && digit(at)
            && digit(at - 1)
            && letter(at - 2)
            && letter(at - 3)
            && (4..=7).any(|before| {
                let letters = at >= before - 1 && (4..before).all(|back| letter(at - back));
                letters && !(at >= before && alnum(at - before))
            })
    };
    let six_digits = |at: usize| {
        let behind = |by: usize| at.checked_sub(by);
        let word = (10..=11).any(|end| {
            let letters = (7..end).all(|by| behind(by).is_some_and(letter));
            letters && [6, end].iter().all(|by| !behind(*by).is_some_and(alnum))
        });
        let six = (0..6).all(|by| behind(by).is_some_and(digit));
        six && !digit(at + 1) && (word || is(at + 1, b"(["))
    };
    assert_eq!(numbers(|n| n.heads), every(&head), "{text:?}");
    assert_eq!(numbers(|n| n.sixes), every(&six_digits), "{text:?}");
    let active = |at: usize| {
        is(at, b"<") && (letter(at + 1) || is(at + 1, b"?"))
            || is(at, b"!") && is(at + 1, b"[")
            || is(at, b"]") && is(at + 1, b"(:")
    };
    let found = |list: &[Found]| bits(list.iter().map(|found| (found.at, found.marks)));
    assert_eq!(found(&survey.active), every(&active));
    let control = |at: usize| {
        bytes[at] < 0x20 && !is(at, b"\t\n\r")
            || bytes[at] == 0x7F
            || bytes[at] == 0xC2
                && bytes
                    .get(at + 1)
                    .is_some_and(|next| (0x80..0xA0).contains(next))
    };
    assert_eq!(found(&survey.controls), every(&control), "{text:?}");
    let word = |at: usize| alnum(at) || is(at, b"_-+/");
    let mut worth_it = Vec::new();
    for end in runs(bytes, ENCODED, word) {
        let start = end + 1 - ENCODED;
        let end = (start..bytes.len()).find(|at| !word(*at));
        let end = end.unwrap_or(bytes.len());
        let run = &bytes[start..end];
        let hexadecimal = run
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || !byte.is_ascii_alphanumeric());
        let joint = !run.iter().all(u8::is_ascii_alphanumeric);
        let slash = run.iter().any(|byte| b"+/".contains(byte));
        let lower = run.iter().any(u8::is_ascii_lowercase);
        let upper = run
            .iter()
            .any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let form = if run.len() > BLOCK {
            Some(Form::Either)
        } else if hexadecimal && !joint {
            Some(Form::Hexadecimal)
        } else {
            (lower && upper && (!hexadecimal || slash)).then_some(Form::Base64)
        };
        worth_it.extend(form.map(|form| Encoded {
            run: start..end,
            form,
        }));
    }
    assert_eq!(survey.encoded, worth_it, "{text:?}");
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let percent = |at: usize| is(at, b"%") && hex(at + 1);
    assert_eq!(found(&survey.percent), every(&percent), "{text:?}");
    let unicode = |at: usize| is(at, b"\\") && is(at + 1, b"u");
    assert_eq!(found(&survey.unicode), every(&unicode), "{text:?}");
    let form = |at: usize| match bytes[at] {
        0xE2 => is(at + 1, &[0x83, 0x92, 0x93]),
        0xEF => is(at + 1, &[0xBC, 0xBD]),
        0xF0 => is(at + 1, &[0x9D]),
        _ => false,
    };
    assert_eq!(found(&survey.forms), every(&form), "{text:?}");
    let joint = |at: usize| {
        let space = bytes[at] == 0xC2 && is(at + 1, &[0xA0]);
        let general = bytes[at] == 0xE2 && is(at + 1, &[0x80]);
        at > 0 && bytes[at - 1].is_ascii_digit() && (space || general)
    };
    assert_eq!(found(&survey.joints), every(&joint), "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_pass_tells_what_plain_loops_tell(text in "([0-9]{1,8}[ ./\u{a0}–’-]{0,2}|[A-Za-z]{2,4}[0-9]{2}|[A-Za-z]{3,4}[ -][0-9]{6}|[0-9]{6}[(\\[]|[a-zA-Z0-9]{1,40}|[_+/-]{1,7}|-u|-----|([rwnsuot'\"][desnh]|[RWNSUOT][DESNH])[ \"]{0,1}[=:]|%[0-9a-fA-F%]|\\\\u|[ =:;~%\"'\\\\<!?(\\[\\]\n]{1,3}|é|[Ａｚ𝐀ⓐ，\u{20E3}\u{85}]|\u{7f}|[\u{0}-\u{20}]|[a-z ]{1,80}){0,40}") {
        check(&text);
    }

    #[test]
    fn the_pass_tells_runs_wherever_blocks_end(before in 0_usize..130, length in 0_usize..140, digits in any::<bool>()) {
        let run = if digits { "7" } else { "x" }.repeat(length);
        check(&format!("{}{run} ", " ".repeat(before)));
    }
}

#[test]
fn assignments_are_told_behind_any_two_characters() {
    let ascii = || (0..0x80_u8).map(char::from);
    for before in ascii() {
        let all: String = ascii().map(|last| format!("{before}{last}=")).collect();
        check(&all);
    }
}

#[test]
fn names_before_assignments_are_known_wherever_tiles_end() {
    for before in 0..2 * LANES * BLOCK {
        check(&format!(
            "{}password=x \"passwd\": y, name=z",
            " ".repeat(before)
        ));
    }
}
