//! The world one call sees: everything that may change while the program runs, behind one pointer and one revision number.
//!
//! Guarantees: one writer at a time; a call uses the snapshot it pinned to its end, so it never sees a mixture of old and
//! new; reading takes no lock. The only `ArcSwap` of shared state in the program.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use crate::{
    catalog::{Catalog, Contribution, rules::CatalogRules},
    protocol::UpstreamId,
};

/// One state of the world.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts up with each change.
    pub revision: u64,
    /// What is offered, and where each name leads.
    pub catalog: Catalog,
}

/// Holds the current snapshot and makes the next one.
#[derive(Debug)]
pub struct World {
    current: ArcSwap<Snapshot>,
    // Serialises writers and holds what they build from. A std mutex: never held across an await, and only upstream
    // refreshes take it, never a call.
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    rules: CatalogRules,
    contributions: BTreeMap<UpstreamId, Arc<Contribution>>,
}

impl World {
    /// A world in which no upstream has been reached yet.
    pub fn new(rules: CatalogRules) -> Self {
        let writer = Writer {
            rules,
            contributions: BTreeMap::new(),
        };
        let catalog = writer.build(None);
        Self {
            current: ArcSwap::from_pointee(Snapshot {
                revision: 1,
                catalog,
            }),
            writer: Mutex::new(writer),
        }
    }

    /// The world as it is now.
    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Takes in what an upstream offers now. A contribution equal to the last one changes nothing.
    pub fn publish(&self, upstream: &UpstreamId, contribution: Contribution) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer
            .contributions
            .insert(upstream.clone(), Arc::new(contribution));
        let before = self.current.load();
        let catalog = writer.build(Some(&before.catalog));
        self.current.store(Arc::new(Snapshot {
            revision: before.revision + 1,
            catalog,
        }));
    }
}

impl Writer {
    fn build(&self, previous: Option<&Catalog>) -> Catalog {
        let parts: Vec<_> = self
            .rules
            .upstreams
            .iter()
            .filter_map(|naming| self.contributions.get_key_value(&naming.upstream))
            .map(|(id, contribution)| (id.clone(), contribution.clone()))
            .collect();
        Catalog::build(&self.rules, &parts, previous)
    }
}
