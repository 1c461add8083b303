//! Certificates of our own: that one ends is told before others find out (SECURITY OPS-5).
//!
//! Guarantees: each is told of when the gateway begins to serve and once a day, from two weeks before its end on, and once when it
//! has ended. Deliberately absent: refusing one that has ended, which a start does, and reading a new one, which takes a start.

use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval};

use crate::{auth::Outline, config::RENEWAL, tasks::Tasks};

/// How often they are looked at.
const LOOK: Duration = Duration::from_secs(60);
/// How often one is told of.
const AGAIN: Duration = Duration::from_secs(24 * 3_600);

/// Begins to look at these, if there are any.
pub(super) fn watch(own: &[(String, Outline)], tasks: &Tasks) {
    let mut own: Vec<Watched> = own.iter().cloned().map(Watched::new).collect();
    if own.is_empty() {
        return;
    }
    tasks.spawn(async move {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            // What counts is what the clock on the wall says, as for those who are shown it.
            let now = SystemTime::now();
            own.iter_mut().for_each(|one| one.look(now));
        }
    });
}

/// A certificate, and what was told of it.
struct Watched {
    /// The key that it stands at.
    key: String,
    outline: Outline,
    told: Option<SystemTime>,
    ended: bool,
}

impl Watched {
    fn new((key, outline): (String, Outline)) -> Self {
        Self {
            key,
            outline,
            told: None,
            ended: false,
        }
    }

    fn look(&mut self, now: SystemTime) {
        let (key, day) = (&self.key, self.outline.last_day());
        let Ok(left) = self.outline.end().duration_since(now) else {
            if !self.ended {
                self.ended = true;
                tracing::error!(
                    certificate = key,
                    ended = day,
                    "a certificate of our own has ended, and whoever checks it does not speak with us any more: put a new one in its place and start again"
                );
            }
            return;
        };
        let again = self
            .told
            .is_none_or(|told| now.duration_since(told).is_ok_and(|passed| passed >= AGAIN));
        if left < RENEWAL && again {
            self.told = Some(now);
            tracing::warn!(
                certificate = key,
                ends = day,
                "a certificate of our own ends soon: put a new one in its place and start again"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logged::Logged;

    #[test]
    fn an_end_is_told_of_once_a_day_from_two_weeks_before_on_and_once_when_it_is_there() {
        let day = |days: u64| Duration::from_secs(days * 24 * 3_600);
        let outline = Outline {
            version: 3,
            not_after: day(20_100).as_secs(),
        };
        let mut one = Watched::new(("listen.tls.cert".to_owned(), outline));
        let logged = Logged::new();
        let mut told = Vec::new();
        let from = SystemTime::UNIX_EPOCH + day(20_100 - 16);
        let hour = Duration::from_secs(3_600);
        for hours in 0..18 * 24 {
            let before = logged.text().len();
            one.look(from + hour * hours);
            let said = logged.text().split_off(before);
            assert!(
                said.is_empty() || said.contains("listen.tls.cert"),
                "{said}"
            );
            if said.contains("WARN") {
                told.push(("soon", hours));
            } else if said.contains("ERROR") {
                told.push(("ended", hours));
            }
        }
        // The first hour in which fewer than 14 days are left, and the first after the end.
        let daily = (0..14).map(|days| ("soon", 2 * 24 + 1 + days * 24));
        let expected: Vec<_> = daily.chain([("ended", 16 * 24 + 1)]).collect();
        assert_eq!(told, expected);
        assert!(
            logged.text().contains("ended=\"2025-01-12\""),
            "{}",
            logged.text()
        );
    }
}
