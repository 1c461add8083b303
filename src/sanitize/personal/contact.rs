//! Personal data by its look, C7: e-mail, telephone, address, birth date. Off unless it is asked for.
//!
//! Guarantees: linear in the text. Deliberately absent: certainty.

use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::sanitize::{Class, Detector, Hit};

/// What the rules are called.
pub(super) const NAMES: [&str; 4] = [
    "email_address",
    "telephone_number",
    "postal_address",
    "birth_date",
];

/// What they look for; the first group, where there is one, is what is told.
const FORMS: [&str; 4] = [
    r"(?i)\b[a-z0-9][a-z0-9._%+'-]{0,63}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}\b",
    r"(?:^|[^\w.+/-])(\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}|\(\d{3}\) ?\d{3}[-. ]\d{4}|\d{3}[-.]\d{3}[-.]\d{4})\b",
    r"(?i)\b\d{1,5}[a-z]?,? (?:[a-z][\w.'-]{0,30} ){1,4}(?:street|st|avenue|ave|road|rd|boulevard|blvd|lane|ln|drive|dr|court|ct|way|square|sq|terrace|place|pl)\b\.?|\b[A-ZÄÖÜ][a-zäöüß]{2,24}(?:straße|strasse|str\.|weg|platz|allee|gasse) \d{1,4}[a-z]?\b",
    r"(?i)\b(?:born|birth|dob|d\.o\.b\.|date of birth|birth ?date|birthday|geboren(?: am)?|geburtsdatum|n[ée]e? le|date de naissance|fecha de nacimiento)\W{1,6}(?:on |is |am )?(\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}|\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,? \d{4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2},? \d{4})",
];

// INVARIANT: the forms are compiled in, and a test compiles each.
#[expect(clippy::expect_used, reason = "the forms are compiled in")]
static RULES: LazyLock<[(Arc<str>, Regex); 4]> = LazyLock::new(|| {
    std::array::from_fn(|at| {
        (
            NAMES[at].into(),
            Regex::new(FORMS[at]).expect("a test compiles it"),
        )
    })
});

/// Finds what looks like personal data, C7.
#[derive(Debug, Clone, Copy)]
pub struct Contact(());

/// Finds e-mail addresses, telephone numbers, postal addresses and birth dates.
pub fn contact() -> Contact {
    LazyLock::force(&RULES);
    Contact(())
}

impl Detector for Contact {
    fn class(&self) -> Class {
        Class::Personal
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        let first = hits.len();
        for (name, form) in RULES.iter() {
            for found in form.captures_iter(text) {
                if let Some(found) = found.get(1).or_else(|| found.get(0)) {
                    hits.push(Hit {
                        span: found.range(),
                        class: Class::Personal,
                        rule: name.clone(),
                        inert: None,
                    });
                }
            }
        }
        hits[first..].sort_by_key(|hit| hit.span.start);
        let mut end = 0;
        let mut at = 0;
        hits.retain(|hit| {
            at += 1;
            let keep = at <= first || hit.span.start >= end;
            if keep && at > first {
                end = hit.span.end;
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_personal_data_is_told_and_a_version_is_not() {
        let told = |text: &str| {
            let mut hits = Vec::new();
            contact().inspect(text, &mut hits);
            hits.iter()
                .map(|hit| text[hit.span.clone()].to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told("write to jo.doe+x@mail.example.org, please"),
            ["jo.doe+x@mail.example.org"]
        );
        assert_eq!(
            told("call +49 30 901820 or (212) 555-0142."),
            ["+49 30 901820", "(212) 555-0142"]
        );
        assert_eq!(
            told("born on 12 March 1984 at 12 Long Hill Road"),
            ["12 March 1984", "12 Long Hill Road"]
        );
        assert_eq!(told("Version 1.2.3 of 2024-01-02, user@host"), [""; 0]);
    }
}
