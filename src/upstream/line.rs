//! A line to an upstream: a transport, the ids minted on it, and what every frame sent carries.
//!
//! Guarantees: ids are unique per transport, however many sessions share it. Deliberately absent: what the frames mean.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::AUTHORIZATION};
use tokio::time::{Instant, timeout_at};

use super::{
    Deadline, UpstreamError,
    asking::Offer,
    credentials::Credentials,
    health::Doubt,
    terms::Terms,
    transport::{Answer, Outbound, Transport, sent},
    visits,
};
use crate::{
    call::{Identity, Trail},
    events::Lists,
    json::{Json, Node},
    jsonrpc::{Notification, Request, RequestId, RpcError, encode},
    protocol::{Era, codes, meta, methods, methods::ListKind},
};

/// How long a frame that wants no answer may take to be sent.
const ASIDE: Duration = Duration::from_secs(2);

/// One transport and the numbers given out on it.
pub(super) struct Wire {
    /// What carries the frames.
    pub(super) transport: Arc<dyn Transport>,
    /// Whether each request has an HTTP exchange of its own: then its frames are attributable, and in the stateless era
    /// letting go of it is the cancellation.
    pub(super) streamable: bool,
    /// Whether an answer showed that the server may no longer speak as it was reached.
    pub(super) doubt: Doubt,
    /// Whether the server granted a handshake only when no mode of a capability was declared in it ([`Offer::plain`]).
    pub(super) plain: AtomicBool,
    next: AtomicU64,
}

impl Wire {
    /// Numbers from 1.
    pub(super) fn new(transport: Arc<dyn Transport>, streamable: bool) -> Arc<Self> {
        Arc::new(Self {
            transport,
            streamable,
            doubt: Doubt::default(),
            plain: AtomicBool::new(false),
            next: AtomicU64::new(1),
        })
    }

