//! Addresses: which subschema a reference means that names one by its address (JSON Schema 2020-12, 8.2).
//!
//! Guarantees: nothing is fetched, so what is not in the schema itself is not found; the cost is linear in the size of the
//! schema, since no address of more than [`LONGEST`] bytes is worked out.

use std::{borrow::Cow, collections::HashMap};

use super::dialect::Dialect;
use crate::json::{Kind, Node};

/// The most bytes of an address and of what it is relative to, together.
const LONGEST: usize = 2_048;

/// Members whose values are data, whatever they look like.
pub(super) const DATA: [&str; 5] = ["const", "enum", "default", "example", "examples"];
/// Members that hold subschemas by names, whatever the names are.
const BY_NAME: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// The resources of a schema, the subschemas that have addresses of their own, and who refers to which.
pub(super) struct Addresses<'a> {
    dialect: Dialect,
    /// The address of the resource that begins there, without a fragment; empty where the root has none, `None` where one
    /// cannot be told. The root is always among them.
    own: HashMap<usize, Option<String>>,
    /// Whose each address is; nobody's where two that differ claim it.
    whose: HashMap<String, Option<Node<'a>>>,
    /// The same by what is written, since many take an address for a mere name, whatever it is relative to.
    written: HashMap<String, Option<Node<'a>>>,
    /// Every reference that is more than a fragment, and the resource it stands in.
    references: Vec<(Node<'a>, Cow<'a, str>)>,
}

impl<'a> Addresses<'a> {
    /// Those of a schema.
    pub(super) fn of(root: Node<'a>, dialect: Dialect) -> Self {
        let mut all = Self {
            dialect,
            own: HashMap::from([(root.span().start, Some(String::new()))]),
            whose: HashMap::new(),
            written: HashMap::new(),
            references: Vec::new(),
        };
        all.gather(root, root);
        all
    }

    /// Whether a subschema has an address of its own, from which references in it count.
    pub(super) fn is_resource(&self, node: Node<'_>) -> bool {
        let id = node.member(self.dialect.id()).and_then(Node::as_str);
        let hidden = self.dialect.lone_reference() && node.member("$ref").is_some();
        !hidden && id.is_some_and(|id| !id.starts_with('#'))
    }

    /// Whether some subschema is a resource of its own.
    pub(super) fn has_nested(&self) -> bool {
        self.own.len() > 1
    }

    /// Whether every reference stays in the schema, or means a dialect; those that no check would follow as well.
    pub(super) fn is_closed(&self) -> bool {
        self.references.iter().all(|(base, target)| {
            let address = target.split('#').next().unwrap_or_default();
            address.is_empty()
                || self.find(address, *base).is_some()
                || Dialect::at(target).is_some()
        })
    }

    /// The resource with this address, which has no fragment and is relative to that of `base`.
    pub(super) fn find(&self, address: &str, base: Node<'a>) -> Option<Node<'a>> {
        let of_base = self.own.get(&base.span().start)?.as_deref();
        let resolved = of_base.and_then(|of_base| resolved(of_base, address));
        let known = resolved.and_then(|resolved| self.whose.get(&resolved));
        *known.or_else(|| self.written.get(address))?
    }

    fn gather(&mut self, node: Node<'a>, base: Node<'a>) {
        let base = if self.is_resource(node) {
            self.enter(node, base);
            node
        } else {
            base
        };
        for member in node.members() {
            match (&*member.key, member.value.kind()) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Kind::String) => {
                    let target = member.value.as_str().unwrap_or_default();
                    if !target.starts_with('#') {
                        self.references.push((base, target));
                    }
                }
                (key, Kind::Object) if BY_NAME.contains(&key) => {
                    for entry in member.value.members() {
                        self.gather(entry.value, base);
                    }
                }
                (key, _) if DATA.contains(&key) => {}
                (_, Kind::Object | Kind::Array) => self.gather(member.value, base),
                (_, Kind::String | Kind::Number | Kind::Bool | Kind::Null) => {}
            }
        }
        for element in node.elements() {
            self.gather(element, base);
        }
    }

    /// Notes a resource. One with the same address as another has to be the same: who would say which is meant?
    fn enter(&mut self, node: Node<'a>, base: Node<'a>) {
        let id = node.member(self.dialect.id()).and_then(Node::as_str);
        let id = id.unwrap_or_default();
        let (id, fragment) = id.split_once('#').unwrap_or((&*id, ""));
        let of_base = self.own.get(&base.span().start).cloned().flatten();
        let address = of_base
            .filter(|_| fragment.is_empty())
            .and_then(|of_base| resolved(&of_base, id));
        self.own.insert(node.span().start, address.clone());
        if id.is_empty() || !fragment.is_empty() {
            return;
        }
        if let Some(address) = address {
            note(&mut self.whose, address, node);
        }
        note(&mut self.written, id.to_owned(), node);
    }
}

fn note<'a>(all: &mut HashMap<String, Option<Node<'a>>>, address: String, node: Node<'a>) {
    let first = all.entry(address).or_insert(Some(node));
    if first.is_some_and(|first| first.raw_bytes() != node.raw_bytes()) {
        *first = None;
    }
}

