//! Namespaces: how one upstream's names and URIs look from outside, and back (PRODUCT 5, PROTOCOL E).
//!
//! Names go out by rule and come back by table. URIs go both ways by rule alone, so that any replica routes any URI:
//!
//! | upstream | outside, prefix `wh` |
//! |---|---|
//! | `scheme:rest` | `wh+scheme:rest` |
//! | `ui://rest`, `skill://rest` | `ui://wh/rest`, `skill://wh/rest` |
//! | `http://…`, `https://…` | unchanged; routed by who lists it |
//!
//! An empty prefix changes no URI. Going out and coming back yields the same bytes, and nothing comes back that could not
//! have gone out.

use std::{collections::HashMap, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest};

use super::rules::{Charset, NameRules};
use crate::protocol::methods::ListKind;

/// How one upstream's names and URIs look from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    prefix: Arc<str>,
    /// `None`: names stay as they are.
    names: Option<NameRules>,
}

/// Prefixes, and whose they are: `None` where several upstreams share one.
pub(super) type Prefixes = HashMap<Arc<str>, Option<usize>>;

/// A template whose URIs could not be told from others after expansion: its scheme is not spelled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenScheme;

/// How a URI carries its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carry {
    /// Not at all.
    Web,
    /// As first segment after these many bytes.
    Segment(usize),
    /// Joined to the scheme.
    Scheme,
}

/// Hexadecimal digits of the hash in a name that had to be changed.
const HASH_CHARS: usize = 8;

impl Namespace {
    /// The namespace with this prefix.
    pub const fn new(prefix: Arc<str>, names: NameRules) -> Self {
        Self {
            prefix,
            names: Some(names),
        }
    }

    /// The namespace that changes nothing: one upstream under its original names.
    pub(super) fn identity() -> Self {
        Self {
            prefix: "".into(),
            names: None,
        }
    }

    /// What stands before names and URIs; may be empty.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The outward name of a tool or prompt shown as `name` and called `original` by its upstream: `{prefix}_{name}`
    /// where the rules allow it, else a readable stem and a hash of `original`. Never longer than the rules allow.
    pub(super) fn outward_name(&self, name: &str, original: &str) -> String {
        let joined = if self.prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}_{name}", self.prefix)
        };
        match self.names {
            Some(rules) if !allowed(&joined, rules) => shortened(&joined, original, rules),
            _ => joined,
        }
    }

    /// What stands after the prefix in an outward name; `None` for what is no outward name of this namespace. Where the name
    /// had to be shortened, that is not what its upstream calls it.
    pub(super) fn inward_name<'a>(&self, outward: &'a str) -> Option<&'a str> {
        if self.names.is_some_and(|rules| !allowed(outward, rules)) {
            return None;
        }
        if self.prefix.is_empty() {
            return Some(outward);
        }
        outward.strip_prefix(&*self.prefix)?.strip_prefix('_')
    }

    /// The outward form of a URI; `None` when it is the same.
    pub fn outward_uri(&self, uri: &str) -> Option<String> {
        if self.prefix.is_empty() {
            return None;
        }
        match carry(uri) {
            Carry::Web => None,
            Carry::Segment(at) => Some(format!("{}{}/{}", &uri[..at], self.prefix, &uri[at..])),
            Carry::Scheme => Some(format!("{}+{uri}", self.prefix)),
        }
    }

    /// The upstream's form of an outward URI, if that is in this namespace by its spelling. `http` and `https` never are:
    /// they belong to whoever lists them. With an empty prefix everything else is.
    pub fn inward_uri(&self, uri: &str) -> Option<String> {
        let carry_out = carry(uri);
        if carry_out == Carry::Web {
            return None;
        }
        if self.prefix.is_empty() {
            return Some(uri.to_owned());
        }
        match carry_out {
            Carry::Web => None,
            Carry::Segment(at) => {
                let rest = uri[at..].strip_prefix(&*self.prefix)?.strip_prefix('/')?;
                Some(format!("{}{rest}", &uri[..at]))
            }
            Carry::Scheme => {
                let rest = uri.strip_prefix(&*self.prefix)?.strip_prefix('+')?;
                (carry(rest) == Carry::Scheme).then(|| rest.to_owned())
            }
        }
    }

    /// Whether what is asked for by this outward name or URI could be of this namespace, by how it is spelled.
    pub fn could_hold(&self, kind: ListKind, outward: &str) -> bool {
        match kind {
            ListKind::Tools | ListKind::Prompts => self.inward_name(outward).is_some(),
            ListKind::Resources | ListKind::Templates | ListKind::Skills => {
                is_web(outward) || self.inward_uri(outward).is_some()
            }
        }
    }

    /// The outward form of a URI template, `None` when it is the same. The prefix goes into literal text, so that what a
    /// client expands is in this namespace.
    ///
    /// # Errors
    /// [`OpenScheme`] when the template begins with an expression or has one inside its scheme.
    pub(super) fn outward_template(&self, template: &str) -> Result<Option<String>, OpenScheme> {
        let literal = template.split('{').next().unwrap_or_default();
        let open = literal.len() < template.len() && !literal.contains([':', '/', '?', '#']);
        if open && !self.prefix.is_empty() {
            return Err(OpenScheme);
        }
        Ok(self.outward_uri(template))
    }
}

