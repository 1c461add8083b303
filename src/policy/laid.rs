//! Items as decisions need them: found by their upstream's own names, with URIs taken apart and schemas read on first use.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use super::{
    Action, Item, ItemKind, Subject,
    class::Classes,
    expand::{Expansions, Listed},
    shape::Shapes,
};
use crate::protocol::UpstreamId;

/// One item.
#[derive(Debug)]
pub(super) struct Laid {
    pub(super) item: Item,
    /// Numbers of the entities that policies name and that this is, or is in.
    pub(super) keys: Vec<u32>,
    pub(super) parts: Parts,
    /// Of a template: what it may expand to.
    pub(super) expansions: Option<Expansions>,
    /// Read when a policy first looks at arguments.
    shapes: OnceLock<Shapes>,
}

impl Laid {
    fn of(item: Item, expansions: Option<Expansions>, classes: &Classes) -> Self {
        let own = classes.number(type_name(item.kind), &item.outward);
        let upstream = classes.number("Upstream", item.upstream.as_str());
        let toolsets = item.toolsets.iter();
        let toolsets = toolsets.filter_map(|toolset| classes.number("Toolset", toolset));
        Self {
            keys: own.into_iter().chain(upstream).chain(toolsets).collect(),
            parts: Parts::of(&item.local),
            item,
            expansions,
            shapes: OnceLock::new(),
        }
    }

    /// One that nobody handed in.
    pub(super) fn unlisted(subject: &Subject<'_>, classes: &Classes) -> Self {
        let item = Self::bare(subject);
        let template = item.kind == ItemKind::Template;
        let expansions = template.then(|| Expansions::of(&item, &Listed::of(&[])));
        Self::of(item, expansions, classes)
    }

    /// The same where there are no policies.
    pub(super) fn alone(subject: &Subject<'_>) -> Self {
        Self {
            keys: Vec::new(),
            parts: Parts::of(subject.local),
            item: Self::bare(subject),
            expansions: None,
            shapes: OnceLock::new(),
        }
    }

    fn bare(subject: &Subject<'_>) -> Item {
        Item {
            kind: subject.kind,
            upstream: subject.upstream.clone(),
            outward: subject.outward.into(),
            local: subject.local.into(),
            tags: Vec::new(),
            pinned: super::Hints::default(),
            claimed: super::Hints::default(),
            toolsets: Vec::new(),
            schema: None,
        }
    }

    /// Its type in policies.
    pub(super) const fn type_name(&self) -> &'static str {
        type_name(self.item.kind)
    }

    /// The arguments that an action has; `None` where it has none at all.
    pub(super) fn shapes(&self, action: Action) -> Option<&Shapes> {
        let read = match (action, self.item.kind) {
            (Action::Call, ItemKind::Tool) => Shapes::of_tool,
            (Action::Get, ItemKind::Prompt) => Shapes::of_prompt,
            _ => return None,
        };
        Some(self.shapes.get_or_init(|| {
            let schema = self.item.schema.as_ref();
            schema.map(read).unwrap_or_default()
        }))
    }
}

/// The type of a kind of item in policies.
pub(super) const fn type_name(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "Tool",
        ItemKind::Prompt => "Prompt",
        ItemKind::Resource | ItemKind::Template => "Resource",
    }
}

/// How much of a text is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// All of it.
    Whole,
    /// How it begins.
    Begins,
}

/// Where the parts of a URI are. Found by its punctuation alone: nothing is decoded, folded or resolved (SECURITY AUTHZ-9).
#[derive(Debug, Default)]
pub(super) struct Parts {
    scheme: std::ops::Range<usize>,
    host: std::ops::Range<usize>,
    path: std::ops::Range<usize>,
}

