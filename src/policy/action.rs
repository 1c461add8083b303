//! What can be done with an item, in the words that policies have for it.

/// What is done with an item. The same words in policies, in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// A tool is called.
    Call,
    /// A prompt is fetched.
    Get,
    /// A resource is read.
    Read,
    /// Changes of a resource are listened for.
    Subscribe,
    /// A prompt's or template's variable is completed.
    Complete,
    /// The upstream asks the user something.
    Elicit,
    /// The upstream asks the client's model something.
    Sample,
    /// The upstream asks for the client's roots.
    ListRoots,
}

impl Action {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Call,
        Self::Get,
        Self::Read,
        Self::Subscribe,
        Self::Complete,
        Self::Elicit,
        Self::Sample,
        Self::ListRoots,
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Whether it is something that a client does, rather than something that is asked of it.
    pub fn is_use(self) -> bool {
        !matches!(self, Self::Elicit | Self::Sample | Self::ListRoots)
    }

    /// The name of its group in policies.
    pub(super) fn group(self) -> &'static str {
        if self.is_use() { "use" } else { "ask" }
    }

    /// The name in policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Get => "get",
            Self::Read => "read",
            Self::Subscribe => "subscribe",
            Self::Complete => "complete",
            Self::Elicit => "elicit",
            Self::Sample => "sample",
            Self::ListRoots => "list_roots",
        }
    }
}
