//! Spots: what was found where in a value, and the edits that follow from it.
//!
//! Guarantees: of spots that overlap the strongest action holds for all of it; places are those of the text as it is spelled.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use bytes::Bytes;

use super::{Class, Subject, placeholder::placeholder, views::Part};
use crate::{
    findings::{Action, Digest, Finding},
    json::{Edits, Json, Span, Spelled, inside},
};

/// A hit, in a string of the value.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) part: Part,
    pub(super) class: Option<Class>,
    pub(super) kind: &'static str,
    pub(super) rule: Arc<str>,
    pub(super) action: Action,
    pub(super) inert: Option<Cow<'static, str>>,
    pub(super) length: usize,
    pub(super) digest: Option<Digest>,
}

/// Where the strings of these spots begin, which rise.
pub(super) fn places<'a>(spots: impl IntoIterator<Item = &'a Spot>) -> Vec<usize> {
    let strings = spots.into_iter().map(|spot| spot.part.string);
    strings.collect()
}

/// Of spots of which the same is told the first, in order, and how many there are; of very different ones not all are put together.
pub(super) fn alike(spots: &[Spot]) -> Vec<(&Spot, u32)> {
    /// As many sorts as a text has, as a rule: the look for each spot has an end.
    const SORTS: usize = 32;
    let mut sorts: Vec<(&Spot, u32)> = Vec::new();
    for spot in spots {
        let known = sorts.len().min(SORTS);
        let same = sorts[..known].iter_mut().find(|(of, _)| {
            of.action == spot.action
                && of.kind == spot.kind
                && (Arc::ptr_eq(&of.rule, &spot.rule) || of.rule == spot.rule)
        });
        match same {
            Some((_, times)) => *times += 1,
            None => sorts.push((spot, 1)),
        }
    }
    sorts
}

/// Adds the edits that these spots, in order, ask for. Where they overlap the strongest holds for all of it.
pub(super) fn alter(value: &Json, spots: &[Spot], edits: &mut Edits) {
    let text = value.as_str();
    let mut spots = spots.iter().filter(|spot| spot.alters()).peekable();
    let mut string = usize::MAX;
    let mut spelled = Spelled::new("");
    let mut placed = Placeholders::default();
    while let Some(first) = spots.next() {
        let (from, mut to) = (first.part.from, first.part.to);
        let mut strongest = first;
        while let Some(next) =
            spots.next_if(|next| next.part.string == first.part.string && next.part.from < to)
        {
            to = to.max(next.part.to);
            if next.action < strongest.action {
                strongest = next;
            }
        }
        if first.part.string != string {
            string = first.part.string;
            spelled = Spelled::new(&text[string..]);
        }
        let span = Span {
            start: string + spelled.place(from),
            end: string + spelled.place(to),
        };
        let alone = strongest.part.from == from && strongest.part.to == to;
        match (strongest.action, &strongest.inert) {
            (Action::Remove, _) => edits.rewrite(span, ""),
            (Action::Neutralise, Some(inert)) if alone => edits.rewrite(span, inert),
            _ => edits.put(span, placed.of(&strongest.rule)),
        }
    }
}

/// How placeholders are spelled, of the rules that were met first: what was found by one rule is often found again.
#[derive(Default)]
struct Placeholders(Vec<(Arc<str>, Bytes)>);

impl Placeholders {
    /// As many are remembered: the look for each has an end.
    const KNOWN: usize = 16;

    fn of(&mut self, rule: &Arc<str>) -> Bytes {
        let known = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, rule));
        if let Some((_, spelled)) = known {
            return spelled.clone();
        }
        let spelled = inside(&placeholder(rule));
        if self.0.len() < Self::KNOWN {
            self.0.push((rule.clone(), spelled.clone()));
        }
        spelled
    }
}

impl Spot {
    /// Whether it is gone before anything else is looked for.
    pub(super) fn hides(&self) -> bool {
        self.action == Action::Remove && matches!(self.class, Some(Class::Hidden | Class::Terminal))
    }

    /// Whether it is in a definition and only may be an attempt on the model.
    pub(super) const fn is_doubtful(&self) -> bool {
        matches!(self.class, Some(Class::Active | Class::Injection))
            && matches!(self.action, Action::Quarantine)
    }

    /// What is done about it in a definition: what is doubtful is shown, or held until somebody approved it (CAT-4).
    pub(super) const fn shown_as(&self) -> Action {
        if self.is_doubtful() {
            Action::Flag
        } else {
            self.action
        }
    }

    pub(super) const fn alters(&self) -> bool {
        !matches!(self.action, Action::Flag)
    }

    pub(super) fn finding(&self, subject: &Subject<'_>, place: String) -> Finding {
        Finding {
            kind: self.kind,
            rule: self.rule.clone(),
            action: self.action,
            direction: subject.direction,
            place: place.into(),
            length: self.length,
            digest: self.digest,
            upstream: subject.upstream.cloned(),
            item: subject.item.cloned(),
            call: subject.call(),
            at: SystemTime::now(),
        }
    }
}
