//! An issuer's keys, fetched and kept fresh (PRODUCT 7, SECURITY B4, AUTHN-6, AUTHN-7).
//!
//! Guarantees: one fetch of an issuer at a time, whoever waits; what tokens ask for is fetched at most once in 30 s; a fetch
//! that fails leaves the keys there are, which serve until their lifetime ends; what a document names is fetched only as the
//! fetcher lets a peer's word lead. Deliberately absent: what a key set is, which is `auth`'s to know.

use std::{
    io::Read as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::Mutex, sync::watch, time::Instant};

use crate::{
    auth::{
        Authenticator, KeySet,
        spec::{IssuerSpec, KeySource, MOST_REFRESH},
    },
    fetch::{Address, FetchError, Fetcher},
    json::Node,
    metrics::{Bound, reached},
    seal::unix_seconds,
    tasks::Tasks,
};

/// The least time between two fetches that tokens ask for (SECURITY AUTHN-6).
const COOL: Duration = Duration::from_secs(30);
/// How soon it is tried again while there are no keys at all.
const EAGER: Duration = Duration::from_secs(5);
/// How often a file is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How long an address that was discovered is gone by.
const DISCOVERED: Duration = Duration::from_secs(3_600);

/// Keeps the keys of one issuer.
pub(super) struct KeyKeeper {
    number: usize,
    authenticator: Arc<Authenticator>,
    fetcher: Fetcher,
    // Held across a fetch: that is what makes it one at a time.
    state: Mutex<State>,
    /// Fetches that ended.
    done: AtomicU64,
    first: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// When tokens last asked.
    asked: Option<Instant>,
    /// Where the keys are, and since when that is known.
    found: Option<(Address, Instant)>,
    /// Whether the last fetch failed, which is told once.
    failing: bool,
}

impl KeyKeeper {
    pub(super) fn start(
        number: usize,
        authenticator: &Arc<Authenticator>,
        fetcher: Fetcher,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let keeper = Arc::new(Self {
            number,
            authenticator: authenticator.clone(),
            fetcher,
            state: Mutex::default(),
            done: AtomicU64::new(0),
            first: watch::Sender::new(false),
        });
        let kept = keeper.clone();
        tasks.spawn(async move {
            loop {
                kept.fetch(&mut *kept.state.lock().await).await;
                kept.first.send_replace(true);
                let Some(spec) = kept.spec() else { return };
                let has_keys = kept.authenticator.has_keys(number, unix_seconds());
                tokio::time::sleep(pause(spec, has_keys)).await;
            }
        });
        keeper
    }

    /// Waits for the first fetch to end, well or not.
    pub(super) async fn settled(&self) {
        // The sender is our own.
        drop(self.first.subscribe().wait_for(|first| *first).await);
    }

    /// A token names a key that is not known, or there are none: fetches them, unless that was done for a token lately.
    pub(super) async fn refresh(&self) {
        let before = self.done.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        // Whoever had it fetched it meanwhile, for all who waited.
        if self.done.load(Ordering::Acquire) != before {
            return;
        }
        let now = Instant::now();
        if state.asked.is_some_and(|at| now.duration_since(at) < COOL) {
            return;
        }
        state.asked = Some(now);
        self.fetch(&mut state).await;
    }

    fn spec(&self) -> Option<&IssuerSpec> {
        self.authenticator.spec().issuers.get(self.number)
    }

    async fn fetch(&self, state: &mut State) {
        let Some(spec) = self.spec() else { return };
        match self.keys(spec, state).await {
            Ok(keys) => {
                let until = unix_seconds().saturating_add(spec.lifetime.as_secs());
                self.authenticator.put_keys(self.number, keys, until);
                if std::mem::take(&mut state.failing) {
                    tracing::info!(issuer = %spec.issuer, "the issuer's keys are read again");
                }
            }
            Err(why) => {
                state.found = None;
                if !std::mem::replace(&mut state.failing, true) {
                    tracing::warn!(issuer = %spec.issuer, why, "the issuer's keys cannot be read; those there are serve on");
                }
            }
        }
        self.done.fetch_add(1, Ordering::Release);
    }

    async fn keys(&self, spec: &IssuerSpec, state: &mut State) -> Result<KeySet, String> {
        let limits = &self.authenticator.spec().limits;
        let text = match &spec.keys {
            KeySource::File(path) => read(path.clone(), limits.key_set_bytes).await?,
            KeySource::Url(address) => self.document(address, limits.key_set_bytes).await?,
            KeySource::Discovered(issuer) => {
                let known = state
                    .found
                    .take_if(|(_, since)| since.elapsed() > DISCOVERED);
                drop(known);
                let address = match &state.found {
                    Some((address, _)) => address.clone(),
                    None => {
                        let address = self.discover(issuer, &spec.issuer).await?;
                        state.found = Some((address.clone(), Instant::now()));
                        address
                    }
                };
                self.document(&address, limits.key_set_bytes).await?
            }
        };
        KeySet::within(text, limits).map_err(|error| error.to_string())
    }

