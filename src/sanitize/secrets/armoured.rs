//! Private keys in blocks of text, and tokens of three parts.
//!
//! Guarantees: a block is followed to its end, however far, but beyond [`NEAR`] bytes only while it looks like a key; what was
//! passed is not looked at again.
//! Deliberately absent: certificates and public keys, which are no secret.

use std::ops::Range;

use memchr::memmem;

use super::{bytes::is_token, next::Next, plausible::holds, scan::Scan};
use crate::sanitize::{Class, work::looked};

/// How far off a key may end without looking like one throughout, in bytes.
const NEAR: usize = 1 << 15;
/// The longest headers of a key of OpenPGP, in bytes.
const HEADERS: usize = 512;
/// The longest number of lines of a key, in bytes.
const LINES: usize = 16;
/// The longest first part of a token, in bytes.
const PART: usize = 1 << 13;

/// How far behind the label of a key code may call something, and the Base64 of a key begin at the latest; and how long a row of
/// it is at least, in bytes.
const CALL: usize = 160;
const BEGUN: usize = 480;
const ROW: usize = 24;

/// The label of a key of OpenVPN.
const STATIC: &[u8] = b"OpenVPN Static key V1";

/// First parts that begin with the name of an algorithm, a type or a key.
const HEADS: [&[u8]; 3] = [b"eyJhbGciOi", b"eyJ0eXAiOi", b"eyJraWQiOi"];

/// The claims of the token that documentation of JSON Web Tokens shows.
const SHOWN: [&[u8]; 2] = [
    b"eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwi",
    b"eyJsb2dnZWRJbkFzIjoiYWRtaW4iLCJpYXQiOjE0MjI3Nzk2Mzh9",
];

/// The next places of what ends keys, asked for in rising order, and what is in the stretch that was looked at last: a text
/// may be full of beginnings that lead to one end.
#[derive(Default)]
pub(super) struct Marks {
    end: Next,
    body: Next,
    armoured: Next,
    lines: Next,
    ends: [Next; 2],
    lined: Next,
    /// For keys of SSH2.
    ssh2: [Next; 2],
    /// One for each way in which keys end: within one the spans rise, so that each byte is counted once.
    made: [Made; 3],
}

impl Marks {
    /// Where a key of SSH2 ends, whose body goes on at `start`.
    pub(super) fn of_ssh2(&mut self, text: &[u8], start: usize) -> usize {
        let [end, body] = &mut self.ssh2;
        let end = end.after(text, start, |rest| memmem::find(rest, b"---- END"));
        nearer(text, start, end, || body.after(text, start, not_body))
    }
}

/// What a stretch of text is made of. It moves along the text, and only what comes or goes is looked at.
struct Made {
    span: Range<usize>,
    counts: [u32; 128],
    letters: usize,
    distinct: usize,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            span: 0..0,
            counts: [0; 128],
            letters: 0,
            distinct: 0,
        }
    }
}

/// What the body of a key is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Base64,
    /// Base64 behind the headers of OpenPGP.
    Armour,
    /// Base64 in a file of PuTTY.
    Putty,
    /// Hexadecimal digits: a key that both sides of a tunnel have.
    Hex,
}

impl Made {
    /// How many hexadecimal digits are among the letters and digits.
    fn hexadecimal(&self) -> usize {
        let digits = (b'0'..=b'9').chain(b'a'..=b'f').chain(b'A'..=b'F');
        digits
            .map(|byte| self.counts[usize::from(byte)] as usize)
            .sum()
    }

    fn of(&mut self, text: &[u8], span: Range<usize>) -> &Self {
        if span.start < self.span.start || span.start >= self.span.end || span.end < self.span.end {
            *self = Self::default();
            self.span = span.start..span.start;
        }
        looked(span.start - self.span.start + (span.end - self.span.end));
        for byte in &text[self.span.end..span.end] {
            if byte.is_ascii_alphanumeric() {
                let count = &mut self.counts[usize::from(*byte)];
                *count += 1;
                self.letters += 1;
                self.distinct += usize::from(*count == 1);
            }
        }
        for byte in &text[self.span.start..span.start] {
            if byte.is_ascii_alphanumeric() {
                let count = &mut self.counts[usize::from(*byte)];
                *count -= 1;
                self.letters -= 1;
                self.distinct -= usize::from(*count == 0);
            }
        }
        self.span = span;
        self
    }
}

