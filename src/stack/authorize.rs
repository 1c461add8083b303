//! Authorize: whether a call may be made at all (PRODUCT 9, SECURITY 5.4).
//!
//! Guarantees: nothing goes to an upstream without a permit of the policies in the call's own snapshot, and lists are those of
//! the same policies; what somebody does not see is answered as what does not exist, for every method; what an upstream may
//! not ask of the caller it is not told that the caller could answer. Where no policy is configured all of it is one branch.
//! Deliberately absent: the decision, which is `policy`'s; asking a person first, which is [`super::approve`]'s.

use std::{sync::Arc, time::SystemTime};

use super::{Error, Gate, Missing};
use crate::{
    call::{Call, Caller, CompletionRef, Denial, Op},
    catalog::{Route, is_twisted},
    json::Json,
    policy::{Action, Ask, Circumstances, Denied, ItemKind, Permit, Refusal, Subject},
    protocol::{ClientCapabilities, UpstreamId, methods, methods::ListKind},
    snapshot::{Snapshot, kind_of, toolset_of},
    stage::{Consent, Passage, Permitted, PermittedWatch, Routed, Target, Watchable, Way},
    tasks::clock,
};

/// Asks the policies of the call's snapshot.
#[derive(Debug)]
pub(super) struct Authorize;

impl Gate<Routed> for Authorize {
    type Pass = Box<Permitted>;

    fn admit(&self, routed: Routed) -> Result<Box<Permitted>, Error> {
        let Routed {
            mut call,
            snapshot,
            target,
        } = routed;
        let mut declared = None;
        let way = match (snapshot.policy().unasked(), target) {
            (_, Target::Snapshot) => Way::Snapshot,
            (Some(permit), Target::Upstream(route)) => Way::Upstream(Passage::new(route, permit)),
            (
                Some(permit),
                Target::Task {
                    route, local_tool, ..
                },
            ) => Way::Upstream(Passage::to_task(route, permit, local_tool)),
            (Some(permit), Target::Hub(watchable)) => Way::Hub(
                watchable
                    .into_iter()
                    .map(|at| PermittedWatch::new(at, permit.clone()))
                    .collect(),
            ),
            (None, Target::Upstream(route)) => {
                let permit = judge(&call, &snapshot, &route)?;
                declared = muted(&mut call, &snapshot, &route);
                Way::Upstream(Passage::new(route, permit))
            }
            (
                None,
                Target::Task {
                    route,
                    tool,
                    local_tool,
                },
            ) => {
                let permit = of_task(&call, &snapshot, &route.upstream, tool.as_deref())?;
                if let Some(tool) = tool
                    && let Some(tool) = snapshot.catalog.tool(&call.scope, &tool)
                {
                    declared = muted(&mut call, &snapshot, tool);
                }
                Way::Upstream(Passage::to_task(route, permit, local_tool))
            }
            (None, Target::Hub(watchable)) => Way::Hub(
                watchable
                    .into_iter()
                    .filter_map(|at| watched(&call, &snapshot, at))
                    .collect(),
            ),
        };
        if let Way::Upstream(passage) = &way {
            let route = passage.route();
            // Whoever does not let it through from here on says nothing of where it was to go.
            call.trail.note(|facts| {
                facts.route = Some((route.upstream.clone(), route.local.clone()));
            });
        }
        Ok(Box::new(Permitted {
            call,
            snapshot,
            way,
            round: 0,
            brought: None,
            declared,
            consent: Consent::None,
        }))
    }
}

/// Whether a call might go along a route that nobody is known to offer.
///
/// # Errors
/// As for one that somebody offers.
pub(super) fn may(call: &Call, snapshot: &Snapshot, route: &Route) -> Result<(), Error> {
    if snapshot.policy().unasked().is_none() {
        judge(call, snapshot, route)?;
    }
    Ok(())
}

/// Whether a call may go along a route.
fn judge(call: &Call, snapshot: &Snapshot, route: &Route) -> Result<Permit, Error> {
    let Some((action, kind, asked)) = wanted(&call.op) else {
        return Err(Error::NotOffered(call.op.method().into()));
    };
    let catalog = &snapshot.catalog;
    let listed = catalog.listed(&call.scope, kind, asked);
    // A variable of something that is no template.
    let kind = if kind == ListKind::Templates && listed.is_none() {
        ListKind::Resources
    } else {
        kind
    };
    // What is sent upstream must read there as it reads here (SECURITY AUTHZ-9).
    if kind_of(kind) == ItemKind::Resource && is_twisted(&route.local) {
        return Err(missing(&call.op));
    }
    let arguments = call.params.root().member("arguments");
    let arguments = arguments.map(|arguments| call.params.slice(arguments));
    let item = Item { kind, route, asked };
    let began = call.trail.is_read().then(clock::now_fresh);
    let decided = decide(call, snapshot, action, &item, arguments.as_ref());
    let took = began.map(|began| clock::now_fresh() - began);
    call.trail.note(|facts| {
        facts.spent.policy += took.unwrap_or_default();
        if let Err(denied) = &decided {
            facts.route = Some((route.upstream.clone(), route.local.clone()));
            facts.denied = Some(Denial {
                reason: denied.reason.word(),
                hidden: denied.hidden,
                policies: denied.policies.clone(),
                digest: denied.digest.clone(),
            });
            let definition = catalog.definition(&call.scope, kind, asked);
            facts.definition = definition.map(Box::from);
        }
    });
    decided.map_err(|denied| {
        tracing::debug!(
            call = %call.id,
            principal = call.caller.principal.as_str(),
            method = call.op.method(),
            reason = denied.reason.word(),
            hidden = denied.hidden,
            policies = ?denied.policies,
            digest = &*denied.digest,
            "denied"
        );
        if !denied.hidden {
            return Error::from(denied);
        }
        // Who asks for the first time waited for as long already.
        if !denied.anew && catalog.listed(&call.scope, kind, asked).is_some() {
            linger(call, snapshot);
        }
        missing(&call.op)
    })
}

