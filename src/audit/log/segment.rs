//! Segments: the files that the log is cut into, their names, and what is left of one after a crash.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use crate::audit::chain::{ChainPosition, Hash, Line, MAX_SEQ};

/// What a segment's name ends in.
pub const EXTENSION: &str = "jsonl";
/// What the name of its index ends in.
pub(in crate::audit) const INDEX: &str = "idx2";
/// What it did in versions whose indexes list less.
const INDEX_BEFORE: &str = "idx";

/// One segment on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where.
    pub path: PathBuf,
    /// The number of its first record.
    pub first: u64,
}

/// The segments in a directory, oldest first. Other files are not looked at.
///
/// # Errors
/// When the directory cannot be read.
pub fn segments(directory: &Path) -> io::Result<Vec<Segment>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if let Some(first) = first_of(&path) {
            found.push(Segment { path, first });
        }
    }
    // The second part of a name rises with time, for those that begin at one number.
    found.sort_by(|one, two| (one.first, &one.path).cmp(&(two.first, &two.path)));
    Ok(found)
}

/// Removes the index that a version before has left beside a segment: nobody reads it any more.
pub(super) fn remove_index_before(segment: &Path) {
    _ = fs::remove_file(segment.with_extension(INDEX_BEFORE));
}

/// The name of the segment that begins with record `first`; `turn` tells those apart that begin at one number.
pub(super) fn name(first: u64, turn: u32) -> String {
    format!("{first:020}-{turn:04}.{EXTENSION}")
}

fn first_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let (first, turn) = name
        .strip_suffix(EXTENSION)?
        .strip_suffix('.')?
        .split_once('-')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if first.len() != 20 || turn.len() != 4 || !digits(first) || !digits(turn) {
        return None;
    }
    first.parse().ok().filter(|first| *first <= MAX_SEQ)
}

/// What a process that died has left at the end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// The last whole record; `None` if there is none at all.
    pub(super) last: Option<ChainPosition>,
    /// How many bytes it and those before it take.
    pub(super) length: u64,
    /// How many bytes after that are no whole record.
    pub(super) torn: u64,
}

/// The tail of the segment at `path`: read from its end, more and more until there is a whole record in it.
pub(super) fn tail_of(path: &Path) -> io::Result<Tail> {
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let mut take = END;
    loop {
        let from = length.saturating_sub(take);
        let mut text = vec![0; usize::try_from(length - from).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut text, from)?;
        let tail = tail(&text);
        if tail.last.is_some() || from == 0 {
            let before = if tail.last.is_some() { from } else { 0 };
            return Ok(Tail {
                length: before + tail.length,
                ..tail
            });
        }
        take *= 8;
    }
}

/// The record after which the segment at `path` goes on; `None` where its first record cannot be read.
pub(super) fn before(path: &Path) -> io::Result<Option<ChainPosition>> {
    let mut first = Vec::new();
    BufReader::new(fs::File::open(path)?.take(END)).read_until(b'\n', &mut first)?;
    Ok(
        Line::parse(first.trim_ascii_end()).map(|line| ChainPosition {
            seq: line.seq.saturating_sub(1),
            hash: line.prev,
        }),
    )
}

/// What is read of a segment's end at first: more than a record is long.
const END: u64 = 256 << 10;

/// Finds the last record of `text` that is whole: its line ends, and its hash is right. Records before it are not judged: that
/// is what verifying is for.
pub(super) fn tail(text: &[u8]) -> Tail {
    let mut end = text.len();
    loop {
        let Some(feed) = memchr::memrchr(b'\n', text.get(..end).unwrap_or_default()) else {
            return Tail {
                last: None,
                length: 0,
                torn: text.len() as u64,
            };
        };
        let before = text.get(..feed).unwrap_or_default();
        let begin = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = before.get(begin..).unwrap_or_default();
        if let Some(line) = Line::parse(line)
            && Hash::of(line.record) == line.hash
        {
            return Tail {
                last: Some(line.place()),
                length: feed as u64 + 1,
                torn: (text.len() - feed - 1) as u64,
            };
        }
        end = feed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::chain::{Origin, link};

    #[test]
    fn the_tail_ends_with_the_last_whole_record_wherever_it_is_torn() {
        let origin = Origin {
            node: "n".to_owned(),
            boot: "b".to_owned(),
        };
        let mut text = Vec::new();
        let mut places = vec![(0, ChainPosition::START)];
        for _ in 0..3 {
            let last = places.last().unwrap().1;
            let place = link(&mut text, b"{\"v\":1}", &last, &origin);
            places.push((text.len(), place));
        }
        for cut in 0..=text.len() {
            let whole = places.iter().rev().find(|(end, _)| *end <= cut).unwrap();
            let found = tail(&text[..cut]);
            let place = (whole.0 > 0).then_some(whole.1);
            assert_eq!((found.last, found.length), (place, whole.0 as u64), "{cut}");
            assert_eq!(found.length + found.torn, cut as u64);
        }
    }

    #[test]
    fn the_tail_of_a_long_file_is_found_from_its_end() {
        let origin = Origin {
            node: "n".to_owned(),
            boot: "b".to_owned(),
        };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("segment");
        let (mut text, mut last) = (Vec::new(), ChainPosition::START);
        let event = format!("{{\"text\":\"{}\"}}", "x".repeat(60_000));
        for _ in 0..20 {
            last = link(&mut text, event.as_bytes(), &last, &origin);
        }
        let whole = text.len() as u64;
        for torn in [0, 1, 2 * END] {
            let torn_to = text.len() + usize::try_from(torn).unwrap();
            let mut text = text.clone();
            text.resize(torn_to, b'x');
            fs::write(&path, text).unwrap();
            let found = tail_of(&path).unwrap();
            assert_eq!(
                (found.last, found.length, found.torn),
                (Some(last), whole, torn)
            );
        }
        fs::write(&path, vec![b'x'; 1_000_000]).unwrap();
        let found = tail_of(&path).unwrap();
        assert_eq!((found.last, found.length, found.torn), (None, 0, 1_000_000));
    }

    #[test]
    fn only_our_own_names_are_segments() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            &name(12, 0),
            &name(3, 1),
            &name(3, 0),
            "audit.pub",
            "00000000000000000001-0000.idx",
            "1-1.jsonl",
            &name(u64::MAX, 0),
        ] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let found = segments(directory.path()).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|segment| {
                segment
                    .path
                    .file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(names, [name(3, 0), name(3, 1), name(12, 0)]);
    }
}
