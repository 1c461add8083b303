//! `_meta`: the keys, and what crosses a hop (PROTOCOL A7).

use crate::json::{Edits, Fate, Json, Kind, Node};

/// The member itself.
pub const META: &str = "_meta";
/// Names the revision of one request; required in the modern era.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can do, per request; required in the modern era.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The log level wanted on this request's stream.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is; on results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Ties listen traffic to its request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Ties a message to a task of 2025-11-25.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// What a model is told at once of a task just made; provisional, 2025-11-25.
pub const IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
/// Asks for progress; minted anew on each hop.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// What callers tell each other along a trace; ends at every hop (SECURITY EGR-8).
pub const BAGGAGE: &str = "baggage";
/// Where our own keys live.
pub const OWN_PREFIX: &str = "dev.usher/";
/// The question whether a person agrees to a call; in the result of such a call the reference of the approval.
pub const APPROVAL: &str = "dev.usher/approval";

/// What of a result was changed, or flagged, and by which rule (SECURITY 7). The one key of ours that is stamped below the
/// dialects: whoever stamps it has cut what an upstream wrote there.
pub const CONTENT: &str = "dev.usher/content";

/// Whether the specification keeps `key` for itself: its prefix's second label is `mcp` or `modelcontextprotocol`.
pub fn is_reserved(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    matches!(
        prefix.split('.').nth(1),
        Some("mcp" | "modelcontextprotocol")
    ) || matches!(prefix, "mcp" | "modelcontextprotocol")
}

/// Whether a key of a request or result may go over to the other hop unchanged: vendor keys and trace context do; progress
/// tokens, `baggage`, our own keys and everything the specification reserves do not (PROTOCOL A7, SECURITY EGR-8).
pub fn crosses(key: &str) -> bool {
    // First what nearly every key of a modern request is.
    !key.starts_with("io.modelcontextprotocol/")
        && key != PROGRESS_TOKEN
        && key != BAGGAGE
        && !key.starts_with(OWN_PREFIX)
        && (!is_reserved(key) || key.starts_with("io.modelcontextprotocol.skills/"))
}

/// Whether a key tells what was done to a result here. Only the gateway writes those: the stack cuts them from what upstreams say.
pub fn is_told(key: &str) -> bool {
    key == CONTENT || key == APPROVAL
}

/// Whether a key of a result goes out to a client: what crosses, and what is told of what was done here.
pub fn goes_out(key: &str) -> bool {
    crosses(key) || is_told(key)
}

/// What becomes of a member of a result's `_meta` on the way to a client: see [`goes_out`].
pub fn outgoing(key: &str, _: Node<'_>) -> Fate {
    kept_if(goes_out(key))
}

/// What becomes of a member of `_meta` on the way over to the other hop: see [`crosses`].
pub fn going_over(key: &str, _: Node<'_>) -> Fate {
    kept_if(crosses(key))
}

const fn kept_if(keep: bool) -> Fate {
    if keep { Fate::Keep } else { Fate::Remove }
}

/// Whether `params` claim a revision for themselves: the mark of a modern request (PROTOCOL C1).
pub fn claims_revision(params: Node<'_>) -> bool {
    params
        .member(META)
        .is_some_and(|meta| meta.member(PROTOCOL_VERSION).is_some())
}

/// Rewrites the `_meta` of `object` (params or a result): keys that do not cross are cut, `own` is stamped on. An empty
/// `_meta` is not left behind, and none is made when there is nothing to say.
pub fn rewrite(edits: &mut Edits, object: Node<'_>, own: &[(&str, Json)]) {
    match object.member(META) {
        Some(meta) if meta.kind() == Kind::Object => {
            let kept = meta.members().filter(|member| crosses(&member.key)).count();
            let all = meta.members().count();
            if kept == 0 && own.is_empty() {
                edits.members(
                    object,
                    |key, _| {
                        if key == META {
                            Fate::Remove
                        } else {
                            Fate::Keep
                        }
                    },
                    &[],
                );
            } else if kept < all || !own.is_empty() {
                edits.members(meta, going_over, own);
            }
        }
        Some(other) => edits.replace(other, object_of(own)),
        None if own.is_empty() => {}
        None => edits.members(object, |_, _| Fate::Keep, &[(META, object_of(own))]),
    }
}

