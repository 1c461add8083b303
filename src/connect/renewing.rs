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
        self.look_at(account).await;
        let current = match self.current(account) {
            Some(current) if Arc::ptr_eq(&current, stale) => current,
            // Somebody has seen to it already.
            other => return Ok(other),
        };
        let Some(refresh) = &current.refresh else {
            return self.ended(account, &current);
        };
        let login = self.login(&account.upstream).await?;
        // What one server gave is shown to no other.
        if login.server.issuer != current.issuer {
            return self.ended(account, &current);
        }
        let client = self.client(&account.upstream, &login.server, false).await?;
        let tokens = refreshed(&login, &client, &current, refresh, &self.shared.fetcher).await;
        let tokens = match tokens {
            Ok(tokens) => tokens,
            Err(TokenError::InvalidGrant) => return self.ended(account, &current),
            Err(TokenError::InvalidClient) => {
                self.forget_client(&login.server);
                return self.ended(account, &current);
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
        if let Err(error) = self.keep(account, &current, next).await {
            tracing::error!(%error, "a renewed connection could not be written; it is lost with this process");
        }
        Ok(self.current(account))
    }

    /// Another process may have renewed it, and the server takes a refresh token once.
    async fn look_at(&self, account: &Account) {
        let (this, account) = (self.clone(), account.clone());
        let look = move || this.shared.grants.look_at(&account, &this.shared.spec);
        // One that panics has changed nothing.
        drop(tokio::task::spawn_blocking(look).await);
    }

    async fn keep(
        &self,
        account: &Account,
        used: &Arc<Grant>,
        next: Grant,
    ) -> Result<bool, StoreError> {
        let (this, account, used) = (self.clone(), account.clone(), Arc::clone(used));
        let keep = move || this.shared.grants.renew(&account, &used, next);
        tokio::task::spawn_blocking(keep).await.unwrap_or(Ok(false))
    }

    /// Nothing follows this grant: somebody has to log in again, unless another one has taken its place meanwhile.
    pub(super) fn ended(
        &self,
        account: &Account,
        used: &Arc<Grant>,
    ) -> Result<Option<Arc<Grant>>, ConnectError> {
        // What the upstream wants may be something else by now: the next login looks again.
        if let Some(known) = self.shared.logins.get(&account.upstream)
            && let Ok(mut known) = known.try_lock()
        {
            *known = None;
        }
        let instead = self.shared.grants.end(account, used)?;
        if instead.is_none() {
            tracing::info!(upstream = %account.upstream, "a connection has ended; its principal has to log in again");
        }
        Ok(instead)
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
