//! What endpoints say of themselves.

use super::*;

fn says(capabilities: &str, instructions: Option<&str>) -> Contribution {
    let mut contribution = tools(&["t"]);
    let mut card = card(capabilities);
    card.instructions = instructions.map(Into::into);
    contribution.card = Some(card);
    contribution
}

fn instructions(catalog: &Catalog, scope: &Scope) -> Option<String> {
    let card = catalog.face(scope, Revision::V2025_06_18).unwrap();
    assert_eq!(card.revision, Revision::V2025_06_18);
    card.instructions.map(|text| text.to_string())
}

#[test]
fn capabilities_are_the_union_without_promises_that_are_not_kept() {
    let capabilities = |part: Contribution| {
        let parts = vec![("a", part), ("b", says("{}", None))];
        let catalog = build(&rules(&[("a", "a"), ("b", "b")]), parts, None);
        catalog.face(&Scope::All, MODERN).unwrap().capabilities
    };
    assert_eq!(
        capabilities(says(
            r#"{"tools":{"listChanged":true},"experimental":{},"extensions":{"x":{}}}"#,
            None
        ))
        .as_str(),
        r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}"#
    );
    assert_eq!(
        capabilities(says(
            r#"{"resources":{"subscribe":true},"completions":{},"logging":{}}"#,
            None
        ))
        .as_str(),
        r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}"#
    );
}

#[test]
fn a_server_that_nothing_was_heard_of_yet_may_turn_out_to_do_anything() {
    let away = Contribution {
        away: true,
        ..Contribution::default()
    };
    for (other, promised) in [
        (None, true),
        (Some(away), true),
        // It is there, and shows nothing to everybody.
        (Some(Contribution::default()), false),
        (Some(says(r#"{"tools":{}}"#, None)), false),
    ] {
        let parts = [("a", Some(says(r#"{"tools":{}}"#, None))), ("b", other)];
        let parts = parts
            .into_iter()
            .filter_map(|(key, part)| Some((key, part?)));
        let catalog = build(&rules(&[("a", "a"), ("b", "b")]), parts.collect(), None);
        let said = catalog.face(&Scope::All, MODERN).unwrap().capabilities;
        for capability in ["completions", "logging", "subscribe"] {
            let said = said.as_str().contains(capability);
            assert_eq!(said, promised, "{capability}");
        }
        // What one does is not what another may do.
        let own = catalog.face(&Scope::Upstream(id("a")), MODERN).unwrap();
        assert!(!own.capabilities.as_str().contains("completions"));
        assert_eq!(instructions(&catalog, &Scope::All), None);
    }
}

#[test]
fn how_names_are_made_is_said_while_no_server_has_said_anything() {
    let rules = rules(&[("a", "a"), ("b", "b")]);
    let catalog = build(&rules, Vec::new(), None);
    let text = instructions(&catalog, &Scope::All).unwrap();
    assert!(
        text.starts_with("Several servers answer here.") && !text.contains("below"),
        "{text}"
    );
    assert_eq!(instructions(&catalog, &Scope::Upstream(id("a"))), None);
}

/// PROTOCOL A5
#[test]
fn completions_are_promised_for_servers_of_the_oldest_revision_which_cannot_declare_them() {
    for (revision, capabilities, promised) in [
        (Revision::V2024_11_05, r#"{"prompts":{}}"#, true),
        (Revision::V2024_11_05, r#"{"resources":{}}"#, true),
        // Nothing of it can be completed.
        (Revision::V2024_11_05, r#"{"tools":{}}"#, false),
        (
            Revision::V2025_03_26,
            r#"{"prompts":{},"resources":{}}"#,
            false,
        ),
        (MODERN, r#"{"prompts":{},"resources":{}}"#, false),
    ] {
        let mut part = says(capabilities, None);
        part.card.as_mut().unwrap().revision = revision;
        let catalog = build(&rules(&[("a", "a")]), vec![("a", part)], None);
        let face = catalog.face(&Scope::All, MODERN).unwrap();
        let completions = face.capabilities.root().member("completions");
        assert_eq!(completions.is_some(), promised, "{revision} {capabilities}");
    }
}

#[test]
fn instructions_are_labelled_in_order_under_one_rule_about_prefixes() {
    let catalog = build(
        &rules(&[("b", "bee"), ("silent", "s"), ("a", "")]),
        vec![
            ("a", says("{}", Some("Use a."))),
            ("b", says("{}", Some(" Use b. "))),
            ("silent", says("{}", None)),
        ],
        None,
    );
    let text = instructions(&catalog, &Scope::All).unwrap();
    assert!(text.starts_with("Several servers answer here."), "{text}");
    assert!(
        text.ends_with("\n\n## b (prefix `bee`)\nUse b.\n\n## a (no prefix)\nUse a."),
        "{text}"
    );
    assert_eq!(text.matches("Several servers").count(), 1);
    assert_eq!(
        instructions(&catalog, &Scope::Upstream(id("b"))).as_deref(),
        Some("Use b.")
    );
    assert_eq!(instructions(&catalog, &Scope::Upstream(id("silent"))), None);
}

#[test]
fn a_single_upstream_without_prefix_speaks_for_itself() {
    let catalog = build(
        &rules(&[("a", "")]),
        vec![("a", says("{}", Some("Use a.")))],
        None,
    );
    assert_eq!(
        instructions(&catalog, &Scope::All).as_deref(),
        Some("Use a.")
    );
}

#[test]
fn instructions_are_cut_at_their_bounds() {
    let keys: Vec<_> = (0..6).map(|n| format!("u{n}")).collect();
    let pairs: Vec<_> = keys
        .iter()
        .map(|key| (key.as_str(), key.as_str()))
        .collect();
    let long = "é".repeat(5_000);
    let parts = keys
        .iter()
        .map(|key| (key.as_str(), says("{}", Some(&long))))
        .collect();
    let catalog = build(&rules(&pairs), parts, None);
    let one = instructions(&catalog, &Scope::Upstream(id("u0"))).unwrap();
    assert!(
        one.len() <= 8 << 10 && one.ends_with("é\n[cut]"),
        "{}",
        one.len()
    );
    let all = instructions(&catalog, &Scope::All).unwrap();
    assert!(all.len() <= 32 << 10 && all.len() > 31 << 10 && all.ends_with("\n[cut]"));
}
