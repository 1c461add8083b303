//! What nothing is known of: names that are spelled as those of an upstream that was not reached yet.
//!
//! Guarantees: what is said of a name goes by its spelling and by configuration alone, and only of an upstream of which nothing
//! is known, so that nothing can be told from it of what exists.
//! Deliberately absent: URIs, which lead to whose namespace they are spelled in whether or not that is known, and those of the
//! web, which lead to whoever lists them.

use std::{borrow::Cow, sync::Arc};

use super::{
    Catalog, Contribution, Login, Route, check::exposed, namespace::Prefixes, part::Part, spelling,
};
use crate::protocol::{methods::ListKind, names::Scope};

impl Catalog {
    /// The way that the name of a tool or prompt would lead, if it is one of an upstream's of which nothing is known. `None` also
    /// for names that the endpoint would not serve even then.
    pub fn unread(&self, scope: &Scope, kind: ListKind, name: &str) -> Option<Route> {
        let view = self.scopes.get(scope)?;
        let own = view.only();
        let rank = own.or_else(|| self.spelled(name))?;
        let part = self.parts.get(rank)?;
        if !part.is_unread() {
            return None;
        }
        let shown = match own {
            Some(_) => name,
            None => part.namespace.inward_name(name)?,
        };
        let local = match kind {
            ListKind::Tools if own.is_none() => part.naming.original(shown)?,
            ListKind::Tools | ListKind::Prompts => shown,
            ListKind::Resources | ListKind::Templates | ListKind::Skills => return None,
        };
        let taken = kind == ListKind::Prompts || part.naming.tools.takes(local);
        let fit = !local.is_empty() && spelling::of_name(local).is_none();
        (taken && fit && view.would_take(rank, part.id(), kind, name))
            .then(|| part.route(local.to_owned()))
    }

    /// The outward name that a tool or prompt would have of an upstream of which nothing is known, if nobody else has it.
    pub(super) fn unread_name(&self, kind: ListKind, route: &Route) -> Option<Cow<'_, str>> {
        let is_its = |part: &Part| *part.id() == route.upstream && part.is_unread();
        let rank = self.parts.iter().position(is_its)?;
        let (part, local) = (&self.parts[rank], &*route.local);
        let shown = match kind {
            ListKind::Tools => part.naming.rename.get(local).map_or(local, String::as_str),
            ListKind::Prompts => local,
            ListKind::Resources | ListKind::Templates | ListKind::Skills => return None,
        };
        let name = part.namespace.outward_name(shown, local);
        let held = self.held[kind as usize].contains_key(name.as_str());
        (!held && self.spelled(&name) == Some(rank)).then(|| name.into())
    }

    /// Whose a tool's or prompt's name would be by its spelling, as with [`Catalog::resource`].
    fn spelled(&self, name: &str) -> Option<usize> {
        let named = name
            .split_once('_')
            .and_then(|(prefix, _)| self.prefixes.get(prefix));
        *named.or_else(|| self.prefixes.get(""))?
    }
}

/// Whose prefix the name of a tool or a prompt begins with.
pub(super) fn spelled(name: &str, prefixes: &Prefixes) -> Option<usize> {
    let (prefix, _) = name.split_once('_')?;
    *prefixes.get(prefix)?
}

impl Part {
    /// Whether nothing is known of what it offers, and nothing of ours stands in for that.
    pub(super) fn is_unread(&self) -> bool {
        let unread = |it: &Contribution| it.card.is_none() && it.login == Login::None;
        self.contribution.as_deref().is_none_or(unread)
    }

    /// The outward names of what it is remembered to have offered, with its own.
    pub(super) fn claims(&self, kind: ListKind) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
        let claims = self.naming.claims.iter();
        let claims = claims.filter(move |(of, local)| {
            *of == kind && (kind != ListKind::Tools || self.naming.tools.takes(local))
        });
        claims.filter_map(move |(_, local)| {
            let exposed = exposed(&self.naming, &self.namespace, kind, local).ok()?;
            Some((exposed.into(), local.clone()))
        })
    }
}
