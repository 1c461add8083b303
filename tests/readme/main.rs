//! README.md and the manual are true: commands parse, files load, tables say what the code says, examples run, links lead on.
//!
//! What it ships by works, too. What needs a program that is neither ours nor installed by `tests/run` is not run.
#![expect(clippy::disallowed_types, reason = "the transcript is told from trees")]
#![expect(
    clippy::expect_used,
    reason = "what the texts lack is a failure of these tests"
)]

/// A chapter of the manual, with its place.
macro_rules! manual {
    ($name:literal) => {
        (
            concat!("deploy/manual/", $name),
            include_str!(concat!("../../deploy/manual/", $name)),
        )
    };
}

mod admin;
mod demo;
mod links;
mod pasted;
mod shipped;
mod told;

use std::{path::Path, process::Command};

use clap::{CommandFactory, Parser, error::ErrorKind};
use tempfile::TempDir;
use usher::{
    cli::Cli,
    config::{self, Plan},
};

use told::{blocks, blocks_of, commands, rows, words, words_in_backticks};

const README: &str = include_str!("../../README.md");
/// README.md first, then the chapters of the manual; `links` looks that none is missing here.
const TEXTS: [(&str, &str); 11] = [
    ("README.md", README),
    manual!("README.md"),
    manual!("audit.md"),
    manual!("bounds.md"),
    manual!("callers.md"),
    manual!("configuration.md"),
    manual!("content.md"),
    manual!("operating.md"),
    POLICIES,
    manual!("troubleshooting.md"),
    manual!("upstreams.md"),
];
const POLICIES: (&str, &str) = manual!("policies.md");
/// Where the files of the examples are.
const ETC: &str = "/etc/usher";
/// The address of the examples.
const ADDRESS: &str = "127.0.0.1:8808";

#[test]
fn every_command_of_ours_is_one() {
    let mut seen = 0;
    for line in commands() {
        let words = words(&line);
        let arguments = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [
                "cargo",
                "run",
                "--locked",
                "--profile",
                "demo",
                "--",
                ref rest @ ..,
            ] => {
                assert!(include_str!("../../Cargo.toml").contains("[profile.demo]"));
                rest.to_vec()
            }
            ["usher" | "target/demo/usher", ref rest @ ..] => rest.to_vec(),
            ["cargo", "build", "--locked", "--profile", "dist"] | ["cargo", "doc", "--open"] => {
                assert!(include_str!("../../Cargo.toml").contains("[profile.dist]"));
                continue;
            }
            [
                "cargo",
                "build",
                "--locked",
                "--profile",
                "dist",
                "--features",
                feature,
            ] => {
                let feature = format!("\n{feature} = [");
                assert!(include_str!("../../Cargo.toml").contains(&feature));
                continue;
            }
            ["cargo", "run", "--profile", "perf", "--example", "corpus"] => {
                assert!(include_str!("../../Cargo.toml").contains("name = \"corpus\""));
                continue;
            }
            ["tests/run"] => {
                assert!(top("tests/run").is_file());
                continue;
            }
            ["docker", "compose", "-f", file, "up", "-d"] => {
                assert!(top(file).is_file());
                continue;
            }
            ["curl" | "claude" | "openssl" | "npm" | "pip", ..] | ["cargo", "add", ..] => continue,
            _ => panic!("what is `{line}`?"),
        };
        seen += 1;
        let parsed = Cli::try_parse_from(std::iter::once("usher").chain(arguments));
        if let Err(error) = parsed {
            assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{line}: {error}");
        }
    }
    assert!(seen > 15, "{seen} commands");
}

#[test]
fn every_command_we_have_is_named() {
    let cli = Cli::command();
    for command in cli
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        let name = format!("`{}`", command.get_name());
        assert!(README.contains(&name), "{name}");
    }
}

#[test]
fn every_configuration_loads_and_so_does_the_one_in_deploy() {
    let etc = etc();
    let mut all = blocks("yaml");
    // The cases of policies stand between them, and are run where the policies are.
    all.retain(|yaml| !yaml.starts_with("# policies/"));
    assert!(all.len() >= 7, "{}", all.len());
    for yaml in all {
        load(&etc, &yaml);
    }
    let example = std::fs::read_to_string(top("deploy/usher.yaml")).expect("an example");
    let plan = load(&etc, &example);
    assert_eq!(plan.upstreams.len(), 3);
}

