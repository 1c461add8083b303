//! One HTTP/1 head, read line by line as it arrives, each byte once.
//!
//! Guarantees: a head passes only if its request line is `METHOD SP TARGET SP HTTP/1.x`, every line ends in CRLF, every
//! field is `token ":" value` with no control byte but tab, and its body's length is given in exactly one way. It asks for no
//! other protocol, but for an offer of h2c, which nobody takes.

use memchr::memchr;
use wide::u8x16;

use super::{HeadBounds, Violation};

/// How long the body after a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    Fixed(u64),
    Chunked,
}

/// A head in the making. Offsets count from its first byte.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Where the line begins that is being read.
    line: usize,
    /// Up to where no line feed was found.
    searched: usize,
    /// Where the fields begin; zero while the request line is read.
    fields_at: usize,
    fields: usize,
    version: Version,
    length: Option<u64>,
    chunked: bool,
    upgrade: Upgrade,
}

/// What was said so far of changing the protocol. One offer can be ignored, as RFC 9110 7.8 has it: that of h2c, which the
/// standard client of Java makes on every plain connection. It stays HTTP/1.1 then; any other wish ends it.
#[derive(Debug, Clone, Copy, Default)]
struct Upgrade {
    /// `Connection` names it.
    named: bool,
    /// `Upgrade: h2c`
    h2c: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Http10,
    Http11,
}

/// The longest method we know is 7 bytes long; no registered one is longer than 17.
const METHOD_BYTES: usize = 32;
/// `METHOD SP` and `SP HTTP/1.1 CRLF` around a target.
const LINE_SLACK: usize = METHOD_BYTES + 12;

impl Head {
    /// Whether a byte of it has been seen.
    pub(super) const fn is_begun(&self) -> bool {
        self.searched > 0
    }

    /// Reads on. `bytes` begins at the head's first byte and is at least as long as at the call before.
    ///
    /// Returns the head's length and its body's once it is complete.
    ///
    /// # Errors
    /// The violation, as soon as the line that holds it is complete or too long.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        bounds: &HeadBounds,
    ) -> Result<Option<(usize, BodyLength)>, Violation> {
        loop {
            let unsearched = bytes.get(self.searched..).unwrap_or_default();
            let Some(found) = memchr(b'\n', unsearched) else {
                self.searched = bytes.len();
                return self.check_growth(bytes, bounds).map(|()| None);
            };
            let feed = self.searched + found;
            let line = bytes
                .get(self.line..feed)
                .and_then(|line| line.strip_suffix(b"\r"))
                .ok_or(Violation::Malformed)?;
            self.line = feed + 1;
            self.searched = feed + 1;
            if self.fields_at == 0 {
                self.request_line(line, bounds)?;
                self.fields_at = self.line;
            } else if line.is_empty() {
                if self.upgrade.named != self.upgrade.h2c {
                    return Err(Violation::Malformed);
                }
                return Ok(Some((self.line, self.body_length()?)));
            } else {
                self.field(line, bounds)?;
            }
        }
    }

    /// An unfinished line counts against its bound already.
    fn check_growth(&self, bytes: &[u8], bounds: &HeadBounds) -> Result<(), Violation> {
        let line = bytes.len() - self.line;
        if self.fields_at == 0 {
            // What cannot begin a request need not be waited for.
            if !bytes.first().is_none_or(u8::is_ascii_uppercase) {
                return Err(Violation::Malformed);
            }
            if line > bounds.target + LINE_SLACK {
                return Err(Violation::TargetTooLong);
            }
            return Ok(());
        }
        // One for the CR that may be there already.
        if line > bounds.field + 2
            || bytes.len() - self.fields_at > bounds.fields + 2 * bounds.count + 2
        {
            return Err(Violation::FieldsTooLarge);
        }
        Ok(())
    }

    fn request_line(&mut self, line: &[u8], bounds: &HeadBounds) -> Result<(), Violation> {
        let space = memchr(b' ', line).ok_or(Violation::Malformed)?;
        let (method, rest) = line.split_at(space);
        if !method.first().is_some_and(u8::is_ascii_uppercase)
            || method.len() > METHOD_BYTES
            || !all(method, TOKEN)
        {
            return Err(Violation::Malformed);
        }
        let rest = rest.get(1..).unwrap_or_default();
        let (target, version) = rest
            .len()
            .checked_sub(9)
            .map(|end| rest.split_at(end))
            .ok_or(Violation::Malformed)?;
        self.version = match version {
            b" HTTP/1.1" => Version::Http11,
            b" HTTP/1.0" => Version::Http10,
            _ => return Err(Violation::Malformed),
        };
        if target.len() > bounds.target {
            return Err(Violation::TargetTooLong);
        }
        if target.is_empty() || !all(target, TARGET) {
            return Err(Violation::Malformed);
        }
        match method {
            b"CONNECT" => Err(Violation::Tunnel),
            b"TRACE" => Err(Violation::Trace),
            _ => Ok(()),
        }
    }

    fn field(&mut self, line: &[u8], bounds: &HeadBounds) -> Result<(), Violation> {
        let (name, value) = split_field(line).ok_or(Violation::Malformed)?;
        self.fields += 1;
        // The line's end does not count, the colon does.
        let sum = self.line - self.fields_at - 2 * self.fields;
        if line.len() > bounds.field || self.fields > bounds.count || sum > bounds.fields {
            return Err(Violation::FieldsTooLarge);
        }
        match name.len() {
            7 if same(name, b"upgrade") => {
                let offer = value.eq_ignore_ascii_case(b"h2c") && self.version == Version::Http11;
                if !offer || self.upgrade.h2c {
                    return Err(Violation::Malformed);
                }
                self.upgrade.h2c = true;
                Ok(())
            }
            10 if same(name, b"connection") => {
                self.upgrade.named |= names_upgrade(value);
                Ok(())
            }
            14 if same(name, b"content-length") => {
                if self.length.is_some() || name[7] == b'_' {
                    return Err(Violation::Malformed);
                }
                self.length = Some(digits(value).ok_or(Violation::Malformed)?);
                Ok(())
            }
            17 if same(name, b"transfer-encoding") => {
                if self.chunked || name[8] == b'_' || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Violation::Malformed);
                }
                self.chunked = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    const fn body_length(&self) -> Result<BodyLength, Violation> {
        match (self.chunked, self.length, self.version) {
            (false, None, _) => Ok(BodyLength::Fixed(0)),
            (false, Some(length), _) => Ok(BodyLength::Fixed(length)),
            (true, None, Version::Http11) => Ok(BodyLength::Chunked),
            (true, _, _) => Err(Violation::Malformed),
        }
    }
}

