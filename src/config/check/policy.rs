//! `policy:`, tags and annotations.

use std::path::{Path, PathBuf};

use super::{Check, globs};
use crate::{
    catalog::rules::{Labels, Pins},
    config::{
        PolicyPlan,
        problem::Findings,
        raw::{POLICY_DIR, Policy, Upstream},
        reference::beside,
        tree::Node,
    },
};

/// Where the directory is written.
const DIR: [&str; 2] = ["policy", "dir"];
/// The most characters of a tag.
const TAG_CHARS: usize = 64;

/// Where the policies are.
pub(super) fn policy(check: &mut Check<'_>, raw: Option<Policy>) -> Option<PolicyPlan> {
    let Policy { dir, enforce_cases } = raw?;
    if dir.as_deref() == Some("") {
        check.wrong(&DIR, "no directory", "such as `policies`");
    }
    Some(PolicyPlan {
        dir: place(&check.tree, check.findings, dir.as_deref()),
        enforce_cases,
    })
}

/// The directory that a tree names, whatever else is wrong with it; `None` where it has no `policy` block.
pub(in crate::config) fn dir(tree: &Node, findings: &Findings) -> Option<PathBuf> {
    let block = tree.member("policy")?;
    let written = block.member("dir").and_then(Node::as_text);
    Some(place(tree, findings, written))
}

/// A directory as it is written, from the file that writes it.
fn place(tree: &Node, findings: &Findings, written: Option<&str>) -> PathBuf {
    let file = findings.sources.get(tree.place_of(&DIR).file);
    let document = file.map_or("", |source| &source.name);
    beside(Path::new(document), written.unwrap_or(POLICY_DIR))
}

/// What the operator says of an upstream's items, for policies.
pub(super) fn labels(check: &mut Check<'_>, key: &str, raw: &Upstream) -> Labels {
    let mut tags = Vec::new();
    for (glob, names) in &raw.tags {
        let path = ["upstreams", key, "tags", glob.as_str()];
        globs(check, &path[..3], std::slice::from_ref(glob));
        for name in names {
            let count = name.chars().count();
            if count == 0 || count > TAG_CHARS || name.chars().any(char::is_control) {
                check.wrong(&path, "not a tag", "a word of at most 64 characters");
            }
        }
        let names = names.iter().map(|name| name.as_str().into()).collect();
        tags.push((glob.clone(), names));
    }
    let mut pins = Vec::new();
    for (glob, hints) in &raw.tools.annotations.0 {
        let path = ["upstreams", key, "tools", "annotations"];
        globs(check, &path, std::slice::from_ref(glob));
        let pinned = Pins {
            read_only: hints.read_only,
            destructive: hints.destructive,
            idempotent: hints.idempotent,
            open_world: hints.open_world,
        };
        pins.push((glob.clone(), pinned));
    }
    Labels { tags, pins }
}
