//! Variables inside one text of another program's file, turned into our references.

use std::{collections::BTreeMap, path::Path};

use super::places;
use crate::config::Vars;

/// What was met in a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// The text refers to this variable of the environment.
    Variable(String),
    /// The text asks for this input (VS Code), which becomes the variable.
    Input(String, String),
}

/// What a text may refer to.
pub(super) struct Surroundings<'a> {
    pub(super) workspace: &'a Path,
    /// The server's own variables: programs expand these themselves, from what the file gives them.
    pub(super) own: &'a BTreeMap<String, String>,
    pub(super) vars: Vars<'a>,
}

/// `text` in our spelling; what cannot be translated stays, for the checks to find.
pub(super) fn translate(text: &str, around: &Surroundings<'_>, met: &mut Vec<Met>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, tail)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        out.push_str(&one(inside, around, met));
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn one(inside: &str, around: &Surroundings<'_>, met: &mut Vec<Met>) -> String {
    if let Some(place) = places::place(inside, around.workspace, around.vars) {
        return place;
    }
    if let Some(value) = around.own.get(inside) {
        return value.clone();
    }
    if let Some(id) = inside.strip_prefix("input:") {
        let name = variable_name(id);
        met.push(Met::Input(id.to_owned(), name.clone()));
        return format!("${{env:{name}}}");
    }
    if let Some(name) = inside.strip_prefix("env:") {
        met.push(Met::Variable(name.to_owned()));
        return format!("${{env:{name}}}");
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match default {
        _ if !is_name => format!("${{{inside}}}"),
        Some(default) if (around.vars)(name).is_none() => default.to_owned(),
        _ => {
            met.push(Met::Variable(name.to_owned()));
            format!("${{env:{name}}}")
        }
    }
}

/// A name for a variable made of some text: `api-key` is `API_KEY`.
pub(super) fn variable_name(text: &str) -> String {
    let mut name: String = text
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}
