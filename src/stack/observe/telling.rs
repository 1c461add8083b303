//! What metrics and spans are told of a call.
//!
//! A span is named for a tool or prompt only when the call was led to one: what a client merely says is not repeated.

use crate::{
    audit::{
        End,
        record::{Ending, Operation},
    },
    call::{Call, Listener, Op, Principal},
    findings::Scrub,
    jsonrpc::id_in_words,
    metrics::{
        self,
        calls::{self, class_of},
        names,
    },
    protocol::UpstreamId,
    spans::{About, Span, Spans},
    tasks::clock,
};

/// Begins the span of a call, where spans are made.
pub(super) fn begin(spans: &Spans, call: &Call, scrub: &dyn Scrub) -> Option<Span> {
    if !spans.are_made() {
        return None;
    }
    let origin = call.trail.origin();
    let listener = origin.map_or(Listener::Own, |origin| origin.listener);
    let id = origin.and_then(|origin| origin.request.as_ref());
    let id = id.map(|id| scrub.id(id.as_str()));
    let about = About {
        method: call.method(),
        revision: Some(call.caller.revision.as_str()),
        pipe: match listener {
            Listener::Http => Some(false),
            Listener::Stdio => Some(true),
            Listener::Own => None,
        },
        // Clients make them of what they like.
        request: id.as_deref().map(id_in_words),
        ..About::default()
    };
    let mut span = spans.served(&about, origin.and_then(|origin| origin.parent.as_ref()))?;
    if call.caller.principal != Principal::anonymous() {
        span.note(names::PRINCIPAL, call.caller.principal.shared());
    }
    call.trail.leads(span.lead());
    Some(span)
}

/// Tells how it ended.
pub(super) fn end(of: &Operation, span: Option<Span>, ending: &Ending<'_>) {
    if span.is_none() && !calls::are_read() {
        return;
    }
    of.trail.read(|facts| {
        let upstream = facts.route.as_ref().map(|(upstream, _)| upstream);
        ended(of, upstream, span, ending);
    });
}

fn ended(of: &Operation, upstream: Option<&UpstreamId>, span: Option<Span>, ending: &Ending<'_>) {
    let error = class(ending);
    let operation = metrics::Operation {
        method: of.method,
        revision: Some(of.caller.revision),
        upstream,
        tool: of.exposed.as_ref().filter(|_| upstream.is_some()),
        error,
    };
    // Asked anew: what is answered in one turn took time too.
    calls::served(&operation, clock::now_fresh() - of.began);
    if let Some(mut span) = span {
        if let Some(upstream) = upstream {
            span.note(names::UPSTREAM, upstream.shared());
            if let Some(exposed) = &of.exposed {
                span.about(of.method, exposed);
            }
        }
        span.end(error, ending.code);
    }
}

/// Whether a call is told of at all: a stream of changes that goes on for days is no operation with a duration.
pub(super) const fn is_told(op: &Op) -> bool {
    !matches!(op, Op::Listen(_))
}

/// The class of what went wrong: the code where the upstream or its words failed, else the outcome as records have it.
fn class(ending: &Ending<'_>) -> Option<&'static str> {
    match ending.outcome {
        End::Ok | End::InputRequired => None,
        end @ End::ProtocolError => Some(ending.code.map_or(end.word(), class_of)),
        end @ (End::ToolError
        | End::Denied
        | End::Blocked
        | End::Shed
        | End::Invalid
        | End::Timeout
        | End::Cancelled
        | End::Unavailable) => Some(end.word()),
    }
}
