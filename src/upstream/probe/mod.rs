//! Deciding what an upstream speaks (PROTOCOL C2 to C4).
//!
//! Guarantees: only an answer of the protocol is evidence: a refused credential, a 5xx, a timeout or a dead connection decides
//! nothing, though a server that fails on the question is offered the handshake; pins are honoured; a legacy verdict is
//! remembered for 12 h so that restarts need not ask again, and forgotten when it fails: a server that refuses what it was
//! found to speak is asked everything at once. Deliberately absent: when to probe, which is the supervisor's.

mod address;
mod discovered;
mod pipe;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use tokio::time::{Instant, timeout_at};

use super::{
    Deadline, Peer, UpstreamError,
    asking::Offer,
    connector::Connector,
    exchange::AskOutcome,
    legacy::{Legacy, Opener, Proposal, Session, decline},
    line::Wire,
    modern,
    spec::{Endpoint, HttpTransport, Isolation, Pin, UpstreamSpec},
    terms::Terms,
    transport::Transport,
};
use crate::protocol::{Era, Revision, methods};

use self::{
    address::denies,
    discovered::{Discovered, discovered},
};

/// How long a legacy verdict is trusted: upgraded servers still answer `initialize`, so a stale one never fails by itself.
const LEGACY_FOR: Duration = Duration::from_secs(12 * 3600);
/// When it is asked again where an old verdict could not be looked at.
const SOON: Duration = Duration::from_secs(3600);

/// Probes one upstream, and remembers what it found.
pub(super) struct Probe {
    spec: UpstreamSpec,
    connector: Arc<dyn Connector>,
    terms: Arc<Terms>,
    /// When a server of the handshake era was last found, and by which transport.
    legacy_since: Option<(Instant, HttpTransport)>,
    /// What a program said beside the protocol that was last found not to speak it.
    said: ArcSwapOption<String>,
}

/// What the question for the stateless era found out.
enum Found {
    /// A modern server.
    Modern(Arc<dyn Peer>),
    /// Something that does not know the stateless era.
    Older,
}

/// How well it is known that a server is one of the handshake era.
#[derive(Clone, Copy)]
enum Verdict {
    /// It said so, or does nothing else.
    Sure,
    /// It grants the handshake, and what it makes of the question could not be found out.
    Unsure,
}

impl Verdict {
    /// Since when such a verdict of now counts: one that is not sure is looked at [`SOON`].
    fn dated(self) -> Instant {
        let now = Instant::now();
        match self {
            Self::Sure => now,
            Self::Unsure => now.checked_sub(LEGACY_FOR - SOON).unwrap_or(now),
        }
    }
}

impl Probe {
    /// Knows nothing yet.
    pub(super) fn new(
        spec: UpstreamSpec,
        connector: Arc<dyn Connector>,
        terms: Arc<Terms>,
    ) -> Self {
        Self {
            spec,
            connector,
            terms,
            legacy_since: None,
            said: ArcSwapOption::empty(),
        }
    }

    /// Connects, finds out what is spoken, and makes the peer.
    ///
    /// # Errors
    /// Why there is none; what was learnt before is forgotten unless the upstream was merely away.
    pub(super) async fn peer(&mut self) -> Result<Arc<dyn Peer>, UpstreamError> {
        self.said.store(None);
        self.connector.renew();
        let mut remembered = self
            .legacy_since
            .filter(|(since, _)| since.elapsed() < LEGACY_FOR)
            .map(|(_, http)| http);
        let found = match &self.spec.endpoint {
            Endpoint::Stdio(_) => self
                .pipe(remembered.is_some())
                .await
                .map(|(peer, http)| (peer, http, Verdict::Sure)),
            Endpoint::Http(http) => {
                let transport = http.transport;
                let mut found = self.address(transport, remembered).await;
                if transport != HttpTransport::Sse
                    && remembered.is_some()
                    && found.as_ref().is_err_and(denies)
                {
                    // Another server is there by now, and what this one speaks is not known (PROTOCOL C4).
                    remembered = None;
                    self.forget();
                    found = self.address(transport, None).await;
                }
                found.map_err(UpstreamError::from)
            }
        };
        match found {
            Ok((peer, http, verdict)) => {
                // The date is that of the last whole probe, or the verdict would never grow old.
                self.legacy_since = match (peer.card().revision.era(), remembered) {
                    (Era::Modern, _) => None,
                    (Era::Legacy, Some(_)) => self.legacy_since,
                    (Era::Legacy, None) => Some((verdict.dated(), http)),
                };
                Ok(peer)
            }
            Err(error) => {
                let away = matches!(error, UpstreamError::Unavailable { .. });
                if !(away && matches!(self.spec.endpoint, Endpoint::Http(_))) {
                    self.legacy_since = None;
                }
                Err(error)
            }
        }
    }

