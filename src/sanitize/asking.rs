//! C11, questions to a person: no address but `https`, of a host that is told, and no form that asks for a secret.
//!
//! An address is never edited and never fetched (PROTOCOL E). Deliberately absent: whether a question is honest.

use super::{
    Blocked, Class, Questions,
    called::{is_asked_for, is_secret},
    verdict::REASON,
};
use crate::json::{Json, Kind, Node, Span};

/// How a person is asked. One who is asked by both, or may be, is asked by either: nobody knows which of them a client takes.
#[derive(Debug, Clone, Copy)]
struct Ways {
    address: bool,
    form: bool,
}

impl Ways {
    const ADDRESS: Self = Self {
        address: true,
        form: false,
    };
}

/// The questions of a value: how each is asked, and its params.
fn questions(value: &Json, of: Questions) -> impl Iterator<Item = (Ways, Node<'_>)> {
    let visits = match of {
        Questions::None | Questions::Requests | Questions::State => None,
        Questions::Visits => {
            let data = value.root().member("data");
            data.and_then(|data| data.member("elicitations"))
        }
    };
    let requests = requests(value, of).into_iter().flat_map(Node::members);
    let visits = visits.into_iter().flat_map(Node::elements);
    requests
        .filter_map(|request| elicitation(request.value))
        .chain(visits.map(|visit| (Ways::ADDRESS, visit)))
}

/// The first question that must not be asked so.
pub(super) fn fault(value: &Json, of: Questions) -> Option<Blocked> {
    questions(value, of).find_map(|(ways, params)| {
        let (rule, place) = question_fault(value, of, ways, params)?;
        Some(Blocked {
            reason: REASON,
            kind: Class::Elicitation.word(),
            rule: Some(rule.into()),
            place,
        })
    })
}

/// What is wrong with a question, and where.
fn question_fault(
    value: &Json,
    of: Questions,
    ways: Ways,
    params: Node<'_>,
) -> Option<(&'static str, String)> {
    if ways.address
        && let Some(rule) = address_fault(params)
    {
        let place = match of {
            Questions::None | Questions::Requests => "/*/params/url",
            Questions::State => "/inputRequests/*/params/url",
            Questions::Visits => "/data/elicitations/*/url",
        };
        return Some((rule, place.to_owned()));
    }
    let schema = params.member("requestedSchema").filter(|_| ways.form)?;
    let (rule, at) = field_fault(schema, 0)?;
    // Keys are the upstream's own and may be anything; the field is named by what made it one.
    let end = params.span().start;
    let place = value.pointers(&[at], |name| name.start < end);
    Some((rule, place.into_iter().next().unwrap_or_default()))
}

/// Whether questions ask for the same after something in them was changed: it may be what people read of them, but not their own
/// names, nor names, choices and rules of what a form asks for. An answer goes back under these, and nobody would know it.
pub fn ask_the_same(before: &Json, after: &Json, of: Questions) -> bool {
    let forms = |value| {
        let forms = questions(value, of).filter(|(ways, _)| ways.form);
        forms.filter_map(|(_, params)| params.member("requestedSchema"))
    };
    same_names(requests(before, of), requests(after, of))
        && forms(before).count() == forms(after).count()
        && forms(before)
            .zip(forms(after))
            .all(|(before, after)| is_same_schema(before, after))
}

/// Questions by names that whoever asks has given them.
fn requests(value: &Json, of: Questions) -> Option<Node<'_>> {
    match of {
        Questions::None | Questions::Visits => None,
        Questions::Requests => Some(value.root()),
        Questions::State => value.root().member("inputRequests"),
    }
}

fn same_names<'a>(before: Option<Node<'a>>, after: Option<Node<'a>>) -> bool {
    let [before, after] = [before, after].map(|node| {
        let members = node.into_iter().flat_map(Node::members);
        members.map(|member| member.key)
    });
    before.eq(after)
}

fn are(kind: Kind, was: Node<'_>, is: Node<'_>) -> bool {
    was.kind() == kind && is.kind() == kind
}

fn is_same_schema<'a>(before: Node<'a>, after: Node<'a>) -> bool {
    if before.kind() != Kind::Object || after.kind() != Kind::Object {
        return before.raw() == after.raw();
    }
    same_names(Some(before), Some(after))
        && before.members().zip(after.members()).all(|(was, is)| {
            let (was, is, key) = (was.value, is.value, was.key);
            match &*key {
                // What people read, and what is filled in for them to change.
                "title" | "description" | "enumNames" | "default" => true,
                "properties" if are(Kind::Object, was, is) => {
                    same_names(Some(was), Some(is))
                        && was
                            .members()
                            .zip(is.members())
                            .all(|(was, is)| is_same_schema(was.value, is.value))
                }
                "items" => is_same_schema(was, is),
                "oneOf" | "anyOf" if are(Kind::Array, was, is) => {
                    was.elements().count() == is.elements().count()
                        && was
                            .elements()
                            .zip(is.elements())
                            .all(|(was, is)| is_same_schema(was, is))
                }
                _ => was.raw() == is.raw(),
            }
        })
}

