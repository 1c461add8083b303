//! What is done about what is found: by class, by direction, and, where the operator says so, by upstream and by tool.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use regex::Regex;

use super::Class;
use crate::{
    findings::{Action, Direction},
    glob,
    protocol::UpstreamId,
};

/// What is done about each class in each direction; `None` is nothing at all. The default is the table of SECURITY 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actions([[Option<Action>; 3]; Class::ALL.len()]);

impl Default for Actions {
    fn default() -> Self {
        use Action::{Block, Flag, Neutralise, Quarantine, Redact, Remove};
        let row = |class: Class| match class {
            Class::Hidden | Class::Terminal => [Some(Block), Some(Remove), Some(Quarantine)],
            Class::Own | Class::Secret => [Some(Block), Some(Redact), Some(Quarantine)],
            Class::WeakSecret => [Some(Flag); 3],
            Class::PersonalChecked => [Some(Flag), Some(Redact), Some(Flag)],
            Class::Personal => [None; 3],
            Class::Active => [Some(Flag), Some(Neutralise), Some(Quarantine)],
            Class::Injection => [Some(Flag), Some(Flag), Some(Quarantine)],
            Class::Media => [Some(Flag), Some(Block), Some(Quarantine)],
            Class::Elicitation => [Some(Block), Some(Block), None],
        };
        Self(Class::ALL.map(row))
    }
}

impl Actions {
    /// What is done.
    pub const fn of(&self, class: Class, direction: Direction) -> Option<Action> {
        self.0[class as usize][direction as usize]
    }

    /// Whether nothing is looked for.
    pub fn are_off(&self, direction: Direction) -> bool {
        self.0.iter().all(|of| of[direction as usize].is_none())
    }

    /// Decides what is done. Nothing but whole refusals and flags fits arguments, which are never altered (SECURITY 3, I1),
    /// and definitions: see [`fitting`].
    pub const fn set(&mut self, class: Class, direction: Direction, action: Option<Action>) {
        self.0[class as usize][direction as usize] = match action {
            Some(action) => Some(fitting(action, direction)),
            None => None,
        };
    }

    /// Decides it for all directions at once.
    pub fn set_all(&mut self, class: Class, action: Option<Action>) {
        for direction in [
            Direction::Arguments,
            Direction::Results,
            Direction::Definitions,
        ] {
            self.set(class, direction, action);
        }
    }
}

/// The action that is nearest to `action` in this direction: what would alter arguments blocks them, what would alter a
/// definition, or block it, withholds it, and what would withhold a result blocks it.
pub const fn fitting(action: Action, direction: Direction) -> Action {
    match (direction, action) {
        (_, Action::Flag) => Action::Flag,
        (Direction::Arguments, _) | (Direction::Results, Action::Quarantine) => Action::Block,
        (Direction::Results, action) => action,
        (Direction::Definitions, _) => Action::Quarantine,
    }
}

/// A rule of the operator's own.
#[derive(Debug, Clone)]
pub struct OwnRule {
    /// Its name, as in `[redacted:NAME]`.
    pub name: Arc<str>,
    /// What it matches, without backtracking: one search is linear in the length of the text. All of them together may be
    /// quadratic, so that the clock is looked at between them.
    pub pattern: Regex,
    /// What is done about it, as far as it fits the direction.
    pub action: Action,
}

impl PartialEq for OwnRule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.pattern.as_str() == other.pattern.as_str()
            && self.action == other.action
    }
}

impl Eq for OwnRule {}

/// What the operator decided about one upstream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamRules {
    /// For everything of it.
    pub actions: Actions,
    /// For tools of these names, by glob over original names; the first that matches holds.
    pub tools: Vec<(String, Actions)>,
}

/// Everything that the operator decided about content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Where nothing else is said.
    pub actions: Actions,
    /// By upstream; each complete, with what holds everywhere in it.
    pub upstreams: BTreeMap<UpstreamId, UpstreamRules>,
    /// Rules of the operator's own.
    pub own: Vec<OwnRule>,
    /// Hosts that images may be loaded from. Default: none.
    pub hosts: Vec<String>,
    /// The most bytes of one image, sound or other media, decoded. Default: 8 MiB.
    pub media_bytes: usize,
    /// What a scan may take.
    pub budget: Budget,
}

/// What a scan may take (SECURITY 6): whatever is not done by then is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// For each MiB of content. Default: 50 ms.
    pub per_mib: Duration,
    /// Beside that. Default: 20 ms.
    pub base: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            per_mib: Duration::from_millis(50),
            base: Duration::from_millis(20),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            actions: Actions::default(),
            upstreams: BTreeMap::new(),
            own: Vec::new(),
            hosts: Vec::new(),
            media_bytes: 8 << 20,
            budget: Budget::default(),
        }
    }
}

impl Rules {
    /// What is done about content of one item of one upstream. `tool` is the original name, where it is of a tool.
    pub fn actions(&self, upstream: Option<&UpstreamId>, tool: Option<&str>) -> &Actions {
        let Some(rules) = upstream.and_then(|upstream| self.upstreams.get(upstream)) else {
            return &self.actions;
        };
        let own = tool.and_then(|tool| {
            rules
                .tools
                .iter()
                .find(|(glob, _)| glob::matches(glob, tool))
        });
        own.map_or(&rules.actions, |(_, actions)| actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_table() {
        let rows: Vec<String> = Class::ALL
            .into_iter()
            .map(|class| {
                let words = [
                    Direction::Arguments,
                    Direction::Results,
                    Direction::Definitions,
                ]
                .map(|direction| {
                    Actions::default()
                        .of(class, direction)
                        .map_or("off", Action::word)
                });
                format!("{} {}", class.word(), words.join(" "))
            })
            .collect();
        assert_eq!(
            rows,
            [
                "hidden_unicode block remove quarantine",
                "terminal_control block remove quarantine",
                "own_credential block redact quarantine",
                "secret block redact quarantine",
                "weak_secret flag flag flag",
                "personal_checked flag redact flag",
                "personal off off off",
                "active_content flag neutralise quarantine",
                "injection flag flag quarantine",
                "media flag block quarantine",
                "elicitation block block off",
            ]
        );
    }

    #[test]
    fn arguments_are_never_altered_whatever_is_asked_for() {
        for action in Action::ALL {
            let fit = fitting(action, Direction::Arguments);
            assert!(matches!(fit, Action::Block | Action::Flag), "{action:?}");
        }
        assert_eq!(fitting(Action::Redact, Direction::Results), Action::Redact);
    }

    #[test]
    fn a_tool_goes_by_its_own_rules_then_by_its_upstreams_then_by_all() {
        let upstream = UpstreamId::parse("a").unwrap();
        let other = UpstreamId::parse("b").unwrap();
        let mut rules = Rules::default();
        let mut own = UpstreamRules::default();
        own.actions.set_all(Class::Secret, Some(Action::Flag));
        let mut tool = own.actions;
        tool.set_all(Class::Secret, None);
        own.tools.push(("read_*".into(), tool));
        rules.upstreams.insert(upstream.clone(), own);
        let action = |upstream, tool| {
            rules
                .actions(Some(upstream), tool)
                .of(Class::Secret, Direction::Results)
        };
        assert_eq!(action(&upstream, Some("read_file")), None);
        assert_eq!(action(&upstream, Some("write")), Some(Action::Flag));
        assert_eq!(action(&upstream, None), Some(Action::Flag));
        assert_eq!(action(&other, Some("read_file")), Some(Action::Redact));
    }
}
