//! Draws values of a given form: the same seed gives the same values, on every machine.
//!
//! Deliberately absent: values that anybody could guess are wanted here, so nothing in it is fit for keys.

/// A stream of numbers.
#[derive(Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The stream that this seed begins.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1 << 40)
    }

    /// The next number, below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % bound.max(1) as u64) as usize
    }

    /// So many digits, each as its number.
    pub(crate) fn digits(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(10) as u8).collect()
    }

    /// One of these.
    pub(crate) fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A text of this form: `<h32>` stands for thirty-two characters of the alphabet `h`, `<U>` for a UUID, bars are left out, and a
    /// broken bar stands for a bar.
    pub(crate) fn form(&mut self, form: &str) -> String {
        let mut text = String::new();
        let mut rest = form;
        while let Some(open) = rest.find('<') {
            let (before, after) = rest.split_at(open);
            text.extend(before.chars().filter(|letter| *letter != '|'));
            let close = after.find('>');
            let inner = close.map(|close| &after[1..close]).unwrap_or_default();
            match (
                inner,
                alphabet(inner),
                inner.get(1..).and_then(|count| count.parse::<usize>().ok()),
            ) {
                ("U", ..) => text.push_str(&self.form("<h8>-<h4>-4<h3>-a<h3>-<h12>")),
                (_, Some(alphabet), Some(count)) => {
                    text.extend((0..count).map(|_| char::from(*self.one(alphabet))))
                }
                _ => {
                    text.push('<');
                    rest = &after[1..];
                    continue;
                }
            }
            rest = &after[inner.len() + 2..];
        }
        text.extend(rest.chars().filter(|letter| *letter != '|'));
        text.replace('\u{a6}', "|")
    }
}

fn alphabet(inner: &str) -> Option<&'static [u8]> {
    Some(match inner.as_bytes().first()? {
        b'h' => b"0123456789abcdef",
        b'H' => b"0123456789ABCDEF",
        b'd' => b"0123456789",
        b'l' => b"abcdefghijklmnopqrstuvwxyz0123456789",
        b'u' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        b'a' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        b'L' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        b'b' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        b's' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        b't' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        b'm' => b"abcdefghijklmnopqrstuvwxyz",
        b'n' => b"abcdefghijklmnopqrstuvwxyz234567",
        b'o' => b"abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)",
        b'q' => b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        _ => return None,
    })
}
