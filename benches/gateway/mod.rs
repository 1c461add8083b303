//! What the benches share: a gateway without sockets, in front of one upstream that is a function.
//!
//! Everything from a message's bytes to an answer's bytes is the gateway's own; what the listener, the peers and their
//! transports do is left out.
#![expect(clippy::expect_used, reason = "what is sent here is well-formed")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;
use usher::{
    call::{Call, Identity, Outcome, Reply, ServerCard},
    catalog::{
        Contribution, Listing,
        rules::{
            CatalogBounds, CatalogRules, NameRules, NamingRules, PageRules, Selection, Validation,
            ValidationRules,
        },
    },
    downstream::{
        Accepts, Answer, Backing, Door, FrameResponse, Inbound, Named, SessionBounds, Sessions,
    },
    events::{self, Hub},
    findings::Findings,
    json::{Json, Limits},
    protocol::{Revision, UpstreamId, names::Scope},
    sanitize::{OwnCredentials, Sanitizer, rules::Rules},
    seal::Sealer,
    snapshot::World,
    stack::{self, Error, Parts, Upstreams},
    stage::Passage,
    tasks::{PerLaneArc, Tasks},
};

/// A gateway in front of one upstream, `up`.
pub(crate) struct Gateway {
    door: Door,
}

/// Answers every call with the same result.
struct Answers(Json);

impl Upstreams for Answers {
    fn call(&self, _: Call, _: Passage) -> BoxFuture<'static, Result<Reply, Error>> {
        let result = self.0.clone();
        std::future::ready(Ok(Reply::Done(Outcome::Complete(result)))).boxed()
    }
}

impl Gateway {
    /// One whose upstream lists `tools` and answers every call with `result`. Needs a runtime.
    pub(crate) fn new(tools: impl Iterator<Item = String>, result: &str) -> Self {
        Self::validating(tools, result, Validation::default())
    }

    /// The same, whose calls are held to their schemas like this.
    pub(crate) fn validating(
        tools: impl Iterator<Item = String>,
        result: &str,
        validation: Validation,
    ) -> Self {
        let upstream = UpstreamId::parse("up").expect("a key");
        let world = Arc::new(World::new(
            rules(&upstream, validation),
            Hub::new(events::Bounds::default()),
        ));
        let tools: Vec<Json> = tools.map(json).collect();
        world.publish(&upstream, contribution(tools));
        let parts = Parts {
            world,
            sealer: Arc::new(Sealer::ephemeral()),
            upstreams: Arc::new(Answers(json(result.to_owned()))),
            connections: None,
            sanitizer: Arc::new(Sanitizer::standard(
                Rules::default(),
                Findings::new(),
                OwnCredentials::new(),
            )),
            findings: Default::default(),
            auditor: None,
            spans: Default::default(),
            asking: Default::default(),
            feed: Default::default(),
            closing: CancellationToken::new(),
        };
        let tasks = Tasks::new();
        Self {
            door: Door {
                journal: usher::audit::journal::Journal::off(),
                backing: PerLaneArc::from(Backing {
                    service: stack::mcp(&parts),
                    tasks: tasks.clone(),
                    drain_deadline: Default::default(),
                }),
                sessions: Sessions::new(SessionBounds::default(), Arc::default(), &tasks),
                deadline: Duration::from_secs(60),
                closing: CancellationToken::new(),
                starting: Default::default(),
                observed: false,
                bounds: Default::default(),
            },
        }
    }

    /// One message in, one message out.
    pub(crate) async fn ask(&self, headers: &HeaderMap, body: &Bytes) -> FrameResponse {
        let inbound = Inbound {
            body: body.clone(),
            named: Named::read(headers),
            headers: Some(headers.clone()),
            accepts: Accepts::BOTH,
            identity: Identity::anonymous(),
            address: None,
            proxy: None,
            scope: Scope::All,
            session: None,
        };
        match self.door.accept(inbound).await {
            Answer::Frame(told) => told,
            Answer::Accepted | Answer::Stream(_) => panic!("one message"),
        }
    }
}

/// The headers of a client of the stateless era.
pub(crate) fn stateless(method: &str, name: Option<&str>) -> HeaderMap {
    let mut all = vec![
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    all.extend(name.map(|name| ("mcp-name", name)));
    headers(&all)
}

/// These headers, and those that every client sends.
pub(crate) fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
    let accept = [("accept", "application/json, text/event-stream")];
    all.iter()
        .chain(&accept)
        .map(|(name, value)| {
            let value = HeaderValue::from_str(value).expect("a value");
            (HeaderName::from_static(name), value)
        })
        .collect()
}

/// What a client of the stateless era says of itself.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A tool of some 700 bytes, as real ones are.
pub(crate) fn tool(number: usize) -> String {
    let about = "Looks something up and says what it found. ".repeat(8);
    format!(
        r#"{{"name":"tool_{number}","title":"Tool {number}","description":"{about}","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"What to look for"}},"limit":{{"type":"integer","minimum":1,"maximum":100}},"exact":{{"type":"boolean"}}}},"required":["query"]}},"annotations":{{"readOnlyHint":true}}}}"#
    )
}

fn rules(upstream: &UpstreamId, all: Validation) -> CatalogRules {
    CatalogRules {
        upstreams: vec![NamingRules {
            upstream: upstream.clone(),
            prefix: upstream.as_str().into(),
            tools: Selection::default(),
            rename: Default::default(),
            describe: Default::default(),
            labels: Default::default(),
            claims: Default::default(),
            validation: ValidationRules {
                all,
                tools: Vec::new(),
            },
        }],
        toolsets: Vec::new(),
        names: NameRules::default(),
        pages: PageRules::default(),
        bounds: CatalogBounds::default(),
        screen: Default::default(),
    }
}

fn contribution(tools: Vec<Json>) -> Contribution {
    Contribution {
        card: Some(ServerCard {
            revision: Revision::LATEST_MODERN,
            capabilities: json(r#"{"tools":{}}"#.to_owned()),
            instructions: None,
            server_info: None,
            ttl_millis: 0,
        }),
        tools: Listing {
            items: tools.into(),
            ttl: None,
            public: false,
            truncated: false,
            endless: false,
        },
        ..Contribution::default()
    }
}

fn json(text: String) -> Json {
    Json::parse(text.into(), &Limits::LIST).expect("JSON")
}
