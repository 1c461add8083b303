//! The world one call sees: everything that may change while the program runs, behind one pointer and one revision number.
//!
//! Guarantees: one writer at a time; a call uses the snapshot it pinned to its end, so it never sees a mixture of old and
//! new; reading takes no lock, but for who is offered something of their own; whoever listens hears of a list only after the
//! snapshot in which it is another one is live, and of no list that stayed the same; what is offered and who may use it change
//! together.

mod items;
mod joins;
#[cfg(test)]
mod tests;
mod views;

use std::{
    collections::{BTreeMap, HashSet},
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use arc_swap::ArcSwap;
use tokio::{sync::watch, time::Instant};

use crate::{
    call::{Grantee, Identity},
    catalog::{Catalog, Contribution, Login, Report, Screen, View, Withheld, rules::CatalogRules},
    events::{Hub, Lists},
    findings::{Action, Direction, Finding, Findings},
    limits::{LimitRules, Limits},
    pins::{Ledger, Offered, Tells},
    policy::{Item, Policy, Prepared, Problem},
    protocol::{UpstreamId, methods::ListKind, names::Scope},
    tasks::{LaneArc, PerLaneArc},
};

pub use items::{Named, Unnamed, kind_of, list_of, toolset_of};

use joins::Joins;
use views::{Known, Views};

/// One state of the world.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts up with each change.
    pub revision: u64,
    /// What is offered, and where each name leads.
    pub catalog: Arc<Catalog>,
    /// Who may use it.
    policy: Prepared,
    views: Views,
    /// The upstreams of which it shows what they offer to somebody alone.
    own: Box<[UpstreamId]>,
    limits: Arc<Limits>,
}

/// The snapshot that a call sees, counted on its lane. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Seen(LaneArc<Snapshot>);

/// The current snapshot, to be seen on each lane.
#[derive(Debug)]
struct Current {
    snapshot: Arc<Snapshot>,
    of_lanes: PerLaneArc<Snapshot>,
}

/// Holds the current snapshot and makes the next one.
#[derive(Debug)]
pub struct World {
    current: ArcSwap<Current>,
    // Serialises writers and holds what they build from. A std mutex: never held across an await. Refreshes of upstreams,
    // approvals and reloads take it, never a call.
    writer: Mutex<Writer>,
    hub: Arc<Hub>,
    /// Judges what definitions say.
    screen: Screen,
    /// What was approved of definitions; `None`: nobody looks.
    ledger: Option<Arc<Ledger>>,
    /// Where is noted what is left out.
    findings: Option<Findings>,
    /// Counts up when other policies hold.
    regranted: watch::Sender<u64>,
    joins: Joins,
    known: Known,
}

/// What each upstream offers.
type Contributions = BTreeMap<UpstreamId, Arc<Contribution>>;

#[derive(Debug)]
struct Writer {
    rules: CatalogRules,
    contributions: Contributions,
    /// Views that somebody still uses, of this snapshot or earlier ones.
    known: Known,
}

impl Snapshot {
    fn new(
        revision: u64,
        catalog: Arc<Catalog>,
        policy: Prepared,
        known: &Known,
        limits: Arc<Limits>,
    ) -> Self {
        Self {
            limits,
            revision,
            catalog,
            policy,
            views: Views::new(known),
            own: Box::default(),
        }
    }

    /// Whether what it shows of an upstream is what that offers to one principal alone.
    pub fn is_own(&self, upstream: &UpstreamId) -> bool {
        self.own.contains(upstream)
    }

    /// Everything that is offered, as policies see it.
    pub fn items(&self) -> Vec<Item> {
        items::of(&self.catalog)
    }

    /// Who may use what is offered.
    pub const fn policy(&self) -> &Prepared {
        &self.policy
    }

    /// How much of it one caller may have.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What somebody sees of an endpoint; `None` when there is no such endpoint. Costs a look-up unless nobody of the same
    /// class was here before. Where no policy is configured everybody sees everything, which [`Catalog`] answers itself.
    pub fn view(&self, who: &Identity, scope: &Scope) -> Option<Arc<View>> {
        self.views.of(&self.catalog, &self.policy, who, scope)
    }
}

