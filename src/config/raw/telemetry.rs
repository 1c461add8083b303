//! Where metrics and traces go to.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::config::{
    schema::spelled,
    typed::mistake,
    units::{Secret, Time},
};

/// Default of `telemetry.interval`.
pub(in crate::config) const INTERVAL: &str = "30s";

/// Where metrics and traces go to. Metrics can always be scraped from the admin listener; what is here is sent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Telemetry {
    /// An OpenTelemetry receiver of OTLP, such as http://127.0.0.1:4318; over HTTP traces go to its /v1/traces, metrics to its
    /// /v1/metrics. Default: nothing is sent, and no spans are made.
    pub(in crate::config) otlp: Option<String>,
    /// What the receiver speaks: http/protobuf or, in a build with the feature `grpc`, grpc. Default: http/protobuf.
    pub(in crate::config) protocol: Option<OtlpProtocol>,
    /// Headers sent with everything. A secret among them is a reference: { authorization: "${env:OTLP_TOKEN}" }.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(in crate::config) headers: BTreeMap<String, Secret>,
    /// Roots to trust at the receiver instead of the system's, in PEM: "${file:/path}".
    pub(in crate::config) ca: Option<String>,
    /// Allows http to an address that is not loopback. Default: false.
    pub(in crate::config) plain_http: bool,
    /// What this gateway is called in traces and metrics. Default: what OTEL_SERVICE_NAME says, else usher.
    pub(in crate::config) service_name: Option<String>,
    /// How many of the traces that begin here are recorded, such as 10%; one that a caller began is recorded if the caller
    /// records it. Default: 100%.
    pub(in crate::config) sample: Option<Share>,
    /// How often metrics are sent. Default: 30s.
    pub(in crate::config) interval: Option<Time>,
    /// How many tools are told apart in metrics: the first that are called, of all upstreams together; others are counted as
    /// _OTHER. Spans name every tool. Default: 100.
    pub(in crate::config) tools: Option<usize>,
    /// The most sets of labels of one metric; what comes beyond is counted together. Default: 2000.
    pub(in crate::config) label_sets: Option<usize>,
}

/// How OTLP is carried, in the words of OTEL_EXPORTER_OTLP_PROTOCOL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(in crate::config) enum OtlpProtocol {
    /// Protobuf over HTTP.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// gRPC, in a build with the feature `grpc`.
    #[serde(rename = "grpc")]
    Grpc,
}

/// A share of all: a number and `%`, kept in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct Share(pub(in crate::config) u32);

impl Share {
    /// The share that `text` spells.
    fn parse(text: &str) -> Option<Self> {
        let (whole, rest) = match text.strip_suffix('%')?.trim_end().split_once('.') {
            Some((whole, rest)) if !rest.is_empty() && rest.len() <= 4 => (whole, rest),
            Some(_) => return None,
            None => (text.strip_suffix('%')?.trim_end(), ""),
        };
        if whole.is_empty()
            || !(whole.bytes().chain(rest.bytes())).all(|byte| byte.is_ascii_digit())
        {
            return None;
        }
        let whole: u32 = whole.parse().ok()?;
        let rest: u32 = format!("{rest:0<4}").parse().ok()?;
        let millionths = whole.checked_mul(10_000)?.checked_add(rest)?;
        (millionths <= 1_000_000).then_some(Self(millionths))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            mistake(
                "not a share",
                "write a number from 0 to 100 and `%`, such as `10%`",
            )
        })
    }
}

impl JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A number from 0 to 100, of at most four decimals, and `%`.",
            "pattern": spelled(r"0*(?:100(?:\.0{1,4})?|[0-9]{1,2}(?:\.[0-9]{1,4})?)\s*%"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_with_their_sign_and_what_is_none_is_refused() {
        for (text, millionths) in [
            ("100%", 1_000_000),
            ("0%", 0),
            ("10 %", 100_000),
            ("0.1%", 1_000),
            ("12.3456%", 123_456),
        ] {
            assert_eq!(Share::parse(text), Some(Share(millionths)), "{text}");
        }
        for text in [
            "10",
            "0.1",
            "101%",
            "100.0001%",
            "-1%",
            "%",
            ".5%",
            "1.%",
            "1.23456%",
            "+1%",
            "",
        ] {
            assert_eq!(Share::parse(text), None, "{text}");
        }
    }
}
