//! Telemetry: where metrics and traces go to.
//!
//! Guarantees: the global meter provider is installed once, before anything is served; what `/metrics` shows is made when it
//! is asked for. Deliberately absent: the instruments (`metrics`) and the listener that serves the text (`server`).

/// The exporters of this process. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Telemetry;

impl Telemetry {
    /// The media type of [`Telemetry::metrics_text`].
    pub const METRICS_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Every metric as it stands now, in the text format of Prometheus (0.0.4).
    pub fn metrics_text(&self) -> Vec<u8> {
        Vec::new()
    }
}
