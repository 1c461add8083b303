//! One pass over a text, sixty-four bytes at a time, which finds for all detectors the places that some want to see closer.
//! Each of them goes through its own list, and reads nothing between.
//!
//! Guarantees: every place of each kind is told, in rising order, and no other (the tests compare with plain loops); linear;
//! the lists hold less than five times the bytes of the text, and their memory is kept from one text to the next up to a bound.
//! Deliberately absent: what becomes of a place.
// SECURITY 7

mod assign;
mod beyond;
mod blocks;
mod marks;
mod plane;
#[cfg(test)]
mod tests;
mod tile;

use std::ops::Range;

use fearless_simd::{Level, Simd, dispatch};

pub(super) use assign::is_telling;
pub(super) use blocks::{BLOCK, block, is, mask, within};
use marks::ahead;
pub(super) use marks::behind;
pub(super) use marks::{Held, Marks, bits};
use plane::{LANES, Plane};
use tile::{Kinds, Odd, TOLD, Tile};

use super::work::looked;

/// What is kept of a buffer from one text to the next, in bytes.
pub(super) const KEEP: usize = 2 << 20;
/// The shortest run of token characters that is told.
pub(super) const TOKEN: usize = 14;
/// The shortest row of digits that is told, in bytes.
pub(super) const DIGITS: usize = 7;
/// The shortest run of letters and digits that is told, in bytes.
pub(super) const LETTERS: usize = 15;
/// The shortest run that is taken for an encoded one.
pub(super) const ENCODED: usize = 20;

/// Where a text is worth a closer look. Bits stand for the bytes of a block, the first lowest.
#[derive(Debug, Default)]
pub struct Survey {
    pub(super) secrets: Vec<Secrets>,
    pub(super) numbers: Vec<Numbers>,
    /// `=` and `:` before six digits that stand near, but those behind letters and digits of which the last ends no name of a
    /// secret, unless a flag for a user stands near.
    pub(super) numbered: Vec<Found>,
    /// For what is active: `<` and a letter or `?`, `![`, `](`, `]:`.
    pub(super) active: Vec<Found>,
    /// Where characters begin that may be hidden, by their first bytes; not those that stand in their place for all to see.
    pub(super) hidden: Vec<Found>,
    /// Control characters that no text needs, in one byte or two.
    pub(super) controls: Vec<Found>,
    pub(super) encoded: Vec<Encoded>,
    /// `%` and a hexadecimal digit.
    pub(super) percent: Vec<Found>,
    /// A backslash and `u`.
    pub(super) unicode: Vec<Found>,
    /// Where letters and digits in other forms may begin, and keys around them, by their first bytes.
    pub(super) forms: Vec<Found>,
    /// Where the strings begin that the text is made of, in rising order, as far as anybody has told: what Markdown has at the
    /// beginning of a line may stand there, too.
    pub(super) begins: Vec<usize>,
    /// Where spaces and dashes that are not of ASCII may stand behind a digit, by their first bytes.
    pub(super) joints: Vec<Found>,
}

/// Places in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Where the block begins.
    pub(super) at: usize,
    pub(super) marks: u64,
}

/// For secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Secrets {
    /// Where the block begins.
    pub(super) at: usize,
    /// Where a run of token characters has come to its fourteenth.
    pub(super) runs: u64,
    /// `=` and `:`, but those behind letters and digits that end no name of a secret by their last two, unless an address
    /// follows, or a flag for a user stands near.
    pub(super) assign: u64,
    /// `~` and `@`.
    pub(super) signs: u64,
    /// Where a row of dashes has come to its fifth.
    pub(super) dashes: u64,
    /// Whether a flag for a user, `-u`, stands in this block or one of the two before.
    pub(super) flag: bool,
}

/// For numbers of people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) at: usize,
    /// Where a row of digits, with single spaces, dashes, dots and slashes between, has come to its seventh byte.
    pub(super) digits: u64,
    /// Where a run of letters and digits has come to its fifteenth.
    pub(super) letters: u64,
    /// The second digit of two letters to five and two digits at the start of a word, as numbers of bank accounts begin.
    pub(super) heads: u64,
    /// The last of six digits before a bracket that opens, or behind a word of three letters or four and one byte of another kind.
    pub(super) sixes: u64,
}

