//! One upstream: where it is, what it is sent, how long it may take.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, Uri, header};
use secrecy::{ExposeSecret, SecretString};

use super::{Check, grants, pem, pins, secs};
use crate::{
    config::{
        hint,
        raw::{
            self, Auth, CONCURRENCY, Definitions, POLL, STALE_FOR, Sharing, Transport, Upstream,
        },
        secrets,
        units::{Ordered, Time},
    },
    fetch::misnames_port,
    pins::Mode,
    protocol::{Revision, UpstreamId},
    sanitize::OwnCredentials,
    upstream::spec::{
        Endpoint, GrantSpec, HttpSpec, HttpTransport, Isolation, PeerBounds, Pin, QueueBounds,
        StdioSpec, Timeouts, TlsSpec, UpstreamSpec, UrlElicitation,
    },
};

/// Every upstream, in the order of the file.
pub(super) fn upstreams(
    check: &mut Check<'_>,
    raw: &Ordered<Upstream>,
    definitions: &Definitions,
    queue: QueueBounds,
    bounds: PeerBounds,
) -> Vec<UpstreamSpec> {
    raw.0
        .iter()
        .filter_map(|(key, raw)| {
            let definitions = pins::mode(definitions, raw);
            upstream(check, key, raw, definitions, queue, bounds)
        })
        .collect()
}

fn upstream(
    check: &mut Check<'_>,
    key: &str,
    raw: &Upstream,
    definitions: Mode,
    queue: QueueBounds,
    bounds: PeerBounds,
) -> Option<UpstreamSpec> {
    let at = |rest: &'static str| ["upstreams", key, rest];
    let id = UpstreamId::parse(key);
    if id.is_none() {
        check.wrong_key(
            &["upstreams", key],
            format!("`{key}` cannot be the key of an upstream"),
            "a small letter, then small letters, digits and `-`, at most 32",
        );
    }
    let protocol = protocol(check, &at("protocol"), raw.protocol.as_deref());
    let timeouts = timeouts(check, key, raw);
    let most = queue.in_flight;
    let default = CONCURRENCY.min(most);
    let concurrency = check.count(&at("concurrency"), raw.concurrency, default, (1, most));
    let day = secs(24 * 3_600);
    let poll = check.time(&at("poll"), raw.poll, documented(POLL), (secs(1), day));
    let stale_for = check.time(
        &at("stale_for"),
        raw.stale_for,
        documented(STALE_FOR),
        (secs(0), day),
    );
    let endpoint = match (&raw.url, &raw.command) {
        (Some(_), Some(_)) => {
            check.wrong_key(
                &at("command"),
                "both `url` and `command`",
                "a server is reached at an address or started as a program, not both",
            );
            None
        }
        (None, None) => {
            if !check.was_struck(&at("url")) && !check.was_struck(&at("command")) {
                check.wrong_key(
                    &["upstreams", key],
                    "neither `url` nor `command`",
                    "give `url: https://…/mcp` or `command: [program, argument]`",
                );
            }
            None
        }
        (Some(url), None) => http(check, key, url, raw),
        (None, Some(command)) => stdio(check, key, command, raw),
    };
    let isolation = match (raw.isolation, &endpoint) {
        (Some(Sharing::Shared), _) => Isolation::Shared,
        (Some(Sharing::Principal), _) => Isolation::Principal,
        (Some(Sharing::Session), _) | (None, Some(Endpoint::Http(_)) | None) => Isolation::Session,
        (None, Some(Endpoint::Stdio(_))) => Isolation::Shared,
    };
    Some(UpstreamSpec {
        id: id?,
        endpoint: endpoint?,
        protocol,
        isolation,
        url_elicitation: match raw.url_elicitation {
            None | Some(raw::UrlElicitation::Own) => UrlElicitation::Own,
            Some(raw::UrlElicitation::Shared) => UrlElicitation::Shared,
        },
        timeouts,
        concurrency,
        queue,
        bounds,
        poll,
        stale_for,
        definitions,
    })
}

/// A default that is written as text, once.
pub(super) fn documented(text: &str) -> Duration {
    Time::parse(text).map_or(secs(300), |time| time.0)
}

fn protocol(check: &mut Check<'_>, path: &[&str], raw: Option<&str>) -> Pin {
    match raw {
        None | Some("auto") => Pin::Auto,
        Some("modern") => Pin::Modern,
        Some("legacy") => Pin::Legacy,
        Some(text) => Revision::parse(text).map_or_else(
            || {
                let known: Vec<&str> = ["auto", "modern", "legacy"]
                    .into_iter()
                    .chain(Revision::ALL.iter().map(|revision| revision.as_str()))
                    .collect();
                let hint = hint::unknown("choice", text, &known);
                check.wrong(path, format!("`{text}` is no protocol"), hint);
                Pin::Auto
            },
            Pin::Revision,
        ),
    }
}

