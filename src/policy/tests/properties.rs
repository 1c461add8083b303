//! Whatever the policies and the requests: the engine decides as Cedar does when it is called naively, and lists what may be used.

#![expect(
    clippy::disallowed_types,
    reason = "arguments are put together as trees, for the naive side"
)]

use std::collections::BTreeMap;

use proptest::{prelude::*, sample::select};
use serde_json::{Value as Tree, json as tree};

use super::{
    naive::{Bringing, Naive},
    *,
};

/// Conditions that need no context.
const KNOWN: [&str; 10] = [
    r#"principal in Group::"dev""#,
    r#"principal in [Group::"ops", Group::"leads"]"#,
    r#"principal == User::"ben""#,
    r#"principal.name like "a*""#,
    r#"principal is Key"#,
    r#"resource in Upstream::"docs""#,
    r#"resource in Toolset::"safe""#,
    r#"resource.tags.contains("public")"#,
    r#"(resource is Tool && resource has destructive && resource.destructive)"#,
    r#"action in Action::"use""#,
];

/// Conditions on the context that every action has.
const CONTEXT: [&str; 5] = [
    r#"context.scopes.contains("write")"#,
    r#"context.scopes.containsAny(["read", "write"])"#,
    r#"(context has client && context.client == "cli")"#,
    r#"(context has toolset && context.toolset == "safe")"#,
    r#"context.time < datetime("2000-01-01")"#,
];

/// Conditions on arguments.
const ARGUMENTS: [&str; 12] = [
    r#"context.args.repo like "acme/*""#,
    r#"(context.args has amount && context.args.amount < 5)"#,
    r#"context.args.amount + 1 == 10"#,
    r#"context.args.force"#,
    r#"(context.args has labels && context.args.labels.contains("public"))"#,
    r#"context.args.labels.containsAll(["a", "public"])"#,
    r#"context.args has filter.owner"#,
    r#"(if context.args.filter.depth > 2 then context.args.force else context.args has note)"#,
    r#"["x", context.args.repo].contains("acme/a")"#,
    r#"(context.text.hasTag("any.x") && context.text.getTag("any.x") == "1")"#,
    r#"context.text.hasTag("filter.owner")"#,
    r#"context.args has admin"#,
];

/// A condition over some atoms.
fn condition(atoms: Vec<&'static str>) -> impl Strategy<Value = String> {
    select(atoms)
        .prop_map(str::to_owned)
        .prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} && {two})")),
                (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} || {two})")),
                inner.clone().prop_map(|one| format!("!({one})")),
                (inner.clone(), inner.clone(), inner)
                    .prop_map(|(one, two, three)| format!("(if {one} then {two} else {three})")),
            ]
        })
}

