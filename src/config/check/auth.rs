//! `auth:` to what authentication goes by.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    str::FromStr as _,
    sync::Arc,
    time::Duration,
};

use secrecy::ExposeSecret as _;

use super::{Check, MIN_KEY_BYTES, secs};
use crate::{
    auth::spec::{
        ALGORITHMS, Algorithm, AuthSpec, CertificateName, CertificateSpec, ClaimNames,
        IntrospectionSpec, IssuerSpec, KeySource, KeysSpec, MOST_REFRESH, ProofLimits,
    },
    config::{
        raw::auth::{self as raw, Auth},
        units::{Secret, Time},
    },
    fetch::Address,
    server::spec::ListenSpec,
};

/// Default of `auth.jwt[].refresh`.
const REFRESH: Duration = secs(45);
/// Default of `auth.jwt[].lifetime`.
const LIFETIME: Duration = secs(3_600);
/// Default of `auth.introspection.cache`.
const CACHE: Duration = secs(45);
/// Default of `auth.failures_per_minute`.
const FAILURES: usize = 10;

/// What there is to go by, for a gateway that listens like this.
pub(super) fn auth(
    check: &mut Check<'_>,
    raw: Option<Auth>,
    listen: &ListenSpec,
    proxied: bool,
    limits: ProofLimits,
) -> Option<AuthSpec> {
    let raw = raw?;
    let required: Vec<Arc<str>> = scopes(check, "required", &raw.scopes.required);
    let supported = scopes(check, "supported", &raw.scopes.supported);
    let issuers = issuers(check, &raw.jwt);
    let certificates = raw.mtls.map(|mtls| mtls_of(check, mtls, listen));
    let nothing = raw.jwt.is_empty()
        && raw.keys.is_none()
        && certificates.is_none()
        && raw.introspection.is_none()
        && !raw.anonymous;
    if nothing && !check.was_struck(&["auth"]) {
        check.wrong_key(
            &["auth"],
            "no method: nobody could come in",
            "give `jwt`, `keys`, `mtls` or `introspection`; or `anonymous: true`, which lets everybody in",
        );
    }
    let failures = check.count(
        &["auth", "failures_per_minute"],
        raw.failures_per_minute,
        FAILURES,
        (1, 1_000_000),
    );
    Some(AuthSpec {
        resource: resource(check, raw.resource, listen, proxied),
        issuers,
        keys: raw.keys.and_then(|keys| keys_of(check, keys)),
        certificates,
        introspection: raw
            .introspection
            .and_then(|asked| introspection(check, asked)),
        anonymous: raw.anonymous,
        required_scopes: required.into(),
        supported_scopes: supported,
        failures_per_minute: u32::try_from(failures).unwrap_or(u32::MAX),
        limits,
    })
}

/// Whether anybody is asked for anything.
pub(super) fn has_method(raw: Option<&Auth>) -> bool {
    raw.is_some_and(|auth| {
        !auth.jwt.is_empty()
            || auth.keys.is_some()
            || auth.mtls.is_some()
            || auth.introspection.is_some()
    })
}

fn resource(
    check: &mut Check<'_>,
    raw: Option<String>,
    listen: &ListenSpec,
    proxied: bool,
) -> Arc<str> {
    let Some(text) = raw else {
        let port = listen.address.port();
        let host = listen.hosts.first();
        return match (&listen.tls, host) {
            (_, Some(host)) if proxied => format!("https://{host}"),
            (Some(_), Some(host)) if port == 443 => format!("https://{host}"),
            (Some(_), Some(host)) => format!("https://{host}:{port}"),
            (Some(_), None) => format!("https://{}", listen.address),
            (None, _) => format!("http://{}", listen.address),
        }
        .into();
    };
    let sound = Address::configured(&text, false).ok().filter(|address| {
        let uri = address.uri();
        uri.path_and_query().is_none_or(|path| path.as_str() == "/") && !text.ends_with('/')
    });
    if sound.is_none() {
        check.wrong(
            &["auth", "resource"],
            "not the address of a gateway",
            "scheme, host and port as clients use them, without a path, such as `https://mcp.example.com`",
        );
    }
    text.into()
}

fn issuers(check: &mut Check<'_>, raw: &[raw::Issuer]) -> Vec<IssuerSpec> {
    let mut issuers: Vec<IssuerSpec> = Vec::new();
    for (number, one) in raw.iter().enumerate() {
        let index = number.to_string();
        if let Some(issuer) = issuer(check, &index, one) {
            if issuers.iter().any(|other| other.issuer == issuer.issuer) {
                let path = ["auth", "jwt", &index, "issuer"];
                check.wrong(
                    &path,
                    "this issuer is given twice",
                    "one entry for each issuer",
                );
            }
            issuers.push(issuer);
        }
    }
    issuers
}

