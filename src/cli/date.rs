//! Moments as commands show them, in UTC.

use jiff::Timestamp;

/// The day of a moment, as `2026-11-21`.
pub(super) fn day(seconds: u64) -> String {
    told(seconds, "%Y-%m-%d")
}

/// A moment to the minute, as `2026-11-21 10:30`.
pub(super) fn minute(seconds: u64) -> String {
    told(seconds, "%Y-%m-%d %H:%M")
}

fn told(seconds: u64, format: &str) -> String {
    let moment = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok());
    // One that no calendar has is shown as nothing known.
    moment.map_or_else(
        || "-".to_owned(),
        |moment| moment.strftime(format).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_in_utc() {
        for (seconds, want) in [
            (0, "1970-01-01 00:00"),
            (951_782_399, "2000-02-28 23:59"),
            (951_782_400, "2000-02-29 00:00"),
            (1_795_219_199, "2026-11-20 23:59"),
            (1_795_257_000, "2026-11-21 10:30"),
            (4_107_542_400, "2100-03-01 00:00"),
            (u64::MAX, "-"),
        ] {
            assert_eq!(minute(seconds), want);
            assert_eq!(day(seconds), want.split(' ').next().unwrap());
        }
    }
}
