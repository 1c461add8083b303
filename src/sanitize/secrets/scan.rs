//! A look at one text: each place that the pass tells is handed to whoever knows what may stand there.
//!
//! Guarantees: every place is looked at once, and no look goes farther than a bound; nothing is allocated before a hit.
//! Deliberately absent: the forms themselves (`tokens.txt`, `contexts.txt`).

use std::{ops::Range, sync::Arc};

use fearless_simd::{Level, Simd, dispatch};

use super::{
    Names, Wanted,
    armoured::{Marks, Parts},
    beside::Driver,
    bytes::{is_joint, is_joint_or_at, is_part, is_token, whole_characters},
    checksums::checksum_holds,
    context::Valued,
    ending::Ending,
    manifest::Manifest,
    next::Ends,
    object::Object,
    plausible::{plausible, within_base64},
    public::is_called_secret,
    rules::{Rules, Token},
    run::{self, Run, is_uuid},
};
use crate::sanitize::{
    Class, Hit,
    survey::{self, BLOCK, Survey, behind, places},
    work::looked,
};

/// How far back the beginning of a token may stand that has other characters in it than a run has.
const REACH: usize = 80;

/// What makes a password of a text, in PowerShell.
const SECURE: &[u8] = b"ConvertTo-SecureString";
/// One more than the longest word before an assignment that is remembered, in bytes.
pub(super) const WORD: usize = 24;

/// The state of one look.
pub(super) struct Scan<'a> {
    pub(super) rules: &'a Rules,
    pub(super) names: &'a Names,
    pub(super) wanted: Wanted,
    pub(super) text: &'a [u8],
    pub(super) hits: &'a mut Vec<Hit>,
    /// How far beginnings of tokens have been looked at.
    seen: usize,
    /// How far tokens have been found: what lies before is not looked at again.
    taken: usize,
    /// Words before assignments, and whether they say that nothing is to be kept to oneself.
    pub(super) harmless: [([u8; WORD], bool); 8],
    /// The same of those that are short, by what the text ends with there.
    pub(super) called: [(Ending, bool); Ending::KEPT],
    /// Names in front of assignments in which no token begins, whatever stands behind them.
    inert: [Ending; Ending::KEPT],
    pub(super) marks: Marks,
    pub(super) parts: Parts,
    pub(super) valued: Valued,
    pub(super) object: Object,
    pub(super) ends: Ends,
    pub(super) manifest: Manifest,
    pub(super) driver: Driver,
}

impl<'a> Scan<'a> {
    pub(super) fn all(
        rules: &'a Rules,
        names: &'a Names,
        wanted: Wanted,
        text: &'a str,
        survey: &Survey,
        hits: &'a mut Vec<Hit>,
    ) {
        let first = hits.len();
        let mut scan = Self {
            rules,
            names,
            wanted,
            text: text.as_bytes(),
            hits,
            seen: 0,
            taken: 0,
            harmless: [([0; WORD], false); 8],
            called: [(Ending::default(), false); Ending::KEPT],
            inert: [Ending::default(); Ending::KEPT],
            marks: Marks::default(),
            parts: Parts::default(),
            valued: Valued::default(),
            object: Object::default(),
            ends: Ends::default(),
            manifest: Manifest::default(),
            driver: Driver::default(),
        };
        // Most places are let go by a few sums, which wider machines have better instructions for.
        dispatch!(Level::new(), simd => scan.each_place(simd, &survey.secrets));
        scan.start_again();
        scan.broken(&survey.encoded);
        if scan.hits.len() > first {
            merge(scan.hits, first);
        }
    }

    /// Goes to each place that the survey has found.
    #[inline(always)]
    fn each_place<S: Simd>(&mut self, _: S, found: &[survey::Secrets]) {
        for found in found {
            let at = found.at;
            places(at, found.runs).for_each(|at| self.run(at + 1 - survey::TOKEN));
            places(at, found.assign).for_each(|at| self.assignment(at, found.flag));
            places(at, found.signs).for_each(|at| self.sign(at));
            places(at, found.dashes).for_each(|at| self.row_of_dashes(at));
        }
    }

    /// Goes back to the beginning of the text.
    fn start_again(&mut self) {
        (self.seen, self.taken) = (0, 0);
        (self.valued, self.object) = (Valued::default(), Object::default());
        (self.ends, self.manifest, self.driver) = Default::default();
    }

    /// What begins at `start` and is broken by signs.
    pub(super) fn broken_run(&mut self, start: usize) {
        let text = self.text;
        if start < self.taken || self.unprefixed(start, run::encoded(text, start)) {
            return;
        }
        // A sign may stand first.
        self.value(start, start + Run::at(text, start).length.max(1));
    }

