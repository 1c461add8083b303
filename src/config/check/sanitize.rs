//! `sanitize:`: actions that fit their direction and their class, and rules that can be run.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::{Check, globs, secs};
use crate::{
    config::{
        raw::Upstream,
        raw::sanitize::{ActionWord, Choice, Classes, OwnRule, Sanitize},
        units::Ordered,
    },
    findings::{Action, Direction},
    protocol::UpstreamId,
    sanitize::{
        Class,
        rules::{self, Actions, Budget, Rules, UpstreamRules},
    },
};

/// The most rules of one's own.
const RULES: usize = 256;
/// The longest pattern, in bytes.
const PATTERN: usize = 2_048;
/// The most memory of one compiled pattern, in bytes.
const COMPILED: usize = 1 << 20;

/// What the operator decided about content.
pub(super) fn rules(check: &mut Check<'_>, raw: &Sanitize, upstreams: &Ordered<Upstream>) -> Rules {
    let default = Rules::default();
    let at = |key: &'static str| ["sanitize", key];
    let actions = classes(
        check,
        &["sanitize", "classes"],
        &raw.classes,
        default.actions,
    );
    let brief = (std::time::Duration::from_millis(1), secs(10));
    let mut own = Vec::new();
    for (index, rule) in raw.rules.iter().enumerate() {
        own.extend(own_rule(check, index, rule, &raw.rules[..index]));
    }
    if raw.rules.len() > RULES {
        check.wrong(
            &at("rules"),
            "more rules than fit",
            format!("at most {RULES}"),
        );
    }
    for (index, host) in raw.hosts.iter().enumerate() {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        if host.is_empty() || host.len() > 253 || !host.bytes().all(plain) {
            let index = index.to_string();
            check.wrong(
                &["sanitize", "hosts", &index],
                "not a host name",
                "such as `img.example.com`, without scheme or port",
            );
        }
    }
    Rules {
        actions,
        upstreams: upstreams
            .0
            .iter()
            .filter_map(|(key, raw)| {
                Some((UpstreamId::parse(key)?, upstream(check, key, raw, actions)))
            })
            .collect(),
        own,
        hosts: raw
            .hosts
            .iter()
            .map(|host| host.to_ascii_lowercase())
            .collect(),
        media_bytes: check.size(
            &at("media"),
            raw.media,
            default.media_bytes,
            (1 << 10, 64 << 20),
        ),
        budget: Budget {
            per_mib: check.time(
                &at("time_per_mib"),
                raw.time_per_mib,
                default.budget.per_mib,
                brief,
            ),
            base: check.time(&at("time"), raw.time, default.budget.base, brief),
        },
    }
}

fn upstream(check: &mut Check<'_>, key: &str, raw: &Upstream, actions: Actions) -> UpstreamRules {
    let path = ["upstreams", key, "sanitize", "classes"];
    let actions = classes(check, &path, &raw.sanitize.classes, actions);
    let mut tools = Vec::new();
    for (glob, raw) in &raw.sanitize.tools.0 {
        let path = ["upstreams", key, "sanitize", "tools", glob.as_str()];
        globs(check, &path[..4], std::slice::from_ref(glob));
        tools.push((glob.clone(), classes(check, &path, raw, actions)));
    }
    UpstreamRules { actions, tools }
}

/// `actions`, with what `raw` says instead.
fn classes(check: &mut Check<'_>, path: &[&str], raw: &Classes, mut actions: Actions) -> Actions {
    for (class, choice) in [
        (Class::Hidden, raw.hidden_unicode),
        (Class::Terminal, raw.terminal_control),
        (Class::Own, raw.own_credential),
        (Class::Secret, raw.secret),
        (Class::WeakSecret, raw.weak_secret),
        (Class::PersonalChecked, raw.personal_checked),
        (Class::Personal, raw.personal),
        (Class::Active, raw.active_content),
        (Class::Injection, raw.injection),
        (Class::Media, raw.media),
        (Class::Elicitation, raw.elicitation),
    ] {
        let path: Vec<&str> = path.iter().copied().chain([class.word()]).collect();
        match choice {
            None => {}
            Some(Choice::All(word)) => {
                let action = action(word);
                if let Some(action) = action {
                    fits_class(check, &path, class, action);
                }
                actions.set_all(class, action);
            }
            Some(Choice::Each(each)) => {
                for (key, direction, word) in [
                    ("arguments", Direction::Arguments, each.arguments),
                    ("results", Direction::Results, each.results),
                    ("definitions", Direction::Definitions, each.definitions),
                ] {
                    let Some(word) = word else { continue };
                    let path: Vec<&str> = path.iter().copied().chain([key]).collect();
                    let action = action(word);
                    if let Some(action) = action {
                        fits_direction(check, &path, action, direction);
                        fits_class(check, &path, class, action);
                    }
                    actions.set(class, direction, action);
                }
            }
        }
    }
    actions
}

