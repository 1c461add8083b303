//! Problems: everything wrong with a configuration, each with its place, what is wrong and what to do about it.
//!
//! Does not decide what is wrong; [`super::check`] and the readers below it do.

use serde::Serialize;

use super::plan::StartCertificates;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as it was named on the command line or in `include`.
    pub file: String,
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// The column in characters, from 1; 0 when the whole file is meant.
    pub column: usize,
    /// The keys that lead there, `upstreams.github.url`; empty when the whole file is meant.
    pub path: String,
    /// What is wrong: one sentence without a full stop, never with a secret in it.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where exactly, for the drawing.
    #[serde(skip)]
    pub(super) place: SourceSpan,
}

/// A configuration that cannot be used: at least one problem, in the order of the text.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the configuration has {} problem(s)", problems.len())]
pub struct Rejected {
    /// What is wrong; never empty.
    pub problems: Vec<Problem>,
    /// The texts, for the drawing.
    pub(super) sources: Vec<Source>,
}

/// One text that was read.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) name: String,
    /// The text with everything blotted out that may be a secret.
    pub(super) shown: String,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({})", self.name)
    }
}

/// A range of characters in one of the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SourceSpan {
    /// Index of the text.
    pub(super) file: usize,
    /// From 1; 0: the whole text.
    pub(super) line: usize,
    /// In characters from 1; 0: the whole text.
    pub(super) column: usize,
    /// First character of the range.
    pub(super) start: usize,
    /// One past its last character.
    pub(super) end: usize,
}

impl SourceSpan {
    /// A text as a whole.
    pub(super) fn whole(file: usize) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }
}

/// Problems being collected, with the texts they are in.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) sources: Vec<Source>,
    pub(super) problems: Vec<Problem>,
    /// Values whose references lead nowhere: nothing more can be said about them.
    pub(super) unresolved: Vec<SourceSpan>,
    /// What was left out whole for a problem with one of its keys, as [`Problem::path`] has it.
    pub(super) left_out: Vec<String>,
    /// Whether a gateway is to serve by it, or somebody asks whether one could: then certificates have to be good still.
    pub(super) serves: bool,
    /// But for those that the gateway shows already.
    pub(super) shown: StartCertificates,
}

impl Findings {
    /// Adds a text; everything reported about it names it so.
    pub(super) fn add_source(&mut self, name: String) -> usize {
        self.sources.push(Source {
            name,
            shown: String::new(),
        });
        self.sources.len() - 1
    }

    /// Adds a problem; the hint may be empty.
    pub(super) fn report(
        &mut self,
        place: SourceSpan,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        if place.line > 0 && self.unresolved.contains(&place) {
            return;
        }
        let hint = hint.into();
        self.problems.push(Problem {
            file: self
                .sources
                .get(place.file)
                .map_or_else(String::new, |source| source.name.clone()),
            line: place.line,
            column: place.column,
            path: path.into(),
            message: message.into(),
            hint: (!hint.is_empty()).then_some(hint),
            place,
        });
    }

    /// `value`, if nothing was wrong.
    pub(super) fn settle<T>(self, value: Option<T>) -> Result<T, Rejected> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            _ => Err(self.rejected()),
        }
    }

    /// Everything that is wrong.
    pub(super) fn rejected(mut self) -> Rejected {
        self.problems
            .sort_by_key(|problem| (problem.place.file, problem.line, problem.column));
        Rejected {
            problems: self.problems,
            sources: self.sources,
        }
    }

    /// Whether nothing is wrong with what stands at any of these places, with what is in it, with what it is in, or with a file as
    /// a whole, and nothing of that was left out. A place is keys as [`Problem::path`] has them, and `*` for any.
    pub(super) fn spares(&self, places: &[&str]) -> bool {
        let touches = |path: &str| {
            // What of an included file is missing nobody knows.
            let everything = path.is_empty() || path == "include" || path.starts_with("include[");
            let steps = |text: &str| -> Vec<String> {
                let steps = text.split(['.', '[']);
                steps
                    .map(|step| step.trim_end_matches(']').to_owned())
                    .collect()
            };
            let path = steps(path);
            let meets = |place: &str| {
                let mut pairs = path.iter().zip(steps(place));
                pairs.all(|(one, other)| *one == other || other == "*")
            };
            everything || places.iter().any(|place| meets(place))
        };
        let wrong = self.problems.iter().map(|problem| &problem.path);
        !wrong.chain(&self.left_out).any(|path| touches(path))
    }
}
