//! How far a call has come, as types: what lies below a gate accepts only what that gate lets through.

use std::sync::Arc;

use crate::{
    call::{Approved, Call, InputRequired, Op},
    catalog::{Namespace, Route},
    json::Json,
    policy::Permit,
    protocol::{ClientCapabilities, UpstreamId},
    snapshot::{Seen, Snapshot},
};

/// A call that sees one world from here on.
#[derive(Debug)]
pub struct Pinned {
    call: Box<Call>,
    snapshot: Seen,
}

/// A call whose way is known.
#[derive(Debug)]
pub struct Routed {
    /// The call.
    pub call: Box<Call>,
    /// The world it sees.
    pub snapshot: Seen,
    /// Where it goes.
    pub target: Target,
}

/// A call that may be made.
#[derive(Debug)]
pub struct Permitted {
    /// The call.
    pub call: Box<Call>,
    /// The world it sees.
    pub snapshot: Seen,
    /// Where it goes.
    pub way: Way,
    /// How often its caller has been asked for input already.
    pub round: u32,
    /// Answers that it brings though nobody is known to have asked.
    pub brought: Option<Json>,
    /// What the client declared, where policy lets the upstream know of less: [`Call::caller`] then says the less.
    pub declared: Option<Box<ClientCapabilities>>,
    /// Whether the person at the client agreed to it, where policy wants that.
    pub consent: Consent,
}

/// Where a permitted call goes.
#[derive(Debug)]
pub enum Way {
    /// Needs no single upstream: discovery and lists, which the snapshot answers, and `tasks/list`, which asks the upstreams
    /// that hold the tasks.
    Snapshot,
    /// To exactly one upstream.
    Upstream(Passage),
    /// To the hub: a listen, and what of its resources may be watched.
    Hub(Vec<PermittedWatch>),
    /// Back to the caller, who is to agree first.
    Caller(Box<InputRequired>),
}

/// The way to one upstream, which nobody takes without a permit.
#[derive(Debug, Clone)]
pub struct Passage {
    route: Route,
    permit: Permit,
    tool: Option<Arc<str>>,
}

/// Whether the person at the client agreed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Consent {
    /// Was not asked, or did not answer.
    #[default]
    None,
    /// Agreed: who, when, to what.
    Given(Arc<Approved>),
    /// Did not agree.
    Declined,
}

/// Where a call goes.
#[derive(Debug)]
pub enum Target {
    /// Needs no single upstream: discovery and lists, which the snapshot answers, and `tasks/list`, which asks the upstreams
    /// that hold the tasks.
    Snapshot,
    /// To exactly one upstream.
    Upstream(Route),
    /// To one upstream, about a task there.
    Task {
        /// The way.
        route: Route,
        /// The tool that the task came from, by the name it was called by; `None` where that is not known.
        tool: Option<Arc<str>>,
        /// The same by its upstream's name, where the endpoint has it now.
        local_tool: Option<Arc<str>>,
    },
    /// To the hub: a listen, and what of its resources lead anywhere.
    Hub(Vec<Watchable>),
}

/// A resource that might be watched.
#[derive(Debug, Clone)]
pub struct Watchable {
    /// Its URI as the client knows it.
    pub outward: Arc<str>,
    /// Whose it is.
    pub upstream: UpstreamId,
    /// Its URI as its upstream knows it.
    pub local: Arc<str>,
    /// How URIs below it look to the client.
    pub namespace: Arc<Namespace>,
}

/// A resource that may be watched.
#[derive(Debug, Clone)]
pub struct PermittedWatch {
    /// Which.
    pub at: Watchable,
    _permit: Permit,
}

impl Passage {
    /// With this permit, along this route.
    pub const fn new(route: Route, permit: Permit) -> Self {
        Self {
            route,
            permit,
            tool: None,
        }
    }

    /// The same to a task, which came from the tool that its upstream knows by this name.
    pub const fn to_task(route: Route, permit: Permit, tool: Option<Arc<str>>) -> Self {
        Self {
            route,
            permit,
            tool,
        }
    }

    /// The tool whose rules hold for what goes along here, by its upstream's name: the one that `op` calls, or the one that a task
    /// came from, where that is known.
    pub fn tool(&self, op: &Op) -> Option<&str> {
        if let Op::CallTool(_) = op {
            Some(&self.route.local)
        } else {
            self.tool.as_deref()
        }
    }

    /// The route.
    pub const fn route(&self) -> &Route {
        &self.route
    }

    /// The permit.
    pub const fn permit(&self) -> &Permit {
        &self.permit
    }

    /// The route, to be taken now.
    pub fn into_route(self) -> Route {
        self.route
    }
}

impl Watchable {
    /// The way to it.
    pub fn route(&self) -> Route {
        Route {
            upstream: self.upstream.clone(),
            local: self.local.clone(),
            headers: Arc::new([]),
            task_only: false,
            terms: None,
        }
    }
}

impl PermittedWatch {
    /// With this permit.
    pub const fn new(at: Watchable, permit: Permit) -> Self {
        Self {
            at,
            _permit: permit,
        }
    }
}

impl Permitted {
    /// The approval that it goes by, for the record; `None` where policy wants none, or nobody has agreed yet.
    pub const fn approved(&self) -> Option<&Arc<Approved>> {
        match &self.consent {
            Consent::Given(approved) => Some(approved),
            Consent::None | Consent::Declined => None,
        }
    }

    /// The passage, if it goes to an upstream.
    pub const fn passage(&self) -> Option<&Passage> {
        match &self.way {
            Way::Upstream(passage) => Some(passage),
            Way::Snapshot | Way::Hub(_) | Way::Caller(_) => None,
        }
    }
}

impl Pinned {
    /// Ties a call to a world.
    pub const fn new(call: Box<Call>, snapshot: Seen) -> Self {
        Self { call, snapshot }
    }

    /// The call.
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// What is wanted.
    pub const fn op(&self) -> &Op {
        &self.call.op
    }

    /// The world it sees.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The way is found.
    pub fn into_routed(self, target: Target) -> Routed {
        Routed {
            call: self.call,
            snapshot: self.snapshot,
            target,
        }
    }
}
