//! What is counted in this process, read as an exporter would.
//!
//! Tests run beside each other: a count may grow by another's doing, so what is asked is whether it grew.

use std::sync::{LazyLock, Mutex};

use opentelemetry::global;
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData},
};

struct Meter {
    provider: SdkMeterProvider,
    exporter: Mutex<InMemoryMetricExporter>,
}

static METER: LazyLock<Meter> = LazyLock::new(|| {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter.clone())
        .build();
    global::set_meter_provider(provider.clone());
    Meter {
        provider,
        exporter: Mutex::new(exporter),
    }
});

/// Begins to count: before anything of the gateway does.
pub(crate) fn metered() {
    LazyLock::force(&METER);
}

/// What a counter has come to under these labels, over all others that it has.
pub(crate) fn counted(name: &str, labels: &[(&str, &str)]) -> u64 {
    let exporter = METER.exporter.lock().unwrap();
    METER.provider.force_flush().unwrap();
    let all = exporter.get_finished_metrics().unwrap();
    exporter.reset();
    let Some(last) = all.last() else { return 0 };
    let metrics = last.scope_metrics().flat_map(|scope| scope.metrics());
    let mut count = 0;
    for metric in metrics.filter(|metric| metric.name() == name) {
        let AggregatedMetrics::U64(MetricData::Sum(sum)) = metric.data() else {
            continue;
        };
        for point in sum.data_points() {
            let has = |(key, value): &(&str, &str)| {
                point
                    .attributes()
                    .any(|label| label.key.as_str() == *key && label.value.as_str() == *value)
            };
            if labels.iter().all(has) {
                count += point.value();
            }
        }
    }
    count
}

/// How often a bound was reached.
pub(crate) fn reached(bound: &str) -> u64 {
    counted("usher.bounds.reached", &[("usher.bound", bound)])
}
