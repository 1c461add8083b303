//! An authorization server of the tests: it signs tokens, serves its keys and metadata, and says what tokens are worth.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use jsonwebtoken::{Algorithm, EncodingKey, crypto::sign};
use tokio::{net::TcpListener, sync::watch};
use usher::{
    auth::spec::{ALGORITHMS, AuthSpec, ClaimNames, IssuerSpec, KeySource, ProofLimits},
    fetch::Address,
    tasks::Tasks,
};

/// Where the tests' gateways say that they are.
pub(crate) const RESOURCE: &str = "http://gateway.test";

/// An authorization server. It ends with the test.
pub(crate) struct Authority {
    pub(crate) issuer: String,
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    issuer: String,
    key: Mutex<Signer>,
    down: AtomicBool,
    fetches: AtomicUsize,
    asked: AtomicUsize,
    /// Whether what it is asked about tokens waits for its answer.
    held: watch::Sender<bool>,
    /// What introspection answers, by token.
    worth: Mutex<HashMap<String, String>>,
}

/// A key that signs.
struct Signer {
    kid: String,
    key: EncodingKey,
    jwk: String,
}

impl Signer {
    fn new(kid: &str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        Self {
            kid: kid.to_owned(),
            key: EncodingKey::from_ed_der(pkcs8.as_ref()),
            jwk: format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"{kid}","x":"{x}"}}"#),
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

impl Authority {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let issuer = format!("http://{address}");
        let shared = Arc::new(Shared {
            issuer: issuer.clone(),
            key: Mutex::new(Signer::new("first")),
            down: AtomicBool::new(false),
            fetches: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            held: watch::Sender::new(false),
            worth: Mutex::default(),
        });
        let tasks = Tasks::new();
        let (serving, connections) = (shared.clone(), tasks.clone());
        tasks.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let shared = serving.clone();
                if shared.down.load(Ordering::SeqCst) {
                    continue;
                }
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(shared.clone(), request));
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(TokioIo::new(socket), service).await);
                });
            }
        });
        Self {
            issuer,
            shared,
            tasks,
        }
    }

    /// Is not there: connections end at once.
    pub(crate) fn down(&self, down: bool) {
        self.shared.down.store(down, Ordering::SeqCst);
    }

    /// Its keys, as it serves them.
    pub(crate) fn jwks(&self) -> String {
        format!(r#"{{"keys":[{}]}}"#, self.shared.key.lock().unwrap().jwk)
    }

    /// How often its keys were read.
    pub(crate) fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// How often it was asked about tokens.
    pub(crate) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// Holds its answers about tokens back, or lets them go.
    pub(crate) fn hold(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// From now on it signs with another key, and the old one is gone.
    pub(crate) fn rotate(&self, kid: &str) {
        *self.shared.key.lock().unwrap() = Signer::new(kid);
    }

    /// From now on it has no key at all.
    pub(crate) fn forget(&self) {
        self.shared.key.lock().unwrap().jwk.clear();
    }

    /// What introspection says of a token.
    pub(crate) fn worth(&self, token: &str, answer: &str) {
        let mut worth = self.shared.worth.lock().unwrap();
        worth.insert(token.to_owned(), answer.to_owned());
    }

    /// A token of `user` for the main endpoint, good for ten minutes; `more` are further claims, from the comma on.
    pub(crate) fn token(&self, user: &str, more: &str) -> String {
        self.token_until(user, now() + 600, more)
    }

    /// The same, good until then.
    pub(crate) fn token_until(&self, user: &str, exp: u64, more: &str) -> String {
        let issuer = &self.issuer;
        self.signed(&format!(
            r#"{{"iss":"{issuer}","sub":"{user}","aud":"{RESOURCE}/mcp","exp":{exp}{more}}}"#
        ))
    }

    /// Any claims.
    pub(crate) fn signed(&self, claims: &str) -> String {
        let key = self.shared.key.lock().unwrap();
        self.spelled(
            &format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, key.kid),
            claims,
            &key,
        )
    }

    /// A good token under a header of any text.
    pub(crate) fn with_header(&self, header: &str) -> String {
        let (issuer, exp) = (&self.issuer, now() + 600);
        let claims =
            format!(r#"{{"iss":"{issuer}","sub":"ana","aud":"{RESOURCE}/mcp","exp":{exp}}}"#);
        self.spelled(header, &claims, &self.shared.key.lock().unwrap())
    }

    fn spelled(&self, header: &str, claims: &str, key: &Signer) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let message = format!("{}.{}", part(header), part(claims));
        let signature = sign(message.as_bytes(), &key.key, Algorithm::EdDSA).unwrap();
        format!("{message}.{signature}")
    }

    /// What a gateway goes by that takes this issuer's tokens.
    pub(crate) fn spec(&self) -> AuthSpec {
        let issuer = IssuerSpec {
            issuer: self.issuer.as_str().into(),
            audiences: Vec::new(),
            algorithms: ALGORITHMS.to_vec(),
            keys: KeySource::Discovered(Address::configured(&self.issuer, false).unwrap()),
            refresh: Duration::from_secs(45),
            lifetime: Duration::from_secs(3_600),
            claims: ClaimNames::default(),
        };
        AuthSpec {
            resource: RESOURCE.into(),
            issuers: vec![issuer],
            keys: None,
            certificates: None,
            introspection: None,
            anonymous: false,
            required_scopes: Arc::new([]),
            supported_scopes: Vec::new(),
            failures_per_minute: 1_000,
            limits: ProofLimits::default(),
        }
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let issuer = &shared.issuer;
    let text = match request.uri().path() {
        "/.well-known/oauth-authorization-server" => {
            format!(r#"{{"issuer":"{issuer}","jwks_uri":"{issuer}/keys"}}"#)
        }
        "/keys" => {
            shared.fetches.fetch_add(1, Ordering::SeqCst);
            format!(r#"{{"keys":[{}]}}"#, shared.key.lock().unwrap().jwk)
        }
        "/introspect" => {
            shared.asked.fetch_add(1, Ordering::SeqCst);
            drop(shared.held.subscribe().wait_for(|held| !held).await);
            let who = request.headers()["authorization"]
                .to_str()
                .unwrap()
                .to_owned();
            assert_eq!(who, "Basic dXNoZXI6cyUyRmNyZXQ=");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let token = form_urlencoded::parse(&body)
                .find(|(name, _)| name == "token")
                .map(|(_, value)| value.into_owned());
            let worth = shared.worth.lock().unwrap();
            let known = token.and_then(|token| worth.get(&token).cloned());
            known.unwrap_or_else(|| r#"{"active":false}"#.to_owned())
        }
        _ => {
            let mut nothing = Response::new(Full::default());
            *nothing.status_mut() = http::StatusCode::NOT_FOUND;
            return Ok(nothing);
        }
    };
    let answer = Response::builder().header("content-type", "application/json");
    Ok(answer.body(Full::new(text.into())).unwrap())
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}
