//! `usher init`: a configuration to start from, and policies beside it that permit nobody but the operator.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;

use super::{Ended, out};
use crate::{config, json::Json};

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
    /// Print what is written and what is left as it is as JSON
    #[arg(long)]
    json: bool,
}

/// What became of the files.
#[derive(Debug, serde::Serialize)]
struct Made {
    written: Vec<String>,
    /// Existed, and are left as they are.
    kept: Vec<String>,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let operator = args.operator.as_deref();
    let beside = args.file.parent().unwrap_or_else(|| Path::new(""));
    let policies = beside.join(POLICIES);
    let (file, shown) = (args.file.display(), policies.display());
    let made = match config::write_new(&args.file, &config::starter(operator)) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if policies.exists() {
                out::problem(&format!(
                    "{file} and {shown} exist and are left as they are; `usher init OTHER.yaml` writes another"
                ));
                if let Some(operator) = operator {
                    out::problem(&left_out(operator, &policies, &args.file));
                }
                return Ended::Failed;
            }
            false
        }
        Err(error) => {
            out::problem(&not_written(&args.file, &error, ""));
            return Ended::Failed;
        }
    };
    let kept = match write_policies(&policies, operator) {
        Ok(()) => (!made).then_some(&*args.file),
        Err(error) if made && error.kind() == io::ErrorKind::AlreadyExists => Some(&*policies),
        Err(error) => {
            out::problem(&not_written(&policies, &error, "remove it first"));
            return Ended::Failed;
        }
    };
    if args.json {
        let (kept, written): (Vec<_>, Vec<_>) = [&*args.file, &*policies]
            .into_iter()
            .partition(|path| Some(*path) == kept);
        let shown = |paths: Vec<&Path>| paths.iter().map(|it| it.display().to_string()).collect();
        let made = Made {
            written: shown(written),
            kept: shown(kept),
        };
        out::line(Json::of(&made).as_str());
    } else {
        tell(args, &policies, kept);
    }
    match operator {
        Some(operator) if kept == Some(&*policies) => {
            out::problem(&left_out(operator, &policies, &args.file));
            Ended::Failed
        }
        Some(_) | None => Ended::Well,
    }
}

/// What is written, what of it was there, and what to do next.
fn tell(args: &Args, policies: &Path, kept: Option<&Path>) {
    let (file, shown) = (args.file.display(), policies.display());
    let made = kept.is_none();
    if kept == Some(policies) {
        out::line(&format!(
            "{file} is written; {shown} exists and is left as it is"
        ));
        return;
    }
    if made {
        out::line(&format!("{file} and {shown} are written"));
    } else {
        out::line(&format!(
            "{shown} is written; {file} exists and is left as it is: add `policy: {{ dir: {POLICIES} }}` to it"
        ));
    }
    match args.operator.as_deref() {
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
}

/// That policies which exist say nothing new of the operator, and how they would.
fn left_out(operator: &str, policies: &Path, file: &Path) -> String {
    format!(
        "{operator:?} was not put into {}; unless they are in it already, add this line to a `.cedar` file there, and have \
         `policy: {{ dir: {POLICIES} }}` in {}:\n  {}",
        policies.display(),
        file.display(),
        config::permit_line(operator),
    )
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
    fn who_is_not_put_into_policies_is_told_the_line_that_would() {
        let told = left_out("a\"b", Path::new("policies"), Path::new("usher.yaml"));
        let line = r#"permit (principal == User::"a\"b", action in Action::"use", resource);"#;
        for word in ["not put into policies", "usher.yaml", line] {
            assert!(told.contains(word), "{told}");
        }
    }

    #[test]
    fn a_file_that_exists_is_told_in_words_with_what_to_do() {
        let error = io::Error::from_raw_os_error(17);
        let told = not_written(Path::new("usher.yaml"), &error, "do this");
        assert_eq!(told, "usher.yaml exists and is left as it is; do this");
        let error = io::Error::from_raw_os_error(2);
        assert!(not_written(Path::new("a/b"), &error, "").contains("no such directory"));
    }
}
