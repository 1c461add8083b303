//! The params of a request that asks a client of the handshake era, in the words of its revision (PROTOCOL A8, A9, D6).

use crate::{
    json::{Edits, Fate, Json, Kind, Node},
    protocol::{Revision, meta, methods},
};

/// The params of `method` for a client of `revision`; untouched and uncopied when they may go as they are. `elicitation_id`
/// gives the id of a page that is to be visited. `None` when the revision has no words for it.
pub(super) fn params(
    method: &str,
    params: &Json,
    revision: Revision,
    elicitation_id: impl FnOnce() -> String,
) -> Option<Json> {
    let newest = revision >= Revision::V2025_11_25;
    let root = params.root();
    match method {
        methods::ELICITATION_CREATE => {
            let url = root.member("mode").and_then(Node::as_str).as_deref() == Some("url");
            match (url, newest) {
                (true, true) => {
                    let mut edits = Edits::new();
                    edits.set(root, "elicitationId", Json::string(&elicitation_id()));
                    Some(params.splice(&edits))
                }
                (true, false) => None,
                (false, true) => Some(params.clone()),
                (false, false) => plain_form(params),
            }
        }
        methods::SAMPLING_CREATE if !newest => Some(single_blocks(params, revision)),
        _ => Some(params.clone()),
    }
}

/// A form for 2025-06-18: no modes, no dialect, no defaults but of booleans, choices with `enumNames` for their titles.
/// `None` when it lets choose several, which that revision cannot say.
fn plain_form(params: &Json) -> Option<Json> {
    let root = params.root();
    let schema = root.member("requestedSchema")?;
    let fields = schema.member("properties");
    let mut edits = Edits::new();
    for field in fields.into_iter().flat_map(Node::members) {
        plain_field(params, field.value, &mut edits)?;
    }
    let without = |name: &'static str| {
        move |key: &str, _: Node<'_>| {
            if key == name {
                Fate::Remove
            } else {
                Fate::Keep
            }
        }
    };
    edits.members(schema, without("$schema"), &[]);
    edits.members(root, without("mode"), &[]);
    Some(params.splice(&edits))
}

fn plain_field(owner: &Json, field: Node<'_>, edits: &mut Edits) -> Option<()> {
    let kind = field.member("type").and_then(Node::as_str);
    if kind.as_deref() == Some("array") {
        return None;
    }
    let titled = field.member("oneOf");
    let choices: Vec<_> = titled.into_iter().flat_map(Node::elements).collect();
    let all = |key: &str| -> Option<Json> {
        let values = choices
            .iter()
            .map(|choice| choice.member(key).map(|value| owner.slice(value)));
        values
            .collect::<Option<Vec<_>>>()
            .map(|all| Json::array(&all))
    };
    let mut more = Vec::new();
    if titled.is_some() {
        more.push(("enum", all("const")?));
        more.extend(all("title").map(|titles| ("enumNames", titles)));
    }
    let fate = |key: &str, _: Node<'_>| match key {
        "default" if kind.as_deref() != Some("boolean") => Fate::Remove,
        "oneOf" => Fate::Remove,
        _ => Fate::Keep,
    };
    edits.members(field, fate, &more);
    Some(())
}

/// Messages of one block each, for revisions that know no more; without sound for the oldest.
fn single_blocks(params: &Json, revision: Revision) -> Json {
    let Some(messages) = params.root().member("messages") else {
        return params.clone();
    };
    let mut edits = Edits::new();
    let mut split = Vec::new();
    let mut changed = false;
    for message in messages.elements() {
        let content = message.member("content");
        let blocks: Vec<_> = match content {
            Some(content) if content.kind() == Kind::Array => {
                changed = true;
                content.elements().collect()
            }
            other => other.into_iter().collect(),
        };
        for block in blocks {
            let kind = block.member("type").and_then(Node::as_str);
            let silent = kind.as_deref() == Some("audio") && !revision.features().audio;
            changed |= silent;
            let block = if silent {
                spoken_of(block)
            } else {
                params.slice(block)
            };
            let mut members: Vec<_> = message
                .member("role")
                .map(|role| ("role", params.slice(role)))
                .into_iter()
                .collect();
            members.push(("content", block));
            split.push(meta::object_of(&members));
        }
    }
    if changed {
        edits.replace(messages, Json::array(&split));
    }
    params.splice(&edits)
}

