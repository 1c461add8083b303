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

mod file;
mod moment;
mod run;
mod somebody;

use std::{net::IpAddr, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{Action, Item};
use crate::{call::Identity, json::Json};

pub(super) use file::parse;
pub use moment::moment;
pub use run::Outcome;
pub use somebody::Somebody;

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
