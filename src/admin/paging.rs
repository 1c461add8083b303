//! Parameters of requests, and lists in pages.
//!
//! Guarantees: what is not a parameter of an operation, is there twice, or is not of its shape is refused, and nothing is ever
//! ignored; a page holds at most [`MOST`] items, and a cursor goes on behind an item whether or not that is still there.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use crate::audit::stamped;

/// The most items of a page.
pub(super) const MOST: u64 = 500;
/// Items of a page, where nothing else is asked for.
const USUAL: usize = 100;
/// The longest cursor.
const CURSOR_CHARS: usize = 16_384;
/// The longest name that is looked for.
const NAME_CHARS: usize = 1_024;

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(super) struct Page<T> {
    /// The items.
    pub(super) items: Vec<T>,
    /// What `cursor` is to be for the next page; null after the last.
    pub(super) next_cursor: Option<String>,
}

/// A parameter of an operation, in the query.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: Shape,
    pub(super) needed: bool,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// So many characters at most, and one at least.
    Text(usize),
    /// A number within these.
    Number(u64, u64),
    /// One of these.
    Word(&'static [&'static str]),
    /// A time as RFC 3339 has it.
    Time,
}

/// The parameters of a list.
pub(super) const CURSOR: Parameter = Parameter {
    name: "cursor",
    about: "Where the page begins: `next_cursor` of the one before.",
    shape: Shape::Text(CURSOR_CHARS),
    needed: false,
};
/// See [`CURSOR`].
pub(super) const LIMIT: Parameter = Parameter {
    name: "limit",
    about: "The most items of the page. Default: 100.",
    shape: Shape::Number(1, MOST),
    needed: false,
};

impl Parameter {
    pub(super) const fn maybe(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            name,
            about,
            shape,
            needed: false,
        }
    }

    /// A filter by name, of catalogs and logs.
    pub(super) const fn named(name: &'static str, about: &'static str) -> Self {
        Self::maybe(name, Shape::Text(NAME_CHARS), about)
    }

    pub(super) const fn needed(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            name,
            about,
            shape,
            needed: true,
        }
    }
}

/// The parameters of one request.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Reads those that there may be.
    ///
    /// # Errors
    /// What is none of them, or not as it should be.
    pub(super) fn parse(text: Option<&str>, known: &[Parameter]) -> Result<Self, Problem> {
        let bad = |detail: String| Problem::bad_request("bad_parameter", detail);
        let mut read: Vec<(&'static str, String)> = Vec::new();
        let text = text.unwrap_or_default();
        if !is_escaped_well(text) {
            return Err(bad("after each `%` come two hexadecimal digits".to_owned()));
        }
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let Some(parameter) = known.iter().find(|known| known.name == name) else {
                return Err(bad(format!(
                    "`{}` is no parameter here",
                    name.escape_debug()
                )));
            };
            if read.iter().any(|(known, _)| *known == parameter.name) {
                return Err(bad(format!("`{}` is there twice", parameter.name)));
            }
            let value = parameter.shape.read(&value);
            let value = value.map_err(|why| bad(format!("`{}` {why}", parameter.name)))?;
            read.push((parameter.name, value));
        }
        let lacks = |known: &&Parameter| known.needed && !read.iter().any(|it| it.0 == known.name);
        if let Some(missing) = known.iter().find(lacks) {
            return Err(bad(format!("`{}` is missing", missing.name)));
        }
        Ok(Self(read))
    }

    /// A parameter, if it is there.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The same, to keep.
    pub(super) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// How many items a page is to have.
    pub(super) fn limit(&self) -> usize {
        let limit = self.text(LIMIT.name).and_then(|text| text.parse().ok());
        limit.unwrap_or(USUAL)
    }

    /// What the page is to begin after.
    ///
    /// # Errors
    /// When there is something that is no cursor.
    pub(super) fn after(&self) -> Result<Option<String>, Problem> {
        let Some(cursor) = self.text(CURSOR.name) else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        match text {
            Some(text) => Ok(Some(text)),
            None => Err(bad_cursor()),
        }
    }

    /// The same for a list that is told by numbers.
    ///
    /// # Errors
    /// When there is something that is no cursor.
    pub(super) fn after_number(&self) -> Result<Option<u64>, Problem> {
        let number = |text: String| text.parse().map_err(|_| bad_cursor());
        self.after()?.map(number).transpose()
    }
}

