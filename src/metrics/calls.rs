//! How long operations and sessions take, on either side: the four histograms of the MCP conventions.
//!
//! Guarantees: no principal, no argument, no URI and no name that is not in the catalog becomes a label; tools are told apart
//! up to a bound, first come first named; before [`begin`] and without it, an operation costs one branch.

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use hashbrown::{Equivalent, HashMap};
use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, Histogram, Meter},
};

use super::{
    instruments, names,
    table::{self, Metric},
};
use crate::protocol::{Revision, UpstreamId, codes, methods};

/// Whether anybody reads metrics in this process.
static READ: AtomicBool = AtomicBool::new(false);
/// How many tools are told apart.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Those that are.
static NAMED: LazyLock<ArcSwap<HashSet<Arc<str>>>> = LazyLock::new(ArcSwap::default);

/// How many series of one histogram are found without building their labels. There are more only where many tools fail in
/// many ways.
const BOUND: usize = 4_096;

/// One operation that is over.
#[derive(Debug, Clone, Copy, Hash)]
pub struct Operation<'a> {
    /// The method.
    pub method: &'static str,
    /// The revision spoken on this hop, where that is settled.
    pub revision: Option<Revision>,
    /// The upstream that it led to.
    pub upstream: Option<&'a UpstreamId>,
    /// The tool, by its outward name: only one that is in the catalog.
    pub tool: Option<&'a Arc<str>>,
    /// The class of what went wrong.
    pub error: Option<&'static str>,
}

/// From now on operations are counted; `tools` of them are told apart by name. Instruments must not have been used before.
pub fn begin(tools: usize) {
    MOST.store(tools, Ordering::Relaxed);
    READ.store(true, Ordering::Relaxed);
}

/// Whether anybody reads metrics.
pub fn are_read() -> bool {
    READ.load(Ordering::Relaxed)
}

/// A call of a client was answered after `took`.
pub fn served(operation: &Operation<'_>, took: Duration) {
    if are_read() {
        instruments().calls.served.record(operation, took);
    }
}

/// An upstream answered, or did not, after `took`.
pub fn asked(operation: &Operation<'_>, took: Duration) {
    if are_read() {
        instruments().calls.asked.record(operation, took);
    }
}

/// A session of a client is over, which was open for so long.
pub fn session_served(revision: Revision, open: Duration) {
    if are_read() {
        instruments().calls.session_served(revision, open);
    }
}

/// A session with an upstream is over, which was open for so long.
pub fn session_held(upstream: &UpstreamId, revision: Revision, open: Duration) {
    if are_read() {
        instruments().calls.session_held(upstream, revision, open);
    }
}

/// The class of an error by its code: the code itself where it is one that is known, since peers may send any number.
pub const fn class_of(code: i64) -> &'static str {
    match code {
        codes::PARSE_ERROR => "-32700",
        codes::INVALID_REQUEST => "-32600",
        codes::METHOD_NOT_FOUND => "-32601",
        codes::INVALID_PARAMS => "-32602",
        codes::INTERNAL_ERROR => "-32603",
        -32000 => "-32000",
        codes::SESSION_NOT_FOUND => "-32001",
        codes::RESOURCE_NOT_FOUND => "-32002",
        codes::HEADER_MISMATCH => "-32020",
        codes::MISSING_CAPABILITY => "-32021",
        codes::UNSUPPORTED_VERSION => "-32022",
        codes::URL_ELICITATION_REQUIRED => "-32042",
        _ => names::OTHER,
    }
}

/// The four histograms.
#[derive(Debug)]
pub(super) struct Calls {
    served: Series,
    asked: Series,
    sessions_served: Histogram<f64>,
    sessions_held: Histogram<f64>,
}

/// A histogram, and those of its series that were noted before.
#[derive(Debug)]
struct Series {
    histogram: Histogram<f64>,
    known: ArcSwap<HashMap<Key, BoundHistogram<f64>>>,
}

/// An [`Operation`] that is kept: what is hashed of the one is hashed of the other.
#[derive(Debug, Clone, Hash, PartialEq, Eq)]
struct Key {
    method: &'static str,
    revision: Option<Revision>,
    upstream: Option<UpstreamId>,
    tool: Option<Arc<str>>,
    error: Option<&'static str>,
}

impl From<&Operation<'_>> for Key {
    fn from(operation: &Operation<'_>) -> Self {
        Self {
            method: operation.method,
            revision: operation.revision,
            upstream: operation.upstream.cloned(),
            tool: operation.tool.cloned(),
            error: operation.error,
        }
    }
}

