//! Numbers as they are written: any number of digits, compared and divided without rounding.
//!
//! Guarantees: what is equal as a number is equal here and writes itself alike, whatever its spelling; nothing goes through a
//! float. Deliberately absent: sums, and numbers with an exponent beyond [`EXPONENT`], which nobody needs and which no bound
//! on digits would hold.

use std::cmp::Ordering;

/// The largest magnitude of an exponent.
const EXPONENT: u64 = 1_000_000;

/// A number: `digits` times ten to the `exponent`.
// INVARIANT: digits begin and end with another one than 0; zero has none, and is neither negative nor has an exponent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// ASCII.
    digits: Box<[u8]>,
    exponent: i64,
}

impl Decimal {
    /// The number that a JSON number spells; `None` when its exponent is out of bounds, or it is no number.
    pub fn parse(raw: &str) -> Option<Self> {
        let (negative, rest) = match raw.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, raw),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if all.is_empty()
            || !all.iter().all(u8::is_ascii_digit)
            || exponent.unsigned_abs() > EXPONENT
        {
            return None;
        }
        let Some(first) = all.iter().position(|digit| *digit != b'0') else {
            return Some(Self {
                negative: false,
                digits: Box::default(),
                exponent: 0,
            });
        };
        let last = all.iter().rposition(|digit| *digit != b'0')?;
        let length = |count: usize| i64::try_from(count).ok();
        let exponent = exponent - length(fraction.len())? + length(all.len() - 1 - last)?;
        Some(Self {
            negative,
            digits: all[first..=last].into(),
            exponent,
        })
    }

    /// Whether it has no fraction.
    pub const fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether it is more than zero.
    pub const fn is_positive(&self) -> bool {
        !self.negative && !self.digits.is_empty()
    }

    /// Itself as a count, if it is one.
    pub fn as_u64(&self) -> Option<u64> {
        if self.negative { None } else { self.count() }
    }

    /// Itself as an integer, if it is one of so few bits.
    pub fn as_i64(&self) -> Option<i64> {
        if self.negative {
            0_i64.checked_sub_unsigned(self.count()?)
        } else {
            i64::try_from(self.count()?).ok()
        }
    }

    /// As a count, whatever its sign.
    fn count(&self) -> Option<u64> {
        if self.exponent < 0 {
            return None;
        }
        let digits = std::str::from_utf8(&self.digits).ok()?;
        if digits.is_empty() {
            return Some(0);
        }
        let power = 10_u64.checked_pow(u32::try_from(self.exponent).ok()?)?;
        digits.parse::<u64>().ok()?.checked_mul(power)
    }

    /// Whether it is a whole number of times `divisor`; `None` when the divisor is not positive or has too many digits.
    pub fn is_multiple_of(&self, divisor: &Self) -> Option<bool> {
        if !divisor.is_positive() || divisor.digits.len() > 18 {
            return None;
        }
        if self.digits.is_empty() {
            return Some(true);
        }
        // Digits end with another one than 0, so that no power of ten divides them.
        let Ok(mut power) = u64::try_from(self.exponent - divisor.exponent) else {
            return Some(false);
        };
        let by = u128::from(
            std::str::from_utf8(&divisor.digits)
                .ok()?
                .parse::<u64>()
                .ok()?,
        );
        let mut rest = self
            .digits
            .iter()
            .fold(0, |rest, digit| (rest * 10 + u128::from(digit - b'0')) % by);
        let mut base = 10 % by;
        while power > 0 {
            if power % 2 == 1 {
                rest = rest * base % by;
            }
            base = base * base % by;
            power /= 2;
        }
        Some(rest == 0)
    }

    /// Writes it as ECMAScript would if its numbers were exact: for a number whose shortest spelling is what a double holds,
    /// the text of RFC 8785.
    pub fn write(&self, out: &mut String) {
        let digits = String::from_utf8_lossy(&self.digits);
        if digits.is_empty() {
            out.push('0');
            return;
        }
        if self.negative {
            out.push('-');
        }
        let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let point = count + self.exponent;
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        if count <= point && point <= 21 {
            out.push_str(&digits);
            out.push_str(&zeros(point - count));
        } else if 0 < point && point <= 21 {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            out.push_str(whole);
            out.push('.');
            out.push_str(fraction);
        } else if -6 < point && point <= 0 {
            out.push_str("0.");
            out.push_str(&zeros(-point));
            out.push_str(&digits);
        } else {
            let (first, rest) = digits.split_at(1);
            out.push_str(first);
            if !rest.is_empty() {
                out.push('.');
                out.push_str(rest);
            }
            out.push('e');
            if point > 0 {
                out.push('+');
            }
            out.push_str(&(point - 1).to_string());
        }
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        let point = |number: &Self| {
            let count = i64::try_from(number.digits.len()).unwrap_or(i64::MAX);
            (!number.digits.is_empty()).then_some(count + number.exponent)
        };
        point(self)
            .cmp(&point(other))
            .then_with(|| self.digits.cmp(&other.digits))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(raw: &str) -> Decimal {
        Decimal::parse(raw).unwrap()
    }

    fn written(raw: &str) -> String {
        let mut out = String::new();
        number(raw).write(&mut out);
        out
    }

    #[test]
    fn spellings_of_one_number_are_one_number_and_no_two_numbers_are() {
        for (one, other) in [
            ("42", "42.0"),
            ("4.2e1", "42"),
            ("-0", "0.000"),
            ("1E400", "10e399"),
            ("0.1", "1e-1"),
        ] {
            assert_eq!(number(one), number(other));
            assert_eq!(written(one), written(other));
        }
        // A double holds none of these pairs apart.
        for (less, more) in [
            ("9007199254740992", "9007199254740993"),
            ("0.1", "0.1000000000000000055511151231257827"),
            ("1e400", "1e401"),
            ("-1.00000000000000000001", "-1"),
        ] {
            assert!(number(less) < number(more), "{less} {more}");
            assert_ne!(written(less), written(more));
        }
    }

    #[test]
    fn numbers_are_ordered_over_sign_point_and_digits() {
        let sorted = [
            "-1e9", "-10", "-9.5", "-0.001", "0", "1e-9", "0.09", "0.1", "1", "1.5", "10", "1e9",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(
                    number(one).cmp(&number(other)),
                    at.cmp(&other_at),
                    "{one} {other}"
                );
            }
        }
    }

    #[test]
    fn numbers_write_themselves_as_rfc_8785_has_them() {
        for (raw, want) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("-1.5e300", "-1.5e+300"),
            ("123456789012345680000", "123456789012345680000"),
        ] {
            assert_eq!(written(raw), want, "{raw}");
        }
    }

    #[test]
    fn multiples_are_exact() {
        for (number_of, of, want) in [
            ("0.3", "0.1", Some(true)),
            ("1e308", "0.123456789", Some(false)),
            ("19.99", "0.01", Some(true)),
            ("19.995", "0.01", Some(false)),
            ("-6", "3", Some(true)),
            ("7", "3", Some(false)),
            ("0", "7", Some(true)),
            ("100000000000000000000000000007", "7", Some(false)),
            ("1", "0", None),
            ("1", "-1", None),
        ] {
            assert_eq!(
                number(number_of).is_multiple_of(&number(of)),
                want,
                "{number_of} {of}"
            );
        }
        assert!(number("4.2e1").is_integer() && !number("4.25e1").is_integer());
        assert_eq!(
            (
                number("3.0").as_u64(),
                number("-1").as_u64(),
                number("1e40").as_u64()
            ),
            (Some(3), None, None)
        );
        assert_eq!(
            (
                number("-3.0").as_i64(),
                number("-0").as_i64(),
                number("1.5").as_i64(),
                number("1e40").as_i64()
            ),
            (Some(-3), Some(0), None, None)
        );
    }

    #[test]
    fn exponents_are_bounded_and_none_of_them_panics() {
        for exponent in [
            "1000000",
            "1000001",
            "99999999",
            "9223372036854775807",
            "9223372036854775808",
            "99999999999999999999999999",
        ] {
            for sign in ["", "+", "-"] {
                let known = Decimal::parse(&format!("1e{sign}{exponent}"));
                assert_eq!(known.is_some(), exponent == "1000000", "{sign}{exponent}");
            }
        }
        for (raw, want) in [
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
        ] {
            assert_eq!(number(raw).as_i64(), want, "{raw}");
        }
    }

    /// Numbers as JSON spells them, exponents at the ends of what machines hold among them.
    fn spellings() -> impl Strategy<Value = String> {
        let exponent = prop_oneof![
            Just(String::new()),
            "[eE][+-]?[0-9]{1,21}",
            (
                "[eE]-?",
                prop::sample::select(vec![
                    i64::MAX.unsigned_abs(),
                    i64::MIN.unsigned_abs(),
                    u64::MAX,
                    EXPONENT,
                    EXPONENT + 1,
                ])
            )
                .prop_map(|(mark, digits)| format!("{mark}{digits}")),
        ];
        ("-?(0|[1-9][0-9]{0,40})([.][0-9]{1,40})?", exponent)
            .prop_map(|(mantissa, exponent)| mantissa + &exponent)
    }

    proptest! {
        #[test]
        fn every_spelling_is_a_number_or_none(one in spellings(), other in spellings()) {
            let (Some(one), Some(other)) = (Decimal::parse(&one), Decimal::parse(&other)) else {
                return Ok(());
            };
            let mut text = String::new();
            one.write(&mut text);
            // At its bound the exponent of the first digit may be beyond it.
            if let Some(again) = Decimal::parse(&text) {
                prop_assert_eq!(&again, &one);
            }
            prop_assert_eq!(one.cmp(&other), other.cmp(&one).reverse());
            if let Some(integer) = one.as_i64() {
                prop_assert_eq!(Decimal::parse(&integer.to_string()), Some(one.clone()));
                prop_assert!(one.is_integer());
            }
            if let Some(count) = one.as_u64() {
                prop_assert_eq!(Decimal::parse(&count.to_string()), Some(one.clone()));
            }
            if one.is_multiple_of(&other) == Some(true) && other.is_integer() {
                prop_assert!(one.is_integer());
            }
        }
    }
}
