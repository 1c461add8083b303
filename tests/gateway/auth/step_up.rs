//! What the stack refuses for want of a scope leaves as `403` with its challenge, before any body, in both eras (PROTOCOL F5).

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tower::service_fn;
use usher::{
    call::{Call, Op, Outcome, Reply, ServerCard},
    downstream::{
        Backing, Door, DrainDeadline, EndpointParts, McpEndpoint, MessageBounds, SessionBounds,
        Sessions, Starting,
    },
    json::{Json, Limits},
    protocol::names::Scope,
    server::{
        Endpoint, Routes, Server,
        guard::Gatekeeper,
        spec::{ListenSpec, ServerBounds},
    },
    stack::{Error, McpService},
    tasks::{PerLaneArc, Tasks},
};

use super::challenge;
use crate::harness::{Authority, Client, RESOURCE, Revision};

struct One(HashMap<&'static str, Arc<dyn Endpoint>>);

impl Routes for One {
    fn find(&self, raw_path: &str) -> Option<&dyn Endpoint> {
        self.0.get(raw_path).map(|endpoint| &**endpoint)
    }
}

/// A stack that knows nothing but that calls of tools need two scopes.
async fn answer(call: Box<Call>) -> Result<Reply, Error> {
    if call.op != Op::Discover {
        assert!(call.address.is_some(), "where it came from is known");
        return Err(Error::InsufficientScope {
            scopes: Arc::new(["tools".into(), "admin".into()]),
        });
    }
    Ok(Reply::Done(Outcome::Card(ServerCard {
        revision: Revision::V2026_07_28,
        capabilities: Json::parse(r#"{"tools":{}}"#.into(), &Limits::CLIENT).unwrap(),
        instructions: None,
        server_info: None,
        ttl_millis: 0,
    })))
}

#[tokio::test]
async fn a_call_that_needs_more_scopes_is_403_and_names_all_of_them_in_every_revision() {
    let authority = Authority::start().await;
    let tasks = Tasks::new();
    let mut spec = authority.spec();
    spec.required_scopes = Arc::new(["mcp".into()]);
    let guards = Gatekeeper::start(spec, &tasks).unwrap();
    let door = Door {
        journal: usher::audit::journal::Journal::off(),
        backing: PerLaneArc::from(Backing {
            service: McpService::new(|| service_fn(answer)),
            tasks: tasks.clone(),
            drain_deadline: DrainDeadline::default(),
        }),
        sessions: Sessions::new(SessionBounds::default(), Arc::default(), &tasks),
        deadline: Duration::from_secs(60),
        closing: CancellationToken::new(),
        starting: Starting::default(),
        observed: false,
        bounds: MessageBounds::default(),
    };
    let endpoint = McpEndpoint::new(EndpointParts {
        door: Arc::new(door),
        scope: Scope::All,
        bounds: ServerBounds::default(),
        guard: guards.guard("/mcp", "/mcp"),
    });
    let listen = ListenSpec {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        hosts: Vec::new(),
        trusted_proxies: Vec::new(),
        tls: None,
        bounds: ServerBounds::default(),
    };
    let endpoint: Arc<dyn Endpoint> = Arc::new(endpoint);
    let routes = Arc::new(One(HashMap::from([("/mcp", endpoint)])));
    let server = Server::bind(listen, routes, &tasks).unwrap();
    let token = authority.token("ana", r#","scope":"mcp""#);
    let headers = [("authorization", format!("Bearer {token}"))];
    for revision in Revision::ALL {
        let client = Client::connect_with(server.address(), "/mcp", revision, "{}", &headers);
        let client = client.await.unwrap();
        let answer = client.call("t", "{}").meta(r#""progressToken":1"#).await;
        assert_eq!(answer.status, 403, "{revision}");
        assert_eq!(answer.refusal(), (-31009, "insufficient_scope".to_owned()));
        assert_eq!(
            challenge(&answer),
            format!(
                "Bearer error=\"insufficient_scope\", error_description=\"this needs a token with more scopes\", scope=\"mcp tools admin\", resource_metadata=\"{RESOURCE}/.well-known/oauth-protected-resource/mcp\""
            )
        );
    }
    tasks.stop();
}
