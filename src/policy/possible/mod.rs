//! What a condition may come to while the context is not known, and what it comes to once it is.
//! It is true, false, an error, or several of these.
//!
//! Never too little: if some context brings an outcome about, that outcome is among those told
//! (`tests::properties` compares with Cedar over all contexts of small worlds). Sometimes too much: conditions are not solved,
//! so `x < 1 && x > 2` may be true here. Erring that way lists an item that is then refused, and never hides one that
//! may be used. So if only one outcome is told, that is what it comes to; with the context given that is so of nearly
//! all conditions, and such a decision needs no Cedar.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "Cedar's syntax grows; what is not known here may come to anything"
)]

mod given;
mod text;
mod value;

use std::{borrow::Cow, collections::BTreeMap, ops::BitOr};

use cedar_policy::pst::{BinaryOp, Expr, Literal, UnaryOp, Var};

use super::{
    Action, ItemKind,
    class::{ClassTraits, Classes},
    context::Given,
    expand::Expansions,
    laid::{Known, Laid, Parts},
    represent::Held,
    rule::{Constraint, Rule},
    schema::type_of,
    shape::Shape,
};

pub(super) use value::Outcomes;

use text::{like, like_from};
use value::{
    Depth,
    Value::{self, Bool, Fails, Open},
};

/// What policies are evaluated with: all that is known, whether or not the context is.
#[derive(Clone, Copy)]
pub(super) struct EvalContext<'a> {
    pub(super) classes: &'a Classes,
    pub(super) who: &'a ClassTraits,
    pub(super) action: Action,
    pub(super) item: &'a Laid,
    /// The toolset of the endpoint, where it is known.
    pub(super) toolset: Option<Option<&'a str>>,
    /// What the request brings, where there is one.
    pub(super) given: Option<&'a Given<'a>>,
}

impl<'a> EvalContext<'a> {
    /// What a policy may come to: `TRUE` is that it is satisfied.
    pub(super) fn rule(&self, rule: &'a Rule) -> Outcomes {
        let mut all = self.scope(rule);
        for (expr, holds) in &rule.conditions {
            if !all.has(Outcomes::TRUE) {
                break;
            }
            all = all.and(|| self.condition(expr, *holds));
        }
        all
    }

    /// What a condition may come to that must hold, or must not.
    pub(super) fn condition(&self, expr: &'a Expr, holds: bool) -> Outcomes {
        let outcomes = self.value(expr).outcomes();
        if holds { outcomes } else { outcomes.not() }
    }

    /// What the scope of a policy comes to.
    pub(super) fn scope(&self, rule: &Rule) -> Outcomes {
        self.principal(&rule.principal)
            .and(|| Outcomes::of(rule.actions.has(self.action)))
            .and(|| self.resource(&rule.resource))
    }

    /// Whether the principal is what a scope says.
    pub(super) fn principal(&self, constraint: &Constraint) -> Outcomes {
        Outcomes::of(self.classes.is_meant(self.who, constraint))
    }

    /// Whether the item may be what a scope says.
    pub(super) fn resource(&self, constraint: &Constraint) -> Outcomes {
        let is = |ty: &str| Outcomes::of(ty == self.item.type_name());
        match constraint {
            Constraint::Any => Outcomes::TRUE,
            Constraint::Is(ty) => is(ty),
            Constraint::Eq(literal) => self.item_is(named(literal)),
            Constraint::In(literal) => self.item_in(named(literal)),
            Constraint::IsIn(ty, literal) => is(ty).and(|| self.item_in(named(literal))),
        }
    }

    fn item_is(&self, (ty, id): (&str, &str)) -> Outcomes {
        if ty != self.item.type_name() {
            return Outcomes::FALSE;
        }
        match self.expansions() {
            Some(expansions) if expansions.may_be(id) => Outcomes::EITHER,
            Some(_) => Outcomes::FALSE,
            None => Outcomes::of(*self.item.item.outward == *id),
        }
    }

