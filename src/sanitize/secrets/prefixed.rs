//! Tokens of services that no table knows, which say by their beginning that they are secret: `acme_live_...`, `acme_pat_...`.
//!
//! Guarantees: looks at the run itself only. Deliberately absent: beginnings that name a kind of thing, such as `evt_` or
//! `msg_`, behind which numbers of things stand that are drawn at random, too.

use super::{
    plausible::{Shape, plausible},
    scan::Scan,
};
use crate::sanitize::Class;

/// The longest word before what is drawn at random, in bytes.
const WORD: usize = 12;
/// The least that is drawn at random, in bytes.
const DRAWN: usize = 24;
/// Words that say so behind another.
const SAYS: [&[u8]; 18] = [
    b"live",
    b"test",
    b"prod",
    b"dev",
    b"pat",
    b"api",
    b"apikey",
    b"secret",
    b"sk",
    b"token",
    b"key",
    b"access",
    b"at",
    b"rt",
    b"sat",
    b"prv",
    b"service",
    b"personal",
];
/// Of these those that names of environments and of services have, too, which go on with dashes.
const UNDERSCORED: [&[u8]; 6] = [b"live", b"test", b"prod", b"dev", b"api", b"service"];
/// First words of what is known to all: keys that are public, what is to be paid, and things of Stripe's that are numbered by mode.
const PUBLIC: [&[u8]; 5] = [b"pk", b"cs", b"feat", b"ent", b"mtr"];
/// Words that say so by themselves.
const SAYS_ALONE: [&[u8]; 3] = [b"secret", b"sk", b"pat"];

impl Scan<'_> {
    /// Whether the run from `start` to `end` is such a token.
    pub(super) fn prefixed(&mut self, start: usize, end: usize) -> bool {
        // The shortest has words of two letters before what is drawn.
        if end - start < DRAWN + 3 {
            return false;
        }
        let run = &self.text[start..end];
        let Some(head) = head(run) else {
            return false;
        };
        let drawn = &run[head..];
        if !(DRAWN..=256).contains(&drawn.len()) || !is_drawn(drawn) {
            return false;
        }
        let rule = &self.names.service;
        self.hit(start..end, Class::Secret, rule);
        true
    }
}

/// How long the words are that a token begins with.
fn head(run: &[u8]) -> Option<usize> {
    let mut at = 0;
    for nth in 0..3 {
        let word = run[at..].iter().take(WORD + 1);
        let word = word.take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let length = word.count();
        let word = &run[at..at + length];
        let joint = *run.get(at + length)?;
        if !(2..=WORD).contains(&length) || !matches!(joint, b'_' | b'-') || PUBLIC.contains(&word)
        {
            return None;
        }
        at += length + 1;
        if joint == b'-' && UNDERSCORED.contains(&word) {
            return None;
        }
        if nth > 0 && SAYS.contains(&word) || SAYS_ALONE.contains(&word) {
            return Some(at);
        }
    }
    None
}

/// Whether it is drawn from letters of both cases and digits.
fn is_drawn(drawn: &[u8]) -> bool {
    let shape = Shape::of(drawn);
    let long = drawn.len() as u32;
    let least = long / 8;
    shape.digits >= least.min(3)
        && shape.lower >= least
        && shape.upper >= least
        && shape.others * 8 <= long
        && shape.turns * 5 >= long * 2
        && plausible(drawn)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong};

    #[test]
    fn a_token_that_says_that_it_is_secret_is_told_whosever_it_is() {
        for beginning in [
            "zq_live_",
            "acmecrm_pat_",
            "acmecrm-pat-",
            "acme_crm_token_",
            "sk_acmecrm_",
        ] {
            let token = format!("{beginning}{}", body());
            assert_eq!(strong(&format!("see {token}.")), [token.as_str()]);
        }
        for text in [
            format!("evt_{}", body()),
            format!("pk_live_{}", body()),
            format!("cs_live_{}", body()),
            format!("acme-api-{}", body()),
            format!("app-test-{}.js", body()),
            "prod-api-OrderHandler8F3A2C1D-x7Kq2LmZp9Rt".to_owned(),
            "checkout-service-ApiGatewayRestApi0AB1C2D3-u8Wq2LmZp9Rt".to_owned(),
            format!("acme_thing_{}", body()),
            format!("acme_live_{}", "9f86d081884c7d65".repeat(2)),
            "acme_test_SomeLongNameOfAThing2InSource".to_owned(),
            "acme_live_migration_of_many_tables_2".to_owned(),
            format!("acme_live_{}", &body()[..16]),
        ] {
            assert_eq!(strong(&text), [""; 0], "{text}");
        }
    }
}
