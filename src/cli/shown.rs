//! Results and statuses as people read them. Text of servers is tamed before it reaches a terminal.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use indicatif::{ProgressBar, ProgressStyle};

use super::{out, refused::Refused, table};
use crate::{
    app::UpstreamStatus,
    json::{Json, Node},
    protocol::{
        Revision, meta,
        methods::{self, ListKind},
    },
};

/// Something to look at while waiting; nothing when nobody looks.
pub(super) fn waiting(text: &str) -> ProgressBar {
    if !out::notes_to_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
    let bar = ProgressBar::new_spinner().with_message(text.to_owned());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// What a server says while it works.
pub(super) fn notification(method: &str, params: Option<&Json>) {
    let Some(root) = params.map(Json::root) else {
        return;
    };
    let text = |key: &str| root.member(key).map(|node| plain(node)).unwrap_or_default();
    match method {
        methods::PROGRESS => {
            let total = text("total");
            let of = if total.is_empty() {
                String::new()
            } else {
                format!("/{total}")
            };
            out::note(&out::paint(
                out::DIM,
                &format!("… {}{of} {}", text("progress"), text("message")),
            ));
        }
        methods::MESSAGE => out::note(&out::paint(
            out::DIM,
            &format!("{}: {}", text("level"), text("data")),
        )),
        _ => {}
    }
}

/// Why there is no result.
pub(super) fn refusal(refused: &Refused, as_json: bool) {
    match refused {
        Refused::Answer(error) => {
            if as_json {
                let error = meta::object_of(&[("error", error.to_json())]);
                out::line(error.as_str());
            } else {
                out::problem(&format!("{} ({})", out::tame(&error.message), error.code));
                let reason = error.data.as_ref().and_then(|data| {
                    let reason = data.root().member("reason").and_then(Node::as_str);
                    reason.map(std::borrow::Cow::into_owned)
                });
                if reason.as_deref() == Some("credential_missing") {
                    out::note("the token or API key in the variable USHER_TOKEN is sent");
                }
            }
        }
        Refused::Silence(reason) => {
            if as_json {
                let error = meta::object_of(&[("error", Json::string(reason))]);
                out::line(error.as_str());
            } else {
                out::problem(&out::tame(reason));
            }
        }
    }
}

/// The content blocks of a result, one after the other; its structured content if that is all there is.
pub(super) fn content(result: &Json) {
    let blocks: Vec<Node<'_>> = result
        .root()
        .member("content")
        .map(|content| content.elements().collect())
        .unwrap_or_default();
    for block in &blocks {
        self::block(*block);
    }
    if blocks.is_empty()
        && let Some(structured) = result.root().member("structuredContent")
    {
        out::line(&out::tame(structured.raw()));
    }
}

/// One content block.
pub(super) fn block(block: Node<'_>) {
    let text = |key: &str| block.member(key).and_then(Node::as_str).unwrap_or_default();
    match &*text("type") {
        "text" => written(&text("text")),
        "resource_link" => out::line(&format!(
            "{} {}",
            out::tame(&text("uri")),
            out::tame(&text("name"))
        )),
        "resource" => {
            if let Some(resource) = block.member("resource") {
                resource_contents(resource);
            }
        }
        kind => {
            let bytes = text("data").len() / 4 * 3;
            out::line(&format!(
                "[{} {}, {bytes} bytes]",
                out::tame(kind),
                out::tame(&text("mimeType"))
            ));
        }
    }
}

/// The contents of one resource: text as text, bytes as bytes where nobody looks.
pub(super) fn resource_contents(contents: Node<'_>) {
    if let Some(text) = contents.member("text").and_then(Node::as_str) {
        written(&text);
        return;
    }
    let blob = contents
        .member("blob")
        .and_then(Node::as_str)
        .unwrap_or_default();
    let kind = contents
        .member("mimeType")
        .and_then(Node::as_str)
        .unwrap_or_default();
    match STANDARD.decode(blob.as_bytes()) {
        Ok(bytes) if !out::to_terminal() => out::raw(&bytes),
        Ok(bytes) => out::line(&format!(
            "[{}, {} bytes; redirect to a file to keep them]",
            out::tame(&kind),
            bytes.len()
        )),
        Err(_) => out::problem("bytes that are not Base64"),
    }
}

fn written(text: &str) {
    if out::to_terminal() {
        out::line(&out::tame(text));
    } else {
        out::raw(text.as_bytes());
        if !text.ends_with('\n') {
            out::raw(b"\n");
        }
    }
}

fn plain(node: Node<'_>) -> String {
    out::tame(&node.as_str().unwrap_or_else(|| node.raw().into()))
}

/// Characters of a reason in a table: what is longer is no reason but somebody's page.
pub(super) const REASON: usize = 300;

/// One line per upstream.
pub(super) fn statuses(statuses: &[UpstreamStatus]) -> String {
    let rows: Vec<Vec<String>> = statuses
        .iter()
        .map(|status| {
            let [tools, prompts, resources, templates] = status.counts;
            vec![
                status.id.to_string(),
                status.state.to_owned(),
                status.revision.map_or("-", Revision::as_str).to_owned(),
                status.revision.map_or("-", era).to_owned(),
                tools.to_string(),
                prompts.to_string(),
                resources.to_string(),
                templates.to_string(),
                status
                    .error
                    .as_deref()
                    .map(|error| out::short(error, REASON))
                    .unwrap_or_default(),
            ]
        })
        .collect();
    let heading = [
        "UPSTREAM",
        "STATE",
        "REVISION",
        "ERA",
        "TOOLS",
        "PROMPTS",
        "RESOURCES",
        "TEMPLATES",
        "ERROR",
    ];
    table::aligned(&heading, &rows)
}

/// The word for a revision's era.
pub(super) fn era(revision: Revision) -> &'static str {
    if Revision::modern().any(|modern| modern == revision) {
        "modern"
    } else {
        "legacy"
    }
}

/// A list of the catalog under its heading; nothing for an empty one.
pub(super) fn list(kind: ListKind, items: &[Json]) -> Option<String> {
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|item| {
            let text = |key: &str| {
                item.root()
                    .member(key)
                    .and_then(Node::as_str)
                    .unwrap_or_default()
            };
            let about = [text("description"), text("title"), text("name")]
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default();
            vec![out::tame(&text(kind.key())), out::short(&about, 70)]
        })
        .collect();
    let heading = match kind {
        ListKind::Tools => "TOOL",
        ListKind::Prompts => "PROMPT",
        ListKind::Resources => "RESOURCE",
        ListKind::Templates => "TEMPLATE",
        ListKind::Skills => "SKILL",
    };
    (!rows.is_empty()).then(|| table::aligned(&[heading, "WHAT IT IS"], &rows))
}
