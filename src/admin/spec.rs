//! How the admin listener is set up: where it listens, and with which credentials.

use std::time::Duration;

use secrecy::SecretString;

use crate::server::spec::{ListenSpec, ServerBounds};

/// The fewest characters of a token.
pub const TOKEN_CHARS: usize = 32;

/// The admin listener (SECURITY OPS-4).
#[derive(Debug, Clone)]
pub struct AdminSpec {
    /// Where. Default `127.0.0.1:8809`; others than loopback need TLS, `hosts` and a token.
    pub listen: ListenSpec,
    /// What operators come with. `None`: one is made at the start, and told to whoever starts the gateway.
    pub token: Option<SecretString>,
    /// What auditors come with, who look and change nothing. `None`: nobody is one.
    pub auditor_token: Option<SecretString>,
}

impl AdminSpec {
    /// Bounds of a listener that few use: requests of at most 1 MiB, targets of 60 KiB, which have long names in them, 256
    /// connections, 5 s to drain.
    pub fn bounds() -> ServerBounds {
        ServerBounds {
            body_bytes: 1 << 20,
            target_bytes: 60 << 10,
            connections: 256,
            connections_per_peer: 256,
            sheds: false,
            drain: Duration::from_secs(5),
            ..ServerBounds::default()
        }
    }

    /// Whether only programs of this machine reach it, by names of this machine alone: then health and metrics are open.
    pub fn is_private(&self) -> bool {
        self.listen.address.ip().is_loopback() && self.listen.hosts.is_empty()
    }
}
