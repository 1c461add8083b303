//! URI templates (RFC 6570): checking them, and telling whether a URI may be an expansion of one.
//!
//! Matching decides routes only, so it is generous: an expression may also have expanded to nothing. It runs as a set of
//! positions carried along the URI, without going back, within a budget of steps.

/// Steps that matching one URI against templates may take.
pub(super) const MATCH_STEPS: usize = 2_000_000;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    tokens: Box<[Token]>,
    /// How many bytes at the start are literal.
    head: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// This byte.
    Byte(u8),
    /// This byte and then the run that follows, or neither.
    Open(u8),
    /// Any number of bytes of a class.
    Run(Class),
}

/// What an expansion may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// `{x}`, `{.x}`, `{;x}`: no delimiter of path, query or fragment.
    Segment,
    /// `{/x*}`: no delimiter of query or fragment.
    Path,
    /// `{?x}`, `{&x}`: no fragment.
    Query,
    /// `{+x}`, `{#x}`: anything.
    Any,
}

impl Class {
    const fn takes(self, byte: u8) -> bool {
        match self {
            Self::Segment => !matches!(byte, b'/' | b'?' | b'#'),
            Self::Path => !matches!(byte, b'?' | b'#'),
            Self::Query => byte != b'#',
            Self::Any => true,
        }
    }
}

impl Template {
    /// The template, if it is well formed: balanced braces, known operators, plausible variable names.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut tokens = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            tokens.extend(rest[..at].bytes().map(Token::Byte));
            let inside = rest[at..].strip_prefix('{')?;
            let end = inside.find(['{', '}'])?;
            let after = inside[end..].strip_prefix('}')?;
            expression(&inside[..end], &mut tokens)?;
            rest = after;
        }
        tokens.extend(rest.bytes().map(Token::Byte));
        let head = tokens
            .iter()
            .map_while(|token| match token {
                Token::Byte(byte) => Some(*byte),
                Token::Open(_) | Token::Run(_) => None,
            })
            .collect();
        Some(Self {
            tokens: tokens.into(),
            head,
        })
    }

    /// Whether `uri` may be an expansion of this. Takes its steps from `budget`; `None` when that is used up, and nobody knows.
    pub(super) fn matches(&self, uri: &str, budget: &mut usize) -> Option<bool> {
        let Some(rest) = uri.as_bytes().strip_prefix(&*self.head) else {
            return Some(false);
        };
        // What is set up for each token.
        spend(budget, self.tokens.len())?;
        let mut now = Positions::new(self.tokens.len());
        let mut next = Positions::new(self.tokens.len());
        now.add(&self.tokens, self.head.len());
        for byte in rest {
            for &at in &now.list {
                match self.tokens.get(at) {
                    Some(Token::Byte(want) | Token::Open(want)) if want == byte => {
                        next.add(&self.tokens, at + 1);
                    }
                    Some(Token::Run(class)) if class.takes(*byte) => next.add(&self.tokens, at),
                    _ => {}
                }
            }
            spend(budget, now.list.len() + 1)?;
            std::mem::swap(&mut now, &mut next);
            next.clear();
            if now.list.is_empty() {
                return Some(false);
            }
        }
        Some(now.list.contains(&self.tokens.len()))
    }
}

/// Takes steps from `budget`; `None` where there are not so many left, and then none are.
fn spend(budget: &mut usize, steps: usize) -> Option<()> {
    let left = budget.checked_sub(steps);
    *budget = left.unwrap_or(0);
    left.map(drop)
}

/// Appends what one expression stands for.
fn expression(text: &str, tokens: &mut Vec<Token>) -> Option<()> {
    let (operator, names) = match text.as_bytes().first()? {
        b'+' | b'#' | b'.' | b'/' | b';' | b'?' | b'&' => text.split_at(1),
        _ => ("", text),
    };
    names.split(',').all(is_variable).then_some(())?;
    let (open, class) = match operator {
        "+" => (None, Class::Any),
        "#" => (Some(b'#'), Class::Any),
        "/" => (Some(b'/'), Class::Path),
        "." => (Some(b'.'), Class::Segment),
        ";" => (Some(b';'), Class::Segment),
        "?" => (Some(b'?'), Class::Query),
        "&" => (Some(b'&'), Class::Query),
        _ => (None, Class::Segment),
    };
    tokens.extend(open.map(Token::Open));
    tokens.push(Token::Run(class));
    Some(())
}