fn timeouts(check: &mut Check<'_>, key: &str, raw: &Upstream) -> Timeouts {
    let default = Timeouts::default();
    let at = |rest: &'static str| ["upstreams", key, "timeout", rest];
    let least = Duration::from_millis(10);
    let raw = &raw.timeout;
    Timeouts {
        connect: check.time(
            &at("connect"),
            raw.connect,
            default.connect,
            (least, secs(60)),
        ),
        start: check.time(&at("start"), raw.start, default.start, (least, secs(600))),
        list: check.time(&at("list"), raw.list, default.list, (least, secs(300))),
        call: check.time(&at("call"), raw.call, default.call, (least, secs(300))),
        silence: check.time(
            &at("silence"),
            raw.silence,
            default.silence,
            (least, secs(300)),
        ),
    }
}

fn stdio(check: &mut Check<'_>, key: &str, command: &[String], raw: &Upstream) -> Option<Endpoint> {
    let at = |rest: &'static str| ["upstreams", key, rest];
    let foreign = [
        ("headers", !raw.headers.is_empty()),
        ("auth", raw.auth.is_some()),
        ("transport", raw.transport.is_some()),
        ("plain_http", raw.plain_http),
        (
            "tls",
            raw.tls.ca.is_some() || raw.tls.cert.is_some() || raw.tls.key.is_some(),
        ),
    ];
    refuse_foreign(
        check,
        key,
        &foreign,
        "`command`",
        "a program is given secrets through `env`",
    );
    if command.first().is_none_or(String::is_empty) {
        check.wrong(
            &at("command"),
            "no program to start",
            "write `command: [program, argument]`",
        );
    }
    if let [line] = command
        && line.contains(' ')
        && !std::path::Path::new(line).exists()
    {
        check.wrong(
            &at("command"),
            "one word with spaces in it is no program",
            "no shell splits it: write `[npx, -y, package]`",
        );
    }
    for (index, word) in command.iter().enumerate() {
        if word.contains('\0') {
            check.wrong(
                &["upstreams", key, "command", &index.to_string()],
                "a zero byte",
                "",
            );
        }
    }
    for (name, value) in &raw.env {
        let value = value.0.expose_secret();
        let path = ["upstreams", key, "env", name.as_str()];
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            check.wrong_key(&path, "not a variable", "");
        }
        // A program is told many things that are no secret, and nobody has to say which are: a reference is how secrets are
        // written, and how variables are passed on.
        let secret = if check.is_referenced(&path) {
            OwnCredentials::is_one(name, value)
        } else {
            OwnCredentials::is_named_so(name) || secrets::holds_secret(value)
        };
        if secret {
            check.confided.push(value.into());
        }
    }
    let told = secrets::in_command(command, |index| {
        check.is_referenced(&["upstreams", key, "command", &index.to_string()])
    });
    let values = told.iter().map(|(_, value)| SecretString::from(*value));
    check.confided.extend(values);
    let cwd = raw.cwd.as_ref();
    let cwd: Option<PathBuf> = cwd.map(|cwd| check.beside(&at("cwd"), cwd));
    if let Some(cwd) = &cwd
        && !cwd.is_dir()
    {
        check.wrong(
            &at("cwd"),
            format!("`{}` is not a directory", cwd.display()),
            "",
        );
    }
    (!command.is_empty()).then(|| {
        Endpoint::Stdio(StdioSpec {
            command: command.to_vec(),
            told: told
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
            env: raw
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect(),
            cwd,
        })
    })
}

fn http(check: &mut Check<'_>, key: &str, url: &str, raw: &Upstream) -> Option<Endpoint> {
    let at = |rest: &'static str| ["upstreams", key, rest];
    let foreign = [("env", !raw.env.is_empty()), ("cwd", raw.cwd.is_some())];
    refuse_foreign(check, key, &foreign, "`url`", "it belongs to a `command`");
    if raw.timeout.start.is_some() {
        check.wrong_key(
            &["upstreams", key, "timeout", "start"],
            "`start` means nothing beside `url`",
            "it belongs to a `command`; `connect` is the deadline of an address",
        );
    }
    let secrets = secrets::parameters(url).into_iter();
    check
        .confided
        .extend(secrets.map(|secret| url[secret].into()));
    let url = address(check, &at("url"), url, raw.plain_http);
    let encrypted = url
        .as_ref()
        .is_none_or(|url| url.scheme() == Some(&http::uri::Scheme::HTTPS));
    let tls = tls(check, key, raw, encrypted);
    let headers = headers(check, key, raw);
    Some(Endpoint::Http(HttpSpec {
        url: url?,
        headers,
        grant: grant(check, key, raw).map(Box::new),
        tls,
        transport: match raw.transport {
            None | Some(Transport::Auto) => HttpTransport::Auto,
            Some(Transport::Streamable) => HttpTransport::Streamable,
            Some(Transport::Sse) => HttpTransport::Sse,
        },
    }))
}