/// What was seen of tokens of three parts: names with many dashes could begin one at each of them.
#[derive(Default)]
pub(super) struct Parts {
    /// Up to where the part goes on that was read last as a first one.
    head: (usize, usize),
    /// Where the second part begins that was read last, and where the token ends, and whether it is signed.
    rest: Option<(usize, Option<Rest>)>,
}

/// What follows the first part of a token.
#[derive(Clone, Copy)]
struct Rest {
    end: usize,
    /// Whether the last part is a signature.
    signed: bool,
    /// Whether the parts look like those of a token whatever the first is.
    certain: bool,
}

impl Scan<'_> {
    /// A row of dashes has come to its fifth at `at`.
    pub(super) fn row_of_dashes(&mut self, at: usize) {
        let text = self.text;
        // In front of what a change takes away stands one dash more.
        let more = usize::from(text.get(at + 1) == Some(&b'-'));
        let Some(label) = text[at + 1 + more..].strip_prefix(b"BEGIN ") else {
            return;
        };
        let Some(dashes) = label.iter().take(64).position(|byte| *byte == b'-') else {
            return;
        };
        let name = label[..dashes].trim_ascii();
        let shared = name == STATIC;
        let private = [&b"PRIVATE KEY"[..], b"PRIVATE KEY BLOCK"];
        if !(shared || private.iter().any(|known| name.ends_with(known)))
            || !label[dashes..].starts_with(b"-----")
            || self.is_taken(at)
        {
            return;
        }
        let start = at + 1 + more + 6 + dashes + 5;
        let marks = &mut self.marks;
        let end = marks
            .end
            .after(text, start, |rest| memmem::find(rest, b"-----END "));
        let openpgp = name.ends_with(b"BLOCK");
        let body = openpgp.then(|| headers(&text[start..])).flatten();
        let form = match body {
            Some(_) => Form::Armour,
            None if shared => Form::Hex,
            None => Form::Base64,
        };
        let end = nearer(text, start, end, || match body {
            Some(headers) => marks.armoured.after(text, start + headers, not_body),
            None => marks.body.after(text, start, not_body),
        });
        self.key(form, start..end);
    }

    /// Whether a key in the form of PuTTY begins at `at`.
    pub(super) fn putty(&mut self, at: usize) -> bool {
        let text = self.text;
        if !text[at..].starts_with(b"PuTTY-User-Key-File-") {
            return false;
        }
        let limit = (at + NEAR).min(text.len());
        let marks = &mut self.marks;
        let lines = marks
            .lines
            .after(text, at, |rest| memmem::find(rest, b"Private-Lines:"));
        if lines + 14 > limit {
            return false;
        }
        let count = text[lines + 14..limit]
            .iter()
            .take(LINES)
            .take_while(|byte| byte.is_ascii_digit() || **byte == b' ')
            .count();
        if count < 2 {
            return false;
        }
        let body = lines + 14 + count;
        let [mac, hash] = &mut marks.ends;
        let mac = mac.after(text, body, |rest| memmem::find(rest, b"Private-M"));
        let hash = hash.after(text, body, |rest| memmem::find(rest, b"Private-H"));
        let lined = &mut marks.lined;
        let end = nearer(text, at, mac.min(hash), || {
            lined.after(text, body, not_body)
        });
        self.key(Form::Putty, body..end)
    }

    /// Takes the body of a key of this form, where it is one.
    fn key(&mut self, form: Form, span: Range<usize>) -> bool {
        let kept = match form {
            Form::Base64 | Form::Hex => 0,
            Form::Armour => 1,
            Form::Putty => 2,
        };
        let made = self.marks.made[kept].of(self.text, span.clone());
        // The shortest of PuTTY is of Ed25519, and is not as long as any in the other forms.
        let least = if form == Form::Putty { 40 } else { 60 };
        let drawn = if form == Form::Hex {
            // All but the escapes of line breaks.
            made.distinct >= 10 && made.hexadecimal() * 8 >= made.letters * 7
        } else {
            made.distinct >= 20
        };
        if made.letters < least
            || !drawn
            || made.letters * 2 < span.len()
            || is_code(&self.text[span.clone()])
        {
            return false;
        }
        let (start, body) = (span.start, &self.text[span]);
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let from = body.iter().position(|byte| !blank(byte)).unwrap_or(0);
        let to = body
            .iter()
            .rposition(|byte| !blank(byte))
            .map_or(body.len(), |last| last + 1);
        // The escapes of a line break are no part of the key.
        let from = from + usize::from(body[from..].starts_with(b"\\n")) * 2;
        let to = to - usize::from(body[..to].ends_with(b"\\n")) * 2;
        let rule = &self.names.private_key;
        self.hit(start + from..start + to, Class::Secret, rule);
        true
    }

    /// Whether a JSON Web Token begins at `at`, which is taken.
    pub(super) fn json_web_token(&mut self, at: usize) -> bool {
        let Some((end, signed)) = self.parts.three(self.text, at) else {
            return false;
        };
        if SHOWN
            .iter()
            .any(|shown| holds(&self.text[at..end.min(at + 200)], shown))
        {
            // Passed over whole.
            self.pass(end);
            return true;
        }
        let class = if signed {
            Class::Secret
        } else {
            Class::WeakSecret
        };
        let rule = &self.names.token;
        self.hit(at..end, class, rule);
        true
    }

    /// Whether one begins at `at`.
    pub(super) fn is_json_web_token(&mut self, at: usize) -> bool {
        self.text[at..].starts_with(b"ey") && self.parts.three(self.text, at).is_some()
    }
}

