//! What a number is called right before it, or at the head of its column.
//!
//! Guarantees: looks no farther back than [`FAR`]. Deliberately absent: words that stand near without naming the number.

use std::{ops::Range, sync::LazyLock};

use super::words::{PARTS, Words};
use crate::sanitize::work::looked;

/// How long a name may be with what stands between it and the number, in bytes.
const FAR: usize = 64;

/// How many such words may stand between a number and the name of it.
const NEUTRALS: usize = 3;
/// Words of names that may be those of anything.
const NEUTRAL: [&[u8]; 71] = [
    b"list",
    b"lists",
    b"items",
    b"item",
    b"values",
    b"numbers",
    b"array",
    b"line",
    b"lines",
    b"entries",
    b"entry",
    b"rows",
    b"row",
    b"records",
    b"record",
    b"cell",
    b"cells",
    b"name",
    b"title",
    b"number",
    b"num",
    b"no",
    b"nr",
    b"n",
    b"numero",
    b"nummer",
    b"numer",
    b"value",
    b"val",
    b"v",
    b"data",
    b"text",
    b"input",
    b"content",
    b"contents",
    b"body",
    b"msg",
    b"field",
    b"arg",
    b"args",
    b"param",
    b"query",
    b"q",
    b"string",
    b"str",
    b"s",
    b"raw",
    b"note",
    b"notes",
    b"comment",
    b"comments",
    b"description",
    b"desc",
    b"details",
    b"detail",
    b"result",
    b"output",
    b"answer",
    b"reply",
    b"account",
    b"acct",
    b"old",
    b"new",
    b"is",
    b"customer",
    b"user",
    b"message",
    b"match",
    b"payload",
    b"col",
    b"column",
];

/// Parts of words for what is counted, ordered or sent: no name of a person's number has one.
const OTHER: [&str; 76] = [
    "order",
    "trade",
    "request",
    "track",
    "ticket",
    "invoice",
    "batch",
    "job",
    "build",
    "seq",
    "event",
    "trace",
    "span",
    "session",
    "device",
    "imei",
    "iccid",
    "sku",
    "gtin",
    "isbn",
    "hash",
    "block",
    "height",
    "counter",
    "offset",
    "timestamp",
    "serial",
    "s\u{e9}rie",
    "meter n",
    "meter_n",
    "meternum",
    "reserv",
    "confirmation n",
    "confirmation_n",
    "lot number",
    "voucher",
    "barcode",
    "chargen",
    "matricola",
    "colis",
    "dossier",
    "population",
    "size",
    "epoch",
    "snowflake",
    "policy",
    "poliza",
    "booking",
    "flight",
    "contador",
    "compteur",
    "sensor",
    "checksum",
    "uptime",
    "latency",
    "bytes",
    "version",
    "commit",
    "parcel",
    "shipment",
    "consignment",
    "waybill",
    "commande",
    "pedido",
    "bestell",
    "auftrag",
    "ordine",
    "zam\u{f3}wien",
    "\u{437}\u{430}\u{43a}\u{430}\u{437}",
    "\u{6ce8}\u{6587}",
    "\u{8ba2}\u{5355}",
    "\u{8a02}\u{55ae}",
    "\u{c8fc}\u{bb38}",
    "sipari\u{15f}",
    "rechnung",
    "factur",
];

static OTHERS: LazyLock<Words> =
    LazyLock::new(|| Words::of(OTHER.iter().map(|part| (part.as_bytes(), 0)), PARTS));

/// Whether a part of a word for what is counted, ordered or sent stands in a name.
pub(super) fn is_other(name: &[u8]) -> bool {
    let mut other = false;
    OTHERS.each(name, |_, _| other = true);
    other
}

/// What a name says of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    /// It has the name of what is looked for.
    Meant,
    /// It has the name of something else.
    Other,
    /// It may be anything.
    Any,
}

/// What a name says, of which `meant` tells whether what is looked for is called so. Names of one word that nothing but programs
/// write mean what they say.
pub(super) fn says(name: &[u8], meant: impl Fn(&[u8]) -> bool) -> Label {
    if meant(name) {
        return Label::Meant;
    }
    if is_other(name) {
        return Label::Other;
    }
    let name = name.trim_ascii();
    let written = name
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    let program =
        written && (name.first().is_some_and(u8::is_ascii_lowercase) || name.starts_with(b"X-"));
    let says_nothing = |word: &[u8]| is_neutral(word) || word.iter().all(u8::is_ascii_digit);
    if program && !words(name).all(says_nothing) {
        Label::Other
    } else {
        Label::Any
    }
}

fn is_neutral(word: &[u8]) -> bool {
    // `field_7`, `col3`
    let word = match word.iter().position(u8::is_ascii_digit) {
        Some(at) if at > 0 && word[at..].iter().all(u8::is_ascii_digit) => &word[..at],
        _ => word,
    };
    NEUTRAL.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The words of a name as programs write it: `cardNumber`, `card_number`.
fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = name.split(|byte| matches!(byte, b'_' | b'-' | b'.'));
    parts
        .flat_map(|part| {
            part.chunk_by(|left, right| !(left.is_ascii_lowercase() && right.is_ascii_uppercase()))
        })
        .map(|word| word.trim_ascii_end())
}

