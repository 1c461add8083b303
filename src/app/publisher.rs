//! What upstreams offer, on its way into the world: beside it, or in its place, the login that leads to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::{
    call::Grantee, catalog::Contribution, connect::Connections, protocol::UpstreamId,
    snapshot::World, tasks::Tasks, upstream::Sink,
};

/// Takes what upstreams offer into the world; where nothing is known, the login that leads to it. Clones share everything.
#[derive(Clone)]
pub(super) struct Publisher {
    world: Arc<World>,
    logins: Option<Logins>,
}

/// The logins that are offered, where people log in to anything.
#[derive(Clone)]
struct Logins {
    connections: Connections,
    /// Takes each login away in its time.
    tasks: Tasks,
    /// Held from where it is known what is to be offered until it is in the world: else what is taken back in between would come
    /// again. Never across an await.
    turn: Arc<Mutex<()>>,
}

impl Logins {
    fn turn(&self) -> MutexGuard<'_, ()> {
        // It guards no data of its own, so poison says nothing.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publisher {
    pub(super) fn new(world: Arc<World>, connections: Option<(Connections, Tasks)>) -> Self {
        let logins = connections.map(|(connections, tasks)| Logins {
            connections,
            tasks,
            turn: Arc::default(),
        });
        Self { world, logins }
    }

    /// Takes away the login that stays beside what an upstream offers.
    fn end_login(&self, id: &UpstreamId) {
        let Some(logins) = &self.logins else { return };
        let _turn = logins.turn();
        if let Some(known) = logins.connections.known(id) {
            self.world.publish(id, known);
        }
    }

    /// Takes away the login that stays beside what an upstream offers to one principal alone.
    fn end_login_of(&self, who: &Grantee, id: &UpstreamId) {
        let Some(logins) = &self.logins else { return };
        let _turn = logins.turn();
        if let Some(known) = logins.connections.take_own(id, who) {
            self.world.publish_to(who, id, Some(known));
        }
    }
}

impl Sink for Publisher {
    fn publish(&self, id: &UpstreamId, contribution: Contribution) {
        let Some(logins) = &self.logins else {
            self.world.publish(id, contribution);
            return;
        };
        let _turn = logins.turn();
        let (contribution, until) = logins.connections.stand_in(id, contribution);
        self.world.publish(id, contribution);
        if let Some(until) = until {
            let (this, id) = (self.clone(), id.clone());
            logins.tasks.spawn(async move {
                tokio::time::sleep_until(until).await;
                this.end_login(&id);
            });
        }
    }

    fn confirm(&self, id: &UpstreamId, read_at: Instant) {
        self.world.confirm(id, read_at);
    }

    fn publish_to(&self, who: &Grantee, id: &UpstreamId, contribution: Option<Contribution>) {
        let Some(logins) = &self.logins else {
            self.world.publish_to(who, id, contribution);
            return;
        };
        let _turn = logins.turn();
        let Some(contribution) = contribution else {
            // Nor does it come again when the login would go.
            drop(logins.connections.take_own(id, who));
            self.world.publish_to(who, id, None);
            return;
        };
        let (contribution, until) = logins.connections.stand_in_for(id, who, contribution);
        self.world.publish_to(who, id, Some(contribution));
        if let Some(until) = until {
            let (this, who, id) = (self.clone(), who.clone(), id.clone());
            logins.tasks.spawn(async move {
                tokio::time::sleep_until(until).await;
                this.end_login_of(&who, &id);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, time::Duration};

    use super::*;
    use crate::{
        call::{Identity, IdentityKind, ServerCard},
        catalog::{
            Listing,
            rules::{CatalogRules, NamingRules},
        },
        connect::spec::{AccountSpec, ClientSpec, ConnectSpec, ServerSpec},
        events::{Bounds, Hub},
        fetch::{Fetcher, TlsSpec},
        findings::Findings,
        json::{Json, Limits},
        pins::{Ledger, Mode, PinsSpec},
        protocol::{Revision, methods::ListKind, names::Scope},
    };

    fn github() -> UpstreamId {
        UpstreamId::parse("github").unwrap()
    }

    fn user(name: &str) -> Identity {
        Identity::named(IdentityKind::User, name)
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
            let tasks = Tasks::new();
            let connections = Connections::open(spec, Fetcher::new(None).unwrap(), &tasks).unwrap();
            let publisher = Publisher::new(Arc::clone(&world), Some((connections.clone(), tasks)));
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

    #[tokio::test]
    async fn what_is_taken_back_while_the_login_goes_does_not_come_again() {
        let scene = Scene::new();
        let ana = user("ana");
        for round in 0..2_000 {
            scene.call_login(&ana);
            scene.publish_to(&ana, Some(offering("x")));
            let together = Barrier::new(2);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    together.wait();
                    scene.publisher.end_login_of(&ana.grantee(), &github());
                });
                together.wait();
                scene.publish_to(&ana, None);
            });
            assert!(!scene.leads(&ana, "github_x"), "round {round}");
        }
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
