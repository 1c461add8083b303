//! Policies laid over a catalog, and the one function that decides.
//!
//! A decision is one look into a bounded cache when no policy of its slice reads the context, and otherwise what comparing costs,
//! or Cedar where that does not tell, for the policies of the slice (`slice`). What a verdict means is `judge`'s.

use std::{
    hash::{Hash, Hasher},
    sync::{Arc, OnceLock},
};

use moka::sync::Cache;

use super::{
    Action, Ask, Class, Denied, Permit, Policy, Problem, Refusal, Subject,
    class::Mixing,
    judge::{denied, evaluate, judge, not_evaluable},
    laid::{Items, Laid},
    possible::{EvalContext, Outcomes},
    slice::{ClassRules, Slice, may_be_permitted},
};
use crate::call::Identity;

/// Slices that are kept; the least used are forgotten.
const SLICES: u64 = 16_384;

/// Policies laid over the items of one catalog. Immutable but for its caches, which are bounded; cloning shares.
#[derive(Debug, Clone)]
pub struct Prepared {
    policy: Policy,
    laid: Arc<Over>,
}

#[derive(Debug)]
struct Over {
    items: Items,
    slices: Cache<Key, Arc<Ready>, Mixing>,
    /// What does not fit, found out when somebody asks.
    problems: OnceLock<Vec<Problem>>,
}

/// Of which class, item and action a slice is: by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    class: u64,
    item: u32,
    action: Action,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.class);
        state.write_u64(u64::from(self.item) << 8 | self.action as u64);
    }
}

/// A slice, and what is known of it beforehand.
#[derive(Debug)]
struct Ready {
    slice: Option<Slice>,
    /// Whether the item is hidden from the class; `None` where the toolset of the endpoint matters.
    hidden: Option<bool>,
    /// The decision, where it is the same in every context.
    decided: Option<Result<Permit, Denied>>,
}

impl Prepared {
    pub(super) fn of(policy: &Policy, items: Vec<super::Item>, previous: Option<&Self>) -> Self {
        let previous = previous.filter(|previous| previous.policy.is_same(policy));
        let previous = previous.map(|previous| &previous.laid.items);
        let items = match policy.set() {
            Some(set) => Items::of(items, &set.classes, previous),
            None => Items::default(),
        };
        Self {
            policy: policy.clone(),
            laid: Arc::new(Over {
                items,
                slices: Cache::builder()
                    .max_capacity(SLICES)
                    .build_with_hasher(Mixing::default()),
                problems: OnceLock::new(),
            }),
        }
    }

    /// The set these are.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Policies that do not fit the items: arguments that a tool does not have, or has of another type. A reload that brings
    /// any is refused; when an upstream brings them later, calls of the items they are about are denied.
    pub fn problems(&self) -> &[Problem] {
        let Some(set) = self.policy.set() else {
            return &[];
        };
        let items = &self.laid.items;
        let fit = || super::fit::problems(&set.compiled, &set.classes, items);
        self.laid.problems.get_or_init(fit)
    }

    pub(super) fn laid(&self) -> &Items {
        &self.laid.items
    }

    /// The items.
    pub fn items(&self) -> impl Iterator<Item = &super::Item> {
        self.laid.items.all.iter().map(|laid| &laid.item)
    }

    /// The class of somebody.
    pub fn class(&self, who: &Identity) -> Class {
        match self.policy.set() {
            Some(set) => set.classes.class(who),
            None => Class::only(),
        }
    }

    /// The same, remembered for as long as the identity is there.
    pub fn class_of(&self, who: &Arc<Identity>) -> Class {
        match self.policy.set() {
            Some(set) => set.classes.class_of(who),
            None => Class::only(),
        }
    }

    /// Whether an item is listed: unless all that can be done with it is denied whatever the arguments and the rest of the
    /// context are. `toolset` is that of the endpoint which lists.
    pub fn lists(&self, class: &Class, item: Subject<'_>, toolset: Option<&str>) -> bool {
        let Some(set) = self.policy.set() else {
            return self.policy.is_unrestricted();
        };
        let laid = self.item(set, &item);
        let rules = set.rules(class);
        self.shows(set, class, &rules, &laid, Some(toolset))
    }

    /// Decides.
    ///
    /// # Errors
    /// [`Denied`], which says why, and whether the item is hidden too.
    pub fn decide(&self, ask: &Ask<'_>) -> Result<Permit, Denied> {
        self.decide_as(&self.class(ask.who), ask)
    }

