//! Governing: the policies of a directory, in force from the start and after every change of it (PRODUCT 9).
//!
//! Guarantees: a set is put in force whole or not at all (SECURITY AUTHZ-3); what is wrong with one is told with file and line, once
//! for each state of its files, and the set before stays, also where a case comes out wrong and that is enforced; where the set in
//! force does not fit what upstreams bring later, or breaks such a case, that is told, and it stays; a changed directory is in
//! force within a second (AUTHZ-10), but not while it is being written; without a set that can be used nothing is permitted
//! (AUTHZ-1), and none at all counts as such where callers are asked who they are (SECURITY 9).
//! Deliberately absent: what is wrong, which `policy` says.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    audit::journal::{Journal, Kind},
    config::{Plan, PolicyPlan},
    limits::LimitRules,
    policy::{Item, Outcome, Policy, Problem},
    snapshot::World,
    tasks::Tasks,
};

/// How often the directory is looked at. A change is taken when two looks see the same, so that no set is read half written.
const LOOK: Duration = Duration::from_millis(200);
/// How long after a look that ended early all is read again.
const AGAIN: Duration = Duration::from_secs(5);
/// The most files of a directory that are looked at.
const FILES: usize = 4_096;

/// Keeps the policies of one directory in force.
#[derive(Debug)]
pub(super) struct Governor {
    plan: PolicyPlan,
    world: Arc<World>,
    journal: Journal,
    // Serialises reloads. Held while files are read and policies are validated, and so on no thread that serves.
    standing: Mutex<Standing>,
    /// What is wrong now. Held for a copy.
    problems: Mutex<Vec<Problem>>,
}

/// How the directory stands.
#[derive(Debug, Default)]
struct Standing {
    /// What is wrong with what was read last, where it is not in force.
    refused: Vec<Problem>,
    /// What was seen of the directory when that was told.
    refused_of: DirListing,
    /// What the look-out saw of the directory last.
    seen: Option<DirListing>,
    /// What it had seen of it when it had it read last.
    acted_on: Option<DirListing>,
    /// That what was looked at last ended early, and when all is read again.
    early: Option<(Vec<Problem>, Instant)>,
    /// The revision of the world that what was read last does not fit.
    unfit: Option<u64>,
    /// The set in force as it was read last, of which only the cases can be others.
    read: Option<Policy>,
    /// What was seen of the directory when that was read.
    read_of: DirListing,
    /// The revision of the world that the set in force was held against last.
    checked_at: Option<u64>,
    /// What did not fit then.
    misfits: Vec<Problem>,
    /// The cases that came out wrong when they were judged last, where they are enforced: each with its name.
    broken: Vec<(String, Problem)>,
    /// What was seen of the directory that those cases are of.
    broken_of: DirListing,
}

/// What is seen of a file without reading it: name, device, inode, length, times of content and of everything.
type DirListing = Vec<(std::ffi::OsString, [i128; 5])>;

/// The set to begin with: that of the directory, or nothing and what is wrong. Without a directory everything is permitted
/// where nobody is asked who they are, and nothing where somebody is (SECURITY 9, AUTHZ-1).
pub(super) fn first(plan: &Plan) -> (Policy, Vec<Problem>) {
    match (&plan.policy, &plan.auth) {
        (Some(policy), _) => loaded(policy),
        (None, Some(_)) => (Policy::deny_everything(), vec![none()]),
        (None, None) => (Policy::unrestricted(), Vec::new()),
    }
}

fn loaded(plan: &PolicyPlan) -> (Policy, Vec<Problem>) {
    match Policy::load(&plan.dir) {
        Ok(policy) => (policy, Vec::new()),
        Err(problems) => {
            tell(&problems, "nothing is permitted until this is mended");
            (Policy::deny_everything(), problems)
        }
    }
}

/// What would have a set refused while this is offered: cases that come out wrong, where that is enforced, and what does not fit.
pub fn unfit_policies(plan: &PolicyPlan, policy: &Policy, items: Vec<Item>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if plan.enforce_cases {
        problems = broken_cases(plan, policy, &items);
    }
    problems.extend_from_slice(policy.prepare(items, None).problems());
    problems
}

