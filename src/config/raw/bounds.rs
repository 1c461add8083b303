//! `bounds:`: fixed bounds, each of which may be moved within a range and none switched off (SECURITY 6).

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    super::units::{Size, Time},
    limits::{FlightBounds, ListenBounds, WaitBounds},
};

/// Fixed bounds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct Bounds {
    /// Of the listener.
    pub(in crate::config) http: HttpBounds,
    /// Of what a message may hold.
    pub(in crate::config) json: JsonBounds,
    /// Of what an upstream may say.
    pub(in crate::config) upstream: SayBounds,
    /// Of what an upstream that is a program may write.
    pub(in crate::config) stdio: PipeBounds,
    /// Of what callers may be asked while a call waits.
    pub(in crate::config) resume: AskBounds,
    /// Of what proves who calls.
    pub(in crate::config) auth: ProofBounds,
    /// Of what an upstream may offer.
    pub(in crate::config) catalog: OfferBounds,
    /// Of legacy sessions of clients.
    pub(in crate::config) sessions: LegacyBounds,
    /// Of requests in flight.
    pub(in crate::config) in_flight: FlightBounds,
    /// Of calls that wait for an upstream.
    pub(in crate::config) queue: WaitBounds,
    /// Of streams that listen for changes.
    pub(in crate::config) subscriptions: ListenBounds,
    /// Bytes of messages that are held at once; streams, requests and connections are refused as it fills up. Default: three
    /// quarters of what the control group may have, else 2GiB.
    pub(in crate::config) memory: Option<Size>,
    /// Keys that each rule of `limits` keeps meters for; new ones beyond that share one. Default: 100000.
    pub(in crate::config) meters: Option<usize>,
}

/// Bounds of the listener.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct HttpBounds {
    /// A request body. Default: 16MiB.
    pub(in crate::config) body: Option<Size>,
    /// A request target. Default: 8KiB.
    pub(in crate::config) target: Option<Size>,
    /// One header field. Default: 16KiB.
    pub(in crate::config) field: Option<Size>,
    /// All header fields. Default: 32KiB.
    pub(in crate::config) head: Option<Size>,
    /// Number of header fields. Default: 100.
    pub(in crate::config) fields: Option<usize>,
    /// Connections at once. Default: 20000.
    pub(in crate::config) connections: Option<usize>,
    /// Connections of one peer address. Default: 4096.
    pub(in crate::config) connections_per_peer: Option<usize>,
    /// HTTP/2 streams of one connection. Default: 100.
    pub(in crate::config) h2_streams: Option<usize>,
    /// What a client may send on one HTTP/2 stream before it is taken. Default: 64KiB.
    pub(in crate::config) h2_stream_window: Option<Size>,
    /// The same on all streams of a connection. Default: 1MiB.
    pub(in crate::config) h2_connection_window: Option<Size>,
    /// HTTP/2 streams that a client reset before they were looked at. Default: 20.
    pub(in crate::config) h2_pending_resets: Option<usize>,
    /// HTTP/2 streams that had to be reset for a fault of the client's. Default: 128.
    pub(in crate::config) h2_local_resets: Option<usize>,
    /// A TLS handshake. Default: 10s.
    pub(in crate::config) handshake_time: Option<Time>,
    /// Until headers are complete. Default: 10s.
    pub(in crate::config) headers_time: Option<Time>,
    /// Until a body is complete. Default: 30s.
    pub(in crate::config) body_time: Option<Time>,
    /// A connection without a request. Default: 75s.
    pub(in crate::config) idle_time: Option<Time>,
    /// A client that does not read. Default: 30s.
    pub(in crate::config) write_stall: Option<Time>,
    /// Requests in flight after the stop signal. Default: 30s.
    pub(in crate::config) drain: Option<Time>,
}

