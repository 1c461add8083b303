//! `telemetry:`: a receiver that can be reached, headers that can be sent, numbers within reason.

use http::{HeaderName, HeaderValue, header};
use secrecy::{ExposeSecret, SecretString};

use super::{Check, pem, secs, upstream::documented};
use crate::{
    config::raw::{OtlpProtocol, TELEMETRY_INTERVAL, Telemetry},
    fetch::{Address, FetchError},
    telemetry::spec::{OtlpSpec, Protocol, TelemetrySpec},
};

/// The most characters of a service's name.
const NAME_CHARS: usize = 255;
/// What this gateway says itself about a request.
const OURS: [HeaderName; 6] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::HOST,
    header::CONNECTION,
    header::TRANSFER_ENCODING,
];

/// Where telemetry goes to.
pub(super) fn telemetry(check: &mut Check<'_>, raw: Telemetry) -> TelemetrySpec {
    let default = TelemetrySpec::default();
    let is_name = |name: &String| {
        let chars = name.chars().count();
        chars > 0 && chars <= NAME_CHARS && !name.chars().any(char::is_control)
    };
    if !raw.service_name.as_ref().is_none_or(is_name) {
        check.wrong(
            &["telemetry", "service_name"],
            "not a name",
            "a word of at most 255 characters, such as `usher`",
        );
    }
    let headers = headers(check, &["telemetry", "headers"], &raw.headers);
    let ca = raw.ca.map(String::into_bytes);
    if let Some(roots) = &ca {
        pem::roots(check, &["telemetry", "ca"], roots);
    }
    let interval = check.time(
        &["telemetry", "interval"],
        raw.interval,
        documented(TELEMETRY_INTERVAL),
        (secs(1), secs(3_600)),
    );
    // What is said about sending means nothing where nothing is sent.
    if raw.otlp.is_none() && !check.was_struck(&["telemetry", "otlp"]) {
        for (key, given) in [
            ("protocol", raw.protocol.is_some()),
            ("headers", !headers.is_empty()),
            ("ca", ca.is_some()),
            ("plain_http", raw.plain_http),
            ("sample", raw.sample.is_some()),
            ("interval", raw.interval.is_some()),
        ] {
            if given {
                check.wrong_key(
                    &["telemetry", key],
                    format!("`{key}` means nothing without `otlp`"),
                    "add `otlp: http://127.0.0.1:4318`, or leave this out",
                );
            }
        }
    }
    let otlp = raw.otlp.and_then(|text| {
        let address = receiver(check, &text, raw.plain_http)?;
        let Some(protocol) = raw.protocol.map_or(Some(Protocol::default()), spoken) else {
            check.wrong(
                &["telemetry", "protocol"],
                "this usher speaks no gRPC",
                "build it with `--features grpc`, or leave this out and give the receiver's port for HTTP, which is 4318",
            );
            return None;
        };
        placed(check, &address, protocol);
        Some(OtlpSpec {
            address,
            protocol,
            headers,
            ca,
            interval,
            sample: raw.sample.map_or(1.0, |share| f64::from(share.0) / 1e6),
        })
    });
    TelemetrySpec {
        service_name: raw.service_name,
        otlp,
        tools: check.count(
            &["telemetry", "tools"],
            raw.tools,
            default.tools,
            (0, 10_000),
        ),
        label_sets: check.count(
            &["telemetry", "label_sets"],
            raw.label_sets,
            default.label_sets,
            (100, 100_000),
        ),
    }
}

/// What this build speaks of what may be asked for.
const fn spoken(protocol: OtlpProtocol) -> Option<Protocol> {
    match protocol {
        OtlpProtocol::HttpProtobuf => Some(Protocol::HttpProtobuf),
        #[cfg(feature = "grpc")]
        OtlpProtocol::Grpc => Some(Protocol::Grpc),
        #[cfg(not(feature = "grpc"))]
        OtlpProtocol::Grpc => None,
    }
}

/// Whether the address can be one of a receiver of this protocol.
fn placed(check: &mut Check<'_>, address: &Address, protocol: Protocol) {
    let path = ["telemetry", "otlp"];
    let uri = address.uri();
    match protocol {
        Protocol::HttpProtobuf => {
            if ["/v1/traces", "/v1/metrics"].contains(&uri.path()) {
                check.wrong(
                    &path,
                    "the address of one signal",
                    "without its path: `/v1/traces` and `/v1/metrics` are added",
                );
            }
            if uri.port_u16() == Some(4317) {
                check.wrong(
                    &path,
                    "4317 is the port of OTLP over gRPC",
                    "OTLP over HTTP is at 4318; or add `protocol: grpc`",
                );
            }
        }
        #[cfg(feature = "grpc")]
        Protocol::Grpc => {
            if uri.path() != "/" {
                check.wrong(
                    &path,
                    "gRPC knows no path of an address",
                    "host and port alone, such as `http://127.0.0.1:4317`",
                );
            }
            if uri.port_u16() == Some(4318) {
                check.wrong(
                    &path,
                    "4318 is the port of OTLP over HTTP",
                    "OTLP over gRPC is at 4317; or leave `protocol` out",
                );
            }
        }
    }
}

fn receiver(check: &mut Check<'_>, text: &str, plain_http: bool) -> Option<Address> {
    let path = ["telemetry", "otlp"];
    match Address::configured(text, plain_http) {
        Ok(address) if address.uri().query().is_some() => {
            check.wrong(&path, "an address with a query", "leave it out");
            None
        }
        Ok(address) => Some(address),
        Err(FetchError::Address(what)) if what.starts_with("http to") => {
            check.wrong(
                &path,
                what,
                "use https, or say `plain_http: true` if nobody can listen in",
            );
            None
        }
        Err(error) => {
            let what = if let FetchError::Address(what) = error {
                what.to_owned()
            } else {
                error.to_string()
            };
            check.wrong(&path, what, "such as `http://127.0.0.1:4318`");
            None
        }
    }
}

pub(super) fn headers(
    check: &mut Check<'_>,
    at: &[&str],
    raw: &std::collections::BTreeMap<String, crate::config::units::Secret>,
) -> Vec<(HeaderName, SecretString)> {
    let mut all: Vec<(HeaderName, SecretString)> = Vec::new();
    for (name, value) in raw {
        let path = [at, &[name.as_str()]].concat();
        check.header(&path, name, value.0.expose_secret());
        let Ok(header) = HeaderName::try_from(name.as_str()) else {
            check.wrong_key(&path, "not the name of a header", "");
            continue;
        };
        if OURS.contains(&header) {
            check.wrong_key(&path, format!("`{header}` is for the gateway to say"), "");
        }
        if all.iter().any(|(other, _)| *other == header) {
            check.wrong_key(&path, format!("`{name}` is given twice"), "");
        }
        if HeaderValue::try_from(value.0.expose_secret()).is_err() {
            check.wrong(&path, "not the value of a header", "one line, printable");
        }
        all.push((header, value.0.clone()));
    }
    all
}
