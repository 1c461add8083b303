//! The engine: every text of a value is shown to every detector, and what they find is acted upon.
//!
//! One pass looks at all texts and proposes edits; they are applied in one copy, and the result is looked at again until
//! nothing changes (SECURITY 7: at most three times). While hidden characters are there to be removed, nothing else is looked
//! for: what they split is found in the next pass. A value in which nothing is found is not copied and costs no allocation.

use std::{
    borrow::Cow,
    cell::Cell,
    ops::Range,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use super::{
    Blocked, Class, Detector, Found, Hit, Marks, Scrubber, Subject, Survey, Tail, Verdict, asking,
    look::{Count, Look, is_asked},
    media,
    placeholder::is_telling,
    plain,
    rules::Rules,
    spot::{Spot, alike, alter, places},
    survey::KEEP,
    verdict::{REASON, TOLD},
    views::{Part, Views},
    work::{Exhausted, Work},
};
use crate::{
    findings::{Action, Direction, Finding, Findings, Scrub as _},
    json::{Edits, Json, Limits, Span},
    protocol::{UpstreamId, methods::ListKind},
};

/// How often a value may change before what is left is blocked.
const PASSES: usize = 3;

/// Looks at content and acts upon what is in it. Shared by all calls.
pub struct Sanitizer {
    detectors: Vec<Arc<dyn Detector>>,
    rules: Rules,
    findings: Findings,
    /// What takes secrets out of the addresses that are told; made when the first is.
    // Boxed: it holds a sanitizer itself.
    scrubber: OnceLock<Box<Scrubber>>,
}

/// What is kept from one value to the next, by each thread.
#[derive(Default)]
struct Scratch {
    views: Views,
    hits: Vec<Hit>,
    spots: Vec<Spot>,
    names: Names,
    survey: Survey,
}

/// Which names are told to nobody.
#[derive(Default)]
struct Names {
    /// Those in which something was found, in order.
    found: Vec<usize>,
    /// Nothing but what hides was looked for in names yet: those that are not plain words may be anything.
    unseen: bool,
}

impl Scratch {
    /// Kept for the next value that this thread looks at, without more memory than is worth keeping.
    fn put_back(mut self: Box<Self>) {
        self.hits.clear();
        self.hits.shrink_to(KEEP / size_of::<Hit>());
        self.spots.clear();
        self.spots.shrink_to(KEEP / size_of::<Spot>());
        SCRATCH.set(Some(self));
    }
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl Sanitizer {
    /// With these detectors, under these rules; what is found is noted in `findings`.
    pub fn new(detectors: Vec<Arc<dyn Detector>>, rules: Rules, findings: Findings) -> Self {
        Self {
            detectors,
            rules,
            findings,
            scrubber: OnceLock::new(),
        }
    }

    /// What looks.
    pub(super) fn detectors(&self) -> &[Arc<dyn Detector>] {
        &self.detectors
    }

    /// What the operator decided.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Where findings are noted.
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Looks at a value.
    pub fn look(&self, value: &Json, subject: &Subject<'_>) -> Verdict {
        self.look_after(value, subject, None)
    }

    /// Looks at a value that is one of several which are read one after the other.
    pub fn look_after(
        &self,
        value: &Json,
        subject: &Subject<'_>,
        tail: Option<&mut Tail>,
    ) -> Verdict {
        if subject.actions.are_off(subject.direction) && self.rules.own.is_empty() {
            return Verdict::Clean;
        }
        // What follows upon it may go on from its end.
        if tail.is_none() && !self.finds_in_plain(subject) && plain::is_plain(value) {
            return Verdict::Clean;
        }
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let verdict = self.passes(value, subject, tail, &mut scratch);
        scratch.put_back();
        verdict
    }

    /// Whether there may be something in plain text: what is looked for can be written in it.
    fn finds_in_plain(&self, subject: &Subject<'_>) -> bool {
        let asked = |class: Class| subject.actions.of(class, subject.direction).is_some();
        // What no detector tells of.
        let others = asked(Class::Media) || asked(Class::Elicitation) || !self.rules.own.is_empty();
        let lent = asked(Class::Own) && !subject.lent.is_empty();
        let mut detectors = self.detectors.iter();
        others || lent || detectors.any(|one| is_asked(&**one, subject) && one.finds_in_plain())
    }

    /// What is in a definition of this kind, which is never altered: of all that is to be dealt with alike the
    /// first. Without a kind it is what its upstream says of itself.
    pub fn definition(
        &self,
        value: &Json,
        upstream: &UpstreamId,
        kind: Option<ListKind>,
        item: &Arc<str>,
    ) -> Vec<Found> {
        self.defined(value, upstream, (kind, item), true)
    }

    /// The same where it was noted, or will be.
    pub fn definition_again(
        &self,
        value: &Json,
        upstream: &UpstreamId,
        kind: Option<ListKind>,
        item: &Arc<str>,
    ) -> Vec<Found> {
        self.defined(value, upstream, (kind, item), false)
    }

    fn defined(
        &self,
        value: &Json,
        upstream: &UpstreamId,
        (kind, item): (Option<ListKind>, &Arc<str>),
        noting: bool,
    ) -> Vec<Found> {
        // What is done about a tool is not done about a prompt of its name.
        let tool = (kind == Some(ListKind::Tools)).then_some(&**item);
        let actions = self.rules.actions(Some(upstream), tool);
        // Whose list it came in, where each has their own, is not known here.
        let subject = Subject {
            upstream: Some(upstream),
            item: Some(item),
            ..Subject::new(Direction::Definitions, actions, &[])
        };
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let mut work = Work::new(value.len(), self.rules.budget);
        scratch.views.read(value, &[], (None, subject.blocks));
        let done = self.pass(value, &subject, &mut scratch, &mut work);
        let mut found = Vec::new();
        if let Err(exhausted) = done {
            let blocked = Blocked::budget(exhausted);
            found.push(Found {
                kind: blocked.kind,
                rule: blocked.rule.unwrap_or_else(|| blocked.kind.into()),
                action: Action::Quarantine,
                doubt: false,
                place: String::new(),
            });
        }
        let (spots, names) = (&mut scratch.spots, &scratch.names);
        let mut first: Vec<&Spot> = Vec::new();
        for spot in &*spots {
            let same = |known: &&Spot| {
                known.action == spot.action && known.is_doubtful() == spot.is_doubtful()
            };
            if !first.iter().any(same) {
                first.push(spot);
            }
        }
        let places = value.pointers(&places(first.iter().copied()), hidden(value, names));
        found.extend(first.iter().zip(places).map(|(spot, place)| Found {
            kind: spot.kind,
            rule: spot.rule.clone(),
            action: spot.shown_as(),
            doubt: spot.is_doubtful(),
            place,
        }));
        if noting {
            for spot in &mut *spots {
                spot.action = spot.shown_as();
            }
            self.note(value, spots, names, &subject);
        }
        scratch.put_back();
        found
    }

    fn passes(
        &self,
        value: &Json,
        subject: &Subject<'_>,
        tail: Option<&mut Tail>,
        scratch: &mut Scratch,
    ) -> Verdict {
        let for_questions = subject.actions.of(Class::Elicitation, subject.direction);
        let mut asked_ill = false;
        let mut work = Work::new(value.len(), self.rules.budget);
        let mut now = Cow::Borrowed(value);
        let mut marks = Marks::default();
        let mut known = media::Known::default();
        // Whether it was put together since it was last read as a whole.
        let mut composed = false;
        for pass in 0..=PASSES {
            // Again each time, since what is taken out may make a question of what was none.
            if let Some(action) = for_questions.filter(|_| !asked_ill)
                && let Some(blocked) = asking::fault(&now, subject.questions)
            {
                asked_ill = true;
                let blocked = self.noted_as(blocked, subject, action);
                if action != Action::Flag {
                    return Verdict::Blocked(blocked);
                }
            }
            let before = (tail.as_deref(), subject.blocks);
            let mut media = media::none(&now, subject);
            scratch.views.read(&now, media.exempt(), before);
            if scratch.views.may_have_media() {
                media = match media::of(media, (self, &now, subject), &mut known, &mut work) {
                    Ok(media) => media,
                    Err(blocked) => return Verdict::Blocked(self.noted(blocked, subject)),
                };
                scratch.views.read(&now, media.exempt(), before);
            }
            marks.join(media.marks());
            if let Err(exhausted) = self.pass(&now, subject, scratch, &mut work) {
                return Verdict::Blocked(self.noted(Blocked::budget(exhausted), subject));
            }
            let (spots, names) = (&mut scratch.spots, &scratch.names);
            if spots.is_empty() && media.is_clean() {
                break;
            }
            if let Some(spot) = spots.iter().find(|spot| spot.action == Action::Block) {
                let place = now
                    .pointers(&[spot.part.string], hidden(&now, names))
                    .swap_remove(0);
                let blocked = Blocked {
                    reason: REASON,
                    kind: spot.kind,
                    rule: Some(spot.rule.clone()),
                    place: place.clone(),
                };
                self.tell(spot.finding(subject, place), subject);
                return Verdict::Blocked(blocked);
            }
            let altering = !media.is_clean() || spots.iter().any(Spot::alters);
            if altering {
                // What is only noted is still there in the last pass.
                spots.retain(Spot::alters);
            }
            self.note(&now, spots, names, subject);
            for (spot, times) in alike(spots) {
                marks.add(spot.action, spot.kind, &spot.rule, times);
            }
            if !altering {
                break;
            }
            if subject.sealed || pass == PASSES {
                let blocked = if subject.sealed {
                    Blocked::whole("integrity")
                } else {
                    Blocked::budget(Exhausted::Passes)
                };
                return Verdict::Blocked(self.noted(blocked, subject));
            }
            let mut edits = Edits::new();
            media.apply(&now, &mut edits);
            alter(&now, spots, &mut edits);
            // Names may have become alike.
            let whole = media.is_clean() && spots.iter().all(|spot| !spot.part.name);
            now = Cow::Owned(now.splice(&edits));
            composed = whole;
            if !composed && !is_one_value(&now) {
                return Verdict::Blocked(self.noted(Blocked::whole("integrity"), subject));
            }
        }
        // What comes out is one value, or nothing.
        if composed && !is_one_value(&now) {
            return Verdict::Blocked(self.noted(Blocked::whole("integrity"), subject));
        }
        if let Some(tail) = tail {
            scratch.views.end_in(now.as_str(), tail);
        }
        match now {
            Cow::Owned(now) => Verdict::Changed(now, marks),
            Cow::Borrowed(_) if marks.is_empty() => Verdict::Clean,
            Cow::Borrowed(_) => Verdict::Flagged(marks),
        }
    }

    /// Looks once at every text of a value that was read into views; what is found, as far as it was looked at, is in
    /// `scratch.spots`, in order.
    fn pass(
        &self,
        value: &Json,
        subject: &Subject<'_>,
        scratch: &mut Scratch,
        work: &mut Work,
    ) -> Result<(), Exhausted> {
        let Scratch {
            views,
            hits,
            spots,
            names,
            survey,
        } = scratch;
        spots.clear();
        names.found.clear();
        let mut look = Look::new(self, subject, survey, (hits, spots, work));
        let done = texts(&mut look, value, views);
        names.unseen = done.is_err() || look.is_hiding();
        let found = spots.iter().filter(|spot| spot.part.name);
        names.found.extend(found.map(|spot| spot.part.string));
        names.found.sort_unstable();
        spots.sort_by(|one, two| {
            let key = |spot: &Spot| (spot.part.string, spot.part.from, usize::MAX - spot.part.to);
            key(one).cmp(&key(two))
        });
        done
    }

    /// Notes what was found.
    fn note(&self, value: &Json, spots: &[Spot], names: &Names, subject: &Subject<'_>) {
        let told = &spots[..spots.len().min(TOLD)];
        let item = if told.is_empty() {
            None
        } else {
            self.told_as(subject.item)
        };
        for (spot, place) in told
            .iter()
            .zip(value.pointers(&places(told), hidden(value, names)))
        {
            let finding = spot.finding(subject, place);
            let item = item.clone();
            self.findings
                .note(Finding { item, ..finding }, subject.trail());
        }
        for (spot, times) in alike(&spots[told.len()..]) {
            let (action, direction, times) = (spot.action, subject.direction, times.into());
            let (kind, rule, trail) = (spot.kind, &spot.rule, subject.trail());
            self.findings
                .count(kind, rule, action, direction, times, trail);
        }
    }

    /// Notes a finding. The address of what it is about is told without what is secret in it.
    pub(super) fn tell(&self, mut finding: Finding, subject: &Subject<'_>) {
        finding.item = self.told_as(finding.item.as_ref());
        self.findings.note(finding, subject.trail());
    }

    /// How what a finding is about is told.
    fn told_as(&self, item: Option<&Arc<str>>) -> Option<Arc<str>> {
        let item = item?;
        if memchr::memchr(b':', item.as_bytes()).is_none() {
            return Some(item.clone());
        }
        let scrubber = self.scrubber.get_or_init(|| Box::new(Scrubber::of(self)));
        Some(scrubber.name(item).into())
    }

    /// What is not to go on as a whole, also for a reason that whoever had it looked at has come to: it is a finding as any other.
    pub fn noted(&self, blocked: Blocked, subject: &Subject<'_>) -> Blocked {
        self.noted_as(blocked, subject, Action::Block)
    }

    fn noted_as(&self, blocked: Blocked, subject: &Subject<'_>, action: Action) -> Blocked {
        let finding = Finding {
            kind: blocked.kind,
            rule: blocked.rule.clone().unwrap_or_else(|| blocked.kind.into()),
            action,
            direction: subject.direction,
            place: blocked.place.as_str().into(),
            length: 0,
            digest: None,
            upstream: subject.upstream.cloned(),
            item: subject.item.cloned(),
            call: subject.call(),
            at: SystemTime::now(),
        };
        self.tell(finding, subject);
        blocked
    }
}

impl std::fmt::Debug for Sanitizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sanitizer({} detectors)", self.detectors.len())
    }
}

