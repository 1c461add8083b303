//! What does it cost to decide whether a call may be made?
//!
//! Budgets (issue 4): at most 12 µs with arguments at 50 policies, at most 20 µs at 500 of which 10 apply, flat as policies are
//! added that are about something else; at most 1 µs where no policy that applies reads the context.
//!
//! Measured on 2026-11-21 on a quiet machine of two cores (`cargo bench --bench authorize`): 50 of which 3 apply 1.5 µs; 500 of
//! which 10 apply 2.4 µs, 5,000 of which 10 apply 2.9 µs; the same with three arguments 8.0 µs; as text 1.6 µs; without
//! context 0.39 µs. The yardstick, Cedar alone over ten policies, took 37 µs in the same run. In instructions of one decision
//! (callgrind): 7,000, 13,200, 45,800, 10,600 and 2,500. Conditions on time and address are asked of Cedar, and cost what
//! it costs.
#![expect(
    clippy::expect_used,
    reason = "what is put together here is well-formed"
)]

use std::{hint::black_box, sync::Arc, time::SystemTime};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use tokio_util::sync::CancellationToken;
use usher::{
    call::{Identity, IdentityKind, Principal},
    json::{Json, Limits},
    policy::{Action, Ask, Circumstances, Hints, Item, ItemKind, Policy, Prepared, Subject},
    protocol::{Revision, UpstreamId},
};

const SCHEMA: &str = r#"{"type":"object","properties":{"repo":{"type":"string"},"title":{"type":"string"},"amount":{"type":"integer"},"labels":{"type":"array","items":{"type":"string"}}},"required":["repo"]}"#;
const ARGS: &str = r#"{"repo":"acme/site","title":"It does not open on Tuesdays","amount":7,"labels":["bug","public"]}"#;

fn json(text: &'static str) -> Json {
    Json::parse(Bytes::from_static(text.as_bytes()), &Limits::CLIENT).expect("JSON")
}

fn upstream(n: usize) -> UpstreamId {
    UpstreamId::parse(&format!("u{n}")).expect("a key")
}

/// Five thousand tools of a hundred upstreams, and somebody in twenty groups.
struct World {
    prepared: Prepared,
    who: Arc<Identity>,
    upstream: UpstreamId,
    args: Json,
}

impl World {
    fn new(policies: &str) -> Self {
        let schema = json(SCHEMA);
        let items = (0..5_000).map(|n| Item {
            kind: ItemKind::Tool,
            upstream: upstream(n % 100),
            outward: format!("u{}_tool{n}", n % 100).into(),
            local: format!("tool{n}").into(),
            tags: Vec::new(),
            pinned: Hints::default(),
            claimed: Hints::default(),
            toolsets: Vec::new(),
            schema: Some(schema.clone()),
        });
        let policy = Policy::of(&[("bench.cedar", policies)]).expect("a set");
        Self {
            prepared: policy.prepare(items.collect(), None),
            who: Arc::new(Identity {
                principal: Principal::new("bench"),
                kind: IdentityKind::User,
                name: "ana@example.com".into(),
                issuer: None,
                groups: (0..20).map(|n| Arc::from(format!("g{n}"))).collect(),
                tenant: None,
                scopes: Default::default(),
                client: None,
                owner: None,
                until: None,
                revoked: CancellationToken::new(),
                key: None,
                assertion: None,
            }),
            upstream: upstream(7),
            args: json(ARGS),
        }
    }

    fn decide(&self) -> bool {
        let ask = Ask {
            who: &self.who,
            action: Action::Call,
            item: Subject {
                kind: ItemKind::Tool,
                upstream: &self.upstream,
                local: "tool7",
                outward: "u7_tool7",
            },
            arguments: Some(&self.args),
            circumstances: Circumstances {
                revision: Revision::LATEST_MODERN,
                address: None,
                toolset: None,
                now: SystemTime::UNIX_EPOCH,
            },
        };
        // As every call does it.
        let class = self.prepared.class_of(&self.who);
        self.prepared.decide_as(&class, black_box(&ask)).is_ok()
    }
}

/// `total` policies: `apply` about the upstream that is asked about and a group of who asks, the rest about others.
fn policies(total: usize, apply: usize, condition: &str) -> String {
    let mut text = String::new();
    for n in 0..total {
        let (group, upstream) = if n < apply {
            (n % 20, 7)
        } else {
            (20 + n, 8 + n % 90)
        };
        text.push_str(&format!(
            "permit(principal in Group::\"g{group}\", action == Action::\"call\", resource in Upstream::\"u{upstream}\"){condition};\n"
        ));
    }
    text
}

