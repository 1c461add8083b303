//! Parts: one configured upstream in a catalog, and what it brings, checked.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    Contribution, Route,
    check::Item,
    moment::Moment,
    namespace::Namespace,
    report::{Reason, Report, Reports},
    rules::{CatalogRules, NamingRules},
    shelf::Shelf,
    skills,
};
use crate::protocol::{UpstreamId, extensions::Offers, methods::ListKind};

/// One configured upstream and what it brings.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) naming: NamingRules,
    pub(super) namespace: Arc<Namespace>,
    /// What came; `None` until the upstream was reached once, or is known to be away.
    pub(super) contribution: Option<Arc<Contribution>>,
    /// What the operator is told of its instructions.
    pub(super) instructions: Option<Report>,
    /// What it has of the extensions that we understand.
    pub(super) offers: Offers,
    /// When its lists were last known to be so.
    pub(super) read_at: Moment,
    pub(super) shelves: [Arc<Shelf>; ListKind::COUNT],
    /// Which resources are files of its skills.
    pub(super) skill_files: Arc<skills::Files>,
    /// What of the shelves is kept: served at the upstream's own endpoint.
    pub(super) kept: [Vec<Arc<Item>>; ListKind::COUNT],
    /// What of that has its outward name: served with all others.
    pub(super) shown: [Vec<Arc<Item>>; ListKind::COUNT],
    /// What of the shelves is fit to be offered and not approved: served nowhere.
    pub(super) withheld: [Vec<Arc<Item>>; ListKind::COUNT],
    /// Of which lists some is beyond its share of the size of all definitions.
    pub(super) crowded: [bool; ListKind::COUNT],
}

impl Part {
    /// Whether it told what it is.
    pub(super) fn is_known(&self) -> bool {
        let card = self.contribution.as_deref().map(|it| it.card.is_some());
        card.unwrap_or(false)
    }

    /// What gives tags to nothing that is there; nobody knows where a list is missing or was cut short.
    pub(super) fn tags_of_nothing(&self) -> Vec<Report> {
        let cut = self.shelves.iter().any(|shelf| shelf.truncated);
        if self.naming.labels.tags.is_empty() || !self.is_known() || cut {
            return Vec::new();
        }
        let names = ListKind::EVERY.into_iter().zip(&self.shelves);
        let names = names.flat_map(|(kind, shelf)| shelf.names(kind));
        let names: Vec<_> = names.collect();
        let mut told = Reports::new(self.id().clone(), ListKind::Tools);
        for glob in self
            .naming
            .tags_of_nothing(names.iter().map(|name| &**name))
        {
            told.add(glob, Reason::OfNothing);
        }
        told.into_list()
    }

    /// What an upstream brings, checked. What is as in `before` is taken over.
    pub(super) fn stocked(
        rules: &CatalogRules,
        naming: &NamingRules,
        namespace: &Arc<Namespace>,
        contribution: Option<Arc<Contribution>>,
        before: Option<&Self>,
    ) -> Self {
        let (contribution, instructions) = screened(rules, &naming.upstream, contribution);
        let nothing = Contribution::default();
        let lists = contribution.as_deref().unwrap_or(&nothing);
        let shelves = ListKind::EVERY.map(|kind| {
            let before = before.map(|part| &part.shelves[kind as usize]);
            Shelf::stock(rules, naming, namespace, kind, lists.listing(kind), before)
        });
        let at = ListKind::Skills as usize;
        let same = before.filter(|part| Arc::ptr_eq(&part.shelves[at], &shelves[at]));
        let read = || {
            let (entries, bounds) = (&lists.skills.items, &rules.bounds);
            skills::Files::of(entries, bounds.items, bounds.definition_bytes).into()
        };
        let skill_files = same.map_or_else(read, |part| part.skill_files.clone());
        Self {
            skill_files,
            naming: naming.clone(),
            namespace: namespace.clone(),
            offers: offers(contribution.as_deref()),
            read_at: Moment::default(),
            contribution,
            instructions,
            shelves,
            kept: Default::default(),
            shown: Default::default(),
            withheld: Default::default(),
            crowded: Default::default(),
        }
    }

    pub(super) fn read_at(mut self, at: Option<Instant>) -> Self {
        self.read_at = Moment::new(at);
        self
    }

    /// Whose it is.
    pub(super) const fn id(&self) -> &UpstreamId {
        &self.naming.upstream
    }

    /// Whether what is known of it may be out of date, or nothing is known.
    pub(super) fn is_away(&self) -> bool {
        self.contribution
            .as_ref()
            .is_none_or(|contribution| contribution.away || contribution.card.is_none())
    }

    /// Whether one of its lists has more entries than are offered, or may have: it was cut short when it was read, or at a bound of
    /// the catalog.
    pub(super) fn is_cut(&self, kind: ListKind) -> bool {
        let shelf = &self.shelves[kind as usize];
        shelf.truncated || shelf.overflows || self.crowded[kind as usize]
    }

    /// Whether nobody knows yet whether it is there: a login may stand in for it meanwhile.
    pub(super) fn is_awaited(&self) -> bool {
        self.contribution.as_ref().is_none_or(|it| it.awaited)
    }

    /// Whether nothing was heard of it yet, or nothing that still holds.
    pub(super) fn is_unheard(&self) -> bool {
        self.contribution
            .as_ref()
            .is_none_or(|it| it.awaited || it.away && it.card.is_none())
    }

    /// The way to what it calls `local`.
    pub(super) fn route(&self, local: String) -> Route {
        Route {
            upstream: self.id().clone(),
            local: local.into(),
            headers: Arc::new([]),
            task_only: false,
            terms: None,
        }
    }
}

/// What an upstream brings, without instructions that must not be shown to a model; what is to be said of them.
fn screened(
    rules: &CatalogRules,
    upstream: &UpstreamId,
    contribution: Option<Arc<Contribution>>,
) -> (Option<Arc<Contribution>>, Option<Report>) {
    let card = contribution.as_ref().and_then(|it| it.card.as_ref());
    let Some(instructions) = card.and_then(|card| card.instructions.as_deref()) else {
        return (contribution, None);
    };
    let text = crate::json::Json::string(instructions);
    let screened = rules.screen.look(upstream, None, &text);
    let report = |reason| Report {
        upstream: upstream.clone(),
        kind: ListKind::Tools,
        name: "instructions".to_owned(),
        reason,
    };
    match (screened.withheld, screened.flagged) {
        (Some(content), _) => {
            let without = contribution.map(|contribution| {
                let mut without = Contribution::clone(&contribution);
                if let Some(card) = &mut without.card {
                    card.instructions = None;
                }
                Arc::new(without)
            });
            (without, Some(report(Reason::Content(content))))
        }
        (None, Some(content)) => {
            let withheld = contribution
                .as_ref()
                .is_some_and(|it| it.withheld.instructions);
            let reason = if withheld {
                Reason::Quarantined
            } else {
                Reason::Flagged(content)
            };
            (contribution, Some(report(reason)))
        }
        (None, None) => (contribution, None),
    }
}

fn offers(contribution: Option<&Contribution>) -> Offers {
    let card = contribution.and_then(|contribution| contribution.card.as_ref());
    card.map_or_else(Offers::default, |card| {
        Offers::of(&card.capabilities, card.revision.features())
    })
}
