//! Records as lines, as they stand in the file: to stdout, for a collector of the platform.

use std::io::Write;

use super::{Sink, Undelivered};
use crate::audit::follow::Batch;

/// Writes the lines of the log: with their hashes, so that they can be proved wherever they end up.
#[derive(Debug)]
pub struct Lines<W> {
    name: &'static str,
    out: W,
}

impl<W: Write + Send + 'static> Lines<W> {
    /// To `out`, under a name for the file beside the log.
    pub const fn to(name: &'static str, out: W) -> Self {
        Self { name, out }
    }

    /// What it wrote to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write + Send + 'static> Sink for Lines<W> {
    fn name(&self) -> &str {
        self.name
    }

    fn deliver(&mut self, batch: &Batch) -> Result<(), Undelivered> {
        let written = self.out.write_all(batch.text());
        written
            .and_then(|()| self.out.flush())
            .map_err(|error| Undelivered::Later(error.to_string()))
    }
}