/// Whether each escape is one (RFC 3986, section 2.1): what is none would else be read as it stands.
fn is_escaped_well(text: &str) -> bool {
    let mut parts = text.as_bytes().split(|byte| *byte == b'%').skip(1);
    parts.all(|part| {
        let digits = part.get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

fn bad_cursor() -> Problem {
    Problem::bad_request("bad_cursor", "`cursor` is none that was given out here")
}

impl Shape {
    fn read(self, text: &str) -> Result<String, String> {
        match self {
            Self::Text(most) if text.is_empty() || text.chars().count() > most => {
                Err(format!("has 1 to {most} characters"))
            }
            Self::Text(_) => Ok(text.to_owned()),
            Self::Number(least, most) => match text.parse::<u64>() {
                // No sign, no zeros before it.
                Ok(number) if (least..=most).contains(&number) && number.to_string() == text => {
                    Ok(text.to_owned())
                }
                Ok(_) | Err(_) => Err(format!("is a whole number from {least} to {most}")),
            },
            Self::Word(words) if words.contains(&text) => Ok(text.to_owned()),
            Self::Word(words) => Err(format!("is one of {}", words.join(", "))),
            Self::Time => {
                stamped(text).ok_or_else(|| "is a time such as 2026-11-21T12:00:00Z".to_owned())
            }
        }
    }
}

impl<T> Page<T> {
    /// The first of `items`, which begin where the page does and are one more than it may have, if there are more. `key` is
    /// what tells an item's place.
    pub(super) fn of(mut items: Vec<T>, limit: usize, key: impl Fn(&T) -> String) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more);
        let next_cursor = last.map(|last| cursor(&key(last)));
        Self { items, next_cursor }
    }
}

/// The cursor of a page that begins after this place.
pub(super) fn cursor(place: &str) -> String {
    URL_SAFE_NO_PAD.encode(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Parameter; 5] = [
        LIMIT,
        CURSOR,
        Parameter::maybe("kind", Shape::Word(&["tool", "prompt"]), ""),
        Parameter::maybe("since", Shape::Time, ""),
        Parameter::named("name", ""),
    ];

    fn refused(text: &str) -> &'static str {
        let query = Query::parse(Some(text), &KNOWN);
        match query.and_then(|query| query.after().map(drop)) {
            Ok(()) => panic!("{text} is taken"),
            Err(problem) => problem.reason,
        }
    }

    #[test]
    fn what_is_no_parameter_or_not_of_its_shape_is_refused() {
        for text in [
            "x=1",
            "limit=0",
            "limit=501",
            "limit=+5",
            "limit=05",
            "limit=1&limit=1",
            "kind=x",
            "kind=",
            "cursor=",
            "since=yesterday",
            "since=9999-12-32T00:00:00Z",
            "name=%zz",
            "name=a%",
            "name=a%2",
            "n%ame=a",
        ] {
            assert_eq!(refused(text), "bad_parameter", "{text}");
        }
        assert_eq!(refused("cursor=%7F"), "bad_cursor");
        let query = Query::parse(
            Some("kind=tool&limit=500&since=2026-11-21T12:00:00%2B01:00"),
            &KNOWN,
        );
        let query = query.unwrap();
        assert_eq!((query.limit(), query.text("kind")), (500, Some("tool")));
        assert_eq!(query.text("since"), Some("2026-11-21T11:00:00.000000000Z"));
        let query = Query::parse(Some("since=9999-12-31T23:59:59Z&name=100%25"), &KNOWN).unwrap();
        // The latest time of all: no record is from then on.
        assert_eq!(query.text("since"), Some("9999-12-30T22:00:00.999999999Z"));
        assert_eq!(query.text("name"), Some("100%"));
        assert_eq!(Query::parse(None, &KNOWN).unwrap().limit(), USUAL);
        let needed = [Parameter::needed("name", Shape::Text(3), "")];
        assert!(Query::parse(None, &needed).is_err());
    }

    #[test]
    fn a_page_goes_on_where_the_one_before_ended() {
        let page = Page::of(vec![1, 2, 3], 2, ToString::to_string);
        assert_eq!(page.items, [1, 2]);
        let text = format!("cursor={}", page.next_cursor.unwrap());
        let query = Query::parse(Some(&text), &KNOWN).unwrap();
        assert_eq!(query.after_number().unwrap(), Some(2));
        assert_eq!(
            Page::of(vec![1, 2], 2, ToString::to_string).next_cursor,
            None
        );
    }
}
