//! An authorization server that does what a test says, checks what it is told, and remembers it.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, sync::watch};
use usher::tasks::Tasks;

use super::SHOWN;

/// What an answer to a browser says of who gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iss {
    Right,
    Wrong,
    Missing,
}

/// How it behaves.
#[derive(Debug, Clone)]
pub(super) struct Manners {
    pub(super) iss: Iss,
    /// What it refuses people with.
    pub(super) error: Option<&'static str>,
    /// What it refuses codes and refresh tokens with.
    pub(super) token_error: Option<(u16, &'static str)>,
    /// Seconds that a token lives.
    pub(super) life: Option<u64>,
    /// Whether tokens can be refreshed.
    pub(super) refreshes: bool,
    /// Changes its metadata.
    pub(super) metadata: fn(String) -> String,
    /// Whether clients may ask for what they registered for alone, and prove themselves in the form, which must name them.
    pub(super) strict: bool,
}

/// One request to the token, revocation or registration endpoint.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) path: String,
    pub(super) form: HashMap<String, String>,
    pub(super) authorization: Option<String>,
}

struct State {
    manners: Manners,
    told: Vec<Told>,
    /// Codes that were given: the challenge, the redirect URI and the client of each.
    codes: HashMap<String, (String, String, String)>,
    refresh: Vec<String>,
    /// The scopes that clients registered for, and the clients that refresh tokens were given to, where it is strict.
    clients: HashMap<String, String>,
    given: HashMap<String, String>,
    tokens: Vec<String>,
    count: u32,
}

/// The server. It ends with the test.
pub(super) struct LoginServer {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Where what it is told waits for its answer.
    held: watch::Sender<Option<&'static str>>,
    tasks: Tasks,
}

