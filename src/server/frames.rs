//! Frames of HTTP/2 as they come in: those that carry neither a request nor a part of one are told apart.
//!
//! Guarantees: only the heads of frames are looked at, and nothing is kept of what is in them. Deliberately absent: what is
//! wrong with a frame, which is hyper's to say; how many are too many, which the [`Watch`](super::watch::Watch) knows.

/// Bytes of the head of a frame.
const HEAD: usize = 9;
/// The least bytes of a request's body that are worth a frame, unless they are its last.
const WORTH: usize = 64;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;

/// Where the reading of a connection stands.
#[derive(Debug)]
pub(super) struct Frames {
    head: [u8; HEAD],
    /// How much of `head` is there.
    filled: usize,
    /// Bytes to come of what is in the frame.
    left: usize,
}

/// What frames of one read were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Those that carry nothing of a request: what they ask for is work all the same.
    pub(super) idle: u32,
    /// Those that begin, carry or end one.
    pub(super) useful: u32,
}

impl Frames {
    /// At the beginning, with so many bytes of the preface to come.
    pub(super) const fn after(preface: usize) -> Self {
        Self {
            head: [0; HEAD],
            filled: 0,
            left: preface,
        }
    }

    /// Goes on over what was read.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Seen {
        let mut seen = Seen::default();
        loop {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            if bytes.is_empty() {
                return seen;
            }
            let taken = (HEAD - self.filled).min(bytes.len());
            let (now, rest) = bytes.split_at(taken);
            if let Some(free) = self.head.get_mut(self.filled..self.filled + taken) {
                free.copy_from_slice(now);
            }
            self.filled += taken;
            bytes = rest;
            if self.filled < HEAD {
                return seen;
            }
            self.filled = 0;
            let [one, two, three, kind, flags, ..] = self.head;
            self.left = usize::from(one) << 16 | usize::from(two) << 8 | usize::from(three);
            match kind {
                HEADERS => seen.useful += 1,
                DATA if self.left >= WORTH || flags & END_STREAM != 0 => seen.useful += 1,
                // A part of the headers before it, whose sizes are bounded.
                CONTINUATION => {}
                _ => seen.idle += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let [.., one, two, three] = length.to_be_bytes();
        let mut frame = vec![one, two, three, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD + length, 0xff);
        frame
    }

    #[test]
    fn what_begins_carries_or_ends_a_request_is_useful_and_the_rest_is_not() {
        for (kind, flags, length, idle, useful) in [
            (HEADERS, 4, 20, 0, 1),
            (CONTINUATION, 4, 20, 0, 0),
            (DATA, 0, 64, 0, 1),
            (DATA, 0, 63, 1, 0),
            (DATA, 0, 0, 1, 0),
            (DATA, END_STREAM, 0, 0, 1),
            // Priority, reset, settings, promise, ping, farewell, window, and one that nobody knows.
            (2, 0, 5, 1, 0),
            (3, 0, 4, 1, 0),
            (4, 0, 0, 1, 0),
            (5, 0, 4, 1, 0),
            (6, 0, 8, 1, 0),
            (7, 0, 8, 1, 0),
            (8, 0, 4, 1, 0),
            (77, 1, 70_000, 1, 0),
        ] {
            let seen = Frames::after(0).read(&frame(kind, flags, length));
            assert_eq!(seen, Seen { idle, useful }, "{kind} {flags} {length}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_frames_are_cut(
            frames in prop::collection::vec((0_u8..11, 0_u8..2, 0_usize..200), 0..30),
            cuts in prop::collection::vec(1_usize..80, 1..20),
        ) {
            let mut all = vec![0xff; 24];
            all.extend(frames.iter().flat_map(|(kind, flags, length)| frame(*kind, *flags, *length)));
            let whole = Frames::after(24).read(&all);
            prop_assert!((whole.idle + whole.useful) as usize <= frames.len());
            let (mut reader, mut sum, mut rest) = (Frames::after(24), Seen::default(), &all[..]);
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                let seen = reader.read(now);
                sum = Seen { idle: sum.idle + seen.idle, useful: sum.useful + seen.useful };
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(sum, whole);
        }
    }
}
