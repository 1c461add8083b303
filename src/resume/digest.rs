//! One number for the arguments of a call: equal for equal values, whatever their members' order and spelling of strings.

use aws_lc_rs::digest::{Context, SHA256};

use crate::{
    json::{Json, Kind, Node},
    protocol::meta,
};

/// Members of params that differ between a call and its retry by the protocol's own rules.
const PER_TRY: [&str; 3] = [meta::META, "inputResponses", "requestState"];

/// The digest of everything that a caller asks for in `params`.
// Numbers count as they are spelled: a client that repeats its arguments repeats their spelling.
pub fn of(params: &Json) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    let members = params
        .root()
        .members()
        .filter(|member| !PER_TRY.contains(&&*member.key));
    object(
        &mut context,
        members.map(|member| (member.key, member.value)),
    );
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}

fn object<'a>(
    context: &mut Context,
    members: impl Iterator<Item = (std::borrow::Cow<'a, str>, Node<'a>)>,
) {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by(|one, two| one.0.cmp(&two.0));
    context.update(b"{");
    for (key, node) in members {
        text(context, b"s", &key);
        value(context, node);
    }
    context.update(b"}");
}

// Recursion is as deep as the value, which a scan has bounded (SECURITY 6: 64 levels from a client).
fn value(context: &mut Context, node: Node<'_>) {
    match node.kind() {
        Kind::Object => object(
            context,
            node.members().map(|member| (member.key, member.value)),
        ),
        Kind::Array => {
            context.update(b"[");
            node.elements().for_each(|element| value(context, element));
            context.update(b"]");
        }
        Kind::String => text(context, b"s", &node.as_str().unwrap_or_default()),
        Kind::Number => text(context, b"n", node.raw()),
        Kind::Bool | Kind::Null => text(context, b"w", node.raw()),
    }
}

/// A piece with its kind and length, so that no two sequences of pieces read the same.
fn text(context: &mut Context, kind: &[u8], text: &str) {
    context.update(kind);
    context.update(&(text.len() as u64).to_le_bytes());
    context.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::json::Limits;

    fn digest(text: &str) -> [u8; 32] {
        of(&Json::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::CLIENT).unwrap())
    }

    #[test]
    fn order_white_space_and_what_belongs_to_one_try_do_not_count() {
        let one = digest(r#"{"name":"t","arguments":{"a":[1,"x"],"b":{"c":null,"d":true}}}"#);
        for same in [
            r#"{"arguments":{"b":{"d":true,"c":null},"a":[ 1 , "x"]},"name":"t"}"#,
            r#"{"name":"t","arguments":{"\u0061":[1,"\u0078"],"b":{"c":null,"d":true}},"requestState":"s"}"#,
            r#"{"_meta":{"x":1},"inputResponses":{"k":{}},"name":"t","arguments":{"a":[1,"x"],"b":{"c":null,"d":true}}}"#,
        ] {
            assert_eq!(digest(same), one, "{same}");
        }
    }

    #[test]
    fn any_difference_in_value_or_kind_counts() {
        let texts = [
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":[1]}"#,
            r#"{"a":{"1":1}}"#,
            r#"{"a":true}"#,
            r#"{"a":"true"}"#,
            r#"{"a":null}"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            r#"{"a":""}"#,
            r#"{"a":["","x"]}"#,
            r#"{"a":["x",""]}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":{"b":{}},"c":{}}"#,
            r#"{"a":{"b":{},"c":{}}}"#,
            r"{}",
        ];
        for (i, one) in texts.iter().enumerate() {
            for two in &texts[i + 1..] {
                assert_ne!(digest(one), digest(two), "{one} {two}");
            }
        }
    }

    proptest! {
        #[test]
        fn members_in_any_order_give_one_digest(
            members in proptest::collection::btree_map("[a-z]{1,6}", "[ -~]{0,8}", 0..8),
            seed in any::<u64>(),
        ) {
            let mut list: Vec<_> = members.iter().map(|(key, value)| format!("{}:{}", Json::string(key).as_str(), Json::string(value).as_str())).collect();
            let sorted = format!("{{{}}}", list.join(","));
            let length = list.len().max(1);
            list.rotate_left(usize::try_from(seed % length as u64).unwrap());
            prop_assert_eq!(digest(&sorted), digest(&format!("{{{}}}", list.join(" , "))));
        }
    }
}
