//! What verdicts of policies mean: permits, and denials in words.
//!
//! Any error of a policy denies, whatever the others say (SECURITY AUTHZ-2). A denial tells what policies look at, never what
//! it was compared with.

use std::sync::Arc;

use super::{
    Ask, Class, Denied, Permit, Refusal,
    ask::{Approval, Decided},
    context::Given,
    laid::Laid,
    load::Compiled,
    mention::Mentions,
    possible::EvalContext,
    represent::Unrepresentable,
    rule::Rule,
    slice::{Slice, Verdict},
};

/// Decides with the context.
pub(super) fn evaluate(
    set: &super::Set,
    slice: &Slice,
    class: &Class,
    item: &Laid,
    ask: &Ask<'_>,
) -> Result<Permit, Denied> {
    let given = match Given::of(ask, item, &slice.mentions, &[]) {
        Ok(given) => given,
        Err(fault) => return Err(unrepresentable(set, slice, &fault)),
    };
    let eval = EvalContext {
        classes: &set.classes,
        who: &class.0,
        action: ask.action,
        item,
        toolset: Some(given.toolset),
        given: Some(&given),
    };
    let Some(verdict) = slice.verdict(&set.compiled, &eval) else {
        return Err(not_evaluable(set));
    };
    judge(set, slice, &verdict).map_err(|denied| {
        let plainly = denied.reason == Refusal::Denied && denied.policies.is_empty();
        match plainly.then(|| step_up(set, slice, &eval, ask)).flatten() {
            Some(better) => better,
            None => denied,
        }
    })
}

/// What a verdict means.
pub(super) fn judge(set: &super::Set, slice: &Slice, verdict: &Verdict) -> Result<Permit, Denied> {
    let compiled = &set.compiled;
    let names = |numbers: &[u32]| {
        rules(compiled, numbers)
            .map(|rule| rule.name.clone())
            .collect()
    };
    if !verdict.failed.is_empty() {
        let text = "a policy about this could not be evaluated, so it is denied; an argument that it needs may be missing";
        return Err(denied(set, Refusal::Error, names(&verdict.failed), text));
    }
    if !verdict.forbids.is_empty() {
        let mut reasons: Vec<&str> = rules(compiled, &verdict.forbids)
            .filter_map(|rule| rule.reason.as_deref())
            .collect();
        reasons.sort_unstable();
        let text = if reasons.is_empty() {
            "a policy forbids this".to_owned()
        } else {
            reasons.join("; ")
        };
        return Err(denied(set, Refusal::Denied, names(&verdict.forbids), &text));
    }
    if verdict.permits.is_empty() {
        let text = would_permit(compiled, slice);
        return Err(denied(set, Refusal::Denied, Vec::new(), &text));
    }
    let approvals = rules(compiled, &verdict.permits).filter_map(|rule| {
        Some(Approval {
            policy: rule.name.clone(),
            within: rule.approval?,
        })
    });
    let approval = approvals.min_by_key(|approval| {
        let within = approval.within.unwrap_or(std::time::Duration::MAX);
        (within, approval.policy.clone())
    });
    Ok(Permit::by(Decided {
        policies: names(&verdict.permits),
        digest: compiled.digest.clone(),
        approval,
    }))
}

/// The policies of these numbers.
fn rules<'a>(compiled: &'a Compiled, numbers: &'a [u32]) -> impl Iterator<Item = &'a Rule> {
    numbers
        .iter()
        .map(|number| &compiled.rules[*number as usize])
}

/// What is told where no policy permits: what the policies that might have look at, or the reasons that they give.
fn would_permit(compiled: &Compiled, slice: &Slice) -> String {
    let mut looked = Mentions::default();
    let mut reasons = Vec::new();
    for rule in rules(compiled, &slice.rules) {
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
fn step_up(
    set: &super::Set,
    slice: &Slice,
    eval: &EvalContext<'_>,
    ask: &Ask<'_>,
) -> Option<Denied> {
    for rule in rules(&set.compiled, &slice.rules) {
        let lacking = rule.mentions.scopes.difference(&ask.who.scopes);
        let lacking: Vec<Arc<str>> = lacking.cloned().collect();
        if !rule.permits || lacking.is_empty() {
            continue;
        }
        let given = Given::of(ask, eval.item, &slice.mentions, &lacking).ok()?;
        let eval = EvalContext {
            given: Some(&given),
            ..*eval
        };
        let verdict = slice.verdict(&set.compiled, &eval)?;
        if judge(set, slice, &verdict).is_ok() {
            let text = format!("this needs the scope {}", lacking.join(" "));
            let policies = vec![rule.name.clone()];
            return Some(denied(set, Refusal::Scope(lacking), policies, &text));
        }
    }
    None
}

fn unrepresentable(set: &super::Set, slice: &Slice, fault: &Unrepresentable) -> Denied {
    let compiled = &set.compiled;
    let policies = rules(compiled, &slice.rules)
        .filter(|rule| {
            let looked = &rule.mentions;
            let mut arguments = looked.args.below.keys();
            arguments.any(|name| fault.is_within(name)) || looked.tags.contains(&*fault.path)
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

/// The denial where Cedar does not take what it is asked.
pub(super) fn not_evaluable(set: &super::Set) -> Denied {
    denied(
        set,
        Refusal::Error,
        Vec::new(),
        "policy cannot be evaluated here",
    )
}

/// A denial, of an item that is not hidden.
pub(super) fn denied(
    set: &super::Set,
    reason: Refusal,
    policies: Vec<Arc<str>>,
    text: &str,
) -> Denied {
    Denied {
        reason,
        hidden: false,
        anew: false,
        policies,
        digest: set.compiled.digest.clone(),
        text: text.to_owned(),
    }
}
