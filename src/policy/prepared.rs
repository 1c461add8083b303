//! Policies laid over a catalog, and the one function that decides.
//!
//! A decision is one look into a bounded cache when no policy of its slice reads the context, and otherwise what Cedar needs for
//! the policies of the slice. Any error that Cedar reports denies, whatever it decided (SECURITY AUTHZ-2).

use std::sync::{Arc, OnceLock};

use cedar_policy::{Context, Decision, Response};
use moka::sync::Cache;

use super::{
    Action, Ask, Class, Denied, Permit, Policy, Problem, Refusal, Subject,
    ask::{Approval, Decided},
    context::context,
    laid::{Items, Laid},
    load::Compiled,
    possible::{Outcomes, World},
    represent::Unrepresentable,
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
    slices: Cache<(Class, u32, Action), Arc<Ready>>,
    /// What does not fit, found out when somebody asks.
    problems: OnceLock<Vec<Problem>>,
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
                slices: Cache::new(SLICES),
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
        let Some(set) = self.policy.set() else {
            return if self.policy.is_unrestricted() {
                Ok(Permit::unasked())
            } else {
                Err(Denied::hidden())
            };
        };
        let class = set.classes.class(ask.who);
        let items = &self.laid.items;
        let subject = ask.item.as_used(ask.action);
        let Some(number) = items.find(subject.kind, subject.upstream, subject.local) else {
            let laid = Laid::unlisted(&subject, &set.classes);
            let ready = self.ready(set, &class, &laid, ask.action);
            return self.settle(set, &class, &laid, &ready, ask);
        };
        let laid = &items.all[number as usize];
        let key = (class, number, ask.action);
        let ready = self.laid.slices.get(&key).unwrap_or_else(|| {
            let ready = Arc::new(self.ready(set, &key.0, laid, ask.action));
            self.laid.slices.insert(key.clone(), ready.clone());
            ready
        });
        self.settle(set, &key.0, laid, &ready, ask)
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
            let world = World {
                classes: &set.classes,
                who: &class.0,
                action: *action,
                item,
                toolset,
            };
            let rules = rules.about(&set.compiled, item, *action);
            may_be_permitted(&set.compiled, &rules, &world)
        })
    }

    fn ready(&self, set: &super::Set, class: &Class, item: &Laid, action: Action) -> Ready {
        let compiled = &set.compiled;
        let rules = set.rules(class);
        let world = World {
            classes: &set.classes,
            who: &class.0,
            action,
            item,
            toolset: None,
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
        let slice = Slice::of(compiled, &about, &world);
        let decided = match &slice {
            None => Some(Err(denied(
                set,
                Refusal::Error,
                Vec::new(),
                "policy cannot be evaluated here",
            ))),
            // Not even the arguments are looked at: a hidden item is to answer as fast as an unknown one.
            Some(slice) if hidden == Some(true) && action.is_use() => {
                let rules = slice
                    .rules
                    .iter()
                    .map(|rule| &compiled.rules[*rule as usize]);
                let forbid = rules
                    .filter(|rule| !rule.permits && !world.rule(rule).has(Outcomes::FALSE))
                    .map(|rule| rule.name.clone());
                let policies = sorted(forbid.collect());
                let text = if policies.is_empty() {
                    "no policy permits this"
                } else {
                    "a policy forbids this"
                };
                Some(Err(denied(set, Refusal::Denied, policies, text)))
            }
            Some(slice) if !slice.mentions.reads_context() => Some(
                slice
                    .ask(Context::empty(), None)
                    .map_or_else(|| Err(odd(set)), |response| judge(set, slice, &response)),
            ),
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
            (None, Some(slice)) => evaluate(set, slice, item, ask),
            (None, None) => Err(odd(set)),
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

/// Decides with the context.
fn evaluate(set: &super::Set, slice: &Slice, item: &Laid, ask: &Ask<'_>) -> Result<Permit, Denied> {
    let (context, text) = match context(ask, item, &slice.mentions, &[]) {
        Ok(context) => context,
        Err(fault) => return Err(unrepresentable(set, slice, &fault)),
    };
    let Some(response) = slice.ask(context, text) else {
        return Err(odd(set));
    };
    judge(set, slice, &response).map_err(|denied| {
        let plainly = denied.reason == Refusal::Denied && denied.policies.is_empty();
        match plainly.then(|| step_up(set, slice, item, ask)).flatten() {
            Some(better) => better,
            None => denied,
        }
    })
}

/// What Cedar's answer means.
fn judge(set: &super::Set, slice: &Slice, response: &Response) -> Result<Permit, Denied> {
    let compiled = &set.compiled;
    let rule =
        |id: &cedar_policy::PolicyId| compiled.names.get(id).map(|rule| &compiled.rules[*rule]);
    let name = |id: &cedar_policy::PolicyId| rule(id).map(|rule| rule.name.clone());
    let diagnostics = response.diagnostics();
    let mut failed = diagnostics.errors().peekable();
    if failed.peek().is_some() {
        let policies: Vec<_> = failed
            .filter_map(|error| {
                let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
                name(error.policy_id())
            })
            .collect();
        let text = "a policy about this could not be evaluated, so it is denied; an argument that it needs may be missing";
        return Err(denied(set, Refusal::Error, sorted(policies), text));
    }
    let policies = sorted(diagnostics.reason().filter_map(name).collect());
    match response.decision() {
        Decision::Allow => {
            let rules = diagnostics.reason().filter_map(rule);
            let approval = rules.filter_map(|rule| {
                Some(Approval {
                    policy: rule.name.clone(),
                    within: rule.approval?,
                })
            });
            let approval = approval.min_by_key(|approval| {
                let within = approval.within.unwrap_or(std::time::Duration::MAX);
                (within, approval.policy.clone())
            });
            Ok(Permit::by(Decided {
                policies,
                digest: compiled.digest.clone(),
                approval,
            }))
        }
        Decision::Deny => {
            let reasons = diagnostics.reason().filter_map(rule);
            let mut reasons: Vec<&str> =
                reasons.filter_map(|rule| rule.reason.as_deref()).collect();
            reasons.sort_unstable();
            let text = if !reasons.is_empty() {
                reasons.join("; ")
            } else if !policies.is_empty() {
                "a policy forbids this".to_owned()
            } else {
                would_permit(compiled, slice)
            };
            Err(denied(set, Refusal::Denied, policies, &text))
        }
    }
}

/// What is told where no policy permits: what the policies that might have look at, or the reasons that they give.
fn would_permit(compiled: &Compiled, slice: &Slice) -> String {
    let mut looked = super::mention::Mentions::default();
    let mut reasons = Vec::new();
    for rule in slice
        .rules
        .iter()
        .map(|rule| &compiled.rules[*rule as usize])
    {
        if rule.permits {
            looked.join(&rule.mentions);
            reasons.extend(rule.reason.as_deref());
        }
    }
    if !reasons.is_empty() {
        return reasons.join("; ");
    }
    let names = looked.args.below.keys().chain(&looked.tags);
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match &names[..] {
        [] if looked.reads_context() => "no policy permits this under these circumstances".into(),
        [] => "no policy permits this".into(),
        names => format!(
            "no policy permits this with these arguments; policies look at {}",
            names.join(", ")
        ),
    }
}

/// Whether scopes that policies look for would help, and which.
fn step_up(set: &super::Set, slice: &Slice, item: &Laid, ask: &Ask<'_>) -> Option<Denied> {
    let compiled = &set.compiled;
    for rule in slice
        .rules
        .iter()
        .map(|rule| &compiled.rules[*rule as usize])
    {
        let lacking = rule.mentions.scopes.difference(&ask.who.scopes);
        let lacking: Vec<Arc<str>> = lacking.cloned().collect();
        if !rule.permits || lacking.is_empty() {
            continue;
        }
        let (context, text) = context(ask, item, &slice.mentions, &lacking).ok()?;
        let response = slice.ask(context, text)?;
        if judge(set, slice, &response).is_ok() {
            let text = format!("this needs the scope {}", lacking.join(" "));
            let policies = vec![rule.name.clone()];
            return Some(denied(set, Refusal::Scope(lacking), policies, &text));
        }
    }
    None
}

fn unrepresentable(set: &super::Set, slice: &Slice, fault: &Unrepresentable) -> Denied {
    let compiled = &set.compiled;
    let top = fault.path.split('.').next().unwrap_or_default();
    let rules = slice
        .rules
        .iter()
        .map(|rule| &compiled.rules[*rule as usize]);
    let policies = rules
        .filter(|rule| {
            let looked = &rule.mentions;
            looked.args.below.contains_key(top) || looked.tags.contains(&*fault.path)
        })
        .map(|rule| rule.name.clone());
    let text = match fault.wanted {
        Some(wanted) => format!("policy looks at `{}`, which must be {wanted}", fault.path),
        None => format!(
            "policy looks at `{}`, which the schema gives no type that policy knows, so it may not be given",
            fault.path
        ),
    };
    denied(set, Refusal::Unrepresentable, policies.collect(), &text)
}

fn odd(set: &super::Set) -> Denied {
    denied(
        set,
        Refusal::Error,
        Vec::new(),
        "policy cannot be evaluated here",
    )
}

fn denied(set: &super::Set, reason: Refusal, policies: Vec<Arc<str>>, text: &str) -> Denied {
    Denied {
        reason,
        hidden: false,
        policies,
        digest: set.compiled.digest.clone(),
        text: text.to_owned(),
    }
}

fn sorted(mut names: Vec<Arc<str>>) -> Vec<Arc<str>> {
    names.sort_unstable();
    names
}
