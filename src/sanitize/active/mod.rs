//! C8: what a client that renders text would fetch or run.
//!
//! Guarantees: images of hosts that are not allow-listed, in any form of Markdown and HTML; scripts, event handlers, frames and
//! what else brings a document of its own; refreshes, bases and style sheets; links into code or onto the reader's machine;
//! links to other hosts that carry much encoded data. Each hit is one mark of the syntax with what takes its meaning away
//! ([`Hit::inert`]): the text stays readable, and nothing is found in it again. Code blocks and code spans that every renderer
//! of Markdown takes for such are left alone.
//!
//! Deliberately absent: addresses that stand in the text as such, which are not fetched unless somebody follows them; and a
//! client that hands text with code in it to an HTML parser without reading it as Markdown.
// SECURITY 7, C8

mod attributes;
mod code;
mod html;
mod markdown;
mod target;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::Arc};

use self::{
    code::Code,
    markdown::Markdown,
    target::{Hosts, Written},
};
use super::{Class, Detector, Hit, Survey, hit::HITS, survey::places, work::looked};

/// Bytes that are read to judge what was found, for each byte of the text: what needs more than that is taken for the worst.
const READS: usize = 8;

/// The detector of class C8.
#[derive(Debug, Clone)]
pub struct Active {
    hosts: Hosts,
    names: [Arc<str>; NAMES.len()],
}

/// What was found; the order of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Image,
    Script,
    Handler,
    Frame,
    Refresh,
    Base,
    Style,
    Link,
    Carrier,
    Unread,
}

const NAMES: [&str; 10] = [
    "remote_image",
    "script",
    "event_handler",
    "frame",
    "meta_refresh",
    "base",
    "remote_style",
    "dangerous_link",
    "encoded_link",
    "unreadable_markup",
];

impl Active {
    /// A detector that lets images through from `hosts`: names in lower case, `*.` in front for every name below; the default is none.
    pub fn new(hosts: impl IntoIterator<Item = String>) -> Self {
        Self {
            hosts: Hosts::new(hosts),
            names: NAMES.map(Arc::from),
        }
    }

    fn hit(&self, rule: Rule, at: usize, inert: &'static str) -> Hit {
        Hit {
            span: at..at + 1,
            class: Class::Active,
            rule: Arc::clone(&self.names[rule as usize]),
            inert: Some(Cow::Borrowed(inert)),
        }
    }
}

impl Detector for Active {
    fn class(&self) -> Class {
        Class::Active
    }

    fn inspect(&self, text: &str, hits: &mut Vec<Hit>) {
        self.inspect_surveyed(text, &Survey::of(text), hits);
    }

    fn inspect_surveyed(&self, text: &str, survey: &Survey, hits: &mut Vec<Hit>) {
        if survey.active.is_empty() {
            return;
        }
        let bytes = text.as_bytes();
        let mut markdown = Markdown::new(text, &survey.begins, &self.hosts);
        let mut code = Code::new(text, &survey.begins);
        let mut budget = READS.saturating_mul(text.len()).saturating_add(4096);
        let mut sheet = Sheet::default();
        let (whole, found) = (budget, survey.active.iter());
        for at in found.flat_map(|found| places(found.at, found.marks)) {
            let (rule, place, inert) = match (bytes[at], bytes.get(at + 1)) {
                (b'<', _) => {
                    let rule = html::tag(text, at, &self.hosts, &mut budget)
                        .or_else(|| sheet.judge(text, at, &self.hosts));
                    (rule, at, "&lt;")
                }
                // Not by backslashes: a text that is JSON would be none any more.
                (b'!', _) => (markdown.image(at, &mut budget), at, "&#33;"),
                (_, Some(b'(')) => (markdown.link(at, &mut budget), at + 1, "&#40;"),
                _ => (markdown.definition(at, &mut budget), at + 1, "&#58;"),
            };
            if let Some(rule) = rule
                && !code.holds(at)
            {
                hits.push(self.hit(rule, place, inert));
                if hits.len() > HITS {
                    break;
                }
            }
        }
        looked(whole - budget);
    }
}

/// The style sheets of a text: where the last that was looked at ends, and what was found in it.
#[derive(Default)]
struct Sheet {
    judged: Option<(usize, Option<Rule>)>,
}

impl Sheet {
    /// Judges the `style` element that begins at `at`, if one does: what stands up to its end, or to the end of the text.
    fn judge(&mut self, text: &str, at: usize, hosts: &Hosts) -> Option<Rule> {
        const NAME: &str = "style";
        let name = text.get(at + 1..at + 1 + NAME.len())?;
        let after = text.as_bytes().get(at + 1 + NAME.len());
        if !name.eq_ignore_ascii_case(NAME) || after.is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        if let Some((end, rule)) = self.judged
            && at < end
        {
            // One that begins inside another is judged as that one is.
            return rule;
        }
        let rest = &text[at + 1..];
        let end = memchr::memmem::find_iter(rest.as_bytes(), b"</")
            .find(|close| {
                let name = rest.get(close + 2..close + 2 + NAME.len());
                name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
            })
            .unwrap_or(rest.len());
        looked(end);
        let rule = html::style(&rest[..end], Written::Html, hosts);
        self.judged = Some((at + 1 + end, rule));
        rule
    }
}