impl From<Arc<Snapshot>> for Seen {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self(LaneArc::new(snapshot))
    }
}

impl Deref for Seen {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.0
    }
}

impl Current {
    fn of(snapshot: Arc<Snapshot>) -> Arc<Self> {
        Arc::new(Self {
            of_lanes: PerLaneArc::new(&snapshot),
            snapshot,
        })
    }
}

impl World {
    /// A world in which no upstream has been reached yet, whose changes `hub` tells of, and in which everybody may use
    /// everything.
    pub fn new(rules: CatalogRules, hub: Arc<Hub>) -> Self {
        Self::under(&Policy::unrestricted(), rules, hub)
    }

    /// Like [`World::new`], but under these policies.
    pub fn under(policy: &Policy, rules: CatalogRules, hub: Arc<Hub>) -> Self {
        let screen = rules.screen.clone();
        let writer = Writer {
            rules,
            contributions: BTreeMap::new(),
            known: Known::default(),
        };
        let catalog = writer.build(&writer.contributions, None);
        let policy = policy.prepare(items::of(&catalog), None);
        let limits = Arc::default();
        let snapshot = Snapshot::new(1, Arc::new(catalog), policy, &writer.known, limits);
        Self {
            known: writer.known.clone(),
            joins: Joins::default(),
            current: ArcSwap::new(Current::of(Arc::new(snapshot))),
            writer: Mutex::new(writer),
            hub,
            screen,
            ledger: None,
            findings: None,
            regranted: watch::Sender::new(0),
        }
    }

    /// This world with definitions held to what `ledger` says was approved; what is left out is noted in `findings`.
    #[must_use]
    pub fn pinned(mut self, ledger: Arc<Ledger>, findings: Findings) -> Self {
        let writer = self.writer.get_mut();
        let writer = writer.unwrap_or_else(PoisonError::into_inner);
        for naming in &mut writer.rules.upstreams {
            naming.claims = ledger.offered(&naming.upstream).into();
        }
        self.ledger = Some(ledger);
        self.findings = Some(findings);
        self
    }

