//! Records as log records of OpenTelemetry, to a receiver of OTLP over HTTP in its JSON encoding.

use bytes::Bytes;
use http::StatusCode;
use tokio::runtime::Handle;

use super::{Sink, Undelivered};
use crate::{
    audit::{
        export::{Resource, logs},
        follow::Batch,
    },
    fetch::{Address, Fetcher},
};

/// The most bytes of a receiver's answer.
const ANSWER: usize = 64 << 10;

/// Sends to a receiver. It blocks the thread it is called on, and is carried by the runtime it was made in.
pub struct Otlp {
    fetcher: Fetcher,
    address: Address,
    resource: Resource,
    runtime: Handle,
}

impl Otlp {
    /// To the receiver at `address`, its path included: `/v1/logs` by default of the protocol.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(fetcher: Fetcher, address: Address, resource: Resource) -> Self {
        Self {
            fetcher,
            address,
            resource,
            runtime: Handle::current(),
        }
    }
}

impl Sink for Otlp {
    fn name(&self) -> &str {
        "otlp"
    }

    fn deliver(&mut self, batch: &Batch) -> Result<(), Undelivered> {
        let body = Bytes::from(logs(&self.resource, batch.lines()));
        let sent = self.fetcher.json(&self.address, body, ANSWER);
        let answer = self
            .runtime
            .block_on(sent)
            .map_err(|error| Undelivered::Later(error.to_string()))?;
        let status = answer.status;
        let why = format!("answered with HTTP {}", status.as_u16());
        match status {
            _ if status.is_success() => Ok(()),
            // What the receiver cannot read it will never read.
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Err(Undelivered::Refused(why)),
            _ => Err(Undelivered::Later(why)),
        }
    }
}
