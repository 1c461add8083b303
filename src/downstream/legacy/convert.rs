//! Results for older revisions: what they never heard of is left out or said in their own terms (PROTOCOL D6).

use std::cell::LazyCell;

use bytes::Bytes;

use crate::{
    call::{Op, TaskOp},
    json::{Edits, Fate, Json, Kind, Limits, Node, canonical},
    protocol::{Features, Revision, meta},
};

/// A result as a client of `revision` may read it; untouched and uncopied when it may as it is.
pub(super) fn result(op: &Op, revision: Revision, result: Json) -> Json {
    let features = revision.features();
    let root = result.root();
    let mut edits = Edits::new();
    let mut more = Vec::new();
    // `structuredContent` that this revision cannot hold goes; its text must then be there.
    let structured = root.member("structuredContent");
    let unfit = structured.filter(|value| {
        !features.structured_output || (value.kind() != Kind::Object && !features.any_structured)
    });
    let tool = matches!(op, Op::CallTool(_) | Op::Task(TaskOp::Result, _));
    if let (true, Some(value)) = (tool, unfit) {
        let text = text_block(value.raw());
        match root.member("content") {
            None => more.push(("content", Json::array(&[text]))),
            Some(content) if content.elements().next().is_none() => {
                edits.replace(content, Json::array(&[text]))
            }
            // Only of what is no object must the text be this very one.
            // Servers that write `null` for what is not there mean nothing by it.
            Some(content)
                if !matches!(value.kind(), Kind::Object | Kind::Null)
                    && !is_said(content, value) =>
            {
                edits.push(content, &text);
            }
            Some(_) => {}
        }
    }
    let crossing = root
        .member(meta::META)
        .filter(|value| value.members().any(|member| meta::goes_out(&member.key)));
    let fate = |key: &str, _: Node<'_>| match key {
        "resultType" | "ttlMs" | "cacheScope" => Fate::Remove,
        "structuredContent" if unfit.is_some() => Fate::Remove,
        meta::META if crossing.is_none() => Fate::Remove,
        _ => Fate::Keep,
    };
    edits.members(root, fate, &more);
    if let Some(value) = crossing {
        edits.members(value, meta::outgoing, &[]);
    }
    blocks(op, root).for_each(|block| convert(block, features, &mut edits));
    result.splice(&edits)
}

/// The content blocks of a result.
fn blocks<'a>(op: &Op, root: Node<'a>) -> Box<dyn Iterator<Item = Node<'a>> + 'a> {
    match op {
        Op::CallTool(_) | Op::Task(TaskOp::Result, _) => {
            Box::new(root.member("content").into_iter().flat_map(Node::elements))
        }
        Op::GetPrompt(_) => {
            let messages = root.member("messages").into_iter().flat_map(Node::elements);
            Box::new(messages.filter_map(|message| message.member("content")))
        }
        Op::ReadResource(_)
        | Op::Complete(_)
        | Op::Discover
        | Op::List(..)
        | Op::GetSkill(_)
        | Op::ReadDirectory(..)
        | Op::Task(..)
        | Op::ListTasks(_)
        | Op::Listen(_) => Box::new(std::iter::empty()),
    }
}

/// Whether a text among these blocks is `value` as JSON, however spelled.
fn is_said(content: Node<'_>, value: Node<'_>) -> bool {
    let texts = content.elements().filter_map(|block| {
        let kind = block.member("type").and_then(Node::as_str);
        (kind.as_deref() == Some("text")).then(|| block.member("text")?.as_str())?
    });
    let begins = value.raw().chars().next();
    // Once, however many texts there are.
    let spelled = LazyCell::new(|| canonical(value));
    texts
        // Prose is not read as JSON.
        .filter(|text| text.trim_start().chars().next() == begins)
        .any(|text| {
            text == value.raw()
                || Json::parse(Bytes::from(text.into_owned()), &Limits::UPSTREAM)
                    .is_ok_and(|said| canonical(said.root()) == *spelled)
        })
}

/// The most characters of the name of a type that are told.
const NAMED: usize = 64;

/// One content block.
fn convert(block: Node<'_>, features: &Features, edits: &mut Edits) {
    let text = |key: &str| block.member(key).and_then(Node::as_str);
    match text("type").as_deref() {
        Some("audio") if !features.audio => {
            let resource = meta::object_of(&[
                ("uri", Json::string("usher://inline/audio")),
                (
                    "mimeType",
                    Json::string(&text("mimeType").unwrap_or_default()),
                ),
                ("blob", Json::string(&text("data").unwrap_or_default())),
            ]);
            edits.replace(
                block,
                meta::object_of(&[("type", Json::string("resource")), ("resource", resource)]),
            );
        }
        Some("resource_link") if !features.resource_links => {
            let title = text("title").or_else(|| text("name")).unwrap_or_default();
            let kind = text("mimeType")
                .map(|mime| format!(" ({mime})"))
                .unwrap_or_default();
            edits.replace(
                block,
                text_block(&format!(
                    "{title}: {}{kind}",
                    text("uri").unwrap_or_default()
                )),
            );
        }
        // What says no type at all is its server's own affair.
        Some("text" | "image" | "audio" | "resource" | "resource_link") | None => {}
        // Strict decoders fail on the whole result (PROTOCOL G26).
        Some(other) => {
            let name: String = other.chars().take(NAMED).collect();
            let name = name.escape_debug();
            edits.replace(
                block,
                text_block(&format!(
                    "[content of the type `{name}`, which the revision of the protocol spoken here does not have, was left out]"
                )),
            );
        }
    }
}

