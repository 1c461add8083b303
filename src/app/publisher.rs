//! What upstreams offer, on its way into the world: beside it, or in its place, the login that leads to it.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    call::Grantee, catalog::Contribution, connect::Connections, protocol::UpstreamId,
    snapshot::World, tasks::Tasks, upstream::Sink,
};

/// Takes what upstreams offer into the world; where nothing is known, the login that leads to it.
pub(super) struct Publisher(
    pub(super) Arc<World>,
    pub(super) Option<(Connections, Tasks)>,
);

impl Sink for Publisher {
    fn publish(&self, id: &UpstreamId, contribution: Contribution) {
        let Some((connections, tasks)) = &self.1 else {
            self.0.publish(id, contribution);
            return;
        };
        let (contribution, until) = connections.stand_in(id, contribution);
        self.0.publish(id, contribution);
        if let Some(until) = until {
            let (world, connections, id) = (self.0.clone(), connections.clone(), id.clone());
            tasks.spawn(async move {
                tokio::time::sleep_until(until).await;
                if let Some(known) = connections.known(&id) {
                    world.publish(&id, known);
                }
            });
        }
    }

    fn confirm(&self, id: &UpstreamId, read_at: Instant) {
        self.0.confirm(id, read_at);
    }

    fn publish_to(&self, who: &Grantee, id: &UpstreamId, contribution: Option<Contribution>) {
        let Some((connections, tasks)) = &self.1 else {
            self.0.publish_to(who, id, contribution);
            return;
        };
        let Some(contribution) = contribution else {
            // Nor does it come again when the login would go.
            drop(connections.take_own(id, who));
            self.0.publish_to(who, id, None);
            return;
        };
        let (contribution, until) = connections.stand_in_for(id, who, contribution);
        self.0.publish_to(who, id, Some(contribution));
        if let Some(until) = until {
            let (world, connections) = (self.0.clone(), connections.clone());
            let (who, id) = (who.clone(), id.clone());
            tasks.spawn(async move {
                tokio::time::sleep_until(until).await;
                if let Some(known) = connections.take_own(&id, &who) {
                    world.publish_to(&who, &id, Some(known));
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        call::{Identity, IdentityKind, Principal, ServerCard},
        catalog::{
            Listing,
            rules::{CatalogRules, NamingRules},
        },
        connect::spec::{AccountSpec, ClientSpec, ConnectSpec, ServerSpec},
        events::{Bounds, Hub},
        fetch::Fetcher,
        findings::Findings,
        json::{Json, Limits},
        pins::{Ledger, Mode, PinsSpec},
        protocol::{Revision, methods::ListKind, names::Scope},
    };

    fn github() -> UpstreamId {
        UpstreamId::parse("github").unwrap()
    }

    fn user(name: &str) -> Identity {
        Identity {
            principal: Principal::new(name),
            kind: IdentityKind::User,
            name: name.into(),
            issuer: None,
            groups: Default::default(),
            tenant: None,
            scopes: Default::default(),
            client: None,
            owner: None,
            until: None,
            revoked: Default::default(),
            key: None,
            assertion: None,
        }
    }

    fn offering(name: &str) -> Contribution {
        let tool = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        let tool = Json::parse(tool.into(), &Limits::LIST).unwrap();
        Contribution {
            card: Some(ServerCard {
                revision: Revision::LATEST_MODERN,
                capabilities: Json::literal(r#"{"tools":{}}"#),
                instructions: None,
                server_info: None,
                ttl_millis: 0,
            }),
            tools: Listing {
                items: [tool].into(),
                ..Listing::default()
            },
            read_at: Some(Instant::now()),
            ..Contribution::default()
        }
    }

    /// A gateway before a server that people log in to, and whose definitions are held to what was approved.
    struct Scene {
        world: Arc<World>,
        ledger: Arc<Ledger>,
        connections: Connections,
        publisher: Publisher,
    }

    impl Scene {
        fn new() -> Self {
            let spec = PinsSpec {
                modes: [(github(), Mode::Quarantine)].into(),
                directory: None,
            };
            let ledger = Arc::new(Ledger::open(&spec, Findings::new()).unwrap());
            let rules = CatalogRules {
                names: Default::default(),
                pages: Default::default(),
                bounds: Default::default(),
                screen: Default::default(),
                upstreams: vec![NamingRules {
                    upstream: github(),
                    prefix: "github".into(),
                    tools: Default::default(),
                    rename: Default::default(),
                    describe: Default::default(),
                    labels: Default::default(),
                    validation: Default::default(),
                    claims: Default::default(),
                }],
                toolsets: Vec::new(),
            };
            let world = World::new(rules, Hub::new(Bounds::default()));
            let world = Arc::new(world.pinned(Arc::clone(&ledger), Findings::new()));
            world.expect_own();
            let account = AccountSpec {
                address: "https://mcp.example/mcp".into(),
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
            let tasks = Tasks::new();
            let connections = Connections::open(spec, Fetcher::new(None).unwrap(), &tasks).unwrap();
            let publisher = Publisher(Arc::clone(&world), Some((connections.clone(), tasks)));
            publisher.publish(&github(), Contribution::default());
            Self {
                world,
                ledger,
                connections,
                publisher,
            }
        }

        fn publish_to(&self, who: &Identity, own: Option<Contribution>) {
            self.publisher.publish_to(&who.grantee(), &github(), own);
        }

        /// Somebody calls the login that stands alone.
        fn call_login(&self, who: &Identity) {
            let who = who.grantee();
            assert!(self.connections.is_login(&github(), "login", &who, false));
        }

        fn leads(&self, who: &Identity, name: &str) -> bool {
            let seen = self.world.seen_by(who);
            seen.catalog.tool(&Scope::All, name).is_some()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_login_is_offered_beside_what_is_pinned_and_is_not_pinned_itself() {
        let scene = Scene::new();
        let (ana, ben) = (user("ana"), user("ben"));
        assert!(scene.leads(&ana, "github_login"));
        scene.publish_to(&ana, Some(offering("x")));
        assert!(scene.leads(&ana, "github_x"));
        scene.call_login(&ben);
        scene.publish_to(&ben, Some(offering("x")));
        assert!(scene.leads(&ben, "github_x") && scene.leads(&ben, "github_login"));
        let pin = |name: &str| {
            let name = name.into();
            scene.ledger.state(&github(), ListKind::Tools, &name)
        };
        assert!(pin("x").is_some() && pin("login").is_none());
        // A tool of the server's of that name is.
        scene.publish_to(&ana, Some(offering("login")));
        assert!(pin("login").is_some() && !scene.leads(&ana, "github_login"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_back_does_not_come_again_when_the_login_goes() {
        let scene = Scene::new();
        let ana = user("ana");
        scene.call_login(&ana);
        scene.publish_to(&ana, Some(offering("x")));
        assert!(scene.leads(&ana, "github_x"));
        scene.publish_to(&ana, None);
        assert!(!scene.leads(&ana, "github_x"));
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(!scene.leads(&ana, "github_x") && scene.leads(&ana, "github_login"));
    }
}
