//! One tree from a file and everything it includes.
//!
//! Mappings of the first level are joined, so that files can each add upstreams or toolsets; whatever else is set twice
//! is a problem. Values keep the file and line they come from.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use super::{
    problem::{Findings, SourceSpan},
    reference::{self, Named, Vars},
    secrets::{holds_secret, sounds_secret},
    tree::{Node, Origin, Scalar, Value, written},
    yaml,
};

/// Files that one configuration may be made of.
const MAX_FILES: usize = 64;

/// The joined tree, references resolved; `None` if the first file gave nothing to look at.
pub(super) fn gather(path: &Path, vars: Vars<'_>, findings: &mut Findings) -> Option<Node> {
    let mut gathering = Gathering {
        seen: HashSet::new(),
        vars,
        findings,
    };
    gathering.seen.insert(reference::identity(path));
    gathering.file(path, None)
}

/// The tree of one text that is already at hand.
pub(super) fn parse(
    text: &str,
    file: usize,
    base: &Path,
    vars: Vars<'_>,
    findings: &mut Findings,
) -> Option<Node> {
    let mut tree = yaml::read(text, file, findings)?;
    findings.sources[file].shown = blotted(text, &mut tree);
    reference::resolve(&mut tree, base, vars, findings);
    Some(tree)
}

struct Gathering<'a> {
    seen: HashSet<PathBuf>,
    vars: Vars<'a>,
    findings: &'a mut Findings,
}

impl Gathering<'_> {
    /// The tree of a file with what it includes; `included` is where another one names it.
    fn file(&mut self, path: &Path, included: Option<SourceSpan>) -> Option<Node> {
        let file = self.findings.add_source(path.display().to_string());
        let named = match included {
            None => Named {
                place: SourceSpan::whole(file),
                path: "",
                hint: "`usher init` writes one to begin with; `-c FILE` names another",
            },
            Some(place) => Named {
                place,
                path: "include",
                hint: "`include` names files relative to this one; write it, or take it out of the list",
            },
        };
        let text = reference::read_document(path, &named, file, self.findings)?;
        let base = reference::directory_of(path);
        let mut tree = parse(&text, file, &base, self.vars, self.findings)?;
        let included: Vec<(PathBuf, SourceSpan)> = tree
            .member("include")
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(|item| Some((reference::beside(path, item.as_text()?), item.place)))
            .collect();
        for (path, place) in included {
            if !self.seen.insert(reference::identity(&path)) {
                self.findings
                    .report(place, "include", "this file is already part of it", "");
            } else if self.seen.len() > MAX_FILES {
                self.findings.report(place, "include", "too many files", "");
            } else if let Some(other) = self.file(&path, Some(place)) {
                self.join(&mut tree, other);
            }
        }
        Some(tree)
    }

    fn join(&mut self, tree: &mut Node, other: Node) {
        let Value::Map(others) = other.value else {
            self.findings
                .report(other.place, "", "expected a mapping of keys", "");
            return;
        };
        for entry in others {
            if entry.key == "include" {
                continue;
            }
            let Value::Map(entries) = &mut tree.value else {
                return;
            };
            let Some(mine) = entries.iter_mut().find(|mine| mine.key == entry.key) else {
                entries.push(entry);
                continue;
            };
            if mine.node.scalar().is_some_and(Scalar::is_null) {
                *mine = entry;
                continue;
            }
            match (&mut mine.node.value, entry.node.value) {
                (Value::Map(mine), Value::Map(others)) => {
                    for other in others {
                        match mine.iter().find(|mine| mine.key == other.key) {
                            None => mine.push(other),
                            Some(first) => self.twice(
                                &[entry.key.as_str(), other.key.as_str()],
                                other.key_place,
                                first.key_place,
                            ),
                        }
                    }
                }
                (_, Value::Scalar(scalar)) if scalar.is_null() => {}
                _ => self.twice(&[entry.key.as_str()], entry.key_place, mine.key_place),
            }
        }
    }

    fn twice(&mut self, path: &[&str], second: SourceSpan, first: SourceSpan) {
        let name = &self.findings.sources[first.file].name;
        let hint = format!("it is already set in {name}, line {}", first.line);
        self.findings
            .report(second, written(path), "set in two files", hint);
    }
}

/// The text with every written value blotted out that stands where secrets stand or holds one, so that it can be shown.
pub(super) fn blotted(text: &str, tree: &mut Node) -> String {
    let mut blots: Vec<(usize, usize)> = Vec::new();
    tree.each_scalar(&mut Vec::new(), &mut |path, place, scalar| {
        let placed = secret_place(path) && !scalar.text.contains("${");
        let secret = placed || holds_secret(&scalar.text);
        if scalar.origin == Origin::Written && secret {
            blots.push((place.start, place.end));
        }
    });
    if blots.is_empty() {
        return text.to_owned();
    }
    blots.sort_unstable();
    let mut blots = blots.into_iter().peekable();
    text.chars()
        .enumerate()
        .map(|(index, char)| {
            while blots.next_if(|(_, end)| *end <= index).is_some() {}
            let inside = blots.peek().is_some_and(|(start, _)| *start <= index);
            if inside && char != '\n' { '*' } else { char }
        })
        .collect()
}

fn secret_place(path: &[String]) -> bool {
    // At the top `auth` is about clients, and what is secret in it is called so.
    let inside = path.iter().skip(1);
    let placed = inside
        .chain(path.first().filter(|first| first.as_str() != "auth"))
        .any(|step| matches!(step.as_str(), "auth" | "headers" | "args"));
    placed
        || path
            .iter()
            .rev()
            .find(|step| step.parse::<usize>().is_err())
            .is_some_and(|key| sounds_secret(key))
}
