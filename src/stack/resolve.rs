//! Resolve: where a call goes. A lookup, never a parse of a name.

use std::sync::Arc;

use super::{Error, Gate, Missing, Parts, Upstreams, authorize, handles::Handles};
use crate::{
    call::{CompletionRef, Filter, Op},
    catalog::{Offered, WithheldItem},
    metrics::{Bound, reached},
    protocol::methods::ListKind,
    stage::{Pinned, Routed, Target, Watchable},
    upstream::FromUpstream,
};

/// Finds the way of a call in its snapshot.
pub(super) struct Resolve {
    handles: Handles,
    /// They know why nothing is known of one of them.
    upstreams: Arc<dyn Upstreams>,
    /// How many resources one listen may name.
    addresses: usize,
}

impl Resolve {
    /// Tasks are found by `handles`.
    pub(super) fn new(parts: &Parts, handles: &Handles) -> Self {
        Self {
            handles: handles.clone(),
            upstreams: parts.upstreams.clone(),
            addresses: parts.world.hub().bounds().addresses,
        }
    }
}

impl Gate<Pinned> for Resolve {
    type Pass = Routed;

    fn admit(&self, call: Pinned) -> Result<Routed, Error> {
        if matches!(call.op(), Op::Complete(_)) && !offers_completions(&call) {
            return Err(Error::NotOffered(call.op().method().into()));
        }
        if !offers_extension(&call) {
            return Err(Error::NotOffered(call.op().method().into()));
        }
        let target = self.find(&call).map_err(|error| {
            if !matches!(error, Error::Unknown(_)) {
                return error;
            }
            self.absent(&call).unwrap_or_else(|| {
                authorize::linger(call.call(), call.snapshot());
                error
            })
        })?;
        Ok(call.into_routed(target))
    }
}

impl Resolve {
    /// What is said of a name that nobody is known to have, but that is spelled as one of an upstream that is not there and of
    /// which nothing is known. To whoever could not use it there it is as unknown as any, and judging that takes as long as
    /// lingering (SECURITY AUTHZ-7).
    fn absent(&self, call: &Pinned) -> Option<Error> {
        let (kind, name) = match call.op() {
            Op::CallTool(name) => (ListKind::Tools, name),
            Op::GetPrompt(name) | Op::Complete(CompletionRef::Prompt(name)) => {
                (ListKind::Prompts, name)
            }
            // Whose they are is known by their spelling alone, and their upstreams say that they are away.
            Op::ReadResource(_)
            | Op::ReadDirectory(..)
            | Op::Complete(CompletionRef::Resource(_))
            | Op::GetSkill(_)
            | Op::Discover
            | Op::List(..)
            | Op::Task(..)
            | Op::ListTasks(_)
            | Op::Listen(_) => return None,
        };
        let (call, snapshot) = (call.call(), call.snapshot());
        let route = snapshot.catalog.unread(&call.scope, kind, name)?;
        let upstream = route.upstream.clone();
        let error = self.upstreams.absence(&upstream)?;
        if let Err(denied) = authorize::may(call, snapshot, &route) {
            return Some(denied);
        }
        call.trail
            .note(|facts| facts.route = Some((route.upstream, route.local)));
        Some(FromUpstream { upstream, error }.into())
    }

    /// Where a call leads, unless that is withheld (SECURITY CAT-2).
    fn find(&self, call: &Pinned) -> Result<Target, Error> {
        let catalog = &call.snapshot().catalog;
        let about = about(call.op()).filter(|_| catalog.withholds_some());
        let Some((kind, asked)) = about else {
            return self.way(call);
        };
        if let Some(held) = catalog.withheld(&call.call().scope, kind, asked) {
            return Err(quarantined(call, kind, asked, &held));
        }
        let target = self.way(call)?;
        // Another name than its own may lead to it, too.
        if let Target::Upstream(route) = &target
            && let Some(held) = catalog.withheld_at(kind, route)
        {
            return Err(quarantined(call, kind, asked, &held));
        }
        Ok(target)
    }

