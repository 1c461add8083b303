//! What an upstream offers while nobody has logged in to it and nothing is known of it: one tool that leads to the login.
//!
//! Without it there would be nothing that a client could call, and so no way to log in. As soon as somebody has, the upstream is
//! read with their connection, and what it offers takes the place of this for them alone; the login stays beside it for a little,
//! since they are just calling it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::Connections;
use crate::{
    call::{Grantee, Principal, ServerCard},
    catalog::{Contribution, Listing, Login},
    json::{Json, Node},
    protocol::{Revision, UpstreamId, meta},
};

/// The tool's own name; the upstream's prefix comes before it.
pub(super) const LOGIN: &str = "login";
/// How long it stays once there is something else: a client that was asked calls again within that time.
const LINGER: Duration = Duration::from_secs(120);

/// What stands in for one upstream.
#[derive(Debug, Default)]
// Held for a few reads and writes, never across an await.
pub(super) struct StandIn(Mutex<Standing>);

#[derive(Debug, Default)]
struct Standing {
    /// Nothing is known of the upstream.
    alone: bool,
    /// Somebody has called the login meanwhile.
    called: bool,
    /// Until when the login stays beside what is known.
    until: Option<Instant>,
    /// What is known.
    known: Contribution,
    /// Who has called the login while it stood alone.
    callers: HashSet<Principal>,
    /// Beside whose own it stays, until when, and what that is.
    beside: HashMap<Grantee, (Instant, Contribution)>,
}

/// The most callers that are remembered; beyond them all are forgotten, and find the login gone a little early.
const CALLERS: usize = 1_000;

impl StandIn {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connections {
    /// What `upstream` offers, given what is known of it: the login, where that is nothing and people log in to it. If it is to
    /// stay for a while, until when: then [`Connections::known`] is to be offered.
    pub fn stand_in(
        &self,
        upstream: &UpstreamId,
        known: Contribution,
    ) -> (Contribution, Option<Instant>) {
        let Some(stand_in) = self.shared.stand_ins.get(upstream) else {
            return (known, None);
        };
        let mut standing = stand_in.standing();
        standing.known = known.clone();
        let was_alone = std::mem::replace(&mut standing.alone, known.card.is_none());
        if standing.alone {
            let awaited = known.awaited;
            let alone = Contribution {
                awaited,
                ..alone(upstream)
            };
            return (alone, None);
        }
        let called = std::mem::take(&mut standing.called);
        let began = (was_alone && called).then(|| Instant::now() + LINGER);
        standing.until = began.or(standing.until);
        let lingers = standing.until.is_some_and(|until| until > Instant::now());
        if !lingers || has_login(&known) {
            standing.until = None;
            return (known, None);
        }
        (with_login(upstream, known), began)
    }

    /// The same for what `upstream` offers to one principal alone: the login stays beside it for a while if they have just
    /// called it. Then, [`Connections::take_own`] is to be offered.
    pub fn stand_in_for(
        &self,
        upstream: &UpstreamId,
        who: &Grantee,
        own: Contribution,
    ) -> (Contribution, Option<Instant>) {
        let Some(stand_in) = self.shared.stand_ins.get(upstream) else {
            return (own, None);
        };
        let mut standing = stand_in.standing();
        let now = Instant::now();
        standing.beside.retain(|_, (until, _)| *until > now);
        let called = standing.callers.remove(&who.principal);
        let lingering = standing.beside.get(who).map(|(until, _)| *until);
        if has_login(&own) || !called && lingering.is_none() {
            standing.beside.remove(who);
            return (own, None);
        }
        let until = lingering.unwrap_or(now + LINGER);
        standing.beside.insert(who.clone(), (until, own.clone()));
        let timed = lingering.is_none().then_some(until);
        (with_login(upstream, own), timed)
    }

    /// Takes away the login that stays beside what `upstream` offers to one principal alone: what that is, to be offered with
    /// nothing beside it; `None` where none stays.
    pub fn take_own(&self, upstream: &UpstreamId, who: &Grantee) -> Option<Contribution> {
        let mut standing = self.shared.stand_ins.get(upstream)?.standing();
        standing.beside.remove(who).map(|(_, own)| own)
    }

