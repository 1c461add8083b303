//! Deciding what an upstream speaks (PROTOCOL C2 to C4).
//!
//! Guarantees: only an answer of the protocol is evidence: a refused credential, a 5xx, a timeout or a dead connection decides
//! nothing, though a server that fails on the question is offered the handshake; pins are honoured; a legacy verdict is
//! remembered for 12 h so that restarts need not ask again, and forgotten when it fails: a server that refuses what it was
//! found to speak is asked everything at once. Deliberately absent: when to probe, which is the supervisor's.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use http::StatusCode;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{
    Deadline, Peer, UpstreamError,
    asking::Offer,
    connector::Connector,
    exchange::{self, AskOutcome},
    legacy::{Legacy, NotOpened, Opener, Proposal, Session, decline},
    line::{Line, Wire},
    modern::{self, Modern},
    spec::{Endpoint, HttpTransport, Isolation, Pin, UpstreamSpec},
    terms::Terms,
    transport::{Head, Transport},
};
use crate::{
    json::{Json, Kind, Node},
    jsonrpc::RpcError,
    protocol::{Era, Revision, codes, methods},
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

    /// The ladder of PROTOCOL C2, or the rung of it that is `remembered`.
    async fn address(
        &self,
        configured: HttpTransport,
        remembered: Option<HttpTransport>,
    ) -> Result<(Arc<dyn Peer>, HttpTransport, Verdict), NotOpened> {
        let http = match configured {
            HttpTransport::Auto => remembered.unwrap_or(HttpTransport::Streamable),
            HttpTransport::Streamable | HttpTransport::Sse => configured,
        };
        if http == HttpTransport::Sse {
            let (peer, http) = self.events().await?;
            return Ok((peer, http, Verdict::Sure));
        }
        let wire = Wire::new(self.connect(HttpTransport::Streamable).await?, true);
        let closing = CloseUnlessKept(Some(Arc::clone(&wire)), &self.terms);
        let mut failed = None;
        if !self.skips_question(remembered.is_some()) {
            match self.question(&wire, self.step()).await {
                Ok(Found::Modern(peer)) => {
                    closing.keep();
                    return Ok((peer, http, Verdict::Sure));
                }
                Ok(Found::Older) if self.insists_on_modern() => return Err(not_modern().into()),
                Ok(Found::Older) => {}
                Err(error) if !self.insists_on_modern() && fails_on_question(&error) => {
                    failed = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match Session::open(
            &wire,
            self.proposal(),
            self.offer(),
            &self.terms,
            self.step(),
        )
        .await
        {
            Ok(session) => {
                closing.keep();
                let verdict = failed.map_or(Verdict::Sure, |_| Verdict::Unsure);
                Ok((self.legacy(session, Opener::Shared(wire)), http, verdict))
            }
            // Whoever lets nobody in says what would help.
            Err(why @ NotOpened::Failed(UpstreamError::Auth(_) | UpstreamError::Credential(_)))
                if failed.is_some() =>
            {
                Err(why)
            }
            Err(why) if failed.is_some() => Err(failed.map_or(why, NotOpened::Failed)),
            Err(why)
                if configured == HttpTransport::Auto
                    && remembered.is_none()
                    && points_to_events(&why) =>
            {
                drop(closing);
                let (peer, http) = self.events().await.map_err(|mut error| {
                    if let UpstreamError::Unavailable { cause, .. } = &mut error {
                        cause.insert_str(0, "neither HTTP transport answers as MCP: ");
                    }
                    error
                })?;
                Ok((peer, http, Verdict::Sure))
            }
            Err(why) => Err(why),
        }
    }

    /// The last rung: the two-endpoint transport, which only the handshake era has.
    async fn events(&self) -> Result<(Arc<dyn Peer>, HttpTransport), UpstreamError> {
        if self.insists_on_modern() {
            return Err(not_modern());
        }
        let session = self.handshake(HttpTransport::Sse).await?;
        Ok((session, HttpTransport::Sse))
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

    /// The ladder of PROTOCOL C3.
    async fn pipe(
        &self,
        remembered: bool,
    ) -> Result<(Arc<dyn Peer>, HttpTransport), UpstreamError> {
        let http = HttpTransport::Auto;
        if self.skips_question(remembered) {
            return Ok((self.handshake(http).await?, http));
        }
        let wire = Wire::new(self.connect(http).await?, false);
        let closing = CloseUnlessKept(Some(Arc::clone(&wire)), &self.terms);
        let exited = tokio::select! {
            biased;
            asked = self.ask_pipe(&wire) => match asked {
                Ok(peer) => {
                    closing.keep();
                    return Ok((peer, http));
                }
                Err(error @ UpstreamError::Unavailable { .. }) => error,
                Err(error) => {
                    self.hear(&wire, &error);
                    return Err(error);
                }
            },
            error = wire.transport.lost() => error,
        };
        if self.insists_on_modern() {
            return Err(exited);
        }
        // It ended on being asked, as some servers of the handshake era do: another one is not asked.
        drop(closing);
        Ok((self.handshake(http).await?, http))
    }

    /// Asks on a pipe for the stateless era, and after half the connect deadline, or at once on any other answer, for the
    /// handshake, too. Whichever is granted first decides: a modern server that is slow to start answers the question
    /// late and refuses the handshake (PROTOCOL J8). Both wait for as long as a process may take to start.
    async fn ask_pipe(&self, wire: &Arc<Wire>) -> Result<Arc<dyn Peer>, UpstreamError> {
        let connect = self.terms.timeouts.connect;
        let began = Instant::now();
        let deadline = began + self.terms.opening;
        let question = self.question(wire, deadline);
        tokio::pin!(question);
        let early = if self.insists_on_modern() {
            Some(question.as_mut().await)
        } else {
            tokio::select! {
                biased;
                found = question.as_mut() => Some(found),
                () = sleep_until(deadline.min(began + connect / 2)) => None,
            }
        };
        let pending = match early {
            Some(Ok(Found::Modern(peer))) => return Ok(peer),
            Some(Ok(Found::Older)) if self.insists_on_modern() => return Err(not_modern()),
            Some(Ok(Found::Older)) => false,
            Some(Err(error)) => return Err(error),
            None => true,
        };
        let opening = Session::open(wire, self.proposal(), self.offer(), &self.terms, deadline);
        tokio::pin!(opening);
        let mut pending = pending;
        let opened = loop {
            tokio::select! {
                biased;
                found = question.as_mut(), if pending => {
                    pending = false;
                    // A late refusal is what a legacy server says; a late failure will be the handshake's, too.
                    if let Ok(Found::Modern(peer)) = found {
                        return Ok(peer);
                    }
                }
                opened = opening.as_mut() => break opened,
            }
        };
        match opened {
            Ok(session) => {
                let opener = Opener::Own(Arc::clone(&self.connector), HttpTransport::Auto);
                Ok(self.legacy(session, opener))
            }
            Err(NotOpened::Refused(_, error)) if pending && codes::is_modern(error.code) => {
                match question.await? {
                    Found::Modern(peer) => Ok(peer),
                    Found::Older => Err(UpstreamError::Refused(error)),
                }
            }
            Err(why) => Err(why.into()),
        }
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

/// What one `server/discover` led to.
enum Discovered {
    Card(Arc<dyn Peer>),
    /// Ask again at this revision.
    Other(Revision),
    Older,
}

/// What the answer to a `server/discover` says, which was sent on `line`.
fn discovered(
    asked: Result<AskOutcome, UpstreamError>,
    line: Arc<Line>,
    revision: Revision,
) -> Result<Discovered, UpstreamError> {
    match asked {
        Ok(AskOutcome::Result(_, result)) => {
            let card = exchange::complete(result.clone())
                .ok()
                .and_then(|_| modern::card(&result, revision));
            let versions = card
                .as_ref()
                .and_then(|_| versions(result.root().member("supportedVersions")));
            let (Some(card), Some(versions)) = (card, versions) else {
                return Ok(Discovered::Older);
            };
            match Mutual::of(&versions, revision) {
                Mutual::This => Ok(Discovered::Card(Arc::new(Modern::new(card, line)))),
                Mutual::Other(mutual) => Ok(Discovered::Other(mutual)),
                Mutual::OlderOnly => Ok(Discovered::Older),
                Mutual::None => Err(no_mutual()),
            }
        }
        Ok(AskOutcome::Error(head, error)) => {
            refused(&head, &error, revision, line.wire.streamable)
        }
        Ok(AskOutcome::Status(head)) if is_evidence(&head) => Ok(Discovered::Older),
        Ok(AskOutcome::Status(head)) => Err(exchange::bare(&head)),
        Err(UpstreamError::Timeout(_)) => Err(UpstreamError::Timeout(Deadline::Discover)),
        // A foreign body, a wrong content type, a notification for an answer: not a modern server.
        Err(UpstreamError::Protocol(_)) => Ok(Discovered::Older),
        Err(error) => Err(error),
    }
}

/// What an error to `server/discover` says.
fn refused(
    head: &Head,
    error: &RpcError,
    revision: Revision,
    streamable: bool,
) -> Result<Discovered, UpstreamError> {
    match error.code {
        codes::UNSUPPORTED_VERSION if !streamable || may_name_versions(head.status) => {
            let supported = error.data.as_ref().map(Json::root);
            let Some(versions) = versions(supported.and_then(|data| data.member("supported")))
            else {
                return Ok(Discovered::Older);
            };
            match Mutual::of(&versions, revision) {
                Mutual::This => Ok(Discovered::Other(revision)),
                Mutual::Other(mutual) => Ok(Discovered::Other(mutual)),
                Mutual::OlderOnly => Ok(Discovered::Older),
                Mutual::None => Err(no_mutual()),
            }
        }
        // With this status only a modern server has these; what it found wrong is ours to mend (PROTOCOL C2, H13). On a pipe, or
        // with another, the numbers are any server's own (PROTOCOL C3).
        codes::HEADER_MISMATCH | codes::MISSING_CAPABILITY
            if streamable && head.status == StatusCode::BAD_REQUEST =>
        {
            Err(UpstreamError::Refused(error.clone()))
        }
        _ if is_evidence(head) => Ok(Discovered::Older),
        _ => Err(exchange::bare(head)),
    }
}

/// Whether what refuses a version may say so with this status: a stateless server has 400 for that, or 200 where its stream had
/// begun; and 404 is nothing but a status before the message was looked at (PROTOCOL B1, C2).
fn may_name_versions(status: StatusCode) -> bool {
    status.is_success() || matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND)
}

/// Whether an answer with this status says anything about the era.
fn is_evidence(head: &Head) -> bool {
    !head.status.is_server_error() && !is_busy(head.status.as_u16())
}

/// Whether this says that the server itself failed on the question. PROTOCOL C2 has every 5xx be no evidence, and of the era it
/// is none here either; but the Java SDK's stateless servers, 0.11 to 2.0.0, answer any method that they do not know with 500,
/// and would never be reached. So the handshake is offered: what is of that era grants it, and a modern server that is only
/// ill refuses it. 502, 503 and 504 come of what stands in front of a server, or pass.
fn fails_on_question(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Unavailable {
            status: Some(500 | 501),
            ..
        }
    )
}

/// Whether this status only says that the request came at a bad time.
pub(super) const fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 425 | 429)
}

/// Whether this is an answer, and says that what was remembered of the server is so no more. Silence says nothing, nor does load
/// or a credential.
fn denies(why: &NotOpened) -> bool {
    match why {
        NotOpened::Status(head) | NotOpened::Refused(head, _) => is_evidence(head),
        NotOpened::Failed(UpstreamError::Unavailable { status, .. }) => {
            status.is_some_and(|status| (400..500).contains(&status) && !is_busy(status))
        }
        NotOpened::Failed(error) => matches!(
            error,
            UpstreamError::Refused(_) | UpstreamError::Protocol(_) | UpstreamError::Status(_)
        ),
    }
}

/// Whether a refused handshake leaves the two-endpoint transport possible: any 4xx that is no modern error, and not about
/// credentials or load.
fn points_to_events(why: &NotOpened) -> bool {
    let (head, code) = match why {
        NotOpened::Status(head) => (head, None),
        NotOpened::Refused(head, error) => (head, Some(error.code)),
        NotOpened::Failed(_) => return false,
    };
    head.status.is_client_error() && is_evidence(head) && !code.is_some_and(codes::is_modern)
}

/// The texts of a list of versions, if it is one.
fn versions(list: Option<Node<'_>>) -> Option<Vec<String>> {
    list.filter(|list| list.kind() == Kind::Array)?
        .elements()
        .take(64)
        .map(|version| version.as_str().map(std::borrow::Cow::into_owned))
        .collect()
}

/// What a server's versions have in common with ours.
enum Mutual {
    /// The one asked for.
    This,
    /// Another modern one, the newest.
    Other(Revision),
    /// None, but some that the handshake can agree on.
    OlderOnly,
    None,
}

impl Mutual {
    fn of(versions: &[String], asked: Revision) -> Self {
        let known = || versions.iter().filter_map(|text| Revision::parse(text));
        if known().any(|revision| revision == asked) {
            return Self::This;
        }
        match known().max() {
            Some(newest) if newest.era() == Era::Modern => Self::Other(newest),
            Some(_) => Self::OlderOnly,
            None => Self::None,
        }
    }
}

fn no_mutual() -> UpstreamError {
    UpstreamError::Protocol("it serves no revision that is known here".into())
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
