//! Open files: how many this process may have, and how many of them connections may take (SECURITY REL-9).
//!
//! Guarantees: connections leave files for everything else, and one peer leaves some for all others, whatever was configured; where
//! the system gives out no more all the same, that is counted, told once for each time, and known to whoever asks whether the gateway
//! is ready. Deliberately absent: what else opens files, which meets its own errors.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use nix::{
    errno::Errno,
    sys::resource::{Resource, getrlimit, setrlimit},
};

use super::spec::ServerBounds;

/// What is kept for logs, upstreams and operators, or half of what there is.
const KEPT: u64 = 512;
/// Beside one file for each connection and one toward its upstream, what is asked for.
const MORE: u64 = 4_096;
/// Of the connections there are room for, one peer has this part where there are too few.
const OF_ONE: usize = 4;

/// Whether the system gave out none when it was asked last.
static NONE_LEFT: AtomicBool = AtomicBool::new(false);

/// Lets this process open as many files as these bounds need, as far as its user may, and fits them to what there is. The second is how
/// many files that is, where it is too few for what was asked for. `proxied`: whoever connects may bring others along.
pub fn fitted(bounds: ServerBounds, proxied: bool) -> (ServerBounds, Option<u64>) {
    let wanted = (bounds.connections as u64)
        .saturating_mul(2)
        .saturating_add(MORE);
    let files = raised(wanted).unwrap_or(u64::MAX);
    let fitted = within(bounds, files, proxied);
    (
        fitted,
        (fitted.connections < bounds.connections).then_some(files),
    )
}

/// How many files may be open, once as many were asked for.
fn raised(wanted: u64) -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = wanted.min(hard);
    if raised > soft && setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_ok() {
        return Some(raised);
    }
    Some(soft)
}

fn within(bounds: ServerBounds, files: u64, proxied: bool) -> ServerBounds {
    let left = files.saturating_sub(KEPT.min(files / 2));
    let left = usize::try_from(left).unwrap_or(usize::MAX).max(1);
    if left >= bounds.connections {
        return bounds;
    }
    // A proxy brings everybody.
    let of_one = if proxied {
        left
    } else {
        (left / OF_ONE).max(1)
    };
    ServerBounds {
        connections: left,
        connections_per_peer: bounds.connections_per_peer.min(of_one),
        ..bounds
    }
}

/// Whether an error says that there are no files left; it is known from then on.
pub(super) fn none_left(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw);
    let none = matches!(code, Some(Errno::EMFILE | Errno::ENFILE));
    if none {
        NONE_LEFT.store(true, Ordering::Relaxed);
    }
    none
}

/// There are some again.
pub(super) fn some_left() {
    if NONE_LEFT.load(Ordering::Relaxed) {
        NONE_LEFT.store(false, Ordering::Relaxed);
    }
}

/// Whether no connection can be accepted for want of files.
pub fn are_none_left() -> bool {
    NONE_LEFT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_all_else_and_one_peer_some_for_others() {
        let bounds = ServerBounds::default();
        let of = |files| {
            let fitted = within(bounds, files, false);
            (fitted.connections, fitted.connections_per_peer)
        };
        assert_eq!(of(u64::MAX), (20_000, 4_096));
        assert_eq!(of(20_512), (20_000, 4_096));
        assert_eq!(of(20_511), (19_999, 4_096));
        assert_eq!(of(4_096), (3_584, 896));
        assert_eq!(of(1_024), (512, 128));
        assert_eq!(of(128), (64, 16));
        assert_eq!(of(0), (1, 1));
        let proxied = within(bounds, 1_024, true);
        assert_eq!(
            (proxied.connections, proxied.connections_per_peer),
            (512, 512)
        );
        // What somebody asks for is given where there is room.
        let few = ServerBounds {
            connections: 10,
            connections_per_peer: 10,
            ..bounds
        };
        let fitted = within(few, 1_024, false);
        assert_eq!((fitted.connections, fitted.connections_per_peer), (10, 10));
    }

    #[test]
    fn only_want_of_files_is_that() {
        for (code, none) in [
            (Errno::EMFILE, true),
            (Errno::ENFILE, true),
            (Errno::ECONNABORTED, false),
        ] {
            let error = io::Error::from_raw_os_error(code as i32);
            assert_eq!(none_left(&error), none, "{code}");
        }
        assert!(are_none_left());
        some_left();
        assert!(!are_none_left());
    }
}
