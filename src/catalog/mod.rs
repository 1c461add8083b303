//! The merged catalog: what every upstream offers, under outward names, in one deterministic order.
//!
//! Immutable once built. Every outward name and URI leads to exactly one route; conflicts are decided and reported when
//! the catalog is built, never at call time. Lists are encoded here, once, so that answering one is a lookup.

pub mod rules;

use std::{sync::Arc, time::Duration};

use crate::{
    call::ServerCard,
    json::Json,
    protocol::{UpstreamId, methods::ListKind, mirror::ParamHeader},
};

/// What one upstream brings, raw as it came: the input of a build.
#[derive(Debug, Clone, Default)]
pub struct Contribution {
    /// What the server said of itself; `None` until it was reached once.
    pub card: Option<ServerCard>,
    /// Its four lists; empty where it has none.
    pub tools: Listing,
    /// See [`Contribution::tools`].
    pub prompts: Listing,
    /// See [`Contribution::tools`].
    pub resources: Listing,
    /// See [`Contribution::tools`].
    pub templates: Listing,
    /// Whether the upstream is away now, so that what is known of it is stale.
    pub away: bool,
}

impl Contribution {
    /// The list of this kind.
    pub const fn listing(&self, kind: ListKind) -> &Listing {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    /// The list of this kind, to fill.
    pub const fn listing_mut(&mut self, kind: ListKind) -> &mut Listing {
        match kind {
            ListKind::Tools => &mut self.tools,
            ListKind::Prompts => &mut self.prompts,
            ListKind::Resources => &mut self.resources,
            ListKind::Templates => &mut self.templates,
        }
    }
}

/// All pages of one list of one upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The items in the upstream's order.
    pub items: Arc<[Json]>,
    /// The smallest `ttlMs` over its pages; `None` from an upstream that gives none.
    pub ttl: Option<Duration>,
    /// Whether every page was `cacheScope: public`.
    pub public: bool,
    /// Whether a limit cut the list short.
    pub truncated: bool,
}

/// Where an outward name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Whose it is.
    pub upstream: UpstreamId,
    /// What the upstream calls it: a tool or prompt name, a URI, or a URI template.
    pub local: Arc<str>,
    /// For a tool: its arguments that travel in headers too.
    pub headers: Arc<[ParamHeader]>,
}
