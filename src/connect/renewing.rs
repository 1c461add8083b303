//! Renewing: another token for one that ends, or that the upstream took no more.
//!
//! Guarantees: a grant is renewed once however many need it, to the end, whoever waits for it, and for [`LAST_WORDS`] also when
//! the gateway stops; a failure is the answer for [`AGAIN`], so that an authorization server is not asked once for each call; a
//! refresh token is shown to the server that gave it alone. Deliberately absent: when a grant is to be renewed, which it says
//! itself, and for how long somebody waits.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use secrecy::SecretString;
use tokio::time::Instant;

use super::{
    Account, ConnectError, Connections, Grant, RegisterError,
    discover::Login,
    register::Use,
    store::StoreError,
    token::{self, Client, TokenError, Tokens},
};
use crate::{fetch::Fetcher, protocol::UpstreamId, seal::unix_seconds};

/// How long a failure is remembered.
pub const AGAIN: Duration = Duration::from_secs(2);
/// How long a renewal may go on when the gateway stops: the server may have given the next token already, and takes the one
/// before no more.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What comes of renewing: what is there then.
type Renewed = Result<Option<Arc<Grant>>, ConnectError>;
/// A renewal that all wait for who need it.
type Waiting = Shared<BoxFuture<'static, Renewed>>;

/// How renewing one grant stands.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    under_way: Option<Waiting>,
    failed: Option<(ConnectError, Instant)>,
}

/// One grant, and who is about to renew it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) grant: ArcSwap<Grant>,
    /// What the store holds of it, as far as is known here: an older one where `grant` could not be written.
    pub(super) stored: ArcSwap<Grant>,
    /// Never held across an await.
    renewal: Mutex<Renewal>,
}

impl Slot {
    pub(super) fn of(grant: Arc<Grant>) -> Self {
        Self {
            grant: ArcSwap::new(Arc::clone(&grant)),
            stored: ArcSwap::new(grant),
            renewal: Mutex::default(),
        }
    }

    /// Takes a grant that is in the store.
    pub(super) fn hold(&self, grant: Arc<Grant>) {
        self.stored.store(Arc::clone(&grant));
        self.grant.store(grant);
    }

    /// Whether that is the grant here.
    pub(super) fn holds(&self, used: &Arc<Grant>) -> bool {
        Arc::ptr_eq(&self.grant.load(), used)
    }

    fn renewing(&self) -> MutexGuard<'_, Renewal> {
        // A panic under the lock leaves nothing half done, so poison says nothing.
        self.renewal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, renewed: &Renewed) {
        let failed = renewed.as_ref().err().cloned();
        *self.renewing() = Renewal {
            under_way: None,
            failed: failed.map(|error| (error, Instant::now() + AGAIN)),
        };
    }
}

impl Connections {
    pub(super) async fn renewed(
        &self,
        account: &Account,
        slot: &Arc<Slot>,
        stale: &Arc<Grant>,
    ) -> Renewed {
        if !slot.holds(stale) {
            // Somebody has seen to it already.
            return Ok(self.current(account));
        }
        self.renewal(account, slot, stale)?.await
    }

    /// The renewal of `stale` that is under way, or a new one. It goes on to the end, whoever waits for it: half a renewal loses
    /// the grant, since servers take a refresh token once.
    ///
    /// # Errors
    /// Why one failed a moment ago.
    pub(super) fn renewal(
        &self,
        account: &Account,
        slot: &Arc<Slot>,
        stale: &Arc<Grant>,
    ) -> Result<Waiting, ConnectError> {
        let mut renewing = slot.renewing();
        if let Some(under_way) = &renewing.under_way {
            return Ok(under_way.clone());
        }
        if let Some((error, until)) = &renewing.failed
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let (this, whose, stale) = (self.clone(), account.clone(), Arc::clone(stale));
        let renewal = async move { this.renew(&whose, &stale).await };
        let waiting = waiting(account.upstream.clone(), slot, renewal);
        renewing.under_way = Some(waiting.clone());
        self.see_through(waiting.clone());
        Ok(waiting)
    }

    fn see_through(&self, waiting: Waiting) {
        let stopping = self.shared.tasks.token().clone();
        self.shared.tasks.spawn_orderly(async move {
            let too_late = async {
                stopping.cancelled().await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                _ = waiting => {}
                () = too_late => {}
            }
        });
    }

