//! Patterns of `like`.

use cedar_policy::pst::PatternElem;

/// Whether a pattern matches all of a text. At most the product of both lengths in steps.
pub(super) fn like(pattern: &[PatternElem], text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut retry: Option<(&[PatternElem], &str)> = None;
    loop {
        let mut rest = text.chars();
        match (pattern.split_first(), rest.next()) {
            (Some((PatternElem::Wildcard, after)), _) => {
                pattern = after;
                retry = Some((pattern, text));
                continue;
            }
            (Some((PatternElem::Char(want), after)), Some(have)) if *want == have => {
                (pattern, text) = (after, rest.as_str());
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((past, run)) = retry else {
            return false;
        };
        let mut longer = run.chars();
        if longer.next().is_none() {
            return false;
        }
        (pattern, text) = (past, longer.as_str());
        retry = Some((past, text));
    }
}