/// Takes as long as judging something that no list has: what was judged is remembered of items of lists alone, and what does
/// not exist is not judged at all, which would tell them apart (SECURITY AUTHZ-7).
pub(super) fn linger(call: &Call, snapshot: &Snapshot) {
    if snapshot.policy().policy().is_unrestricted() {
        return;
    }
    let (Some((action, kind, asked)), Some(upstream)) =
        (wanted(&call.op), snapshot.catalog.some_upstream())
    else {
        return;
    };
    let nothing = Route {
        upstream: upstream.clone(),
        // No name and no address may hold this.
        local: "\u{1}".into(),
        headers: Arc::new([]),
        task_only: false,
        terms: None,
    };
    let item = Item {
        kind,
        route: &nothing,
        asked,
    };
    drop(decide(call, snapshot, action, &item, None));
}

/// Whether something about a task of an upstream may go along: as long as the tool of that upstream is seen that it came from.
/// Another upstream may have a tool of that name by now.
///
/// # Errors
/// As for a task that does not exist.
pub(super) fn of_task(
    call: &Call,
    snapshot: &Snapshot,
    upstream: &UpstreamId,
    tool: Option<&str>,
) -> Result<Permit, Error> {
    let policy = snapshot.policy();
    if let Some(permit) = policy.unasked() {
        return Ok(permit);
    }
    let unknown = || Error::Unknown(Missing::Task);
    let tool = tool.ok_or_else(unknown)?;
    let route = snapshot
        .catalog
        .tool(&call.scope, tool)
        .filter(|route| route.upstream == *upstream)
        .ok_or_else(unknown)?;
    let name = snapshot.catalog.name_of(ListKind::Tools, route, tool);
    let item = Subject {
        kind: ItemKind::Tool,
        upstream: &route.upstream,
        local: &route.local,
        outward: &name,
    };
    let class = policy.class_of(&call.identity);
    policy
        .follow(&class, item, toolset_of(&call.scope))
        .ok_or_else(unknown)
}

/// Whether an item that is not listed now would be seen by whoever calls.
pub(super) fn would_see(
    call: &Call,
    snapshot: &Snapshot,
    kind: ListKind,
    route: &Route,
    outward: &str,
) -> bool {
    let policy = snapshot.policy();
    if policy.policy().is_unrestricted() {
        return true;
    }
    let item = Subject {
        kind: kind_of(kind),
        upstream: &route.upstream,
        local: &route.local,
        outward,
    };
    let class = policy.class_of(&call.identity);
    policy.lists(&class, item, toolset_of(&call.scope))
}

/// Whether a tool that the endpoint lists is seen by whoever calls.
pub(super) fn sees_tool(call: &Call, snapshot: &Snapshot, name: &str) -> bool {
    let policy = snapshot.policy();
    if policy.policy().is_unrestricted() {
        return true;
    }
    let Some(route) = snapshot.catalog.listed(&call.scope, ListKind::Tools, name) else {
        return false;
    };
    let name = snapshot.catalog.name_of(ListKind::Tools, route, name);
    let item = Subject {
        kind: ItemKind::Tool,
        upstream: &route.upstream,
        local: &route.local,
        outward: &name,
    };
    let class = policy.class_of(&call.identity);
    policy.lists(&class, item, toolset_of(&call.scope))
}

/// The resource, if its changes may be heard of. What may not is not in force, like what does not exist.
pub(super) fn watched(call: &Call, snapshot: &Snapshot, at: Watchable) -> Option<PermittedWatch> {
    let permit = may_hear(call, snapshot, &at.outward, &at.route())?;
    Some(PermittedWatch::new(at, permit))
}

/// Whether changes of a resource may be told to whoever listens.
pub(super) fn may_hear(
    call: &Call,
    snapshot: &Snapshot,
    outward: &str,
    route: &Route,
) -> Option<Permit> {
    if let Some(permit) = snapshot.policy().unasked() {
        return Some(permit);
    }
    if is_twisted(&route.local) {
        return None;
    }
    let item = Item {
        kind: ListKind::Resources,
        route,
        asked: outward,
    };
    let permit = decide(call, snapshot, Action::Subscribe, &item, None).ok()?;
    // Nobody can be asked first whenever something changes.
    permit.approval().is_none().then_some(permit)
}