#[test]
fn what_loads_fits_the_schema_that_editors_are_given() {
    let schema: serde_json::Value =
        serde_json::from_str(config::schema().as_str()).expect("the schema is JSON");
    let schema = jsonschema::validator_for(&schema).expect("the schema is one");
    let mut all = blocks("yaml");
    all.retain(|yaml| !yaml.starts_with("# policies/"));
    all.push(std::fs::read_to_string(top("deploy/usher.yaml")).expect("an example"));
    // What has nothing behind it is as if it were not there.
    let etc = etc();
    for empty in [
        "upstreams:\nadmin:\nlisten:\nlimits:\n",
        "upstreams: { a: { command: [x], tags: , protocol: } }\naudit: { durability: }\nbounds: { memory: , http: }\n",
    ] {
        load(&etc, empty);
        all.push(empty.to_owned());
    }
    for yaml in all {
        // As editors read it: `off` is a word.
        let as_written = serde_saphyr::options! { strict_booleans: true };
        let value: serde_json::Value =
            serde_saphyr::from_str_with_options(&yaml, as_written).expect("YAML");
        let wrong: Vec<String> = schema
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}\n{yaml}");
    }
}

#[test]
fn the_container_is_built_from_all_that_the_program_is_compiled_from() {
    let steps = std::fs::read_to_string(top("deploy/Containerfile")).expect("it is there");
    let mut folders = vec![top("src")];
    let mut included = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("source is text");
            let depth = path.strip_prefix(top("")).expect("it is ours");
            let depth = depth.components().count() - 1;
            for name in text.split("include_str!(\"").skip(1) {
                let ups = name.split('/').take_while(|part| *part == "..").count();
                // What goes up as far as to the top leads to another folder.
                if ups >= depth {
                    let first = name.split('/').nth(ups).expect("a folder");
                    included += 1;
                    assert!(steps.contains(&format!("COPY {first} ")), "{first}");
                }
            }
        }
    }
    assert!(included > 0);
}

#[test]
fn everything_that_prometheus_and_grafana_are_given_is_there() {
    let given = std::fs::read_to_string(top("deploy/watch.yaml")).expect("it is there");
    let mut seen = 0;
    for place in given
        .split("./")
        .skip(1)
        .filter_map(|rest| rest.split(':').next())
    {
        assert!(top("deploy").join(place).exists(), "deploy/{place}");
        seen += 1;
    }
    assert_eq!(seen, 3);
    let scraped =
        std::fs::read_to_string(top("deploy/prometheus/prometheus.yaml")).expect("it is there");
    assert!(scraped.contains("127.0.0.1:8809") && scraped.contains("alerts.yaml"));
    assert!(top("deploy/prometheus/alerts.yaml").is_file());
    let texts = TEXTS.iter().flat_map(|(_, text)| text.split('`'));
    for line in texts.filter(|code| code.starts_with("deploy/") && !code.contains(' ')) {
        assert!(top(line).exists(), "{line}");
    }
}

