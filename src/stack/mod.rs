//! The stack: what happens to a call, read top to bottom.
//!
//! Gates admit or refuse synchronously and change the call's type; wraps see a call go in and its reply come out. Gates and
//! wraps are polled in `gate.rs` and `wrap.rs`; a layer that may have to wait is a `tower::Service` in its own file.

mod approve;
mod asks;
mod authorize;
mod brought;
mod directories;
mod dispatch;
mod error;
mod gate;
mod handles;
mod laned;
mod limit;
mod listen;
mod login;
mod mirrored;
mod observe;
mod own;
mod pin;
mod ready;
mod relabel;
mod resolve;
mod resume;
mod sanitize;
mod service;
mod skills;
mod upstreams;
mod validate;
mod wrap;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;

use crate::{
    audit::Auditor,
    connect::Connections,
    feed::Feed,
    findings::Findings,
    sanitize::Sanitizer,
    seal::Sealer,
    snapshot::World,
    spans::Spans,
    stage::{Permitted, Pinned},
};

pub use dispatch::Dispatch;
pub use error::{Error, LoginNeeded, Missing};
pub use gate::{Gate, gate};
pub use observe::Pause;
pub use service::McpService;
pub use upstreams::Upstreams;
pub use wrap::{Wrap, wrap};

use approve::Approve;
use authorize::Authorize;
use directories::Directories;
use handles::Handles;
use limit::{ConcurrencyLayer, RateLimit};
use login::LoginLayer;
use mirrored::CheckMirrored;
use observe::{DecideLayer, Observe, Pauses, ScopeLayer};
use own::OwnLayer;
use pin::Pin;
use relabel::Relabel;
use resolve::Resolve;
use resume::{OpenResume, SealResume};
use sanitize::{CheckContent, Sanitize};
use validate::{CheckArguments, CheckResult};

pub use validate::{in_words, refused};

/// What the stack is built from.
#[derive(Clone)]
pub struct Parts {
    /// What calls see.
    pub world: Arc<World>,
    /// Seals cursors and resume state.
    pub sealer: Arc<Sealer>,
    /// Where calls go.
    pub upstreams: Arc<dyn Upstreams>,
    /// The upstreams that people log in to, where there are any.
    pub connections: Option<Connections>,
    /// What may go through.
    pub sanitizer: Arc<Sanitizer>,
    /// Where what is found is noted.
    pub findings: Findings,
    /// Records calls; `None` with `audit: off`.
    pub auditor: Option<Auditor>,
    /// How much callers may be asked, and for how long.
    pub asking: crate::resume::Bounds,
    /// Where calls are noted as they end, for whoever looks at them.
    pub feed: Feed,
    /// Makes the spans of calls, if an exporter is configured.
    pub spans: Spans,
    /// Cancelled when the gateway begins to drain: listens end then.
    pub closing: CancellationToken,
}

/// A call goes down this list and its reply comes back up it.
pub fn mcp(parts: &Parts) -> McpService {
    let handles = Handles::new(parts);
    let directories = Directories::new(&parts.sealer);
    let layers = ServiceBuilder::new()
        .layer(wrap(Observe::new(parts))) // tells of every call when it is over: refused and given up ones included
        .layer(ScopeLayer) // what is logged from here on is the call's own, where it has a span
        .layer(OwnLayer::new(parts)) // what upstreams offer to the caller alone is there before the call looks
        .layer(gate(Pin::new(parts))) // Call -> Pinned: from here on the call sees one world
        .layer(gate(RateLimit::per_principal())) // the cheapest refusal comes before any lookup
        .layer(ConcurrencyLayer::<Pinned>::new()) // requests in flight; waits where a rule has a queue
        .layer(gate(Resolve::new(parts, &handles))) // Pinned -> Routed: a lookup, never a parse of the name
        .layer(gate(Authorize)) // Routed -> Permitted: policy, before anything is said of what is hidden
        .layer(gate(directories.clone())) // upstreams' cursors of directories are opened
        .layer(gate(CheckMirrored)) // headers agree with the body; needs the route, since the tool's schema names them
        .layer(gate(CheckArguments::new(parts))) // arguments fit the tool's own schema
        .layer(gate(OpenResume::new(parts))) // opens the state of a call that goes on, bound to this call and route
        .layer(gate(RateLimit::per_route())) // below Authorize: a refusal must not tell of what is hidden
        .layer(ConcurrencyLayer::<Box<Permitted>>::new()) // calls at once by tool and upstream
        .layer(gate(CheckContent::new(parts))) // what must not leave: before a person is asked, and never altered
        .layer(gate(Approve::new(parts))) // where policy wants a person to agree: goes back to ask first
        .layer(wrap(SealResume::new(parts))) // holds questions to what was declared, seals what leaves
        .layer(LoginLayer::new(parts)) // who has to log in first is asked to, before the upstream hears of the call
        .layer(wrap(handles.clone())) // upstreams' tasks become handles of ours
        .layer(wrap(directories)) // upstreams' cursors of directories are sealed
        .layer(wrap(Relabel)) // inward URIs in what comes back become outward ones
        .layer(wrap(Sanitize::new(parts))) // all above see what the client will see
        .layer(wrap(CheckResult::new(parts))) // results fit the tool's own schema
        .layer(DecideLayer::new(parts)); // on record before anybody upstream hears of it
    let dispatch = Dispatch::new(parts, handles); // snapshot, hub or upstream: one match on the target
    McpService::new(|| layers.service(dispatch.apart())).telling(Pauses::new(parts))
}
