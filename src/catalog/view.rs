//! Views: one list of one scope, in order, encoded page by page on first use and shared from then on.
//!
//! Reading takes no lock once a page was encoded. A page is the same bytes for everybody of the same shape of revision.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use hashbrown::HashMap;

use super::{
    check::Item,
    convert::{Dress, Shape},
    cursor::{self, Mark, Position},
    namespace::Namespace,
    rules::PageRules,
};
use crate::{
    jsonrpc::encode::LastMember,
    protocol::{Revision, UpstreamId, methods::ListKind},
};

/// One list of one scope.
#[derive(Debug)]
pub(super) struct ListView {
    kind: ListKind,
    /// Whether items go under their outward names, or under their upstream's.
    outward: bool,
    rules: PageRules,
    /// One for each upstream in the scope, in configured order.
    sections: Vec<Section>,
    items: Vec<Arc<Item>>,
    /// Fingerprints of the names shown, as `items`.
    prints: Vec<u64>,
    by_name: HashMap<Arc<str>, usize>,
    pages: Vec<Page>,
}

/// The part of a list that is one upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) upstream: UpstreamId,
    /// Its place in the configured order.
    pub(super) rank: u16,
    pub(super) namespace: Arc<Namespace>,
    pub(super) stale: bool,
    /// Whether it runs tools as core tasks.
    pub(super) executes: bool,
    /// One past its last item.
    pub(super) end: usize,
}

/// Items from here to the next page, once encoded for each shape.
#[derive(Debug)]
struct Page {
    start: usize,
    end: usize,
    encoded: [OnceLock<LastMember>; Shape::COUNT],
}

impl ListView {
    /// The view of these items; `sections` cover them in order. `previous` is returned when it shows the same.
    pub(super) fn new(
        kind: ListKind,
        outward: bool,
        rules: PageRules,
        sections: Vec<Section>,
        items: Vec<Arc<Item>>,
        previous: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        if let Some(previous) = previous
            && previous.shows(&rules, &sections, &items)
        {
            return previous.clone();
        }
        let mut view = Self {
            kind,
            outward,
            rules,
            sections,
            prints: Vec::with_capacity(items.len()),
            by_name: HashMap::with_capacity(items.len()),
            pages: Vec::new(),
            items,
        };
        for (at, item) in view.items.iter().enumerate() {
            let name = if outward {
                &item.exposed
            } else {
                &item.route.local
            };
            view.prints.push(cursor::print(name));
            view.by_name.insert(name.clone(), at);
        }
        let mut start = 0;
        loop {
            let end = view.page_end(start);
            view.pages.push(Page {
                start,
                end,
                encoded: Default::default(),
            });
            if end == view.items.len() {
                return Arc::new(view);
            }
            start = end;
        }
    }

