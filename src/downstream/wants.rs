//! What a client can take as its answer: kinds of media, and progress.

use http::{HeaderMap, header};

use super::read::Head;
use crate::{
    json::{Json, Kind},
    protocol::meta,
};

/// Which of the two kinds of answer a client takes, from its `Accept` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json`
    pub json: bool,
    /// `text/event-stream`
    pub stream: bool,
}

impl Accepts {
    /// Both, as on a pipe, and on HTTP without the header.
    pub const BOTH: Self = Self {
        json: true,
        stream: true,
    };
    /// One message and no stream.
    pub const JSON: Self = Self {
        json: true,
        stream: false,
    };

    /// What `Accept` admits: read once, nothing copied. The most specific range that fits decides (RFC 9110, 12.5.1).
    pub fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ACCEPT).iter();
        // As nearly every client writes it.
        if let (Some(first), None) = (values.next(), values.next())
            && first.as_bytes() == b"application/json, text/event-stream"
        {
            return Self::BOTH;
        }
        let mut found = [Found::default(); 2];
        let mut any = false;
        for value in headers.get_all(header::ACCEPT) {
            any = true;
            for range in value.as_bytes().split(|byte| *byte == b',') {
                weigh(range, &mut found);
            }
        }
        if !any {
            return Self::BOTH;
        }
        Self {
            json: found[0].admitted,
            stream: found[1].admitted,
        }
    }

    /// Neither: nothing that is said here could be read.
    pub const fn nothing(self) -> bool {
        !self.json && !self.stream
    }
}

/// The best range so far for one kind.
#[derive(Clone, Copy, Default)]
struct Found {
    /// 0: none; 1: `*/*`; 2: the family; 3: the very kind.
    fit: u8,
    admitted: bool,
}

/// The families and kinds, in the order of [`Accepts::read`]'s array.
const KINDS: [(&[u8], &[u8]); 2] = [(b"application", b"json"), (b"text", b"event-stream")];

fn weigh(range: &[u8], found: &mut [Found; 2]) {
    let end = memchr::memchr(b';', range).unwrap_or(range.len());
    let (name, parameters) = range.split_at(end);
    let name = name.trim_ascii();
    let Some(slash) = memchr::memchr(b'/', name) else {
        return;
    };
    let (family, kind) = (&name[..slash], &name[slash + 1..]);
    for (found, (own_family, own_kind)) in found.iter_mut().zip(KINDS) {
        let fit = match (family, kind) {
            (b"*", b"*") => 1,
            (_, b"*") if family.eq_ignore_ascii_case(own_family) => 2,
            _ if family.eq_ignore_ascii_case(own_family) && kind.eq_ignore_ascii_case(own_kind) => {
                3
            }
            _ => continue,
        };
        let admitted = parameters.is_empty() || !refuses(parameters);
        // Of two equally specific ranges the one that admits counts.
        if fit > found.fit || (fit == found.fit && admitted) {
            *found = Found { fit, admitted };
        }
    }
}

/// Whether a range's parameters hold a weight of zero.
fn refuses(parameters: &[u8]) -> bool {
    parameters.split(|byte| *byte == b';').any(|parameter| {
        let parameter = parameter.trim_ascii();
        let weight = parameter
            .strip_prefix(b"q=")
            .or_else(|| parameter.strip_prefix(b"Q="));
        weight.is_some_and(|weight| {
            weight.starts_with(b"0") && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
        })
    })
}

/// The client's own progress token, as spelled.
pub(super) fn progress_token(params: &Json, head: &Head<'_>) -> Option<Json> {
    head.meta
        .and_then(|meta| meta.member(meta::PROGRESS_TOKEN))
        // As nothing it is none, and none else could be told under.
        .filter(|token| matches!(token.kind(), Kind::String | Kind::Number))
        .map(|token| params.slice(token))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&'static str]) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::ACCEPT, HeaderValue::from_static(value));
        }
        let accepts = Accepts::read(&headers);
        (accepts.json, accepts.stream)
    }

    #[test]
    fn both_kinds_are_found_in_one_header_or_in_several() {
        for values in [
            &["application/json, text/event-stream"][..],
            &["text/event-stream,application/json"],
            &["Text/Event-Stream;q=0.1", "APPLICATION/JSON"],
            &["*/*"],
            &["application/*, text/*"],
            &[],
        ] {
            assert_eq!(read(values), (true, true), "{values:?}");
        }
        assert_eq!(read(&["application/json"]), (true, false));
        assert_eq!(read(&[" text/event-stream ; charset=utf-8"]), (false, true));
        assert_eq!(
            read(&["text/html, application/jsonl, text/event-streams, json"]),
            (false, false)
        );
        assert_eq!(read(&[""]), (false, false));
    }

    #[test]
    fn a_token_of_progress_that_is_nothing_is_none() {
        for (token, is_one) in [("null", false), ("7", true), (r#""p""#, true)] {
            let text = format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#);
            let params = Json::parse(text.into(), &crate::json::Limits::CLIENT).unwrap();
            let head = crate::downstream::read::head("tools/call", &params).unwrap();
            assert_eq!(progress_token(&params, &head).is_some(), is_one, "{token}");
        }
    }

    #[test]
    fn a_weight_of_zero_refuses_and_the_most_specific_range_decides() {
        assert_eq!(
            read(&["application/json;q=0, text/event-stream"]),
            (false, true)
        );
        assert_eq!(read(&["*/*;q=0"]), (false, false));
        assert_eq!(read(&["*/*, text/event-stream; q=0.000"]), (true, false));
        assert_eq!(read(&["text/event-stream;q=0, */*"]), (true, false));
        assert_eq!(read(&["text/event-stream;q=0.001, */*;q=0"]), (false, true));
    }
}