fn text_block(text: &str) -> Json {
    meta::object_of(&[("type", Json::string("text")), ("text", Json::string(text))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(revision: Revision, text: &str) -> String {
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::UPSTREAM).unwrap();
        result(&Op::CallTool("t".into()), revision, json)
            .as_str()
            .to_owned()
    }

    #[test]
    fn modern_members_are_left_out_and_the_rest_arrives_byte_for_byte() {
        let text = r#"{"resultType":"complete","content":[ {"type":"text","text":"a"} ],"ttlMs":5,"x":1e2,"_meta":{"io.modelcontextprotocol/serverInfo":{},"v":1}}"#;
        assert_eq!(
            converted(Revision::V2025_11_25, text),
            r#"{"content":[ {"type":"text","text":"a"} ],"x":1e2,"_meta":{"v":1}}"#
        );
        let plain = r#"{"content":[],"structuredContent":{"a":1}}"#;
        assert_eq!(converted(Revision::V2025_06_18, plain), plain);
    }

    #[test]
    fn structured_content_becomes_text_where_the_revision_cannot_hold_it() {
        let text = r#"{"content":[],"structuredContent":[1,2]}"#;
        assert_eq!(
            converted(Revision::V2025_11_25, text),
            r#"{"content":[{"type":"text","text":"[1,2]"}]}"#
        );
        let object = r#"{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}"#;
        assert_eq!(
            converted(Revision::V2025_03_26, object),
            r#"{"content":[{"type":"text","text":"t"}]}"#
        );
    }

    #[test]
    fn what_is_no_object_is_told_as_text_beside_what_stands_there_unless_that_says_it() {
        let told = |content: &str, value: &str| {
            let text = format!(r#"{{"content":[{content}],"structuredContent":{value}}}"#);
            converted(Revision::V2025_11_25, &text)
        };
        for (content, value) in [
            (r#"{"type":"text","text":"[see below]"}"#, "[1,2]"),
            (r#"{"type":"text","text":"x"}"#, r#""x""#),
            (
                r#"{"type":"image","data":"","mimeType":"image/png"} "#,
                "false",
            ),
        ] {
            let text = text_block(value);
            let want = format!(r#"{{"content":[{content},{}]}}"#, text.as_str());
            assert_eq!(told(content, value), want);
        }
        for (content, value) in [
            (r#"{"type":"text","text":"[1,2]"}"#, "[1,2]"),
            (
                r#"{"type":"text","text":"see"},{"type":"text","text":" [ 1, {\"a\": 2.0} ]\n"}"#,
                r#"[1,{"a":2}]"#,
            ),
            (r#"{"type":"text","text":"\"x\""}"#, r#""x""#),
            (r#"{"type":"text","text":"done"}"#, "null"),
        ] {
            assert_eq!(
                told(content, value),
                format!(r#"{{"content":[{content}]}}"#)
            );
        }
    }

    #[test]
    fn blocks_that_came_later_are_said_in_older_terms() {
        let text = r#"{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"resource_link","uri":"a+x://1","name":"One"}]}"#;
        let oldest = converted(Revision::V2024_11_05, text);
        assert!(
            oldest.contains(r#""blob":"AA==""#) && oldest.contains(r#""text":"One: a+x://1""#),
            "{oldest}"
        );
        assert!(converted(Revision::V2025_03_26, text).contains(r#"{"type":"audio""#));
        assert_eq!(converted(Revision::V2025_06_18, text), text);
    }

    /// PROTOCOL D6, G26
    #[test]
    fn a_block_of_a_type_that_no_older_revision_has_is_told_by_its_name() {
        let note = |name: &str| {
            text_block(&format!(
                "[content of the type `{name}`, which the revision of the protocol spoken here does not have, was left out]"
            ))
        };
        let long = "y".repeat(99);
        for revision in Revision::ALL.into_iter().take(4) {
            for (name, told) in [
                ("zzz", "zzz"),
                ("tool_use", "tool_use"),
                (r"\u0001", "\\u{1}"),
                (&*long, &long[..64]),
            ] {
                let text = format!(
                    r#"{{"content":[{{"type":"text","text":"a"}}, {{"x":1,"type":"{name}","data":{{}}}},7,{{"text":"b"}}]}}"#
                );
                let want = format!(
                    r#"{{"content":[{{"type":"text","text":"a"}}, {},7,{{"text":"b"}}]}}"#,
                    note(told).as_str()
                );
                assert_eq!(converted(revision, &text), want);
            }
            let prompt = r#"{"messages":[{"role":"user","content":{"type":"zzz"}},{"role":"user","content":{"type":"image","data":"","mimeType":"image/png"}}]}"#;
            let json = Json::parse(Bytes::from_static(prompt.as_bytes()), &Limits::UPSTREAM);
            let told = result(&Op::GetPrompt("p".into()), revision, json.unwrap());
            let want = prompt.replace(r#"{"type":"zzz"}"#, note("zzz").as_str());
            assert_eq!(told.as_str(), want);
        }
    }
}