fn authorize(c: &mut Criterion) {
    let mut group = c.benchmark_group("authorize");
    const REPO: &str = r#" when { context.args.repo like "acme/*" }"#;
    const MORE: &str = r#" when { context.args.repo like "acme/*" && context.args has amount && context.args.amount < 100
        && context.args has labels && context.args.labels.contains("public") }"#;
    for (name, total, apply, condition) in [
        ("with_args/50_of_which_3_apply", 50, 3, REPO),
        ("with_args/500_of_which_3_apply", 500, 3, REPO),
        ("with_args/500_of_which_10_apply", 500, 10, REPO),
        ("with_args/5000_of_which_10_apply", 5_000, 10, REPO),
        ("with_three_args/500_of_which_10_apply", 500, 10, MORE),
        ("no_context/500_of_which_10_apply", 500, 10, ""),
    ] {
        let world = World::new(&policies(total, apply, condition));
        assert!(world.decide());
        group.bench_function(name, |b| b.iter(|| world.decide()));
    }
    let text =
        r#" when { context.text.hasTag("repo") && context.text.getTag("repo") like "acme/*" }"#;
    let world = World::new(&policies(50, 3, text));
    assert!(world.decide());
    group.bench_function("as_text/50_of_which_3_apply", |b| b.iter(|| world.decide()));
    group.finish();

    yardstick(c);

    let mut group = c.benchmark_group("lists");
    group.sample_size(10);
    let world = World::new(&policies(500, 10, REPO));
    let class = world.prepared.class(&world.who);
    let names: Vec<(UpstreamId, String)> = (0..5_000)
        .map(|n| (upstream(n % 100), format!("tool{n}")))
        .collect();
    group.bench_function("5000_tools_500_policies_one_class", |b| {
        b.iter(|| {
            let listed = names.iter().filter(|(upstream, local)| {
                let item = Subject {
                    kind: ItemKind::Tool,
                    upstream,
                    local,
                    outward: "",
                };
                world.prepared.lists(&class, item, None)
            });
            assert_eq!(black_box(listed.count()), 50);
        });
    });
    group.bench_function("class_of_an_identity_in_20_groups", |b| {
        b.iter(|| world.prepared.class(black_box(&world.who)));
    });
    group.bench_function("class_of_the_same_identity_again", |b| {
        b.iter(|| world.prepared.class_of(black_box(&world.who)));
    });
    group.finish();
}

/// Cedar alone over ten policies that apply, and nothing else: what of the above is not ours, on the machine as it is now.
fn yardstick(c: &mut Criterion) {
    use cedar_policy::{Authorizer, Context, Entities, PolicySet, Request};
    let policies: PolicySet = policies(10, 10, r#" when { context.args.repo like "acme/*" }"#)
        .parse()
        .expect("policies");
    let groups: Vec<String> = (0..20)
        .map(|n| format!(r#"{{"type":"Group","id":"g{n}"}}"#))
        .collect();
    let entities = format!(
        r#"[{{"uid":{{"type":"User","id":"ana"}},"attrs":{{}},"parents":[{}]}},
            {{"uid":{{"type":"Tool","id":"t"}},"attrs":{{}},"parents":[{{"type":"Upstream","id":"u7"}}]}}]"#,
        groups.join(",")
    );
    let entities = Entities::from_json_str(&entities, None).expect("entities");
    let context = r#"{"args":{"repo":"acme/site"}}"#;
    let context = Context::from_json_str(context, None).expect("a context");
    let request = Request::new(
        r#"User::"ana""#.parse().expect("a uid"),
        r#"Action::"call""#.parse().expect("a uid"),
        r#"Tool::"t""#.parse().expect("a uid"),
        context,
        None,
    )
    .expect("a request");
    let authorizer = Authorizer::new();
    c.bench_function("authorize/yardstick_cedar_alone_10_policies", |b| {
        b.iter(|| {
            let response = authorizer.is_authorized(&request, &policies, &entities);
            assert_eq!(response.decision(), cedar_policy::Decision::Allow);
        });
    });
}

criterion_group!(benches, authorize);
criterion_main!(benches);
