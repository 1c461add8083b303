//! The words of records by which people ask for them, each kind in one list, so that a slip is told from what is not there.

use super::kind::Kind;
use crate::findings::Action;

/// How an operation ended: the `outcome` of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was answered.
    Ok,
    /// A tool says that it failed.
    ToolError,
    /// The upstream answered with an error, or with what is no answer.
    ProtocolError,
    /// The client is asked something first.
    InputRequired,
    /// Whoever called may not, or it is not there for them.
    Denied,
    /// Content was held back.
    Blocked,
    /// A limit, or more work than capacity.
    Shed,
    /// Something was wrong with the request.
    Invalid,
    /// It took too long.
    Timeout,
    /// Its client went away, or told it to stop.
    Cancelled,
    /// The upstream, or the gateway, could not be had.
    Unavailable,
}

impl End {
    /// All there are.
    pub const ALL: [Self; 11] = [
        Self::Ok,
        Self::ToolError,
        Self::ProtocolError,
        Self::InputRequired,
        Self::Denied,
        Self::Blocked,
        Self::Shed,
        Self::Invalid,
        Self::Timeout,
        Self::Cancelled,
        Self::Unavailable,
    ];

    /// Its word in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::ProtocolError => "protocol_error",
            Self::InputRequired => "input_required",
            Self::Denied => "denied",
            Self::Blocked => "blocked",
            Self::Shed => "shed",
            Self::Invalid => "invalid",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The `event` of an operation's records.
pub(super) const CALL: &str = "call";
/// Of a record in the place of some that could not be written.
pub(super) const GAP: &str = "gap";
/// Of how full the disk is.
pub(super) const DISK: &str = "disk";
/// Of the first record of a segment.
pub(super) const SEGMENT: &str = "segment";
/// Of a signed state of the log.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// Of segments that were removed because of their age.
pub(super) const RETENTION: &str = "retention";

/// What came of it, in records of something beside calls: that it was not done, or how it is from then on.
const BESIDE: [&str; 8] = [
    "refused", "began", "ended", "in_force", "unfit", "read", "changed", "replaced",
];

/// Every word for how something ended or what came of it: `outcome` of calls and, of what is no call, whatever is shown as its
/// result ([`Detail::RESULT`](super::entry::Detail::RESULT)).
pub const OUTCOMES: [&str; End::ALL.len() + BESIDE.len() + Action::ALL.len()] = {
    let (ends, beside) = (End::ALL.len(), BESIDE.len());
    let mut words = [""; End::ALL.len() + BESIDE.len() + Action::ALL.len()];
    let mut n = 0;
    while n < words.len() {
        words[n] = if n < ends {
            End::ALL[n].word()
        } else if n < ends + beside {
            BESIDE[n - ends]
        } else {
            Action::ALL[n - ends - beside].word()
        };
        n += 1;
    }
    words
};

/// Every `event` that records have.
pub const EVENTS: [&str; OWN.len() + Kind::ALL.len()] = {
    let mut words = [""; OWN.len() + Kind::ALL.len()];
    let mut n = 0;
    while n < words.len() {
        words[n] = if n < OWN.len() {
            OWN[n]
        } else {
            Kind::ALL[n - OWN.len()].word()
        };
        n += 1;
    }
    words
};

/// Those of calls and of the log itself.
const OWN: [&str; 6] = [CALL, GAP, DISK, SEGMENT, CHECKPOINT, RETENTION];
