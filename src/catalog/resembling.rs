//! Tools and prompts of several upstreams that models may take for one another (PRODUCT 11).
//!
//! Guarantees: told to operators, of the one that stands later in the configured order; nothing is left out for it, since each
//! has an outward name of its own.

use std::collections::HashMap;

use super::{
    part::Part,
    report::{Reason, Report, Reports},
};
use crate::protocol::methods::ListKind;

/// Tells of every item that is called like one of another upstream, or looks so.
pub(super) fn report(parts: &[Part], reports: &mut Vec<Report>) {
    for kind in [ListKind::Tools, ListKind::Prompts] {
        let mut first = HashMap::new();
        for part in parts {
            let mut told = Reports::new(part.id().clone(), kind);
            for item in &part.kept[kind as usize] {
                let local = &item.route.local;
                let (upstream, name) = first
                    .entry(&*item.outline)
                    .or_insert_with(|| (part.id().clone(), local.clone()));
                if upstream == part.id() {
                    continue;
                }
                let upstream = upstream.clone();
                told.add(
                    local,
                    if *name == *local {
                        Reason::Shadows(upstream)
                    } else {
                        Reason::Resembles(upstream, name.to_string())
                    },
                );
            }
            reports.extend(told.into_list());
        }
    }
}
