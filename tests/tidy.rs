//! The rules of the house that the compiler cannot hold, held over the files of the repository.
//!
//! Floors, the length of files, where eras may be named, what opens a file, who spawns, what lies at the top, and what no
//! file may say. Every broken rule is told at once, with file and line. Deliberately absent: whatever rustfmt and clippy hold.
#![expect(
    clippy::expect_used,
    reason = "without git and its files there is nothing to hold"
)]

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Every module at the top of `src/`, with its floor: a file imports from lower floors, from its own floor unless that is
/// floor 2, and from its own module.
const FLOORS: [(u8, &[&str]); 8] = [
    (0, &["glob", "json", "jsonrpc", "memory", "protocol"]),
    // `fetch` does I/O and knows nothing of MCP: `auth` on floor 2 finds key sets with it, `upstream` tokens.
    (
        1,
        &[
            "call", "feed", "fetch", "findings", "metrics", "schema", "spans", "tasks", "seal",
        ],
    ),
    (
        2,
        &[
            "catalog", "auth", "pins", "policy", "limits", "sanitize", "audit", "resume", "events",
        ],
    ),
    (3, &["snapshot", "stage", "connect"]),
    (4, &["upstream"]),
    (5, &["stack"]),
    (6, &["server", "downstream", "admin"]),
    (7, &["config", "app", "cli", "main", "telemetry", "demo"]),
];

/// What is there for tests alone: on floor 0, and on no map.
const FOR_TESTS: &str = "logged";

/// The floor whose modules do not know each other.
const STRANGERS: u8 = 2;

/// The one module that may know nothing of the others but how tasks are owned: what the demo's servers get wrong must not
/// be what the gateway gets wrong (`src/demo/mod.rs`).
const ALONE: (&str, &str) = ("demo", "tasks");

/// Imports that break a floor all the same: `(file, module, why)`. A new line here needs a better reason than haste.
const ALLOWED: [(&str, &str, &str); 0] = [];

/// The most lines of code in one file: neither blank nor comment alone.
const LINES: usize = 600;

/// What lies at the top of the repository, beside dotfiles.
const TOP: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "benches",
    "deploy",
    "policies",
    "src",
    "tests",
];

#[test]
fn a_module_imports_only_from_lower_floors_and_from_itself() {
    let mut broken = Broken::default();
    for file in rust("src/") {
        let Some(own) = module(&file.path) else {
            continue;
        };
        let Some(floor) = floor(&own) else {
            broken.say(&file.path, 1, &format!("`{own}` is on no floor"));
            continue;
        };
        for import in imports(&file) {
            let name = import.name.as_str();
            let allowed = ALLOWED
                .iter()
                .any(|(path, other, _)| *path == file.path && *other == name);
            if name == own || allowed {
                continue;
            }
            if own == ALONE.0 && name != ALONE.1 {
                broken.say(
                    &file.path,
                    import.line,
                    &format!("`{own}` knows nothing of `{name}`"),
                );
                continue;
            }
            match self::floor(name) {
                Some(other) if other < floor => {}
                Some(other) if other == floor && floor != STRANGERS => {}
                Some(other) => broken.say(
                    &file.path,
                    import.line,
                    &format!("`{own}` is on floor {floor}, `{name}` on floor {other}"),
                ),
                None => broken.say(
                    &file.path,
                    import.line,
                    &format!("`crate::{name}` is no module of a floor"),
                ),
            }
        }
    }
    broken.end();
}

#[test]
fn the_maps_of_the_code_show_every_module_on_its_floor() {
    let readme = text("README.md");
    let library = text("src/lib.rs");
    for (floor, modules) in FLOORS {
        let mut wanted = modules.to_vec();
        wanted.sort_unstable();
        let row = format!("| {floor} | ");
        let row = readme.lines().find_map(|line| line.strip_prefix(&row));
        let row = row.and_then(|row| row.split(" | ").next());
        let paths: Vec<&str> = row
            .into_iter()
            .flat_map(|row| row.split(' '))
            .map(|path| path.trim_matches('`'))
            .collect();
        for path in &paths {
            assert!(top().join("src").join(path).exists(), "README: {path}");
        }
        let names = paths.iter();
        let names = names.map(|path| path.trim_end_matches('/').trim_end_matches(".rs"));
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(names, wanted, "floor {floor} in README.md");
        let row = format!("//! {floor}  ");
        let row = library.lines().find_map(|line| line.strip_prefix(&row));
        let row = row.and_then(|row| row.split("  ").next());
        let mut names: Vec<&str> = row.unwrap_or_default().split(' ').collect();
        names.sort_unstable();
        assert_eq!(names, wanted, "floor {floor} in src/lib.rs");
    }
}

#[test]
fn no_file_is_longer_than_a_person_can_hold_in_mind() {
    let mut broken = Broken::default();
    for file in rust("") {
        let lines = file
            .text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        if lines > LINES {
            broken.say(
                &file.path,
                1,
                &format!("{lines} lines of code, at most {LINES}"),
            );
        }
    }
    broken.end();
}

