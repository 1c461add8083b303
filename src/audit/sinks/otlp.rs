//! Records as log records of OpenTelemetry, to a receiver of OTLP over HTTP in its JSON encoding.

use std::sync::Arc;

use bytes::Bytes;
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
    findings::Scrub,
    json::{Json, Limits},
};

/// What it is called.
pub(super) const NAME: &str = "otlp";
/// The most bytes of a receiver's answer.
const ANSWER: usize = 64 << 10;
/// The most characters of its words that are told.
const WORDS: usize = 256;

/// Sends to a receiver. It blocks the thread it is called on, and is carried by the runtime it was made in.
pub struct Otlp {
    fetcher: Fetcher,
    address: Address,
    headers: HeaderMap,
    resource: Resource,
    scrub: Arc<dyn Scrub>,
    runtime: Handle,
}

impl Otlp {
    /// To this receiver; `scrub` takes out of what it says what must not be told.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn new(fetcher: Fetcher, to: &OtlpSpec, resource: Resource, scrub: Arc<dyn Scrub>) -> Self {
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
            scrub,
            runtime: Handle::current(),
        }
    }

    /// What of a batch that was taken is thrown away, as the answer says (OTLP, partial success). Whatever else an answer is, all of
    /// it was taken.
    fn discarded(&self, answer: Bytes) -> Option<Undelivered> {
        let answer = Json::parse(answer, &Limits::UPSTREAM).ok()?;
        let told = answer.root().member("partialSuccess")?;
        let count = told.member("rejectedLogRecords")?;
        // A number of 64 bits is a text in this encoding, and receivers send numbers as well.
        let count = match count.as_str() {
            Some(text) => text.parse().ok()?,
            None => count.as_i64()?,
        };
        let records = u64::try_from(count).ok().filter(|count| *count > 0)?;
        let why = told.member("errorMessage").and_then(|why| why.as_str());
        // Of a secret that is cut nothing would be found.
        let why = self.scrub.name(&why.unwrap_or_default()).into_owned();
        Some(Undelivered::Discarded {
            records,
            why: why.chars().take(WORDS).collect(),
        })
    }
}

impl Sink for Otlp {
    fn name(&self) -> &str {
        NAME
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
            _ if status.is_success() => self.discarded(answer.body).map_or(Ok(()), Err),
            // What the receiver cannot read it will never read.
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Err(Undelivered::Refused(why)),
            _ => Err(Undelivered::Later(why)),
        }
    }
}
