//! Tags, as a browser reads them: what one would fetch or run.
//!
//! Guarantees: names and attributes are split as HTML splits them, with any quoting, case and separator. Deliberately absent:
//! the tree; a tag counts wherever it stands, so that no context can be made up in which it does not.

use std::borrow::Cow;

use super::{
    Rule,
    attributes::{Attributes, blank},
    target::{self, Hosts, Leads, Written},
};

/// Elements that hold or load a document of their own, if they have one of [`SOURCES`] or `srcdoc`.
const FRAMES: [&str; 10] = [
    "iframe",
    "frame",
    "object",
    "embed",
    "applet",
    "portal",
    "fencedframe",
    "webview",
    "ilayer",
    "layer",
];
/// Attributes that are fetched as soon as the tag is seen.
const SOURCES: [&str; 12] = [
    "src",
    "data",
    "background",
    "poster",
    "lowsrc",
    "dynsrc",
    "codebase",
    "classid",
    "archive",
    "code",
    "icon",
    "manifest",
];
/// Elements that fetch what these say. Of others, as components of a program and XML have them, no browser does.
const FETCHING: [&str; 30] = [
    "fill",
    "imagedata",
    "mglyph",
    "isindex",
    "amp-img",
    "img",
    "image",
    "input",
    "source",
    "video",
    "audio",
    "track",
    "bgsound",
    "body",
    "table",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "td",
    "th",
    "col",
    "colgroup",
    "link",
    "html",
    "command",
    "menuitem",
    "xml",
    "menu",
    "button",
];
/// Attributes that are lists of what may be fetched.
const SETS: [&str; 2] = ["srcset", "imagesrcset"];
/// Attributes that lead somewhere when they are used.
const LINKS: [&str; 10] = [
    "href",
    "xlink:href",
    "action",
    "formaction",
    "ping",
    "cite",
    "to",
    "from",
    "values",
    "by",
];
/// Elements whose link is fetched as an image would be.
const DRAWN: [&str; 8] = [
    "image",
    "use",
    "feimage",
    "pattern",
    "lineargradient",
    "radialgradient",
    "textpath",
    "mpath",
];
/// Elements that give other values to an attribute of the one around them, be it what is fetched or where a link leads.
const ANIMATED: [&str; 2] = ["set", "animate"];
/// What a `link` is for, where nothing is fetched.
const UNFETCHED: [&str; 9] = [
    "canonical",
    "alternate",
    "author",
    "license",
    "help",
    "next",
    "prev",
    "me",
    "search",
];

/// Judges the tag that begins at `at` of `text`. Takes from `budget` the bytes that it reads; a tag that cannot be read for
/// want of it is [`Rule::Unread`].
pub(super) fn tag(text: &str, at: usize, hosts: &Hosts, budget: &mut usize) -> Option<Rule> {
    let mut escaped = false;
    let found = judged(text, at, (hosts, &mut escaped), budget);
    // A text that is JSON is read by whoever takes the strings out of it, too.
    if found.is_none() && escaped {
        return judged(text, at, (hosts, &mut escaped), budget);
    }
    found
}