/// Tags of HTML that say nothing of what is in them.
const TAGS: [&[u8]; 16] = [
    b"a", b"b", b"code", b"dd", b"div", b"em", b"i", b"label", b"li", b"option", b"p", b"pre",
    b"span", b"strong", b"td", b"th",
];

fn is_tag(name: &[u8]) -> bool {
    let name = name.split(|byte| *byte == b' ').next().unwrap_or_default();
    TAGS.contains(&name)
}

/// What the field of a form is called whose value the name that begins at `start` is: `<input name="barcode" value`.
fn field(before: &[u8], start: usize) -> Option<Range<usize>> {
    let head = before.get(..start)?;
    // The last word of the name is all of it, or what stands before it is of the tag.
    let head = match before.get(start..)? {
        b"value" => head,
        rest => before.get(..start + rest.strip_suffix(b" value")?.len())?,
    };
    let tag = memchr::memrchr(b'<', head)?;
    let tag = tag..head.len();
    let is_open = memchr::memchr(b'>', &head[tag.clone()]).is_none();
    let attribute = memchr::memmem::rfind(&head[tag.clone()], b" name=\"").filter(|_| is_open)?;
    let name = tag.start + attribute + b" name=\"".len();
    let length = memchr::memchr(b'"', &head[name..])?;
    (length > 0).then_some(name..name + length)
}

/// The name to which a number is assigned that begins here, or the word of a program right before it.
pub(super) fn before(text: &[u8], start: usize) -> Option<Range<usize>> {
    let from = start.saturating_sub(FAR);
    let before = &text[from..start];
    looked(before.len());
    let blank = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b'`');
    let trimmed = |bytes: &[u8]| {
        bytes
            .iter()
            .rposition(|byte| !blank(byte))
            .map_or(0, |at| at + 1)
    };
    let end = trimmed(before);
    let assigned = matches!(before[..end].last(), Some(b'=' | b':' | b'>'));
    if assigned {
        let quoted = before[..end - 1]
            .last()
            .is_some_and(|byte| matches!(byte, b'"' | b'\''));
        let end = trimmed(&before[..end - 1]);
        let begin = |byte: &u8| match quoted {
            true => matches!(byte, b'"' | b'\'' | b'\n'),
            false => matches!(
                byte,
                b'\n'
                    | b'\r'
                    | b'\t'
                    | b','
                    | b';'
                    | b'|'
                    | b'"'
                    | b'\''
                    | b'('
                    | b'['
                    | b'{'
                    | b'<'
                    | b'>'
                    | b'='
                    | b'&'
                    | b'?'
            ),
        };
        let start = before[..end].iter().rposition(begin).map_or(0, |at| at + 1);
        if before[..end].get(start.wrapping_sub(1)) == Some(&b'<') && is_tag(&before[start..end]) {
            return None;
        }
        // Of several words before an assignment the last is the name, if a program wrote it.
        let name = &before[start..end];
        let last = name
            .iter()
            .rposition(|byte| *byte == b' ')
            .map_or(0, |at| at + 1);
        let sign = text[from + trimmed(before) - 1];
        let start = if sign == b'=' { start + last } else { start };
        if let Some(field) = field(&before[..end], start) {
            return Some(from + field.start..from + field.end);
        }
        return (start < end).then_some(from + start..from + end);
    }
    // Before a number without an assignment stands the name, where it is one of a program, or one of something else and a word
    // for numbers.
    let word = |end: usize| {
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'#');
        let end = trimmed(&before[..end]);
        let start = before[..end].iter().rposition(|byte| !inside(byte));
        start.map_or(0, |at| at + 1)..end
    };
    let mut name = word(end);
    // `the tracking number is 1234`
    for _ in 0..NEUTRALS {
        let bare = before[name.clone()].trim_ascii_end();
        let bare = bare.strip_suffix(b".").unwrap_or(bare);
        if !is_neutral(bare) && !bare.eq_ignore_ascii_case(b"id") && bare != b"#" {
            break;
        }
        name = word(name.start);
    }
    let written = &before[name.clone()];
    // `Bestellnummer`, `ordrenummer`
    let thing = written
        .len()
        .checked_sub(b"nummer".len())
        .filter(|at| written[*at..].eq_ignore_ascii_case(b"nummer"))
        .map(|at| &written[..at]);
    let other = || {
        let is = |other: &str| written.eq_ignore_ascii_case(other.as_bytes());
        OTHER.into_iter().any(is) || thing.is_some_and(is_other)
    };
    let tracked = || {
        let names = [&b"tracking"[..], b"sequence"];
        names.iter().any(|name| written.eq_ignore_ascii_case(name))
    };
    (written.contains(&b'_') || other() || tracked()).then_some(from + name.start..from + name.end)
}