/// The cases of a set that do not come out as they say over these items, without those about what is none of them.
pub fn failing_cases(plan: &PolicyPlan, policy: &Policy, items: &[Item]) -> Vec<Problem> {
    let outcomes = policy.run_cases(items, SystemTime::now());
    let known = outcomes.iter().filter(|outcome| !outcome.unknown);
    known
        .filter_map(|outcome| case_problem(plan, outcome))
        .collect()
}

/// The cases of a set that do not come out as they say, over what is offered and what they tell of.
fn broken_cases(plan: &PolicyPlan, policy: &Policy, items: &[Item]) -> Vec<Problem> {
    let outcomes = policy.run_cases(items, SystemTime::now());
    let broken = outcomes
        .iter()
        .filter_map(|outcome| case_problem(plan, outcome));
    broken.collect()
}

/// The problem that a case is which does not come out as it says.
fn case_problem(plan: &PolicyPlan, outcome: &Outcome) -> Option<Problem> {
    let failure = outcome.failure.as_deref()?;
    Some(Problem {
        file: plan.dir.join("cases.yaml").display().to_string(),
        line: outcome.line,
        column: 1,
        message: format!("case `{}`: {failure}", outcome.name),
        hint: Some(if plan.enforce_cases {
            "mend the policies or the case; `policy.enforce_cases` is on".into()
        } else {
            "mend the policies or the case; `usher policy test` runs it".into()
        }),
    })
}

/// What is wrong where callers are asked who they are and no policy says what they may do.
fn none() -> Problem {
    Problem {
        file: "policy".to_owned(),
        line: 0,
        column: 0,
        message: "`auth` without `policy`: nobody may use anything".to_owned(),
        hint: Some(
            "`usher init --operator YOU` writes policies that permit you alone; then name their directory: \
             `policy: { dir: policies }`"
                .to_owned(),
        ),
    }
}

impl Standing {
    /// What is wrong with what was read last, what of the set in force does not fit what is offered, and the cases that it breaks.
    fn problems(&self) -> Vec<Problem> {
        let early = self.early.iter().flat_map(|(told, _)| told);
        let refused = early.chain(&self.refused).cloned();
        refused.chain(self.unfit_now()).collect()
    }

    /// What of the set in force did not fit what was offered last, and the cases that it breaks.
    fn unfit_now(&self) -> Vec<Problem> {
        let broken = self.broken.iter().map(|(_, told)| told);
        self.misfits.iter().chain(broken).cloned().collect()
    }
}

impl Governor {
    /// Begins to look at the directory.
    pub(super) fn start(
        plan: PolicyPlan,
        problems: Vec<Problem>,
        world: Arc<World>,
        journal: Journal,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let governor = Arc::new(Self {
            problems: Mutex::new(problems.clone()),
            standing: Mutex::new(Standing {
                refused: problems,
                refused_of: list(&plan.dir),
                read_of: list(&plan.dir),
                ..Standing::default()
            }),
            plan,
            world,
            journal,
        });
        let own = Arc::clone(&governor);
        tasks.spawn(async move { own.look_out().await });
        governor
    }

    /// Reads the directory now. Where the configuration was read with it, `limits` are those that it has now: they are put in force
    /// with what is read, as one, or not at all.
    ///
    /// What of the set in force does not fit what is offered is no error: no file is to blame, and nothing is kept from what else
    /// is read again.
    ///
    /// # Errors
    /// Everything that is wrong; then the set before stays in force.
    fn reload(&self, limits: Option<LimitRules>) -> Result<Vec<Problem>, Vec<Problem>> {
        let mut standing = self.standing();
        let reloaded = self.read(&mut standing, limits);
        self.know(standing.problems());
        reloaded
    }

