//! How tokens for an upstream are got: servers, names, secrets, and what goes together with what.

use secrecy::{ExposeSecret, SecretString};

use super::{Check, pem};
use crate::{
    config::{
        raw::{ClientProof, ListReader, Sharing, SubjectToken, TokenGrant, Transport, Upstream},
        units::Secret,
    },
    fetch::{Address, FetchError},
    upstream::spec::{
        ClientAuth, Grant, GrantSpec, ListsAs, ServerSpec, SubjectType, TokenEndpoint,
    },
};

/// Which grant a block stands under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ClientCredentials,
    TokenExchange,
    IdJag,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::ClientCredentials => "client_credentials",
            Self::TokenExchange => "token_exchange",
            Self::IdJag => "id_jag",
        }
    }
}

/// The grant of upstream `key`.
pub(super) fn grant(
    check: &mut Check<'_>,
    key: &str,
    kind: Kind,
    raw: &TokenGrant,
    upstream: &Upstream,
) -> Option<GrantSpec> {
    let at = |rest: &'static str| ["upstreams", key, "auth", kind.word(), rest];
    foreign(check, key, kind, raw);
    if kind != Kind::ClientCredentials {
        sharing(check, key, kind, upstream);
    }
    let server = server(
        check,
        &["upstreams", key, "auth", kind.word()],
        &Named {
            issuer: raw.issuer.as_deref(),
            token_url: raw.token_url.as_deref(),
            client_id: raw.client_id.as_deref(),
            client_secret: raw.client_secret.as_ref(),
            client_auth: raw.client_auth,
        },
    );
    let resource = raw.resource.as_ref().or(upstream.url.as_ref());
    if let Some(resource) = &raw.resource {
        let uri = resource.parse::<http::Uri>().ok();
        if resource.contains('#') || uri.is_none_or(|uri| uri.scheme().is_none()) {
            check.wrong(
                &at("resource"),
                "not a resource",
                "an absolute URI without `#`; the default is the upstream's `url`",
            );
        }
    }
    for (index, scope) in raw.scopes.iter().enumerate() {
        let valid = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        if scope.is_empty() || !scope.bytes().all(valid) {
            let index = index.to_string();
            let path = ["upstreams", key, "auth", kind.word(), "scopes", &index];
            check.wrong(&path, "not a scope", "one scope each, without spaces");
        }
    }
    let ca = raw.ca.clone().map(String::into_bytes);
    if let Some(roots) = &ca {
        pem::roots(check, &at("ca"), roots);
    }
    let subject = match raw.subject_token_type {
        None | Some(SubjectToken::AccessToken) => SubjectType::AccessToken,
        Some(SubjectToken::Jwt) => SubjectType::Jwt,
        Some(SubjectToken::IdToken) => SubjectType::IdToken,
    };
    let (grant, audience) = match kind {
        Kind::ClientCredentials => (Some(Grant::ClientCredentials), raw.audience.clone()),
        Kind::TokenExchange => (Some(Grant::TokenExchange { subject }), raw.audience.clone()),
        Kind::IdJag => (id_jag(check, key, raw, subject), None),
    };
    Some(GrantSpec {
        grant: grant?,
        server: server?,
        resource: resource?.clone(),
        audience,
        scopes: raw.scopes.clone(),
        lists: match raw.lists {
            None | Some(ListReader::Principal) => ListsAs::Principal,
            Some(ListReader::Service) => ListsAs::Service,
            Some(ListReader::Nobody) => ListsAs::Nobody,
        },
        ca,
    })
}

/// Keys that mean nothing for this grant.
fn foreign(check: &mut Check<'_>, key: &str, kind: Kind, raw: &TokenGrant) {
    let for_users = kind != Kind::ClientCredentials;
    let given = [
        (
            "subject_token_type",
            raw.subject_token_type.is_some() && !for_users,
        ),
        ("lists", raw.lists.is_some() && !for_users),
        ("idp", raw.idp.is_some() && kind != Kind::IdJag),
    ];
    for (name, foreign) in given {
        if foreign {
            check.wrong_key(
                &["upstreams", key, "auth", kind.word(), name],
                format!("`{name}` means nothing in `{}`", kind.word()),
                if name == "idp" {
                    "it belongs to `id_jag`"
                } else {
                    "it belongs to `token_exchange` and `id_jag`, where each user has tokens of their own"
                },
            );
        }
    }
}

