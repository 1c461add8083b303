//! Where a link or an image leads, as a browser would read it.
//!
//! Entities, Markdown's backslashes, upper case, backslashes for slashes, and white space and control characters in front and
//! in between are read as browsers read them. Deliberately absent: resolving relative addresses; they lead nowhere else.

use std::str::Chars;

/// Bytes of a target that are read: more than the longest scheme and host.
const HEAD: usize = 320;
/// Characters of Base64 or hexadecimal digits in one go that are more than a name, a digest or a signature.
const RUN: usize = 120;
/// Percent escapes in one link that are more than a title.
const ESCAPES: usize = 80;

/// Schemes that run code, or read what is on the machine of whoever follows the link.
const DANGEROUS: [&[u8]; 20] = [
    b"javascript",
    b"vbscript",
    b"livescript",
    b"jscript",
    b"mocha",
    b"file",
    b"smb",
    b"jar",
    b"mhtml",
    b"view-source",
    b"filesystem",
    b"ms-msdt",
    b"search-ms",
    b"search",
    b"ms-officecmd",
    b"ms-appinstaller",
    b"ms-settings",
    b"shell",
    b"res",
    b"command",
];
/// Types of a `data:` address that a browser would run; the last is harmless as an image.
const RUNNABLE: [&[u8]; 8] = [
    b"text/html",
    b"application/xhtml+xml",
    b"text/xml",
    b"application/xml",
    b"text/javascript",
    b"application/javascript",
    b"application/ecmascript",
    b"image/svg+xml",
];

/// How a target is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Html,
    Markdown,
}

/// Where a target leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    /// Nowhere that is not here already, or to a scheme that fetches nothing.
    Here,
    /// To another host that is not allow-listed.
    Away,
    /// To another host that is.
    Allowed,
    /// Into code, or onto the reader's machine.
    Danger,
    /// To an image with code in it, which is inert as an image.
    Drawing,
}

/// Hosts that may be fetched from: lower case, `*.` in front for every host below.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts(Vec<Box<str>>);

impl Hosts {
    pub(super) fn new(hosts: impl IntoIterator<Item = String>) -> Self {
        Self(
            hosts
                .into_iter()
                .map(|host| host.to_ascii_lowercase().into())
                .collect(),
        )
    }

    fn allow(&self, host: &[u8]) -> bool {
        self.0
            .iter()
            .any(|allowed| match allowed.strip_prefix("*.") {
                Some(parent) => host
                    .strip_suffix(parent.as_bytes())
                    .is_some_and(|name| name.len() > 1 && name.ends_with(b".")),
                None => allowed.as_bytes() == host,
            })
    }
}

/// Bytes of an address that are read to see where it leads, entities and all.
pub(super) const LONGEST: usize = 768;

