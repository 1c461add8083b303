//! What is strange about a set that is right: names that match nothing, policies that add nothing.
//!
//! Never a reason not to load a set: a server may be away, and a policy may be there for what comes.

use std::{collections::BTreeSet, sync::Arc};

use strsim::osa_distance;

use super::{
    Policy, Prepared, Problem,
    class::Classes,
    fit::may_be,
    laid::Items,
    load::Compiled,
    rule::{Constraint, Literal, Rule},
};
use crate::protocol::UpstreamId;

/// What is configured, whether it offers anything or not.
#[derive(Debug, Clone, Default)]
pub struct Configured {
    /// Every upstream.
    pub upstreams: Vec<UpstreamId>,
    /// Those of them that cannot be reached: what they offer is not among the items.
    pub away: Vec<UpstreamId>,
    /// Every toolset.
    pub toolsets: Vec<Arc<str>>,
}

impl Prepared {
    /// What is strange: names and tags that none of the items has, and policies that others make needless or idle. Of what an
    /// upstream that is away may have, nothing is said. In the order of the files.
    pub fn review(&self, configured: &Configured) -> Vec<Problem> {
        let Some(set) = self.policy().set() else {
            return Vec::new();
        };
        let (compiled, items) = (&set.compiled, self.laid());
        let mut notes = self.policy().notes().to_vec();
        let names = Names::of(items, configured);
        for rule in &compiled.rules {
            unknown(compiled, rule, items, &names, &mut notes);
            if names.complete {
                idle(compiled, &set.classes, rule, items, &mut notes);
            }
            shadowed(compiled, rule, items, &mut notes);
        }
        notes.sort();
        notes.dedup();
        notes
    }
}

impl Policy {
    /// Where the set first goes by what somebody is called, or is in, although so many say who somebody is, each on its own, and no
    /// policy asks which of them did: then any of them can speak for anybody (SECURITY AUTHZ-4).
    pub fn pooled(&self, authorities: usize) -> Option<Problem> {
        let compiled = &self.set()?.compiled;
        let asks = |rule: &Rule| rule.mentions.principal.issuer;
        if authorities < 2 || compiled.rules.iter().any(asks) {
            return None;
        }
        let mut rules = compiled.rules.iter();
        let (rule, what) = rules.find_map(|rule| Some((rule, gone_by(rule)?)))?;
        let message = format!(
            "`{}` goes by {what}, which each of {authorities} authorities can give to anybody: their names are one pool",
            rule.name
        );
        let hint = "where that matters, ask which: `principal has issuer && principal.issuer == \"https://…\"`";
        Some(note(compiled, rule, &message).hint(hint))
    }
}

/// What a policy goes by of that which an authority says of somebody.
fn gone_by(rule: &Rule) -> Option<String> {
    let said = ["User", "Agent", "Group", "Tenant"];
    let scope = rule.principal.literal().into_iter();
    let named = scope
        .chain(&rule.mentions.entities)
        .find(|(ty, _)| said.contains(&&**ty));
    let reads = rule.mentions.principal;
    match named {
        Some((ty, id)) => Some(format!("{ty}::{:?}", &**id)),
        None if reads.name => Some("`principal.name`".to_owned()),
        None if reads.tenant => Some("`principal.tenant`".to_owned()),
        None => None,
    }
}

/// The ids that there are.
struct Names {
    all: BTreeSet<(&'static str, String)>,
    /// Whether nobody is away who may have more.
    complete: bool,
}

impl Names {
    fn of(items: &Items, configured: &Configured) -> Self {
        let upstreams = configured.upstreams.iter();
        let toolsets = configured.toolsets.iter();
        let mut names: BTreeSet<_> = upstreams
            .map(|upstream| ("Upstream", upstream.as_str().to_owned()))
            .chain(toolsets.map(|name| ("Toolset", name.to_string())))
            .collect();
        for laid in &items.all {
            names.insert((laid.type_name(), laid.item.outward.to_string()));
            names.insert(("Upstream", laid.item.upstream.as_str().to_owned()));
            let toolsets = laid.item.toolsets.iter();
            names.extend(toolsets.map(|name| ("Toolset", name.to_string())));
            let tags = laid.item.tags.iter();
            names.extend(tags.map(|tag| ("tag", tag.to_string())));
        }
        Self {
            all: names,
            complete: configured.away.is_empty(),
        }
    }