impl Parts {
    /// Where a token of three or five parts that begins at `at` ends, and whether its last part is a signature.
    fn three(&mut self, text: &[u8], at: usize) -> Option<(usize, bool)> {
        if !(self.head.0..self.head.1).contains(&at) {
            let head = text[at..].iter().take_while(|byte| is_part(**byte)).count();
            looked(head);
            self.head = (at, at + head);
        }
        let end = self.head.1;
        let headed = HEADS.iter().any(|head| text[at..].starts_with(head));
        if !(16..=PART).contains(&(end - at)) || text.get(end) != Some(&b'.') {
            return None;
        }
        let rest = match self.rest {
            Some((known, rest)) if known == end + 1 => rest,
            _ => {
                let rest = rest_of(text, end + 1);
                self.rest = Some((end + 1, rest));
                rest
            }
        };
        rest.filter(|rest| rest.certain || headed)
            .map(|rest| (rest.end, rest.signed))
    }
}

/// Where a token ends of which the second part begins at `second`, and whether its last part is a signature.
fn rest_of(text: &[u8], second: usize) -> Option<Rest> {
    let part = |from: usize| {
        let part = text.get(from..).map_or(0, |rest| {
            rest.iter().take_while(|byte| is_part(**byte)).count()
        });
        looked(part);
        part
    };
    let body = part(second);
    let third = second + body + 1;
    if text.get(third - 1) != Some(&b'.') {
        return None;
    }
    let last = part(third);
    let fourth = third + last + 1;
    // Five parts: encrypted, and the second may be empty.
    if last > 8 && text.get(fourth - 1) == Some(&b'.') {
        let four = part(fourth);
        let fifth = fourth + four + 1;
        if four > 8 && text.get(fifth - 1) == Some(&b'.') && part(fifth) > 8 {
            return Some(Rest {
                end: fifth + part(fifth),
                signed: true,
                certain: true,
            });
        }
    }
    let claims = text[second..].starts_with(b"ey") || text[second..].starts_with(b"ew");
    if body < 10 || (last > 0 && last < 10) || !claims && (body < 20 || last < 20) {
        return None;
    }
    Some(Rest {
        end: third + last,
        signed: last > 0,
        certain: claims,
    })
}

/// Whether what stands behind the label of a key is code that writes one: it calls something, and no Base64 comes. Armour may
/// have brackets in what it says of itself, and code may call something with the rows.
fn is_code(body: &[u8]) -> bool {
    let start = &body[..body.len().min(BEGUN)];
    looked(start.len());
    if memchr::memchr(b'(', &start[..start.len().min(CALL)]).is_none() {
        return false;
    }
    let encoded = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // Names are as long, but seldom with digits.
    let is_row = |row: &[u8]| row.len() >= ROW && row.iter().any(u8::is_ascii_digit);
    !start.split(|byte| !encoded(byte)).any(is_row)
}

/// Base64 of URLs, or what somebody takes for it.
const fn is_part(byte: u8) -> bool {
    is_token(byte) || byte == b'/'
}

/// Where a key ends that begins at `start`. If its end line, at `end`, is near, it ends there. Otherwise it ends where it stops
/// looking like a key, if that is earlier: it may have been cut off, and the end line be that of another.
fn nearer(text: &[u8], start: usize, end: usize, body: impl FnOnce() -> usize) -> usize {
    if end < text.len() && end - start <= NEAR {
        return end;
    }
    end.min(body())
}

/// How long the headers of a key of OpenPGP are, with the empty line behind them.
fn headers(rest: &[u8]) -> Option<usize> {
    let near = &rest[..rest.len().min(HEADERS)];
    looked(near.len());
    let empty = [&b"\n\n"[..], b"\n\r\n", b"\\n\\n"];
    let lines = empty
        .iter()
        .filter_map(|line| Some(memmem::find(near, line)? + line.len()));
    lines.min()
}

