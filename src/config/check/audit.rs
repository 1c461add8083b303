//! `audit:`: what is recorded of calls.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{Check, globs, pem, secs, telemetry::headers};
use crate::{
    audit::{
        Level, Rule, Rules,
        home::AuditSpec,
        log::{self, Cuts, Streamed},
        recorder::{Durability, Watermark, Watermarks},
        sinks::{OtlpSpec, SinksSpec, Stream},
    },
    config::{
        problem::Findings,
        raw::audit::{Audit, Content, Disk, Kept, Recording, Safety, Sinks},
        reference::directory_of,
        tree::Node,
    },
    fetch::Address,
    protocol::UpstreamId,
};

/// Where a receiver takes log records.
const LOGS: &str = "/v1/logs";
/// Where the directory is written down.
const DIR: [&str; 2] = ["audit", "dir"];
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
    let watermarks = disk(check, &raw.disk);
    let sinks = sinks(check, &raw.sinks);
    let rules = raw.content.iter().enumerate();
    let rules = rules.map(|(index, raw)| rule(check, index, raw, upstreams));
    let rules = Rules(rules.collect());
    let files = raw.files.unwrap_or(true);
    if !files {
        without_files(check, &raw);
    }
    Some(AuditSpec {
        rules,
        directory: raw.dir.map(|written| {
            if written.is_empty() {
                check.wrong(&DIR, "no directory", "such as `audit`");
            }
            place(&check.tree, check.findings, &written)
        }),
        durability: match raw.durability {
            Some(Safety::Strict) => Durability::Strict,
            None if !files => Durability::Async,
            None | Some(Safety::Kernel) => Durability::Kernel,
            Some(Safety::Async) => Durability::Async,
        },
        cuts: Cuts {
            retention,
            ..default
        },
        watermarks,
        sinks,
        storage: if files {
            Arc::new(log::Disk)
        } else {
            Arc::new(Streamed::Stdout)
        },
    })
}

/// The directory that is written down, if one is.
pub(in crate::config) fn dir(tree: &Node, findings: &Findings) -> Option<PathBuf> {
    let written = tree
        .member("audit")?
        .member("dir")
        .and_then(Node::as_text)?;
    Some(place(tree, findings, written))
}

/// A directory as it is written, from the file that writes it.
fn place(tree: &Node, findings: &Findings, written: &str) -> PathBuf {
    let file = findings.sources.get(tree.place_of(&DIR).file);
    let base = file.map_or_else(
        || Path::new(".").to_owned(),
        |source| directory_of(Path::new(&source.name)),
    );
    base.join(written)
}

/// What means nothing where records only go to stdout.
fn without_files(check: &mut Check<'_>, raw: &Recording) {
    if !raw.sinks.stdout {
        check.wrong(
            &["audit", "files"],
            "without files records would go nowhere",
            "add `sinks: { stdout: true }`, or write `audit: off`",
        );
    }
    let needs = [
        (&["audit", "dir"][..], raw.dir.is_some()),
        (&["audit", "retention"], raw.retention.is_some()),
        (&["audit", "sinks", "otlp"], raw.sinks.otlp.is_some()),
        (
            &["audit", "durability"],
            matches!(raw.durability, Some(Safety::Strict | Safety::Kernel)),
        ),
    ];
    for (at, given) in needs {
        if given {
            check.wrong(
                at,
                "needs files, and `audit.files` is false",
                "leave this out, or leave `files` out",
            );
        }
    }
}

fn disk(check: &mut Check<'_>, raw: &Disk) -> Watermarks {
    let default = Watermarks::default();
    let marks = Watermarks {
        warn: raw.warn.map_or(default.warn, Watermark::share),
        refuse: raw.refuse.map_or(default.refuse, Watermark::share),
    };
    let mut wrong = |key, message: &str, hint: &str| {
        check.wrong(&["audit", "disk", key], message, hint);
    };
    if !(1..=99).contains(&marks.warn.percent) {
        wrong("warn", "not a share of a disk", "1 to 99, in percent");
    }
    if !(1..=100).contains(&marks.refuse.percent) {
        wrong("refuse", "not a share of a disk", "1 to 100, in percent");
    } else if marks.refuse.percent < marks.warn.percent {
        let key = if raw.refuse.is_some() {
            "refuse"
        } else {
            "warn"
        };
        wrong(
            key,
            "calls would be refused before anybody is warned",
            "`refuse` is at least `warn`",
        );
    }
    marks
}

fn sinks(check: &mut Check<'_>, raw: &Sinks) -> SinksSpec {
    let headers = headers(
        check,
        &["audit", "sinks", "otlp_headers"],
        &raw.otlp_headers,
    );
    let ca = raw.otlp_ca.clone().map(String::into_bytes);
    if let Some(roots) = &ca {
        pem::roots(check, &["audit", "sinks", "otlp_ca"], roots);
    }
    if raw.otlp.is_none() && !check.was_struck(&["audit", "sinks", "otlp"]) {
        for (key, given) in [
            ("otlp_headers", !headers.is_empty()),
            ("otlp_ca", ca.is_some()),
            ("otlp_plain_http", raw.otlp_plain_http),
        ] {
            if given {
                check.wrong_key(
                    &["audit", "sinks", key],
                    format!("`{key}` means nothing without `otlp`"),
                    "add `otlp: http://127.0.0.1:4318`, or leave this out",
                );
            }
        }
    }
    let otlp = raw.otlp.as_deref().and_then(|url| {
        let base = url.trim_end_matches('/');
        match Address::configured(&format!("{base}{LOGS}"), raw.otlp_plain_http) {
            Ok(address) => Some(OtlpSpec {
                address,
                headers,
                ca,
                service: "usher".to_owned(),
            }),
            Err(error) => {
                check.wrong(
                    &["audit", "sinks", "otlp"],
                    error.to_string(),
                    "such as `http://127.0.0.1:4318` or `https://collector.example:4318`",
                );
                None
            }
        }
    });
    SinksSpec {
        lines: raw.stdout.then_some(Stream::Stdout),
        otlp,
    }
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
