//! What sorts of events there are beside calls, and their words.

/// What sort of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The gateway serves.
    Start,
    /// It ends.
    Stop,
    /// A configuration was taken over, or refused.
    Configuration,
    /// Policies were taken over, or refused.
    Policy,
    /// Keys were changed: of clients, or of the gateway.
    Keys,
    /// A definition was approved.
    Approval,
    /// A definition is not what was approved.
    Quarantine,
    /// Somebody was kept out.
    Authentication,
    /// What somebody sent was refused before it was a call: it is no message, or not for this listener.
    Refused,
    /// A limit is reached, or is not any more.
    Limit,
    /// There is more work than capacity, or there is not any more.
    Overload,
    /// An operator did something through the admin listener.
    Administration,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 12] = [
        Self::Start,
        Self::Stop,
        Self::Configuration,
        Self::Policy,
        Self::Keys,
        Self::Approval,
        Self::Quarantine,
        Self::Authentication,
        Self::Refused,
        Self::Limit,
        Self::Overload,
        Self::Administration,
    ];

    /// Its word: the `event` of its records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Configuration => "configuration",
            Self::Policy => "policy",
            Self::Keys => "keys",
            Self::Approval => "approval",
            Self::Quarantine => "quarantine",
            Self::Authentication => "authentication",
            Self::Refused => "refused",
            Self::Limit => "limit",
            Self::Overload => "overload",
            Self::Administration => "administration",
        }
    }
}