/// The same; `escaped` says that backslashes belong to the quotes and letters behind them, and is told whether there are any.
fn judged(
    text: &str,
    at: usize,
    (hosts, escaped): (&Hosts, &mut bool),
    budget: &mut usize,
) -> Option<Rule> {
    let rest = text.get(at + 1..)?;
    let through = *escaped;
    let mut prefixed = false;
    let bytes = rest.as_bytes();
    let end = (0..bytes.len().min(64))
        .find(|at| {
            let byte = bytes[*at];
            prefixed |= byte == b':';
            let escape = blank(&bytes[*at..]).is_some();
            *escaped |= escape;
            byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>') || escape && through
        })
        .unwrap_or(rest.len().min(64));
    let mut name = rest.get(..end).unwrap_or_default();
    if prefixed {
        if let Some(rule) = autolink(rest, hosts, budget) {
            return Some(rule);
        }
        // XHTML may put a prefix before it.
        name = name.rsplit(':').next().unwrap_or(name);
    }
    if name.eq_ignore_ascii_case("script") {
        return Some(Rule::Script);
    }
    if rest.as_bytes().get(end) == Some(&b'>') {
        return None;
    }
    let element = |list: &[&str]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
    let mut attributes = Attributes {
        rest: rest.get(end..).unwrap_or_default(),
        through,
        escaped: *escaped,
    };
    let before = attributes.rest.len();
    let frame = element(&FRAMES);
    let animated = element(&ANIMATED);
    let drawn = element(&DRAWN);
    let fetching = element(&FETCHING);
    let sheet = element(&["?xml-stylesheet"]);
    let link = element(&["link"]);
    let (mut refresh, mut rel_fetches, mut linked) = (false, false, false);
    let left = before.saturating_sub(*budget);
    let mut found = None;
    while let Some((name, value)) = attributes.next_within(left) {
        if value.is_none() || quiet(name) {
            continue;
        }
        let is = |list: &[&str]| list.iter().any(|known| name.eq_ignore_ascii_case(known));
        let handler = name.len() > 2
            && name.as_bytes()[..2].eq_ignore_ascii_case(b"on")
            && name.as_bytes()[2].is_ascii_alphabetic();
        found = match value {
            None => continue,
            Some(value)
                if handler
                    && !breaks_off(value)
                    && (is_event(&name[2..], value) || runs(value)) =>
            {
                Some(Rule::Handler)
            }
            Some(_) if frame && (is(&SOURCES) || is(&["srcdoc", "href"])) => Some(Rule::Frame),
            Some(_) if is(&["srcdoc"]) => Some(Rule::Frame),
            Some(value) if fetching && is(&SOURCES) => {
                fetched(target::leads(value, Written::Html, hosts))
            }
            Some(value) if fetching && is(&SETS) => value
                .split([',', ' ', '\t', '\n', '\r'])
                .find_map(|source| fetched(target::leads(source, Written::Html, hosts))),
            Some(_) if element(&["base"]) && is(&["href"]) => Some(Rule::Base),
            Some(value) if animated && is(&["to", "from", "by", "values"]) => given(value, hosts),
            Some(value) if is(&LINKS) => {
                let leads = target::leads(value, Written::Html, hosts);
                linked |= leads == Leads::Away;
                match leads {
                    Leads::Danger => Some(Rule::Link),
                    Leads::Drawing if !drawn => Some(Rule::Link),
                    Leads::Away if drawn => Some(Rule::Image),
                    Leads::Away if sheet => Some(Rule::Style),
                    Leads::Away if target::carries(value) => Some(Rule::Carrier),
                    Leads::Here | Leads::Away | Leads::Allowed | Leads::Drawing => None,
                }
            }
            Some(value) if is(&["rel"]) => {
                rel_fetches |= link && !UNFETCHED.iter().any(|rel| value.eq_ignore_ascii_case(rel));
                None
            }
            Some(value) if is(&["http-equiv"]) => {
                refresh |= target::decoded(value, Written::Html)
                    .filter(|ch| !ch.is_whitespace() && !ch.is_control())
                    .map(|ch| ch.to_ascii_lowercase())
                    .eq("refresh".chars());
                None
            }
            Some(value)
                if is(&[
                    "style",
                    "fill",
                    "filter",
                    "mask",
                    "clip-path",
                    "stroke",
                    "cursor",
                    "marker-end",
                    "marker-start",
                ]) =>
            {
                style(value, Written::Html, hosts)
            }
            Some(_) => None,
        };
        if found.is_some() {
            break;
        }
    }
    let rest = attributes.rest;
    *escaped = attributes.escaped;
    *budget = budget.saturating_sub(before - rest.len());
    let unread = !rest.is_empty() && !rest.starts_with('>') && rest.len() <= left;
    if found.is_none() && refresh {
        return Some(Rule::Refresh);
    }
    if found.is_none() && rel_fetches && linked {
        return Some(Rule::Style);
    }
    found.or(unread.then_some(Rule::Unread))
}

