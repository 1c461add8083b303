//! Bidi controls of one paragraph: which have a partner, and something to say.
//!
//! Overrides never pass. Embeddings and isolates pass where they are balanced and stand in right-to-left text, around
//! something, and not inside a word of Latin letters. First-strong isolates pass in any text, around whole words: programs put
//! them around what they insert into a sentence, and they turn nothing round. What is no partner of another by the rules of
//! UAX #9 (17.0) is told.

use std::ops::Range;

use super::tables::{self, Kind};
use crate::sanitize::work::looked;

/// Controls that are open at once; what is opened beyond is told.
const DEPTH: usize = 32;
/// Hidden characters that are stepped over to find what is seen beside a control.
const STEPS: usize = 8;

const FIRST_STRONG: char = '\u{2068}';
const END_ISOLATE: char = '\u{2069}';
const END_EMBEDDING: char = '\u{202C}';

#[derive(Clone, Copy, Default)]
struct Open {
    control: char,
    at: usize,
    splits: bool,
}

/// Judges all controls of the paragraph around `at`, from `at` on, and says where it ends; `at` is its first control.
pub(super) fn paragraph(
    text: &str,
    at: usize,
    found: &mut impl FnMut(Kind, Range<usize>),
) -> usize {
    let start = memchr::memrchr2(b'\n', b'\r', &text.as_bytes()[..at]).map_or(0, |end| end + 1);
    let end = memchr::memchr2(b'\n', b'\r', &text.as_bytes()[at..])
        .map_or(text.len(), |length| at + length);
    looked(end - start);
    let turned = text[start..end].chars().any(tables::right_to_left);

    let mut stack = [Open::default(); DEPTH];
    let mut depth = 0;
    let mut seen = 0;
    let mut tell = |at: usize| found(Kind::Bidi, at..at + 3);
    for (offset, ch) in text[at..end].char_indices() {
        let here = at + offset;
        match ch {
            '\u{202A}' | '\u{202B}' | '\u{202D}' | '\u{202E}' | '\u{2066}' | '\u{2067}'
            | FIRST_STRONG => {
                let open = Open {
                    control: ch,
                    at: here,
                    splits: splits(text, here),
                };
                match stack.get_mut(depth) {
                    Some(slot) => {
                        *slot = open;
                        depth += 1;
                    }
                    None => tell(here),
                }
            }
            END_EMBEDDING | END_ISOLATE => {
                // The end of an isolate ends what was opened inside it; that of an embedding ends only itself.
                let partner = match ch {
                    END_ISOLATE => stack[..depth]
                        .iter()
                        .rposition(|open| isolate(open.control)),
                    _ => depth
                        .checked_sub(1)
                        .filter(|last| !isolate(stack[*last].control)),
                };
                let Some(partner) = partner else {
                    tell(here);
                    continue;
                };
                stack[partner + 1..depth]
                    .iter()
                    .for_each(|open| tell(open.at));
                depth = partner;
                let open = stack[partner];
                let stays = !matches!(open.control, '\u{202D}' | '\u{202E}')
                    && !open.splits
                    && !splits(text, here)
                    && seen > open.at
                    && (turned || open.control == FIRST_STRONG);
                if !stays {
                    tell(open.at);
                    tell(here);
                }
            }
            // What else ends a paragraph.
            '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2029}' => {
                stack[..depth].iter().for_each(|open| tell(open.at));
                depth = 0;
            }
            _ if tables::kind(ch).is_none() => seen = here,
            _ => {}
        }
    }
    stack[..depth].iter().for_each(|open| tell(open.at));
    end
}

fn isolate(control: char) -> bool {
    matches!(control, '\u{2066}'..='\u{2068}')
}

/// What is seen beside a control.
enum Beside {
    Latin,
    Other,
    Crowd,
}

/// Whether the control at `at` stands inside a word of Latin letters or digits, or in a crowd of hidden characters.
fn splits(text: &str, at: usize) -> bool {
    let before = beside(text[..at].chars().rev());
    let after = beside(text[at..].chars().skip(1));
    matches!(
        (before, after),
        (Beside::Crowd, _) | (_, Beside::Crowd) | (Beside::Latin, Beside::Latin)
    )
}

fn beside(mut chars: impl Iterator<Item = char>) -> Beside {
    match chars
        .by_ref()
        .take(STEPS)
        .find(|ch| tables::kind(*ch).is_none())
    {
        Some(ch) if ch.is_ascii_alphanumeric() => Beside::Latin,
        Some(_) => Beside::Other,
        None if chars.next().is_some() => Beside::Crowd,
        None => Beside::Other,
    }
}