/// Hides from the upstream what it may not ask of the caller. What the caller did declare, if that is more.
fn muted(call: &mut Call, snapshot: &Snapshot, route: &Route) -> Option<Box<ClientCapabilities>> {
    const ASKING: [(&str, Action); 3] = [
        ("elicitation", Action::Elicit),
        ("sampling", Action::Sample),
        ("roots", Action::ListRoots),
    ];
    let (declared, visits) = (&call.caller.capabilities, call.caller.visits);
    // The empty object, which is by far the most common.
    if !visits && (declared.json().len() == 2 || !can_be_asked(&call.op)) {
        return None;
    }
    let (_, kind, asked) = wanted(&call.op).unwrap_or((Action::Call, ListKind::Tools, ""));
    let item = Item { kind, route, asked };
    let arguments = call.params.root().member("arguments");
    let arguments = arguments.map(|arguments| call.params.slice(arguments));
    let denied: Vec<&str> = ASKING
        .into_iter()
        .filter(|(capability, _)| {
            // To be sent somewhere by an error is to be asked.
            let by_error = visits && *capability == "elicitation";
            by_error || declared.json().root().member(capability).is_some()
        })
        .filter(|(_, action)| decide(call, snapshot, *action, &item, arguments.as_ref()).is_err())
        .map(|(capability, _)| capability)
        .collect();
    if denied.is_empty() {
        return None;
    }
    let less = declared.without(|capability| denied.contains(&capability));
    let declared = Box::new(declared.clone());
    call.caller = Arc::new(Caller {
        capabilities: less,
        visits: visits && !denied.contains(&"elicitation"),
        ..(*call.caller).clone()
    });
    Some(declared)
}

/// Whether the caller may be asked for something on the way to the answer.
fn can_be_asked(op: &Op) -> bool {
    matches!(op, Op::Task(..)) || methods::may_ask_back(op.method())
}

/// An item, and how it was asked for.
struct Item<'a> {
    kind: ListKind,
    route: &'a Route,
    asked: &'a str,
}

/// The one decision.
fn decide(
    call: &Call,
    snapshot: &Snapshot,
    action: Action,
    item: &Item<'_>,
    arguments: Option<&Json>,
) -> Result<Permit, Denied> {
    let name = snapshot.catalog.name_of(item.kind, item.route, item.asked);
    let policy = snapshot.policy();
    let ask = Ask {
        who: &call.identity,
        action,
        item: Subject {
            kind: kind_of(item.kind),
            upstream: &item.route.upstream,
            local: &item.route.local,
            outward: &name,
        },
        arguments,
        circumstances: Circumstances {
            revision: call.caller.revision,
            address: call.address,
            toolset: toolset_of(&call.scope),
            now: SystemTime::now(),
        },
    };
    policy.decide_as(&policy.class_of(&call.identity), &ask)
}

/// The digest of the definition of what a call is about, where that is listed.
pub(super) fn definition<'a>(call: &Call, snapshot: &'a Snapshot) -> Option<&'a str> {
    let (_, kind, asked) = wanted(&call.op)?;
    snapshot.catalog.definition(&call.scope, kind, asked)
}

/// What is done with which sort of item, by the name that the call has for it; `None` for what is about no item.
fn wanted(op: &Op) -> Option<(Action, ListKind, &str)> {
    Some(match op {
        Op::CallTool(name) => (Action::Call, ListKind::Tools, name),
        Op::GetPrompt(name) => (Action::Get, ListKind::Prompts, name),
        Op::ReadResource(uri) | Op::ReadDirectory(uri, _) => {
            (Action::Read, ListKind::Resources, uri)
        }
        Op::GetSkill(uri) => (Action::Read, ListKind::Skills, uri),
        Op::Complete(CompletionRef::Prompt(name)) => (Action::Complete, ListKind::Prompts, name),
        Op::Complete(CompletionRef::Resource(uri)) => (Action::Complete, ListKind::Templates, uri),
        Op::Discover | Op::List(..) | Op::Task(..) | Op::ListTasks(_) | Op::Listen(_) => {
            return None;
        }
    })
}

/// What is said of a name that does not exist.
pub(super) fn missing(op: &Op) -> Error {
    Error::Unknown(match op {
        Op::CallTool(name) => Missing::Tool(name.clone()),
        Op::GetPrompt(name) | Op::Complete(CompletionRef::Prompt(name)) => {
            Missing::Prompt(name.clone())
        }
        Op::ReadResource(uri)
        | Op::Complete(CompletionRef::Resource(uri))
        | Op::GetSkill(uri)
        | Op::ReadDirectory(uri, _) => Missing::Resource(uri.clone()),
        Op::Discover | Op::List(..) | Op::Task(..) | Op::ListTasks(_) | Op::Listen(_) => {
            Missing::Task
        }
    })
}

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        match denied.reason {
            Refusal::Scope(scopes) => Self::InsufficientScope {
                scopes: scopes.into(),
            },
            Refusal::Denied | Refusal::Error | Refusal::Unrepresentable => Self::Denied {
                reason: denied.reason.word(),
                text: denied.text.into(),
            },
        }
    }
}
