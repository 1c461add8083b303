//! The table of features and pairings, and what holds it: each field is filled by a test that says so.
//!
//! A test says in its doc `Feature: NAME`, or `Feature: NAME (LL, LM)` where it is no `pairings!` of its own. The first letter
//! is the era of the client, the second that of the server. `table.md` is what the tests say; when they say something else
//! this test fails with the table as it should be.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

const PAIRINGS: [(&str, &str); 4] = [
    ("LL", "LEGACY_LEGACY"),
    ("LM", "LEGACY_MODERN"),
    ("ML", "MODERN_LEGACY"),
    ("MM", "MODERN_MODERN"),
];

/// The rows of PROTOCOL D1, by the names that tests give them: none may be missing, none may have a gap.
const ROWS: [&str; 30] = [
    "Opening",
    "server/discover",
    "ping",
    "Version and identity",
    "Lists",
    "Calls, prompts, resources",
    "list_changed",
    "list_changed without a push",
    "Resource subscribe",
    "Resource unsubscribe",
    "Progress",
    "Cancel",
    "Log level",
    "Elicitation by form",
    "URL elicitation",
    "Sampling",
    "Roots",
    "-32042",
    "Several rounds",
    "Capabilities promised upstream",
    "Asking a client that cannot",
    "Completion",
    "Tasks",
    "instructions",
    "Batch",
    "SSE resume",
    "Lost upstream stream mid-call",
    "structuredContent",
    "Extensions",
    "Trace context",
];

/// Tests by feature and pairing.
type Table = BTreeMap<String, [Vec<String>; 4]>;

#[test]
fn every_feature_has_a_test_in_every_pairing_and_the_table_says_which() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gateway");
    let mut table = Table::new();
    read(&root, &root, &mut table);
    let gaps: Vec<String> = ROWS
        .iter()
        .flat_map(|row| {
            let empty = Default::default();
            let tests = table.get(*row).unwrap_or(&empty).clone();
            let missing = PAIRINGS
                .iter()
                .zip(tests)
                .filter(|(_, tests)| tests.is_empty());
            missing
                .map(|((pairing, _), _)| format!("{row}: {pairing}"))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(gaps.is_empty(), "no test for {gaps:#?}");
    let drawn = drawn(&table);
    assert!(
        include_str!("table.md") == drawn,
        "tests/gateway/two_way/table.md is to be:\n{drawn}"
    );
}

/// Reads what the tests of all files below say of themselves.
fn read(root: &Path, place: &Path, table: &mut Table) {
    let mut entries: Vec<_> = std::fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read(root, &path, table);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with(file!()) {
            let module = path.strip_prefix(root).unwrap().with_extension("");
            let module = module.to_str().unwrap().replace('/', "::");
            let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
            scan(&module, &std::fs::read_to_string(&path).unwrap(), table);
        }
    }
}

fn scan(module: &str, text: &str, table: &mut Table) {
    let mut features: Vec<&str> = Vec::new();
    let mut chosen: Vec<usize> = (0..4).collect();
    let mut choosing = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("pairings!") || line.starts_with("#[tokio::test") {
            chosen = (0..4).collect();
        }
        if line.starts_with("only [") {
            chosen.clear();
            choosing = true;
        }
        if choosing {
            let named = |(_, (_, name)): &(usize, &(&str, &str))| {
                line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .any(|word| word == *name)
            };
            chosen.extend(PAIRINGS.iter().enumerate().filter(named).map(|(at, _)| at));
            choosing = !line.contains("because");
        }
        if let Some(feature) = line.strip_prefix("/// Feature: ") {
            features.push(feature);
        } else if let Some(rest) = line.strip_prefix("async fn ") {
            let name = rest.split('(').next().unwrap();
            for feature in features.drain(..) {
                note(table, feature, &chosen, &format!("{module}::{name}"));
            }
        }
    }
    assert!(features.is_empty(), "{module}: {features:?} of no test");
}

fn note(table: &mut Table, feature: &str, chosen: &[usize], test: &str) {
    let (feature, given) = match feature.split_once(" (") {
        Some((feature, given)) => (feature, Some(given.trim_end_matches(')'))),
        None => (feature, None),
    };
    let row = table.entry(feature.to_owned()).or_default();
    for (at, (pairing, _)) in PAIRINGS.iter().enumerate() {
        let fills = match given {
            Some(given) => given.split(", ").any(|one| one == *pairing),
            None => chosen.contains(&at),
        };
        if fills {
            row[at].push(test.to_owned());
        }
    }
}

/// What each field holds is a number, and below the table the tests under these numbers.
fn drawn(table: &Table) -> String {
    let mut text = String::from(
        "<!-- Made from the tests by two_way/table.rs, which fails when it is not. -->\n\n\
         The first letter is the era of the client, the second that of the server: L for legacy, M for modern. A dash is a pairing\n\
         in which the feature cannot be; what is answered there instead has a row of its own.\n\n\
         | Feature | LL | LM | ML | MM |\n|---|---|---|---|---|\n",
    );
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for row in table.values() {
        for test in row.iter().flatten() {
            numbers.entry(test).or_insert_with(|| {
                order.push(test);
                order.len()
            });
        }
    }
    for (feature, row) in table {
        let fields: Vec<String> = row
            .iter()
            .map(|tests| {
                let numbers: Vec<String> = tests
                    .iter()
                    .map(|test| numbers[test.as_str()].to_string())
                    .collect();
                if numbers.is_empty() {
                    "–".to_owned()
                } else {
                    numbers.join(" ")
                }
            })
            .collect();
        writeln!(text, "| {feature} | {} |", fields.join(" | ")).unwrap();
    }
    text.push('\n');
    for (at, test) in order.iter().enumerate() {
        writeln!(text, "{}. `{test}`", at + 1).unwrap();
    }
    text
}
