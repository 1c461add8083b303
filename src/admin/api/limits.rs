//! Limits: the rules in force, and what each has counted.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, now};
use crate::admin::{
    asked::Asked,
    paging::{CURSOR, LIMIT, Page, Parameter},
};

pub(in crate::admin) const LIST: &[Parameter] = &[CURSOR, LIMIT];

/// The limits in force.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::admin) struct Limits {
    /// The most keys that each rule keeps meters for; new ones beyond that share one.
    keys: usize,
    in_flight: InFlight,
    #[serde(flatten)]
    rules: Page<Rule>,
}

/// The most requests in flight.
#[derive(Debug, Serialize, JsonSchema)]
struct InFlight {
    /// Of one principal.
    principal: usize,
    /// Of one principal to one upstream.
    principal_upstream: usize,
    /// In this process.
    process: usize,
}

/// A rule and what it has counted.
#[derive(Debug, Serialize, JsonSchema)]
struct Rule {
    /// Its place among the rules, from 0.
    number: usize,
    /// What it says, as it is called in refusals.
    rule: Arc<str>,
    /// Calls that it let through, since its meters began.
    admitted: u64,
    /// Calls that it refused.
    refused: u64,
    /// Keys that it keeps meters for.
    keys: usize,
}

pub(in crate::admin) fn list(asked: Asked) -> Answer {
    let page = asked.query.after_number().map(|after| {
        let limit = asked.query.limit();
        let snapshot = asked.gateway.world.load();
        let rules = snapshot.limits().status().into_iter().enumerate();
        let later = rules.filter(|(number, _)| after.is_none_or(|after| *number as u64 > after));
        let items = later.take(limit + 1).map(|(number, status)| Rule {
            number,
            rule: status.name,
            admitted: status.admitted,
            refused: status.refused,
            keys: status.keys,
        });
        let rules = snapshot.limits().rules();
        Limits {
            keys: rules.keys,
            in_flight: InFlight {
                principal: rules.in_flight.principal,
                principal_upstream: rules.in_flight.principal_upstream,
                process: rules.in_flight.process,
            },
            rules: Page::of(items.collect(), limit, |rule| rule.number.to_string()),
        }
    });
    now(page)
}