/// Bounds of what an upstream may offer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct OfferBounds {
    /// Items of one list. Default: 10000.
    pub(in crate::config) items: Option<usize>,
    /// One definition. Default: 256KiB.
    pub(in crate::config) definition: Option<Size>,
    /// One description. Default: 16KiB.
    pub(in crate::config) description: Option<Size>,
    /// All definitions. Default: 64MiB.
    pub(in crate::config) total: Option<Size>,
    /// Pages of one list. Default: 256.
    pub(in crate::config) pages: Option<usize>,
    /// Nesting of a schema. Default: 32.
    pub(in crate::config) schema_depth: Option<usize>,
    /// Subschemas of a schema. Default: 1000.
    pub(in crate::config) subschemas: Option<usize>,
    /// Characters of a pattern. Default: 512.
    pub(in crate::config) pattern: Option<usize>,
    /// One check of a value against a schema; counted in steps, so that it is the same on every machine. Default: 20ms.
    pub(in crate::config) schema_time: Option<Time>,
}

/// Bounds of legacy sessions of clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct LegacyBounds {
    /// Of one principal. Default: 1024.
    pub(in crate::config) per_principal: Option<usize>,
    /// In this process. Default: 50000.
    pub(in crate::config) total: Option<usize>,
    /// Without a request or an open stream. Default: 15m.
    pub(in crate::config) idle: Option<Time>,
    /// In any case. Default: 8h.
    pub(in crate::config) absolute: Option<Time>,
}

/// Bounds of what a message may hold; of nesting, of a client's.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct JsonBounds {
    /// Arrays and objects in one another. Default: 64.
    pub(in crate::config) depth: Option<usize>,
    /// Values of any kind; pages of upstreams' lists may have 4000000. Default: 200000.
    pub(in crate::config) values: Option<usize>,
    /// Members of one object. Default: 20000.
    pub(in crate::config) members: Option<usize>,
    /// One member name, as written. Default: 1KiB.
    pub(in crate::config) key: Option<Size>,
    /// Characters of one number. Default: 128.
    pub(in crate::config) number: Option<usize>,
}

/// Bounds of what an upstream may say.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct SayBounds {
    /// Arrays and objects in one another. Default: 128.
    pub(in crate::config) depth: Option<usize>,
    /// One message: a JSON body, or one event. Default: 32MiB.
    pub(in crate::config) message: Option<Size>,
    /// All messages that answer one request. Default: 128MiB.
    pub(in crate::config) answer: Option<Size>,
    /// The cursor of a list. Default: 4KiB.
    pub(in crate::config) cursor: Option<Size>,
}

/// Bounds of what an upstream that is a program may write.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct PipeBounds {
    /// One line, which is one message. Default: 16MiB.
    pub(in crate::config) line: Option<Size>,
    /// What is kept of its standard error. Default: 64KiB.
    pub(in crate::config) stderr: Option<Size>,
    /// Quick attempts to start it, or to connect to a server, in five minutes; those beyond come once a minute. Default: 5.
    pub(in crate::config) restarts: Option<usize>,
}

/// Bounds of what callers may be asked while a call waits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct AskBounds {
    /// The requestState of an upstream, as written. Default: 16KiB.
    pub(in crate::config) state: Option<Size>,
    /// How long a question may be answered. Default: 10m.
    pub(in crate::config) life: Option<Time>,
    /// How often one call may ask. Default: 8.
    pub(in crate::config) rounds: Option<usize>,
    /// How much it may ask at once. Default: 8.
    pub(in crate::config) inputs: Option<usize>,
}

/// Bounds of what proves who calls.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct ProofBounds {
    /// A token. Default: 16KiB.
    pub(in crate::config) token: Option<Size>,
    /// A metadata document of an authorization server. Default: 64KiB.
    pub(in crate::config) metadata: Option<Size>,
    /// A key set. Default: 256KiB.
    pub(in crate::config) key_set: Option<Size>,
    /// Keys in one. Default: 100.
    pub(in crate::config) keys: Option<usize>,
    /// What clocks may differ by. Default: 30s.
    pub(in crate::config) clock_skew: Option<Time>,
}
