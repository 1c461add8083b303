//! What is looked at, and what comes of it.

use std::sync::Arc;

use secrecy::SecretString;

use super::{rules::Actions, work::Exhausted};
use crate::{
    call::{CallId, Trail},
    findings::{Action, Direction},
    json::Json,
    metrics::reached,
    protocol::UpstreamId,
};

/// What content is looked at: whose it is, which way it goes, and what is done about what is in it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// The upstream that it is of or for.
    pub upstream: Option<&'a UpstreamId>,
    /// The tool, prompt or resource, by its upstream's own name.
    pub item: Option<&'a Arc<str>>,
    /// The call that it belongs to, with the trail that keeps for its record what is found.
    pub call: Option<(CallId, &'a Trail)>,
    /// What is done.
    pub actions: &'a Actions,
    /// Credentials that the gateway holds for this alone, looked for beside those that it always holds.
    pub lent: &'a [SecretString],
    /// Members of the value itself that are handles, ours or others': where they are strings they are not looked at.
    pub skip: &'a [&'a str],
    /// Where questions stand in the value, whose addresses nobody edits (C11).
    pub questions: Questions,
    /// Which of its strings are read as one text.
    pub blocks: Blocks,
    /// Whether a changed value is as good as none: the reader knows its digest (PROTOCOL E, skills).
    pub sealed: bool,
}

impl<'a> Subject<'a> {
    /// The call that it belongs to.
    pub(super) fn call(&self) -> Option<CallId> {
        self.call.map(|(call, _)| call)
    }

    /// The trail of that call.
    pub(super) fn trail(&self) -> Option<&'a Trail> {
        self.call.map(|(_, trail)| trail)
    }

    /// Content that goes this way and is nobody's in particular, with what the gateway holds for it alone: whoever has something
    /// looked at says what that is, if it is nothing.
    pub const fn new(direction: Direction, actions: &'a Actions, lent: &'a [SecretString]) -> Self {
        Self {
            direction,
            upstream: None,
            item: None,
            call: None,
            actions,
            lent,
            skip: &[],
            questions: Questions::None,
            blocks: Blocks::Named,
            sealed: false,
        }
    }
}

/// Where in a value questions to a person stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Questions {
    /// Nowhere.
    #[default]
    None,
    /// It is an `inputRequests` object.
    Requests,
    /// In its member `inputRequests`, as in the state of a task.
    State,
    /// In the member `elicitations` of its `data`, of addresses to visit: it is an error -32042 of 2025-11-25.
    Visits,
}

/// Which strings of a value are blocks of text: they are read as one, too, and nothing hides where they meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Members of the names that blocks of text have: `text`, `message` and `data`.
    Named,
    /// All but the names of members: the value is one thing that is said.
    All,
}

/// What comes of looking.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing was found, or nothing that anything is done about: the value goes on as it is.
    Clean,
    /// Something was found and noted; the value goes on as it is.
    Flagged(Marks),
    /// This goes on in its place.
    Changed(Json, Marks),
    /// Nothing goes on.
    Blocked(Blocked),
}

/// Why content does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The stable word for `data.reason`: `content_blocked`, or `scan_budget`.
    pub reason: &'static str,
    /// The class word of what was found, or `scan_budget`, `requested_schema`, `integrity`.
    pub kind: &'static str,
    /// The rule, where one matched; the word of the bound, where one was reached; [`MISFIT`] where what was found could be taken out, but not from there.
    pub rule: Option<Arc<str>>,
    /// Where, as a JSON pointer; empty for the whole.
    pub place: String,
}

/// The most findings of one value that are told one by one; the rest are counted.
pub(super) const TOLD: usize = 64;

/// The word for content that does not go on.
pub(super) const REASON: &str = "content_blocked";

/// The word for content that was not looked at to the end.
pub const BUDGET: &str = "scan_budget";

/// In place of a rule: without what was found the value would not fit the output schema of its tool.
pub const MISFIT: &str = "output_schema";

impl Blocked {
    /// For a look that took more than it may, of this.
    pub(super) fn budget(exhausted: Exhausted) -> Self {
        let bound = exhausted.bound();
        reached(bound);
        Self {
            reason: BUDGET,
            rule: Some(bound.word().into()),
            ..Self::whole(BUDGET)
        }
    }

    /// Why, for whoever does not get it: what it holds `must_not` do that, or nobody knows what it holds.
    pub fn why(&self, must_not: &str) -> String {
        if self.reason == BUDGET {
            let bound = self.rule.as_deref().unwrap_or(BUDGET);
            return format!("looking at it took more than `{bound}` allows");
        }
        format!("it holds what must not {must_not} ({})", self.kind)
    }

    /// For a value that no longer fits its schema without what these tell of.
    pub fn misfit(marks: &Marks) -> Self {
        let kind = marks.0.first().map_or("integrity", |(_, kind, ..)| kind);
        Self {
            rule: Some(MISFIT.into()),
            ..Self::whole(kind)
        }
    }

    /// For the whole of a value, for this.
    pub(crate) const fn whole(kind: &'static str) -> Self {
        Self {
            reason: REASON,
            kind,
            rule: None,
            place: String::new(),
        }
    }
}

/// What was done, for whoever gets the content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Vec<(Action, &'static str, Arc<str>, u32)>);

/// The most marks of one answer; more are not told one by one.
const MARKS: usize = 32;

impl Marks {
    pub(super) fn add(&mut self, action: Action, kind: &'static str, rule: &Arc<str>, times: u32) {
        let same = |mark: &&mut (Action, &'static str, Arc<str>, u32)| {
            mark.0 == action && mark.1 == kind && mark.2 == *rule
        };
        if let Some(mark) = self.0.iter_mut().find(same) {
            mark.3 = mark.3.saturating_add(times);
        } else if self.0.len() < MARKS {
            self.0.push((action, kind, rule.clone(), times));
        }
    }

    /// Takes in those of another part of the same answer.
    pub fn join(&mut self, other: &Self) {
        for (action, kind, rule, count) in &other.0 {
            self.add(*action, kind, rule, *count);
        }
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As they are told in `_meta`: `[{"action","class","rule","count"}]`.
    pub fn told(&self) -> Json {
        #[derive(serde::Serialize)]
        struct Told<'a> {
            action: &'a str,
            class: &'a str,
            rule: &'a str,
            count: u32,
        }
        let mut told: Vec<Told<'_>> = self
            .0
            .iter()
            .map(|(action, class, rule, count)| Told {
                action: action.word(),
                class,
                rule,
                count: *count,
            })
            .collect();
        told.sort_by(|one, two| {
            (one.action, one.class, one.rule).cmp(&(two.action, two.class, two.rule))
        });
        Json::of(&told)
    }
}

/// What was found in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The class word.
    pub kind: &'static str,
    /// The rule.
    pub rule: Arc<str>,
    /// What is to be done.
    pub action: Action,
    /// Whether it only may be an attempt on the model: then it is flagged, and whoever quarantines definitions holds the
    /// definition back until somebody approved it (CAT-4).
    pub doubt: bool,
    /// Where, as a JSON pointer.
    pub place: String,
}