fn refuse_foreign(
    check: &mut Check<'_>,
    key: &str,
    foreign: &[(&'static str, bool)],
    beside: &str,
    hint: &str,
) {
    for (name, given) in foreign {
        if *given {
            check.wrong_key(
                &["upstreams", key, name],
                format!("`{name}` means nothing beside {beside}"),
                hint,
            );
        }
    }
}

fn address(check: &mut Check<'_>, path: &[&str], text: &str, plain_http: bool) -> Option<Uri> {
    if text.contains('#') {
        check.wrong(
            path,
            "an address with a `#` in it",
            "what follows it is never sent to a server: leave it out",
        );
    }
    let parsed = text.parse::<Uri>().ok();
    let parts = parsed
        .as_ref()
        .and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
    let Some((scheme, authority)) = parts else {
        check.wrong(
            path,
            "not an address",
            "write it whole: `https://host/path`",
        );
        return None;
    };
    if authority.as_str().contains('@') {
        check.wrong(
            path,
            "an address with a user or password in it",
            "`auth: { basic: { user: …, password: … } }` sends them",
        );
    }
    if misnames_port(authority) {
        check.wrong(
            path,
            "an address with a port that is none",
            "a number of at most 65535; without one it is that of https or http",
        );
    }
    match scheme {
        "https" => {}
        "http" if plain_http || is_loopback(authority.host()) => {}
        "http" => check.wrong(
            path,
            "http to an address that is not this machine",
            "use https, or say `plain_http: true` if nobody can listen in",
        ),
        _ => check.wrong(
            path,
            format!("`{scheme}` is no way to reach a server"),
            "https or http",
        ),
    }
    parsed
}

/// Whether the host of an address is this machine.
pub(in crate::config) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn tls(check: &mut Check<'_>, key: &str, raw: &Upstream, encrypted: bool) -> TlsSpec {
    let at = |rest: &'static str| ["upstreams", key, "tls", rest];
    let ca = raw.tls.ca.clone().map(String::into_bytes);
    if let Some(roots) = &ca {
        pem::roots(check, &at("ca"), roots);
    }
    let identity = match (&raw.tls.cert, &raw.tls.key) {
        (Some(cert), Some(secret)) => {
            let cert = cert.clone().into_bytes();
            pem::identity(check, &at("cert"), &cert, &at("key"), &secret.0);
            Some((cert, secret.0.clone()))
        }
        (Some(_), None) => {
            check.missing(&at("key"), "a certificate without its key", "add `key:`");
            None
        }
        (None, Some(_)) => {
            check.missing(&at("cert"), "a key without its certificate", "add `cert:`");
            None
        }
        (None, None) => None,
    };
    if !encrypted && (ca.is_some() || identity.is_some()) {
        check.wrong_key(
            &["upstreams", key, "tls"],
            "`tls` for an http address",
            "use https",
        );
    }
    TlsSpec { ca, identity }
}

/// Headers that we write ourselves: an operator's own would break the exchange.
const OURS: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

fn headers(check: &mut Check<'_>, key: &str, raw: &Upstream) -> Vec<(HeaderName, SecretString)> {
    let mut all: Vec<(HeaderName, SecretString)> = Vec::new();
    for (name, value) in &raw.headers {
        let path = ["upstreams", key, "headers", name.as_str()];
        check.header(&path, name, value.0.expose_secret());
        if let Some(header) = header_name(check, &path, name) {
            if all.iter().any(|(other, _)| *other == header) {
                check.wrong_key(&path, format!("`{name}` is given twice"), "");
            }
            header_value(check, &path, value.0.expose_secret());
            all.push((header, value.0.clone()));
        }
    }
    if let Some((header, value)) = raw
        .auth
        .as_ref()
        .and_then(|auth| credential(check, key, auth))
    {
        if all.iter().any(|(other, _)| *other == header) {
            check.wrong_key(
                &["upstreams", key, "auth"],
                format!("`auth` and `headers` both set `{header}`"),
                "remove one of them",
            );
        }
        all.push((header, value));
    }
    all
}

fn credential(check: &mut Check<'_>, key: &str, auth: &Auth) -> Option<(HeaderName, SecretString)> {
    let at = |kind: &'static str| ["upstreams", key, "auth", kind];
    let below = |kind: &'static str, rest: &'static str| ["upstreams", key, "auth", kind, rest];
    let needed = |check: &mut Check<'_>, path: &[&str]| {
        let name = path.last().copied().unwrap_or_default();
        check.missing(
            path,
            format!("`{name}` is missing"),
            format!("add `{name}:`"),
        );
    };
    match auth {
        Auth::Bearer(token) => {
            check.secret(&at("bearer"));
            let token = token.0.expose_secret();
            if token.trim().is_empty() {
                check.wrong(&at("bearer"), "an empty token", "");
            }
            if names_scheme(token) {
                check.wrong(
                    &at("bearer"),
                    "a token that begins with `Bearer`",
                    "leave out `Bearer`: it is added",
                );
            }
            header_value(check, &at("bearer"), token);
            Some((header::AUTHORIZATION, format!("Bearer {token}").into()))
        }
        Auth::Basic(basic) => {
            let (user, password) = (below("basic", "user"), below("basic", "password"));
            for (path, given) in [
                (user, basic.user.is_some()),
                (password, basic.password.is_some()),
            ] {
                if given {
                    check.secret(&path);
                } else {
                    needed(check, &path);
                }
            }
            let name = basic.user.as_ref()?.0.expose_secret();
            if name.contains(':') {
                check.wrong(
                    &user,
                    "a user with a colon in it",
                    "RFC 7617 has no way to send it",
                );
            }
            let secret = &basic.password.as_ref()?.0;
            check.confided.push(secret.clone());
            let pair = format!("{name}:{}", secret.expose_secret());
            let value = format!("Basic {}", STANDARD.encode(pair));
            Some((header::AUTHORIZATION, value.into()))
        }
        // Each caller has another one; see `connections`.
        Auth::AuthorizationCode(_) => None,
        Auth::Header(raw) => {
            if raw.name.is_none() {
                needed(check, &below("header", "name"));
            }
            match &raw.value {
                None => needed(check, &below("header", "value")),
                Some(value) => {
                    check.secret(&below("header", "value"));
                    check.confided.push(value.0.clone());
                    header_value(check, &below("header", "value"), value.0.expose_secret());
                }
            }
            let name = header_name(check, &below("header", "name"), raw.name.as_ref()?)?;
            Some((name, raw.value.as_ref()?.0.clone()))
        }
        Auth::ClientCredentials(_) | Auth::TokenExchange(_) | Auth::IdJag(_) => None,
    }
}

/// Whether a bearer token brings the name of its scheme along, which no token begins with.
fn names_scheme(token: &str) -> bool {
    let word = token.split_whitespace().next();
    word.is_some_and(|word| word.len() < token.trim().len() && word.eq_ignore_ascii_case("bearer"))
}

/// The grant by which tokens are got, if that is the credential.
fn grant(check: &mut Check<'_>, key: &str, upstream: &Upstream) -> Option<GrantSpec> {
    let (kind, raw) = match upstream.auth.as_ref()? {
        Auth::Bearer(_) | Auth::Basic(_) | Auth::Header(_) | Auth::AuthorizationCode(_) => {
            return None;
        }
        Auth::ClientCredentials(raw) => (grants::Kind::ClientCredentials, raw),
        Auth::TokenExchange(raw) => (grants::Kind::TokenExchange, raw),
        Auth::IdJag(raw) => (grants::Kind::IdJag, raw),
    };
    let is_authorization = |name: &String| name.eq_ignore_ascii_case("authorization");
    if upstream.headers.keys().any(is_authorization) {
        check.wrong_key(
            &["upstreams", key, "auth"],
            "`auth` and `headers` both set `authorization`",
            "remove one of them",
        );
    }
    grants::grant(check, key, kind, raw, upstream)
}

fn header_name(check: &mut Check<'_>, path: &[&str], name: &str) -> Option<HeaderName> {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
        check.wrong_key(path, format!("`{name}` is no header name"), "");
        return None;
    };
    if OURS.contains(&header.as_str()) || header.as_str().starts_with("mcp-") {
        check.wrong_key(
            path,
            format!("`{name}` is written by usher itself"),
            "leave it out",
        );
        return None;
    }
    Some(header)
}

fn header_value(check: &mut Check<'_>, path: &[&str], value: &str) {
    if HeaderValue::from_str(value).is_err() {
        check.wrong(
            path,
            "a text that no header can hold",
            "visible ASCII in one line",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_under_all_its_names() {
        for host in [
            "localhost",
            "mcp.localhost",
            "127.0.0.1",
            "127.8.8.8",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example.com", "10.0.0.1", "example.com", "[::2]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
