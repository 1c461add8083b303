//! What is refused is counted at the global meter, under the names that an operator looks for.
use std::collections::BTreeMap;

use opentelemetry::global;
use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData},
};
use usher::{
    call::Identity,
    limits::{Amount, Dimension, InFlight, LimitRules, Limits, Rule, Stage, Subject},
    metrics,
    protocol::names::Scope,
};

// The one test of this program: instruments are made once, from the provider that is there then.
#[tokio::test]
async fn refusals_of_rules_and_bounds_are_counted_by_rule_and_by_bound() {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter.clone())
        .build();
    global::set_meter_provider(provider.clone());
    let limits = Limits::new(LimitRules {
        in_flight: InFlight {
            process: 1,
            ..InFlight::default()
        },
        rules: vec![Rule {
            per: vec![Dimension::Method],
            only: Vec::new(),
            amount: Amount::Daily(1),
        }],
        ..LimitRules::default()
    });
    let nobody = Identity::anonymous();
    let subject = Subject {
        identity: &nobody,
        address: None,
        scope: &Scope::All,
        method: "tools/call",
        tool: None,
        upstream: None,
    };
    for _ in 0..4 {
        drop(limits.admit(Stage::Entry, &subject));
    }
    let held = limits.acquire(Stage::Entry, &subject).unwrap();
    assert!(limits.acquire(Stage::Entry, &subject).is_err());
    drop(held);
    metrics::panicked();

    provider.force_flush().unwrap();
    let mut counted = BTreeMap::new();
    for metrics in exporter.get_finished_metrics().unwrap() {
        for metric in metrics.scope_metrics().flat_map(|scope| scope.metrics()) {
            let AggregatedMetrics::U64(MetricData::Sum(sum)) = metric.data() else {
                continue;
            };
            for point in sum.data_points() {
                let mut labels: Vec<String> = point
                    .attributes()
                    .map(|label| format!("{}={}", label.key, label.value))
                    .collect();
                labels.sort();
                let name = format!("{} {}", metric.name(), labels.join(" "));
                counted.insert(name, point.value());
            }
        }
    }
    let expected = [
        ("usher.bounds.reached usher.bound=in_flight.process", 1),
        (
            "usher.limits.refused usher.reason=quota_exceeded usher.rule=1 a day per method",
            3,
        ),
        ("usher.requests.panicked ", 1),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(counted, BTreeMap::from(expected));
}
