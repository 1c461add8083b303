//! Forms: what of an elicitation's schema is needed to check the answer, and the check.
//!
//! Forms are flat: strings, numbers, booleans, choices (PROTOCOL A9). What a schema says beyond that does not bind the answer;
//! an answer is still only ever flat.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use crate::{
    json::{Json, Kind, Node},
    protocol::meta,
};

/// The part of a `requestedSchema` that binds the answer, in short: `{p: {name: {t, e, lo, hi, f}}, r: [names]}`.
/// `None` when the schema is not one of an object.
pub(super) fn reduced(schema: &Json) -> Option<Json> {
    let root = schema.root();
    let kind = root.member("type");
    let properties = root.member("properties");
    let sound = root.kind() == Kind::Object
        && kind.is_none_or(|kind| kind.as_str().as_deref() == Some("object"))
        && properties.is_none_or(|properties| properties.kind() == Kind::Object);
    if !sound {
        return None;
    }
    let fields: Vec<_> = properties
        .into_iter()
        .flat_map(Node::members)
        .map(|member| (member.key, field(schema, member.value)))
        .collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, field)| (&**name, field.clone()))
        .collect();
    let mut out = vec![("p", meta::object_of(&fields))];
    if let Some(required) = root
        .member("required")
        .filter(|required| required.elements().next().is_some())
    {
        out.push(("r", schema.slice(required)));
    }
    Some(meta::object_of(&out))
}

fn field(schema: &Json, field: Node<'_>) -> Json {
    let kind = field.member("type").and_then(Node::as_str);
    let holder = match kind.as_deref() {
        Some("array") => field.member("items").unwrap_or(field),
        _ => field,
    };
    let (low, high) = match kind.as_deref() {
        Some("array") => ("minItems", "maxItems"),
        Some("number" | "integer") => ("minimum", "maximum"),
        _ => ("minLength", "maxLength"),
    };
    let mut out = Vec::new();
    for (short, node) in [
        ("t", field.member("type")),
        ("lo", field.member(low)),
        ("hi", field.member(high)),
        ("f", field.member("format")),
    ] {
        out.extend(node.map(|node| (short, schema.slice(node))));
    }
    let titled = holder.member("oneOf").or_else(|| holder.member("anyOf"));
    if let Some(choices) = holder.member("enum") {
        out.push(("e", schema.slice(choices)));
    } else if let Some(titled) = titled {
        let choices: Option<Vec<_>> = titled
            .elements()
            .map(|choice| Some(schema.slice(choice.member("const")?)))
            .collect();
        out.extend(choices.map(|choices| ("e", Json::array(&choices))));
    }
    meta::object_of(&out)
}

/// Whether `content` answers the form that was [`reduced`]. Missing content is an empty one. Takes as long as both are together:
/// names and choices are looked up, never searched for.
pub(super) fn accepts(form: &Json, content: Option<Node<'_>>) -> bool {
    let root = form.root();
    if content.is_some_and(|content| content.kind() != Kind::Object) {
        return false;
    }
    let given = members(content);
    let complete = root
        .member("r")
        .into_iter()
        .flat_map(Node::elements)
        .filter_map(Node::as_str)
        .all(|name| given.contains_key(&name));
    let fields = members(root.member("p"));
    complete
        && given.iter().all(|(name, value)| match fields.get(name) {
            Some(field) => fits(*field, *value),
            None => is_flat(*value),
        })
}

/// The members of an object, by name.
fn members(object: Option<Node<'_>>) -> HashMap<Cow<'_, str>, Node<'_>> {
    let members = object.into_iter().flat_map(Node::members);
    members.map(|member| (member.key, member.value)).collect()
}

fn fits(field: Node<'_>, value: Node<'_>) -> bool {
    let within = |size: f64| {
        bound(field, "lo").is_none_or(|low| size >= low)
            && bound(field, "hi").is_none_or(|high| size <= high)
    };
    let choices: Option<HashSet<_>> = field
        .member("e")
        .map(|choices| choices.elements().filter_map(Node::as_str).collect());
    let chosen = |text: &str| {
        let choices = choices.as_ref();
        choices.is_none_or(|choices| choices.contains(text))
    };
    match field.member("t").and_then(Node::as_str).as_deref() {
        Some("string") => value.as_str().is_some_and(|text| {
            within(length(text.chars().count())) && chosen(&text) && formed(field, &text)
        }),
        Some(kind @ ("number" | "integer")) => number(value)
            .is_some_and(|number| within(number) && (kind == "number" || number.fract() == 0.0)),
        Some("boolean") => value.kind() == Kind::Bool,
        Some("array") => {
            value.kind() == Kind::Array
                && within(length(value.elements().count()))
                && value
                    .elements()
                    .all(|element| element.as_str().is_some_and(|text| chosen(&text)))
        }
        _ => is_flat(value) && value.as_str().is_none_or(|text| chosen(&text)),
    }
}

/// What the protocol lets an answer hold at most.
fn is_flat(value: Node<'_>) -> bool {
    match value.kind() {
        Kind::String | Kind::Number | Kind::Bool => true,
        Kind::Array => value
            .elements()
            .all(|element| element.kind() == Kind::String),
        Kind::Object | Kind::Null => false,
    }
}

/// The four formats that forms know, roughly: who needs more looks again.
fn formed(field: Node<'_>, text: &str) -> bool {
    match field.member("f").and_then(Node::as_str).as_deref() {
        Some("email") => text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty()),
        Some("uri") => text.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        }),
        Some("date") => text.len() == 10 && is_date(text),
        Some("date-time") => {
            text.get(..10).is_some_and(is_date)
                && text[10..].starts_with(['T', 't', ' '])
                && text.len() > 15
        }
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    })
}