fn not_body(rest: &[u8]) -> Option<usize> {
    rest.iter().position(|byte| !is_body(*byte))
}

/// Base64 in lines, with line breaks that may still be escaped.
const fn is_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'+' | b'/' | b'=' | b'\n' | b'\r' | b' ' | b'\t' | b'\\' | b':' | b',' | b'-'
        )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{body, strong};

    #[test]
    fn a_private_key_in_base64_is_told_from_its_first_line_to_its_end() {
        for kind in ["BQUklWQVRFIEtFWS0tLS0t", "BSU0EgUFJJVkFURSBLRVktLS0tL"] {
            let begins = ["LS0tLS1CRUdJTi", kind].concat();
            let key = format!("{begins}{}==", "k3Vq9ZtLw1Xc7Rb2NhYs8Md4Jp6G".repeat(80));
            assert_eq!(strong(&format!("tls.key: {key}\n")), [key.as_str()]);
        }
    }

    #[test]
    fn a_block_is_told_to_its_end_whatever_the_distance() {
        let lines = format!("{}\n", body().repeat(2)).repeat(1000);
        let key = lines.trim_end();
        let block = |label: &str, headers: &str| {
            format!("-----BEGIN {label}-----\n{headers}{lines}-----END {label}-----\nand so on")
        };
        assert_eq!(strong(&block("RSA PRIVATE KEY", "")), [key]);
        for headers in [
            "\n",
            "Version: GnuPG v2.0.22 (GNU/Linux)\n\n",
            "Version: GnuPG v2\nComment: https://gpg.example/(x)\n\n",
        ] {
            let text = block("PGP PRIVATE KEY BLOCK", headers);
            let told = strong(&text);
            assert_eq!(told.len(), 1, "{headers}");
            assert!(told[0].ends_with(key), "{headers}");
        }
        // One that is cut off goes on as long as it looks like a key.
        let cut = block("PRIVATE KEY", "").replace("-----END PRIVATE KEY-----", "\n#");
        assert_eq!(strong(&cut), [key]);
        let far = format!(
            "{cut} {}-----END CERTIFICATE-----",
            "It is (so). ".repeat(4000)
        );
        assert_eq!(strong(&far), [key]);
    }

    #[test]
    fn the_signature_of_a_token_is_told_whole_however_long() {
        let token = format!(
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.{}",
            body().repeat(400)
        );
        assert_eq!(strong(&format!("{token} and")), [token]);
    }

    #[test]
    fn code_that_writes_a_key_is_none() {
        let code = "\\n\")\n  .append(Base64.getEncoder().encodeToString(storeKey.getEncoded()))\n  .append(\"\\n";
        let block = |body: &str| {
            format!("(\"-----BEGIN PRIVATE KEY-----{body}-----END PRIVATE KEY-----\")")
        };
        assert_eq!(strong(&block(code)), [""; 0]);
        let body = body().repeat(2);
        for before in [
            "\\n\" +\n \"",
            "\\n\")\n  .append(\"",
            "\\n\"); key.push(String::from(\"",
            "\nVersion: GnuPG v1.4.11 (GNU/Linux)\n\n",
        ] {
            let told = strong(&block(&format!("{before}{body}\\n")));
            let whole = told.len() == 1 && told[0].contains(&body);
            assert!(whole, "{before}: {told:?}");
        }
    }

    #[test]
    fn a_static_key_of_openvpn_is_hexadecimal_digits_in_lines() {
        let line = ["9f86d081884c7d65", "9a2feaa0c55ad015"].concat();
        for joint in ["\n", "\\n", "\r\n"] {
            let lines = vec![line.as_str(); 16].join(joint);
            let block = |label: &str, lines: &str| {
                format!("-----BEGIN {label}-----{joint}{lines}{joint}-----END {label}-----{joint}")
            };
            let label = "OpenVPN Static key V1";
            let text = block(label, &lines);
            assert_eq!(strong(&text), [lines.as_str()], "{text}");
            assert_eq!(strong(&block("OpenVPN tls-crypt", &lines)), [""; 0]);
            let words = lines.replace(&line, "here stand sixteen lines of hex!");
            assert_eq!(strong(&block(label, &words)), [""; 0]);
            let zeros = lines.replace(&line, &"0".repeat(32));
            assert_eq!(strong(&block(label, &zeros)), [""; 0]);
        }
    }
}