    /// What the item may expand to, where that and not the item itself is used.
    fn expansions(&self) -> Option<&'a Expansions> {
        let expanded = matches!(self.action, Action::Read | Action::Subscribe);
        self.item.expansions.as_ref().filter(|_| expanded)
    }

    fn item_in(&self, (ty, id): (&str, &str)) -> Outcomes {
        match ty {
            "Upstream" => Outcomes::of(self.item.item.upstream.as_str() == id),
            "Toolset" => match self.expansions() {
                Some(expansions) if expansions.may_be_in(id) => Outcomes::EITHER,
                Some(_) => Outcomes::FALSE,
                None => Outcomes::of(self.item.item.toolsets.iter().any(|name| **name == *id)),
            },
            _ => self.item_is((ty, id)),
        }
    }

    fn value(&self, expr: &'a Expr) -> Value<'a> {
        match expr {
            Expr::Literal(Literal::Bool(value)) => Bool(Outcomes::of(*value)),
            Expr::Literal(Literal::Long(value)) => Value::Long(*value),
            Expr::Literal(Literal::String(text)) => Value::Text(Cow::Borrowed(text.as_str())),
            Expr::Literal(Literal::EntityUID(uid)) => {
                Value::Entity(Cow::Owned(uid.ty.to_string()), uid.eid.as_str())
            }
            Expr::Var(Var::Principal) => Value::Principal,
            Expr::Var(Var::Resource) => Value::Resource,
            Expr::Var(Var::Context) => Value::Context,
            Expr::Var(Var::Action) => Value::Entity(Cow::Borrowed("Action"), self.action.name()),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::BinaryOp { op, left, right } => self.binary(*op, left, right),
            Expr::GetAttr { expr, attr } => self.attribute(self.value(expr), attr.as_str()),
            Expr::HasAttr { expr, attrs } => {
                let mut at = self.value(expr);
                let mut all = Outcomes::TRUE;
                for (index, attr) in attrs.iter().enumerate() {
                    all = all.and(|| self.has(&at, attr.as_str()));
                    if !all.has(Outcomes::TRUE) {
                        break;
                    }
                    if index + 1 < attrs.len() {
                        at = self.attribute(at, attr.as_str());
                    }
                }
                Bool(all)
            }
            Expr::Like { expr, pattern } => match self.value(expr) {
                Value::Text(text) => Bool(Outcomes::of(like(pattern, &text))),
                Value::Begins(heads) => {
                    let each = heads.iter().map(|head| like_from(pattern, head));
                    Bool(each.fold(Outcomes(0), Outcomes::bitor))
                }
                Open => Open,
                _ => Fails,
            },
            Expr::Is {
                expr,
                entity_type,
                in_expr,
            } => {
                let value = self.value(expr);
                let ty = entity_type.to_string();
                let is = match &value {
                    Value::Principal => Outcomes::of(ty == type_of(self.who.kind)),
                    Value::Resource => Outcomes::of(ty == self.item.type_name()),
                    Value::Entity(other, _) => Outcomes::of(**other == *ty),
                    Open => Outcomes::ANY,
                    _ => Outcomes::ERROR,
                };
                Bool(is.and(|| match in_expr {
                    Some(above) => self.within(&value, &self.value(above)),
                    None => Outcomes::TRUE,
                }))
            }
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => self.choice(cond, then_expr, else_expr),
            Expr::Set(exprs) => {
                let values: Vec<_> = exprs.iter().map(|expr| self.value(expr)).collect();
                if values.contains(&Fails) {
                    Fails
                } else if values.iter().any(Value::may_fail) {
                    Open
                } else {
                    Value::Set(values)
                }
            }
            Expr::Record(fields) => {
                let fields: BTreeMap<_, _> = fields
                    .iter()
                    .map(|(key, expr)| (key.as_str(), self.value(expr)))
                    .collect();
                if fields.values().any(|value| *value == Fails) {
                    Fails
                } else if fields.values().any(Value::may_fail) {
                    Open
                } else {
                    Value::Record(fields)
                }
            }
            _ => Open,
        }
    }

    fn choice(&self, cond: &'a Expr, then: &'a Expr, other: &'a Expr) -> Value<'a> {
        let cond = self.value(cond).outcomes();
        let mut may = Vec::new();
        if cond.has(Outcomes::ERROR) {
            may.push(Fails);
        }
        if cond.has(Outcomes::TRUE) {
            may.push(self.value(then));
        }
        if cond.has(Outcomes::FALSE) {
            may.push(self.value(other));
        }
        match &may[..] {
            [only] => only.clone(),
            several if several.iter().all(|value| matches!(value, Bool(_) | Fails)) => {
                let all = several.iter().map(Value::outcomes);
                Bool(all.fold(Outcomes(0), Outcomes::bitor))
            }
            _ => Open,
        }
    }

    fn unary(&self, op: UnaryOp, expr: &'a Expr) -> Value<'a> {
        match (op, self.value(expr)) {
            (_, Fails) => Fails,
            (UnaryOp::Not, value) => Bool(value.outcomes().not()),
            (UnaryOp::Neg, Value::Long(long)) => long.checked_neg().map_or(Fails, Value::Long),
            (UnaryOp::IsEmpty, Value::Some(_)) => Bool(Outcomes::EITHER),
            (UnaryOp::IsEmpty, Value::Set(values)) => Bool(Outcomes::of(values.is_empty())),
            (UnaryOp::IsEmpty, Value::Texts(texts)) => Bool(Outcomes::of(texts.is_empty())),
            (UnaryOp::IsEmpty, Value::Held(Held::Set(values))) => {
                Bool(Outcomes::of(values.is_empty()))
            }
            _ => Open,
        }
    }

    fn binary(&self, op: BinaryOp, left: &'a Expr, right: &'a Expr) -> Value<'a> {
        let one = self.value(left);
        match op {
            BinaryOp::And => return Bool(one.outcomes().and(|| self.value(right).outcomes())),
            BinaryOp::Or => {
                let not = one.outcomes().not();
                return Bool(not.and(|| self.value(right).outcomes().not()).not());
            }
            _ => {}
        }
        let two = self.value(right);
        if one == Fails || two == Fails {
            return Fails;
        }
        let number = |of: fn(i64, i64) -> Option<i64>| match (&one, &two) {
            (Value::Long(one), Value::Long(two)) => of(*one, *two).map_or(Fails, Value::Long),
            _ => Open,
        };
        let order = |of: fn(i64, i64) -> bool| match (&one, &two) {
            (Value::Long(one), Value::Long(two)) => Bool(Outcomes::of(of(*one, *two))),
            _ => Open,
        };
        let result = match op {
            BinaryOp::Eq => Bool(self.equal(&one, &two)),
            BinaryOp::NotEq => Bool(self.equal(&one, &two).not()),
            BinaryOp::Less => order(|one, two| one < two),
            BinaryOp::LessEq => order(|one, two| one <= two),
            BinaryOp::Greater => order(|one, two| one > two),
            BinaryOp::GreaterEq => order(|one, two| one >= two),
            BinaryOp::Add => number(i64::checked_add),
            BinaryOp::Sub => number(i64::checked_sub),
            BinaryOp::Mul => number(i64::checked_mul),
            BinaryOp::In => Bool(self.within(&one, &two)),
            BinaryOp::Contains if one.is_set() => Bool(self.among(&one, &two)),
            BinaryOp::ContainsAll => match (&one, &two) {
                (set, Value::Set(two)) if set.is_set() => {
                    let all = two.iter().map(|value| self.among(&one, value));
                    Bool(all.fold(Outcomes::TRUE, |all, this| all.and(|| this)))
                }
                _ => Open,
            },
            BinaryOp::ContainsAny => match (&one, &two) {
                (set, Value::Set(two)) if set.is_set() => {
                    let none = two.iter().map(|value| self.among(&one, value).not());
                    Bool(
                        none.fold(Outcomes::TRUE, |all, this| all.and(|| this))
                            .not(),
                    )
                }
                _ => Open,
            },
            BinaryOp::GetTag => one.tag(&two),
            BinaryOp::HasTag => one.has_tag(&two),
            _ => Open,
        };
        match result {
            Bool(outcomes) if one.may_fail() || two.may_fail() => Bool(outcomes | Outcomes::ERROR),
            result => result,
        }
    }

    fn among(&self, set: &Value<'a>, wanted: &Value<'a>) -> Outcomes {
        let any = |none: Outcomes, value: &Value<'a>| none.and(|| self.equal(value, wanted).not());
        let none = match (set, wanted) {
            (Value::Set(values), _) => values.iter().fold(Outcomes::TRUE, any),
            (Value::Held(Held::Set(values)), _) => {
                let values = values.iter().map(Value::of);
                values.fold(Outcomes::TRUE, |none, value| any(none, &value))
            }
            (Value::Texts(texts), Value::Text(text)) => {
                return Outcomes::of(texts.contains(&**text));
            }
            (Value::Some(texts), Value::Text(text)) if !texts.contains(&**text) => {
                return Outcomes::FALSE;
            }
            (Value::Some(_), _) => return Outcomes::EITHER,
            _ => return Outcomes::ANY,
        };
        none.not()
    }

    fn equal(&self, one: &Value<'a>, two: &Value<'a>) -> Outcomes {
        use Value::{Entity, Principal, Resource};
        match (one, two) {
            (Principal, Principal) | (Resource, Resource) => Outcomes::TRUE,
            (Principal, Entity(ty, id)) | (Entity(ty, id), Principal) => {
                Outcomes::of(self.classes.is(self.who, (ty, id)))
            }
            (Resource, Entity(ty, id)) | (Entity(ty, id), Resource) => self.item_is((ty, id)),
            (Principal, Resource) | (Resource, Principal) => Outcomes::FALSE,
            (Value::Begins(heads), Value::Text(text))
            | (Value::Text(text), Value::Begins(heads)) => {
                let may = heads.iter().any(|head| text.starts_with(head));
                if may {
                    Outcomes::EITHER
                } else {
                    Outcomes::FALSE
                }
            }
            _ if one.is_known() && two.is_known() => Outcomes::of(one.equals(two)),
            _ => Outcomes::ANY,
        }
    }

    /// `one in two`
    fn within(&self, one: &Value<'a>, two: &Value<'a>) -> Outcomes {
        let (ty, id) = match two {
            Value::Set(values) => {
                let none = values.iter().map(|value| self.within(one, value).not());
                return none
                    .fold(Outcomes::TRUE, |all, this| all.and(|| this))
                    .not();
            }
            Value::Entity(ty, id) => (&**ty, *id),
            // `principal in principal` and the like.
            Value::Principal | Value::Resource => return self.equal(one, two),
            _ => return Outcomes::ANY,
        };
        match one {
            Value::Principal => Outcomes::of(self.classes.is_in(self.who, (ty, id))),
            Value::Resource => self.item_in((ty, id)),
            Value::Entity(own, name) if **own == *"Action" => Outcomes::of(
                ty == "Action"
                    && (*name == id || self.action.group() == id && *name == self.action.name()),
            ),
            _ => Outcomes::ANY,
        }
    }

    fn attribute(&self, of: Value<'a>, name: &'a str) -> Value<'a> {
        let text = |text: &'a str| Value::Text(Cow::Borrowed(text));
        match of {
            Value::Principal => match self.principal_attribute(name) {
                Some(value) => text(value),
                None => Fails,
            },
            Value::Resource => self.item_attribute(name),
            Value::Context => match name {
                _ if self.given.is_some() => self.given(name),
                "args" => self
                    .item
                    .shapes(self.action)
                    .map_or(Fails, |shapes| Value::Arguments(shapes, Depth::Top)),
                "toolset" => match self.toolset {
                    Some(toolset) => toolset.map_or(Fails, text),
                    None => Open,
                },
                _ => Open,
            },
            Value::Arguments(shapes, _) => match shapes.member(name) {
                Some(member) => match &member.shape {
                    Shape::Record(shapes) => Value::Arguments(shapes, Depth::Inside),
                    _ => Open,
                },
                None => Fails,
            },
            Value::Record(mut fields) => fields.remove(name).unwrap_or(Fails),
            Value::Held(held) => held.member(name).map_or(Fails, Value::of),
            Open => Open,
            _ => Fails,
        }
    }

    fn has(&self, of: &Value<'a>, name: &'a str) -> Outcomes {
        match of {
            Value::Principal => Outcomes::of(self.principal_attribute(name).is_some()),
            Value::Resource => match self.item_attribute(name) {
                Fails => Outcomes::FALSE,
                _ => Outcomes::TRUE,
            },
            Value::Context if self.given.is_some() => Outcomes::of(self.given(name) != Fails),
            Value::Context => match name {
                "args" | "text" => Outcomes::of(self.item.shapes(self.action).is_some()),
                "toolset" => match self.toolset {
                    Some(toolset) => Outcomes::of(toolset.is_some()),
                    None => Outcomes::EITHER,
                },
                "scopes" | "revision" | "time" => Outcomes::TRUE,
                "client" | "address" => Outcomes::EITHER,
                _ => Outcomes::FALSE,
            },
            Value::Arguments(shapes, depth) => {
                let there = match shapes.member(name) {
                    Some(_) => Outcomes::EITHER,
                    // If it is there all the same, it cannot be represented, which denies as an error does.
                    None => Outcomes::FALSE | Outcomes::ERROR,
                };
                match depth {
                    Depth::Top => there,
                    Depth::Inside => there | Outcomes::ERROR,
                }
            }
            Value::Record(fields) => Outcomes::of(fields.contains_key(name)),
            Value::Held(held @ Held::Record(_)) => Outcomes::of(held.member(name).is_some()),
            Open => Outcomes::ANY,
            _ => Outcomes::ERROR,
        }
    }

    fn principal_attribute(&self, name: &str) -> Option<&'a str> {
        let who = self.who;
        match name {
            "name" => who.name.as_deref(),
            "issuer" => who.issuer.as_deref(),
            "tenant" => who.tenant.as_deref(),
            "owner" => who.owner.as_deref(),
            _ => None,
        }
    }

    fn item_attribute(&self, name: &str) -> Value<'a> {
        let item = &self.item.item;
        let text = |text: &'a str| Value::Text(Cow::Borrowed(text));
        let flag = |flag: Option<bool>| flag.map_or(Fails, |flag| Bool(Outcomes::of(flag)));
        let tool = item.kind == ItemKind::Tool;
        let resource = matches!(item.kind, ItemKind::Resource | ItemKind::Template);
        match name {
            "upstream" => text(item.upstream.as_str()),
            "name" | "tags" | "uri" | "scheme" | "host" | "path" if self.expansions().is_some() => {
                self.expansion_attribute(name)
            }
            "tags" => Value::Set(item.tags.iter().map(|tag| text(tag)).collect()),
            "name" => text(&item.outward),
            "local" if !resource => text(&item.local),
            "uri" | "scheme" | "host" | "path" if resource => text(match name {
                "uri" => &item.local,
                "scheme" => self.item.parts.scheme(&item.local),
                "host" => self.item.parts.host(&item.local),
                _ => self.item.parts.path(&item.local),
            }),
            "claimed" if tool => {
                let claimed = item.claimed.pairs();
                let known = claimed
                    .into_iter()
                    .filter_map(|(key, flag)| Some((key, Bool(Outcomes::of(flag?)))));
                Value::Record(known.collect())
            }
            _ if tool => {
                let pinned = item.pinned.pairs();
                let found = pinned.into_iter().find(|(key, _)| *key == name);
                flag(found.and_then(|(_, flag)| flag))
            }
            _ => Fails,
        }
    }
}

impl<'a> EvalContext<'a> {
    /// An attribute of what a template may expand to.
    fn expansion_attribute(&self, name: &str) -> Value<'a> {
        let Some(expansions) = self.expansions() else {
            return Open;
        };
        let [scheme, host, path] = Parts::of_head(&expansions.head);
        let part = |(text, known)| match known {
            Known::Whole => Value::Text(Cow::Borrowed(text)),
            Known::Begins => Value::Begins(vec![text]),
        };
        match name {
            "name" => Value::Begins(expansions.names.iter().map(|head| &**head).collect()),
            "uri" => Value::Begins(vec![&*expansions.head]),
            "scheme" => part(scheme),
            "host" => part(host),
            "path" => part(path),
            "tags" => match &expansions.tags {
                Some(tags) if tags.is_empty() => Value::Set(Vec::new()),
                Some(tags) => Value::Some(tags),
                None => Open,
            },
            _ => Open,
        }
    }
}

fn named((ty, id): &super::rule::Literal) -> (&str, &str) {
    (ty, id)
}
