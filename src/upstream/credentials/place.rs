//! Where a token endpoint is, as configured or as its issuer's metadata says.
//!
//! Guarantees: whoever waits for metadata waits for one attempt to fetch it, however many wait (SECURITY REL-2); what was found
//! before is used where it cannot be fetched again, and not where it says something else.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::{sync::Mutex, time::Instant};

use super::{CredentialError, spec::TokenEndpoint};
use crate::{
    fetch::{Address, Fetcher, Metadata, MetadataError},
    protocol::UpstreamId,
};

/// How long metadata is believed.
const FRESH: Duration = Duration::from_secs(3_600);
/// How long what was found is used on, after it could not be fetched again.
const AGAIN: Duration = Duration::from_secs(60);

/// A token endpoint.
pub(super) struct Endpoint {
    /// Whose tokens are got there, for the log.
    upstream: UpstreamId,
    token_endpoint: TokenEndpoint,
    /// Held while it is looked for, so that it is looked for once.
    found: Mutex<Found>,
    /// How often nothing was found.
    failures: AtomicU64,
}

/// What came of looking for it.
#[derive(Default)]
struct Found {
    /// The address, and until when it is not looked for again.
    address: Option<(Address, Instant)>,
    /// Why there was none when it was last looked for in vain.
    failed: Option<CredentialError>,
}

impl Endpoint {
    pub(super) fn new(upstream: &UpstreamId, token_endpoint: TokenEndpoint) -> Self {
        Self {
            upstream: upstream.clone(),
            token_endpoint,
            found: Mutex::default(),
            failures: AtomicU64::new(0),
        }
    }

    /// Its address.
    ///
    /// # Errors
    /// [`CredentialError::Metadata`] and [`CredentialError::Fetch`], where it has to be looked for.
    pub(super) async fn address(&self, fetcher: &Fetcher) -> Result<Address, CredentialError> {
        let (issuer, text) = match &self.token_endpoint {
            TokenEndpoint::Url(address) => return Ok(address.clone()),
            TokenEndpoint::Issuer(address, text) => (address, text),
        };
        let failures = self.failures.load(Relaxed);
        let mut found = self.found.lock().await;
        if let Some((address, until)) = &found.address
            && Instant::now() < *until
        {
            return Ok(address.clone());
        }
        // What failed meanwhile failed for all who waited.
        if self.failures.load(Relaxed) > failures
            && let Some(error) = &found.failed
        {
            return Err(error.clone());
        }
        let metadata = Metadata::fetch(fetcher, text, issuer).await;
        let error = match metadata.and_then(|metadata| metadata.address("token_endpoint")) {
            Ok(address) => {
                found.address = Some((address.clone(), Instant::now() + FRESH));
                return Ok(address);
            }
            Err(error) => error,
        };
        if let (MetadataError::Fetch(why), Some((address, until))) = (&error, &mut found.address) {
            tracing::warn!(upstream = %self.upstream, %why, "metadata cannot be fetched again; what it said is used on");
            *until = Instant::now() + AGAIN;
            return Ok(address.clone());
        }
        let error = CredentialError::from(error);
        found.failed = Some(error.clone());
        self.failures.fetch_add(1, Relaxed);
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    };

    use futures_util::future::join_all;

    use super::*;
    use crate::fetch::{
        FetchError,
        answering::{Answering, answer, ok},
    };

    /// A server that publishes its metadata while it is up, and how often it was asked for that.
    async fn issuer() -> (Answering, Arc<AtomicBool>, Arc<AtomicUsize>) {
        let (up, asked) = (
            Arc::new(AtomicBool::new(true)),
            Arc::<AtomicUsize>::default(),
        );
        let (is_up, counted) = (up.clone(), asked.clone());
        let server = Answering::by(move |seen| {
            counted.fetch_add(1, Relaxed);
            let host = seen.lines().find_map(|line| line.strip_prefix("host: "));
            let base = format!("http://{}", host.unwrap());
            let found = format!(r#"{{"issuer":"{base}","token_endpoint":"{base}/token"}}"#);
            match seen.split(' ').nth(1).unwrap() {
                "/.well-known/oauth-authorization-server" if is_up.load(Relaxed) => ok(&found),
                _ => answer(503, ""),
            }
        });
        (server.await, up, asked)
    }

    fn endpoint(at: &Answering) -> Endpoint {
        let issuer = format!("http://{}", at.at);
        let token_endpoint =
            TokenEndpoint::Issuer(Address::configured(&issuer, false).unwrap(), issuer);
        Endpoint::new(&UpstreamId::parse("u").unwrap(), token_endpoint)
    }

    /// SECURITY REL-2
    #[tokio::test]
    async fn what_cannot_be_found_is_looked_for_once_for_all_who_wait() {
        let (server, up, asked) = issuer().await;
        up.store(false, Relaxed);
        let (endpoint, fetcher) = (endpoint(&server), Fetcher::new(None).unwrap());
        let all = join_all((0..20).map(|_| endpoint.address(&fetcher))).await;
        for one in all {
            assert_eq!(
                one.unwrap_err(),
                CredentialError::Fetch(FetchError::Status(503))
            );
        }
        // Both places of one attempt.
        assert_eq!(asked.load(Relaxed), 2);
        // Whoever comes later may have better luck.
        up.store(true, Relaxed);
        assert!(endpoint.address(&fetcher).await.is_ok());
    }

    #[tokio::test]
    async fn what_was_found_is_used_on_while_it_cannot_be_found_again() {
        let (server, up, asked) = issuer().await;
        let (endpoint, fetcher) = (endpoint(&server), Fetcher::new(None).unwrap());
        let first = endpoint.address(&fetcher).await.unwrap();
        let old = async || {
            let mut found = endpoint.found.lock().await;
            found.address.as_mut().unwrap().1 = Instant::now();
        };
        old().await;
        up.store(false, Relaxed);
        let all = join_all((0..20).map(|_| endpoint.address(&fetcher))).await;
        for one in all {
            assert_eq!(one.unwrap().uri(), first.uri());
        }
        assert_eq!(asked.load(Relaxed), 1 + 2);
        old().await;
        up.store(true, Relaxed);
        assert_eq!(endpoint.address(&fetcher).await.unwrap().uri(), first.uri());
        assert_eq!(asked.load(Relaxed), 1 + 2 + 1);
    }
}