    /// A run of token characters that begins at `start`.
    fn run(&mut self, start: usize) {
        let text = self.text;
        if start < self.taken {
            return;
        }
        let before = start.checked_sub(1).map_or(b' ', |at| text[at]);
        if is_uuid(text, start) {
            // No token begins in one before which none began (a test goes through the rules), but it may be the value of
            // something.
            let end = start + run::LENGTH;
            let after = text.get(end).copied().unwrap_or(b' ');
            if !is_joint_or_at(after) {
                if !is_joint(before) || !self.joined(start) {
                    self.seen = end;
                    self.value(start, end);
                }
                return;
            }
        }
        let run = Run::at(text, start);
        if run.is_name() && !text[start..].starts_with(DJANGO) {
            if run.length == SECURE.len() && text[start..].starts_with(SECURE) {
                self.secure_string(start + SECURE.len());
            }
            return;
        }
        let end = start + run.length;
        if text[start..end].ends_with(b"CONTRIBSYS__COM") {
            self.sidekiq(end);
            return;
        }
        if is_joint(before) {
            if self.joined(start) {
                return;
            }
        } else if before == b'\\'
            && matches!(text[start], b'n' | b'r' | b't')
            && self.escaped(start + 1, end)
        {
            return;
        }
        // All that stands before the first literal of such a token is of the alphabets of Base64.
        let reach = match text.get(end) {
            Some(b'+' | b'/') => usize::MAX,
            _ => run.length,
        };
        let unprefixed = reach == usize::MAX
            || !run.is_hexadecimal()
            || self.rules.may_be_unprefixed(text, start, end);
        let found = match run.words(start) {
            // What has no beginning of its own begins where nothing goes before.
            Some(mut words) => words.any(|at| {
                self.token(at)
                    || at == start && run.is_word && unprefixed && self.unprefixed(at, reach)
            }),
            None => self.beginnings(start, end),
        };
        if found {
            return;
        }
        self.seen = end;
        if !text[start].is_ascii_alphanumeric() && self.unprefixed(start, reach)
            || run.has_joints() && self.prefixed(start, end)
        {
            return;
        }
        self.value(start, end);
    }

    /// Whether a token of any kind begins at `start`, behind the letter of an escape.
    fn escaped(&mut self, start: usize, end: usize) -> bool {
        if self.token(start) {
            return true;
        }
        let first = self.text.get(start).copied().unwrap_or(b' ');
        first.is_ascii_alphanumeric() && self.unprefixed(start, run::encoded(self.text, start))
            || self.prefixed(start, end)
    }

    /// Whether a token begins in what a run that begins at `start` is joined to.
    fn joined(&mut self, start: usize) -> bool {
        let reach = start.saturating_sub(REACH).max(self.seen).max(self.taken);
        let last = self.text[..start].last_chunk().copied();
        let last =
            last.filter(|last: &[u8; Ending::MOST]| matches!(last[Ending::MOST - 1], b'=' | b':'));
        if let Some(last) = last
            && self.inert[Ending::slot(&last)].is(&last, start - reach)
        {
            return false;
        }
        looked(start - reach);
        let back = self.text[reach..start]
            .iter()
            .rev()
            .take_while(|byte| is_part(**byte))
            .count();
        let from = start - back;
        // Behind the escape of a line its letter is no part of the token.
        let escaped = from.checked_sub(1).is_some_and(|at| self.text[at] == b'\\')
            && from < start
            && matches!(self.text[from], b'n' | b'r' | b't');
        if let Some(last) = last
            && back < Ending::MOST
            && from > reach
            && !escaped
            && self.is_inert(from, start)
        {
            self.inert[Ending::slot(&last)] = Ending::of(last, back);
            return false;
        }
        self.beginnings(from + usize::from(escaped), start)
    }

    /// Whether no token begins in what stands before the assignment that ends at `to`, whatever stands behind that.
    fn is_inert(&self, from: usize, to: usize) -> bool {
        looked(to - from);
        let text = self.text;
        let word = |at: usize| text[at].is_ascii_alphanumeric();
        let begins = |at: &usize| *at == from || word(*at) && !word(*at - 1);
        (from..to).filter(begins).all(|at| {
            // What is shorter may go on behind the assignment.
            let Some(three) = text[at..to].first_chunk::<3>() else {
                return false;
            };
            let may = self.rules.may_begin(*three) || three[..2] == *b"ey" || three == b"PuT";
            let unprefixed = || {
                let reach = run::encoded(text, at);
                self.rules
                    .unprefixed_at(&text[at..], reach)
                    .next()
                    .is_some()
            };
            !may && !(word(at) && (at == from || text[at - 1] == b'=') && unprefixed())
        })
    }

