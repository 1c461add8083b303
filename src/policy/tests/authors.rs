//! What authors are told: explanations, who may do a thing, what is strange, how cases come out.

use super::*;

const POLICIES: &str = r#"@id("dev") permit(principal in Group::"dev", action == Action::"call", resource in Upstream::"github")
when { context.args.repo like "acme/*" };
@id("closed") @reason("it is closed")
forbid(principal, action == Action::"call", resource) when { context.args has repo && context.args.repo == "acme/closed" };
@id("ana") permit(principal == User::"ana", action in Action::"use", resource in Upstream::"docs");
"#;

fn explain(over: &Over, who: &Identity, outward: &str, args: &str) -> Explanation {
    let args = json(args);
    over.prepared.explain(&Ask {
        who,
        action: Action::Call,
        item: subject(over.find(outward)),
        arguments: Some(&args),
        circumstances: circumstances(),
    })
}

fn states(explanation: &Explanation) -> Vec<(&str, State)> {
    let policies = explanation.policies.iter();
    policies
        .map(|weighed| (&*weighed.policy, weighed.state.clone()))
        .collect()
}

#[test]
fn an_explanation_says_what_a_tag_leads_to() {
    let over = Over::new(
        r#"
        @id("owners") permit(principal, action == Action::"call", resource)
        when { context.text.hasTag("filter.owner") && context.text.getTag("filter.owner") == "acme" };
        "#,
    );
    for (args, told) in [
        (
            r#"{"filter":{"owner":"b\u0063"}}"#,
            r#"(`filter.owner` is "bc" here)"#,
        ),
        (r#"{"filter":{}}"#, "(`filter.owner` is absent here)"),
    ] {
        let changes = explain(&over, &user("ana", &[]), "github_create_issue", args).changes;
        assert!(changes[0].ends_with(told), "{changes:?}");
    }
}

#[test]
fn an_explanation_says_which_policies_decide_and_what_would_change_it() {
    let over = Over::new(POLICIES);
    let (dev, ben) = (user("ben", &["dev"]), user("ben", &[]));

    let told = explain(&over, &dev, "github_create_issue", r#"{"repo":"acme/x"}"#);
    assert_eq!((told.decision, told.listed), ("allow", true));
    assert_eq!(told.by, [Arc::from("dev")]);
    assert_eq!(
        states(&told),
        [("dev", State::Applies), ("closed", State::ConditionsFail)]
    );
    assert_eq!(
        told.changes,
        [
            r#"`closed` would forbid it when { context.args has repo && context.args.repo == "acme/closed" } (`repo` is "acme/x" here)"#
        ]
    );

    let told = explain(
        &over,
        &dev,
        "github_create_issue",
        r#"{"repo":"acme/closed"}"#,
    );
    assert_eq!(
        (told.decision, told.text.as_deref()),
        ("policy_denied", Some("it is closed"))
    );
    assert!(
        told.changes[0].starts_with("`closed` forbids it"),
        "{told:?}"
    );

    let told = explain(&over, &dev, "github_create_issue", r#"{"repo":7}"#);
    assert_eq!(told.decision, "policy_unrepresentable");
    assert!(
        told.changes[0].contains("`repo` must be a string"),
        "{told:?}"
    );

    let told = explain(&over, &ben, "github_create_issue", r#"{"repo":"acme/x"}"#);
    assert_eq!((told.decision, told.listed), ("policy_denied", false));
    assert_eq!(
        states(&told)[1],
        ("dev", State::MeantFor("members of Group::\"dev\"".into()))
    );
    assert_eq!(
        told.changes,
        [
            r#"`dev` permits it to members of Group::"dev", when { context.args.repo like "acme/*" }"#
        ]
    );
    assert_eq!(told.policies[1].place, "p.cedar:1");
}

/// Who of those that policies name may call what, and by which policies.
fn able_over(over: &Over, outward: &str) -> Vec<String> {
    let able = over
        .prepared
        .who_can(Action::Call, subject(over.find(outward)), None);
    let named = able.iter().filter(|able| able.who.contains("::"));
    named
        .map(|able| format!("{} {} {}", able.who, able.may, able.by.join(",")))
        .collect()
}

#[test]
fn who_can_tells_of_everybody_whom_policies_name() {
    let over = Over::new(POLICIES);
    let who_can = |outward: &str| {
        let item = subject(over.find(outward));
        let able = over.prepared.who_can(Action::Call, item, None);
        able.iter()
            .map(|able| format!("{} {} {}", able.who, able.may, able.by.join(",")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        who_can("github_create_issue"),
        [r#"Group::"dev" depends dev"#]
    );
    // An argument that the schema does not declare may still be sent, so it depends.
    assert_eq!(who_can("docs_search"), [r#"User::"ana" depends ana"#]);
    // Where everybody may, the exceptions are told: a line that says "any user" is not the whole of it.
    let over = Over::new(
        r#"@id("all") permit(principal, action, resource);
@id("not") forbid(principal in Group::"dev", action, resource) unless { resource in Upstream::"docs" };
@id("nor") forbid(principal == Key::"ci", action, resource);"#,
    );
    let able = |outward: &str| able_over(&over, outward);
    assert_eq!(
        able("github_create_issue"),
        [r#"Group::"dev" no not"#, r#"Key::"ci" no nor"#]
    );
    assert_eq!(
        able("docs_search"),
        [r#"Group::"dev" yes all"#, r#"Key::"ci" no nor"#]
    );
    // A permit that wants an approval wants it whatever others permit; one that may apply makes it a question.
    let over = Over::new(
        r#"@id("all") permit(principal, action, resource) when { principal is User };
@id("asks") @require("approval") permit(principal in Group::"dev", action, resource);
@id("may") @require("approval") permit(principal == User::"ana", action == Action::"call", resource) when { context.args has deep };"#,
    );
    assert_eq!(
        able_over(&over, "docs_search"),
        [
            r#"Group::"dev" approval all,asks"#,
            r#"User::"ana" depends all,may"#
        ]
    );
    let open = Over::with(&Policy::unrestricted(), items());
    let item = open.find("docs_search").clone();
    let able = open.prepared.who_can(Action::Call, subject(&item), None);
    assert_eq!((able.len(), able[0].may), (1, "yes"));
}

#[test]
fn a_review_tells_of_names_that_nothing_has_and_of_policies_that_add_nothing() {
    let over = Over::new(
        r#"@id("typo") permit(principal, action, resource == Tool::"github_create_isue");
@id("away") permit(principal, action, resource in Upstream::"nowhere-at-all") when { principal is User };
@id("dev") permit(principal in Group::"dev", action, resource in Upstream::"github");
@id("twice") permit(principal in Group::"dev", action == Action::"call", resource == Tool::"github_create_issue") when { context.args.repo == "x" };
@id("no") forbid(principal in Group::"out", action, resource);
@id("vain") permit(principal in Group::"out", action == Action::"call", resource is Tool);
@id("never") permit(principal, action, resource) when { principal is User && principal is Key };
@id("prompts") permit(principal, action == Action::"get", resource in Upstream::"github");
"#,
    );
    let notes: Vec<String> = over
        .prepared
        .review(&Configured::default())
        .iter()
        .map(|note| {
            format!(
                "{} {} {}",
                note.line,
                note.message,
                note.hint.as_deref().unwrap_or_default()
            )
        })
        .collect();
    let wanted = [
        r#"1 Tool::"github_create_isue" is not there "github_create_issue" is"#,
        "1 `typo` is about nothing that is there ",
        r#"2 Upstream::"nowhere-at-all" is not there see `usher catalog` for what is"#,
        "2 `away` is about nothing that is there ",
        "4 `twice` adds nothing: `dev` permits all of it see p.cedar:3",
        "6 `vain` permits nothing: `no` forbids all of it see p.cedar:5",
        "7 `never` can never apply its conditions are false for everything in its scope",
        "8 `prompts` is about nothing that is there ",
    ];
    for wanted in wanted {
        assert!(
            notes.iter().any(|note| note == wanted),
            "{wanted}\n{notes:#?}"
        );
    }
    assert_eq!(notes.len(), wanted.len(), "{notes:#?}");
    assert_eq!(
        Over::new(POLICIES).prepared.review(&Configured::default()),
        []
    );
}

// SECURITY AUTHZ-4
#[test]
fn names_that_several_can_give_are_told_unless_a_policy_asks_who_gave_them() {
    let told = |text: &str, authorities| {
        let policy = Policy::of(&[("p.cedar", text)]).expect("a set");
        policy.pooled(authorities).map(|note| note.to_string())
    };
    let rest = "permit(principal, action, resource is Prompt);\n";
    for (policy, what) in [
        (
            r#"permit(principal == User::"ana", action, resource);"#,
            r#"User::"ana""#,
        ),
        (
            r#"permit(principal in Group::"ops", action, resource);"#,
            r#"Group::"ops""#,
        ),
        (
            r#"permit(principal, action, resource) when { principal in Tenant::"acme" };"#,
            r#"Tenant::"acme""#,
        ),
        (
            r#"permit(principal == Agent::"bot", action, resource);"#,
            r#"Agent::"bot""#,
        ),
        (
            r#"forbid(principal is User, action, resource) unless { principal.name like "*@acme.example" };"#,
            "`principal.name`",
        ),
    ] {
        let text = format!("{rest}{policy}");
        assert_eq!(told(&text, 1), None, "{policy}");
        let note = told(&text, 2).expect(policy);
        assert!(note.starts_with("p.cedar:2:1: "), "{note}");
        assert!(note.contains(&format!("goes by {what}, ")), "{note}");
        let asks = r#"forbid(principal is User, action, resource) unless { principal has issuer && principal.issuer == "https://id.example.com" };"#;
        assert_eq!(told(&format!("{text}\n{asks}"), 2), None, "{policy}");
    }
    for text in [rest, r#"permit(principal == Key::"ci", action, resource);"#] {
        assert_eq!(told(text, 3), None, "{text}");
    }
}

#[test]
fn a_case_that_comes_out_otherwise_is_told_with_its_line() {
    let cases = r#"items:
  - { tool: github_create_issue, upstream: github, arguments: { repo: string } }
cases:
  - { name: right, user: ben, groups: [dev], call: github_create_issue, args: { repo: acme/x }, expect: allow, by: dev }
  - { name: wrong, user: ben, groups: [dev], call: github_create_issue, args: { repo: other }, expect: allow }
  - { name: by another, user: ben, groups: [dev], call: github_create_issue, args: { repo: acme/x }, expect: allow, by: ana }
  - { name: unknown, user: ben, call: github_nothing, expect: hidden }
  - { name: unlisted, user: ana, read: docs+file:///x, expect: allow }
"#;
    let policy = Policy::of(&[("p.cedar", POLICIES), ("cases.yaml", cases)]).expect("a set");
    let outcomes = policy.run_cases(&[], SystemTime::UNIX_EPOCH);
    let failures: Vec<(&str, usize, &str)> = outcomes
        .iter()
        .filter_map(|case| Some((case.name.as_str(), case.line, case.failure.as_deref()?)))
        .collect();
    assert_eq!(
        failures,
        [
            (
                "wrong",
                5,
                "expected allow, but it is deny (policy_denied: no policy permits this with these arguments; policies look at `repo`)"
            ),
            (
                "by another",
                6,
                "expected `ana` to decide, but it is allow, by dev"
            ),
            ("unknown", 7, "`github_nothing` is not among the items"),
        ]
    );
    for (text, line) in [
        ("cases:\n  - { user: a, call: x }\n", 2),
        ("cases:\n  - { call: x, expect: maybe }\n", 2),
        (
            "cases:\n  - { user: a, key: b, call: x, expect: deny }\n",
            2,
        ),
        ("cases:\n  - { call: x, get: y, expect: deny }\n", 2),
        ("cases:\n  - { call: x, expect: deny, at: soon }\n", 2),
        ("cases:\n  - { call: x, expcet: deny }\n", 2),
    ] {
        let problems = Policy::of(&[("p.cedar", POLICIES), ("cases.yaml", text)]);
        let problems = problems.expect_err("refused");
        assert_eq!(problems[0].line, line, "{text}: {problems:?}");
    }
}

#[test]
fn where_a_permit_applies_other_permits_would_change_nothing() {
    let over = Over::new(
        r#"@id("all") permit(principal, action, resource);
@id("ops") permit(principal == User::"ops", action, resource);
@id("no") forbid(principal, action == Action::"call", resource);
"#,
    );
    let told = explain(&over, &user("ben", &[]), "github_create_issue", "{}");
    assert_eq!(told.changes, ["`no` forbids it, whatever others permit"]);
}