impl Parts {
    pub(super) fn of(uri: &str) -> Self {
        let Some(colon) = uri.find(':') else {
            return Self {
                path: 0..uri.len(),
                ..Self::default()
            };
        };
        let rest = colon + 1;
        let end = |from: usize, marks: &[char]| {
            uri[from..]
                .find(marks)
                .map_or(uri.len(), |found| from + found)
        };
        if !uri[rest..].starts_with("//") {
            return Self {
                scheme: 0..colon,
                host: 0..0,
                path: rest..end(rest, &['?', '#']),
            };
        }
        let authority = rest + 2;
        let path = end(authority, &['/', '?', '#']);
        let text = &uri[authority..path];
        // With user information, or what other readers may take for a path, the whole stands for the host: it is equal to none.
        let host = match text.rfind(':') {
            Some(port)
                if !text.contains(['@', '\\'])
                    && text[port + 1..].bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                authority..authority + port
            }
            _ => authority..path,
        };
        Self {
            scheme: 0..colon,
            host,
            path: path..end(path, &['?', '#']),
        }
    }

    /// What is known of the parts of every address that begins with `head`: each whole, or how it begins.
    pub(super) fn of_head(head: &str) -> [(&str, Known); 3] {
        let parts = Self::of(head);
        let Some(colon) = head.find(':') else {
            return [
                ("", Known::Begins),
                ("", Known::Begins),
                ("", Known::Begins),
            ];
        };
        let rest = &head[colon + 1..];
        let scheme = (parts.scheme(head), Known::Whole);
        if rest.len() < 2 && "//".starts_with(rest) {
            return [scheme, ("", Known::Begins), ("", Known::Begins)];
        }
        let ends = |marks: &[char], from: usize| head[from..].contains(marks);
        let authority = rest.starts_with("//");
        if authority && !ends(&['/', '?', '#'], colon + 3) {
            return [scheme, ("", Known::Begins), ("", Known::Begins)];
        }
        let path = if ends(&['?', '#'], parts.path.start) {
            Known::Whole
        } else {
            Known::Begins
        };
        [
            scheme,
            (parts.host(head), Known::Whole),
            (parts.path(head), path),
        ]
    }

    pub(super) fn scheme<'a>(&self, uri: &'a str) -> &'a str {
        uri.get(self.scheme.clone()).unwrap_or_default()
    }

    pub(super) fn host<'a>(&self, uri: &'a str) -> &'a str {
        uri.get(self.host.clone()).unwrap_or_default()
    }

    pub(super) fn path<'a>(&self, uri: &'a str) -> &'a str {
        uri.get(self.path.clone()).unwrap_or_default()
    }
}

/// All items of a catalog.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) all: Vec<Arc<Laid>>,
    index: HashMap<UpstreamId, [HashMap<Arc<str>, u32>; 4]>,
}

impl Items {
    /// Lays items out; those that are the same in `previous` are taken from there.
    pub(super) fn of(items: Vec<Item>, classes: &Classes, previous: Option<&Self>) -> Self {
        let mut laid = Self::default();
        let mut expansions = Vec::with_capacity(items.len());
        let listed = Listed::of(&items);
        for item in &items {
            let template = item.kind == ItemKind::Template;
            expansions.push(template.then(|| Expansions::of(item, &listed)));
        }
        for ((item, expansions), number) in items.into_iter().zip(expansions).zip(0..) {
            let known = previous.and_then(|items| {
                let known = items.find(item.kind, &item.upstream, &item.local)?;
                let known = &items.all[known as usize];
                (known.item == item && known.expansions == expansions).then(|| known.clone())
            });
            laid.index.entry(item.upstream.clone()).or_default()[item.kind as usize]
                .insert(item.local.clone(), number);
            laid.all
                .push(known.unwrap_or_else(|| Arc::new(Laid::of(item, expansions, classes))));
        }
        laid
    }

    /// The number of an item.
    pub(super) fn find(&self, kind: ItemKind, upstream: &UpstreamId, local: &str) -> Option<u32> {
        self.index.get(upstream)?[kind as usize].get(local).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_head_are_those_of_everything_that_begins_with_it() {
        let tails = [
            "", "/", "//", "a", "@b/", ":1/", "?q", "#f", "/x/y?z", "/a:b", ":", "//h/p",
        ];
        for head in [
            "",
            "f",
            "file",
            "file:",
            "file:/",
            "file://",
            "file:///",
            "file:///a",
            "a://h",
            "a://h:8",
            "a://h:80/",
            "a://h/p?",
            "note:x",
            "a://u@",
            "a:/p",
            "a://h#f",
        ] {
            let told = Parts::of_head(head);
            for tail in tails {
                let uri = format!("{head}{tail}");
                let parts = Parts::of(&uri);
                let found = [parts.scheme(&uri), parts.host(&uri), parts.path(&uri)];
                for (part, (told, known)) in found.into_iter().zip(told) {
                    let right = match known {
                        Known::Whole => part == told,
                        Known::Begins => part.starts_with(told),
                    };
                    assert!(right, "{uri}: {part:?}, but {told:?} {known:?} of {head}");
                }
            }
        }
    }

    #[test]
    fn parts_of_a_uri_are_what_its_punctuation_says() {
        for (uri, scheme, host, path) in [
            ("file:///etc/passwd", "file", "", "/etc/passwd"),
            (
                "https://a.example:8443/x/y?q#f",
                "https",
                "a.example",
                "/x/y",
            ),
            (
                "https://good.example@evil.example/",
                "https",
                "good.example@evil.example",
                "/",
            ),
            (
                "https://good.example\\@evil.example/",
                "https",
                "good.example\\@evil.example",
                "/",
            ),
            ("https://[::1]/x", "https", "[::1]", "/x"),
            ("HTTP://A.Example", "HTTP", "A.Example", ""),
            ("note:one/two?x", "note", "", "one/two"),
            ("nothing", "", "", "nothing"),
            ("", "", "", ""),
        ] {
            let parts = Parts::of(uri);
            let found = (parts.scheme(uri), parts.host(uri), parts.path(uri));
            assert_eq!(found, (scheme, host, path), "{uri}");
        }
    }
}
