//! The spans of calls: made here, ended by whoever holds them, told by whoever exports.
//!
//! Guarantees: where nothing is exported a span costs a branch and no memory; a span that nobody ends is ended when it is let
//! go of; names and attributes hold methods, names of tools and prompts, configured keys and fixed words, and never an
//! argument, a URI or a credential (STYLE 3.16). Deliberately absent: exporters (`telemetry`), and how trace context is
//! spelled (`protocol::trace`).

use std::{fmt, sync::Arc, time::SystemTime};

use opentelemetry::{
    Context, KeyValue,
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

    /// The span's trace and its own id, in hexadecimal.
    pub fn ids(&self) -> (String, String) {
        (
            self.context.trace_id().to_string(),
            self.context.span_id().to_string(),
        )
    }
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
    pub fn note(&mut self, attribute: KeyValue) {
        self.recording.set_attribute(attribute);
    }

    /// Ends it. `error` is the class of what went wrong, `code` the JSON-RPC error's where there is one.
    pub fn end(mut self, error: Option<&'static str>, code: Option<i64>) {
        if let Some(code) = code {
            self.note(KeyValue::new(names::STATUS_CODE, code.to_string()));
        }
        if let Some(error) = error {
            self.note(KeyValue::new(names::ERROR, error));
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
    let name = about.target.map_or_else(
        || about.method.into(),
        |target| format!("{} {target}", about.method).into(),
    );
    let mut attributes = Vec::with_capacity(8);
    attributes.push(KeyValue::new(names::METHOD, about.method));
    if let Some(target) = about.target {
        let target = target.to_owned();
        match about.method {
            methods::TOOLS_CALL => {
                attributes.push(KeyValue::new(names::OPERATION, "execute_tool"));
                attributes.push(KeyValue::new(names::TOOL, target));
            }
            methods::PROMPTS_GET => attributes.push(KeyValue::new(names::PROMPT, target)),
            _ => {}
        }
    }
    if let Some(revision) = about.revision {
        attributes.push(KeyValue::new(names::REVISION, revision));
    }
    if let Some(upstream) = about.upstream {
        attributes.push(KeyValue::new(names::UPSTREAM, upstream.to_owned()));
    }
    if let Some(pipe) = about.pipe {
        let transport = if pipe { "pipe" } else { "tcp" };
        attributes.push(KeyValue::new(names::TRANSPORT, transport));
    }
    let builder = SpanBuilder::from_name::<std::borrow::Cow<'static, str>>(name)
        .with_kind(kind)
        .with_start_time(SystemTime::now())
        .with_attributes(attributes);
    Span {
        recording: maker.build_with_context(builder, parent),
        maker: Arc::clone(maker),
    }
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
