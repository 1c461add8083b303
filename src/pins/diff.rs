//! How two definitions differ, place by place.

use std::collections::BTreeSet;

use crate::json::{Json, Kind, Node};

/// One place where two values differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where: a JSON pointer; empty for the whole.
    pub path: String,
    /// What stood there; `None` where there was nothing.
    pub before: Option<Json>,
    /// What stands there; `None` where there is nothing.
    pub after: Option<Json>,
}

/// The most places that are told of; the last stands for the rest.
pub const PLACES: usize = 200;

/// Where two values differ, in the order of their members' names: as deep inside as they are of one kind, and whole where
/// they are not. At most [`PLACES`].
pub fn differences(before: &Json, after: &Json) -> Vec<Difference> {
    let mut walk = Walk {
        before,
        after,
        found: Vec::new(),
    };
    walk.value(String::new(), Some(before.root()), Some(after.root()));
    walk.found
}

struct Walk<'a> {
    before: &'a Json,
    after: &'a Json,
    found: Vec<Difference>,
}

impl Walk<'_> {
    fn value(&mut self, path: String, before: Option<Node<'_>>, after: Option<Node<'_>>) {
        if self.found.len() >= PLACES {
            return;
        }
        if let (Some(one), Some(other)) = (before, after) {
            if one.raw_bytes() == other.raw_bytes() {
                return;
            }
            match (one.kind(), other.kind()) {
                (Kind::Object, Kind::Object) => return self.members(&path, one, other),
                (Kind::Array, Kind::Array) => return self.elements(&path, one, other),
                _ => {}
            }
        }
        self.found.push(Difference {
            path,
            before: before.map(|node| self.before.slice(node).detached()),
            after: after.map(|node| self.after.slice(node).detached()),
        });
    }

    fn members(&mut self, path: &str, one: Node<'_>, other: Node<'_>) {
        let keys: BTreeSet<_> = one
            .members()
            .chain(other.members())
            .map(|member| member.key.into_owned())
            .collect();
        for key in keys {
            let below = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
            self.value(below, one.member(&key), other.member(&key));
        }
    }

    fn elements(&mut self, path: &str, one: Node<'_>, other: Node<'_>) {
        let (mut one, mut other) = (one.elements(), other.elements());
        for at in 0.. {
            let (before, after) = (one.next(), other.next());
            if before.is_none() && after.is_none() {
                return;
            }
            self.value(format!("{path}/{at}"), before, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    #[test]
    fn differences_are_told_where_they_are() {
        let json = |text: &'static str| {
            Json::parse(Bytes::from_static(text.as_bytes()), &Limits::CLIENT).unwrap()
        };
        let told: Vec<_> = differences(
            &json(r#"{"a":{"x":1,"y":[1,2]},"b":"t","c":true}"#),
            &json(r#"{"a":{"x":2,"y":[1,3,4]},"b":{"t":1},"d":null}"#),
        )
        .into_iter()
        .map(|it| {
            let text =
                |json: Option<Json>| json.map_or("-".to_owned(), |json| json.as_str().to_owned());
            format!("{} {} {}", it.path, text(it.before), text(it.after))
        })
        .collect();
        assert_eq!(
            told,
            [
                "/a/x 1 2",
                "/a/y/1 2 3",
                "/a/y/2 - 4",
                "/b \"t\" {\"t\":1}",
                "/c true -",
                "/d - null"
            ]
        );
    }
}
