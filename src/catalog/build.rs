//! Building a catalog: what each upstream brings is checked, names are given out, scopes are laid out.
//!
//! **Who gets a name.** A name belongs to the first that claims it, in configured order, and then for as long as that
//! upstream claims it under the same original name: neither an upstream that comes later nor one that stands before it
//! in the order takes it over (SECURITY CAT-1). While its holder is away, or not read yet after a change of rules, the
//! name stays reserved, so that nobody slips in. A program that starts anew has no holders and goes by the order: what an
//! upstream is remembered to have offered, and the names that begin with its prefix, are kept for it until it is read. Web
//! URIs begin with nobody's prefix and may be anybody's: they are kept for those before until each is read, or known to be away.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use super::{
    Catalog, Contribution,
    namespace::{self, Namespace, Prefixes},
    part::Part,
    report::{Reason, Report, Reports},
    resembling,
    rules::{CatalogRules, NamingRules},
    scope::{self, ScopeView},
    unread,
};
use crate::protocol::{UpstreamId, methods::ListKind};

/// Who holds an outward name: an upstream, and what it calls the item.
type Holder = (UpstreamId, Arc<str>);

/// The holders of one kind of name.
pub(super) type Held = HashMap<Arc<str>, Holder>;

pub(super) fn build(
    rules: &CatalogRules,
    contributions: &[(UpstreamId, Arc<Contribution>)],
    previous: Option<&Catalog>,
) -> Catalog {
    laid_out(rules, parts(rules, contributions, previous), previous)
}

/// `shared`, with what some upstreams offer to somebody in the place of what they offer to everybody.
pub(super) fn join(
    shared: &Catalog,
    own: &BTreeMap<UpstreamId, Arc<Contribution>>,
    previous: Option<&Catalog>,
) -> Catalog {
    let rules = &shared.rules;
    let parts = shared.parts.iter().map(|part| {
        let own = own.get(part.id());
        let before = previous
            .filter(|_| own.is_some())
            .and_then(|previous| previous.parts.iter().find(|it| it.naming == part.naming))
            .unwrap_or(part);
        let contribution = own.cloned().or_else(|| part.contribution.clone());
        let read_at = if own.is_some() {
            // Shared by all who are offered the same, whenever it was read for each of them: so nobody is to keep it.
            None
        } else {
            part.read_at.get()
        };
        Part::stocked(
            rules,
            &part.naming,
            &part.namespace,
            contribution,
            Some(before),
        )
        .read_at(read_at)
    });
    laid_out(rules, parts.collect(), Some(previous.unwrap_or(shared)))
}

/// Names are given out, and scopes laid out.
fn laid_out(rules: &CatalogRules, mut parts: Vec<Part>, previous: Option<&Catalog>) -> Catalog {
    let prefixes = prefixes(rules);
    let mut budgets = shares(rules.bounds.total_bytes, &parts);
    let mut reports: Vec<Report> = parts
        .iter()
        .flat_map(|part| part.shelves.iter().map(move |shelf| (part, shelf)))
        .flat_map(|(part, shelf)| {
            // What nobody knows yet cannot be said to be missing.
            let told =
                |report: &&Report| part.is_known() || !matches!(report.reason, Reason::Unmet(_));
            shelf.reports.iter().filter(told).cloned()
        })
        .chain(parts.iter().filter_map(|part| part.instructions.clone()))
        .chain(parts.iter().flat_map(Part::tags_of_nothing))
        .collect();
    let held = ListKind::EVERY.map(|kind| {
        let old = previous.map(|previous| &previous.held[kind as usize]);
        assign(&mut parts, kind, old, &prefixes, &mut budgets, &mut reports)
    });
    resembling::report(&parts, &mut reports);
    let scopes = scope::all(rules)
        .map(|scope| {
            let before = previous.and_then(|previous| previous.scopes.get(&scope));
            let view = ScopeView::new(&scope, rules, &parts, before);
            (scope, view)
        })
        .collect();
    Catalog {
        withholds_some: parts
            .iter()
            .any(|part| part.withheld.iter().any(|list| !list.is_empty())),
        has_tasks: parts.iter().any(|part| part.offers.tasks.is_some()),
        rules: rules.clone(),
        parts,
        scopes,
        prefixes,
        held,
        reports: reports.into(),
    }
}

