//! Decisions and lists, one rule at a time.

use super::*;

#[test]
fn the_schema_is_one() {
    assert!(schema::actions().len() >= 10);
    assert!(
        set("permit(principal, action, resource);")
            .notes()
            .is_empty()
    );
}

// SECURITY AUTHZ-1
#[test]
fn what_nothing_permits_is_denied_and_hidden() {
    let over = Over::new(
        r#"permit(principal == User::"ana", action in Action::"use", resource in Upstream::"docs");"#,
    );
    let (ana, ben) = (user("ana", &[]), user("ben", &[]));
    assert_eq!(over.word(&ana, "docs_search", "{}"), "allow");
    assert!(over.lists(&ana, "docs_search"));
    for (who, what) in [(&ana, "github_create_issue"), (&ben, "docs_search")] {
        let denied = over.decide(who, what, "{}").expect_err("denied");
        assert_eq!(denied.reason, Refusal::Denied);
        assert!(denied.hidden && denied.policies.is_empty());
        assert!(!over.lists(who, what));
    }
    // Another kind of somebody of the same name is somebody else.
    let key = somebody(IdentityKind::Key, "ana", &[]);
    assert_eq!(over.word(&key, "docs_search", "{}"), "policy_denied");
}

// SECURITY AUTHZ-7
#[test]
fn a_denial_says_whether_it_took_as_long_as_one_of_what_nobody_knows() {
    let over = Over::new(
        r#"permit(principal == User::"ana", action in Action::"use", resource in Upstream::"docs");"#,
    );
    let (ana, ben) = (user("ana", &[]), user("ben", &[]));
    for (who, what) in [(&ana, "github_create_issue"), (&ben, "docs_search")] {
        let anew = || over.decide(who, what, "{}").expect_err("denied").anew;
        assert!(anew(), "the first time");
        assert!(!anew() && !anew(), "it is remembered");
    }
    // Of what is in no list nothing is remembered, and nothing has to be waited for.
    for _ in 0..2 {
        let nothing = over.prepared.decide(&Ask {
            who: &ben,
            action: Action::Call,
            item: Subject {
                local: "nothing",
                outward: "docs_nothing",
                ..subject(over.find("docs_search"))
            },
            arguments: None,
            circumstances: circumstances(),
        });
        assert!(!nothing.expect_err("denied").anew);
    }
}

// SECURITY AUTHZ-1
#[test]
fn without_policies_everything_is_permitted_and_with_broken_ones_nothing() {
    let ana = user("ana", &[]);
    let over = Over::with(&Policy::unrestricted(), items());
    assert_eq!(over.word(&ana, "docs_search", "{}"), "allow");
    assert!(over.lists(&ana, "docs_search"));
    let over = Over::with(&Policy::deny_everything(), items());
    let denied = over.decide(&ana, "docs_search", "{}").expect_err("denied");
    assert!(denied.hidden);
    assert!(!over.lists(&ana, "docs_search"));
}

