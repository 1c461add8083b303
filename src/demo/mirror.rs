//! The headers of 2026-07-28 that repeat parts of the body: decoding them and comparing them with the body.
//!
//! Guarantees strictness: a header given twice, badly encoded or different from the body is an error. Knows annotated
//! properties at the top level of an input schema only, where the demo has them.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderMap;
use serde_json::Value;

use super::{frame::Object, schema};

/// The value of a header, as text. `None` when it is absent.
///
/// # Errors
/// A sentence that names the header: it is given twice, or is badly encoded.
pub(super) fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("{name} is given more than once"));
    }
    let decoded = value.to_str().ok().and_then(decode);
    decoded
        .map(Some)
        .ok_or_else(|| format!("{name} is badly encoded"))
}

/// Checks that the header `name` says `expected`.
///
/// # Errors
/// A sentence that names the header.
pub(super) fn agree(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), String> {
    match header(headers, name)? {
        None => Err(format!("{name} is missing")),
        Some(value) if value == expected => Ok(()),
        Some(value) => Err(format!("{name} says {value:?} and the body {expected:?}")),
    }
}

/// Checks the `Mcp-Param-*` headers of a call of a tool with this input schema.
///
/// # Errors
/// A sentence that names the first header that is missing or differs from its argument.
pub(super) fn parameters(
    headers: &HeaderMap,
    input_schema: &Value,
    arguments: &Object,
) -> Result<(), String> {
    for (property, schema) in input_schema["properties"].as_object().into_iter().flatten() {
        let Some(suffix) = schema["x-mcp-header"].as_str() else {
            continue;
        };
        let name = format!("Mcp-Param-{suffix}");
        let given = header(headers, &name)?;
        let argument = arguments.get(property).filter(|value| !value.is_null());
        let equal = match (argument, &given) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some(_), None) => return Err(format!("{name} is missing")),
            (Some(Value::String(text)), Some(given)) => text == given,
            (Some(Value::Bool(truth)), Some(given)) => truth.to_string() == *given,
            (Some(number), Some(given)) => {
                let number = schema::integer(number);
                number.is_some() && given.parse::<i64>().ok() == number
            }
        };
        if !equal {
            return Err(format!("{name} differs from the argument `{property}`"));
        }
    }
    Ok(())
}

/// Undoes the encoding of a header value; `None` when it is broken.
fn decode(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    let encoded = value
        .strip_prefix("=?base64?")
        .and_then(|v| v.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => (!value.contains('\t')).then(|| value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_are_decoded_strictly() {
        assert_eq!(decode(" Park City\t").as_deref(), Some("Park City"));
        assert_eq!(decode("").as_deref(), Some(""));
        assert_eq!(
            decode("=?base64?UmV5a2phdsOtaw==?=").as_deref(),
            Some("Reykjavík")
        );
        assert_eq!(decode("=?base64?UmV5a2phdsOtaw?="), None); // padding is missing
        assert_eq!(decode("=?base64?_w==?="), None); // not the standard alphabet
        assert_eq!(decode("=?base64?/w==?="), None); // not UTF-8
        assert_eq!(
            decode("=?BASE64?UA==?=").as_deref(),
            Some("=?BASE64?UA==?=")
        );
        assert_eq!(decode("=?base64?UA==").as_deref(), Some("=?base64?UA=="));
        assert_eq!(decode("a\tb"), None);
    }
}
