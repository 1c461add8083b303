//! How far a call has come, as types: what lies below a gate accepts only what that gate lets through.

use std::sync::Arc;

use crate::{
    call::{Call, Op},
    catalog::{Namespace, Route},
    json::Json,
    protocol::UpstreamId,
    snapshot::Snapshot,
};

/// A call that sees one world from here on.
#[derive(Debug)]
pub struct Pinned {
    call: Call,
    snapshot: Arc<Snapshot>,
}

/// A call whose way is known.
#[derive(Debug)]
pub struct Routed {
    /// The call.
    pub call: Call,
    /// The world it sees.
    pub snapshot: Arc<Snapshot>,
    /// Where it goes.
    pub target: Target,
    /// How often its caller has been asked for input already.
    pub round: u32,
    /// Answers that it brings though nobody is known to have asked.
    pub brought: Option<Json>,
}

/// Where a call goes.
#[derive(Debug)]
pub enum Target {
    /// Answered here, from the snapshot: discovery and lists.
    Snapshot,
    /// To exactly one upstream.
    Upstream(Route),
    /// To the hub: a listen, and what of its resources may be watched.
    Hub(Vec<Watched>),
}

/// A resource to be watched.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Its URI as the client knows it.
    pub outward: Arc<str>,
    /// Whose it is.
    pub upstream: UpstreamId,
    /// Its URI as its upstream knows it.
    pub local: Arc<str>,
    /// How URIs below it look to the client.
    pub namespace: Arc<Namespace>,
}

impl Pinned {
    /// Ties a call to a world.
    pub const fn new(call: Call, snapshot: Arc<Snapshot>) -> Self {
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
            round: 0,
            brought: None,
        }
    }
}
