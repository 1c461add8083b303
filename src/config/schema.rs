//! JSON Schema of usher.yaml, made from the types that read it, so that the two cannot drift apart.
//!
//! Guarantees: whatever is read as a configuration fits it, in every spelling that is read, and what could not be read for its kind,
//! its spelling or a key that is missing or unknown does not. Deliberately absent: ranges, and what one key means for another; both
//! are for `usher check`. An editor has made values of the text by then: that `0x10`, `1e3` and `True` are spellings which are
//! not read, nobody can tell from a number or a truth value.

use schemars::{Schema, generate::SchemaSettings, json_schema, transform::RecursiveTransform};

use super::raw::Raw;
use crate::json::Json;

/// What stands between references: no `${`.
const PLAIN: &str = r"[^$]|\$(?!\{)";
/// One reference.
const REFERENCE: &str = r"\$\{(?:env|file):[^}]+\}";
/// A number in quotes.
const NUMBER: &str = r"\+?[0-9]+|-0+";

/// The schema, draft 2020-12.
pub fn schema() -> Json {
    let schema = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            // What serde calls a default is "absent": the real defaults are module values, told in the descriptions.
            drop(schema.remove("default"));
            demand(schema);
            allow_nothing(schema);
            allow_spellings(schema);
            allow_references(schema);
        }))
        .into_generator()
        .into_root_schema_for::<Raw>();
    Json::of(&schema)
}

/// The pattern of a text of this form, or of one with a reference in it, which may lead to any.
pub(super) fn spelled(form: &str) -> String {
    format!("^(?:{form})$|{}", referring())
}

/// The pattern of a text with a reference in it.
pub(super) fn referring() -> String {
    format!("^(?:{PLAIN})*{REFERENCE}(?:{PLAIN}|{REFERENCE})*$")
}

/// A key that has to be there is an `Option` in its type all the same, so that its being missing is told with its place, and is
/// marked as required there. Whatever may be left out is an `Option` without that mark, a list, a block or a switch.
fn demand(schema: &mut Schema) {
    let members = schema.get("properties").and_then(|all| all.as_object());
    let members = members.into_iter().flatten();
    let demanded = members.filter(|(_, member)| {
        <&Schema>::try_from(*member).is_ok_and(|member| !may_be_missing(member))
    });
    let demanded: Vec<String> = demanded.map(|(name, _)| name.clone()).collect();
    if !demanded.is_empty() {
        drop(schema.insert("required".to_owned(), demanded.into()));
    }
}

fn may_be_missing(member: &Schema) -> bool {
    let mut kinds = kinds(member).into_iter();
    let either = member.get("anyOf").and_then(|either| either.as_array());
    let mut either = either.into_iter().flatten();
    let is_nothing = |one| <&Schema>::try_from(one).is_ok_and(|one| self::kinds(one) == ["null"]);
    member.get("$ref").is_some()
        || kinds.any(|kind| ["boolean", "array", "object", "null"].contains(&kind.as_str()))
        || either.any(is_nothing)
}

fn kinds(schema: &Schema) -> Vec<String> {
    let Some(kinds) = schema.get("type") else {
        return Vec::new();
    };
    let one = kinds.as_str().into_iter();
    let several = kinds.as_array().into_iter().flatten();
    one.chain(several.filter_map(|kind| kind.as_str()))
        .map(str::to_owned)
        .collect()
}

/// A list or a block with nothing behind its key is read as an empty one: so a block looks whose keys are all commented out. Not
/// where something has to be in it. What else may be left out is an `Option`, which says so itself.
fn allow_nothing(schema: &mut Schema) {
    let lacks = schema.get("required").is_some();
    for kind in ["array", "object"] {
        if !lacks && schema.get("type").is_some_and(|own| own == kind) {
            drop(schema.insert("type".to_owned(), vec![kind, "null"].into()));
        }
    }
}

/// A number and a switch may stand in quotes, and what looks like one of them is a text where a text is wanted. `${` is the
/// beginning of a reference, wherever it stands.
fn allow_spellings(schema: &mut Schema) {
    if ["pattern", "const", "enum"]
        .iter()
        .any(|word| schema.get(*word).is_some())
    {
        return;
    }
    let mut kinds = kinds(schema);
    let is = |kind: &str| kinds.iter().any(|own| own == kind);
    let (others, pattern): (&[&str], _) = if is("string") {
        (
            &["number", "boolean"],
            format!("^(?:{PLAIN}|{REFERENCE})*$"),
        )
    } else if is("integer") {
        (&["string"], spelled(NUMBER))
    } else if is("boolean") {
        (&["string"], spelled("true|false"))
    } else {
        return;
    };
    kinds.extend(others.iter().map(|&kind| kind.to_owned()));
    drop(schema.insert("type".to_owned(), kinds.into()));
    drop(schema.insert("pattern".to_owned(), pattern.into()));
}

/// A reference may stand for one of several words.
fn allow_references(schema: &mut Schema) {
    for either in ["oneOf", "anyOf"] {
        let choices = schema
            .get_mut(either)
            .and_then(|choices| choices.as_array_mut());
        let choices = choices.filter(|choices| {
            let mut words = choices.iter().filter_map(|choice| choice.as_object());
            words.any(|choice| choice.contains_key("const") || choice.contains_key("enum"))
        });
        if let Some(choices) = choices {
            let reference = json_schema!({ "type": "string", "pattern": referring() });
            choices.push(reference.to_value());
        }
    }
}