    /// Whether a token begins between these.
    fn beginnings(&mut self, from: usize, to: usize) -> bool {
        looked(to - from);
        let mut before = 0;
        for at in (from..to).step_by(BLOCK) {
            let alnum = run::alnum(self.text, at);
            // Words, and what comes first.
            let starts = alnum & !behind(before, alnum, 1) | u64::from(at == from);
            before = alnum;
            let here = u64::MAX >> (BLOCK - (to - at).min(BLOCK));
            for place in places(at, starts & here) {
                if self.begins(place, from) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether a token begins with a word, or with the first of what begins at `from`.
    fn begins(&mut self, at: usize, from: usize) -> bool {
        if self.token(at) {
            return true;
        }
        let text = self.text;
        // What has no beginning of its own begins where nothing goes before, or a value begins.
        let value = text[at].is_ascii_alphanumeric() && (at == from || text[at - 1] == b'=');
        value && self.unprefixed(at, run::encoded(text, at))
    }

    #[inline]
    fn token(&mut self, at: usize) -> bool {
        let Some(three) = self.text.get(at..).and_then(<[u8]>::first_chunk::<3>) else {
            return false;
        };
        if self.rules.may_begin(*three) {
            return self.beginning(at, *three);
        }
        (three[..2] == *b"ey" && self.json_web_token(at)) || (three == b"PuT" && self.putty(at))
    }

    /// Whether a token that begins with these stands at `at`.
    fn beginning(&mut self, at: usize, three: [u8; 3]) -> bool {
        if three[..2] == *b"ey" && self.json_web_token(at) {
            return true;
        }
        if three == *b"PuT" && self.putty(at) {
            return true;
        }
        let rules = self.rules;
        let found = rules
            .beginning_with(three)
            .filter_map(|token| Some((token, token.pattern.token_at(self.text, at)?)))
            .inspect(|(_, end)| looked(end - at))
            .filter_map(|(token, end)| Some((judged(token, &self.text[at..end])?, token, end)))
            // Of equals the first: rules that say less of whose it is stand further down.
            .reduce(|best, next| {
                let rank = |&(class, _, end): &(Class, _, usize)| (class == Class::Secret, end);
                if rank(&next) > rank(&best) {
                    next
                } else {
                    best
                }
            });
        let Some((class, token, end)) = found else {
            return false;
        };
        if within_base64(self.text, at, end) {
            return false;
        }
        let kept = token.twin && class == Class::WeakSecret && is_called_secret(self.text, at);
        let class = if kept { Class::Secret } else { class };
        self.hit(at..end, class, &token.name);
        true
    }

    /// Tokens that do not begin with anything fixed.
    fn unprefixed(&mut self, at: usize, reach: usize) -> bool {
        let rules = self.rules;
        let found = rules
            .unprefixed_at(&self.text[at..], reach)
            .find_map(|unprefixed| {
                let token = &rules.tokens[usize::from(unprefixed.token)];
                looked(unprefixed.far);
                let end = token.pattern.token_at(self.text, at)?;
                Some((judged(token, &self.text[at..end])?, token, end))
            });
        let Some((class, token, end)) = found else {
            return false;
        };
        if within_base64(self.text, at, end) {
            return false;
        }
        if token.near && !self.is_named_near(at, token) {
            // A closer look may still tell whose it is.
            if !is_in_path(self.text, at, end) {
                self.hit(at..end, Class::WeakSecret, &token.name);
            }
            return false;
        }
        self.hit(at..end, class, &token.name);
        true
    }

    fn sign(&mut self, at: usize) {
        match self.text[at] {
            b'~' => self.tilde(at),
            _ => self.before_host(at),
        }
    }

    /// What stands around `~`: secrets of Entra applications have `Q~` after four characters.
    fn tilde(&mut self, at: usize) {
        let text = self.text;
        let part = |byte: &u8| is_token(*byte) || matches!(byte, b'.' | b'~');
        if at < 5 || at < self.taken || text[at - 1] != b'Q' || !text[at - 2].is_ascii_digit() {
            return;
        }
        let start = at - 5;
        let rest = text[at + 1..]
            .iter()
            .take(40)
            .take_while(|byte| part(byte))
            .count();
        let bounded = start == 0 || !part(&text[start - 1]);
        if text[start..at].iter().all(part)
            && bounded
            && (31..=35).contains(&rest)
            && plausible(&text[at + 1..at + 1 + rest])
        {
            let rest = if text[at + rest] == b'.' {
                rest - 1
            } else {
                rest
            };
            let name = &self.names.entra;
            self.hit(start..at + 1 + rest, Class::Secret, name);
        }
    }

    /// Two halves of eight hexadecimal digits, for the gems of Sidekiq.
    fn sidekiq(&mut self, end: usize) {
        let rest = &self.text[end..(end + 32).min(self.text.len())];
        let Some(start) = rest.iter().position(u8::is_ascii_hexdigit) else {
            return;
        };
        let value = rest[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':')
            .count();
        if value == 17 && rest[start + 8] == b':' {
            let rule = &self.names.sidekiq;
            self.hit(end + start..end + start + value, Class::Secret, rule);
        }
    }

    pub(super) fn hit(&mut self, span: Range<usize>, class: Class, rule: &Arc<str>) {
        // Outward, so that nothing of a secret is left over.
        let span = whole_characters(self.text, span);
        // What is weak may still turn out to be more.
        if class == Class::Secret {
            self.pass(span.end);
        }
        if (class == Class::Secret && self.wanted.strong)
            || (class == Class::WeakSecret && self.wanted.weak)
        {
            self.hits.push(Hit {
                span,
                class,
                rule: rule.clone(),
                inert: None,
            });
        }
    }

    /// Looks at nothing before `end` again.
    pub(super) fn pass(&mut self, end: usize) {
        self.taken = self.taken.max(end);
        self.seen = self.seen.max(end);
    }

    /// Whether something has been found that goes beyond this place.
    pub(super) const fn is_taken(&self, at: usize) -> bool {
        at < self.taken
    }
}

/// Whether it is a piece of the name of a file or a host: two digests with a dot between are, where builds are kept.
fn is_in_path(text: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).map_or(b' ', |at| text[at]);
    let behind = text.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
    matches!(before, b'/' | b'.' | b'-' | b'_') || text.get(end) == Some(&b'.') && behind
}

/// Of what class a token is that has its form, if it is one.
fn judged(token: &Token, bytes: &[u8]) -> Option<Class> {
    let value = &bytes[token.pattern.prefix().min(bytes.len())..];
    let certain = token.checked && checksum_holds(bytes, token.pattern.prefix());
    let proved = token.proof.is_none_or(|proof| proof.holds(bytes));
    let judged = certain
        || proved
            && if token.raw {
                !super::plausible::placeholder(value)
            } else {
                plausible(value)
            };
    judged.then_some(if token.low {
        Class::WeakSecret
    } else {
        Class::Secret
    })
}

/// Puts what was found from `first` on in order, and makes one of what overlaps.
fn merge(hits: &mut Vec<Hit>, first: usize) {
    hits[first..].sort_by_key(|hit| (hit.span.start, hit.class));
    let mut kept = first;
    for at in first + 1..hits.len() {
        if hits[at].span.start < hits[kept].span.end {
            let end = hits[at].span.end.max(hits[kept].span.end);
            let start = hits[kept].span.start;
            if hits[at].class < hits[kept].class {
                hits.swap(at, kept);
            }
            hits[kept].span = start..end;
        } else {
            kept += 1;
            hits.swap(at, kept);
        }
    }
    hits.truncate(kept + 1);
}

/// Begins keys with signs in them, so that what stands before the first sign may be a name.
const DJANGO: &[u8] = b"django-insecure-";

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{body, strong, told},
        *,
    };

