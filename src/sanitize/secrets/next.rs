//! Finds where something ends, and remembers it: many values of a text may have one end.
//!
//! Guarantees: if callers ask in rising order, each byte is searched once. Deliberately absent: what an end looks like.

use crate::sanitize::work::looked;

/// The next ends of values, by what ends them.
#[derive(Default)]
pub(super) struct Ends {
    /// A sign that ends a value without quotes in source.
    pub(super) bare: Next,
    /// What ends an assignment that begins a line.
    pub(super) own: Next,
    /// What ends an assignment within a string or a command.
    pub(super) part: Next,
    /// The same, behind a semicolon.
    pub(super) parted: Next,
    /// What ends an address.
    pub(super) address: Next,
    /// The end of a line.
    pub(super) line: Next,
}

/// The end that was found last, and from where it was searched.
#[derive(Default)]
pub(super) struct Next(Option<(usize, usize)>);

impl Next {
    /// The first place at or after `from` that `find` tells in what stands from there on, or the end of the text.
    pub(super) fn after(
        &mut self,
        text: &[u8],
        from: usize,
        find: impl Fn(&[u8]) -> Option<usize>,
    ) -> usize {
        if let Some((searched, found)) = self.0
            && searched <= from
            && from <= found
        {
            return found;
        }
        let found = find(&text[from..]).map_or(text.len(), |at| from + at);
        looked(found - from);
        self.0 = Some((from, found));
        found
    }
}
