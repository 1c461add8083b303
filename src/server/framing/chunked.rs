//! Chunked coding, read strictly: sizes, data counted but not looked at, trailers checked and bounded.
//!
//! Guarantees: a size is one to eight hexadecimal digits and CRLF, so no extensions; data is followed by CRLF; trailers are
//! well-formed fields within the bounds of a head's.

use super::{HeadBounds, head::split_field};

/// The coding is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// Digits of a chunk's size: 4 GiB is more than any body may have.
const DIGITS: u8 = 8;

#[derive(Debug)]
pub(super) struct Chunked {
    part: Part,
    trailer: Vec<u8>,
    trailers: usize,
    trailer_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Size { digits: u8, value: u64 },
    SizeEnd { value: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    Trailer,
}

impl Default for Chunked {
    fn default() -> Self {
        Self {
            part: Part::Size {
                digits: 0,
                value: 0,
            },
            trailer: Vec::new(),
            trailers: 0,
            trailer_bytes: 0,
        }
    }
}

impl Chunked {
    /// Reads on. Returns how many bytes belong to the body, and whether it ended with the last of them or broke after it.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        bounds: &HeadBounds,
    ) -> (usize, Result<bool, Broken>) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            self.part = match self.part {
                Part::Size { digits, value } => match (byte, char::from(byte).to_digit(16)) {
                    (_, Some(digit)) if digits < DIGITS => Part::Size {
                        digits: digits + 1,
                        value: value << 4 | u64::from(digit),
                    },
                    (b'\r', _) if digits > 0 => Part::SizeEnd { value },
                    _ => return (at, Err(Broken)),
                },
                Part::SizeEnd { value } => match (byte, value) {
                    (b'\n', 0) => Part::Trailer,
                    (b'\n', left) => Part::Data { left },
                    _ => return (at, Err(Broken)),
                },
                Part::Data { left } => {
                    let there = bytes.len() - at;
                    let take = there.min(usize::try_from(left).unwrap_or(usize::MAX));
                    at += take;
                    self.part = match left - take as u64 {
                        0 => Part::DataCr,
                        left => Part::Data { left },
                    };
                    continue;
                }
                Part::DataCr if byte == b'\r' => Part::DataLf,
                Part::DataLf if byte == b'\n' => Part::Size {
                    digits: 0,
                    value: 0,
                },
                Part::DataCr | Part::DataLf => return (at, Err(Broken)),
                Part::Trailer => match self.trailer_byte(byte, bounds) {
                    Ok(false) => Part::Trailer,
                    Ok(true) => return (at + 1, Ok(true)),
                    Err(Broken) => return (at, Err(Broken)),
                },
            };
            at += 1;
        }
        (at, Ok(false))
    }

    /// `true` at the empty line.
    fn trailer_byte(&mut self, byte: u8, bounds: &HeadBounds) -> Result<bool, Broken> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > bounds.fields || self.trailer.len() > bounds.field {
            return Err(Broken);
        }
        if byte != b'\n' {
            self.trailer.push(byte);
            return Ok(false);
        }
        let line = self.trailer.strip_suffix(b"\r").ok_or(Broken)?;
        if line.is_empty() {
            return Ok(true);
        }
        split_field(line).ok_or(Broken)?;
        self.trailers += 1;
        if self.trailers > bounds.count {
            return Err(Broken);
        }
        self.trailer.clear();
        Ok(false)
    }
}
