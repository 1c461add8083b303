//! Pin: from here on a call sees one world.

use std::sync::Arc;

use super::{Error, Gate, Parts};
use crate::{call::Call, snapshot::World, stage::Pinned};

/// Ties a call to the current snapshot.
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

impl Gate<Call> for Pin {
    type Pass = Pinned;

    fn admit(&self, call: Call) -> Result<Pinned, Error> {
        Ok(Pinned::new(call, self.world.load()))
    }
}
