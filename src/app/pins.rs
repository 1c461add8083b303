//! Pins: keeps ledger and store together, and the lists up to date with both (SECURITY CAT-2).
//!
//! Guarantees: what somebody approves is offered within a second, to whomever its server offers it, and recorded before, whether or
//! not anybody is offered it then; what is new is on disk within a second; no call waits for a disk, and a refresh at most for
//! one file. Deliberately absent: what counts as a change, which `pins` says.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use crate::{
    audit::journal::{Journal, Kind},
    pins::Ledger,
    snapshot::World,
    tasks::Tasks,
};

/// How often the records are looked at.
const LOOK: Duration = Duration::from_millis(250);

/// Begins to look at the records.
pub(super) fn start(ledger: Arc<Ledger>, world: Arc<World>, journal: Journal, tasks: &Tasks) {
    tasks.spawn(async move {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let (kept, noted) = (Arc::clone(&ledger), journal.clone());
            let anew = apart(move || {
                kept.keep(|upstream| {
                    tracing::info!(%upstream, "other definitions are approved");
                    noted.note(Kind::Approval, |detail| {
                        detail.text("upstream", upstream.as_str());
                    });
                })
            });
            for upstream in anew.await.unwrap_or_default() {
                let lists = Arc::clone(&world);
                apart(move || lists.reconsider(&upstream)).await;
            }
        }
    });
}

/// Does what takes too long for a thread that calls want: reads files, or looks at all principals' lists. `None` where it
/// panics.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = tokio::task::spawn_blocking(work).await.ok();
    if done.is_none() {
        tracing::error!(
            "looking after the pins ended early; what is offered may not be as they say"
        );
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        findings::Findings,
        json::Json,
        logged::Logged,
        pins::{Offered, PinsSpec, Tells},
        protocol::{UpstreamId, meta, methods::ListKind},
    };

    #[test]
    fn what_was_only_counted_is_told_at_the_end_and_no_command_is_named_that_does_not_know_of_it() {
        let directory = tempfile::tempdir().unwrap();
        for kept in [None, Some(directory.path().join("pins"))] {
            let logged = Logged::new();
            let spec = PinsSpec {
                directory: kept.clone(),
                ..PinsSpec::default()
            };
            let ledger = Ledger::open(&spec, Findings::new()).unwrap();
            offer(&ledger, 1);
            offer(&ledger, 150);
            ledger.keep(|_| {});
            assert_eq!(logged.text().matches("told one by one").count(), 0);
            ledger.end();
            ledger.end();
            let text = logged.text();
            let rest: Vec<_> = text
                .lines()
                .filter(|line| line.contains("told one by one"))
                .collect();
            assert_eq!(rest.len(), 1, "{text}");
            assert!(rest[0].contains("count=49"), "{text}");
            assert_eq!(text.contains("usher pins status"), kept.is_some(), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_takes_nothing_is_told_of_once_and_asked_again_less_and_less_often() {
        let directory = tempfile::tempdir().unwrap();
        let pins = directory.path().join("pins");
        let spec = PinsSpec {
            directory: Some(pins.clone()),
            ..PinsSpec::default()
        };
        let ledger = Ledger::open(&spec, Findings::new()).unwrap();
        offer(&ledger, 1);
        std::fs::remove_dir_all(&pins).unwrap();
        let logged = Logged::new();
        let look = async || {
            tokio::time::advance(LOOK).await;
            ledger.keep(|_| {});
        };
        for _ in 0..400 {
            look().await;
        }
        let text = logged.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("pins are not kept"), "{text}");
        // It waits for the end of its pause, and no longer.
        std::fs::create_dir(&pins).unwrap();
        let mut looks = 0;
        while std::fs::read_dir(&pins).unwrap().count() == 0 {
            look().await;
            looks += 1;
        }
        assert!((2..=120).contains(&looks), "{looks}");
        assert!(logged.text().contains("pins are kept again"));
    }

    /// Offers as many tools.
    fn offer(ledger: &Ledger, count: usize) {
        let tool = |n| meta::object_of(&[("name", Json::string(&format!("t{n}")))]);
        let tools: Vec<_> = (0..count).map(tool).collect();
        let mut lists: [&[Json]; ListKind::COUNT] = Default::default();
        lists[ListKind::Tools as usize] = &tools;
        let offered = Offered {
            lists,
            instructions: None,
            tells: Tells::All,
            doubt: &|_, _| None,
        };
        ledger.judge(&UpstreamId::parse("notes").unwrap(), &offered);
    }
}