fn bound(field: Node<'_>, name: &str) -> Option<f64> {
    number(field.member(name)?)
}

fn number(value: Node<'_>) -> Option<f64> {
    (value.kind() == Kind::Number).then(|| value.raw().parse().ok())?
}

/// A count as a number to compare with a schema's bound; counts of what fits in a message are exact in it.
#[expect(clippy::cast_precision_loss, reason = "messages are shorter than 2^52")]
const fn length(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
    }

    const SCHEMA: &str = r#"{"$schema":"x","type":"object","properties":{
        "name":{"type":"string","title":"N","minLength":2,"maxLength":4},
        "mail":{"type":"string","format":"email"},"when":{"type":"string","format":"date"},
        "at":{"type":"string","format":"date-time"},"link":{"type":"string","format":"uri"},
        "age":{"type":"integer","minimum":0,"maximum":150},"ratio":{"type":"number"},
        "ok":{"type":"boolean","default":false},
        "one":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},
        "titled":{"type":"string","oneOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"}]},
        "many":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["r","g"]}},
        "several":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"}]}},
        "odd":{"anyOf":[{"type":"string"},{"type":"null"}]}
    },"required":["name"]}"#;

    #[test]
    fn answers_are_held_to_the_form() {
        let form = reduced(&json(SCHEMA)).unwrap();
        for (content, good) in [
            (r#"{"name":"abc"}"#, true),
            (r#"{"name":"\u00e4\u00f6"}"#, true),
            (r#"{"name":"a"}"#, false),
            (r#"{"name":"abcde"}"#, false),
            (r#"{"name":3}"#, false),
            (r#"{"name":null}"#, false),
            ("{}", false),
            (r#"{"ok":true}"#, false),
            ("[]", false),
            (r#"{"name":"ab","age":0}"#, true),
            (r#"{"name":"ab","age":3.0}"#, true),
            (r#"{"name":"ab","age":3.5}"#, false),
            (r#"{"name":"ab","age":151}"#, false),
            (r#"{"name":"ab","age":"3"}"#, false),
            (r#"{"name":"ab","ratio":3.5}"#, true),
            (r#"{"name":"ab","ok":false}"#, true),
            (r#"{"name":"ab","ok":"false"}"#, false),
            (r#"{"name":"ab","one":"b"}"#, true),
            (r#"{"name":"ab","one":"B"}"#, false),
            (r#"{"name":"ab","titled":"y"}"#, true),
            (r#"{"name":"ab","titled":"Y"}"#, false),
            (r#"{"name":"ab","many":["r","g"]}"#, true),
            (r#"{"name":"ab","many":[]}"#, false),
            (r#"{"name":"ab","many":["r","g","r"]}"#, false),
            (r#"{"name":"ab","many":["x"]}"#, false),
            (r#"{"name":"ab","many":"r"}"#, false),
            (r#"{"name":"ab","several":["p"]}"#, true),
            (r#"{"name":"ab","several":["P"]}"#, false),
            (r#"{"name":"ab","mail":"a@b"}"#, true),
            (r#"{"name":"ab","mail":"a"}"#, false),
            (r#"{"name":"ab","when":"2026-07-28"}"#, true),
            (r#"{"name":"ab","when":"28.7.2026"}"#, false),
            (r#"{"name":"ab","at":"2026-07-28T10:00:00Z"}"#, true),
            (r#"{"name":"ab","at":"2026-07-28"}"#, false),
            (r#"{"name":"ab","link":"https://x"}"#, true),
            (r#"{"name":"ab","link":"x"}"#, false),
            (r#"{"name":"ab","odd":"x"}"#, true),
            (r#"{"name":"ab","odd":{}}"#, false),
            (r#"{"name":"ab","more":1}"#, true),
            (r#"{"name":"ab","more":{"a":1}}"#, false),
        ] {
            let content = json(content);
            assert_eq!(
                accepts(&form, Some(content.root())),
                good,
                "{}",
                content.as_str()
            );
        }
        assert!(!accepts(&form, None), "a required field is missing");
        let free = reduced(&json(r#"{"type":"object","properties":{}}"#)).unwrap();
        assert!(accepts(&free, None));
    }

    /// SECURITY REL-2: each answer compared with each choice would be 10^10 comparisons.
    #[test]
    fn as_many_answers_as_fit_a_message_are_held_to_as_many_choices_as_fit_a_form() {
        let names: Vec<_> = (0..60_000).map(|n| format!("\"{n}\"")).collect();
        let schema = format!(
            r#"{{"properties":{{"many":{{"type":"array","items":{{"enum":[{}]}}}}}}}}"#,
            names.join(",")
        );
        let form = reduced(&json(&schema)).unwrap();
        let last = &names[names.len() - 1];
        for (other, good) in [("\"0\"", true), ("\"x\"", false)] {
            let content = format!(
                r#"{{"many":[{}{other}]}}"#,
                format!("{last},").repeat(190_000)
            );
            assert_eq!(accepts(&form, Some(json(&content).root())), good);
        }
    }

    #[test]
    fn words_for_people_are_not_kept() {
        let form = reduced(&json(SCHEMA)).unwrap();
        assert!(!form.as_str().contains("title\":\"") && form.len() < SCHEMA.len());
        assert!(!form.as_str().contains("enumNames") && !form.as_str().contains("default"));
        for bad in [
            r#"{"type":"string","properties":{}}"#,
            r#"{"type":"object","properties":[]}"#,
            "3",
        ] {
            assert!(reduced(&json(bad)).is_none(), "{bad}");
        }
    }
}