/// Looks at every text of a value that was read into views.
fn texts(look: &mut Look<'_, '_>, value: &Json, views: &mut Views) -> Result<(), Exhausted> {
    let Views {
        joined,
        long,
        seam,
        decoded,
        ..
    } = views;
    // What is looked at where it stands; all else was copied.
    let text = if long.is_empty() { "" } else { value.as_str() };
    let places = |span: &Range<usize>, each: &mut dyn FnMut(Part)| {
        joined.parts(span).for_each(each);
    };
    look.deep(&joined.text, (&places, Some(joined)), Count::All, decoded)?;
    for string in &*long {
        let inside = string.inside;
        let places = |span: &Range<usize>, each: &mut dyn FnMut(Part)| {
            each(Part {
                string: inside.start,
                from: span.start,
                to: span.end,
                name: string.name,
            });
        };
        let text = &text[inside.start..inside.end];
        look.deep(text, (&places, None), Count::All, decoded)?;
    }
    if !seam.text.is_empty() {
        let places = |span: &Range<usize>, each: &mut dyn FnMut(Part)| {
            seam.parts(span).for_each(each);
        };
        look.deep(&seam.text, (&places, None), Count::Across, decoded)?;
    }
    Ok(())
}

/// Whether what was put together reads as one value, in which no two names of an object are alike.
fn is_one_value(value: &Json) -> bool {
    Json::parse(value.bytes().clone(), &Limits::KNOWN).is_ok()
}

