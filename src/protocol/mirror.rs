//! Mirrored headers: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*` (PROTOCOL B2, B3).
//!
//! Encoding, strict decoding, comparing with the body, and finding `x-mcp-header` annotations in an input schema.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderName;

use crate::json::{Decimal, Json, Kind, Node};

/// Names the revision of a request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Mirrors `method`.
pub const METHOD: &str = "mcp-method";
/// Mirrors the name or URI that the request is about.
pub const NAME: &str = "mcp-name";
/// Begins each header that mirrors an argument.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// A legacy session's id.
pub const SESSION_ID: &str = "mcp-session-id";
/// Where to resume a legacy stream.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// The same, as transports look them up in every request. Statics: a constant would be made and dropped at each look.
pub mod header {
    use super::HeaderName;

    /// [`super::PROTOCOL_VERSION`]
    pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(super::PROTOCOL_VERSION);
    /// [`super::METHOD`]
    pub static METHOD: HeaderName = HeaderName::from_static(super::METHOD);
    /// [`super::NAME`]
    pub static NAME: HeaderName = HeaderName::from_static(super::NAME);
    /// [`super::SESSION_ID`]
    pub static SESSION_ID: HeaderName = HeaderName::from_static(super::SESSION_ID);
}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// The header value that stands for `text`: itself where it is plain visible ASCII with inner spaces, else the sentinel form.
pub fn encode(text: &str) -> String {
    let visible = text.bytes().all(|byte| matches!(byte, 0x20..=0x7E));
    let sentinel = text.starts_with(OPEN) && text.ends_with(CLOSE);
    let plain = visible && !sentinel && text.trim_matches(' ').len() == text.len();
    if plain {
        text.to_owned()
    } else {
        format!("{OPEN}{}{CLOSE}", STANDARD.encode(text))
    }
}

/// Whether `value` stands for exactly `text`.
///
/// # Errors
/// As [`decode`].
pub fn stands_for(value: &[u8], text: &str) -> Result<bool, BadHeader> {
    // Nearly always it is the text itself, and then visible throughout.
    let plain = |byte: &u8| matches!(byte, 0x21..=0x7E);
    if value == text.as_bytes() && value.iter().all(plain) && !text.starts_with(OPEN) {
        return Ok(true);
    }
    Ok(decode(value)? == text)
}

/// A header value that stands for no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a mirrored header is not validly encoded")]
pub struct BadHeader;

/// The text that a header value stands for. Optional white space around it is dropped first.
///
/// # Errors
/// [`BadHeader`] for bytes outside visible ASCII and for sentinel content that is not strict Base64 of UTF-8.
pub fn decode(value: &[u8]) -> Result<Cow<'_, str>, BadHeader> {
    let text = std::str::from_utf8(value)
        .map_err(|_| BadHeader)?
        .trim_matches([' ', '\t']);
    if !text.bytes().all(|byte| matches!(byte, 0x20..=0x7E | b'\t')) {
        return Err(BadHeader);
    }
    match text
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE))
    {
        None => Ok(Cow::Borrowed(text)),
        Some(coded) => String::from_utf8(STANDARD.decode(coded).map_err(|_| BadHeader)?)
            .map(Cow::Owned)
            .map_err(|_| BadHeader),
    }
}

/// One `x-mcp-header` annotation: an argument that travels in a header too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header's full name in lower case, `mcp-param-…`.
    pub header: String,
    /// The property names from the root of the arguments.
    pub path: Vec<String>,
    /// The annotated type.
    pub kind: ParamKind,
}

/// The types an annotated property may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// `string`
    String,
    /// `integer`, within ±(2^53−1)
    Integer,
    /// `boolean`
    Boolean,
}

/// An annotation that breaks the rules; its tool must be dropped (PROTOCOL B3, SECURITY CAT-5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnnotation {
    /// Not a non-empty RFC 9110 token.
    #[error("`x-mcp-header` is not a header name")]
    NotAToken,
    /// Used twice in one tool, ignoring case.
    #[error("`x-mcp-header: {0}` is used twice")]
    Repeated(String),
    /// On a type other than string, integer or boolean.
    #[error("`x-mcp-header: {0}` is on a property that is no string, integer or boolean")]
    WrongType(String),
    /// Where a static reader of `properties` does not come.
    #[error("`x-mcp-header` is not reachable through `properties` alone")]
    Unreachable,
}

