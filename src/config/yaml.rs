//! Text to tree: the one place that knows which YAML parser is used.
//!
//! YAML 1.2 with the core schema's plain scalars left as text; every duplicate key is reported, aliases are expanded
//! within a budget, merge keys (`<<`) are ordinary keys. JSON with comments goes through the same door. `${env:…}` and
//! `${file:…}` may stand without quotes even between `{ }`, where YAML would see braces.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{
    ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span,
};
use zeroize::Zeroizing;

use super::{
    problem::{Findings, SourceSpan},
    tree::{Entry, Node, Origin, Scalar, Value, written},
};

/// Values of one document, aliases expanded.
const MAX_NODES: usize = 200_000;
/// Nesting of one document.
const MAX_DEPTH: usize = 64;
/// Stand-ins of the same width in characters for the braces of references.
const OPEN: char = '\u{E000}';
const CLOSE: char = '\u{E001}';

/// The tree of a YAML text, or `None` after reporting why there is none. An empty text is an empty mapping.
pub(super) fn read(text: &str, file: usize, findings: &mut Findings) -> Option<Node> {
    let shielded = shield(text);
    let mut options = Options::default();
    options.disallow_directives = true;
    options.set_emit_comments(false);
    let mut builder = Builder {
        parser: Parser::new_from_str_with_options(&shielded, options),
        file,
        nodes: 0,
        anchors: HashMap::new(),
        findings,
    };
    match builder.document() {
        Ok(node) => Some(node),
        Err(Stop::Reported) => None,
        Err(Stop::Syntax(error)) => {
            let mark = *error.marker();
            let place = SourceSpan {
                file,
                line: mark.line().max(1),
                column: mark.col() + 1,
                start: mark.index(),
                end: mark.index(),
            };
            findings.report(
                place,
                "",
                format!("not YAML: {}", error.info()),
                hint(error.kind()),
            );
            None
        }
    }
}

/// What to look for where a text is not YAML in this way.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "somebody else's enum, to which they may add"
)]
const fn hint(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => "indent with spaces: YAML takes no tab there",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofImplicitFlowMapping
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator => {
            "each `{` needs its `}` and each `[` its `]`, with commas between what stands there"
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::DocumentIndicatorInQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "a value that begins with a quote ends with the same one; within it that is written `''` or `\\\"`"
        }
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidUnicodeEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate => {
            "between `\"` a backslash begins an escape: write two, or take `'` for quotes"
        }
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::SimpleKeyExpected
        | ErrorKind::InvalidIndentation
        | ErrorKind::InvalidBlockScalarIndent
        | ErrorKind::BlockSequenceEntryNotAllowed => {
            "the keys of one mapping stand in one column, each with `: ` behind it, and so do the dashes of one list"
        }
        ErrorKind::MappingValueNotAllowed => {
            "a value with `: ` in it needs quotes, and the keys of one mapping stand in one column"
        }
        ErrorKind::UnknownAnchor => {
            "a value that begins with `*` needs quotes, unless it stands for what `&` names before it"
        }
        _ => {
            "a value with `: `, ` #`, or one that begins with `*`, `&`, `@`, `%` or a brace needs quotes"
        }
    }
}

/// The tree of a JSON text that may hold comments and trailing commas, as editors write it.
pub(super) fn read_json(text: &str, file: usize, findings: &mut Findings) -> Option<Node> {
    read(&without_comments(text), file, findings)
}

enum Stop {
    Syntax(ScanError),
    Reported,
}

struct Builder<'a, 'f> {
    parser: Parser<'a, serde_saphyr::granit_parser::StrInput<'a>>,
    file: usize,
    nodes: usize,
    anchors: HashMap<usize, Node>,
    findings: &'f mut Findings,
}