/// An address without a fragment, made absolute as far as `base` is (RFC 3986, 5.2); `None` where it would be too long.
fn resolved(base: &str, address: &str) -> Option<String> {
    if base.len() + address.len() > LONGEST {
        return None;
    }
    let (base, own) = (Parts::of(base), Parts::of(address));
    let (scheme, authority, path, query) = if own.scheme.is_some() {
        (own.scheme, own.authority, without_dots(own.path), own.query)
    } else if own.authority.is_some() {
        (
            base.scheme,
            own.authority,
            without_dots(own.path),
            own.query,
        )
    } else if own.path.is_empty() {
        let query = own.query.or(base.query);
        (base.scheme, base.authority, base.path.to_owned(), query)
    } else {
        let path = if own.path.starts_with('/') {
            without_dots(own.path)
        } else {
            let folder = match base.path.rfind('/') {
                Some(end) => &base.path[..=end],
                None if base.authority.is_some() => "/",
                None => "",
            };
            without_dots(&format!("{folder}{}", own.path))
        };
        (base.scheme, base.authority, path, own.query)
    };
    let mut whole = String::new();
    if let Some(scheme) = scheme {
        whole.extend([scheme, ":"]);
    }
    if let Some(authority) = authority {
        whole.extend(["//", authority]);
    }
    whole.push_str(&path);
    if let Some(query) = query {
        whole.extend(["?", query]);
    }
    Some(whole)
}

/// The parts of an address without a fragment.
struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    query: Option<&'u str>,
}

impl<'u> Parts<'u> {
    fn of(address: &'u str) -> Self {
        let (rest, query) = match address.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (address, None),
        };
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            Some(_) | None => (None, rest),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Self {
            scheme,
            authority,
            path,
            query,
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// A path whose steps are names alone.
fn without_dots(path: &str) -> String {
    let root = usize::from(path.starts_with('/'));
    let mut kept: Vec<&str> = Vec::new();
    let mut steps = path.split('/').peekable();
    while let Some(step) = steps.next() {
        let is_last = steps.peek().is_none();
        match step {
            "." | ".." => {
                if step == ".." && kept.len() > root {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            step => kept.push(step),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::{Json, Limits};

    /// RFC 3986, 5.4, and what has no scheme or no authority.
    #[test]
    fn addresses_are_resolved_as_rfc_3986_says() {
        for (base, address, want) in [
            ("http://a/b/c/d;p?q", "g:h", "g:h"),
            ("http://a/b/c/d;p?q", "g", "http://a/b/c/g"),
            ("http://a/b/c/d;p?q", "./g/", "http://a/b/c/g/"),
            ("http://a/b/c/d;p?q", "/g", "http://a/g"),
            ("http://a/b/c/d;p?q", "//g", "http://g"),
            ("http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"),
            ("http://a/b/c/d;p?q", "g?y", "http://a/b/c/g?y"),
            ("http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"),
            ("http://a/b/c/d;p?q", "..", "http://a/b/"),
            ("http://a/b/c/d;p?q", "../../../g", "http://a/g"),
            ("http://a/b/c/d;p?q", "./../g", "http://a/b/g"),
            ("http://a/b/c/d;p?q", "g;x=1/../y", "http://a/b/c/y"),
            ("http://a", "g", "http://a/g"),
            ("", "T0", "T0"),
            ("", "./a/../T0", "T0"),
            ("a/b", "c", "a/c"),
            ("urn:example:a", "urn:example:b", "urn:example:b"),
            ("a/b", "https://e.com/x", "https://e.com/x"),
        ] {
            let told = resolved(base, address);
            assert_eq!(told.as_deref(), Some(want), "{base} {address}");
        }
        assert_eq!(resolved("", &"x".repeat(LONGEST + 1)), None);
    }

    /// Hostile: each relative to the one around it, and thousands relative to a long one.
    #[test]
    fn cat_5_no_address_grows_with_the_schema() {
        let long = format!("https://e.com/{}/", "x".repeat(2_000));
        let many = vec![r#"{"$id":"T","$ref":"T"}"#; 9_000].join(",");
        let deep = (0..100).fold("{}".to_owned(), |below, _| {
            format!(r#"{{"$id":"{}/","items":{below}}}"#, "y".repeat(100))
        });
        for (text, resources) in [
            (format!(r#"{{"$id":"{long}","allOf":[{many}]}}"#), 9_001),
            (deep, 100),
            (
                format!(r#"{{"$id":"{0}","$ref":"{0}x"}}"#, "x".repeat(9_000)),
                1,
            ),
        ] {
            let json = Json::parse(Bytes::from(text), &Limits::UPSTREAM).unwrap();
            let all = Addresses::of(json.root(), Dialect::Draft2020);
            assert_eq!(all.own.len(), resources);
            let mut known = all.own.values().flatten().chain(all.whose.keys());
            // A slash may come between.
            assert!(known.all(|address| address.len() <= LONGEST + 1));
            assert_eq!(all.is_closed(), resources != 1);
        }
    }
}
