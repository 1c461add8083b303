//! Problems as text for people and as JSON for tools.
//!
//! The drawing shows the line with the place marked; whatever may be a secret in it is blotted out beforehand.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};

use super::problem::{Problem, Rejected, Source};
use crate::json::Json;

/// Whether a drawing may use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// For terminals.
    Coloured,
    /// For files and pipes.
    Plain,
}

impl Rejected {
    /// Every problem drawn, with an empty line between two.
    pub fn drawn(&self, colour: Colour) -> String {
        let renderer = match colour {
            Colour::Coloured => Renderer::styled().hyperlink(false),
            Colour::Plain => Renderer::plain(),
        }
        .decor_style(DecorStyle::Ascii);
        let drawings: Vec<String> = self
            .problems
            .iter()
            .map(|problem| renderer.render(&[self.group(problem)]))
            .collect();
        drawings.join("\n\n")
    }

    /// Every problem as an array of objects.
    pub fn json(&self) -> Json {
        Json::of(&self.problems)
    }

    fn group<'a>(&'a self, problem: &'a Problem) -> Group<'a> {
        let mut title = problem.message.clone();
        if !problem.path.is_empty() {
            title = format!("{}: {title}", problem.path);
        }
        let source = self.sources.get(problem.place.file);
        let snippet = source.filter(|source| problem.line > 0 && !source.shown.is_empty());
        let mut group = match snippet {
            Some(source) => {
                let snippet = Snippet::source(source.shown.as_str())
                    .path(source.name.as_str())
                    .annotation(AnnotationKind::Primary.span(bytes_of(source, problem)));
                Group::with_title(Level::ERROR.primary_title(title)).element(snippet)
            }
            None => {
                let mut place = problem.file.clone();
                if problem.line > 0 {
                    place = format!("{place}:{}:{}", problem.line, problem.column);
                }
                Group::with_title(Level::ERROR.primary_title(format!("{place}: {title}")))
            }
        };
        if let Some(hint) = &problem.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        group
    }
}

/// The marked range in bytes, within the line where it begins.
fn bytes_of(source: &Source, problem: &Problem) -> std::ops::Range<usize> {
    let text = source.shown.as_str();
    let byte = |wanted: usize| {
        text.char_indices()
            .nth(wanted)
            .map_or(text.len(), |(byte, _)| byte)
    };
    let start = byte(problem.place.start);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = byte(problem.place.end.max(problem.place.start + 1)).min(line_end);
    start..end.max(start)
}
