//! The policies that are shipped: they load, nothing about them is strange, and every case of theirs comes out as expected.
#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, path::Path, process::Command, time::SystemTime};

use usher::policy::{Configured, Policy};

fn dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/policies"))
}

fn shipped() -> Policy {
    Policy::load(dir()).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[test]
fn shipped_policies_are_right_and_fit_their_items() {
    let policy = shipped();
    let prepared = policy.prepare(policy.case_items().to_vec(), None);
    assert_eq!(prepared.problems(), []);
    assert_eq!(prepared.review(&Configured::default()), []);
}

#[test]
fn every_shipped_case_comes_out_as_expected() {
    let outcomes = shipped().run_cases(&[], SystemTime::now());
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|case| case.failure.is_some())
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(outcomes.len() > 25);
}

#[test]
fn every_shipped_policy_decides_in_some_case() {
    // Without a policy, some case comes out otherwise: none is there for nothing.
    let files = |without: Option<usize>| -> Vec<(String, String)> {
        let mut number = 0;
        let mut files: Vec<_> = std::fs::read_dir(dir())
            .expect("the directory")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        files
            .into_iter()
            .map(|path| {
                let text = std::fs::read_to_string(&path).expect("a file");
                let name = path
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned();
                if !name.ends_with(".cedar") {
                    return (name, text);
                }
                let mut kept = String::new();
                for piece in text.split_inclusive(";\n") {
                    if piece.contains("@id(") {
                        if Some(number) != without {
                            kept.push_str(piece);
                        }
                        number += 1;
                    }
                }
                (name, kept)
            })
            .collect()
    };
    let count = shipped().count();
    for without in 0..count {
        let files = files(Some(without));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let policy = Policy::of(&files).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert_eq!(policy.count(), count - 1);
        let outcomes = policy.run_cases(&[], SystemTime::now());
        assert!(
            outcomes.iter().any(|case| case.failure.is_some()),
            "policy number {without} decides nothing"
        );
    }
}

#[test]
fn the_commands_for_authors_end_as_they_say_and_print_what_parses() {
    let dir = dir().display().to_string();
    let run = |arguments: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .arg("policy")
            .args(arguments)
            .args(["--dir", &dir])
            .output()
            .expect("usher runs");
        let text = String::from_utf8(out.stdout).expect("UTF-8");
        let code = out.status.code();
        (code, text, String::from_utf8(out.stderr).expect("UTF-8"))
    };
    let (code, text, errors) = run(&["check"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("fine"), "{text}");
    let (code, text, _) = run(&["test"]);
    assert_eq!(code, Some(0), "{text}");

    let ask = [
        "explain",
        "--user",
        "ana",
        "--call",
        "github_delete_repo",
        "--args",
        r#"{"repo":"acme/site"}"#,
    ];
    let (code, text, errors) = run(&ask);
    assert_eq!(code, Some(0), "{errors}");
    for words in [
        "no: ana may not call `github_delete_repo`",
        "it is not listed for them",
        "`maintainers-ask-first` permits it to members of Group::\"maintainers\", when { resource has destructive && resource.destructive }",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let (_, text, _) = run(&[
        "explain",
        "--user",
        "cy",
        "--group",
        "contractors",
        "--call",
        "github_create_issue",
        "--args",
        r#"{"repo":"acme/secret"}"#,
    ]);
    for words in [
        "policy_denied: contractors work on acme/site and acme/docs only",
        r#"(`repo` is "acme/secret" here)"#,
    ] {
        assert!(text.contains(words), "{text}");
    }
    let (_, text, _) = run(&[&ask[..], &["--json"]].concat());
    let members: BTreeSet<String> = serde_json::from_str::<
        std::collections::BTreeMap<String, Box<serde_json::value::RawValue>>,
    >(&text)
    .expect("JSON")
    .into_keys()
    .collect();
    assert!(
        members.contains("decision") && members.contains("changes"),
        "{text}"
    );

    let (code, text, _) = run(&["who-can", "--call", "github_delete_repo"]);
    assert_eq!(code, Some(0));
    for words in [
        "Group::\"operators\"",
        "User::\"mia\"",
        "maintainers-ask-first",
    ] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("Group::\"web\""), "{text}");
    let (code, _, errors) = run(&["who-can", "--call", "nonsense"]);
    assert_eq!((code, errors.contains("nonsense")), (Some(2), true));
}