    fn read(
        &self,
        standing: &mut Standing,
        limits: Option<LimitRules>,
    ) -> Result<Vec<Problem>, Vec<Problem>> {
        (standing.unfit, standing.early) = (None, None);
        // Before it is read: what is written meanwhile is looked at again.
        let seen = list(&self.plan.dir);
        let before = self.world.load();
        let result = Policy::load(&self.plan.dir).and_then(|policy| {
            let digest = policy.digest();
            if digest == before.policy().policy().digest() {
                if !standing.refused.is_empty() {
                    tracing::info!(
                        digest,
                        "the policies are mended: they are those in force again"
                    );
                }
                if let Some(limits) = limits {
                    self.world.limit(limits);
                }
                // Its cases may be others.
                standing.read = Some(policy);
                standing.read_of.clone_from(&seen);
                standing.checked_at = None;
                return Ok(());
            }
            if self.plan.enforce_cases {
                let broken = broken_cases(&self.plan, &policy, &before.items());
                if !broken.is_empty() {
                    standing.unfit = Some(before.revision);
                    return Err(broken);
                }
            }
            self.world.govern_within(&policy, limits).inspect_err(|_| {
                standing.unfit = Some(before.revision);
            })?;
            standing.read = Some(policy.clone());
            standing.read_of.clone_from(&seen);
            tracing::info!(digest, "other policies are in force");
            self.journal.note(Kind::Policy, |detail| {
                detail
                    .text("before", before.policy().policy().digest())
                    .text("digest", digest)
                    .text("state", "in_force");
            });
            Ok(())
        });
        if let Err(problems) = result {
            // Whoever writes the same mistake again is told again; nobody is told twice of the same files.
            if problems != standing.refused || seen != standing.refused_of {
                tell(&problems, "the policies before stay in force");
                self.noted(&problems, "refused");
                standing.refused.clone_from(&problems);
                standing.refused_of = seen;
            }
            return Err(problems);
        }
        standing.refused.clear();
        self.check_against_catalog(standing);
        Ok(standing.unfit_now())
    }

    /// Holds the set in force against what is offered now: upstreams come, and their tools change, when it is in force already. What
    /// does not fit is told; the set stays, since what it cannot be evaluated for is denied. So is a case that it breaks, as the set
    /// of a start may, of which nobody could know before anything was offered: only a reload is refused for that (PRODUCT 9).
    fn check_against_catalog(&self, standing: &mut Standing) {
        let now = self.world.load();
        if standing.checked_at == Some(now.revision) {
            return;
        }
        standing.checked_at = Some(now.revision);
        let misfits = now.policy().problems().to_vec();
        let (mut broken, mut all_judged) = (Vec::new(), true);
        if self.plan.enforce_cases {
            let policy = standing.read.as_ref().unwrap_or(now.policy().policy());
            for outcome in policy.run_cases(&now.items(), SystemTime::now()) {
                if !outcome.unknown {
                    let told = case_problem(&self.plan, &outcome);
                    broken.extend(told.map(|it| (outcome.name, it)));
                    continue;
                }
                // Of a case about something that nobody offers now nothing new can be said: an upstream may be away. What was found
                // of the very same case stays so.
                all_judged = false;
                if standing.broken_of == standing.read_of {
                    let mut before = standing.broken.iter();
                    broken.extend(before.find(|(name, _)| *name == outcome.name).cloned());
                }
            }
        }
        standing.broken_of.clone_from(&standing.read_of);
        let (fit, kept) = (misfits == standing.misfits, broken == standing.broken);
        if fit && kept {
            return;
        }
        if !fit && !misfits.is_empty() {
            let stay =
                "these policies stay in force; calls that they cannot be evaluated for are denied";
            tell(&misfits, stay);
        }
        if !kept && !broken.is_empty() {
            let told: Vec<Problem> = broken.iter().map(|(_, told)| told.clone()).collect();
            tell(
                &told,
                "these policies are in force though they break cases: what those expect to be denied may be permitted",
            );
        }
        (standing.misfits, standing.broken) = (misfits, broken);
        let unfit = standing.unfit_now();
        if !unfit.is_empty() {
            self.noted(&unfit, "unfit");
        } else if all_judged {
            tracing::info!("the policies fit what is offered again");
        }
    }

