//! A record of an operation as it is read back: by queries, by the admin API and by exports.
//!
//! Members that are not listed here, such as those of a newer version, are passed over; whoever needs them has the text of the record.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de::IgnoredAny};

/// One record. Members that a kind of record does not have are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// What happened: `call`, or the kind of another event.
    pub event: String,
    /// `decision` or `outcome` of a call, or `both` in one.
    pub stage: Option<String>,
    /// When, in UTC.
    pub time: String,
    /// Which call: the two records of one share it, and so does what the client was told.
    pub call: Option<String>,
    /// The method.
    pub method: Option<String>,
    /// Who.
    pub principal: Who,
    /// Where it went.
    pub target: Target,
    /// `permit` or `deny`.
    pub decision: Option<String>,
    /// Why not.
    pub reason: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// What was found in the content.
    pub findings: Vec<Found>,
    /// The address that the request came from, as trusted proxies tell it.
    pub address: Option<String>,
    /// The JSON-RPC id as it was written, without secrets.
    pub request: Option<String>,
    /// The protocol revision.
    pub revision: Option<String>,
    /// The policies that decided.
    pub policies: Vec<String>,
    /// The limit that it met.
    pub limit: Option<String>,
    /// Of a listen: the addresses that are watched, and those that were asked for and are not.
    pub watched: Vec<String>,
    /// See `watched`.
    pub not_watched: Vec<String>,
    /// The approval that it went by.
    pub approval: Approval,
    /// The trace that it is part of.
    pub trace: Trace,
    /// What else a record tells that is of no call.
    pub detail: Detail,
}

/// What a record tells that is of no call, by name, as far as it is text; what is within something by both names, `principal.name`.
///
/// Such records say in their own words what those of calls have members for: the lists below have the names, for whoever shows a
/// record and for whoever looks one up, so that what is shown is found. The index of a segment lists all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    texts: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
}

impl Detail {
    /// Who did it.
    pub const WHO: &[&str] = &["by", "principal.name", "principal.owner"];
    /// What was done.
    pub const WHAT: &[&str] = &["operation", "methods"];
    /// To which upstream.
    pub const UPSTREAM: &[&str] = &["upstream", "subject"];
    /// To what, by name.
    pub const NAME: &[&str] = &["subject", "item", "name"];
    /// What came of it.
    pub const RESULT: &[&str] = &["outcome", "state", "action"];
    /// Why.
    pub const REASON: &[&str] = &["reason", "rule", "cause", "reasons", "checks", "found.rule"];
    /// What was found.
    pub const FINDING: &[&str] = &["class", "rule", "found.class", "found.rule"];
    /// What the answers refer to that it tells of.
    pub const REFS: &[&str] = &["refs"];

    /// The first of these that is told.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|name| self.texts.get(*name))
            .map(String::as_str)
    }

    /// Everything that is told under these names, one by one.
    pub fn all(&self, names: &[&str]) -> impl Iterator<Item = &str> {
        names
            .iter()
            .flat_map(|name| {
                let listed = self.lists.get(*name).into_iter().flatten();
                self.texts.get(*name).into_iter().chain(listed)
            })
            .map(String::as_str)
    }

    /// Whether this is told under one of these names.
    pub fn says(&self, names: &[&str], text: &str) -> bool {
        self.all(names).any(|told| told == text)
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut detail = Self::default();
        for (name, told) in BTreeMap::<String, Told>::deserialize(deserializer)? {
            match told {
                Told::Text(text) => _ = detail.texts.insert(name, text),
                Told::Texts(texts) => _ = detail.lists.insert(name, texts),
                Told::Within(members) => {
                    let texts = texts_of(&name, members);
                    detail.texts.extend(texts);
                }
                Told::Each(all) => {
                    for (name, text) in all.into_iter().flat_map(|it| texts_of(&name, it)) {
                        detail.lists.entry(name).or_default().push(text);
                    }
                }
                Told::Other(_) => {}
            }
        }
        Ok(detail)
    }
}

/// One of the details.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Text(String),
    Texts(Vec<String>),
    Within(BTreeMap<String, Inner>),
    Each(Vec<BTreeMap<String, Inner>>),
    Other(IgnoredAny),
}

/// A member of one of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Inner {
    Text(String),
    Other(IgnoredAny),
}

/// The texts among the members of what has this name, each by both names.
fn texts_of(
    name: &str,
    members: BTreeMap<String, Inner>,
) -> impl Iterator<Item = (String, String)> {
    members
        .into_iter()
        .filter_map(move |(member, told)| match told {
            Inner::Text(text) => Some((format!("{name}.{member}"), text)),
            Inner::Other(_) => None,
        })
}

/// That a person agreed, in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Approval {
    /// What the approval is known by, to its client too.
    pub reference: Option<String>,
}

/// A trace, in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Trace {
    /// Its id, in 32 hexadecimal digits.
    pub trace: Option<String>,
    /// The span that the client says it called in, in 16.
    pub parent: Option<String>,
    /// The call's own span, in 16.
    pub span: Option<String>,
}

/// Who, in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Who {
    /// Who vouches for them.
    pub issuer: Option<String>,
    /// Their name.
    pub name: String,
    /// Who answers for them.
    pub owner: Option<String>,
    /// Their tenant.
    pub tenant: Option<String>,
    /// The client that acts for them.
    pub client: Option<String>,
    /// The groups they are in, as far as they were used.
    pub groups: Vec<String>,
}

/// Where it went, in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Target {
    /// The name or the URI that the client used.
    pub exposed: Option<String>,
    /// The name that the upstream knows.
    pub name: Option<String>,
    /// The upstream.
    pub upstream: Option<String>,
}

/// What was found, in a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Its class.
    pub class: String,
    /// Its rule.
    pub rule: String,
}

impl Entry {
    /// Reads an event back; `None` if it is none of ours.
    pub fn parse(event: &[u8]) -> Option<Self> {
        serde_json::from_slice(event).ok()
    }
}
