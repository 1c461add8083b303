//! One look at one text: every detector is asked about it, and what they find becomes spots.
//!
//! Guarantees: a text is gone over once for all detectors; what hides other things is looked for first, and as soon as something
//! hides nothing else is looked for or kept, in this text and those after it. Deliberately absent: which texts there are
//! (`views.rs`), and what becomes of spots (`engine.rs`).

use std::ops::Range;

use super::{
    Blocks, Class, Detector, Hit, OwnCredentials, Sanitizer, Subject, Survey,
    decoded::Decoded,
    hit::HITS,
    placeholder::is_placeholder,
    rules::fitting,
    spot::Spot,
    verdict::TOLD,
    views::{BEFORE, EARLIER, Part, View},
    work::{Exhausted, Work},
};
use crate::findings::Action;

/// The word for what the operator's own rules find.
const OWN_RULE: &str = "own_rule";

/// A look at the texts of one value: what they are looked at for, and what was found so far.
pub(super) struct Look<'a, 'b> {
    sanitizer: &'a Sanitizer,
    subject: &'a Subject<'a>,
    survey: &'b mut Survey,
    hits: &'b mut Vec<Hit>,
    spots: &'b mut Vec<Spot>,
    work: &'b mut Work,
    /// Of the hit that was met last.
    parts: Vec<Part>,
    /// Whether something was found that hides other things, and goes.
    hiding: bool,
}

/// Tells the parts of strings that a span of a text covers.
pub(super) type Places<'a> = &'a dyn Fn(&Range<usize>, &mut dyn FnMut(Part));

/// Which hits of a text count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// All.
    All,
    /// Those that lie in more than one string.
    Across,
    /// Those of classes that are looked for in decoded forms.
    Decoded,
}

