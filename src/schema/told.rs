//! The words for what a schema wants: for a model that has sent something else, in a bounded number of them.

use std::borrow::Cow;

use super::{
    Names, Schema,
    notes::Step,
    rule::{Contains, Id, Members, Rule, Types, Words},
};
use crate::json::Decimal;

/// The most characters of one text of a schema or name.
const SHOWN: usize = 80;
/// The most characters of a path.
const PATH: usize = 200;
/// The most listed values, names and alternatives.
const LISTED: usize = 8;

pub(super) fn types(types: Types) -> String {
    let words: Vec<_> = types.words().collect();
    if words.is_empty() {
        return "must not be there".to_owned();
    }
    format!("must be {}", words.join(" or "))
}

pub(super) fn listed(listed: &[String]) -> String {
    format!("must be {}", alternatives(listed))
}

pub(super) fn number(word: &str, bound: &Decimal) -> String {
    let mut text = format!("must be {word} ");
    bound.write(&mut text);
    text
}

pub(super) fn pattern(spelled: &str) -> String {
    format!("must match `{}`", shown(spelled))
}

pub(super) fn any(schema: &Schema, ids: &[Id]) -> String {
    let words: Vec<_> = ids.iter().map(|id| rule(schema, *id)).collect();
    format!("must be {}", some(&words, " or "))
}

pub(super) fn contains(schema: &Schema, contains: &Contains) -> String {
    let most = contains
        .max
        .map_or_else(String::new, |max| format!(" and at most {max}"));
    format!(
        "must have at least {}{most} elements that are {}",
        contains.min,
        rule(schema, contains.rule)
    )
}

pub(super) fn unwanted(members: &Members) -> String {
    let mut known: Vec<_> = members
        .named
        .iter()
        .filter(|(_, named)| named.rule.is_some())
        .map(|(name, _)| format!("`{}`", shown(name)))
        .collect();
    known.sort_unstable();
    if known.is_empty() {
        return "must not be there".to_owned();
    }
    format!("must not be there; known are {}", some(&known, ", "))
}

/// What a rule wants, in few words.
pub(super) fn rule(schema: &Schema, id: Id) -> String {
    match &schema.rules[id] {
        Rule::Always | Rule::Unknown => "anything".to_owned(),
        Rule::Never => "nothing".to_owned(),
        Rule::All(words) => wanted(referred(schema, words)),
    }
}

/// What a rule refers to that says nothing by itself; once, since it may come back to itself.
fn referred<'a>(schema: &'a Schema, words: &'a Words) -> &'a Words {
    match words.all[..] {
        [only] if words.types.is_none() && words.listed.is_empty() => match &schema.rules[only] {
            Rule::All(referred) => referred,
            Rule::Always | Rule::Never | Rule::Unknown => words,
        },
        _ => words,
    }
}

fn wanted(words: &Words) -> String {
    match (words.listed.first(), words.types) {
        (Some(listed), _) => alternatives(listed),
        (None, Some(types)) => {
            let required = words
                .members
                .as_ref()
                .map_or(&[][..], |members| &members.required);
            let names: Vec<_> = required
                .iter()
                .map(|name| format!("`{}`", shown(name)))
                .collect();
            let words: Vec<_> = types.words().collect();
            if names.is_empty() {
                words.join(" or ")
            } else {
                format!("{} with {}", words.join(" or "), some(&names, ", "))
            }
        }
        (None, None) => "something else".to_owned(),
    }
}

/// A place as a JSON pointer. One that is too long ends before the name that is too much: part of a secret is not known for one.
pub(super) fn path(steps: &[Step<'_>], names: Names) -> String {
    let mut out = String::new();
    let mut left = PATH;
    for step in steps {
        let name = match step {
            Step::Named(name) => name.as_ref().into(),
            Step::Unnamed(name) if names == Names::All => name.as_ref().into(),
            Step::Unnamed(_) => Cow::Borrowed("*"),
            Step::Element(at) => at.to_string().into(),
        };
        let length = 1 + name.chars().take(PATH).count();
        let Some(rest) = left.checked_sub(length) else {
            out.push_str("/…");
            break;
        };
        left = rest;
        out.push('/');
        let name = tame(&name).replace('~', "~0");
        out.push_str(&name.replace('/', "~1"));
    }
    out
}

/// A name or text of a schema, tamed.
pub(super) fn shown(text: &str) -> String {
    cut(text, SHOWN)
}

fn tame(text: &str) -> String {
    text.replace(char::is_control, "\u{FFFD}")
}

fn cut(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).collect();
    if out.len() < text.len() && text.chars().count() > most {
        out.push('…');
    }
    tame(&out)
}

fn alternatives(listed: &[String]) -> String {
    let words: Vec<_> = listed.iter().map(|text| shown(text)).collect();
    some(&words, " or ")
}

fn some(words: &[String], between: &str) -> String {
    let mut text = words
        .iter()
        .take(LISTED)
        .cloned()
        .collect::<Vec<_>>()
        .join(between);
    if words.len() > LISTED {
        text.push_str(&format!("{between}{} more", words.len() - LISTED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::{
        Names, STEPS, Verdict,
        tests::{json, schema, told},
    };

    #[test]
    fn a_path_is_short_and_holds_no_control_characters() {
        let of = r#"{"additionalProperties":{"type":"string"}}"#;
        let key = "x".repeat(300);
        let long = told(of, &format!("{{\"{key}\":1}}"));
        assert!(long[0].chars().count() < 230, "{}", long[0]);
        assert_eq!(
            told(of, r#"{"a\u001b/~":1}"#),
            ["/a\u{FFFD}~1~0 must be a string"]
        );
    }

    #[test]
    fn a_name_that_is_too_long_is_not_told_in_part() {
        let of = r#"{"additionalProperties":{"additionalProperties":{"type":"string"}}}"#;
        let key = "x".repeat(190);
        let told = told(of, &format!(r#"{{"{key}":{{"secretsecret":1}}}}"#));
        assert_eq!(told, [format!("/{key}/… must be a string")]);
    }

    #[test]
    fn of_what_another_wrote_no_name_is_told_that_the_schema_does_not_have() {
        let of = r#"{"type":"object","properties":{"size":{"additionalProperties":{"type":"string"},"properties":{"cm":{"type":"integer"}}},
            "deep":{"patternProperties":{"s":{"type":"null"}},"required":["secret1"]},
            "rest":{"properties":{"a":true},"unevaluatedProperties":false}},"additionalProperties":false}"#;
        for (value, want) in [
            (
                r#"{"secret1":1}"#,
                "/* must not be there; known are `deep`, `rest`, `size`",
            ),
            (
                r#"{"secret1":1,"secret2":1}"#,
                "/* must not be there; known are `deep`, `rest`, `size`",
            ),
            (r#"{"size":{"secret1":1}}"#, "/size/* must be a string"),
            (
                r#"{"size":{"cm":"secret1"}}"#,
                "/size/cm must be an integer",
            ),
            (r#"{"deep":{"secret1":1}}"#, "/deep/secret1 must be null"),
            (
                r#"{"deep":{"secret1":null,"secret2":1}}"#,
                "/deep/* must be null",
            ),
            (r#"{"rest":{"secret1":1}}"#, "/rest/* must not be there"),
        ] {
            let Verdict::Broken(told) = schema(of).check(json(value).root(), STEPS, Names::Known)
            else {
                panic!("{value} fits");
            };
            let told: Vec<_> = told
                .iter()
                .map(|one| format!("{} {}", one.path, one.wanted))
                .collect();
            assert_eq!(told, [want], "{value}");
        }
    }
}
