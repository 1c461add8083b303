//! Segments that are given up: a sync of one failed, or somebody removed it while it was written.
//!
//! Guarantees: what of it was not durable is written again in the next one, which says why it begins (SECURITY AUD-2, AUD-7); whatever
//! stands at its path by then is left alone, unless it is ours and holds nothing.

use std::{io, mem};

use super::{
    Events, Log, Open,
    told::{Begin, GivenUp, is_void_unless_durable},
};
use crate::audit::chain::Tree;

impl Log {
    /// A segment to write to, where the next could not be begun when the last one ended, or was given up: what was not durable is
    /// written again there.
    ///
    /// # Errors
    /// As [`Log::append`]; it is tried again with the next record, or when this is called.
    pub fn reopen(&mut self) -> io::Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        if self.given_up.is_some() {
            self.rewind();
        }
        let (written, tree) = (self.written, self.tree.clone());
        let again = mem::take(&mut self.unsynced);
        let begin = self.opening.unwrap_or(Begin {
            given_up: self.given_up,
            ..Begin::default()
        });
        let begun = self.begin(begin);
        match begun.and_then(|()| self.write(again.iter())) {
            Ok(()) => {
                (self.opening, self.given_up) = (None, None);
                self.unsynced.append(&again);
                for path in mem::take(&mut self.useless) {
                    self.discard(&path);
                }
                Ok(())
            }
            Err(error) => {
                if let Some(open) = self.open.take() {
                    self.discard(&open.path);
                }
                (self.written, self.tree) = (written, tree);
                self.unsynced = again;
                Err(error)
            }
        }
    }

    /// As if nothing after the last durable record had been: it is written again, as what follows. Checkpoints and beginnings spoke of
    /// hashes that are no more, and nothing was removed yet of what was to be.
    fn rewind(&mut self) {
        self.written = self.synced;
        self.tree = Tree::default();
        let durable = self.synced.seq;
        self.checkpoints
            .retain(|signed| signed.checkpoint.last.seq <= durable);
        let mut again = Events::default();
        for (event, gist) in self.unsynced.iter() {
            if !is_void_unless_durable(event) {
                again.push(event, gist.copied());
            }
        }
        self.unsynced = again;
    }

    /// Gives the segment up where it is not found at its path any more: what is written under no name nobody will read. What of it
    /// was not durable is written again in the next one.
    ///
    /// # Errors
    /// As [`Log::reopen`], which it comes to.
    pub fn look(&mut self) -> io::Result<()> {
        if !self.open.as_ref().is_none_or(Open::is_there) {
            self.give_up();
        }
        self.reopen()
    }

    /// Nothing more goes to this segment; what of it is not durable will be written again.
    pub(super) fn give_up(&mut self) {
        let Some(open) = self.open.take() else { return };
        if !open.is_there() {
            // Whatever is there now is not ours to remove.
            self.given_up = Some(GivenUp::Removed);
            tracing::error!(
                segment = %open.path.display(),
                missing = (self.synced.seq + 1).saturating_sub(open.first),
                upto = self.synced.seq,
                "the audit log was removed or renamed while it was written: as many records as `missing` says are gone with that \
                 file, and a new one goes on after them; find out who did it"
            );
            return;
        }
        self.given_up.get_or_insert(GivenUp::SyncFailed);
        if self.synced.seq >= open.first {
            // What a write has left of it may be more than was noted.
            self.end(open.path, None);
        } else if self.storage.keeps_files() {
            self.useless.push(open.path);
        }
    }
}
