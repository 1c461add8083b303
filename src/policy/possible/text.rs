//! Patterns of `like`.

use cedar_policy::pst::PatternElem;

use super::Outcomes;
use crate::glob::{Part, fits};

/// What a pattern may come to for a text of which only the beginning is known.
pub(super) fn like_from(pattern: &[PatternElem], head: &str) -> Outcomes {
    let wild = |at: &usize| matches!(pattern.get(*at), Some(PatternElem::Wildcard));
    // Places in the pattern that may be reached, in order; what a wildcard passes is reached with it.
    let reach = |found: &mut Vec<usize>, mut at: usize| {
        loop {
            if found.contains(&at) {
                return;
            }
            found.push(at);
            if !wild(&at) {
                return;
            }
            at += 1;
        }
    };
    let mut now = Vec::new();
    reach(&mut now, 0);
    for char in head.chars() {
        let mut next = Vec::new();
        for at in now {
            match pattern.get(at) {
                Some(PatternElem::Wildcard) => reach(&mut next, at),
                Some(PatternElem::Char(want)) if *want == char => reach(&mut next, at + 1),
                _ => {}
            }
        }
        now = next;
    }
    let takes_all = |at: &usize| *at < pattern.len() && (*at..pattern.len()).all(|at| wild(&at));
    if now.iter().any(takes_all) {
        Outcomes::TRUE
    } else if now.is_empty() {
        Outcomes::FALSE
    } else {
        Outcomes::EITHER
    }
}

/// Whether a pattern matches all of a text. At most the product of both lengths in steps.
pub(super) fn like(pattern: &[PatternElem], text: &str) -> bool {
    let part = |elem: &PatternElem| match elem {
        PatternElem::Wildcard => Part::Run,
        PatternElem::Char(char) => Part::Is(*char),
    };
    fits(pattern.iter().map(part), text)
}