impl<'a> Builder<'a, '_> {
    fn document(&mut self) -> Result<Node, Stop> {
        let mut root = None;
        while let Some((event, span)) = self.next()? {
            let frames = matches!(
                event,
                Event::StreamStart
                    | Event::StreamEnd
                    | Event::DocumentStart(..)
                    | Event::DocumentEnd
            );
            if frames {
                continue;
            }
            if root.is_some() {
                return self.refuse(
                    span,
                    &[],
                    "a second document",
                    "one file holds one document",
                );
            }
            root = Some(self.node(event, span, &mut Vec::new())?);
        }
        Ok(match root {
            Some(Node {
                value: Value::Scalar(scalar),
                place,
            }) if scalar.is_null() => Node::map(place, Vec::new()),
            Some(node) => node,
            None => Node::map(SourceSpan::whole(self.file), Vec::new()),
        })
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Stop> {
        self.parser.next_event().transpose().map_err(Stop::Syntax)
    }

    fn need(&mut self) -> Result<(Event<'a>, Span), Stop> {
        self.next()?.ok_or(Stop::Reported)
    }

    fn refuse<T>(
        &mut self,
        span: Span,
        path: &[String],
        message: &str,
        hint: &str,
    ) -> Result<T, Stop> {
        let place = self.place(span);
        self.findings.report(place, written(path), message, hint);
        Err(Stop::Reported)
    }

    fn place(&self, span: Span) -> SourceSpan {
        SourceSpan {
            file: self.file,
            line: span.start.line().max(1),
            column: span.start.col() + 1,
            start: span.start.index(),
            end: span.end.index(),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser's events are open-ended; whatever is no value is refused"
    )]
    fn node(&mut self, event: Event<'a>, span: Span, path: &mut Vec<String>) -> Result<Node, Stop> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || path.len() > MAX_DEPTH {
            return self.refuse(span, path, "too large or too deep", "");
        }
        let place = self.place(span);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let scalar = Scalar {
                    text: Zeroizing::new(unshield(&text)),
                    plain: style == ScalarStyle::Plain,
                    origin: Origin::Written,
                };
                let value = Value::Scalar(scalar);
                (Node { place, value }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.need()?;
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    path.push(items.len().to_string());
                    items.push(self.node(event, span, path)?);
                    drop(path.pop());
                }
                (Node::list(place, items), anchor)
            }
            Event::MappingStart(_, anchor, _) => (self.mapping(place, path)?, anchor),
            Event::Alias(id) => {
                let Some(node) = self.anchors.get(&id).cloned() else {
                    return self.refuse(span, path, "an alias inside its own anchor", "");
                };
                self.nodes += size(&node);
                (node, 0)
            }
            _ => return self.refuse(span, path, "not a value", ""),
        };
        if anchor != 0 {
            drop(self.anchors.insert(anchor, node.clone()));
        }
        Ok(node)
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the parser's events are open-ended; whatever is no value is refused"
    )]
    fn mapping(&mut self, place: SourceSpan, path: &mut Vec<String>) -> Result<Node, Stop> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.need()?;
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, ..) => unshield(&text),
                _ => return self.refuse(span, path, "a key that is not text", ""),
            };
            let key_place = self.place(span);
            path.push(key.clone());
            let (event, value_span) = self.need()?;
            let node = self.node(event, value_span, path)?;
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                let hint = format!(
                    "it stands first in line {}; one of them is lost",
                    first.key_place.line
                );
                self.findings.report(
                    key_place,
                    written(path),
                    format!("`{key}` is given twice"),
                    hint,
                );
            } else {
                entries.push(Entry {
                    key,
                    key_place,
                    node,
                });
            }
            drop(path.pop());
        }
        Ok(Node::map(place, entries))
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::Scalar(_) => 0,
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|entry| size(&entry.node)).sum(),
    }
}

/// Hides the braces of references from the parser, character for character.
fn shield(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        out.push_str(before);
        let known = reference.starts_with("${env:") || reference.starts_with("${file:");
        let end = reference.find(['}', '\n']);
        match end {
            Some(end) if known && reference.as_bytes()[end] == b'}' => {
                out.push('$');
                out.push(OPEN);
                out.push_str(&reference[2..end]);
                out.push(CLOSE);
                rest = &reference[end + 1..];
            }
            _ => {
                out.push_str("${");
                rest = &reference[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn unshield(text: &str) -> String {
    text.replace(OPEN, "{").replace(CLOSE, "}")
}

/// JSON with its comments and tabs blanked, character for character.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(char) = chars.next() {
        match (in_string, char, chars.peek().copied()) {
            (true, '\\', Some(next)) => {
                // JSON may escape a slash and YAML may as well, but only JSON has surrogate pairs; those are rare enough.
                out.push(char);
                out.push(next);
                let _ = chars.next();
            }
            (_, '"', _) => {
                in_string = !in_string;
                out.push(char);
            }
            (false, '/', Some('/')) => {
                out.push(' ');
                while chars.peek().is_some_and(|next| *next != '\n') {
                    let _ = chars.next();
                    out.push(' ');
                }
            }
            (false, '/', Some('*')) => {
                out.push(' ');
                let mut before = ' ';
                for inner in chars.by_ref() {
                    out.push(if inner == '\n' { '\n' } else { ' ' });
                    if before == '*' && inner == '/' {
                        break;
                    }
                    before = inner;
                }
            }
            (false, '\t', _) => out.push(' '),
            _ => out.push(char),
        }
    }
    out
}
