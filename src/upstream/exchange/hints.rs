//! What a server says of keeping what was read, as far as it may say so (PROTOCOL D5, SECURITY STATE-5).
//!
//! Guarantees: a result that goes on says either nothing of it, or a number of milliseconds that is none below zero and one of the
//! two scopes; what was read with one principal's token is never for all. Deliberately absent: lists, whose hints are merged in
//! the catalog, and what policies say, which the stack knows.

use crate::{
    json::{Edits, Fate, Json, Node},
    protocol::Era,
};

/// A result with nothing but hints that hold. `own`: it was asked for with a token of the caller's.
pub(super) fn held(result: Json, era: Era, own: bool) -> Json {
    let mut edits = Edits::new();
    match era {
        // Whatever these are there, they are not what this gateway's clients take them for: the era has no such thing.
        Era::Legacy => {
            let fate = |key: &str, _: Node<'_>| match key {
                "ttlMs" | "cacheScope" => Fate::Remove,
                _ => Fate::Keep,
            };
            let has = |key: &str| result.root().member(key).is_some();
            if has("ttlMs") || has("cacheScope") {
                edits.members(result.root(), fate, &[]);
            }
        }
        Era::Modern => {
            for member in result.root().fields() {
                let value = member.value;
                match &*member.name() {
                    b"ttlMs" if value.as_i64().is_none_or(i64::is_negative) => {
                        edits.replace(value, Json::literal("0"));
                    }
                    b"cacheScope" => match value.as_str().as_deref() {
                        Some("private") => {}
                        Some("public") if !own => {}
                        _ => edits.replace(value, Json::literal("\"private\"")),
                    },
                    _ => {}
                }
            }
        }
    }
    result.splice(&edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn of(text: &str, era: Era, own: bool) -> String {
        let result = Json::parse(text.to_owned().into(), &Limits::UPSTREAM).unwrap();
        held(result, era, own).as_str().to_owned()
    }

    #[test]
    fn only_hints_that_hold_go_on() {
        for (said, kept, owned) in [
            (
                r#"5,"cacheScope":"public""#,
                r#"5,"cacheScope":"public""#,
                r#"5,"cacheScope":"private""#,
            ),
            (
                r#"0,"cacheScope":"private""#,
                r#"0,"cacheScope":"private""#,
                r#"0,"cacheScope":"private""#,
            ),
            (
                r#"-5.5,"cacheScope":"shared""#,
                r#"0,"cacheScope":"private""#,
                r#"0,"cacheScope":"private""#,
            ),
            (
                r#"-1,"cacheScope":null"#,
                r#"0,"cacheScope":"private""#,
                r#"0,"cacheScope":"private""#,
            ),
            (
                r#""9","cacheScope":["public"]"#,
                r#"0,"cacheScope":"private""#,
                r#"0,"cacheScope":"private""#,
            ),
        ] {
            let text = |hints: &str| format!(r#"{{"contents":[],"ttlMs":{hints},"x":1e2}}"#);
            assert_eq!(of(&text(said), Era::Modern, false), text(kept));
            assert_eq!(of(&text(said), Era::Modern, true), text(owned));
            assert_eq!(
                of(&text(said), Era::Legacy, false),
                r#"{"contents":[],"x":1e2}"#
            );
        }
        for era in [Era::Modern, Era::Legacy] {
            assert_eq!(of(r#"{"contents": []}"#, era, true), r#"{"contents": []}"#);
        }
    }
}