    /// What the program said beside the protocol that there is no peer of now, unless the error tells it.
    pub(super) fn said(&self) -> Option<Arc<String>> {
        self.said.load_full()
    }

    /// The same, told once: what goes wrong later was not said by it.
    pub(super) fn take_said(&self) -> Option<Arc<String>> {
        self.said.swap(None)
    }

    /// Keeps what a program said that did not do what was asked. Where it ended, that is told by how it did.
    fn hear(&self, wire: &Wire, error: &UpstreamError) {
        if !matches!(error, UpstreamError::Unavailable { .. }) {
            self.said.store(wire.transport.words().map(Arc::new));
        }
    }

    /// When a server is to be asked again though nothing speaks against what was found: a verdict for the handshake era grows old,
    /// since a server that was upgraded goes on answering in it (PROTOCOL C4). A second process is not begun for it.
    pub(super) fn stale_at(&self) -> Option<Instant> {
        let asks = match &self.spec.endpoint {
            Endpoint::Http(http) => http.transport != HttpTransport::Sse,
            Endpoint::Stdio(_) => false,
        };
        let (since, _) = self.legacy_since?;
        let asks = asks && self.spec.protocol == Pin::Auto;
        since.checked_add(LEGACY_FOR).filter(|_| asks)
    }

    /// Asks a server whose verdict is old whether it knows the stateless era by now, and nothing else: a second handshake is more
    /// than some can do. `None` where it does not say so; then its verdict is new, or will be looked at in an hour where nothing
    /// was learnt.
    pub(super) async fn upgraded(&mut self) -> Option<Arc<dyn Peer>> {
        let (_, http) = self.legacy_since?;
        let asked = async {
            let wire = Wire::new(self.connect(HttpTransport::Streamable).await?, true);
            let closing = CloseUnlessKept(Some(Arc::clone(&wire)), &self.terms);
            let found = self.question(&wire, self.step()).await?;
            if matches!(found, Found::Modern(_)) {
                closing.keep();
            }
            Ok::<_, UpstreamError>(found)
        };
        let now = Instant::now();
        match asked.await {
            Ok(Found::Modern(peer)) => {
                self.legacy_since = None;
                return Some(peer);
            }
            Ok(Found::Older) => self.legacy_since = Some((now, http)),
            Err(error) => {
                tracing::debug!(upstream = %self.spec.id, %error, "whether it was upgraded cannot be found out");
                self.legacy_since = Some((Verdict::Unsure.dated(), http));
            }
        }
        None
    }

    /// Forgets what was found: the next attempt asks everything.
    pub(super) const fn forget(&mut self) {
        self.legacy_since = None;
    }

    /// Whether the stateless era is out of the question, by pin or by what is remembered.
    const fn skips_question(&self, remembered: bool) -> bool {
        match self.spec.protocol {
            Pin::Auto => remembered,
            Pin::Modern => false,
            Pin::Legacy => true,
            Pin::Revision(revision) => matches!(revision.era(), Era::Legacy),
        }
    }

    /// Whether only the stateless era will do.
    fn insists_on_modern(&self) -> bool {
        match self.spec.protocol {
            Pin::Modern => true,
            Pin::Auto | Pin::Legacy => false,
            Pin::Revision(revision) => revision.era() == Era::Modern,
        }
    }

    const fn proposal(&self) -> Proposal {
        match self.spec.protocol {
            Pin::Revision(revision) => Proposal {
                service: true,
                of_one: false,
                revision,
                exact: true,
            },
            Pin::Auto | Pin::Modern | Pin::Legacy => Proposal {
                service: true,
                of_one: false,
                revision: Revision::LATEST_LEGACY,
                exact: false,
            },
        }
    }