    /// The next number: a request's id, and its progress token.
    pub(super) fn mint(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// A wire, and how this conversation speaks on it.
pub(super) struct Line {
    /// The wire; other lines may share it.
    pub(super) wire: Arc<Wire>,
    /// Version and session: sent with every frame over HTTP.
    pub(super) headers: HeaderMap,
    /// How it speaks.
    pub(super) era: Era,
    /// What it keeps to.
    pub(super) terms: Arc<Terms>,
    /// What was declared on it for a whole session; nothing where each request declares for itself.
    pub(super) offer: Offer,
    /// Whether this is the gateway's own line and not one caller's. Where all are offered the same, resource updates are taken
    /// only there.
    pub(super) service: bool,
    /// Whose credential is used for what the line sends on its own: the latest caller's; `None`: the gateway's.
    behalf: ArcSwapOption<Identity>,
}

impl Line {
    /// A line in `era` whose frames carry `headers`.
    pub(super) fn new(wire: Arc<Wire>, era: Era, headers: HeaderMap, terms: Arc<Terms>) -> Self {
        let mut all = wire.transport.headers();
        all.extend(headers);
        Self {
            wire,
            headers: all,
            era,
            terms,
            offer: Offer::NONE,
            service: true,
            behalf: ArcSwapOption::empty(),
        }
    }

    /// This line as the gateway's own (`service`), or as one caller's.
    pub(super) fn in_service(mut self, service: bool) -> Self {
        self.service = service;
        self
    }

    /// This line with `identity` as the one whose credential it uses for what it sends on its own.
    pub(super) fn on_behalf(self, identity: Option<&Arc<Identity>>) -> Self {
        self.behalf.store(identity.map(Arc::clone));
        self
    }

    /// Sends a frame, on behalf of somebody or of whom the line is for; where tokens are got by a grant, with theirs.
    ///
    /// # Errors
    /// What the transport fails with, and [`UpstreamError::Credential`].
    pub(super) async fn send(
        &self,
        out: Outbound,
        identity: Option<&Arc<Identity>>,
    ) -> Result<Answer, UpstreamError> {
        let transport = &*self.wire.transport;
        match &self.terms.credentials {
            None => (sent(transport, out).await).map_err(UpstreamError::past_login),
            Some(credentials) => {
                let behalf = self.behalf_of(identity)?;
                Box::pin(credentials.carry(transport, out, behalf.as_ref())).await
            }
        }
    }

    /// The headers of what is sent beside frames: with the token of whom the line is for.
    ///
    /// # Errors
    /// [`UpstreamError::Credential`].
    pub(super) async fn credentialed(&self) -> Result<HeaderMap, UpstreamError> {
        let mut headers = self.headers.clone();
        if let Some(credentials) = &self.terms.credentials {
            let behalf = self.behalf_of(None)?;
            if let Some(token) = credentials.header(behalf.as_ref()).await? {
                headers.insert(AUTHORIZATION, token);
            }
        }
        Ok(headers)
    }

    /// On whose behalf something is sent. A session of the older era belongs to one principal, and carries no other's
    /// credential (SECURITY STATE-8).
    fn behalf_of(
        &self,
        identity: Option<&Arc<Identity>>,
    ) -> Result<Option<Arc<Identity>>, UpstreamError> {
        let (Some(identity), Era::Legacy) = (identity, self.era) else {
            return Ok(identity.map(Arc::clone).or_else(|| self.behalf.load_full()));
        };
        let per_principal = |credentials: &Credentials| credentials.is_per_principal();
        if self.terms.credentials.as_ref().is_some_and(per_principal) {
            let owner = self.behalf.load();
            let is_owner = |owner: &Arc<Identity>| owner.principal == identity.principal;
            if !owner.as_ref().is_some_and(is_owner) {
                return Err(UpstreamError::Protocol(
                    "a session would have carried another principal's credential".into(),
                ));
            }
            self.behalf.store(Some(Arc::clone(identity)));
        }
        Ok(Some(Arc::clone(identity)))
    }

    /// Takes a notification that answers nothing: of changes, of a page that somebody was sent to by a call that is over, or of
    /// something that goes nowhere. That a list changed is
    /// heard from whoever says so, since it only means that the gateway's own conversation asks again.
    pub(super) fn hear(&self, notification: &Notification) {
        if let Some(kind) = ListKind::of_changed(&notification.method) {
            self.changed(Lists::of(kind));
            return;
        }
        if &*notification.method == methods::ELICITATION_COMPLETE {
            if !self.page_is_done(notification) {
                self.terms.drop_frame();
            }
            return;
        }
        let updated = (&*notification.method == methods::RESOURCE_UPDATED)
            .then_some(notification.params.as_ref())
            .flatten()
            .and_then(|params| params.root().member("uri"))
            .and_then(Node::as_str);
        if !updated.is_some_and(|uri| self.updated(&uri)) {
            self.terms.drop_frame();
        }
    }

    /// Passes on that a page is done with, to who sent somebody there. False if nobody knows who that was.
    pub(super) fn page_is_done(&self, notification: &Notification) -> bool {
        let params = notification.params.as_ref();
        let page = params.and_then(|params| visits::page(&self.terms.id, params));
        page.is_some_and(|page| self.terms.interest.pages().done(&page))
    }

    /// Passes on a resource update, to this line's principal alone where each is offered something different. False if nobody
    /// watches it.
    fn updated(&self, uri: &str) -> bool {
        match self.owner() {
            Some(owner) => self.terms.own.updated(&owner, uri),
            None => self.service && self.terms.interest.updated(uri),
        }
    }

    /// Whose line it is, where each is offered something of their own.
    fn owner(&self) -> Option<Arc<Identity>> {
        let credentials = self.terms.credentials.as_ref()?;
        credentials
            .lists_are_own()
            .then(|| self.behalf.load_full())?
    }

    /// These lists are others now, for whom the line is where each has their own.
    pub(super) fn changed(&self, lists: Lists) {
        match self.owner() {
            Some(owner) => self.terms.own.ring(&owner, lists),
            None => self.terms.refresh.ring(lists),
        }
    }

    /// Replaces the stored identity by a newer one of the same principal, so that the latest token is used.
    pub(super) fn speaks_for(&self, identity: &Arc<Identity>) {
        let owner = self.behalf.load();
        if owner
            .as_ref()
            .is_some_and(|it| it.principal == identity.principal)
        {
            self.behalf.store(Some(Arc::clone(identity)));
        }
    }

    /// The same line, on which `offer` was declared.
    pub(super) fn offering(mut self, offer: Offer) -> Self {
        self.offer = offer;
        self
    }

    /// Whether giving up on a request must be told (PROTOCOL D1, cancel).
    pub(super) fn tells_of_cancelling(&self) -> bool {
        match self.era {
            Era::Legacy => true,
            Era::Modern => !self.wire.streamable,
        }
    }

    /// Sends a frame that wants no answer, within 2 s.
    ///
    /// # Errors
    /// As [`Line::notify`].
    pub(super) async fn aside(&self, frame: Bytes) -> Result<Answer, UpstreamError> {
        self.notify(frame, Instant::now() + ASIDE).await
    }

    /// Sends a frame that wants no answer, before `deadline`.
    ///
    /// # Errors
    /// What the transport fails with, and [`UpstreamError::Timeout`].
    pub(super) async fn notify(
        &self,
        frame: Bytes,
        deadline: Instant,
    ) -> Result<Answer, UpstreamError> {
        let out = Outbound {
            frame,
            id: None,
            headers: self.headers.clone(),
            limits: self.terms.peer.json,
            patience: None,
            payer: None,
            listens: false,
            resumes: false,
            credential: None,
            trail: Trail::NONE,
        };
        timeout_at(deadline, self.send(out, None))
            .await
            .map_err(|_| UpstreamError::Timeout(Deadline::Send))?
    }

    /// Tells the upstream that request `number` is no longer wanted; best effort.
    pub(super) async fn cancel(&self, number: u64) {
        let params = meta::object_of(&[
            ("requestId", Json::of(&number)),
            ("reason", Json::string("no longer wanted")),
        ]);
        let frame = encode::notification(methods::CANCELLED, Some(&params));
        if let Err(error) = self.aside(frame).await {
            tracing::debug!(%error, "a cancellation could not be told");
        }
    }

    /// Answers a request of a legacy server that belongs to no call: a ping promptly, all else with an error. What was declared
    /// may only be asked while a call that can be asked about is under way (PROTOCOL D0.4, D7).
    pub(super) async fn answer(&self, request: &Request) {
        if &*request.method == methods::PING {
            self.tell(request, &Ok(Json::empty_object())).await;
        } else {
            let why = "the request belongs to no call in progress";
            self.refuse(request, why).await;
        }
    }

    /// Answers a request of a legacy server with an error: for this reason, if what it asks was declared.
    pub(super) async fn refuse(&self, request: &Request, why: &str) {
        self.terms.drop_frame();
        let params = request.params.as_ref().map(Json::root);
        let error = match self.offer.allows(&request.method, params) {
            Ok(()) => RpcError::new(codes::INVALID_PARAMS, why),
            Err(why) => RpcError::new(why.code(), why.to_string()),
        };
        self.tell(request, &Err(error)).await;
    }

    async fn tell(&self, request: &Request, body: &Result<Json, RpcError>) {
        if let Err(error) = self.reply(&request.id, body).await {
            tracing::debug!(%error, "a server's request could not be answered");
        }
    }

    /// Answers a request of a legacy server with something that nobody waits to have said, within 2 s: a refusal, say.
    ///
    /// # Errors
    /// As [`Line::notify`].
    pub(super) async fn reply(
        &self,
        id: &RequestId,
        body: &Result<Json, RpcError>,
    ) -> Result<Answer, UpstreamError> {
        self.reply_before(id, body, Instant::now() + ASIDE).await
    }

    /// Answers a request of a legacy server before `deadline`: a call hangs on that, and a token may have to be got for it.
    ///
    /// # Errors
    /// As [`Line::notify`].
    pub(super) async fn reply_before(
        &self,
        id: &RequestId,
        body: &Result<Json, RpcError>,
        deadline: Instant,
    ) -> Result<Answer, UpstreamError> {
        let frame = match body {
            Ok(result) => {
                let mut frame = BytesMut::with_capacity(64 + result.len());
                for segment in encode::result(id, result) {
                    frame.extend_from_slice(&segment);
                }
                frame.freeze()
            }
            Err(error) => encode::error(Some(id), error),
        };
        self.notify(frame, deadline).await
    }

    /// The id that stands for `number`.
    pub(super) fn id(number: u64) -> RequestId {
        RequestId::minted(number)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::{
        call::IdentityKind,
        fetch::Address,
        tasks::Tasks,
        upstream::{
            CredentialError,
            credentials::spec::{
                ClientAuth, Grant, GrantSpec, ListsAs, ServerSpec, SubjectType, TokenEndpoint,
            },
            exchange,
            scripted::{Play, Scripted, an_address, terms},
            spec::Endpoint,
        },
    };

    fn somebody(name: &str) -> Arc<Identity> {
        Arc::new(Identity::named(IdentityKind::User, name))
    }

    /// A line to an upstream where each user has tokens of their own.
    fn line(era: Era) -> Line {
        let mut spec = an_address();
        let Endpoint::Http(http) = &mut spec.endpoint else {
            panic!("no address");
        };
        let at = Address::configured("http://127.0.0.1:1/token", false).unwrap();
        http.grant = Some(Box::new(GrantSpec {
            grant: Grant::TokenExchange {
                subject: SubjectType::AccessToken,
            },
            server: ServerSpec {
                token_endpoint: TokenEndpoint::Url(at),
                client_id: "usher".into(),
                client_secret: "secret".into(),
                client_auth: ClientAuth::Basic,
            },
            resource: "https://files.example/mcp".into(),
            audience: None,
            scopes: Vec::new(),
            lists: ListsAs::Principal,
            ca: None,
        }));
        let terms = Terms::new(&spec, Default::default(), Arc::default(), Tasks::new());
        let wire = Wire::new(Scripted::new(|_| Play::Hang), true);
        Line::new(wire, era, HeaderMap::new(), terms)
    }

    #[tokio::test]
    async fn scopes_that_nobody_can_log_in_for_are_a_refused_credential_that_says_so() {
        let lacks = CredentialError::Lacks(Arc::new(["read".into(), "write".into()]));
        let refusing = Scripted::new(move |_| Play::Fail(lacks.clone().into()));
        let terms = terms(&an_address());
        let line = Line::new(
            Wire::new(refusing, true),
            Era::Modern,
            HeaderMap::new(),
            terms,
        );
        let (line, nothing) = (Arc::new(line), Json::empty_object());
        let deadline = Instant::now() + Duration::from_secs(5);
        let method = methods::DISCOVER;
        let told = exchange::ask(&line, method, &nothing, HeaderMap::new(), deadline, true).await;
        let Err(error) = told else {
            panic!("it was answered")
        };
        assert_eq!(
            (error.status(), error.reason()),
            (Some(403), "upstream_auth_failed")
        );
        assert_eq!(
            error.to_string(),
            r#"refused our credential with HTTP 403: error="insufficient_scope", scope="read write""#
        );
    }

    /// SECURITY STATE-8
    #[tokio::test]
    async fn a_session_of_the_older_era_carries_nobodys_credential_but_its_principals() {
        let (ana, bob) = (somebody("ana"), somebody("bob"));
        let own = line(Era::Legacy).on_behalf(Some(&ana));
        let later = somebody("ana");
        let behalf = own.behalf_of(Some(&later)).unwrap();
        assert!(Arc::ptr_eq(&behalf.unwrap(), &later), "the latest of hers");
        for other in [&bob, &Identity::anonymous()] {
            let refused = own.behalf_of(Some(other));
            assert!(matches!(refused, Err(UpstreamError::Protocol(_))));
        }
        let behalf = own.behalf_of(None).unwrap().unwrap();
        assert_eq!(behalf.principal, ana.principal);
        // A session of nobody's is nobody's to speak on.
        assert!(line(Era::Legacy).behalf_of(Some(&ana)).is_err());
        // Where each request stands for itself, each carries its own.
        let modern = line(Era::Modern).on_behalf(Some(&ana));
        let behalf = modern.behalf_of(Some(&bob)).unwrap().unwrap();
        assert_eq!(behalf.principal, bob.principal);
    }
}
