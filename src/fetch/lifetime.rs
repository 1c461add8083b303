//! How long a token lives, as the answer of a token endpoint says (RFC 6749, 5.1).

use std::time::Duration;

use crate::json::{Kind, Node};

/// The whole seconds of `expires_in`: a number, or as some servers spell it the text of one, which may be less than none. `None`
/// where it is not said, or cannot be read.
pub(crate) fn seconds(answer: Node<'_>) -> Option<i64> {
    let life = answer.member("expires_in")?;
    if life.kind() == Kind::Number {
        read(life.raw())
    } else {
        read(&life.as_str()?)
    }
}

fn read(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let secs: f64 = text.parse().ok()?;
    if !secs.is_finite() {
        return None;
    }
    if secs < 0.0 {
        return Some(-1);
    }
    // What is too much to be counted is as good as for ever.
    let whole = Duration::try_from_secs_f64(secs).map(|life| life.as_secs());
    let whole = whole.ok().and_then(|whole| i64::try_from(whole).ok());
    Some(whole.unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Json, Limits};

    #[test]
    fn a_life_is_read_however_it_is_spelled() {
        for (text, expected) in [
            ("3600", Some(3_600)),
            ("\"3600\"", Some(3_600)),
            ("3600.0", Some(3_600)),
            ("3.6e3", Some(3_600)),
            ("\"3600.9\"", Some(3_600)),
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("-0.5", Some(-1)),
            ("\"-1\"", Some(-1)),
            ("1e300", Some(i64::MAX)),
            ("99999999999999999999", Some(i64::MAX)),
            ("\"soon\"", None),
            ("\"\"", None),
            ("\"NaN\"", None),
            ("\"inf\"", None),
            ("null", None),
            ("true", None),
            ("[60]", None),
        ] {
            let answer = format!(r#"{{"expires_in":{text}}}"#);
            let answer = Json::parse(answer.into(), &Limits::KNOWN).unwrap();
            assert_eq!(seconds(answer.root()), expected, "{text}");
        }
        assert_eq!(seconds(Json::empty_object().root()), None);
    }
}
