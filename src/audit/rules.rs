//! How much of a call is kept: the content levels of SECURITY 8, by rules of which the first that means a call counts.

use crate::{glob, protocol::UpstreamId};

/// How much of a call is kept, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// No record. Never for what is refused.
    None,
    /// Who, what, when, by which decision, and how it ended; arguments by size and keyed digest.
    #[default]
    Metadata,
    /// Also the arguments, as they were sent.
    Request,
    /// Also the result, as the client got it.
    RequestResponse,
}

/// The rules in order.
#[derive(Debug, Clone, Default)]
pub struct Rules(pub Vec<Rule>);

/// One rule. What is empty means everything.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    /// Methods, by glob.
    pub methods: Vec<String>,
    /// Tools, prompts and resources by the name or URI that clients use, by glob.
    pub names: Vec<String>,
    /// Upstreams.
    pub upstreams: Vec<UpstreamId>,
    /// What is kept.
    pub level: Level,
}

impl Rules {
    /// What is kept of a call; [`Level::Metadata`] where no rule means it.
    pub fn level(&self, method: &str, name: Option<&str>, upstream: Option<&UpstreamId>) -> Level {
        let means = |rule: &&Rule| {
            (rule.methods.is_empty() || glob::any(&rule.methods, method))
                && (rule.names.is_empty() || name.is_some_and(|name| glob::any(&rule.names, name)))
                && (rule.upstreams.is_empty()
                    || upstream.is_some_and(|upstream| rule.upstreams.contains(upstream)))
        };
        self.0
            .iter()
            .find(means)
            .map_or_else(Level::default, |rule| rule.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(methods: &[&str], names: &[&str], level: Level) -> Rule {
        let owned = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect();
        Rule {
            methods: owned(methods),
            names: owned(names),
            upstreams: Vec::new(),
            level,
        }
    }

    #[test]
    fn the_first_rule_that_means_a_call_counts() {
        let rules = Rules(vec![
            rule(&["tools/call"], &["git_*"], Level::Request),
            rule(&["*/list"], &[], Level::None),
            rule(&["tools/*"], &[], Level::RequestResponse),
        ]);
        let level = |method, name| rules.level(method, name, None);
        assert_eq!(level("tools/call", Some("git_log")), Level::Request);
        assert_eq!(level("tools/call", Some("time")), Level::RequestResponse);
        assert_eq!(level("tools/list", None), Level::None);
        assert_eq!(level("prompts/get", Some("git_log")), Level::Metadata);
    }

    #[test]
    fn a_rule_for_an_upstream_means_no_call_that_goes_nowhere() {
        let upstream = UpstreamId::parse("git").unwrap();
        let rules = Rules(vec![Rule {
            upstreams: vec![upstream.clone()],
            level: Level::None,
            ..Rule::default()
        }]);
        let level = |upstream| rules.level("tools/call", Some("x"), upstream);
        assert_eq!(level(Some(&upstream)), Level::None);
        assert_eq!(level(None), Level::Metadata);
    }
}
