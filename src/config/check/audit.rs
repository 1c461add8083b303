//! `audit:`: what is recorded of calls.

use std::{collections::HashSet, path::Path, time::Duration};

use super::{Check, globs, secs};
use crate::{
    audit::{Level, Rule, Rules, home::AuditSpec, log::Cuts, recorder::Durability},
    config::{
        raw::audit::{Audit, Content, Kept, Recording, Safety},
        reference::directory_of,
    },
    protocol::UpstreamId,
};

const DAY: u64 = 24 * 3_600;

/// How calls are recorded; `None` where that is switched off.
pub(super) fn audit(
    check: &mut Check<'_>,
    raw: Option<Audit>,
    upstreams: &HashSet<&str>,
) -> Option<AuditSpec> {
    let raw = match raw {
        Some(Audit::Off) => return None,
        None => Recording::default(),
        Some(Audit::On(raw)) => raw,
    };
    let default = Cuts::default();
    let retention = ["audit", "retention"];
    let range = (secs(DAY), secs(3_650 * DAY));
    let retention: Duration = check.time(&retention, raw.retention, default.retention, range);
    let rules = raw.content.iter().enumerate();
    let rules = rules.map(|(index, raw)| rule(check, index, raw, upstreams));
    let rules = Rules(rules.collect());
    Some(AuditSpec {
        rules,
        directory: raw.dir.map(|written| {
            let path = ["audit", "dir"];
            if written.is_empty() {
                check.wrong(&path, "no directory", "such as `audit`");
            }
            let place = check.tree.place_of(&path);
            let file = check.findings.sources.get(place.file);
            let base = file.map_or_else(
                || Path::new(".").to_owned(),
                |source| directory_of(Path::new(&source.name)),
            );
            base.join(written)
        }),
        durability: match raw.durability {
            Some(Safety::Strict) => Durability::Strict,
            None | Some(Safety::Kernel) => Durability::Kernel,
            Some(Safety::Async) => Durability::Async,
        },
        cuts: Cuts {
            retention,
            ..default
        },
    })
}

fn rule(check: &mut Check<'_>, index: usize, raw: &Content, known: &HashSet<&str>) -> Rule {
    let index = index.to_string();
    let at = |key: &'static str| ["audit", "content", &index, key];
    globs(check, &at("methods"), &raw.methods);
    globs(check, &at("names"), &raw.names);
    let mut upstreams = Vec::new();
    for (number, name) in raw.upstreams.iter().enumerate() {
        match UpstreamId::parse(name).filter(|_| known.contains(name.as_str())) {
            Some(id) => upstreams.push(id),
            None => {
                let number = number.to_string();
                let [audit, content, index, key] = at("upstreams");
                check.wrong(
                    &[audit, content, index, key, &number],
                    format!("no upstream `{name}`"),
                    "a key of `upstreams`",
                );
            }
        }
    }
    if raw.level.is_none() {
        check.missing(
            &["audit", "content", &index],
            "no `level`",
            "none, metadata, request or request_response",
        );
    }
    Rule {
        methods: raw.methods.clone(),
        names: raw.names.clone(),
        upstreams,
        level: match raw.level {
            Some(Kept::None) => Level::None,
            None | Some(Kept::Metadata) => Level::Metadata,
            Some(Kept::Request) => Level::Request,
            Some(Kept::RequestResponse) => Level::RequestResponse,
        },
    }
}