// SECURITY AUTHZ-5
#[test]
fn arguments_are_compared_as_their_schema_types_them() {
    let over = Over::new(
        r#"
        permit(principal, action == Action::"call", resource in Upstream::"github")
        when { context.args.repo like "acme/*" && context.args has amount && context.args.amount < 100 };
        permit(principal, action == Action::"call", resource in Upstream::"github")
        when { context.args has labels && context.args.labels.contains("public") };
        permit(principal, action == Action::"call", resource in Upstream::"github")
        when { context.args has filter.depth && context.args.filter.depth == 3 };
        "#,
    );
    assert_eq!(over.prepared.problems(), []);
    let ana = user("ana", &[]);
    for (args, word) in [
        (r#"{"repo":"acme/site","amount":99}"#, "allow"),
        (r#"{"repo":"acme/site","amount":99.0}"#, "allow"),
        (r#"{"repo":"acme/site","amount":100}"#, "policy_denied"),
        (r#"{"repo":"other/site","amount":1}"#, "policy_denied"),
        (
            r#"{"repo":"acme/site","amount":99.5}"#,
            "policy_unrepresentable",
        ),
        (
            r#"{"repo":"acme/site","amount":1e1}"#,
            "policy_unrepresentable",
        ),
        (
            r#"{"repo":"acme/site","amount":"1"}"#,
            "policy_unrepresentable",
        ),
        (
            r#"{"repo":"acme/site","amount":9223372036854775808}"#,
            "policy_unrepresentable",
        ),
        (r#"{"repo":5,"amount":1}"#, "policy_unrepresentable"),
        (
            r#"{"repo":"x","amount":500,"labels":["b","public"]}"#,
            "allow",
        ),
        (
            r#"{"repo":"x","amount":500,"labels":["b"]}"#,
            "policy_denied",
        ),
        (
            r#"{"repo":"x","amount":500,"labels":[1]}"#,
            "policy_unrepresentable",
        ),
        (
            r#"{"repo":"x","amount":500,"filter":{"depth":3,"owner":7}}"#,
            "allow",
        ),
        (
            r#"{"repo":"x","amount":500,"filter":{"depth":2.5}}"#,
            "policy_unrepresentable",
        ),
        (
            r#"{"repo":"x","amount":500,"filter":[]}"#,
            "policy_unrepresentable",
        ),
        // What no policy looks at may be anything.
        (
            r#"{"repo":"acme/site","amount":1,"any":[1.5,{}],"force":"?"}"#,
            "allow",
        ),
        // The first policy needs what is not there.
        (r#"{"amount":1}"#, "policy_error"),
    ] {
        assert_eq!(over.word(&ana, "github_create_issue", args), word, "{args}");
    }
    // Listed all the same, and told what it is about.
    assert!(over.lists(&ana, "github_create_issue"));
    let denied = over.decide(&ana, "github_create_issue", r#"{"repo":"b/c","amount":1}"#);
    let denied = denied.expect_err("denied");
    assert!(!denied.hidden);
    assert!(denied.text.contains("`repo`"), "{}", denied.text);
}

// SECURITY AUTHZ-5
#[test]
fn an_argument_that_its_schema_does_not_declare_denies_where_a_policy_looks_at_it() {
    let over = Over::new(
        r#"
        permit(principal, action == Action::"call", resource);
        forbid(principal, action == Action::"call", resource) when { context.args has admin };
        "#,
    );
    let ana = user("ana", &[]);
    assert_eq!(over.word(&ana, "docs_search", r#"{"query":"x"}"#), "allow");
    let word = over.word(&ana, "docs_search", r#"{"admin":true}"#);
    assert_eq!(word, "policy_unrepresentable");
}

#[test]
fn an_argument_that_cannot_be_represented_is_told_with_the_policies_that_look_at_it() {
    let policy = set(r#"
        @id("all") permit(principal, action, resource);
        @id("dotted") forbid(principal, action == Action::"call", resource) when { context.args["a.b"] == "x" };
        @id("other") forbid(principal, action == Action::"call", resource) when { context.args.a == "x" };
        @id("inner") forbid(principal, action == Action::"call", resource) when { context.args.list.contains("x") };
        "#);
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"a.b":{"type":"string"},
        "list":{"type":"array","items":{"type":"string"}}}}"#;
    let over = Over::with(&policy, vec![tool("u", "t", schema)]);
    let long = vec![r#""y""#; 10_001].join(",");
    for (args, policy, text) in [
        (
            r#"{"a":"","a.b":7,"list":[]}"#.to_owned(),
            "dotted",
            "`a.b`, which must be a string",
        ),
        (
            r#"{"a":7,"a.b":"","list":[]}"#.to_owned(),
            "other",
            "`a`, which must be a string",
        ),
        (
            format!(r#"{{"a":"","a.b":"","list":[{long}]}}"#),
            "inner",
            "`list`, which must be shorter, since policies look at 10,000 values at most",
        ),
    ] {
        let denied = over.decide(&user("ana", &[]), "u_t", &args);
        let denied = denied.expect_err("denied");
        assert_eq!(denied.reason.word(), "policy_unrepresentable");
        assert!(denied.text.contains(text), "{}", denied.text);
        assert!(
            denied.policies.iter().any(|name| &**name == policy),
            "{denied:?}"
        );
    }
}

#[test]
fn null_counts_as_absent_where_the_schema_allows_it_and_only_there() {
    let over = Over::new(
        r#"
        permit(principal, action == Action::"call", resource in Upstream::"github")
        unless { context.args has note || context.args has force };
        "#,
    );
    let ana = user("ana", &[]);
    for (args, word) in [
        (r#"{"note":null}"#, "allow"),
        (r#"{"note":"x"}"#, "policy_denied"),
        (r#"{"force":null}"#, "policy_unrepresentable"),
    ] {
        assert_eq!(over.word(&ana, "github_create_issue", args), word, "{args}");
    }
}

#[test]
fn arguments_without_a_type_are_read_as_exact_text() {
    let over = Over::new(
        r#"
        permit(principal, action == Action::"call", resource)
        when { context.text.hasTag("any.owner") && context.text.getTag("any.owner") == "acme" };
        "#,
    );
    assert_eq!(over.prepared.problems(), []);
    let ana = user("ana", &[]);
    for (args, word) in [
        (r#"{"any":{"owner":"acme"}}"#, "allow"),
        (r#"{"any":{"owner":"\u0061cme"}}"#, "allow"),
        (r#"{"any":{"owner":"Acme"}}"#, "policy_denied"),
        (r#"{"any":{"owner":1}}"#, "policy_denied"),
        (r#"{"any":{"owner":null}}"#, "policy_denied"),
        (r#"{"any":"acme"}"#, "policy_denied"),
        (r#"{"any":{"owner":1.5}}"#, "policy_unrepresentable"),
        (r#"{"any":{"owner":["acme"]}}"#, "policy_unrepresentable"),
        // One name that looks like the way to another.
        (r#"{"any.owner":"acme"}"#, "policy_unrepresentable"),
        (
            r#"{"any.owner":"x","any":{"owner":"acme"}}"#,
            "policy_unrepresentable",
        ),
    ] {
        assert_eq!(over.word(&ana, "docs_search", args), word, "{args}");
    }
}

// SECURITY AUTHZ-2
#[test]
fn a_policy_that_errs_denies_even_where_another_permits() {
    let over = Over::new(
        r#"
        @id("all") permit(principal, action, resource);
        @id("guard") forbid(principal, action == Action::"call", resource in Upstream::"github")
        when { context.args.repo == "acme/secret" };
        "#,
    );
    let ana = user("ana", &[]);
    assert_eq!(
        over.word(&ana, "github_create_issue", r#"{"repo":"x"}"#),
        "allow"
    );
    let denied = over
        .decide(&ana, "github_create_issue", "{}")
        .expect_err("denied");
    assert_eq!(denied.reason, Refusal::Error);
    assert_eq!(denied.policies, [Arc::from("guard")]);
    let denied = over.decide(&ana, "github_create_issue", r#"{"repo":"acme/secret"}"#);
    assert_eq!(denied.expect_err("denied").policies, [Arc::from("guard")]);
}

#[test]
fn approval_is_asked_for_when_any_policy_that_permits_says_so() {
    let over = Over::new(
        r#"
        permit(principal in Group::"dev", action, resource);
        @id("careful") @require("approval") @within("10m")
        permit(principal, action, resource) when { resource has destructive && resource.destructive };
        "#,
    );
    let dev = user("ana", &["dev"]);
    let permit = over
        .decide(&dev, "github_create_issue", "{}")
        .expect("permitted");
    assert_eq!(permit.approval(), None);
    let permit = over
        .decide(&dev, "github_delete_repo", "{}")
        .expect("permitted");
    let approval = permit.approval().expect("approval");
    assert_eq!(&*approval.policy, "careful");
    assert_eq!(approval.within, Some(std::time::Duration::from_secs(600)));
    assert_eq!(permit.policies().len(), 2);
    assert_eq!(permit.digest().len(), 64);
}

#[test]
fn a_scope_that_would_help_is_named() {
    let over = Over::new(
        r#"
        permit(principal, action == Action::"call", resource in Upstream::"github")
        when { context.scopes.contains("repo:write") && context.args.repo like "acme/*" };
        "#,
    );
    let mut ana = user("ana", &[]);
    let denied = over.decide(&ana, "github_create_issue", r#"{"repo":"acme/x"}"#);
    let denied = denied.expect_err("denied");
    assert_eq!(denied.reason, Refusal::Scope(vec!["repo:write".into()]));
    assert!(!denied.hidden);
    // No scope helps here.
    assert_eq!(
        over.word(&ana, "github_create_issue", r#"{"repo":"x"}"#),
        "policy_denied"
    );
    ana.scopes.insert("repo:write".into());
    assert_eq!(
        over.word(&ana, "github_create_issue", r#"{"repo":"acme/x"}"#),
        "allow"
    );
}

// SECURITY AUTHZ-9
#[test]
fn resources_are_known_by_the_exact_uri_that_is_sent() {
    let over = Over::new(
        r#"
        permit(principal, action in [Action::"read", Action::"subscribe"], resource in Upstream::"docs")
        when { resource.scheme == "file" && resource.path like "/pub/*" };
        "#,
    );
    let ana = user("ana", &[]);
    assert_eq!(over.word(&ana, "docs+file:///pub/a.txt", "{}"), "allow");
    // A template may expand to what is permitted.
    assert!(over.lists(&ana, "docs+file:///{path}"));
    let docs = upstream("docs");
    for (uri, allowed) in [
        ("file:///pub/b.txt", true),
        ("file:///etc/passwd", false),
        ("FILE:///pub/b.txt", false),
        ("file:///%70ub/b.txt", false),
    ] {
        let outward = format!("docs+{uri}");
        let asked = over.prepared.decide(&Ask {
            who: &ana,
            action: Action::Read,
            item: Subject {
                kind: ItemKind::Resource,
                upstream: &docs,
                local: uri,
                outward: &outward,
            },
            arguments: None,
            circumstances: circumstances(),
        });
        assert_eq!(asked.is_ok(), allowed, "{uri}");
    }
}

// SECURITY AUTHZ-4: no folding, trimming, escaping or normalising.
#[test]
fn distinct_names_never_share_an_entity() {
    let over = Over::new(
        r#"permit(principal in Group::"a\"b", action, resource); permit(principal == User::"caf\u{e9}", action, resource);"#,
    );
    for (name, groups, word) in [
        ("x", &["a\"b"][..], "allow"),
        ("x", &["a\\\"b"], "policy_denied"),
        ("x", &["A\"b"], "policy_denied"),
        ("x", &[" a\"b"], "policy_denied"),
        ("caf\u{e9}", &[], "allow"),
        ("cafe\u{301}", &[], "policy_denied"),
        ("CAF\u{c9}", &[], "policy_denied"),
        ("caf\u{e9}\0", &[], "policy_denied"),
    ] {
        let who = user(name, groups);
        assert_eq!(
            over.word(&who, "docs_search", "{}"),
            word,
            "{name:?} {groups:?}"
        );
    }
}

#[test]
fn groups_of_the_file_count_as_those_of_tokens_and_groups_may_be_in_groups() {
    let policy = Policy::of(&[
        (
            "p.cedar",
            r#"permit(principal in Group::"staff", action, resource);"#,
        ),
        (
            "groups.yaml",
            "dev:\n  users: [ana]\n  keys: [ci]\nstaff:\n  groups: [dev]\n",
        ),
    ]);
    let over = Over::with(&policy.expect("a set"), items());
    for (who, word) in [
        (user("ana", &[]), "allow"),
        (user("ben", &[]), "policy_denied"),
        (user("ben", &["dev"]), "allow"),
        (user("ben", &["staff"]), "allow"),
        (somebody(IdentityKind::Key, "ci", &[]), "allow"),
        (user("ci", &[]), "policy_denied"),
    ] {
        assert_eq!(over.word(&who, "docs_search", "{}"), word, "{}", who.name);
    }
}

#[test]
fn identities_that_no_policy_can_tell_apart_are_of_one_class() {
    let over = Over::new(
        r#"
        permit(principal in Group::"dev", action, resource);
        permit(principal == User::"ana", action, resource in Upstream::"docs");
        "#,
    );
    let class = |who: &Identity| over.prepared.class(who);
    assert_eq!(
        class(&user("ben", &["x"])),
        class(&user("cyd", &["y", "z"]))
    );
    assert_eq!(
        class(&user("ben", &["dev"])),
        class(&user("cyd", &["z", "dev"]))
    );
    assert_ne!(class(&user("ben", &["dev"])), class(&user("ben", &[])));
    assert_ne!(class(&user("ana", &[])), class(&user("ben", &[])));
    assert_ne!(
        class(&user("ben", &[])),
        class(&somebody(IdentityKind::Agent, "ben", &[]))
    );
    let classes: std::collections::HashSet<Class> = (0..10_000)
        .map(|n| {
            let groups: &[&str] = if n % 3 == 0 { &["dev"] } else { &[] };
            class(&user(&format!("u{n}"), groups))
        })
        .collect();
    assert_eq!(classes.len(), 2);
}

#[test]
fn what_can_be_known_beforehand_hides_and_the_rest_does_not() {
    let over = Over::new(
        r#"
        permit(principal, action, resource);
        forbid(principal, action, resource) when { resource has destructive && resource.destructive };
        forbid(principal, action == Action::"call", resource in Upstream::"docs")
        when { context.time > datetime("2020-01-01") };
        "#,
    );
    let ana = user("ana", &[]);
    assert!(!over.lists(&ana, "github_delete_repo"));
    assert!(over.lists(&ana, "github_create_issue"));
    assert!(over.lists(&ana, "docs_search"));
    assert!(
        over.decide(&ana, "github_delete_repo", "{}")
            .expect_err("denied")
            .hidden
    );
}

#[test]
fn the_toolset_of_the_endpoint_decides_what_it_lists() {
    let over = Over::new(
        r#"permit(principal, action, resource is Tool) when { context has toolset && context.toolset == "safe" };"#,
    );
    let ana = user("ana", &[]);
    let class = over.prepared.class(&ana);
    let item = subject(over.find("docs_search"));
    assert!(over.prepared.lists(&class, item, Some("safe")));
    assert!(!over.prepared.lists(&class, item, Some("other")));
    assert!(!over.prepared.lists(&class, item, None));
    let ask = |toolset| {
        over.prepared.decide(&Ask {
            who: &ana,
            action: Action::Call,
            item,
            arguments: None,
            circumstances: Circumstances {
                toolset,
                ..circumstances()
            },
        })
    };
    assert!(ask(Some("safe")).is_ok());
    assert!(ask(Some("other")).expect_err("denied").hidden);
    assert!(ask(None).expect_err("denied").hidden);
}

#[test]
fn the_address_and_the_time_are_what_they_are() {
    let over = Over::new(
        r#"
        permit(principal, action, resource is Tool)
        when { context has address && context.address.isInRange(ip("10.0.0.0/8"))
               && context.time < datetime("2026-11-21T12:00:00Z") };
        "#,
    );
    let ana = user("ana", &[]);
    let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    for (address, now, allowed) in [
        (Some("10.1.2.3"), at(1_795_262_399), true),
        (Some("::ffff:10.1.2.3"), at(0), true),
        (Some("10.1.2.3"), at(1_795_262_400), false),
        (Some("11.1.2.3"), at(0), false),
        (Some("::1"), at(0), false),
        (None, at(0), false),
    ] {
        let decided = over.prepared.decide(&Ask {
            who: &ana,
            action: Action::Call,
            item: subject(over.find("docs_search")),
            arguments: None,
            circumstances: Circumstances {
                address: address.map(|address| address.parse().expect("an address")),
                now,
                ..circumstances()
            },
        });
        assert_eq!(decided.is_ok(), allowed, "{address:?} {now:?}");
    }
}

#[test]
fn a_tool_that_comes_later_and_does_not_fit_is_denied_and_told() {
    let over = Over::new(
        r#"
        permit(principal, action == Action::"call", resource);
        forbid(principal, action == Action::"call", resource is Tool) unless { context.args.repo like "acme/*" };
        "#,
    );
    let problems = over.prepared.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].message.contains("`docs_search`"),
        "{}",
        problems[0]
    );
    assert_eq!(
        (problems[0].line, problems[0].file.as_str()),
        (3, "p.cedar")
    );
    let ana = user("ana", &[]);
    assert_eq!(
        over.word(&ana, "github_create_issue", r#"{"repo":"acme/x"}"#),
        "allow"
    );
    let denied = over.decide(&ana, "docs_search", "{}").expect_err("denied");
    assert!(denied.hidden);
}

// SECURITY AUTHN-9
#[test]
fn who_answers_for_a_key_may_decide() {
    let policy = Policy::of(&[
        (
            "p.cedar",
            r#"permit(principal is Key, action, resource) when { principal has owner && principal.owner == "ana" };"#,
        ),
        (
            "cases.yaml",
            "items: [{ tool: t, upstream: u }]\ncases:\n\
             - { name: hers, key: ci, owner: ana, call: t, expect: allow }\n\
             - { name: his, key: ci, owner: bob, call: t, expect: hidden }\n\
             - { name: nobodys, key: ci, call: t, expect: hidden }\n\
             - { name: herself, user: ana, call: t, expect: hidden }\n",
        ),
    ]);
    let outcomes = policy.unwrap().run_cases(&[], SystemTime::now());
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|case| case.failure.is_some())
        .collect();
    assert!(failed.is_empty() && outcomes.len() == 4, "{failed:#?}");
}
