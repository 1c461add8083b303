//! Keys in Base64 that signs break into runs of which none is long enough to be told.
//!
//! Of keys of forty characters one in fifty is such a one.
//! Guarantees: looks at what the survey took for Base64, and at the lengths that keys have. Deliberately absent: what a key is
//! known by (`scan.rs`, `context.rs`).

use std::ops::RangeInclusive;

use super::{plausible::Shape, scan::Scan};
use crate::sanitize::{
    survey::{Encoded, Form, TOKEN},
    work::looked,
};

/// How long keys are that are written so, without their padding, in bytes.
const LENGTHS: RangeInclusive<usize> = 40..=88;

impl Scan<'_> {
    /// Looks at those of these that were not told.
    pub(super) fn broken(&mut self, encoded: &[Encoded]) {
        let fits = |encoded: &&Encoded| {
            encoded.form != Form::Hexadecimal && LENGTHS.contains(&encoded.run.len())
        };
        for encoded in encoded.iter().filter(fits) {
            let run = &self.text[encoded.run.clone()];
            looked(run.len());
            let mut pieces = run.split(|byte| matches!(byte, b'+' | b'/'));
            if pieces.all(|piece| piece.len() < TOKEN) && is_mixed(run) {
                self.broken_run(encoded.run.start);
            }
        }
    }
}

/// Whether letters of both cases and digits are in it: paths of names seldom have all.
fn is_mixed(run: &[u8]) -> bool {
    let shape = Shape::of(run);
    shape.upper >= 4 && shape.lower >= 4 && shape.digits > 0
}

#[cfg(test)]
mod tests {
    use super::super::tests::strong;

    #[test]
    fn a_key_is_told_however_signs_break_it() {
        let aws = "wJ8r/XUtnFE+I/K7Mk3NG/bPx/RfiC+Y2qLz8W3k";
        assert_eq!(aws.len(), 40);
        for text in [
            format!("AWS_SECRET_ACCESS_KEY={aws}"),
            format!("{{\"secretAccessKey\": \"{aws}\", \"a\": 1}}"),
            format!("aws_secret_access_key = {aws}\nregion = eu"),
        ] {
            assert_eq!(strong(&text), [aws], "{text}");
        }
        let bus = "Cex+813hwfycve3P/lK6lobpKKwX+9GCg+ASbmd8SjD=";
        assert_eq!(strong(&format!("SharedAccessKey={bus};a=b")), [bus]);
        for nothing in ["/", "+", "//", "/+/"] {
            for text in ["Users/Alice1/Documents/Projects/MyApp2/Main.swift", aws] {
                assert_eq!(
                    strong(&format!("{nothing}{text}")),
                    [""; 0],
                    "{nothing}{text}"
                );
                let named = format!("a={nothing}{text}");
                assert_eq!(strong(&named), [""; 0], "{named}");
            }
        }
        assert_eq!(strong(&format!("at {aws} in /src")), [""; 0]);
        assert_eq!(
            strong("key=src/Main1/java/Com/Acme/App/Util/Of/Thing.java"),
            [""; 0]
        );
    }
}
