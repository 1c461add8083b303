//! Checks a tool's arguments against its input schema.
//!
//! Guarantees that every problem is named in one message. Knows only the keywords that the demo's own schemas use, on flat
//! objects; it is not a JSON Schema implementation.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use serde_json::Value;

use super::{frame::Object, places::Date};

/// What is wrong with `arguments`, naming each offending argument. An argument that is `null` counts as absent.
pub(super) fn problems(schema: &Value, arguments: &Object) -> Option<String> {
    let no_properties = Object::new();
    let properties = schema["properties"].as_object().unwrap_or(&no_properties);
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required.filter_map(Value::as_str).filter(|name| {
        let argument = arguments.get(*name);
        argument.is_none_or(Value::is_null)
    });
    let mut problems: Vec<String> = missing
        .map(|name| format!("missing argument `{name}`"))
        .collect();
    for (name, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
        match properties.get(name) {
            None => problems.push(format!("unknown argument `{name}`")),
            Some(schema) => {
                problems.extend(problem(schema, value).map(|p| format!("argument `{name}` {p}")));
            }
        }
    }
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn problem(schema: &Value, value: &Value) -> Option<String> {
    let kind = schema["type"].as_str().unwrap_or_default();
    let fits = match kind {
        "string" => value.is_string(),
        "integer" => integer(value).is_some(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => false,
    };
    if !fits {
        return Some(format!("is not of type {kind}"));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Some(format!("is not one of {}", choices.join(", ")));
    }
    match value {
        Value::String(text) => text_problem(schema, text),
        Value::Array(items) => array_problem(schema, items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            number_problem(schema, value)
        }
    }
}

fn text_problem(schema: &Value, text: &str) -> Option<String> {
    let length = text.chars().count();
    let longest = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    if schema["format"] == "date" && Date::parse(text).is_none() {
        return Some("is not a date like 2026-09-12, between 2000 and 2099".to_owned());
    }
    if length == 0 && schema["minLength"].is_u64() {
        return Some("is empty".to_owned());
    }
    (u64::try_from(length).is_ok_and(|n| n > longest))
        .then(|| format!("is longer than {longest} characters"))
}

fn array_problem(schema: &Value, items: &[Value]) -> Option<String> {
    let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
    let fewest = schema["minItems"].as_u64().unwrap_or(0);
    let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
    if count < fewest || count > most {
        return Some(format!("must have {fewest} to {most} items"));
    }
    let faulty = |item| problem(&schema["items"], item);
    items
        .iter()
        .find_map(faulty)
        .map(|p| format!("has an item that {p}"))
}

fn number_problem(schema: &Value, value: &Value) -> Option<String> {
    let number = integer(value)?;
    let least = schema["minimum"].as_i64().unwrap_or(i64::MIN);
    let most = schema["maximum"].as_i64().unwrap_or(i64::MAX);
    (number < least || number > most).then(|| format!("is not within {least} to {most}"))
}

/// The integer that `value` is, also when it is spelled `3.0`; within ±(2^53−1).
pub(super) fn integer(value: &Value) -> Option<i64> {
    const SAFE: i64 = (1 << 53) - 1;
    let number = value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact as a float")]
        let whole = number.fract() == 0.0 && number.abs() <= SAFE as f64;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "checked to be whole and safe"
        )]
        whole.then_some(number as i64)
    })?;
    (-SAFE..=SAFE).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_wrong_argument_is_named() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "maxLength": 5},
                "date": {"type": "string", "format": "date"},
                "units": {"type": "string", "enum": ["celsius"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "cities": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            },
            "required": ["city", "date"],
        });
        let said = |arguments: Value| {
            problems(&schema, arguments.as_object().expect("an object")).unwrap_or_default()
        };
        assert_eq!(
            said(json!({"city": "Paris", "date": "2026-09-01", "days": 3.0, "units": null})),
            ""
        );
        let all = "missing argument `city`; missing argument `date`; unknown argument `town`";
        assert_eq!(said(json!({"city": null, "town": 1})), all);
        let wrong = |name: &str, value: Value| {
            let mut arguments = json!({"city": "Paris", "date": "2026-09-01"});
            arguments[name] = value;
            said(arguments)
        };
        assert_eq!(
            wrong("city", json!(3)),
            "argument `city` is not of type string"
        );
        assert_eq!(wrong("city", json!("")), "argument `city` is empty");
        assert_eq!(
            wrong("city", json!("Lisbon")),
            "argument `city` is longer than 5 characters"
        );
        assert!(wrong("date", json!("tomorrow")).starts_with("argument `date` is not a date"));
        assert_eq!(
            wrong("units", json!("kelvin")),
            "argument `units` is not one of \"celsius\""
        );
        assert_eq!(
            wrong("days", json!(8)),
            "argument `days` is not within 1 to 7"
        );
        assert_eq!(
            wrong("days", json!(1.5)),
            "argument `days` is not of type integer"
        );
        assert_eq!(
            wrong("cities", json!([])),
            "argument `cities` must have 1 to 2 items"
        );
        assert_eq!(
            wrong("cities", json!([1])),
            "argument `cities` has an item that is not of type string"
        );
    }
}
