//! Connections: what each principal was given for upstreams that people log in to with accounts of their own (PRODUCT 7).
//!
//! Guarantees: tokens of one principal are used for that principal, at the upstream that they were given for; they are on disk
//! sealed or not at all; codes and tokens go to the one server whose metadata was checked, with PKCE; a login ends in the
//! browser in which it began, once, within ten minutes, and in none that another principal logged in with before (PROTOCOL F6,
//! F7; SECURITY EGR-5, EGR-10). Deliberately absent: what the
//! pages look like, how a client is asked, and how a token gets into a request.

mod accounts;
mod browser;
mod browser_flow;
mod discover;
mod flows;
mod grant;
mod login_tool;
mod register;
mod renewing;
pub mod spec;
mod step_up;
pub mod store;
mod store_watch;
mod token;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};
use zeroize::Zeroizing;

use crate::{
    call::Principal,
    fetch::{Address, FetchError, Fetcher, says_later},
    protocol::UpstreamId,
    seal::unix_seconds,
    tasks::Tasks,
};

pub use browser::REMEMBERED;
pub use browser_flow::{Callback, Done, Prompt, Refusal};
pub use discover::DiscoverError;
pub use flows::{Account, BadVisit, LIFE};
pub use grant::{Freshness, Grant};
pub use register::RegisterError;
pub use renewing::AGAIN;
pub use token::TokenError;

use accounts::Grants;
use browser::Browsers;
use discover::{Login, Server};
use flows::Flows;
use login_tool::StandIn;
use register::Use;
use spec::{AccountSpec, ConnectSpec};
use step_up::Wants;
use store::{CLIENT, Key, StoreError};
use token::Client;

/// Every connection, and every login under way. Clones share everything.
#[derive(Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    spec: ConnectSpec,
    grants: Grants,
    flows: Flows,
    browsers: Browsers,
    /// What upstreams asked for beyond what was granted.
    wants: Wants,
    /// Where people log in to each upstream, as found out last.
    logins: HashMap<UpstreamId, Found>,
    /// What each upstream offers while nothing is known of it.
    stand_ins: HashMap<UpstreamId, StandIn>,
    /// What was kept of registrations, for where there is no store, or none that can be read. Held for a lookup, never across an await.
    clients: Mutex<Registrations>,
    /// One registration at a time in each place. Held for a lookup; what is in it is held by whoever registers there.
    registering: Mutex<HashMap<Place, Weak<tokio::sync::Mutex<()>>>>,
    fetcher: Fetcher,
    /// The same for upstreams with TLS of their own, which is used at their origins.
    fetchers: HashMap<UpstreamId, Fetcher>,
    base: OnceLock<String>,
    tasks: Tasks,
}

/// Where people log in to one upstream. Held while it is looked for, so that it is looked for once.
type Found = tokio::sync::Mutex<Option<Discovered>>;

/// What came of looking for it last, and when.
struct Discovered {
    login: Result<Arc<Login>, DiscoverError>,
    at: Instant,
}

/// Where we register: an issuer, and a redirect URI of ours.
type Place = (String, String);

/// What was kept of registrations.
type Registrations = HashMap<Place, Zeroizing<Vec<u8>>>;

/// Where a person logs in.
#[derive(Debug, Clone)]
pub struct Link {
    /// The page.
    pub url: String,
    /// A name for the login that gives nobody anything.
    pub notice: Arc<str>,
    /// When they had logged in before, if they had: the login is to take the place of that one.
    pub before: Option<u64>,
}

/// What became of a login that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is a grant.
    Granted,
    /// It came to nothing.
    Failed,
    /// It may still come to something.
    Pending,
}

/// A connection as operators see it.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Whose and for what.
    pub account: Account,
    /// What people call the principal.
    pub who: String,
    /// Who gave it.
    pub issuer: String,
    /// When somebody logged in, in seconds since 1970.
    pub since: u64,
    /// When its token ends, in seconds since 1970; a renewed one has another end.
    pub until: Option<u64>,
    /// Whether it renews itself.
    pub renews: bool,
    /// What was granted.
    pub scope: Option<String>,
}

