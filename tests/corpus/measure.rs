//! Counts: what each detector finds of what it must find, of what it must not, and of ordinary text.

use std::sync::Arc;

use usher::sanitize::{Class, Detector, Hit};

use super::{ordinary::Part, sample::Sample};

/// A detector with what it is measured by.
pub(crate) struct Subject {
    /// Counts for this class.
    pub(crate) class: Class,
    /// What looks.
    pub(crate) detector: Arc<dyn Detector>,
    /// What it must find.
    pub(crate) positives: Vec<Sample>,
    /// What it must not find.
    pub(crate) negatives: Vec<Sample>,
    /// What must hold.
    pub(crate) floor: Floor,
}

/// What must hold of one class; a bound that does not apply is one that always holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    /// Least part of the places that must be found.
    pub(crate) recall: f64,
    /// Least part of the hits in positives and negatives that belong there.
    pub(crate) precision: f64,
    /// Most negatives with a hit, as a part of all.
    pub(crate) flagged: f64,
    /// Most hits in a mebibyte of ordinary text.
    pub(crate) per_mebibyte: f64,
}

/// What was counted for one class.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Figures {
    /// The class, by its word.
    pub(crate) class: &'static str,
    /// Places that had to be found.
    pub(crate) expected: usize,
    /// Of these, the part that was.
    pub(crate) recall: f64,
    /// Of the hits in positives and negatives, the part that belongs there.
    pub(crate) precision: f64,
    /// Negatives.
    pub(crate) negatives: usize,
    /// Of these, the part with a hit.
    pub(crate) flagged: f64,
    /// Hits in ordinary text.
    pub(crate) ordinary_hits: usize,
    /// The same for each mebibyte.
    pub(crate) per_mebibyte: f64,
    /// Whether all that must hold does.
    pub(crate) holds: bool,
    /// Families with a place that was not found, and the first negatives and files with a hit.
    pub(crate) misses: Vec<String>,
}

/// Examples that are told of one class.
const TOLD: usize = 12;

/// Measures one class with its samples and with `parts`.
pub(crate) fn measure(subject: &Subject, parts: &[Part]) -> Figures {
    let mut hits = Vec::new();
    let mut misses = Vec::new();
    let (mut expected, mut found, mut right, mut wrong) = (0, 0, 0, 0);
    for sample in &subject.positives {
        inspect(subject, sample.class, &sample.text, &mut hits);
        for place in &sample.expected {
            expected += 1;
            if covers(subject.class, &hits, place) {
                found += 1;
            } else if misses.len() < TOLD {
                misses.push(format!(
                    "missed {}: {:?}",
                    sample.family,
                    sample.text.get(place.clone())
                ));
            }
        }
        for hit in &hits {
            let belongs = sample
                .expected
                .iter()
                .any(|place| hit.span.start < place.end && place.start < hit.span.end);
            *(if belongs { &mut right } else { &mut wrong }) += 1;
        }
    }
    let mut flagged = 0;
    for sample in &subject.negatives {
        inspect(subject, sample.class, &sample.text, &mut hits);
        wrong += hits.len();
        flagged += usize::from(!hits.is_empty());
        if let Some(hit) = hits.first()
            && misses.len() < TOLD
        {
            misses.push(format!(
                "{} in {}: {:?}",
                hit.rule,
                sample.family,
                sample.text.get(hit.span.clone())
            ));
        }
    }
    let mut ordinary_hits = 0;
    for part in parts {
        for (name, text) in &part.files {
            inspect(subject, subject.class, text, &mut hits);
            ordinary_hits += hits.len();
            if let Some(hit) = hits.first()
                && misses.len() < TOLD
            {
                misses.push(format!(
                    "{} in {} {name}: {:?}",
                    hit.rule,
                    part.name,
                    text.get(hit.span.clone())
                ));
            }
        }
    }
    let part_of = |some: usize, all: usize, none: f64| {
        if all == 0 {
            none
        } else {
            some as f64 / all as f64
        }
    };
    let mebibytes = parts.iter().map(Part::bytes).sum::<usize>() as f64 / f64::from(1 << 20);
    let recall = part_of(found, expected, 1.0);
    let precision = part_of(right, right + wrong, 1.0);
    let flagged = part_of(flagged, subject.negatives.len(), 0.0);
    let per_mebibyte = if parts.is_empty() {
        0.0
    } else {
        ordinary_hits as f64 / mebibytes
    };
    let floor = subject.floor;
    Figures {
        class: subject.class.word(),
        expected,
        recall,
        precision,
        negatives: subject.negatives.len(),
        flagged,
        ordinary_hits,
        per_mebibyte,
        holds: recall >= floor.recall
            && precision >= floor.precision
            && flagged <= floor.flagged
            && per_mebibyte <= floor.per_mebibyte,
        misses,
    }
}

fn inspect(subject: &Subject, class: Class, text: &str, hits: &mut Vec<Hit>) {
    hits.clear();
    subject.detector.inspect(text, hits);
    hits.retain(|hit| hit.class == class);
}

/// Whether the place was found: wholly, where what is found is taken out; at all, where it is made inert or flagged.
fn covers(class: Class, hits: &[Hit], place: &std::ops::Range<usize>) -> bool {
    if matches!(class, Class::Active | Class::Injection) {
        return hits
            .iter()
            .any(|hit| hit.span.start < place.end && place.start < hit.span.end);
    }
    let mut from = place.start;
    for hit in hits {
        if hit.span.start <= from {
            from = from.max(hit.span.end);
        }
    }
    from >= place.end
}
