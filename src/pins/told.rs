//! How often it is logged that definitions are not what was pinned.
//! A server may offer thousands under new names as often as it is asked, and does not fill the log with them. Time is handed in.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use tokio::time::Instant;

/// How long those of one upstream are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// How many of them in a window are told one by one.
const SINGLE: u64 = 100;
/// How many under each rule are in any case: a change is not hidden behind what is new.
const OF_EACH: u64 = 10;

/// What was told of one upstream in the minute that runs.
#[derive(Debug, Default)]
pub(super) struct Told {
    since: Option<Instant>,
    alone: u64,
    rules: BTreeMap<&'static str, Counted>,
    /// Whether any were only counted.
    begun: bool,
}

/// Under one rule, how many were told one by one, and how many were not.
#[derive(Debug, Default)]
struct Counted {
    alone: u64,
    rest: u64,
}

/// How one more is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By itself.
    Alone,
    /// It is the first that is only counted, which is told in its place.
    Begins,
    /// It is counted.
    Counted,
}

impl Told {
    /// Counts one under this rule.
    pub(super) fn add(&mut self, rule: &'static str, now: Instant) -> How {
        self.since.get_or_insert(now);
        let counted = self.rules.entry(rule).or_default();
        if self.alone < SINGLE || counted.alone < OF_EACH {
            self.alone += 1;
            counted.alone += 1;
            return How::Alone;
        }
        counted.rest += 1;
        if std::mem::replace(&mut self.begun, true) {
            How::Counted
        } else {
            How::Begins
        }
    }

    /// What was only counted, if the minute is over: how many, and of what.
    pub(super) fn over(&mut self, now: Instant) -> Option<(u64, String)> {
        let over = now.duration_since(self.since?) >= WINDOW;
        over.then(|| self.ended()).flatten()
    }

    /// The same of a minute that ends here, whether it is over or not.
    pub(super) fn ended(&mut self) -> Option<(u64, String)> {
        let ended = std::mem::take(self);
        let rest = ended.rules.into_iter();
        let rest = rest.map(|(rule, counted)| (rule, counted.rest));
        let rest: Vec<_> = rest.filter(|(_, count)| *count > 0).collect();
        let count = rest.iter().map(|(_, count)| count).sum();
        let mut what = String::new();
        for (rule, count) in rest {
            let comma = if what.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            _ = write!(what, "{comma}{count} {rule}");
        }
        (count > 0).then_some((count, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_a_minute_are_told_one_by_one_and_the_others_by_their_count() {
        let mut told = Told::default();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let alone = (0..30)
            .map(|second| told.add("new", at(second)))
            .collect::<Vec<_>>();
        assert!(alone.iter().all(|how| *how == How::Alone));
        let alone = (0..70).filter(|_| told.add("renamed", at(30)) == How::Alone);
        assert_eq!(alone.count(), 70);
        assert_eq!(told.add("new", at(31)), How::Begins);
        for _ in 0..8_999 {
            assert_eq!(told.add("new", at(32)), How::Counted);
        }
        // Nothing else is hidden by them.
        for _ in 0..10 {
            assert_eq!(told.add("changed", at(33)), How::Alone);
        }
        assert_eq!(told.add("changed", at(33)), How::Counted);
        assert_eq!(told.over(at(59)), None);
        let rest = (9_001, "1 changed, 9000 new".to_owned());
        assert_eq!(told.over(at(60)), Some(rest));
        // The next minute begins anew, with the next that there is.
        assert_eq!(told.over(at(300)), None);
        assert_eq!(told.add("new", at(300)), How::Alone);
        assert_eq!(told.over(at(360)), None, "nothing was only counted");
        assert_eq!(told.add("new", at(361)), How::Alone);
        // One that does not pass to its end is told all the same.
        assert_eq!(told.ended(), None);
        let counted = (0..103).filter(|_| told.add("new", at(362)) != How::Alone);
        assert_eq!(counted.count(), 3);
        assert_eq!(told.over(at(363)), None);
        assert_eq!(told.ended(), Some((3, "3 new".to_owned())));
        assert_eq!(told.ended(), None, "told once");
    }
}