fn fits_direction(check: &mut Check<'_>, path: &[&str], action: Action, direction: Direction) {
    if rules::fitting(action, direction) == action {
        return;
    }
    let (message, hint) = match direction {
        Direction::Arguments => (
            "arguments are sent as they came or not at all",
            "`off`, `flag` or `block`",
        ),
        Direction::Results => (
            "results are not kept back until somebody approves them",
            "`off`, `flag`, `remove`, `neutralise`, `redact` or `block`",
        ),
        Direction::Definitions => (
            "definitions are offered as they came or not at all",
            "`off`, `flag` or `quarantine`",
        ),
    };
    check.wrong(path, message, hint);
}

fn fits_class(check: &mut Check<'_>, path: &[&str], class: Class, action: Action) {
    let whole = matches!(class, Class::Media | Class::Elicitation);
    if action == Action::Neutralise && class != Class::Active {
        check.wrong(
            path,
            "only active content can be made inert",
            "`redact` hides it",
        );
    } else if whole && matches!(action, Action::Remove | Action::Redact) {
        check.wrong(
            path,
            "this class is not a piece of text",
            "`off`, `flag` or `block`",
        );
    }
}

const fn action(word: ActionWord) -> Option<Action> {
    Some(match word {
        ActionWord::Off => return None,
        ActionWord::Flag => Action::Flag,
        ActionWord::Remove => Action::Remove,
        ActionWord::Neutralise => Action::Neutralise,
        ActionWord::Redact => Action::Redact,
        ActionWord::Block => Action::Block,
        ActionWord::Quarantine => Action::Quarantine,
    })
}

/// A rule of one's own, if all of it is right; else everything that is wrong with it.
fn own_rule(
    check: &mut Check<'_>,
    index: usize,
    raw: &OwnRule,
    before: &[OwnRule],
) -> Option<rules::OwnRule> {
    let index = index.to_string();
    let index = index.as_str();
    let around = ["sanitize", "rules", index];
    let name = match &raw.name {
        Some(name) => own_name(check, index, name, before),
        None => {
            check.missing(&around, "a rule without `name`", "such as `project_name`");
            None
        }
    };
    let pattern = match &raw.pattern {
        Some(pattern) => own_pattern(check, index, pattern),
        None => {
            check.missing(&around, "a rule without `pattern`", "a regular expression");
            None
        }
    };
    let action = own_action(check, index, raw.action);
    Some(rules::OwnRule {
        name: name?,
        pattern: pattern?,
        action: action?,
    })
}

fn own_name(
    check: &mut Check<'_>,
    index: &str,
    name: &str,
    before: &[OwnRule],
) -> Option<Arc<str>> {
    let path = ["sanitize", "rules", index, "name"];
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    if !name.starts_with(|first: char| first.is_ascii_lowercase())
        || name.len() > 64
        || digits > 4
        || !name.bytes().all(plain)
    {
        check.wrong(
            &path,
            "not a name",
            "lower-case letters, `_` and at most 4 digits, 64 characters at most",
        );
        return None;
    }
    let taken = |rule: &OwnRule| rule.name.as_deref() == Some(name);
    if before.iter().any(taken) {
        check.wrong(
            &path,
            "two rules of one name",
            "each needs a name of its own",
        );
    }
    Some(name.into())
}

fn own_action(check: &mut Check<'_>, index: &str, raw: Option<ActionWord>) -> Option<Action> {
    match raw {
        None => Some(Action::Redact),
        Some(
            word @ (ActionWord::Flag | ActionWord::Remove | ActionWord::Redact | ActionWord::Block),
        ) => action(word),
        Some(ActionWord::Off | ActionWord::Neutralise | ActionWord::Quarantine) => {
            check.wrong(
                &["sanitize", "rules", index, "action"],
                "not what a rule can do",
                "`flag`, `remove`, `redact` or `block`",
            );
            None
        }
    }
}

fn own_pattern(check: &mut Check<'_>, index: &str, pattern: &str) -> Option<Regex> {
    let path = ["sanitize", "rules", index, "pattern"];
    if pattern.len() > PATTERN {
        check.wrong(
            &path,
            "a pattern that is too long",
            format!("at most {PATTERN} bytes"),
        );
        return None;
    }
    let compiled = RegexBuilder::new(pattern)
        .size_limit(COMPILED)
        .dfa_size_limit(COMPILED)
        .build();
    let pattern = match compiled {
        Ok(pattern) => pattern,
        Err(error) => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let last = last.trim_start_matches("error: ");
            check.wrong(
                &path,
                format!("not a pattern that can be run: {last}"),
                "no look-around and no back-references; one search is linear in the length of the text",
            );
            return None;
        }
    };
    if pattern.is_match("") {
        check.wrong(
            &path,
            "a pattern that matches nothing at all",
            "it would be found everywhere; ask for at least one character",
        );
        return None;
    }
    Some(pattern)
}