fn issuer(check: &mut Check<'_>, index: &str, raw: &raw::Issuer) -> Option<IssuerSpec> {
    let at = |key: &'static str| ["auth", "jwt", index, key];
    let Some(issuer) = &raw.issuer else {
        check.missing(
            &at("issuer"),
            "`issuer` is missing",
            "the `iss` of its tokens, such as `https://id.example.com`",
        );
        return None;
    };
    named(check, &at("issuer"), issuer);
    let keys = match (&raw.jwks_url, &raw.jwks_file) {
        (Some(_), Some(_)) => {
            check.wrong(
                &at("jwks_file"),
                "both `jwks_url` and `jwks_file`",
                "give one of them",
            );
            None
        }
        (Some(url), None) => address(check, &at("jwks_url"), url).map(KeySource::Url),
        (None, Some(file)) => {
            let file = check.beside(&at("jwks_file"), file);
            check.kept_to_ourselves(&at("jwks_file"), &file);
            Some(KeySource::File(file))
        }
        (None, None) => address(check, &at("issuer"), issuer).map(KeySource::Discovered),
    };
    let mut algorithms = Vec::new();
    for (number, name) in raw.algorithms.iter().enumerate() {
        let known = Algorithm::from_str(name).ok();
        match known.filter(|known| ALGORITHMS.contains(known)) {
            Some(known) => algorithms.push(known),
            None => check.wrong(
                &["auth", "jwt", index, "algorithms", &number.to_string()],
                format!("`{name}` is no algorithm that is taken"),
                "one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA: shared secrets prove nothing here",
            ),
        }
    }
    if raw.algorithms.is_empty() {
        algorithms = ALGORITHMS.to_vec();
    }
    Some(IssuerSpec {
        issuer: issuer.as_str().into(),
        audiences: audiences(check, &at("audience"), &raw.audience),
        algorithms,
        keys: keys?,
        refresh: refresh(check, &at("refresh"), raw.refresh),
        lifetime: check.time(
            &at("lifetime"),
            raw.lifetime,
            LIFETIME,
            (secs(60), secs(7 * 86_400)),
        ),
        claims: claims(&raw.claims),
    })
}

/// How often keys are read. What is longer than may be gets words of its own: it is what other software takes.
fn refresh(check: &mut Check<'_>, path: &[&str], raw: Option<Time>) -> Duration {
    let most = MOST_REFRESH;
    if raw.as_ref().is_some_and(|time| time.0 > most) {
        check.wrong(
            path,
            format!("longer than {} s: streams would outlive a key that is removed", most.as_secs()),
            "between 10s and 50s, so that they end within a minute; the default is 45s, one small document each time",
        );
        return REFRESH;
    }
    check.time(path, raw, REFRESH, (secs(10), most))
}

fn claims(raw: &raw::Claims) -> ClaimNames {
    let usual = ClaimNames::default();
    ClaimNames {
        user: raw.user.clone().unwrap_or(usual.user),
        groups: raw.groups.clone().unwrap_or(usual.groups),
        tenant: raw.tenant.clone(),
        scopes: raw.scopes.clone(),
        client: raw.client.clone(),
    }
}

fn keys_of(check: &mut Check<'_>, raw: raw::Keys) -> Option<KeysSpec> {
    let at = |key: &'static str| ["auth", "keys", key];
    if raw.file.is_none() {
        check.missing(
            &at("file"),
            "`auth.keys.file` is missing",
            "where keys are kept, such as `file: keys.json`; `usher keys create` makes it",
        );
    }
    let secret = secret(check, &at("secret"), raw.secret);
    if let Some(secret) = &secret
        && secret.expose_secret().len() < MIN_KEY_BYTES
    {
        check.wrong(
            &at("secret"),
            format!("a secret of fewer than {MIN_KEY_BYTES} bytes"),
            "`openssl rand -hex 32` makes a good one",
        );
    }
    let file = check.beside(&at("file"), &raw.file?);
    check.kept_to_ourselves(&at("file"), &file);
    Some(KeysSpec {
        file,
        secret: secret?,
    })
}

fn mtls_of(check: &mut Check<'_>, raw: raw::Mtls, listen: &ListenSpec) -> CertificateSpec {
    let verified = listen
        .tls
        .as_ref()
        .is_some_and(|tls| tls.client_ca.is_some());
    if !verified && !check.was_struck(&["listen", "tls"]) {
        check.wrong_key(
            &["auth", "mtls"],
            "certificates, but nothing to verify them by",
            "give `listen.tls.client_ca`; behind a proxy that ends TLS there are none to be seen",
        );
    }
    let mut user: Vec<CertificateName> = raw.user.iter().map(|name| name_of(*name)).collect();
    if user.is_empty() {
        user = vec![
            CertificateName::SanUri,
            CertificateName::SanEmail,
            CertificateName::SanDns,
        ];
    }
    CertificateSpec {
        user,
        groups: raw
            .groups
            .iter()
            .map(|group| Arc::from(group.as_str()))
            .collect(),
        tenant: raw.tenant.map(Arc::from),
    }
}

