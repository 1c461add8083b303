//! The peer for the stateless era: every request describes itself (PROTOCOL B1 to B3).
//!
//! Guarantees: headers mirror the body that is sent, not the one that came; nothing is declared that cannot be delivered.
//! Tasks are declared for callers who know them, and only to a server that has them. What the server says of itself is asked for
//! again when that has grown old, and no call ends by what it answers. Deliberately absent: sessions.

mod header_cache;
mod listen;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::time::{Instant, sleep, timeout_at};

use self::header_cache::HeaderCache;
use super::{
    Peer, UpstreamError,
    asking::Offer,
    card_cache::CardCache,
    credentials::Credentials,
    exchange::{self, AskOutcome, Exchange, Opened, Wants},
    health::jittered,
    holdings::{Holder, Holdings},
    line::{Line, Wire},
    lists,
    params::{self, Wish},
    promised::Promised,
    refresh_signal::RefreshSignal,
    terms::{CallSlot, Terms},
    transport::Head,
};
use crate::{
    call::{Call, Grantee, Identity, Op, Reply, Resume, ServerCard, State, TaskOp},
    catalog::{Contribution, Listing, Route},
    events::{Lists, ResourceInterest},
    json::{Edits, Json, Kind, Node},
    pins::Mode,
    protocol::{Era, Revision, codes, extensions, meta, methods, methods::ListKind, mirror},
};

/// The longest that what a server says of itself is believed, whatever time to live it gives: nothing tells that it changed.
const CARD_AT_MOST: Duration = Duration::from_secs(12 * 3600);

