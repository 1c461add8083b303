//! The configuration for operators to look at: as it stands in its file, with references, and without what may be a secret.
//!
//! Guarantees: no value that a reference led to is in it (SECURITY 10), nor a digest of one that anybody without this process's
//! memory could make. Deliberately absent: defaults, which nobody wrote.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::LazyLock};

use aws_lc_rs::{hmac, rand};

use super::{
    secrets,
    tree::{Entry, Node, Origin, Scalar, Value, written},
};
use crate::json::{self, Edits, Fate, Json};

/// The key in its file of what is put in force without a restart.
const LIMITS: &str = "limits";

/// Stands for a value that is not shown.
pub(super) const SET: &str = "(set)";

/// A configuration as it stands in its file, with what it includes.
#[derive(Clone)]
pub struct Loaded {
    json: Json,
    in_clear: Vec<String>,
    /// By each key but limits, as [`Loaded::differing`] tells of it, a digest of what it holds, with what references led to and what
    /// is not shown: whether that is another is all that can be asked of it.
    held: BTreeMap<String, [u8; 32]>,
}

impl Loaded {
    pub(super) fn of(tree: &Node) -> Self {
        Self {
            json: shown(tree, &mut Vec::new(), false),
            in_clear: in_clear(tree),
            held: held(tree),
        }
    }

    /// As an object; `${env:NAME}` and `${file:/path}` where those stand, `(set)` for the environment of programs and for the
    /// parameters of addresses that are called secrets.
    pub const fn json(&self) -> &Json {
        &self.json
    }

    /// Where in the `command`, the `env` and the `url` of an upstream something is written out that may be a secret, as
    /// `upstreams.github.env.TOKEN`.
    pub fn in_clear(&self) -> &[String] {
        &self.in_clear
    }

    /// The same with the limits of another one, in their old place: the same limits make no difference.
    #[must_use]
    pub fn with_limits_of(&self, other: &Self) -> Self {
        let limits = other.json.root().member(LIMITS);
        let limits = limits.map(|limits| other.json.slice(limits));
        Self {
            json: limited(&self.json, limits.as_ref()),
            in_clear: self.in_clear.clone(),
            held: self.held.clone(),
        }
    }

    /// Whether they say the same of everything but limits, and what they refer to held the same when they were read.
    pub fn differs_in_limits_alone(&self, other: &Self) -> bool {
        limited(&self.json, None) == limited(&other.json, None) && self.held == other.held
    }

    /// Under which keys they say something else, but for limits, or what they refer to held something else when they were read: as
    /// `page_size.items`, `upstreams.github`. Empty where they say the same in another order.
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let (one, another) = (self.json.root(), other.json.root());
        let mut found = Vec::new();
        for key in apart(one, another) {
            if key == LIMITS {
                continue;
            }
            let below = match (one.member(&key), another.member(&key)) {
                (Some(one), Some(another)) => apart(one, another),
                _ => Vec::new(),
            };
            if below.is_empty() {
                found.push(key);
            } else {
                found.extend(below.iter().map(|below| written(&[&key, below])));
            }
        }
        for (key, held) in &self.held {
            // What only one of them has was found by its key.
            let differs = other.held.get(key).is_some_and(|other| other != held);
            if differs && !found.contains(key) {
                found.push(key.clone());
            }
        }
        found
    }
}

impl Default for Loaded {
    fn default() -> Self {
        Self {
            json: Json::empty_object(),
            in_clear: Vec::new(),
            held: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loaded(..)")
    }
}

fn in_clear(tree: &Node) -> Vec<String> {
    let mut found = Vec::new();
    let upstreams = tree.member("upstreams").map(Node::entries);
    for Entry { key, node, .. } in upstreams.unwrap_or_default() {
        let url = node.member("url").and_then(written_out);
        if url.is_some_and(|url| !secrets::parameters(url).is_empty()) {
            found.push(written(&["upstreams", key, "url"]));
        }
        let words = node.member("command").map(Node::items);
        let mut before = "";
        for (index, word) in words.unwrap_or_default().iter().enumerate() {
            if written_out(word).is_some_and(|text| secrets::is_told_in(before, text)) {
                let index = index.to_string();
                found.push(written(&["upstreams", key, "command", &index]));
            }
            before = word.as_text().unwrap_or_default();
        }
        let variables = node.member("env").map(Node::entries);
        for Entry {
            key: name, node, ..
        } in variables.unwrap_or_default()
        {
            if written_out(node).is_some_and(|text| secrets::is_told_by(name, text)) {
                found.push(written(&["upstreams", key, "env", name]));
            }
        }
    }
    found
}

/// See [`Loaded::held`].
fn held(tree: &Node) -> BTreeMap<String, [u8; 32]> {
    let mut held = BTreeMap::new();
    for Entry { key, node, .. } in tree.entries() {
        match &node.value {
            _ if key == LIMITS => {}
            Value::Map(entries) => held.extend(
                entries
                    .iter()
                    .map(|below| (written(&[key, &below.key]), digest(&below.node))),
            ),
            Value::Scalar(_) | Value::List(_) => _ = held.insert(key.clone(), digest(node)),
        }
    }
    held
}

/// Of this process alone and never written down: without it a digest of what is short could be guessed.
static KEY: LazyLock<hmac::Key> = LazyLock::new(key);

#[expect(clippy::expect_used, reason = "see the invariant")]
fn key() -> hmac::Key {
    let mut bytes = [0; 32];
    // INVARIANT: the operating system's random source does not fail after boot; a process without one must not serve.
    rand::fill(&mut bytes).expect("the system gives random bytes");
    hmac::Key::new(hmac::HMAC_SHA256, &bytes)
}

fn digest(node: &Node) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&KEY);
    mix(node, &mut context);
    let mut digest = [0; 32];
    digest.copy_from_slice(context.sign().as_ref());
    digest
}