    async fn renew(&self, account: &Account, stale: &Arc<Grant>) -> Renewed {
        self.look_at(account).await;
        let current = match self.current(account) {
            Some(current) if Arc::ptr_eq(&current, stale) => current,
            // Somebody has seen to it already.
            other => return Ok(other),
        };
        let Some(refresh) = &current.refresh else {
            return self.ended(account, &current).await;
        };
        let login = self.login(&account.upstream).await?;
        // What one server gave is shown to no other.
        if login.server.issuer != current.issuer {
            return self.ended(account, &current).await;
        }
        let whose = Use::Grant(current.client.as_deref());
        let client = match self.client(&account.upstream, &login.server, whose).await {
            Ok(client) => client,
            // A refresh token is good for the client alone that it was given to, which we are not: its principal is asked to log
            // in again, each time until they have. The grant stays until that login takes its place: another process that shares
            // the store, and has another address, may be that client.
            Err(ConnectError::Register(RegisterError::Unregistered)) => {
                tracing::debug!(upstream = %account.upstream, "a connection is of a registration that is not here; its principal has to log in again");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let fetcher = self.fetcher(&account.upstream);
        let tokens = refreshed(&login, &client, &current, refresh, fetcher).await;
        let tokens = match tokens {
            Ok(tokens) => tokens,
            Err(TokenError::InvalidGrant) => return self.ended(account, &current).await,
            Err(TokenError::InvalidClient) if client.registered => {
                self.forget_client(&login.server, &client).await;
                return self.ended(account, &current).await;
            }
            Err(error @ TokenError::InvalidClient) => {
                // Whoever configured it can mend it, and then the grant is as good as before.
                tracing::error!(
                    upstream = %account.upstream,
                    "the authorization server does not take the client of the configuration: see its `client_id` and `client_secret`"
                );
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        };
        let next = Grant {
            refresh: tokens.refresh.or_else(|| current.refresh.clone()),
            until: tokens.life.map(|life| unix_seconds().saturating_add(life)),
            life: tokens.life,
            scope: tokens.scope.or_else(|| current.scope.clone()),
            access: tokens.access,
            issuer: current.issuer.clone(),
            address: current.address.clone(),
            resource: current.resource.clone(),
            since: current.since,
            who: current.who.clone(),
            client: current.client.clone(),
        };
        let grants = self.clone();
        let (whose, used) = (account.clone(), Arc::clone(&current));
        kept(move || grants.shared.grants.renew(&whose, &used, next)).await?;
        Ok(self.current(account))
    }

    /// Another process may have renewed it, and the server takes a refresh token once.
    async fn look_at(&self, account: &Account) {
        let account = account.clone();
        let look = self.on_disk(move |shared| shared.grants.look_at(&account, &shared.spec));
        // One that panics has changed nothing.
        drop(look.await);
    }

    /// Nothing follows this grant: somebody has to log in again, unless another one has taken its place meanwhile.
    async fn ended(&self, account: &Account, used: &Arc<Grant>) -> Renewed {
        // What the upstream wants may be something else by now: the next login looks again.
        if let Some(known) = self.shared.logins.get(&account.upstream)
            && let Ok(mut known) = known.try_lock()
        {
            *known = None;
        }
        let (whose, over) = (account.clone(), Arc::clone(used));
        let end = self.on_disk(move |shared| shared.grants.end(&whose, &over));
        let instead = end.await??;
        if instead.is_none() {
            tracing::info!(upstream = %account.upstream, "a connection has ended; its principal has to log in again");
        }
        Ok(instead)
    }
}

/// A renewal for all who wait for it. By the time that they hear, the slot knows what came of it.
fn waiting(
    upstream: UpstreamId,
    slot: &Arc<Slot>,
    renewal: impl Future<Output = Renewed> + Send + 'static,
) -> Waiting {
    let slot: Weak<Slot> = Arc::downgrade(slot);
    let renewal = async move {
        // A panic is this renewal's alone: the next one begins afresh.
        let renewed = AssertUnwindSafe(renewal).catch_unwind().await;
        let renewed = renewed.unwrap_or(Err(ConnectError::Panicked));
        if let Err(error) = &renewed {
            tracing::warn!(%upstream, %error, "a connection could not be renewed");
        }
        if let Some(slot) = Weak::upgrade(&slot) {
            slot.learn(&renewed);
        }
        renewed
    };
    renewal.boxed().shared()
}

/// Has what was renewed written by `write`, which leaves it in use also where it cannot be.
///
/// # Errors
/// [`ConnectError::Panicked`]: then what is in use may be what was spent.
async fn kept(
    write: impl FnOnce() -> Result<(), StoreError> + Send + 'static,
) -> Result<(), ConnectError> {
    let written = tokio::task::spawn_blocking(write).await;
    if let Err(error) = written.map_err(|_| ConnectError::Panicked)? {
        tracing::error!(%error, "a renewed connection could not be written; it is lost with this process");
    }
    Ok(())
}

async fn refreshed(
    login: &Login,
    client: &Client,
    grant: &Grant,
    refresh: &SecretString,
    fetcher: &Fetcher,
) -> Result<Tokens, TokenError> {
    use secrecy::ExposeSecret;
    let mut fields = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.expose_secret()),
    ];
    fields.extend(
        grant
            .resource
            .as_deref()
            .map(|resource| ("resource", resource)),
    );
    token::ask(&login.server, client, &fields, fetcher).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nix::fcntl::{Flock, FlockArg};
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::{
        connect::{
            CALLBACK, Discovered, Place, Settled,
            accounts::{
                Grants,
                tests::{ana, spec},
            },
            client_key,
            discover::{DiscoverError, Server},
            grant::tests::a_grant,
            register,
            spec::{ClientSpec, Registration, ServerSpec},
        },
        fetch::{
            Address,
            answering::{Answering, answer},
        },
        tasks::Tasks,
    };

    const BASE: &str = "http://127.0.0.1:8808";
    /// What is kept of a registration.
    const KEPT: &[u8] = br#"{"id":"registered","secret":null,"method":null,"until":0}"#;

    fn place() -> Place {
        (a_grant("").issuer, format!("{BASE}{CALLBACK}"))
    }

    /// Connections of this client, with a grant of Ana's that has ended, whose server takes refresh tokens at `token`.
    fn connections(directory: &Path, client: ClientSpec, token: &str) -> (Connections, Tasks) {
        let mut spec = spec(directory, "https://mcp.example/mcp");
        for account in spec.accounts.values_mut() {
            account.client = client.clone();
            account.server = ServerSpec::Given {
                authorize_url: "https://login.example/authorize".into(),
                token_url: token.into(),
            };
        }
        let (fetcher, tasks) = (Fetcher::new(None).unwrap(), Tasks::new());
        let connections = Connections::open(spec, fetcher, &tasks).unwrap();
        let grants = &connections.shared.grants;
        grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
        let at = |address: &str| Address::configured(address, true).unwrap();
        let server = Server {
            issuer: a_grant("").issuer,
            authorize: at("https://login.example/authorize"),
            token: at(token),
            register: Some(at("https://login.example/register")),
            revoke: None,
            names_itself: false,
            takes_documents: false,
            methods: Vec::new(),
            offline: false,
        };
        let login = Login {
            server,
            resource: None,
            scopes: Vec::new(),
        };
        let found = &connections.shared.logins[&ana().upstream];
        *found.try_lock().unwrap() = Some(Discovered {
            login: Ok(Arc::new(login)),
            at: Instant::now(),
        });
        (connections, tasks)
    }

    fn dynamic() -> ClientSpec {
        ClientSpec::Registered(Registration::Dynamic)
    }

    const NOWHERE: &str = "https://login.example/token";

    #[tokio::test]
    async fn who_was_given_a_grant_whose_registration_is_not_here_logs_in_again_and_it_stays_in_the_store()
     {
        let directory = tempfile::tempdir().unwrap();
        let (connections, tasks) = connections(directory.path(), dynamic(), NOWHERE);
        // Without an address nobody knows under which one it was.
        let told = connections.grant(&ana()).await.unwrap_err();
        assert!(matches!(told, ConnectError::NoPage), "{told}");
        assert!(connections.current(&ana()).is_some());
        connections.reached_at(BASE.into());
        let slot = connections.shared.grants.slot(&ana()).unwrap();
        *slot.renewing() = Renewal::default();
        let store = connections.shared.grants.store().unwrap();
        // Each time, and also once the store was read again.
        for _ in 0..2 {
            assert!(connections.grant(&ana()).await.unwrap().is_none());
            assert!(
                connections
                    .shared
                    .grants
                    .load(&connections.shared.spec)
                    .unwrap()
            );
        }
        // A process with another address may have the registration.
        assert_eq!(store.read().unwrap().records.len(), 1);
        // What is there is not what they were asked to log in for.
        let link = connections.link(&ana(), &"ana".into()).unwrap();
        let now = Instant::now();
        let settled = connections
            .settled(&ana(), &link.notice, link.before, now)
            .await;
        assert_eq!(settled, Settled::Pending);
        tasks.stop();
    }

    #[tokio::test]
    async fn a_grant_of_a_registration_that_another_process_made_in_the_place_of_ours_is_renewed() {
        let server = Answering::by(|sent| {
            if sent.contains("client_id=later") {
                answer(
                    200,
                    r#"{"access_token":"at-2","token_type":"Bearer","expires_in":3600}"#,
                )
            } else {
                answer(401, r#"{"error":"invalid_client"}"#)
            }
        });
        let server = server.await;
        let token = format!("http://{}/token", server.at);
        let directory = tempfile::tempdir().unwrap();
        let (connections, tasks) = connections(directory.path(), dynamic(), &token);
        connections.reached_at(BASE.into());
        connections.clients().insert(place(), KEPT.to_vec().into());
        let later = br#"{"id":"later","secret":null,"method":null,"until":0}"#;
        let store = connections.shared.grants.store().unwrap();
        store.put(&client_key(&place()), later).unwrap();
        let grant = connections.grant(&ana()).await.unwrap();
        let access = grant.map(|grant| grant.access.expose_secret().to_owned());
        assert_eq!(access.as_deref(), Some("at-2"));
        assert_eq!(store.read().unwrap().records.len(), 2);
        tasks.stop();
    }

    #[tokio::test]
    async fn a_registration_that_another_process_made_is_ours_too() {
        let directory = tempfile::tempdir().unwrap();
        let (connections, tasks) = connections(directory.path(), dynamic(), NOWHERE);
        connections.reached_at(BASE.into());
        let (other, _) = Grants::open(&connections.shared.spec).unwrap();
        let (upstream, store) = (ana().upstream, other.store().unwrap());
        let login = connections.login(&upstream).await.unwrap();
        let client = || connections.client(&upstream, &login.server, Use::Grant(None));
        let none = client().await.unwrap_err();
        let unregistered = ConnectError::Register(RegisterError::Unregistered);
        assert_eq!(none.to_string(), unregistered.to_string());
        store.put(&client_key(&place()), KEPT).unwrap();
        let ours = client().await.unwrap();
        assert!(ours.registered && ours.id == "registered");
        // Another one in its place is not forgotten with it.
        let later = br#"{"id":"later","secret":null,"method":null,"until":0}"#;
        store.put(&client_key(&place()), later).unwrap();
        connections.forget_client(&login.server, &ours).await;
        assert_eq!(client().await.unwrap().id, "later");
        tasks.stop();
    }

    #[tokio::test]
    async fn a_server_that_does_not_know_us_ends_grants_of_a_client_that_we_registered_and_no_others()
     {
        let refusal = answer(401, r#"{"error":"invalid_client"}"#);
        let server = Answering::with(refusal).await;
        let token = format!("http://{}/token", server.at);
        let given = ClientSpec::Given {
            id: "c".into(),
            secret: None,
        };
        for (client, ends) in [(given, false), (dynamic(), true)] {
            let directory = tempfile::tempdir().unwrap();
            let (connections, tasks) = connections(directory.path(), client, &token);
            connections.reached_at(BASE.into());
            let (store, key) = (
                connections.shared.grants.store().unwrap(),
                client_key(&place()),
            );
            store.put(&key, KEPT).unwrap();
            let told = connections.grant(&ana()).await;
            let refused = ConnectError::Token(TokenError::InvalidClient).to_string();
            let told = told.map(|grant| grant.is_some());
            let told = told.map_err(|error| error.to_string());
            assert_eq!(told, if ends { Ok(false) } else { Err(refused) });
            assert_eq!(connections.current(&ana()).is_none(), ends);
            assert_eq!(store.find(&key).unwrap().is_none(), ends);
            tasks.stop();
        }
    }

    /// Another process holds the store: whoever waits for it holds up nobody else on the same thread.
    #[tokio::test]
    async fn nothing_that_waits_for_the_store_holds_up_a_thread_that_serves() {
        let directory = tempfile::tempdir().unwrap();
        let (connections, tasks) = connections(directory.path(), dynamic(), NOWHERE);
        connections.reached_at(BASE.into());
        let used = connections.current(&ana()).unwrap();
        let login = connections.login(&ana().upstream).await.unwrap();
        let client = register::kept(KEPT, Use::Grant(None), 0).unwrap();
        let lock = directory.path().join("store/.lock");
        let lock = std::fs::File::open(lock).unwrap();
        let held = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
        let mut forgets = std::pin::pin!(connections.forget_client(&login.server, &client));
        let account = ana();
        let mut ends = std::pin::pin!(connections.ended(&account, &used));
        let mut revokes = std::pin::pin!(connections.revoke(&account));
        assert!(futures_util::poll!(&mut forgets).is_pending());
        assert!(futures_util::poll!(&mut ends).is_pending());
        assert!(futures_util::poll!(&mut revokes).is_pending());
        drop(held);
        forgets.await;
        assert!(ends.await.unwrap().is_none());
        drop(revokes.await.unwrap());
        tasks.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn that_nobody_knows_where_to_log_in_is_the_answer_for_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let (connections, tasks) = connections(directory.path(), dynamic(), NOWHERE);
        let (upstream, found) = (ana().upstream, &connections.shared.logins);
        let fault = DiscoverError::Unfit("on purpose");
        *found[&upstream].try_lock().unwrap() = Some(Discovered {
            login: Err(fault.clone()),
            at: Instant::now(),
        });
        let told = connections.login(&upstream).await.unwrap_err();
        assert_eq!(told.to_string(), fault.to_string());
        tokio::time::advance(AGAIN).await;
        // Looked for again, where nothing has to be fetched for it.
        assert!(connections.login(&upstream).await.is_ok());
        tasks.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_login_was_not_found_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let mut spec = spec(directory.path(), "https://mcp.example/mcp");
        for account in spec.accounts.values_mut() {
            account.server = ServerSpec::Issuer("no address".into());
        }
        let (fetcher, tasks) = (Fetcher::new(None).unwrap(), Tasks::new());
        let connections = Connections::open(spec, fetcher, &tasks).unwrap();
        let upstream = ana().upstream;
        let told = connections.login(&upstream).await.unwrap_err();
        let known = connections.shared.logins[&upstream].lock().await;
        let known = known.as_ref().unwrap().login.as_ref().unwrap_err();
        assert_eq!(told.to_string(), known.to_string());
        tasks.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_the_answer_for_a_while_and_then_all_wait_for_one_renewal() {
        let directory = tempfile::tempdir().unwrap();
        let spec = spec(directory.path(), "https://mcp.example/mcp");
        let (fetcher, tasks) = (Fetcher::new(None).unwrap(), Tasks::new());
        let connections = Connections::open(spec, fetcher, &tasks).unwrap();
        let grants = &connections.shared.grants;
        grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
        let slot = grants.slot(&ana()).unwrap();
        let used = slot.grant.load_full();
        slot.learn(&Err(ConnectError::Busy));
        let again = || connections.renewal(&ana(), &slot, &used);
        assert!(matches!(again(), Err(ConnectError::Busy)));
        let waited = connections.renewed(&ana(), &slot, &used).await;
        assert!(matches!(waited, Err(ConnectError::Busy)));
        tokio::time::advance(AGAIN).await;
        assert!(again().unwrap().ptr_eq(&again().unwrap()));
        tasks.stop();
    }

    #[tokio::test]
    async fn a_renewal_that_panics_is_told_as_that_to_all_who_wait_and_the_next_begins_afresh() {
        let slot = Arc::new(Slot::of(Arc::new(a_grant("at-1"))));
        let panics = async { panic!("on purpose") };
        let first = waiting(ana().upstream, &slot, panics);
        slot.renewing().under_way = Some(first.clone());
        for waits in [first.clone(), first] {
            assert!(matches!(waits.await, Err(ConnectError::Panicked)));
        }
        let renewing = slot.renewing();
        assert!(renewing.under_way.is_none());
        assert!(matches!(renewing.failed, Some((ConnectError::Panicked, _))));
    }

    #[tokio::test]
    async fn a_write_that_panics_is_no_renewal_and_one_that_fails_is() {
        let panics = kept(|| panic!("on purpose")).await;
        assert!(matches!(panics, Err(ConnectError::Panicked)));
        assert!(kept(|| Err(StoreError::Full)).await.is_ok());
    }
}
