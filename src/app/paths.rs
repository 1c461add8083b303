//! Which endpoint is where: everything, each toolset and each upstream, in both transports; metadata and the connect page beside them.
//!
//! Guarantees: paths are exact, and every endpoint that speaks MCP has a guard of its own (SECURITY AUTHZ-8). What else is asked
//! for below the main one is answered `404` too, with words that its client can show.

use std::{net::IpAddr, sync::Arc};

use hashbrown::HashMap;

use super::App;
use crate::{
    audit::journal::{Journal, Sender},
    connect,
    downstream::{
        ConnectPage, ConnectPart, EndpointParts, EventsEndpoint, Lines, McpEndpoint,
        MessagesEndpoint, NoEndpoint,
    },
    protocol::names::Scope,
    server::{
        Endpoint, Routes,
        guard::{Guard, metadata_path},
        pages::ForPages,
    },
};

/// The endpoints, by exact path.
pub(super) struct Paths {
    all: HashMap<String, Arc<dyn Endpoint>>,
    /// What the paths of toolsets and servers begin with, and what answers where there is none of that name.
    below: String,
    nowhere: Arc<dyn Endpoint>,
    journal: Journal,
}

impl App {
    /// Every endpoint of this gateway.
    pub(super) fn paths(&self) -> Paths {
        let plan = &self.shared.plan;
        let toolsets = plan.catalog.toolsets.iter().map(|toolset| {
            let scope = Scope::Toolset(toolset.name.clone());
            (format!("/{}", toolset.name), scope)
        });
        let upstreams = plan.upstreams.iter().map(|upstream| {
            let scope = Scope::Upstream(upstream.id.clone());
            (format!("/u/{}", upstream.id), scope)
        });
        let all = std::iter::once((String::new(), Scope::All));
        let lines = Arc::default();
        let mut paths = HashMap::new();
        for (below, scope) in all.chain(toolsets).chain(upstreams) {
            let base = match below.as_str() {
                "" => plan.endpoint.as_str(),
                _ => plan.endpoint.trim_end_matches('/'),
            };
            let path = format!("{base}{below}");
            if plan.legacy_sse {
                self.two_endpoints(&mut paths, &below, &scope, &lines);
            }
            let guard = self.guard(&mut paths, &path);
            let endpoint = McpEndpoint::new(EndpointParts {
                door: self.shared.door.clone(),
                scope,
                bounds: plan.listen.bounds,
                guard,
            });
            paths.insert(path, Arc::new(ForPages(endpoint)) as Arc<dyn Endpoint>);
        }
        if let Some(connections) = &self.shared.connections {
            for (path, part) in [
                (connect::PATH, ConnectPart::Start),
                (connect::CALLBACK, ConnectPart::Callback),
                (connect::DOCUMENT, ConnectPart::Document),
            ] {
                let page = ConnectPage {
                    connections: connections.clone(),
                    bounds: plan.listen.bounds,
                    closing: self.shared.door.closing.clone(),
                    part,
                };
                paths.insert(path.to_owned(), Arc::new(page));
            }
        }
        Paths {
            all: paths,
            below: format!("{}/", plan.endpoint.trim_end_matches('/')),
            nowhere: Arc::new(ForPages(NoEndpoint {
                door: self.shared.door.clone(),
            })),
            journal: self.shared.door.journal.clone(),
        }
    }

    /// The guard of the endpoint at `path`; where to sign in is told beside it.
    fn guard(&self, paths: &mut HashMap<String, Arc<dyn Endpoint>>, path: &str) -> Guard {
        let Some(guards) = &self.shared.guards else {
            return Guard::absent();
        };
        let main = &self.shared.plan.endpoint;
        if let Some(metadata) = guards.metadata(path) {
            let metadata: Arc<dyn Endpoint> = Arc::new(ForPages(metadata));
            // At the root too, for clients that look only there (PROTOCOL F4).
            if path == main {
                paths.insert(metadata_path(""), metadata.clone());
            }
            paths.insert(metadata_path(path), metadata);
        }
        guards.guard(path, main)
    }

    /// The endpoints of 2024-11-05 for one scope.
    fn two_endpoints(
        &self,
        paths: &mut HashMap<String, Arc<dyn Endpoint>>,
        below: &str,
        scope: &Scope,
        lines: &Arc<Lines>,
    ) {
        let (path, messages) = (format!("/sse{below}"), format!("/messages{below}"));
        let guard = self.guard(paths, &path);
        let stream = EventsEndpoint {
            door: self.shared.door.clone(),
            scope: scope.clone(),
            lines: lines.clone(),
            messages: messages.clone(),
            guard: guard.clone(),
        };
        paths.insert(path, Arc::new(ForPages(stream)));
        let posts = MessagesEndpoint {
            door: self.shared.door.clone(),
            scope: scope.clone(),
            lines: lines.clone(),
            bounds: self.shared.plan.listen.bounds,
            guard,
        };
        paths.insert(messages, Arc::new(ForPages(posts)));
    }
}

impl Routes for Paths {
    fn find(&self, raw_path: &str) -> Option<&dyn Endpoint> {
        let found = self.all.get(raw_path);
        let nowhere = || raw_path.starts_with(&self.below).then_some(&self.nowhere);
        found.or_else(nowhere).map(|endpoint| &**endpoint)
    }

    fn turned_away(&self, address: IpAddr, reason: &'static str) {
        let sender = Sender::at(Some(address));
        self.journal.turned_away(sender, reason, None);
    }
}