fn parts(
    rules: &CatalogRules,
    contributions: &[(UpstreamId, Arc<Contribution>)],
    previous: Option<&Catalog>,
) -> Vec<Part> {
    let brought: HashMap<_, _> = contributions.iter().map(|(id, it)| (id, it)).collect();
    let part = |naming: &NamingRules| {
        let before = previous
            .filter(|previous| {
                previous.rules.names == rules.names && previous.rules.bounds == rules.bounds
            })
            .and_then(|previous| previous.parts.iter().find(|part| part.naming == *naming));
        let namespace = before.map_or_else(
            || Arc::new(Namespace::new(naming.prefix.clone(), rules.names)),
            |part| part.namespace.clone(),
        );
        let contribution = brought.get(&naming.upstream).map(|it| (*it).clone());
        let read_at = contribution.as_ref().and_then(|it| it.read_at);
        Part::stocked(rules, naming, &namespace, contribution, before).read_at(read_at)
    };
    rules.upstreams.iter().map(part).collect()
}

fn prefixes(rules: &CatalogRules) -> Prefixes {
    let mut prefixes = Prefixes::new();
    for (rank, naming) in rules.upstreams.iter().enumerate() {
        prefixes
            .entry(naming.prefix.clone())
            .and_modify(|owner| *owner = None)
            .or_insert(Some(rank));
    }
    prefixes
}

/// What is left of one upstream's share of the size of all definitions together.
#[derive(Clone)]
struct Budget {
    limit: usize,
    left: usize,
}

/// What each upstream may have of `total` bytes of definitions, by rank. Where all do not fit, those that need no more than an
/// equal share have what they need, and the others have equal shares of the rest: however much one brings, it takes nothing
/// from those who are content with their share.
fn shares(total: usize, parts: &[Part]) -> Vec<Budget> {
    let needs: Vec<usize> = parts.iter().map(need).collect();
    let mut ranks: Vec<_> = (0..parts.len()).collect();
    ranks.sort_by_key(|rank| needs[*rank]);
    let mut shares = vec![Budget { limit: 0, left: 0 }; parts.len()];
    let mut rest = total;
    for (served, rank) in ranks.into_iter().enumerate() {
        let share = needs[rank].min(rest / (parts.len() - served));
        rest -= share;
        shares[rank] = Budget {
            limit: share,
            left: share,
        };
    }
    shares
}

/// How many bytes the definitions have that an upstream may be served with. What is withheld counts for nothing.
fn need(part: &Part) -> usize {
    let withheld = part.contribution.as_ref().map(|it| &it.withheld);
    let served = ListKind::EVERY.into_iter().flat_map(|kind| {
        let items = part.shelves[kind as usize].items.iter();
        items.filter(move |item| !withheld.is_some_and(|it| it.has(kind, &item.route.local)))
    });
    served.map(|item| item.raw.len()).sum()
}

