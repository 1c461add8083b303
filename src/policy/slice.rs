//! Slices: of all policies those that matter to one class, one item and one action, ready to be asked.
//!
//! A policy is left out only if it is false whatever the context is, so a slice decides as the whole set does
//! (`tests::properties`); of the others the conditions are left that need the context. What no policy of a slice needs the
//! context for is decided when the slice is made. Making one costs some tens of microseconds, asking it what its own policies
//! cost; neither grows with policies that are about something else.
//!
//! There are two ways to ask. [`Slice::weigh`] compares here, and says nothing where that is not exact; then Cedar is asked
//! over the slice. A debug build asks both, every time, and stops where they differ.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicyId, PolicySet, Request, Response,
    RestrictedExpression,
    pst::{BinaryOp, Expr},
};

use super::{
    Action, Class, ItemKind,
    class::{ClassTraits, Classes},
    context::Given,
    laid::Laid,
    load::Compiled,
    mention::Mentions,
    possible::{EvalContext, Outcomes},
    rule::{Rule, uid},
    schema::{self, type_of},
};

/// The policies that a class can be meant by.
#[derive(Debug, Default)]
pub(super) struct ClassRules {
    /// Those that name no resource.
    any: Vec<u32>,
    /// Those that name one, by its number.
    keyed: HashMap<u32, Vec<u32>>,
}

/// The policies that matter to a class, an item and an action.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) rules: Vec<u32>,
    pub(super) policies: PolicySet,
    pub(super) entities: Entities,
    pub(super) principal: EntityUid,
    pub(super) action: EntityUid,
    pub(super) resource: EntityUid,
    /// What they look at together.
    pub(super) mentions: Mentions,
    /// The same policies in the order of their names, with what is not known of each; `None` where not even the scope is.
    residuals: Option<Box<[Residual]>>,
}

/// What of a policy needs the context.
#[derive(Debug)]
struct Residual {
    rule: u32,
    permits: bool,
    /// The expression, and whether it must be true rather than false; in order.
    conditions: Vec<(Arc<Expr>, bool)>,
}

/// Which policies apply, by number, and in the order of their names. Where one forbids, those that permit are not told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) permits: Vec<u32>,
    pub(super) forbids: Vec<u32>,
    /// Those that cannot be evaluated.
    pub(super) failed: Vec<u32>,
}

impl ClassRules {
    pub(super) fn of(compiled: &Compiled, classes: &Classes, class: &Class) -> Self {
        let mut rules = Self::default();
        for (rule, number) in compiled.rules.iter().zip(0..) {
            if !classes.is_meant(&class.0, &rule.principal) {
                continue;
            }
            let named = rule.resource.literal();
            match named.and_then(|(ty, id)| classes.number(ty, id)) {
                Some(key) => rules.keyed.entry(key).or_default().push(number),
                None => rules.any.push(number),
            }
        }
        rules
    }

    /// Those that may be about an item and an action, in order.
    pub(super) fn about(&self, compiled: &Compiled, item: &Laid, action: Action) -> Vec<u32> {
        let mut found: Vec<u32> = if item.item.kind == ItemKind::Template {
            // What it expands to may be any of the resources that policies name.
            self.any
                .iter()
                .chain(self.keyed.values().flatten())
                .copied()
                .collect()
        } else {
            let keyed = item.keys.iter().filter_map(|key| self.keyed.get(key));
            self.any.iter().chain(keyed.flatten()).copied().collect()
        };
        found.retain(|rule| compiled.rules[*rule as usize].actions.has(action));
        found.sort_unstable();
        found
    }
}

/// Whether an action may be permitted, in some context: only then is an item listed for it.
pub(super) fn may_be_permitted(compiled: &Compiled, rules: &[u32], eval: &EvalContext<'_>) -> bool {
    let mut permitted = false;
    for rule in rules {
        let rule = &compiled.rules[*rule as usize];
        let outcomes = eval.rule(rule);
        if rule.permits {
            if outcomes == Outcomes::ERROR {
                return false;
            }
            permitted |= outcomes.has(Outcomes::TRUE);
        } else if !outcomes.has(Outcomes::FALSE) {
            return false;
        }
    }
    permitted
}

