//! Deadlines toward an upstream: what took too long, and whether the call can have been sent by then.

use std::fmt;

use crate::metrics::Bound;

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// A connection.
    Connect,
    /// A connection that another call was making.
    ConnectOfAnother,
    /// The handshake of the older era.
    Initialize,
    /// The discovery of the newer era.
    Discover,
    /// One list.
    List,
    /// The acknowledgement of a listen.
    Listen,
    /// A call.
    Call,
    /// The next byte of an answer.
    Silence,
    /// Sending a frame that wants no answer.
    Send,
}

impl Deadline {
    /// Whether the call may have been sent before it passed. Only then is it unknown whether that took effect.
    pub const fn was_sent(self) -> bool {
        match self {
            Self::Connect | Self::ConnectOfAnother | Self::Initialize | Self::Discover => false,
            Self::List | Self::Listen | Self::Call | Self::Silence | Self::Send => true,
        }
    }

    /// The bound that was reached.
    pub(super) const fn bound(self) -> Bound {
        match self {
            Self::Connect | Self::ConnectOfAnother | Self::Initialize | Self::Discover => {
                Bound::DeadlineConnect
            }
            Self::Silence => Bound::DeadlineSilence,
            Self::List | Self::Listen | Self::Call | Self::Send => Bound::DeadlineCall,
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::ConnectOfAnother => "connect of another call",
            Self::Initialize => "initialize",
            Self::Discover => "discover",
            Self::List => "list",
            Self::Listen => "listen",
            Self::Call => "call",
            Self::Silence => "silence",
            Self::Send => "send",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::UpstreamError;

    #[test]
    fn of_a_call_under_way_nobody_is_told_that_it_was_not_sent() {
        for unsent in [
            Deadline::Connect,
            Deadline::ConnectOfAnother,
            Deadline::Initialize,
            Deadline::Discover,
        ] {
            let told = UpstreamError::Timeout(unsent).of_a_call_under_way();
            assert!(matches!(told, UpstreamError::OutcomeUnknown), "{unsent}");
        }
        let late = UpstreamError::Timeout(Deadline::Silence).of_a_call_under_way();
        assert!(matches!(late, UpstreamError::Timeout(Deadline::Silence)));
    }
}
