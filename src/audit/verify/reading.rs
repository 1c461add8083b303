//! Reading a log fast: pieces of it are read and hashed by as many threads as there are cores, and judged by one, in order.
//!
//! Guarantees: what is judged is what stands in the files, in the order of the log; memory is bounded, however long a segment
//! or a line is. Deliberately absent: judging.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, ErrorKind, Read as _},
    mem,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use crate::audit::{
    chain::{Hash, Line, Tree},
    index::Index,
    log::{INDEX, Segment},
};

/// What is read at once, in bytes.
const PIECE: usize = 1 << 20;
/// A line that is longer than this is no record; it is passed over.
const LONGEST: usize = 4 << 20;
/// How often, and how long, it is waited for the rest of a line that is being written just now.
const PATIENCE: (u32, Duration) = (5, Duration::from_millis(20));

/// A part of a segment: whole lines, and what was made of each ahead of judging it.
#[derive(Default)]
pub(super) struct Piece {
    /// Which of the segments.
    pub(super) segment: usize,
    /// Where in the segment it begins.
    pub(super) offset: u64,
    pub(super) text: Vec<u8>,
    pub(super) lines: Vec<Hashed>,
    /// What is to stand in the index of the segment, where it has one.
    pub(super) index: Option<Index>,
    /// Whether the last of the lines has no end.
    pub(super) torn: bool,
    /// How many bytes of the segment it stands for: more than the text where a line was too long.
    pub(super) length: u64,
}

/// A line, and the hash of what in it is hashed.
pub(super) struct Hashed {
    /// Where it ends in the text, its feed not counted.
    pub(super) end: usize,
    /// The hash, and what that is in a tree; `None` if the line is of no form that can be hashed.
    pub(super) hash: Option<(Hash, Hash)>,
}

/// Gives `judge` each piece of `segments` in order.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn read(segments: &[Segment], mut judge: impl FnMut(&mut Piece)) -> io::Result<()> {
    let source = Mutex::new(Source::new(segments));
    let threads = thread::available_parallelism()
        .map_or(2, usize::from)
        .min(8);
    // Each thread holds one, and as many wait.
    let (sender, pieces) = sync_channel(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (source, sender) = (&source, sender.clone());
            scope.spawn(move || work(source, &sender));
        }
        drop(sender);
        in_order(&source, &pieces, &mut judge)
    })
}

type Sent = (u64, io::Result<Piece>);

fn in_order(
    source: &Mutex<Source<'_>>,
    pieces: &Receiver<Sent>,
    judge: &mut impl FnMut(&mut Piece),
) -> io::Result<()> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    // Where it ends early, the channel is closed and the threads end.
    for (turn, piece) in pieces {
        early.insert(turn, piece?);
        while let Some(mut piece) = early.remove(&next) {
            judge(&mut piece);
            next += 1;
            lock(source).spare.push(piece);
        }
    }
    Ok(())
}

fn work(source: &Mutex<Source<'_>>, sender: &SyncSender<Sent>) {
    loop {
        let (turn, mut piece) = match lock(source).claim() {
            Ok(Some(claimed)) => claimed,
            Ok(None) => return,
            Err((turn, error)) => {
                // Who would be told has ended as well.
                _ = sender.send((turn, Err(error)));
                return;
            }
        };
        hash(&mut piece);
        if sender.send((turn, Ok(piece))).is_err() {
            return;
        }
    }
}

fn hash(piece: &mut Piece) {
    let mut begin = 0;
    let Piece {
        text, lines, index, ..
    } = piece;
    lines.clear();
    let mut add = |begin: usize, end: usize| {
        let line = text.get(begin..end);
        let hashed = line.and_then(Line::hashed).map(|record| {
            let hash = Hash::of(record);
            (hash, Tree::leaf(&hash))
        });
        if let Some(index) = index
            && let Some(line) = line.and_then(Line::parse)
            && let Ok(event) = str::from_utf8(line.event)
        {
            index.read(event);
        }
        lines.push(Hashed { end, hash: hashed });
    };
    for end in memchr::memchr_iter(b'\n', text) {
        add(begin, end);
        begin = end + 1;
    }
    if begin < text.len() {
        add(begin, text.len());
    }
}

