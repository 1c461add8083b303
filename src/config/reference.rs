//! `${env:NAME}` and `${file:/path}`: the only interpolations, done on scalar values after parsing.
//!
//! Files are bounded at 1 MiB and line ends after the text are cut; whether a file that everybody may read is fit for a
//! secret is remembered for the checks, because only they know which positions are secret.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::{fd::AsFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{
    problem::{Findings, SourceSpan},
    tree::{Node, Origin, Scalar, written},
};

/// The environment, as far as configuration looks at it.
pub type Vars<'a> = &'a dyn Fn(&str) -> Option<String>;

const MAX_FILE_BYTES: u64 = 1 << 20;

/// Resolves every reference in `tree`; what cannot be resolved is reported and left as it stands. What was brought by one is not
/// looked at again.
pub(super) fn resolve(tree: &mut Node, base: &Path, vars: Vars<'_>, findings: &mut Findings) {
    tree.each_scalar(&mut Vec::new(), &mut |path, place, scalar| {
        if scalar.origin == Origin::Written && scalar.text.contains("${") {
            match expand(&scalar.text, base, vars) {
                Ok(resolved) => *scalar = resolved,
                Err((message, hint)) => {
                    findings.report(place, written(path), message, hint);
                    findings.unresolved.push(place);
                }
            }
        }
    });
}

/// `text` as it will be with its references resolved, if they can be.
pub(super) fn resolved(text: &str, base: &Path, vars: Vars<'_>) -> Option<Zeroizing<String>> {
    expand(text, base, vars).ok().map(|scalar| scalar.text)
}

/// Every reference of a text, `env` or `file` and its argument.
pub(super) fn mentions(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("${") {
        let Some((inside, tail)) = after.split_once('}') else {
            break;
        };
        if let Some(reference) = inside.split_once(':') {
            found.push(reference);
        }
        rest = tail;
    }
    found
}

fn expand(text: &str, base: &Path, vars: Vars<'_>) -> Result<Scalar, (String, String)> {
    let mut out = Zeroizing::new(String::with_capacity(text.len() + 64));
    let mut exposed = None;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, tail)) = after.split_once('}') else {
            return Err(("`${` without `}`".into(), FORMS.into()));
        };
        match inside.split_once(':') {
            Some(("env", name)) if !name.is_empty() => match vars(name).map(Zeroizing::new) {
                Some(value) => out.push_str(&value),
                None => {
                    return Err((
                        format!("the environment variable `{name}` is not set"),
                        format!("export {name} before starting usher"),
                    ));
                }
            },
            Some(("file", path)) if !path.is_empty() => {
                let (content, open_to_all) = read(&base.join(path))?;
                out.push_str(&content);
                if open_to_all {
                    exposed = Some(PathBuf::from(path));
                }
            }
            _ => {
                return Err((format!("`${{{inside}}}` is no reference"), FORMS.into()));
            }
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(Scalar {
        text: out,
        // A reference that stands alone and without quotes is text all the same: `null` from a file is four letters.
        plain: false,
        origin: Origin::Referenced {
            exposed,
            written: text.to_owned(),
        },
    })
}

const FORMS: &str = "`${env:NAME}` and `${file:/path}` are the only references there are";

fn read(path: &Path) -> Result<(Zeroizing<String>, bool), (String, String)> {
    let name = path.display();
    let failed = |error: io::Error| {
        (
            format!("`{name}` cannot be read: {error}"),
            "the file must exist and be readable by the user that runs usher".to_owned(),
        )
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err((format!("`{name}` is a directory"), String::new()));
    }
    let mut content = Zeroizing::new(String::new());
    let taken = (&file)
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut content)
        .map_err(failed)?;
    if taken as u64 > MAX_FILE_BYTES {
        return Err((format!("`{name}` holds more than 1 MiB"), String::new()));
    }
    let cut = content.trim_end_matches(['\n', '\r']).len();
    content.truncate(cut);
    let open_to_all = metadata.permissions().mode() & 0o004 != 0 && !on_read_only_mount(&file);
    Ok((content, open_to_all))
}

/// Whether the file lies on a mount that nobody writes to: how orchestrators hand secrets to a container that has one user.
fn on_read_only_mount(file: &File) -> bool {
    nix::sys::statvfs::fstatvfs(file.as_fd())
        .is_ok_and(|stat| stat.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY))
}

/// Where a document is named, which is told when it cannot be opened.
pub(super) struct Named<'a> {
    pub(super) place: SourceSpan,
    /// The keys that lead there.
    pub(super) path: &'a str,
    /// What to do when there is none.
    pub(super) hint: &'a str,
}

/// Reads a configuration text, refusing one that others may write to (SECURITY OPS-1).
pub(super) fn read_document(
    path: &Path,
    named: &Named<'_>,
    file: usize,
    findings: &mut Findings,
) -> Option<String> {
    let place = SourceSpan::whole(file);
    let opened = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    let (mut opened, metadata) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let hint = if missing { named.hint } else { "" };
            let message = if named.place == place {
                format!("cannot be read: {error}")
            } else {
                format!("`{}` cannot be read: {error}", path.display())
            };
            findings.report(named.place, named.path, message, hint);
            return None;
        }
    };
    let mode = metadata.permissions().mode();
    if mode & 0o022 != 0 && metadata.is_file() {
        findings.report(
            place,
            "",
            format!("others may write to this file (mode {:03o})", mode & 0o777),
            format!("it can start programs: chmod go-w {}", path.display()),
        );
    }
    // Whoever may rename what is in a directory may put another file in the place of this one.
    let directory = directory_of(path);
    let replaceable = fs::metadata(&directory).is_ok_and(|metadata| {
        let mode = metadata.permissions().mode();
        mode & 0o002 != 0 && mode & 0o1000 == 0 && metadata.is_dir()
    });
    if replaceable && metadata.is_file() && !on_read_only_mount(&opened) {
        let shown = directory.display();
        findings.report(
            place,
            "",
            format!("everybody may put another file in its place, in `{shown}`"),
            format!("it can start programs: chmod o-w {shown}"),
        );
    }
    let mut text = String::new();
    match (&mut opened)
        .take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
    {
        Ok(taken) if taken as u64 <= MAX_FILE_BYTES => Some(text),
        Ok(_) => {
            findings.report(
                place,
                "",
                "holds more than 1 MiB",
                "`include` splits a file",
            );
            None
        }
        Err(error) => {
            findings.report(place, "", format!("cannot be read: {error}"), "");
            None
        }
    }
}

/// The directory that relative paths of a document start from.
pub(super) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// What a document names by this path, relative to itself.
pub(super) fn beside(document: &Path, written: &str) -> PathBuf {
    document.parent().unwrap_or(Path::new("")).join(written)
}

/// The same file, however it is named.
pub(super) fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
