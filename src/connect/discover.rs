//! Which authorization server an upstream's people log in at, and what it can do (RFC 9728, RFC 8414, OpenID Connect Discovery).
//!
//! Guarantees: metadata counts only under the issuer that was expected, byte for byte but for a `/` that is all of a path, and from
//! then on the issuer is called as it calls itself; a server that does not say that it checks
//! PKCE is not used; what a document or a challenge names is fetched as its word (SECURITY EGR-4, EGR-5). An upstream's own
//! metadata is looked for where its challenge says, then where it must be (PROTOCOL F6). What an upstream says of an issuer that
//! the operator has named counts as far as the issuer itself stands behind it: see `vouched_for`.

use super::spec::{AccountSpec, ServerSpec};
use crate::{
    fetch::{Address, Challenge, FetchError, Fetcher, Metadata, MetadataError, texts},
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
            match Metadata::of_named(fetcher, issuer, &at).await {
                Ok(metadata) => (server(&metadata)?, Told::default()),
                Err(why) if is_not_there(&why) => elsewhere(issuer, &at, &upstream, fetcher)
                    .await?
                    .ok_or(why)?,
                Err(why) => return Err(why.into()),
            }
        }
        ServerSpec::Discovered => {
            let told = resource(&upstream, fetcher).await?;
            let (issuer, at) = match &told.issuer {
                Some(issuer) => {
                    let at = upstream.named_here(issuer).map_err(fetch(RESOURCE))?;
                    (issuer.clone(), at)
                }
                // Servers of 2025-03-26 are their own authorization servers (PROTOCOL F4), at the root.
                None => {
                    let root = upstream.at_path("/").map_err(fetch(SERVER))?;
                    (origin(&upstream), root)
                }
            };
            let metadata = Metadata::of_named(fetcher, &issuer, &at).await?;
            (server(&metadata)?, told)
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

/// Whether the metadata of an issuer is not where it must be, as far as can be told from there.
const fn is_not_there(why: &MetadataError) -> bool {
    match why {
        MetadataError::None | MetadataError::ForeignIssuer => true,
        MetadataError::Fetch(FetchError::Status(status)) => *status < 500,
        MetadataError::Fetch(cause) => matches!(cause, FetchError::Redirect | FetchError::NotJson),
        MetadataError::Missing(_) => false,
    }
}

/// The server of an `issuer` that publishes nothing at its own address, `at`: the metadata that the upstream names, where that
/// says that it is of this issuer. Nothing where the upstream names no other place.
///
/// Some servers call themselves otherwise than the address under which their upstreams name them. Without the operator's word
/// they are not used (SECURITY EGR-5).
async fn elsewhere(
    issuer: &str,
    at: &Address,
    upstream: &Address,
    fetcher: &Fetcher,
) -> Result<Option<(Server, Told)>, DiscoverError> {
    let told = resource(upstream, fetcher).await?;
    let Some(named) = told.issuer.as_ref().filter(|named| *named != issuer) else {
        return Ok(None);
    };
    let place = upstream.named_here(named).map_err(fetch(RESOURCE))?;
    let metadata = Metadata::of_named(fetcher, issuer, &place).await?;
    let server = server(&metadata)?;
    if vouched_for(at, &place, &server) {
        Ok(Some((server, told)))
    } else {
        Err(DiscoverError::Unfit(
            "the issuer has no metadata at its own address, and what the upstream names in its place leads to other hosts",
        ))
    }
}

/// Whether the issuer `at` this address stands behind metadata that was found at another `place`: it is its own origin that
/// says so, or its own origin that everything goes to. Clients are registered under the issuer for all upstreams (PROTOCOL F6), so
/// that one of these upstreams could otherwise have the secrets sent to itself that another needs there.
fn vouched_for(at: &Address, place: &Address, server: &Server) -> bool {
    let own = origin(at);
    let is_own = |address: &Address| origin(address) == own;
    let all = [&server.authorize, &server.token];
    let all = all.into_iter().chain(&server.register);
    is_own(place) || all.chain(&server.revoke).all(is_own)
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

/// Where the challenge says, else path-inserted, then at the root (PROTOCOL F6). Nothing where there is no such document.
async fn resource(upstream: &Address, fetcher: &Fetcher) -> Result<Told, DiscoverError> {
    // An upstream that cannot be asked just now may have its metadata all the same.
    let challenge = fetcher.challenge(upstream).await.ok().flatten();
    let Challenge {
        resource_metadata,
        scopes,
        error: _,
        insufficient: _,
    } = challenge.unwrap_or_default();
    let found = match resource_metadata {
        Some(text) => {
            let at = upstream.named_here(&text).map_err(fetch(RESOURCE))?;
            first(vec![at], fetcher).await?
        }
        None => None,
    };
    let found = match found {
        Some(found) => Some(found),
        None => first(places(upstream)?, fetcher).await?,
    };
    let mut told = match found {
        Some(document) => told(&document, upstream)?,
        None => Told::default(),
    };
    // What is wanted now, rather than whatever there is (PROTOCOL F5).
    if !scopes.is_empty() {
        told.scopes = scopes;
    }
    Ok(told)
}

fn places(upstream: &Address) -> Result<Vec<Address>, DiscoverError> {
    const PLACE: &str = "/.well-known/oauth-protected-resource";
    let path = upstream.uri().path().trim_end_matches('/');
    let mut places = vec![format!("{PLACE}{path}")];
    if !path.is_empty() {
        places.push(PLACE.to_owned());
    }
    let places = places.iter().map(|place| upstream.at_path(place));
    places.collect::<Result<_, _>>().map_err(fetch(RESOURCE))
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

/// The server that this metadata is of.
fn server(metadata: &Metadata) -> Result<Server, DiscoverError> {
    let pkce = metadata.texts("code_challenge_methods_supported");
    if !pkce.iter().any(|method| method == "S256") {
        return Err(DiscoverError::Unfit(
            "the authorization server does not say that it checks PKCE with S256",
        ));
    }
    Ok(Server {
        issuer: metadata.issuer().to_owned(),
        authorize: metadata.address("authorization_endpoint")?,
        token: metadata.address("token_endpoint")?,
        register: metadata.address_if_any("registration_endpoint")?,
        revoke: metadata.address_if_any("revocation_endpoint")?,
        names_itself: metadata.says("authorization_response_iss_parameter_supported"),
        takes_documents: metadata.says("client_id_metadata_document_supported"),
        methods: metadata.texts("token_endpoint_auth_methods_supported"),
        offline: metadata
            .texts("scopes_supported")
            .iter()
            .any(|scope| scope == OFFLINE),
    })
}

impl From<MetadataError> for DiscoverError {
    fn from(error: MetadataError) -> Self {
        match error {
            MetadataError::Fetch(cause) => fetch(SERVER)(cause),
            MetadataError::None => Self::Missing(SERVER),
            MetadataError::ForeignIssuer => Self::Unfit(
                "the authorization server's metadata names another issuer than was expected (the log has both); if that is its name, write it as `issuer`",
            ),
            MetadataError::Missing(_) => {
                Self::Unfit("the authorization server's metadata lacks an endpoint")
            }
        }
    }
}

/// The upstream's metadata at the first of these places that has any. A place that has none, whatever it says instead, is passed
/// by: behind a page for all addresses or a way to a login the next one may have it.
async fn first(places: Vec<Address>, fetcher: &Fetcher) -> Result<Option<Json>, DiscoverError> {
    for place in places {
        let found = fetcher.document(&place, Fetcher::METADATA).await;
        match found.and_then(|found| found.json()) {
            Ok(document) if document.root().kind() == Kind::Object => return Ok(Some(document)),
            Ok(_) | Err(FetchError::NotJson | FetchError::Redirect | FetchError::TooLarge(_)) => {}
            Err(FetchError::Status(status)) if status < 500 => {}
            Err(cause) => return Err(fetch(RESOURCE)(cause)),
        }
    }
    Ok(None)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        connect::{
            Connections,
            spec::{ClientSpec, ConnectSpec, Registration},
        },
        fetch::{
            TlsSpec,
            answering::{Answering, answer, ok},
        },
        json::Limits,
        protocol::UpstreamId,
        tasks::Tasks,
    };

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned().into(), &Limits::CLIENT).unwrap()
    }

    const AS: &str = "https://login.example/tenant";

    fn metadata(edit: impl Fn(String) -> String) -> Result<Server, DiscoverError> {
        let text = r#"{"issuer":"https://login.example/tenant","authorization_endpoint":"https://login.example/a","token_endpoint":"https://login.example/t","code_challenge_methods_supported":["plain","S256"],"authorization_response_iss_parameter_supported":true}"#;
        let at = Address::discovered(AS).unwrap();
        let metadata = Metadata::of(json(&edit(text.to_owned())), at, AS, str::eq)?;
        server(&metadata)
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

    /// `iss` is compared with it, and grants and registrations are kept under it.
    #[tokio::test]
    async fn a_server_without_a_path_is_called_as_it_calls_itself_with_a_slash_or_without() {
        for (named, calls_itself, found) in [
            ("", "", true),
            ("/", "", true),
            ("", "/", true),
            ("/", "//", false),
            ("", "/t", false),
            ("/t", "/t/", false),
        ] {
            let server = Answering::by(move |request| {
                let host = request.lines().find_map(|line| line.strip_prefix("host: "));
                let at = format!("http://{}", host.unwrap());
                ok(&format!(
                    r#"{{"issuer":"{at}{calls_itself}","authorization_endpoint":"{at}/a","token_endpoint":"{at}/t","code_challenge_methods_supported":["S256"]}}"#
                ))
            })
            .await;
            let at = format!("http://{}", server.at);
            let account = AccountSpec {
                address: format!("{at}/mcp"),
                resource: None,
                server: ServerSpec::Issuer(format!("{at}{named}")),
                client: ClientSpec::Registered(Registration::Auto),
                scopes: None,
                tls: TlsSpec::default(),
            };
            let login = login(&account, &Fetcher::new(None).unwrap()).await;
            let issuer = login.map(|login| login.server.issuer).ok();
            let expected = found.then(|| format!("{at}{calls_itself}"));
            assert_eq!(issuer, expected, "{named} {calls_itself}");
        }
    }

    /// An upstream whose metadata names `/tenant` of its own origin, where an issuer's metadata is; at the root there is none.
    async fn naming_a_tenant(calls_itself: Option<String>) -> Answering {
        Answering::by(move |request| {
            let host = request.lines().find_map(|line| line.strip_prefix("host: "));
            let at = format!("http://{}", host.unwrap());
            let issuer = calls_itself.as_deref().unwrap_or(&at);
            let path = request.split(' ').nth(1).unwrap();
            match path {
                "/.well-known/oauth-protected-resource/mcp" => ok(&format!(
                    r#"{{"resource":"{at}/mcp","authorization_servers":["{at}/tenant"],"scopes_supported":["s"]}}"#
                )),
                "/.well-known/oauth-authorization-server/tenant" => ok(&format!(
                    r#"{{"issuer":"{issuer}","authorization_endpoint":"{at}/a","token_endpoint":"{at}/t","registration_endpoint":"{at}/r","code_challenge_methods_supported":["S256"]}}"#
                )),
                _ => answer(404, ""),
            }
        })
        .await
    }

    async fn logged_in(upstream: &Answering, server: ServerSpec) -> Result<Login, DiscoverError> {
        let account = AccountSpec {
            address: format!("http://{}/mcp", upstream.at),
            resource: None,
            server,
            client: ClientSpec::Registered(Registration::Auto),
            scopes: None,
            tls: TlsSpec::default(),
        };
        login(&account, &Fetcher::new(None).unwrap()).await
    }

    /// Letter for letter, and nobody's word but the operator's (SECURITY EGR-5).
    #[tokio::test]
    async fn an_issuer_that_is_named_by_another_address_is_used_where_the_operator_names_it() {
        let upstream = naming_a_tenant(None).await;
        let at = format!("http://{}", upstream.at);
        let login = logged_in(&upstream, ServerSpec::Issuer(at.clone())).await;
        let login = login.unwrap();
        assert_eq!(login.server.issuer, at);
        assert!(login.server.register.is_some());
        assert_eq!(login.scopes, ["s"]);
        assert_eq!(login.resource, Some(format!("{at}/mcp")));
        for other in [
            ServerSpec::Discovered,
            ServerSpec::Issuer(format!("{at}/tenant")),
            ServerSpec::Issuer(format!("{at}/other")),
        ] {
            let login = logged_in(&upstream, other).await;
            assert!(matches!(login, Err(DiscoverError::Unfit(why)) if why.contains("`issuer`")));
        }
    }

    /// The upstream's word that it speaks for the issuer is not enough: what it names would be sent what is the issuer's.
    #[tokio::test]
    async fn an_upstream_does_not_speak_for_an_issuer_at_another_origin() {
        let issuer = Answering::with(answer(404, "")).await;
        let name = format!("http://{}", issuer.at);
        let upstream = naming_a_tenant(Some(name.clone())).await;
        let login = logged_in(&upstream, ServerSpec::Issuer(name)).await;
        let refused =
            matches!(login, Err(DiscoverError::Unfit(why)) if why.contains("other hosts"));
        assert!(refused, "{login:?}");
    }

    #[test]
    fn an_issuer_stands_behind_what_its_origin_says_and_behind_what_leads_there() {
        let at = |text: &str| Address::discovered(text).unwrap();
        let issuer = at("https://login.example");
        let own = metadata(|text| text).unwrap();
        let foreign = |edit: fn(&mut Server, Address)| {
            let mut server = own.clone();
            edit(&mut server, at("https://mcp.example/x"));
            server
        };
        let elsewhere = at("https://mcp.example/tenant");
        assert!(vouched_for(&issuer, &elsewhere, &own));
        for server in [
            foreign(|server, to| server.authorize = to),
            foreign(|server, to| server.token = to),
            foreign(|server, to| server.register = Some(to)),
            foreign(|server, to| server.revoke = Some(to)),
        ] {
            assert!(!vouched_for(&issuer, &elsewhere, &server), "{server:?}");
            assert!(vouched_for(
                &issuer,
                &at("https://login.example/t"),
                &server
            ));
        }
    }

    #[test]
    fn documents_are_looked_for_in_the_order_of_the_specification() {
        let of = |url: &str| {
            let places = places(&Address::configured(url, false).unwrap()).unwrap();
            let places: Vec<_> = places.iter().map(ToString::to_string).collect();
            places
        };
        const PLACE: &str = "https://mcp.example/.well-known/oauth-protected-resource";
        assert_eq!(of("https://mcp.example"), [PLACE]);
        assert_eq!(
            of("https://mcp.example/a/mcp/"),
            [&format!("{PLACE}/a/mcp"), PLACE]
        );
    }

    /// What stands before a server often answers for all addresses, whatever is behind it.
    #[tokio::test]
    async fn a_place_that_has_no_metadata_is_passed_by_whatever_it_says_instead() {
        let page = "<!doctype html>".repeat(8 << 10);
        for (status, found) in [
            (200, true),
            (302, true),
            (404, true),
            (403, true),
            (503, false),
        ] {
            let page = if status == 200 {
                page.clone()
            } else {
                String::new()
            };
            let front = Answering::by(move |request| {
                let root = request.starts_with("GET /.well-known/oauth-protected-resource HTTP");
                if root {
                    ok(r#"{"resource":"r"}"#)
                } else {
                    answer(status, &page)
                }
            })
            .await;
            let upstream = format!("http://{}/mcp", front.at);
            let upstream = Address::configured(&upstream, true).unwrap();
            let fetcher = Fetcher::new(None).unwrap();
            let document = first(places(&upstream).unwrap(), &fetcher).await;
            assert_eq!(document.is_ok_and(|it| it.is_some()), found, "{status}");
        }
    }

    /// Its challenge, its metadata, and that of the server at the same origin.
    #[tokio::test]
    async fn an_upstream_with_tls_of_its_own_is_asked_with_that() {
        let (upstream, tls) = Answering::for_one(|request| {
            let host = request
                .lines()
                .find_map(|line| line.strip_prefix("host: "))
                .unwrap_or_default();
            let at = format!("https://{host}");
            if request.starts_with("POST /mcp ") {
                let told = format!(r#"Bearer resource_metadata="{at}/about""#);
                format!("HTTP/1.1 401 X\r\nwww-authenticate: {told}\r\ncontent-length: 0\r\n\r\n")
                    .into()
            } else if request.starts_with("GET /about ") {
                ok(&format!(
                    r#"{{"resource":"{at}/mcp","authorization_servers":["{at}"]}}"#
                ))
            } else if request.starts_with("GET /.well-known/oauth-authorization-server ") {
                ok(&format!(
                    r#"{{"issuer":"{at}","authorization_endpoint":"{at}/a","token_endpoint":"{at}/t","code_challenge_methods_supported":["S256"]}}"#
                ))
            } else {
                answer(404, "")
            }
        })
        .await;
        let id = UpstreamId::parse("u").unwrap();
        let account = |tls: TlsSpec| AccountSpec {
            address: format!("https://localhost:{}/mcp", upstream.at.port()),
            tls,
            resource: None,
            server: ServerSpec::Discovered,
            client: ClientSpec::Registered(Registration::Auto),
            scopes: None,
        };
        for (tls, reached) in [(tls, true), (TlsSpec::default(), false)] {
            let spec = ConnectSpec {
                accounts: [(id.clone(), account(tls))].into(),
                ..ConnectSpec::default()
            };
            let fetcher = Fetcher::new(None).unwrap();
            let connections = Connections::open(spec, fetcher, &Tasks::new()).unwrap();
            let login = connections.login(&id).await;
            assert_eq!(login.is_ok(), reached, "{login:?}");
            assert_eq!(upstream.seen().len(), 3);
        }
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
