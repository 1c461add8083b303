//! What is told of an exchange with an upstream: how long it took, how it ended, and its span; and the trace that goes along.
//!
//! Guarantees: each exchange that is watched is told once, given up ones too; the trace of the caller goes on as a child of the
//! gateway's span, or of the caller's own where none are made, and never as it came (SECURITY EGR-8). Where nobody wants to
//! know and no trace came along, an exchange costs a branch.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::{
    call::{Call, Op},
    catalog::Route,
    json::Json,
    metrics::{Operation, calls},
    protocol::{
        Revision, UpstreamId, methods,
        trace::{self, Parent},
    },
    spans::{About, Span},
    tasks::clock,
};

/// An exchange that is watched. Dropped before its end was told, it was given up.
#[derive(Debug)]
pub(super) struct ExchangeSpan {
    method: &'static str,
    revision: Option<Revision>,
    upstream: UpstreamId,
    tool: Option<Arc<str>>,
    began: Instant,
    span: Option<Span>,
    carried: Option<(Parent, Option<Box<str>>)>,
    told: bool,
}

impl ExchangeSpan {
    /// An exchange on behalf of `call`, at `revision`, of this number, over a pipe or not; `None` where it need not be watched.
    pub(super) fn of(
        call: &Call,
        route: &Route,
        revision: Revision,
        (number, pipe): (u64, bool),
    ) -> Option<Box<Self>> {
        let lead = call.trail.lead();
        let origin = call.trail.origin();
        let parent = origin.and_then(|origin| origin.parent);
        if lead.is_none() && parent.is_none() && !calls::are_read() {
            return None;
        }
        let method = call.op.method();
        let span = lead.map(|lead| {
            lead.asked(&About {
                method,
                target: Some(&route.local),
                revision: Some(revision.as_str()),
                upstream: Some(route.upstream.as_str()),
                pipe: Some(pipe),
                request: Some(number.to_string().into()),
            })
        });
        let own = span.as_ref().map(Span::told);
        let carried = own.or_else(|| parent.map(child));
        let state = origin.and_then(|origin| origin.state.clone());
        Some(Box::new(Self {
            method,
            revision: Some(revision),
            upstream: route.upstream.clone(),
            tool: if let Op::CallTool(name) = &call.op {
                Some(Arc::clone(name))
            } else {
                None
            },
            began: clock::now(),
            span,
            // Vendors' state is of the caller's trace.
            carried: carried.map(|carried| (carried, state.filter(|_| parent.is_some()))),
            told: false,
        }))
    }

    /// An exchange of the gateway's own.
    pub(super) fn own(upstream: &UpstreamId, method: &'static str) -> Option<Box<Self>> {
        calls::are_read().then(|| {
            Box::new(Self {
                method,
                revision: None,
                upstream: upstream.clone(),
                tool: None,
                began: clock::now(),
                span: None,
                carried: None,
                told: false,
            })
        })
    }

    /// The members of `_meta` that carry the trace on.
    pub(super) fn stamps(&self) -> impl Iterator<Item = (&'static str, Json)> + '_ {
        let parent = self.carried.iter();
        let parent = parent.map(|(parent, _)| (trace::PARENT, Json::string(&parent.to_string())));
        let state = self.carried.iter().filter_map(|(_, state)| state.as_ref());
        parent.chain(state.map(|state| (trace::STATE, Json::string(state))))
    }

    /// The same in headers.
    pub(super) fn stamp(&self, headers: &mut HeaderMap) {
        let Some((parent, state)) = &self.carried else {
            return;
        };
        let mut set = |name, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        set(trace::PARENT, &parent.to_string());
        if let Some(state) = state {
            set(trace::STATE, state);
        }
    }

    /// It ended with a result.
    pub(super) fn answered(&mut self, result: &Json) {
        let failed = self.method == methods::TOOLS_CALL
            && result
                .root()
                .member("isError")
                .is_some_and(|told| told.as_bool() == Some(true));
        self.tell(failed.then_some("tool_error"), None);
    }

    /// It ended with a JSON-RPC error.
    pub(super) fn refused(&mut self, code: i64) {
        self.tell(Some(calls::class_of(code)), Some(code));
    }

    /// It failed, for this reason.
    pub(super) fn failed(&mut self, reason: &'static str) {
        self.tell(Some(reason), None);
    }

    fn tell(&mut self, error: Option<&'static str>, code: Option<i64>) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let operation = Operation {
            method: self.method,
            revision: self.revision,
            upstream: Some(&self.upstream),
            tool: self.tool.as_ref(),
            error,
        };
        calls::asked(&operation, clock::since(self.began));
        if let Some(span) = self.span.take() {
            span.end(error, code);
        }
    }
}

impl Drop for ExchangeSpan {
    fn drop(&mut self) {
        self.tell(Some("cancelled"), None);
    }
}

/// A child of a caller's span that nobody records: its trace and flags, under an id of its own.
fn child(parent: Parent) -> Parent {
    Parent {
        span: fastrand::u64(1..),
        ..parent
    }
}
