//! Where the process before has ended: its torn tail is cut at its last whole record, and nothing that may be told is thrown away.
// SECURITY AUD-5, REL-8

use std::{
    fs,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use super::{replace, segment, segments};
use crate::audit::chain::ChainPosition;

/// The extension of what was cut off a segment and is no record that was not finished.
pub const DAMAGED: &str = "damaged";

/// What was found of the process before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// The last record.
    pub last: ChainPosition,
    /// How many bytes of no whole record were cut off after it.
    pub cut: u64,
}

/// Finds where the process before has ended, and cuts off what it did not finish.
pub(super) fn recover(directory: &Path) -> io::Result<Option<Recovered>> {
    let mut cut = 0;
    for segment in segments(directory)?.into_iter().rev() {
        let tail = segment::tail_of(&segment.path)?;
        if tail.torn > 0 {
            keep_damaged(&segment.path, tail.length)?;
            let file = fs::OpenOptions::new().write(true).open(&segment.path)?;
            file.set_len(tail.length)?;
            file.sync_all()?;
            cut += tail.torn;
        }
        if let Some(last) = tail.last {
            return Ok(Some(Recovered { last, cut }));
        }
        // Not even its first record was finished.
        fs::remove_file(&segment.path)?;
    }
    let last = ChainPosition::START;
    Ok((cut > 0).then_some(Recovered { last, cut }))
}

/// Keeps what is cut off a segment from `length` on, where that is no record that was not finished: a line that ended was
/// changed later, and somebody will want to see it (SECURITY REL-8).
fn keep_damaged(segment: &Path, length: u64) -> io::Result<()> {
    let mut cut = Vec::new();
    let mut file = fs::File::open(segment)?;
    file.seek(SeekFrom::Start(length))?;
    file.read_to_end(&mut cut)?;
    if memchr::memchr(b'\n', &cut).is_none() {
        return Ok(());
    }
    let aside = segment.with_extension(DAMAGED);
    tracing::warn!(
        bytes = cut.len(),
        kept = %aside.display(),
        "lines at the end of the audit log are no records, or were changed; they are to be kept apart"
    );
    // On a full disk the log itself comes first.
    if let Err(error) = replace(&aside, &cut) {
        tracing::warn!(%error, "they could not be kept");
    }
    Ok(())
}