/// Attributes that most tags have and that do nothing, as most tags spell them.
fn quiet(name: &str) -> bool {
    matches!(
        name,
        "class"
            | "id"
            | "alt"
            | "title"
            | "width"
            | "height"
            | "align"
            | "lang"
            | "dir"
            | "name"
            | "type"
            | "value"
            | "content"
            | "charset"
            | "colspan"
            | "rowspan"
            | "target"
            | "viewBox"
            | "d"
            | "role"
    ) || name.starts_with("data-")
        || name.starts_with("aria-")
}

/// What the names of events begin with that browsers know.
const EVENTS: &[&str] = &[
    "abort",
    "activate",
    "after",
    "animation",
    "appinstalled",
    "auxclick",
    "beforeunload",
    "before",
    "begin",
    "blur",
    "bounce",
    "can",
    "change",
    "click",
    "close",
    "command",
    "contentvis",
    "context",
    "control",
    "copy",
    "cuechange",
    "cut",
    "dblclick",
    "deactivate",
    "device",
    "drag",
    "drop",
    "durationchange",
    "emptied",
    "end",
    "error",
    "filter",
    "finish",
    "focus",
    "formdata",
    "freeze",
    "fullscreen",
    "gesture",
    "gotpointer",
    "hashchange",
    "help",
    "input",
    "invalid",
    "key",
    "language",
    "layout",
    "load",
    "lostpointer",
    "message",
    "mouse",
    "move",
    "offline",
    "online",
    "orientation",
    "page",
    "paste",
    "pause",
    "play",
    "pointer",
    "popstate",
    "progress",
    "property",
    "ratechange",
    "readystate",
    "rejection",
    "repeat",
    "reset",
    "resize",
    "scroll",
    "search",
    "securitypolicy",
    "seek",
    "select",
    "slotchange",
    "stalled",
    "start",
    "submit",
    "suspend",
    "timeupdate",
    "toggle",
    "touch",
    "transition",
    "unhandled",
    "unload",
    "volume",
    "waiting",
    "webkit",
    "wheel",
    "zoom",
];

/// Whether a browser knows this event. What stands in braces is no HTML, but a value in the source of a program: it does nothing
/// as long as it only names something.
fn is_event(name: &str, value: &str) -> bool {
    let known = |event: &str| {
        let begin = name.get(..event.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(event))
    };
    !value.starts_with('{') && EVENTS.iter().any(|event| known(event))
}

/// Whether anything happens when this is run: something is called or set. A bare name, as in `online="true"`, does nothing.
fn runs(handler: &str) -> bool {
    let idle = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'.' | b':' | b'/' | b'%' | b'#' | b'{' | b'}')
    };
    !handler.bytes().all(idle)
}

/// What the values that an animation gives to an attribute make of its tag. To which is not asked, so that each is a source and a
/// link. What parts them ends entities, too, which are read before.
fn given(values: &str, hosts: &Hosts) -> Option<Rule> {
    let values: Cow<'_, str> = match values.contains('&') {
        true => target::decoded(values, Written::Html).collect(),
        false => values.into(),
    };
    let mut values = values.split(';');
    values.find_map(|value| {
        let leads = target::leads(value, Written::Html, hosts);
        let drawing = leads == Leads::Drawing;
        fetched(leads).or(drawing.then_some(Rule::Link))
    })
}