impl LoginServer {
    pub(super) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let state = Arc::new(Mutex::new(State {
            manners: Manners {
                iss: Iss::Right,
                error: None,
                token_error: None,
                life: Some(3_600),
                refreshes: true,
                metadata: |text| text,
                strict: false,
            },
            told: Vec::new(),
            codes: HashMap::new(),
            refresh: Vec::new(),
            clients: HashMap::new(),
            given: HashMap::new(),
            tokens: Vec::new(),
            count: 0,
        }));
        let (tasks, held) = (Tasks::new(), watch::Sender::new(None));
        let (family, shared, holding) = (tasks.clone(), Arc::clone(&state), held.clone());
        tasks.spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (shared, holding) = (Arc::clone(&shared), holding.clone());
                family.spawn(async move {
                    let service = service_fn(move |request| {
                        let (shared, held) = (Arc::clone(&shared), holding.subscribe());
                        async move {
                            Ok::<_, Infallible>(answer(&shared, address, request, held).await)
                        }
                    });
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service);
                    drop(served.await);
                });
            }
        });
        Self {
            address,
            state,
            held,
            tasks,
        }
    }

    pub(super) fn issuer(&self) -> String {
        issuer(self.address)
    }

    /// What an upstream's block says of it.
    pub(super) fn auth(&self) -> String {
        format!(
            "auth: {{ authorization_code: {{ issuer: \"{}\", client_id: usher, scopes: [read, write] }} }}, {SHOWN}",
            self.issuer()
        )
    }

    pub(super) fn manners(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.state().manners);
    }

    /// Holds its answers at this path back, or lets them go.
    pub(super) fn hold(&self, path: Option<&'static str>) {
        self.held.send_replace(path);
    }

    /// Everything that was told at this path.
    pub(super) fn told(&self, path: &str) -> Vec<Told> {
        let told = self.state().told.clone();
        told.into_iter().filter(|told| told.path == path).collect()
    }

    /// Every token that was given.
    pub(super) fn tokens(&self) -> Vec<String> {
        self.state().tokens.clone()
    }

    /// Says at any time which tokens it has given, in order.
    pub(super) fn teller(&self) -> impl Fn() -> Vec<String> + Send + Sync + use<> {
        let state = Arc::clone(&self.state);
        move || state.lock().unwrap().tokens.clone()
    }

    /// Forgets every refresh token.
    pub(super) fn forget(&self) {
        self.state().refresh.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for LoginServer {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

fn issuer(address: SocketAddr) -> String {
    format!("http://127.0.0.1:{}", address.port())
}

fn pairs(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

async fn answer(
    shared: &Mutex<State>,
    address: SocketAddr,
    request: Request<Incoming>,
    mut held: watch::Receiver<Option<&'static str>>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let path = head.uri.path().to_owned();
    if head.method == http::Method::POST {
        let header = head.headers.get("authorization");
        shared.lock().unwrap().told.push(Told {
            path: path.clone(),
            form: if path == "/register" {
                HashMap::from([("json".to_owned(), body.clone())])
            } else {
                pairs(&body)
            },
            authorization: header.map(|value| value.to_str().unwrap().to_owned()),
        });
    }
    let is_free = |held: &Option<&str>| held.is_none_or(|held| held != path);
    drop(held.wait_for(is_free).await);
    let mut state = shared.lock().unwrap();
    match path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            let at = issuer(address);
            let text = format!(
                r#"{{"issuer":"{at}","authorization_endpoint":"{at}/authorize","token_endpoint":"{at}/token","registration_endpoint":"{at}/register","revocation_endpoint":"{at}/revoke","response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true,"token_endpoint_auth_methods_supported":["client_secret_basic","none"]}}"#
            );
            json(200, (state.manners.metadata)(text))
        }
        "/authorize" => authorize(
            &mut state,
            address,
            &pairs(head.uri.query().unwrap_or_default()),
        ),
        "/token" => token(&mut state, &pairs(&body)),
        "/register" if state.manners.strict => {
            let about: serde_json::Value = serde_json::from_str(&body).unwrap();
            let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
            let id = format!("client-{}", state.clients.len() + 1);
            state.clients.insert(id.clone(), text("scope"));
            json(
                201,
                format!(
                    r#"{{"client_id":"{id}","client_secret":"SECRET-{id}","token_endpoint_auth_method":"{}","client_secret_expires_at":0}}"#,
                    text("token_endpoint_auth_method")
                ),
            )
        }
        "/register" => json(
            201,
            r#"{"client_id":"registered","client_secret":"REGISTERED-SECRET","token_endpoint_auth_method":"client_secret_basic","client_secret_expires_at":0}"#.to_owned(),
        ),
        "/revoke" => json(200, "{}".to_owned()),
        _ => json(404, "{}".to_owned()),
    }
}

fn authorize(
    state: &mut State,
    address: SocketAddr,
    query: &HashMap<String, String>,
) -> Response<Full<Bytes>> {
    assert_eq!(query["response_type"], "code");
    assert_eq!(query["code_challenge_method"], "S256");
    assert!(query["state"].len() >= 22, "a state that can be guessed");
    let redirect = &query["redirect_uri"];
    let mut back = form_urlencoded::Serializer::new(String::new());
    back.append_pair("state", &query["state"]);
    match state.manners.iss {
        Iss::Right => drop(back.append_pair("iss", &issuer(address))),
        Iss::Wrong => drop(back.append_pair("iss", "https://mallory.example")),
        Iss::Missing => {}
    }
    let known = state.clients.get(&query["client_id"]);
    let mut scopes = query
        .get("scope")
        .into_iter()
        .flat_map(|all| all.split(' '));
    let is_known = |scope: &str| known.is_some_and(|all| all.split(' ').any(|one| one == scope));
    let error = match state.manners.error {
        None if state.manners.strict && !scopes.all(is_known) => Some("invalid_scope"),
        error => error,
    };
    if let Some(error) = error {
        back.append_pair("error", error);
        back.append_pair("error_description", "LEAK-FROM-THE-SERVER");
    } else {
        state.count += 1;
        let code = format!("CODE-{}", state.count);
        let of = (
            query["code_challenge"].clone(),
            redirect.clone(),
            query["client_id"].clone(),
        );
        state.codes.insert(code.clone(), of);
        back.append_pair("code", &code);
    }
    let mut answer = json(302, String::new());
    let location = format!("{redirect}?{}", back.finish());
    answer
        .headers_mut()
        .insert("location", location.parse().unwrap());
    answer
}

fn token(state: &mut State, form: &HashMap<String, String>) -> Response<Full<Bytes>> {
    if let Some((status, error)) = state.manners.token_error {
        return json(
            status,
            format!(r#"{{"error":"{error}","error_description":"LEAK-FROM-THE-SERVER"}}"#),
        );
    }
    let refused = || json(400, r#"{"error":"invalid_grant"}"#.to_owned());
    let strict = state.manners.strict;
    let client = form.get("client_id").cloned().unwrap_or_default();
    let proves = form.get("client_secret") == Some(&format!("SECRET-{client}"));
    if strict && !(proves && state.clients.contains_key(&client)) {
        return json(401, r#"{"error":"invalid_client"}"#.to_owned());
    }
    let good = match form["grant_type"].as_str() {
        "authorization_code" => {
            let Some((challenge, redirect, of)) = state.codes.remove(&form["code"]) else {
                return refused();
            };
            let hashed = digest(&SHA256, form["code_verifier"].as_bytes());
            URL_SAFE_NO_PAD.encode(hashed) == challenge
                && form["redirect_uri"] == redirect
                && (!strict || of == client)
        }
        "refresh_token" => {
            let before = state.refresh.len();
            // Each is good once.
            state
                .refresh
                .retain(|token| *token != form["refresh_token"]);
            let of = state.given.remove(&form["refresh_token"]);
            state.refresh.len() < before && (!strict || of == Some(client.clone()))
        }
        other => panic!("an unknown grant: {other}"),
    };
    if !good {
        return refused();
    }
    state.count += 1;
    let access = format!("ACCESS-{}", state.count);
    state.tokens.push(access.clone());
    let mut text = format!(r#"{{"access_token":"{access}","token_type":"Bearer","scope":"read""#);
    if let Some(life) = state.manners.life {
        text.push_str(&format!(r#","expires_in":{life}"#));
    }
    if state.manners.refreshes {
        let refresh = format!("REFRESH-{}", state.count);
        text.push_str(&format!(r#","refresh_token":"{refresh}""#));
        state.given.insert(refresh.clone(), client);
        state.refresh.push(refresh);
    }
    text.push('}');
    json(200, text)
}

fn json(status: u16, text: String) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(text)))
        .unwrap()
}
