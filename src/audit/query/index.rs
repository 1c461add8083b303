//! Which segments certainly hold nothing of what is looked for.

use std::{fs, path::Path};

use super::Filter;
use crate::audit::{
    index::{Index, parts},
    log::INDEX,
};

impl Index {
    /// The index beside a segment, if there is one and it was written for what is there.
    pub(in crate::audit) fn beside(segment: &Path) -> Option<Self> {
        let text = fs::read(segment.with_extension(INDEX)).ok()?;
        let index: Self = serde_json::from_slice(&text).ok()?;
        (fs::metadata(segment).ok()?.len() == index.length).then_some(index)
    }

    /// Whether the segment may hold what is looked for.
    pub(super) fn may_hold(&self, filter: &Filter) -> bool {
        let Filter {
            since,
            until,
            principal,
            upstream,
            name,
            method,
            outcome,
            decision: _,
            reason,
            finding,
            event,
            call,
        } = filter;
        since.as_ref().is_none_or(|since| self.until >= *since)
            && until.as_ref().is_none_or(|until| self.since < *until)
            && self.principals.may_hold(principal.as_ref())
            && self.upstreams.may_hold(upstream.as_ref())
            && self.names.may_hold(name.as_ref())
            && self.methods.may_hold(method.as_ref())
            && self.outcomes.may_hold(outcome.as_ref())
            && self.decisions.may_hold(filter.decision_told())
            && self.reasons.may_hold(reason.as_ref())
            && self.findings.may_hold(finding.as_ref())
            && self.events.may_hold(event.as_ref())
            && call.as_deref().is_none_or(|call| self.may_hold_call(call))
    }

    fn may_hold_call(&self, call: &str) -> bool {
        let Some((process, number)) = parts(call) else {
            // No reference of ours: nothing is ruled out.
            return true;
        };
        let known = self.calls.get(process);
        known.is_some_and(|(least, greatest)| (*least..=*greatest).contains(&number))
    }
}
