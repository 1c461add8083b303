//! `audit:`: what is recorded of calls, how safely, where, and for how long.

use std::{collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::config::{
    typed::mistake,
    units::{Secret, Time},
};

/// The block, or `off`.
#[derive(Debug)]
pub(in crate::config) enum Audit {
    /// `off`
    Off,
    /// How.
    On(Recording),
}

/// How calls are recorded.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Recording {
    /// The directory of the log, relative to this file. Default: usher/audit in the user's directory for state.
    pub(in crate::config) dir: Option<String>,
    /// Whether records are kept in files. Without them stdout is the only sink, `sinks.stdout` has to be true, durability is async, and
    /// the signing key is one of this process alone: for platforms that collect what containers write. Default: true.
    pub(in crate::config) files: Option<bool>,
    /// When a record counts as safe: strict (on disk before anything is done), kernel (handed to the operating system before
    /// anything is done, on disk 50 ms later) or async (when there is time). Default: kernel.
    pub(in crate::config) durability: Option<Safety>,
    /// Records older than this are removed, by whole segments: 1d to 3650d. Default: 190d.
    pub(in crate::config) retention: Option<Time>,
    /// How full the disk of the log may be.
    pub(in crate::config) disk: Disk,
    /// Where records go to beside the files, which stay the source of truth.
    pub(in crate::config) sinks: Sinks,
    /// How much of which calls is kept; the first rule that means a call counts. Default: metadata of all.
    pub(in crate::config) content: Vec<Content>,
}

/// How full the disk of the log may be, in percent. What is set counts whatever the size of the disk; a default only where little is
/// left.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Disk {
    /// From here on it is told, in logs and records: 1 to 99. Default: 85, where less than 10 GiB are left.
    pub(in crate::config) warn: Option<u8>,
    /// From here on new calls are refused, until there is room: 1 to 100, not below warn. Default: 95, where less than
    /// 1 GiB is left.
    pub(in crate::config) refuse: Option<u8>,
}

/// Where records go to beside the files: behind the calls, at least once, and after a restart from where it was.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Sinks {
    /// Writes every record to stdout as a line of JSON, as it stands in the file; to stderr where stdout is taken, as of
    /// usher stdio. Default: false.
    pub(in crate::config) stdout: bool,
    /// A receiver of OTLP over HTTP, such as http://127.0.0.1:4318; log records go to its /v1/logs, in JSON. Default: none.
    pub(in crate::config) otlp: Option<String>,
    /// Headers sent with everything. A secret among them is a reference: { authorization: "${env:OTLP_TOKEN}" }.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(in crate::config) otlp_headers: BTreeMap<String, Secret>,
    /// Roots to trust at the receiver instead of the system's, in PEM: "${file:/path}".
    pub(in crate::config) otlp_ca: Option<String>,
    /// Allows http to an address that is not loopback. Default: false.
    pub(in crate::config) otlp_plain_http: bool,
}

/// When a record counts as safe.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Safety {
    /// On disk.
    Strict,
    /// Handed to the operating system.
    Kernel,
    /// At once.
    Async,
}

/// How much is kept of the calls that a rule means. What is left out means everything.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Content {
    /// Methods, by glob: tools/call.
    pub(in crate::config) methods: Vec<String>,
    /// Tools, prompts and resources as clients name them, by glob.
    pub(in crate::config) names: Vec<String>,
    /// Upstreams.
    pub(in crate::config) upstreams: Vec<String>,
    /// What is kept: none (never of what is refused), metadata, request or request_response.
    #[schemars(required)]
    pub(in crate::config) level: Option<Kept>,
}

/// How much of a call is kept.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Kept {
    /// Nothing, unless it is refused.
    None,
    /// Arguments by size and keyed digest.
    Metadata,
    /// Arguments too.
    Request,
    /// And results.
    RequestResponse,
}

impl<'de> Deserialize<'de> for Audit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrBlock;

        impl<'de> Visitor<'de> for WordOrBlock {
            type Value = Audit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`off` or a mapping")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Audit, E> {
                if word == "off" {
                    Ok(Audit::Off)
                } else {
                    Err(mistake(
                        "not a way to record calls",
                        "write `off`, or `{ durability: strict }` and the like",
                    ))
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Audit, A::Error> {
                Recording::deserialize(MapAccessDeserializer::new(map)).map(Audit::On)
            }
        }

        deserializer.deserialize_any(WordOrBlock)
    }
}

impl JsonSchema for Audit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Audit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let block = generator.subschema_for::<Recording>();
        json_schema!({
            "description": "What is recorded of calls, or `off`.",
            "anyOf": [{ "const": "off" }, block],
        })
    }
}
