//! The app: a plan becomes upstreams, a world, a stack and listeners; and their orderly end.

mod admin;
mod audit;
mod certificates;
mod content;
mod fleet;
mod gauges;
mod govern;
mod memory;
mod paths;
mod pins;
mod publisher;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, future::join_all};
use hashbrown::HashMap;
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::{Admin, Phase, Readiness},
    audit::{
        Auditor,
        home::{Home, HomeError},
        journal::Journal,
    },
    auth::Outline,
    call::Identity,
    catalog::{Contribution, Namespace, Position},
    config::Plan,
    connect::{Connections, OpenError},
    downstream::{
        Accepts, Answer, Backing, Door, DrainDeadline, Inbound, Named, Sessions, Starting,
        serve_stdio, stdio_unread,
    },
    events::Hub,
    feed::Feed,
    fetch::Fetcher,
    findings::Findings,
    json::{Edits, Json, Limits},
    jsonrpc::{Frame, Message, RequestId, RpcError, decode, encode},
    limits::{LimitRules, RuleStatus},
    memory::process,
    pins::{Ledger, StoreError},
    policy,
    protocol::{Revision, UpstreamId, codes, meta, methods::ListKind, names::Scope},
    sanitize::{Sanitizer, Scrubber},
    seal::Sealer,
    server::{
        Server,
        guard::{Gatekeeper, GuardError},
    },
    snapshot::{Snapshot, World},
    spans::Spans,
    stack,
    tasks::{PerLaneArc, Tasks},
    telemetry::Telemetry,
    upstream::{Sink, Upstream, spec::UpstreamSpec},
};

pub use admin::{AdminAt, Load};
pub use content::credentials;
pub use fleet::UpstreamStatus;
pub use govern::{failing_cases, unfit_policies};

use admin::Controls;
use fleet::{Fleet, follow};
use govern::Governor;
use publisher::Publisher;

/// The most time an answer may take.
const DEADLINE: Duration = Duration::from_secs(300);
/// How long what serves has to end, once all is answered, where the end does not wait.
const HASTE: Duration = Duration::from_secs(1);

/// A running gateway. A cheap handle.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
}

struct Shared {
    plan: Plan,
    tasks: Tasks,
    world: Arc<World>,
    fleet: Arc<Fleet>,
    door: Arc<Door>,
    /// Certificates of our own: they are those of the start for as long as this runs.
    certificates: Vec<(String, Outline)>,
    /// Cancelled when the end is not to wait for anybody.
    hurry: CancellationToken,
    guards: Option<Arc<Gatekeeper>>,
    controls: Arc<Controls>,
    ledger: Arc<Ledger>,
    feed: Feed,
    readiness: Readiness,
    connections: Option<Connections>,
    findings: Findings,
    hub: Arc<Hub>,
    auditor: Option<Auditor>,
    telemetry: Option<Telemetry>,
    // Holds the listener from `bind` to `shutdown`; touched at start and end only.
    server: std::sync::Mutex<Option<Server>>,
    /// The same for operators.
    admin: std::sync::Mutex<Option<Admin>>,
    /// The log of calls, until the end.
    recording: std::sync::Mutex<Option<Home>>,
}

