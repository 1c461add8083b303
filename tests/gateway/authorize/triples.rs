//! Lists equal calls: two principals, 500 policies, 5,000 tools, 10,000 random uses (SECURITY AUTHZ-6).
//!
//! Against the stack itself, with an upstream that answers everything: what gets through to it is what was permitted.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use usher::{
    call::{
        Affinity, Call, CallId, Caller, Identity, IdentityKind, Op, Outcome, Principal, Reply,
        ServerCard, Trail,
    },
    catalog::{
        Contribution, Listing,
        rules::{CatalogBounds, CatalogRules, NameRules, NamingRules, PageRules, Selection},
    },
    events::{Bounds, Hub},
    findings::Findings,
    json::{Json, Limits},
    policy::Policy,
    protocol::{ClientCapabilities, Revision, UpstreamId, methods::ListKind, names::Scope},
    sanitize::{OwnCredentials, Sanitizer, rules::Rules},
    seal::Sealer,
    snapshot::World,
    stack::{self, Error, McpService, Parts, Upstreams},
    stage::Passage,
};

const UPSTREAMS: usize = 20;
const TOOLS: usize = 250;
const POLICIES: usize = 500;
const USES: usize = 10_000;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    /// One of `0..end`.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*: even enough for picking cases.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % end
    }
}

/// Answers everything, and counts what it was asked.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Upstreams for Counting {
    fn call(&self, _: Call, _: Passage) -> BoxFuture<'static, Result<Reply, Error>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let result = json(r#"{"content":[]}"#.into());
        std::future::ready(Ok(Reply::Done(Outcome::Complete(result)))).boxed()
    }
}

fn json(text: String) -> Json {
    Json::parse(Bytes::from(text), &Limits::LIST).unwrap()
}

fn upstream(n: usize) -> UpstreamId {
    UpstreamId::parse(&format!("up{n}")).unwrap()
}

/// Policies of every sort that people write, about random items.
fn policies(random: &mut Dice) -> String {
    let mut text = String::new();
    for n in 0..POLICIES {
        let (who, up, tool) = (
            [
                "User::\"ana\"",
                "User::\"bob\"",
                "Group::\"dev\"",
                "Group::\"ops\"",
            ][random.below(4)],
            random.below(UPSTREAMS),
            random.below(TOOLS),
        );
        let by = if who.starts_with("User") { "==" } else { "in" };
        let effect = if n % 10 == 9 { "forbid" } else { "permit" };
        let call = r#"action == Action::"call""#;
        let scope = match n % 5 {
            0 => format!("resource in Upstream::\"up{up}\")"),
            1 | 2 => format!("resource == Tool::\"up{up}_t{tool}\")"),
            3 => format!(
                "resource is Tool in Upstream::\"up{up}\") when {{ resource.local like \"t{}*\" }}",
                tool % 25
            ),
            _ => format!("resource == Tool::\"up{up}_t{tool}\")"),
        };
        let when = match n % 4 {
            0 => " when { context.args has n && context.args.n < 50 }",
            1 => " when { context.args has repo && context.args.repo like \"acme/*\" }",
            _ => "",
        };
        // Whole upstreams are for groups of people that are not here, else everything would be seen.
        let unless = if n % 5 == 0 && n % 50 != 0 {
            " unless { principal.name == \"ana\" }"
        } else {
            ""
        };
        writeln!(
            text,
            "@id(\"p{n}\") {effect}(principal {by} {who}, {call}, {scope}{when}{unless};"
        )
        .unwrap();
    }
    text
}

