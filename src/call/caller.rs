//! Who calls, and how they speak.

use std::sync::{Arc, LazyLock};

use tokio_util::sync::CancellationToken;

use crate::protocol::{ClientCapabilities, Revision};

/// Who calls plus how they speak.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    /// The revision spoken on the downstream hop.
    pub revision: Revision,
    /// What the client declared it can do: per session in the handshake era, per request in the stateless one.
    pub capabilities: ClientCapabilities,
    /// The log level the client wants on this call's stream; `None` means no log events.
    pub log_level: Option<LogLevel>,
    /// Whether an error may send its user to a page first (-32042, PROTOCOL A6), for whoever speaks a revision with that error: the
    /// client declared that it shows URLs, and the upstream may ask for that. Also where a question would not get through.
    pub visits: bool,
    /// What upstream sessions may be shared over.
    pub affinity: Affinity,
}

/// Who is behind a call: the unit of ownership for sessions, cursors and state. What else is known of them is in
/// [`Identity`](super::Identity).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Whoever comes in where no authentication is configured.
    pub fn anonymous() -> Self {
        static ANONYMOUS: LazyLock<Arc<str>> = LazyLock::new(|| "anonymous".into());
        Self(ANONYMOUS.clone())
    }

    /// The one of this text, which must differ for different ones: `auth` writes it, with its method and its issuer in it.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// [`Principal::as_str`], shared.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }

    /// A stable text that differs for different principals.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What holds calls together for upstreams that keep sessions.
#[derive(Debug, Clone)]
pub struct Affinity {
    /// Equal keys may share an upstream session: one per downstream session, or one per principal where there is none.
    pub key: Arc<str>,
    /// Cancelled when the downstream session ends, so that sessions opened for it can end too; `None` where there is none.
    pub ended: Option<CancellationToken>,
}

/// Syslog severities as MCP spells them, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `notice`
    Notice,
    /// `warning`
    Warning,
    /// `error`
    Error,
    /// `critical`
    Critical,
    /// `alert`
    Alert,
    /// `emergency`
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, text)| *text == name)
            .map(|(level, _)| level)
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(level, _)| *level == self)
            .map_or("debug", |(_, text)| text)
    }
}
