//! What the variables of other programs' files stand for that are about places, not about secrets.

use std::path::{Path, PathBuf};

use crate::config::{Vars, reference::directory_of};

/// The folder that `${workspaceFolder}` means: where the file's own dot folder lies, else where the file lies.
pub(super) fn workspace_of(path: &Path) -> PathBuf {
    let directory = directory_of(path);
    let dotted = directory
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| matches!(name, ".vscode" | ".cursor"));
    let folder = if dotted {
        directory_of(&directory)
    } else {
        directory
    };
    std::path::absolute(&folder).unwrap_or(folder)
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