/// `object` (params or a result) as it may go over to the other hop: the keys of its `_meta` that do not cross are cut.
pub fn crossing(object: &Json) -> Json {
    let mut edits = Edits::new();
    rewrite(&mut edits, object.root(), &[]);
    object.splice(&edits)
}

/// Adds `own` to the `_meta` of a result, and makes one if there is none, or what stands there is no object: some servers
/// write `null`, some an empty array. Nothing else is cut.
pub fn stamp(edits: &mut Edits, object: Node<'_>, own: &[(&str, Json)]) {
    match object.member(META) {
        Some(meta) if meta.kind() == Kind::Object => edits.members(meta, |_, _| Fate::Keep, own),
        Some(other) => edits.replace(other, object_of(own)),
        None => edits.members(object, |_, _| Fate::Keep, &[(META, object_of(own))]),
    }
}

/// An object of these members.
pub fn object_of(members: &[(&str, Json)]) -> Json {
    let mut edits = Edits::new();
    let empty = Json::empty_object();
    edits.members(empty.root(), |_, _| Fate::Keep, members);
    empty.splice(&edits)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    #[test]
    fn reserved_keys_do_not_cross_and_vendor_and_trace_keys_do() {
        for key in [
            "io.modelcontextprotocol/logLevel",
            "dev.mcp/x",
            "io.modelcontextprotocol/unknown",
            "progressToken",
            "baggage",
            "dev.usher/x",
        ] {
            assert!(!crosses(key), "{key}");
        }
        for key in [
            "traceparent",
            "tracestate",
            "com.example/x",
            "plain",
            "com.example.mcp/x",
            "io.modelcontextprotocol.skills/x",
        ] {
            assert!(crosses(key), "{key}");
        }
    }

    #[test]
    fn meta_is_cut_stamped_or_left_out() {
        let one = [("k", Json::literal("1"))];
        type Case<'a> = (&'static str, &'a [(&'a str, Json)], &'a str);
        let cases: [Case<'_>; 5] = [
            (r#"{"a":1}"#, &[], r#"{"a":1}"#),
            (r#"{"a":1}"#, &one, r#"{"a":1,"_meta":{"k":1}}"#),
            (r#"{"_meta":{"progressToken":3},"a":1}"#, &[], r#"{"a":1}"#),
            (
                r#"{"_meta":{"progressToken":3,"x":2},"a":1}"#,
                &one,
                r#"{"_meta":{"x":2,"k":1},"a":1}"#,
            ),
            (r#"{"_meta":{"x":2}}"#, &[], r#"{"_meta":{"x":2}}"#),
        ];
        for (text, own, want) in cases {
            let json = Json::parse(Bytes::from_static(text.as_bytes()), &Limits::CLIENT).unwrap();
            let mut edits = Edits::new();
            rewrite(&mut edits, json.root(), own);
            assert_eq!(json.splice(&edits).as_str(), want);
        }
    }

    #[test]
    fn what_stands_in_the_place_of_meta_and_is_none_gives_way() {
        let own = [("k", Json::literal("1"))];
        for other in ["null", "[]", "[1]", r#""x""#, "7"] {
            for (text, want) in [
                (r#"{"a":1,"_meta":OTHER}"#, r#"{"a":1,"_meta":{"k":1}}"#),
                (r#"{"_meta":OTHER,"a":1}"#, r#"{"_meta":{"k":1},"a":1}"#),
            ] {
                let json = Json::composed(text.replace("OTHER", other).into());
                let mut edits = Edits::new();
                stamp(&mut edits, json.root(), &own);
                assert_eq!(json.splice(&edits).as_str(), want);
            }
        }
    }
}
