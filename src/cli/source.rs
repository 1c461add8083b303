//! Where a command's configuration comes from, and how its problems are told.

use std::path::{Path, PathBuf};

use crate::{
    cli::{Ended, logs, out},
    config::{self, Colour, Plan, Problem, Rejected, StartCertificates, Vars},
};

/// The file that is read if none is named.
const DEFAULT_FILE: &str = "usher.yaml";

/// The configuration of a gateway.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Source {
    /// The configuration [default: usher.yaml]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The servers of another program's file: mcp.json, claude_desktop_config.json, .vscode/mcp.json
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    mcp_json: Option<PathBuf>,
}

impl Source {
    /// The file that is read.
    pub(super) fn path(&self) -> PathBuf {
        let named = self.mcp_json.as_ref().or(self.config.as_ref());
        named.map_or_else(|| PathBuf::from(DEFAULT_FILE), Clone::clone)
    }

    /// The arguments that name it, with a space before them; nothing where none were given.
    pub(super) fn spelled(&self) -> String {
        match (&self.mcp_json, &self.config) {
            (Some(path), _) => format!(" --mcp-json {}", path.display()),
            (None, Some(path)) => format!(" -c {}", path.display()),
            (None, None) => String::new(),
        }
    }

    /// Whether a file was named.
    pub(super) const fn is_named(&self) -> bool {
        self.mcp_json.is_some() || self.config.is_some()
    }

    /// Reads and checks it, with notes on what is not taken from it.
    pub(super) fn load(&self) -> Result<(Plan, Vec<String>), Rejected> {
        self.read_by(config::load)
    }

    /// The same for a gateway that is to serve.
    pub(super) fn load_to_serve(&self) -> Result<(Plan, Vec<String>), Rejected> {
        self.read_by(config::load_to_serve)
    }

    /// The same for one that serves already, and shows these certificates.
    pub(super) fn load_again(
        &self,
        shown: &StartCertificates,
    ) -> Result<(Plan, Vec<String>), Rejected> {
        self.read_by(|path, vars| config::load_again(path, vars, shown))
    }

    /// The same, and looks at what a start would read and at the places where it would write.
    pub(super) fn examine(&self) -> Result<(Plan, Vec<String>), Rejected> {
        self.read_by(config::examine)
    }

    fn read_by(
        &self,
        read: impl FnOnce(&Path, Vars<'_>) -> Result<Plan, Rejected>,
    ) -> Result<(Plan, Vec<String>), Rejected> {
        let vars = config::process_vars;
        let loaded = match &self.mcp_json {
            Some(path) => config::load_mcp_json(path, &vars),
            None => read(&self.path(), &vars).map(|plan| (plan, Vec::new())),
        };
        loaded.inspect(|(plan, _)| logs::withhold(plan))
    }

    /// The directory of the policies that it names, whatever else is wrong with it; `None` where it names none.
    pub(super) fn policy_dir(&self) -> Option<PathBuf> {
        if self.mcp_json.is_some() {
            return None;
        }
        config::policy_dir(&self.path(), &config::process_vars).flatten()
    }

    /// The plan; if there is none, everything that is wrong has been told.
    pub(super) fn plan(&self) -> Option<Plan> {
        told(self.load())
    }

    /// What a command takes from the plan that needs only these parts of it, as [`config::load_parts`] has them. What is wrong
    /// elsewhere is told in notes and stops nothing; `None` where nothing is written of what it takes.
    ///
    /// # Errors
    /// Where there is none because something is wrong, all of which has been told.
    pub(super) fn part<T>(
        &self,
        parts: &[&str],
        take: impl FnOnce(Plan) -> Option<T>,
    ) -> Result<Option<T>, Ended> {
        if self.mcp_json.is_some() {
            return self.plan().map(take).ok_or(Ended::Misused);
        }
        let loaded = config::load_parts(&self.path(), &config::process_vars, parts);
        let (plan, wrong) = loaded.map_err(|rejected| {
            tell(&rejected);
            Ended::Misused
        })?;
        logs::withhold(&plan);
        match (take(plan), wrong) {
            // It may be what is wrong that has taken it away.
            (None, Some(rejected)) => {
                tell(&rejected);
                Err(Ended::Misused)
            }
            (taken, wrong) => {
                let wrong = wrong.iter().flat_map(|rejected| &rejected.problems);
                wrong.for_each(note);
                Ok(taken)
            }
        }
    }

    /// The same for a gateway that is to serve.
    pub(super) fn plan_to_serve(&self) -> Option<Plan> {
        told(self.load_to_serve())
    }
}

/// The plan; what is to be said of it, or everything that is wrong with it, is told.
fn told(loaded: Result<(Plan, Vec<String>), Rejected>) -> Option<Plan> {
    match loaded {
        Ok((plan, notes)) => {
            for note in notes {
                logs::say(&format!("{}: {note}", out::paint(out::YELLOW, "note")));
            }
            Some(plan)
        }
        Err(rejected) => {
            tell(&rejected);
            None
        }
    }
}

/// Tells of a problem that stops nothing here.
fn note(problem: &Problem) {
    let Problem {
        file,
        line,
        column,
        path,
        message,
        ..
    } = problem;
    logs::say(&format!(
        "{}: {file}:{line}:{column}: {path}: {message}; `usher check` says more",
        out::paint(out::YELLOW, "note")
    ));
}

/// Draws every problem, and says how many there are.
pub(super) fn tell(rejected: &Rejected) {
    draw(rejected);
    counted(rejected.problems.len());
}

/// Draws every problem.
pub(super) fn draw(rejected: &Rejected) {
    let colour = if out::notes_to_terminal() {
        Colour::Coloured
    } else {
        Colour::Plain
    };
    out::note(&rejected.drawn(colour));
}

/// Says how many problems there are.
pub(super) fn counted(count: usize) {
    let counted = out::count(count as u64, "problem");
    out::note(&format!("\n{}", out::paint(out::BOLD, &counted)));
}