/// Why something about a connection failed. For logs and operators; nothing of a peer's text is in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConnectError {
    /// No such upstream, or none that people log in to.
    #[error("people do not log in to this upstream")]
    Unknown,
    /// The connect page is served nowhere.
    #[error("the connect page is served nowhere: this gateway listens at no address")]
    NoPage,
    /// More logins under way than may be.
    #[error("too many logins under way")]
    Busy,
    /// Where people log in cannot be found out.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// We are nobody there.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The token endpoint.
    #[error("token endpoint: {0}")]
    Token(#[from] TokenError),
    /// The store.
    #[error("connection store: {0}")]
    Store(Arc<StoreError>),
    /// The gateway is stopping.
    #[error("shutting down")]
    Stopping,
    /// A fault of the gateway's own.
    #[error("an internal error")]
    Panicked,
}

impl ConnectError {
    /// Whether it may well be another way in a moment: an authorization server that does not answer now, or says to come again.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Discover(DiscoverError::Fetch { cause: error, .. })
            | Self::Register(RegisterError::Fetch(error))
            | Self::Token(TokenError::Fetch(error)) => error.is_passing(),
            Self::Register(RegisterError::Refused(status))
            | Self::Token(TokenError::Refused(status)) => says_later(*status),
            Self::Unknown
            | Self::NoPage
            | Self::Busy
            | Self::Discover(_)
            | Self::Register(_)
            | Self::Token(_)
            | Self::Store(_)
            | Self::Stopping
            | Self::Panicked => false,
        }
    }
}

impl Discovered {
    /// Whether it is still the answer.
    fn counts(&self) -> bool {
        let life = match self.login {
            Ok(_) => KNOWN_FOR,
            Err(_) => AGAIN,
        };
        self.at.elapsed() < life
    }
}

impl From<StoreError> for ConnectError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// Why the server that gave a grant does not know that it is over.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotTold {
    /// It has nowhere to be told.
    #[error("it takes no tokens back")]
    NotOffered,
    /// People log in elsewhere by now, and what one server gave is shown to no other.
    #[error("another server has taken its place since")]
    OtherServer,
    /// Nobody is known to have been given it.
    #[error("this gateway has no registration there, or not under the address that it has now")]
    Unregistered,
    /// It was asked, and did not take it.
    #[error(transparent)]
    Failed(#[from] ConnectError),
}