    fn noted(&self, problems: &[Problem], state: &'static str) {
        self.journal.note(Kind::Policy, |detail| {
            detail
                .number("problems", problems.len() as u64)
                .text("state", state);
        });
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Problem>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn know(&self, problems: Vec<Problem>) {
        *self.known() = problems;
    }

    /// The same without holding up whoever waits: validating some hundred policies takes a while.
    ///
    /// # Errors
    /// As [`Governor::reload`].
    pub(super) async fn reloaded(
        self: &Arc<Self>,
        limits: Option<LimitRules>,
    ) -> Result<Vec<Problem>, Vec<Problem>> {
        let reloaded = self.looked(|own| own.reload(limits)).await;
        reloaded.unwrap_or_else(Err)
    }

    /// Has `look` done on a blocking thread. Where it panics, that is told beside what else is wrong, and all is read again in a while.
    ///
    /// # Errors
    /// A problem that says so.
    async fn looked<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Vec<Problem>> {
        let own = Arc::clone(self);
        let looked = to_the_end("policy", move || Ok(look(&own))).await;
        if let Err(early) = &looked {
            let (own, early) = (Arc::clone(self), early.clone());
            // Somebody else may be reading by now.
            let noted = to_the_end("policy", move || {
                own.ended_early(early);
                Ok(())
            });
            drop(noted.await);
        }
        looked
    }

    fn ended_early(&self, early: Vec<Problem>) {
        let mut standing = self.standing();
        standing.early = Some((early, Instant::now() + AGAIN));
        self.know(standing.problems());
    }

    /// What is wrong, as of the end of what was looked at last.
    pub(super) fn problems(&self) -> Vec<Problem> {
        self.known().clone()
    }

    async fn look_out(self: Arc<Self>) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            // It waits for a disk, and validates, which takes a while. That it ends early is told.
            drop(self.looked(Self::look_once).await);
        }
    }

    /// Looks at the directory, and has it read where it has changed and is not being written any more.
    fn look_once(&self) {
        let now = Some(list(&self.plan.dir));
        let mut standing = self.standing();
        let is_settled = std::mem::replace(&mut standing.seen, now.clone()) == now;
        // Whether a set did not fit what was offered, which is something else now.
        let may_fit = standing
            .unfit
            .is_some_and(|revision| revision != self.world.load().revision);
        let early = standing.early.as_ref();
        let again = early.is_some_and(|(_, again)| *again <= Instant::now());
        if is_settled && (now != standing.acted_on || may_fit || again) {
            standing.acted_on = now;
            // What is wrong is told.
            drop(self.read(&mut standing, None));
        } else if standing.checked_at != Some(self.world.load().revision) {
            self.check_against_catalog(&mut standing);
        } else {
            return;
        }
        self.know(standing.problems());
    }
}

/// Runs `read` on a blocking thread: it reads files, and may take a while.
///
/// # Errors
/// Those of `read`; where it panics, a problem with `what` that says so.
pub(super) async fn to_the_end<T: Send + 'static>(
    what: &str,
    read: impl FnOnce() -> Result<T, Vec<Problem>> + Send + 'static,
) -> Result<T, Vec<Problem>> {
    let done = tokio::task::spawn_blocking(read).await;
    done.unwrap_or_else(|_| {
        Err(vec![Problem {
            file: what.to_owned(),
            line: 0,
            column: 0,
            message: "reading ended early; see the log".to_owned(),
            hint: None,
        }])
    })
}

fn tell(problems: &[Problem], outcome: &str) {
    for problem in problems {
        tracing::error!("policy: {problem}");
    }
    tracing::error!("{outcome}");
}

