//! OTLP over gRPC, on one connection that is opened when it is needed, over our own TLS.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Uri};
use hyper_util::rt::TokioIo;
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig as _, WithTonicConfig as _,
};
use tonic::{
    Request, Status,
    metadata::MetadataMap,
    service::Interceptor,
    transport::{Channel, Endpoint},
};
use tower::service_fn;

use super::{TIME, headers};
use crate::{
    fetch::{Dialer, FetchError},
    telemetry::{TelemetryError, spec::OtlpSpec, unusable},
};

/// How often the receiver is asked whether it is still there: less often than gRPC's own servers forbid.
const ALIVE: Duration = Duration::from_secs(300);

/// To this receiver, carried by the runtime that this is called in.
pub(super) fn exporters(otlp: &OtlpSpec) -> Result<(MetricExporter, SpanExporter), TelemetryError> {
    let channel = channel(otlp)?;
    let headers = Own(headers(otlp));
    let metrics = MetricExporter::builder()
        .with_tonic()
        .with_channel(channel.clone())
        .with_interceptor(headers.clone())
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    let spans = SpanExporter::builder()
        .with_tonic()
        .with_channel(channel)
        .with_interceptor(headers)
        .with_timeout(TIME)
        .build()
        .map_err(unusable)?;
    Ok((metrics, spans))
}

/// Headers of the configuration: set after those that the environment asks the exporters to send, and in their place.
#[derive(Clone)]
struct Own(HeaderMap);

impl Interceptor for Own {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let (metadata, extensions, message) = request.into_parts();
        let mut headers = metadata.into_headers();
        headers.extend(self.0.clone());
        let metadata = MetadataMap::from_headers(headers);
        Ok(Request::from_parts(metadata, extensions, message))
    }
}

/// A channel that asks for connections of ours: what is dialled was checked, and TLS is that of everything else here.
fn channel(otlp: &OtlpSpec) -> Result<Channel, TelemetryError> {
    let dialer = Dialer::new(otlp.ca.as_deref())?;
    let address = Arc::new(otlp.address.clone());
    // A connection that a dead host or a forgetful balancer left open is noticed, and another is dialled.
    let endpoint = Endpoint::from(otlp.address.uri().clone())
        .timeout(TIME)
        .http2_keep_alive_interval(ALIVE)
        .keep_alive_timeout(TIME)
        .keep_alive_while_idle(true);
    Ok(
        endpoint.connect_with_connector_lazy(service_fn(move |_: Uri| {
            let (dialer, address) = (dialer.clone(), Arc::clone(&address));
            async move { Ok::<_, FetchError>(TokioIo::new(dialer.dial(&address).await?)) }
        })),
    )
}