/// Gives out the names of one kind: fills `kept` and `shown` of each part, says who holds what from now on.
fn assign(
    parts: &mut [Part],
    kind: ListKind,
    old: Option<&Held>,
    prefixes: &Prefixes,
    budgets: &mut [Budget],
    reports: &mut Vec<Report>,
) -> Held {
    let at = kind as usize;
    let mut held = still_held(parts, kind, old);
    let ids: Vec<_> = parts.iter().map(|part| part.id().clone()).collect();
    let unread: Vec<_> = parts.iter().map(Part::is_unread).collect();
    let awaited = parts.iter().position(Part::is_awaited);
    // For now alone: who only is remembered to have had a name holds none against whoever stands before it and comes later.
    let mut claims = Held::new();
    for (rank, part) in parts.iter_mut().enumerate() {
        if unread[rank] {
            for (exposed, local) in part.claims(kind) {
                claims
                    .entry(exposed)
                    .or_insert_with(|| (part.id().clone(), local));
            }
        }
        let mut refused = Reports::new(part.id().clone(), kind);
        let shelf = part.shelves[at].clone();
        let withheld = part.contribution.as_ref().map(|it| it.withheld.clone());
        let withheld = withheld.unwrap_or_default();
        let budget = &mut budgets[rank];
        for item in &shelf.items {
            // Whoever stands before it, was not read yet, and may have the name by its spelling.
            let first = match kind {
                ListKind::Tools | ListKind::Prompts => {
                    unread::spelled(&item.exposed, prefixes).filter(|owner| unread[*owner])
                }
                ListKind::Resources | ListKind::Templates | ListKind::Skills => {
                    awaited.filter(|_| namespace::is_web(&item.exposed))
                }
            };
            let first = first.filter(|owner| *owner < rank && !held.contains_key(&item.exposed));
            if withheld.has(kind, &item.route.local) {
                // The name stays its own, so that nobody slips in, where it could have it if it were approved (CAT-1).
                let another = first.is_some()
                    || claims.contains_key(&item.exposed)
                    || foreign(kind, &item.exposed, rank, prefixes).is_some();
                if !another {
                    held.entry(item.exposed.clone())
                        .or_insert_with(|| (item.route.upstream.clone(), item.route.local.clone()));
                }
                refused.add(&item.route.local, Reason::Quarantined);
                part.withheld[at].push(item.clone());
                continue;
            }
            let Some(left) = budget.left.checked_sub(item.raw.len()) else {
                refused.add(&item.route.local, Reason::TotalTooLarge(budget.limit));
                part.crowded[at] = true;
                continue;
            };
            budget.left = left;
            part.kept[at].push(item.clone());
            if let Some(owner) = foreign(kind, &item.exposed, rank, prefixes) {
                refused.add(&item.route.local, Reason::Foreign(ids[owner].clone()));
                continue;
            }
            // Whoever stands before it may have it, and is not there yet.
            if !held.contains_key(&item.exposed)
                && let Some((claims, _)) = claims.get(&item.exposed)
            {
                refused.add(&item.route.local, Reason::Reserved(claims.clone()));
                continue;
            }
            if let Some(owner) = first {
                refused.add(&item.route.local, Reason::Reserved(ids[owner].clone()));
                continue;
            }
            let (holder, name) = held
                .entry(item.exposed.clone())
                .or_insert_with(|| (item.route.upstream.clone(), item.route.local.clone()));
            if *holder == item.route.upstream && *name == item.route.local {
                if let Some(content) = &item.flagged {
                    refused.add(&item.route.local, Reason::Flagged(content.clone()));
                }
                part.shown[at].push(item.clone());
            } else {
                refused.add(&item.route.local, Reason::Taken(holder.clone()));
            }
        }
        reports.extend(refused.into_list());
    }
    held
}

/// The names whose holders still claim them, or cannot be asked.
fn still_held(parts: &[Part], kind: ListKind, old: Option<&Held>) -> Held {
    let Some(old) = old else {
        return Held::new();
    };
    let away: HashSet<_> = parts
        .iter()
        .filter(|part| part.is_away())
        .map(Part::id)
        .collect();
    let reserved = old
        .iter()
        .filter(|(_, (upstream, _))| away.contains(upstream))
        .map(|(name, holder)| (name.clone(), holder.clone()));
    let claimed = parts
        .iter()
        .flat_map(|part| &part.shelves[kind as usize].items)
        .filter_map(|item| {
            let (upstream, local) = old.get(&item.exposed)?;
            (*upstream == item.route.upstream && *local == item.route.local)
                .then(|| (item.exposed.clone(), (upstream.clone(), local.clone())))
        });
    reserved.chain(claimed).collect()
}

/// Whose namespace a URI without prefix of its own lies in by its spelling, if another's.
fn foreign(kind: ListKind, exposed: &str, rank: usize, prefixes: &Prefixes) -> Option<usize> {
    if matches!(kind, ListKind::Tools | ListKind::Prompts) {
        return None;
    }
    let owner = (*prefixes.get(namespace::prefix_of(exposed)?)?)?;
    (owner != rank).then_some(owner)
}
