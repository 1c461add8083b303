//! The five dated revisions, their two eras, and one row of features for each.

use std::fmt;

/// How a peer opens and carries a conversation (spec 2026-07-28, basic/versioning).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` handshake and sessions: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Every request describes itself: 2026-07-28 and later.
    Modern,
}

impl Era {
    /// `legacy` or `modern`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A published revision of the protocol, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

/// What a revision knows that another does not (PROTOCOL A1, A8, A9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Features {
    /// The receiver must take JSON-RPC arrays.
    pub batches: bool,
    /// `MCP-Protocol-Version` is expected after the handshake.
    pub version_header: bool,
    /// Event streams over HTTP carry ids and can be resumed (PROTOCOL B4).
    pub resume: bool,
    /// They open with an event without data, and a server may close them to be asked again (PROTOCOL B4).
    pub polling: bool,
    /// `audio` content blocks.
    pub audio: bool,
    /// `resource_link` content blocks.
    pub resource_links: bool,
    /// `structuredContent` and `outputSchema`.
    pub structured_output: bool,
    /// `outputSchema` roots and `structuredContent` of any JSON type, not only objects.
    pub any_structured: bool,
    /// `title` as a field of its own.
    pub titles: bool,
    /// Tool `annotations`.
    pub annotations: bool,
    /// `execution` on tools.
    pub execution: bool,
    /// `completion/complete` is served by servers that cannot declare it (PROTOCOL A5).
    pub completes_undeclared: bool,
    /// `context` in `completion/complete`.
    pub completion_context: bool,
    /// `resultType`, `ttlMs`, `cacheScope` in results.
    pub result_hints: bool,
    /// That a resource is not there is told in one way, with its URI in `data` (PROTOCOL D6).
    pub names_missing: bool,
    /// Tasks in the core protocol, asked for by the client.
    pub core_tasks: bool,
    /// Tasks by the extension, which is undefined elsewhere.
    pub task_extension: bool,
    /// Skills by the extension, which is specified against this revision.
    pub skills: bool,
}

const OLDEST: Features = Features {
    batches: false,
    version_header: false,
    resume: false,
    polling: false,
    audio: false,
    resource_links: false,
    structured_output: false,
    any_structured: false,
    titles: false,
    annotations: false,
    execution: false,
    completes_undeclared: true,
    completion_context: false,
    result_hints: false,
    names_missing: false,
    core_tasks: false,
    task_extension: false,
    skills: false,
};
const V2025_03_26: Features = Features {
    batches: true,
    completes_undeclared: false,
    resume: true,
    audio: true,
    annotations: true,
    ..OLDEST
};
const V2025_06_18: Features = Features {
    batches: false,
    version_header: true,
    resource_links: true,
    structured_output: true,
    titles: true,
    completion_context: true,
    ..V2025_03_26
};
const V2025_11_25: Features = Features {
    execution: true,
    polling: true,
    core_tasks: true,
    ..V2025_06_18
};
const V2026_07_28: Features = Features {
    resume: false,
    polling: false,
    execution: false,
    any_structured: true,
    result_hints: true,
    names_missing: true,
    core_tasks: false,
    task_extension: true,
    skills: true,
    ..V2025_11_25
};

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision of the handshake era: what we answer to a proposal we do not know (PROTOCOL C1).
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest revision of the stateless era.
    pub const LATEST_MODERN: Self = Self::V2026_07_28;

    /// The revision with this date.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == date)
    }

    /// The date.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Era::Legacy
            }
            Self::V2026_07_28 => Era::Modern,
        }
    }

    /// Its row of features.
    pub const fn features(self) -> &'static Features {
        match self {
            Self::V2024_11_05 => &OLDEST,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }

    /// The revisions that may be claimed per request, newest first.
    pub fn modern() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .rev()
            .filter(|revision| revision.era() == Era::Modern)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
