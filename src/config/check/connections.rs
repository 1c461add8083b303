//! Upstreams that people log in to: how, where what they are given is kept, and where browsers come.

use http::{Uri, header::AUTHORIZATION};

use super::{Check, is_loopback, pem};
use crate::{
    config::{
        raw::{Auth, AuthorizationCode, Connections, Registering, Sharing, Transport, Upstream},
        units::{Ordered, Secret},
    },
    connect::spec::{AccountSpec, ClientSpec, ConnectSpec, Registration, ServerSpec, StoreSpec},
    fetch::TlsSpec,
    protocol::UpstreamId,
    server::spec::ListenSpec,
};

/// Everything about connections.
pub(super) fn connections(
    check: &mut Check<'_>,
    raw: Option<Connections>,
    upstreams: &Ordered<Upstream>,
    listen: &ListenSpec,
    endpoint: &str,
) -> ConnectSpec {
    let mut spec = ConnectSpec::default();
    let mut any = false;
    for (key, upstream) in &upstreams.0 {
        let Some(Auth::AuthorizationCode(code)) = &upstream.auth else {
            continue;
        };
        any = true;
        // Of a program this is said already.
        if upstream.url.is_none() {
            continue;
        }
        if let (Some(id), Some(account)) =
            (UpstreamId::parse(key), account(check, key, upstream, code))
        {
            spec.accounts.insert(id, account);
        }
    }
    if !any {
        if raw.is_some() {
            check.wrong_key(
                &["connections"],
                "nobody logs in to any upstream",
                "give one `auth: { authorization_code: {} }`, or leave this out",
            );
        }
        return spec;
    }
    if endpoint.split('/').nth(1) == Some("connect") {
        check.wrong(
            &["endpoint"],
            "where the page is on which people log in to upstreams",
            "another path, such as `/mcp`",
        );
    }
    let raw = raw.unwrap_or_default();
    spec.store = store(check, raw.store, raw.keys);
    spec.url = url(check, raw.url, listen);
    spec.ca = raw.ca.map(String::into_bytes);
    if let Some(roots) = &spec.ca {
        pem::roots(check, &["connections", "ca"], roots);
    }
    spec
}

fn account(
    check: &mut Check<'_>,
    key: &str,
    upstream: &Upstream,
    raw: &AuthorizationCode,
) -> Option<AccountSpec> {
    let at = |rest: &'static str| ["upstreams", key, "auth", "authorization_code", rest];
    if matches!(upstream.isolation, Some(Sharing::Shared)) {
        check.wrong(
            &["upstreams", key, "isolation"],
            "one session for all beside an account for each",
            "`principal`, `session`, or leave it out",
        );
    }
    if matches!(upstream.transport, Some(Transport::Sse)) {
        check.wrong(
            &["upstreams", key, "transport"],
            "one stream for all beside an account for each",
            "HTTP+SSE has no place for it; `streamable`, or leave it out",
        );
    }
    let sets = |name: &String| name.eq_ignore_ascii_case(AUTHORIZATION.as_str());
    if upstream.headers.keys().any(sets) {
        check.wrong_key(
            &["upstreams", key, "auth"],
            "`auth` and `headers` both set `authorization`",
            "remove one of them",
        );
    }
    let server = server(check, key, raw);
    let client = match (&raw.client_id, &raw.client_secret) {
        (Some(id), secret) => {
            if id.is_empty() {
                check.wrong(&at("client_id"), "an empty client id", "");
            }
            if secret.is_some() {
                check.secret(&at("client_secret"));
            }
            if raw.registration.is_some() {
                check.wrong_key(
                    &at("registration"),
                    "`registration` beside `client_id`",
                    "who has a client need not register one",
                );
            }
            ClientSpec::Given {
                id: id.clone(),
                secret: secret.as_ref().map(|secret| secret.0.clone()),
            }
        }
        (None, Some(_)) => {
            check.missing(
                &at("client_id"),
                "a secret without its `client_id`",
                "add `client_id:`",
            );
            return None;
        }
        (None, None) => ClientSpec::Registered(match raw.registration {
            None | Some(Registering::Auto) => Registration::Auto,
            Some(Registering::Document) => Registration::Document,
            Some(Registering::Dynamic) => Registration::Dynamic,
        }),
    };
    let scopes = raw.scopes.iter().flatten().enumerate();
    for (index, scope) in scopes {
        // RFC 6749 3.3.
        let fine = !scope.is_empty()
            && scope
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
        if !fine {
            let index = index.to_string();
            let path = [
                "upstreams",
                key,
                "auth",
                "authorization_code",
                "scopes",
                &index,
            ];
            check.wrong(&path, "not a scope", "one word each, without quotes");
        }
    }
    Some(AccountSpec {
        address: upstream.url.clone()?,
        tls: tls(upstream),
        resource: raw.resource.clone(),
        server: server?,
        client,
        scopes: raw.scopes.clone(),
    })
}

