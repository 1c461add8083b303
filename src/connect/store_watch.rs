//! The watch over the store: sees what another process did to it (SECURITY 10).
//!
//! Guarantees: the store is read within a second of each change of its directory, and once more a second later, since the time of
//! a change is no finer than a tick of the system's clock; what cannot be read of it is read again until
//! it can be, the less often the longer that lasts, but twice a minute; each state is told once. Deliberately absent: what
//! becomes of what is read, which `accounts` says.

use std::time::Duration;

use tokio::time::Instant;

use super::{Connections, store::Stamp};

/// How often the store is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The longest that it is left alone while something in it cannot be read.
const PAUSE: Duration = Duration::from_secs(30);

/// What is known of the store from looking at it.
#[derive(Debug, Default)]
struct Lookout {
    /// When its directory had been changed last as it was read.
    seen: Option<Stamp>,
    /// Whether that was seen for the first time then: what was changed in the same tick right after shows in no stamp.
    is_new: bool,
    failing: Option<Failing>,
}

/// That it could not be read, or not all of it.
#[derive(Debug)]
struct Failing {
    why: String,
    /// How long it is left alone for that, unless it is changed.
    pause: Duration,
    until: Instant,
}

impl Connections {
    /// Looks at the store for what another process did there; what could not be read is read again.
    pub(super) async fn look(self) {
        let mut lookout = Lookout::default();
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(store) = self.shared.grants.store() else {
                return;
            };
            let (stamp, now) = (store.stamp(), Instant::now());
            if !lookout.is_due(stamp, now) {
                continue;
            }
            let this = self.clone();
            let load = move || this.shared.grants.load(&this.shared.spec);
            let why = match tokio::task::spawn_blocking(load).await {
                Ok(Ok(true)) => None,
                Ok(Ok(false)) => Some("files in it cannot be read".to_owned()),
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("reading it ended early".to_owned()),
            };
            lookout.learn(stamp, now, why);
        }
    }
}

impl Lookout {
    /// Whether the store is to be read now.
    fn is_due(&self, stamp: Option<Stamp>, now: Instant) -> bool {
        let again = match &self.failing {
            Some(failing) => now >= failing.until,
            None => stamp.is_none(),
        };
        again || self.is_new || stamp != self.seen
    }

    /// Takes note of why the store could not be read at `now`, if it could not; tells of it where that is another thing than
    /// before.
    fn learn(&mut self, stamp: Option<Stamp>, now: Instant, why: Option<String>) {
        self.is_new = stamp != self.seen;
        self.seen = stamp;
        let before = self.failing.take();
        let Some(why) = why else {
            if before.is_some() {
                tracing::info!("the connection store is read again");
            }
            return;
        };
        if before.as_ref().is_none_or(|before| before.why != why) {
            tracing::error!(
                why,
                "the connection store cannot be read; what is known of it serves on"
            );
        }
        let pause = before.map_or(LOOK, |before| PAUSE.min(before.pause * 2));
        let until = now + pause;
        self.failing = Some(Failing { why, pause, until });
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::{
        call::Principal,
        connect::{
            Account,
            accounts::{
                Grants,
                tests::{ana, file_of, spec},
            },
            grant::tests::a_grant,
        },
        fetch::Fetcher,
        tasks::Tasks,
    };

    #[test]
    fn what_changes_in_the_same_tick_in_which_the_store_was_read_is_read_at_the_next_look() {
        let directory = tempfile::tempdir().unwrap();
        let spec = spec(directory.path(), "https://mcp.example/mcp");
        let (grants, _) = Grants::open(&spec).unwrap();
        let (first, now) = (grants.store().unwrap().stamp(), Instant::now());
        let mut lookout = Lookout::default();
        assert!(lookout.is_due(first, now));
        lookout.learn(first, now, None);
        assert!(lookout.is_due(first, now), "once more");
        lookout.learn(first, now, None);
        assert!(!lookout.is_due(first, now));
    }

    // SECURITY REL-9
    #[tokio::test(start_paused = true)]
    async fn what_stays_unreadable_is_read_ever_less_often_but_at_once_when_something_changes() {
        let directory = tempfile::tempdir().unwrap();
        let spec = spec(directory.path(), "https://mcp.example/mcp");
        let (grants, _) = Grants::open(&spec).unwrap();
        grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
        // The file is elsewhere, and at first cannot be read there.
        let file = file_of(&grants);
        let [aside, elsewhere] = ["aside", "elsewhere"].map(|name| directory.path().join(name));
        fs::rename(&file, &aside).unwrap();
        symlink(&elsewhere, &file).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        let (fetcher, tasks) = (Fetcher::new(None).unwrap(), Tasks::new());
        let connections = Connections::open(spec, fetcher, &tasks).unwrap();
        // Each reading is told of, and nothing else happens.
        let told = connections.watch();
        let readings = || *told.borrow();
        let passes = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        passes(100).await;
        let first = readings();
        assert!((5..=8).contains(&first), "{first}");
        let ben = Account {
            principal: Principal::new("ben"),
            ..ana()
        };
        grants.put(&ben, a_grant("at-2"), || ()).unwrap();
        passes(3).await;
        assert!(connections.current(&ben).is_some() && connections.current(&ana()).is_none());
        assert_eq!(readings(), first + 2);
        fs::remove_dir(&elsewhere).unwrap();
        fs::rename(&aside, &elsewhere).unwrap();
        passes(32).await;
        assert!(connections.current(&ana()).is_some());
        assert_eq!(readings(), first + 3);
        passes(100).await;
        assert_eq!(readings(), first + 3, "what was read is not read again");
        tasks.stop();
    }
}
