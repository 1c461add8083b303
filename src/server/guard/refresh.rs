//! An issuer's keys, fetched and kept fresh (PRODUCT 7, SECURITY B4, AUTHN-6, AUTHN-7).
//!
//! Guarantees: one fetch of an issuer at a time, whoever waits, and to its end, whoever leaves; what tokens ask for is fetched at most once in 30 s; a fetch
//! that fails leaves the keys there are, which serve until their lifetime ends; what a document names is fetched only as the
//! fetcher lets a peer's word lead. A set that has not changed is not sent again, and one that says it is fresh for less than
//! the configured time is read again sooner, but never more often than tokens may ask. Deliberately absent: what a key set is,
//! which is `auth`'s to know.

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
use http::HeaderValue;
use tokio::{
    sync::{Mutex, oneshot, watch},
    time::Instant,
};

use super::key_file::kept_to_ourselves;
use crate::{
    auth::{
        Authenticator, KeySet,
        spec::{IssuerSpec, KeySource, MOST_REFRESH, ProofLimits},
    },
    fetch::{Address, FetchError, Fetcher, Metadata, MetadataError},
    metrics::{Bound, reached},
    seal::unix_seconds,
    tasks::Tasks,
};

/// The least time between two fetches that tokens ask for (SECURITY AUTHN-6).
const COOL: Duration = Duration::from_secs(30);
/// The least time between two fetches that the set itself asks for, by its `max-age`.
const LEAST: Duration = Duration::from_secs(10);
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
    tasks: Tasks,
    // Held across a fetch: that is what makes it one at a time.
    state: Arc<Mutex<State>>,
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
    /// What came of the last fetch, which is told when it is another.
    told: Told,
    /// The tag of the set that was read last, and where it was.
    tag: Option<(Address, HeaderValue)>,
    /// For how long that set says it is fresh.
    fresh: Option<Duration>,
}

/// What operators were told of an issuer's keys.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// That they are read, or nothing.
    #[default]
    Read,
    /// That they cannot be.
    Unread,
    /// That there are none.
    None,
}