/// Reads the beginning of `raw` and says where it leads.
pub(super) fn leads(raw: &str, written: Written, hosts: &Hosts) -> Leads {
    // Without one of these there is no scheme and no host, and most have none.
    let first = raw.bytes().find(|byte| *byte > b' ');
    if raw.len() < LONGEST
        && first.is_none_or(|byte| byte.is_ascii_graphic() && byte != b'/')
        && memchr::memchr3(b':', b'&', b'\\', raw.as_bytes()).is_none()
    {
        return Leads::Here;
    }
    let mut head = [0; HEAD];
    let mut length = 0;
    // Where the scheme ends, or the two slashes that stand for one; and whether the host has begun.
    let mut scheme = None;
    let mut host = false;
    for ch in decoded(raw, written) {
        // Browsers take these out, wherever they stand; what they do not take out begins no scheme.
        if ch <= '\u{1F}'
            || ch == '\u{7F}'
            || (length == 0 && (ch.is_whitespace() || ch.is_control()))
        {
            continue;
        }
        let byte = match ch {
            '\\' => b'/',
            _ => u8::try_from(ch)
                .ok()
                .filter(u8::is_ascii)
                .map_or(0xFF, |byte| byte.to_ascii_lowercase()),
        };
        let Some(slot) = head.get_mut(length) else {
            break;
        };
        *slot = byte;
        length += 1;
        match scheme {
            None if byte == b':' || head.starts_with(b"//") => scheme = Some(length - 1),
            // No more needs reading to see that it is none.
            None if !(byte.is_ascii_alphanumeric()
                || matches!(byte, b'+' | b'-' | b'.')
                || (byte == b'/' && length == 1)) =>
            {
                return Leads::Here;
            }
            None if head[0] == b'/' && length > 1 => return Leads::Here,
            None => {}
            Some(_)
                if host && matches!(byte, b'/' | b'?' | b'#') && !head.starts_with(b"data:") =>
            {
                break;
            }
            Some(_) => host |= byte != b'/',
        }
    }
    let head = &head[..length];
    if head.starts_with(b"//") {
        return away(head, hosts);
    }
    let scheme = head
        .iter()
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')));
    let Some(colon) = scheme.filter(|at| *at > 0 && head[*at] == b':') else {
        // What is as long as this without a scheme in sight hides one.
        let hidden = scheme.is_none() && raw.len() >= LONGEST;
        return if hidden { Leads::Away } else { Leads::Here };
    };
    // A path of a programming language, as in `File::open`.
    if head.get(colon + 1) == Some(&b':') {
        return Leads::Here;
    }
    match &head[..colon] {
        b"http" | b"https" | b"ftp" | b"ftps" | b"ws" | b"wss" => away(&head[colon + 1..], hosts),
        b"data" => data(&head[colon + 1..]),
        scheme if DANGEROUS.contains(&scheme) => Leads::Danger,
        _ => Leads::Here,
    }
}

/// What comes after the scheme: slashes, however many, a host, and more.
fn away(rest: &[u8], hosts: &Hosts) -> Leads {
    let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
    let rest = &rest[slashes..];
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let whole = end.unwrap_or(rest.len());
    if whole == 0 || whole + 16 > HEAD {
        return if whole == 0 { Leads::Here } else { Leads::Away };
    }
    let host = &rest[..whole];
    let host = host.rsplit(|byte| *byte == b'@').next().unwrap_or(host);
    let host = host.split(|byte| *byte == b':').next().unwrap_or(host);
    if hosts.allow(host) {
        Leads::Allowed
    } else {
        Leads::Away
    }
}

fn data(rest: &[u8]) -> Leads {
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b',' | b';' | b' '));
    let kind = &rest[..end.unwrap_or(rest.len())];
    match RUNNABLE.iter().position(|runnable| *runnable == kind) {
        Some(last) if last + 1 == RUNNABLE.len() => Leads::Drawing,
        Some(_) => Leads::Danger,
        None => Leads::Here,
    }
}

/// Whether the address of another host has so much in it that it may carry what was read elsewhere.
pub(super) fn carries(raw: &str) -> bool {
    if raw.len() < RUN {
        return false;
    }
    let bytes = raw.as_bytes();
    let Some(host) = memchr::memmem::find(bytes, b"//") else {
        return false;
    };
    let mut run = Run::default();
    let mut escapes = 0;
    let mut query = false;
    for byte in &bytes[host + 2..] {
        match byte {
            b'A'..=b'Z' => run.upper += 1,
            b'a'..=b'f' => run.hex += 1,
            b'g'..=b'z' => run.lower += 1,
            b'0'..=b'9' => run.digits += 1,
            b'+' => run.signs += 1,
            b'-' | b'_' => run.dashes += 1,
            b'/' if query => run.signs += 1,
            b'%' => {
                escapes += 1;
                run.signs += 1;
            }
            other => {
                query |= matches!(other, b'?' | b'#');
                if run.encoded() {
                    return true;
                }
                run = Run::default();
                continue;
            }
        }
    }
    run.encoded() || escapes >= ESCAPES
}

