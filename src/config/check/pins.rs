//! `definitions:`: what becomes of definitions that change, and where what was approved is kept.

use std::path::Path;

use super::Check;
use crate::{
    config::{
        raw::{Definitions, Pin, Upstream},
        reference::directory_of,
        units::Ordered,
    },
    pins::{Mode, PinsSpec},
    protocol::UpstreamId,
};

/// Where records are, in the directory for what outlives the process.
const BELOW: &str = "pins";

/// What becomes of definitions that an upstream changes.
pub(super) fn mode(top: &Definitions, upstream: &Upstream) -> Mode {
    match upstream.definitions.pin.or(top.pin) {
        None | Some(Pin::Watch) => Mode::Watch,
        Some(Pin::Quarantine) => Mode::Quarantine,
        Some(Pin::Off) => Mode::Off,
    }
}

/// How definitions are pinned.
pub(super) fn pins(
    check: &mut Check<'_>,
    top: &Definitions,
    upstreams: &Ordered<Upstream>,
    state: Option<&str>,
) -> PinsSpec {
    let mut modes = std::collections::BTreeMap::new();
    for (key, raw) in &upstreams.0 {
        if let Some(id) = UpstreamId::parse(key) {
            modes.insert(id, mode(top, raw));
        }
    }
    PinsSpec {
        modes,
        directory: state.map(|written| {
            let path = ["state", "dir"];
            if written.is_empty() {
                check.wrong(&path, "no directory", "such as `state`");
            }
            let place = check.tree.place_of(&path);
            let file = check.findings.sources.get(place.file);
            let base = file.map_or_else(
                || Path::new(".").to_owned(),
                |source| directory_of(Path::new(&source.name)),
            );
            base.join(written).join(BELOW)
        }),
    }
}
