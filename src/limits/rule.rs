//! Rules as they are configured: whom they meet, by what they count, and how much they let through.

use std::{fmt, time::Duration};

use super::{Rate, quota};
use crate::glob;

/// By what a rule tells calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// The principal; patterns look at the name that policies know it by.
    Principal,
    /// A group that the credential names; a call counts once for each.
    Group,
    /// The tenant.
    Tenant,
    /// The OAuth client that acts.
    Client,
    /// The peer address; of IPv6 the first 64 bits, which one customer has.
    Address,
    /// The toolset whose endpoint was called.
    Toolset,
    /// The upstream that the call goes to.
    Upstream,
    /// The tool that is called, by its name at the endpoint that serves everything, whichever endpoint was used.
    Tool,
    /// The method.
    Method,
}

impl Dimension {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Principal, "principal"),
        (Self::Group, "group"),
        (Self::Tenant, "tenant"),
        (Self::Client, "client"),
        (Self::Address, "address"),
        (Self::Toolset, "toolset"),
        (Self::Upstream, "upstream"),
        (Self::Tool, "tool"),
        (Self::Method, "method"),
    ];

    /// Every word.
    pub fn words() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(|(_, word)| word)
    }

    /// The dimension of this word.
    pub fn parse(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known)| *known == word).map(|(one, _)| one)
    }

    /// The word.
    pub fn as_str(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(one, _)| *one == self)
            .map_or("", |(_, word)| word)
    }

    /// Whether it is known only when a call has found its way.
    pub const fn needs_route(self) -> bool {
        matches!(self, Self::Upstream | Self::Tool)
    }
}

/// Which values of a dimension a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// This one.
    Exactly(Box<str>),
    /// Those that look so: `*` is any run of characters, `?` any one.
    Like(Glob),
}

/// A pattern with stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Box<str>);

/// The most bytes of a pattern.
const GLOB_BYTES: usize = 1_024;

impl Glob {
    /// The pattern that is spelled so; `None` when it is too long to be meant (1 KiB).
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() <= GLOB_BYTES).then(|| Self(text.into()))
    }
}

impl Pattern {
    /// Whether a value is meant. At most the product of both lengths in steps.
    pub fn means(&self, value: &str) -> bool {
        match self {
            Self::Exactly(text) => **text == *value,
            Self::Like(Glob(text)) => glob::matches(text, value),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(text) => write!(f, "{text}"),
            Self::Like(Glob(text)) => write!(f, "{text}"),
        }
    }
}

/// How much a rule lets through, for each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many in a time.
    Rate(Rate),
    /// So many at once.
    Concurrency(Concurrency),
    /// So many in a UTC day, at most [`Rule::MOST_DAILY`].
    Daily(u64),
}

/// So many at once, and how many wait, for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// At once; at least 1.
    pub calls: usize,
    /// Waiting; 0: the next is refused at once.
    pub queue: usize,
    /// How long one waits.
    pub wait: Duration,
}

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// By what calls are told apart; nothing: all count together. In order, each once.
    pub per: Vec<Dimension>,
    /// Which calls are meant: those that each of these means. In order of dimensions, each once.
    pub only: Vec<(Dimension, Pattern)>,
    /// How much.
    pub amount: Amount,
}

impl Rule {
    /// The most that a quota may be.
    pub const MOST_DAILY: u64 = quota::MOST;

    /// Whether it can be asked only when a call has found its way.
    pub fn needs_route(&self) -> bool {
        let mut dimensions = self.dimensions();
        dimensions.any(Dimension::needs_route)
    }

    /// Whether another rule counts the same by the same, so that they share meters: only how much may differ.
    pub fn meters_like(&self, other: &Self) -> bool {
        let kind = |rule: &Self| match rule.amount {
            Amount::Rate(_) => 0,
            Amount::Concurrency(_) => 1,
            Amount::Daily(_) => 2,
        };
        self.per == other.per && self.only == other.only && kind(self) == kind(other)
    }

    pub(super) fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        let only = self.only.iter().map(|(dimension, _)| *dimension);
        self.per.iter().copied().chain(only)
    }
}

/// How it is called in refusals, metrics and on the admin page: `30/min per principal and tool (tool github_*)`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            Amount::Rate(rate) => write!(f, "{rate}")?,
            Amount::Concurrency(most) => write!(f, "{} at once", most.calls)?,
            Amount::Daily(most) => write!(f, "{most} a day")?,
        }
        for (at, dimension) in self.per.iter().enumerate() {
            let joint = if at == 0 { "per" } else { "and" };
            write!(f, " {joint} {}", dimension.as_str())?;
        }
        for (at, (dimension, pattern)) in self.only.iter().enumerate() {
            let joint = if at == 0 { " (" } else { ", " };
            write!(f, "{joint}{} {pattern}", dimension.as_str())?;
        }
        f.write_str(if self.only.is_empty() { "" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_shells_mean() {
        for (glob, text, means) in [
            ("*", "", true),
            ("github_*", "github_list", true),
            ("github_*", "xgithub_list", false),
            ("a?c", "aöc", true),
            ("a.c", "abc", false),
            ("[a]", "a", false),
            ("*\n*", "x\ny", true),
        ] {
            let glob = Pattern::Like(Glob::parse(glob).unwrap());
            assert_eq!(glob.means(text), means, "{glob} {text}");
        }
        assert!(!Pattern::Exactly("a*".into()).means("ab"));
    }

    #[test]
    fn a_rule_is_called_by_what_it_does() {
        let rate = Rate {
            calls: 30,
            period: Duration::from_secs(60),
            burst: 30,
        };
        let rule = Rule {
            per: vec![Dimension::Principal, Dimension::Tool],
            only: vec![(
                Dimension::Tool,
                Pattern::Like(Glob::parse("github_*").unwrap()),
            )],
            amount: Amount::Rate(rate),
        };
        assert_eq!(
            rule.to_string(),
            "30/min per principal and tool (tool github_*)"
        );
        let all = Rule {
            per: Vec::new(),
            only: Vec::new(),
            amount: Amount::Daily(5),
        };
        assert_eq!(all.to_string(), "5 a day");
        assert!(!all.meters_like(&rule) && all.meters_like(&all.clone()));
    }
}