#[test]
fn every_file_of_another_program_is_one_that_we_read_ourselves() {
    let etc = etc();
    let all = blocks("json");
    assert_eq!(all.len(), 4);
    for json in all {
        let file = etc.path().join("mcp.json");
        std::fs::write(&file, &json).expect("written");
        let (plan, notes) = config::load_mcp_json(&file, &|_| None)
            .unwrap_or_else(|rejected| panic!("{json}{:?}", rejected.problems));
        assert_eq!(plan.upstreams.len(), 1, "{json}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn every_default_is_the_one_that_is_documented() {
    let etc = etc();
    let table = rows("| Key | Default |");
    assert!(table.len() > 35, "{}", table.len());
    let server = |place: &str, more: &str| format!("upstreams: {{ x: {{ {place}{more} }} }}\n");
    let (address, program) = ("url: \"https://example.com/\"", "command: [x]");
    for row in table {
        let (key, value) = (row[0].trim_matches('`'), row[1].trim_matches('`'));
        let place = match key {
            "upstreams.*.timeout.start" => program,
            _ => address,
        };
        let implied = format!("{:?}", load(&etc, &server(place, "")));
        // The key as one line of nested mappings; a server needs its place beside it.
        let yaml = match key.strip_prefix("upstreams.*.") {
            Some(rest) => server(place, &format!(", {}", nested(rest, value))),
            None => format!("{}{}\n", server(place, ""), nested(key, value)),
        };
        let said = format!("{:?}", load(&etc, &yaml));
        assert_eq!(said, implied, "{key} is not {value} by default");
    }
}

#[test]
fn the_first_restricted_group_is_restricted_as_it_is_said() {
    let home = TempDir::new().expect("a directory");
    let run = |line: &str| {
        let words = words(line);
        let out = Command::new(env!("CARGO_BIN_EXE_usher"))
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .args(&words[1..])
            .current_dir(home.path())
            .output()
            .expect("usher runs");
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{line}: {errors}");
        (String::from_utf8(out.stdout).expect("UTF-8"), errors)
    };
    let commands = |begin: &str| -> Vec<String> {
        let all = blocks_of(POLICIES.1, "sh");
        let block = all.iter().find(|block| block.starts_with(begin));
        let lines = block.expect("commands").lines();
        lines.map(str::to_owned).collect()
    };
    for line in commands("usher init --operator") {
        run(&line);
    }
    let mut files = blocks("cedar");
    files.extend(blocks("yaml"));
    let mut written = 0;
    for text in files {
        let name = text.lines().next().and_then(|line| {
            line.trim_start_matches(['/', '#', ' '])
                .strip_prefix("policies/")
        });
        if let Some(name) = name {
            written += 1;
            std::fs::write(home.path().join("policies").join(name), &text).expect("written");
        }
    }
    assert_eq!(written, 3);
    let lines = commands("usher policy test");
    let [test, check, explain, who_can] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(run(test).0.contains("5 of 5 as expected"));
    // Without the servers of the example nothing can be said of names that they have not.
    let (fine, notes) = run(&check.replace("--connect", ""));
    assert!(
        fine.starts_with("policies: fine") && fine.contains("5 policies"),
        "{fine}"
    );
    assert!(!notes.contains("contractors"), "{notes}");
    let shown = blocks("text");
    let shown = |begin: &str| {
        let block = shown.iter().find(|block| block.starts_with(begin));
        block.expect("what is said").as_str()
    };
    let (said, errors) = run(explain);
    assert!(said.starts_with(shown("no: ")), "{said}");
    assert_eq!(errors, "");
    assert_eq!(run(who_can).0.trim_end(), shown("WHO ").trim_end());
    let (allowed, _) = run(&explain.replace("acme/secret", "acme/site"));
    assert!(allowed.starts_with("yes: "), "{allowed}");
    let (hidden, _) = run(&explain.replace("create_issue", "delete_repo"));
    assert!(hidden.contains("as if it were not there"), "{hidden}");
}

#[test]
fn every_reason_is_a_word_of_the_code_and_every_word_of_a_failed_call_is_explained() {
    let explained: Vec<String> = rows("| Reason | What happened |")
        .iter()
        .flat_map(|row| words_in_backticks(&row[0]))
        .collect();
    assert!(explained.len() > 20, "{}", explained.len());
    let mut code = String::new();
    read_all(&top("src"), &mut code);
    for word in &explained {
        assert!(code.contains(&format!("\"{word}\"")), "{word}");
    }
    for source in [
        include_str!("../../src/stack/error.rs"),
        include_str!("../../src/upstream/mod.rs"),
    ] {
        let arms = source.lines().filter_map(|line| {
            let word = line.trim().split_once("=> \"")?.1;
            Some(word.split('"').next()?.to_owned())
        });
        let mut known = 0;
        for word in arms {
            known += 1;
            assert!(explained.contains(&word), "{word} is not explained");
        }
        assert!(known > 5);
    }
}

#[test]
fn every_conformance_difference_is_named() {
    let listed = include_str!("../conformance/differences.txt");
    let lines = listed
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let named = |line: &str| {
        let mut words = line.split(' ');
        let (revision, scenario) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        assert!(
            README.contains(&format!("| {revision} | `{scenario}` |")),
            "{line}"
        );
    };
    let count = lines.inspect(|line| named(line)).count();
    assert_eq!(
        README.matches("| 2025-11-25 | `").count() + README.matches("| 2026-07-28 | `").count(),
        count
    );
}

/// The plan of a configuration whose files lie in `etc` and whose variables are all set.
fn load(etc: &TempDir, yaml: &str) -> Plan {
    let path = etc.path().join("usher.yaml");
    let yaml = yaml.replace(ETC, &etc.path().display().to_string());
    std::fs::write(&path, &yaml).expect("written");
    let vars = |_: &str| Some("0123456789abcdef0123456789abcdef".to_owned());
    config::load(&path, &vars).unwrap_or_else(|rejected| {
        panic!("{}\n{yaml}", rejected.drawn(config::Colour::Plain));
    })
}

/// A directory with every file that the examples refer to.
fn etc() -> TempDir {
    let etc = TempDir::new().expect("a directory");
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("issued");
    std::fs::create_dir(etc.path().join("tls")).expect("made");
    let write = |name: &str, text: &str| {
        let path = etc.path().join(name);
        std::fs::write(&path, text).expect("written");
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, owner_only).expect("closed to others");
    };
    write("tls/cert.pem", &issued.cert.pem());
    write("tls/ca.pem", &issued.cert.pem());
    write("tls/key.pem", &issued.signing_key.serialize_pem());
    write("state-key", "0123456789abcdef0123456789abcdef\n");
    write("connections-key", "0123456789abcdef0123456789abcdef\n");
    write("github-secret", "0123456789abcdef\n");
    etc
}

/// `a.b.c` and a value as `a: { b: { c: value } }`.
fn nested(key: &str, value: &str) -> String {
    match key.split_once('.') {
        Some((first, rest)) => format!("{first}: {{ {} }}", nested(rest, value)),
        None => format!("{key}: {value}"),
    }
}

fn read_all(under: &Path, out: &mut String) {
    for entry in std::fs::read_dir(under).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_all(&path, out);
        } else {
            out.push_str(&std::fs::read_to_string(&path).expect("text"));
        }
    }
}

fn top(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
