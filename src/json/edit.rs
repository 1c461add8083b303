//! Edits to a value: replacements and insertions gathered in any order, applied in one copy.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Json, Kind, Node, Span, push_string};

/// Replacements of spans of one value; an insertion replaces an empty span.
///
/// Spans must not overlap and must keep the value well formed, which the methods see to. Insertions at one place
/// stay in the order they were made.
#[derive(Debug, Default, Clone)]
pub struct Edits {
    list: Vec<(Span, Bytes)>,
}

/// What becomes of one member in [`Edits::members`].
#[derive(Debug, Clone)]
pub enum Fate {
    /// It stays as it is.
    Keep,
    /// It goes, with its comma.
    Remove,
    /// It keeps its name and gets this value.
    Replace(Json),
}

impl Edits {
    /// No edits.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Whether nothing changes.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Puts `value` in the place of `node`.
    pub fn replace(&mut self, node: Node<'_>, value: Json) {
        self.list.push((node.span(), value.bytes().clone()));
    }

    /// Puts `text`, escaped as need be, in the place of `part` of the inside of a string: both ends lie between characters and
    /// not inside an escape.
    pub fn rewrite(&mut self, part: Span, text: &str) {
        self.put(part, inside(text));
    }

    /// The same with what is spelled already, by [`inside`].
    pub(crate) fn put(&mut self, part: Span, inside: Bytes) {
        self.list.push((part, inside));
    }

    /// Decides each member of `object`, then adds `more` members at its end. Names in `more` must be new or removed here. What is
    /// no object has no members and gets none: it stays as it is.
    pub fn members(
        &mut self,
        object: Node<'_>,
        mut fate: impl FnMut(&str, Node<'_>) -> Fate,
        more: &[(&str, Json)],
    ) {
        if object.kind() != Kind::Object {
            return;
        }
        let open = object.span().start + 1;
        let mut kept_end: Option<usize> = None; // one past the last member that stays
        let mut gap: Option<usize> = None; // where the removal that is still open began
        for member in object.members() {
            match fate(&member.key, member.value) {
                Fate::Remove => {
                    gap = gap.or(Some(kept_end.unwrap_or(open)));
                    continue;
                }
                Fate::Keep => {}
                Fate::Replace(value) => self.replace(member.value, value),
            }
            if let Some(start) = gap.take() {
                // Members before this one went: with a kept one before them its comma stays in their place.
                let comma = if kept_end.is_some() {
                    Bytes::from_static(b",")
                } else {
                    Bytes::new()
                };
                self.list.push((
                    Span {
                        start,
                        end: member.span.start,
                    },
                    comma,
                ));
            }
            kept_end = Some(member.span.end);
        }
        let close = object.span().end - 1;
        let tail = members_text(kept_end.is_none(), more);
        let start = gap.or(kept_end).unwrap_or(close);
        if gap.is_some() || !tail.is_empty() {
            self.list.push((
                Span {
                    start,
                    end: if gap.is_some() { close } else { start },
                },
                tail.into(),
            ));
        }
    }

    /// Adds `more` members at the end of `object`, whose other members were looked at already: `empty` says whether it has
    /// none. Names in `more` must be new, and none of the members there may be removed beside this. What is no object stays as it
    /// is.
    pub fn append(&mut self, object: Node<'_>, empty: bool, more: &[(&str, Json)]) {
        if more.is_empty() || object.kind() != Kind::Object {
            return;
        }
        let tail = members_text(empty, more);
        let close = object.span().end - 1;
        self.list.push((
            Span {
                start: close,
                end: close,
            },
            tail.into(),
        ));
    }

    /// Adds `item` at the end of `array`, which has others. What is no array stays as it is.
    pub fn push(&mut self, array: Node<'_>, item: &Json) {
        if array.kind() != Kind::Array {
            return;
        }
        let mut tail = Vec::with_capacity(item.len() + 1);
        tail.push(b',');
        tail.extend_from_slice(item.bytes());
        let close = array.span().end - 1;
        self.list.push((
            Span {
                start: close,
                end: close,
            },
            tail.into(),
        ));
    }

    /// Sets one member of `object`, in its place if it is there, else at the end. What is no object stays as it is.
    pub fn set(&mut self, object: Node<'_>, key: &str, value: Json) {
        match object.member(key) {
            Some(old) => self.replace(old, value),
            None => self.members(object, |_, _| Fate::Keep, &[(key, value)]),
        }
    }

    pub(super) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut list = Cow::Borrowed(&self.list[..]);
        if !list.is_sorted_by_key(|(span, _)| (span.start, span.end)) {
            list.to_mut()
                .sort_by_key(|(span, _)| (span.start, span.end));
        }
        let added: usize = list.iter().map(|(_, new)| new.len()).sum();
        let gone: usize = list.iter().map(|(span, _)| span.end - span.start).sum();
        // Exactly as much as is needed: what is shared then is the text and nothing beside it.
        let mut out = Vec::with_capacity(text.len() + added - gone);
        let mut at = 0;
        for (span, new) in &*list {
            debug_assert!(span.start >= at, "edits overlap");
            out.extend_from_slice(&text[at..span.start]);
            out.extend_from_slice(new);
            at = span.end;
        }
        out.extend_from_slice(&text[at..]);
        out
    }
}

/// How a text is spelled inside of a string.
pub(crate) fn inside(text: &str) -> Bytes {
    if text.is_empty() {
        return Bytes::new();
    }
    let mut spelled = Vec::with_capacity(text.len() + 2);
    push_string(&mut spelled, text);
    let inside = 1..spelled.len() - 1;
    Bytes::from(spelled).slice(inside)
}

/// Members as text, each with its comma but the first of an object without others.
fn members_text(first: bool, members: &[(&str, Json)]) -> Vec<u8> {
    let size = members
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    let commas = usize::from(first && !members.is_empty());
    let mut text = Vec::with_capacity(size.sum::<usize>() - commas);
    for (i, (name, value)) in members.iter().enumerate() {
        if !(first && i == 0) {
            text.push(b',');
        }
        push_string(&mut text, name);
        text.push(b':');
        text.extend_from_slice(value.bytes());
    }
    text
}
