//! Which authorization server an upstream's people log in at, and what it can do (RFC 9728, RFC 8414, OpenID Connect Discovery).
//!
//! Guarantees: metadata counts only under the issuer that was expected, byte for byte; a server that does not say that it checks
//! PKCE is not used; what a document names is fetched as that document's word (SECURITY EGR-4, EGR-5).

use super::spec::{AccountSpec, ServerSpec};
use crate::{
    fetch::{Address, FetchError, Fetcher},
    json::{Json, Kind, Node},
};

/// An authorization server.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// Its issuer: what grants and registrations are kept under.
    pub(super) issuer: String,
    /// Where people are sent.
    pub(super) authorize: Address,
    /// Where codes become tokens.
    pub(super) token: Address,
    /// Where clients register, if they may.
    pub(super) register: Option<Address>,
    /// Where tokens are taken back, if they can be.
    pub(super) revoke: Option<Address>,
    /// Whether each of its answers names its issuer (RFC 9207).
    pub(super) names_itself: bool,
    /// Whether it takes a URL of ours for a client id.
    pub(super) takes_documents: bool,
    /// How clients prove who they are at its token endpoint; empty where it does not say.
    pub(super) methods: Vec<String>,
    /// Whether refresh tokens are asked for with a scope.
    pub(super) offline: bool,
}

/// What people log in to.
#[derive(Debug, Clone)]
pub(super) struct Login {
    /// Where.
    pub(super) server: Server,
    /// What tokens are for (RFC 8707).
    pub(super) resource: Option<String>,
    /// What is asked for.
    pub(super) scopes: Vec<String>,
}

/// Why people cannot be sent to log in. For logs; nothing of a peer's text is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverError {
    /// Something could not be fetched.
    #[error("{what}: {cause}")]
    Fetch {
        /// What.
        what: &'static str,
        /// Why.
        cause: FetchError,
    },
    /// There is no document at any of its places.
    #[error("{0} is nowhere to be found")]
    Missing(&'static str),
    /// A document says something that must not be followed.
    #[error("{0}")]
    Unfit(&'static str),
}

const RESOURCE: &str = "the upstream's metadata (RFC 9728)";
const SERVER: &str = "the authorization server's metadata (RFC 8414)";

/// Finds out what `account` does not say.
///
/// # Errors
/// [`DiscoverError`].
pub(super) async fn login(
    account: &AccountSpec,
    fetcher: &Fetcher,
) -> Result<Login, DiscoverError> {
    let upstream = Address::configured(&account.address, true).map_err(fetch(RESOURCE))?;
    let (server, told) = match &account.server {
        ServerSpec::Given {
            authorize_url,
            token_url,
        } => (given(authorize_url, token_url)?, Told::default()),
        ServerSpec::Issuer(issuer) => {
            let at = Address::configured(issuer, true).map_err(fetch(SERVER))?;
            (server(issuer, &at, fetcher).await?, Told::default())
        }
        ServerSpec::Discovered => {
            let told = resource(&upstream, fetcher).await?;
            let (issuer, at) = match &told.issuer {
                Some(issuer) => {
                    let at = upstream.named_here(issuer).map_err(fetch(RESOURCE))?;
                    (issuer.clone(), at)
                }
                // Servers of 2025-03-26 are their own authorization servers (PROTOCOL F4).
                None => (origin(&upstream), upstream.clone()),
            };
            (server(&issuer, &at, fetcher).await?, told)
        }
    };
    let mut scopes = account.scopes.clone().unwrap_or(told.scopes);
    if account.scopes.is_none() && server.offline && !scopes.iter().any(|one| one == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
    let resource = match &account.server {
        // What was written by hand knows what its server takes.
        ServerSpec::Given { .. } => account.resource.clone(),
        ServerSpec::Discovered | ServerSpec::Issuer(_) => Some(
            account
                .resource
                .clone()
                .or(told.resource)
                .unwrap_or_else(|| account.address.clone()),
        ),
    };
    Ok(Login {
        server,
        resource,
        scopes,
    })
}

/// The scope that refresh tokens come with.
const OFFLINE: &str = "offline_access";

fn given(authorize: &str, token: &str) -> Result<Server, DiscoverError> {
    let authorize = Address::configured(authorize, true).map_err(fetch(SERVER))?;
    Ok(Server {
        issuer: origin(&authorize),
        token: Address::configured(token, true).map_err(fetch(SERVER))?,
        authorize,
        register: None,
        revoke: None,
        names_itself: false,
        takes_documents: false,
        methods: Vec::new(),
        offline: false,
    })
}

/// What an upstream says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    issuer: Option<String>,
    resource: Option<String>,
    scopes: Vec<String>,
}

/// Path-inserted, then at the root (PROTOCOL F6). Nothing where there is no such document.
async fn resource(upstream: &Address, fetcher: &Fetcher) -> Result<Told, DiscoverError> {
    const PLACE: &str = "/.well-known/oauth-protected-resource";
    let path = upstream.uri().path().trim_end_matches('/');
    let mut places = vec![format!("{PLACE}{path}")];
    if !path.is_empty() {
        places.push(PLACE.to_owned());
    }
    match first(upstream, &places, fetcher, RESOURCE).await {
        Ok((_, document)) => told(&document, upstream),
        Err(DiscoverError::Missing(_)) => Ok(Told::default()),
        Err(error) => Err(error),
    }
}

fn told(document: &Json, upstream: &Address) -> Result<Told, DiscoverError> {
    let root = document.root();
    let resource = root
        .member("resource")
        .and_then(Node::as_str)
        .ok_or(DiscoverError::Unfit(
            "the upstream's metadata names no resource",
        ))?;
    // Another's metadata would have us ask for another's tokens.
    if !covers(&resource, upstream) {
        return Err(DiscoverError::Unfit(
            "the upstream's metadata is of another resource",
        ));
    }
    Ok(Told {
        issuer: texts(root.member("authorization_servers"))
            .into_iter()
            .next(),
        resource: Some(resource.into_owned()),
        scopes: texts(root.member("scopes_supported")),
    })
}

/// Whether `resource` is the upstream, or what the upstream's path is in.
fn covers(resource: &str, upstream: &Address) -> bool {
    let Ok(at) = Address::configured(resource, true) else {
        return false;
    };
    let within = at.uri().path().trim_end_matches('/');
    let path = upstream.uri().path().trim_end_matches('/');
    origin(&at) == origin(upstream)
        && path
            .strip_prefix(within)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The server of this issuer, at `at`.
async fn server(issuer: &str, at: &Address, fetcher: &Fetcher) -> Result<Server, DiscoverError> {
    let (_, document) = first(at, &places(issuer_path(issuer, at)), fetcher, SERVER).await?;
    read(&document, issuer, at)
}

/// The path of an issuer; the address of an upstream that is its own issuer has another.
fn issuer_path<'a>(issuer: &str, at: &'a Address) -> &'a str {
    if origin(at) == issuer {
        ""
    } else {
        at.uri().path().trim_end_matches('/')
    }
}

