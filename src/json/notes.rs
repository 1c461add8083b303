//! What a scan notes on its way, so that nobody walks there again: the members of the outer objects, and where long values end.
//!
//! A message is scanned once and then looked at by many: the dialect, the gates, the peer, the wraps. Each walks along the
//! members of the outer few objects and past arguments and contents that none of them reads. What is not noted here, because
//! it is short, deep, or one too many, is walked byte by byte, with the same result.

use super::Span;

/// Values shorter than this are walked past as fast as they are looked up.
const LONG: usize = 48;
/// Texts shorter than this are walked: notes take more room than one would like to fill for a few members.
const SHORT: usize = 96;
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
    /// Where the objects begin all of whose members are noted, and the first of those.
    object: [(u32, u8); OBJECTS],
}

/// Which notes are those on the members of one object, while it is read: they follow one another by [`Field::next`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    first: u8,
    last: u8,
}

/// No note.
const NONE: u8 = u8::MAX;

impl Default for Fields {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

/// One member of an outer object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Field {
    name: (u32, u32),
    value: (u32, u32),
    /// Whether the name holds an escape.
    pub(super) escaped: bool,
    /// The note on the member after it.
    next: u8,
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
        length < SHORT || length > u32::MAX as usize
    }

    /// Notes a value inside `depth` containers, if it is worth it.
    pub(super) fn skip(&mut self, depth: usize, start: usize, end: usize) {
        let room = if depth > 2 { INNER } else { ALL };
        if end - start >= LONG && depth <= DEEP && self.skips < room {
            self.skip[self.skips] = (start as u32, end as u32);
            self.skips += 1;
        }
    }

    /// Notes the next member of an object, the `depth`-th of those around it; whether there was room.
    pub(super) fn begin(
        &mut self,
        depth: usize,
        object: &mut Fields,
        name: Span,
        escaped: bool,
        value: usize,
    ) -> bool {
        if depth > OUTER || self.fields >= FIELDS {
            return false;
        }
        self.field[self.fields] = Field {
            name: (name.start as u32, name.end as u32),
            value: (value as u32, value as u32),
            escaped,
            next: NONE,
        };
        let here = self.fields as u8;
        match self.field.get_mut(usize::from(object.last)) {
            Some(before) => before.next = here,
            None => object.first = here,
        }
        object.last = here;
        self.fields += 1;
        true
    }

    /// The value of the last member ends here.
    pub(super) fn end(&mut self, object: &Fields, end: usize) {
        if let Some(field) = self.field.get_mut(usize::from(object.last)) {
            field.value.1 = end as u32;
        }
    }

    /// All members of the object that begins at `start` were noted.
    pub(super) const fn whole(&mut self, start: usize, object: &Fields) {
        if self.objects < OBJECTS {
            self.object[self.objects] = (start as u32, object.first);
            self.objects += 1;
        }
    }

    /// The walk along the members of the object that begins at `start`, if all of them are noted.
    pub(super) fn walk(&self, start: usize) -> Option<Walk<'_>> {
        let mut objects = self.object[..self.objects].iter();
        let (_, first) = objects.find(|(begins, _)| *begins == start as u32)?;
        Some(Walk {
            notes: self,
            next: *first,
        })
    }

    /// One past the end of the value that begins at `start`, if it was noted.
    pub(super) fn end_of(&self, start: usize) -> Option<usize> {
        let noted = self.skip[..self.skips]
            .iter()
            .find(|(begins, _)| *begins == start as u32)?;
        Some(noted.1 as usize)
    }
}

/// The notes on the members of one object, in order.
#[derive(Debug, Clone)]
pub(super) struct Walk<'a> {
    notes: &'a Notes,
    next: u8,
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a Field;

    fn next(&mut self) -> Option<&'a Field> {
        let field = self.notes.field.get(usize::from(self.next))?;
        self.next = field.next;
        Some(field)
    }
}