    async fn document(&self, address: &Address, max: usize) -> Result<Bytes, String> {
        let document = self.fetcher.document(address, max).await;
        let document = document.map_err(|error| noted(error, Bound::AuthKeySet).to_string())?;
        if document.status.as_u16() != 200 {
            return Err(format!("answered with HTTP {}", document.status.as_u16()));
        }
        Ok(document.body)
    }

    /// Where the issuer's own metadata says that its keys are. It must say that it is this issuer's (SECURITY EGR-5).
    async fn discover(&self, at: &Address, issuer: &str) -> Result<Address, String> {
        let most = self.authenticator.spec().limits.metadata_bytes;
        let mut why = String::from("no metadata");
        for path in well_known(at.uri().path()) {
            let address = at.at_path(&path).map_err(|error| error.to_string())?;
            let document = match self.fetcher.document(&address, most).await {
                Ok(document) => document.json(),
                Err(error) => Err(noted(error, Bound::AuthMetadata)),
            };
            let document = match document {
                Ok(document) => document,
                Err(error) => {
                    why = format!("{path}: {error}");
                    continue;
                }
            };
            let member = |name: &str| document.root().member(name).and_then(Node::as_str);
            if member("issuer").as_deref() != Some(issuer) {
                return Err(format!("{path}: it names another issuer"));
            }
            let keys =
                member("jwks_uri").ok_or_else(|| format!("{path}: it names no `jwks_uri`"))?;
            return address.named_here(&keys).map_err(|error| error.to_string());
        }
        Err(why)
    }
}

/// The same error; where it is over a bound, that is counted.
fn noted(error: FetchError, bound: Bound) -> FetchError {
    if matches!(error, FetchError::TooLarge(_)) {
        reached(bound);
    }
    error
}

/// How long until keys are read again. Whoever removes one waits a minute at most for its streams to end (SECURITY AUTHN-5).
fn pause(spec: &IssuerSpec, has_keys: bool) -> Duration {
    match &spec.keys {
        _ if !has_keys => EAGER,
        KeySource::File(_) => LOOK,
        KeySource::Url(_) | KeySource::Discovered(_) => spec.refresh.min(MOST_REFRESH),
    }
}

/// Where metadata may be, in the order of PROTOCOL F6: RFC 8414, then OpenID with the path inserted and appended.
fn well_known(path: &str) -> Vec<String> {
    let path = path.trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    places
}

/// Reads a file of keys, of which no more than a key set may have is taken.
async fn read(path: std::path::PathBuf, most: usize) -> Result<Bytes, String> {
    let reading = tokio::task::spawn_blocking(move || bounded(&path, most));
    reading
        .await
        .map_err(|error| error.to_string())?
        .map_err(|error| error.to_string())
}

fn bounded(path: &Path, most: usize) -> std::io::Result<Bytes> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(most as u64 + 1).read_to_end(&mut text)?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    // SECURITY AUTHN-5
    #[test]
    fn keys_are_read_again_within_a_minute_however_seldom_it_was_asked_for() {
        let address = Address::configured("https://id.example.com/keys", false).unwrap();
        let mut spec = IssuerSpec {
            issuer: "i".into(),
            audiences: Vec::new(),
            algorithms: Vec::new(),
            keys: KeySource::Url(address),
            refresh: Duration::from_secs(3_600),
            lifetime: Duration::from_secs(3_600),
            claims: crate::auth::spec::ClaimNames::default(),
        };
        assert!(pause(&spec, true) + Fetcher::LIMIT <= Duration::from_secs(60));
        assert_eq!(pause(&spec, false), EAGER);
        spec.refresh = Duration::from_secs(20);
        assert_eq!(pause(&spec, true), spec.refresh);
        spec.keys = KeySource::File("keys.json".into());
        assert_eq!(pause(&spec, true), LOOK);
    }

    #[test]
    fn metadata_is_looked_for_where_clients_look() {
        assert_eq!(
            well_known("/"),
            [
                "/.well-known/oauth-authorization-server",
                "/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            well_known("/realms/a"),
            [
                "/.well-known/oauth-authorization-server/realms/a",
                "/.well-known/openid-configuration/realms/a",
                "/realms/a/.well-known/openid-configuration"
            ]
        );
    }
}
