//! Moments as people write them: `2026-11-21T12:00:00Z`, or the date alone. Deliberately absent: other zones, and fractions of seconds.

use std::time::{Duration, SystemTime};

/// The moment that `2026-11-21T12:00:00Z`, or the date alone, tells.
///
/// # Errors
/// What is wrong with it, for people.
pub fn moment(text: &str) -> Result<SystemTime, String> {
    read_moment(text).ok_or_else(|| format!("`{text}` is no moment such as 2026-11-21T12:00:00Z"))
}

fn read_moment(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let number = |text: &str, digits: usize| {
        let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        right.then(|| text.parse::<u64>().ok()).flatten()
    };
    let mut date = date.split('-');
    let (year, month, day) = (
        number(date.next()?, 4)?,
        number(date.next()?, 2)?,
        number(date.next()?, 2)?,
    );
    let mut clock = clock.strip_suffix('Z')?.split(':');
    let (hour, minute, second) = (
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
        number(clock.next()?, 2)?,
    );
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let fits = date.next().is_none()
        && clock.next().is_none()
        && (1..=days).contains(&day)
        && year >= 1970
        && hour < 24
        && minute < 60
        && second < 60;
    if !fits {
        return None;
    }
    // Years begin in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        let after = |seconds| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        for (text, moment) in [
            ("1970-01-01", after(0)),
            ("2000-02-29T00:00:00Z", after(951_782_400)),
            ("2024-03-01T00:00:00Z", after(1_709_251_200)),
            ("2026-11-21T12:00:00Z", after(1_795_262_400)),
            ("2026-02-29", None),
            ("2026-13-01", None),
            ("2026-1-1", None),
            ("2026-11-21T12:00:00", None),
            ("2026-11-21T24:00:00Z", None),
            ("1969-12-31", None),
            ("soon", None),
        ] {
            assert_eq!(read_moment(text), moment, "{text}");
        }
    }
}