/// In the order of PROTOCOL F6.
fn places(path: &str) -> Vec<String> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let mut places = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        places.push(format!("{path}{OPENID}"));
    }
    places
}

fn read(document: &Json, issuer: &str, at: &Address) -> Result<Server, DiscoverError> {
    let root = document.root();
    let text = |key: &str| root.member(key).and_then(Node::as_str);
    let flag = |key: &str| root.member(key).and_then(Node::as_bool).unwrap_or(false);
    if text("issuer").as_deref() != Some(issuer) {
        return Err(DiscoverError::Unfit(
            "the metadata is of another issuer than was expected",
        ));
    }
    let pkce = texts(root.member("code_challenge_methods_supported"));
    if !pkce.iter().any(|method| method == "S256") {
        return Err(DiscoverError::Unfit(
            "the authorization server does not say that it checks PKCE with S256",
        ));
    }
    let endpoint = |key: &str| {
        text(key)
            .map(|url| at.named_here(&url).map_err(fetch(SERVER)))
            .transpose()
    };
    let needed = |key: &str| {
        endpoint(key)?.ok_or(DiscoverError::Unfit(
            "the authorization server's metadata lacks an endpoint",
        ))
    };
    Ok(Server {
        issuer: issuer.to_owned(),
        authorize: needed("authorization_endpoint")?,
        token: needed("token_endpoint")?,
        register: endpoint("registration_endpoint")?,
        revoke: endpoint("revocation_endpoint")?,
        names_itself: flag("authorization_response_iss_parameter_supported"),
        takes_documents: flag("client_id_metadata_document_supported"),
        methods: texts(root.member("token_endpoint_auth_methods_supported")),
        offline: texts(root.member("scopes_supported"))
            .iter()
            .any(|scope| scope == OFFLINE),
    })
}

