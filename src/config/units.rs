//! Scalars with units and scalars that are secret, as the file spells them.

use std::{borrow::Cow, fmt, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::SecretString;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};

use super::{
    schema::{referring, spelled},
    typed::mistake,
};

/// A time: a whole number and `ms`, `s`, `m`, `h` or `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

/// A size: a whole number of bytes, or one and `B`, `KiB`, `MiB` or `GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) usize);

/// A text that is never shown.
#[derive(Debug, Clone)]
pub(super) struct Secret(pub(super) SecretString);

/// A mapping that keeps the order of the file.
#[derive(Debug, Clone)]
pub(super) struct Ordered<V>(pub(super) Vec<(String, V)>);

/// Why a text is no time or size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// It spells none.
    Spelling,
    /// It spells one that nobody can hold.
    Range,
}

impl Time {
    /// The time that `text` spells.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    fn read(text: &str) -> Result<Self, Unread> {
        let (number, unit) = split(text).ok_or(Unread::Spelling)?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(Unread::Spelling),
        };
        let millis = number.and_then(|number| number.checked_mul(millis));
        let millis = millis.ok_or(Unread::Range)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        for (unit, name) in [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1_000, "s"),
        ] {
            if millis >= unit && millis.is_multiple_of(unit) {
                return write!(f, "{}{name}", millis / unit);
            }
        }
        write!(f, "{millis}ms")
    }
}

impl Size {
    /// The size that `text` spells.
    #[cfg(test)]
    fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    fn read(text: &str) -> Result<Self, Unread> {
        let (number, unit) = split(text).ok_or(Unread::Spelling)?;
        let shift = match unit {
            "" | "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ => return Err(Unread::Spelling),
        };
        let bytes = number.and_then(|number| number.checked_mul(1 << shift));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes.map(Self).ok_or(Unread::Range)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, name) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{name}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

/// The number in front, `None` where it is too large, and what follows it.
fn split(text: &str) -> Option<(Option<u64>, &str)> {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    (end > 0).then(|| (text[..end].parse().ok(), text[end..].trim_start()))
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).map_err(|why| match why {
            Unread::Spelling => mistake(
                "not a time",
                "write a whole number and `ms`, `s`, `m`, `h` or `d`, such as `60s`",
            ),
            Unread::Range => mistake("a time that is out of range", "a smaller number"),
        })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).map_err(|why| match why {
            Unread::Spelling => mistake(
                "not a size",
                "write a whole number and `B`, `KiB`, `MiB` or `GiB`, such as `16MiB`",
            ),
            Unread::Range => mistake("a size that is out of range", "a smaller number"),
        })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<V>(std::marker::PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Ordered(members))
            }

            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Ordered::default())
            }
        }

        deserializer.deserialize_map(InOrder(std::marker::PhantomData))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A whole number and `ms`, `s`, `m`, `h` or `d`.",
            "pattern": spelled(r"[0-9]+\s*(?:ms|s|m|h|d)"),
        })
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "description": "A whole number of bytes, or one and `B`, `KiB`, `MiB` or `GiB`.",
            "pattern": spelled(r"[0-9]+\s*(?:B|KiB|MiB|GiB)?"),
            "minimum": 0,
        })
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A secret: `${env:NAME}` or `${file:/path}`, never the text itself.",
            "pattern": referring(),
        })
    }
}

impl<V: JsonSchema> JsonSchema for Ordered<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OrderedMapOf{}", V::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let member = generator.subschema_for::<V>();
        json_schema!({ "type": "object", "additionalProperties": member })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_units_and_written_back() {
        for (text, millis) in [
            ("500ms", 500),
            ("60s", 60_000),
            ("5m", 300_000),
            ("8h", 28_800_000),
        ] {
            let time = Time::parse(text).expect(text);
            assert_eq!(time.0, Duration::from_millis(millis), "{text}");
        }
        assert_eq!(Time(Duration::from_secs(300)).to_string(), "5m");
        for (text, bytes) in [
            ("16MiB", 16 << 20),
            ("0", 0),
            ("12 KiB", 12 << 10),
            ("7B", 7),
        ] {
            assert_eq!(Size::parse(text), Some(Size(bytes)), "{text}");
        }
        assert_eq!(Size(16 << 20).to_string(), "16MiB");
    }

    #[test]
    fn times_and_sizes_without_a_known_unit_are_refused() {
        for text in [
            "60",
            "s",
            "5 minutes",
            "-1s",
            "1.5s",
            "99999999999999999999d",
            "",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
        for text in ["16MB", "KiB", "1.5KiB", "18446744073709551615GiB"] {
            assert_eq!(Size::parse(text), None, "{text}");
        }
    }
}
