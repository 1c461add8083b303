//! Skill entries: what one must hold, and where its URIs are (skills extension; PROTOCOL E).
//!
//! Guarantees: an entry's URIs are those under which its files can be read here; frontmatter, digests and sizes stay byte for
//! byte, since hosts hold them against what they read.

use std::collections::HashSet;

use super::{namespace::Namespace, report::Reason};
use crate::json::{Edits, Json, Kind, Node};

/// The most files of one skill that hosts must take.
const FILES: usize = 512;

/// Checks what hosts check: an entry without these is not loaded by any.
pub(super) fn check(entry: Node<'_>) -> Result<(), Reason> {
    let frontmatter = entry
        .member("frontmatter")
        .ok_or(Reason::Missing("frontmatter"))?;
    for member in ["name", "description"] {
        if frontmatter.member(member).and_then(Node::as_str).is_none() {
            return Err(Reason::WrongType("frontmatter"));
        }
    }
    let resources = entry
        .member("resources")
        .ok_or(Reason::Missing("resources"))?;
    match resources.kind() {
        Kind::String if resources.as_str().as_deref() == Some("dynamic") => Ok(()),
        Kind::Array => {
            let sound = |file: Node<'_>| {
                let kind = |member| file.member(member).map(Node::kind);
                kind("uri") == Some(Kind::String)
                    && kind("digest") == Some(Kind::String)
                    && kind("size") == Some(Kind::Number)
            };
            if resources.elements().take(FILES + 1).count() > FILES {
                Err(Reason::TooMany(FILES))
            } else if resources.elements().all(sound) {
                Ok(())
            } else {
                Err(Reason::WrongType("resources"))
            }
        }
        Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
            Err(Reason::WrongType("resources"))
        }
    }
}

/// The files of an entry.
pub(super) fn files(entry: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let resources = entry.member("resources");
    resources.into_iter().flat_map(Node::elements)
}

/// What of an upstream's resources are files of its skills, beside those whose URIs say so. Of a list that is cut here the rest
/// is not known: nobody is shown an entry of it either.
#[derive(Debug, Default)]
pub struct Files {
    listed: HashSet<Box<str>>,
    /// Directories of skills whose files are not listed.
    below: HashSet<Box<str>>,
    /// Of all of these.
    bytes: usize,
}

impl Files {
    /// Those of the first `most` entries of a list that are no longer than `bytes`, sound or not: who reads the list elsewhere goes
    /// by it.
    pub(super) fn of(entries: &[Json], most: usize, bytes: usize) -> Self {
        let mut all = Self::default();
        let entries = entries.iter().take(most);
        let entries = entries.filter(|entry| entry.bytes().len() <= bytes);
        entries.for_each(|entry| all.add(entry.root()));
        all
    }

    /// Takes in those of one entry.
    pub fn add(&mut self, entry: Node<'_>) {
        let dynamic = entry.member("resources").map(Node::kind) == Some(Kind::String);
        let own = entry.member("uri").and_then(Node::as_str);
        let own = own.filter(|uri| !says_so(uri));
        let path = own
            .as_deref()
            .map(|uri| &uri[..uri.find(['?', '#']).unwrap_or(uri.len())]);
        if let Some((directory, _)) = path.and_then(|path| path.rsplit_once('/'))
            && dynamic
        {
            keep(
                &mut self.below,
                format!("{directory}/").into(),
                &mut self.bytes,
            );
        }
        // A skill with more files is loaded by no host.
        let listed = files(entry).take(FILES);
        let listed = listed.filter_map(|file| file.member("uri")?.as_str());
        let listed = listed.filter(|uri| !says_so(uri));
        for uri in own.into_iter().chain(listed) {
            keep(&mut self.listed, uri.into(), &mut self.bytes);
        }
    }

    /// Takes in those of other entries.
    pub fn extend(&mut self, other: Self) {
        for directory in other.below {
            keep(&mut self.below, directory, &mut self.bytes);
        }
        for uri in other.listed {
            keep(&mut self.listed, uri, &mut self.bytes);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.below.is_empty()
    }

    /// Whether there are no more names than this, of no more bytes together.
    pub fn are_within(&self, (names, bytes): (usize, usize)) -> bool {
        self.listed.len() + self.below.len() <= names && self.bytes <= bytes
    }

    /// Whether this is one.
    pub fn hold(&self, local: &str) -> bool {
        let mut below = self.below.iter();
        self.listed.contains(local) || below.any(|directory| local.starts_with(&**directory))
    }
}

fn keep(names: &mut HashSet<Box<str>>, name: Box<str>, bytes: &mut usize) {
    let length = name.len();
    if names.insert(name) {
        *bytes += length;
    }
}

/// Whether a URI is that of a skill's file by its spelling.
pub(super) fn says_so(uri: &str) -> bool {
    uri.starts_with("skill://")
}

/// Puts the URIs of an entry's files in their outward form.
pub(super) fn outward(entry: Node<'_>, namespace: &Namespace, edits: &mut Edits) {
    for uri in files(entry).filter_map(|file| file.member("uri")) {
        if let Some(outward) = uri.as_str().and_then(|local| namespace.outward_uri(&local)) {
            edits.replace(uri, Json::string(&outward));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn files_of(entries: &[&str], most: usize, bytes: usize) -> Files {
        let read = |text: &&str| Json::parse(text.to_string().into(), &Limits::LIST).unwrap();
        let entries: Vec<_> = entries.iter().map(read).collect();
        Files::of(&entries, most, bytes)
    }

    const DYNAMIC: &str = r#"{"uri":"git://r/b/SKILL.md?ref=x/y","resources":"dynamic"}"#;
    const LISTED: &str = r#"{"uri":"git://r/a/SKILL.md","resources":[{"uri":"git://r/a/b.md"},{"uri":"skill://c"},{"uri":7}]}"#;

    #[test]
    fn what_is_listed_and_what_lies_beside_what_lists_nothing_is_of_a_skill() {
        let files = files_of(&[DYNAMIC, LISTED, r#"{"uri":7}"#, "1"], 10, 1_000);
        for (local, is_one) in [
            ("git://r/a/SKILL.md", true),
            ("git://r/a/b.md", true),
            ("git://r/a/c.md", false),
            ("git://r/b/SKILL.md?ref=x/y", true),
            ("git://r/b/any/thing.md", true),
            ("git://r/bc", false),
        ] {
            assert_eq!(files.hold(local), is_one, "{local}");
        }
        assert_eq!(files.listed.len(), 3, "what says so is not kept");
    }

    #[test]
    fn no_more_is_kept_than_a_list_may_hold() {
        assert!(files_of(&[DYNAMIC, LISTED], 1, 1_000).listed.len() == 1);
        assert!(!files_of(&[LISTED], 1, LISTED.len() - 1).hold("git://r/a/b.md"));
        assert!(files_of(&[LISTED], 1, LISTED.len()).hold("git://r/a/b.md"));
        let many: Vec<_> = (0..=FILES)
            .map(|n| format!(r#"{{"uri":"git://f/{n}"}}"#))
            .collect();
        let many = format!(r#"{{"resources":[{}]}}"#, many.join(","));
        assert_eq!(files_of(&[&many], 1, many.len()).listed.len(), FILES);
    }
}