/// A peer of the stateless era.
pub(super) struct Modern {
    card_cache: CardCache,
    /// Whether it is asked again what it says of itself, for everybody.
    keeps_card: AtomicBool,
    revision: Revision,
    line: Arc<Line>,
    own: Vec<(&'static str, Json)>,
    /// The line's headers with places for those that mirror a named thing, so that nothing grows for each call.
    named: HeaderMap,
    /// What its tools ask to have in headers, for calls that were refused for theirs.
    header_cache: HeaderCache,
}

/// What came of carrying a call.
enum Carried {
    Replied(Reply),
    /// It was refused for its headers, before anything was done; its share of work at once is given back.
    Mismatched(UpstreamError, Option<CallSlot>),
}

/// What is said of ourselves on every request.
pub(super) fn self_description(revision: Revision) -> Vec<(&'static str, Json)> {
    vec![
        (meta::PROTOCOL_VERSION, Json::string(revision.as_str())),
        (meta::CLIENT_INFO, client_info()),
        (meta::CLIENT_CAPABILITIES, Json::empty_object()),
    ]
}

/// Declares extensions among what is said of ourselves.
fn declare(own: &mut [(&'static str, Json)], extensions: Json) {
    for (key, value) in own {
        if *key == meta::CLIENT_CAPABILITIES {
            let mut edits = Edits::new();
            edits.set(value.root(), extensions::MEMBER, extensions.clone());
            *value = value.splice(&edits);
        }
    }
}

/// Our own name and version.
pub(super) fn client_info() -> Json {
    meta::object_of(&[
        ("name", Json::string("usher")),
        ("version", Json::string(env!("CARGO_PKG_VERSION"))),
    ])
}

/// A line of the stateless era at `revision`.
pub(super) fn line(wire: Arc<Wire>, revision: Revision, terms: Arc<Terms>) -> Arc<Line> {
    let mut headers = HeaderMap::new();
    if wire.streamable {
        headers.insert(
            HeaderName::from_static(mirror::PROTOCOL_VERSION),
            HeaderValue::from_static(revision.as_str()),
        );
    }
    Arc::new(Line::new(wire, Era::Modern, headers, terms))
}

/// A request of our own on a modern line.
///
/// # Errors
/// As [`exchange::ask`].
pub(super) async fn ask(
    line: &Arc<Line>,
    revision: Revision,
    method: &'static str,
    members: &[(&str, Json)],
    deadline: Instant,
    quiet: bool,
) -> Result<AskOutcome, UpstreamError> {
    let mut own = self_description(revision);
    // Servers may list a tool with its app only to those who say that they can show one, and some clients of ours can.
    if method != methods::DISCOVER {
        declare(&mut own, extensions::shown());
    }
    let own = meta::object_of(&own);
    let members: Vec<_> = members.iter().cloned().chain([(meta::META, own)]).collect();
    let mut headers = line.headers.clone();
    if line.wire.streamable {
        headers.insert(
            HeaderName::from_static(mirror::METHOD),
            HeaderValue::from_static(method),
        );
    }
    exchange::ask(
        line,
        method,
        &meta::object_of(&members),
        headers,
        deadline,
        quiet,
    )
    .await
}

/// The card in a result of `server/discover`, if it is one.
pub(super) fn card(result: &Json, revision: Revision) -> Option<ServerCard> {
    let root = result.root();
    let capabilities = root
        .member("capabilities")
        .filter(|capabilities| capabilities.kind() == Kind::Object)?;
    Some(ServerCard {
        revision,
        capabilities: result.slice(capabilities),
        instructions: root
            .member("instructions")
            .and_then(Node::as_str)
            .map(Into::into),
        server_info: root
            .member(meta::META)
            .and_then(|meta| meta.member(meta::SERVER_INFO))
            .filter(|info| info.kind() == Kind::Object)
            .map(|info| result.slice(info)),
        ttl_millis: root
            .member("ttlMs")
            .and_then(Node::as_i64)
            .and_then(|millis| millis.try_into().ok())
            .unwrap_or(0),
    })
}

impl Modern {
    /// A peer on a line that has just been discovered to be modern.
    pub(super) fn new(card: ServerCard, line: Arc<Line>) -> Self {
        let own = self_description(card.revision);
        let mut named = HeaderMap::new();
        if line.wire.streamable {
            named.clone_from(&line.headers);
            for name in [&mirror::header::METHOD, &mirror::header::NAME] {
                named.insert(name, HeaderValue::from_static(""));
            }
        }
        Self {
            revision: card.revision,
            card_cache: CardCache::new(card),
            keeps_card: AtomicBool::new(false),
            line,
            own,
            named,
            header_cache: HeaderCache::default(),
        }
    }

    /// Sends a call, using the slot `permit` if given, else waiting for one.
    async fn carry(
        &self,
        call: &Call,
        route: &Route,
        permit: Option<CallSlot>,
    ) -> Result<Carried, UpstreamError> {
        let line = &self.line;
        let resumed = call.resume.as_ref().map(round).transpose()?;
        let rounds = methods::may_ask_back(call.op.method()).then(|| Offer::to(&line.terms, call));
        let permit = match permit {
            Some(permit) => permit,
            None => {
                let queue = &line.terms.queue;
                queue.enter(&call.caller.principal, call.deadline).await?
            }
        };
        let deadline = line.terms.deadline(call);
        // On a pipe a log line cannot be tied to its request (PROTOCOL B6), so none are asked for.
        let log = call.caller.log_level.filter(|_| line.wire.streamable);
        let declared = &call.caller.capabilities;
        let features = call.caller.revision.features();
        let (extensions, has_tasks) = self.card_cache.read(|cached| {
            let forwarded = extensions::forwarded(declared, features, &cached.offers);
            (forwarded, cached.offers.tasks.is_some())
        });
        let task = has_tasks
            && matches!(call.op, Op::CallTool(_) | Op::Task(..))
            && extensions::declares_tasks(declared, features);
        let wants = Wants {
            call: Some(call.id),
            caller: Some(Arc::clone(&call.caller)),
            identity: Some(Arc::clone(&call.identity)),
            progress: call.wants_progress,
            latest: line.terms.latest(call),
            log,
            rounds,
            task,
            looks: matches!(call.op, Op::Task(TaskOp::Get, _)),
            keeps: call.op.may_be_kept(),
            stake: call.stake.clone(),
            trail: call.trail.clone(),
            ..Wants::default()
        };
        let mut exchange = Exchange::new(line, deadline, wants).holding(permit);
        let mut own = self.own.clone();
        if let Some(offer) = rounds.filter(|offer| !offer.is_none())
            && let Some((_, declared)) = own
                .iter_mut()
                .find(|(key, _)| *key == meta::CLIENT_CAPABILITIES)
        {
            *declared = offer.json();
        }
        if let Some(extensions) = extensions {
            declare(&mut own, extensions);
        }
        if let Some(level) = log {
            own.push((meta::LOG_LEVEL, Json::string(level.as_str())));
        }
        if call.wants_progress {
            own.push((meta::PROGRESS_TOKEN, Json::of(&exchange.number())));
        }
        own.extend(exchange.watch(call, route, self.revision));
        let features = self.revision.features();
        let mut params = params::outbound(call, &route.local, &own, features, Wish::Drop);
        if let Some((responses, state)) = resumed {
            params = params::resumed(&params, responses, state);
        }
        let headers = self.mirrored(call, route)?;
        let limits = line.terms.peer.json;
        let sent = exchange.send(call.op.method(), &params, headers, limits);
        match sent.await? {
            Opened::Ended(head, body) => {
                let mismatched = head.status == StatusCode::BAD_REQUEST
                    && matches!(call.op, Op::CallTool(_))
                    && matches!(&body, Err(error) if error.code == codes::HEADER_MISMATCH);
                match exchange.judge(head.status, body) {
                    Err(error) if mismatched => Ok(Carried::Mismatched(error, exchange.release())),
                    judged => judged.map(Reply::Done).map(Carried::Replied),
                }
            }
            // Boxed, as is all that most calls do without: what each of them holds stays small.
            Opened::Flowing(_) => Box::pin(exchange.into_reply()).await.map(Carried::Replied),
            Opened::Status(head) => {
                // A modern server answers with a message.
                doubt(line, &head);
                Err(exchange::bare(&head))
            }
        }
    }

    /// Carries a call that was `refused` for its headers once more, with those that its tool asks for now, if they are others
    /// and what it asks for need not be approved. What is refused so was not carried out (PROTOCOL B3, D6).
    async fn retry_with_fresh_headers(
        &self,
        call: &Call,
        route: &Route,
        refused: UpstreamError,
        permit: Option<CallSlot>,
    ) -> Result<Reply, UpstreamError> {
        let line = self.line_of(&call.identity);
        // Everybody else's calls are to go by what it asks for now, too.
        line.changed(Lists::of(ListKind::Tools));
        // By what nobody approved a secret argument could be put into a header (SECURITY CAT-2).
        if line.terms.definitions == Mode::Quarantine {
            return Err(refused);
        }
        // Its share is held meanwhile: whoever refuses all calls does not have more of them at work thereby.
        let asked = {
            // There is room for one such list whatever else is held. It is let go of when the headers are known.
            let holder = Holdings::new(line.terms.bounds.total_bytes).holder();
            let card = self.card_cache.card();
            let reading = self.listing(&line, &card, ListKind::Tools, &holder);
            let whose = self.whose(&call.identity);
            let asked = self.header_cache.headers(whose, &route.local, reading);
            timeout_at(call.deadline, asked).await
        };
        let Ok(Some(asked)) = asked else {
            return Err(refused);
        };
        if *asked == *route.headers {
            return Err(refused);
        }
        let route = Route {
            headers: asked,
            ..route.clone()
        };
        call.trail.goes_again();
        match self.carry(call, &route, permit).await? {
            Carried::Replied(reply) => Ok(reply),
            Carried::Mismatched(refused, _) => Err(refused),
        }
    }

    /// Whose list it is that is read on behalf of `who`: that principal's where tokens are per principal, else `None` (shared).
    fn whose(&self, who: &Identity) -> Option<Grantee> {
        let credentials = self.line.terms.credentials.as_ref();
        let apart = credentials.is_some_and(Credentials::is_per_principal);
        apart.then(|| who.grantee())
    }

    /// The headers that mirror the body (PROTOCOL B2, B3), rebuilt for this hop; none on a pipe.
    fn mirrored(&self, call: &Call, route: &Route) -> Result<HeaderMap, UpstreamError> {
        if !self.line.wire.streamable {
            return Ok(HeaderMap::new());
        }
        let method = call.op.method();
        let mut headers = if methods::mirrored_member(method).is_some() {
            let mut headers = self.named.clone();
            headers.insert(&mirror::header::NAME, value(&route.local)?);
            headers
        } else {
            self.line.headers.clone()
        };
        headers.insert(&mirror::header::METHOD, HeaderValue::from_static(method));
        if let Op::CallTool(_) = &call.op
            && !route.headers.is_empty()
            && let Some(arguments) = call.params.root().member("arguments")
        {
            for param in &*route.headers {
                if let Some(text) = mirror::rendered(arguments, param) {
                    let name = HeaderName::from_bytes(param.header.as_bytes())
                        .map_err(|_| no_header("the name of a mirrored argument"))?;
                    headers.insert(name, value(&text)?);
                }
            }
        }
        Ok(headers)
    }

    /// A line of somebody's own on the same wire.
    fn line_of(&self, who: &Arc<Identity>) -> Arc<Line> {
        let terms = Arc::clone(&self.line.terms);
        let line = Line::new(
            Arc::clone(&self.line.wire),
            Era::Modern,
            self.line.headers.clone(),
            terms,
        );
        Arc::new(line.in_service(false).on_behalf(Some(who)))
    }

    /// What a principal sees of the server: what that says of itself to them, and its lists.
    async fn offered(
        &self,
        who: &Arc<Identity>,
        holder: &Holder,
    ) -> Result<Contribution, UpstreamError> {
        let line = self.line_of(who);
        let card = self.discovered(&line).await?;
        // Where it answers nobody without a token nobody else asks, and calls would go by what it said when it was reached.
        let is_old = || self.card_cache.age() >= self.good_for(self.card_cache.card().ttl_millis);
        if !self.keeps_card.load(Ordering::Relaxed) && is_old() {
            self.card_cache.learn(card.clone());
        }
        let mut contribution = Contribution::default();
        for kind in ListKind::EVERY {
            let listing = self.listing(&line, &card, kind, holder).await?;
            // Who sees it is decided here and not by what it says.
            *contribution.listing_mut(kind) = Listing {
                public: false,
                ..listing
            };
        }
        contribution.card = Some(card);
        Ok(contribution)
    }

    /// What the server says of itself now to whom the line is.
    async fn discovered(&self, line: &Arc<Line>) -> Result<ServerCard, UpstreamError> {
        let deadline = Instant::now() + line.terms.timeouts.list;
        let revision = self.revision;
        let card = match ask(line, revision, methods::DISCOVER, &[], deadline, false).await? {
            AskOutcome::Result(_, result) => card(&exchange::complete(result)?, revision),
            // Every server of this era answers it.
            AskOutcome::Error(head, error) => {
                doubt(line, &head);
                return Err(UpstreamError::Refused(error));
            }
            AskOutcome::Status(head) => {
                doubt(line, &head);
                return Err(exchange::bare(&head));
            }
        };
        card.ok_or_else(|| UpstreamError::Protocol("no discovery".into()))
    }

    /// Asks the server again what it says of itself whenever that has grown old, and has everything read again where that is
    /// something else: what it did not offer was not read. Nothing else comes of it, so that a server which says something else
    /// each time costs its lists and nobody a call.
    async fn keep_card(&self) {
        let terms = &self.line.terms;
        self.keeps_card.store(true, Ordering::Relaxed);
        let mut wait = self.good_for(self.card_cache.card().ttl_millis);
        loop {
            sleep(jittered(wait)).await;
            wait = match self.discovered(&self.line).await {
                Ok(card) => {
                    let next = self.good_for(card.ttl_millis);
                    if self.card_cache.learn(card) {
                        tracing::info!(upstream = %terms.id, "it says something else of itself now");
                        terms.refresh.missed(Lists::ALL);
                    }
                    next
                }
                Err(error) => {
                    tracing::debug!(upstream = %terms.id, %error, "it does not say what it is now");
                    terms.poll
                }
            };
        }
    }

    /// For how long it is believed what it says of itself.
    fn good_for(&self, ttl_millis: u64) -> Duration {
        let ttl = Duration::from_millis(ttl_millis).min(CARD_AT_MOST);
        ttl.max(self.line.terms.poll)
    }

    /// Listens for as long as it is polled, and anew where the server comes to promise other things.
    async fn listen(
        &self,
        line: &Arc<Line>,
        refresh: &RefreshSignal,
        interest: &Arc<ResourceInterest>,
    ) {
        loop {
            let card = self.card_cache.card();
            tokio::select! {
                biased;
                () = self.card_cache.promises_other_than(Promised::of(&card)) => interest.lost(),
                () = listen::watch(line, &card, refresh, interest) => {}
            }
        }
    }

    async fn listing(
        &self,
        line: &Arc<Line>,
        card: &ServerCard,
        kind: ListKind,
        holder: &Holder,
    ) -> Result<Listing, UpstreamError> {
        if !offers(card, kind) {
            return Ok(Listing::default());
        }
        let deadline = Instant::now() + line.terms.timeouts.list;
        let bounds = &line.terms.bounds;
        lists::drain(kind, Era::Modern, bounds, holder, |cursor| async move {
            let members: Vec<_> = cursor
                .map(|cursor| ("cursor", Json::string(&cursor)))
                .into_iter()
                .collect();
            let revision = self.revision;
            match ask(line, revision, kind.method(), &members, deadline, false).await? {
                AskOutcome::Result(_, result) => exchange::complete(result),
                AskOutcome::Error(_, error) if error.code == codes::METHOD_NOT_FOUND => {
                    Ok(meta::object_of(&[(kind.member(), Json::of::<[u8]>(&[]))]))
                }
                AskOutcome::Error(head, error) => {
                    if error.code == codes::UNSUPPORTED_VERSION
                        || exchange::is_of_older_era(head.status, error.code)
                    {
                        line.wire.doubt.cast();
                    }
                    Err(UpstreamError::Refused(error))
                }
                AskOutcome::Status(head) => {
                    doubt(line, &head);
                    Err(exchange::bare(&head))
                }
            }
        })
        .await
    }
}

/// What a call that goes on brings to a server of this era: its answers, and the server's own state.
///
/// # Errors
/// [`UpstreamError::OutcomeUnknown`] when the call was held open by a peer that is gone.
fn round(resume: &Resume) -> Result<(Option<&Json>, Option<&Json>), UpstreamError> {
    match &resume.state {
        None => Ok((resume.responses.as_ref(), None)),
        Some(State::Upstream(state)) => Ok((resume.responses.as_ref(), state.as_ref())),
        Some(State::Parked(_) | State::Sealed(_) | State::Own(_)) => {
            Err(UpstreamError::OutcomeUnknown)
        }
    }
}

/// Casts doubt where this is how a server of the older era refuses what it does not know.
fn doubt(line: &Line, head: &Head) {
    if matches!(head.status.as_u16(), 400 | 404 | 405) {
        line.wire.doubt.cast();
    }
}

/// Whether the server promised lists of this kind.
pub(super) fn offers(card: &ServerCard, kind: ListKind) -> bool {
    kind.promised_in(&card.capabilities)
}

fn value(text: &str) -> Result<HeaderValue, UpstreamError> {
    HeaderValue::try_from(mirror::encode(text)).map_err(|_| no_header("a mirrored value"))
}

fn no_header(what: &str) -> UpstreamError {
    UpstreamError::Protocol(format!("{what} cannot stand in a header"))
}

impl Peer for Modern {
    fn card(&self) -> Arc<ServerCard> {
        self.card_cache.card()
    }

    fn list(&self, kind: ListKind) -> BoxFuture<'_, Result<Listing, UpstreamError>> {
        Box::pin(async move {
            let holder = &self.line.terms.lists;
            let card = self.card_cache.card();
            self.listing(&self.line, &card, kind, holder).await
        })
    }

    fn offer_to<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        holder: &'a Holder,
    ) -> BoxFuture<'a, Result<Contribution, UpstreamError>> {
        Box::pin(self.offered(who, holder))
    }

