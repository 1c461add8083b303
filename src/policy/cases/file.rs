//! The file as it is written, and what is wrong with it: every mistake with the line of its case.
#![expect(
    clippy::disallowed_types,
    reason = "arguments and schemas are written as YAML and read as any value"
)]

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::{Case, Cases, Expect, Somebody, moment};
use crate::{
    json::Json,
    policy::{Action, Hints, Item, ItemKind, groups::yaml_problem, problem::Problem},
    protocol::UpstreamId,
};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    items: Vec<RawItem>,
    cases: Vec<Spanned<RawCase>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawItem {
    tool: Option<String>,
    prompt: Option<String>,
    resource: Option<String>,
    template: Option<String>,
    upstream: String,
    tags: Vec<String>,
    toolsets: Vec<String>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    claimed: RawHints,
    arguments: BTreeMap<String, Value>,
    schema: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawHints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawCase {
    name: Option<String>,
    user: Option<String>,
    agent: Option<String>,
    key: Option<String>,
    groups: Vec<String>,
    tenant: Option<String>,
    scopes: Vec<String>,
    client: Option<String>,
    issuer: Option<String>,
    owner: Option<String>,
    call: Option<String>,
    get: Option<String>,
    read: Option<String>,
    subscribe: Option<String>,
    complete: Option<String>,
    elicit: Option<String>,
    sample: Option<String>,
    list_roots: Option<String>,
    args: Map<String, Value>,
    toolset: Option<String>,
    address: Option<String>,
    at: Option<String>,
    expect: Option<Expect>,
    by: Option<String>,
}

/// Reads the file.
pub(in crate::policy) fn parse(file: &str, text: &str) -> Result<Cases, Problem> {
    if text.trim().is_empty() {
        return Ok(Cases::default());
    }
    let raw: Raw = serde_saphyr::from_str(text).map_err(|error| yaml_problem(file, &error))?;
    let mut cases = Cases::default();
    for item in raw.items {
        let item = item.checked();
        cases
            .items
            .push(item.map_err(|fault| Problem::of_file(file, fault))?);
    }
    for (number, case) in raw.cases.into_iter().enumerate() {
        let place = case.referenced;
        let line = usize::try_from(place.line()).unwrap_or(0);
        let case = case
            .value
            .checked(number + 1, line)
            .map_err(|fault| Problem {
                line,
                column: usize::try_from(place.column()).unwrap_or(0),
                ..Problem::of_file(file, fault)
            })?;
        cases.cases.push(case);
    }
    Ok(cases)
}

impl RawItem {
    fn checked(self) -> Result<Item, String> {
        let named = [
            (ItemKind::Tool, self.tool),
            (ItemKind::Prompt, self.prompt),
            (ItemKind::Resource, self.resource),
            (ItemKind::Template, self.template),
        ];
        let mut named = named
            .into_iter()
            .filter_map(|(kind, name)| Some((kind, name?)));
        let (Some((kind, outward)), None) = (named.next(), named.next()) else {
            return Err("an item is one of `tool`, `prompt`, `resource` and `template`".into());
        };
        let upstream = UpstreamId::parse(&self.upstream)
            .ok_or_else(|| format!("`upstream` of `{outward}` is no key of an upstream"))?;
        let prefix = match kind {
            ItemKind::Tool | ItemKind::Prompt => format!("{upstream}_"),
            ItemKind::Resource | ItemKind::Template => format!("{upstream}+"),
        };
        let local = outward.strip_prefix(&prefix).unwrap_or(&outward);
        let schema = match (kind, self.schema) {
            (_, Some(schema)) => Some(Json::of(&schema)),
            (ItemKind::Tool, None) => Some(declared(&self.arguments)),
            (ItemKind::Prompt, None) => {
                let names = self.arguments.keys();
                let list: Vec<Value> = names
                    .map(|name| serde_json::json!({ "name": name }))
                    .collect();
                Some(Json::of(&list))
            }
            (ItemKind::Resource | ItemKind::Template, None) => None,
        };
        let shared = |texts: Vec<String>| texts.into_iter().map(Arc::from).collect();
        Ok(Item {
            kind,
            local: local.into(),
            upstream,
            tags: shared(self.tags),
            pinned: Hints {
                read_only: self.read_only,
                destructive: self.destructive,
                idempotent: self.idempotent,
                open_world: self.open_world,
            },
            claimed: Hints {
                read_only: self.claimed.read_only,
                destructive: self.claimed.destructive,
                idempotent: self.claimed.idempotent,
                open_world: self.claimed.open_world,
            },
            toolsets: shared(self.toolsets),
            schema,
            outward: outward.into(),
        })
    }
}

/// The JSON Schema of arguments by words: `string`, `integer?` for one that may be absent, `[string]`, or a schema.
fn declared(arguments: &BTreeMap<String, Value>) -> Json {
    fn schema(word: &Value) -> Value {
        match word {
            Value::String(word) => serde_json::json!({ "type": word.trim_end_matches('?') }),
            Value::Array(items) => {
                let items = items.first().map_or(Value::Bool(true), schema);
                serde_json::json!({ "type": "array", "items": items })
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => word.clone(),
        }
    }
    let properties: Map<String, Value> = arguments
        .iter()
        .map(|(name, word)| (name.clone(), schema(word)))
        .collect();
    let required: Vec<&String> = arguments
        .iter()
        .filter(|(_, word)| word.as_str().is_some_and(|word| !word.ends_with('?')))
        .map(|(name, _)| name)
        .collect();
    Json::of(&serde_json::json!({
        "type": "object",
        "properties": properties,
        "required": required,
    }))
}

impl RawCase {
    fn checked(self, number: usize, line: usize) -> Result<Case, String> {
        let done = [
            (Action::Call, self.call),
            (Action::Get, self.get),
            (Action::Read, self.read),
            (Action::Subscribe, self.subscribe),
            (Action::Complete, self.complete),
            (Action::Elicit, self.elicit),
            (Action::Sample, self.sample),
            (Action::ListRoots, self.list_roots),
        ];
        let mut done = done
            .into_iter()
            .filter_map(|(action, item)| Some((action, item?)));
        let (Some((action, item)), None) = (done.next(), done.next()) else {
            return Err("a case does one thing, such as `call: github_delete_repo`".into());
        };
        let who = Somebody {
            user: self.user,
            agent: self.agent,
            key: self.key,
            groups: self.groups,
            tenant: self.tenant,
            scopes: self.scopes,
            client: self.client,
            issuer: self.issuer,
            owner: self.owner,
        };
        let who = who
            .identity()
            .ok_or("a case is about one of `user`, `agent` and `key`, or about nobody")?;
        let address = match self.address {
            Some(text) => Some(
                text.parse()
                    .map_err(|_| format!("`{text}` is no IP address"))?,
            ),
            None => None,
        };
        let now = match self.at {
            Some(text) => Some(moment(&text)?),
            None => None,
        };
        Ok(Case {
            name: self.name.unwrap_or_else(|| format!("case {number}")),
            line,
            who,
            action,
            item,
            args: Json::of(&self.args),
            toolset: self.toolset,
            address,
            now,
            expect: self
                .expect
                .ok_or("`expect` is missing: allow, deny, hidden, approval, scope or error")?,
            by: self.by,
        })
    }
}
