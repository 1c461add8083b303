//! The audit log: searching it, and following what is written.

use std::{io, ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, Given, aside};
use crate::{
    admin::{
        AuditReader,
        follow::{self, Records},
        operations::{Asked, named},
        paging::{CURSOR, LIMIT, Page, Parameter, Query, Shape},
        problem::Problem,
    },
    audit::query::Filter,
    json::{Json, Limits},
};

pub(in crate::admin) const SEARCH: &[Parameter] = &[
    CURSOR,
    LIMIT,
    Parameter::maybe("since", Shape::Time, "Not before this time."),
    Parameter::maybe("until", Shape::Time, "Before this time."),
    PRINCIPAL,
    UPSTREAM,
    NAME,
    METHOD,
    OUTCOME,
    DECISION,
    REASON,
    FINDING,
    EVENT,
    CALL,
];
pub(in crate::admin) const FOLLOW: &[Parameter] = &[
    PRINCIPAL, UPSTREAM, NAME, METHOD, OUTCOME, DECISION, REASON, FINDING, EVENT, CALL,
];

const PRINCIPAL: Parameter = named("principal", "Only records of this principal, by name.");
const UPSTREAM: Parameter = Parameter::maybe(
    "upstream",
    Shape::Text(32),
    "Only records of this upstream.",
);
const NAME: Parameter = named(
    "name",
    "Only records of this tool, prompt or resource, by either of its names.",
);
const METHOD: Parameter = named("method", "Only records of this method.");
const OUTCOME: Parameter = named(
    "outcome",
    "Only records of this outcome: `ok`, `tool_error`, `denied`, …",
);
const DECISION: Parameter = Parameter::maybe(
    "decision",
    Shape::Word(&["permit", "deny"]),
    "Only records of this decision.",
);
const REASON: Parameter = named(
    "reason",
    "Only records of what was refused for this reason.",
);
const FINDING: Parameter = named(
    "finding",
    "Only records with a finding of this class or rule.",
);
const EVENT: Parameter = named("event", "Only records of this kind of event.");
const CALL: Parameter = named(
    "call",
    "Only records of this call: the reference that its client was told.",
);

pub(in crate::admin) type List = Page<Record>;

/// One record.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditRecord")]
pub(in crate::admin) struct Record {
    /// Its number in the log.
    seq: u64,
    /// What it says.
    record: Given,
}

pub(in crate::admin) fn search(asked: Asked) -> Answer {
    let started = reader(&asked).and_then(|reader| {
        let seat = asked.bench.searches.clone().try_acquire_owned();
        let seat = seat.map_err(|_| Problem::busy("the log is being searched for others"))?;
        Ok((reader, seat, asked.query.after_number()?))
    });
    aside(move || {
        let (reader, _seat, before) = started?;
        let (filter, limit) = (filter(&asked.query), asked.query.limit());
        let mut found = Vec::new();
        let searched = reader.query(&filter, &mut |seq, event| {
            if before.is_none_or(|before| seq < before) {
                found.extend(Record::of(seq, event));
            }
            if found.len() > limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        searched.map_err(|error| unreadable(&error))?;
        Ok(Page::of(found, limit, |record| record.seq.to_string()))
    })
}

pub(in crate::admin) fn follow(asked: Asked) -> Answer {
    let started = reader(&asked).and_then(|reader| {
        let records = Records::from_now_on(reader.directory(), &filter(&asked.query));
        follow::events(&asked.bench, records.map_err(|error| unreadable(&error))?)
    });
    std::future::ready(started).boxed()
}

impl Record {
    /// A record as it is told; `None` if it is none of ours.
    pub(in crate::admin) fn of(seq: u64, event: &[u8]) -> Option<Self> {
        let record = Json::parse(Bytes::copy_from_slice(event), &Limits::LIST).ok()?;
        let record = Given(record);
        Some(Self { seq, record })
    }
}

fn reader(asked: &Asked) -> Result<Arc<dyn AuditReader>, Problem> {
    let reader = asked.gateway.audit.clone();
    reader.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "audit_off",
            "no audit log is kept that could be read",
        )
    })
}

fn unreadable(error: &io::Error) -> Problem {
    tracing::error!(%error, "the audit log cannot be read for an operator");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "audit_unavailable",
        "the log cannot be read",
    )
}

fn filter(query: &Query) -> Filter {
    Filter {
        since: query.owned("since"),
        until: query.owned("until"),
        principal: query.owned("principal"),
        upstream: query.owned("upstream"),
        name: query.owned("name"),
        method: query.owned("method"),
        outcome: query.owned("outcome"),
        decision: query.owned("decision"),
        reason: query.owned("reason"),
        finding: query.owned("finding"),
        event: query.owned("event"),
        call: query.owned("call"),
    }
}
