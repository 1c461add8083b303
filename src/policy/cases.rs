//! `cases.yaml`: what a set of policies is meant to decide, so that a change which decides otherwise is seen.
//!
//! ```yaml
//! items:                     # what the cases are about, where no gateway is asked
//!   - tool: github_delete_repo
//!     upstream: github
//!     destructive: true
//!     arguments: { repo: string, depth: integer?, labels: [string] }
//! cases:
//!   - name: nobody deletes what is not theirs
//!     user: ana
//!     groups: [dev]
//!     call: github_delete_repo
//!     args: { repo: acme/site }
//!     expect: deny           # allow, deny, hidden, approval, scope, error
//!     by: own-repos          # a policy that must be among those that decide
//! ```
#![expect(
    clippy::disallowed_types,
    reason = "arguments and schemas are written as YAML and read as any value"
)]

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_saphyr::Spanned;
use tokio_util::sync::CancellationToken;

use super::{
    Action, Ask, Circumstances, Denied, Hints, Item, ItemKind, Permit, Policy, Prepared, Refusal,
    Subject, groups::yaml_problem, problem::Problem,
};
use crate::{
    call::{Identity, IdentityKind, Principal},
    json::Json,
    protocol::{Revision, UpstreamId},
};

/// The name of the file.
pub(super) const FILE: &str = "cases.yaml";

/// What the file says, checked.
#[derive(Debug, Default)]
pub(super) struct Cases {
    pub(super) items: Vec<Item>,
    cases: Vec<Case>,
}

/// One case.
#[derive(Debug)]
struct Case {
    name: String,
    line: usize,
    who: Identity,
    action: Action,
    item: String,
    args: Json,
    toolset: Option<String>,
    address: Option<IpAddr>,
    now: Option<SystemTime>,
    expect: Expect,
    by: Option<String>,
}

/// What a case expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Expect {
    /// Permitted, and nobody is asked.
    Allow,
    /// Denied, whether it is listed or not.
    Deny,
    /// Denied and not listed.
    Hidden,
    /// Permitted once a human agrees.
    Approval,
    /// Denied for the lack of a scope.
    Scope,
    /// Denied because a policy cannot be evaluated, or an argument not represented.
    Error,
}

/// How a case came out.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// Its line in `cases.yaml`.
    pub line: usize,
    /// What is otherwise than expected; `None` when nothing is.
    pub failure: Option<String>,
}

/// Somebody, as files and command lines tell of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Somebody {
    /// A person.
    pub user: Option<String>,
    /// An OAuth client that acts for itself.
    pub agent: Option<String>,
    /// An API key.
    pub key: Option<String>,
    /// Groups that the credential names.
    pub groups: Vec<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// Scopes that were granted.
    pub scopes: Vec<String>,
    /// The OAuth client.
    pub client: Option<String>,
    /// Who vouches.
    pub issuer: Option<String>,
    /// Who answers for the key.
    pub owner: Option<String>,
}

impl Somebody {
    /// As an identity: anonymous where nobody is named; `None` where several are.
    pub fn identity(&self) -> Option<Identity> {
        let named = [&self.user, &self.agent, &self.key];
        let several = named.into_iter().flatten().count() > 1;
        (!several).then(|| self.only())
    }