/// Whether a member's name is a word or some, and nothing that could be kept to oneself.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    name.len() <= 24 && name.bytes().all(plain)
}

/// Whether a name must not be told: something was found in one of `names`, and others may hold what was found elsewhere.
fn hidden<'a>(value: &'a Json, names: &'a Names) -> impl Fn(Span) -> bool + 'a {
    let text = value.as_str();
    move |span| {
        let name = &text[span.start..span.end];
        names.found.binary_search(&span.start).is_ok()
            || names.unseen && !is_plain(name)
            || is_telling(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitize::{OwnCredentials, rules::Actions};

    #[test]
    fn a_thread_keeps_little_of_the_room_that_what_was_found_took() {
        let mut actions = Actions::default();
        actions.set(Class::Terminal, Direction::Results, Some(Action::Flag));
        let sanitizer =
            Sanitizer::standard(Rules::default(), Findings::new(), OwnCredentials::new());
        let value = Json::string(&"\u{9d}\u{1}".repeat(60_000));
        let verdict = sanitizer.look(&value, &Subject::new(Direction::Results, &actions, &[]));
        assert!(matches!(verdict, Verdict::Flagged(_)), "{verdict:?}");
        let scratch = SCRATCH.take().unwrap_or_default();
        assert!(scratch.hits.capacity() * size_of::<Hit>() <= KEEP);
        assert!(scratch.spots.capacity() * size_of::<Spot>() <= KEEP);
    }
}
