//! What a start reads and where it writes: whether that can be used.
//!
//! Looked at for whoever asks whether a configuration is right, and not each time one is read: a gateway that runs has taken hold of
//! all this, and `usher keys create` is how the first key comes. Read by what reads it then; nothing is made or changed.

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

use nix::unistd::{AccessFlags, access};

use super::{Check, written};
use crate::{
    audit::home::{default_directory, exposed},
    auth::{
        BadKeySet,
        spec::{AuthSpec, KeySource},
    },
    config::{Plan, Vars},
    server::guard,
};

/// Looks at all of them. Where the directory of records is that nobody names, `vars` say.
pub(super) fn look(check: &mut Check<'_>, plan: &Plan, vars: Vars<'_>) {
    if let Some(auth) = &plan.auth {
        keys(check, auth);
    }
    let kept = plan.audit.as_ref().filter(|it| it.storage.keeps_files());
    match kept.map(|audit| &audit.directory) {
        Some(Some(kept)) => records(check, &["audit", "dir"], kept),
        Some(None) => records(check, &["audit"], &default_directory(vars)),
        None => {}
    }
    if let Some(pins) = &plan.pins.directory {
        directory(check, &["state", "dir"], pins, 0o022);
    }
    if let Some(store) = &plan.connect.store {
        directory(check, &["connections", "store"], &store.directory, 0o077);
    }
}

/// The files that say who is admitted.
fn keys(check: &mut Check<'_>, auth: &AuthSpec) {
    for (index, issuer) in auth.issuers.iter().enumerate() {
        let KeySource::File(file) = &issuer.keys else {
            continue;
        };
        let index = index.to_string();
        let path = ["auth", "jwt", &index, "jwks_file"];
        let none = BadKeySet::Nothing.to_string();
        let read = guard::key_set(file, &auth.limits);
        if let Err(why) = read.and_then(|keys| if keys.is_empty() { Err(none) } else { Ok(()) }) {
            let hint = "the keys of the issuer, as it publishes them: `{\"keys\": […]}`";
            unusable(check, &path, file, &why, hint);
        }
    }
    if let Some(keys) = &auth.keys
        && let Err(why) = guard::key_file(&keys.file)
    {
        let hint = "`usher keys create` makes it: move this one away, or name another";
        unusable(check, &["auth", "keys", "file"], &keys.file, &why, hint);
    }
}

/// The directory of records, which a start does not use where everybody may.
fn records(check: &mut Check<'_>, path: &[&str], place: &Path) {
    if let Some(exposed) = exposed(place) {
        check.wrong(path, exposed.message(), exposed.hint());
    }
    directory(check, path, place, 0);
}

/// A directory that is made where there is none; which others must not use in this way, by the bits of its mode.
fn directory(check: &mut Check<'_>, path: &[&str], place: &Path, refused: u32) {
    match fs::metadata(place) {
        Ok(found) if !found.is_dir() => {
            let message = format!("`{}` is not a directory", place.display());
            check.wrong(path, message, "name one, or what is not there yet");
        }
        Ok(found) if found.permissions().mode() & refused != 0 => {
            let (place, mode) = (place.display(), found.permissions().mode() & 0o777);
            let message = format!("others may use `{place}` (mode {mode:03o})");
            check.wrong(path, message, format!("chmod 700 {place}"));
        }
        Ok(_) => writable(check, path, place),
        // It is made at the start, by whoever serves then and where: who checks a file may be another, elsewhere.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => unusable(check, path, place, &error.to_string(), ELSEWHERE),
    }
}

/// What to do about a place that cannot be written to.
const ELSEWHERE: &str = "name a directory that this user may write to";

/// Whether this user may make something in a directory that is there: what is mounted read-only counts, too.
fn writable(check: &mut Check<'_>, path: &[&str], place: &Path) {
    if let Err(errno) = access(place, AccessFlags::W_OK | AccessFlags::X_OK) {
        unusable(check, path, place, errno.desc(), ELSEWHERE);
    }
}

fn unusable(check: &mut Check<'_>, path: &[&str], place: &Path, why: &str, hint: &str) {
    // That others may write to it is told already.
    let at = written(path);
    if !check.findings.problems.iter().any(|told| told.path == at) {
        let message = format!("`{}` cannot be used: {why}", place.display());
        check.wrong(path, message, hint);
    }
}
