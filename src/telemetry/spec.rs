//! What telemetry is told: where to, under which name, how much.

use std::time::Duration;

use http::HeaderName;
use secrecy::SecretString;

use crate::fetch::Address;

/// What is told where nobody says a name.
pub const SERVICE_NAME: &str = "usher";

/// Where metrics and traces go to. Defaults: nowhere, as [`SERVICE_NAME`].
#[derive(Debug, Clone)]
pub struct TelemetrySpec {
    /// `service.name` of everything that is told. Default: what the environment says, else [`SERVICE_NAME`].
    pub service_name: Option<String>,
    /// The receiver that traces and metrics are sent to. Default: none, and then no span is made.
    pub otlp: Option<OtlpSpec>,
    /// How many tools metrics tell apart. Default: 100.
    pub tools: usize,
    /// The most sets of labels of one metric. Default: 2,000.
    pub label_sets: usize,
}

/// A receiver of OTLP.
#[derive(Debug, Clone)]
pub struct OtlpSpec {
    /// Its address; over HTTP the path of each signal is added to it.
    pub address: Address,
    /// What it speaks. Default: `http/protobuf`.
    pub protocol: Protocol,
    /// What is sent with every request, beside what the protocol says.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// Roots to trust instead of the system's, in PEM.
    pub ca: Option<Vec<u8>>,
    /// How often metrics are sent. Default: 30 s.
    pub interval: Duration,
    /// Which share of the traces that begin here is recorded, 0 to 1. Default: 1.
    pub sample: f64,
}

/// How OTLP is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Protobuf over HTTP/1.1, at 4318 where nobody says otherwise.
    #[default]
    HttpProtobuf,
    /// gRPC, at 4317 where nobody says otherwise.
    #[cfg(feature = "grpc")]
    Grpc,
}

impl Default for TelemetrySpec {
    fn default() -> Self {
        Self {
            service_name: None,
            otlp: None,
            tools: 100,
            label_sets: 2_000,
        }
    }
}