    /// Where a call leads, if nothing is withheld.
    fn way(&self, call: &Pinned) -> Result<Target, Error> {
        let catalog = &call.snapshot().catalog;
        let scope = &call.call().scope;
        let unknown = |missing| Error::Unknown(missing);
        Ok(match call.op() {
            Op::Listen(filter) => Target::Hub(watchable(call, filter, self.addresses)?),
            Op::GetSkill(uri) => Target::Upstream(
                catalog
                    .skill(scope, uri)
                    .ok_or_else(|| unknown(Missing::Resource(uri.clone())))?,
            ),
            Op::ReadDirectory(uri, _) => Target::Upstream(
                catalog
                    .directory(scope, uri)
                    .ok_or_else(|| unknown(Missing::Resource(uri.clone())))?,
            ),
            Op::Task(..) | Op::ListTasks(_) => self.handles.route(call)?,
            Op::Discover | Op::List(..) => Target::Snapshot,
            Op::CallTool(name) => Target::Upstream(
                catalog
                    .tool(scope, name)
                    .ok_or_else(|| {
                        let withheld = catalog.withholds(scope, name)
                            && authorize::sees_tool(call.call(), call.snapshot(), name);
                        if withheld {
                            Error::OnlyForApps
                        } else {
                            unknown(Missing::Tool(name.clone()))
                        }
                    })?
                    .clone(),
            ),
            Op::GetPrompt(name) | Op::Complete(CompletionRef::Prompt(name)) => Target::Upstream(
                catalog
                    .prompt(scope, name)
                    .ok_or_else(|| unknown(Missing::Prompt(name.clone())))?
                    .clone(),
            ),
            Op::ReadResource(uri) => Target::Upstream(
                catalog
                    .resource(scope, uri)
                    .ok_or_else(|| unknown(Missing::Resource(uri.clone())))?,
            ),
            Op::Complete(CompletionRef::Resource(uri)) => Target::Upstream(
                catalog
                    .template(scope, uri)
                    .ok_or_else(|| unknown(Missing::Resource(uri.clone())))?,
            ),
        })
    }
}

/// What a call is about that may be withheld, by the name that it has for it.
fn about(op: &Op) -> Option<(ListKind, &Arc<str>)> {
    Some(match op {
        Op::CallTool(name) => (ListKind::Tools, name),
        Op::GetPrompt(name) | Op::Complete(CompletionRef::Prompt(name)) => {
            (ListKind::Prompts, name)
        }
        Op::ReadResource(uri) | Op::ReadDirectory(uri, _) => (ListKind::Resources, uri),
        Op::Complete(CompletionRef::Resource(uri)) => (ListKind::Templates, uri),
        Op::GetSkill(uri) => (ListKind::Skills, uri),
        Op::Discover | Op::List(..) | Op::Task(..) | Op::ListTasks(_) | Op::Listen(_) => {
            return None;
        }
    })
}

/// What is said of what is withheld; to those who would not see it, it does not exist (SECURITY AUTHZ-7).
fn quarantined(call: &Pinned, kind: ListKind, asked: &Arc<str>, held: &WithheldItem<'_>) -> Error {
    let route = held.route();
    call.call().trail.note(|facts| {
        facts.route = Some((route.upstream.clone(), route.local.clone()));
        facts.definition = Some(held.definition().into());
    });
    let missing = match kind {
        ListKind::Tools => Missing::Tool(asked.clone()),
        ListKind::Prompts => Missing::Prompt(asked.clone()),
        ListKind::Resources | ListKind::Templates | ListKind::Skills => {
            Missing::Resource(asked.clone())
        }
    };
    if authorize::would_see(call.call(), call.snapshot(), kind, route, held.outward()) {
        Error::Quarantined(missing)
    } else {
        Error::Unknown(missing)
    }
}

/// Whether the extension that a method is of is offered by the endpoint; true of every method that is of none.
fn offers_extension(call: &Pinned) -> bool {
    let has = |has: fn(&Offered) -> bool| {
        let offered = call.snapshot().catalog.offered(&call.call().scope);
        offered.is_some_and(has)
    };
    match call.op() {
        Op::GetSkill(_) | Op::List(ListKind::Skills, _) => has(|offered| offered.skills),
        Op::ReadDirectory(..) => has(|offered| offered.directories),
        // Whether tasks are offered depends on the caller, too.
        Op::Task(..)
        | Op::ListTasks(_)
        | Op::List(..)
        | Op::Discover
        | Op::CallTool(_)
        | Op::GetPrompt(_)
        | Op::ReadResource(_)
        | Op::Complete(_)
        | Op::Listen(_) => true,
    }
}

/// What of a listen's resources leads anywhere; the rest is not in force (PROTOCOL H16).
fn watchable(call: &Pinned, filter: &Filter, most: usize) -> Result<Vec<Watchable>, Error> {
    if filter.subscriptions.len() > most {
        reached(Bound::StreamAddresses);
        return Err(Error::Limited("too many resources in one listen"));
    }
    let (catalog, scope) = (&call.snapshot().catalog, &call.call().scope);
    let way = |uri: &Arc<str>| {
        if catalog.withheld(scope, ListKind::Resources, uri).is_some() {
            return None;
        }
        let route = catalog.resource(scope, uri)?;
        if catalog.withheld_at(ListKind::Resources, &route).is_some() {
            return None;
        }
        Some(Watchable {
            outward: uri.clone(),
            namespace: catalog.namespace(scope, &route.upstream)?,
            upstream: route.upstream,
            local: route.local,
        })
    };
    Ok(filter.subscriptions.iter().filter_map(way).collect())
}

/// Whether any upstream of the endpoint completes: only then is the method offered (PROTOCOL D4).
fn offers_completions(call: &Pinned) -> bool {
    let face = call
        .snapshot()
        .catalog
        .face(&call.call().scope, call.call().caller.revision);
    face.is_some_and(|face| face.capabilities.root().member("completions").is_some())
}