/// Adds all that stands in a value, and under which keys.
fn mix(node: &Node, into: &mut hmac::Context) {
    match &node.value {
        // There are several ways to write it.
        Value::Scalar(scalar) if scalar.is_null() => mix_text("", into),
        Value::Scalar(scalar) => mix_text(&scalar.text, into),
        Value::List(items) => items.iter().for_each(|item| mix(item, into)),
        Value::Map(entries) => {
            for Entry { key, node, .. } in entries {
                mix_text(key, into);
                mix(node, into);
            }
        }
    }
}

/// With its length before it, so that what moves from one text to the next makes a difference.
fn mix_text(text: &str, into: &mut hmac::Context) {
    into.update(&(text.len() as u64).to_le_bytes());
    into.update(text.as_bytes());
}

/// The text of a value that stands in the file itself.
fn written_out(node: &Node) -> Option<&str> {
    let scalar = node.scalar()?;
    (scalar.origin == Origin::Written).then(|| node.as_text())?
}

/// The members that are not the same in both.
fn apart(one: json::Node<'_>, other: json::Node<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for member in one.members().chain(other.members()) {
        let name = member.key.into_owned();
        let said = |node: json::Node<'_>| node.member(&name).map(|value| value.raw().to_owned());
        if said(one) != said(other) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The same with these limits, or with none.
fn limited(json: &Json, limits: Option<&Json>) -> Json {
    let mut edits = Edits::new();
    let has_some = json.root().member(LIMITS).is_some();
    let anew = limits.filter(|_| !has_some);
    let anew = anew.map(|limits| (LIMITS, limits.clone()));
    edits.members(
        json.root(),
        |name, _| match name {
            LIMITS => limits.cloned().map_or(Fate::Remove, Fate::Replace),
            _ => Fate::Keep,
        },
        anew.as_slice(),
    );
    json.splice(&edits)
}

/// A value, `at` this path. `hidden`: what is written here is not shown either.
fn shown<'t>(node: &'t Node, at: &mut Vec<&'t str>, hidden: bool) -> Json {
    match &node.value {
        Value::Scalar(scalar) => self::scalar(scalar, hidden),
        Value::List(items) => {
            let items: Vec<Json> = items.iter().map(|item| shown(item, at, hidden)).collect();
            Json::array(&items)
        }
        Value::Map(entries) => {
            let mut member = |entry: &'t Entry| {
                at.push(&entry.key);
                let shown = match at[..] {
                    ["upstreams", _, "command"] => command(&entry.node),
                    // Nobody has to call the environment of a program a secret.
                    ["upstreams", _, "env" | "headers"]
                    | ["telemetry", "headers"]
                    | ["audit", "sinks", "otlp_headers"] => shown(&entry.node, at, true),
                    _ => shown(&entry.node, at, hidden),
                };
                at.pop();
                (Json::string(&entry.key), shown)
            };
            let members: Vec<_> = entries.iter().map(&mut member).collect();
            object(&members)
        }
    }
}

/// A program and its arguments, of which some may be secrets.
fn command(node: &Node) -> Json {
    let mut before = "";
    let words = node.items().iter().map(|word| {
        let secret = written_out(word).is_some_and(|text| secrets::is_told_in(before, text));
        before = word.as_text().unwrap_or_default();
        shown(word, &mut Vec::new(), secret)
    });
    let words: Vec<Json> = words.collect();
    Json::array(&words)
}

fn scalar(scalar: &Scalar, hidden: bool) -> Json {
    match &scalar.origin {
        Origin::Referenced { written, .. } => Json::string(&without_parameters(written)),
        Origin::Written if scalar.is_null() => Json::literal("null"),
        Origin::Written if hidden => Json::string(SET),
        Origin::Written if scalar.plain => plain(scalar.text.as_str()),
        Origin::Written => Json::string(&without_parameters(&scalar.text)),
    }
}

/// An address without the values of the parameters in it that are called secrets (SECURITY 10).
fn without_parameters(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for secret in secrets::parameters(&text).into_iter().rev() {
        text.to_mut().replace_range(secret, SET);
    }
    text
}

/// What stands without quotes may be a number or a truth value.
fn plain(text: &str) -> Json {
    match text {
        "true" => Json::literal("true"),
        "false" => Json::literal("false"),
        _ => match text.parse::<i64>() {
            Ok(number) => Json::of(&number),
            Err(_) => Json::string(&without_parameters(text)),
        },
    }
}

fn object(members: &[(Json, Json)]) -> Json {
    let mut text = String::from("{");
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(key.as_str());
        text.push(':');
        text.push_str(value.as_str());
    }
    text.push('}');
    // Each part is a value, and keys of a mapping are each there once.
    Json::composed(text.into())
}
