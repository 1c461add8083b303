//! `sanitize:`, of the whole gateway and of single upstreams.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::config::{
    typed::mistake,
    units::{Ordered, Size, Time},
};

/// What may go through, and what becomes of what may not.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Sanitize {
    /// What is done about each class of content.
    pub(in crate::config) classes: Classes,
    /// Rules of your own.
    pub(in crate::config) rules: Vec<OwnRule>,
    /// Hosts that images in text may be loaded from: [img.example.com]. Default: none.
    pub(in crate::config) hosts: Vec<String>,
    /// The most bytes of one image or sound, decoded. Default: 8MiB.
    pub(in crate::config) media: Option<Size>,
    /// What a scan may take for each MiB of content; what is not done by then is blocked. Default: 50ms.
    pub(in crate::config) time_per_mib: Option<Time>,
    /// What a scan may take beside that. Default: 20ms.
    pub(in crate::config) time: Option<Time>,
}

/// What is done about content of one upstream; what is left out is as in `sanitize`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct UpstreamSanitize {
    /// What is done about each class of content.
    pub(in crate::config) classes: Classes,
    /// The same for single tools, by globs over original names; the first that matches holds: { "read_*": { secret: off } }.
    pub(in crate::config) tools: Ordered<Classes>,
}

/// The classes, each with an action (off, flag, remove, neutralise, redact, block) or with one for each direction.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Classes {
    /// Characters that a person does not see and a model does. Default: block in arguments, remove from results.
    pub(in crate::config) hidden_unicode: Option<Choice>,
    /// Escape sequences and control characters. Default: block in arguments, remove from results.
    pub(in crate::config) terminal_control: Option<Choice>,
    /// Credentials of this gateway. Default: block in arguments, redact in results.
    pub(in crate::config) own_credential: Option<Choice>,
    /// Secrets of a form that leaves no doubt. Default: block in arguments, redact in results.
    pub(in crate::config) secret: Option<Choice>,
    /// What may be a secret. Default: flag.
    pub(in crate::config) weak_secret: Option<Choice>,
    /// Payment cards, bank accounts and national numbers whose check digit holds, and some without one beside their own name. Default: flag in arguments, redact in results.
    pub(in crate::config) personal_checked: Option<Choice>,
    /// E-mail and postal addresses, telephone numbers, birth dates. Default: off.
    pub(in crate::config) personal: Option<Choice>,
    /// What a client would load or run. Default: flag in arguments, neutralise in results.
    pub(in crate::config) active_content: Option<Choice>,
    /// What reads like instructions to the model. Default: flag.
    pub(in crate::config) injection: Option<Choice>,
    /// Media that is not what it says. Default: flag in arguments, block in results.
    pub(in crate::config) media: Option<Choice>,
    /// Questions to a person that must not be asked so. Default: block.
    pub(in crate::config) elicitation: Option<Choice>,
}

/// An action for all directions, or one for each.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) enum Choice {
    /// For all, as far as it fits: arguments are blocked rather than altered, definitions withheld.
    All(ActionWord),
    /// For each; what is left out stays as it is.
    Each(Directions),
}

/// One action for each direction.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Directions {
    /// To an upstream: off, flag or block.
    pub(in crate::config) arguments: Option<ActionWord>,
    /// From an upstream: off, flag, remove, neutralise, redact or block.
    pub(in crate::config) results: Option<ActionWord>,
    /// In definitions: off, flag or quarantine.
    pub(in crate::config) definitions: Option<ActionWord>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum ActionWord {
    /// Nothing; it is not looked for.
    Off,
    /// It is noted, and told in `_meta`.
    Flag,
    /// It is cut out.
    Remove,
    /// It is made inert and stays readable.
    Neutralise,
    /// `[redacted:rule]` stands in its place.
    Redact,
    /// The whole is refused.
    Block,
    /// The definition is not offered.
    Quarantine,
}

/// A rule of the operator's own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct OwnRule {
    /// Its name, as in [redacted:NAME]: [a-z][a-z0-9_]*.
    #[schemars(required)]
    pub(in crate::config) name: Option<String>,
    /// A regular expression without look-around or back-references: "(?i)project falcon-[0-9]+".
    #[schemars(required)]
    pub(in crate::config) pattern: Option<String>,
    /// What is done: flag, remove, redact or block. Arguments are blocked rather than altered. Default: redact.
    pub(in crate::config) action: Option<ActionWord>,
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrBlock;

        impl<'de> Visitor<'de> for WordOrBlock {
            type Value = Choice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an action, or a mapping with `arguments`, `results` and `definitions`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Choice, E> {
                let action = match word {
                    "off" => ActionWord::Off,
                    "flag" => ActionWord::Flag,
                    "remove" => ActionWord::Remove,
                    "neutralise" => ActionWord::Neutralise,
                    "redact" => ActionWord::Redact,
                    "block" => ActionWord::Block,
                    _ => {
                        return Err(mistake(
                            format!("`{word}` is no action"),
                            "there is `off`, `flag`, `remove`, `neutralise`, `redact`, `block`",
                        ));
                    }
                };
                Ok(Choice::All(action))
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<Choice, E> {
                if on {
                    Err(mistake("not an action", "leave it out for the default"))
                } else {
                    Ok(Choice::All(ActionWord::Off))
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice, A::Error> {
                Directions::deserialize(MapAccessDeserializer::new(map)).map(Choice::Each)
            }
        }

        deserializer.deserialize_any(WordOrBlock)
    }
}

impl JsonSchema for Choice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ContentAction".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let block = generator.subschema_for::<Directions>();
        json_schema!({
            "description": "An action for all directions, as far as it fits, or one for each.",
            "anyOf": [{ "enum": ["off", "flag", "remove", "neutralise", "redact", "block", false] }, block],
        })
    }
}