#[test]
fn every_file_opens_with_a_sentence_that_says_what_it_is_for() {
    let mut broken = Broken::default();
    for file in rust("") {
        let first = file.text.lines().next().unwrap_or_default();
        match first.strip_prefix("//! ").map(str::trim) {
            Some(line) if line.len() < 10 => {
                broken.say(&file.path, 1, "does not open with what it is for");
            }
            // Whoever reads the line alone, as in a list of files, is not left in the middle.
            Some(line) if !line.ends_with(['.', '?', '!']) => {
                broken.say(&file.path, 1, "its first line does not end a sentence");
            }
            Some(_) => {}
            None => broken.say(&file.path, 1, "does not open with a `//!` line"),
        }
    }
    broken.end();
}

#[test]
fn eras_are_named_only_where_they_are_spoken() {
    let mut broken = Broken::default();
    for file in rust("src/") {
        let own = module(&file.path).unwrap_or_default();
        if ["protocol", "downstream", "upstream"].contains(&own.as_str()) {
            continue;
        }
        for token in tokens(&file.text) {
            if token.is("Era") {
                broken.say(&file.path, token.line, "`Era` is named here");
            }
        }
    }
    broken.end();
}

#[test]
fn only_tasks_spawns() {
    let mut broken = Broken::default();
    for file in rust("src/") {
        if file.path == "src/tasks/mod.rs" {
            continue;
        }
        let tokens = tokens(&file.text);
        for part in tokens.windows(4) {
            let path = part[1].is(":") && part[2].is(":") && part[3].is("spawn");
            if path && (part[0].is("tokio") || part[0].is("task")) {
                broken.say(
                    &file.path,
                    part[0].line,
                    "spawns past the owner of all tasks",
                );
            }
        }
    }
    broken.end();
}

#[test]
fn the_top_of_the_repository_holds_what_is_prescribed_and_no_more() {
    let mut broken = Broken::default();
    for path in tracked() {
        let top = path.split('/').next().unwrap_or_default();
        if !top.starts_with('.') && !TOP.contains(&top) {
            broken.say(&path, 1, "does not belong at the top");
        }
    }
    broken.end();
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    // Put together here, so that this file does not say them.
    let slashed = |name: &str| format!("/{name}/");
    let dotted = |parts: &[&str]| parts.join(".");
    let needles = [
        slashed("work"),
        slashed("root"),
        dotted(&["registry", "npmjs"]),
        dotted(&["registry", "yarnpkg"]),
        dotted(&["pypi", "org"]),
        dotted(&["files", "pythonhosted"]),
        dotted(&["static", "crates"]),
        dotted(&["index", "crates"]),
        dotted(&["proxy", "golang"]),
    ];
    let mut broken = Broken::default();
    for path in tracked() {
        // What is no text names nothing; what was deleted and not yet committed is not there.
        let Ok(text) = std::fs::read_to_string(top().join(&path)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for needle in needles.iter().filter(|needle| line.contains(*needle)) {
                broken.say(&path, number + 1, &format!("says `{needle}`"));
            }
        }
    }
    broken.end();
}

#[test]
fn imports_are_found_however_they_are_spelled() {
    let file = File {
        path: "src/stack/deep/mod.rs".into(),
        text: r##"
            //! crate::not_this
            use std::{crate_like, fmt};
            use crate::{a, b::{c, d as e}, f::*};
            /* crate::nor_this /* nested */ */
            pub(in crate::g) fn f<'a>(text: &'a str) -> crate::h::H { "crate::nor_that"; r#"crate::"or"#; '"' }
            use super::super::{i, j::k};
            use super::own;
            mod tests { use super::super::own; use super::super::super::l; use self::m; }
            fn g() { use super::own; { super::super::n::o() } }
        "##
        .into(),
    };
    let names: Vec<String> = imports(&file)
        .into_iter()
        .map(|import| import.name)
        .collect();
    assert_eq!(names, ["a", "b", "f", "g", "h", "i", "j", "l", "n"]);
}

/// A tracked Rust file.
struct File {
    /// From the top of the repository.
    path: String,
    text: String,
}

/// A use of something at the top of the crate.
struct Import {
    name: String,
    line: usize,
}

/// An identifier or a single other character, outside comments and literals.
struct Token {
    text: String,
    line: usize,
}

impl Token {
    fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

/// What is wrong, gathered.
#[derive(Default)]
struct Broken(String);

impl Broken {
    fn say(&mut self, path: &str, line: usize, what: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{path}:{line}: {what}");
    }

