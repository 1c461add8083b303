//! C9: what reads like instructions to the model.
//!
//! Four kinds: to set earlier instructions aside, to keep something from the user, to use other tools first or instead, and to
//! hand over credentials. Phrases are data in `phrases`: sets of words that stand near each other, in sixteen languages.
//!
//! Guarantees: linear in the length of the text; a hit is the stretch from the first to the last word of a phrase. It is
//! advisory: what is worded in another way is not found, and a text about such attacks is. Nothing here stops an injection.
// SECURITY 7, C9

mod anchors;
mod phrases;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

use super::{Class, Detector, Hit};
use anchors::Anchors;

/// Bytes between two sets of words of one phrase.
const NEAR: usize = 48;
/// Words that a phrase may be waiting for; the oldest goes first.
const OPEN: usize = 24;

/// The detector of class C9.
#[derive(Debug)]
pub struct Injection {
    /// The words without which no phrase is whole: most text has few of them.
    anchors: Anchors,
    /// Those and all others: only looked for around an anchor.
    words: AhoCorasick,
    /// For each word, the phrases and their places in which it stands.
    uses: Box<[Vec<(u16, u8)>]>,
    names: [Arc<str>; 4],
}

/// Finds what reads like instructions to the model. Its tables are made once, by whoever asks first.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub fn detector() -> Arc<Injection> {
    // INVARIANT: the phrases are the same in each process, and a test builds it.
    static DETECTOR: LazyLock<Arc<Injection>> =
        LazyLock::new(|| Arc::new(Injection::new().expect("the phrases fit an automaton")));
    Arc::clone(&DETECTOR)
}

impl Injection {
    /// With the built-in phrases; whether their automaton can be built is decided by the size of the table alone.
    fn new() -> Result<Self, aho_corasick::BuildError> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut words: Vec<&str> = Vec::new();
        let mut own: Vec<Vec<(u16, u8)>> = Vec::new();
        for (phrase, (_, sets)) in (0_u16..).zip(phrases::PHRASES) {
            for (place, set) in (0_u8..).zip(sets.iter()) {
                for word in set.split('|') {
                    let at = *places.entry(word).or_insert_with(|| {
                        words.push(word);
                        own.push(Vec::new());
                        words.len() - 1
                    });
                    own[at].push((phrase, place));
                }
            }
        }
        // The longest word is found, and stands for the words at its ends as well: "system prompt" for "prompt".
        let mut uses = own.clone();
        for (word, uses) in words.iter().zip(&mut uses) {
            let ends = word.match_indices(' ');
            let ends = ends.flat_map(|(blank, _)| [&word[..blank], &word[blank + 1..]]);
            for at in ends.filter_map(|end| places.get(end)) {
                uses.extend(&own[*at]);
            }
            uses.sort_unstable();
            uses.dedup();
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)?;
        Ok(Self {
            anchors: Anchors::new(phrases::PHRASES.iter().map(|(_, sets)| *sets))?,
            words: automaton,
            uses: uses.into(),
            names: phrases::KINDS.map(Arc::from),
        })
    }
}

impl Detector for Injection {
    fn class(&self) -> Class {
        Class::Injection
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        let bytes = text.as_bytes();
        let (mut from, mut followed) = (0, 0);
        // The end of what was followed before, and how many hits there were then.
        let (mut before, mut kept) = (0, 0);
        self.anchors.each(bytes, |at, reach| {
            let begins = at.saturating_sub(reach);
            if at >= followed {
                (before, kept) = (followed, hits.len());
                from = begins.max(before);
            } else if begins < from && from > before {
                // Its phrase may begin before that of an anchor that came first. Once more, from where none that comes later
                // reaches beyond: nothing is followed a third time.
                from = at.saturating_sub(self.anchors.furthest()).max(before);
                hits.truncate(kept);
            } else {
                return;
            }
            followed = self.follow(bytes, from, at, hits);
        });
    }
}

impl Injection {
    /// Follows what begins from `from` on, at least as far as the anchor at `anchor`, until nothing waits to go on; says where.
    fn follow(&self, bytes: &[u8], from: usize, anchor: usize, hits: &mut Vec<Hit>) -> usize {
        let mut open = [Open::default(); OPEN];
        let mut oldest = 0;
        let mut told = hits.last().map_or(0, |hit| hit.span.end);
        let mut open_until = anchor;
        for word in self.words.find_iter(Input::new(bytes).range(from..)) {
            if word.start() > open_until {
                return word.start();
            }
            if !whole(bytes, word.start(), word.end()) {
                continue;
            }
            for (phrase, place) in &self.uses[word.pattern().as_usize()] {
                let (kind, sets) = phrases::PHRASES[usize::from(*phrase)];
                let start = match place {
                    0 => Some(word.start()),
                    _ => open
                        .iter_mut()
                        .filter(|open| open.waits(*phrase, *place, word.start(), bytes))
                        .max_by_key(|open| open.end)
                        .map(|open| open.start),
                };
                let Some(start) = start else {
                    continue;
                };
                if usize::from(*place) + 1 < sets.len() {
                    open[oldest] = Open {
                        phrase: *phrase,
                        next: place + 1,
                        start,
                        end: word.end(),
                    };
                    oldest = (oldest + 1) % OPEN;
                    open_until = open_until.max(word.end() + NEAR);
                } else if start >= told {
                    told = word.end();
                    hits.push(Hit {
                        span: start..word.end(),
                        class: Class::Injection,
                        rule: Arc::clone(&self.names[kind as usize]),
                        inert: None,
                    });
                }
            }
        }
        bytes.len()
    }
}

/// A phrase of which the first words have been seen.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    phrase: u16,
    /// The set that is waited for; none is nought.
    next: u8,
    start: usize,
    end: usize,
}

impl Open {
    /// Whether it waits for that set at `at`, near by and in the same sentence.
    fn waits(&self, phrase: u16, place: u8, at: usize, text: &[u8]) -> bool {
        self.next == place
            && self.phrase == phrase
            && self.end <= at
            && at - self.end <= NEAR
            && !text[self.end..at]
                .windows(2)
                .any(|pair| matches!(pair, b". " | b"\n\n"))
    }
}

/// Whether a word of Latin letters does not stand inside a longer one.
fn whole(text: &[u8], start: usize, end: usize) -> bool {
    let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    let begins_inside = letter(text.get(start)) && letter(before);
    let ends_inside = letter(text.get(end - 1)) && letter(text.get(end));
    !begins_inside && !ends_inside
}
