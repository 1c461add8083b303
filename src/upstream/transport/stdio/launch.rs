//! Starting a child: which program, with what environment, in which process group.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::{AccessFlags, access},
};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use secrecy::ExposeSecret;
use tokio::{runtime::Handle, sync::oneshot};

use super::orphans::Ours;
use crate::upstream::{UpstreamError, spec::StdioSpec};

/// The variables of our own that a child gets (SECURITY OPS-2).
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Starts the child in a group of its own, its three pipes open.
pub(super) async fn launch(
    spec: &StdioSpec,
) -> Result<(Box<dyn ChildWrapper>, Group), UpstreamError> {
    let spec = spec.clone();
    let runtime = Handle::current();
    let (done, started) = oneshot::channel();
    std::thread::Builder::new()
        .name("usher-spawn".into())
        .spawn(move || {
            let _in_runtime = runtime.enter();
            // If nobody waits any more the child comes back here, and is killed by being dropped.
            drop(done.send(start(&spec)));
        })
        .map_err(|error| UpstreamError::unreached(format!("no thread to start it: {error}")))?;
    started
        .await
        .unwrap_or_else(|_gone| Err(UpstreamError::unreached("the spawning thread panicked")))
}

/// The same on a thread of its own, which ends with it: to look a program up on a disk that hangs would keep a lane, and a child
/// inherits from the thread that forks it that it gains no privileges, so that it needs no code between fork and exec.
fn start(spec: &StdioSpec) -> Result<(Box<dyn ChildWrapper>, Group), UpstreamError> {
    let [program, arguments @ ..] = &spec.command[..] else {
        return Err(UpstreamError::unreached("no command"));
    };
    let path = match spec.env.get("PATH") {
        Some(path) => Some(OsString::from(path.expose_secret())),
        None => std::env::var_os("PATH"),
    };
    let absolute = resolve(program, path.as_deref(), spec.cwd.as_deref())?;
    let mut command = CommandWrap::with_new(absolute, |command| {
        command.args(arguments).env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in &spec.env {
            command.env(name, value.expose_secret());
        }
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
    });
    command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    let (child, ours) = restrict()
        .and_then(|()| Ours::start(|| command.spawn()))
        .map_err(|error| UpstreamError::unreached(format!("cannot start `{program}`: {error}")))?;
    Ok((child, Group(ours)))
}

#[cfg(target_os = "linux")]
fn restrict() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs().map_err(io::Error::from)
}

/// Only Linux has `no_new_privs`.
#[cfg(not(target_os = "linux"))]
const fn restrict() -> io::Result<()> {
    Ok(())
}

/// The absolute path of `program`: as it stands, or the first that can be run in the absolute directories of `path`.
pub(super) fn resolve(
    program: &str,
    path: Option<&OsStr>,
    cwd: Option<&Path>,
) -> Result<PathBuf, UpstreamError> {
    let runnable = |file: &PathBuf| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        let file = cwd.unwrap_or(Path::new("")).join(program);
        let file = std::path::absolute(file).map_err(UpstreamError::unreached)?;
        if runnable(&file) {
            return Ok(file);
        }
        let message = if Path::new(program).is_absolute() {
            format!("`{program}` is no program that can be run")
        } else {
            let from = file.display();
            format!("`{program}` is no program that can be run: it was looked for at `{from}`")
        };
        return Err(UpstreamError::unreached(message));
    }
    std::env::split_paths(path.unwrap_or_default())
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(program))
        .find(runnable)
        .ok_or_else(|| UpstreamError::unreached(format!("no program `{program}` in PATH")))
}

/// The process group of a child. Dropping it kills the group, unless it is known to be gone.
#[derive(Debug)]
pub(super) struct Group(Option<Ours>);

impl Group {
    /// Asks everyone in the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Kills everyone in the group.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// The leader has been waited for and the rest were killed: its number may soon be somebody else's.
    pub(super) fn gone(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = &self.0 {
            // The only failure is that there is nobody left.
            let _nobody = killpg(leader.id(), signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