/// The prefix that the spelling of an outward URI names, if it names one.
pub(super) fn prefix_of(uri: &str) -> Option<&str> {
    match carry(uri) {
        Carry::Web => None,
        Carry::Segment(at) => uri[at..].split_once('/').map(|(prefix, _)| prefix),
        Carry::Scheme => {
            let (prefix, _) = uri.split_once('+')?;
            (!prefix.contains([':', '/', '?', '#', '{'])).then_some(prefix)
        }
    }
}

/// Whether a URI or template is one that keeps its spelling in every namespace.
pub(super) fn is_web(uri: &str) -> bool {
    carry(uri) == Carry::Web
}

fn carry(uri: &str) -> Carry {
    let begins = |scheme: &str| {
        uri.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    };
    if begins("http://") || begins("https://") {
        return Carry::Web;
    }
    ["ui://", "skill://"]
        .into_iter()
        .find(|scheme| begins(scheme))
        .map_or(Carry::Scheme, |scheme| Carry::Segment(scheme.len()))
}

fn allowed(name: &str, rules: NameRules) -> bool {
    name.len() <= rules.max && name.chars().all(|c| in_charset(c, rules.charset))
}

const fn in_charset(c: char, charset: Charset) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '-')
        || matches!(charset, Charset::Spec) && c == '.'
}