/// A variable with its modifier. A hyphen is taken too: RFC 6570 has none, servers do.
fn is_variable(text: &str) -> bool {
    let name = match text.split_once(':') {
        Some((name, length)) => {
            let digits = !length.is_empty() && length.len() <= 4;
            if !digits || !length.bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            name
        }
        None => text.strip_suffix('*').unwrap_or(text),
    };
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'%' | b'-'))
}

/// A set of places in the tokens, in no order.
struct Positions {
    list: Vec<usize>,
    has: Vec<bool>,
}

impl Positions {
    fn new(tokens: usize) -> Self {
        Self {
            list: Vec::new(),
            has: vec![false; tokens + 1],
        }
    }

    /// Adds a place and those reached from it without a byte.
    fn add(&mut self, tokens: &[Token], mut at: usize) {
        loop {
            if !std::mem::replace(&mut self.has[at], true) {
                self.list.push(at);
            }
            at += match tokens.get(at) {
                Some(Token::Run(_)) => 1,
                Some(Token::Open(_)) => 2,
                Some(Token::Byte(_)) | None => return,
            };
        }
    }

    fn clear(&mut self) {
        for at in self.list.drain(..) {
            self.has[at] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(template: &str, uri: &str) -> bool {
        Template::parse(template)
            .unwrap()
            .matches(uri, &mut 1_000_000)
            .unwrap()
    }

    #[test]
    fn expansions_match_their_templates() {
        for (template, uri) in [
            (
                "weather://forecast/{city}/{date}",
                "weather://forecast/Paris/2026-01-01",
            ),
            ("x://{a}", "x://"),
            ("file:///{+path}", "file:///a/b?c#d"),
            ("x://y{/seg*}", "x://y/a/b/c"),
            ("x://y{/seg*}", "x://y"),
            ("x://y{?q,n}", "x://y?q=1&n=2"),
            ("x://y{?q}{&r}", "x://y&r=2"),
            ("x://{a}.{b}", "x://1.2.3"),
            ("x://{a}{b}/c", "x://zz/c"),
            ("x://y{#f}", "x://y#here"),
            ("x://y{.a}{b}", "x://yz"),
            ("x://{name:3}", "x://abc"),
            ("x://plain", "x://plain"),
        ] {
            assert!(is_match(template, uri), "{template} {uri}");
        }
        for (template, uri) in [
            ("weather://forecast/{city}", "weather://forecast/a/b"),
            ("x://{a}/end", "x://a/en"),
            ("x://{a}", "y://a"),
            ("x://y{?q}", "x://y/q"),
            ("x://y{/s}", "x://yz"),
            ("x://plain", "x://plain2"),
        ] {
            assert!(!is_match(template, uri), "{template} {uri}");
        }
    }

    #[test]
    fn malformed_templates_are_none() {
        for text in [
            "x://{a",
            "x://a}",
            "x://{}",
            "x://{{a}}",
            "x://{=a}",
            "x://{a b}",
            "x://{a:}",
            "x://{a,}",
            "x://{a:12345}",
        ] {
            assert_eq!(Template::parse(text), None, "{text}");
        }
    }

    #[test]
    fn matching_stops_when_its_budget_is_used_up() {
        let template = Template::parse(&"{+a}x".repeat(200)).unwrap();
        let uri = "x".repeat(4_000);
        let mut budget = 10_000;
        assert_eq!(template.matches(&uri, &mut budget), None);
        assert_eq!(budget, 0);
        // What it cannot be by its beginning costs nothing.
        let other = Template::parse("y{+a}").unwrap();
        assert_eq!(other.matches(&uri, &mut budget), Some(false));
    }

    #[test]
    fn a_long_template_costs_its_length_though_the_address_ends_at_once() {
        let long = Template::parse(&format!("x{{+a}}{}", "y".repeat(500))).unwrap();
        let tokens = long.tokens.len();
        let mut budget = 2 * tokens;
        assert_eq!(long.matches("x", &mut budget), Some(false));
        assert_eq!(budget, tokens);
        assert_eq!(long.matches("x", &mut budget), Some(false));
        assert_eq!(long.matches("x", &mut budget), None);
    }
}
