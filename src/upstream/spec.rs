//! How one upstream is to be reached: plain validated values, made from configuration.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use http::{HeaderName, Uri};
use secrecy::SecretString;

use crate::{
    json::Limits,
    pins,
    protocol::{Revision, UpstreamId},
    resume,
};

pub use super::credentials::spec::{
    ClientAuth, Grant, GrantSpec, ListsAs, ServerSpec, SubjectType, TokenEndpoint,
};
pub use crate::fetch::TlsSpec;

/// Everything needed to reach one upstream and to treat it well.
#[derive(Debug, Clone)]
pub struct UpstreamSpec {
    /// Its configured key.
    pub id: UpstreamId,
    /// Where it is.
    pub endpoint: Endpoint,
    /// What era or revision is spoken with it.
    pub protocol: Pin,
    /// Who may share one legacy session of it.
    pub isolation: Isolation,
    /// Whom it may send to addresses.
    pub url_elicitation: UrlElicitation,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Calls in flight at once; the rest wait. Default 64 from configuration, at most 1,024.
    pub concurrency: usize,
    /// How many calls wait for their turn, and for how long.
    pub queue: QueueBounds,
    /// How much it may say.
    pub bounds: PeerBounds,
    /// How often lists are read again when the upstream offers no other sign of change, jittered by ±20 %. Default 5 min.
    pub poll: Duration,
    /// How long its last known entries stay listed while it is away. Default 5 min.
    pub stale_for: Duration,
    /// What becomes of definitions that it changes.
    pub definitions: pins::Mode,
}

/// How calls wait for one upstream (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBounds {
    /// How many wait. Default 128.
    pub length: usize,
    /// How long one waits. Default 2 s.
    pub time: Duration,
    /// How many may be in flight in all, those that wait included. Default 1,024.
    pub in_flight: usize,
}

impl Default for QueueBounds {
    fn default() -> Self {
        Self {
            length: 128,
            time: Duration::from_secs(2),
            in_flight: 1_024,
        }
    }
}

impl UpstreamSpec {
    /// Whether it is sent, or shown, anything that may prove who asks. What people are given where they log in is no part of this.
    pub fn has_credential(&self) -> bool {
        match &self.endpoint {
            Endpoint::Stdio(_) => true,
            Endpoint::Http(http) => {
                !http.headers.is_empty()
                    || http.grant.is_some()
                    || http.tls.identity.is_some()
                    || http.url.query().is_some()
            }
        }
    }
}

/// How much an upstream may say at a time (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerBounds {
    /// How its messages are read. Default: [`Limits::UPSTREAM`].
    pub json: Limits,
    /// Bytes of one message: of a JSON body, or of one event. Default 32 MiB.
    pub message_bytes: usize,
    /// Bytes of all messages that answer one request. Default 128 MiB.
    pub answer_bytes: usize,
    /// Bytes of one line of a process. Default 16 MiB.
    pub line_bytes: usize,
    /// Bytes that are kept of what a process says beside the protocol. Default 64 KiB.
    pub stderr_bytes: usize,
    /// Quick attempts to start a process or to connect in five minutes; those after come every 60 s. Default 5.
    pub restarts: usize,
    /// What it may ask of callers.
    pub asking: resume::Bounds,
}

impl Default for PeerBounds {
    fn default() -> Self {
        Self {
            json: Limits::UPSTREAM,
            message_bytes: 32 << 20,
            answer_bytes: 128 << 20,
            line_bytes: 16 << 20,
            stderr_bytes: 64 << 10,
            restarts: 5,
            asking: resume::Bounds::default(),
        }
    }
}

/// Where an upstream is.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A child process that speaks on its pipes.
    Stdio(StdioSpec),
    /// An HTTP address.
    Http(HttpSpec),
}

/// A child process.
#[derive(Debug, Clone)]
pub struct StdioSpec {
    /// The program and its arguments; never given to a shell. Never empty.
    pub command: Vec<String>,
    /// What the words of its command tell it in confidence, each with the name that it has there, or none.
    pub told: Vec<(String, SecretString)>,
    /// Its environment: these variables and nothing else but `PATH`, `HOME`, `LANG`, `TMPDIR` of our own (SECURITY OPS-2).
    pub env: BTreeMap<String, SecretString>,
    /// Its working directory; ours when `None`.
    pub cwd: Option<PathBuf>,
}

/// An HTTP address.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The MCP endpoint, `https` unless loopback or `plain_http`.
    pub url: Uri,
    /// Headers sent on every request, credentials among them; values are secrets.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// The grant by which tokens for it are got; `None` where there are none, or where `headers` hold one.
    pub grant: Option<Box<GrantSpec>>,
    /// Trust and identity for `https`.
    pub tls: TlsSpec,
    /// Which HTTP transport is spoken.
    pub transport: HttpTransport,
}

/// Which of the two HTTP transports an upstream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpTransport {
    /// Found out by probing (PROTOCOL C2).
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The two-endpoint HTTP+SSE transport of 2024-11-05.
    Sse,
}

/// What is spoken with an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pin {
    /// Found out by probing, remembered, probed again when it fails.
    #[default]
    Auto,
    /// The stateless era, newest revision both know.
    Modern,
    /// The handshake era, whatever revision the server answers.
    Legacy,
    /// Exactly this revision.
    Revision(Revision),
}

/// Who may share one legacy session of an upstream (PRODUCT 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// One for all.
    Shared,
    /// One per principal.
    Principal,
    /// One per downstream session; a client without sessions counts as its principal.
    Session,
}

/// Whom an upstream may send to addresses: what is allowed there is allowed for the user that it sees (PROTOCOL F9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UrlElicitation {
    /// Whoever is a user of their own to it; where all callers are one user to it, only those who are not told apart here either.
    #[default]
    Own,
    /// Everybody, also where all callers are one user to it.
    Shared,
}

/// Deadlines toward an upstream (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// To a connection, a handshake over the network. Default 5 s.
    pub connect: Duration,
    /// From the start of a process to the end of its handshake: some download themselves first. Default 60 s.
    pub start: Duration,
    /// To a whole list, and to what is got by its name: a prompt, a skill. Default 15 s.
    pub list: Duration,
    /// To the outcome of a call, or of whatever else is asked for. Default 60 s, at most 300 s.
    /// From each report of progress on it counts anew, up to five times this and the deadline of whoever calls.
    pub call: Duration,
    /// Without a byte on a stream that owes an outcome. Default 60 s.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            connect: secs(5),
            start: secs(60),
            list: secs(15),
            call: secs(60),
            silence: secs(60),
        }
    }
}