    /// Who listens for its changes.
    pub const fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The world as it is now.
    pub fn load(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.load().snapshot)
    }

    /// Some upstreams offer each principal something of their own from now on. Where none does, [`World::seen_by`] is
    /// [`World::load`].
    pub fn expect_own(&self) {
        self.joins.expect();
    }

    /// Whether some upstream offers each principal something of their own.
    pub fn expects_own(&self) -> bool {
        self.joins.are_expected()
    }

    /// The world as somebody sees it now: what upstreams offer to them alone is in the place of what those offer to everybody.
    pub fn seen_by(&self, who: &Identity) -> Seen {
        if !self.joins.are_expected() {
            return Seen(self.current.load().of_lanes.here());
        }
        let seen = self.joins.seen(&who.grantee(), self.load(), &self.known);
        seen.into()
    }

    /// Takes in what an upstream offers to one principal now, or that it offers them nothing of their own any more. Whoever
    /// listens looks whether that is another list to them; for all others nothing has changed.
    pub fn publish_to(
        &self,
        who: &Grantee,
        upstream: &UpstreamId,
        contribution: Option<Contribution>,
    ) {
        // What others are offered is no less offered for it: so nothing counts as taken away.
        self.put_to(who, upstream, |_| {
            contribution.map(|it| self.judged(upstream, it, Tells::Some))
        });
    }

    /// Puts something else in the place of what an upstream offers to one principal.
    fn put_to(
        &self,
        who: &Grantee,
        upstream: &UpstreamId,
        change: impl FnOnce(Option<Contribution>) -> Option<Contribution>,
    ) {
        let changed = self
            .joins
            .put(who, upstream, change, &self.load(), &self.known);
        if let Some((before, after)) = &changed {
            self.tell(&before.catalog, &after.catalog);
        }
    }

    /// Takes in what an upstream offers now, and tells whoever listens to a list that is another one thereby. A
    /// contribution equal to the last one changes nothing but until when clients may keep it.
    pub fn publish(&self, upstream: &UpstreamId, contribution: Contribution) {
        let whole = contribution.read_at.is_some() && self.joins.offered_by(upstream).is_empty();
        let tells = if whole { Tells::All } else { Tells::Some };
        self.put(&mut self.writer(), upstream, contribution, tells);
    }

    /// The record of an upstream is another one now: everything of it that is published is judged again.
    pub fn reconsider(&self, upstream: &UpstreamId) {
        {
            let mut writer = self.writer();
            let known = writer.contributions.get(upstream);
            if let Some(known) = known.map(|known| (**known).clone()) {
                self.put(&mut writer, upstream, known, Tells::Before);
            }
        }
        for who in self.joins.offered_by(upstream) {
            self.put_to(&who, upstream, |known| {
                known.map(|it| self.judged(upstream, it, Tells::Before))
            });
        }
    }

    /// A contribution, and what of it is not to be offered. What the gateway itself offers in it is no matter of pins; what is
    /// stale tells nothing.
    fn judged(
        &self,
        upstream: &UpstreamId,
        mut contribution: Contribution,
        tells: Tells,
    ) -> Contribution {
        let Some(ledger) = &self.ledger else {
            return contribution;
        };
        let card = contribution.card.as_ref();
        let card = card.filter(|_| contribution.login != Login::Alone);
        let withheld = ledger.judge(
            upstream,
            &Offered {
                lists: ListKind::EVERY.map(|kind| contribution.said(kind)),
                instructions: card.and_then(|card| card.instructions.as_deref()),
                tells: if card.is_some() && !contribution.away {
                    tells
                } else {
                    Tells::Nothing
                },
                doubt: &|kind, definition| {
                    let doubt = self.screen.doubt(upstream, kind, definition)?;
                    Some(doubt.to_string())
                },
            },
        );
        contribution.withheld = Withheld {
            all: withheld.all,
            instructions: withheld.instructions,
            items: (!withheld.items.is_empty()).then(|| Arc::new(withheld.items)),
        };
        contribution
    }

    fn put(
        &self,
        writer: &mut Writer,
        upstream: &UpstreamId,
        contribution: Contribution,
        tells: Tells,
    ) {
        // Under the lock: whoever reconsiders finds it, or it was judged by the record that they go by.
        let contribution = self.judged(upstream, contribution, tells);
        let known = writer.contributions.get(upstream);
        if known.is_some_and(|known| known.offers_the_same(&contribution)) {
            if let Some(read_at) = contribution.read_at {
                self.confirmed(writer, upstream, read_at);
            }
            return;
        }
        // In their place only once a catalog was made of them: what it cannot be made of must not break those after it.
        let mut contributions = writer.contributions.clone();
        contributions.insert(upstream.clone(), Arc::new(contribution));
        let before = self.load();
        let catalog = writer.build(&contributions, Some(&before.catalog));
        let policy = if before.policy.policy().is_unrestricted() {
            before.policy.clone()
        } else {
            let policy = before.policy.policy();
            policy.prepare(items::of(&catalog), Some(&before.policy))
        };
        let after = Snapshot::new(
            before.revision + 1,
            Arc::new(catalog),
            policy,
            &writer.known,
            before.limits.clone(),
        );
        let after = Arc::new(after);
        writer.contributions = contributions;
        self.current.store(Current::of(Arc::clone(&after)));
        self.note_excluded(&before.catalog, &after.catalog);
        // Still under the lock: those who listen hear of changes in the order in which they happened.
        self.tell(&before.catalog, &after.catalog);
    }

    /// Puts other policies in force, for calls that begin from now on. Whoever listens looks again at what it sees, and at
    /// what it may hear of.
    ///
    /// # Errors
    /// When they do not fit what is offered; then those before stay in force.
    pub fn govern(&self, policy: &Policy) -> Result<(), Vec<Problem>> {
        self.govern_within(policy, None)
    }

    /// The same, and other limits with them, if any: no call goes by the ones and not by the others.
    ///
    /// # Errors
    /// As [`World::govern`]; then the limits before stay in force, too.
    pub fn govern_within(
        &self,
        policy: &Policy,
        rules: Option<LimitRules>,
    ) -> Result<(), Vec<Problem>> {
        let writer = self.writer();
        let before = self.load();
        let policy = policy.prepare(items::of(&before.catalog), Some(&before.policy));
        if !policy.problems().is_empty() {
            return Err(policy.problems().to_vec());
        }
        let revision = before.revision + 1;
        let limits = match rules {
            Some(rules) => Arc::new(before.limits.swapped(rules)),
            None => before.limits.clone(),
        };
        let catalog = before.catalog.clone();
        let after = Snapshot::new(revision, catalog, policy, &writer.known, limits);
        self.current.store(Current::of(Arc::new(after)));
        self.regranted.send_modify(|count| *count += 1);
        // Who sees another list now, each listener finds out for itself.
        for scope in before.catalog.scopes() {
            self.hub.lists_changed(scope, Lists::ALL);
        }
        Ok(())
    }

    /// Puts other limits in force, for calls that begin from now on; what was metered by rules that stay counts on.
    pub fn limit(&self, rules: LimitRules) {
        let writer = self.writer();
        let before = self.load();
        let limits = Arc::new(before.limits.swapped(rules));
        let after = Snapshot::new(
            before.revision + 1,
            before.catalog.clone(),
            before.policy.clone(),
            &writer.known,
            limits,
        );
        self.current.store(Current::of(Arc::new(after)));
    }

    /// Tells when other policies are in force.
    pub fn regranted(&self) -> watch::Receiver<u64> {
        self.regranted.subscribe()
    }

    /// What an upstream offers was read again at `read_at` and is the same: clients may keep it for longer.
    pub fn confirm(&self, upstream: &UpstreamId, read_at: Instant) {
        self.confirmed(&mut self.writer(), upstream, read_at);
    }

    fn confirmed(&self, writer: &mut Writer, upstream: &UpstreamId, read_at: Instant) {
        let Some(known) = writer.contributions.get_mut(upstream) else {
            return;
        };
        // The lists are shared, so this copies little; the next build goes by it.
        Arc::make_mut(known).read_at = Some(read_at);
        self.load().catalog.confirm(upstream, read_at);
        self.joins.each(|snapshot| {
            if !snapshot.is_own(upstream) {
                snapshot.catalog.confirm(upstream, read_at);
            }
        });
    }

    /// Notes what is left out now and was not before. What is not approved was noted when it was found.
    fn note_excluded(&self, before: &Catalog, after: &Catalog) {
        let Some(findings) = &self.findings else {
            return;
        };
        let key = |report: &Report| {
            let Report {
                upstream,
                kind,
                name,
                reason,
            } = report;
            (upstream.clone(), *kind, name.clone(), reason.word())
        };
        let known: HashSet<_> = before.reports().iter().map(key).collect();
        for report in after.reports().iter() {
            let word = report.reason.word();
            if word == "not_approved" || known.contains(&key(report)) {
                continue;
            }
            let action = if report.reason.excludes() {
                Action::Quarantine
            } else {
                Action::Flag
            };
            findings.note(
                Finding {
                    kind: "definition",
                    rule: word.into(),
                    action,
                    direction: Direction::Definitions,
                    place: format!("/{}", report.kind.member()).into(),
                    length: 0,
                    digest: None,
                    upstream: Some(report.upstream.clone()),
                    item: Some(report.name.as_str().into()),
                    call: None,
                    at: SystemTime::now(),
                },
                None,
            );
        }
    }

    fn tell(&self, before: &Catalog, after: &Catalog) {
        if self.hub.is_silent() {
            return;
        }
        for scope in after.scopes() {
            let changed = ListKind::EVERY
                .into_iter()
                .filter(|kind| !after.same_list(before, scope, *kind))
                .fold(Lists::NONE, |set, kind| set | Lists::of(kind));
            if !changed.is_empty() {
                self.hub.lists_changed(scope, changed);
            }
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn build(&self, contributions: &Contributions, previous: Option<&Catalog>) -> Catalog {
        let parts: Vec<_> = self
            .rules
            .upstreams
            .iter()
            .filter_map(|naming| contributions.get_key_value(&naming.upstream))
            .map(|(id, contribution)| (id.clone(), contribution.clone()))
            .collect();
        Catalog::build(&self.rules, &parts, previous)
    }
}
