//! Templates: listed exactly as far as something that they may expand to may be used (SECURITY AUTHZ-6).

use proptest::{prelude::*, sample::select};

use super::*;

/// Templates, and what may follow after what is literal in them.
const TEMPLATES: [&str; 8] = [
    "file:///pub/{name}",
    "file:///{+path}",
    "https://docs.example/{page}",
    "https://{host}/x",
    "note:{id}",
    "{+anything}",
    "ui://panel/{x}",
    "file:///pub/{a}/b",
];
const TAILS: [&str; 8] = [
    "",
    "a",
    "pub/a",
    "a/b",
    "secret",
    "?q#f",
    "//h/p",
    "/pub/a.txt",
];

/// Listed, tagged, and below some of the templates.
fn catalog() -> Vec<Item> {
    let listed = |local: &str, tags: &[&str], toolsets: &[&str]| Item {
        tags: tags.iter().map(|tag| Arc::from(*tag)).collect(),
        toolsets: toolsets.iter().map(|name| Arc::from(*name)).collect(),
        ..item(ItemKind::Resource, "docs", local, None)
    };
    let templates = TEMPLATES.map(|local| Item {
        // Of no account to what it expands to.
        tags: vec!["own".into()],
        toolsets: vec!["own".into()],
        ..item(ItemKind::Template, "docs", local, None)
    });
    let mut items = vec![
        listed("file:///pub/a", &["open"], &[]),
        listed("file:///secret", &["closed", "open"], &["more"]),
        Item {
            outward: "https://docs.example/a".into(),
            ..listed("https://docs.example/a", &[], &["more"])
        },
        // Of another upstream.
        Item {
            tags: vec!["foreign".into()],
            ..item(ItemKind::Resource, "other", "file:///pub/a", None)
        },
    ];
    items.extend(templates);
    items
}

/// Every name that an address may have: that of its namespace, its own, and the one of what has none.
fn names(local: &str) -> [String; 3] {
    [
        format!("docs+{local}"),
        local.to_owned(),
        format!("docs\u{1}{local}"),
    ]
}

const ATOMS: [&str; 22] = [
    r#"resource.uri like "file:///pub/*""#,
    r#"resource.uri like "*secret""#,
    r#"resource.uri == "file:///pub/a""#,
    r#"resource.uri == "file:///elsewhere""#,
    r#"resource.name like "docs+file:///pub/*""#,
    r#"resource.name like "docs+*""#,
    r#"resource.name == "docs+note:a""#,
    r#"resource == Resource::"docs+file:///pub/a""#,
    r#"resource == Resource::"docs+gone://x""#,
    r#"resource in [Resource::"docs+file:///secret", Resource::"x"]"#,
    r#"resource.scheme == "file""#,
    r#"["https", "note"].contains(resource.scheme)"#,
    r#"resource.host == "docs.example""#,
    r#"resource.host like "*.example""#,
    r#"resource.path like "/pub/*""#,
    r#"resource.path == "/x""#,
    r#"resource.tags.contains("open")"#,
    r#"resource.tags.containsAny(["closed", "none"])"#,
    r#"resource.tags.containsAll(["closed", "open"])"#,
    r#"(resource.tags.contains("own") || resource.tags.contains("foreign"))"#,
    r#"(resource in Toolset::"own" || resource in Toolset::"more")"#,
    r#"resource.tags == ["open"]"#,
];

fn condition() -> impl Strategy<Value = String> {
    let atom = select(ATOMS.to_vec()).prop_map(str::to_owned);
    atom.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} && {two})")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one} || {two})")),
            inner.prop_map(|one| format!("!({one})")),
        ]
    })
}

