//! `usher init`: a configuration to start from.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args as ClapArgs;

use super::{Ended, out};
use crate::config;

/// Write a commented usher.yaml to start from
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher init
  usher init gateway/usher.yaml

An existing file is left alone.")]
pub(super) struct Args {
    /// Where to write
    #[arg(default_value = "usher.yaml", value_name = "FILE")]
    file: PathBuf,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    match config::write_new(&args.file, config::STARTER) {
        Ok(()) => {
            let file = args.file.display();
            out::line(&format!("{file} is written; next: usher check -c {file}"));
            Ended::Well
        }
        Err(error) => {
            let hint = "`usher init OTHER.yaml` writes another";
            out::problem(&not_written(&args.file, &error, hint));
            Ended::Failed
        }
    }
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
