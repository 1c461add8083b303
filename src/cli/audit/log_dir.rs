//! Where the records are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;

use crate::{
    audit::{home::default_directory, log::segments},
    cli::{Ended, out, source::Source},
    config,
};

/// How the directories of further processes are called, below the first one's.
const BESIDE: &str = "beside-";

/// Which log, by its directory.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct LogDir {
    /// The directory of the records [default: that of the configuration, or the user's for state]
    #[arg(value_name = "DIR", id = "directory")]
    named: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "DIR", conflicts_with = "directory")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
}

impl LogDir {
    /// Every directory that has records: the first process's, and those of processes that wrote beside it, each of which is a
    /// log of its own. At least one; else why not has been told.
    pub(super) fn logs(&self) -> Result<Vec<PathBuf>, Ended> {
        let directory = self.path()?;
        let mut all: Vec<_> = match fs::read_dir(&directory) {
            Ok(entries) => entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| is_beside(path))
                .collect(),
            Err(error) => {
                out::problem(&format!("{}: {error}", directory.display()));
                return Err(Ended::Misused);
            }
        };
        all.sort();
        all.insert(0, directory.clone());
        all.retain(|log| segments(log).is_ok_and(|segments| !segments.is_empty()));
        if all.is_empty() {
            out::problem(&format!("there are no records in {}", directory.display()));
            return Err(Ended::Failed);
        }
        Ok(all)
    }

    /// The directory, whether or not there is anything.
    pub(super) fn path(&self) -> Result<PathBuf, Ended> {
        if let Some(named) = self.named.as_ref().or(self.dir.as_ref()) {
            return Ok(named.clone());
        }
        let vars = &config::process_vars;
        let file = self.source.path();
        if !self.source.is_named() && !file.exists() {
            return Ok(default_directory(vars));
        }
        match config::audit_dir(&file, vars) {
            Some(written) => Ok(written.unwrap_or_else(|| default_directory(vars))),
            None => {
                out::problem(&format!(
                    "{} cannot be read: `usher check` says why; or name the directory",
                    file.display()
                ));
                Err(Ended::Misused)
            }
        }
    }
}

/// Whether a log is that of a process that wrote beside another.
pub(super) fn is_beside(log: &Path) -> bool {
    let name = log.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(BESIDE))
}