    fn watch_for<'a>(
        &'a self,
        who: &'a Arc<Identity>,
        refresh: &'a RefreshSignal,
        interest: &'a Arc<ResourceInterest>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.listen(&self.line_of(who), refresh, interest).await })
    }

    fn call(&self, call: Call, route: Route) -> BoxFuture<'_, Result<Reply, UpstreamError>> {
        // An async block, because an async fn would store its arguments twice in its future.
        Box::pin(async move {
            match self.carry(&call, &route, None).await? {
                Carried::Replied(reply) => Ok(reply),
                Carried::Mismatched(refused, permit) => {
                    Box::pin(self.retry_with_fresh_headers(&call, &route, refused, permit)).await
                }
            }
        })
    }

    fn carries_all(&self) -> bool {
        true
    }

    fn is_streamable(&self) -> bool {
        self.line.wire.streamable
    }

    fn watch(&self) -> BoxFuture<'_, ()> {
        let terms = &self.line.terms;
        let listening = self.listen(&self.line, &terms.refresh, &terms.interest);
        Box::pin(async move {
            tokio::join!(self.keep_card(), listening);
        })
    }

    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        self.line.wire.transport.lost()
    }

    fn doubted(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.line.wire.doubt.arisen())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.line.wire.transport.close()
    }
}

#[cfg(test)]
mod cards;
#[cfg(test)]
mod doubted;
#[cfg(test)]
mod late;
#[cfg(test)]
mod mismatched;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod tests;