/// The annotations of an input schema.
///
/// # Errors
/// [`BadAnnotation`] for the first that breaks a rule.
pub fn annotations(schema: Node<'_>) -> Result<Vec<ParamHeader>, BadAnnotation> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    collect(schema, &mut path, &mut found)?;
    // Whatever the walk along `properties` did not meet stands somewhere it may not.
    if count(schema) != found.len() {
        return Err(BadAnnotation::Unreachable);
    }
    Ok(found)
}

const ANNOTATION: &str = "x-mcp-header";

fn collect(
    schema: Node<'_>,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), BadAnnotation> {
    if let Some(name) = schema.member(ANNOTATION) {
        let name = name
            .as_str()
            .filter(|name| is_token(name))
            .ok_or(BadAnnotation::NotAToken)?;
        let kind = match schema.member("type").and_then(Node::as_str).as_deref() {
            Some("string") => ParamKind::String,
            Some("integer") => ParamKind::Integer,
            Some("boolean") => ParamKind::Boolean,
            _ => return Err(BadAnnotation::WrongType(name.into_owned())),
        };
        let header = format!("{PARAM_PREFIX}{}", name.to_ascii_lowercase());
        if found.iter().any(|other| other.header == header) {
            return Err(BadAnnotation::Repeated(name.into_owned()));
        }
        if path.is_empty() {
            return Err(BadAnnotation::Unreachable);
        }
        found.push(ParamHeader {
            header,
            path: path.clone(),
            kind,
        });
    }
    let properties = schema
        .member("properties")
        .filter(|properties| properties.kind() == Kind::Object);
    for property in properties.into_iter().flat_map(Node::members) {
        path.push(property.key.into_owned());
        collect(property.value, path, found)?;
        path.pop();
    }
    Ok(())
}