    /// What is known of `upstream` and nothing beside it, from now on; `None` where that is nothing.
    pub fn known(&self, upstream: &UpstreamId) -> Option<Contribution> {
        let mut standing = self.shared.stand_ins.get(upstream)?.standing();
        standing.until = None;
        (!standing.alone).then(|| standing.known.clone())
    }

    /// Whether a call of this tool of `upstream` is one of the login that stands in, or stays, for what is not known; `own`
    /// says whether whoever calls sees what is offered to them alone.
    pub fn is_login(&self, upstream: &UpstreamId, local: &str, who: &Grantee, own: bool) -> bool {
        let stand_in = self.shared.stand_ins.get(upstream);
        local == LOGIN
            && stand_in.is_some_and(|stand_in| {
                let mut standing = stand_in.standing();
                if own {
                    return standing.beside.contains_key(who);
                }
                standing.called |= standing.alone;
                if standing.alone {
                    if standing.callers.len() >= CALLERS {
                        standing.callers.clear();
                    }
                    standing.callers.insert(who.principal.clone());
                }
                standing.alone || standing.until.is_some()
            })
    }
}

/// Whether the upstream has a tool of that name itself.
fn has_login(known: &Contribution) -> bool {
    let name = |tool: &Json| {
        let name = tool.root().member("name").and_then(Node::as_str);
        name.as_deref() == Some(LOGIN)
    };
    known.tools.items.iter().any(name)
}

/// What is known, and the login after it.
fn with_login(upstream: &UpstreamId, known: Contribution) -> Contribution {
    let items = known.tools.items.iter().cloned();
    let tools = Listing {
        items: items.chain([tool(upstream)]).collect(),
        ..known.tools.clone()
    };
    Contribution {
        tools,
        login: Login::Beside,
        ..known
    }
}

fn alone(upstream: &UpstreamId) -> Contribution {
    Contribution {
        card: Some(ServerCard {
            revision: Revision::LATEST_MODERN,
            capabilities: Json::literal(r#"{"tools":{"listChanged":true}}"#),
            instructions: None,
            server_info: None,
            ttl_millis: 0,
        }),
        tools: Listing {
            items: [tool(upstream)].into(),
            ..Listing::default()
        },
        login: Login::Alone,
        ..Contribution::default()
    }
}

fn tool(upstream: &UpstreamId) -> Json {
    let description = format!(
        "Logs the user in to {upstream}. Its other tools are listed once the user has logged in; call this first, and list tools again when it is done."
    );
    let schema = Json::literal(r#"{"type":"object","properties":{},"additionalProperties":false}"#);
    meta::object_of(&[
        ("name", Json::string(LOGIN)),
        ("title", Json::string(&format!("Log in to {upstream}"))),
        ("description", Json::string(&description)),
        ("inputSchema", schema),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        connect::spec::{AccountSpec, ClientSpec, ConnectSpec, ServerSpec},
        fetch::{Fetcher, TlsSpec},
        tasks::Tasks,
    };

    fn github() -> UpstreamId {
        UpstreamId::parse("github").unwrap()
    }

    fn connections() -> Connections {
        let account = AccountSpec {
            address: "https://mcp.example/mcp".into(),
            tls: TlsSpec::default(),
            resource: None,
            server: ServerSpec::Discovered,
            client: ClientSpec::Given {
                id: "c".into(),
                secret: None,
            },
            scopes: None,
        };
        let spec = ConnectSpec {
            accounts: [(github(), account)].into(),
            ..ConnectSpec::default()
        };
        Connections::open(spec, Fetcher::new(None).unwrap(), &Tasks::new()).unwrap()
    }

    fn offering(names: &[&str]) -> Contribution {
        let tools = names.iter().map(|name| {
            let name = Json::string(name);
            meta::object_of(&[("name", name)])
        });
        Contribution {
            tools: Listing {
                items: tools.collect(),
                ..Listing::default()
            },
            login: Login::None,
            ..alone(&github())
        }
    }

    fn ana() -> Grantee {
        crate::call::Identity::anonymous().grantee()
    }

    fn is_login(connections: &Connections, local: &str) -> bool {
        connections.is_login(&github(), local, &ana(), false)
    }

    #[tokio::test(start_paused = true)]
    async fn the_login_stays_for_a_while_beside_the_own_of_who_has_just_called_it() {
        let connections = connections();
        connections.stand_in(&github(), Contribution::default());
        let offer = |own| connections.stand_in_for(&github(), &ana(), own);
        let own_login = || connections.is_login(&github(), LOGIN, &ana(), true);
        let (own, until) = offer(offering(&["a"]));
        assert_eq!((names(&own), until), (vec!["a".to_owned()], None));
        assert!(!own_login());
        assert!(is_login(&connections, LOGIN));
        let (both, until) = offer(offering(&["a"]));
        assert_eq!(names(&both), ["a", LOGIN]);
        assert_eq!(until, Some(Instant::now() + LINGER));
        assert!(own_login());
        assert_eq!(offer(offering(&["a", "b"])).1, None, "timed once");
        tokio::time::advance(LINGER).await;
        let known = connections.take_own(&github(), &ana()).unwrap();
        assert_eq!(names(&known), ["a", "b"]);
        assert!(!own_login() && connections.take_own(&github(), &ana()).is_none());
        // A tool of their own of that name is theirs.
        assert!(is_login(&connections, LOGIN));
        assert_eq!(names(&offer(offering(&[LOGIN])).0), [LOGIN]);
        assert!(!own_login());
    }

    fn names(contribution: &Contribution) -> Vec<String> {
        let name = |tool: &Json| tool.root().member("name").unwrap().as_str().unwrap().into();
        contribution.tools.items.iter().map(name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_login_stands_alone_then_stays_for_a_while_and_comes_back_with_ignorance() {
        let connections = connections();
        let offer = |known| connections.stand_in(&github(), known);
        let (nothing, until) = offer(Contribution::default());
        assert_eq!((names(&nothing), until), (vec![LOGIN.to_owned()], None));
        assert!(connections.known(&github()).is_none());
        assert_eq!(names(&offer(offering(&["a"])).0), ["a"], "nobody calls it");
        offer(Contribution::default());
        assert!(is_login(&connections, LOGIN));
        let (both, until) = offer(offering(&["a"]));
        assert_eq!(names(&both), ["a", LOGIN]);
        assert_eq!(until, Some(Instant::now() + LINGER));
        let (more, again) = offer(offering(&["a", "b"]));
        assert_eq!((names(&more).len(), again), (3, None), "timed once");
        assert!(is_login(&connections, LOGIN) && !is_login(&connections, "a"));
        tokio::time::advance(LINGER).await;
        assert_eq!(names(&connections.known(&github()).unwrap()), ["a", "b"]);
        assert!(!is_login(&connections, LOGIN));
        assert_eq!(names(&offer(offering(&["a"])).0), ["a"]);
        assert_eq!(names(&offer(Contribution::default()).0), [LOGIN]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_holds_the_place_of_an_upstream_that_nobody_has_tried_yet_is_known_as_that() {
        let connections = connections();
        let not_tried = Contribution {
            awaited: true,
            ..Contribution::default()
        };
        let (first, _) = connections.stand_in(&github(), not_tried);
        assert_eq!(names(&first), [LOGIN]);
        let (tried, _) = connections.stand_in(&github(), Contribution::default());
        assert_eq!(names(&tried), [LOGIN]);
        assert!(first.awaited && !tried.awaited);
        // Else the second is not taken for news.
        assert!(!first.offers_the_same(&tried));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_of_the_upstreams_own_is_never_taken_for_the_login() {
        let connections = connections();
        connections.stand_in(&github(), Contribution::default());
        assert!(is_login(&connections, LOGIN));
        let (own, until) = connections.stand_in(&github(), offering(&["login"]));
        assert_eq!((names(&own).len(), until), (1, None));
        assert!(!is_login(&connections, LOGIN));
    }
}