fn rule() -> impl Strategy<Value = String> {
    let principal = select(vec![
        "principal",
        r#"principal == User::"ana""#,
        r#"principal in Group::"dev""#,
        r#"principal in Group::"all""#,
        "principal is User",
        r#"principal is Key in Group::"ops""#,
    ]);
    let tools = select(vec![
        "resource",
        r#"resource == Tool::"github_create_issue""#,
        r#"resource in Upstream::"github""#,
        r#"resource in Toolset::"safe""#,
        r#"resource is Tool in Upstream::"docs""#,
    ]);
    let any = select(vec![
        ("action", "resource"),
        (
            r#"action in Action::"use""#,
            r#"resource in Upstream::"docs""#,
        ),
        (r#"action in [Action::"read", Action::"get"]"#, "resource"),
        (r#"action == Action::"read""#, "resource is Resource"),
        (r#"action == Action::"call""#, "resource is Tool"),
    ]);
    let effect = prop_oneof![3 => Just("permit"), 2 => Just("forbid")];
    let clause = select(vec!["when", "unless"]);
    let everything = [&KNOWN[..], &CONTEXT, &ARGUMENTS].concat();
    let without = [&KNOWN[..], &CONTEXT].concat();
    prop_oneof![
        (
            effect.clone(),
            principal.clone(),
            tools,
            clause.clone(),
            condition(everything)
        )
            .prop_map(|(effect, who, what, clause, condition)| format!(
                "{effect}({who}, action == Action::\"call\", {what}) {clause} {{ {condition} }};\n"
            )),
        (
            effect.clone(),
            principal.clone(),
            any.clone(),
            clause,
            condition(without)
        )
            .prop_map(|(effect, who, (action, what), clause, condition)| format!(
                "{effect}({who}, {action}, {what}) {clause} {{ {condition} }};\n"
            )),
        (effect, principal, any).prop_map(|(effect, who, (action, what))| format!(
            "{effect}({who}, {action}, {what});\n"
        )),
    ]
}

fn who() -> impl Strategy<Value = Identity> {
    let kind = select(vec![
        IdentityKind::User,
        IdentityKind::User,
        IdentityKind::Key,
        IdentityKind::Agent,
        IdentityKind::Anonymous,
    ]);
    let groups = proptest::sample::subsequence(vec!["dev", "ops", "leads", "others"], 0..3);
    let scopes = proptest::sample::subsequence(vec!["read", "write"], 0..=2);
    let client = select(vec![None, Some("cli"), Some("web")]);
    (
        kind,
        select(vec!["ana", "ben", "cyd"]),
        groups,
        scopes,
        client,
    )
        .prop_map(|(kind, name, groups, scopes, client)| Identity {
            scopes: scopes.into_iter().map(Arc::from).collect(),
            client: client.map(Arc::from),
            ..somebody(kind, name, &groups)
        })
}

/// Arguments that Cedar can hold.
fn args() -> impl Strategy<Value = Tree> {
    let member = |name: &'static str, values: Vec<Tree>| {
        prop_oneof![1 => Just(None), 2 => select(values).prop_map(Some)]
            .prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    };
    let members = (
        member("repo", vec![tree!("acme/a"), tree!("x"), tree!("")]),
        member("amount", vec![tree!(1), tree!(9), tree!(i64::MAX)]),
        member("force", vec![tree!(true), tree!(false)]),
        member(
            "labels",
            vec![tree!([]), tree!(["public"]), tree!(["a", "public", "a"])],
        ),
        member(
            "filter",
            vec![
                tree!({}),
                tree!({"owner": "o"}),
                tree!({"depth": 3, "owner": "o"}),
            ],
        ),
        member("note", vec![tree!("n"), Tree::Null]),
        member(
            "any",
            vec![tree!({"x": 1}), tree!({"x": "1"}), tree!({"x": 2})],
        ),
    );
    members.prop_map(|(a, b, c, d, e, f, g)| {
        Tree::Object([a, b, c, d, e, f, g].into_iter().flatten().collect())
    })
}

fn items() -> Vec<Item> {
    let mut items = super::items();
    items.retain(|item| item.kind != ItemKind::Template);
    items[0].toolsets = vec!["safe".into()];
    items[2].toolsets = vec!["safe".into(), "more".into()];
    items[2].tags = vec!["public".into()];
    // The same arguments everywhere: whether a policy fits its tools is not what is tested here.
    items[2].schema = Some(json(REPO));
    items
}

const GROUPS: &str = "dev:\n  users: [cyd]\n  groups: [leads]\nall:\n  groups: [dev, ops]\n";

/// The same for the naive side.
fn parents() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("leads", vec!["dev"]),
        ("dev", vec!["all"]),
        ("ops", vec!["all"]),
        ("all", vec![]),
    ])
}

fn compiled(policies: &str) -> Policy {
    Policy::of(&[("p.cedar", policies), ("groups.yaml", GROUPS)])
        .unwrap_or_else(|problems| panic!("{policies}\n{problems:#?}"))
}

/// The naive side knows of members only what it is told.
fn told(who: &Identity) -> Identity {
    let mut groups: Vec<&str> = who.groups.iter().map(|group| &**group).collect();
    if who.kind == IdentityKind::User && *who.name == *"cyd" {
        groups.push("dev");
    }
    Identity {
        scopes: who.scopes.clone(),
        client: who.client.clone(),
        ..somebody(who.kind, &who.name, &groups)
    }
}

fn decide(
    over: &Prepared,
    who: &Identity,
    action: Action,
    item: &Item,
    args: &Tree,
    toolset: Option<&str>,
) -> Result<Permit, Denied> {
    let args = json(&args.to_string());
    over.decide(&Ask {
        who,
        action,
        item: subject(item),
        arguments: Some(&args),
        circumstances: Circumstances {
            toolset,
            ..circumstances()
        },
    })
}

