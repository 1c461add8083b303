//! What Usher documents to rewrite, done and undone, and what is left after that.
//!
//! Rewritten are names (`{prefix}_{name}`), URIs (`{prefix}+{uri}`, `http:` and `https:` excepted) and what belongs to one hop:
//! `resultType`, `ttlMs`, `cacheScope` and the protocol's own `_meta` keys. A tool's `execution` has to be there or not as both
//! ends of the hop speak of tasks. Everything else has to be equal; members of objects may come in any order, since some clients
//! sort them.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use crate::{
    Answers, LISTS,
    client::Client,
    servers::{Server, TIMED},
};

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

/// The kinds of items that a server lists and that none of the calls ask for, by the operation that lists them.
pub(crate) fn not_asked_for(answers: &Answers) -> Vec<&'static str> {
    let is_listed = |list: &str, wanted: &Value| {
        let mut items = answers.items(list).iter();
        items.any(|item| key(list, item) == wanted)
    };
    let is_templated = |uri: &Value| {
        let uri = uri.as_str().unwrap_or_default();
        let mut items = answers.items("list_templates").iter();
        items.any(|item| {
            let template = key("list_templates", item);
            let fixed = template.split('{').next().unwrap_or_default();
            uri.len() > fixed.len() && uri.starts_with(fixed)
        })
    };
    let asks_for = |list: &str, step: &Value| match (list, step["op"].as_str()) {
        ("list_tools", Some("call")) | ("list_prompts", Some("get_prompt")) => {
            is_listed(list, &step["name"])
        }
        ("list_resources", Some("read")) => is_listed(list, &step["uri"]),
        ("list_templates", Some("read")) => {
            !is_listed("list_resources", &step["uri"]) && is_templated(&step["uri"])
        }
        _ => false,
    };
    let mut lists = LISTS.to_vec();
    lists.retain(|list| {
        let mut steps = answers.calls.iter().map(|(step, _)| step);
        !answers.items(list).is_empty() && !steps.any(|step| asks_for(list, step))
    });
    lists
}

/// Describes every difference between what servers answer directly and through Usher, which `client` asked.
pub(crate) fn all(
    servers: &[Server],
    direct: &[Answers],
    client: &Client,
    through: &[Answers],
) -> Vec<String> {
    let mut found = Vec::new();
    for (server, (direct, through)) in servers.iter().zip(direct.iter().zip(through)) {
        let executes = server.tasks && client.knows_execution();
        answers(server, executes, direct, through, &mut found);
    }
    found
}

/// `executes` says whether tools are to tell how they are executed.
fn answers(
    server: &Server,
    executes: bool,
    direct: &Answers,
    through: &Answers,
    found: &mut Vec<String>,
) {
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
        let direct = direct.iter().map(|item| {
            let mut item = without_hops(item);
            if let Some(members) = item.as_object_mut()
                && *list == "list_tools"
                && !executes
            {
                members.shift_remove("execution");
            }
            item
        });
        let direct = direct.collect::<Vec<_>>();
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
        let [direct, through] = [without_hops(direct), undo(through, prefix)]
            .map(|result| without_time_of_day(step, result));
        differ(&what, &direct, &through, found);
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
        for hop in ["resultType", "ttlMs", "cacheScope"] {
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

/// The same with no time in a text that says when it was made, where the step asks for one that does.
fn without_time_of_day(step: &Value, mut result: Value) -> Value {
    let uri = step["uri"].as_str().unwrap_or_default();
    if !uri.starts_with(TIMED) {
        return result;
    }
    let contents = result["ok"]["contents"].as_array_mut();
    for content in contents.into_iter().flatten() {
        if let Value::String(text) = &mut content["text"]
            && let Some((made, time)) = text.split_once(" created at ")
            // As the machine's language has it: `10:33:11`, `10:33:11 AM`.
            && time.starts_with(|first: char| first.is_ascii_digit())
            && time.matches(':').count() == 2
        {
            *text = format!("{made} created at some time");
        }
    }
    result
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
