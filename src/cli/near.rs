//! Names like one that is not known: what somebody most likely meant.

use strsim::osa_distance;

/// How many are told.
const MOST: usize = 3;

/// The few of `names` that `word` most likely stands for, the likeliest first: those that hold it, as a name without its
/// prefix does, and those that are spelled nearly like it or like which it is spelled but for a prefix.
pub(super) fn near<'a>(word: &str, names: &'a [String]) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let mut found: Vec<(usize, &str)> = names
        .iter()
        .filter_map(|name| Some((unlikeness(&word, &name.to_lowercase())?, name.as_str())))
        .collect();
    found.sort_unstable();
    found.truncate(MOST);
    found.into_iter().map(|(_, name)| name).collect()
}

fn unlikeness(word: &str, name: &str) -> Option<usize> {
    let rest = name.split_once(['_', '+']).map(|(_, rest)| rest);
    if rest == Some(word) {
        return Some(0);
    }
    let close = [Some(name), rest]
        .into_iter()
        .flatten()
        .map(|name| (osa_distance(word, name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.len().min(word.len()) / 3))
        .map(|(distance, _)| distance)
        .min();
    let holds = word.len() > 2 && name.contains(word);
    close.or(holds.then_some(name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        [
            "weather_get_weather",
            "weather_get_forecast",
            "travel_search_flights",
            "docs+file:///logo.png",
        ]
        .map(str::to_owned)
        .into()
    }

    #[test]
    fn a_name_without_its_prefix_or_with_a_slip_is_known_again() {
        for (word, meant) in [
            ("get_weather", "weather_get_weather"),
            ("weather_get_wether", "weather_get_weather"),
            ("get_forcast", "weather_get_forecast"),
            ("flights", "travel_search_flights"),
            ("Weather_Get_Forecast", "weather_get_forecast"),
            ("file:///logo.png", "docs+file:///logo.png"),
        ] {
            assert_eq!(near(word, &names()).first(), Some(&meant), "{word}");
        }
    }

    #[test]
    fn nothing_is_suggested_for_what_is_like_nothing_and_never_more_than_three() {
        assert!(near("nope", &names()).is_empty());
        assert!(near("a", &names()).is_empty());
        let many: Vec<String> = (0..9).map(|n| format!("x_tool{n}")).collect();
        assert_eq!(near("tool", &many).len(), 3);
    }
}
