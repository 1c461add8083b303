//! Findings: what was found in content and definitions, and what was done about it; never the text itself.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, now, told_time};
use crate::{
    admin::{
        asked::Asked,
        paging::{CURSOR, LIMIT, Page, Parameter, Shape},
    },
    findings::Finding,
};

pub(in crate::admin) const LIST: &[Parameter] = &[
    CURSOR,
    LIMIT,
    Parameter::maybe("upstream", Shape::Text(32), "Only those of this upstream."),
    Parameter::named(
        "class",
        "Only those of this class: `secret`, `hidden`, `definition_changed`, …",
    ),
    Parameter::maybe(
        "action",
        Shape::Word(&[
            "block",
            "quarantine",
            "redact",
            "neutralise",
            "remove",
            "flag",
        ]),
        "Only those that this was done about.",
    ),
];

pub(in crate::admin) type List = Page<Numbered>;

/// A finding with its number.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "NumberedFinding")]
pub(in crate::admin) struct Numbered {
    /// Counts up from 1 in this process.
    number: u64,
    #[serde(flatten)]
    found: Found,
}

/// What was found, without the text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(in crate::admin) struct Found {
    /// When.
    time: String,
    /// The class of content, or another kind of event.
    class: &'static str,
    /// The rule that matched.
    rule: Arc<str>,
    /// `block`, `quarantine`, `redact`, `neutralise`, `remove` or `flag`.
    action: &'static str,
    /// `arguments`, `results` or `definitions`.
    direction: &'static str,
    /// The place in the content, as a JSON pointer.
    place: String,
    /// The bytes of text that matched; 0 where none did.
    length: usize,
    /// The matched text under a key of this process: equal for equal texts.
    digest: Option<String>,
    /// The upstream that it came from or was to go to.
    upstream: Option<String>,
    /// The item, by its upstream's own name for it.
    item: Option<Arc<str>>,
    /// The call in which it was found.
    call: Option<String>,
}

pub(in crate::admin) fn list(asked: Asked) -> Answer {
    now(page(&asked))
}

fn page(asked: &Asked) -> Result<List, super::Problem> {
    let query = &asked.query;
    let (before, limit) = (query.after_number()?, query.limit());
    let (upstream, class) = (query.text("upstream"), query.text("class"));
    let action = query.text("action");
    let recent = asked.gateway.findings.numbered();
    let wanted = recent.iter().rev().filter(|(number, finding)| {
        before.is_none_or(|before| *number < before)
            && class.is_none_or(|class| finding.kind == class)
            && action.is_none_or(|action| finding.action.word() == action)
            && upstream.is_none_or(|name| {
                finding
                    .upstream
                    .as_ref()
                    .is_some_and(|it| it.as_str() == name)
            })
    });
    let items = wanted.take(limit + 1).map(|(number, finding)| Numbered {
        number: *number,
        found: Found::of(finding),
    });
    Ok(Page::of(items.collect(), limit, |item| {
        item.number.to_string()
    }))
}

impl Found {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            time: told_time(finding.at),
            class: finding.kind,
            rule: finding.rule.clone(),
            action: finding.action.word(),
            direction: finding.direction.word(),
            place: finding.place.to_string(),
            length: finding.length,
            digest: finding.digest.map(|digest| digest.to_string()),
            upstream: finding.upstream.as_ref().map(ToString::to_string),
            item: finding.item.clone(),
            call: finding.call.map(|call| call.to_string()),
        }
    }
}
