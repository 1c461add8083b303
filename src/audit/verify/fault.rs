//! What can be wrong with a log, in words.

use std::{fmt, path::PathBuf};

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The segment.
    pub file: PathBuf,
    /// The line in it, from 1; the last one for what is wrong with the end.
    pub line: u64,
    /// The byte that line begins at.
    pub offset: u64,
    /// The number of the record, as far as it can be told.
    pub seq: Option<u64>,
    /// What.
    pub kind: Kind,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A line that is no record.
    Malformed,
    /// A line without an end. Where a gateway writes at this moment it may be about to.
    Torn,
    /// The content is not the one that was hashed.
    Changed,
    /// It names another record as the one before.
    Broken,
    /// Records that are not there.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// Records that are not there, and a record of their removal that no checkpoint covers.
    RemovalNotSigned {
        /// The last of them.
        to: u64,
        /// The record that says so.
        by: u64,
    },
    /// It does not come after the one before: moved, doubled, or put in.
    OutOfOrder {
        /// The number of the one before.
        after: u64,
    },
    /// It is of another process than those around it.
    Foreign,
    /// What stood in a segment that was given up does not come again.
    NotAgain,
    /// A checkpoint that no given key has signed.
    NotSigned {
        /// The first record that it claims to cover.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// A checkpoint that was signed over other records.
    NotAsSigned {
        /// The first record that it covers.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// The record is not the one that a checkpoint held elsewhere names.
    NotAsOutside,
    /// A checkpoint held elsewhere that no given key has signed.
    OutsideNotSigned {
        /// The last record that it claims to cover.
        seq: u64,
    },
    /// The log ends before a checkpoint held elsewhere.
    Cut {
        /// The last record that is there.
        last: u64,
        /// A record that was there.
        known: u64,
    },
    /// An index does not list all that its segment holds.
    LeavesOut,
    /// More records without a checkpoint than there can be.
    Unsigned {
        /// The last record that is covered.
        after: u64,
    },
}

impl Kind {
    /// A stable word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Torn => "torn",
            Self::Changed => "changed",
            Self::Broken => "broken_chain",
            Self::Missing { .. } => "missing",
            Self::RemovalNotSigned { .. } => "removal_not_signed",
            Self::OutOfOrder { .. } => "out_of_order",
            Self::Foreign => "foreign_process",
            Self::NotAgain => "not_written_again",
            Self::NotSigned { .. } => "not_signed",
            Self::NotAsSigned { .. } => "not_as_signed",
            Self::NotAsOutside => "not_as_outside",
            Self::OutsideNotSigned { .. } => "outside_not_signed",
            Self::Cut { .. } => "cut",
            Self::LeavesOut => "index_leaves_out",
            Self::Unsigned { .. } => "unsigned",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("this line is no record"),
            Self::Torn => f.write_str(
                "the segment ends in the middle of a record, or one is being written just now",
            ),
            Self::Changed => {
                f.write_str("the content of this record was changed after it was written")
            }
            Self::Broken => f.write_str(
                "this record does not follow the one before it: one of the two was replaced",
            ),
            Self::Missing { from, to } if from == to => write!(f, "record {from} is missing"),
            Self::Missing { from, to } => write!(f, "records {from} to {to} are missing"),
            Self::RemovalNotSigned { to, by } => write!(
                f,
                "the records up to {to} are missing, and no checkpoint covers record {by}, which says that they were kept long enough"
            ),
            Self::OutOfOrder { after } => write!(
                f,
                "this record stands after record {after}: it was moved, doubled or put in"
            ),
            Self::Foreign => {
                f.write_str("this record was written by another process than those around it")
            }
            Self::NotAgain => f.write_str(
                "a record of the segment before, which was given up, was not written again",
            ),
            Self::NotSigned { first, last } => write!(
                f,
                "the checkpoint over records {first} to {last} is not signed by the given key"
            ),
            Self::NotAsSigned { first, last } => write!(
                f,
                "records {first} to {last} are not those that were signed: at least one of them was replaced"
            ),
            Self::NotAsOutside => {
                f.write_str("this record is not the one that a checkpoint held elsewhere names")
            }
            Self::OutsideNotSigned { seq } => write!(
                f,
                "the checkpoint held elsewhere up to record {seq} is not signed by the given key"
            ),
            Self::Cut { last, known } => write!(
                f,
                "the log ends with record {last}, but there was a record {known}: its tail was cut off"
            ),
            Self::LeavesOut => f.write_str(
                "this index leaves out what is in its segment, so that queries pass over that: remove it",
            ),
            Self::Unsigned { after } => write!(
                f,
                "no checkpoint covers the records after {after}: checkpoints were removed"
            ),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            offset,
            seq,
            kind,
        } = self;
        write!(f, "{}:{line} (byte {offset})", file.display())?;
        if let Some(seq) = seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {kind}")
    }
}
