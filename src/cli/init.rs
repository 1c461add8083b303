//! `usher init`: a configuration to start from, and policies beside it that permit nobody but the operator.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;

use super::{Ended, out};
use crate::config;

/// The directory of the policies, beside the configuration.
const POLICIES: &str = "policies";

/// Write a commented usher.yaml to start from, and policies beside it
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher init
  usher init --operator ana@example.com      and policies that permit you alone
  usher init gateway/usher.yaml

Files that exist are left alone: beside an usher.yaml of your own, only policies/ is written.")]
pub(super) struct Args {
    /// Where to write
    #[arg(default_value = "usher.yaml", value_name = "FILE")]
    file: PathBuf,
    /// Who may use everything: the user of your tokens, byte for byte (`sub`, or the claim that auth.jwt.claims.user names)
    #[arg(long, value_name = "SUBJECT", value_parser = subject)]
    operator: Option<String>,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let operator = args.operator.as_deref();
    let beside = args.file.parent().unwrap_or_else(|| Path::new(""));
    let policies = beside.join(POLICIES);
    let file = args.file.display();
    let made = match config::write_new(&args.file, &config::starter(operator)) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !policies.exists() => false,
        Err(error) => {
            let hint = "`usher init OTHER.yaml` writes another";
            out::problem(&not_written(&args.file, &error, hint));
            return Ended::Failed;
        }
    };
    let shown = policies.display();
    match write_policies(&policies, operator) {
        Ok(()) => {}
        Err(error) if made && error.kind() == io::ErrorKind::AlreadyExists => {
            out::line(&format!(
                "{file} is written; {shown} exists and is left as it is"
            ));
            return Ended::Well;
        }
        Err(error) => {
            out::problem(&not_written(&policies, &error, "remove it first"));
            return Ended::Failed;
        }
    }
    if made {
        out::line(&format!("{file} and {shown} are written"));
    } else {
        out::line(&format!(
            "{shown} is written; {file} exists and is left as it is: add `policy: {{ dir: {POLICIES} }}` to it"
        ));
    }
    match operator {
        Some(operator) => out::line(&format!(
            "the policies permit {operator:?} alone; `auth` in {file} says how users are known"
        )),
        None if made => out::line(&format!(
            "no policy is in force yet: everybody who reaches this machine's loopback may use everything. Before you take the \
             `#` off `policy` in {file}, name somebody in {shown}: as they are they permit nobody"
        )),
        None => out::line(&format!(
            "once they are in force they permit nobody to use anything: name somebody in {shown} before that"
        )),
    }
    out::line(&format!(
        "next: usher check -c {file}, usher policy test --dir {shown}"
    ));
    Ended::Well
}

fn write_policies(dir: &Path, operator: Option<&str>) -> io::Result<()> {
    // Whatever the mask of this shell: policies in a directory that others may write to are not read (SECURITY OPS-1).
    DirBuilder::new().mode(0o755).create(dir)?;
    for (name, text) in config::starter_policies(operator) {
        config::write_new(&dir.join(name), &text)?;
    }
    Ok(())
}

/// A name that a user can have: as claims are taken.
fn subject(text: &str) -> Result<String, &'static str> {
    if text.is_empty() || text.len() > 1_024 || text.chars().any(char::is_control) {
        return Err("1 to 1,024 bytes without control characters");
    }
    Ok(text.to_owned())
}

/// Why a new file was not written, and what to do.
pub(super) fn not_written(file: &Path, error: &io::Error, hint: &str) -> String {
    let file = file.display();
    let kind = error.kind();
    if kind == io::ErrorKind::AlreadyExists {
        format!("{file} exists and is left as it is; {hint}")
    } else if kind == io::ErrorKind::NotFound {
        format!("{file}: there is no such directory")
    } else {
        format!("{file}: {error}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exists_is_told_in_words_with_what_to_do() {
        let error = io::Error::from_raw_os_error(17);
        let told = not_written(Path::new("usher.yaml"), &error, "do this");
        assert_eq!(told, "usher.yaml exists and is left as it is; do this");
        let error = io::Error::from_raw_os_error(2);
        assert!(not_written(Path::new("a/b"), &error, "").contains("no such directory"));
    }
}
