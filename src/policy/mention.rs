//! What a policy looks at: found by walking its conditions once, when it is loaded.
//!
//! Everything that decisions keep apart follows from this: which arguments must be represented, whether a decision may be kept,
//! which identities no policy can tell apart. What cannot be followed, such as the context used as a whole or an attribute of
//! what a condition comes to, is a fault.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "Cedar's syntax grows; what is not known here is a fault"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cedar_policy::pst::{BinaryOp, Expr, Literal, Var};

/// Paths below `context.args` that are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Paths {
    /// Looked at as a value, with everything in it.
    pub(super) whole: bool,
    pub(super) below: BTreeMap<Arc<str>, Self>,
}

impl Paths {
    fn add(&mut self, path: &[&str]) {
        match path {
            [] => self.whole = true,
            [first, rest @ ..] => self.below.entry((*first).into()).or_default().add(rest),
        }
    }

    /// Takes in what another policy looks at.
    pub(super) fn join(&mut self, other: &Self) {
        self.whole |= other.whole;
        for (name, paths) in &other.below {
            self.below.entry(name.clone()).or_default().join(paths);
        }
    }
}

/// Members of the context, beside the arguments, that are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) text: bool,
    pub(super) scopes: bool,
    pub(super) client: bool,
    pub(super) revision: bool,
    pub(super) address: bool,
    pub(super) time: bool,
    pub(super) toolset: bool,
}

/// Attributes of the principal that are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) name: bool,
    pub(super) issuer: bool,
    pub(super) tenant: bool,
    pub(super) owner: bool,
}

/// Type and id of an entity that a policy names.
pub(super) type Named = (Arc<str>, Arc<str>);

/// Everything one policy looks at, or several together.
#[derive(Debug, Clone, Default)]
pub(super) struct Mentions {
    pub(super) args: Paths,
    pub(super) fields: Fields,
    pub(super) principal: Attributes,
    /// `resource.claimed`
    pub(super) claimed: bool,
    /// Arguments that are looked at as text: `context.text.getTag("a.b")`.
    pub(super) tags: BTreeSet<Arc<str>>,
    /// Scopes that are looked for by name.
    pub(super) scopes: BTreeSet<Arc<str>>,
    /// Tags of items that are looked for by name.
    pub(super) item_tags: BTreeSet<Arc<str>>,
    /// Entities named in conditions.
    pub(super) entities: BTreeSet<Named>,
    /// What cannot be followed.
    pub(super) faults: Vec<&'static str>,
}

impl Mentions {
    /// Whether anything of a request beside principal, action and resource is looked at.
    pub(super) fn reads_context(&self) -> bool {
        self.fields != Fields::default() || self.args != Paths::default()
    }

    /// Takes in what another policy looks at in the context.
    pub(super) fn join(&mut self, other: &Self) {
        self.args.join(&other.args);
        let (own, others) = (&mut self.fields, other.fields);
        own.text |= others.text;
        own.scopes |= others.scopes;
        own.client |= others.client;
        own.revision |= others.revision;
        own.address |= others.address;
        own.time |= others.time;
        own.toolset |= others.toolset;
        self.principal.name |= other.principal.name;
        self.principal.issuer |= other.principal.issuer;
        self.principal.tenant |= other.principal.tenant;
        self.principal.owner |= other.principal.owner;
        self.claimed |= other.claimed;
        self.tags.extend(other.tags.iter().cloned());
        self.scopes.extend(other.scopes.iter().cloned());
        self.item_tags.extend(other.item_tags.iter().cloned());
        self.entities.extend(other.entities.iter().cloned());
    }

    /// Takes in a condition.
    pub(super) fn read(&mut self, expr: &Expr) {
        if let Some((var, path)) = path(expr) {
            self.path(var, &path);
            return;
        }
        match expr {
            Expr::HasAttr { expr, attrs } => match path(expr) {
                Some((var, mut base)) => {
                    base.extend(attrs.iter().map(|attr| attr.as_str()));
                    self.path(var, &base);
                }
                None => self.detour(expr),
            },
            Expr::BinaryOp { op, left, right } => {
                let contains = [
                    BinaryOp::Contains,
                    BinaryOp::ContainsAll,
                    BinaryOp::ContainsAny,
                ];
                if contains.contains(op) {
                    match path(left) {
                        Some((Var::Context, path)) if path == ["scopes"] => {
                            words(right, &mut self.scopes);
                        }
                        Some((Var::Resource, path)) if path == ["tags"] => {
                            words(right, &mut self.item_tags);
                        }
                        _ => {}
                    }
                }
                if matches!(op, BinaryOp::GetTag | BinaryOp::HasTag) {
                    match &**right {
                        Expr::Literal(Literal::String(tag)) => {
                            self.tags.insert(tag.as_str().into());
                        }
                        _ => self.faults.push("a tag must be named: `getTag(\"name\")`"),
                    }
                }
                if *op == BinaryOp::In && !matches!(&**left, Expr::Var(_)) {
                    self.faults
                        .push("`in` needs `principal`, `action` or `resource` on its left");
                }
                self.read(left);
                self.read(right);
            }
            Expr::Literal(Literal::EntityUID(uid)) => {
                let ty = uid.ty.to_string();
                self.entities.insert((ty.into(), uid.eid.as_str().into()));
            }
            Expr::GetAttr { expr, .. } => self.detour(expr),
            Expr::UnaryOp { expr, .. } | Expr::Like { expr, .. } => self.read(expr),
            Expr::Is { expr, in_expr, .. } => {
                if in_expr.is_some() && !matches!(&**expr, Expr::Var(_)) {
                    self.faults
                        .push("`in` needs `principal`, `action` or `resource` on its left");
                }
                self.read(expr);
                in_expr.iter().for_each(|expr| self.read(expr));
            }
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => [cond, then_expr, else_expr]
                .into_iter()
                .for_each(|expr| self.read(expr)),
            Expr::Set(exprs) => exprs.iter().for_each(|expr| self.read(expr)),
            Expr::Record(fields) => fields.values().for_each(|expr| self.read(expr)),
            Expr::Literal(_) => {}
            _ => self
                .faults
                .push("a construct that this version does not know"),
        }
    }

