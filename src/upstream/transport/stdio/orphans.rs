//! Reaps orphaned grandchildren when this process is PID 1 or a child subreaper.
//!
//! It does not steal the exit status of children that we wait for ourselves. Elsewhere it does nothing: the system's own first
//! process reaps them.

use std::{
    collections::HashSet,
    io,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nix::unistd::Pid;
use process_wrap::tokio::ChildWrapper;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use crate::tasks::Tasks;

/// When it is looked again while a child of our own stands in front, whose end is about to be seen.
const SOON: Duration = Duration::from_millis(100);

/// Whom we started, of all upstreams: a wait for anybody may meet any of them.
static OURS: LazyLock<Mutex<Started>> = LazyLock::new(Mutex::default);

/// See [`OURS`].
#[derive(Default)]
struct Started {
    /// How many are being started, whose numbers are not known yet.
    starting: usize,
    known: HashSet<Pid>,
}

/// A child of ours, until this is dropped: somebody else waits for it.
#[derive(Debug)]
pub(super) struct Ours(Pid);

impl Ours {
    /// Starts a child. While that lasts nobody is waited for here, or one that ended at once could be taken for an orphan. The lock is
    /// not held over it: a program on a disk that hangs would keep all others.
    pub(super) fn start(
        start: impl FnOnce() -> io::Result<Box<dyn ChildWrapper>>,
    ) -> io::Result<(Box<dyn ChildWrapper>, Option<Self>)> {
        ours().starting += 1;
        let started = start();
        let child = started.as_ref().ok();
        let id = child.and_then(|child| i32::try_from(child.id()?).ok());
        let id = id.map(Pid::from_raw);
        {
            let mut ours = ours();
            ours.starting -= 1;
            ours.known.extend(id);
        }
        Ok((started?, id.map(Self)))
    }

    /// Its number.
    pub(super) const fn id(&self) -> Pid {
        self.0
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        ours().known.remove(&self.0);
    }
}

/// Waits for orphans as long as `tasks` live, where they fall to us.
pub(super) fn look_after(tasks: &Tasks) {
    if !fall_to_us() {
        return;
    }
    tasks.spawn(async {
        let mut ended = match signal(SignalKind::child()) {
            Ok(ended) => ended,
            Err(error) => return tracing::warn!(%error, "orphans are not waited for"),
        };
        loop {
            if reap() {
                ended.recv().await;
            } else {
                sleep(SOON).await;
            }
        }
    });
}

#[cfg(target_os = "linux")]
fn fall_to_us() -> bool {
    Pid::this().as_raw() == 1 || nix::sys::prctl::get_child_subreaper().unwrap_or(false)
}

/// Only Linux has containers.
#[cfg(not(target_os = "linux"))]
const fn fall_to_us() -> bool {
    false
}

/// Waits for all orphans that have ended; false when there may be more of them behind a child of ours.
#[cfg(target_os = "linux")]
fn reap() -> bool {
    use nix::{
        errno::Errno,
        sys::wait::{Id, WaitPidFlag, waitid, waitpid},
    };
    loop {
        let ours = ours();
        if ours.starting > 0 {
            return false;
        }
        let looking = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let ended = match waitid(Id::All, looking) {
            Ok(ended) => ended.pid(),
            // A signal without a name ended one, and so it is not said whom. To wait for it is enough, whatever that says.
            Err(Errno::EINVAL) => {
                for orphan in children().filter(|child| !ours.known.contains(child)) {
                    _ = waitpid(orphan, Some(WaitPidFlag::WNOHANG));
                }
                // It may be one of ours.
                return false;
            }
            Err(_none) => None,
        };
        let Some(ended) = ended else {
            return true;
        };
        if ours.known.contains(&ended) {
            return false;
        }
        match waitpid(ended, Some(WaitPidFlag::WNOHANG)) {
            Ok(_) | Err(Errno::EINVAL) => {}
            Err(_gone) => return true,
        }
    }
}

/// All children of this process, as the system lists them.
#[cfg(target_os = "linux")]
fn children() -> impl Iterator<Item = Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .filter_map(Result::ok)
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| {
        let numbers = list.split_ascii_whitespace().map(str::parse);
        let known: Vec<_> = numbers.filter_map(Result::ok).map(Pid::from_raw).collect();
        known
    })
}

#[cfg(not(target_os = "linux"))]
const fn reap() -> bool {
    true
}

/// A panic under the lock leaves a set that is still whole, so poison says nothing.
fn ours() -> MutexGuard<'static, Started> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}
