//! Renewing: another token for one that ends, or that the upstream took no more.
//!
//! Guarantees: a grant is renewed once however many need it, to the end, whoever waits for it; a refresh token is shown to the
//! server that gave it alone. Deliberately absent: when a grant is to be renewed, which it says itself.

use std::sync::Arc;

use secrecy::SecretString;
use tokio::sync::oneshot;

use super::{
    Account, ConnectError, Connections, Grant,
    accounts::Slot,
    discover::Login,
    store::StoreError,
    token::{self, Client, TokenError, Tokens},
};
use crate::{fetch::Fetcher, seal::unix_seconds};

impl Connections {
    pub(super) async fn renewed(
        &self,
        account: &Account,
        slot: Arc<Slot>,
        stale: &Arc<Grant>,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        let done = self.begin_renewal(account, slot, stale);
        done.await.unwrap_or(Err(ConnectError::Stopping))
    }

    /// Renews to the end, whoever waits for it: half a renewal loses the grant, since servers take a refresh token once.
    pub(super) fn begin_renewal(
        &self,
        account: &Account,
        slot: Arc<Slot>,
        stale: &Arc<Grant>,
    ) -> oneshot::Receiver<Result<Option<Arc<Grant>>, ConnectError>> {
        let (done, outcome) = oneshot::channel();
        let (this, account, stale) = (self.clone(), account.clone(), Arc::clone(stale));
        self.shared.tasks.spawn(async move {
            let result = this.renew(&account, &slot, &stale).await;
            if let Err(error) = &result {
                let upstream = &account.upstream;
                tracing::warn!(%upstream, %error, "a connection could not be renewed");
            }
            // Whoever began it may have gone.
            drop(done.send(result));
        });
        outcome
    }

    async fn renew(
        &self,
        account: &Account,
        slot: &Slot,
        stale: &Arc<Grant>,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        let _one = Arc::clone(&slot.refreshing).lock_owned().await;
        let current = slot.grant.load_full();
        if !Arc::ptr_eq(&current, stale) {
            return Ok(self.current(account));
        }
        let Some(refresh) = &current.refresh else {
            return self.ended(account);
        };
        let login = self.login(&account.upstream).await?;
        // What one server gave is shown to no other.
        if login.server.issuer != current.issuer {
            return self.ended(account);
        }
        let client = self.client(&account.upstream, &login.server, false).await?;
        let tokens = refreshed(&login, &client, &current, refresh, &self.shared.fetcher).await;
        let tokens = match tokens {
            Ok(tokens) => tokens,
            Err(TokenError::InvalidGrant) => return self.ended(account),
            Err(TokenError::InvalidClient) => {
                self.forget_client(&login.server);
                return self.ended(account);
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
        };
        let kept = self.keep(account, next).await;
        match kept {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                tracing::error!(%error, "a renewed connection could not be written; it is lost with this process");
            }
        }
        Ok(self.current(account))
    }

    async fn keep(&self, account: &Account, next: Grant) -> Result<bool, StoreError> {
        let (this, account) = (self.clone(), account.clone());
        let keep = move || this.shared.grants.renew(&account, next);
        tokio::task::spawn_blocking(keep).await.unwrap_or(Ok(false))
    }

    /// Nothing follows this grant: somebody has to log in again.
    pub(super) fn ended(&self, account: &Account) -> Result<Option<Arc<Grant>>, ConnectError> {
        // What the upstream wants may be something else by now: the next login looks again.
        if let Some(known) = self.shared.logins.get(&account.upstream)
            && let Ok(mut known) = known.try_lock()
        {
            *known = None;
        }
        tracing::info!(upstream = %account.upstream, "a connection has ended; its principal has to log in again");
        self.shared.grants.remove(account)?;
        Ok(None)
    }
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
