//! What the log records of itself: where segments begin, what is signed, what was removed.

use std::time::SystemTime;

use super::{Event, segment::Segment};
use crate::audit::{
    canonical::{Object, Written},
    chain::ChainPosition,
    key::Checkpoint,
    words,
};

/// Why a segment begins.
#[derive(Clone, Copy, Default)]
pub(super) struct Begin {
    /// Whether somebody else wrote the one before: another process, or this one before it opened the log again.
    pub(super) opens: bool,
    /// Bytes that were cut off the one before.
    pub(super) torn: u64,
    /// Why nothing more goes to the one before, where it did not come to its end.
    pub(super) given_up: Option<GivenUp>,
}

/// Why a segment was given up.
#[derive(Clone, Copy)]
pub(super) enum GivenUp {
    /// It could not be made durable, or half a record not be cut off.
    SyncFailed,
    /// Somebody removed or renamed it.
    Removed,
}

pub(super) fn segment_event(begin: &Begin, after: ChainPosition, key: &str) -> Event {
    let reason = match begin {
        Begin {
            given_up: Some(GivenUp::SyncFailed),
            ..
        } => "sync_failed",
        Begin {
            given_up: Some(GivenUp::Removed),
            ..
        } => "removed",
        Begin { torn: 1.., .. } => "recovery",
        Begin { .. } if after.seq == 0 => "first",
        Begin { opens: true, .. } => "opened",
        Begin { opens: false, .. } => "next",
    };
    event(|object| {
        object
            .text("event", words::SEGMENT)
            .object("segment", |inside| {
                inside
                    .number("after", after.seq)
                    .text("after_hash", &after.hash.to_string())
                    .text("key", key)
                    .text("reason", reason)
                    .number("torn_bytes", begin.torn);
            });
        object.time(SystemTime::now()).number("v", 1);
    })
}

/// `time`: as records have it.
pub(in crate::audit) fn checkpoint_event(
    checkpoint: &Checkpoint,
    signature: &str,
    key: &str,
    time: &str,
) -> Event {
    event(|object| {
        object.object("checkpoint", |inside| {
            inside
                .number("first", checkpoint.first)
                .text("key", key)
                .number("last", checkpoint.last.seq)
                .text("last_hash", &checkpoint.last.hash.to_string())
                .text("root", &checkpoint.root.to_string())
                .text("signature", signature);
        });
        object
            .text("event", words::CHECKPOINT)
            .text("time", time)
            .number("v", 1);
    })
}

pub(super) fn retention_event(old: &[(Segment, ChainPosition)], last: &ChainPosition) -> Event {
    event(|object| {
        object
            .text("event", words::RETENTION)
            .object("retention", |inside| {
                inside
                    .number("last", last.seq)
                    .text("last_hash", &last.hash.to_string())
                    .objects("segments", old, 1_000, |one, (segment, last)| {
                        let name = segment.path.file_name().unwrap_or_default();
                        one.number("first", segment.first)
                            .number("last", last.seq)
                            .text("name", &name.to_string_lossy());
                    });
            });
        object.time(SystemTime::now()).number("v", 1);
    })
}

/// Whether an event tells of the log itself, and is made anew where the log is.
pub(crate) fn is_of_the_log(event: &[u8]) -> bool {
    event.starts_with(CHECKPOINT) || event.starts_with(SEGMENT)
}

/// Whether an event is not written again after a sync that failed: it spoke of hashes that are no more, or of a removal that
/// waited for that sync.
pub(in crate::audit) fn is_void_unless_durable(event: &[u8]) -> bool {
    is_of_the_log(event) || event.starts_with(RETENTION)
}

/// How the event of a checkpoint begins, and no other.
pub(in crate::audit) const CHECKPOINT: &[u8] = b"{\"checkpoint\":{";
/// How the event of a segment's beginning begins, and no other.
pub(in crate::audit) const SEGMENT: &[u8] = b"{\"event\":\"segment\",\"segment\":{";

/// How the event of removed segments begins, and no other.
pub(in crate::audit) const RETENTION: &[u8] = b"{\"event\":\"retention\",\"retention\":{";

pub(in crate::audit) fn event(fill: impl FnOnce(&mut Object<'_>)) -> Event {
    let mut written = Written::default();
    written.object(fill);
    written.bytes().to_vec()
}