    #[test]
    fn a_token_of_any_kind_may_stand_behind_the_letter_of_an_escape() {
        let body = body();
        for token in [
            format!("{}.atlasv1.{}{}", &body[..14], body, &body[..28]),
            format!("s-s4t2ud-{}", "9f86d081884c7d65".repeat(4)),
            format!("sk_{}", body),
            format!("gl{}-{}", "pat", &body[..20]),
        ] {
            for escape in ["\\n", "\\t", "\\r\\n"] {
                let text = format!("{{\"out\":\"made{escape}{token}{escape}\"}}");
                assert_eq!(strong(&text), [token.as_str()], "{text}");
            }
        }
        let name = format!("{{\"a\":\"C:\\new_{}\"}}", "9f86d081884c7d65".repeat(2));
        assert_eq!(strong(&name), [""; 0]);
    }

    #[test]
    fn what_is_a_token_by_itself_is_none_within_a_name() {
        let hex = "9f86d081884c7d65".repeat(8);
        for (begins, length) in [
            ("live_", 32),
            ("live_auth_", 32),
            ("test_auth_", 32),
            ("key_", 28),
            ("key_", 128),
        ] {
            let token = format!("{begins}{}", &hex[..length]);
            assert_eq!(strong(&format!("see {token}.")), [token.as_str()]);
            assert_eq!(
                strong(&format!("see {}.", &token[..token.len() - 1])),
                [""; 0]
            );
            if length < 128 {
                assert_eq!(strong(&format!("see app_{token}.")), [""; 0], "{token}");
            }
        }
        let fixture = format!("test_{}", &hex[..32]);
        assert_eq!(strong(&format!("see {fixture}.")), [""; 0]);
        let owned = format!("ScaleAI: {fixture}");
        assert_eq!(strong(&owned), [fixture]);
        let random = [
            "SCCKXI3S2HRRXP4J2JGORGWWIYOIC7GJ",
            "GV2SH75MVPWDKBOGRNJKJZSA",
        ]
        .concat();
        assert_eq!(strong(&random), [""; 0], "its checksum is another");
    }

