//! One policy, taken apart as far as deciding quickly needs it.

use std::{sync::Arc, time::Duration};

use cedar_policy::{
    Effect, EntityUid,
    pst::{self, Clause, EntityOrSlot, Expr},
};

use super::{Action, mention::Mentions};

/// One policy.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its `@id`, or file and line.
    pub(super) name: Arc<str>,
    /// The policy itself, with `name` as its id.
    pub(super) cedar: cedar_policy::Policy,
    /// The same with an empty scope: for where the scope is known to hold, which Cedar need not find out again.
    pub(super) bare: cedar_policy::Policy,
    pub(super) permits: bool,
    pub(super) principal: Constraint,
    pub(super) actions: Actions,
    pub(super) resource: Constraint,
    /// The expression, and whether it must be true rather than false.
    pub(super) conditions: Vec<(Arc<Expr>, bool)>,
    pub(super) mentions: Mentions,
    /// `@require("approval")`, and for how long an answer counts.
    pub(super) approval: Option<Option<Duration>>,
    /// `@reason`: what is told when it forbids, or would have permitted.
    pub(super) reason: Option<Arc<str>>,
    /// Index of the file.
    pub(super) file: usize,
    /// Where it stands in the file, in bytes.
    pub(super) span: std::ops::Range<usize>,
    /// Line and column.
    pub(super) place: (usize, usize),
}

/// What a scope says of principal or resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Constraint {
    Any,
    Is(Arc<str>),
    Eq(Literal),
    In(Literal),
    IsIn(Arc<str>, Literal),
}

/// An entity that is named in a policy: type and id.
pub(super) type Literal = (Arc<str>, Arc<str>);

/// A set of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Actions(u16);

impl Actions {
    pub(super) const ALL: Self = Self(u16::MAX);

    /// Those under a name: one, or a group of them; none for another name.
    pub(super) fn named(name: &str) -> Self {
        let bits = |wanted: &dyn Fn(Action) -> bool| {
            let bits = Action::ALL
                .into_iter()
                .filter(|action| wanted(*action))
                .map(|action| 1 << action as u16);
            Self(bits.sum())
        };
        match name {
            "use" => bits(&Action::is_use),
            "ask" => bits(&|action| !action.is_use()),
            _ => bits(&|action| action.name() == name),
        }
    }

    pub(super) const fn has(self, action: Action) -> bool {
        self.0 & 1 << action as u16 != 0
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn none() -> Self {
        Self(0)
    }
}

impl Constraint {
    /// The entity it names.
    pub(super) const fn literal(&self) -> Option<&Literal> {
        match self {
            Self::Any | Self::Is(_) => None,
            Self::Eq(literal) | Self::In(literal) | Self::IsIn(_, literal) => Some(literal),
        }
    }
}

/// What the scope of a policy says; `None` for a template.
pub(super) struct Scope {
    pub(super) principal: Constraint,
    pub(super) actions: Actions,
    pub(super) resource: Constraint,
    pub(super) conditions: Vec<(Arc<Expr>, bool)>,
    pub(super) mentions: Mentions,
}

impl Scope {
    /// Takes a policy apart.
    pub(super) fn of(policy: &pst::Policy) -> Option<Self> {
        let body = policy.body();
        let principal = match &body.principal {
            pst::PrincipalConstraint::Any => Constraint::Any,
            pst::PrincipalConstraint::Is(ty) => Constraint::Is(ty.to_string().into()),
            pst::PrincipalConstraint::Eq(uid) => Constraint::Eq(literal(uid)?),
            pst::PrincipalConstraint::In(uid) => Constraint::In(literal(uid)?),
            pst::PrincipalConstraint::IsIn(ty, uid) => {
                Constraint::IsIn(ty.to_string().into(), literal(uid)?)
            }
        };
        let resource = match &body.resource {
            pst::ResourceConstraint::Any => Constraint::Any,
            pst::ResourceConstraint::Is(ty) => Constraint::Is(ty.to_string().into()),
            pst::ResourceConstraint::Eq(uid) => Constraint::Eq(literal(uid)?),
            pst::ResourceConstraint::In(uid) => Constraint::In(literal(uid)?),
            pst::ResourceConstraint::IsIn(ty, uid) => {
                Constraint::IsIn(ty.to_string().into(), literal(uid)?)
            }
        };
        let named = |uid: &pst::EntityUID| Actions::named(uid.eid.as_str());
        let actions = match &body.action {
            pst::ActionConstraint::Any => Actions::ALL,
            // `==` a group is no action.
            pst::ActionConstraint::Eq(uid) if ["use", "ask"].contains(&uid.eid.as_str()) => {
                Actions::none()
            }
            pst::ActionConstraint::Eq(uid) => named(uid),
            pst::ActionConstraint::In(uids) => {
                let all = uids.iter().map(named);
                all.fold(Actions::none(), Actions::union)
            }
        };
        let mut mentions = Mentions::default();
        let mut conditions = Vec::new();
        for clause in body.clauses() {
            let (expr, holds) = match clause {
                Clause::When(expr) => (expr, true),
                Clause::Unless(expr) => (expr, false),
            };
            mentions.read(expr);
            conditions.push((expr.clone(), holds));
        }
        Some(Self {
            principal,
            actions,
            resource,
            conditions,
            mentions,
        })
    }
}

fn literal(uid: &EntityOrSlot) -> Option<Literal> {
    match uid {
        EntityOrSlot::Entity(uid) => Some((uid.ty.to_string().into(), uid.eid.as_str().into())),
        EntityOrSlot::Slot(_) => None,
    }
}

/// A policy without its scope: its effect and its conditions.
pub(super) fn without_scope(policy: &cedar_policy::Policy) -> Option<cedar_policy::Policy> {
    let mut body = policy.to_pst().ok()?.body().clone();
    body.principal = pst::PrincipalConstraint::Any;
    body.action = pst::ActionConstraint::Any;
    body.resource = pst::ResourceConstraint::Any;
    let body = pst::StaticPolicy::try_from(body).ok()?;
    cedar_policy::Policy::from_pst(pst::Policy::Static(body)).ok()
}

/// An entity's uid from exact bytes (SECURITY AUTHZ-4). `ty` is one of our own types.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub(super) fn uid(ty: &str, id: &str) -> EntityUid {
    // INVARIANT: every caller passes a type of our schema, or one that a parsed policy named.
    let ty = ty.parse().expect("the name of a type");
    EntityUid::from_type_name_and_id(ty, cedar_policy::EntityId::new(id))
}

/// Whether an effect is to permit.
pub(super) fn permits(effect: Effect) -> bool {
    effect == Effect::Permit
}
