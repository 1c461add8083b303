//! Bounds and their ranges (SECURITY 6): a bound may be moved within reason, never switched off.

use std::time::Duration;

use super::{
    Check,
    rules::{self, Known},
    secs,
};
use crate::{
    catalog::rules::CatalogBounds,
    config::raw::{
        bounds::{Bounds, HttpBounds, LegacyBounds},
        limits::{Limit, ListenBounds},
    },
    downstream::SessionBounds,
    events,
    limits::{InFlight, LimitRules},
    memory::UNBOUNDED,
    server::spec::ServerBounds,
    upstream::spec::QueueBounds,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Requests of the largest size that there has to be memory for.
const FEW: usize = 4;

/// The budget of memory, where it is not the system's: enough for a few of the largest requests that are taken.
pub(super) fn memory(check: &mut Check<'_>, raw: &Bounds, body: usize) -> Option<u64> {
    let path = ["bounds", "memory"];
    raw.memory?;
    let usual = usize::try_from(UNBOUNDED).unwrap_or(usize::MAX);
    let bytes = check.size(&path, raw.memory, usual, (16 * MIB, 1 << 40));
    if bytes < body.saturating_mul(FEW) {
        check.wrong(
            &path,
            format!("too little for {FEW} of the largest requests that are taken"),
            "raise it, or lower `bounds.http.body`",
        );
    }
    Some(bytes as u64)
}

/// Bounds of the listener.
pub(super) fn http(check: &mut Check<'_>, raw: &HttpBounds) -> ServerBounds {
    let default = ServerBounds::default();
    let at = |key: &'static str| ["bounds", "http", key];
    let brief = (secs(1), secs(120));
    let streams = default.h2_streams as usize;
    let streams = check.count(&at("h2_streams"), raw.h2_streams, streams, (1, 1_000));
    let mut window = |key: &'static str, value, default: u32| {
        let range = (16 * KIB, 16 * MIB);
        let bytes = check.size(&at(key), value, default as usize, range);
        u32::try_from(bytes).unwrap_or(default)
    };
    let h2_stream_window = window(
        "h2_stream_window",
        raw.h2_stream_window,
        default.h2_stream_window,
    );
    let h2_connection_window = window(
        "h2_connection_window",
        raw.h2_connection_window,
        default.h2_connection_window,
    );
    let resets = (1, 10_000);
    let bounds = ServerBounds {
        h2_stream_window,
        h2_connection_window,
        h2_pending_resets: check.count(
            &at("h2_pending_resets"),
            raw.h2_pending_resets,
            default.h2_pending_resets,
            resets,
        ),
        h2_local_resets: check.count(
            &at("h2_local_resets"),
            raw.h2_local_resets,
            default.h2_local_resets,
            resets,
        ),
        body_bytes: check.size(&at("body"), raw.body, default.body_bytes, (KIB, 256 * MIB)),
        target_bytes: check.size(
            &at("target"),
            raw.target,
            default.target_bytes,
            (256, 64 * KIB),
        ),
        field_bytes: check.size(
            &at("field"),
            raw.field,
            default.field_bytes,
            (KIB, 64 * KIB),
        ),
        head_bytes: check.size(
            &at("head"),
            raw.head,
            default.head_bytes,
            (4 * KIB, 256 * KIB),
        ),
        fields: check.count(&at("fields"), raw.fields, default.fields, (16, 1_000)),
        connections: check.count(
            &at("connections"),
            raw.connections,
            default.connections,
            (1, 1_000_000),
        ),
        sheds: default.sheds,
        connections_per_peer: check.count(
            &at("connections_per_peer"),
            raw.connections_per_peer,
            default.connections_per_peer,
            (1, 1_000_000),
        ),
        h2_streams: u32::try_from(streams).unwrap_or(default.h2_streams),
        handshake: check.time(
            &at("handshake_time"),
            raw.handshake_time,
            default.handshake,
            brief,
        ),
        headers: check.time(
            &at("headers_time"),
            raw.headers_time,
            default.headers,
            brief,
        ),
        body: check.time(
            &at("body_time"),
            raw.body_time,
            default.body,
            (secs(1), secs(600)),
        ),
        idle: check.time(
            &at("idle_time"),
            raw.idle_time,
            default.idle,
            (secs(1), secs(3_600)),
        ),
        write_stall: check.time(
            &at("write_stall"),
            raw.write_stall,
            default.write_stall,
            brief,
        ),
        drain: check.time(&at("drain"), raw.drain, default.drain, (secs(0), secs(600))),
    };
    if bounds.field_bytes > bounds.head_bytes {
        check.wrong(
            &at("field"),
            "one field may be larger than all together",
            "raise `head`",
        );
    }
    bounds
}

