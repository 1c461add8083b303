//! Arguments as Cedar values: exactly, or not at all (SECURITY AUTHZ-5).
//!
//! Only what policies look at is represented. What is there and has no type, or is of another type, or is a number that a 64-bit
//! integer does not hold, cannot be represented, and the call is denied.

use std::sync::Arc;

use cedar_policy::RestrictedExpression;

use super::{
    mention::Paths,
    shape::{Shape, Shapes},
};
use crate::json::{Kind, Node};

/// Values that are represented of one call.
const VALUES: usize = 10_000;

/// An argument that a policy looks at and that cannot be represented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unrepresentable {
    /// Which: `filter.owner`.
    pub(super) path: String,
    /// What it would have to be; `None` where its schema gives it no type.
    pub(super) wanted: Option<&'static str>,
}

/// The members of `arguments` that `paths` lead to, as `context.args`.
pub(super) fn arguments(
    arguments: Option<Node<'_>>,
    paths: &Paths,
    shapes: &Shapes,
) -> Result<RestrictedExpression, Unrepresentable> {
    let mut writer = Writer {
        path: Vec::new(),
        left: VALUES,
    };
    writer.record(arguments, Some(paths), shapes)
}

/// The scalar that `tag` leads to as text; `None` where there is none.
pub(super) fn tag(
    arguments: Option<Node<'_>>,
    tag: &str,
) -> Result<Option<String>, Unrepresentable> {
    let refuse = || Unrepresentable {
        path: tag.to_owned(),
        wanted: Some("a string, an integer, true or false, under names without dots"),
    };
    let Some(node) = arguments else {
        return Ok(None);
    };
    let mut found = Vec::new();
    leads(node, tag, true, &mut found);
    match found[..] {
        [] => Ok(None),
        [(node, true)] => match node.kind() {
            Kind::Null => Ok(None),
            Kind::String => Ok(node.as_str().map(std::borrow::Cow::into_owned)),
            Kind::Bool => Ok(Some(node.raw().to_owned())),
            Kind::Number => long(node)
                .map(|long| Some(long.to_string()))
                .ok_or_else(refuse),
            Kind::Object | Kind::Array => Err(refuse()),
        },
        _ => Err(refuse()),
    }
}

/// Everything that `tag` may mean, and whether no name on the way holds a dot.
fn leads<'a>(node: Node<'a>, tag: &str, plain: bool, found: &mut Vec<(Node<'a>, bool)>) {
    for member in node.members() {
        let plain = plain && !member.key.contains('.');
        match tag.strip_prefix(&*member.key) {
            Some("") => found.push((member.value, plain)),
            Some(rest) => {
                if let Some(rest) = rest.strip_prefix('.') {
                    leads(member.value, rest, plain, found);
                }
            }
            None => {}
        }
    }
}

/// The integer that a number is: spelled as one, or with nothing but zeros after the point.
pub(super) fn long(node: Node<'_>) -> Option<i64> {
    let raw = node.raw();
    match raw.split_once('.') {
        None => raw.parse().ok(),
        Some((whole, rest)) => rest
            .bytes()
            .all(|byte| byte == b'0')
            .then(|| whole.parse().ok())
            .flatten(),
    }
}

struct Writer {
    path: Vec<Arc<str>>,
    left: usize,
}

impl Writer {
    fn refuse(&self, wanted: Option<&'static str>) -> Unrepresentable {
        Unrepresentable {
            path: self.path.join("."),
            wanted,
        }
    }

    fn record(
        &mut self,
        node: Option<Node<'_>>,
        paths: Option<&Paths>,
        shapes: &Shapes,
    ) -> Result<RestrictedExpression, Unrepresentable> {
        if node.is_some_and(|node| node.kind() != Kind::Object) {
            return Err(self.refuse(Some("an object")));
        }
        let mut pairs = Vec::new();
        match (node, paths) {
            (None, _) => {}
            (Some(node), Some(paths)) => {
                for (name, below) in &paths.below {
                    if let Some(value) = node.member(name) {
                        let below = (!below.whole).then_some(below);
                        pairs.extend(self.member(name.clone(), value, below, shapes)?);
                    }
                }
            }
            (Some(node), None) => {
                for member in node.members() {
                    let name = member.key.as_ref().into();
                    pairs.extend(self.member(name, member.value, None, shapes)?);
                }
            }
        }
        // No two members have the same name, which is all that could be wrong.
        RestrictedExpression::new_record(pairs).map_err(|_| self.refuse(None))
    }

    fn member(
        &mut self,
        name: Arc<str>,
        value: Node<'_>,
        below: Option<&Paths>,
        shapes: &Shapes,
    ) -> Result<Option<(String, RestrictedExpression)>, Unrepresentable> {
        self.path.push(name.clone());
        let Some(member) = shapes.member(&name) else {
            return Err(self.refuse(None));
        };
        let pair = if value.kind() == Kind::Null && member.nullable {
            None
        } else {
            Some((name.to_string(), self.value(value, below, &member.shape)?))
        };
        self.path.pop();
        Ok(pair)
    }

    fn value(
        &mut self,
        node: Node<'_>,
        below: Option<&Paths>,
        shape: &Shape,
    ) -> Result<RestrictedExpression, Unrepresentable> {
        let refusal = self.refuse(Some(shape.word()));
        self.left = self.left.checked_sub(1).ok_or_else(|| refusal.clone())?;
        match shape {
            Shape::Bool => node.as_bool().map(RestrictedExpression::new_bool),
            Shape::Long => long(node).map(RestrictedExpression::new_long),
            Shape::Text => node
                .as_str()
                .map(|text| RestrictedExpression::new_string(text.into_owned())),
            Shape::Set(element) if node.kind() == Kind::Array => {
                let elements: Result<Vec<_>, _> = node
                    .elements()
                    .map(|node| self.value(node, None, element))
                    .collect();
                return Ok(RestrictedExpression::new_set(elements?));
            }
            Shape::Record(shapes) => return self.record(Some(node), below, shapes),
            Shape::Set(_) => None,
        }
        .ok_or(refusal)
    }
}