fn rule() -> impl Strategy<Value = String> {
    let effect = prop_oneof![3 => Just("permit"), 1 => Just("forbid")];
    let action = select(vec![
        r#"action == Action::"read""#,
        r#"action in [Action::"read", Action::"subscribe"]"#,
        r#"action in Action::"use""#,
    ]);
    let resource = select(vec![
        "resource is Resource",
        r#"resource is Resource in Upstream::"docs""#,
        r#"resource is Resource in Toolset::"more""#,
    ]);
    (effect, action, resource, condition()).prop_map(|(effect, action, resource, condition)| {
        format!("{effect}(principal, {action}, {resource}) when {{ {condition} }};\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_template_of_which_some_expansion_is_permitted_is_never_hidden(
        rules in prop::collection::vec(rule(), 1..4),
        tails in proptest::sample::subsequence(TAILS.to_vec(), 3),
        action in select(vec![Action::Read, Action::Subscribe]),
    ) {
        let policies = rules.concat();
        let over = Over::with(&set(&policies), catalog());
        let ana = user("ana", &[]);
        let class = over.prepared.class(&ana);
        for template in over.items.iter().filter(|item| item.kind == ItemKind::Template) {
            let listed = over.prepared.lists(&class, subject(template), None);
            let head = template.local.split('{').next().expect("a head");
            for tail in &tails {
                let local = format!("{head}{tail}");
                for outward in names(&local) {
                    let decided = over.prepared.decide(&Ask {
                        who: &ana,
                        action,
                        item: Subject { kind: ItemKind::Resource, upstream: &template.upstream, local: &local, outward: &outward },
                        arguments: None,
                        circumstances: circumstances(),
                    });
                    prop_assert!(listed || decided.is_err(), "{} hides {outward}\n{policies}", template.local);
                }
            }
            // The template itself, which is completed, is decided like anything else.
            let completed = over.act(&ana, Action::Complete, &template.outward, "{}");
            prop_assert!(listed || completed.is_err(), "{} is completed\n{policies}", template.local);
        }
    }
}

#[test]
fn a_template_of_which_no_expansion_can_be_permitted_is_hidden() {
    let listed = |condition: &str| {
        let over = Over::with(
            &set(&format!(
                "permit(principal, action in [Action::\"read\", Action::\"subscribe\"], resource is Resource) when {{ {condition} }};"
            )),
            catalog(),
        );
        let ana = user("ana", &[]);
        let all = TEMPLATES.into_iter();
        all.filter(|local| over.lists(&ana, &format!("docs+{local}")))
            .collect::<Vec<_>>()
    };
    // What may be anything may be this, too.
    let any = "{+anything}";
    for (condition, wanted) in [
        ("true", &TEMPLATES[..]),
        (
            r#"resource.uri like "file:///pub/*""#,
            &[
                "file:///pub/{name}",
                "file:///{+path}",
                any,
                "file:///pub/{a}/b",
            ],
        ),
        (
            r#"resource.uri like "file:///private/*""#,
            &["file:///{+path}", any],
        ),
        (
            r#"resource == Resource::"docs+file:///pub/x""#,
            &[
                "file:///pub/{name}",
                "file:///{+path}",
                any,
                "file:///pub/{a}/b",
            ],
        ),
        (r#"resource == Resource::"docs+other://x""#, &[any]),
        (r#"resource.scheme == "note""#, &["note:{id}", any]),
        (
            r#"resource.host == "docs.example""#,
            // After the colon an authority may still come.
            &[
                "https://docs.example/{page}",
                "https://{host}/x",
                "note:{id}",
                any,
            ],
        ),
        (
            r#"resource.tags.contains("open")"#,
            &[
                "file:///pub/{name}",
                "file:///{+path}",
                any,
                "file:///pub/{a}/b",
            ],
        ),
        // Tags of templates, and those of other upstreams, are of no expansion.
        (r#"resource.tags.contains("own")"#, &[]),
        (r#"resource.tags.contains("foreign")"#, &[]),
        (r#"resource in Toolset::"own""#, &[]),
    ] {
        assert_eq!(listed(condition), wanted, "{condition}");
    }
}

#[test]
fn what_a_template_may_expand_to_changes_with_what_is_listed() {
    let policy = set(
        r#"permit(principal, action == Action::"read", resource) when { resource.tags.contains("open") };"#,
    );
    let ana = user("ana", &[]);
    let template = item(ItemKind::Template, "docs", "file:///{path}", None);
    let tagged = Item {
        tags: vec!["open".into()],
        ..item(ItemKind::Resource, "docs", "file:///a", None)
    };
    let before = policy.prepare(vec![template.clone()], None);
    let after = policy.prepare(vec![template.clone(), tagged], Some(&before));
    let lists = |over: &Prepared| over.lists(&over.class(&ana), subject(&template), None);
    assert_eq!((lists(&before), lists(&after)), (false, true));
}
