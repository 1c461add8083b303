//! Pin: from here on a call sees one world.

use std::sync::Arc;

use super::{Error, Gate, Parts};
use crate::{call::Call, snapshot::World, stage::Pinned};

/// Ties a call to the snapshot that its sender sees now.
#[derive(Debug)]
pub(super) struct Pin {
    world: Arc<World>,
}

impl Pin {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            world: parts.world.clone(),
        }
    }
}

impl Gate<Box<Call>> for Pin {
    type Pass = Pinned;

    fn admit(&self, call: Box<Call>) -> Result<Pinned, Error> {
        let snapshot = self.world.seen_by(&call.identity);
        Ok(Pinned::new(call, snapshot))
    }
}
