//! The places and dates that the demo servers know.
//!
//! Guarantees that a [`Date`] is a day of the calendar between 2000 and 2099. There is no clock: the demo's present is
//! [`TODAY`], always.

use std::{f64::consts::PI, fmt};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What RFC 3986 lets stand in a path segment without encoding, letters and digits aside.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A city.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    pub(super) name: &'static str,
    /// Three letters, as in flight numbers of the demo.
    pub(super) code: &'static str,
    pub(super) country: &'static str,
    /// Degrees north.
    pub(super) latitude: f64,
    /// Degrees east.
    pub(super) longitude: f64,
}

/// Every known city, in the order in which lists show them.
pub(super) const PLACES: [Place; 12] = [
    place("Paris", "PAR", "France", 48.9, 2.4),
    place("Park City", "PKC", "United States", 40.6, -111.5),
    place("London", "LON", "United Kingdom", 51.5, -0.1),
    place("Lisbon", "LIS", "Portugal", 38.7, -9.1),
    place("Berlin", "BER", "Germany", 52.5, 13.4),
    place("Oslo", "OSL", "Norway", 59.9, 10.8),
    place("Reykjavík", "REK", "Iceland", 64.1, -21.9),
    place("New York", "NYC", "United States", 40.7, -74.0),
    place("São Paulo", "SAO", "Brazil", -23.6, -46.6),
    place("Nairobi", "NBO", "Kenya", -1.3, 36.8),
    place("Tokyo", "TYO", "Japan", 35.7, 139.7),
    place("Sydney", "SYD", "Australia", -33.9, 151.2),
];

const fn place(
    name: &'static str,
    code: &'static str,
    country: &'static str,
    latitude: f64,
    longitude: f64,
) -> Place {
    Place {
        name,
        code,
        country,
        latitude,
        longitude,
    }
}

impl Place {
    /// The city of that name, whatever the case of its letters.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        let name = name.to_lowercase();
        PLACES.iter().find(|p| p.name.to_lowercase() == name)
    }

    pub(super) fn coded(code: &str) -> Option<&'static Self> {
        PLACES.iter().find(|p| p.code == code)
    }

    /// Great-circle distance, in kilometres.
    pub(super) fn distance_km(&self, other: &Self) -> f64 {
        let (a, b) = (self.latitude * PI / 180.0, other.latitude * PI / 180.0);
        let turn = (other.longitude - self.longitude) * PI / 180.0;
        let cosine = a.sin() * b.sin() + a.cos() * b.cos() * turn.cos();
        6371.0 * cosine.clamp(-1.0, 1.0).acos()
    }

    /// The name as a segment of a URI.
    pub(super) fn segment(&self) -> String {
        utf8_percent_encode(self.name, SEGMENT).to_string()
    }
}

/// The names of all cities, for messages.
pub(super) fn all_names() -> String {
    PLACES.map(|p| p.name).join(", ")
}

/// Completion: the cities whose name starts with what was typed, whatever the case.
pub(super) fn starting_with(typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let fits = |p: &&Place| p.name.to_lowercase().starts_with(&typed);
    PLACES
        .iter()
        .filter(fits)
        .map(|p| p.name.to_owned())
        .collect()
}

/// The variables of `prefix{a}/{b}…` in `uri`, decoded; `None` when the URI is not one of that template.
pub(super) fn segments<const N: usize>(prefix: &str, uri: &str) -> Option<[String; N]> {
    let decode = |part: &str| {
        let text = percent_decode_str(part).decode_utf8().ok()?;
        (!text.is_empty()).then(|| text.into_owned())
    };
    let parts: Option<Vec<String>> = uri.strip_prefix(prefix)?.split('/').map(decode).collect();
    parts?.try_into().ok()
}

/// A stable number for some words: the only source of variety in the demo (FNV-1a).
pub(super) fn number_of(words: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.iter().flat_map(|w| w.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 32)
}

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// The demo's present: its clocks stand still.
pub(super) const TODAY: Date = Date {
    year: 2026,
    month: 9,
    day: 1,
};

/// Days offered as completions of a date.
const SUGGESTED: [&str; 8] = [
    "2026-09-01",
    "2026-09-02",
    "2026-09-12",
    "2026-10-03",
    "2026-12-24",
    "2026-12-31",
    "2027-04-02",
    "2027-07-14",
];

impl Date {
    /// Reads `YYYY-MM-DD`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let digits = |at: usize| at == 4 || at == 7 || bytes[at].is_ascii_digit();
        if bytes.len() != 10 || !(0..10).all(digits) || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let date = Self {
            year: text[..4].parse().ok()?,
            month: text[5..7].parse().ok()?,
            day: text[8..].parse().ok()?,
        };
        let real = (2000..=2099).contains(&date.year)
            && (1..=12).contains(&date.month)
            && (1..=days_in(date.year, date.month)).contains(&date.day);
        real.then_some(date)
    }

    /// The day after; the last day of 2099 stays.
    pub(super) fn next(self) -> Self {
        let Self { year, month, day } = self;
        if day < days_in(year, month) {
            return Self {
                day: day + 1,
                ..self
            };
        }
        let (year, month) = if month < 12 {
            (year, month + 1)
        } else {
            (year + 1, 1)
        };
        if year > 2099 {
            self
        } else {
            Self {
                year,
                month,
                day: 1,
            }
        }
    }

    /// The day's number within its year, from 1.
    pub(super) fn day_of_year(self) -> u16 {
        let before = (1..self.month).map(|m| u16::from(days_in(self.year, m)));
        before.sum::<u16>() + u16::from(self.day)
    }

    /// Completion: suggested days that start with what was typed.
    pub(super) fn starting_with(typed: &str) -> Vec<String> {
        let fits = |day: &&&str| day.starts_with(typed);
        SUGGESTED
            .iter()
            .filter(fits)
            .map(|d| (*d).to_owned())
            .collect()
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn days_in(year: u16, month: u8) -> u8 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn par_completes_to_paris_and_park_city() {
        assert_eq!(starting_with("Par"), ["Paris", "Park City"]);
        assert_eq!(starting_with("pari"), ["Paris"]);
        assert!(starting_with("Atlantis").is_empty());
    }

    #[test]
    fn only_days_of_the_calendar_are_dates() {
        for good in ["2026-09-01", "2028-02-29", "2000-02-29"] {
            assert_eq!(
                Date::parse(good).map(|d| d.to_string()).as_deref(),
                Some(good)
            );
        }
        for bad in [
            "2026-02-29",
            "2026-13-01",
            "2026-9-1",
            "1999-01-01",
            "2026/09/01",
            "+026-09-01",
            "2026-09-é",
        ] {
            assert_eq!(Date::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn next_day_crosses_months_and_years() {
        let next = |text| Date::parse(text).expect("a date").next().to_string();
        assert_eq!(next("2026-09-30"), "2026-10-01");
        assert_eq!(next("2026-12-31"), "2027-01-01");
        assert_eq!(next("2099-12-31"), "2099-12-31");
    }

    #[test]
    fn segments_are_decoded_and_counted() {
        let uri = "weather://forecast/Park%20City/2026-09-01";
        let parts = segments::<2>("weather://forecast/", uri);
        assert_eq!(parts, Some(["Park City".into(), "2026-09-01".into()]));
        assert_eq!(segments::<1>("weather://forecast/", uri), None);
        assert_eq!(segments::<2>("weather://current/", uri), None);
        assert_eq!(
            Place::named("são paulo").map(Place::segment).as_deref(),
            Some("S%C3%A3o%20Paulo")
        );
    }
}
