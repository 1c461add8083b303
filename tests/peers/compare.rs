//! What Usher documents to rewrite, done and undone, and what is left after that.
//!
//! Rewritten are names (`{prefix}_{name}`), URIs (`{prefix}+{uri}`, `http:` and `https:` excepted) and what belongs to one hop:
//! `resultType`, `ttlMs`, `cacheScope`, the protocol's own `_meta` keys, and a tool's `execution`, which is withheld with the
//! tasks it speaks of. Everything else has to be equal; members of objects may come in any order, since some clients
//! sort them.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use crate::{Answers, servers::Server};

/// The step that asks Usher for what `step` asks the server with this prefix.
pub(crate) fn exposed(step: &Value, prefix: &str) -> Value {
    let mut step = step.clone();
    for holder in ["", "/ref"] {
        let Some(Value::Object(members)) = step.pointer_mut(holder) else {
            continue;
        };
        if let Some(Value::String(name)) = members.get_mut("name") {
            *name = format!("{prefix}_{name}");
        }
        if let Some(Value::String(uri)) = members.get_mut("uri")
            && !is_web(uri)
        {
            *uri = format!("{prefix}+{uri}");
        }
    }
    step
}

type Lists = Vec<(&'static str, Vec<Value>)>;

/// Sorts merged lists by the server each item belongs to, in the order of `servers`.
///
/// Panics on an item that belongs to none, or is there twice.
pub(crate) fn by_server(servers: &[Server], lists: Lists) -> Vec<Lists> {
    let mut sorted: Vec<Lists> = servers
        .iter()
        .map(|_| lists.iter().map(|(list, _)| (*list, Vec::new())).collect())
        .collect();
    for (place, (list, items)) in lists.into_iter().enumerate() {
        let mut seen = HashSet::new();
        for item in items {
            let key = key(list, &item).to_owned();
            assert!(seen.insert(key.clone()), "{list} holds {key} twice");
            let separator = if key.contains("://") { '+' } else { '_' };
            let prefix = key.split(separator).next();
            let owner = servers
                .iter()
                .position(|server| Some(server.prefix) == prefix);
            let owner = owner.unwrap_or_else(|| panic!("{list} holds {key}, which is nobody's"));
            sorted[owner][place].1.push(item);
        }
    }
    sorted
}

/// Describes every difference between what servers answer directly and through Usher.
pub(crate) fn all(servers: &[Server], direct: &[Answers], through: &[Answers]) -> Vec<String> {
    let mut found = Vec::new();
    for (server, (direct, through)) in servers.iter().zip(direct.iter().zip(through)) {
        answers(server, direct, through, &mut found);
    }
    found
}

fn answers(server: &Server, direct: &Answers, through: &Answers, found: &mut Vec<String>) {
    let prefix = server.prefix;
    for ((list, direct), (_, through)) in direct.lists.iter().zip(&through.lists) {
        let undone = through.iter().map(|item| {
            let mut item = undo(item, prefix);
            if let Value::String(name) = &mut item["name"]
                && matches!(*list, "list_tools" | "list_prompts")
                && let Some(original) = name.strip_prefix(&format!("{prefix}_"))
            {
                *name = original.to_owned();
            }
            item
        });
        let direct = direct.iter().map(without_hops).collect::<Vec<_>>();
        let undone = undone.collect::<Vec<_>>();
        differ(
            &format!("{prefix} {list}"),
            &json!(direct),
            &json!(undone),
            found,
        );
    }
    for ((step, direct), (_, through)) in direct.calls.iter().zip(&through.calls) {
        let what = format!("{prefix} {step}");
        differ(&what, &without_hops(direct), &undo(through, prefix), found);
    }
}

fn key<'a>(list: &str, item: &'a Value) -> &'a str {
    let field = match list {
        "list_resources" => "uri",
        "list_templates" => "uriTemplate",
        _ => "name",
    };
    item[field].as_str().expect("an item has its key")
}

/// Takes the prefix off every URI in a value of the protocol, and what belongs to the hop. A URI without it is marked, so that
/// it differs.
fn undo(value: &Value, prefix: &str) -> Value {
    let mut value = without_hops(value);
    walk(&mut value, &mut |members| {
        for field in ["uri", "uriTemplate"] {
            if let Some(Value::String(uri)) = members.get_mut(field)
                && !is_web(uri)
            {
                let original = uri.strip_prefix(&format!("{prefix}+")).map(str::to_owned);
                *uri = original.unwrap_or_else(|| format!("{uri} (not rewritten)"));
            }
        }
    });
    value
}

fn without_hops(value: &Value) -> Value {
    let mut value = value.clone();
    walk(&mut value, &mut |members| {
        for hop in ["resultType", "ttlMs", "cacheScope", "execution"] {
            members.shift_remove(hop);
        }
        if let Some(Value::Object(meta)) = members.get_mut("_meta") {
            meta.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
            if meta.is_empty() {
                members.shift_remove("_meta");
            }
        }
    });
    value
}

/// Visits every object that is the protocol's own, and none that only travels in it.
fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            for (name, member) in members {
                if !["structuredContent", "inputSchema", "outputSchema", "_meta"]
                    .contains(&name.as_str())
                {
                    walk(member, visit);
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| walk(element, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn differ(place: &str, direct: &Value, through: &Value, found: &mut Vec<String>) {
    match (direct, through) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys()).collect::<BTreeSet<_>>();
            for name in names {
                let place = format!("{place}/{name}");
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => differ(&place, one, other, found),
                    (one, other) => {
                        found.push(format!("{place}: {} / {}", short(one), short(other)))
                    }
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differ(&format!("{place}/{index}"), one, other, found);
            }
        }
        _ if direct == through => {}
        _ => found.push(format!(
            "{place}: {} / {}",
            short(Some(direct)),
            short(Some(through))
        )),
    }
}

fn short(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    text.chars().take(300).collect()
}

fn is_web(uri: &str) -> bool {
    uri.starts_with("http://") || uri.starts_with("https://")
}
