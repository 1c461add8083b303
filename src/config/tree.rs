//! A configuration text as a tree in which every key and value knows its place.
//!
//! Untyped on purpose: interpolation and merging work on it, [`super::typed`] reads it into types. It holds resolved
//! secrets, so scalars are cleared on drop and never shown.

use std::{collections::BTreeSet, fmt, path::PathBuf};

use zeroize::Zeroizing;

use super::problem::SourceSpan;

/// One value.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) place: SourceSpan,
    pub(super) value: Value,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One member of a mapping.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_place: SourceSpan,
    pub(super) node: Node,
}

/// A scalar as text; what type it has is up to whoever reads it.
#[derive(Clone)]
pub(super) struct Scalar {
    pub(super) text: Zeroizing<String>,
    /// Written without quotes, so that `true`, `5` and `null` are not text.
    pub(super) plain: bool,
    pub(super) origin: Origin,
}

/// Where the text of a scalar comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The document itself.
    Written,
    /// At least in part a reference; `exposed` names a file that everybody on the machine may read.
    Referenced {
        exposed: Option<PathBuf>,
        /// The text with its references as they stand in the document.
        written: String,
    },
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(..)")
    }
}

impl Scalar {
    /// Whether this is YAML's null: nothing, `~` or `null` without quotes.
    pub(super) fn is_null(&self) -> bool {
        self.plain && matches!(self.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// A text that stands at `place`.
    pub(super) fn text(place: SourceSpan, text: impl Into<String>) -> Self {
        Self {
            place,
            value: Value::Scalar(Scalar {
                text: Zeroizing::new(text.into()),
                plain: false,
                origin: Origin::Written,
            }),
        }
    }

    /// A list.
    pub(super) const fn list(place: SourceSpan, items: Vec<Self>) -> Self {
        Self {
            place,
            value: Value::List(items),
        }
    }

    /// A mapping.
    pub(super) const fn map(place: SourceSpan, entries: Vec<Entry>) -> Self {
        Self {
            place,
            value: Value::Map(entries),
        }
    }

    /// The scalar, if this is one.
    pub(super) const fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The text, if this is a scalar other than null.
    pub(super) fn as_text(&self) -> Option<&str> {
        self.scalar()
            .filter(|scalar| !scalar.is_null())
            .map(|scalar| scalar.text.as_str())
    }

    /// The members; none if this is no mapping.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar(_) | Value::List(_) => &[],
        }
    }

    /// The elements; none if this is no list.
    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => &[],
        }
    }

    /// The member with this key.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of the member with this key.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The value at the end of `path`; list elements are addressed by their index in digits.
    pub(super) fn at<S: AsRef<str>>(&self, path: &[S]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let next = match &self.value {
            Value::Map(_) => self.member(first.as_ref())?,
            Value::List(items) => items.get(first.as_ref().parse::<usize>().ok()?)?,
            Value::Scalar(_) => return None,
        };
        next.at(rest)
    }

    /// The place of the value at `path`, or of the key of the nearest thing around it that exists.
    pub(super) fn place_of<S: AsRef<str>>(&self, path: &[S]) -> SourceSpan {
        if let Some(node) = self.at(path) {
            // An empty value has no width: its key says more.
            let empty = node.scalar().is_some_and(Scalar::is_null);
            if !empty && !matches!(node.value, Value::Map(_)) {
                return node.place;
            }
        }
        self.key_place_of(path)
    }

    /// The place of the key at `path`, or of the key of the nearest thing around it that exists.
    pub(super) fn key_place_of<S: AsRef<str>>(&self, path: &[S]) -> SourceSpan {
        for length in (1..=path.len()).rev() {
            let (last, parents) = (&path[length - 1], &path[..length - 1]);
            let Some(parent) = self.at(parents) else {
                continue;
            };
            match &parent.value {
                Value::Map(_) => {
                    if let Some(entry) = parent.entry(last.as_ref()) {
                        return entry.key_place;
                    }
                }
                Value::List(_) => {
                    if let Some(node) = self.at(&path[..length]) {
                        return node.place;
                    }
                }
                Value::Scalar(_) => {}
            }
        }
        SourceSpan::whole(self.place.file)
    }

    /// `message` without the text that a reference at `path` brought: it may be a secret.
    pub(super) fn redacted<S: AsRef<str>>(&self, path: &[S], message: String) -> String {
        match self.at(path).and_then(Self::scalar) {
            Some(scalar) if scalar.origin != Origin::Written && !scalar.text.is_empty() => {
                message.replace(scalar.text.as_str(), "…")
            }
            _ => message,
        }
    }

    /// Takes the value at `path` out, so that the rest can be read without it.
    pub(super) fn strike(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else {
            self.value = Value::Map(Vec::new());
            return;
        };
        match &mut self.value {
            Value::Map(entries) if rest.is_empty() => entries.retain(|entry| entry.key != *first),
            Value::Map(entries) => {
                if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *first) {
                    entry.node.strike(rest);
                }
            }
            Value::List(items) => {
                if let Some(index) = first.parse::<usize>().ok().filter(|at| *at < items.len()) {
                    if rest.is_empty() {
                        drop(items.remove(index));
                    } else {
                        items[index].strike(rest);
                    }
                }
            }
            Value::Scalar(_) => {}
        }
    }

    /// The path at which the value at `path` was written: the elements of lists before it that [`Node::strike`] has taken out, of
    /// which `struck` holds such paths, are counted.
    pub(super) fn as_written<S: AsRef<str>>(
        &self,
        path: &[S],
        struck: &[Vec<String>],
    ) -> Vec<String> {
        let mut whole: Vec<String> = Vec::with_capacity(path.len());
        for (depth, step) in path.iter().enumerate() {
            let step = step.as_ref();
            let around = self.at(&path[..depth]);
            let in_list = around.is_some_and(|node| matches!(node.value, Value::List(_)));
            let index = step.parse::<usize>().ok().filter(|_| in_list);
            let step = index.map_or_else(
                || step.to_owned(),
                |index| {
                    let gone = struck
                        .iter()
                        .filter(|gone| gone.len() == depth + 1 && gone.starts_with(&whole));
                    let gone = gone.filter_map(|gone| gone[depth].parse::<usize>().ok());
                    let gone: BTreeSet<usize> = gone.collect();
                    let shifted = |index, gone| index + usize::from(gone <= index);
                    gone.into_iter().fold(index, shifted).to_string()
                },
            );
            whole.push(step);
        }
        whole
    }

    /// Calls `see` on every scalar with the path that leads to it.
    pub(super) fn each_scalar(
        &mut self,
        path: &mut Vec<String>,
        see: &mut impl FnMut(&[String], SourceSpan, &mut Scalar),
    ) {
        match &mut self.value {
            Value::Scalar(scalar) => see(path, self.place, scalar),
            Value::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    path.push(index.to_string());
                    item.each_scalar(path, see);
                    drop(path.pop());
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    path.push(entry.key.clone());
                    entry.node.each_scalar(path, see);
                    drop(path.pop());
                }
            }
        }
    }
}

/// A path as people write it: `upstreams.github.command[0]`.
pub(super) fn written<S: AsRef<str>>(path: &[S]) -> String {
    let mut out = String::new();
    for step in path {
        let step = step.as_ref();
        if step.parse::<usize>().is_ok() {
            out.push('[');
            out.push_str(step);
            out.push(']');
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(step);
        }
    }
    out
}
