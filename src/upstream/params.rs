//! The one place that turns a client's params into an upstream's: by splicing, never by rebuilding.
//!
//! Guarantees: the name or URI becomes the upstream's own, `_meta` holds what may cross a hop and what this hop adds, and
//! every other byte (the arguments' member order and number spellings among them) stays as it was (PROTOCOL A7, D0, E).
//! Params are copied at most once.

use crate::{
    call::{Call, CompletionRef, Op},
    json::{Edits, Fate, Json, Kind, Node},
    protocol::{Features, meta, trace},
};

/// What becomes of a caller's wish that a tool run as a core task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// It means nothing on this hop, or is none.
    Drop,
    /// It goes on as it is.
    Keep,
    /// It is ours.
    Add,
}

/// `call`'s params as the upstream gets them: `local` in the place of the outward name or URI, `own` stamped on `_meta`.
/// `features` are those of the revision spoken on this hop.
pub(super) fn outbound(
    call: &Call,
    local: &str,
    own: &[(&str, Json)],
    features: &Features,
    wish: Wish,
) -> Json {
    let root = call.params.root();
    let mut edits = Edits::new();
    let mut meta_node = None;
    let mut cut = false;
    for member in root.members() {
        match (&*member.key, &call.op) {
            (meta::META, _) => meta_node = Some(member.value),
            ("name", Op::CallTool(_) | Op::GetPrompt(_))
            | ("uri", Op::ReadResource(_) | Op::GetSkill(_) | Op::ReadDirectory(..))
            | ("taskId", Op::Task(..)) => {
                rename(&mut edits, member.value, local);
            }
            // The stack has opened ours already; without one of ours there is none.
            ("cursor", Op::ReadDirectory(_, Some(cursor))) => {
                edits.replace(member.value, Json::string(cursor));
            }
            ("ref", Op::Complete(target)) => {
                let key = match target {
                    CompletionRef::Prompt(_) => "name",
                    CompletionRef::Resource(_) => "uri",
                };
                if let Some(named) = member.value.member(key) {
                    rename(&mut edits, named, local);
                }
            }
            ("task", Op::CallTool(_)) if wish == Wish::Keep => {}
            (key, _) if is_nothing(key, member.value) => cut = true,
            (key, op) => cut |= stays_behind(key, op, features),
        }
    }
    let meta_goes = stamp(&mut edits, meta_node, own);
    let added = (wish == Wish::Add).then(|| ("task", Json::empty_object()));
    let fresh = (meta_node.is_none() && !own.is_empty()).then(|| meta::object_of(own));
    if cut || meta_goes || fresh.is_some() || added.is_some() {
        let more: Vec<_> = fresh
            .into_iter()
            .map(|meta| (meta::META, meta))
            .chain(added)
            .collect();
        let fate = |key: &str, value: Node<'_>| {
            let goes = (key == meta::META && meta_goes)
                || is_nothing(key, value)
                || stays_behind(key, &call.op, features);
            if key == "task" && wish == Wish::Keep || !goes {
                Fate::Keep
            } else {
                Fate::Remove
            }
        };
        edits.members(root, fate, &more);
    }
    call.params.splice(&edits)
}

/// The params of a call that goes on: the answers of this round and nothing of rounds before, and the upstream's state byte
/// for byte if it gave one (PROTOCOL D2). `sent` are [`outbound`] params, which hold neither.
pub(super) fn resumed(sent: &Json, responses: Option<&Json>, state: Option<&Json>) -> Json {
    let more: Vec<_> = [("inputResponses", responses), ("requestState", state)]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?.clone())))
        .collect();
    let mut edits = Edits::new();
    edits.members(sent.root(), |_, _| Fate::Keep, &more);
    sent.splice(&edits)
}

fn rename(edits: &mut Edits, old: Node<'_>, local: &str) {
    if old.as_str().as_deref() != Some(local) {
        edits.replace(old, Json::string(local));
    }
}

/// Edits inside an existing `_meta`; says whether the whole member must go.
fn stamp(edits: &mut Edits, node: Option<Node<'_>>, own: &[(&str, Json)]) -> bool {
    let Some(node) = node else {
        return false;
    };
    // Where the trace goes on as ours it goes on once.
    let traced = own.iter().any(|(key, _)| *key == trace::PARENT);
    let kept = |key: &str, value: Node<'_>| match key {
        trace::PARENT | trace::STATE if traced => Fate::Remove,
        _ => carried(node, key, value),
    };
    let stays = |key: &str, value: Node<'_>| !matches!(kept(key, value), Fate::Remove);
    if own.is_empty()
        && !node
            .members()
            .any(|member| stays(&member.key, member.value))
    {
        return true;
    }
    if node.kind() != Kind::Object {
        edits.replace(node, meta::object_of(own));
        return false;
    }
    edits.members(node, kept, own);
    false
}