/// Bounds of what an upstream may offer.
pub(super) fn offer(check: &mut Check<'_>, bounds: &Bounds) -> CatalogBounds {
    let (raw, default) = (&bounds.catalog, CatalogBounds::default());
    let at = |key: &'static str| ["bounds", "catalog", key];
    let definition = (KIB, 8 * MIB);
    CatalogBounds {
        items: check.count(&at("items"), raw.items, default.items, (1, 100_000)),
        definition_bytes: check.size(
            &at("definition"),
            raw.definition,
            default.definition_bytes,
            definition,
        ),
        description_bytes: check.size(
            &at("description"),
            raw.description,
            default.description_bytes,
            (256, MIB),
        ),
        total_bytes: check.size(
            &at("total"),
            raw.total,
            default.total_bytes,
            (MIB, 1_024 * MIB),
        ),
        pages: check.count(&at("pages"), raw.pages, default.pages, (1, 10_000)),
        schema_depth: check.count(
            &at("schema_depth"),
            raw.schema_depth,
            default.schema_depth,
            (4, 64),
        ),
        subschemas: check.count(
            &at("subschemas"),
            raw.subschemas,
            default.subschemas,
            (10, 100_000),
        ),
        pattern_chars: check.count(
            &at("pattern"),
            raw.pattern,
            default.pattern_chars,
            (16, 8_192),
        ),
        cursor_bytes: check.size(
            &["bounds", "upstream", "cursor"],
            bounds.upstream.cursor,
            default.cursor_bytes,
            (64, 64 * KIB),
        ),
        schema_time: check.time(
            &at("schema_time"),
            raw.schema_time,
            default.schema_time,
            (Duration::from_millis(1), secs(1)),
        ),
    }
}

/// Bounds of legacy sessions, in which the same may listen as without.
pub(super) fn sessions(
    check: &mut Check<'_>,
    raw: &LegacyBounds,
    listens: &events::Bounds,
) -> SessionBounds {
    let default = SessionBounds::default();
    let at = |key: &'static str| ["bounds", "sessions", key];
    let most = 1_000_000;
    let bounds = SessionBounds {
        per_principal: check.count(
            &at("per_principal"),
            raw.per_principal,
            default.per_principal,
            (1, most),
        ),
        total: check.count(&at("total"), raw.total, default.total, (1, most)),
        idle: check.time(
            &at("idle"),
            raw.idle,
            default.idle,
            (secs(10), secs(24 * 3_600)),
        ),
        absolute: check.time(
            &at("absolute"),
            raw.absolute,
            default.absolute,
            (secs(60), secs(7 * 24 * 3_600)),
        ),
        addresses: listens.addresses,
        waiting: listens.buffer,
    };
    if bounds.idle > bounds.absolute {
        check.wrong(
            &at("idle"),
            "longer than `absolute`",
            "a session ends at `absolute` in any case",
        );
    }
    bounds
}

/// Rules, and bounds of requests in flight.
pub(super) fn rules(
    check: &mut Check<'_>,
    limits: &[Limit],
    bounds: &Bounds,
    known: &Known<'_>,
) -> LimitRules {
    let default = LimitRules::default();
    let (raw, most) = (&bounds.in_flight, default.in_flight);
    let at = |key: &'static str| ["bounds", "in_flight", key];
    let each = (1, 100_000);
    let in_flight = InFlight {
        principal: check.count(&at("principal"), raw.principal, most.principal, each),
        principal_upstream: check.count(
            &at("principal_upstream"),
            raw.principal_upstream,
            most.principal_upstream,
            each,
        ),
        process: check.count(&at("process"), raw.process, most.process, (1, 1_000_000)),
    };
    LimitRules {
        in_flight,
        keys: check.count(
            &["bounds", "meters"],
            bounds.meters,
            default.keys,
            (1_000, 10_000_000),
        ),
        rules: rules::rules(check, limits, known),
    }
}

/// Bounds of calls that wait for an upstream.
pub(super) fn queue(check: &mut Check<'_>, raw: &Bounds) -> QueueBounds {
    let default = QueueBounds::default();
    QueueBounds {
        length: check.count(
            &["bounds", "queue", "length"],
            raw.queue.length,
            default.length,
            (0, 10_000),
        ),
        time: check.time(
            &["bounds", "queue", "time"],
            raw.queue.time,
            default.time,
            (Duration::from_millis(1), secs(60)),
        ),
        in_flight: check.count(
            &["bounds", "in_flight", "upstream"],
            raw.in_flight.upstream,
            default.in_flight,
            (1, 100_000),
        ),
    }
}

/// Bounds of streams that listen for changes.
pub(super) fn listens(check: &mut Check<'_>, raw: &ListenBounds) -> events::Bounds {
    let default = events::Bounds::default();
    let at = |key: &'static str| ["bounds", "subscriptions", key];
    events::Bounds {
        total: check.count(&at("total"), raw.total, default.total, (1, 1_000_000)),
        per_principal: check.count(
            &at("per_principal"),
            raw.per_principal,
            default.per_principal,
            (1, 100_000),
        ),
        addresses: check.count(
            &at("addresses"),
            raw.addresses,
            default.addresses,
            (1, 10_000),
        ),
        buffer: (
            check.count(&at("buffer"), raw.buffer, default.buffer.0, (8, 10_000)),
            check.size(
                &at("buffer_bytes"),
                raw.buffer_bytes,
                default.buffer.1,
                (16 * KIB, 16 * MIB),
            ),
        ),
    }
}
