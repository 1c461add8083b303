//! Removing segments that are kept too long.
//!
//! Guarantees: that they are gone is recorded, signed and durable before they are, since anybody who can write the files could say so
//! (SECURITY AUD-10); the oldest go first, so that what is left is one chain. What cannot be removed stops nothing else, and it is not
//! claimed again and again that it was.

use std::{
    fs, io,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{
    INDEX, Log, Segment,
    segment::{self, segments},
    sync_directory,
    told::retention_event,
};
use crate::audit::chain::ChainPosition;

/// How long nothing is removed after something could not be.
const PAUSE: Duration = Duration::from_secs(24 * 3_600);

/// Segments that are kept too long.
struct Old {
    /// With the last record of each; the oldest first.
    segments: Vec<(Segment, ChainPosition)>,
    /// The record after which the log goes on without them.
    last: ChainPosition,
}

impl Log {
    /// Removes segments whose last change is older than is kept. The one that is written to stays, and the one before it.
    pub(super) fn retire(&mut self) {
        let pauses = self.retires_from.is_some_and(|at| Instant::now() < at);
        if pauses || !self.storage.keeps_files() {
            return;
        }
        let removed = match self.old() {
            Ok(None) => Ok(()),
            // What cannot be recorded is not removed; the next record tells that nothing can be written.
            Ok(Some(old)) if self.record_removal(&old).is_err() => Ok(()),
            Ok(Some(old)) => self.remove(&old),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            self.retires_from = Instant::now().checked_add(PAUSE);
            tracing::warn!(
                directory = %self.directory.display(),
                %error,
                "old audit records cannot be removed; it is tried again in 24 hours"
            );
        }
    }

    fn old(&self) -> io::Result<Option<Old>> {
        let now = SystemTime::now();
        let all = segments(&self.directory)?;
        let mut old = Vec::new();
        for segment in all.iter().take(all.len().saturating_sub(2)) {
            let changed = fs::metadata(&segment.path)?.modified()?;
            let age = now.duration_since(changed).unwrap_or_default();
            if age < self.cuts.retention {
                break;
            }
            let last = segment::tail_of(&segment.path)?.last;
            old.push((segment.clone(), last.unwrap_or(ChainPosition::START)));
        }
        let (Some((_, last)), Some(stays)) = (old.last(), all.get(old.len())) else {
            return Ok(None);
        };
        // One that was given up holds more than the log goes on from.
        let last = segment::before(&stays.path)?.unwrap_or(*last);
        Ok(Some(Old {
            segments: old,
            last,
        }))
    }

    fn record_removal(&mut self, old: &Old) -> io::Result<()> {
        let event = retention_event(&old.segments, &old.last);
        self.write([(&*event, None)])?;
        self.unsynced.push(&event, None);
        self.sign()?;
        let Some(syncing) = self.syncing() else {
            return Ok(());
        };
        let result = syncing.wait();
        self.synced(&syncing, &result)?;
        result
    }

    fn remove(&self, old: &Old) -> io::Result<()> {
        for (segment, _) in &old.segments {
            self.storage.remove(&segment.path)?;
            _ = fs::remove_file(segment.path.with_extension(INDEX));
            segment::remove_index_before(&segment.path);
        }
        match old.segments.first() {
            Some((segment, _)) => sync_directory(&segment.path),
            None => Ok(()),
        }
    }
}