/// Why connections cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store.
    #[error("connection store: {0}")]
    Store(#[from] StoreError),
    /// The roots, or what an upstream is shown.
    #[error(transparent)]
    Fetch(#[from] FetchError),
}

/// How long what was found out about a server is believed.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// Where pages are, below the base.
pub const PATH: &str = "/connect";
/// Where browsers come back to, below the base.
pub const CALLBACK: &str = "/connect/callback";
/// Where the document about ourselves is, below the base.
pub const DOCUMENT: &str = "/connect/client.json";

impl Connections {
    /// Reads the store, and keeps an eye on it until `tasks` is stopped.
    ///
    /// # Errors
    /// [`OpenError`] when the store cannot be used.
    pub fn open(spec: ConnectSpec, fetcher: Fetcher, tasks: &Tasks) -> Result<Self, OpenError> {
        let (grants, others) = Grants::open(&spec)?;
        let clients = others
            .into_iter()
            .filter(|record| record.key.kind == CLIENT)
            .map(|record| ((record.key.whose, record.key.place), record.plain))
            .collect();
        let fetchers = own_fetchers(&spec, &fetcher)?;
        let base = OnceLock::new();
        if let Some(url) = &spec.url {
            // Empty a moment ago.
            drop(base.set(url.clone()));
        }
        let logins = spec.accounts.keys().cloned();
        let shared = Arc::new(Shared {
            logins: logins
                .map(|id| (id, tokio::sync::Mutex::default()))
                .collect(),
            stand_ins: spec
                .accounts
                .keys()
                .map(|id| (id.clone(), StandIn::default()))
                .collect(),
            grants,
            flows: Flows::default(),
            wants: Wants::default(),
            browsers: Browsers::new(&spec),
            clients: Mutex::new(clients),
            registering: Mutex::default(),
            fetcher,
            fetchers,
            base,
            tasks: tasks.clone(),
            spec,
        });
        let this = Self { shared };
        if this.shared.grants.store().is_some() {
            tasks.spawn(this.clone().look());
        }
        Ok(this)
    }

    /// Where browsers reach this gateway, for a configuration that does not say: the first word counts.
    pub fn reached_at(&self, base: String) {
        drop(self.shared.base.set(base));
    }

    /// Whether people log in to this upstream.
    pub fn covers(&self, upstream: &UpstreamId) -> bool {
        self.shared.spec.accounts.contains_key(upstream)
    }

    /// The grant as it is, without renewing anything. Takes no lock that is waited for.
    pub fn current(&self, account: &Account) -> Option<Arc<Grant>> {
        let slot = self.shared.grants.slot(account)?;
        Some(slot.grant.load_full())
    }

    /// The grant, renewed where it must be; `None` when there is none, and somebody has to log in. One that ends soon is renewed
    /// meanwhile.
    ///
    /// # Errors
    /// [`ConnectError`] when it must be renewed and cannot be now.
    pub async fn grant(&self, account: &Account) -> Result<Option<Arc<Grant>>, ConnectError> {
        let Some(slot) = self.shared.grants.slot(account) else {
            return Ok(None);
        };
        let grant = slot.grant.load_full();
        match grant.freshness(unix_seconds()) {
            Freshness::Fresh => Ok(Some(grant)),
            Freshness::Due => {
                // To the end, though nobody waits for it.
                drop(self.renewal(account, &slot, &grant));
                Ok(Some(grant))
            }
            Freshness::Over => self.renewed(account, &slot, &grant).await,
        }
    }

    /// The upstream refused the token of `used`. The grant to try again with, if there is another one; else somebody has to log in, and
    /// it is removed unless another process may still renew it.
    ///
    /// # Errors
    /// As [`Connections::grant`].
    pub async fn refused(
        &self,
        account: &Account,
        used: &Arc<Grant>,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        match self.shared.grants.slot(account) {
            Some(slot) => self.renewed(account, &slot, used).await,
            None => Ok(None),
        }
    }

    /// A page where this principal logs in; `who` is what people call it. The same one until a browser has taken it.
    ///
    /// # Errors
    /// [`ConnectError::NoPage`], [`ConnectError::Busy`], [`ConnectError::Unknown`].
    pub fn link(&self, account: &Account, who: &Arc<str>) -> Result<Link, ConnectError> {
        if !self.covers(&account.upstream) {
            return Err(ConnectError::Unknown);
        }
        let base = self.base()?;
        // First: a login that comes to something meanwhile takes its place.
        let before = self.current(account).map(|grant| grant.since);
        let (link, notice) = self
            .shared
            .flows
            .link(account, who)
            .ok_or(ConnectError::Busy)?;
        Ok(Link {
            url: format!("{base}{PATH}?login={link}"),
            notice,
            before,
        })
    }

    /// Waits until `until` for what becomes of the login of this name. What was granted in the login `before` it, which was not
    /// enough or it had not been asked for, is none of its grants; that of any other is as good as its own.
    pub async fn settled(
        &self,
        account: &Account,
        notice: &str,
        before: Option<u64>,
        until: Instant,
    ) -> Settled {
        let mut changes = self.shared.grants.watch();
        loop {
            changes.mark_unchanged();
            let current = self.current(account);
            if current.is_some_and(|grant| before != Some(grant.since)) {
                return Settled::Granted;
            }
            if !self.shared.flows.is_open(notice) {
                return Settled::Failed;
            }
            // A link that grows old makes no noise.
            let soon = until.min(Instant::now() + Duration::from_secs(5));
            match tokio::time::timeout_at(soon, changes.changed()).await {
                Ok(Ok(())) => {}
                Err(_) if soon < until => {}
                Ok(Err(_)) | Err(_) => return Settled::Pending,
            }
        }
    }

    /// The person does not want to: what they have stays as it is. What is wanted of them is still asked for in another login that
    /// is under way.
    pub fn give_up(&self, account: &Account, notice: &str) {
        if self.shared.flows.give_up(account, notice) {
            self.shared.wants.forget(account);
        }
        self.shared.grants.tell();
    }

    /// Hears of every change of grants.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.grants.watch()
    }

    /// Every connection, by upstream and principal.
    pub fn list(&self) -> Vec<Connection> {
        let all = self.shared.grants.all().into_iter();
        all.map(|(account, grant)| Connection {
            account,
            who: grant.who.clone(),
            issuer: grant.issuer.clone(),
            since: grant.since,
            until: grant.until,
            renews: grant.refresh.is_some(),
            scope: grant.scope.clone(),
        })
        .collect()
    }

    /// Removes a connection, has its server take the tokens back where it can, and ends logins under way; `None` when there was
    /// none. What is removed is removed, whether its server hears of it or not.
    ///
    /// # Errors
    /// [`ConnectError::Store`].
    pub async fn revoke(
        &self,
        account: &Account,
    ) -> Result<Option<Result<(), NotTold>>, ConnectError> {
        self.shared.flows.settle(account);
        self.shared.wants.forget(account);
        let whose = account.clone();
        let removed = self
            .on_disk(move |shared| shared.grants.remove(&whose))
            .await??;
        match removed {
            Some(grant) => Ok(Some(self.take_back(account, &grant).await)),
            None => Ok(None),
        }
    }

    async fn take_back(&self, account: &Account, grant: &Grant) -> Result<(), NotTold> {
        let login = self.login(&account.upstream).await?;
        if login.server.issuer != grant.issuer {
            return Err(NotTold::OtherServer);
        }
        let Some(at) = &login.server.revoke else {
            return Err(NotTold::NotOffered);
        };
        let whose = Use::Grant(grant.client.as_deref());
        let client = match self.client(&account.upstream, &login.server, whose).await {
            Ok(client) => client,
            Err(ConnectError::Register(_)) => return Err(NotTold::Unregistered),
            Err(error) => return Err(error.into()),
        };
        let token = grant.refresh.as_ref().unwrap_or(&grant.access);
        let fetcher = self.fetcher(&account.upstream);
        let told = token::take_back(at, &login.server, &client, token, fetcher).await;
        told.map_err(|error| ConnectError::Token(error).into())
    }

    fn account(&self, upstream: &UpstreamId) -> Result<&AccountSpec, ConnectError> {
        let account = self.shared.spec.accounts.get(upstream);
        account.ok_or(ConnectError::Unknown)
    }

    /// What asks on behalf of this upstream: itself, and where people log in to it.
    fn fetcher(&self, upstream: &UpstreamId) -> &Fetcher {
        let own = self.shared.fetchers.get(upstream);
        own.unwrap_or(&self.shared.fetcher)
    }

    fn base(&self) -> Result<&str, ConnectError> {
        let base = self.shared.base.get();
        base.map(|base| base.trim_end_matches('/'))
            .ok_or(ConnectError::NoPage)
    }

    /// Runs `work` on a blocking thread: it may wait for a disk, or for another process that holds the lock of the store.
    ///
    /// # Errors
    /// [`ConnectError::Panicked`].
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, ConnectError> {
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&this.shared)).await;
        done.map_err(|_| ConnectError::Panicked)
    }

    /// Where people log in to this upstream. A failure is remembered for [`AGAIN`], so that callers who waited for one attempt do
    /// not go on to make another each.
    async fn login(&self, upstream: &UpstreamId) -> Result<Arc<Login>, ConnectError> {
        let account = self.account(upstream)?;
        let known = self.shared.logins.get(upstream);
        let mut known = known.ok_or(ConnectError::Unknown)?.lock().await;
        if let Some(known) = &*known
            && known.counts()
        {
            return known.login.clone().map_err(Into::into);
        }
        let found = discover::login(account, self.fetcher(upstream)).await;
        let login = found.map(Arc::new);
        *known = Some(Discovered {
            login: login.clone(),
            at: Instant::now(),
        });
        login.map_err(Into::into)
    }

    /// Who we are at `server`, for this use. To become somebody we register for logins alone.
    ///
    /// # Errors
    /// [`RegisterError::Unregistered`] where we would have to, and may not.
    async fn client(
        &self,
        upstream: &UpstreamId,
        server: &Server,
        wanted: Use<'_>,
    ) -> Result<Client, ConnectError> {
        let account = self.account(upstream)?;
        let base = self.base();
        let known_base = base.as_ref().copied().unwrap_or_default();
        match register::way(&account.client, server, known_base)? {
            register::Way::Known(client) => return Ok(client),
            register::Way::Document => {
                return Ok(Client {
                    id: format!("{known_base}{DOCUMENT}"),
                    secret: None,
                    method: None,
                    registered: false,
                });
            }
            register::Way::Ask => {}
        }
        // Without an address of ours nobody can say whether we are registered.
        let redirect = format!("{}{CALLBACK}", base?);
        let place = (server.issuer.clone(), redirect.clone());
        let known = |kept: &Option<Zeroizing<Vec<u8>>>| {
            let text = kept.as_ref()?;
            register::kept(text, wanted, unix_seconds())
        };
        if let Some(client) = known(&self.registered(&place).await?) {
            return Ok(client);
        }
        let Use::Login(scopes) = wanted else {
            return Err(RegisterError::Unregistered.into());
        };
        let turn = self.registering(&place);
        let _one = turn.lock().await;
        // Somebody else may have been first.
        let before = self.registered(&place).await?;
        if let Some(client) = known(&before) {
            return Ok(client);
        }
        let before = before.as_ref().map(|text| text.as_slice());
        let (now, fetcher) = (unix_seconds(), self.fetcher(upstream));
        let asked = register::ask(server, &redirect, scopes, before, now, fetcher);
        let (client, text) = asked.await?;
        let (key, kept) = (client_key(&place), text.clone());
        let store =
            move |shared: &Shared| shared.grants.store().map(|store| store.put(&key, &kept));
        self.on_disk(store).await?.transpose()?;
        self.clients().insert(place, text);
        Ok(client)
    }

    /// What is kept of registrations in this place: what the store says, where there is one. Another process that shares it may
    /// have registered again, and a grant that was given to that client is good with no other.
    async fn registered(&self, place: &Place) -> Result<Option<Zeroizing<Vec<u8>>>, ConnectError> {
        let key = client_key(place);
        let find = move |shared: &Shared| shared.grants.store().map(|store| store.find(&key));
        let found = self.on_disk(find).await?;
        let mut clients = self.clients();
        let text = match found {
            Some(Ok(found)) => found.map(|found| found.plain),
            // That it cannot be read just now ends nothing.
            Some(Err(error)) => Some(clients.get(place).cloned().ok_or(error)?),
            None => clients.get(place).cloned(),
        };
        if let Some(text) = &text {
            clients.insert(place.clone(), text.clone());
        }
        Ok(text)
    }

    /// What is held while we register there: one server that does not answer keeps nobody from another.
    fn registering(&self, place: &Place) -> Arc<tokio::sync::Mutex<()>> {
        let all = self.shared.registering.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = all.get(place).and_then(Weak::upgrade) {
            return turn;
        }
        all.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        all.insert(place.clone(), Arc::downgrade(&turn));
        turn
    }

    /// The server does not know this client of ours any more: the next login registers again.
    async fn forget_client(&self, server: &Server, client: &Client) {
        let Ok(base) = self.base() else { return };
        let place = (server.issuer.clone(), format!("{base}{CALLBACK}"));
        self.clients()
            .retain(|known, text| *known != place || !register::is_of(text, &client.id));
        let (key, id) = (client_key(&place), client.id.clone());
        // Somebody may have registered again meanwhile.
        let remove = move |shared: &Shared| {
            let store = shared.grants.store()?;
            Some(store.remove_known(&key, |kept| register::is_of(kept, &id)))
        };
        let removed = self.on_disk(remove).await;
        if let Err(error) = removed.and_then(|removed| Ok(removed.transpose()?)) {
            tracing::warn!(%error, "a registration could not be removed");
        }
    }

    fn clients(&self) -> MutexGuard<'_, Registrations> {
        let clients = self.shared.clients.lock();
        clients.unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connections")
    }
}

/// What asks on behalf of each upstream that has TLS of its own.
fn own_fetchers(
    spec: &ConnectSpec,
    fetcher: &Fetcher,
) -> Result<HashMap<UpstreamId, Fetcher>, FetchError> {
    let own = spec.accounts.iter();
    let own = own.filter(|(_, account)| !account.tls.is_default());
    own.map(|(id, account)| {
        let at = Address::configured(&account.address, true)?;
        Ok((id.clone(), fetcher.with(&at, &account.tls)?))
    })
    .collect()
}

fn client_key(place: &Place) -> Key {
    Key {
        kind: CLIENT,
        whose: place.0.clone(),
        place: place.1.clone(),
    }
}

impl Account {
    /// The account of `principal` at `upstream`.
    pub fn of(upstream: &UpstreamId, principal: &Principal) -> Self {
        Self {
            upstream: upstream.clone(),
            principal: principal.clone(),
        }
    }
}