    /// The same where the class of whoever asks is known already: of these policies, and of this identity.
    ///
    /// # Errors
    /// As [`Prepared::decide`].
    pub fn decide_as(&self, class: &Class, ask: &Ask<'_>) -> Result<Permit, Denied> {
        debug_assert_eq!(*class, self.class(ask.who), "the class of somebody else");
        let Some(set) = self.policy.set() else {
            return if self.policy.is_unrestricted() {
                Ok(Permit::unasked())
            } else {
                Err(Denied::hidden())
            };
        };
        let items = &self.laid.items;
        let subject = ask.item.as_used(ask.action);
        let Some(number) = items.find(subject.kind, subject.upstream, subject.local) else {
            let laid = Laid::unlisted(&subject, &set.classes);
            let ready = self.ready(set, class, &laid, ask.action);
            return self.settle(set, class, &laid, &ready, ask);
        };
        let laid = &items.all[number as usize];
        let key = Key {
            class: class.0.number,
            item: number,
            action: ask.action,
        };
        if let Some(ready) = self.laid.slices.get(&key) {
            return self.settle(set, class, laid, &ready, ask);
        }
        let ready = Arc::new(self.ready(set, class, laid, ask.action));
        self.laid.slices.insert(key, ready.clone());
        let decided = self.settle(set, class, laid, &ready, ask);
        decided.map_err(|denied| Denied {
            anew: true,
            ..denied
        })
    }

    pub(super) fn item(&self, set: &super::Set, subject: &Subject<'_>) -> Arc<Laid> {
        let items = &self.laid.items;
        match items.find(subject.kind, subject.upstream, subject.local) {
            Some(number) => items.all[number as usize].clone(),
            None => Arc::new(Laid::unlisted(subject, &set.classes)),
        }
    }

    fn shows(
        &self,
        set: &super::Set,
        class: &Class,
        rules: &ClassRules,
        item: &Laid,
        toolset: Option<Option<&str>>,
    ) -> bool {
        item.item.kind.uses().iter().any(|action| {
            let eval = EvalContext {
                classes: &set.classes,
                who: &class.0,
                action: *action,
                item,
                toolset,
                given: None,
            };
            let rules = rules.about(&set.compiled, item, *action);
            may_be_permitted(&set.compiled, &rules, &eval)
        })
    }

    fn ready(&self, set: &super::Set, class: &Class, item: &Laid, action: Action) -> Ready {
        let compiled = &set.compiled;
        let rules = set.rules(class);
        let eval = EvalContext {
            classes: &set.classes,
            who: &class.0,
            action,
            item,
            toolset: None,
            given: None,
        };
        let about = rules.about(compiled, item, action);
        let looks_at_toolset = |action: &Action| {
            let about = rules.about(compiled, item, *action);
            about
                .iter()
                .any(|rule| compiled.rules[*rule as usize].mentions.fields.toolset)
        };
        let shown = self.shows(set, class, &rules, item, None);
        let hidden = if shown && item.item.kind.uses().iter().any(looks_at_toolset) {
            None
        } else {
            Some(!shown)
        };
        let slice = Slice::of(compiled, &about, &eval);
        let decided = match &slice {
            None => Some(Err(not_evaluable(set))),
            // Not even the arguments are looked at: a hidden item is to answer as fast as an unknown one.
            Some(slice) if hidden == Some(true) && action.is_use() => {
                let rules = slice
                    .rules
                    .iter()
                    .map(|rule| &compiled.rules[*rule as usize]);
                let forbid = rules
                    .filter(|rule| !rule.permits && !eval.rule(rule).has(Outcomes::FALSE))
                    .map(|rule| rule.name.clone());
                let policies = sorted(forbid.collect());
                let text = if policies.is_empty() {
                    "no policy permits this"
                } else {
                    "a policy forbids this"
                };
                Some(Err(denied(set, Refusal::Denied, policies, text)))
            }
            Some(slice) if !slice.mentions.reads_context() => {
                Some(slice.verdict(compiled, &eval).map_or_else(
                    || Err(not_evaluable(set)),
                    |verdict| judge(set, slice, &verdict),
                ))
            }
            Some(_) => None,
        };
        let decided = decided.map(|decided| {
            decided.map_err(|denied| Denied {
                hidden: hidden.unwrap_or(false),
                ..denied
            })
        });
        Ready {
            slice,
            hidden,
            decided,
        }
    }

    /// Decides what is not yet decided.
    fn settle(
        &self,
        set: &super::Set,
        class: &Class,
        item: &Laid,
        ready: &Ready,
        ask: &Ask<'_>,
    ) -> Result<Permit, Denied> {
        let decided = match (&ready.decided, &ready.slice) {
            (Some(decided), _) => decided.clone(),
            (None, Some(slice)) => evaluate(set, slice, class, item, ask),
            (None, None) => Err(not_evaluable(set)),
        };
        decided.map_err(|mut denied| {
            denied.hidden = ready.hidden.unwrap_or_else(|| {
                let rules = set.rules(class);
                !self.shows(set, class, &rules, item, Some(ask.circumstances.toolset))
            });
            denied
        })
    }
}

fn sorted(mut names: Vec<Arc<str>>) -> Vec<Arc<str>> {
    names.sort_unstable();
    names
}
