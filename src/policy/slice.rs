//! Slices: of all policies those that matter to one class, one item and one action, ready to be asked.
//!
//! A policy is left out only if it is false whatever the context is, so a slice decides as the whole set does
//! (`tests::properties`). What no policy of a slice needs the context for is decided when the slice is made. Making one costs some
//! tens of microseconds, asking it what its own policies cost; neither grows with policies that are about something else.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicySet, Request, Response,
    RestrictedExpression,
};

use super::{
    Action, Class, ItemKind,
    class::{Classes, Grants, type_of},
    laid::Laid,
    load::Compiled,
    mention::Mentions,
    possible::{Outcomes, World},
    rule::{Rule, uid},
    schema,
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
}

impl ClassRules {
    pub(super) fn of(compiled: &Compiled, classes: &Classes, class: &Class) -> Self {
        let mut rules = Self::default();
        for (rule, number) in compiled.rules.iter().zip(0..) {
            if !is_meant(classes, &class.0, rule) {
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

/// Whether the scope of a policy may mean a class.
fn is_meant(classes: &Classes, who: &Grants, rule: &Rule) -> bool {
    use super::rule::Constraint;
    let is = |ty: &str| ty == type_of(who.kind);
    match &rule.principal {
        Constraint::Any => true,
        Constraint::Is(ty) => is(ty),
        Constraint::Eq((ty, id)) => classes.is(who, (ty, id)),
        Constraint::In((ty, id)) => classes.is_in(who, (ty, id)),
        Constraint::IsIn(kind, (ty, id)) => is(kind) && classes.is_in(who, (ty, id)),
    }
}

/// Whether an action may be permitted, in some context: only then is an item listed for it.
pub(super) fn may_be_permitted(compiled: &Compiled, rules: &[u32], world: &World<'_>) -> bool {
    let mut permitted = false;
    for rule in rules {
        let rule = &compiled.rules[*rule as usize];
        let outcomes = world.rule(rule);
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
    pub(super) fn of(compiled: &Compiled, rules: &[u32], world: &World<'_>) -> Option<Self> {
        let rules: Vec<u32> = rules
            .iter()
            .filter(|rule| world.rule(&compiled.rules[**rule as usize]) != Outcomes::FALSE)
            .copied()
            .collect();
        let mut mentions = Mentions::default();
        let mut policies = PolicySet::new();
        for rule in &rules {
            let rule = &compiled.rules[*rule as usize];
            mentions.join(&rule.mentions);
            let scope = world.scope(rule);
            let policy = if scope == Outcomes::TRUE {
                &rule.bare
            } else {
                &rule.cedar
            };
            policies.add(policy.clone()).ok()?;
        }
        let principal = uid(type_of(world.who.kind), world.classes.id(world.who));
        let resource = uid(world.item.type_name(), &world.item.item.outward);
        let action = uid("Action", world.action.name());
        let entities = [
            principal_entity(&principal, world.classes, world.who)?,
            resource_entity(&resource, world.item)?,
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
        })
    }

    /// What Cedar says of it. `None` if it does not take the entity, which denies.
    pub(super) fn ask(&self, context: Context, more: Option<Entity>) -> Option<Response> {
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

fn principal_entity(uid: &EntityUid, classes: &Classes, who: &Grants) -> Option<Entity> {
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
