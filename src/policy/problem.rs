//! What is wrong with a set of policies, each with its place.

use std::fmt;

use cedar_policy::ffi::DetailedError;
use schemars::JsonSchema;
use serde::Serialize;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "FileProblem")]
pub struct Problem {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// The column in characters, from 1; 0 when the whole file is meant.
    pub column: usize,
    /// What is wrong: one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// About a file as a whole.
    pub(super) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            column: 0,
            message: message.into(),
            hint: None,
        }
    }

    /// About what stands at `offset` of a file's text.
    pub(super) fn at(file: &str, text: &str, offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self {
            line,
            column,
            ..Self::of_file(file, message)
        }
    }

    /// What Cedar says of a file; `offset` is where it is if Cedar does not say.
    pub(super) fn of_cedar(file: &str, text: &str, offset: usize, error: &DetailedError) -> Self {
        let place = error.source_locations.first();
        let message = match place.and_then(|place| place.label.as_deref()) {
            Some(label) if !label.is_empty() => format!("{}: {label}", error.message),
            _ => error.message.clone(),
        };
        Self {
            hint: error.help.clone(),
            ..Self::at(
                file,
                text,
                place.map_or(offset, |place| place.loc.start),
                message,
            )
        }
    }

    /// With what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Line and column, from 1, of a byte of a text.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default();
    (line, column.chars().count() + 1)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_with_its_place_and_what_to_do() {
        let of = |line, column, hint: Option<&str>| Problem {
            file: "usher.yaml".into(),
            line,
            column,
            message: "not a rate".into(),
            hint: hint.map(Into::into),
        };
        let told = of(3, 14, Some("write `50/s`")).to_string();
        assert_eq!(told, "usher.yaml:3:14: not a rate (write `50/s`)");
        assert_eq!(of(0, 0, None).to_string(), "usher.yaml: not a rate");
    }
}