/// Where each user has tokens of their own, no session may be everybody's (SECURITY STATE-8).
fn sharing(check: &mut Check<'_>, key: &str, kind: Kind, upstream: &Upstream) {
    let word = kind.word();
    if matches!(upstream.isolation, Some(Sharing::Shared)) {
        check.wrong(
            &["upstreams", key, "isolation"],
            format!("a session that everybody shares cannot carry each user's own token, as `{word}` wants"),
            "write `principal` or `session`, or leave it out",
        );
    }
    if matches!(upstream.transport, Some(Transport::Sse)) {
        check.wrong(
            &["upstreams", key, "transport"],
            format!("the stream of HTTP+SSE is one for everybody and cannot carry each user's own token, as `{word}` wants"),
            "such a server is served by `client_credentials` or a static credential only",
        );
    }
}

fn id_jag(
    check: &mut Check<'_>,
    key: &str,
    raw: &TokenGrant,
    subject: SubjectType,
) -> Option<Grant> {
    let at = |rest: &'static str| ["upstreams", key, "auth", "id_jag", rest];
    let audience = raw.audience.as_ref().or(raw.issuer.as_ref());
    if audience.is_none() {
        check.missing(
            &at("audience"),
            "it is not said whom the assertion is for",
            "add `audience:`, the issuer of the upstream's authorization server, or name that as `issuer`",
        );
    }
    let Some(idp) = &raw.idp else {
        check.missing(
            &at("idp"),
            "`idp` is missing",
            "add `idp: { issuer: …, client_id: …, client_secret: … }`, where users log in",
        );
        return None;
    };
    let idp = server(
        check,
        &at("idp"),
        &Named {
            issuer: idp.issuer.as_deref(),
            token_url: idp.token_url.as_deref(),
            client_id: idp.client_id.as_deref(),
            client_secret: idp.client_secret.as_ref(),
            client_auth: idp.client_auth,
        },
    );
    Some(Grant::IdJag {
        subject,
        idp: idp?,
        audience: audience?.clone(),
    })
}

/// What a block says of one authorization server.
struct Named<'a> {
    issuer: Option<&'a str>,
    token_url: Option<&'a str>,
    client_id: Option<&'a str>,
    client_secret: Option<&'a Secret>,
    client_auth: Option<ClientProof>,
}

fn server(check: &mut Check<'_>, under: &[&str], named: &Named<'_>) -> Option<ServerSpec> {
    fn below<'a>(under: &[&'a str], rest: &'a str) -> Vec<&'a str> {
        under.iter().copied().chain([rest]).collect()
    }
    let token_endpoint = match (named.issuer, named.token_url) {
        // Both: the endpoint is there, and the issuer says whom an assertion is for.
        (_, Some(url)) => {
            if let Some(issuer) = named.issuer {
                address(check, &below(under, "issuer"), issuer);
            }
            address(check, &below(under, "token_url"), url).map(TokenEndpoint::Url)
        }
        (Some(issuer), None) => address(check, &below(under, "issuer"), issuer)
            .map(|address| TokenEndpoint::Issuer(address, issuer.to_owned())),
        (None, None) => {
            let (issuer, url) = (below(under, "issuer"), below(under, "token_url"));
            if !check.was_struck(&issuer) && !check.was_struck(&url) {
                check.wrong_key(
                    under,
                    "neither `token_url` nor `issuer`",
                    "give `token_url: https://…/token`, or `issuer: https://…` to have it looked up",
                );
            }
            None
        }
    };
    let mut needed = |name: &'static str, given: bool| {
        if !given {
            check.missing(
                &below(under, name),
                format!("`{name}` is missing"),
                format!("add `{name}:`"),
            );
        }
    };
    needed("client_id", named.client_id.is_some());
    needed("client_secret", named.client_secret.is_some());
    if let Some(secret) = named.client_secret {
        let path = below(under, "client_secret");
        check.secret(&path);
        if secret.0.expose_secret().is_empty() {
            check.wrong(&path, "an empty secret", "");
        }
    }
    let client_secret: SecretString = named.client_secret?.0.clone();
    Some(ServerSpec {
        token_endpoint: token_endpoint?,
        client_id: named.client_id?.to_owned(),
        client_secret,
        client_auth: match named.client_auth {
            None | Some(ClientProof::Basic) => ClientAuth::Basic,
            Some(ClientProof::Post) => ClientAuth::Post,
        },
    })
}

fn address(check: &mut Check<'_>, path: &[&str], text: &str) -> Option<Address> {
    match Address::configured(text, false) {
        Ok(address) => Some(address),
        Err(FetchError::Address(why)) => {
            check.wrong(path, why, "write it whole: `https://host/path`");
            None
        }
        Err(_) => None,
    }
}