    /// The one that is spelled most like it, if one is.
    fn near(&self, ty: &str, id: &str) -> Option<&str> {
        let same = self.all.iter().filter(|(other, _)| *other == ty);
        same.map(|(_, name)| (osa_distance(id, name), name.as_str()))
            .filter(|(distance, _)| *distance <= id.len() / 3 + 1)
            .min()
            .map(|(_, name)| name)
    }
}

/// Items that a policy names and that are not there.
fn unknown(
    compiled: &Compiled,
    rule: &Rule,
    items: &Items,
    names: &Names,
    notes: &mut Vec<Problem>,
) {
    if items.all.is_empty() {
        return;
    }
    for (ty, id) in rule.mentions.entities.iter().chain(rule.resource.literal()) {
        let kinds = ["Tool", "Prompt", "Upstream", "Toolset"];
        let Some(ty) = kinds.into_iter().find(|kind| *kind == &**ty) else {
            // Resources need not be listed, and who there is only credentials tell.
            continue;
        };
        let of_items = ["Tool", "Prompt"].contains(&ty);
        if names.all.contains(&(ty, id.to_string())) || of_items && !names.complete {
            continue;
        }
        let problem = note(compiled, rule, &format!("{ty}::{:?} is not there", &**id));
        notes.push(match names.near(ty, id) {
            Some(near) => problem.hint(format!("{near:?} is")),
            None => problem.hint("see `usher catalog` for what is"),
        });
    }
    for tag in &rule.mentions.item_tags {
        if names.all.contains(&("tag", tag.to_string())) || !names.complete {
            continue;
        }
        let problem = note(compiled, rule, &format!("nothing is tagged {:?}", &**tag));
        notes.push(match names.near("tag", tag) {
            Some(near) => problem.hint(format!("{near:?} is a tag")),
            None => {
                problem.hint("tags are given in the configuration, under `tags` of an upstream")
            }
        });
    }
}

/// A policy that is about none of the items.
fn idle(
    compiled: &Compiled,
    classes: &Classes,
    rule: &Rule,
    items: &Items,
    notes: &mut Vec<Problem>,
) {
    let about_resources = match &rule.resource {
        Constraint::Is(ty) | Constraint::IsIn(ty, _) => **ty == *"Resource",
        Constraint::Eq((ty, _)) | Constraint::In((ty, _)) => **ty == *"Resource",
        Constraint::Any => true,
    };
    let about = |laid: &Arc<super::laid::Laid>| {
        let uses = laid.item.kind.uses().iter();
        let done = uses
            .chain(&[
                super::Action::Elicit,
                super::Action::Sample,
                super::Action::ListRoots,
            ])
            .any(|action| rule.actions.has(*action));
        done && may_be(rule, laid, classes)
    };
    if !items.all.is_empty() && !about_resources && !items.all.iter().any(about) {
        let message = format!("`{}` is about nothing that is there", rule.name);
        notes.push(note(compiled, rule, &message));
    }
}

/// A policy that another without conditions covers.
fn shadowed(compiled: &Compiled, rule: &Rule, items: &Items, notes: &mut Vec<Problem>) {
    let covers = |other: &&Rule| {
        !std::ptr::eq(*other, rule)
            && other.conditions.is_empty()
            && other.actions.union(rule.actions) == other.actions
            && principal_covers(compiled, &other.principal, &rule.principal)
            && resource_covers(items, &other.resource, &rule.resource)
    };
    for other in compiled.rules.iter().filter(covers) {
        let message = match (rule.permits, other.permits) {
            // Of two that are the same, the second is told.
            _ if rule.permits == other.permits
                && rule.conditions.is_empty()
                && other.actions == rule.actions
                && (&other.principal, &other.resource) == (&rule.principal, &rule.resource)
                && (other.file, other.span.start) > (rule.file, rule.span.start) =>
            {
                continue;
            }
            (true, true) if rule.approval.is_none() => {
                format!(
                    "`{}` adds nothing: `{}` permits all of it",
                    rule.name, other.name
                )
            }
            (false, false) => {
                format!(
                    "`{}` adds nothing: `{}` forbids all of it",
                    rule.name, other.name
                )
            }
            (true, false) => {
                format!(
                    "`{}` permits nothing: `{}` forbids all of it",
                    rule.name, other.name
                )
            }
            _ => continue,
        };
        let place = format!("{}:{}", compiled.files[other.file].name, other.place.0);
        notes.push(note(compiled, rule, &message).hint(format!("see {place}")));
        return;
    }
}

fn principal_covers(compiled: &Compiled, wide: &Constraint, narrow: &Constraint) -> bool {
    let above = |(ty, id): &Literal| {
        let groups = (**ty == *"Group").then(|| compiled.groups.above(id));
        groups.unwrap_or_default()
    };
    covers(wide, narrow, &|wide, narrow| {
        wide == narrow || *wide.0 == *"Group" && above(narrow).contains(&wide.1)
    })
}

fn resource_covers(items: &Items, wide: &Constraint, narrow: &Constraint) -> bool {
    covers(wide, narrow, &|wide, narrow| {
        let inside = |laid: &Arc<super::laid::Laid>| {
            let item = &laid.item;
            *item.outward == *narrow.1
                && *laid.type_name() == *narrow.0
                && (*wide.0 == *"Upstream" && item.upstream.as_str() == &*wide.1
                    || *wide.0 == *"Toolset" && item.toolsets.contains(&wide.1))
        };
        wide == narrow || items.all.iter().any(inside)
    })
}

/// Whether everything in one constraint is in another; `within` tells of entities.
fn covers(
    wide: &Constraint,
    narrow: &Constraint,
    within: &dyn Fn(&Literal, &Literal) -> bool,
) -> bool {
    match (wide, narrow) {
        (Constraint::Any, _) => true,
        (Constraint::Is(wide), Constraint::Is(narrow) | Constraint::IsIn(narrow, _)) => {
            wide == narrow
        }
        (Constraint::Is(wide), Constraint::Eq((ty, _))) => wide == ty,
        (Constraint::Eq(wide), Constraint::Eq(narrow)) => wide == narrow,
        (
            Constraint::In(wide),
            Constraint::In(narrow) | Constraint::Eq(narrow) | Constraint::IsIn(_, narrow),
        ) => within(wide, narrow),
        (Constraint::IsIn(ty, wide), Constraint::IsIn(other, narrow)) => {
            ty == other && within(wide, narrow)
        }
        (Constraint::IsIn(ty, wide), Constraint::Eq(narrow)) => {
            *ty == narrow.0 && within(wide, narrow)
        }
        _ => false,
    }
}

fn note(compiled: &Compiled, rule: &Rule, message: &str) -> Problem {
    let file = &compiled.files[rule.file];
    Problem::at(&file.name, &file.text, rule.span.start, message)
}
