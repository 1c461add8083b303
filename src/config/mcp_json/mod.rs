//! Files of other programs: `mcpServers` of Claude Desktop, Cursor and Claude Code, `servers` of VS Code.
//!
//! A file is translated into the tree that a configuration of ours would have been, every value keeping its place in
//! the original, and then goes through the same checks. Served directly, it is taken as it is; imported, literal secrets
//! become references. Nothing is written here, and no server is started.

mod env_file;
mod login;
mod places;
mod servers;
mod text;
mod translation;
mod write;

#[cfg(test)]
mod others;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::{
    Plan, Rejected, Vars, check, files,
    loaded::SET,
    problem::{Findings, SourceSpan},
    reference::{self, Named},
    tree::{Node, Origin},
    yaml,
};
use translation::{Mode, Translation};

/// What an import gives.
#[derive(Debug, Clone)]
pub struct Import {
    /// The text of a configuration.
    pub yaml: String,
    /// What has to be set before it runs, in the order it is met, each once.
    pub exports: Vec<Export>,
    /// What was changed or left out, in sentences.
    pub notes: Vec<String>,
}

/// An environment variable that a configuration refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Where its value stands now, or what it is for.
    pub from: String,
    /// Whether the environment has it already, for what refers to it.
    pub present: bool,
}

/// Reads a file of another program as a plan, with notes on what it says that we do not do.
///
/// # Errors
/// [`Rejected`] with everything that is wrong, at its place in that file.
pub fn load_mcp_json(path: &Path, vars: Vars<'_>) -> Result<(Plan, Vec<String>), Rejected> {
    let mut findings = Findings::default();
    let mut translation = Translation::new(Mode::Serve, vars);
    let tree = read(path, &mut findings).map(|(file, root)| {
        translation.file(path, file, &root, &mut findings);
        let mut tree = translation.tree();
        reference::resolve(
            &mut tree,
            &reference::directory_of(path),
            vars,
            &mut findings,
        );
        // The owner of that file has put secrets there long before us.
        tree.each_scalar(&mut Vec::new(), &mut |_, _, scalar| {
            scalar.origin = Origin::Referenced {
                exposed: None,
                written: SET.to_owned(),
            };
        });
        tree
    });
    let plan = tree.map(|tree| check::check(tree, &mut findings));
    findings.settle(plan).map(|plan| (plan, translation.notes))
}

/// Turns files of other programs into the text of one configuration. Whether what it refers to is set does not matter yet.
///
/// # Errors
/// [`Rejected`] with everything that is wrong, at its place in those files.
pub fn import(paths: &[PathBuf], vars: Vars<'_>) -> Result<Import, Rejected> {
    let mut findings = Findings::default();
    let mut translation = Translation::new(Mode::Import, vars);
    for path in paths {
        if let Some((file, root)) = read(path, &mut findings) {
            translation.file(path, file, &root, &mut findings);
        }
    }
    let tree = translation.tree();
    let yaml = write::yaml(&tree, &translation.exports);
    judge(tree, vars, &mut findings);
    findings.settle(Some(Import {
        yaml,
        exports: translation.exports,
        notes: translation.notes,
    }))
}

/// Checks what was made of the files, as if everything it refers to were set.
fn judge(mut tree: Node, vars: Vars<'_>, findings: &mut Findings) {
    tree.each_scalar(&mut Vec::new(), &mut |_, place, scalar| {
        let open = reference::mentions(&scalar.text)
            .iter()
            .any(|(kind, name)| *kind == "env" && vars(name).is_none());
        if open {
            findings.unresolved.push(place);
        }
    });
    let assumed = |name: &str| Some(vars(name).unwrap_or_else(|| "placeholder".into()));
    reference::resolve(&mut tree, Path::new("."), &assumed, findings);
    drop(check::check(tree, findings));
}

fn read(path: &Path, findings: &mut Findings) -> Option<(usize, Node)> {
    let file = findings.add_source(path.display().to_string());
    let named = Named {
        place: SourceSpan::whole(file),
        path: "",
        hint: "",
    };
    let text = reference::read_document(path, &named, file, findings)?;
    let mut root = yaml::read_json(&text, file, findings)?;
    findings.sources[file].shown = files::blotted(&text, &mut root);
    Some((file, root))
}