/// A note in the place of a sound that cannot be given.
fn spoken_of(block: Node<'_>) -> Json {
    let kind = block.member("mimeType").and_then(Node::as_str);
    let text = format!("[{} left out]", kind.as_deref().unwrap_or("audio"));
    meta::object_of(&[
        ("type", Json::string("text")),
        ("text", Json::string(&text)),
    ])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn told(method: &str, text: &str, revision: Revision) -> Option<String> {
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap();
        let out = params(method, &json, revision, || "ours".into())?;
        Json::parse(out.bytes().clone(), &Limits::CLIENT).unwrap();
        Some(out.as_str().to_owned())
    }

    const ELICIT: &str = methods::ELICITATION_CREATE;
    const SAMPLE: &str = methods::SAMPLING_CREATE;

    #[test]
    fn forms_lose_what_2025_06_18_cannot_say() {
        let form = r#"{"mode":"form","message":"m","requestedSchema":{"$schema":"s","type":"object","properties":{"a":{"type":"string","default":"d","title":"A"},"b":{"type":"boolean","default":true},"c":{"type":"string","oneOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"}]}},"required":["a"]}}"#;
        assert_eq!(
            told(ELICIT, form, Revision::V2025_11_25).as_deref(),
            Some(form)
        );
        assert_eq!(
            told(ELICIT, form, Revision::V2025_06_18).unwrap(),
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","title":"A"},"b":{"type":"boolean","default":true},"c":{"type":"string","enum":["x","y"],"enumNames":["X","Y"]}},"required":["a"]}}"#
        );
        let several = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x"]}}}}}"#;
        assert_eq!(told(ELICIT, several, Revision::V2025_06_18), None);
        assert_eq!(
            told(ELICIT, several, Revision::V2025_11_25).as_deref(),
            Some(several)
        );
    }

    #[test]
    fn pages_get_an_id_of_ours_where_the_revision_knows_pages() {
        let page = r#"{"mode":"url","message":"m","url":"https://x"}"#;
        assert_eq!(
            told(ELICIT, page, Revision::V2025_11_25).unwrap(),
            r#"{"mode":"url","message":"m","url":"https://x","elicitationId":"ours"}"#
        );
        let theirs = r#"{"mode":"url","elicitationId":"theirs","message":"m","url":"https://x"}"#;
        assert_eq!(
            told(ELICIT, theirs, Revision::V2025_11_25).unwrap(),
            theirs.replace("theirs", "ours")
        );
        assert_eq!(told(ELICIT, page, Revision::V2025_06_18), None);
    }

    #[test]
    fn messages_of_several_blocks_become_several_messages() {
        let several = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]},{"role":"assistant","content":{"type":"text","text":"b"}}],"maxTokens":5}"#;
        assert_eq!(
            told(SAMPLE, several, Revision::V2025_11_25).as_deref(),
            Some(several)
        );
        assert_eq!(
            told(SAMPLE, several, Revision::V2025_03_26).unwrap(),
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"audio","data":"AA==","mimeType":"audio/wav"}},{"role":"assistant","content":{"type":"text","text":"b"}}],"maxTokens":5}"#
        );
        let oldest = told(SAMPLE, several, Revision::V2024_11_05).unwrap();
        assert!(
            oldest.contains(r#"{"type":"text","text":"[audio/wav left out]"}"#),
            "{oldest}"
        );
        let single = r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":5.0}"#;
        assert_eq!(
            told(SAMPLE, single, Revision::V2024_11_05).as_deref(),
            Some(single)
        );
    }
}
