//! The admin listener: health, metrics, and what operators and auditors look at and do (PRODUCT 13, SECURITY OPS-4).
//!
//! Guarantees: a listener of its own, never that of clients; what is not health or metrics needs a credential of its own, which
//! no client has; who is an auditor changes nothing; a page of another site gets nothing and does nothing, since there are no
//! cookies, no CORS, and requests of other origins are refused; every change is told to whoever keeps records; no secret is
//! shown. Lists are bounded and told in pages. What is served and what `/api/openapi.json` says comes from one table.
//! Deliberately absent: the page itself, and how the gateway does what is asked of it, which comes in by [`Gateway`].

mod api;
mod asked;
mod credential;
mod entry;
mod follow;
mod gateway;
mod openapi;
mod operation;
mod operations;
mod paging;
mod probes;
mod problem;
mod reply;
mod search;
mod spec;

use std::{io, net::SocketAddr, sync::Arc};

use secrecy::SecretString;

use crate::{
    server::{Endpoint, Routes, Server, spec::ServerBounds},
    tasks::Tasks,
};

pub use credential::Role;
pub use gateway::{
    AuditReader, Change, Configured, Controls, Gateway, LogDirectory, Metrics, Phase, Readiness,
    Reloaded,
};
pub use operations::document;
pub use spec::{AdminSpec, TOKEN_CHARS};

use credential::Credentials;
use entry::Entry;

/// A running admin listener.
#[derive(Debug)]
pub struct Admin {
    server: Server,
    address: SocketAddr,
    made: Option<SecretString>,
    bounds: ServerBounds,
    /// What follows something.
    followers: Tasks,
}

/// Everything is behind the one entry, which knows the routes: what is not there is refused as everything else is.
struct Site(Arc<Entry>);

impl Admin {
    /// Begins to listen.
    ///
    /// # Errors
    /// Whatever the operating system says.
    pub fn bind(spec: AdminSpec, gateway: Arc<Gateway>, tasks: &Tasks) -> io::Result<Self> {
        let (credentials, made) = Credentials::of(&spec);
        let bounds = spec.listen.bounds;
        let followers = tasks.child();
        let entry = Arc::new(Entry::new(
            gateway,
            credentials,
            spec.is_private(),
            bounds,
            followers.clone(),
        ));
        let server = Server::bind(spec.listen, Arc::new(Site(entry)), tasks)?;
        Ok(Self {
            address: server.address(),
            server,
            made,
            bounds,
            followers,
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that was made because none was configured, for whoever started the gateway.
    pub const fn made(&self) -> Option<&SecretString> {
        self.made.as_ref()
    }

    /// Ends it: requests in flight are answered, what follows something ends.
    pub async fn drain(self) {
        self.followers.stop();
        self.server.drain(self.bounds.drain).await;
    }
}

impl Routes for Site {
    fn find(&self, _: &str) -> Option<&dyn Endpoint> {
        Some(&self.0)
    }
}