    #[test]
    fn secret_keys_that_files_are_signed_with_are_told_and_public_ones_are_not() {
        let drawn = body().repeat(6);
        for (begins, length) in [
            (["RWRTY", "0Iy"], 203),
            (["RWQAA", "EIy"], 203),
            (["RWR", "CSwAAACo"], 128),
        ] {
            let key = format!("{}{}=", begins.concat(), &drawn[..length]);
            for text in [
                format!("untrusted comment: minisign encrypted secret key\n{key}\n"),
                format!("{{\"key\":\"untrusted comment: a\\n{key}\\n\"}}"),
                format!("MINISIGN={key}"),
            ] {
                assert_eq!(strong(&text), [key.as_str()], "{text}");
            }
            let longer = format!("x\n{}{}=", begins.concat(), &drawn[..length + 4]);
            assert_eq!(strong(&longer), [""; 0], "{longer}");
        }
        let public = format!("untrusted comment: public key\nRWRT{}\n", &drawn[..52]);
        assert_eq!(strong(&public), [""; 0], "{public}");
    }

    #[test]
    fn a_key_of_authress_is_told_whatever_the_length_of_its_names() {
        let key = ["MC4CAQAwBQ", "YDK2VwBCIE", "I", &body(), "k3/q9Zt"].concat();
        for (client, part, account) in [
            ("k3vq9ztlw1xc7rb2", "ab1c", "q7n2x9k4mt3w5z"),
            ("k3Vq9ZtLw1Xc7Rb2NhYs", "cMzn", "v8k2m5"),
            ("001", "ab12", "7e1f09"),
        ] {
            let token = format!("sc_{client}.{part}.acc-{account}.{key}");
            for text in [
                format!("AUTHRESS_KEY={token}\n"),
                format!("\"accessKey\": \"{token}\""),
                format!("the key {token} of ours"),
            ] {
                assert_eq!(strong(&text), [token.as_str()], "{text}");
            }
            let other = format!("see sc_{client}.{part}.acc-{account}.com");
            assert_eq!(strong(&other), [""; 0], "{other}");
        }
    }

    #[test]
    fn what_others_have_the_form_of_is_told_where_it_says_whose_it_is() {
        let key = format!("{}.{}", "9f86d081884c7d65".repeat(2), &body()[..16]);
        for text in [
            format!("export ZHIPUAI_API_KEY={key}"),
            format!("zhipuai.api_key = \"{key}\""),
            format!("client of ChatGLM: connect('{key}')"),
            format!("# bigmodel.cn, the new one is {key}, please"),
            format!("QUIXARA_API_KEY={key}"),
        ] {
            assert_eq!(strong(&text), [key.as_str()], "{text}");
        }
        let bare = told(&format!("the new one is {key}, please"));
        let marked = matches!(&bare[..], [(Class::WeakSecret, _, found)] if *found == key);
        assert!(marked, "{bare:?}");
        for text in [
            format!("/assets/{key}.js"),
            format!("glm {}.{}", &key[..32], "k3vq9ztlw1xc7rb2"),
            format!("see {key}x"),
        ] {
            assert_eq!(told(&text), [], "{text}");
        }
        let besttime = format!("pri_{}", &key[..32]);
        let text = format!("besttime: private = \"{besttime}\"");
        assert_eq!(strong(&text), [besttime.as_str()]);
        assert_eq!(strong(&format!("the key {besttime}")), [""; 0]);
    }
}
