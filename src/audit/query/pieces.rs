//! A segment's lines in pieces, from either end.
//!
//! Guarantees: whole lines only, each in one piece; what is appended meanwhile is not looked at; memory is bounded, whatever
//! lies in the file; whoever wants only what is before some record reads next to nothing of what is after it.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt as _,
};

use crate::audit::chain::Line;

/// What is read at once, in bytes: more than a record is long.
pub(super) const PIECE: u64 = 256 << 10;
/// What is read at once where a record is sought by its number.
pub(super) const PROBE: u64 = 16 << 10;
/// A line that is longer is no record, and passed over.
const LONGEST: u64 = 4 << 20;

/// What is left of a segment, and the piece of it that was read last.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    file: &'a File,
    /// Where what is left begins and ends.
    from: u64,
    to: u64,
    /// How much is read at once.
    size: u64,
    text: Vec<u8>,
    read: u64,
}

impl<'a> Pieces<'a> {
    /// All of what is there now.
    pub(super) fn of(file: &'a File) -> io::Result<Self> {
        Ok(Self {
            file,
            from: 0,
            to: file.metadata()?.len(),
            size: PIECE,
            text: Vec::new(),
            read: 0,
        })
    }

    /// How many bytes were read so far.
    pub(super) const fn read(&self) -> u64 {
        self.read
    }

    /// Leaves out records from number `limit` on, but for a few, by halving what is left: numbers rise in a segment.
    pub(super) fn end_before(&mut self, limit: u64) -> io::Result<()> {
        // Every record that begins at or after `high` is one from `limit` on, and `self.to` is where the first of those begins.
        let (mut low, mut high) = (self.from, self.to);
        while high - low > PROBE {
            let middle = low + (high - low) / 2;
            match self.first_from(middle, high)? {
                Some((at, seq)) if seq < limit => low = at,
                Some((at, _)) => (high, self.to) = (middle, at),
                None => high = middle,
            }
        }
        Ok(())
    }

    /// The first record that begins at or after `middle` and before `until`: where, and its number.
    fn first_from(&mut self, middle: u64, until: u64) -> io::Result<Option<(u64, u64)>> {
        let mut ahead = Pieces {
            file: self.file,
            // One byte before, to see whether a line begins right there.
            from: middle.saturating_sub(1),
            to: self.to,
            size: PROBE,
            text: Vec::new(),
            read: 0,
        };
        let mut begun = middle == 0;
        let found = loop {
            if !ahead.oldest()? {
                break None;
            }
            let mut at = ahead.from - ahead.text.len() as u64;
            let mut found = None;
            for line in ahead.text.split_inclusive(|byte| *byte == b'\n') {
                let whole = std::mem::replace(&mut begun, true);
                if at >= until {
                    break;
                }
                if let Some(line) = Line::parse(line.trim_ascii_end()).filter(|_| whole) {
                    found = Some((at, line.seq));
                    break;
                }
                at += line.len() as u64;
            }
            if found.is_some() || at >= until {
                break found;
            }
        };
        self.read += ahead.read;
        Ok(found)
    }