    fn end(self) {
        assert!(self.0.is_empty(), "\n{}", self.0);
    }
}

/// Every module at the top of the crate that `file` reaches into, in order, by `crate::` or by enough `super::`.
fn imports(file: &File) -> Vec<Import> {
    let tokens = tokens(&file.text);
    let depth = depth(&file.path);
    // For each open brace, whether it opens a module.
    let mut braces: Vec<bool> = Vec::new();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = |back: usize| at.checked_sub(back).map(|at| tokens[at].text.as_str());
        match token.text.as_str() {
            "{" => braces.push(before(2) == Some("mod")),
            "}" => drop(braces.pop()),
            "crate" => members(&tokens, at + 1, &mut found),
            "super" if before(1) != Some(":") => {
                let mut supers = 1;
                while tokens.get(at + 3).is_some_and(|token| token.is("super")) {
                    supers += 1;
                    at += 3;
                }
                if supers == depth + braces.iter().filter(|module| **module).count() {
                    members(&tokens, at + 1, &mut found);
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The first names after a path that ends before `at`: one, or one for each branch of a tree.
fn members(tokens: &[Token], at: usize, found: &mut Vec<Import>) {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    if !(is(at, ":") && is(at + 1, ":")) {
        return;
    }
    let mut add = |at: usize| {
        if let Some(token) = tokens.get(at) {
            found.push(Import {
                name: token.text.clone(),
                line: token.line,
            });
        }
    };
    if !is(at + 2, "{") {
        add(at + 2);
        return;
    }
    let mut depth = 1;
    let mut first = true;
    for at in at + 3.. {
        match tokens.get(at).map_or("}", |token| token.text.as_str()) {
            "{" => depth += 1,
            "}" if depth == 1 => return,
            "}" => depth -= 1,
            "," if depth == 1 => first = true,
            _ if first => {
                add(at);
                first = false;
            }
            _ => {}
        }
    }
}

/// The tokens of a text, without comments, strings, characters and lifetimes.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let word = |at: usize| {
        chars
            .get(at)
            .is_some_and(|c| c.is_alphanumeric() || *c == '_')
    };
    let starts = |at: usize, what: &str| {
        what.chars()
            .enumerate()
            .all(|(i, c)| chars.get(at + i) == Some(&c))
    };
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < chars.len() {
        let from = at;
        match chars[at] {
            '/' if starts(at, "//") => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1
                }
            }
            '/' if starts(at, "/*") => {
                let mut open = 0;
                loop {
                    if starts(at, "/*") {
                        (open, at) = (open + 1, at + 2);
                    } else if starts(at, "*/") {
                        (open, at) = (open - 1, at + 2);
                    } else {
                        at += 1;
                    }
                    if open == 0 || at >= chars.len() {
                        break;
                    }
                }
            }
            '"' => at = after_string(&chars, at),
            '\'' if starts(at + 1, "\\") || chars.get(at + 2) == Some(&'\'') => {
                at += if starts(at + 1, "\\") { 3 } else { 2 };
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' => {
                at += 1;
                while word(at) {
                    at += 1;
                }
            }
            _ if word(at) => {
                while word(at) {
                    at += 1;
                }
                let text: String = chars[from..at].iter().collect();
                let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
                if text.ends_with('r') && chars.get(at + hashes) == Some(&'"') && text.len() <= 2 {
                    let end = format!("\"{}", "#".repeat(hashes));
                    at += hashes + 1;
                    while at < chars.len() && !starts(at, &end) {
                        at += 1;
                    }
                    at += end.len();
                } else {
                    tokens.push(Token { text, line });
                }
            }
            c => {
                at += 1;
                if !c.is_whitespace() {
                    let text = c.to_string();
                    tokens.push(Token { text, line });
                }
            }
        }
        let to = at.min(chars.len());
        line += chars[from..to].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

fn after_string(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The module at the top of the crate that a file belongs to; `lib.rs` belongs to none.
fn module(path: &str) -> Option<String> {
    let rest = path.strip_prefix("src/")?;
    let name = rest.split('/').next()?.trim_end_matches(".rs");
    (name != "lib").then(|| name.to_owned())
}

/// How many modules deep a file's own module is: 1 for `src/call/mod.rs` and `src/seal.rs`.
fn depth(path: &str) -> usize {
    let parts = path.split('/').count() - 1;
    if path.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    }
}

fn floor(module: &str) -> Option<u8> {
    let known = FLOORS.iter().find(|(_, modules)| modules.contains(&module));
    known
        .map(|(floor, _)| *floor)
        .or((module == FOR_TESTS).then_some(0))
}

/// The tracked Rust files under a path.
fn rust(under: &str) -> Vec<File> {
    let files: Vec<File> = tracked()
        .into_iter()
        .filter(|path| path.starts_with(under) && path.ends_with(".rs"))
        .filter_map(|path| {
            let text = std::fs::read_to_string(top().join(&path)).ok()?;
            Some(File { path, text })
        })
        .collect();
    assert!(files.len() > 100, "few files: {}", files.len());
    files
}

/// Every file of the repository, as Git knows them, and those that are about to be added.
fn tracked() -> Vec<String> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(top())
        .output()
        .expect("git lists the files; this test needs it");
    assert!(listed.status.success(), "git lists the files: {listed:?}");
    String::from_utf8(listed.stdout)
        .expect("paths are UTF-8")
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(top().join(path)).expect("it can be read")
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}