/// How many schemas in `value`, wherever they stand, carry the annotation. A property that is merely named so is its own
/// schema and does not count: its value is an object, not a string.
fn count(value: Node<'_>) -> usize {
    let here = value.members().map(|member| {
        usize::from(member.key == ANNOTATION && member.value.kind() != Kind::Object)
            + count(member.value)
    });
    here.sum::<usize>() + value.elements().map(count).sum::<usize>()
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The largest magnitude of an integer that travels in a header: up to it a double tells each from the next.
const LARGEST: u64 = (1 << 53) - 1;

/// The integer that a number spells, if it is one that may travel in a header (PROTOCOL B3).
fn integer(spelled: &str) -> Option<i64> {
    let integer = Decimal::parse(spelled)?.as_i64()?;
    (integer.unsigned_abs() <= LARGEST).then_some(integer)
}

/// The rendered value of one annotated argument, an integer in decimal; `None` when it is absent or null (then there is no
/// header). A number that is no such integer stays as it is spelled: it agrees with no header.
pub fn rendered(arguments: Node<'_>, param: &ParamHeader) -> Option<String> {
    let value = param
        .path
        .iter()
        .try_fold(arguments, |value, key| value.member(key))?;
    match value.kind() {
        Kind::String => value.as_str().map(Cow::into_owned),
        Kind::Number if param.kind == ParamKind::Integer => {
            Some(integer(value.raw()).map_or_else(|| value.raw().to_owned(), |it| it.to_string()))
        }
        Kind::Number | Kind::Bool => Some(value.raw().to_owned()),
        Kind::Null | Kind::Object | Kind::Array => None,
    }
}

/// Whether a decoded header value says the same as the body's: integers by value, everything else by text. Of a number that
/// may not travel so, none does.
pub fn agrees(header: &str, body: &str, kind: ParamKind) -> bool {
    if kind == ParamKind::Integer
        && body.starts_with(|first: char| first == '-' || first.is_ascii_digit())
    {
        return integer(body).is_some_and(|body| integer(header) == Some(body));
    }
    header == body
}

/// The annotations of the tool definition `tool`, none when it has no input schema.
///
/// # Errors
/// [`BadAnnotation`], as [`annotations`].
pub fn of_tool(tool: &Json) -> Result<Vec<ParamHeader>, BadAnnotation> {
    tool.root()
        .member("inputSchema")
        .map_or(Ok(Vec::new()), annotations)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn tool(schema: &str) -> Result<Vec<ParamHeader>, BadAnnotation> {
        let text = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        of_tool(&Json::parse(Bytes::from(text), &Limits::CLIENT).unwrap())
    }

    #[test]
    fn plain_text_travels_as_it_is_and_everything_else_as_base64() {
        assert_eq!(encode("a b/c"), "a b/c");
        assert_eq!(encode(""), "");
        for text in ["é", " a", "a ", "a\nb", "=?base64?YQ==?="] {
            let coded = encode(text);
            assert!(coded.starts_with(OPEN), "{text}");
            assert_eq!(decode(coded.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn decoding_is_strict_about_base64_and_markers() {
        for bad in [
            "=?base64?YQ=?=",
            "=?base64?Y Q==?=",
            "=?base64?YQ?=",
            "=?base64?_w==?=",
            "=?base64?/w==?=",
        ] {
            assert_eq!(decode(bad.as_bytes()), Err(BadHeader), "{bad}");
        }
        for literal in ["=?BASE64?YQ==?=", "=?base64?YQ==", "YQ==?="] {
            assert_eq!(decode(literal.as_bytes()).unwrap(), literal);
        }
        assert_eq!(decode(b" \t x \t").unwrap(), "x");
        assert!(decode("é".as_bytes()).is_err());
    }

    #[test]
    fn annotations_are_found_along_properties_and_nowhere_else() {
        let found = tool(r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"},"o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#).unwrap();
        assert_eq!(found[0].header, "mcp-param-region");
        assert_eq!(found[1].path, ["o", "n"]);
        assert_eq!(
            tool(r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#),
            Err(BadAnnotation::WrongType("A".into()))
        );
        assert_eq!(
            tool(r#"{"properties":{"a":{"type":"string","x-mcp-header":"A b"}}}"#),
            Err(BadAnnotation::NotAToken)
        );
        assert_eq!(
            tool(
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#
            ),
            Err(BadAnnotation::Repeated("a".into()))
        );
        for schema in [
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
            r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#,
        ] {
            assert_eq!(tool(schema), Err(BadAnnotation::Unreachable), "{schema}");
        }
    }

    #[test]
    fn arguments_are_rendered_and_compared_by_type() {
        let params = tool(r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"}}}"#).unwrap();
        let arguments = Json::parse(
            Bytes::from_static(br#"{"s":"x","i":42,"b":null}"#),
            &Limits::CLIENT,
        )
        .unwrap();
        let values: Vec<_> = params
            .iter()
            .map(|param| rendered(arguments.root(), param))
            .collect();
        assert_eq!(values, [Some("x".into()), Some("42".into()), None]);
        assert!(agrees("042", "42", ParamKind::Integer));
        assert!(!agrees("042", "42", ParamKind::String));
        for (spelled, decimal) in [
            ("5.0", "5"),
            ("-0", "0"),
            ("1e3", "1000"),
            ("-9007199254740991", "-9007199254740991"),
        ] {
            let text = format!(r#"{{"i":{spelled}}}"#);
            let arguments = Json::parse(Bytes::from(text), &Limits::CLIENT).unwrap();
            let body = rendered(arguments.root(), &params[1]).unwrap();
            assert_eq!(body, decimal);
            for header in [spelled, decimal] {
                assert!(agrees(header, &body, ParamKind::Integer), "{header}");
            }
        }
        for beyond in [
            "9007199254740992",
            "-9007199254740993",
            "1.5",
            "1e400",
            "1e9999999",
            "1e-9223372036854775808",
        ] {
            assert!(!agrees(beyond, beyond, ParamKind::Integer), "{beyond}");
        }
    }
}
