//! What is refused when a set is loaded, and where it is said to be.

use super::*;

fn refused(text: &str) -> Vec<Problem> {
    Policy::of(&[("p.cedar", text)]).expect_err("refused")
}

// SECURITY AUTHZ-3
#[test]
fn what_the_schema_does_not_have_is_refused_with_line_and_column() {
    for (text, place, words) in [
        (
            "permit(principal, action, resource)\nwhen { resource.nam == \"x\" };",
            (2, 8),
            "nam",
        ),
        (
            "\n permit(principal, action, resource in Upsteam::\"x\");",
            (2, 40),
            "Upsteam",
        ),
        (
            "permit(principal, action == Action::\"cal\", resource);",
            (1, 29),
            "cal",
        ),
        (
            "permit(principal, action, resource) when { resource.name == \"é\" && resource.nam == \"\" };",
            (1, 68),
            "nam",
        ),
        (
            "permit(principal, action == Action::\"call\", resource) when { context.args.n < \"x\" };",
            (1, 79),
            "",
        ),
        ("permit(principal, action, resource", (1, 35), ""),
        (
            "permit(principal, action, resource) when { principal.nickname == \"x\" };",
            (1, 44),
            "nickname",
        ),
    ] {
        let problems = refused(text);
        let problem = &problems[0];
        assert_eq!(
            (problem.line, problem.column),
            place,
            "{text}: {problems:#?}"
        );
        assert!(problem.message.contains(words), "{problem}");
    }
}

