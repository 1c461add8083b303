//! Event-stream framing in both directions, as pure functions over bytes.
//!
//! Writing splits data at line ends, so that no payload can forge a field. Reading takes LF, CRLF and CR, joins data
//! lines, ignores comments and unknown fields, and refuses an event over its bound. A name is not kept, and neither is an id
//! that nobody would send back, so that the bound counts all that is held of an event.

use bytes::{BufMut, Bytes, BytesMut};

use crate::memory;

/// A comment that keeps a silent stream alive.
// One line end, not two: a parser of the field takes an empty line without an event for one that it still waits for, and is deaf
// after 256 of them.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n");
/// A comment that opens a stream on which no event is to be had yet: some clients wait for a first byte.
pub const OPEN: Bytes = Bytes::from_static(b": open\n");

/// The longest id that is kept, in bytes.
pub const MAX_ID: usize = 1_024;

/// What an event is called, as far as anybody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Name {
    /// `message`, or nothing.
    #[default]
    Message,
    /// `endpoint` (2024-11-05).
    Endpoint,
    /// Anything else.
    Other,
}

impl Name {
    const fn of(field: &[u8]) -> Self {
        match field {
            b"" | b"message" => Self::Message,
            b"endpoint" => Self::Endpoint,
            _ => Self::Other,
        }
    }
}

/// One event as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The `event` field.
    pub name: Name,
    /// The data lines, joined by line feeds.
    pub data: Bytes,
    /// The `id` field, if the event had one; empty where it is over [`MAX_ID`], as if the server had taken back the last one.
    pub id: Option<String>,
    /// The `retry` field in milliseconds, if the event had one.
    pub retry_millis: Option<u64>,
}

/// An event that holds one frame, given as segments; `id` must hold no line break (ours never do).
pub fn encode(id: Option<&str>, segments: &[Bytes]) -> Bytes {
    let length: usize = segments.iter().map(Bytes::len).sum();
    let mut out = BytesMut::with_capacity(length + 40 + id.map_or(0, str::len));
    if let Some(id) = id {
        out.put_slice(b"id: ");
        out.put_slice(id.as_bytes());
        out.put_u8(b'\n');
    }
    out.put_slice(b"event: message\ndata: ");
    for segment in segments {
        let mut rest: &[u8] = segment;
        // Inside JSON a line end is only ever white space between tokens, so a data line may end there.
        while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
            out.put_slice(&rest[..at]);
            out.put_slice(b"\ndata: ");
            rest = &rest[at + 1..];
        }
        out.put_slice(rest);
    }
    out.put_slice(b"\n\n");
    memory::process().counted(out.freeze())
}

/// An event without data that only gives an id to go on from (2025-11-25).
// Without `retry`, which is owed before a stream is closed that is to be polled, and none of ours is: clients of the official Java
// SDK take any line of that name for the end of the stream.
pub fn priming(id: &str) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// The event that says where to post to (2024-11-05); `place` must hold no line break.
pub fn endpoint(place: &str) -> Bytes {
    format!("event: endpoint\ndata: {place}\n\n").into()
}

/// The stream broke its framing bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {0} bytes")]
pub struct TooLarge(pub usize);

/// The most bytes that a line's buffer keeps for the next one.
const KEPT: usize = 16 << 10;

/// Reads an event stream piece by piece.
#[derive(Debug)]
pub struct Decoder {
    line: Vec<u8>,
    event: Event,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    at_start: bool,
    max: usize,
}

