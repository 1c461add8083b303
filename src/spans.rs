//! The spans of calls: made here, ended by whoever holds them, told by whoever exports.
//!
//! Guarantees: where nothing is exported a span costs a branch and no memory; a span that nobody ends is ended when it is let
//! go of; names and attributes hold methods, names of tools and prompts, ids of requests, configured keys and fixed words,
//! and never an argument, a URI or a credential (STYLE 3.16): whoever begins a span gives no id that was not scrubbed.
//! Deliberately absent: exporters (`telemetry`), and how trace context is spelled (`protocol::trace`).

use std::{borrow::Cow, cell::Cell, fmt, sync::Arc, time::SystemTime};

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags,
        TraceId, TraceState, Tracer,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span as Recording};

use crate::{
    metrics::names,
    protocol::{methods, trace::Parent},
};

/// What makes spans, or makes none. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Spans(Option<Arc<SdkTracer>>);

/// What a span is about, in words that may be told.
#[derive(Debug, Clone, Default)]
pub struct About<'a> {
    /// The method.
    pub method: &'static str,
    /// The tool or prompt, by the name that the peer at the other end of this hop calls it.
    pub target: Option<&'a str>,
    /// The revision spoken on this hop.
    pub revision: Option<&'static str>,
    /// The upstream's key.
    pub upstream: Option<&'a str>,
    /// Whether the hop is a pipe, where that is known.
    pub pipe: Option<bool>,
    /// The id that the request has on this hop.
    pub request: Option<Cow<'a, str>>,
}

/// A span that has begun. It ends when it is told to, or is let go of.
pub struct Span {
    recording: Recording,
    maker: Arc<SdkTracer>,
}

/// Where a span's children find it; outlives the span.
#[derive(Clone)]
pub struct Lead {
    context: SpanContext,
    maker: Arc<SdkTracer>,
}

impl Spans {
    /// Makes none.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Makes them with this.
    pub fn made_by(tracer: SdkTracer) -> Self {
        Self(Some(Arc::new(tracer)))
    }

    /// Whether any are made.
    pub const fn are_made(&self) -> bool {
        self.0.is_some()
    }

    /// The span of a call that came in, in the caller's trace if it told one.
    pub fn served(&self, about: &About<'_>, parent: Option<&Parent>) -> Option<Span> {
        let maker = self.0.as_ref()?;
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(remote(parent)),
            None => Context::new(),
        };
        Some(begun(maker, SpanKind::Server, about, &context))
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spans(made: {})", self.are_made())
    }
}

impl Lead {
    /// The span of an exchange with an upstream, on behalf of the span that this leads to.
    pub fn asked(&self, about: &About<'_>) -> Span {
        let context = Context::new().with_remote_span_context(self.context.clone());
        begun(&self.maker, SpanKind::Client, about, &context)
    }

    /// What happens on this thread until the guard is dropped happens in the span: [`current`] tells whoever writes logs.
    pub fn within(&self) -> Within {
        Within(CURRENT.replace(Some(self.ids())))
    }

    /// The trace and the span.
    pub fn ids(&self) -> (u128, u64) {
        (
            u128::from_be_bytes(self.context.trace_id().to_bytes()),
            u64::from_be_bytes(self.context.span_id().to_bytes()),
        )
    }
}

/// The trace and the span that this thread is in, where it is in one.
pub fn current() -> Option<(u128, u64)> {
    CURRENT.get()
}

/// See [`Lead::within`].
#[derive(Debug)]
#[must_use]
pub struct Within(Option<(u128, u64)>);

impl Drop for Within {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

thread_local! {
    static CURRENT: Cell<Option<(u128, u64)>> = const { Cell::new(None) };
}

impl fmt::Debug for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lead({})", self.context.span_id())
    }
}

impl Span {
    /// For its children.
    pub fn lead(&self) -> Lead {
        Lead {
            context: self.recording.span_context().clone(),
            maker: Arc::clone(&self.maker),
        }
    }

    /// What the next hop is told: this span as its parent.
    pub fn told(&self) -> Parent {
        let context = self.recording.span_context();
        Parent {
            trace: u128::from_be_bytes(context.trace_id().to_bytes()),
            span: u64::from_be_bytes(context.span_id().to_bytes()),
            flags: context.trace_flags().to_u8(),
        }
    }

    /// Adds a fact.
    pub fn note(&mut self, key: &'static str, value: impl Into<Value>) {
        self.recording.set_attribute(KeyValue::new(key, value));
    }

    /// Names what it is about, which was not known to be anything's name when it began.
    pub fn about(&mut self, method: &'static str, target: &str) {
        if let Some((name, key)) = named(method, target) {
            self.recording.update_name(name);
            self.note(key, target.to_owned());
        }
    }

    /// Ends it. `error` is the class of what went wrong, `code` the JSON-RPC error's where there is one.
    pub fn end(mut self, error: Option<&'static str>, code: Option<i64>) {
        if let Some(code) = code {
            self.note(names::STATUS_CODE, code.to_string());
        }
        if let Some(error) = error {
            self.note(names::ERROR, error);
            // Words of upstreams are content: the class is all that is told.
            self.recording.set_status(Status::error(""));
        }
        self.recording.end();
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({})", self.recording.span_context().span_id())
    }
}

fn begun(maker: &Arc<SdkTracer>, kind: SpanKind, about: &About<'_>, parent: &Context) -> Span {
    let mut name = Cow::Borrowed(about.method);
    let mut attributes = Vec::with_capacity(9);
    attributes.push(KeyValue::new(names::METHOD, about.method));
    if about.method == methods::TOOLS_CALL {
        attributes.push(KeyValue::new(names::OPERATION, "execute_tool"));
    }
    if let Some(target) = about.target
        && let Some((whole, key)) = named(about.method, target)
    {
        name = whole.into();
        attributes.push(KeyValue::new(key, target.to_owned()));
    }
    if let Some(revision) = about.revision {
        attributes.push(KeyValue::new(names::REVISION, revision));
    }
    if let Some(upstream) = about.upstream {
        attributes.push(KeyValue::new(names::UPSTREAM, upstream.to_owned()));
    }
    if let Some(id) = &about.request {
        attributes.push(KeyValue::new(names::REQUEST, id.clone().into_owned()));
    }
    if let Some(pipe) = about.pipe {
        let transport = if pipe { "pipe" } else { "tcp" };
        attributes.push(KeyValue::new(names::TRANSPORT, transport));
    }
    let builder = SpanBuilder::from_name(name)
        .with_kind(kind)
        .with_start_time(SystemTime::now())
        .with_attributes(attributes);
    Span {
        recording: maker.build_with_context(builder, parent),
        maker: Arc::clone(maker),
    }
}

/// The name of a span about `target`, and the attribute that names the target alone; `None` where it is no name but a URI, or
/// something else that is everybody's own.
fn named(method: &'static str, target: &str) -> Option<(String, &'static str)> {
    let key = match method {
        methods::TOOLS_CALL => names::TOOL,
        methods::PROMPTS_GET => names::PROMPT,
        _ => return None,
    };
    Some((format!("{method} {target}"), key))
}

/// A caller's span, as what exports calls it.
fn remote(parent: &Parent) -> SpanContext {
    SpanContext::new(
        TraceId::from(parent.trace),
        SpanId::from(parent.span),
        TraceFlags::new(parent.flags),
        true,
        // Vendors' state goes from hop to hop beside the spans: nothing here reads it.
        TraceState::NONE,
    )
}
