//! Policies: which are in force, what is wrong with those that are not, and why something is decided as it is.

use std::{net::IpAddr, time::SystemTime};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answer, aside};
use crate::{
    admin::{
        asked::Asked,
        paging::{CURSOR, LIMIT, Page, Parameter},
        problem::Problem,
    },
    json::{Json, Limits},
    policy::{self, Action, Ask, Circumstances, Explanation, PolicySummary, Somebody},
    protocol::{Revision, names::Scope},
    snapshot::Unnamed,
};

pub(in crate::admin) const LIST: &[Parameter] = &[CURSOR, LIMIT];

pub(in crate::admin) type List = Page<PolicySummary>;

/// How policies stand.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PolicyStanding")]
pub(in crate::admin) struct Standing {
    /// `policies`: those decide. `unrestricted`: none is configured, and everybody may use everything. `nothing`: there are
    /// none that can be used, and nobody may use anything.
    rule: &'static str,
    /// The digest of the set in force; empty where there is none.
    digest: String,
    /// How many policies it has.
    count: usize,
    /// What is wrong with what was read last; then the set in force is an older one, or none. And what of the set in force does not
    /// fit what is offered now; calls that it cannot be evaluated for are denied. And where cases are enforced, those that it breaks.
    problems: Vec<policy::Problem>,
    /// What is strange about the set in force.
    notes: Vec<policy::Problem>,
}

/// What is to be explained.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::admin) struct Question {
    /// Who asks; nobody named is somebody anonymous.
    #[serde(default)]
    who: Somebody,
    /// What they want to do.
    action: Deed,
    /// With what: its name or URI, as it is listed.
    name: String,
    /// At the endpoint of this toolset. Default: at that of everything.
    #[serde(default)]
    toolset: Option<String>,
    /// With these arguments. Default: none.
    #[serde(default)]
    args: Option<Arguments>,
    /// Whence the client connects.
    #[serde(default)]
    #[schemars(with = "Option<Address>")]
    address: Option<IpAddr>,
    /// When. Default: now.
    #[serde(default)]
    #[schemars(with = "Option<Moment>")]
    at: Option<String>,
}

/// What can be done with an item.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Deed {
    Call,
    Get,
    Read,
    Subscribe,
}

/// An address of either family.
struct Address;

impl JsonSchema for Address {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Address".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }],
        })
    }
}

/// A time as RFC 3339 has it.
struct Moment;

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// An object.
#[derive(Debug, Deserialize)]
struct Arguments(Box<RawValue>);

impl JsonSchema for Arguments {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Arguments".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

pub(in crate::admin) fn show(asked: Asked) -> Answer {
    aside(move || {
        let snapshot = asked.gateway.world.load();
        let policy = snapshot.policy().policy();
        Ok(Standing {
            rule: match (policy.is_unrestricted(), policy.count()) {
                (true, _) => "unrestricted",
                (false, 0) => "nothing",
                (false, _) => "policies",
            },
            digest: policy.digest().to_owned(),
            count: policy.count(),
            problems: asked.gateway.controls.policy_problems(),
            notes: policy.notes().to_vec(),
        })
    })
}

pub(in crate::admin) fn list(asked: Asked) -> Answer {
    aside(move || {
        let (after, limit) = (asked.query.after_number()?, asked.query.limit());
        let snapshot = asked.gateway.world.load();
        // What a page begins after is a place: a set is loaded whole, and is another one after a reload.
        let begin = after.map_or(0, |after| usize::try_from(after).unwrap_or(usize::MAX));
        let summaries = snapshot.policy().policy().summaries();
        let items: Vec<PolicySummary> = summaries.into_iter().skip(begin).take(limit + 1).collect();
        Ok(Page::of(items, limit, |_| {
            begin.saturating_add(limit).to_string()
        }))
    })
}

pub(in crate::admin) fn explain(asked: Asked) -> Answer {
    aside(move || explained(&asked))
}

fn explained(asked: &Asked) -> Result<Explanation, Problem> {
    let bad = |detail: String| Problem::bad_request("bad_body", detail);
    let question: Question = asked.body.read().map_err(|error| bad(error.to_string()))?;
    let identity = question.who.identity();
    let identity =
        identity.ok_or_else(|| bad("one of `user`, `agent` and `key`, not several".into()))?;
    let arguments = match &question.args {
        None => Json::empty_object(),
        Some(Arguments(raw)) => {
            let text = raw.get().to_owned();
            let arguments = Json::parse(text.into(), &Limits::CLIENT);
            let arguments = arguments.map_err(|error| bad(format!("args: {error}")))?;
            if arguments.root().kind() != crate::json::Kind::Object {
                return Err(bad("args: not an object".into()));
            }
            arguments
        }
    };
    let now = match &question.at {
        None => SystemTime::now(),
        Some(text) => match text.parse::<jiff::Timestamp>() {
            Ok(time) => time.into(),
            Err(_) => return Err(bad("at: not a time such as 2026-11-21T12:00:00Z".into())),
        },
    };
    let toolset = question.toolset.as_deref();
    let scope = toolset.map_or(Scope::All, |name| Scope::Toolset(name.into()));
    let snapshot = asked.gateway.world.load();
    let action = question.action.action();
    let named = snapshot
        .named(action, &question.name, &scope)
        .map_err(|why| match why {
            Unnamed::NoEndpoint => Problem::not_found("toolset"),
            Unnamed::NotThere => Problem::not_found("item"),
            Unnamed::Twisted => bad("`name` is refused whoever asks".into()),
        })?;
    Ok(snapshot.policy().explain(&Ask {
        who: &identity,
        action,
        item: named.subject(),
        arguments: Some(&arguments),
        circumstances: Circumstances {
            revision: Revision::LATEST_MODERN,
            address: question.address,
            toolset,
            now,
        },
    }))
}

impl Deed {
    const fn action(self) -> Action {
        match self {
            Self::Call => Action::Call,
            Self::Get => Action::Get,
            Self::Read => Action::Read,
            Self::Subscribe => Action::Subscribe,
        }
    }
}
