//! Protected resource metadata (RFC 9728): which authorization servers vouch for an endpoint.

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use crate::{
    auth::spec::AuthSpec,
    json::Json,
    protocol::meta,
    server::{
        Body, Endpoint, RemoteEnd,
        body::{empty, full},
    },
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Where the metadata of the endpoint at `path` is: the path is inserted (RFC 9728, 3.1).
pub fn path(path: &str) -> String {
    format!("{WELL_KNOWN}{}", path.trim_end_matches('/'))
}

/// Whether there is an authorization server to be told of.
pub(super) fn is_served(spec: &AuthSpec) -> bool {
    !spec.issuers.is_empty() || spec.introspection.is_some()
}

/// The document of one endpoint. Anybody may read it: it says where to sign in.
pub struct MetadataEndpoint(Bytes);

impl MetadataEndpoint {
    pub(super) fn new(spec: &AuthSpec, path: &str) -> Option<Self> {
        if !is_served(spec) {
            return None;
        }
        let own = spec.issuers.iter().map(|it| &it.issuer);
        let asked = spec.introspection.iter().map(|it| &it.issuer);
        let mut servers: Vec<&str> = Vec::new();
        for issuer in own.chain(asked) {
            if !servers.contains(&&**issuer) {
                servers.push(issuer);
            }
        }
        let list = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|text| Json::string(text)).collect();
            Json::array(&texts)
        };
        let scopes = spec.required_scopes.iter().chain(&spec.supported_scopes);
        let scopes: Vec<&str> = scopes.map(|it| &**it).collect();
        let mut members = vec![
            (
                "resource",
                Json::string(&format!("{}{path}", spec.resource)),
            ),
            ("authorization_servers", list(&servers)),
            ("bearer_methods_supported", list(&["header"])),
        ];
        if !scopes.is_empty() {
            members.push(("scopes_supported", list(&scopes)));
        }
        Some(Self(meta::object_of(&members).bytes().clone()))
    }
}

impl Endpoint for MetadataEndpoint {
    fn serve(
        &self,
        request: Request<Incoming>,
        _: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let answer = if request.method() == Method::GET {
            let mut answer = full(StatusCode::OK, "application/json", self.0.clone());
            let keep = HeaderValue::from_static("max-age=300");
            answer.headers_mut().insert(header::CACHE_CONTROL, keep);
            // Kept, it would else be shown to a page as it was given to who has no origin.
            let differs = HeaderValue::from_static("origin");
            answer.headers_mut().insert(header::VARY, differs);
            answer
        } else {
            let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
            let allow = HeaderValue::from_static("GET");
            answer.headers_mut().insert(header::ALLOW, allow);
            answer
        };
        std::future::ready(answer).boxed()
    }
}