/// That of the upstream itself, where it was looked at already.
fn tls(upstream: &Upstream) -> TlsSpec {
    let raw = &upstream.tls;
    let identity = raw.cert.as_ref().zip(raw.key.as_ref());
    TlsSpec {
        ca: raw.ca.clone().map(String::into_bytes),
        identity: identity.map(|(cert, key)| (cert.clone().into_bytes(), key.0.clone())),
    }
}

fn server(check: &mut Check<'_>, key: &str, raw: &AuthorizationCode) -> Option<ServerSpec> {
    let at = |rest: &'static str| ["upstreams", key, "auth", "authorization_code", rest];
    let mut web = |rest: &'static str, text: &Option<String>| {
        let text = text.as_deref()?;
        is_safe(check, &at(rest), text).then(|| text.to_owned())
    };
    let issuer = web("issuer", &raw.issuer);
    let (authorize, token) = (
        web("authorize_url", &raw.authorize_url),
        web("token_url", &raw.token_url),
    );
    match (&raw.issuer, &raw.authorize_url, &raw.token_url) {
        (None, None, None) => Some(ServerSpec::Discovered),
        (Some(_), None, None) => issuer.map(ServerSpec::Issuer),
        (None, Some(_), Some(_)) => {
            if raw.client_id.is_none() {
                check.missing(
                    &at("client_id"),
                    "a server without metadata, and no client there",
                    "register a client there by hand and add `client_id:`",
                );
            }
            Some(ServerSpec::Given {
                authorize_url: authorize?,
                token_url: token?,
            })
        }
        (Some(_), _, _) => {
            check.wrong_key(
                &at("issuer"),
                "`issuer` beside `authorize_url` or `token_url`",
                "its metadata names both; keep one or the other",
            );
            None
        }
        (None, Some(_), None) => {
            check.missing(
                &at("token_url"),
                "`authorize_url` without `token_url`",
                "add `token_url:`",
            );
            None
        }
        (None, None, Some(_)) => {
            check.missing(
                &at("authorize_url"),
                "`token_url` without `authorize_url`",
                "add `authorize_url:`",
            );
            None
        }
    }
}

/// https, or http on this machine.
fn is_safe(check: &mut Check<'_>, path: &[&str], text: &str) -> bool {
    let uri = text.parse::<Uri>().ok();
    let parts = uri
        .as_ref()
        .and_then(|uri| Some((uri.scheme_str()?, uri.host()?)));
    let fine = match parts {
        Some(("https", _)) => true,
        Some(("http", host)) => is_loopback(host),
        Some(_) | None => false,
    } && !text.contains(['#', '@']);
    if !fine {
        check.wrong(
            path,
            "not an https address",
            "write it whole: `https://login.example.com`",
        );
    }
    fine
}

fn store(check: &mut Check<'_>, store: Option<String>, keys: Vec<Secret>) -> Option<StoreSpec> {
    let Some(directory) = store else {
        if !keys.is_empty() {
            check.missing(
                &["connections", "store"],
                "keys, and nothing to encrypt with them",
                "add `store: /var/lib/usher/connections`",
            );
        }
        return None;
    };
    if keys.is_empty() {
        check.missing(
            &["connections", "keys"],
            "a store without a key",
            "add `keys: [\"${file:/path/to/key}\"]`; `openssl rand -hex 32` makes a good one",
        );
    }
    if directory.is_empty() {
        check.wrong(&["connections", "store"], "not a directory", "");
    }
    let keys = keys.into_iter().enumerate();
    let keys =
        keys.map(|(index, key)| check.key(&["connections", "keys", &index.to_string()], key));
    Some(StoreSpec {
        keys: keys.collect(),
        directory: check.beside(&["connections", "store"], &directory),
    })
}

fn url(check: &mut Check<'_>, url: Option<String>, listen: &ListenSpec) -> Option<String> {
    let path = ["connections", "url"];
    let Some(url) = url else {
        if !listen.address.ip().is_loopback() {
            check.missing(
                &path,
                "where browsers reach this gateway is not said",
                "add `url: https://…`, with a host of `listen.hosts`",
            );
        }
        return None;
    };
    if !is_safe(check, &path, &url) {
        return None;
    }
    let uri: Uri = url.parse().ok()?;
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        check.wrong(
            &path,
            "an address with a path",
            "scheme, host and port alone: the page is at /connect there",
        );
    }
    let host = uri.host().unwrap_or_default();
    let named = listen
        .hosts
        .iter()
        .any(|name| name.eq_ignore_ascii_case(host));
    let own = listen.address.ip().is_loopback() && is_loopback(host);
    if !named && !own {
        check.wrong(
            &path,
            format!("`{host}` is not among `listen.hosts`, so browsers would be refused"),
            format!("add `{host}` to `listen.hosts`"),
        );
    }
    Some(url.trim_end_matches('/').to_owned())
}