/// A panic under the lock ends the reading by itself.
fn lock<'a, 's>(source: &'a Mutex<Source<'s>>) -> std::sync::MutexGuard<'a, Source<'s>> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is still to be read.
struct Source<'s> {
    segments: &'s [Segment],
    /// The segment that is read, and its number.
    file: Option<File>,
    segment: usize,
    /// Whether it has an index.
    indexed: bool,
    /// Up to where it was given out.
    offset: u64,
    /// What was read after the last feed.
    rest: Vec<u8>,
    turn: u64,
    /// For being filled again.
    spare: Vec<Piece>,
    failed: bool,
}

impl<'s> Source<'s> {
    const fn new(segments: &'s [Segment]) -> Self {
        Self {
            segments,
            file: None,
            segment: 0,
            indexed: false,
            offset: 0,
            rest: Vec::new(),
            turn: 0,
            spare: Vec::new(),
            failed: false,
        }
    }

    /// The next piece and its turn.
    fn claim(&mut self) -> Result<Option<(u64, Piece)>, (u64, io::Error)> {
        if self.failed {
            return Ok(None);
        }
        let turn = self.turn;
        self.turn += 1;
        match self.next() {
            Ok(piece) => Ok(piece.map(|piece| (turn, piece))),
            Err(error) => {
                self.failed = true;
                Err((turn, error))
            }
        }
    }

    fn next(&mut self) -> io::Result<Option<Piece>> {
        loop {
            let Some(segment) = self.segments.get(self.segment) else {
                return Ok(None);
            };
            if self.file.is_none() {
                match File::open(&segment.path) {
                    Ok(file) => {
                        self.file = Some(file);
                        self.indexed = segment.path.with_extension(INDEX).exists();
                    }
                    // Retention has taken away what was oldest.
                    Err(error) if error.kind() == ErrorKind::NotFound && self.turn == 1 => {
                        self.segment += 1;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            let mut piece = self.spare.pop().unwrap_or_default();
            piece.segment = self.segment;
            piece.offset = self.offset;
            piece.torn = false;
            piece.index = self.indexed.then(Index::default);
            piece.text.clear();
            piece.text.append(&mut self.rest);
            self.fill(&mut piece)?;
            self.offset += piece.length;
            if self.file.is_none() {
                self.segment += 1;
                self.offset = 0;
            }
            if piece.length > 0 {
                return Ok(Some(piece));
            }
            self.spare.push(piece);
        }
    }

    /// Fills a piece with whole lines; at the end of the segment the file is closed.
    fn fill(&mut self, piece: &mut Piece) -> io::Result<()> {
        let newest = self.segment + 1 == self.segments.len();
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut tries = 0;
        loop {
            let before = piece.text.len();
            let more = file.take(PIECE as u64).read_to_end(&mut piece.text)?;
            if more == 0 {
                if newest && !piece.text.is_empty() && tries < PATIENCE.0 {
                    tries += 1;
                    thread::park_timeout(PATIENCE.1);
                    continue;
                }
                piece.torn = !piece.text.is_empty();
                piece.length = piece.text.len() as u64;
                self.file = None;
                return Ok(());
            }
            let read = piece.text.get(before..).unwrap_or_default();
            if let Some(feed) = memchr::memrchr(b'\n', read) {
                let whole = before + feed + 1;
                self.rest
                    .extend_from_slice(piece.text.get(whole..).unwrap_or_default());
                piece.text.truncate(whole);
                piece.length = whole as u64;
                return Ok(());
            }
            if piece.text.len() > LONGEST {
                return self.pass(piece);
            }
        }
    }

    /// Passes over the rest of a line that is too long: its beginning stands for it.
    fn pass(&mut self, piece: &mut Piece) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        piece.length = piece.text.len() as u64;
        piece.text.truncate(1);
        let mut read = mem::take(&mut self.rest);
        loop {
            read.clear();
            if file.take(PIECE as u64).read_to_end(&mut read)? == 0 {
                piece.torn = true;
                self.file = None;
                return Ok(());
            }
            if let Some(feed) = memchr::memchr(b'\n', &read) {
                piece.length += feed as u64 + 1;
                piece.text.push(b'\n');
                read.drain(..=feed);
                self.rest = read;
                return Ok(());
            }
            piece.length += read.len() as u64;
        }
    }
}