    /// The view of those items that `keep` keeps: this one when that is all, one of `known` when it shows the same.
    pub(super) fn only<'a>(
        self: &Arc<Self>,
        mut keep: impl FnMut(&Item) -> bool,
        mut known: impl Iterator<Item = &'a Arc<Self>>,
    ) -> Arc<Self> {
        let mut items = Vec::new();
        let mut sections = Vec::with_capacity(self.sections.len());
        let mut start = 0;
        for section in &self.sections {
            let before = items.len();
            let own = &self.items[start..section.end];
            items.extend(own.iter().filter(|item| keep(item)).cloned());
            sections.push(Section {
                stale: section.stale && items.len() > before,
                end: items.len(),
                ..section.clone()
            });
            start = section.end;
        }
        if items.len() == self.items.len() {
            return self.clone();
        }
        let same = known.find(|view| {
            view.kind == self.kind
                && view.outward == self.outward
                && view.shows(&self.rules, &sections, &items)
        });
        Self::new(self.kind, self.outward, self.rules, sections, items, same)
    }

    /// Whether both show the same items in the same dress.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || self.outward == other.outward
                && self.shows(&other.rules, &other.sections, &other.items)
    }

    /// Whether it is the view of these. Items are the same when they are one: what did not change is not built again.
    fn shows(&self, rules: &PageRules, sections: &[Section], items: &[Arc<Item>]) -> bool {
        self.rules == *rules
            && self.sections == *sections
            && self.items.len() == items.len()
            && self.items.iter().zip(items).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The items in order.
    pub(super) fn items(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// The item shown under this name.
    pub(super) fn item(&self, name: &str) -> Option<&Arc<Item>> {
        self.by_name.get(name).map(|at| &self.items[*at])
    }

    /// The page that begins at `after`, as one JSON array, and the mark after it if more follows.
    pub(super) fn page(&self, revision: Revision, after: &Position) -> (LastMember, Option<Mark>) {
        let shape = Shape::of(revision.features(), self.kind);
        let start = after.after.as_ref().map_or(0, |mark| self.resume(mark));
        let known = self.pages.binary_search_by_key(&start, |page| page.start);
        let (bytes, end) = match known {
            Ok(at) => {
                let page = &self.pages[at];
                let encode = || self.encode(page.start, page.end, shape);
                (
                    page.encoded[shape.index()].get_or_init(encode).clone(),
                    page.end,
                )
            }
            // The list changed since the cursor was made: what follows it is no page of ours.
            Err(_) => {
                let end = self.page_end(start);
                (self.encode(start, end, shape), end)
            }
        };
        (bytes, (end < self.items.len()).then(|| self.mark(end)))
    }

    /// Where the page that begins at `start` ends: at least one item further, if there is one.
    fn page_end(&self, start: usize) -> usize {
        let mut room = self.rules.bytes;
        let mut end = start;
        for item in self.items[start..].iter().take(self.rules.items.max(1)) {
            let fits = room.checked_sub(item.weight);
            if fits.is_none() && end > start {
                break;
            }
            room = fits.unwrap_or(0);
            end += 1;
        }
        end
    }

    fn encode(&self, start: usize, end: usize, shape: Shape) -> LastMember {
        let weight: usize = self.items[start..end].iter().map(|item| item.weight).sum();
        LastMember::of(weight + 2, |out| self.write(start..end, shape, out))
    }

    fn write(&self, Range { start, end }: Range<usize>, shape: Shape, out: &mut Vec<u8>) {
        out.push(b'[');
        let mut section = self.section_of(start);
        for at in start..end {
            while self.sections[section].end <= at {
                section += 1;
            }
            let Section {
                namespace,
                stale,
                executes,
                ..
            } = &self.sections[section];
            let dress = Dress {
                kind: self.kind,
                shape,
                namespace,
                outward: self.outward,
                stale: *stale,
                executes: *executes,
            };
            if at > start {
                out.push(b',');
            }
            let definition = dress.definition(&self.items[at]);
            debug_assert!(
                definition.len() < self.items[at].weight,
                "a page is larger than it was laid out"
            );
            out.extend_from_slice(definition.bytes());
        }
        out.push(b']');
    }

    /// The section that the item at `at` is in.
    fn section_of(&self, at: usize) -> usize {
        self.sections.partition_point(|section| section.end <= at)
    }

    fn bounds(&self, section: usize) -> (usize, usize) {
        let start = section
            .checked_sub(1)
            .map_or(0, |before| self.sections[before].end);
        (start, self.sections[section].end)
    }

    /// The mark after the item before `end`, which is not 0.
    fn mark(&self, end: usize) -> Mark {
        let section = self.section_of(end - 1);
        let (start, _) = self.bounds(section);
        let Section { upstream, rank, .. } = &self.sections[section];
        cursor::mark_after(upstream, *rank, &self.prints[start..end])
    }

    fn resume(&self, mark: &Mark) -> usize {
        let is_its = |section: &Section| section.upstream == mark.upstream;
        if let Some(section) = self.sections.iter().position(is_its) {
            let (start, end) = self.bounds(section);
            return start + mark.resume(&self.prints[start..end]);
        }
        // It is not configured any more: whoever took its place in the order is next.
        let next = self
            .sections
            .iter()
            .position(|section| section.rank >= mark.rank);
        next.map_or(self.items.len(), |section| self.bounds(section).0)
    }
}
