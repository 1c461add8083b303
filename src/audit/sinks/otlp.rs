//! Records as log records of OpenTelemetry, to a receiver of OTLP over HTTP in its JSON encoding.

use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
use secrecy::ExposeSecret as _;
use tokio::runtime::Handle;

use super::{OtlpSpec, Sink, Undelivered};
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
    headers: HeaderMap,
    resource: Resource,
    runtime: Handle,
}

impl Otlp {
    /// To this receiver.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(fetcher: Fetcher, to: &OtlpSpec, resource: Resource) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &to.headers {
            if let Ok(mut value) = HeaderValue::from_str(value.expose_secret()) {
                value.set_sensitive(true);
                headers.insert(name.clone(), value);
            }
        }
        Self {
            fetcher,
            address: to.address.clone(),
            headers,
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
        let body = logs(&self.resource, batch.lines());
        let headers = self.headers.clone();
        let sent = self.fetcher.post(&self.address, headers, body, ANSWER);
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