/// Why a gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// Connections of people to upstreams cannot be used.
    #[error(transparent)]
    Connections(#[from] OpenError),
    /// What was approved of definitions cannot be used.
    #[error("state.dir: {0}")]
    Pins(#[from] StoreError),
    /// The listener could not be bound.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The listener for operators could not be bound.
    #[error("cannot listen on {address} for operators, see `admin.address`: {cause}")]
    BindAdmin {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Calls cannot be recorded.
    #[error("audit: {0}")]
    Audit(#[from] HomeError),
    /// What authentication needs cannot be used.
    #[error("auth: {0}")]
    Auth(#[from] GuardError),
}

/// Starts everything upstream, which publishes what it offers into `world`.
fn start_upstreams(
    plan: &Plan,
    world: &Arc<World>,
    connections: Option<&Connections>,
    tasks: &Tasks,
) -> Arc<Fleet> {
    let publisher = Publisher::new(
        world.clone(),
        connections.map(|all| (all.clone(), tasks.child())),
    );
    for id in plan.connect.accounts.keys() {
        let not_tried = Contribution {
            awaited: true,
            ..Contribution::default()
        };
        publisher.publish(id, not_tried);
    }
    let sink: Arc<dyn Sink> = Arc::new(publisher);
    let start = |spec: &UpstreamSpec| {
        let (bounds, interest) = (plan.catalog.bounds, world.hub().interest(&spec.id));
        let (spec_of, sink, connections) = (spec.clone(), sink.clone(), connections.cloned());
        let upstream =
            Upstream::start_connected(spec_of, bounds, sink, interest, connections, tasks);
        (spec.id.clone(), upstream)
    };
    let all: HashMap<_, _> = plan.upstreams.iter().map(start).collect();
    let own = all.values().filter(|it| it.offers_each_their_own());
    let own: Vec<_> = own.cloned().collect();
    if !own.is_empty() {
        world.expect_own();
    }
    let gets_tokens = all.values().any(|it| it.gets_tokens());
    Arc::new(Fleet {
        all,
        own,
        gets_tokens,
    })
}

impl App {
    /// Builds everything and begins to connect to the upstreams; listens nowhere yet.
    ///
    /// # Errors
    /// [`AppError::Audit`], [`AppError::Auth`], [`AppError::Connections`], [`AppError::Pins`]. Everything else that can be
    /// wrong was reported when the plan was made.
    pub async fn build(plan: Plan, tasks: Tasks) -> Result<Self, AppError> {
        Self::observed(plan, None, tasks).await
    }

    /// Like [`App::build`], but watched by `telemetry`, which ends when the gateway ends.
    ///
    /// # Errors
    /// As [`App::build`].
    #[expect(clippy::unused_async, reason = "needs a runtime, and says so")]
    pub async fn observed(
        plan: Plan,
        telemetry: Option<Telemetry>,
        tasks: Tasks,
    ) -> Result<Self, AppError> {
        process().set(plan.memory.unwrap_or_else(memory::budget));
        let findings = Findings::new();
        let sanitizer = content::sanitizer(&plan, findings.clone());
        findings.scrub(Arc::new(Scrubber::of(&sanitizer)));
        // Before anything happens, so that nothing is left out.
        let recording = audit::open(&plan, &sanitizer, &tasks)?;
        let auditor = recording.as_ref().map(|home| home.auditor.clone());
        let journal = recording.as_ref().map(|home| home.journal.clone());
        let journal = journal.unwrap_or_default();
        let hub = Hub::new(plan.listens);
        audit::note_definitions(&findings, &journal);
        let (policy, problems) = govern::first(&plan);
        let ledger = Arc::new(Ledger::open(&plan.pins, findings.clone())?);
        let world = first_world(&plan, &policy, &sanitizer, &hub, &ledger, &findings);
        pins::start(ledger.clone(), world.clone(), journal.clone(), &tasks);
        let unguided = match &plan.policy {
            None => problems.clone(),
            Some(_) => Vec::new(),
        };
        let governor = plan.policy.clone().map(|policy| {
            Governor::start(policy, problems, world.clone(), journal.clone(), &tasks)
        });
        let connections = connections(&plan, &tasks)?;
        let fleet = start_upstreams(&plan, &world, connections.as_ref(), &tasks);
        let feed = Feed::new();
        let parts = stack::Parts {
            auditor: auditor.clone(),
            feed: feed.clone(),
            spans: telemetry
                .as_ref()
                .map_or_else(Spans::none, |telemetry| telemetry.spans().clone()),
            world: world.clone(),
            sealer: Arc::new(sealer(&plan)),
            upstreams: fleet.clone(),
            connections: connections.clone(),
            sanitizer: sanitizer.clone(),
            findings: findings.clone(),
            closing: CancellationToken::new(),
            asking: plan.asking,
        };
        let observed = auditor.is_some() || telemetry.is_some();
        let starting = fleet::starting(&fleet, &tasks);
        let door = door(&plan, &parts, (observed, starting), &hub, &journal, &tasks);
        let door = Arc::new(door);
        if let Some(connections) = &connections {
            tasks.spawn(follow(connections.clone(), fleet.clone()));
        }
        let guards = plan.auth.clone();
        let guards = guards
            .map(|spec| Gatekeeper::noting(spec, journal.clone(), &tasks))
            .transpose()?;
        let controls = Controls::new(
            &plan,
            world.clone(),
            governor,
            unguided,
            journal,
            auditor.clone(),
        );
        let server = std::sync::Mutex::new(None);
        let shared = Arc::new(Shared {
            certificates: plan.certificates(),
            plan,
            tasks,
            world,
            fleet,
            door,
            hurry: CancellationToken::new(),
            guards,
            controls,
            ledger,
            feed,
            readiness: Readiness::default(),
            connections,
            findings,
            hub,
            auditor,
            telemetry,
            server,
            admin: std::sync::Mutex::new(None),
            recording: std::sync::Mutex::new(recording),
        });
        if let Some(telemetry) = &shared.telemetry {
            gauges::observe(&shared, &telemetry.meter());
        }
        Ok(Self { shared })
    }

    /// What watches it, where anything does.
    pub fn telemetry(&self) -> Option<&Telemetry> {
        self.shared.telemetry.as_ref()
    }

    /// Begins to listen; says where.
    ///
    /// # Errors
    /// When the address cannot be bound.
    #[expect(clippy::unused_async, reason = "needs a runtime, and says so")]
    pub async fn bind(&self) -> Result<SocketAddr, AppError> {
        certificates::watch(&self.shared.certificates, &self.shared.tasks);
        // Operators come in first: whoever waits for readiness is told that it is not there yet.
        self.bind_admin()?;
        let plan = &self.shared.plan;
        let spec = plan.listen.clone();
        let address = spec.address;
        let server = Server::bind(spec, Arc::new(self.paths()), &self.shared.tasks)
            .map_err(|cause| AppError::Bind { address, cause })?;
        let address = server.address();
        if let Some(connections) = &self.shared.connections {
            connections.reached_at(own_url(address, plan.listen.tls.is_some()));
        }
        *self
            .shared
            .server
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(server);
        self.shared.readiness.set(Phase::Serving);
        Ok(address)
    }

    /// Speaks MCP on standard input and output until the input ends.
    ///
    /// # Errors
    /// When a pipe breaks.
    pub async fn stdio(&self) -> io::Result<()> {
        certificates::watch(&self.shared.certificates, &self.shared.tasks);
        serve_stdio(
            self.shared.door.clone(),
            tokio::io::stdin(),
            tokio::io::stdout(),
            stdio_unread(io::stdout()),
        )
        .await
    }

    /// Waits until every upstream was reached once or failed once, at most this long; then says how each is.
    pub async fn settled(&self, deadline: Duration) -> Vec<UpstreamStatus> {
        self.shared.fleet.settled(|_| true, deadline).await;
        // Whoever has not settled by then is told as it is.
        self.statuses()
    }

    /// Waits until those upstreams were that could offer something under this outward name or URI, by how it is spelled.
    pub async fn settled_for(&self, kind: ListKind, outward: &str, deadline: Duration) {
        let rules = &self.shared.plan.catalog;
        let could = |id: &UpstreamId| {
            let mut own = rules.upstreams.iter().filter(|own| own.upstream == *id);
            own.any(|own| Namespace::new(own.prefix.clone(), rules.names).could_hold(kind, outward))
        };
        self.shared.fleet.settled(could, deadline).await;
    }

    /// The world as calls see it that begin now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.world.load()
    }

    /// What was found in content and definitions.
    pub fn findings(&self) -> &Findings {
        &self.shared.findings
    }

    /// Everything the main endpoint lists of one kind, as clients of the newest revision see it.
    pub fn catalog(&self, kind: ListKind) -> Vec<Json> {
        let snapshot = self.shared.world.load();
        let mut items = Vec::new();
        let mut next = Some(Position::start());
        while let Some(after) = next.take() {
            let Some(page) =
                snapshot
                    .catalog
                    .page(&Scope::All, kind, Revision::LATEST_MODERN, &after)
            else {
                break;
            };
            if let Ok(array) = Json::parse(page.items.value(), &Limits::KNOWN) {
                items.extend(array.root().elements().map(|node| array.slice(node)));
            }
            next = page.next;
        }
        items
    }

    /// One request through the whole stack, as a modern client on this machine would send it.
    ///
    /// # Errors
    /// The JSON-RPC error of the answer.
    pub async fn request(&self, method: &str, params: Json) -> Result<Json, RpcError> {
        self.request_as(Identity::anonymous(), method, params).await
    }

    /// The same, as somebody would send it who proved to be this.
    ///
    /// # Errors
    /// The JSON-RPC error of the answer.
    pub async fn request_as(
        &self,
        who: Arc<Identity>,
        method: &str,
        params: Json,
    ) -> Result<Json, RpcError> {
        let own = [
            (
                meta::PROTOCOL_VERSION,
                Json::string(Revision::LATEST_MODERN.as_str()),
            ),
            (meta::CLIENT_CAPABILITIES, Json::empty_object()),
        ];
        let mut edits = Edits::new();
        meta::rewrite(&mut edits, params.root(), &own);
        let body = encode::request(&RequestId::minted(1), method, &params.splice(&edits));
        let inbound = Inbound {
            body,
            headers: None,
            named: Named::Nothing,
            accepts: Accepts::BOTH,
            identity: who,
            address: None,
            proxy: None,
            scope: Scope::All,
            session: None,
        };
        let segments = match self.shared.door.accept(inbound).await {
            Answer::Accepted => Vec::new(),
            Answer::Frame(told) => told.segments,
            Answer::Stream(frames) => {
                frames
                    .fold(Vec::new(), |_, last| std::future::ready(last))
                    .await
            }
        };
        match decode(Bytes::from(segments.concat()), &Limits::KNOWN) {
            Ok(Message::One(Frame::Response(response))) => response.body,
            _ => Err(RpcError::new(codes::INTERNAL_ERROR, "no answer")),
        }
    }

    /// Reads the policies again, as a change of their directory does by itself; says what of those in force does not fit what is
    /// offered, which is not of their making.
    ///
    /// # Errors
    /// Everything that is wrong with them; then those before stay in force.
    pub async fn reload_policies(&self) -> Result<Vec<policy::Problem>, Vec<policy::Problem>> {
        self.shared.controls.reload_policies().await
    }

    /// What is wrong with the policies that were read last, what of those in force does not fit what is offered now, or that there
    /// are none and callers are asked who they are; nothing when nobody is asked anything (SECURITY AUTHZ-1).
    pub fn policy_problems(&self) -> Vec<policy::Problem> {
        self.shared.controls.policy_problems()
    }

    /// The digest of the policies in force; empty where none are.
    pub fn policy_digest(&self) -> String {
        let snapshot = self.shared.world.load();
        snapshot.policy().policy().digest().to_owned()
    }

    /// Puts other limits in force, for calls that begin from now on; meters of rules that stay count on.
    pub fn limit(&self, rules: LimitRules) {
        self.shared.world.limit(rules);
    }

    /// What each rule of the limits has let through and refused.
    pub fn limits(&self) -> Vec<RuleStatus> {
        self.shared.world.load().limits().status()
    }

    /// Begins to stop: listens end with a result, and [`App::stdio`] when what is in flight is answered.
    pub fn drain(&self) {
        self.draining();
        self.shared.door.closing.cancel();
    }

    /// There is no more time: what still runs is answered with that, on pipes at once.
    pub fn conclude(&self) {
        self.shared.door.backing.drain_deadline.tell();
    }

    /// Has [`App::shutdown`] wait for nothing: what is in flight is answered with that, as at the end of the drain, and whatever
    /// takes long to end is left behind. Says how many calls are in flight.
    pub fn hurry(&self) -> usize {
        let calls = self.shared.world.load().limits().in_flight();
        self.shared.hurry.cancel();
        calls
    }

    /// Until it was told to [`hurry`](App::hurry).
    pub async fn hurried(&self) {
        self.shared.hurry.cancelled().await;
    }

    /// Stops accepting, lets calls in flight end, answers those that take too long, closes upstreams, ends every task.
    pub async fn shutdown(self) {
        self.drain();
        let server = self
            .shared
            .server
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        if let Some(server) = server {
            let limit = self.shared.plan.listen.bounds.drain;
            let sooner = self.hurried();
            server
                .drain_telling(limit, sooner, || self.conclude())
                .await;
        }
        let ending = async {
            let all = self.shared.fleet.all.values();
            join_all(all.map(|upstream| upstream.close())).await;
            self.end_admin().await;
            self.shared.tasks.clone().finish().await;
        };
        let haste = async {
            self.hurried().await;
            tokio::time::sleep(HASTE).await;
        };
        tokio::select! {
            () = ending => {}
            () = haste => {
                // A call whose client is gone may go on where no connection tells of it: it ends with its record, and servers with
                // what runs them.
                self.conclude();
                drop(tokio::time::timeout(HASTE, self.shared.tasks.clone().finish()).await);
            }
        }
        // Last, so that nothing that happens is left out: what is not written yet is written, signed and synced now.
        let recording = self.shared.recording.lock();
        let recording = recording
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        let ledger = self.shared.ledger.clone();
        // It waits for the disk. It ends only with the runtime, and nothing comes after it.
        let closing = move || {
            audit::close(recording);
            ledger.end();
        };
        _ = tokio::task::spawn_blocking(closing).await;
        if let Some(telemetry) = &self.shared.telemetry {
            telemetry.shutdown().await;
        }
    }
}

/// The world before any upstream has said what it offers.
fn first_world(
    plan: &Plan,
    policy: &policy::Policy,
    sanitizer: &Arc<Sanitizer>,
    hub: &Arc<Hub>,
    ledger: &Arc<Ledger>,
    findings: &Findings,
) -> Arc<World> {
    let mut catalog = plan.catalog.clone();
    catalog.screen = content::screen(sanitizer);
    let world = World::under(policy, catalog, hub.clone()).pinned(ledger.clone(), findings.clone());
    world.limit(plan.limits.clone());
    Arc::new(world)
}

/// What seals state with the first key that is configured and opens it with each of them; with a key of this start where there
/// is none.
fn sealer(plan: &Plan) -> Sealer {
    let keys = plan.state_keys.iter();
    let mut sealers = keys.map(|key| Sealer::new(key.expose_secret().as_bytes()));
    let first = sealers.next().unwrap_or_else(Sealer::ephemeral);
    first.after(sealers)
}

/// What clients come in by, in front of a stack of these parts.
fn door(
    plan: &Plan,
    parts: &stack::Parts,
    (observed, starting): (bool, Starting),
    hub: &Hub,
    journal: &Journal,
    tasks: &Tasks,
) -> Door {
    Door {
        backing: PerLaneArc::from(Backing {
            service: stack::mcp(parts),
            tasks: tasks.child(),
            drain_deadline: DrainDeadline::default(),
        }),
        sessions: Sessions::new(plan.sessions, hub.pages().clone(), tasks),
        deadline: DEADLINE,
        closing: parts.closing.clone(),
        starting,
        observed,
        bounds: plan.messages,
        journal: journal.clone(),
    }
}

/// What people log in to, where there is anything.
fn connections(plan: &Plan, tasks: &Tasks) -> Result<Option<Connections>, AppError> {
    if plan.connect.accounts.is_empty() {
        return Ok(None);
    }
    let fetcher = Fetcher::new(plan.connect.ca.as_deref()).map_err(OpenError::from)?;
    let connections = Connections::open(plan.connect.clone(), fetcher, tasks)?;
    Ok(Some(connections))
}

/// Where a browser on this machine reaches the listener.
pub(crate) fn own_url(address: SocketAddr, encrypted: bool) -> String {
    let scheme = if encrypted { "https" } else { "http" };
    if address.ip().is_loopback() {
        format!("{scheme}://{address}")
    } else {
        format!("{scheme}://localhost:{}", address.port())
    }
}