    /// Takes in what an attribute is looked at of that is no path. Of an entity that comes out of a condition or a record, or that
    /// is named, nobody could tell which of its attributes a decision hangs on (SECURITY AUTHZ-11).
    fn detour(&mut self, expr: &Expr) {
        if may_be_entity(expr) {
            self.faults.push(
                "attributes are read straight from `principal`, `resource` or `context`, and from no other expression for one, such as `if`, a record or the name of an entity: write `resource.name`",
            );
        }
        self.read(expr);
    }

    fn path(&mut self, var: &Var, path: &[&str]) {
        match (var, path) {
            (Var::Context, []) => self
                .faults
                .push("`context` cannot be used as a whole: name what is looked at"),
            (Var::Context, ["args"]) => self
                .faults
                .push("`context.args` cannot be used as a whole: name the argument"),
            (Var::Context, ["args", rest @ ..]) => self.args.add(rest),
            (Var::Context, [field, ..]) => {
                let fields = &mut self.fields;
                match *field {
                    "text" => fields.text = true,
                    "scopes" => fields.scopes = true,
                    "client" => fields.client = true,
                    "revision" => fields.revision = true,
                    "address" => fields.address = true,
                    "time" => fields.time = true,
                    "toolset" => fields.toolset = true,
                    // The schema does not have it.
                    _ => {}
                }
            }
            (Var::Principal, ["name", ..]) => self.principal.name = true,
            (Var::Principal, ["issuer", ..]) => self.principal.issuer = true,
            (Var::Principal, ["tenant", ..]) => self.principal.tenant = true,
            (Var::Principal, ["owner", ..]) => self.principal.owner = true,
            (Var::Resource, ["claimed", ..]) => self.claimed = true,
            (Var::Principal | Var::Resource | Var::Action, _) => {}
        }
    }
}

/// Whether what an upstream claims of itself can make a condition of a `forbid` hold and never keep it from holding, against one
/// that claims nothing (SECURITY AUTHZ-11). `holds` is false of an `unless`. What cannot be told to be so at a glance is not.
pub(super) fn claims_forbid_only(expr: &Expr, holds: bool) -> bool {
    let claims =
        |var: &Var, path: &[&str]| *var == Var::Resource && path.first() == Some(&"claimed");
    let is_claim = |expr: &Expr| path(expr).is_some_and(|(var, path)| claims(var, &path));
    let is_true = |expr: &Expr| matches!(expr, Expr::Literal(Literal::Bool(true)));
    match expr {
        Expr::BinaryOp {
            op: BinaryOp::And | BinaryOp::Or,
            left,
            right,
        } if holds => claims_forbid_only(left, holds) && claims_forbid_only(right, holds),
        Expr::BinaryOp {
            op: BinaryOp::Eq,
            left,
            right,
        } if holds && (is_claim(left) && is_true(right) || is_true(left) && is_claim(right)) => {
            true
        }
        // `resource.claimed has one`, and `resource has claimed.one`
        Expr::HasAttr { expr, attrs }
            if holds
                && path(expr).is_some_and(|(var, mut path)| {
                    path.extend(attrs.iter().map(|attr| attr.as_str()));
                    claims(var, &path)
                }) =>
        {
            true
        }
        Expr::GetAttr { .. } if holds && is_claim(expr) => true,
        _ => {
            let mut mentions = Mentions::default();
            mentions.read(expr);
            !mentions.claimed
        }
    }
}

/// Whether an expression may come to a variable itself, to a named entity, or to what either can be taken from. What lies below a
/// variable is no entity with attributes, and was noted where it was read.
fn may_be_entity(expr: &Expr) -> bool {
    if let Some((_, path)) = path(expr) {
        return path.is_empty();
    }
    match expr {
        Expr::Literal(literal) => matches!(literal, Literal::EntityUID(_)),
        Expr::GetAttr { expr, .. } => may_be_entity(expr),
        Expr::IfThenElse {
            then_expr,
            else_expr,
            ..
        } => may_be_entity(then_expr) || may_be_entity(else_expr),
        Expr::Record(fields) => fields.values().any(|expr| may_be_entity(expr)),
        // What these come to is a truth, a number, a text or an address.
        Expr::UnaryOp { .. }
        | Expr::BinaryOp { .. }
        | Expr::HasAttr { .. }
        | Expr::Like { .. }
        | Expr::Is { .. } => false,
        // Of a set nothing can be taken, and yet nothing is lost by refusing that.
        _ => true,
    }
}

/// The texts that are looked for.
fn words(expr: &Expr, found: &mut BTreeSet<Arc<str>>) {
    match expr {
        Expr::Literal(Literal::String(word)) => {
            found.insert(word.as_str().into());
        }
        Expr::Set(exprs) => exprs.iter().for_each(|expr| words(expr, found)),
        _ => {}
    }
}

/// The variable and the attributes of `variable.one.two`.
pub(super) fn path(expr: &Expr) -> Option<(&Var, Vec<&str>)> {
    match expr {
        Expr::Var(var) => Some((var, Vec::new())),
        Expr::GetAttr { expr, attr } => {
            let (var, mut path) = path(expr)?;
            path.push(attr.as_str());
            Some((var, path))
        }
        _ => None,
    }
}