impl Slice {
    /// Of these rules those that matter.
    /// `None` if Cedar does not take what it is made of, which denies.
    pub(super) fn of(compiled: &Compiled, rules: &[u32], eval: &EvalContext<'_>) -> Option<Self> {
        let rules: Vec<u32> = rules
            .iter()
            .filter(|rule| eval.rule(&compiled.rules[**rule as usize]) != Outcomes::FALSE)
            .copied()
            .collect();
        let mut mentions = Mentions::default();
        let mut policies = PolicySet::new();
        let mut residuals = Some(Vec::with_capacity(rules.len()));
        for number in &rules {
            let rule = &compiled.rules[*number as usize];
            mentions.join(&rule.mentions);
            let policy = if eval.scope(rule) == Outcomes::TRUE {
                if let Some(residuals) = &mut residuals {
                    residuals.push(Residual::of(*number, rule, eval));
                }
                &rule.bare
            } else {
                residuals = None;
                &rule.cedar
            };
            policies.add(policy.clone()).ok()?;
        }
        let name = |residual: &Residual| &compiled.rules[residual.rule as usize].name;
        if let Some(residuals) = &mut residuals {
            residuals.sort_unstable_by(|one, two| name(one).cmp(name(two)));
        }
        let principal = uid(type_of(eval.who.kind), eval.classes.id(eval.who));
        let resource = uid(eval.item.type_name(), &eval.item.item.outward);
        let action = uid("Action", eval.action.name());
        let entities = [
            principal_entity(&principal, eval.classes, eval.who)?,
            resource_entity(&resource, eval.item)?,
            schema::actions().get(&action).cloned()?,
        ];
        let entities = Entities::from_entities(entities, None).ok()?;
        Some(Self {
            rules,
            policies,
            entities,
            principal,
            action,
            resource,
            mentions,
            residuals: residuals.map(Into::into),
        })
    }

    /// What the policies come to, with the context if one is given. `None` if Cedar does not take it, which denies.
    pub(super) fn verdict(&self, compiled: &Compiled, eval: &EvalContext<'_>) -> Option<Verdict> {
        let weighed = self.weigh(eval);
        // Both ways are one, or the build is broken: checked wherever tests go.
        debug_assert!(
            weighed.is_none() || weighed == self.told(compiled, eval.given),
            "compared here: {weighed:?}; Cedar: {:?}; {:?}",
            self.told(compiled, eval.given),
            eval.given
        );
        weighed.or_else(|| self.told(compiled, eval.given))
    }

    /// What the policies come to, where comparing here tells it exactly.
    fn weigh<'a>(&'a self, eval: &EvalContext<'a>) -> Option<Verdict> {
        let mut verdict = Verdict::default();
        'rules: for residual in self.residuals.as_ref()? {
            for (expr, holds) in &residual.conditions {
                match eval.condition(expr, *holds) {
                    Outcomes::TRUE => {}
                    Outcomes::FALSE => continue 'rules,
                    Outcomes::ERROR => {
                        verdict.failed.push(residual.rule);
                        continue 'rules;
                    }
                    _ => return None,
                }
            }
            let all = if residual.permits {
                &mut verdict.permits
            } else {
                &mut verdict.forbids
            };
            all.push(residual.rule);
        }
        if !verdict.forbids.is_empty() {
            verdict.permits.clear();
        }
        Some(verdict)
    }

    /// What Cedar says the policies come to.
    fn told(&self, compiled: &Compiled, given: Option<&Given<'_>>) -> Option<Verdict> {
        let response = self.ask(given)?;
        let mut verdict = Verdict::default();
        let number = |id: &PolicyId| u32::try_from(*compiled.names.get(id)?).ok();
        let rule = |number: &u32| &compiled.rules[*number as usize];
        let diagnostics = response.diagnostics();
        for number in diagnostics.reason().filter_map(number) {
            let all = if rule(&number).permits {
                &mut verdict.permits
            } else {
                &mut verdict.forbids
            };
            all.push(number);
        }
        for error in diagnostics.errors() {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            verdict.failed.extend(number(error.policy_id()));
        }
        for all in [
            &mut verdict.permits,
            &mut verdict.forbids,
            &mut verdict.failed,
        ] {
            all.sort_unstable_by(|one, two| rule(one).name.cmp(&rule(two).name));
        }
        Some(verdict)
    }

    /// What Cedar says. `None` if it does not take what is given, which denies.
    pub(super) fn ask(&self, given: Option<&Given<'_>>) -> Option<Response> {
        let (context, more) = match given {
            Some(given) => given.cedar()?,
            None => (Context::empty(), None),
        };
        let (principal, action, resource) = (
            self.principal.clone(),
            self.action.clone(),
            self.resource.clone(),
        );
        let request = Request::new(principal, action, resource, context, None).ok()?;
        let authorizer = Authorizer::new();
        Some(match more {
            None => authorizer.is_authorized(&request, &self.policies, &self.entities),
            Some(entity) => {
                let entities = self.entities.clone().add_entities([entity], None).ok()?;
                authorizer.is_authorized(&request, &self.policies, &entities)
            }
        })
    }
}

