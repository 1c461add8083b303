//! What a scan notes on its way, so that nobody walks there again: the members of the outer objects, and where long values end.
//!
//! A message is scanned once and then looked at by many: the dialect, the gates, the peer, the wraps. Each walks along the
//! members of the outer few objects and past arguments and contents that none of them reads. What is not noted here, because
//! it is short, deep, or one too many, is walked byte by byte, with the same result.

use super::Span;

/// Values shorter than this are walked past as fast as they are looked up.
const LONG: usize = 48;
/// Values inside more containers than this are not noted: nobody looks that deep.
const DEEP: usize = 5;
/// The most long values noted.
const ALL: usize = 16;
/// The most of them that lie deeper than the members of `params` or `result`, which a long list would else crowd out.
const INNER: usize = 10;
/// Objects inside fewer containers than this have their members noted: the envelope, `params` or `result`, and what lies
/// directly in those, `_meta` among them.
const OUTER: usize = 3;
/// The most members noted.
const FIELDS: usize = 24;
/// The most objects whose members are noted.
const OBJECTS: usize = 8;

/// The notes of one scan. Places are those in the text that was scanned.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    skips: usize,
    skip: [(u32, u32); ALL],
    fields: usize,
    field: [Field; FIELDS],
    objects: usize,
    /// Where the objects begin all of whose members are noted.
    object: [u32; OBJECTS],
}

/// One member of an outer object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    owner: u32,
    name: (u32, u32),
    value: (u32, u32),
    /// Whether the name holds an escape.
    pub(super) escaped: bool,
}

impl Field {
    /// The name, between its quotes.
    pub(super) const fn name(&self) -> Span {
        span(self.name)
    }

    /// The value.
    pub(super) const fn value(&self) -> Span {
        span(self.value)
    }
}

const fn span((start, end): (u32, u32)) -> Span {
    Span {
        start: start as usize,
        end: end as usize,
    }
}

impl Notes {
    /// Whether anything here concerns a value of this length.
    pub(super) const fn matter_to(length: usize) -> bool {
        length >= LONG
    }

    /// Whether a text is too short, or too long, for notes to be of use.
    pub(super) const fn are_idle_for(length: usize) -> bool {
        length < LONG || length > u32::MAX as usize
    }

    /// Notes a value inside `depth` containers, if it is worth it.
    pub(super) fn skip(&mut self, depth: usize, start: usize, end: usize) {
        let room = if depth > 2 { INNER } else { ALL };
        if end - start >= LONG && depth <= DEEP && self.skips < room {
            self.skip[self.skips] = (start as u32, end as u32);
            self.skips += 1;
        }
    }

    /// Notes a member of the object that begins at `owner`, the `depth`-th of those around it; what to end it with.
    pub(super) fn begin(
        &mut self,
        depth: usize,
        owner: usize,
        name: Span,
        escaped: bool,
        value: usize,
    ) -> Option<usize> {
        if depth > OUTER || self.fields >= FIELDS {
            return None;
        }
        self.field[self.fields] = Field {
            owner: owner as u32,
            name: (name.start as u32, name.end as u32),
            value: (value as u32, value as u32),
            escaped,
        };
        self.fields += 1;
        Some(self.fields - 1)
    }

    /// The value of a member ends here.
    pub(super) const fn end(&mut self, field: usize, end: usize) {
        self.field[field].value.1 = end as u32;
    }

    /// All members of the object that begins at `start` were noted.
    pub(super) const fn whole(&mut self, start: usize) {
        if self.objects < OBJECTS {
            self.object[self.objects] = start as u32;
            self.objects += 1;
        }
    }

    /// Whether all members of the object that begins at `start` are noted.
    pub(super) fn are_whole(&self, start: usize) -> bool {
        self.object[..self.objects].contains(&(start as u32))
    }

    /// The next member, from the `from`-th note on, of the object that begins at `start`, and where to go on.
    pub(super) fn field(&self, start: usize, from: usize) -> Option<(usize, &Field)> {
        let fields = self.field[..self.fields].iter().enumerate().skip(from);
        fields
            .filter(|(_, field)| field.owner == start as u32)
            .map(|(at, field)| (at + 1, field))
            .next()
    }

    /// One past the end of the value that begins at `start`, if it was noted.
    pub(super) fn end_of(&self, start: usize) -> Option<usize> {
        let noted = self.skip[..self.skips]
            .iter()
            .find(|(begins, _)| *begins == start as u32)?;
        Some(noted.1 as usize)
    }
}
