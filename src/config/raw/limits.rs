//! `limits:`, and the bounds of calls in flight.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::super::{
    schema::spelled,
    typed::mistake,
    units::{Ordered, Size, Time},
};

/// Default of `limits.*.wait`.
pub(in crate::config) const WAIT: &str = "2s";

/// One rule: by what calls are told apart, and at least one of `rate`, `concurrency` and `daily`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Limit {
    /// By what calls are told apart: one or more of principal, group, tenant, client, address, toolset, upstream, tool, method;
    /// [] counts all together. Calls that lack one of them count together, but for tool and upstream.
    #[schemars(required)]
    pub(in crate::config) per: Option<OneOrMore>,
    /// Which calls are meant: a pattern, in which `*` is any run of characters and `?` any one, for the first in `per` of
    /// tool, upstream, toolset, method, client, tenant, group, principal, address; or a mapping of those to patterns. Tools by
    /// their exposed names. Default: all.
    #[serde(rename = "match")]
    pub(in crate::config) matching: Option<Matching>,
    /// The same for one name, taken as it is.
    pub(in crate::config) name: Option<String>,
    /// Calls in a time: 50/s, 30/min, 1000/h, 10000/d; 1 to 1000000.
    pub(in crate::config) rate: Option<RateText>,
    /// With `rate`: calls at once after a pause, 1 to 1000000, and no more than are earned in ten years. Default: as many as `rate` counts.
    pub(in crate::config) burst: Option<usize>,
    /// Calls at once, 1 to 100000.
    pub(in crate::config) concurrency: Option<usize>,
    /// With `concurrency`: calls that wait, at most 10000. Default: 0.
    pub(in crate::config) queue: Option<usize>,
    /// With `queue`: how long one waits, at most 60s. Default: 2s.
    pub(in crate::config) wait: Option<Time>,
    /// Calls in a day, which begins at midnight UTC.
    pub(in crate::config) daily: Option<u64>,
}

/// One word, or a list of them.
#[derive(Debug)]
pub(in crate::config) struct OneOrMore(pub(in crate::config) Vec<String>);

/// A pattern, or patterns by what they are for.
#[derive(Debug)]
pub(in crate::config) enum Matching {
    /// For what is counted by.
    One(String),
    /// For each of these.
    Each(Ordered<String>),
}

/// So many in a time.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct RateText {
    /// How many.
    pub(in crate::config) calls: u32,
    /// In how many seconds.
    pub(in crate::config) seconds: u64,
}

/// Requests in flight: accepted, and not answered to the end.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct FlightBounds {
    /// Of one principal. Default: 512.
    pub(in crate::config) principal: Option<usize>,
    /// Of one principal to one upstream. Default: 256.
    pub(in crate::config) principal_upstream: Option<usize>,
    /// To one upstream, those that wait for it included. Default: 1024.
    pub(in crate::config) upstream: Option<usize>,
    /// In this process. Default: 16384.
    pub(in crate::config) process: Option<usize>,
}

/// Calls that wait for an upstream whose `concurrency` is in use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct WaitBounds {
    /// How many. Default: 128.
    pub(in crate::config) length: Option<usize>,
    /// How long. Default: 2s.
    pub(in crate::config) time: Option<Time>,
}

/// Streams of clients that listen for changes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct ListenBounds {
    /// Of one principal. Default: 64.
    pub(in crate::config) per_principal: Option<usize>,
    /// In this process. Default: 20000.
    pub(in crate::config) total: Option<usize>,
    /// Resources that one of them watches. Default: 256.
    pub(in crate::config) addresses: Option<usize>,
    /// What waits for one that does not keep up. Default: 256.
    pub(in crate::config) buffer: Option<usize>,
    /// The same in bytes. Default: 1MiB.
    pub(in crate::config) buffer_bytes: Option<Size>,
}

impl RateText {
    fn parse(text: &str) -> Option<Self> {
        let (calls, unit) = text.split_once('/')?;
        let seconds = match unit.trim() {
            "s" => 1,
            "min" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        let calls = calls.trim().parse().ok()?;
        (1..=1_000_000)
            .contains(&calls)
            .then_some(Self { calls, seconds })
    }
}

impl<'de> Deserialize<'de> for RateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            mistake(
                "not a rate",
                "write a whole number from 1 to 1000000 and `/s`, `/min`, `/h` or `/d`, such as `50/s`",
            )
        })
    }
}

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrList;

        impl<'de> Visitor<'de> for WordOrList {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore(vec![word.to_owned()]))
            }

            fn visit_bool<E: de::Error>(self, word: bool) -> Result<OneOrMore, E> {
                self.visit_str(if word { "true" } else { "false" })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(OneOrMore(words))
            }
        }

        deserializer.deserialize_any(WordOrList)
    }
}

impl<'de> Deserialize<'de> for Matching {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrMap;

        impl<'de> Visitor<'de> for TextOrMap {
            type Value = Matching;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pattern or a mapping of patterns")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Matching, E> {
                Ok(Matching::One(text.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, text: bool) -> Result<Matching, E> {
                self.visit_str(if text { "true" } else { "false" })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Matching, A::Error> {
                Ordered::deserialize(MapAccessDeserializer::new(map)).map(Matching::Each)
            }
        }

        deserializer.deserialize_any(TextOrMap)
    }
}

impl JsonSchema for RateText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A whole number and `/s`, `/min`, `/h` or `/d`.",
            "pattern": spelled(r"\s*\+?0*(?:[1-9][0-9]{0,5}|1000000)\s*/\s*(?:s|min|h|d)\s*"),
        })
    }
}

impl JsonSchema for OneOrMore {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OneOrMore".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string" },
                // In a list, so that it is seen that nothing is no empty one here.
                { "type": ["array"], "items": { "type": "string" } },
            ],
        })
    }
}

impl JsonSchema for Matching {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Matching".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string" },
                { "type": "object", "additionalProperties": { "type": "string" } },
            ],
        })
    }
}