    /// The first that is named.
    pub(super) fn only(&self) -> Identity {
        let named = [
            (IdentityKind::User, &self.user),
            (IdentityKind::Agent, &self.agent),
            (IdentityKind::Key, &self.key),
        ];
        let mut named = named
            .into_iter()
            .filter_map(|(kind, name)| Some((kind, name.as_deref()?)));
        let (kind, name) = named
            .next()
            .unwrap_or((IdentityKind::Anonymous, "anonymous"));
        let shared = |text: &String| Arc::<str>::from(text.as_str());
        Identity {
            principal: Principal::new(format!("{}:{name}", super::class::type_of(kind))),
            kind,
            name: name.into(),
            issuer: self.issuer.as_ref().map(shared),
            groups: self.groups.iter().map(shared).collect(),
            tenant: self.tenant.as_ref().map(shared),
            scopes: self.scopes.iter().map(shared).collect(),
            client: self.client.as_ref().map(shared),
            owner: self.owner.as_ref().map(shared),
            until: None,
            revoked: CancellationToken::new(),
            assertion: None,
        }
    }
}

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
pub(super) fn parse(file: &str, text: &str) -> Result<Cases, Problem> {
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

/// The moment that `2026-11-21T12:00:00Z`, or the date alone, tells.
///
/// # Errors
/// What is wrong with it, for people.
pub fn moment(text: &str) -> Result<SystemTime, String> {
    read_moment(text).ok_or_else(|| format!("`{text}` is no moment such as 2026-11-21T12:00:00Z"))
}

fn read_moment(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let number = |text: &str, digits: usize| {
        let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        right.then(|| text.parse::<u64>().ok()).flatten()
    };
    let mut date = date.split('-');
    let (year, month, day) = (
        number(date.next()?, 4)?,
        number(date.next()?, 2)?,
        number(date.next()?, 2)?,
    );
    let mut clock = clock.strip_suffix('Z')?.split(':');
    let (hour, minute, second) = (
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
    );
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let fits = date.next().is_none()
        && clock.next().is_none()
        && (1..=days).contains(&day)
        && year >= 1970
        && hour < 24
        && minute < 60
        && second < 60;
    if !fits {
        return None;
    }
    // Years begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

impl Policy {
    /// Runs the cases of the set: over the items of its own file, and over those of `live`, which come first. What a case says
    /// of no moment is asked about `now`.
    pub fn run_cases(&self, live: &[Item], now: SystemTime) -> Vec<Outcome> {
        let Some(set) = self.set() else {
            return Vec::new();
        };
        let cases = &set.compiled.cases;
        let mut items = live.to_vec();
        for item in &cases.items {
            let same = |other: &Item| (other.kind, &other.outward) == (item.kind, &item.outward);
            if !items.iter().any(same) {
                items.push(item.clone());
            }
        }
        let prepared = self.prepare(items.clone(), None);
        let outcome = |case: &Case| Outcome {
            name: case.name.clone(),
            line: case.line,
            failure: case.failure(&prepared, &items, now),
        };
        cases.cases.iter().map(outcome).collect()
    }

    /// The items that `cases.yaml` tells of.
    pub fn case_items(&self) -> &[Item] {
        self.set().map_or(&[], |set| &set.compiled.cases.items)
    }
}

impl Case {
    fn failure(&self, prepared: &Prepared, items: &[Item], now: SystemTime) -> Option<String> {
        let kinds = |item: &&Item| item.kind.uses().contains(&self.action) || !self.action.is_use();
        let known = items
            .iter()
            .filter(|item| *item.outward == *self.item)
            .find(kinds);
        // A resource need not be listed anywhere: its upstream is that of the prefix.
        let unlisted = || {
            let (id, local) = self.item.split_once('+')?;
            Some((UpstreamId::parse(id)?, local))
        };
        let (kind, upstream, local) = match known {
            Some(item) => (item.kind, item.upstream.clone(), &*item.local),
            None => match unlisted() {
                Some((upstream, local)) => (ItemKind::Resource, upstream, local),
                None => return Some(format!("`{}` is not among the items", self.item)),
            },
        };
        let decided = prepared.decide(&Ask {
            who: &self.who,
            action: self.action,
            item: Subject {
                kind,
                upstream: &upstream,
                local,
                outward: &self.item,
            },
            arguments: Some(&self.args),
            circumstances: Circumstances {
                revision: Revision::LATEST_MODERN,
                address: self.address,
                toolset: self.toolset.as_deref(),
                now: self.now.unwrap_or(now),
            },
        });
        if !self.expect.is_met_by(&decided) {
            let expected = Json::of(&self.expect);
            let expected = expected.as_str().trim_matches('"');
            return Some(format!("expected {expected}, but it is {}", told(&decided)));
        }
        let by = self.by.as_deref()?;
        let policies = match &decided {
            Ok(permit) => permit.policies(),
            Err(denied) => &denied.policies,
        };
        if policies.iter().any(|policy| **policy == *by) {
            return None;
        }
        Some(format!(
            "expected `{by}` to decide, but it is {}",
            told(&decided)
        ))
    }
}

impl Expect {
    fn is_met_by(self, decided: &Result<Permit, Denied>) -> bool {
        match (self, decided) {
            (Self::Allow, Ok(permit)) => permit.approval().is_none(),
            (Self::Approval, Ok(permit)) => permit.approval().is_some(),
            (Self::Allow | Self::Approval, Err(_)) => false,
            (Self::Deny | Self::Hidden | Self::Scope | Self::Error, Ok(_)) => false,
            (Self::Deny, Err(_)) => true,
            (Self::Hidden, Err(denied)) => denied.hidden,
            (Self::Scope, Err(denied)) => matches!(denied.reason, Refusal::Scope(_)),
            (Self::Error, Err(denied)) => {
                matches!(denied.reason, Refusal::Error | Refusal::Unrepresentable)
            }
        }
    }
}

/// A decision in words.
fn told(decided: &Result<Permit, Denied>) -> String {
    let (word, policies) = match decided {
        Ok(permit) if permit.approval().is_some() => ("approval".to_owned(), permit.policies()),
        Ok(permit) => ("allow".to_owned(), permit.policies()),
        Err(denied) if denied.hidden => ("hidden".to_owned(), &denied.policies[..]),
        Err(denied) => (
            format!("deny ({}: {})", denied.reason.word(), denied.text),
            &denied.policies[..],
        ),
    };
    let policies: Vec<&str> = policies.iter().map(|policy| &**policy).collect();
    match &policies[..] {
        [] => word,
        policies => format!("{word}, by {}", policies.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let after = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        for (text, moment) in [
            ("1970-01-01", after(0)),
            ("2000-02-29T00:00:00Z", after(951_782_400)),
            ("2024-03-01T00:00:00Z", after(1_709_251_200)),
            ("2026-11-21T12:00:00Z", after(1_795_262_400)),
            ("2026-02-29", None),
            ("2026-13-01", None),
            ("2026-1-1", None),
            ("2026-11-21T12:00:00", None),
            ("2026-11-21T24:00:00Z", None),
            ("1969-12-31", None),
            ("soon", None),
        ] {
            assert_eq!(read_moment(text), moment, "{text}");
        }
    }
}