/// Whether brackets are open at the end, so that nothing of it is ever run: in the source of a program `onClick={() => save()}` is
/// a value up to the first blank. Not where a bracket may stand in a string or a comment.
fn breaks_off(handler: &str) -> bool {
    let doubt = |byte: u8| !byte.is_ascii() || b"\"'`/\\&<-\n\r".contains(&byte);
    let depth = handler.bytes().fold(0_i32, |depth, byte| match byte {
        b'(' | b'[' | b'{' => depth + 1,
        b')' | b']' | b'}' => depth - 1,
        _ => depth,
    });
    depth > 0 && !handler.bytes().any(doubt)
}

/// What a source that is fetched at once makes of its tag.
fn fetched(leads: Leads) -> Option<Rule> {
    match leads {
        Leads::Away => Some(Rule::Image),
        Leads::Danger => Some(Rule::Link),
        Leads::Here | Leads::Allowed | Leads::Drawing => None,
    }
}

/// `<javascript:…>`, and a link with much in it.
fn autolink(rest: &str, hosts: &Hosts, budget: &mut usize) -> Option<Rule> {
    let scheme = rest
        .bytes()
        .take(40)
        .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')))?;
    if rest.as_bytes().get(scheme) != Some(&b':') {
        return None;
    }
    let end = memchr::memchr3(b'>', b'\n', b'<', rest.as_bytes()).unwrap_or(rest.len());
    let cost = end.min(*budget);
    *budget -= cost;
    if cost < end {
        return Some(Rule::Unread);
    }
    let link = rest.get(..end)?;
    match target::leads(link, Written::Html, hosts) {
        Leads::Danger | Leads::Drawing => Some(Rule::Link),
        Leads::Away if target::carries(link) => Some(Rule::Carrier),
        Leads::Here | Leads::Away | Leads::Allowed => None,
    }
}

/// Judges declarations or a sheet of CSS: an address of another host, an import, or what only hides one. Escapes that could be
/// part of one are taken for one; comments part words, but in browsers that are no more.
pub(super) fn style(css: &str, written: Written, hosts: &Hosts) -> Option<Rule> {
    const WINDOW: usize = 16;
    let mut last = [0_u8; WINDOW];
    let mut chars = target::decoded(css, written);
    let mut parens = false;
    let mut hides = false;
    loop {
        // Where an address may begin: after two slashes, or after a scheme, which is enough to be remote.
        let slashes = last.ends_with(b"//")
            || last.ends_with(b"http:")
            || last.ends_with(b"https:")
            || last.ends_with(b"ftp:");
        if slashes
            && matches!(chars.rest().chars().next(), Some(ch) if !ch.is_whitespace() && ch != '/')
        {
            let rest = chars.rest();
            let end = rest
                .bytes()
                .take(HOST)
                .position(|byte| matches!(byte, b')' | b'"' | b'\'' | b' ' | b';' | b'\n' | b','))
                .unwrap_or(rest.len().min(HOST));
            let host = rest.get(..end).unwrap_or_default();
            let mut address = [b'/'; HOST + 2];
            address[2..2 + host.len()].copy_from_slice(host.as_bytes());
            let address = std::str::from_utf8(&address[..2 + host.len()]).unwrap_or("//");
            if last.ends_with(b"//") && target::leads(address, written, hosts) != Leads::Allowed {
                return Some(Rule::Style);
            }
            if !last.ends_with(b"//") && !chars.rest().starts_with("//") {
                return Some(Rule::Style);
            }
        }
        let Some(ch) = chars.next() else {
            return (hides && parens).then_some(Rule::Style);
        };
        let byte = u8::try_from(ch).ok().filter(u8::is_ascii).unwrap_or(0xFF);
        last.copy_within(1.., 0);
        last[WINDOW - 1] = byte.to_ascii_lowercase();
        parens |= byte == b'(';
        hides |= byte == b'\\';
        if last.ends_with(b"@import")
            || last.ends_with(b"expression(")
            || last.ends_with(b"-moz-binding")
            || last.ends_with(b"javascript:")
        {
            return Some(Rule::Style);
        }
    }
}

/// Bytes of a host that are looked at in CSS.
const HOST: usize = 280;