impl Decoder {
    /// A decoder that refuses an event, or a line, of more than `max` bytes.
    pub fn new(max: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
            max,
        }
    }

    /// A decoder of another stream, with the same bound.
    pub fn anew(&self) -> Self {
        Self::new(self.max)
    }

    /// Takes the next piece and hands each completed event to `emit`.
    ///
    /// # Errors
    /// [`TooLarge`]; the stream is useless afterwards.
    pub fn push(&mut self, mut piece: &[u8], mut emit: impl FnMut(Event)) -> Result<(), TooLarge> {
        while !piece.is_empty() {
            if std::mem::take(&mut self.after_cr) && piece[0] == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let Some(at) = memchr::memchr2(b'\n', b'\r', piece) else {
                self.line.extend_from_slice(piece);
                return self.bounded();
            };
            self.line.extend_from_slice(&piece[..at]);
            self.bounded()?;
            self.after_cr = piece[at] == b'\r';
            piece = &piece[at + 1..];
            let mut line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut emit);
            // A long one would hold its memory for as long as the stream is open.
            if line.capacity() <= KEPT {
                line.clear();
                self.line = line;
            }
        }
        Ok(())
    }

    /// Bytes of an event that is not complete.
    pub fn held(&self) -> usize {
        self.line.len() + self.data.len() + self.event.id.as_ref().map_or(0, String::len)
    }

    fn bounded(&self) -> Result<(), TooLarge> {
        if self.held() > self.max {
            Err(TooLarge(self.max))
        } else {
            Ok(())
        }
    }

    fn take_line(&mut self, line: &[u8], emit: &mut impl FnMut(Event)) {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            let had_data = std::mem::take(&mut self.has_data);
            event.data = std::mem::take(&mut self.data).into();
            // An event without data is only worth telling for its id or retry time (2025-11-25 priming events).
            if had_data || event.id.is_some() || event.retry_millis.is_some() {
                emit(event);
            }
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(at) => (
                &line[..at],
                line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..]),
            ),
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.event.name = Name::of(value),
            b"id" if !value.contains(&0) => {
                let id = String::from_utf8_lossy(value);
                let kept = if id.len() > MAX_ID { "" } else { &*id };
                self.event.id = Some(kept.to_owned());
            }
            b"retry" => {
                self.event.retry_millis = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok())
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, |event| events.push(event)).unwrap();
        }
        events
    }

    #[test]
    fn every_line_ending_comments_and_fields_are_read() {
        let events = read(&[b"\xef\xbb\xbf: hi\r\nevent: endpoint\r\ndata: /x\r\n\r\ndata:a\rdata: b\r\rid: 7\nretry: 50\ndata\n\nfoo: bar\n\n"]);
        assert_eq!(events.len(), 3);
        assert_eq!(
            (events[0].name, &events[0].data[..]),
            (Name::Endpoint, &b"/x"[..])
        );
        assert_eq!(&events[1].data[..], b"a\nb");
        assert_eq!(
            (
                events[2].id.as_deref(),
                events[2].retry_millis,
                &events[2].data[..]
            ),
            (Some("7"), Some(50), &b""[..])
        );
    }

    #[test]
    fn events_of_our_own_are_read_back() {
        let [primed] = &read(&[&priming("7")])[..] else {
            panic!("one event");
        };
        assert_eq!(
            (primed.id.as_deref(), primed.retry_millis, primed.data.len()),
            (Some("7"), None, 0)
        );
        let [place] = &read(&[&endpoint("/m?s=1")])[..] else {
            panic!("one event");
        };
        assert_eq!(
            (place.name, &place.data[..]),
            (Name::Endpoint, &b"/m?s=1"[..])
        );
    }

    /// Clients of the official Java SDK end at any other line, and count empty ones that end no event.
    #[test]
    fn what_is_written_has_no_line_that_a_strict_client_does_not_know() {
        let event = encode(Some("7"), &[Bytes::from_static(b"{}")]);
        for event in [event, priming("7"), endpoint("/m"), KEEP_ALIVE, OPEN] {
            let text = std::str::from_utf8(&event).unwrap();
            let (comment, lines) = (text.starts_with(':'), text.strip_suffix('\n').unwrap());
            let known = |line: &str| {
                let fields = ["id: ", "event: ", "data: ", ": "];
                fields.iter().any(|field| line.starts_with(field)) || line.is_empty() && !comment
            };
            assert!(lines.split('\n').all(known), "{text:?}");
        }
    }

    #[test]
    fn an_unfinished_event_is_not_told() {
        assert!(read(&[b"data: x\n"]).is_empty());
    }

    #[test]
    fn an_event_over_the_bound_is_refused() {
        let mut decoder = Decoder::new(10);
        assert_eq!(decoder.push(b"data: 12345", |_| {}), Err(TooLarge(10)));
        let mut decoder = Decoder::new(10);
        let mut push = |piece: &[u8]| decoder.push(piece, |_| {});
        assert_eq!(push(b"data:1234\n"), Ok(()));
        assert_eq!(push(b"data:5678\n"), Err(TooLarge(10)));
    }

    #[test]
    fn all_that_is_kept_of_an_event_counts_and_neither_a_name_nor_a_long_id_is_kept() {
        let long = "x".repeat(MAX_ID + 1);
        for (line, held, name, id) in [
            ("event: message".to_owned(), 0, Name::Message, None),
            (format!("event: {long}"), 0, Name::Other, None),
            (
                format!("id: {}", &long[1..]),
                MAX_ID,
                Name::Message,
                Some(&long[1..]),
            ),
            (format!("id: {long}"), 0, Name::Message, Some("")),
        ] {
            let mut decoder = Decoder::new(2 * MAX_ID);
            decoder.push(line.as_bytes(), |_| {}).unwrap();
            decoder.push(b"\n", |_| panic!("not yet")).unwrap();
            assert_eq!(decoder.held(), held);
            let mut events = Vec::new();
            decoder
                .push(b"data: x\n\n", |event| events.push(event))
                .unwrap();
            assert_eq!((events[0].name, events[0].id.as_deref()), (name, id));
            assert_eq!(decoder.held(), 0);
        }
        let mut decoder = Decoder::new(MAX_ID);
        let data = format!("data: {}\nid: 123456789\n", &long[21..]);
        decoder.push(data.as_bytes(), |_| {}).unwrap();
        assert!(decoder.push(b"data: 12345", |_| {}).is_ok());
        assert!(decoder.push(b"6", |_| {}).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_however_it_is_cut(data in "[a-z{}\\n\\r\": ]{0,40}", cut in 0_usize..80) {
            let text = encode(Some("9"), &[Bytes::from(data.clone())]);
            let cut = cut.min(text.len());
            let events = read(&[&text[..cut], &text[cut..]]);
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!(String::from_utf8(events[0].data.to_vec()).unwrap(), data.replace('\r', "\n"));
            prop_assert_eq!(events[0].id.as_deref(), Some("9"));
        }
    }
}