impl Equivalent<Key> for Operation<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.method == key.method
            && self.revision == key.revision
            && self.upstream == key.upstream.as_ref()
            && self.tool == key.tool.as_ref()
            && self.error == key.error
    }
}

impl Series {
    fn record(&self, operation: &Operation<'_>, took: Duration) {
        let tool = operation
            .tool
            .filter(|_| operation.method == methods::TOOLS_CALL);
        let operation = Operation { tool, ..*operation };
        let took = took.as_secs_f64();
        if let Some(known) = self.known.load().get(&operation) {
            return known.record(took);
        }
        // Tools that are not told apart share one name, and with it a place here.
        let tool = tool.and_then(told_apart);
        let named = Operation {
            tool: tool.as_ref(),
            ..operation
        };
        self.first(&named, took);
    }

    /// Notes one of a series that may be new.
    fn first(&self, operation: &Operation<'_>, took: f64) {
        let known = self.known.load();
        if let Some(known) = known.get(operation) {
            return known.record(took);
        }
        if known.len() >= BOUND {
            return self.histogram.record(took, &labels(operation));
        }
        let bound = self.histogram.bind(&labels(operation));
        bound.record(took);
        self.known.rcu(|known| {
            let mut known = HashMap::clone(known);
            known.insert(Key::from(operation), bound.clone());
            known
        });
    }
}

impl Calls {
    pub(super) fn new(meter: &Meter) -> Self {
        let series = |metric: Metric| Series {
            histogram: metric.histogram(meter),
            known: ArcSwap::default(),
        };
        Self {
            served: series(table::SERVED),
            asked: series(table::ASKED),
            sessions_served: table::SESSIONS_SERVED.histogram(meter),
            sessions_held: table::SESSIONS_HELD.histogram(meter),
        }
    }

    fn session_served(&self, revision: Revision, open: Duration) {
        let revision = KeyValue::new(names::REVISION, revision.as_str());
        self.sessions_served.record(open.as_secs_f64(), &[revision]);
    }

    fn session_held(&self, upstream: &UpstreamId, revision: Revision, open: Duration) {
        let upstream = KeyValue::new(names::UPSTREAM, upstream.shared());
        let revision = KeyValue::new(names::REVISION, revision.as_str());
        let labels = [upstream, revision];
        self.sessions_held.record(open.as_secs_f64(), &labels);
    }

    /// Notes sessions on both sides, whether or not anybody reads.
    #[cfg(test)]
    pub(super) fn note_sessions(&self) {
        let upstream = UpstreamId::parse("x").unwrap();
        self.session_served(Revision::V2025_11_25, Duration::ZERO);
        self.session_held(&upstream, Revision::V2025_11_25, Duration::ZERO);
    }

    /// Notes an operation on both sides, whether or not anybody reads.
    #[cfg(test)]
    pub(super) fn note(&self, operation: &Operation<'_>) {
        self.served.record(operation, Duration::ZERO);
        self.asked.record(operation, Duration::ZERO);
    }
}

/// The labels of an operation whose tool goes by the name it has in metrics.
fn labels(operation: &Operation<'_>) -> Vec<KeyValue> {
    let mut labels = Vec::with_capacity(6);
    labels.push(KeyValue::new(names::METHOD, operation.method));
    if let Some(revision) = operation.revision {
        labels.push(KeyValue::new(names::REVISION, revision.as_str()));
    }
    if let Some(upstream) = operation.upstream {
        labels.push(KeyValue::new(names::UPSTREAM, upstream.shared()));
    }
    if operation.method == methods::TOOLS_CALL {
        labels.push(KeyValue::new(names::OPERATION, "execute_tool"));
        if let Some(tool) = operation.tool {
            labels.push(KeyValue::new(names::TOOL, Arc::clone(tool)));
        }
    }
    if let Some(error) = operation.error {
        labels.push(KeyValue::new(names::ERROR, error));
    }
    labels
}

/// The name that a tool goes by in metrics; none where none are told apart.
fn told_apart(tool: &Arc<str>) -> Option<Arc<str>> {
    static OTHER: LazyLock<Arc<str>> = LazyLock::new(|| names::OTHER.into());
    let most = MOST.load(Ordering::Relaxed);
    if most == 0 {
        return None;
    }
    let named = NAMED.load();
    if let Some(name) = named.get(tool) {
        return Some(Arc::clone(name));
    }
    if named.len() >= most {
        return Some(Arc::clone(&OTHER));
    }
    NAMED.rcu(|named| {
        let mut named = HashSet::clone(named);
        if named.len() < most {
            named.insert(Arc::clone(tool));
        }
        named
    });
    let is_named = NAMED.load().contains(tool);
    Some(Arc::clone(if is_named { tool } else { &OTHER }))
}