/// What came of looking for keys.
enum Looked {
    /// A set.
    Set(KeySet),
    /// The one that was read last.
    Same,
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
            tasks: tasks.clone(),
            state: Arc::default(),
            done: AtomicU64::new(0),
            first: watch::Sender::new(false),
        });
        let kept = keeper.clone();
        tasks.spawn(async move {
            loop {
                let fresh = {
                    let mut state = kept.state.lock().await;
                    kept.fetch(&mut state).await;
                    state.fresh
                };
                kept.first.send_replace(true);
                let Some(spec) = kept.spec() else { return };
                let has_keys = kept.authenticator.has_keys(number, unix_seconds());
                tokio::time::sleep(pause(spec, has_keys, fresh)).await;
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
    pub(super) async fn refresh(self: &Arc<Self>) {
        let before = self.done.load(Ordering::Acquire);
        let mut state = Arc::clone(&self.state).lock_owned().await;
        // Whoever had it fetched it meanwhile, for all who waited.
        if self.done.load(Ordering::Acquire) != before {
            return;
        }
        let now = Instant::now();
        if state.asked.is_some_and(|at| now.duration_since(at) < COOL) {
            return;
        }
        state.asked = Some(now);
        // Whoever asks may leave, and nobody may ask again for a while: it is for everybody.
        let (own, (over, ended)) = (Arc::clone(self), oneshot::channel::<()>());
        self.tasks.spawn(async move {
            own.fetch(&mut state).await;
            drop((state, over));
        });
        // Over means that the sender is gone.
        drop(ended.await);
    }

    fn spec(&self) -> Option<&IssuerSpec> {
        self.authenticator.spec().issuers.get(self.number)
    }

    async fn fetch(&self, state: &mut State) {
        let Some(spec) = self.spec() else { return };
        match self.keys(spec, state).await {
            Ok(looked) => {
                let until = unix_seconds().saturating_add(spec.lifetime.as_secs());
                match looked {
                    Looked::Set(keys) => self.authenticator.put_keys(self.number, keys, until),
                    Looked::Same => self.authenticator.keep_keys(self.number, until),
                }
                if !self.authenticator.has_keys(self.number, unix_seconds()) {
                    if std::mem::replace(&mut state.told, Told::None) != Told::None {
                        tracing::warn!(issuer = %spec.issuer, "the issuer has no key that can verify a signature; none of its tokens counts");
                    }
                } else if std::mem::take(&mut state.told) != Told::Read {
                    tracing::info!(issuer = %spec.issuer, "the issuer's keys are read again");
                }
            }
            Err(why) => {
                (state.found, state.tag, state.fresh) = (None, None, None);
                if std::mem::replace(&mut state.told, Told::Unread) != Told::Unread {
                    tracing::warn!(issuer = %spec.issuer, why, "the issuer's keys cannot be read; those there are serve on");
                }
            }
        }
        self.done.fetch_add(1, Ordering::Release);
    }

    async fn keys(&self, spec: &IssuerSpec, state: &mut State) -> Result<Looked, String> {
        let limits = &self.authenticator.spec().limits;
        let address = match &spec.keys {
            KeySource::File(path) => {
                let (path, limits) = (path.clone(), *limits);
                let reading = tokio::task::spawn_blocking(move || key_set(&path, &limits));
                let read = reading.await.map_err(|error| error.to_string())?;
                return read.map(Looked::Set);
            }
            KeySource::Url(address) => address.clone(),
            KeySource::Discovered(at) => {
                let known = state
                    .found
                    .take_if(|(_, since)| since.elapsed() > DISCOVERED);
                drop(known);
                match &state.found {
                    Some((address, _)) => address.clone(),
                    None => {
                        let metadata = Metadata::within(
                            &self.fetcher,
                            &spec.issuer,
                            at,
                            limits.metadata_bytes,
                        );
                        let address = metadata
                            .await
                            .inspect_err(|error| {
                                if let MetadataError::Fetch(error) = error {
                                    count(error, Bound::AuthMetadata);
                                }
                            })
                            .and_then(|metadata| metadata.address("jwks_uri"))
                            .map_err(|error| error.to_string())?;
                        state.found = Some((address.clone(), Instant::now()));
                        address
                    }
                }
            }
        };
        self.document(address, state).await
    }

    /// The set at an address, unless it is the one that was read there last.
    async fn document(&self, address: Address, state: &mut State) -> Result<Looked, String> {
        let limits = &self.authenticator.spec().limits;
        let known = state.tag.take().filter(|(at, _)| *at == address);
        let tag = known.map(|(_, tag)| tag);
        let document = self
            .fetcher
            .again(&address, tag.clone(), limits.key_set_bytes)
            .await;
        let document = document
            .inspect_err(|error| count(error, Bound::AuthKeySet))
            .map_err(|error| error.to_string())?;
        let (looked, tag) = match document.status.as_u16() {
            304 if tag.is_some() => (Looked::Same, document.etag.or(tag)),
            200 => (Looked::Set(set(document.body, limits)?), document.etag),
            status => return Err(format!("answered with HTTP {status}")),
        };
        state.tag = tag.map(|tag| (address, tag));
        state.fresh = document.max_age;
        Ok(looked)
    }
}

/// Counts what is over a bound.
fn count(error: &FetchError, bound: Bound) {
    if matches!(error, FetchError::TooLarge(_)) {
        reached(bound);
    }
}

fn set(text: Bytes, limits: &ProofLimits) -> Result<KeySet, String> {
    KeySet::as_it_is(text, limits).map_err(|error| error.to_string())
}

/// How long until keys are read again: sooner where they say so, later never. Whoever removes one waits a minute at most for its streams to end (SECURITY AUTHN-5).
fn pause(spec: &IssuerSpec, has_keys: bool, fresh: Option<Duration>) -> Duration {
    match &spec.keys {
        _ if !has_keys => EAGER,
        KeySource::File(_) => LOOK,
        KeySource::Url(_) | KeySource::Discovered(_) => {
            let most = spec.refresh.min(MOST_REFRESH);
            // What is not fresh for any time is read as often as was configured.
            let fresh = fresh.filter(|fresh| !fresh.is_zero()).unwrap_or(most);
            fresh.max(LEAST).min(most)
        }
    }
}

/// The key set in a file, of which no more than one may have is read.
///
/// # Errors
/// Why it cannot be used.
pub fn key_set(path: &Path, limits: &ProofLimits) -> Result<KeySet, String> {
    let text = bounded(path, limits.key_set_bytes).map_err(|error| error.to_string())?;
    set(text, limits)
}

fn bounded(path: &Path, most: usize) -> std::io::Result<Bytes> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path)?;
    kept_to_ourselves(&file.metadata()?).map_err(std::io::Error::other)?;
    file.take(most as u64 + 1).read_to_end(&mut text)?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{auth::spec::AuthSpec, fetch::answering::Answering};

    const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

    /// The keeper of the keys that this server has; it does not ask of its own.
    fn keeper(server: &Answering) -> KeyKeeper {
        let address = Address::configured(&format!("http://{}/keys", server.at), false).unwrap();
        let spec = IssuerSpec {
            issuer: "i".into(),
            audiences: Vec::new(),
            algorithms: Vec::new(),
            keys: KeySource::Url(address),
            refresh: Duration::from_secs(45),
            lifetime: Duration::from_secs(3_600),
            claims: crate::auth::spec::ClaimNames::default(),
        };
        KeyKeeper {
            number: 0,
            authenticator: Arc::new(Authenticator::new(AuthSpec::new(
                "https://mcp.example.com",
                vec![spec],
            ))),
            fetcher: Fetcher::new(None).unwrap(),
            tasks: Tasks::new(),
            state: Arc::default(),
            done: AtomicU64::new(0),
            first: watch::Sender::new(false),
        }
    }

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
        let day = Some(Duration::from_secs(86_400));
        for fresh in [None, day] {
            assert!(pause(&spec, true, fresh) + Fetcher::LIMIT <= Duration::from_secs(60));
        }
        assert_eq!(pause(&spec, false, day), EAGER);
        spec.refresh = Duration::from_secs(20);
        for (fresh, wanted) in [
            (None, 20),
            (Some(86_400), 20),
            (Some(15), 15),
            (Some(1), 10),
            (Some(0), 20),
        ] {
            let fresh = fresh.map(Duration::from_secs);
            assert_eq!(pause(&spec, true, fresh), Duration::from_secs(wanted));
        }
        spec.keys = KeySource::File("keys.json".into());
        assert_eq!(pause(&spec, true, None), LOOK);
    }

    // SECURITY AUTHN-5
    #[tokio::test]
    async fn an_issuer_that_takes_all_its_keys_away_has_none_and_what_is_no_set_changes_nothing() {
        let served = Arc::new(std::sync::Mutex::new(KEYS));
        let serving = Arc::clone(&served);
        let server = Answering::by(move |_| {
            let keys = *serving.lock().unwrap();
            let length = keys.len();
            format!("HTTP/1.1 200 X\r\ncontent-length: {length}\r\n\r\n{keys}").into()
        })
        .await;
        let keeper = keeper(&server);
        let mut state = State::default();
        for (keys, there, told) in [
            (r#"{"keys":[]}"#, false, Told::None),
            (KEYS, true, Told::Read),
            ("{}", true, Told::Unread),
            (r#"{"keys":[]}"#, false, Told::None),
            (KEYS, true, Told::Read),
            (
                r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#,
                false,
                Told::None,
            ),
        ] {
            *served.lock().unwrap() = keys;
            keeper.fetch(&mut state).await;
            let has = keeper.authenticator.has_keys(0, unix_seconds());
            assert_eq!((has, state.told), (there, told), "{keys}");
        }
    }

    // SECURITY AUTHN-6
    #[tokio::test]
    async fn whoever_leaves_does_not_take_the_keys_along_that_were_asked_for() {
        let length = KEYS.len();
        let answer = format!("HTTP/1.1 200 X\r\ncontent-length: {length}\r\n\r\n{KEYS}");
        let server = Answering::with(answer.into()).await;
        let keeper = Arc::new(keeper(&server));
        {
            let mut asking = std::pin::pin!(keeper.refresh());
            assert!(futures_util::poll!(asking.as_mut()).is_pending());
        }
        keeper.refresh().await;
        assert!(keeper.authenticator.has_keys(0, unix_seconds()));
        assert_eq!(server.seen().len(), 1);
    }

    #[tokio::test]
    async fn a_set_that_has_not_changed_is_not_sent_again_and_serves_on() {
        let tag = "etag: \"one\"\r\ncache-control: public, max-age=30\r\n";
        let server = Answering::by(move |sent| {
            if sent.contains("if-none-match: \"one\"") {
                format!("HTTP/1.1 304 X\r\n{tag}\r\n").into()
            } else {
                let length = KEYS.len();
                format!("HTTP/1.1 200 X\r\n{tag}content-length: {length}\r\n\r\n{KEYS}").into()
            }
        })
        .await;
        let keeper = keeper(&server);
        let mut state = State::default();
        keeper.fetch(&mut state).await;
        assert_eq!(state.fresh, Some(Duration::from_secs(30)));
        // As if their lifetime were over: what says that they are the same extends it.
        keeper.authenticator.keep_keys(0, 0);
        assert!(!keeper.authenticator.has_keys(0, unix_seconds()));
        for _ in 0..2 {
            keeper.fetch(&mut state).await;
            assert_eq!(state.told, Told::Read);
        }
        assert!(keeper.authenticator.has_keys(0, unix_seconds() + 3_500));
        let seen = server.seen();
        let asked = seen.iter().map(|seen| seen.contains("if-none-match"));
        assert_eq!(asked.collect::<Vec<_>>(), [false, true, true]);
        // Elsewhere the tag means nothing.
        let at = Address::configured(&format!("http://{}/other", server.at), false).unwrap();
        assert!(matches!(
            keeper.document(at, &mut state).await,
            Ok(Looked::Set(_))
        ));
    }
}
