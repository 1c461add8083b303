//! Laying a schema out: every subschema becomes a rule once, references become places.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    Gap, Schema,
    address::{Addresses, DATA},
    dialect::Dialect,
    notes::kept,
    pattern::{Budget, Pattern},
    rule::{Contains, Id, Items, Members, Named, Numbers, Rule, Texts, Types, Words},
};
use crate::json::{Decimal, Kind, Node, canonical};

/// Why a schema cannot be laid out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Faulty {
    /// It refers to something that is not in it.
    #[error("refers to `{0}`, which is not in it")]
    Dangling(Box<str>),
    /// It refers to something outside itself.
    #[error("refers to something outside itself")]
    Remote,
    /// It says that a value is whatever it is.
    #[error("refers to itself without end")]
    Endless,
}

/// The most characters of a reference that are told.
const TOLD: usize = 80;

pub(super) fn compile(schema: Node<'_>) -> Result<Schema, Faulty> {
    let dialect = Dialect::of(schema);
    let addresses = Addresses::of(schema, dialect.unwrap_or(Dialect::Draft2020));
    if !addresses.is_closed() {
        return Err(Faulty::Remote);
    }
    let Some(dialect) = dialect else {
        return Ok(Schema {
            rules: vec![Rule::Unknown],
            tracks: false,
            gap: Some(Gap::Dialect),
        });
    };
    let mut layout = Layout {
        dialect,
        rules: Vec::new(),
        places: HashMap::new(),
        waiting: VecDeque::new(),
        insides: HashMap::new(),
        anchors: HashMap::new(),
        addresses,
        patterns: Budget::default(),
        tracks: false,
        gap: None,
    };
    layout.place(schema, schema);
    while let Some((id, node, base)) = layout.waiting.pop_front() {
        let rule = layout.rule(node, base)?;
        layout.rules[id] = rule;
    }
    endless(&layout.rules)?;
    Ok(Schema {
        rules: layout.rules,
        tracks: layout.tracks,
        gap: layout.gap,
    })
}

/// The members or elements of one value, by name or number, and whether each is a resource.
type Inside<'a> = HashMap<Cow<'a, str>, (Node<'a>, bool)>;

struct Layout<'a> {
    dialect: Dialect,
    rules: Vec<Rule>,
    /// Where the rule of the subschema is that begins there.
    places: HashMap<usize, Id>,
    /// Subschemas that have a place and no rule yet, and the resource they are in.
    waiting: VecDeque<(Id, Node<'a>, Node<'a>)>,
    /// What is inside the values that references have led through, by where those begin.
    insides: HashMap<usize, Inside<'a>>,
    /// The anchors of the resource that begins there.
    anchors: HashMap<usize, HashMap<String, Node<'a>>>,
    addresses: Addresses<'a>,
    /// What is left for patterns.
    patterns: Budget,
    tracks: bool,
    gap: Option<Gap>,
}

impl<'a> Layout<'a> {
    /// The place of a subschema's rule.
    fn place(&mut self, node: Node<'a>, base: Node<'a>) -> Id {
        let base = if self.addresses.is_resource(node) {
            node
        } else {
            base
        };
        *self.places.entry(node.span().start).or_insert_with(|| {
            self.rules.push(Rule::Always);
            let id = self.rules.len() - 1;
            self.waiting.push_back((id, node, base));
            id
        })
    }

    fn rule(&mut self, node: Node<'a>, base: Node<'a>) -> Result<Rule, Faulty> {
        match node.kind() {
            Kind::Bool if node.as_bool() == Some(false) => return Ok(Rule::Never),
            Kind::Object => {}
            Kind::Bool | Kind::Array | Kind::String | Kind::Number | Kind::Null => {
                return Ok(Rule::Always);
            }
        }
        let mut words = Words::default();
        let mut said = Said::default();
        let lone = self.dialect.lone_reference() && node.member("$ref").is_some();
        for member in node.members() {
            if !lone || member.key == "$ref" {
                self.word(&mut words, &mut said, &member.key, member.value, base)?;
            }
        }
        self.combine(&mut words, said, base);
        Ok(if words.is_empty() {
            Rule::Always
        } else {
            Rule::All(Box::new(words))
        })
    }