#[test]
fn what_was_meant_is_the_nearest_name_each_time() {
    for (written, meant) in [
        (
            r#"action == Action::"cal", resource"#,
            r#"did you mean `Action::"call"`?"#,
        ),
        (
            r#"action == Action::"raed", resource"#,
            r#"did you mean `Action::"read"`?"#,
        ),
        (
            r#"action in [Action::"usse"], resource"#,
            r#"did you mean `Action::"use"`?"#,
        ),
        (r#"action, resource is Tol"#, "did you mean `Tool`?"),
        (
            r#"action, resource in Toolst::"x""#,
            "did you mean `Toolset`?",
        ),
    ] {
        for _ in 0..8 {
            let problems = refused(&format!("permit(principal, {written});"));
            assert_eq!(problems[0].hint.as_deref(), Some(meant), "{written}");
        }
    }
}

#[test]
fn what_could_not_be_kept_to_is_refused() {
    for (text, words) in [
        (
            "@requires(\"approval\") permit(principal, action, resource);",
            "@requires",
        ),
        (
            "@require(\"approvals\") permit(principal, action, resource);",
            "approval",
        ),
        (
            "@require(\"approval\") forbid(principal, action, resource);",
            "forbid",
        ),
        (
            "@require(\"approval\") @within(\"soon\") permit(principal, action, resource);",
            "no time",
        ),
        (
            "@within(\"5m\") permit(principal, action, resource);",
            "without",
        ),
        (
            "permit(principal == ?principal, action, resource);",
            "template",
        ),
        (
            "@id(\"a\") permit(principal, action, resource); @id(\"a\") forbid(principal, action, resource);",
            "taken",
        ),
        (
            "permit(principal, action == Action::\"call\", resource) when { resource.claimed has read_only };",
            "claims",
        ),
        (
            "permit(principal, action == Action::\"call\", resource) when { context.args == context.args };",
            "as a whole",
        ),
        (
            "permit(principal, action == Action::\"call\", resource) when { context == context };",
            "as a whole",
        ),
        (
            "permit(principal, action == Action::\"call\", resource) when { User::\"a\" in Group::\"b\" };",
            "on its left",
        ),
        (
            "permit(principal, action == Action::\"call\", resource) when { context.text.hasTag(resource.name) };",
            "named",
        ),
    ] {
        let problems = refused(text);
        assert!(
            problems
                .iter()
                .any(|problem| problem.message.contains(words)),
            "{text}: {problems:#?}"
        );
    }
}

// SECURITY AUTHZ-11
#[test]
fn what_an_upstream_claims_of_itself_may_forbid_and_keeps_no_forbid_from_holding() {
    const PERMIT: &str = "permit(principal, action, resource);";
    const READS: &str = "resource.claimed has read_only && resource.claimed.read_only";
    let of = |condition: &str| {
        let forbid =
            format!("forbid(principal, action == Action::\"call\", resource) {condition};");
        Policy::of(&[("p.cedar", &format!("{PERMIT}\n{forbid}"))])
    };
    for condition in [
        format!("unless {{ {READS} }}"),
        format!("when {{ !({READS}) }}"),
        format!("when {{ resource.name == \"x\" || !({READS}) }}"),
        format!("unless {{ !({READS}) }}"),
        format!("when {{ ({READS}) == false }}"),
        format!("when {{ if {READS} then false else true }}"),
        "when { (resource.claimed has read_only) != true }".to_owned(),
        "when { resource.claimed == {} }".to_owned(),
        "unless { resource has claimed.read_only && resource.claimed.read_only }".to_owned(),
        "when { !(resource has claimed.read_only) }".to_owned(),
    ] {
        let problems = of(&condition).expect_err("refused");
        let message = "nothing is permitted because of what an upstream claims of itself";
        let told = problems.iter().any(|problem| problem.message == message);
        assert!(told, "{condition}: {problems:#?}");
    }
    for condition in [
        format!("when {{ {READS} }}"),
        "when { resource.claimed has destructive && resource.claimed.destructive == true }"
            .to_owned(),
        "when { resource has claimed.destructive && resource.claimed.destructive }".to_owned(),
        "when { resource has claimed }".to_owned(),
        format!(
            "when {{ resource.name like \"db_*\" && ({READS} || !(principal is User)) }} unless {{ resource has read_only }}"
        ),
    ] {
        let loaded = of(&condition);
        assert!(loaded.is_ok(), "{condition}: {loaded:?}");
    }
}

// SECURITY AUTHZ-11
#[test]
fn attributes_are_not_read_by_a_detour_on_which_nobody_sees_which_they_are() {
    const PERMIT: &str = "permit(principal, action, resource);";
    let either = "(if principal is User then resource else resource)";
    let one = "(if principal is User then principal else principal)";
    let claims = |of: &str| format!("{of}.claimed has read_only && {of}.claimed.read_only");
    for condition in [
        claims(either),
        claims("{r: resource}.r"),
        claims("{r: {s: resource}}[\"r\"].s"),
        claims("(if principal is User then {r: resource} else {r: resource}).r"),
        claims("Tool::\"github_search\""),
        format!("{either} has claimed.read_only && {either}.claimed.read_only"),
        "{r: resource} has r.claimed.read_only".to_owned(),
        format!("{either}[\"claimed\"] has read_only"),
        format!("{either}.read_only"),
        // What cannot be seen would not keep apart who is, either.
        format!("{one}.name == \"ana\""),
        format!("{one} has tenant"),
        format!("{{p: {one}}}.p.name like \"a*\""),
    ] {
        for clause in ["when", "unless"] {
            for effect in ["permit", "forbid"] {
                let text = format!(
                    "{PERMIT}\n{effect}(principal is User, action == Action::\"call\", resource) {clause} {{ {condition} }};"
                );
                let problems = refused(&text);
                let told = problems
                    .iter()
                    .any(|problem| problem.message.contains("straight from"));
                assert!(told, "{text}: {problems:#?}");
            }
        }
    }
    // The same as a path in brackets is one, and what no entity comes out of may be looked at anyhow.
    let problems = refused(
        "forbid(principal, action == Action::\"call\", resource) unless { resource[\"claimed\"] has read_only && resource[\"claimed\"][\"read_only\"] };",
    );
    assert!(
        problems[0].message.contains("claims of itself"),
        "{problems:#?}"
    );
    for condition in [
        "(if principal is User then context.scopes else context.scopes).contains(\"x\")",
        "{a: resource.name, b: 1}.a like \"db_*\"",
        "(if resource has read_only then resource.read_only else false)",
        "(if context.args has a then context.args.a else context.args.b) has c",
    ] {
        let text = format!(
            "forbid(principal, action == Action::\"call\", resource) when {{ {condition} }};"
        );
        let faults = Policy::of(&[("p.cedar", &text)]).err().unwrap_or_default();
        let told = faults
            .iter()
            .any(|problem| problem.message.contains("straight from"));
        assert!(!told, "{text}: {faults:#?}");
    }
}

// SECURITY AUTHZ-1
#[test]
fn nothing_at_all_and_nothing_readable_are_refused() {
    assert!(
        refused("// nothing")[0]
            .message
            .contains("nothing would be permitted")
    );
    assert!(Policy::of(&[]).is_err());
    let dir = tempfile::tempdir().expect("a directory");
    let missing = Policy::load(&dir.path().join("nowhere")).expect_err("refused");
    assert!(
        missing[0].message.contains("cannot be read"),
        "{}",
        missing[0]
    );
    std::fs::write(dir.path().join("a.cedar"), [0xff, 0xfe]).expect("written");
    assert!(Policy::load(dir.path()).is_err());
    std::fs::write(
        dir.path().join("a.cedar"),
        "permit(principal, action, resource);",
    )
    .expect("written");
    assert_eq!(Policy::load(dir.path()).expect("a set").count(), 1);
}

// SECURITY OPS-1
#[test]
fn a_set_that_others_may_write_to_is_refused() {
    use std::{fs, os::unix::fs::PermissionsExt as _};
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("a.cedar");
    fs::write(&file, "permit(principal, action, resource);").expect("written");
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode set");
    };
    for (path, kept, kind) in [(dir.path(), 0o755, "directory"), (&*file, 0o644, "file")] {
        for mode in [kept | 0o020, kept | 0o002, 0o777] {
            set(path, mode);
            let problems = Policy::load(dir.path()).expect_err("refused");
            let said = format!("others may write to this {kind} (mode {mode:o})");
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].message, said);
            let hint = format!("it says who may do what: chmod go-w {}", path.display());
            assert_eq!(problems[0].hint.as_deref(), Some(&*hint));
        }
        set(path, kept);
        assert!(Policy::load(dir.path()).is_ok(), "{kind}");
    }
}

#[test]
fn groups_that_are_no_groups_are_refused_with_their_place() {
    let set = |groups: &str| {
        Policy::of(&[
            ("a.cedar", "permit(principal, action, resource);"),
            ("groups.yaml", groups),
        ])
    };
    assert!(set("dev: {users: [a]}").is_ok());
    for (text, line) in [
        ("dev:\n  user: [a]\n", 2),
        ("dev: [a]\n", 1),
        ("dev: {}\ndev: {}\n", 2),
    ] {
        let problems = set(text).expect_err("refused");
        assert_eq!(
            (problems[0].file.as_str(), problems[0].line),
            ("groups.yaml", line),
            "{problems:?}"
        );
    }
}

#[test]
fn a_digest_is_that_of_what_decides() {
    let of = |files: &[(&str, &str)]| Policy::of(files).expect("a set").digest().to_owned();
    let one = ("a.cedar", "permit(principal, action, resource);");
    assert_eq!(of(&[one]), of(&[("elsewhere/a.cedar", one.1)]));
    assert_ne!(
        of(&[one]),
        of(&[("a.cedar", "permit(principal, action, resource) ;")])
    );
    assert_ne!(of(&[one]), of(&[one, ("groups.yaml", "a: {}")]));
}