/// What becomes of a member of `meta` on the way upstream: what crosses stays, and the trace goes on as a child of the
/// caller's span (PROTOCOL A7). Trace context that is malformed, or a state without its parent, goes nowhere.
fn carried(meta: Node<'_>, key: &str, value: Node<'_>) -> Fate {
    match key {
        trace::PARENT => value
            .as_str()
            .and_then(|parent| trace::child(&parent, fastrand::u64(..).to_be_bytes()))
            .map_or(Fate::Remove, |child| Fate::Replace(Json::string(&child))),
        trace::STATE => {
            let text = |node: Node<'_>, fits: fn(&str) -> bool| {
                node.as_str().is_some_and(|text| fits(&text))
            };
            let parent = meta.member(trace::PARENT);
            if text(value, trace::is_state)
                && parent.is_some_and(|parent| text(parent, trace::is_parent))
            {
                Fate::Keep
            } else {
                Fate::Remove
            }
        }
        key if meta::crosses(key) => Fate::Keep,
        _ => Fate::Remove,
    }
}

/// Whether it is how some clients write that there is no such member, which strict servers refuse.
fn is_nothing(key: &str, value: Node<'_>) -> bool {
    matches!(key, "arguments" | "cursor") && value.kind() == Kind::Null
}

/// Whether a member of params means nothing, or something else, on the upstream's hop: a completion's context before
/// 2025-06-18, a task wish that nobody could follow up, answers and state that the upstream never asked for.
fn stays_behind(key: &str, op: &Op, features: &Features) -> bool {
    match op {
        Op::Complete(_) => key == "context" && !features.completion_context,
        Op::CallTool(_) | Op::GetPrompt(_) | Op::ReadResource(_) => {
            matches!(key, "task" | "inputResponses" | "requestState")
        }
        Op::Discover
        | Op::List(..)
        | Op::GetSkill(_)
        | Op::ReadDirectory(..)
        | Op::Task(..)
        | Op::ListTasks(_)
        | Op::Listen(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{protocol::Revision, upstream::scripted::a_call};

    fn sent(op: Op, params: &str, local: &str, own: &[(&str, Json)], revision: Revision) -> String {
        outbound(
            &a_call(op, params),
            local,
            own,
            revision.features(),
            Wish::Drop,
        )
        .as_str()
        .to_owned()
    }

    #[test]
    fn only_the_name_and_meta_change_and_everything_else_stays_byte_for_byte() {
        let own = [("k", Json::of(&7))];
        let modern = Revision::V2026_07_28;
        let tool = || Op::CallTool("w_t".into());
        for (params, want) in [
            (
                r#"{ "name" : "w_t" , "arguments":{"z":1.50e+3,"a": [1,  2],"__proto__":{"\u0061":123456789012345678901234567890}}}"#,
                r#"{ "name" : "t" , "arguments":{"z":1.50e+3,"a": [1,  2],"__proto__":{"\u0061":123456789012345678901234567890}},"_meta":{"k":7}}"#,
            ),
            (
                r#"{"_meta":{"progressToken":"x","com.example/a":1.0,"io.modelcontextprotocol/logLevel":"info","x":null},"name":"w_t"}"#,
                r#"{"_meta":{"com.example/a":1.0,"x":null,"k":7},"name":"t"}"#,
            ),
            (
                r#"{"name":"w_t","task":{"ttl":1},"requestState":"s","_meta":3,"inputResponses":{}}"#,
                r#"{"name":"t","_meta":{"k":7}}"#,
            ),
            (
                r#"{"name":"w_t","arguments":null,"cursor":null,"x":1.0}"#,
                r#"{"name":"t","x":1.0,"_meta":{"k":7}}"#,
            ),
            (
                r#"{"task":{},"name":"w_t"}"#,
                r#"{"name":"t","_meta":{"k":7}}"#,
            ),
            (
                r#"{"name":"w_t","task":{}}"#,
                r#"{"name":"t","_meta":{"k":7}}"#,
            ),
        ] {
            assert_eq!(sent(tool(), params, "t", &own, modern), want);
        }
        let legacy = Revision::V2025_11_25;
        assert_eq!(
            sent(
                tool(),
                r#"{"name":"w_t","_meta":{"progressToken":1}}"#,
                "t",
                &[],
                legacy
            ),
            r#"{"name":"t"}"#
        );
        let call = a_call(tool(), r#"{"name":"t","x":1}"#);
        let same = outbound(&call, "t", &[], legacy.features(), Wish::Drop);
        assert_eq!(
            same.bytes().as_ptr(),
            call.params.bytes().as_ptr(),
            "no copy when nothing changes"
        );
    }

    #[test]
    fn uris_prompts_and_completion_references_are_put_in_the_upstreams_own_words() {
        let modern = Revision::V2026_07_28;
        let old = Revision::V2025_03_26;
        let read = Op::ReadResource("w+a://x".into());
        assert_eq!(
            sent(
                read,
                r#"{"uri":"w+a://x","name":"kept"}"#,
                "a://x",
                &[],
                modern
            ),
            r#"{"uri":"a://x","name":"kept"}"#
        );
        let prompt = || Op::Complete(CompletionRef::Prompt("w_p".into()));
        let params = r#"{"ref":{"type":"ref/prompt","name":"w_p"},"argument":{"name":"n","value":"v"},"context":{"arguments":{}}}"#;
        assert_eq!(
            sent(prompt(), params, "p", &[], modern),
            params.replace("w_p", "p")
        );
        assert_eq!(
            sent(prompt(), params, "p", &[], old),
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"n","value":"v"}}"#
        );
        let resource = Op::Complete(CompletionRef::Resource("w+a://{x}".into()));
        assert_eq!(
            sent(
                resource,
                r#"{"ref":{"uri":"w+a://{x}","type":"ref/resource"}}"#,
                "a://{x}",
                &[],
                old
            ),
            r#"{"ref":{"uri":"a://{x}","type":"ref/resource"}}"#
        );
    }

    #[test]
    fn a_trace_goes_on_as_a_child_and_whatever_is_malformed_is_left_behind() {
        let sent = |meta: &str| {
            let params = format!(r#"{{"name":"t","_meta":{{{meta}}}}}"#);
            sent(
                Op::CallTool("t".into()),
                &params,
                "t",
                &[],
                Revision::V2026_07_28,
            )
        };
        let parent = r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01""#;
        let both = sent(&format!(
            r#"{parent},"tracestate":"a=1","baggage":"user=1""#
        ));
        assert!(
            both.contains(r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-"#),
            "{both}"
        );
        assert!(both.ends_with(r#"-01","tracestate":"a=1"}}"#), "{both}");
        assert!(!both.contains("b7ad6b7169203331"), "{both}");
        assert_ne!(both, sent(&format!(r#"{parent},"tracestate":"a=1""#)));
        for meta in [
            r#""traceparent":"00-1","tracestate":"a=1""#,
            r#""traceparent":7"#,
            r#""tracestate":"a=1""#,
            r#""baggage":"user=1""#,
        ] {
            assert_eq!(sent(meta), r#"{"name":"t"}"#, "{meta}");
        }
        let stateless = sent(&format!(r#"{parent},"tracestate":"odd""#));
        assert!(stateless.ends_with(r#"-01"}}"#), "{stateless}");
    }

    proptest! {
        #[test]
        fn whatever_members_stand_around_it_the_result_is_one_valid_object(
            order in Just(vec!["name", "arguments", "_meta", "task", "x"]).prop_shuffle(),
            take in 0_usize..6,
            stamp in any::<bool>(),
        ) {
            let value = |key: &str| match key {
                "name" => r#""w_t""#,
                "_meta" => r#"{"progressToken":1,"v/k":2}"#,
                _ => r#"{ "q":[1.0] }"#,
            };
            let members: Vec<_> = order.iter().take(take).map(|key| format!("\"{key}\":{}", value(key))).collect();
            let own = [("k", Json::of(&7))];
            let own = if stamp { &own[..] } else { &[] };
            let text = sent(Op::CallTool("w_t".into()), &format!("{{{}}}", members.join(" , ")), "t", own, Revision::V2026_07_28);
            let json = Json::parse(text.clone().into(), &crate::json::Limits::CLIENT).unwrap();
            prop_assert!(json.root().member("task").is_none());
            prop_assert_eq!(json.root().member("arguments").map(Node::raw), order.iter().take(take).find(|key| **key == "arguments").map(|_| r#"{ "q":[1.0] }"#));
            let meta = json.root().member("_meta");
            prop_assert_eq!(meta.and_then(|meta| meta.member("k")).is_some(), stamp);
            prop_assert!(meta.and_then(|meta| meta.member("progressToken")).is_none());
        }
    }
}