/// A run of at least [`ENCODED`] characters of Base64, unless it is plain to see that no text is in it: nothing comes of
/// hexadecimal digits with dashes between, nor of words in letters of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) run: Range<usize>,
    pub(super) form: Form,
}

/// What a run may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Hexadecimal digits and nothing else.
    Hexadecimal,
    Base64,
    /// It was too long to be told.
    Either,
}

impl Survey {
    /// Of this text.
    pub(super) fn of(text: &str) -> Self {
        let mut survey = Self::default();
        survey.read(text);
        survey
    }

    /// Looks at another text.
    pub(super) fn read(&mut self, text: &str) {
        self.read_at(Level::new(), text);
    }

    /// The same with what a machine of this level can do.
    fn read_at(&mut self, level: Level, text: &str) {
        self.clear();
        looked(text.len());
        dispatch!(level, simd => self.blocks(simd, text.as_bytes()));
    }

    fn clear(&mut self) {
        fn emptied<T>(list: &mut Vec<T>) {
            list.clear();
            list.shrink_to(KEEP / size_of::<T>());
        }
        emptied(&mut self.secrets);
        emptied(&mut self.numbers);
        emptied(&mut self.numbered);
        emptied(&mut self.active);
        emptied(&mut self.hidden);
        emptied(&mut self.controls);
        emptied(&mut self.encoded);
        emptied(&mut self.percent);
        emptied(&mut self.unicode);
        emptied(&mut self.forms);
        emptied(&mut self.begins);
        emptied(&mut self.joints);
    }

    #[inline(always)]
    fn blocks<S: Simd>(&mut self, simd: S, text: &[u8]) {
        let mut tiles = [Tile::default(), Tile::default()];
        let [tile, next] = &mut tiles;
        let (mut tile, mut next) = (tile, next);
        self.read_tile(simd, text, tile);
        let mut flag = 0;
        while tile.at < text.len() {
            next.follow(tile);
            self.read_tile(simd, text, next);
            self.tile(simd, text, tile, &mut flag);
            std::mem::swap(&mut tile, &mut next);
        }
    }

    /// Reads the blocks of a tile that no other had, and notes what is no ordinary text in them.
    #[inline(always)]
    fn read_tile<S: Simd>(&mut self, simd: S, text: &[u8], tile: &mut Tile) {
        for lane in tile.fresh() {
            let Some(at) = tile.place(lane).filter(|at| *at < text.len()) else {
                tile.empty(lane);
                continue;
            };
            match tile.read(simd, lane, Marks::at(simd, text, at)) {
                Odd::None => {}
                Odd::Controls(marks) => found(&mut self.controls, at, bits(marks.control())),
                Odd::Beyond => {
                    let last = at.checked_sub(1);
                    let last = last.is_some_and(|last| text[last].is_ascii_digit());
                    self.beyond(Marks::on_from(simd, text, at), (at, last));
                }
            }
        }
        tile.read_names(simd, text);
    }

    /// Looks at a block with characters beyond ASCII, given with what stands one and two bytes farther on, and whether a digit
    /// goes before it.
    #[inline(always)]
    fn beyond<S: Simd>(&mut self, three: [Marks<S>; 3], (at, last): (usize, bool)) {
        let suspects = beyond::suspects(three);
        if suspects != 0 {
            let left = suspects & !beyond::in_place(three, suspects);
            found(&mut self.hidden, at, left);
        }
        found(&mut self.forms, at, beyond::forms(three));
        let [first, second, _] = three;
        let of_two = first.is(0xC2) & second.within(0x80, 0x20);
        found(&mut self.controls, at, bits(first.control() | of_two));
        // Whoever asks for them tells dashes from what else begins so.
        let joints = bits(first.is(0xC2) & second.is(0xA0) | first.is(0xE2) & second.is(0x80));
        if joints != 0 {
            let before = bits(first.digit()) << 1 | u64::from(last);
            found(&mut self.joints, at, joints & before);
        }
    }

