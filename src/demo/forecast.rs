//! Weather that follows from the place and the day alone, for the weather server and for travel's outlook.
//!
//! Guarantees the same answer for the same place and day on every run. It is plausible, not true.
#![expect(
    clippy::disallowed_types,
    reason = "a demo server builds small documents; it is not on the gateway's call path"
)]

use std::f64::consts::PI;

use serde_json::{Value, json};

use super::places::{Date, Place, number_of};

/// One day's weather at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Forecast {
    pub(super) place: &'static Place,
    pub(super) date: Date,
    /// Degrees Celsius.
    pub(super) high: i64,
    /// Degrees Celsius.
    pub(super) low: i64,
    /// Chance of rain, percent.
    pub(super) rain: i64,
    /// Kilometres per hour.
    pub(super) wind: i64,
    pub(super) sky: &'static str,
}

impl Forecast {
    pub(super) fn of(place: &'static Place, date: Date) -> Self {
        let chance = number_of(&[place.name, &date.to_string()]);
        let pick = |shift: u32, below: u64| ((chance >> shift) % below).cast_signed();
        let season = 2.0 * PI * (f64::from(date.day_of_year()) - 196.0) / 365.0;
        let summer = season.cos() * place.latitude.signum();
        let away = place.latitude.abs();
        let usual = (29.0 - away * 0.33 + away * 0.2 * summer).round() as i64;
        let high = usual + pick(0, 9) - 4;
        let rain = pick(8, 101);
        let sky = match rain {
            0..20 => "sunny",
            20..45 => "partly cloudy",
            45..65 => "cloudy",
            _ if high <= 0 => "snow",
            65..85 => "showers",
            _ => "rain",
        };
        Self {
            place,
            date,
            high,
            low: high - 5 - pick(16, 5),
            rain,
            wind: 4 + pick(24, 40),
            sky,
        }
    }

    pub(super) fn to_json(self) -> Value {
        json!({
            "city": self.place.name,
            "date": self.date.to_string(),
            "conditions": self.sky,
            "high_c": self.high,
            "low_c": self.low,
            "rain_percent": self.rain,
            "wind_kmh": self.wind,
        })
    }

    /// The JSON Schema of [`Forecast::to_json`].
    pub(super) fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "date": {"type": "string", "format": "date"},
                "conditions": {"type": "string"},
                "high_c": {"type": "integer"},
                "low_c": {"type": "integer"},
                "rain_percent": {"type": "integer", "minimum": 0, "maximum": 100},
                "wind_kmh": {"type": "integer", "minimum": 0},
            },
            "required": ["city", "date", "conditions", "high_c", "low_c", "rain_percent", "wind_kmh"],
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecast_follows_from_place_and_day_alone_and_knows_the_hemispheres() {
        let on = |city, day| {
            let date = Date::parse(day).expect("a date");
            Forecast::of(Place::named(city).expect("a city"), date)
        };
        assert_eq!(on("Paris", "2026-09-01"), on("Paris", "2026-09-01"));
        assert_ne!(on("Paris", "2026-09-01"), on("Paris", "2026-09-02"));
        assert!(on("Oslo", "2026-07-15").high > on("Oslo", "2026-01-15").high);
        assert!(on("Sydney", "2026-01-15").high > on("Sydney", "2026-07-15").high);
    }
}