/// Adds where the addresses stand that people are sent to, which nobody edits.
pub(super) fn addresses(value: &Json, of: Questions, spans: &mut Vec<Span>) {
    let asked = questions(value, of).filter(|(ways, _)| ways.address);
    let urls = asked.filter_map(|(_, params)| params.member("url"));
    let written = urls.filter(|url| url.kind() == Kind::String);
    spans.extend(written.map(Node::span));
}

/// How a request asks a person, if it does; its params.
fn elicitation(request: Node<'_>) -> Option<(Ways, Node<'_>)> {
    let method = request.member("method").and_then(Node::as_str)?;
    if method != "elicitation/create" {
        return None;
    }
    let params = request.member("params")?;
    let mode = params.member("mode").and_then(Node::as_str);
    let ways = if mode.as_deref() == Some("url") {
        Ways::ADDRESS
    } else {
        Ways {
            address: params.member("url").is_some(),
            form: true,
        }
    };
    Some((ways, params))
}

fn address_fault(params: Node<'_>) -> Option<&'static str> {
    let Some(url) = params.member("url").and_then(Node::as_str) else {
        return Some("url_missing");
    };
    if !url.bytes().all(|byte| matches!(byte, 0x21..=0x7E)) || url.contains('\\') {
        return Some("url_not_plain");
    }
    let Some(rest) = url
        .get(..8)
        .filter(|scheme| scheme.eq_ignore_ascii_case("https://"))
        .map(|_| &url[8..])
    else {
        return Some("url_not_https");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("url_userinfo");
    }
    let host = authority.split(':').next().unwrap_or_default();
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'[' | b']');
    (host.is_empty() || !host.bytes().all(plain)).then_some("url_host")
}

/// The host of an address for a person to see, as it is spelled.
pub fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    (!authority.is_empty()).then_some(authority)
}

/// As many schemas may be inside one another in a form. Its fields stand side by side as a rule; what is deeper is refused, and not
/// looked at.
const DEEPEST: usize = 8;

/// The first field of a form that must not be in it, and where it stands: in any schema of which values may be asked for.
fn field_fault(schema: Node<'_>, depth: usize) -> Option<(&'static str, usize)> {
    if depth > DEEPEST {
        return Some(("form_too_deep", schema.span().start));
    }
    let inner = |schema: Node<'_>| {
        if is_given(schema) {
            return None;
        }
        let secret = secret_said(schema).map(|at| ("secret_field", at));
        secret.or_else(|| field_fault(schema, depth + 1))
    };
    schema.members().find_map(|member| match &*member.key {
        "properties" => member.value.members().find_map(|field| {
            let is_it = is_secret_field(&field.key, field.value);
            let secret = is_it.then(|| ("secret_field", field.span.start + 1));
            secret.or_else(|| field_fault(field.value, depth + 1))
        }),
        "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
            let mut schemas = member.value.members();
            schemas.find_map(|schema| inner(schema.value))
        }
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => member.value.elements().find_map(inner),
        "items" if member.value.kind() == Kind::Array => member.value.elements().find_map(inner),
        "items" | "additionalProperties" | "contains" | "if" | "then" | "else" => {
            inner(member.value)
        }
        _ => None,
    })
}

/// Whether a schema has one value alone, as one of a choice.
fn is_given(schema: Node<'_>) -> bool {
    schema.member("const").is_some()
}

fn is_secret_field(name: &str, field: Node<'_>) -> bool {
    secret_said(field).is_some() || (is_secret(name) && !is_chosen(field))
}

/// Where a schema says that its value is a secret, if it does.
fn secret_said(schema: Node<'_>) -> Option<usize> {
    let said = |member: &str, is_it: fn(&str) -> bool| {
        let told = schema.member(member)?;
        is_it(&told.as_str()?).then(|| told.span().start + 1)
    };
    if is_chosen(schema) {
        return None;
    }
    said("format", |format| format == "password")
        .or_else(|| said("title", is_secret))
        .or_else(|| said("description", is_asked_for))
}

