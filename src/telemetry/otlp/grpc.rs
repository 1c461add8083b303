//! OTLP over gRPC, on one connection that is opened when it is needed, over our own TLS.

use std::sync::Arc;

use http::Uri;
use hyper_util::rt::TokioIo;
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig as _, WithTonicConfig as _,
};
use tonic::{
    metadata::MetadataMap,
    transport::{Channel, Endpoint},
};
use tower::service_fn;

use super::{TIME, headers};
use crate::{
    fetch::{Dialer, FetchError},
    telemetry::{TelemetryError, spec::OtlpSpec, unusable},
};

/// To this receiver, carried by the runtime that this is called in.
pub(super) fn exporters(otlp: &OtlpSpec) -> Result<(MetricExporter, SpanExporter), TelemetryError> {
    let channel = channel(otlp)?;
    let metadata = MetadataMap::from_headers(headers(otlp));
    let metrics = MetricExporter::builder()
        .with_tonic()
        .with_channel(channel.clone())
        .with_metadata(metadata.clone())
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    let spans = SpanExporter::builder()
        .with_tonic()
        .with_channel(channel)
        .with_metadata(metadata)
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    Ok((metrics, spans))
}

/// A channel that asks for connections of ours: what is dialled was checked, and TLS is that of everything else here.
fn channel(otlp: &OtlpSpec) -> Result<Channel, TelemetryError> {
    let dialer = Dialer::new(otlp.ca.as_deref())?;
    let address = Arc::new(otlp.address.clone());
    let endpoint = Endpoint::from(otlp.address.uri().clone()).timeout(TIME);
    Ok(
        endpoint.connect_with_connector_lazy(service_fn(move |_: Uri| {
            let (dialer, address) = (dialer.clone(), Arc::clone(&address));
            async move { Ok::<_, FetchError>(TokioIo::new(dialer.dial(&address).await?)) }
        })),
    )
}
