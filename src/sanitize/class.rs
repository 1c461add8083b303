//! The classes of what is found in content.
// SECURITY 7

/// A class of content that is acted upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// C1: characters that a reader does not see and a model does.
    Hidden,
    /// C2: escape sequences and control characters.
    Terminal,
    /// C3: credentials that the gateway itself holds.
    Own,
    /// C4: secrets of a form that leaves no doubt.
    Secret,
    /// C5: what may be a secret.
    WeakSecret,
    /// C6: personal data with a check digit that holds.
    PersonalChecked,
    /// C7: what looks like personal data.
    Personal,
    /// C8: what a client that renders text would fetch or run.
    Active,
    /// C9: what reads like instructions to the model.
    Injection,
    /// C10: media that is not what it says it is, or not what may be shown.
    Media,
    /// C11: questions to a person that must not be asked so.
    Elicitation,
}

impl Class {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Hidden,
        Self::Terminal,
        Self::Own,
        Self::Secret,
        Self::WeakSecret,
        Self::PersonalChecked,
        Self::Personal,
        Self::Active,
        Self::Injection,
        Self::Media,
        Self::Elicitation,
    ];

    /// The word for it in configuration, findings and metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hidden => "hidden_unicode",
            Self::Terminal => "terminal_control",
            Self::Own => "own_credential",
            Self::Secret => "secret",
            Self::WeakSecret => "weak_secret",
            Self::PersonalChecked => "personal_checked",
            Self::Personal => "personal",
            Self::Active => "active_content",
            Self::Injection => "injection",
            Self::Media => "media",
            Self::Elicitation => "elicitation",
        }
    }
}
