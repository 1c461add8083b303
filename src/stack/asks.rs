//! What an upstream's questions look like to a client: it is told whose they are (PROTOCOL E, F17, F18).
//! Nothing of them reaches another server.

use std::borrow::Cow;

use crate::{
    json::{Edits, Fate, Json, Node},
    protocol::{UpstreamId, meta, methods},
    sanitize::host_of,
};

/// `requests`, an `inputRequests` object, for the client: the upstream named before each message to a person, no context of
/// other servers asked for, `uri` applied to resources in tool results, keys of `_meta` that do not cross cut.
pub(super) fn outward(
    requests: &Json,
    upstream: &UpstreamId,
    uri: impl Fn(Node<'_>, &mut Edits),
) -> Json {
    let mut edits = Edits::new();
    for request in requests.root().members() {
        let Some(params) = request.value.member("params") else {
            continue;
        };
        let method = request.value.member("method").and_then(Node::as_str);
        let method = method.as_deref().unwrap_or_default();
        edits.members(
            params,
            |key, value| match (key, method) {
                ("message", methods::ELICITATION_CREATE) => match value.as_str() {
                    Some(message) => Fate::Replace(labelled(upstream, &message, params)),
                    None => Fate::Keep,
                },
                ("includeContext", methods::SAMPLING_CREATE) if value.raw() != "\"none\"" => {
                    Fate::Replace(Json::literal("\"none\""))
                }
                // Work of the client's own on our behalf: nobody could ask for its end.
                ("task", _) => Fate::Remove,
                (meta::META, _) if !value.members().any(|member| meta::crosses(&member.key)) => {
                    Fate::Remove
                }
                _ => Fate::Keep,
            },
            &[],
        );
        if let Some(value) = params.member(meta::META)
            && value.members().any(|member| meta::crosses(&member.key))
        {
            edits.members(value, meta::going_over, &[]);
        }
        if method == methods::SAMPLING_CREATE {
            tool_results(params).for_each(|block| uri(block, &mut edits));
        }
    }
    requests.splice(&edits)
}

/// The same for the visits in the `data` of error -32042 of 2025-11-25, which a person is shown as well.
pub(super) fn visits(data: Node<'_>, upstream: &UpstreamId, edits: &mut Edits) {
    for visit in data
        .member("elicitations")
        .into_iter()
        .flat_map(Node::elements)
    {
        if let Some(said) = visit.member("message")
            && let Some(message) = said.as_str()
        {
            edits.replace(said, labelled(upstream, &message, visit));
        }
    }
}

/// The params of a log line for the client: its logger named after the upstream, too.
pub(super) fn logger(params: &Json, upstream: &UpstreamId) -> Json {
    let named = params.root().member("logger").and_then(Node::as_str);
    let label = match named {
        Some(name) => Cow::Owned(format!("{upstream}/{name}")),
        None => Cow::Borrowed(upstream.as_str()),
    };
    let mut edits = Edits::new();
    edits.set(params.root(), "logger", Json::string(&label));
    params.splice(&edits)
}

/// The message of a question. The client shows one server, us; the person must see which one asks (PROTOCOL F17), and where an
/// address leads (SECURITY 7, C11).
fn labelled(upstream: &UpstreamId, message: &str, question: Node<'_>) -> Json {
    let url = question.member("url").and_then(Node::as_str);
    let host = url.as_deref().and_then(host_of);
    Json::string(&match host {
        Some(host) if !message.contains(host) => format!("[{upstream}] {message} ({host})"),
        _ => format!("[{upstream}] {message}"),
    })
}

/// The content blocks of tool results inside the messages of a sampling request.
fn tool_results(params: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let messages = params
        .member("messages")
        .into_iter()
        .flat_map(Node::elements);
    messages
        .filter_map(|message| message.member("content"))
        .flat_map(|content| std::iter::once(content).chain(content.elements()))
        .filter(|block| {
            block.member("type").and_then(Node::as_str).as_deref() == Some("tool_result")
        })
        .filter_map(|block| block.member("content"))
        .flat_map(Node::elements)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap()
    }

    fn notes() -> UpstreamId {
        UpstreamId::parse("notes").unwrap()
    }

    fn told(requests: &str) -> String {
        let uri = |block: Node<'_>, edits: &mut Edits| {
            if let Some(uri) = block.member("uri") {
                edits.replace(uri, Json::string("outward"));
            }
        };
        let out = outward(&json(requests), &notes(), uri);
        json(out.as_str()).as_str().to_owned()
    }

    #[test]
    fn a_person_is_told_who_asks_and_everything_else_stays_byte_for_byte() {
        assert_eq!(
            told(
                r#"{"k":{"method":"elicitation/create","params":{ "message" : "Wh\u0061t?","requestedSchema":{"x": 1.0}}}}"#
            ),
            r#"{"k":{"method":"elicitation/create","params":{ "message" : "[notes] What?","requestedSchema":{"x": 1.0}}}}"#
        );
        let plain = r#"{"r":{"method":"roots/list"},"s":{"method":"sampling/createMessage","params":{"messages":[],"message":"m","includeContext":"none"}}}"#;
        assert_eq!(told(plain), plain);
    }

    #[test]
    fn who_must_visit_an_address_first_is_told_by_whom_and_where_it_leads() {
        let data = json(
            r#"{"elicitations":[{"mode":"url","url":"https://a.example/x","message":"Go"},{"message":"Go to b.example","url":"https://b.example"},{"url":"https://c"}],"message":"m"}"#,
        );
        let mut edits = Edits::new();
        visits(data.root(), &notes(), &mut edits);
        assert_eq!(
            data.splice(&edits).as_str(),
            r#"{"elicitations":[{"mode":"url","url":"https://a.example/x","message":"[notes] Go (a.example)"},{"message":"[notes] Go to b.example","url":"https://b.example"},{"url":"https://c"}],"message":"m"}"#
        );
    }

    #[test]
    fn nothing_of_other_servers_or_of_this_hop_goes_out() {
        assert_eq!(
            told(
                r#"{"s":{"method":"sampling/createMessage","params":{"_meta":{"progressToken":1},"task":{"ttl":1},"includeContext":"allServers","maxTokens":3}}}"#
            ),
            r#"{"s":{"method":"sampling/createMessage","params":{"includeContext":"none","maxTokens":3}}}"#
        );
        assert_eq!(
            told(
                r#"{"r":{"method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"},"v":1}}}}"#
            ),
            r#"{"r":{"method":"roots/list","params":{"_meta":{"v":1}}}}"#
        );
    }

    #[test]
    fn resources_in_tool_results_get_outward_addresses() {
        let out = told(
            r#"{"s":{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"u","content":[{"type":"resource_link","uri":"inner"}]},{"type":"text","uri":"kept"}]},{"role":"user","content":{"type":"tool_result","content":[{"uri":"inner"}]}}]}}}"#,
        );
        assert_eq!(out.matches("outward").count(), 2, "{out}");
        assert!(out.contains("kept") && !out.contains("inner"), "{out}");
    }

    #[test]
    fn a_log_line_says_whose_it_is() {
        for (params, want) in [
            (
                r#"{"level":"info","logger":"db","data":1.0}"#,
                r#"{"level":"info","logger":"notes/db","data":1.0}"#,
            ),
            (
                r#"{"level":"info","data":null}"#,
                r#"{"level":"info","data":null,"logger":"notes"}"#,
            ),
            (r#"{"logger":3}"#, r#"{"logger":"notes"}"#),
        ] {
            assert_eq!(logger(&json(params), &notes()).as_str(), want);
        }
    }
}