/// What a run of letters and digits is made of.
#[derive(Default)]
struct Run {
    upper: usize,
    hex: usize,
    lower: usize,
    digits: usize,
    signs: usize,
    dashes: usize,
}

impl Run {
    fn encoded(&self) -> bool {
        let letters = self.upper + self.hex + self.lower;
        let length = letters + self.digits + self.signs + self.dashes;
        let hexadecimal = self.lower == 0 && self.upper == 0 && self.dashes == 0;
        let base32 =
            (self.lower + self.hex == 0 || self.upper == 0) && self.dashes == 0 && self.digits > 0;
        let base64 = self.upper * 8 >= length
            && (self.lower + self.hex) * 8 >= length
            && self.dashes * 10 <= length;
        length >= RUN && (hexadecimal || base32 || base64)
    }
}

/// The characters of `raw` with entities, and backslashes where those escape, taken away.
pub(super) fn decoded(raw: &str, written: Written) -> Decoded<'_> {
    Decoded {
        rest: raw.chars(),
        written,
    }
}

/// See [`decoded`].
pub(super) struct Decoded<'t> {
    rest: Chars<'t>,
    written: Written,
}

impl<'t> Decoded<'t> {
    /// What has not been read.
    pub(super) fn rest(&self) -> &'t str {
        self.rest.as_str()
    }
}

impl Iterator for Decoded<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let ch = self.rest.next()?;
        match ch {
            '&' => match entity(self.rest.as_str()) {
                Some((ch, length)) => {
                    self.rest = self.rest.as_str()[length..].chars();
                    Some(ch)
                }
                None => Some(ch),
            },
            '\\' if self.written == Written::Markdown => {
                let next = self.rest.clone().next();
                match next.filter(char::is_ascii_punctuation) {
                    // Not everybody takes the meaning of an entity away.
                    Some('&') => self.next(),
                    Some(next) => {
                        self.rest.next();
                        Some(next)
                    }
                    None => Some(ch),
                }
            }
            _ => Some(ch),
        }
    }
}

/// The character that an entity stands for, after its `&`, and the length of the rest of it.
fn entity(rest: &str) -> Option<(char, usize)> {
    const NAMED: [(&str, char); 19] = [
        ("colon;", ':'),
        ("Tab;", '\t'),
        ("NewLine;", '\n'),
        ("sol;", '/'),
        ("bsol;", '\\'),
        ("amp;", '&'),
        ("lpar;", '('),
        ("rpar;", ')'),
        ("period;", '.'),
        ("quot;", '"'),
        ("apos;", '\''),
        ("lt;", '<'),
        ("gt;", '>'),
        ("num;", '#'),
        ("quest;", '?'),
        ("commat;", '@'),
        ("lowbar;", '_'),
        ("nbsp;", '\u{A0}'),
        ("ZeroWidthSpace;", '\u{200B}'),
    ];
    let Some(number) = rest.strip_prefix('#') else {
        return NAMED
            .iter()
            .find(|(name, _)| rest.starts_with(name))
            .map(|(name, ch)| (*ch, name.len()));
    };
    let (radix, digits, marks) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (16, digits, 2),
        None => (10, number, 1),
    };
    let zeros = digits.bytes().take_while(|byte| *byte == b'0').count();
    let value = &digits[zeros..];
    let length = value
        .bytes()
        .take(8)
        .take_while(|byte| char::from(*byte).is_digit(radix))
        .count();
    if zeros + length == 0 {
        return None;
    }
    let code = if length == 0 {
        0
    } else {
        u32::from_str_radix(&value[..length], radix).ok()?
    };
    let end = marks + zeros + length;
    let semicolon = usize::from(rest.as_bytes().get(end) == Some(&b';'));
    Some((char::from_u32(code)?, end + semicolon))
}