/// Name and value of a field line, blanks around the value cut off; `None` if either holds a byte it may not.
pub(super) fn split_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = line.split_at(memchr(b':', line)?);
    let value = value.strip_prefix(b":")?;
    if name.is_empty() || !all(name, TOKEN) || !is_fit(value) {
        return None;
    }
    Some((name, value.trim_ascii()))
}

/// Whether no control byte but tabs is in a value.
fn is_fit(value: &[u8]) -> bool {
    const BLOCK: usize = 16;
    let unfit = |block: &[u8; BLOCK]| {
        let block = u8x16::new(*block);
        let control = block.min(u8x16::splat(0x1F)).simd_eq(block);
        control & !block.simd_eq(u8x16::splat(b'\t')) | block.simd_eq(u8x16::splat(0x7F))
    };
    let (blocks, rest) = value.as_chunks::<BLOCK>();
    let last = match value.last_chunk::<BLOCK>() {
        // Most of it may have been looked at.
        Some(last) => *last,
        None => {
            let mut last = [b' '; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            last
        }
    };
    let all = blocks
        .iter()
        .fold(unfit(&last), |all, block| all | unfit(block));
    all.to_bitmask() == 0
}

/// Equal but for case, and for `_` in place of `-`.
fn same(name: &[u8], lower: &[u8]) -> bool {
    let fold = |byte: &u8| match byte {
        b'_' => b'-',
        other => other.to_ascii_lowercase(),
    };
    name.iter().map(fold).eq(lower.iter().copied())
}

fn names_upgrade(value: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
}

/// A length of decimal digits and nothing else, at most 18 of them.
fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

/// May be in a method or a field name.
const TOKEN: u8 = 1;
/// May be in a request target: visible ASCII except what starts a fragment.
const TARGET: u8 = 2;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            )
        {
            class[byte] |= TOKEN;
        }
        if b.is_ascii_graphic() && b != b'#' {
            class[byte] |= TARGET;
        }
        byte += 1;
    }
    class
};

/// Whether all of these are of that class.
// No early end, which would cost more than it saves.
fn all(bytes: &[u8], class: u8) -> bool {
    bytes
        .iter()
        .fold(class, |all, byte| all & CLASS[usize::from(*byte)])
        == class
}