/// A folder with a configuration of the demo's travel server, and its policies where the configuration says.
struct Travelling(tempfile::TempDir);

impl Travelling {
    fn under(policy_block: &str, cedar: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = format!(
            "{policy_block}upstreams:
  travel:
    command: [{:?}, demo-travel]
    tags: {{ \"search_*\": [shared] }}
    tools: {{ annotations: {{ clear_trip: {{ destructive: true }} }} }}
  gone: {{ url: \"http://127.0.0.1:1/mcp\" }}
toolsets:
  trips: {{ tools: [\"travel_*_trip\"] }}
",
            env!("CARGO_BIN_EXE_usher")
        );
        std::fs::write(folder.path().join("usher.yaml"), config).expect("a file");
        let rules = folder.path().join("rules");
        std::fs::create_dir(&rules).expect("a folder");
        std::fs::write(rules.join("main.cedar"), cedar).expect("a file");
        Self(folder)
    }

    /// Exit code, stdout and stderr of a policy command with `--connect`.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        self.usher(&[&["policy"], arguments, &["--connect"]].concat())
    }

    /// Exit code, stdout and stderr of a command.
    fn usher(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let out = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("usher runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (out.status.code(), text(out.stdout), text(out.stderr))
    }
}

#[test]
fn with_a_gateway_at_hand_tags_pins_and_toolsets_decide_as_they_do_there() {
    let travelling = Travelling::under(
        "policy: { dir: rules }\n",
        r#"@id("shared") permit(principal is User, action in Action::"use", resource) when { resource.tags.contains("shared") };
@id("careful") @require("approval") permit(principal is User, action, resource is Tool) when { resource has destructive && resource.destructive };
@id("trips") permit(principal is Key, action, resource in Toolset::"trips");
@id("away") permit(principal is Key, action, resource in Upstream::"gone");
@id("typo") permit(principal is Key, action, resource) when { resource.tags.contains("shraed") };
"#,
    );
    let decision = |arguments: &[&str]| {
        let (code, text, errors) = travelling.run(&[&["explain", "--json"], arguments].concat());
        assert_eq!(code, Some(0), "{arguments:?} {errors}");
        let found = text.split(r#""decision":""#).nth(1).expect("a decision");
        found.split('"').next().expect("a word").to_owned()
    };
    for (arguments, wanted) in [
        (
            ["--user", "ana", "--call", "travel_search_flights"],
            "allow",
        ),
        (["--user", "ana", "--call", "travel_clear_trip"], "approval"),
        (
            ["--user", "ana", "--call", "travel_view_trip"],
            "policy_denied",
        ),
        (["--key", "ci", "--call", "travel_view_trip"], "allow"),
        (
            ["--key", "ci", "--call", "travel_search_flights"],
            "policy_denied",
        ),
    ] {
        assert_eq!(decision(&arguments), wanted, "{arguments:?}");
    }
    let (code, _, errors) = travelling.run(&[
        "explain",
        "--key",
        "ci",
        "--toolset",
        "trips",
        "--call",
        "travel_search_flights",
    ]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("not there in the toolset `trips`"),
        "{errors}"
    );
    let (_, text, _) = travelling.run(&["who-can", "--call", "travel_clear_trip"]);
    assert!(
        text.contains("any user") && text.contains("careful"),
        "{text}"
    );
    // What is away may have anything, so that nothing is said of it; and the check says that it was away.
    let (code, text, errors) = travelling.run(&["check"]);
    assert_eq!(code, Some(1), "{errors}");
    assert!(text.contains("rules: fine"), "{text}");
    assert!(errors.contains("`gone` is away"), "{errors}");
    assert!(
        !errors.contains("is not there") && !errors.contains("shraed"),
        "{errors}"
    );
}

#[test]
fn policies_that_no_configuration_asks_are_told_to_be_so() {
    let travelling = Travelling::under("", "permit(principal, action, resource);");
    let (code, _, errors) = travelling.run(&["check", "--dir", "rules"]);
    assert_eq!(code, Some(1));
    assert!(
        errors.contains("usher.yaml has no `policy` block"),
        "{errors}"
    );
    let (code, _, errors) = travelling.run(&["check"]);
    assert_eq!(
        (code, errors.contains("cannot be read")),
        (Some(2), true),
        "{errors}"
    );
}

const RULES: &str = "policy: { dir: rules }\n";

#[test]
fn a_configuration_is_not_fine_while_its_policies_are_not() {
    let spoilt = |spoil: &dyn Fn(&Path)| {
        let travelling = Travelling::under(RULES, "permit(principal, action, resource);");
        spoil(&travelling.0.path().join("rules"));
        travelling
    };
    let broken = |rules: &Path| {
        std::fs::write(rules.join("main.cedar"), "permit(principal,\n  action").expect("a file");
    };
    for (travelling, told) in [
        (
            spoilt(&|rules| std::fs::remove_dir_all(rules).expect("removed")),
            "rules: error: cannot be read",
        ),
        (
            spoilt(&|rules| std::fs::remove_file(rules.join("main.cedar")).expect("removed")),
            "rules: error: no policy is in here",
        ),
        (spoilt(&broken), "rules/main.cedar:2:9: error: "),
    ] {
        for connect in [&["check"][..], &["check", "--connect"]] {
            let (code, text, errors) = travelling.usher(connect);
            assert_eq!((code, text.as_str()), (Some(2), ""), "{errors}");
            assert!(errors.contains(told), "{errors}");
            assert!(errors.ends_with("\n1 problem\n"), "{errors}");
        }
        let (code, text, _) = travelling.usher(&["check", "--json"]);
        assert_eq!(code, Some(2));
        let file = told.split(':').next().expect("a file");
        assert!(
            text.starts_with(&format!(r#"{{"ok":false,"problems":[{{"file":"{file}","#)),
            "{text}"
        );
    }
    // What is wrong with the configuration itself is told beside it, each once.
    let travelling = spoilt(&broken);
    let config = travelling.0.path().join("usher.yaml");
    let text = std::fs::read_to_string(&config).expect("a file");
    std::fs::write(&config, format!("{text}zebra: 1\n")).expect("a file");
    let (code, _, errors) = travelling.usher(&["check"]);
    assert_eq!(code, Some(2));
    for words in ["zebra", "rules/main.cedar:2:9", "\n2 problems\n"] {
        assert!(errors.contains(words), "{errors}");
    }
    let travelling = Travelling::under("policy: { dir: \"\" }\n", "");
    let (_, _, errors) = travelling.usher(&["check"]);
    assert!(errors.ends_with("\n1 problem\n"), "{errors}");
}

#[test]
fn policies_that_do_not_fit_what_is_offered_are_told_by_either_check() {
    let travelling = Travelling::under(
        RULES,
        r#"permit(principal, action == Action::"call", resource == Tool::"travel_search_flights") when { context.args.origin > 5 };"#,
    );
    let (code, text, _) = travelling.usher(&["check"]);
    assert_eq!(code, Some(0));
    assert!(
        text.contains("fine") && text.contains(", 1 policy\n"),
        "{text}"
    );
    for (code, text, errors) in [
        travelling.run(&["check"]),
        travelling.usher(&["check", "--connect"]),
    ] {
        assert_eq!(code, Some(2), "{text}");
        assert!(
            errors.contains("rules/main.cedar:1:")
                && errors.contains("does not fit `travel_search_flights`"),
            "{errors}"
        );
        assert_eq!(errors.matches("does not fit").count(), 1, "{errors}");
        assert!(!text.contains("fine"), "{text}");
    }
    let (code, text, _) = travelling.usher(&["check", "--connect", "--json"]);
    assert_eq!(code, Some(2));
    assert!(
        text.starts_with(r#"{"ok":false,"problems":[{"file":"rules/main.cedar","line":1"#),
        "{text}"
    );
}
