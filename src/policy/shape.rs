//! The types of arguments: from a tool's JSON Schema to what Cedar can express of it.
//!
//! Strings, booleans, integers, sets and records have a type; a `number` is an integer to policies, and a fraction is not
//! representable. Whatever else a schema says (unions, maps, anything) leaves an argument without a type. `null` where the
//! schema allows it counts as absent.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use super::mention::Paths;
use crate::json::{Json, Kind, Node};

/// Nesting that is looked at, references included.
const DEPTH: usize = 16;
/// Subschemas of one tool that are looked at; what lies beyond has no type.
const SUBSCHEMAS: usize = 2_000;

/// What a value is to policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    Bool,
    Long,
    Text,
    Set(Box<Self>),
    Record(Shapes),
}

/// The members of a record that have a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shapes {
    members: BTreeMap<Arc<str>, Member>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) shape: Shape,
    required: bool,
    /// Whether `null` is as good as nothing.
    pub(super) nullable: bool,
}

impl Shapes {
    /// Those of a tool.
    pub(super) fn of_tool(schema: &Json) -> Self {
        let root = schema.root();
        Reader {
            root,
            left: SUBSCHEMAS,
        }
        .members(root, DEPTH)
        .unwrap_or_default()
    }

    /// Those of a prompt: its arguments are strings.
    pub(super) fn of_prompt(arguments: &Json) -> Self {
        let member = |node: Node<'_>| {
            let name = node.member("name")?.as_str()?;
            let required = node.member("required").and_then(Node::as_bool);
            let member = Member {
                shape: Shape::Text,
                required: required.unwrap_or(false),
                nullable: false,
            };
            Some((name.as_ref().into(), member))
        };
        Self {
            members: arguments.root().elements().filter_map(member).collect(),
        }
    }

    /// A member.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// Adds what a policy demands of an argument, before any tool is known.
    pub(super) fn demand(&mut self, path: &[&str], shape: Option<Shape>) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let member = self
            .members
            .entry((*first).into())
            .or_insert_with(|| Member {
                shape: Shape::Text,
                required: true,
                nullable: false,
            });
        if rest.is_empty() {
            if let Some(shape) = shape {
                member.shape = shape;
            }
            return;
        }
        if !matches!(member.shape, Shape::Record(_)) {
            member.shape = Shape::Record(Self::default());
        }
        if let Shape::Record(below) = &mut member.shape {
            below.demand(rest, shape);
        }
    }

    /// The members as a record type in a Cedar schema.
    pub(super) fn cedar(&self) -> String {
        let mut out = String::new();
        self.write(None, &mut out);
        out
    }

    /// Those of `paths` alone.
    pub(super) fn cedar_of(&self, paths: &Paths) -> String {
        let mut out = String::new();
        self.write(Some(paths), &mut out);
        out
    }

    fn write(&self, only: Option<&Paths>, out: &mut String) {
        out.push('{');
        let mut separator = "";
        for (name, member) in &self.members {
            let below = only.map(|paths| paths.below.get(name));
            if below == Some(None) {
                continue;
            }
            let mark = if member.required && !member.nullable {
                ""
            } else {
                "?"
            };
            // Writing to a string cannot fail.
            let _ = write!(out, "{separator} \"{}\"{mark}: ", name.escape_debug());
            let below = below.flatten().filter(|paths| !paths.whole);
            member.shape.write(below, out);
            separator = ",";
        }
        out.push_str(" }");
    }
}

impl Shape {
    fn write(&self, only: Option<&Paths>, out: &mut String) {
        match self {
            Self::Bool => out.push_str("Bool"),
            Self::Long => out.push_str("Long"),
            Self::Text => out.push_str("String"),
            Self::Set(element) => {
                out.push_str("Set<");
                element.write(None, out);
                out.push('>');
            }
            Self::Record(shapes) => shapes.write(only, out),
        }
    }

    /// The word for it in messages.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Bool => "true or false",
            Self::Long => "an integer",
            Self::Text => "a string",
            Self::Set(_) => "an array",
            Self::Record(_) => "an object",
        }
    }
}

struct Reader<'a> {
    root: Node<'a>,
    left: usize,
}

impl<'a> Reader<'a> {
    fn members(&mut self, schema: Node<'a>, depth: usize) -> Option<Shapes> {
        let properties = schema.member("properties")?;
        let required: Vec<_> = schema
            .member("required")
            .into_iter()
            .flat_map(Node::elements)
            .filter_map(Node::as_str)
            .collect();
        let mut members = BTreeMap::new();
        for property in properties.members() {
            let Some((shape, nullable)) = self.shape(property.value, depth) else {
                continue;
            };
            let member = Member {
                shape,
                required: required.contains(&property.key),
                nullable,
            };
            members.insert(property.key.as_ref().into(), member);
        }
        Some(Shapes { members })
    }

    fn shape(&mut self, schema: Node<'a>, depth: usize) -> Option<(Shape, bool)> {
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        if let Some(reference) = schema.member("$ref") {
            let target = self.target(&reference.as_str()?)?;
            return self.shape(target, depth);
        }
        if let Some(choices) = schema.member("anyOf").or_else(|| schema.member("oneOf")) {
            let is_null = |node: &Node<'_>| {
                node.member("type").and_then(Node::as_str).as_deref() == Some("null")
            };
            let choices: Vec<_> = choices.elements().collect();
            let (null, rest): (Vec<_>, Vec<_>) = choices.into_iter().partition(is_null);
            let [only] = rest[..] else {
                return None;
            };
            let (shape, nullable) = self.shape(only, depth)?;
            return Some((shape, nullable || !null.is_empty()));
        }
        let Some(ty) = schema.member("type") else {
            return Some((Self::listed(schema)?, false));
        };
        if let Some(name) = ty.as_str() {
            return Some((self.named(&name, schema, depth)?, false));
        }
        let names: Vec<_> = ty.elements().filter_map(Node::as_str).collect();
        match &names[..] {
            [name] => Some((self.named(name, schema, depth)?, false)),
            [name, null] | [null, name] if null == "null" && name != "null" => {
                Some((self.named(name, schema, depth)?, true))
            }
            _ => None,
        }
    }

    fn named(&mut self, name: &str, schema: Node<'a>, depth: usize) -> Option<Shape> {
        match name {
            "string" => Some(Shape::Text),
            "integer" | "number" => Some(Shape::Long),
            "boolean" => Some(Shape::Bool),
            "array" => {
                let (element, nullable) = self.shape(schema.member("items")?, depth)?;
                (!nullable).then(|| Shape::Set(Box::new(element)))
            }
            "object" => self.members(schema, depth).map(Shape::Record),
            _ => None,
        }
    }

    /// The type of a schema that only lists values.
    fn listed(schema: Node<'_>) -> Option<Shape> {
        let values: Vec<_> = match schema.member("const") {
            Some(value) => vec![value],
            None => schema.member("enum")?.elements().collect(),
        };
        let all = |kind| !values.is_empty() && values.iter().all(|value| value.kind() == kind);
        if all(Kind::String) {
            Some(Shape::Text)
        } else if all(Kind::Number) {
            Some(Shape::Long)
        } else if all(Kind::Bool) {
            Some(Shape::Bool)
        } else {
            None
        }
    }

    /// What a reference inside the schema leads to.
    fn target(&self, reference: &str) -> Option<Node<'a>> {
        let pointer = reference.strip_prefix("#/")?;
        let mut node = self.root;
        for step in pointer.split('/') {
            node = node.member(&step.replace("~1", "/").replace("~0", "~"))?;
        }
        Some(node)
    }
}
