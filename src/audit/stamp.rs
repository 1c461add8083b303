//! Times as records have them: UTC, in nanoseconds.

use std::{cell::Cell, time::SystemTime};

use jiff::{Timestamp, fmt::temporal::Pieces};

/// As long as `2026-11-25T18:22:47` is.
const SECOND: usize = 19;

thread_local! {
    /// The last second that was written on this thread, and its text: what follows is of the same second as a rule.
    static LAST: Cell<(u64, [u8; SECOND])> = const { Cell::new((u64::MAX, [b' '; SECOND])) };
}

/// The text of a time; empty where no calendar has it.
pub(crate) fn stamp(time: SystemTime) -> String {
    let mut text = String::new();
    write(&mut text, time);
    text
}

/// Adds the text of a time.
pub(super) fn write(out: &mut String, time: SystemTime) {
    let Ok(since) = time.duration_since(SystemTime::UNIX_EPOCH) else {
        return out.push_str(&whole(time));
    };
    let (last, mut text) = LAST.get();
    if last != since.as_secs() {
        let Some(second) = whole(time).as_bytes().first_chunk().copied() else {
            return;
        };
        text = second;
        LAST.set((since.as_secs(), text));
    }
    out.extend(text.map(char::from));
    let mut digits = *b".000000000Z";
    let mut rest = since.subsec_nanos();
    for digit in digits[1..=9].iter_mut().rev() {
        *digit += u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
    }
    out.extend(digits.map(char::from));
}

/// The text of a time that somebody wrote as RFC 3339 has it. In place of one that is later than any record can be, in the last
/// hours of the year 9999, the last that a record can be of.
pub(crate) fn stamped(text: &str) -> Option<String> {
    let time = text.parse().ok().or_else(|| beyond(text))?;
    Some(format!("{time:.9}"))
}

fn beyond(text: &str) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let date = pieces.date();
    let whole = pieces.time().is_some() && pieces.offset().is_some();
    let last = (date.year(), date.month()) == (9_999, 12) && date.day() >= 30;
    (whole && last).then_some(Timestamp::MAX)
}

fn whole(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.9}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_has_them_whichever_was_written_before() {
        let day = 86_400;
        for second in [
            0,
            1,
            59,
            951_782_399,
            951_782_400,
            1_795_630_967,
            253_402_207_200,
            day,
        ] {
            for nanos in [0, 1, 999_999_999, 120_003_400] {
                let time = SystemTime::UNIX_EPOCH + Duration::new(second, nanos);
                assert_eq!(stamp(time), whole(time));
                assert_eq!(stamp(time).len(), 30);
            }
        }
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_795_630_967, 1_020_300);
        assert_eq!(stamp(time), "2026-11-25T18:22:47.001020300Z");
        let before = SystemTime::UNIX_EPOCH - Duration::from_millis(1_500);
        assert_eq!(stamp(before), "1969-12-31T23:59:58.500000000Z");
        let never = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(stamp(never), "");
    }
}
