//! What a configuration may say, what is wrong with one that may not, and where.

mod accepted;
mod admin;
mod auth;
mod bounds;
mod certificates;
mod connections;
mod grants;
mod limits;
mod parts;
mod refused;
mod schema;
mod secrets;
mod telemetry;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use super::*;

/// A directory with the files of one configuration.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        Self(TempDir::new().expect("a directory"))
    }

    pub(super) fn with(yaml: &str) -> Self {
        let files = Self::new();
        files.add("usher.yaml", yaml);
        files
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn add(&self, name: &str, text: &str) -> PathBuf {
        self.add_with_mode(name, text, 0o600)
    }

    pub(super) fn add_with_mode(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode set");
        path
    }

    pub(super) fn load(&self) -> Result<Plan, Rejected> {
        load(&self.path("usher.yaml"), &vars)
    }

    pub(super) fn plan(&self) -> Plan {
        match self.load() {
            Ok(plan) => plan,
            Err(rejected) => panic!("{}", rejected.drawn(Colour::Plain)),
        }
    }

    /// The path of each problem, files and places of a start among them.
    pub(super) fn examined(&self) -> Vec<String> {
        // Not in the directory of whoever runs the tests.
        let own = self.path("own");
        let vars = |name: &str| match name {
            "XDG_STATE_HOME" => Some(own.display().to_string()),
            _ => vars(name),
        };
        let problems = match examine(&self.path("usher.yaml"), &vars) {
            Ok(_) => Vec::new(),
            Err(rejected) => rejected.problems,
        };
        problems.into_iter().map(|problem| problem.path).collect()
    }

    pub(super) fn rejected(&self) -> Rejected {
        self.load().expect_err("a problem")
    }
}

pub(super) fn vars(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("t0ken-marker-9f".into()),
        "PORT" => Some("9000".into()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

/// Line, column, path and message of each problem.
pub(super) fn lines(yaml: &str) -> Vec<(usize, usize, String, String)> {
    Files::with(yaml)
        .rejected()
        .problems
        .into_iter()
        .map(|problem| (problem.line, problem.column, problem.path, problem.message))
        .collect()
}

/// The one problem of a text.
pub(super) fn only(yaml: &str) -> Problem {
    let rejected = Files::with(yaml).rejected();
    let mut problems = rejected.problems.clone();
    assert_eq!(problems.len(), 1, "{}", rejected.drawn(Colour::Plain));
    problems.remove(0)
}

pub(super) fn file_name(path: &str) -> &str {
    Path::new(path)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

pub(super) const CERT: &str = include_str!("cert.pem");
pub(super) const KEY: &str = include_str!("key.pem");
pub(super) const OTHER_KEY: &str = include_str!("other-key.pem");