fn naively(
    naive: &Naive,
    who: &Identity,
    action: Action,
    item: &Item,
    args: &Tree,
    toolset: Option<&str>,
) -> bool {
    let scopes: Vec<&str> = who.scopes.iter().map(|scope| &**scope).collect();
    naive.permits(
        &told(who),
        action,
        item,
        &Bringing {
            args,
            scopes: &scopes,
            client: who.client.as_deref(),
            toolset,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_decides_as_cedar_does_and_lists_what_may_be_used(
        rules in prop::collection::vec(rule(), 1..7),
        who in who(),
        args in args(),
        toolset in select(vec![None, Some("safe"), Some("more")]),
    ) {
        let policies = rules.concat();
        let items = items();
        let over = compiled(&policies).prepare(items.clone(), None);
        let naive = Naive::new(&policies, &items, parents());
        let class = over.class(&who);
        for item in &items {
            let listed = over.lists(&class, subject(item), toolset);
            for action in item.kind.uses() {
                let decided = decide(&over, &who, *action, item, &args, toolset);
                let wanted = naively(&naive, &who, *action, item, &args, toolset);
                let case = format!("{who:?} {action:?} {} {args}: {decided:?}\n{policies}", item.outward);
                prop_assert_eq!(decided.is_ok(), wanted, "{}", case);
                prop_assert!(listed || decided.is_err(), "{}", case);
                if let Err(denied) = decided {
                    prop_assert_eq!(denied.hidden, !listed, "{}", case);
                    prop_assert!(denied.reason != Refusal::Unrepresentable, "{}", case);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_cannot_be_represented_denies_or_does_not_matter(
        rules in prop::collection::vec(rule(), 1..6),
        who in who(),
        args in args(),
        (path, strange, plain) in select(vec![
            ("amount", tree!(1.5), vec![tree!(1), tree!(9)]),
            ("amount", tree!("9"), vec![tree!(1), tree!(9)]),
            ("repo", tree!(["acme/a"]), vec![tree!("acme/a"), tree!("x")]),
            ("force", tree!("true"), vec![tree!(true), tree!(false)]),
            ("labels", tree!(["public", 1]), vec![tree!(["public"]), tree!([])]),
            ("filter", tree!({"depth": 18446744073709551615u64}), vec![tree!({"depth": 3}), tree!({"depth": 1})]),
        ]),
    ) {
        let policies = rules.concat();
        let items = items();
        let over = compiled(&policies).prepare(items.clone(), None);
        let naive = Naive::new(&policies, &items, parents());
        let with = |value: Option<Tree>| {
            let mut members = args.as_object().cloned().unwrap_or_default();
            members.remove(path);
            members.extend(value.map(|value| (path.to_owned(), value)));
            Tree::Object(members)
        };
        for item in items.iter().filter(|item| item.kind == ItemKind::Tool) {
            let decided = decide(&over, &who, Action::Call, item, &with(Some(strange.clone())), None);
            if decided.is_ok() {
                for value in plain.iter().cloned().map(Some) {
                    prop_assert!(naively(&naive, &who, Action::Call, item, &with(value), None), "{}", policies);
                }
            }
        }
    }
}

proptest! {
    // Each case is a hundred questions.
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn where_conditions_look_at_each_thing_once_an_item_is_listed_exactly_if_some_call_is_permitted(
        order in Just(vec![
            r#"context.args.repo like "acme/*""#,
            "context.args.amount < 5",
            "context.args.force",
            r#"context.args.labels.contains("public")"#,
        ]).prop_shuffle(),
        shape in select(vec![
            "A && B && C && D", "A || B && C", "!(A || B) && C", "!(A && B) || D", "if A then B else !C",
            "(if A then B else false) && !D", "A && !A", "principal == User::\"ben\" && A", "A && principal == User::\"ben\"",
            "principal == User::\"ana\" || A && B", "[1].contains(2) && A", "A && context.args has missing",
        ]),
        clause in select(vec!["when", "unless"]),
        forbid in select(vec!["", "forbid(principal, action, resource);", "forbid(principal is Key, action, resource);"]),
    ) {
        // The one shape in which something is looked at twice is known to err on the side of listing.
        prop_assume!(shape != "A && !A");
        let mut condition = shape.to_owned();
        for (letter, atom) in ["A", "B", "C", "D"].into_iter().zip(&order) {
            condition = condition
                .split(' ')
                .map(|word| {
                    let bare = word.trim_matches(['(', ')', '!']);
                    if bare == letter { word.replace(letter, &format!("({atom})")) } else { word.to_owned() }
                })
                .collect::<Vec<_>>()
                .join(" ");
        }
        let policies = format!(
            "permit(principal, action == Action::\"call\", resource) {clause} {{ {condition} }};\n{forbid}"
        );
        let items = items();
        let over = compiled(&policies).prepare(items.clone(), None);
        let naive = Naive::new(&policies, &items, parents());
        let ana = user("ana", &[]);
        let item = &items[0];
        let mut possible = false;
        for repo in [None, Some(tree!("acme/a")), Some(tree!("x"))] {
            for amount in [None, Some(tree!(1)), Some(tree!(9))] {
                for force in [None, Some(tree!(true)), Some(tree!(false))] {
                    for labels in [None, Some(tree!(["public"])), Some(tree!([]))] {
                        let members = [("repo", &repo), ("amount", &amount), ("force", &force), ("labels", &labels)];
                        let args = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
                        possible |= naively(&naive, &ana, Action::Call, item, &Tree::Object(args.collect()), None);
                    }
                }
            }
        }
        let listed = over.lists(&over.class(&ana), subject(item), None);
        prop_assert_eq!(listed, possible, "{}", policies);
    }
}

/// SECURITY AUTHZ-6 at size: two principals, five hundred policies, five thousand tools.
#[test]
fn lists_equal_calls_for_ten_thousand_random_triples() {
    let mut rng = fastrand::Rng::with_seed(4);
    let schema = json(REPO);
    let items: Vec<Item> = (0..5_000)
        .map(|n| Item {
            schema: Some(schema.clone()),
            tags: if n % 7 == 0 {
                vec!["public".into()]
            } else {
                Vec::new()
            },
            ..item(
                ItemKind::Tool,
                &format!("u{}", n % 100),
                &format!("t{n}"),
                None,
            )
        })
        .collect();
    let mut policies = String::new();
    for n in 0..500 {
        let upstream = n % 100;
        let tail = match n % 5 {
            0 => r#" when { context.args.repo like "acme/*" }"#,
            1 => r#" when { context.args has amount && context.args.amount < 5 }"#,
            2 => r#" when { resource.tags.contains("public") }"#,
            3 => r#" unless { context.args has force && context.args.force }"#,
            _ => "",
        };
        let effect = if n % 11 == 0 { "forbid" } else { "permit" };
        policies.push_str(&format!(
            "{effect}(principal in Group::\"g{}\", action == Action::\"call\", resource in Upstream::\"u{upstream}\"){tail};\n",
            n % 13,
        ));
    }
    let over = set(&policies).prepare(items.clone(), None);
    assert_eq!(over.problems(), []);
    let naive = Naive::new(&policies, &items, BTreeMap::new());
    let people = [
        user("ana", &["g1", "g2", "g3"]),
        user("ben", &["g0", "g4", "g5", "g6", "g11"]),
    ];
    let classes = people.each_ref().map(|who| over.class(who));
    let args = [
        tree!({}),
        tree!({"repo": "acme/x"}),
        tree!({"repo": "x", "amount": 1}),
        tree!({"repo": "acme/x", "amount": 9, "force": true}),
    ];
    let (mut permitted, mut listed) = (0, 0);
    for round in 0..10_000 {
        let who = rng.usize(..people.len());
        let item = &items[rng.usize(..items.len())];
        let args = &args[rng.usize(..args.len())];
        let decided = decide(&over, &people[who], Action::Call, item, args, None);
        let shown = over.lists(&classes[who], subject(item), None);
        match &decided {
            Ok(_) => assert!(shown, "{}", item.outward),
            Err(denied) => assert_eq!(denied.hidden, !shown, "{}", item.outward),
        }
        permitted += usize::from(decided.is_ok());
        listed += usize::from(shown);
        if round % 20 == 0 {
            let wanted = naively(&naive, &people[who], Action::Call, item, args, None);
            assert_eq!(decided.is_ok(), wanted, "{} {args}", item.outward);
        }
    }
    // The world is neither empty nor open.
    assert!((500..9_500).contains(&permitted), "{permitted}");
    assert!((permitted..9_900).contains(&listed), "{listed}");
}