    /// Takes in one keyword. Those that need others are kept in `said`.
    fn word(
        &mut self,
        words: &mut Words,
        said: &mut Said<'a>,
        key: &str,
        value: Node<'a>,
        base: Node<'a>,
    ) -> Result<(), Faulty> {
        let modern = self.dialect >= Dialect::Draft2019;
        match key {
            "$ref" | "$recursiveRef" | "$dynamicRef" if value.kind() == Kind::String => {
                let known = match key {
                    "$dynamicRef" => self.dialect >= Dialect::Draft2020,
                    "$recursiveRef" => self.dialect == Dialect::Draft2019,
                    _ => true,
                };
                if known {
                    self.reference(words, key, value, base)?;
                }
            }
            "type" => {
                let mut types = Types::default();
                for name in value
                    .as_str()
                    .into_iter()
                    .chain(value.elements().filter_map(Node::as_str))
                {
                    types.add(&name);
                }
                words.types = Some(types);
            }
            "enum" => words.listed.push(value.elements().map(canonical).collect()),
            "const" if self.dialect >= Dialect::Draft6 => words.listed.push(vec![canonical(value)]),
            "minimum" => numbers(words).minimum = number(value),
            "maximum" => numbers(words).maximum = number(value),
            "exclusiveMinimum" if self.dialect.exclusive_marks() => {
                said.above = value.as_bool() == Some(true)
            }
            "exclusiveMaximum" if self.dialect.exclusive_marks() => {
                said.below = value.as_bool() == Some(true)
            }
            "exclusiveMinimum" => numbers(words).above = number(value),
            "exclusiveMaximum" => numbers(words).below = number(value),
            "multipleOf" => numbers(words).multiple = number(value),
            "minLength" => texts(words).min = count(value),
            "maxLength" => texts(words).max = count(value),
            "pattern" => {
                if let Some(spelled) = value.as_str() {
                    let pattern = self.pattern(&spelled);
                    texts(words).gap = pattern.is_none();
                    texts(words).pattern = pattern;
                }
            }
            "minItems" => items(words).min = count(value),
            "maxItems" => items(words).max = count(value),
            "uniqueItems" => items(words).unique = value.as_bool() == Some(true),
            "prefixItems" if self.dialect >= Dialect::Draft2020 => {
                items(words).first = self.places_of(value, base);
            }
            "items" if value.kind() == Kind::Array && self.dialect.items_in_order() => {
                said.in_order = true;
                items(words).first = self.places_of(value, base);
            }
            "items" => said.items = Some(value),
            "additionalItems" if self.dialect.items_in_order() => {
                said.additional_items = Some(value)
            }
            "contains" if self.dialect >= Dialect::Draft6 => said.contains = Some(value),
            "minContains" if modern => said.min_contains = count(value),
            "maxContains" if modern => said.max_contains = count(value),
            "minProperties" => members(words).min = count(value),
            "maxProperties" => members(words).max = count(value),
            "properties" => {
                for member in value.members() {
                    let rule = self.place(member.value, base);
                    named(members(words), &member.key).rule = Some(rule);
                }
            }
            "required" => {
                for name in value.elements().filter_map(Node::as_str) {
                    let members = members(words);
                    let at = members.required.len();
                    if named(members, &name).required.is_none() {
                        named(members, &name).required = Some(at);
                        members.required.push(name.into());
                    }
                }
            }
            "patternProperties" => {
                for member in value.members() {
                    let pattern = self.pattern(&member.key);
                    let rule = self.place(member.value, base);
                    members(words).patterned.push((pattern, rule));
                }
            }
            "additionalProperties" => {
                members(words).additional = Some(self.place(value, base));
            }
            "propertyNames" if self.dialect >= Dialect::Draft6 => {
                members(words).names = Some(self.place(value, base));
            }
            "dependentRequired" if modern => {
                for member in value.members() {
                    let others = texts_of(member.value);
                    members(words).together.push((member.key.into(), others));
                }
            }
            "dependentSchemas" if modern => self.along(words, value, base),
            "dependencies" if !modern => self.along(words, value, base),
            "allOf" => words.all.extend(self.places_of(value, base)),
            "anyOf" => words.any = Some(self.places_of(value, base)),
            "oneOf" => words.one = Some(self.places_of(value, base)),
            "not" => words.not = Some(self.place(value, base)),
            "if" if self.dialect >= Dialect::Draft7 => said.condition = Some(value),
            "then" if self.dialect >= Dialect::Draft7 => said.then = Some(value),
            "else" if self.dialect >= Dialect::Draft7 => said.otherwise = Some(value),
            "unevaluatedItems" if modern => {
                self.tracks = true;
                words.unevaluated_items = Some(self.place(value, base));
            }
            "unevaluatedProperties" if modern => {
                self.tracks = true;
                words.unevaluated_members = Some(self.place(value, base));
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts together the keywords that need each other.
    fn combine(&mut self, words: &mut Words, said: Said<'a>, base: Node<'a>) {
        let rest = if said.in_order {
            said.additional_items
        } else {
            said.items
        };
        if let Some(rest) = rest {
            items(words).rest = Some(self.place(rest, base));
        }
        if let Some(contains) = said.contains {
            items(words).contains = Some(Contains {
                rule: self.place(contains, base),
                min: said.min_contains.unwrap_or(1),
                max: said.max_contains,
                marks: self.dialect >= Dialect::Draft2020,
            });
        }
        if let Some(condition) = said.condition {
            let condition = self.place(condition, base);
            let then = said.then.map(|then| self.place(then, base));
            let otherwise = said.otherwise.map(|otherwise| self.place(otherwise, base));
            words.choice = Some((condition, then, otherwise));
        }
        if let Some(numbers) = &mut words.numbers {
            if said.above {
                numbers.above = numbers.minimum.take();
            }
            if said.below {
                numbers.below = numbers.maximum.take();
            }
        }
    }

    fn along(&mut self, words: &mut Words, value: Node<'a>, base: Node<'a>) {
        for member in value.members() {
            if member.value.kind() == Kind::Array {
                let others = texts_of(member.value);
                members(words).together.push((member.key.into(), others));
            } else {
                let rule = self.place(member.value, base);
                members(words).along.push((member.key.into(), rule));
            }
        }
    }

    fn places_of(&mut self, list: Node<'a>, base: Node<'a>) -> Vec<Id> {
        list.elements().map(|node| self.place(node, base)).collect()
    }

    /// The pattern, if it can be judged.
    fn pattern(&mut self, spelled: &str) -> Option<Arc<Pattern>> {
        let pattern = self.patterns.compile(spelled);
        if pattern.is_none() {
            self.gap = Some(Gap::Pattern);
        }
        pattern
    }

    fn unknown_reference(&mut self, words: &mut Words) {
        words.gap = true;
        self.gap = Some(Gap::Reference);
    }

    fn reference(
        &mut self,
        words: &mut Words,
        key: &str,
        value: Node<'a>,
        base: Node<'a>,
    ) -> Result<(), Faulty> {
        let target = value.as_str().unwrap_or_default();
        let (address, fragment) = target.split_once('#').unwrap_or((&*target, ""));
        let base = if address.is_empty() {
            base
        } else if let Some(resource) = self.addresses.find(address, base) {
            resource
        } else if Dialect::at(&target).is_some() {
            self.unknown_reference(words);
            return Ok(());
        } else {
            return Err(Faulty::Remote);
        };
        // With one resource there is nobody else whom it could mean.
        if key != "$ref" && self.addresses.has_nested() {
            self.unknown_reference(words);
            return Ok(());
        }
        let found = if fragment.is_empty() {
            Some((base, base))
        } else if fragment.starts_with('/') {
            self.pointed(fragment, base)
        } else {
            self.anchored(fragment, base).map(|node| (node, base))
        };
        let Some((node, base)) =
            found.filter(|(node, _)| matches!(node.kind(), Kind::Object | Kind::Bool))
        else {
            return Err(Faulty::Dangling(target.chars().take(TOLD).collect()));
        };
        let id = self.place(node, base);
        words.all.push(id);
        Ok(())
    }

    /// What a JSON pointer leads to, and the resource it is in.
    fn pointed(&mut self, fragment: &str, base: Node<'a>) -> Option<(Node<'a>, Node<'a>)> {
        let pointer = percent_encoding::percent_decode_str(fragment)
            .decode_utf8()
            .ok()?;
        let (mut node, mut base) = (base, base);
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let (next, is_resource) = *self.inside(node).get(&*step)?;
            node = next;
            if is_resource {
                base = node;
            }
        }
        Some((node, base))
    }

    /// What is inside a value. It is walked along once, however many references lead through it.
    fn inside(&mut self, node: Node<'a>) -> &Inside<'a> {
        let addresses = &self.addresses;
        self.insides.entry(node.span().start).or_insert_with(|| {
            kept(node.raw_bytes().len());
            let members = node.members().map(|member| (member.key, member.value));
            let elements = node.elements().enumerate();
            let elements = elements.map(|(at, node)| (Cow::Owned(at.to_string()), node));
            members
                .chain(elements)
                .map(|(name, node)| (name, (node, addresses.is_resource(node))))
                .collect()
        })
    }

    fn anchored(&mut self, name: &str, base: Node<'a>) -> Option<Node<'a>> {
        let start = base.span().start;
        if !self.anchors.contains_key(&start) {
            let mut found = HashMap::new();
            self.gather(base, true, &mut found);
            self.anchors.insert(start, found);
        }
        self.anchors.get(&start)?.get(name).copied()
    }

    fn gather(&self, node: Node<'a>, top: bool, found: &mut HashMap<String, Node<'a>>) {
        if !top && self.addresses.is_resource(node) {
            return;
        }
        for member in node.members() {
            match (&*member.key, member.value.as_str()) {
                ("$anchor" | "$dynamicAnchor", Some(name))
                    if self.dialect >= Dialect::Draft2019 =>
                {
                    found.insert(name.into_owned(), node);
                }
                (key, Some(name)) if key == self.dialect.id() => {
                    if let Some(name) = name.strip_prefix('#') {
                        found.insert(name.to_owned(), node);
                    }
                }
                (key, None) if !DATA.contains(&key) => self.gather(member.value, false, found),
                _ => {}
            }
        }
        node.elements()
            .for_each(|element| self.gather(element, false, found));
    }
}

/// Keywords that mean something together only.
#[derive(Default)]
struct Said<'a> {
    items: Option<Node<'a>>,
    additional_items: Option<Node<'a>>,
    in_order: bool,
    contains: Option<Node<'a>>,
    min_contains: Option<u64>,
    max_contains: Option<u64>,
    condition: Option<Node<'a>>,
    then: Option<Node<'a>>,
    otherwise: Option<Node<'a>>,
    above: bool,
    below: bool,
}

/// Whether a value would be looked at again and again without getting any smaller.
fn endless(rules: &[Rule]) -> Result<(), Faulty> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let below = |id: Id| match &rules[id] {
        Rule::All(words) => words.in_place(),
        Rule::Always | Rule::Never | Rule::Unknown => Vec::new(),
    };
    let mut marks = vec![Mark::New; rules.len()];
    for start in 0..rules.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut path = vec![(start, below(start))];
        while let Some((id, rest)) = path.last_mut() {
            match rest.pop() {
                None => {
                    marks[*id] = Mark::Done;
                    path.pop();
                }
                Some(next) => match marks[next] {
                    Mark::Open => return Err(Faulty::Endless),
                    Mark::Done => {}
                    Mark::New => {
                        marks[next] = Mark::Open;
                        path.push((next, below(next)));
                    }
                },
            }
        }
    }
    Ok(())
}

fn numbers(words: &mut Words) -> &mut Numbers {
    words.numbers.get_or_insert_default()
}

fn texts(words: &mut Words) -> &mut Texts {
    words.texts.get_or_insert_default()
}

fn items(words: &mut Words) -> &mut Items {
    words.items.get_or_insert_default()
}

fn members(words: &mut Words) -> &mut Members {
    words.members.get_or_insert_default()
}

fn named<'m>(members: &'m mut Members, name: &str) -> &'m mut Named {
    members.named.entry(name.into()).or_default()
}

fn number(value: Node<'_>) -> Option<Decimal> {
    (value.kind() == Kind::Number)
        .then(|| Decimal::parse(value.raw()))
        .flatten()
}

fn count(value: Node<'_>) -> Option<u64> {
    number(value)?.as_u64()
}

fn texts_of(list: Node<'_>) -> Vec<Box<str>> {
    list.elements()
        .filter_map(Node::as_str)
        .map(Into::into)
        .collect()
}
