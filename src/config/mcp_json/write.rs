//! A tree as the text of a configuration, for people to read and edit.

use super::Export;
use crate::{
    config::tree::{Node, Value},
    json::Json,
};

/// The whole text, with what has to be exported on top.
pub(super) fn yaml(tree: &Node, exports: &[Export]) -> String {
    let mut out = String::from(
        "# Made by `usher import`. Check it with `usher check`, run it with `usher serve`.\n",
    );
    if !exports.is_empty() {
        out.push_str("# Needs in the environment:\n");
        for export in exports {
            let from = export.from.replace(['\n', '\r'], " ");
            out.push_str(&format!("#   {}   ({from})\n", export.name));
        }
    }
    out.push('\n');
    put(tree, 0, &mut out);
    out
}

/// One value as a block of text, without its places: equal values give equal texts.
pub(super) fn block(node: &Node) -> String {
    let mut out = String::new();
    put(node, 0, &mut out);
    out
}

/// The same of a mapping without the member of this name.
pub(super) fn block_without(node: &Node, name: &str) -> String {
    let mut entries = node.entries().to_vec();
    entries.retain(|entry| entry.key != name);
    block(&Node::map(node.place, entries))
}

fn put(node: &Node, depth: usize, out: &mut String) {
    for entry in node.entries() {
        out.push_str(&"  ".repeat(depth));
        out.push_str(&quoted(&entry.key));
        out.push(':');
        match &entry.node.value {
            Value::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
            Value::Map(_) => {
                out.push('\n');
                put(&entry.node, depth + 1, out);
            }
            Value::List(items) => {
                let items: Vec<String> = items
                    .iter()
                    .map(|item| quoted(item.as_text().unwrap_or_default()))
                    .collect();
                out.push_str(&format!(" [{}]\n", items.join(", ")));
            }
            Value::Scalar(scalar) => {
                let text = scalar.text.as_str();
                let bare = text == "true" || is_address(text);
                let text = if bare { text.to_owned() } else { quoted(text) };
                out.push_str(&format!(" {text}\n"));
            }
        }
    }
}

/// A text without quotes where every YAML reader takes it for text, else with double ones.
fn quoted(text: &str) -> String {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte))
        && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if plain {
        text.to_owned()
    } else {
        Json::string(text).as_str().to_owned()
    }
}

fn is_address(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://"))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_./-:".contains(&byte))
        && !text.ends_with(':')
}
