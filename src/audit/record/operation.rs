//! What records are made from: what is remembered of a call, what was decided about it, and how it ended.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use tokio::time::Instant;

use super::super::End;
use crate::{
    call::{Approved, Call, CallId, Caller, Identity, Trail},
    json::Json,
    protocol::{UpstreamId, names::Scope},
    tasks::clock,
};

/// What is remembered of a call for its records.
#[derive(Debug)]
pub struct Operation {
    /// Its reference.
    pub id: CallId,
    /// Its method.
    pub method: &'static str,
    /// The name or the URI that the client used, of what is asked for by one.
    pub exposed: Option<Arc<str>>,
    /// How it speaks.
    pub caller: Arc<Caller>,
    /// Who sent it.
    pub identity: Arc<Identity>,
    /// From where.
    pub address: Option<IpAddr>,
    /// Through which endpoint.
    pub scope: Scope,
    /// What it learns on its way.
    pub trail: Trail,
    /// When it came.
    pub began: Instant,
    /// Its params, as it came: of one that is not let through they are told at its end.
    pub params: Json,
    /// What a user answered, as it came, where it goes on with that; or what was brought unasked, which then may go nowhere.
    pub answers: Option<Json>,
}

/// What was decided about a call that goes on.
#[derive(Debug)]
pub struct Permission<'a> {
    /// Where it goes, and what it is called there; `None` where it goes to no one upstream.
    pub route: Option<(&'a UpstreamId, &'a str)>,
    /// The policies that permit it.
    pub policies: &'a [Arc<str>],
    /// The digest of the set that decided; empty where there is none.
    pub policy: &'a str,
    /// Who agreed to it, where policy wants somebody to.
    pub approved: Option<&'a Approved>,
    /// How often its caller has been asked for input already; 0 where it does not go on with anything.
    pub round: u32,
    /// The digest of the definition of what it is about, where that is listed.
    pub definition: Option<&'a str>,
    /// Of a listen: the resources that are watched from now on, and those that were asked for and are not.
    pub listen: Option<(&'a [&'a str], &'a [&'a str])>,
    /// The params as they are sent, of which `arguments` are told.
    pub params: &'a Json,
    /// What a user answered, as far as it may be sent; or what was brought unasked, which then may go nowhere.
    pub answers: Option<&'a Json>,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct Ending<'a> {
    /// How.
    pub outcome: End,
    /// The reason word, where something was refused or failed.
    pub reason: Option<Cow<'a, str>>,
    /// The JSON-RPC code of an upstream's own error, or of a refusal that goes out as an error.
    pub code: Option<i64>,
    /// The configured rule or the bound that it met.
    pub limit: Option<&'a str>,
    /// The bytes of what is told in its result, without what the dialect words.
    pub bytes: usize,
    /// The result, for rules that keep it.
    pub content: Option<&'a Json>,
}

impl Ending<'_> {
    /// In this way, with nothing else to tell.
    pub const fn of(outcome: End) -> Self {
        Self {
            outcome,
            reason: None,
            code: None,
            limit: None,
            bytes: 0,
            content: None,
        }
    }
}

/// What records are made from: the call itself while it is there, what is remembered of it afterwards.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) id: CallId,
    pub(super) method: &'static str,
    pub(super) exposed: Option<&'a str>,
    pub(super) caller: &'a Caller,
    pub(super) identity: &'a Identity,
    pub(super) address: Option<IpAddr>,
    pub(super) scope: &'a Scope,
    pub(super) trail: &'a Trail,
}

impl<'a> View<'a> {
    /// Of a call that is on its way.
    pub fn of(call: &'a Call) -> Self {
        Self {
            id: call.id,
            method: call.method(),
            exposed: call.op.target().map(|name| &**name),
            caller: &call.caller,
            identity: &call.identity,
            address: call.address,
            scope: &call.scope,
            trail: &call.trail,
        }
    }

    /// Its reference.
    pub(in crate::audit) const fn id(&self) -> CallId {
        self.id
    }

    /// Its method.
    pub(in crate::audit) const fn method(&self) -> &'static str {
        self.method
    }

    /// The name or the URI that the client used.
    pub(in crate::audit) const fn exposed(&self) -> Option<&'a str> {
        self.exposed
    }
}

impl Operation {
    /// Of a call that begins.
    pub fn of(call: &Call) -> Self {
        Self {
            id: call.id,
            method: call.method(),
            exposed: call.op.target().cloned(),
            caller: call.caller.clone(),
            identity: call.identity.clone(),
            address: call.address,
            scope: call.scope.clone(),
            trail: call.trail.clone(),
            began: clock::now(),
            params: call.params.clone(),
            answers: (call.resume.as_ref()).and_then(|resume| resume.responses.clone()),
        }
    }

    /// What its records are made from.
    pub fn view(&self) -> View<'_> {
        View {
            id: self.id,
            method: self.method,
            exposed: self.exposed.as_deref(),
            caller: &self.caller,
            identity: &self.identity,
            address: self.address,
            scope: &self.scope,
            trail: &self.trail,
        }
    }
}
