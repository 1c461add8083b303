//! What strict clients take of a definition: for a member of another form they refuse the whole list that it stands in.
//!
//! Guarantees: a member that may be left out and is of no form that they take is none of what is shown, and the rest of its item stays
//! byte for byte. None of these is of use to anybody as it is. Deliberately absent: the members that an item is nothing without,
//! for which it is left out whole (`check`), and icons (`convert`).

use crate::{
    json::{Edits, Fate, Json, Kind, Node},
    protocol::{meta::META, methods::ListKind},
};

/// Whether an optional member of a definition may be what it is; what is not known may be anything.
pub(super) fn takes(kind: ListKind, key: &str, value: Node<'_>) -> bool {
    let wanted = match (kind, key) {
        // `null`, where a member is optional, says the same as leaving it out, of whatever kind the item is.
        (
            _,
            "description" | "title" | "annotations" | "icons" | META | "outputSchema" | "execution"
            | "arguments" | "mimeType" | "size",
        ) if value.kind() == Kind::Null => return false,
        (_, "description" | "title") => Kind::String,
        (_, "annotations" | META) => Kind::Object,
        (ListKind::Tools, "outputSchema" | "execution") => Kind::Object,
        (ListKind::Prompts, "arguments") => Kind::Array,
        (ListKind::Resources | ListKind::Templates, "mimeType") => Kind::String,
        (ListKind::Resources | ListKind::Templates, "size") => return is_size(value),
        _ => return true,
    };
    value.kind() == wanted
}

/// Leaves out what is of no such form inside the annotations of an item that has some, and adds a `title` to them that they have not.
pub(super) fn annotations(kind: ListKind, hints: Node<'_>, title: Option<Json>, edits: &mut Edits) {
    let fits = |key: &str, value: Node<'_>| match kind {
        ListKind::Tools => is_tool_hint(key, value),
        ListKind::Resources | ListKind::Templates => is_hint(key, value),
        ListKind::Prompts | ListKind::Skills => true,
    };
    let has = |key: &str| hints.member(key).is_some_and(|value| fits(key, value));
    let more: Vec<_> = title
        .filter(|_| !has("title"))
        .map(|title| ("title", title))
        .into_iter()
        .collect();
    sift(hints, fits, &more, edits);
}

/// The same inside `execution` of a tool.
pub(super) fn execution(execution: Node<'_>, edits: &mut Edits) {
    let fits = |key: &str, value: Node<'_>| {
        let is = |word: &str| matches!(word, "required" | "optional" | "forbidden");
        key != "taskSupport" || value.as_str().is_some_and(|word| is(&word))
    };
    sift(execution, fits, &[], edits);
}

/// The same inside the `arguments` of a prompt.
pub(super) fn arguments(arguments: Node<'_>, edits: &mut Edits) {
    let fits = |key: &str, value: Node<'_>| match key {
        "description" | "title" => value.kind() == Kind::String,
        "required" => value.kind() == Kind::Bool,
        _ => true,
    };
    for argument in arguments.elements() {
        sift(argument, fits, &[], edits);
    }
}

/// Whether the root of a schema that is an object has the form that clients of revisions before 2026-07-28 take. `true` and `false`
/// are said in another form to them (`convert`).
pub(super) fn is_root(schema: Node<'_>) -> bool {
    let names = schema.member("required");
    let properties = schema.member("properties");
    let is_property = |value: Node<'_>| matches!(value.kind(), Kind::Object | Kind::Bool);
    names.is_none_or(|names| is_array_of(names, |_| true))
        && properties.is_none_or(|all| {
            all.kind() == Kind::Object && all.members().all(|member| is_property(member.value))
        })
}

/// Leaves out the members that do not fit, and adds `more`. What needs no change is not touched.
fn sift(
    object: Node<'_>,
    fits: impl Fn(&str, Node<'_>) -> bool,
    more: &[(&str, Json)],
    edits: &mut Edits,
) {
    if more.is_empty() && object.members().all(|it| fits(&it.key, it.value)) {
        return;
    }
    let fate = |key: &str, value: Node<'_>| {
        if fits(key, value) {
            Fate::Keep
        } else {
            Fate::Remove
        }
    };
    edits.members(object, fate, more);
}

/// Whether a member of a tool's annotations may be one.
fn is_tool_hint(key: &str, value: Node<'_>) -> bool {
    match key {
        "title" => value.kind() == Kind::String,
        "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
            value.kind() == Kind::Bool
        }
        _ => true,
    }
}

/// Whether a member of a resource's annotations may be one.
fn is_hint(key: &str, value: Node<'_>) -> bool {
    match key {
        "audience" => is_array_of(value, |role| matches!(role, "user" | "assistant")),
        "priority" => {
            let number = (value.kind() == Kind::Number).then(|| value.raw().parse::<f64>());
            number.is_some_and(|number| number.is_ok_and(|it| (0.0..=1.0).contains(&it)))
        }
        "lastModified" => value.as_str().is_some_and(|time| is_time(&time)),
        _ => true,
    }
}

/// Whether this is a whole number of bytes.
fn is_size(value: Node<'_>) -> bool {
    value.as_i64().is_some() && !value.raw().starts_with('-')
}

/// Whether this is a date and a time of day with its offset, in the one spelling that all clients read (RFC 3339).
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied();
    let before_end = |back: usize| bytes.len().checked_sub(back).and_then(at);
    let has_offset = before_end(3) == Some(b':') && matches!(before_end(6), Some(b'+' | b'-'));
    (at(10), at(13), at(16)) == (Some(b'T'), Some(b':'), Some(b':'))
        && (has_offset || before_end(1) == Some(b'Z'))
        // No client but few knows of leap seconds.
        && at(17) != Some(b'6')
        && !text.contains(',')
        && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_array_of(value: Node<'_>, fits: impl Fn(&str) -> bool) -> bool {
    let mut all = value.elements();
    value.kind() == Kind::Array && all.all(|one| one.as_str().is_some_and(|text| fits(&text)))
}
