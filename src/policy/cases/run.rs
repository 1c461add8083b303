//! Running cases: whether a set decides what it is meant to.

use std::time::SystemTime;

use serde::Serialize;

use super::{Case, Expect};
use crate::{
    json::Json,
    policy::{
        Ask, Circumstances, Denied, Item, ItemKind, Permit, Policy, Prepared, Refusal, Subject,
    },
    protocol::{Revision, UpstreamId},
};

/// How a case came out.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// Its line in `cases.yaml`.
    pub line: usize,
    /// What is otherwise than expected; `None` when nothing is.
    pub failure: Option<String>,
    /// Whether that is for want of what it is about: none of the items has the name.
    #[serde(skip)]
    pub unknown: bool,
}

impl Policy {
    /// Runs the cases of the set: over the items of its own file, and over those of `live`, which come first. What a case says
    /// of no moment is asked about `now`.
    pub fn run_cases(&self, live: &[Item], now: SystemTime) -> Vec<Outcome> {
        let Some(set) = self.set() else {
            return Vec::new();
        };
        let cases = &set.compiled.cases;
        let mut items = live.to_vec();
        for item in &cases.items {
            let same = |other: &Item| (other.kind, &other.outward) == (item.kind, &item.outward);
            if !items.iter().any(same) {
                items.push(item.clone());
            }
        }
        let prepared = self.prepare(items.clone(), None);
        let outcome = |case: &Case| Outcome {
            name: case.name.clone(),
            line: case.line,
            failure: case.failure(&prepared, &items, now),
            unknown: case.subject(&items).is_none(),
        };
        cases.cases.iter().map(outcome).collect()
    }

    /// The items that `cases.yaml` tells of.
    pub fn case_items(&self) -> &[Item] {
        self.set().map_or(&[], |set| &set.compiled.cases.items)
    }
}

impl Case {
    /// What it is about: kind, upstream and original name.
    fn subject<'a>(&'a self, items: &'a [Item]) -> Option<(ItemKind, UpstreamId, &'a str)> {
        let kinds = |item: &&Item| item.kind.uses().contains(&self.action) || !self.action.is_use();
        let known = items
            .iter()
            .filter(|item| *item.outward == *self.item)
            .find(kinds);
        if let Some(item) = known {
            return Some((item.kind, item.upstream.clone(), &item.local));
        }
        // A resource need not be listed anywhere: its upstream is that of the prefix.
        let (id, local) = self.item.split_once('+')?;
        Some((ItemKind::Resource, UpstreamId::parse(id)?, local))
    }

    fn failure(&self, prepared: &Prepared, items: &[Item], now: SystemTime) -> Option<String> {
        let Some((kind, upstream, local)) = self.subject(items) else {
            return Some(format!("`{}` is not among the items", self.item));
        };
        let decided = prepared.decide(&Ask {
            who: &self.who,
            action: self.action,
            item: Subject {
                kind,
                upstream: &upstream,
                local,
                outward: &self.item,
            },
            arguments: Some(&self.args),
            circumstances: Circumstances {
                revision: Revision::LATEST_MODERN,
                address: self.address,
                toolset: self.toolset.as_deref(),
                now: self.now.unwrap_or(now),
            },
        });
        if !self.expect.is_met_by(&decided) {
            let expected = Json::of(&self.expect);
            let expected = expected.as_str().trim_matches('"');
            return Some(format!("expected {expected}, but it is {}", told(&decided)));
        }
        let by = self.by.as_deref()?;
        let policies = match &decided {
            Ok(permit) => permit.policies(),
            Err(denied) => &denied.policies,
        };
        if policies.iter().any(|policy| **policy == *by) {
            return None;
        }
        Some(format!(
            "expected `{by}` to decide, but it is {}",
            told(&decided)
        ))
    }
}

impl Expect {
    fn is_met_by(self, decided: &Result<Permit, Denied>) -> bool {
        match (self, decided) {
            (Self::Allow, Ok(permit)) => permit.approval().is_none(),
            (Self::Approval, Ok(permit)) => permit.approval().is_some(),
            (Self::Allow | Self::Approval, Err(_)) => false,
            (Self::Deny | Self::Hidden | Self::Scope | Self::Error, Ok(_)) => false,
            (Self::Deny, Err(_)) => true,
            (Self::Hidden, Err(denied)) => denied.hidden,
            (Self::Scope, Err(denied)) => matches!(denied.reason, Refusal::Scope(_)),
            (Self::Error, Err(denied)) => {
                matches!(denied.reason, Refusal::Error | Refusal::Unrepresentable)
            }
        }
    }
}

/// A decision in words.
fn told(decided: &Result<Permit, Denied>) -> String {
    let (word, policies) = match decided {
        Ok(permit) if permit.approval().is_some() => ("approval".to_owned(), permit.policies()),
        Ok(permit) => ("allow".to_owned(), permit.policies()),
        Err(denied) if denied.hidden => ("hidden".to_owned(), &denied.policies[..]),
        Err(denied) => (
            format!("deny ({}: {})", denied.reason.word(), denied.text),
            &denied.policies[..],
        ),
    };
    let policies: Vec<&str> = policies.iter().map(|policy| &**policy).collect();
    match &policies[..] {
        [] => word,
        policies => format!("{word}, by {}", policies.join(", ")),
    }
}
