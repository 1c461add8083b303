//! Arguments as Cedar values: exactly, or not at all (SECURITY AUTHZ-5).
//!
//! Only what policies look at is represented. What is there and has no type, or is of another type, or is a number that a 64-bit
//! integer does not hold, cannot be represented, and the call is denied.

use std::{borrow::Cow, fmt};

use cedar_policy::{ExpressionConstructionError, RestrictedExpression};

use super::{
    mention::Paths,
    shape::{Shape, Shapes},
};
use crate::json::{Kind, Node};

/// Values that are represented of one call.
const VALUES: usize = 10_000;
/// What an argument would have to be that holds more of them.
const FEWER: &str = "shorter, since policies look at 10,000 values at most";

/// An argument that a policy looks at and that cannot be represented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unrepresentable {
    /// Which: `filter.owner`.
    pub(super) path: String,
    /// What it would have to be; `None` where its schema gives it no type.
    pub(super) wanted: Option<&'static str>,
}

/// A value that policies know, exactly as it was sent. Borrows the text of the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held<'a> {
    Bool(bool),
    Long(i64),
    Text(Cow<'a, str>),
    /// In the order that they were sent, and as often.
    Set(Vec<Self>),
    /// No two members have the same name.
    Record(Vec<(Cow<'a, str>, Self)>),
}

impl Held<'_> {
    /// The same for Cedar.
    pub(super) fn cedar(&self) -> Result<RestrictedExpression, ExpressionConstructionError> {
        Ok(match self {
            Self::Bool(value) => RestrictedExpression::new_bool(*value),
            Self::Long(value) => RestrictedExpression::new_long(*value),
            Self::Text(text) => RestrictedExpression::new_string(text.as_ref().to_owned()),
            Self::Set(values) => {
                let values: Result<Vec<_>, _> = values.iter().map(Held::cedar).collect();
                RestrictedExpression::new_set(values?)
            }
            Self::Record(members) => {
                let mut pairs = Vec::with_capacity(members.len());
                for (name, value) in members {
                    pairs.push((name.as_ref().to_owned(), value.cedar()?));
                }
                RestrictedExpression::new_record(pairs)?
            }
        })
    }
}

/// The members of `arguments` that `paths` lead to, as `context.args`.
pub(super) fn arguments<'a>(
    arguments: Option<Node<'a>>,
    paths: &'a Paths,
    shapes: &Shapes,
) -> Result<Held<'a>, Unrepresentable> {
    Reader { left: VALUES }.record(arguments, Some(paths), shapes)
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
            Kind::String => Ok(node.as_str().map(Cow::into_owned)),
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

/// Reads values, a bounded number of them.
struct Reader {
    left: usize,
}

impl Reader {
    fn record<'a>(
        &mut self,
        node: Option<Node<'a>>,
        paths: Option<&'a Paths>,
        shapes: &Shapes,
    ) -> Result<Held<'a>, Unrepresentable> {
        if node.is_some_and(|node| node.kind() != Kind::Object) {
            return Err(Unrepresentable::of(Some("an object")));
        }
        let mut members = Vec::new();
        match (node, paths) {
            (None, _) => {}
            (Some(node), Some(paths)) => {
                members.reserve_exact(paths.below.len());
                for (name, below) in &paths.below {
                    if let Some(value) = node.member(name) {
                        let below = (!below.whole).then_some(below);
                        let name = Cow::Borrowed(&**name);
                        members.extend(self.member(name, value, below, shapes)?);
                    }
                }
            }
            (Some(node), None) => {
                for member in node.members() {
                    members.extend(self.member(member.key, member.value, None, shapes)?);
                }
            }
        }
        Ok(Held::Record(members))
    }

    fn member<'a>(
        &mut self,
        name: Cow<'a, str>,
        value: Node<'a>,
        below: Option<&'a Paths>,
        shapes: &Shapes,
    ) -> Result<Option<(Cow<'a, str>, Held<'a>)>, Unrepresentable> {
        let Some(member) = shapes.member(&name) else {
            return Err(Unrepresentable::of(None).within(&name));
        };
        if member.nullable && value.kind() == Kind::Null {
            return Ok(None);
        }
        match self.value(value, below, &member.shape) {
            Ok(value) => Ok(Some((name, value))),
            Err(fault) => Err(fault.within(&name)),
        }
    }

    fn value<'a>(
        &mut self,
        node: Node<'a>,
        below: Option<&'a Paths>,
        shape: &Shape,
    ) -> Result<Held<'a>, Unrepresentable> {
        let refuse = || Unrepresentable::of(Some(shape.word()));
        let too_many = || Unrepresentable::of(Some(FEWER));
        self.left = self.left.checked_sub(1).ok_or_else(too_many)?;
        match shape {
            Shape::Bool => node.as_bool().map(Held::Bool),
            Shape::Long => long(node).map(Held::Long),
            Shape::Text => node.as_str().map(Held::Text),
            Shape::Set(element) if node.kind() == Kind::Array => {
                let elements: Result<Vec<_>, _> = node
                    .elements()
                    .map(|node| self.value(node, None, element))
                    .collect();
                return Ok(Held::Set(elements?));
            }
            Shape::Record(shapes) => return self.record(Some(node), below, shapes),
            Shape::Set(_) => None,
        }
        .ok_or_else(refuse)
    }
}

/// What is wrong with it, behind its name.
impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wanted {
            Some(wanted) => write!(f, "must be {wanted}"),
            None => f.write_str("has no type that policy knows"),
        }
    }
}

impl Unrepresentable {
    /// Whether it is this argument, or something inside it.
    pub(super) fn is_within(&self, argument: &str) -> bool {
        let rest = self.path.strip_prefix(argument);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    const fn of(wanted: Option<&'static str>) -> Self {
        Self {
            path: String::new(),
            wanted,
        }
    }

    /// The same, of a member.
    fn within(mut self, name: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{name}.{path}"),
        };
        self
    }
}
