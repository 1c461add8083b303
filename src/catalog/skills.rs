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

/// What of an upstream's resources are files of its skills, beside those whose URIs say so.
#[derive(Debug, Default)]
pub(super) struct Files {
    listed: HashSet<Box<str>>,
    /// Directories of skills whose files are not listed.
    below: Vec<Box<str>>,
}

impl Files {
    /// Those of a list's entries, sound or not: who reads the list itself goes by it.
    pub(super) fn of(entries: &[Json]) -> Self {
        let mut all = Self::default();
        for entry in entries.iter().map(Json::root) {
            let dynamic = entry.member("resources").map(Node::kind) == Some(Kind::String);
            let own = entry.member("uri").and_then(Node::as_str);
            let own = own.filter(|uri| !says_so(uri));
            if let Some((directory, _)) = own.as_deref().and_then(|uri| uri.rsplit_once('/'))
                && dynamic
            {
                all.below.push(format!("{directory}/").into());
            }
            let listed = files(entry).filter_map(|file| file.member("uri")?.as_str());
            let listed = listed.filter(|uri| !says_so(uri));
            all.listed
                .extend(own.into_iter().chain(listed).map(Box::from));
        }
        all
    }

    /// Whether this is one: whoever reads it holds it against a digest (PROTOCOL E).
    pub(super) fn hold(&self, local: &str) -> bool {
        let mut below = self.below.iter();
        says_so(local)
            || self.listed.contains(local)
            || below.any(|directory| local.starts_with(&**directory))
    }
}

/// Whether a URI is that of a skill's file by its spelling.
fn says_so(uri: &str) -> bool {
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
