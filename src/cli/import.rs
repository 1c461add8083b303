//! `usher import`: files of other programs become a configuration without secrets in it.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Ended, init::not_written, out, source::tell};
use crate::{
    config::{self, Export},
    json::Json,
};

/// Turn mcp.json, claude_desktop_config.json or .vscode/mcp.json into usher.yaml
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  usher import ~/.cursor/mcp.json -o usher.yaml
  usher import claude_desktop_config.json .vscode/mcp.json > usher.yaml

Secrets that stand in those files become ${env:NAME}; what to export is printed to stderr.")]
pub(super) struct Args {
    /// Files of Claude Desktop, Claude Code, Cursor or VS Code
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write; an existing file is left alone [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the outcome as JSON: the configuration unless it is written, what to export, and notes
    #[arg(long)]
    json: bool,
}

/// What came of it, as JSON.
#[derive(Debug, serde::Serialize)]
struct Imported<'a> {
    /// The file that is written, or null.
    written: Option<String>,
    /// The configuration, where no file is written.
    yaml: Option<&'a str>,
    exports: Vec<Wanted<'a>>,
    notes: &'a [String],
}

/// A variable that the configuration refers to.
#[derive(Debug, serde::Serialize)]
struct Wanted<'a> {
    name: &'a str,
    from: &'a str,
    present: bool,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Ended {
    let import = match config::import(&args.files, &config::process_vars) {
        Ok(import) => import,
        Err(rejected) => {
            tell(&rejected);
            return Ended::Misused;
        }
    };
    if let Some(path) = &args.output
        && let Err(error) = config::write_new(path, &import.yaml)
    {
        let hint = "`-o OTHER.yaml` writes another";
        out::problem(&not_written(path, &error, hint));
        return Ended::Failed;
    }
    let written = args.output.as_ref().map(|path| path.display().to_string());
    if args.json {
        let imported = Imported {
            yaml: written.is_none().then_some(&*import.yaml),
            written,
            exports: import.exports.iter().map(Wanted::of).collect(),
            notes: &import.notes,
        };
        out::line(Json::of(&imported).as_str());
        return Ended::Well;
    }
    match written {
        None => out::raw(import.yaml.as_bytes()),
        Some(path) => out::note(&format!("{path} is written")),
    }
    for note in &import.notes {
        out::note(&format!(
            "{}: {}",
            out::paint(out::YELLOW, "note"),
            out::tame(note)
        ));
    }
    let lacking: Vec<_> = import.exports.iter().filter(|it| !it.present).collect();
    if !lacking.is_empty() {
        out::note("\nbefore it runs, set:");
        for export in lacking {
            let from = out::paint(out::DIM, &format!("# {}", out::tame(&export.from)));
            out::note(&format!("  export {}=…   {from}", export.name));
        }
    }
    Ended::Well
}

impl<'a> Wanted<'a> {
    fn of(export: &'a Export) -> Self {
        Self {
            name: &export.name,
            from: &export.from,
            present: export.present,
        }
    }
}