impl Residual {
    /// What is left of a policy whose scope holds.
    fn of(number: u32, rule: &Rule, eval: &EvalContext<'_>) -> Self {
        let mut conditions = Vec::new();
        for (expr, holds) in &rule.conditions {
            if *holds {
                conjuncts(expr, &mut |part| conditions.push((part.clone(), true)));
            } else {
                conditions.push((expr.clone(), false));
            }
        }
        // What holds in every context need not be asked again; what may fail is no such thing.
        conditions.retain(|(expr, holds)| eval.condition(expr, *holds) != Outcomes::TRUE);
        Self {
            rule: number,
            permits: rule.permits,
            conditions,
        }
    }
}

/// `a`, `b` and `c` of `a && b && c`, in order.
fn conjuncts(expr: &Arc<Expr>, each: &mut impl FnMut(&Arc<Expr>)) {
    if let Expr::BinaryOp {
        op: BinaryOp::And,
        left,
        right,
    } = &**expr
    {
        conjuncts(left, each);
        conjuncts(right, each);
    } else {
        each(expr);
    }
}

fn principal_entity(uid: &EntityUid, classes: &Classes, who: &ClassTraits) -> Option<Entity> {
    let text = |text: &Arc<str>| RestrictedExpression::new_string(text.as_ref().to_owned());
    let mut attributes = HashMap::new();
    for (key, value) in [
        ("name", &who.name),
        ("issuer", &who.issuer),
        ("tenant", &who.tenant),
        ("owner", &who.owner),
    ] {
        if let Some(value) = value {
            attributes.insert(key.to_owned(), text(value));
        }
    }
    let parents = classes.ancestors(who).map(|(ty, id)| self::uid(ty, id));
    Entity::new(uid.clone(), attributes, parents.collect()).ok()
}

/// An item as policies see it.
pub(super) fn resource_entity(uid: &EntityUid, laid: &Laid) -> Option<Entity> {
    let item = &laid.item;
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let tags = item.tags.iter().map(|tag| text(tag));
    let mut attributes = vec![
        ("name", text(&item.outward)),
        ("upstream", text(item.upstream.as_str())),
        ("tags", RestrictedExpression::new_set(tags)),
    ];
    match item.kind {
        ItemKind::Tool => {
            attributes.push(("local", text(&item.local)));
            let known = |(key, flag): (&'static str, Option<bool>)| {
                Some((key, RestrictedExpression::new_bool(flag?)))
            };
            attributes.extend(item.pinned.pairs().into_iter().filter_map(known));
            let claimed = item.claimed.pairs().into_iter().filter_map(known);
            let claimed = claimed.map(|(key, flag)| (key.to_owned(), flag));
            attributes.push(("claimed", RestrictedExpression::new_record(claimed).ok()?));
        }
        ItemKind::Prompt => attributes.push(("local", text(&item.local))),
        ItemKind::Resource | ItemKind::Template => {
            let uri = &item.local;
            attributes.push(("uri", text(uri)));
            attributes.push(("scheme", text(laid.parts.scheme(uri))));
            attributes.push(("host", text(laid.parts.host(uri))));
            attributes.push(("path", text(laid.parts.path(uri))));
        }
    }
    let attributes = attributes
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    let toolsets = item.toolsets.iter();
    let toolsets = toolsets.map(|toolset| self::uid("Toolset", toolset));
    let upstream = self::uid("Upstream", item.upstream.as_str());
    let parents: HashSet<EntityUid> = toolsets.chain([upstream]).collect();
    Entity::new(uid.clone(), attributes.collect(), parents).ok()
}
