//! Apps: whose pages may reach what, behind one endpoint (PROTOCOL E, G16, H12).
//!
//! A host lets a page call the tools of the server that the page came from, and behind us all tools come from one server. A
//! request does not say which page issued it, so what can be decided is decided from what the endpoint serves:
//!
//! - **One upstream with apps.** Every page is that upstream's. Its pages call tools and read resources by the names their
//!   server gave them; these are taken for that upstream wherever they are no name of the endpoint's own, for tools that are
//!   listed here and open to apps.
//! - **Several.** Nobody can say whose page asks. Names of a server's own mean nothing, and tools that are for apps only are
//!   listed, because hosts want to see them, and refused when called.
//! - **An upstream's own endpoint** (`/mcp/u/NAME`) serves one upstream under its own names, so all of it works there.
//!
//! Where no other upstream has apps, a tool for apps only may be called: hosts keep models from it, and there is no foreign
//! page.

use std::{collections::HashMap, sync::Arc};

use super::{Route, check::Item, namespace, part::Part, view::ListView};
use crate::protocol::UpstreamId;

/// What apps have to do with one endpoint.
#[derive(Debug, Default)]
pub(super) struct Apps {
    /// Pages: read by hosts without being listed or selected.
    pages: HashMap<String, Route>,
    hosts: Hosts,
    /// By their own names: tools of the one upstream with apps.
    tools: HashMap<String, Route>,
    /// By their own URIs: resources and pages of the one upstream with apps.
    resources: HashMap<String, Route>,
}

/// Which upstreams have apps here.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Hosts {
    #[default]
    None,
    One(UpstreamId),
    Several,
}

impl Apps {
    /// What these tools and resources have to do with apps. Where names are an upstream's own, there is nothing to decide.
    pub(super) fn new(parts: &[Part], tools: &ListView, resources: &ListView) -> Self {
        let mut apps = Self {
            pages: pages(parts, tools),
            ..Self::default()
        };
        for item in tools.items().iter().filter(|item| item.app.is_some()) {
            let id = &item.route.upstream;
            apps.hosts = match apps.hosts {
                Hosts::None => Hosts::One(id.clone()),
                Hosts::One(one) if one == *id => Hosts::One(one),
                Hosts::One(_) | Hosts::Several => Hosts::Several,
            };
        }
        let Hosts::One(host) = &apps.hosts else {
            return apps;
        };
        // What reads as another's is that one's, listed or not (SECURITY CAT-1).
        let certain = |uri: &str| {
            let prefix = namespace::prefix_of(uri);
            !parts.iter().any(|part| {
                let theirs = part.namespace.prefix();
                part.id() != host && (theirs.is_empty() || Some(theirs) == prefix)
            })
        };
        let free = |name: &str| {
            !parts.iter().any(|part| {
                let rest = name.strip_prefix(part.namespace.prefix());
                let theirs = part.namespace.prefix().is_empty()
                    || rest.is_some_and(|rest| rest.starts_with('_'));
                part.id() != host && theirs
            })
        };
        let own = |item: &&Arc<Item>| item.route.upstream == *host;
        for item in tools.items().iter().filter(own) {
            if item.to_apps && free(&item.route.local) {
                let name = item.route.local.to_string();
                apps.tools.insert(name, item.route.clone());
            }
            if let Some(page) = item.app.as_deref().filter(|page| certain(page)) {
                let route = Route {
                    local: page.into(),
                    headers: Arc::new([]),
                    task_only: false,
                    terms: None,
                    ..item.route.clone()
                };
                apps.resources.insert(page.to_string(), route);
            }
        }
        let known = |item: &&Arc<Item>| own(item) && certain(&item.route.local);
        for item in resources.items().iter().filter(known) {
            let uri = item.route.local.to_string();
            apps.resources.insert(uri, item.route.clone());
        }
        apps
    }

    /// Where the page of an app is, by its outward address.
    pub(super) fn page(&self, uri: &str) -> Option<&Route> {
        self.pages.get(uri)
    }

    /// Whether a listed tool may be called by whoever asks.
    pub(super) fn admits(&self, item: &Item) -> bool {
        item.to_models
            || match &self.hosts {
                Hosts::None => true,
                Hosts::One(host) => *host == item.route.upstream,
                Hosts::Several => false,
            }
    }

    /// A tool by the name that its server's pages know, if that is certain.
    pub(super) fn tool(&self, name: &str) -> Option<&Route> {
        self.tools.get(name)
    }

    /// A resource by the URI that its server's pages know, if that is certain.
    pub(super) fn resource(&self, uri: &str) -> Option<&Route> {
        self.resources.get(uri)
    }
}

/// The pages of the apps of these tools. One that reads as another upstream's is not this one's to give.
fn pages(parts: &[Part], tools: &ListView) -> HashMap<String, Route> {
    let mut pages = HashMap::new();
    for item in tools.items() {
        let Some(app) = item.app.as_deref() else {
            continue;
        };
        let of = |part: &&Part| *part.id() == item.route.upstream;
        let Some(part) = parts.iter().find(of) else {
            continue;
        };
        let outward = part
            .namespace
            .outward_uri(app)
            .unwrap_or_else(|| app.to_owned());
        let prefix = namespace::prefix_of(&outward);
        let foreign = parts
            .iter()
            .any(|other| other.id() != part.id() && Some(other.namespace.prefix()) == prefix);
        if !foreign {
            pages
                .entry(outward)
                .or_insert_with(|| part.route(app.to_owned()));
        }
    }
    pages
}