    /// Looks at eight blocks, of which six are told. What is seldom there is asked about beforehand, for all of them at once, and
    /// looked at in the blocks that have it.
    #[inline(always)]
    fn tile<S: Simd>(&mut self, simd: S, text: &[u8], tile: &Tile, flag: &mut u8) {
        let kinds = tile.kinds(simd);
        let mut secret = Secret::default();
        let words = (kinds.token | kinds.slash).eroded([1, 2, 4, 6]);
        let mut letters = Plane::none(simd);
        if words.any() {
            secret.runs = kinds.token.eroded([1, 2, 4, 6]).first().lanes();
            letters = kinds.alnum.eroded([1, 2, 4, 7]).first();
            // Those of fourteen that end six bytes before the end of another.
            let encoded = words & words.behind((ENCODED - TOKEN) as u32);
            self.encoded(simd, text, tile, encoded.first());
        }
        let mut users = 0;
        let dashes = kinds.dash.held();
        if dashes != 0 {
            secret.dashes = kinds.dash.eroded([1, 2, 1]).first().lanes();
            for lane in lanes(dashes) {
                users |= u64::from(tile.has_user(simd, text, lane)) << lane;
            }
        }
        let flags = flags(simd, text, tile, users, flag);
        if kinds.assign.any() {
            secret.assign = kinds.assigning(simd, tile).lanes();
            for lane in lanes(flags) {
                secret.assign[lane] = tile.assign[lane];
            }
        }
        self.rare(simd, text, tile, &mut secret.signs);
        self.secrets(tile, &secret, flags);
        let [rows, heads, sixes] = if kinds.digit.any() {
            self.numbers(simd, text, tile, &kinds, flags)
        } else {
            [Plane::none(simd); 3]
        };
        self.rows(tile, [rows, letters, heads, sixes]);
    }

    /// Rows of digits and what numbers begin or end with; what six digits are assigned to is noted.
    #[inline(always)]
    fn numbers<S: Simd>(
        &mut self,
        simd: S,
        text: &[u8],
        tile: &Tile,
        kinds: &Kinds<S>,
        flags: u64,
    ) -> [Plane<S>; 3] {
        let Kinds {
            letter,
            digit,
            alnum,
            joint,
            assign,
            ..
        } = *kinds;
        let row = digit | joint & digit.behind(1) & digit.ahead(1);
        let rows = row.eroded([1, 2, 3]).first();
        // The second digits of two letters to five and two digits at the start of a word.
        let other = |by: u32| !alnum.behind(by);
        let heads = digit & digit.behind(1) & letter.behind(2) & letter.behind(3);
        let five = letter.behind(6) & other(7);
        let four = letter.behind(4) & (other(5) | letter.behind(5) & (other(6) | five));
        let heads = heads & (four | other(4));
        let sixth = digit.eroded([1, 2, 2]);
        let ends = sixth & !digit.ahead(1);
        let any = ends.held();
        if any == 0 {
            return [rows, heads, ends];
        }
        let word = other(6) & letter.behind(7) & letter.behind(8) & letter.behind(9);
        let word = word & (other(10) | letter.behind(10) & other(11));
        let mut sixes = (ends & word).lanes();
        let ends = ends.lanes();
        for lane in lanes(any) {
            sixes[lane] |= ends[lane] & tile.before_brackets(simd, text, lane);
        }
        let near = assign & Kinds::near(sixth);
        if near.any() {
            let named = (near & !digit.behind(1)).lanes();
            let near = near.lanes();
            for lane in TOLD {
                let flagged = flags >> lane & 1 == 1;
                let marks = if flagged { near[lane] } else { named[lane] };
                if let Some(at) = tile.place(lane).filter(|_| marks != 0) {
                    let marks = assign::numbered(text, at, marks, flagged);
                    found(&mut self.numbered, at, marks);
                }
            }
        }
        [rows, heads, Plane::of(simd, &sixes)]
    }