impl<'a, 'b> Look<'a, 'b> {
    /// With room for what is found, and with what may still be looked at.
    pub(super) const fn new(
        sanitizer: &'a Sanitizer,
        subject: &'a Subject<'a>,
        survey: &'b mut Survey,
        (hits, spots, work): (&'b mut Vec<Hit>, &'b mut Vec<Spot>, &'b mut Work),
    ) -> Self {
        Self {
            sanitizer,
            subject,
            survey,
            hits,
            spots,
            work,
            parts: Vec::new(),
            hiding: false,
        }
    }

    /// Whether something hides, and what it splits is found in the next pass.
    pub(super) const fn is_hiding(&self) -> bool {
        self.hiding
    }

    /// Looks at a text and at what can be decoded in it, and in that. A text that is made of many is given with the view of it.
    pub(super) fn deep(
        &mut self,
        text: &str,
        (places, view): (Places<'_>, Option<&View>),
        count: Count,
        decoded: &mut [Decoded; 2],
    ) -> Result<(), Exhausted> {
        if text.is_empty() {
            return Ok(());
        }
        self.text(text, (places, view), count)?;
        if self.hiding {
            return Ok(());
        }
        let [outer, inner] = decoded;
        outer.read(text, self.survey);
        if outer.text.is_empty() {
            return Ok(());
        }
        let once = |span: &Range<usize>, each: &mut dyn FnMut(Part)| {
            places(&outer.source(span.start), each);
        };
        self.text(&outer.text, (&once, None), Count::Decoded)?;
        inner.read(&outer.text, self.survey);
        if inner.text.is_empty() {
            return Ok(());
        }
        let twice = |span: &Range<usize>, each: &mut dyn FnMut(Part)| {
            once(&inner.source(span.start), each);
        };
        self.text(&inner.text, (&twice, None), Count::Decoded)
    }

    fn text(
        &mut self,
        text: &str,
        (places, view): (Places<'_>, Option<&View>),
        count: Count,
    ) -> Result<(), Exhausted> {
        self.work.spend(text.len())?;
        self.survey.read(text);
        // Few texts have anything of which it matters.
        if !self.survey.active.is_empty()
            && let Some(view) = view
        {
            self.survey.begins.extend(view.begins());
        }
        let detectors = self.sanitizer.detectors();
        for hiding in [true, false] {
            for detector in detectors {
                if hides(detector.class()) == hiding {
                    self.ask(&**detector, text, places, count)?;
                }
            }
            if self.hiding {
                return Ok(());
            }
        }
        self.own(text, places, count)
    }

    /// Asks one detector, if its class matters.
    fn ask(
        &mut self,
        detector: &dyn Detector,
        text: &str,
        places: Places<'_>,
        count: Count,
    ) -> Result<(), Exhausted> {
        let (actions, direction) = (self.subject.actions, self.subject.direction);
        let class = detector.class();
        if !is_asked(detector, self.subject) || (count == Count::Decoded && !in_decoded(class)) {
            return Ok(());
        }
        // They are kept from text to text for their memory alone.
        self.hits.clear();
        detector.inspect_surveyed(text, self.survey, self.hits);
        if class == Class::Own {
            OwnCredentials::lent(self.subject.lent, text, self.hits);
        }
        self.work.check()?;
        if self.hits.len() > HITS {
            return Err(Exhausted::Hits);
        }
        if self.hits.is_empty() {
            return Ok(());
        }
        let mut hits = std::mem::take(self.hits);
        for hit in hits.drain(..) {
            if let Some(action) = actions.of(hit.class, direction)
                && (count != Count::Decoded || in_decoded(hit.class))
            {
                self.spot(text, places, count, Some(hit.class), &hit, action)?;
            }
        }
        *self.hits = hits;
        Ok(())
    }

    /// Looks for what the operator's own rules match.
    fn own(&mut self, text: &str, places: Places<'_>, count: Count) -> Result<(), Exhausted> {
        let sanitizer = self.sanitizer;
        for own in &sanitizer.rules().own {
            for found in own.pattern.find_iter(text) {
                // One search is linear, and all of them together need not be.
                self.work.check_now()?;
                if found.is_empty() {
                    continue;
                }
                let hit = Hit {
                    span: found.range(),
                    class: Class::Secret,
                    rule: own.name.clone(),
                    inert: None,
                };
                let action = fitting(own.action, self.subject.direction);
                self.spot(text, places, count, None, &hit, action)?;
            }
            self.work.check()?;
        }
        Ok(())
    }

    fn spot(
        &mut self,
        text: &str,
        places: Places<'_>,
        count: Count,
        class: Option<Class>,
        hit: &Hit,
        action: Action,
    ) -> Result<(), Exhausted> {
        // Where a place is none, nobody knows what was found there.
        let matched = text.get(hit.span.clone()).ok_or(Exhausted::Hits)?;
        if is_placeholder(text.as_bytes(), &hit.span) || hit.inert.as_deref() == Some(matched) {
            return Ok(());
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        places(&hit.span, &mut |part| parts.push(part));
        let noted = self.parts(&parts, matched, count, class, hit, action);
        self.parts = parts;
        noted
    }

    /// Notes a hit in these parts of strings.
    fn parts(
        &mut self,
        parts: &[Part],
        matched: &str,
        count: Count,
        class: Option<Class>,
        hit: &Hit,
        action: Action,
    ) -> Result<(), Exhausted> {
        let strings = parts
            .windows(2)
            .filter(|two| two[0].string != two[1].string);
        let across = strings.count() > 0;
        if count == Count::Across && !across {
            return Ok(());
        }
        // Numbers that count up, from event to event or from one member of an error to the next, come to one with check digits
        // by chance.
        let far = parts.iter().any(|part| part.string == EARLIER)
            || across && self.subject.blocks == Blocks::All;
        if far && class == Some(Class::PersonalChecked) {
            return Ok(());
        }
        if self.spots.len() + parts.len() > HITS {
            return Err(Exhausted::Hits);
        }
        // A name that stands beside what was found is not what was found.
        let values = parts.iter().any(|part| !part.name);
        // Of those that will be told; what is only counted has none.
        let told = self.spots.len() < 4 * TOLD;
        let digest = told.then(|| self.sanitizer.findings().digest(matched));
        let whole = count != Count::Decoded && !across;
        let can_be_inert = whole && hit.inert.is_some();
        let action = if action == Action::Neutralise && !can_be_inert {
            Action::Redact
        } else {
            action
        };
        for &part in parts {
            // A byte order mark is one at the very start of a string, which is not the start of the text.
            let mark = part.from == 0 && matched == "\u{FEFF}";
            if matches!(part.string, BEFORE | EARLIER) || (part.name && values) || mark {
                continue;
            }
            let spot = Spot {
                part,
                class,
                kind: class.map_or(OWN_RULE, Class::word),
                rule: hit.rule.clone(),
                action,
                inert: hit.inert.clone().filter(|_| whole),
                length: matched.len(),
                digest,
            };
            if spot.hides() && !self.hiding {
                self.hiding = true;
                self.spots.clear();
            }
            if spot.hides() || !self.hiding {
                self.spots.push(spot);
            }
        }
        Ok(())
    }
}

/// Whether anything is done about what a detector tells of.
pub(super) fn is_asked(detector: &dyn Detector, subject: &Subject<'_>) -> bool {
    let is_sought = |class: &Class| subject.actions.of(*class, subject.direction).is_some();
    told_by(detector.class()).iter().any(is_sought)
}

/// Whether what a class covers hides other things.
const fn hides(class: Class) -> bool {
    matches!(class, Class::Hidden | Class::Terminal)
}

/// The classes that a detector of this class tells of: secrets of both sorts are found in one look.
const fn told_by(class: Class) -> &'static [Class] {
    match class {
        Class::Hidden => &[Class::Hidden],
        Class::Terminal => &[Class::Terminal],
        Class::Own => &[Class::Own],
        Class::Secret => &[Class::Secret, Class::WeakSecret],
        Class::WeakSecret => &[Class::WeakSecret],
        Class::PersonalChecked => &[Class::PersonalChecked],
        Class::Personal => &[Class::Personal],
        Class::Active => &[Class::Active],
        Class::Injection => &[Class::Injection],
        Class::Media => &[Class::Media],
        Class::Elicitation => &[Class::Elicitation],
    }
}

/// Whether a class is looked for in what was decoded: what somebody reads or runs as it stands is not.
const fn in_decoded(class: Class) -> bool {
    matches!(
        class,
        Class::Own | Class::Secret | Class::PersonalChecked | Class::Injection
    )
}
