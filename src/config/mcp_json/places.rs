//! What other programs' files say about places, not about secrets: where programs start, and what variables stand for.

use std::path::{Path, PathBuf};

use crate::config::{
    Vars,
    reference::{directory_of, identity},
    tree::Node,
};

/// The folder that `${workspaceFolder}` means: where the file's own dot folder lies, else where the file lies.
pub(super) fn workspace_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = directory_of(&path);
    if is_dotted(&directory) {
        directory_of(&directory)
    } else {
        directory
    }
}

/// The directory of the project that the file is of: its programs start there. What lies in somebody's own directory is of no
/// project.
pub(super) fn project_of(path: &Path, vars: Vars<'_>) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let of_project = match path.file_name()?.to_str()? {
        ".mcp.json" => true,
        "mcp.json" => is_dotted(&directory_of(&path)),
        _ => false,
    };
    let project = of_project.then(|| workspace_of(&path))?;
    let home = vars("HOME").map(|home| identity(Path::new(&home)));
    // `../.cursor/mcp.json` may be of it as well.
    (home != Some(identity(&project))).then_some(project)
}

/// Whether a program or what it is told is to be found from where it starts, which is this directory.
pub(super) fn relative(node: &Node, directory: &Path) -> bool {
    let words = ["command", "args"]
        .into_iter()
        .filter_map(|key| node.member(key));
    let mut words = words.flat_map(|word| std::iter::once(word).chain(word.items()));
    let from_here = |word: &Node| {
        let word = word.as_text().unwrap_or_default();
        let is_there = || {
            let path = Path::new(word);
            !word.is_empty() && path.is_relative() && directory.join(path).exists()
        };
        matches!(word, "." | "..")
            || word.starts_with("./")
            || word.starts_with("../")
            || is_there()
    };
    words.any(from_here)
}

/// Whether it is where some programs keep what is of a project.
fn is_dotted(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| matches!(name, ".vscode" | ".cursor"))
}

/// What `${name}` stands for, if it is about a place.
pub(super) fn place(name: &str, workspace: &Path, vars: Vars<'_>) -> Option<String> {
    match name {
        "workspaceFolder" | "workspaceRoot" => Some(workspace.display().to_string()),
        "workspaceFolderBasename" => workspace
            .file_name()
            .map(|name| name.to_string_lossy().into_owned()),
        "userHome" => vars("HOME"),
        "pathSeparator" | "/" => Some("/".into()),
        _ => None,
    }
}
