//! The revision that `MCP-Protocol-Version` names: looked up once, asked for by both dialects.

use http::HeaderMap;

use crate::protocol::{Era, Revision, mirror};

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// It is not there, as on a pipe.
    Nothing,
    /// No revision that we know.
    Unknown,
    /// This one.
    Revision(Revision),
}

impl Named {
    /// Reads it.
    pub fn read(headers: &HeaderMap) -> Self {
        let Some(value) = headers.get(&mirror::header::PROTOCOL_VERSION) else {
            return Self::Nothing;
        };
        let named = value.as_bytes().trim_ascii();
        Revision::ALL
            .into_iter()
            .find(|revision| revision.as_str().as_bytes() == named)
            .map_or(Self::Unknown, Self::Revision)
    }

    /// Whether it names a revision without sessions.
    pub fn is_modern(self) -> bool {
        matches!(self, Self::Revision(revision) if revision.era() == Era::Modern)
    }

    /// Whether it names another than this one.
    pub fn differs_from(self, revision: Revision) -> bool {
        self != Self::Nothing && self != Self::Revision(revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_nothing_something_unknown_or_a_revision() {
        let newest = Revision::LATEST_MODERN;
        let named = |value: &'static [u8]| {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            Named::read(&HeaderMap::from_iter([(
                mirror::header::PROTOCOL_VERSION.clone(),
                value,
            )]))
        };
        let cases = [
            (Named::read(&HeaderMap::new()), Named::Nothing, false),
            (named(b""), Named::Unknown, true),
            (named(b"1999-01-01"), Named::Unknown, true),
            (named(b"\xff"), Named::Unknown, true),
            (named(b"2026-07-28"), Named::Revision(newest), false),
            (named(b"\t2026-07-28 "), Named::Revision(newest), false),
            (
                named(b"2025-11-25"),
                Named::Revision(Revision::V2025_11_25),
                true,
            ),
        ];
        for (got, want, differs) in cases {
            assert_eq!(got, want);
            assert_eq!(got.differs_from(newest), differs);
            assert_eq!(got.is_modern(), want == Named::Revision(newest));
        }
    }
}