fn world(random: &mut Dice) -> Arc<World> {
    let text = policies(random);
    let policy =
        Policy::of(&[("main.cedar", &text)]).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(policy.count(), POLICIES);
    let naming = |n: usize| NamingRules {
        upstream: upstream(n),
        prefix: format!("up{n}").into(),
        tools: Selection::default(),
        rename: BTreeMap::new(),
        describe: BTreeMap::new(),
        labels: Default::default(),
        validation: Default::default(),
        claims: Default::default(),
    };
    let rules = CatalogRules {
        upstreams: (0..UPSTREAMS).map(naming).collect(),
        toolsets: Vec::new(),
        names: NameRules::default(),
        pages: PageRules {
            items: 10_000,
            bytes: 16 << 20,
        },
        bounds: CatalogBounds::default(),
        screen: Default::default(),
    };
    let world = Arc::new(World::new(rules, Hub::new(Bounds::default())));
    for n in 0..UPSTREAMS {
        let tools = (0..TOOLS).map(|tool| json(format!(
            r#"{{"name":"t{tool}","inputSchema":{{"type":"object","properties":{{"n":{{"type":"integer"}},"repo":{{"type":"string"}}}}}}}}"#
        )));
        let card = ServerCard {
            revision: Revision::V2026_07_28,
            capabilities: json(r#"{"tools":{}}"#.into()),
            instructions: None,
            server_info: None,
            ttl_millis: 0,
        };
        let tools = Listing {
            items: tools.collect(),
            ..Listing::default()
        };
        world.publish(
            &upstream(n),
            Contribution {
                card: Some(card),
                tools,
                ..Contribution::default()
            },
        );
    }
    world
        .govern(&policy)
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    world
}

fn call(who: &Arc<Identity>, op: Op, params: String) -> Box<Call> {
    Box::new(Call {
        unasked: false,
        stake: None,
        id: CallId::new(),
        op,
        params: json(params),
        caller: Arc::new(Caller {
            principal: who.principal.clone(),
            revision: Revision::V2026_07_28,
            capabilities: ClientCapabilities::NONE,
            log_level: None,
            visits: false,
            affinity: Affinity {
                key: who.principal.shared(),
                ended: None,
            },
        }),
        identity: who.clone(),
        address: None,
        scope: Scope::All,
        resume: None,
        wants_progress: false,
        mirrored: None,
        deadline: Instant::now() + Duration::from_secs(60),
        trail: Trail::NONE,
    })
}

async fn listed(service: &mut McpService, who: &Arc<Identity>) -> HashSet<String> {
    let list = call(who, Op::List(ListKind::Tools, None), "{}".into());
    let Ok(Reply::Done(Outcome::Listed(page))) = service.call(list).await else {
        panic!("no list");
    };
    assert_eq!((page.next, page.public), (None, false));
    let page = Json::parse(page.items.value(), &Limits::LIST).unwrap();
    let names = page
        .root()
        .elements()
        .map(|tool| tool.member("name").unwrap().as_str().unwrap().into_owned());
    names.collect()
}

#[tokio::test]
async fn lists_equal_calls_for_ten_thousand_random_uses() {
    let mut random = Dice(20_261_121);
    let world = world(&mut random);
    let counting = Arc::new(Counting::default());
    let mut service = stack::mcp(&Parts {
        world,
        sealer: Arc::new(Sealer::ephemeral()),
        upstreams: counting.clone(),
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
    });
    let people = [
        Arc::new(identity("ana group:dev")),
        Arc::new(identity("bob group:ops")),
    ];
    let mut seen = Vec::new();
    for who in &people {
        seen.push(listed(&mut service, who).await);
    }
    assert_ne!(seen[0], seen[1]);
    let mut told: HashMap<&str, usize> = HashMap::new();
    for _ in 0..USES {
        let at = random.below(2);
        let (up, tool) = (random.below(UPSTREAMS), random.below(TOOLS + 5));
        let name = format!("up{up}_t{tool}");
        let arguments = match random.below(4) {
            0 => "{}".to_owned(),
            1 => format!(r#"{{"n":{}}}"#, random.below(100)),
            2 => format!(r#"{{"repo":"{}"}}"#, ["acme/x", "other/x"][random.below(2)]),
            _ => format!(r#"{{"n":{},"repo":"acme/y"}}"#, random.below(100)),
        };
        let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
        let before = counting.0.load(Ordering::Relaxed);
        let reply = service
            .call(call(
                &people[at],
                Op::CallTool(name.as_str().into()),
                params.clone(),
            ))
            .await;
        let through = counting.0.load(Ordering::Relaxed) - before;
        let word = match reply {
            Ok(_) => "called",
            Err(error) => error.reason(),
        };
        assert_eq!(through, usize::from(word == "called"), "{params}");
        // Who does not see it hears that it does not exist, whatever the arguments; who sees it never hears that.
        assert_eq!(
            seen[at].contains(&name),
            word != "unknown_name",
            "{} {params}: {word}",
            people[at].name
        );
        *told.entry(word).or_default() += 1;
    }
    // Each of the three happened often enough to mean something.
    for word in ["called", "unknown_name", "policy_denied"] {
        assert!(told.get(word).is_some_and(|count| *count > 100), "{told:?}");
    }
    assert_eq!(told.len(), 3, "{told:?}");
}

/// Somebody of this name, in these groups: `ana group:dev`.
fn identity(described: &str) -> Identity {
    let mut words = described.split(' ');
    let name = words.next().unwrap();
    let groups = words.map(|word| word.strip_prefix("group:").unwrap().into());
    Identity {
        principal: Principal::new(format!("test:{name}")),
        kind: IdentityKind::User,
        name: name.into(),
        issuer: None,
        groups: groups.collect(),
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