    #[inline(always)]
    fn rows<S: Simd>(&mut self, tile: &Tile, [digits, letters, heads, sixes]: [Plane<S>; 4]) {
        let any = (digits | letters | heads | sixes).held();
        if any == 0 {
            return;
        }
        let (digits, letters) = (digits.lanes(), letters.lanes());
        let (heads, sixes) = (heads.lanes(), sixes.lanes());
        for lane in lanes(any) {
            if let Some(at) = tile.place(lane) {
                self.numbers.push(Numbers {
                    at,
                    digits: digits[lane],
                    letters: letters[lane],
                    heads: heads[lane],
                    sixes: sixes[lane],
                });
            }
        }
    }

    /// Notes runs of Base64 that end here.
    #[inline(always)]
    fn encoded<S: Simd>(&mut self, simd: S, text: &[u8], tile: &Tile, ends: Plane<S>) {
        let any = ends.held();
        if any == 0 {
            return;
        }
        let ends = ends.lanes();
        for lane in lanes(any) {
            let Some(at) = tile.place(lane) else {
                continue;
            };
            for end in places(at, ends[lane]) {
                self.encoded.extend(encoded(simd, text, end + 1 - ENCODED));
            }
        }
    }

    /// Notes what is active, escapes and signs, which most blocks have nothing of.
    #[inline(always)]
    fn rare<S: Simd>(&mut self, simd: S, text: &[u8], tile: &Tile, signs: &mut [u64; LANES]) {
        for lane in TOLD {
            if tile.rare[lane] == 0 {
                continue;
            }
            if let Some(at) = tile.place(lane) {
                let marks = Marks::at(simd, text, at);
                let next = text.get(at + BLOCK).copied().unwrap_or(b' ');
                self.beginnings(marks, (tile.letter[lane], tile.digit[lane]), (at, next));
                signs[lane] = bits(marks.is(b'~') | marks.is(b'@'));
            }
        }
    }

    #[inline(always)]
    fn secrets(&mut self, tile: &Tile, secret: &Secret, flags: u64) {
        for lane in TOLD {
            let (runs, assign) = (secret.runs[lane], secret.assign[lane]);
            let (signs, dashes) = (secret.signs[lane], secret.dashes[lane]);
            if runs | assign | signs | dashes == 0 {
                continue;
            }
            if let Some(at) = tile.place(lane) {
                self.secrets.push(Secrets {
                    at,
                    runs,
                    assign,
                    signs,
                    dashes,
                    flag: flags >> lane & 1 == 1,
                });
            }
        }
    }

    /// Notes where something active begins, and where escapes do.
    #[inline(always)]
    fn beginnings<S: Simd>(
        &mut self,
        marks: Marks<S>,
        (letter, digit): (u64, u64),
        (at, next): (usize, u8),
    ) {
        let tag = letter | bits(marks.is(b'?'));
        let target = bits(marks.is(b'(') | marks.is(b':'));
        let active = bits(marks.is(b'<')) & ahead(tag, next.is_ascii_alphabetic() || next == b'?')
            | bits(marks.is(b'!')) & ahead(bits(marks.is(b'[')), next == b'[')
            | bits(marks.is(b']')) & ahead(target, matches!(next, b'(' | b':'));
        found(&mut self.active, at, active);
        let hexadecimal = digit | bits(marks.with(0x20).within(b'a', 6));
        let percent = bits(marks.is(b'%')) & ahead(hexadecimal, next.is_ascii_hexdigit());
        found(&mut self.percent, at, percent);
        let unicode = bits(marks.is(b'\\')) & ahead(bits(marks.is(b'u')), next == b'u');
        found(&mut self.unicode, at, unicode);
    }
}

/// In which of these blocks a flag for a user is near: it stands in those of `users`, or in one of the two before.
#[inline(always)]
fn flags<S: Simd>(simd: S, text: &[u8], tile: &Tile, users: u64, flag: &mut u8) -> u64 {
    let mut flags = 0;
    if users == 0 && *flag == 0 {
        return flags;
    }
    for lane in TOLD {
        *flag = flag.saturating_sub(1);
        let Some(at) = tile.place(lane) else { continue };
        let last = || at.checked_sub(BLOCK);
        if users >> lane & 1 == 1
            && (opens(simd, text, at) || last().is_some_and(|last| opens(simd, text, last)))
        {
            *flag = FLAG;
        }
        flags |= u64::from(*flag > 0) << lane;
    }
    flags
}