    /// What the gateway's own session declares: where it carries calls too, that apps are shown, and nothing that could be asked.
    const fn offer(&self) -> Offer {
        match self.spec.isolation {
            Isolation::Shared => Offer::SHOWING,
            Isolation::Principal | Isolation::Session => Offer::LISTING,
        }
    }

    /// One step's deadline from now.
    fn step(&self) -> Instant {
        Instant::now() + self.terms.timeouts.connect
    }

    async fn connect(&self, http: HttpTransport) -> Result<Arc<dyn Transport>, UpstreamError> {
        timeout_at(self.step(), self.connector.connect(http))
            .await
            .map_err(|_| UpstreamError::Timeout(Deadline::Connect))?
    }

    fn legacy(&self, session: Session, opener: Opener) -> Arc<dyn Peer> {
        Arc::new(Legacy::new(
            session,
            opener,
            self.proposal(),
            self.spec.isolation,
            &self.terms,
        ))
    }

    /// A fresh transport of its own, straight into the handshake.
    async fn handshake(&self, http: HttpTransport) -> Result<Arc<dyn Peer>, UpstreamError> {
        let wire = Wire::new(self.connect(http).await?, false);
        let closing = CloseUnlessKept(Some(Arc::clone(&wire)), &self.terms);
        let deadline = Instant::now() + self.terms.opening;
        let opening = Session::open(&wire, self.proposal(), self.offer(), &self.terms, deadline);
        // A process that ends says why; the handshake only sees that it ended.
        let session = tokio::select! {
            biased;
            session = opening => session
                .map_err(UpstreamError::from)
                .inspect_err(|error| self.hear(&wire, error))?,
            error = wire.transport.lost() => return Err(error),
        };
        closing.keep();
        Ok(self.legacy(session, Opener::Own(Arc::clone(&self.connector), http)))
    }

    /// Asks `server/discover`, once more when the server names a version that we share.
    async fn question(&self, wire: &Arc<Wire>, deadline: Instant) -> Result<Found, UpstreamError> {
        let revision = match self.spec.protocol {
            Pin::Revision(revision) if revision.era() == Era::Modern => revision,
            Pin::Auto | Pin::Modern | Pin::Legacy | Pin::Revision(_) => Revision::LATEST_MODERN,
        };
        let mut revision = revision;
        for again in [true, false] {
            match self.discover(wire, revision, deadline).await? {
                Discovered::Card(peer) => return Ok(Found::Modern(peer)),
                Discovered::Older => return Ok(Found::Older),
                Discovered::Other(mutual) if again => revision = mutual,
                Discovered::Other(_) => break,
            }
        }
        Err(UpstreamError::Protocol(
            "refuses the very version that it names".into(),
        ))
    }

    async fn discover(
        &self,
        wire: &Arc<Wire>,
        revision: Revision,
        deadline: Instant,
    ) -> Result<Discovered, UpstreamError> {
        let line = modern::line(Arc::clone(wire), revision, Arc::clone(&self.terms));
        let asked = modern::ask(&line, revision, methods::DISCOVER, &[], deadline, true).await;
        let session = match &asked {
            Ok(
                AskOutcome::Result(head, _) | AskOutcome::Error(head, _) | AskOutcome::Status(head),
            ) => head.session.clone(),
            Err(_) => None,
        };
        let found = discovered(asked, line, revision);
        if let (Ok(Discovered::Older), Some(session), true) = (&found, session, wire.streamable) {
            decline(wire, session, &self.terms).await;
        }
        found
    }
}

fn not_modern() -> UpstreamError {
    UpstreamError::Protocol("it does not speak the pinned era".into())
}

/// Closes a transport that no peer came to own.
struct CloseUnlessKept<'a>(Option<Arc<Wire>>, &'a Terms);

impl CloseUnlessKept<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseUnlessKept<'_> {
    fn drop(&mut self) {
        if let Some(wire) = self.0.take() {
            // Closing takes a while; the next attempt need not wait for it.
            self.1
                .tasks
                .spawn(async move { wire.transport.close().await });
        }
    }
}

#[cfg(test)]
mod tests;