/// What is seen of a directory without reading its files; the same as before for as long as nothing is written.
fn list(dir: &Path) -> DirListing {
    let Ok(entries) = fs::read_dir(dir) else {
        return DirListing::new();
    };
    let mut seen: DirListing = entries
        .take(FILES)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            // Through links: that is how mounted configuration is swapped.
            let meta = fs::metadata(entry.path()).ok()?;
            let nanos =
                |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            let facts = [
                i128::from(meta.dev()),
                i128::from(meta.ino()),
                i128::from(meta.len()),
                nanos(meta.mtime(), meta.mtime_nsec()),
                nanos(meta.ctime(), meta.ctime_nsec()),
            ];
            Some((entry.file_name(), facts))
        })
        .collect();
    seen.sort();
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::rules::CatalogRules,
        events::{Bounds, Hub},
        logged::Logged,
    };

    const GOOD: &str = "permit(principal, action, resource);";

    /// Of the policies in this directory.
    fn governor(directory: &Path) -> Governor {
        let plan = PolicyPlan {
            dir: directory.to_owned(),
            enforce_cases: false,
        };
        let rules = CatalogRules {
            names: Default::default(),
            pages: Default::default(),
            bounds: Default::default(),
            screen: Default::default(),
            upstreams: Vec::new(),
            toolsets: Vec::new(),
        };
        let policy = Policy::load(&plan.dir).unwrap();
        let world = World::under(&policy, rules, Hub::new(Bounds::default()));
        Governor {
            plan,
            world: Arc::new(world),
            journal: Journal::off(),
            standing: Mutex::default(),
            problems: Mutex::default(),
        }
    }

    #[test]
    fn what_is_wrong_is_told_while_policies_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("main.cedar");
        fs::write(&file, GOOD).unwrap();
        let governor = governor(directory.path());
        fs::write(&file, "permit(principal").unwrap();
        // When nothing changes any more it is read.
        governor.look_once();
        assert_eq!(governor.problems(), []);
        governor.look_once();
        let reading = governor.standing();
        assert_eq!(governor.problems().len(), 1);
        drop(reading);
        fs::write(&file, GOOD).unwrap();
        assert_eq!(governor.reload(None), Ok(Vec::new()));
        assert_eq!(governor.problems(), []);
    }

    /// SECURITY REL-10: nobody calls by the policies of one configuration and the limits of another.
    #[test]
    fn policies_and_limits_that_are_read_together_are_in_force_together_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(directory.path().join("main.cedar"), text).unwrap();
        write(GOOD);
        let governor = governor(directory.path());
        let world = &governor.world;
        let seen = |world: &World| {
            let now = world.load();
            (now.revision, now.limits().rules().in_flight.process)
        };
        let process = |process: usize| {
            let mut rules = world.load().limits().rules().clone();
            rules.in_flight.process = process;
            Some(rules)
        };
        let (revision, before) = seen(world);
        write("permit(principal");
        governor.reload(process(7)).unwrap_err();
        assert_eq!(seen(world), (revision, before));
        write("forbid(principal, action, resource);");
        governor.reload(process(7)).unwrap();
        assert_eq!(seen(world), (revision + 1, 7));
        assert!(!world.load().policy().policy().is_unrestricted());
        // The policies are the same, and those in force when they are read by themselves.
        governor.reload(process(8)).unwrap();
        assert_eq!(seen(world), (revision + 2, 8));
        governor.reload(None).unwrap();
        assert_eq!(seen(world), (revision + 2, 8));
        write(GOOD);
        governor.reload(None).unwrap();
        assert_eq!(seen(world), (revision + 3, 8));
    }

    #[tokio::test]
    async fn reading_that_panics_is_told_as_that() {
        let read = to_the_end("policy", || -> Result<(), _> { panic!("on purpose") });
        let problems = read.await.unwrap_err();
        assert_eq!(problems.len(), 1);
        let told = problems[0].to_string();
        assert_eq!(told, "policy: reading ended early; see the log");
    }

    #[tokio::test(start_paused = true)]
    async fn reading_that_panics_is_told_beside_what_else_is_wrong_until_it_comes_to_its_end() {
        fn panics(_: &Governor) {
            panic!("on purpose");
        }

        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("main.cedar");
        fs::write(&file, GOOD).unwrap();
        let governor = Arc::new(governor(directory.path()));
        fs::write(&file, "permit(principal").unwrap();
        governor.look_once();
        governor.look_once();
        let refused = governor.problems();
        assert_eq!(refused.len(), 1);
        let early = governor.looked(panics).await.unwrap_err();
        let both = [early, refused.clone()].concat();
        assert_eq!(governor.problems(), both);
        governor.look_once();
        assert_eq!(governor.problems(), both);
        tokio::time::advance(AGAIN).await;
        governor.look_once();
        assert_eq!(governor.problems(), refused);
        // So is a reload that somebody asked for.
        governor.looked(panics).await.unwrap_err();
        assert_eq!(governor.problems(), both);
        assert_eq!(governor.reloaded(None).await, Err(refused.clone()));
        assert_eq!(governor.problems(), refused);
    }

    /// Whoever was told that a set is wrong is told that it is not, also where nothing else changes by that.
    #[test]
    fn a_set_that_is_mended_to_the_one_in_force_is_told_of_once() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(directory.path().join("main.cedar"), text).unwrap();
        write(GOOD);
        let governor = governor(directory.path());
        let logged = Logged::new();
        governor.reload(None).unwrap();
        write("permit(principal");
        governor.reload(None).unwrap_err();
        write(GOOD);
        governor.reload(None).unwrap();
        governor.reload(None).unwrap();
        let text = logged.text();
        assert_eq!(text.matches("stay in force").count(), 1, "{text}");
        assert_eq!(text.matches("policies are mended").count(), 1, "{text}");
    }
}