fn shortened(joined: &str, original: &str, rules: NameRules) -> String {
    let room = rules.max.saturating_sub(HASH_CHARS + 1);
    let mut stem = String::with_capacity(room);
    for c in joined.chars() {
        if in_charset(c, rules.charset) {
            stem.push(c);
        } else if !stem.ends_with(['-', '_']) {
            stem.push('-');
        }
        if stem.len() >= room {
            break;
        }
    }
    let stem = stem.trim_end_matches(['-', '_']);
    let hash = digest(&SHA256, original.as_bytes());
    let hash: String = hash.as_ref()[..HASH_CHARS / 2]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{stem}_{hash}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wh() -> Namespace {
        Namespace::new("wh".into(), NameRules::default())
    }

    #[test]
    fn names_within_the_rules_are_joined_and_others_get_a_stem_and_a_hash() {
        let name = |name: &str| wh().outward_name(name, name);
        assert_eq!(name("query_sql"), "wh_query_sql");
        assert_eq!(name("files.read"), "wh_files-read_601e4eb6");
        assert!(name("поиск").starts_with("wh_"));
        let long = name(&"x".repeat(100));
        assert_eq!(long.len(), 64);
        assert_ne!(long, name(&"x".repeat(101)));
        let spec = NameRules {
            max: 128,
            charset: Charset::Spec,
        };
        assert_eq!(
            Namespace::new("wh".into(), spec).outward_name("files.read", "files.read"),
            "wh_files.read"
        );
        assert_eq!(
            Namespace::identity().outward_name("a b/c", "a b/c"),
            "a b/c"
        );
    }

    #[test]
    fn uris_carry_their_namespace_as_the_table_says() {
        for (local, outward) in [
            ("weather://today/x", Some("wh+weather://today/x")),
            ("note:1", Some("wh+note:1")),
            ("a+b://c", Some("wh+a+b://c")),
            ("ui://app/main.html", Some("ui://wh/app/main.html")),
            (
                "skill://review/SKILL.md",
                Some("skill://wh/review/SKILL.md"),
            ),
            ("ui:odd", Some("wh+ui:odd")),
            ("https://example.com/x", None),
            ("HTTP://example.com/x", None),
        ] {
            assert_eq!(wh().outward_uri(local).as_deref(), outward);
            if let Some(outward) = outward {
                assert_eq!(wh().inward_uri(outward).as_deref(), Some(local));
                assert_eq!(prefix_of(outward), Some("wh"));
            }
            assert_eq!(Namespace::identity().outward_uri(local), None);
        }
    }

    #[test]
    fn what_could_be_of_a_namespace_is_known_by_its_spelling() {
        let could = |kind, outward| wh().could_hold(kind, outward);
        for (name, of_it) in [
            ("wh_x", true),
            ("wh-x", false),
            ("whx", false),
            ("w_x", false),
        ] {
            assert_eq!(could(ListKind::Tools, name), of_it, "{name}");
            assert_eq!(could(ListKind::Prompts, name), of_it, "{name}");
            assert!(Namespace::identity().could_hold(ListKind::Tools, name));
        }
        for (uri, of_it) in [
            ("wh+note:1", true),
            ("note:1", false),
            ("w+note:1", false),
            ("ui://wh/x", true),
            ("ui://w/x", false),
            ("https://x.example/", true),
        ] {
            assert_eq!(could(ListKind::Resources, uri), of_it, "{uri}");
        }
    }

    #[test]
    fn nothing_comes_in_that_could_not_have_gone_out() {
        for outward in [
            "wh+https://internal/x",
            "wh+ui://x",
            "wx+note:1",
            "note:1",
            "https://wh/x",
            "ui://wx/y",
            "ui://wh",
        ] {
            assert_eq!(wh().inward_uri(outward), None, "{outward}");
        }
    }

    #[test]
    fn a_template_gets_its_prefix_in_literal_text_or_not_at_all() {
        let out = |template| wh().outward_template(template);
        assert_eq!(
            out("weather://{city}/{date}"),
            Ok(Some("wh+weather://{city}/{date}".into()))
        );
        assert_eq!(out("ui://{app}"), Ok(Some("ui://wh/{app}".into())));
        assert_eq!(out("https://x/{y}"), Ok(None));
        assert_eq!(out("/files/{path}"), Ok(Some("wh+/files/{path}".into())));
        assert_eq!(out("{scheme}://x"), Err(OpenScheme));
        assert_eq!(out("http{s}://x"), Err(OpenScheme));
        assert_eq!(Namespace::identity().outward_template("{x}"), Ok(None));
    }

    proptest! {
        #[test]
        fn a_uri_goes_out_and_comes_back_unchanged(
            prefix in "[a-z][a-z0-9-]{0,8}",
            uri in "(ui://|skill://|UI://|http:|[a-z][a-z0-9+.-]{0,5}:)?[ -~é]{0,30}",
        ) {
            let namespace = Namespace::new(prefix.as_str().into(), NameRules::default());
            if let Some(outward) = namespace.outward_uri(&uri) {
                prop_assert_eq!(prefix_of(&outward), Some(prefix.as_str()));
                prop_assert_eq!(namespace.inward_uri(&outward), Some(uri));
            } else {
                prop_assert!(is_web(&uri));
            }
        }

        #[test]
        fn what_comes_in_goes_out_the_same(uri in "(wh\\+|ui://wh/|wh|skill://wh)?[a-z+:/]{0,16}") {
            if let Some(local) = wh().inward_uri(&uri) {
                prop_assert_eq!(wh().outward_uri(&local), Some(uri));
            }
        }

        #[test]
        fn outward_names_keep_the_rules_and_stay_apart(
            names in proptest::collection::hash_set("[a-c._é-]{1,80}", 1..40),
            prefix in "([a-z][a-z0-9-]{0,8})?",
        ) {
            let rules = NameRules::default();
            let namespace = Namespace::new(prefix.into(), rules);
            let mut seen = std::collections::HashSet::new();
            for name in &names {
                let outward = namespace.outward_name(name, name);
                prop_assert!(allowed(&outward, rules), "{}", outward);
                prop_assert!(seen.insert(outward));
            }
        }
    }
}