/// Whether it is ticked or chosen from a list, and so no secret; a list of nothing leaves nothing to choose, and one with room
/// for anything else is none.
fn is_chosen(field: Node<'_>) -> bool {
    let chosen = |list: &str, is_choice: fn(Node<'_>) -> bool| {
        let choices = || field.member(list).into_iter().flat_map(Node::elements);
        choices().next().is_some() && choices().all(is_choice)
    };
    field.member("type").and_then(Node::as_str).as_deref() == Some("boolean")
        || chosen("enum", |_| true)
        || chosen("oneOf", is_given)
        || chosen("anyOf", is_given)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn rule(params: &str) -> Option<String> {
        let text = format!(r#"{{"k":{{"method":"elicitation/create","params":{params}}}}}"#);
        let json = Json::parse(Bytes::from(text), &Limits::UPSTREAM).unwrap();
        fault(&json, Questions::Requests)
            .map(|blocked| format!("{} {}", blocked.rule.unwrap(), blocked.place))
    }

    #[test]
    fn people_are_sent_only_to_addresses_that_show_where_they_lead() {
        for (url, expected) in [
            ("https://example.com/a?b#c", None),
            ("HTTPS://example.com:8443", None),
            ("http://example.com/", Some("url_not_https")),
            ("javascript:alert(1)", Some("url_not_https")),
            ("https://good.com@evil.com/", Some("url_userinfo")),
            ("https:///x", Some("url_host")),
            ("https://ex\\u200bample.com/", Some("url_not_plain")),
            ("https://a\\\\@b/", Some("url_not_plain")),
        ] {
            let params = format!(r#"{{"mode":"url","message":"m","url":"{url}"}}"#);
            let expected = expected.map(|rule| format!("{rule} /*/params/url"));
            assert_eq!(rule(&params), expected, "{url}");
        }
    }

    #[test]
    fn a_question_that_has_an_address_and_a_form_is_held_to_what_holds_for_both() {
        const SECRET: &str = "secret_field /*/*/requestedSchema/properties/password";
        const ADDRESS: &str = "url_not_https /*/params/url";
        let both = |mode: &str, url: &str| {
            rule(&format!(
                r#"{{{mode}"message":"m","url":"{url}","requestedSchema":{{"type":"object","properties":{{"password":{{"type":"string"}}}}}}}}"#
            ))
        };
        let (form, url) = (r#""mode":"form","#, r#""mode":"url","#);
        for mode in ["", form] {
            let told = both(mode, "https://ok.example");
            assert_eq!(told.as_deref(), Some(SECRET), "{mode}");
        }
        // Who is sent to an address is shown no form.
        assert_eq!(both(url, "https://ok.example"), None);
        for mode in ["", form, url] {
            let told = both(mode, "http://ok.example");
            assert_eq!(told.as_deref(), Some(ADDRESS), "{mode}");
        }
    }

    #[test]
    fn a_form_asks_for_the_same_while_names_and_choices_are_as_they_were() {
        let form = |message: &str, properties: &str, required: &str| {
            let text = format!(
                r#"{{"k":{{"method":"elicitation/create","params":{{"message":"{message}","requestedSchema":{{"type":"object","properties":{properties},"required":["{required}"]}}}}}}}}"#
            );
            Json::parse(Bytes::from(text), &Limits::UPSTREAM).unwrap()
        };
        let properties = r#"{"title":{"type":"string","title":"X","description":"X","enum":["X"],"enumNames":["X"]},"b":{"type":"array","items":{"anyOf":[{"const":"X","title":"X"}]}},"X":{"type":"string","default":"X"}}"#;
        let before = form("X", properties, "X");
        let same = |properties: &str, required: &str| {
            ask_the_same(
                &before,
                &form("gone", properties, required),
                Questions::Requests,
            )
        };
        assert!(same(properties, "X"));
        for read in [
            (
                r#""title":"X","description""#,
                r#""title":"Y","description""#,
            ),
            (r#""description":"X""#, r#""description":"Y""#),
            (r#""enumNames":["X"]"#, r#""enumNames":["Y"]"#),
            (r#""X","title":"X"}]"#, r#""X","title":"Y"}]"#),
            (r#""default":"X""#, r#""default":"Y""#),
        ] {
            assert!(
                same(&properties.replacen(read.0, read.1, 1), "X"),
                "{read:?}"
            );
        }
        for answered in [
            (r#""enum":["X"]"#, r#""enum":["Y"]"#),
            (r#""const":"X""#, r#""const":"Y""#),
            (r#""X":{"type""#, r#""Y":{"type""#),
            (r#"{"title":{"#, r#"{"other":{"#),
        ] {
            let changed = properties.replacen(answered.0, answered.1, 1);
            assert!(!same(&changed, "X"), "{answered:?}");
        }
        assert!(!same(properties, "Y"));
        let renamed = before.as_str().replacen(r#"{"k""#, r#"{"l""#, 1);
        let renamed = Json::parse(Bytes::from(renamed), &Limits::UPSTREAM).unwrap();
        assert!(!ask_the_same(&before, &renamed, Questions::Requests));
    }

    #[test]
    fn forms_that_ask_for_secrets_are_refused_and_others_are_not() {
        let form = |name: &str, field: &str| {
            rule(&format!(
                r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"n":{{"type":"string"}},"{name}":{field}}}}}}}"#
            ))
        };
        for name in [
            "password",
            "apiKey",
            "api_key",
            "GITHUB_TOKEN",
            "userPassword2 password",
            "card-number",
            "clientSecret",
            "pin",
            "Passwort",
            "contraseña",
            "mot_de_passe",
            "密码",
        ] {
            let place = format!("secret_field /*/*/requestedSchema/properties/{name}");
            assert_eq!(form(name, r#"{"type":"string"}"#), Some(place), "{name}");
        }
        for name in [
            "email",
            "maxTokens",
            "pinned",
            "secretary",
            "key",
            "shipping",
            "passport",
        ] {
            assert_eq!(form(name, r#"{"type":"string"}"#), None, "{name}");
        }
        assert_eq!(form("token", r#"{"type":"boolean"}"#), None);
        assert!(form("x", r#"{"type":"string","title":"Your API key"}"#).is_some());
        assert!(form("x", r#"{"type":"string","format":"password"}"#).is_some());
        for field in [
            r#"{"type":"string","enum":[]}"#,
            r#"{"type":"string","enum":null}"#,
            r#"{"type":"string","enum":"a"}"#,
            r#"{"type":["boolean","string"]}"#,
            r#"{"oneOf":[{"const":"none"},{"type":"string"}]}"#,
            r#"{"anyOf":[{"const":"none"},{"const":"old"},{}]}"#,
        ] {
            assert!(form("password", field).is_some(), "{field}");
        }
        let described = r#"{"type":"string","description":"Your account password"}"#;
        assert!(form("x", described).is_some());
        for (field, place) in [
            (
                r#"{"type":"object","properties":{"y":{"type":"object","properties":{"password":{"type":"string"}}}}}"#,
                "/x/properties/y/properties/password",
            ),
            (
                r#"{"type":"array","items":{"type":"string","title":"Your password"}}"#,
                "/x/items/title",
            ),
            (
                r#"{"anyOf":[{"type":"null"},{"type":"string","format":"password"}]}"#,
                "/x/anyOf/1/format",
            ),
            (
                r#"{"oneOf":[{"const":"none"},{"type":"string","title":"Your password"}]}"#,
                "/x/oneOf/1/title",
            ),
            (
                r#"{"allOf":[{"properties":{"api_key":{"type":"string"}}}]}"#,
                "/x/allOf/0/properties/api_key",
            ),
        ] {
            let told = form("x", field);
            let told = told.as_deref().and_then(|told| told.split_once(' '));
            let place = format!("/*/*/requestedSchema/properties{place}");
            assert_eq!(told, Some(("secret_field", &*place)), "{field}");
        }
        let deep = |depth: usize| {
            let inner = r#"{"type":"string"}"#.to_owned();
            (0..depth).fold(inner, |inner, _| {
                format!(r#"{{"properties":{{"y":{inner}}}}}"#)
            })
        };
        assert_eq!(form("x", &deep(DEEPEST - 1)), None);
        assert!(form("x", &deep(DEEPEST)).is_some_and(|told| told.starts_with("form_too_deep")));
        for (name, field) in [
            (
                "password_policy",
                r#"{"type":"string","enum":["strict","lax"]}"#,
            ),
            ("password_policy_accepted", r#"{"type":"boolean"}"#),
            (
                "how",
                r#"{"type":"string","oneOf":[{"const":"p","title":"Password"},{"const":"k","title":"API key"}]}"#,
            ),
            (
                "wanted",
                r#"{"type":"array","items":{"anyOf":[{"const":"p","title":"Password"},{"const":"k","title":"API key"}]}}"#,
            ),
            (
                "x",
                r#"{"type":"boolean","description":"Do you want to reset your password?"}"#,
            ),
            (
                "email",
                r#"{"type":"string","description":"Where we send the link that resets your password"}"#,
            ),
        ] {
            assert_eq!(form(name, field), None, "{name} {field}");
        }
    }
}