/// The blocks that are told, of these.
#[inline(always)]
fn lanes(of: u64) -> impl Iterator<Item = usize> {
    const ALL: u64 = (1 << TOLD.end) - (1 << TOLD.start);
    places(0, of & ALL)
}

/// What is noted of secrets, by the blocks of a tile.
#[derive(Default)]
struct Secret {
    runs: [u64; LANES],
    assign: [u64; LANES],
    signs: [u64; LANES],
    dashes: [u64; LANES],
}

/// Whether a dash of the block at `at` stands behind what no run has: of flags the first does, and most others stand in dates and
/// names.
#[inline(always)]
fn opens<S: Simd>(simd: S, text: &[u8], at: usize) -> bool {
    let marks = Marks::at(simd, text, at);
    let run = bits(marks.within(b'+', 0x80 - b'+'));
    let last = at.checked_sub(1).map_or(b' ', |at| text[at]);
    let before = u64::from((b'+'..0x80).contains(&last));
    bits(marks.is(b'-')) & !(run << 1 | before) != 0
}

/// In how many blocks a flag for a user is near, its own among them.
const FLAG: u8 = 3;

#[inline(always)]
fn found(list: &mut Vec<Found>, at: usize, marks: u64) {
    if marks != 0 {
        list.push(Found { at, marks });
    }
}

/// The run of Base64 that begins at `start`, if text may be in it.
#[inline(always)]
fn encoded<S: Simd>(simd: S, text: &[u8], start: usize) -> Option<Encoded> {
    let marks = Marks::at(simd, text, start);
    let (letter, digit) = (bits(marks.letter()), bits(marks.digit()));
    let alnum = letter | digit;
    let joint = bits(marks.is(b'-') | marks.is(b'_'));
    let word = alnum | joint | bits(marks.slash());
    let length = word.trailing_ones() as usize;
    if length == BLOCK && text.get(start + BLOCK).is_some_and(is_word) {
        let run = start..end_of_encoded(simd, text, start + BLOCK);
        return Some(Encoded {
            run,
            form: Form::Either,
        });
    }
    let all = u64::MAX >> (BLOCK - length);
    let (alnum, digit) = (alnum & all, digit & all);
    let low = bits(marks.with(0x20).within(b'a', 6));
    let hexadecimal = alnum & !low & !digit == 0;
    let form = if hexadecimal && alnum == all {
        Form::Hexadecimal
    } else {
        // Words, paths and names in snake case have letters of one case.
        let small = bits(marks.within(b'a', 26)) & alnum;
        let mixed = small != 0 && (digit != 0 || alnum & !small != 0);
        // Slashes and pluses make it something else. Most of them are UUIDs.
        let groups = hexadecimal && all & !(alnum | joint) == 0;
        if !mixed || groups {
            return None;
        }
        Form::Base64
    };
    let run = start..start + length;
    Some(Encoded { run, form })
}

/// Whether it is of either alphabet of Base64.
const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/')
}

/// Where the run of Base64 that goes on at `at` ends.
#[inline(always)]
fn end_of_encoded<S: Simd>(simd: S, text: &[u8], mut at: usize) -> usize {
    loop {
        let marks = Marks::at(simd, text, at);
        let joint = marks.is(b'-') | marks.is(b'_') | marks.slash();
        let word = bits(marks.letter() | marks.digit() | joint);
        let length = word.trailing_ones() as usize;
        looked(length);
        at += length;
        if length < BLOCK {
            return at;
        }
    }
}

/// Every bit of a mask, as places behind `at`.
#[inline]
pub(super) fn places(at: usize, mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let place = (left != 0).then(|| at + left.trailing_zeros() as usize);
        left &= left.wrapping_sub(1);
        place
    })
}

/// All places of a list, which rise.
#[inline]
pub(super) fn all_places(found: &[Found]) -> impl Iterator<Item = usize> {
    found.iter().flat_map(|found| places(found.at, found.marks))
}