const fn name_of(raw: raw::CertificateName) -> CertificateName {
    match raw {
        raw::CertificateName::SanUri => CertificateName::SanUri,
        raw::CertificateName::SanDns => CertificateName::SanDns,
        raw::CertificateName::SanEmail => CertificateName::SanEmail,
        raw::CertificateName::SubjectCn => CertificateName::SubjectCn,
    }
}

fn introspection(check: &mut Check<'_>, raw: raw::Introspection) -> Option<IntrospectionSpec> {
    let at = |key: &'static str| ["auth", "introspection", key];
    for (key, missing) in [
        ("url", raw.url.is_none()),
        ("client_id", raw.client_id.is_none()),
        ("issuer", raw.issuer.is_none()),
    ] {
        if missing {
            let message = format!("`auth.introspection.{key}` is missing");
            check.missing(&at(key), message, format!("add `{key}:`"));
        }
    }
    let client_secret = secret(check, &at("client_secret"), raw.client_secret);
    let url = raw.url.and_then(|url| address(check, &at("url"), &url));
    let audiences = audiences(check, &at("audience"), &raw.audience);
    let cache = check.time(&at("cache"), raw.cache, CACHE, (secs(1), secs(60)));
    let issuer = raw.issuer?;
    named(check, &at("issuer"), &issuer);
    Some(IntrospectionSpec {
        url: url?,
        client_id: raw.client_id?,
        client_secret: client_secret?,
        issuer: issuer.into(),
        audiences,
        require_audience: raw.require_audience.unwrap_or(true),
        cache,
        claims: claims(&raw.claims),
    })
}

fn secret(
    check: &mut Check<'_>,
    path: &[&str],
    raw: Option<Secret>,
) -> Option<secrecy::SecretString> {
    let Some(secret) = raw else {
        let key = path.join(".");
        check.missing(
            path,
            format!("`{key}` is missing"),
            "a reference: \"${file:/path}\" or \"${env:NAME}\"",
        );
        return None;
    };
    check.secret(path);
    Some(secret.0)
}

fn address(check: &mut Check<'_>, path: &[&str], text: &str) -> Option<Address> {
    match Address::configured(text, false) {
        Ok(address) => Some(address),
        Err(error) => {
            let hint =
                "an address such as `https://id.example.com`; http is for this machine alone";
            check.wrong(path, error.to_string(), hint);
            None
        }
    }
}

/// A text that is compared byte for byte and stands in headers.
fn named(check: &mut Check<'_>, path: &[&str], text: &str) {
    let sound = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if text.is_empty() || text.len() > 1_024 || !text.bytes().all(sound) {
        check.wrong(
            path,
            "not the name of an issuer or audience",
            "as it stands in tokens, without blanks",
        );
    }
}

fn audiences(check: &mut Check<'_>, path: &[&str], raw: &[String]) -> Vec<Arc<str>> {
    for (number, text) in raw.iter().enumerate() {
        let number = number.to_string();
        let path: Vec<&str> = path.iter().copied().chain([number.as_str()]).collect();
        named(check, &path, text);
    }
    raw.iter().map(|text| Arc::from(text.as_str())).collect()
}

fn scopes(check: &mut Check<'_>, key: &'static str, raw: &[String]) -> Vec<Arc<str>> {
    let sound = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5B | 0x5D..=0x7E);
    for (number, scope) in raw.iter().enumerate() {
        if scope.is_empty() || !scope.bytes().all(sound) {
            check.wrong(
                &["auth", "scopes", key, &number.to_string()],
                "not a scope",
                "one word without quotes, such as `mcp:tools`",
            );
        }
        // Asked for by clients of their own accord, and of no use to us (PROTOCOL F5).
        if scope == "offline_access" {
            check.wrong(
                &["auth", "scopes", key, &number.to_string()],
                "`offline_access` is between clients and their authorization server",
                "leave it out",
            );
        }
    }
    raw.iter().map(|scope| Arc::from(scope.as_str())).collect()
}

impl Check<'_> {
    /// A path of the file that names it: relative ones begin where that file is.
    pub(super) fn beside(&self, path: &[&str], text: &str) -> PathBuf {
        let place = self.tree.place_of(path);
        let source = self.findings.sources.get(place.file);
        let directory =
            source.map(|source| crate::config::reference::directory_of(source.name.as_ref()));
        directory.unwrap_or_default().join(text)
    }

    /// A file that says who is admitted is not one that others may write to (SECURITY OPS-1). One that is not there yet is
    /// looked at when it is read.
    fn kept_to_ourselves(&mut self, path: &[&str], file: &Path) {
        let Ok(metadata) = std::fs::metadata(file) else {
            return;
        };
        let mode = metadata.permissions().mode();
        // Volumes of pods are handed to a group, which may write to all that is on them.
        if mode & 0o002 != 0 {
            let (file, mode) = (file.display(), mode & 0o777);
            self.wrong(
                path,
                format!("others may write to `{file}` (mode {mode:03o})"),
                format!("it says who is admitted: chmod o-w {file}"),
            );
        }
    }
}
