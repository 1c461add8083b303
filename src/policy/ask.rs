//! The question and its two answers.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{Action, Subject};
use crate::{call::Identity, json::Json, protocol::Revision};

/// May somebody do something with an item?
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Who.
    pub who: &'a Identity,
    /// Do what.
    pub action: Action,
    /// With which item. For the actions toward the client: the item whose use makes the upstream ask.
    pub item: Subject<'a>,
    /// `arguments` of a tool or prompt, as sent; `None` is the same as `{}`.
    pub arguments: Option<&'a Json>,
    /// What else is known.
    pub circumstances: Circumstances<'a>,
}

/// What is known beside who, what and with which arguments: `context` in policies.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// What the client speaks.
    pub revision: Revision,
    /// Whence it connects; `None` on stdio.
    pub address: Option<IpAddr>,
    /// The toolset of the endpoint, if it is that of one.
    pub toolset: Option<&'a str>,
    /// The wall clock.
    pub now: SystemTime,
}

/// Proof that a policy permits. Made by [`super::Prepared::decide`] alone.
#[derive(Debug, Clone)]
pub struct Permit {
    /// `None`: no policy is configured.
    by: Option<Arc<Decided>>,
}

#[derive(Debug)]
pub(super) struct Decided {
    pub(super) policies: Vec<Arc<str>>,
    pub(super) digest: Arc<str>,
    pub(super) approval: Option<Approval>,
}

/// A human must agree before the call leaves: `@require("approval")`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The policy that says so.
    pub policy: Arc<str>,
    /// For how long an answer counts: `@within("10m")`; `None`: the default of whoever asks.
    pub within: Option<Duration>,
}

impl Permit {
    /// What is given where no policy is configured.
    pub(super) const fn unasked() -> Self {
        Self { by: None }
    }

    pub(super) fn by(decided: Decided) -> Self {
        Self {
            by: Some(Arc::new(decided)),
        }
    }

    /// The policies that permit, by name; none where no policy is configured.
    pub fn policies(&self) -> &[Arc<str>] {
        self.by.as_ref().map_or(&[], |by| &by.policies)
    }

    /// [`super::Policy::digest`] of the set that decided.
    pub fn digest(&self) -> &str {
        self.by.as_ref().map_or("", |by| &by.digest)
    }

    /// Whether, and by which policy, a human must agree first. With several, that of the shortest time.
    pub fn approval(&self) -> Option<&Approval> {
        self.by.as_ref()?.approval.as_ref()
    }
}

/// That something may not be done, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("denied: {text}")]
pub struct Denied {
    /// Which reason is given.
    pub reason: Refusal,
    /// Whether the item is not even listed for whoever asks: then the answer is that for an unknown name, byte for byte
    /// (SECURITY AUTHZ-7), and `text` is for the audit record alone.
    pub hidden: bool,
    /// Whether what does not depend on the request was found out for this and is remembered from now on, which takes longer.
    pub anew: bool,
    /// The policies that decided: those that forbid, or that could not be evaluated, or that mention what cannot be
    /// represented, or that would permit with the scopes; none when simply none permits.
    pub policies: Vec<Arc<str>>,
    /// [`super::Policy::digest`] of the set that decided.
    pub digest: Arc<str>,
    /// What the model, or its user, may read: one sentence or two, without values of arguments.
    pub text: String,
}

/// Why something is denied (SECURITY 5.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No policy permits, or one forbids: `policy_denied`.
    Denied,
    /// A policy could not be evaluated: `policy_error`.
    Error,
    /// A policy mentions an argument that cannot be represented exactly: `policy_unrepresentable`.
    Unrepresentable,
    /// These scopes would help: `insufficient_scope`. Never empty.
    Scope(Vec<Arc<str>>),
}

impl Refusal {
    /// The word in errors and in records.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Denied => "policy_denied",
            Self::Error => "policy_error",
            Self::Unrepresentable => "policy_unrepresentable",
            Self::Scope(_) => "insufficient_scope",
        }
    }
}

impl Denied {
    /// What is said where nothing is permitted.
    pub(super) fn hidden() -> Self {
        Self {
            reason: Refusal::Denied,
            hidden: true,
            anew: false,
            policies: Vec::new(),
            digest: "".into(),
            text: "no policy permits this".into(),
        }
    }
}