    /// The next piece towards the end, if there is any; an empty one where something was passed over.
    pub(super) fn towards_the_end(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.oldest()?.then_some(&self.text[..]))
    }

    /// The next piece towards the beginning, if there is any, as above. What stands behind its last line's end is no line.
    pub(super) fn towards_the_beginning(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.newest()?.then_some(&self.text[..]))
    }

    fn oldest(&mut self) -> io::Result<bool> {
        let mut take = self.size;
        while self.from < self.to {
            self.fetch(self.from, take.min(self.to - self.from))?;
            if let Some(feed) = memchr::memrchr(b'\n', &self.text) {
                self.text.truncate(feed + 1);
                self.from += feed as u64 + 1;
                return Ok(true);
            }
            if self.text.len() < usize::try_from(take).unwrap_or(usize::MAX) {
                // The rest is no whole line.
                break;
            }
            if take < LONGEST {
                take *= 2;
            } else {
                self.from += take;
                self.text.clear();
                return Ok(true);
            }
        }
        self.from = self.to;
        Ok(false)
    }

    fn newest(&mut self) -> io::Result<bool> {
        let mut take = self.size;
        while self.from < self.to {
            let at = self.to.saturating_sub(take).max(self.from);
            self.fetch(at, self.to - at)?;
            // It begins amidst a line, unless that is the first.
            let begin = if at == self.from {
                0
            } else {
                memchr::memchr(b'\n', &self.text).map_or(self.text.len(), |feed| feed + 1)
            };
            if begin < self.text.len() || at == self.from {
                self.text.drain(..begin);
                self.to = at + begin as u64;
                return Ok(true);
            }
            if take < LONGEST {
                take *= 2;
            } else {
                self.to = at;
                self.text.clear();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads what is there of so many bytes from `at` on. A torn tail may be cut off meanwhile.
    fn fetch(&mut self, at: u64, length: u64) -> io::Result<()> {
        self.text.clear();
        self.text
            .resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
        let (mut there, mut from) = (0, at);
        while let Some(rest) = self.text.get_mut(there..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, from) {
                Ok(0) => break,
                Ok(read) => {
                    there += read;
                    from += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.text.truncate(there);
        self.read += there as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::chain::{ChainPosition, Origin, link};

    /// A segment of records of many lengths, and where each begins.
    fn segment(count: u64) -> (Vec<u8>, Vec<usize>) {
        let origin = Origin {
            node: "n".to_owned(),
            boot: "b".to_owned(),
        };
        let (mut text, mut begins, mut last) = (Vec::new(), Vec::new(), ChainPosition::START);
        for n in 0..count {
            begins.push(text.len());
            let length = [1, 3_000, 50, 9_000, 20_000][usize::try_from(n % 5).unwrap()];
            let event = format!(r#"{{"text":"{}"}}"#, "x".repeat(length));
            last = link(&mut text, event.as_bytes(), &last, &origin);
        }
        (text, begins)
    }

    fn file(text: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, text).unwrap();
        file
    }

    fn seqs(piece: &[u8]) -> Vec<u64> {
        let lines = piece.split_inclusive(|byte| *byte == b'\n');
        let whole = lines.filter_map(|line| line.strip_suffix(b"\n"));
        whole
            .filter_map(|line| Some(Line::parse(line)?.seq))
            .collect()
    }

    fn backwards(pieces: &mut Pieces<'_>) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(piece) = pieces.towards_the_beginning().unwrap() {
            all.extend(seqs(piece).into_iter().rev());
        }
        all.reverse();
        all
    }

    fn forwards(pieces: &mut Pieces<'_>) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(piece) = pieces.towards_the_end().unwrap() {
            all.extend(seqs(piece));
        }
        all
    }

    #[test]
    fn every_whole_line_is_in_one_piece_from_either_end() {
        let (whole, _) = segment(60);
        let wanted: Vec<u64> = (1..=60).collect();
        for torn in [&b""[..], b"{\"half", &[b'x'; 700_000]] {
            let text = [&whole, torn].concat();
            let file = file(&text);
            assert_eq!(forwards(&mut Pieces::of(&file).unwrap()), wanted);
            assert_eq!(backwards(&mut Pieces::of(&file).unwrap()), wanted);
        }
        let nothing = file(b"");
        assert!(backwards(&mut Pieces::of(&nothing).unwrap()).is_empty());
    }

    #[test]
    fn a_line_that_is_no_record_is_passed_over_in_bounded_memory() {
        let (whole, begins) = segment(10);
        let (head, tail) = whole.split_at(begins[5]);
        let hole = vec![0; 20 << 20];
        let file = file(&[head, &hole, b"\n", tail].concat());
        for (all, pieces) in [
            (forwards as fn(&mut Pieces<'_>) -> _, Pieces::of(&file)),
            (backwards, Pieces::of(&file)),
        ] {
            let mut pieces = pieces.unwrap();
            assert_eq!(all(&mut pieces), (1..=10).collect::<Vec<u64>>());
            assert!(pieces.text.capacity() as u64 <= 2 * LONGEST);
        }
    }

    #[test]
    fn what_is_from_a_record_on_is_left_out_and_next_to_nothing_of_it_read() {
        let (mut text, begins) = segment(300);
        // Damage: what cannot be read is nowhere.
        for broken in [100, 101, 102, 200] {
            text[begins[broken]] = b'!';
        }
        let file = file(&text);
        let all: Vec<u64> = forwards(&mut Pieces::of(&file).unwrap());
        assert_eq!(all.len(), 296);
        for limit in (1..=302).chain([u64::MAX]) {
            let mut pieces = Pieces::of(&file).unwrap();
            pieces.end_before(limit).unwrap();
            assert!(pieces.read < 40 * PROBE, "{limit}: {}", pieces.read);
            let left = forwards(&mut pieces);
            let (wanted, more) = left.split_at(left.partition_point(|seq| *seq < limit));
            let before: Vec<u64> = all.iter().copied().filter(|seq| *seq < limit).collect();
            assert_eq!(wanted, before, "{limit}");
            let surplus = more.len();
            assert!(limit > 300 || surplus < 20, "{limit}: {surplus} too many");
        }
    }
}
