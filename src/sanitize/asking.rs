//! C11, questions to a person: no address but `https`, of a host that is told, and no form that asks for a secret.
//!
//! An address is never edited and never fetched (PROTOCOL E). Deliberately absent: whether a question is honest.

use super::{
    Blocked, Class,
    called::{is_asked_for, is_secret},
};
use crate::json::{Json, Kind, Node, Span};

/// Where in a value questions to a person stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Questions {
    /// Nowhere.
    #[default]
    None,
    /// It is an `inputRequests` object.
    Requests,
    /// In its member `inputRequests`, as in the state of a task.
    State,
    /// In the member `elicitations` of its `data`, of addresses to visit: it is an error -32042 of 2025-11-25.
    Visits,
}

/// The questions of a value: whether each is asked by an address, and its params.
fn questions(value: &Json, of: Questions) -> impl Iterator<Item = (bool, Node<'_>)> {
    let root = value.root();
    let (requests, visits) = match of {
        Questions::None => (None, None),
        Questions::Requests => (Some(root), None),
        Questions::State => (root.member("inputRequests"), None),
        Questions::Visits => {
            let data = root.member("data");
            (None, data.and_then(|data| data.member("elicitations")))
        }
    };
    let requests = requests.into_iter().flat_map(Node::members);
    let visits = visits.into_iter().flat_map(Node::elements);
    requests
        .filter_map(|request| elicitation(request.value))
        .chain(visits.map(|visit| (true, visit)))
}

/// The first question that must not be asked so.
pub(super) fn fault(value: &Json, of: Questions) -> Option<Blocked> {
    for (url, params) in questions(value, of) {
        let fault = if url {
            address_fault(params).map(|rule| (rule, params.span().start))
        } else {
            params
                .member("requestedSchema")
                .and_then(|schema| schema.member("properties"))
                .and_then(|fields| {
                    let mut fields = fields.members();
                    let secret = fields.find(|field| asks_for_secret(&field.key, field.value))?;
                    Some(("secret_field", secret.span.start + 1))
                })
        };
        if let Some((rule, at)) = fault {
            return Some(Blocked {
                reason: super::verdict::REASON,
                kind: Class::Elicitation.word(),
                rule: Some(rule.into()),
                place: if url {
                    match of {
                        Questions::None | Questions::Requests => "/*/params/url".to_owned(),
                        Questions::State => "/inputRequests/*/params/url".to_owned(),
                        Questions::Visits => "/data/elicitations/*/url".to_owned(),
                    }
                } else {
                    // Keys are the upstream's own and may be anything; the field is named by what made it one.
                    let end = params.span().start;
                    value
                        .pointers(&[at], |name| name.start < end)
                        .swap_remove(0)
                },
            });
        }
    }
    None
}

/// Adds where the addresses stand that people are sent to, which nobody edits.
pub(super) fn addresses(value: &Json, of: Questions, spans: &mut Vec<Span>) {
    let asked = questions(value, of).filter(|(url, _)| *url);
    let urls = asked.filter_map(|(_, params)| params.member("url"));
    let written = urls.filter(|url| url.kind() == Kind::String);
    spans.extend(written.map(Node::span));
}

/// Whether a request asks a person, and whether by an address; its params.
fn elicitation(request: Node<'_>) -> Option<(bool, Node<'_>)> {
    let method = request.member("method").and_then(Node::as_str)?;
    if method != "elicitation/create" {
        return None;
    }
    let params = request.member("params")?;
    let mode = params.member("mode").and_then(Node::as_str);
    let url = mode.as_deref() == Some("url") || params.member("url").is_some();
    Some((url, params))
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

fn asks_for_secret(name: &str, field: Node<'_>) -> bool {
    let text = |member: &str| field.member(member).and_then(Node::as_str);
    // What is ticked or chosen from a list is no secret; a list of nothing leaves nothing to choose.
    let kind = text("type");
    let first = |list: &str| field.member(list).and_then(|list| list.elements().next());
    let is_chosen = first("enum").is_some()
        || ["oneOf", "anyOf"]
            .iter()
            .any(|list| first(list).is_some_and(|choice| choice.member("const").is_some()));
    if matches!(kind.as_deref(), Some("boolean")) || is_chosen {
        return false;
    }
    if text("format").as_deref() == Some("password") {
        return true;
    }
    is_secret(name)
        || text("title").is_some_and(|title| is_secret(&title))
        || text("description").is_some_and(|description| is_asked_for(&description))
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
        ] {
            assert!(form("password", field).is_some(), "{field}");
        }
        let described = r#"{"type":"string","description":"Your account password"}"#;
        assert!(form("x", described).is_some());
        for (name, field) in [
            (
                "password_policy",
                r#"{"type":"string","enum":["strict","lax"]}"#,
            ),
            ("password_policy_accepted", r#"{"type":"boolean"}"#),
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
