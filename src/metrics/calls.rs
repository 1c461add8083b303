//! How long operations take, on either side: the two histograms of the MCP conventions.
//!
//! Guarantees: no principal, no argument, no URI and no name that is not in the catalog becomes a label; tools are told apart
//! up to a bound, first come first named; before [`begin`] and without it, an operation costs one branch. To find a series by
//! its labels is most of what a measurement costs: it is done once for each series.

use std::{
    borrow::Borrow,
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, Histogram, Meter},
};

use super::{instruments, names};
use crate::protocol::{Revision, UpstreamId, codes, methods};

/// Upper bounds of buckets of seconds, as the conventions ask for.
pub(super) const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// Whether anybody reads metrics in this process.
static READ: AtomicBool = AtomicBool::new(false);
/// How many tools are told apart.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// Those that are.
static NAMED: LazyLock<ArcSwap<HashSet<Arc<str>>>> = LazyLock::new(ArcSwap::default);

/// One operation that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// The two histograms.
#[derive(Debug)]
pub(super) struct Calls {
    served: Durations,
    asked: Durations,
}

impl Calls {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            served: Durations::new(
                meter,
                "mcp.server.operation.duration",
                "How long requests of clients took, from their arrival to the end of their answer.",
            ),
            asked: Durations::new(
                meter,
                "mcp.client.operation.duration",
                "How long requests to upstreams took, from sending to the end of the answer.",
            ),
        }
    }
}

/// A histogram, and its series that were found before.
#[derive(Debug)]
struct Durations {
    all: Histogram<f64>,
    /// No more than there are series: a tool without a label of its own is never a key.
    found: DashMap<Key, BoundHistogram<f64>>,
}

impl Durations {
    fn new(meter: &Meter, name: &'static str, about: &'static str) -> Self {
        let all = meter
            .f64_histogram(name)
            .with_unit("s")
            .with_description(about)
            .with_boundaries(SECONDS.to_vec())
            .build();
        let found = DashMap::default();
        Self { all, found }
    }

    fn record(&self, operation: &Operation<'_>, took: Duration) {
        let seconds = took.as_secs_f64();
        let are_told_apart =
            operation.method == methods::TOOLS_CALL && MOST.load(Ordering::Relaxed) > 0;
        let operation = Operation {
            tool: operation.tool.filter(|_| are_told_apart),
            ..*operation
        };
        if let Some(series) = self.found.get(&operation as &dyn Keyed) {
            series.record(seconds);
            return;
        }
        let tool = operation.tool.map(label);
        let labels = labels(&operation, tool.as_ref());
        if tool.as_ref() == operation.tool {
            let series = self.all.bind(&labels);
            series.record(seconds);
            self.found.insert(Key::of(&operation), series);
        } else {
            self.all.record(seconds, &labels);
        }
    }
}

/// An operation's series.
#[derive(Debug)]
struct Key {
    method: &'static str,
    revision: Option<Revision>,
    upstream: Option<UpstreamId>,
    tool: Option<Arc<str>>,
    error: Option<&'static str>,
}

impl Key {
    fn of(operation: &Operation<'_>) -> Self {
        Self {
            method: operation.method,
            revision: operation.revision,
            upstream: operation.upstream.cloned(),
            tool: operation.tool.cloned(),
            error: operation.error,
        }
    }
}

/// What a series is looked up by, whoever owns it.
trait Keyed {
    fn operation(&self) -> Operation<'_>;
}

impl Keyed for Operation<'_> {
    fn operation(&self) -> Operation<'_> {
        *self
    }
}

impl Keyed for Key {
    fn operation(&self) -> Operation<'_> {
        Operation {
            method: self.method,
            revision: self.revision,
            upstream: self.upstream.as_ref(),
            tool: self.tool.as_ref(),
            error: self.error,
        }
    }
}

impl<'a> Borrow<dyn Keyed + 'a> for Key {
    fn borrow(&self) -> &(dyn Keyed + 'a) {
        self
    }
}

impl Hash for dyn Keyed + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation().hash(state);
    }
}

impl PartialEq for dyn Keyed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.operation() == other.operation()
    }
}

impl Eq for dyn Keyed + '_ {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation().hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.operation() == other.operation()
    }
}

impl Eq for Key {}

fn labels(operation: &Operation<'_>, tool: Option<&Arc<str>>) -> Vec<KeyValue> {
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
        if let Some(tool) = tool {
            labels.push(KeyValue::new(names::TOOL, Arc::clone(tool)));
        }
    }
    if let Some(error) = operation.error {
        labels.push(KeyValue::new(names::ERROR, error));
    }
    labels
}

/// The name that a tool goes by in metrics, where tools are told apart.
fn label(tool: &Arc<str>) -> Arc<str> {
    static OTHER: LazyLock<Arc<str>> = LazyLock::new(|| names::OTHER.into());
    let most = MOST.load(Ordering::Relaxed);
    let named = NAMED.load();
    if let Some(name) = named.get(tool) {
        return Arc::clone(name);
    }
    if named.len() >= most {
        return Arc::clone(&OTHER);
    }
    NAMED.rcu(|named| {
        let mut named = HashSet::clone(named);
        if named.len() < most {
            named.insert(Arc::clone(tool));
        }
        named
    });
    let is_named = NAMED.load().contains(tool);
    Arc::clone(if is_named { tool } else { &OTHER })
}