/// The document at the first of these places of one origin that has one.
async fn first(
    at: &Address,
    places: &[String],
    fetcher: &Fetcher,
    what: &'static str,
) -> Result<(Address, Json), DiscoverError> {
    for place in places {
        let place = at.at_path(place).map_err(fetch(what))?;
        match fetcher.document(&place, Fetcher::METADATA).await {
            Ok(found) if found.status.is_success() => {
                let document = found.json().map_err(fetch(what))?;
                if document.root().kind() != Kind::Object {
                    return Err(DiscoverError::Unfit("metadata that is no object"));
                }
                return Ok((place, document));
            }
            Ok(found) if found.status.is_server_error() => {
                return Err(fetch(what)(FetchError::Status(found.status.as_u16())));
            }
            Ok(_) => {}
            Err(cause) => return Err(fetch(what)(cause)),
        }
    }
    Err(DiscoverError::Missing(what))
}

fn fetch(what: &'static str) -> impl Fn(FetchError) -> DiscoverError {
    move |cause| DiscoverError::Fetch { what, cause }
}

/// `https://host[:port]`.
pub(super) fn origin(at: &Address) -> String {
    let uri = at.uri();
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("{scheme}://{}", authority.to_ascii_lowercase())
}

/// The texts in an array, at most 256 of at most 256 bytes.
fn texts(node: Option<Node<'_>>) -> Vec<String> {
    node.into_iter()
        .flat_map(Node::elements)
        .filter_map(Node::as_str)
        .filter(|text| text.len() <= 256)
        .take(256)
        .map(std::borrow::Cow::into_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned().into(), &Limits::CLIENT).unwrap()
    }

    const AS: &str = "https://login.example/tenant";

    fn metadata(edit: impl Fn(String) -> String) -> Result<Server, DiscoverError> {
        let text = r#"{"issuer":"https://login.example/tenant","authorization_endpoint":"https://login.example/a","token_endpoint":"https://login.example/t","code_challenge_methods_supported":["plain","S256"],"authorization_response_iss_parameter_supported":true}"#;
        let at = Address::discovered(AS).unwrap();
        read(&json(&edit(text.to_owned())), AS, &at)
    }

    #[test]
    fn metadata_of_another_issuer_or_without_pkce_is_not_used() {
        let fine = metadata(|text| text).unwrap();
        assert!(fine.names_itself && fine.register.is_none() && !fine.offline);
        for (from, to) in [
            ("tenant\",\"auth", "tenant/\",\"auth"),
            ("login.example/tenant", "LOGIN.example/tenant"),
            ("\"issuer\"", "\"x\""),
            (r#""plain","S256""#, r#""plain""#),
            ("code_challenge_methods_supported", "x"),
            ("token_endpoint", "x"),
            ("https://login.example/t\"", "http://login.example/t\""),
            ("https://login.example/a", "javascript:alert(1)"),
        ] {
            let changed = metadata(|text| {
                assert!(text.contains(from), "{from}");
                text.replace(from, to)
            });
            assert!(changed.is_err(), "{from} -> {to}: {changed:?}");
        }
    }

    #[test]
    fn documents_are_looked_for_in_the_order_of_the_specification() {
        assert_eq!(
            places(""),
            [
                "/.well-known/oauth-authorization-server",
                "/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            places("/tenant"),
            [
                "/.well-known/oauth-authorization-server/tenant",
                "/.well-known/openid-configuration/tenant",
                "/tenant/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn an_upstreams_metadata_counts_for_that_upstream_alone() {
        let upstream = Address::configured("https://mcp.example/a/mcp", false).unwrap();
        for (resource, fits) in [
            ("https://mcp.example/a/mcp", true),
            ("https://MCP.example/a/mcp/", true),
            ("https://mcp.example/a", true),
            ("https://mcp.example", true),
            ("https://mcp.example/a/m", false),
            ("https://mcp.example/a/mcp/x", false),
            ("https://mcp.example:8443/a/mcp", false),
            ("http://mcp.example/a/mcp", false),
            ("https://other.example/a/mcp", false),
            ("mcp", false),
        ] {
            let document = format!(
                r#"{{"resource":"{resource}","authorization_servers":["{AS}","https://b"],"scopes_supported":["x",1]}}"#
            );
            let of = told(&json(&document), &upstream);
            assert_eq!(of.is_ok(), fits, "{resource}");
            if let Ok(of) = of {
                assert_eq!(of.issuer.as_deref(), Some(AS));
                assert_eq!(of.scopes, ["x"]);
            }
        }
        assert!(told(&json("{}"), &upstream).is_err());
    }
}
