//! Explanations: why something is decided as it is, what would change it, and who may do a thing.
//!
//! For people who write policies, on the command line. Says what policies say, names and conditions of others included, so none
//! of this is for clients.

use std::{collections::BTreeSet, sync::Arc};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Action, Ask, Denied, Permit, Policy, Prepared, Set, Subject,
    cases::Somebody,
    context::Given,
    laid::Laid,
    load::Compiled,
    mention::Mentions,
    possible::{EvalContext, Outcomes},
    represent,
    rule::{Constraint, Rule},
    slice::Slice,
};
use crate::{
    call::{Identity, IdentityKind},
    json::{Json, Node},
};

/// Policies that are told of at most, of those that have no say.
const MOST: usize = 20;

/// Why something is decided as it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// `allow`, `approval`, or the reason of the denial.
    pub decision: &'static str,
    /// Whether the item is listed for them.
    pub listed: bool,
    /// Who: `User::"ana"`.
    pub who: String,
    /// The groups and the tenant they are in, as far as policies name them: `Group::"dev"`.
    pub within: Vec<String>,
    /// What policies know of the item.
    pub item: About,
    /// What a caller is told when it is denied.
    pub text: Option<String>,
    /// The policies that decide.
    pub by: Vec<Arc<str>>,
    /// Each policy about this action and item, those that decide first.
    pub policies: Vec<Weighed>,
    /// What would change it, a sentence each.
    pub changes: Vec<String>,
}

/// What policies know of an item.
#[derive(Debug, Serialize, JsonSchema)]
pub struct About {
    /// Its name in policies: `Tool::"github_whoami"`.
    pub name: String,
    /// Whose it is.
    pub upstream: String,
    /// Its tags.
    pub tags: Vec<Arc<str>>,
    /// What is pinned of it, such as `read_only: true`.
    pub pinned: Vec<String>,
    /// The toolsets it is in.
    pub toolsets: Vec<Arc<str>>,
}

impl About {
    fn of(laid: &Laid) -> Self {
        let item = &laid.item;
        let pinned = item.pinned.pairs().into_iter();
        Self {
            name: format!("{}::{:?}", laid.type_name(), &*item.outward),
            upstream: item.upstream.as_str().to_owned(),
            tags: item.tags.clone(),
            pinned: pinned
                .filter_map(|(key, flag)| Some(format!("{key}: {}", flag?)))
                .collect(),
            toolsets: item.toolsets.clone(),
        }
    }
}

/// A policy, and what it has to say here.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Weighed {
    /// Its name.
    pub policy: Arc<str>,
    /// `permit` or `forbid`.
    pub effect: &'static str,
    /// Its file and line.
    pub place: String,
    /// Whether it applies, and if not, why not.
    pub state: State,
    /// Its conditions as written; empty where it has none.
    pub conditions: String,
}

/// Whether a policy applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It applies.
    Applies,
    /// Its conditions do not hold.
    ConditionsFail,
    /// It is meant for somebody else: whom.
    MeantFor(String),
    /// It cannot be evaluated: why.
    Fails(String),
}

/// Somebody who may do a thing, or whom policies keep from it although others like them may.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Able {
    /// Who: `User::"ana"`, `Group::"dev"`, or `anybody`.
    pub who: String,
    /// `yes`; `approval` where a person has to agree each time; `depends` where arguments or circumstances decide; or `no`, for
    /// somebody named who is an exception.
    pub may: &'static str,
    /// The policies that permit it; for `no`, those that keep them from it.
    pub by: Vec<Arc<str>>,
    /// On what it depends: conditions as written.
    pub conditions: Vec<String>,
}

/// A policy of a set, for a list of them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicySummary {
    /// Its name.
    pub policy: Arc<str>,
    /// `permit` or `forbid`.
    pub effect: &'static str,
    /// Its file and line.
    pub place: String,
    /// Whether somebody has to approve what it permits.
    pub approval: bool,
    /// Its conditions as written; empty where it has none.
    pub conditions: String,
}

impl Policy {
    /// The policies, in the order of their files and in that of their places there.
    pub fn summaries(&self) -> Vec<PolicySummary> {
        let set = self.set().map(|set| &set.compiled);
        let rules = set.into_iter().flat_map(|compiled| {
            let summary = |rule: &Rule| PolicySummary {
                policy: rule.name.clone(),
                effect: if rule.permits { "permit" } else { "forbid" },
                place: place(compiled, rule),
                approval: rule.approval.is_some(),
                conditions: conditions(compiled, rule),
            };
            compiled.rules.iter().map(summary)
        });
        rules.collect()
    }
}

impl Prepared {
    /// Why something is decided as it is.
    pub fn explain(&self, ask: &Ask<'_>) -> Explanation {
        let decided = self.decide(ask);
        let class = self.class(ask.who);
        let listed = self.lists(&class, ask.item, ask.circumstances.toolset);
        let (decision, text, by) = match &decided {
            Ok(permit) => (
                match permit.approval() {
                    Some(_) => "approval",
                    None => "allow",
                },
                None,
                permit.policies().to_vec(),
            ),
            Err(denied) => (
                denied.reason.word(),
                Some(denied.text.clone()),
                denied.policies.clone(),
            ),
        };
        let known = match self.policy().set() {
            Some(set) => self.item(set, &ask.item.as_used(ask.action)),
            None => Arc::new(Laid::alone(&ask.item)),
        };
        let mut explanation = Explanation {
            decision,
            listed,
            who: format!(
                "{}::{:?}",
                super::schema::type_of(ask.who.kind),
                &*ask.who.name
            ),
            within: Vec::new(),
            item: About::of(&known),
            text,
            by,
            policies: Vec::new(),
            changes: Vec::new(),
        };
        let Some(set) = self.policy().set() else {
            let change = if self.policy().is_unrestricted() {
                "no policy is configured, so everything is permitted"
            } else {
                "there is no set of policies that can be used, so nothing is permitted"
            };
            explanation.changes.push(change.to_owned());
            return explanation;
        };
        let item = known;
        let within = set.classes.ancestors(&class.0);
        explanation.within = within
            .map(|(ty, id)| format!("{ty}::{:?}", &**id))
            .collect();
        let eval = EvalContext {
            classes: &set.classes,
            who: &class.0,
            action: ask.action,
            item: &item,
            toolset: Some(ask.circumstances.toolset),
            given: None,
        };
        let about = |rule: &&Rule| {
            rule.actions.has(ask.action) && eval.resource(&rule.resource) != Outcomes::FALSE
        };
        let about = set.compiled.rules.iter().filter(about);
        let states: Vec<_> = about
            .map(|rule| (rule, state(set, rule, &eval, &item, ask)))
            .collect();
        let applies = |(rule, state): &(&Rule, State)| rule.permits && *state == State::Applies;
        let permitted = states.iter().any(applies);
        for (rule, state) in states {
            // Where somebody permits it already, another permit changes nothing.
            let moot = permitted
                && rule.permits
                && matches!(state, State::ConditionsFail | State::MeantFor(_));
            if !moot {
                explanation
                    .changes
                    .extend(change(set, rule, &state, &decided, ask));
            }
            explanation.policies.push(Weighed {
                policy: rule.name.clone(),
                effect: if rule.permits { "permit" } else { "forbid" },
                place: place(&set.compiled, rule),
                state,
                conditions: conditions(&set.compiled, rule),
            });
        }
        let order = |weighed: &Weighed| match weighed.state {
            State::Fails(_) => 0,
            State::Applies => 1,
            State::ConditionsFail => 2,
            State::MeantFor(_) => 3,
        };
        explanation.policies.sort_by_key(order);
        if explanation.policies.is_empty() {
            let item = &item.item.outward;
            explanation.changes.push(format!(
                "no policy is about `{}` of `{item}`: write one that permits it",
                ask.action.name()
            ));
        }
        explanation.policies.truncate(MOST);
        explanation.changes.truncate(MOST);
        explanation
    }

    /// Who may do a thing, of those whom policies and `groups.yaml` name, and anybody else; and who of the named may not, where
    /// anybody else of their kind may.
    pub fn who_can(&self, action: Action, item: Subject<'_>, toolset: Option<&str>) -> Vec<Able> {
        let Some(set) = self.policy().set() else {
            let able = Able {
                who: "anybody".into(),
                may: "yes",
                by: Vec::new(),
                conditions: Vec::new(),
            };
            let open = self.policy().is_unrestricted();
            return open.then_some(able).into_iter().collect();
        };
        let laid = self.item(set, &item.as_used(action));
        let able = |who: String, identity: &Identity, others_may: bool| {
            let class = self.class(identity);
            let eval = EvalContext {
                classes: &set.classes,
                who: &class.0,
                action,
                item: &laid,
                toolset: toolset.map(Some),
                given: None,
            };
            let able = able(set, who.clone(), &eval);
            able.or_else(|| others_may.then(|| exception(set, who, &eval)))
        };
        let (mut found, mut kinds) = (Vec::new(), Vec::new());
        for (kind, text) in [
            (
                IdentityKind::Anonymous,
                "anybody who is not asked who they are",
            ),
            (IdentityKind::User, "any user"),
            (IdentityKind::Agent, "any agent"),
            (IdentityKind::Key, "any key"),
        ] {
            if let Some(able) = able(text.to_owned(), &somebody(set, kind, None), false) {
                found.push(able);
                kinds.push(kind);
            }
        }
        let mut named: BTreeSet<(Arc<str>, Arc<str>)> = set.compiled.literals.clone();
        let groups = &set.compiled.groups;
        named.extend(groups.names().map(|name| ("Group".into(), name.clone())));
        for kind in [IdentityKind::User, IdentityKind::Agent, IdentityKind::Key] {
            let members = groups.members(kind);
            let ty = super::schema::type_of(kind);
            named.extend(members.map(|(name, _)| (ty.into(), name.clone())));
        }
        for (ty, id) in &named {
            let shown = format!("{ty}::{:?}", &**id);
            let identity = match &**ty {
                "User" => somebody(set, IdentityKind::User, Some(id)),
                "Agent" => somebody(set, IdentityKind::Agent, Some(id)),
                "Key" => somebody(set, IdentityKind::Key, Some(id)),
                "Group" => Identity {
                    groups: BTreeSet::from([id.clone()]),
                    ..somebody(set, IdentityKind::User, None)
                },
                "Tenant" => Identity {
                    tenant: Some(id.clone()),
                    ..somebody(set, IdentityKind::User, None)
                },
                _ => continue,
            };
            found.extend(able(shown, &identity, kinds.contains(&identity.kind)));
        }
        found
    }
}

/// Somebody of a kind; without a name, one whom no policy names.
fn somebody(set: &Set, kind: IdentityKind, name: Option<&Arc<str>>) -> Identity {
    let name = name.map_or_else(|| set.classes.nobody().to_string(), ToString::to_string);
    let (user, agent, key) = match kind {
        IdentityKind::User => (Some(name), None, None),
        IdentityKind::Agent => (None, Some(name), None),
        IdentityKind::Key => (None, None, Some(name)),
        IdentityKind::Anonymous => (None, None, None),
    };
    let somebody = Somebody {
        user,
        agent,
        key,
        ..Somebody::default()
    };
    somebody.only()
}

/// Whether somebody may, and on what it depends; `None` if not.
fn able(set: &Set, who: String, eval: &EvalContext<'_>) -> Option<Able> {
    let mut able = Able {
        who,
        may: "depends",
        by: Vec::new(),
        conditions: Vec::new(),
    };
    let (mut surely, mut doubt) = (false, false);
    // One permit that wants an approval is enough to need it, whatever others permit.
    let mut approval = Outcomes::FALSE;
    for rule in &set.compiled.rules {
        let outcomes = eval.rule(rule);
        if outcomes == Outcomes::FALSE {
            continue;
        }
        doubt |= outcomes.has(Outcomes::ERROR);
        if rule.permits {
            if outcomes == Outcomes::ERROR {
                return None;
            }
            surely |= outcomes == Outcomes::TRUE;
            if rule.approval.is_some() && approval != Outcomes::TRUE {
                approval = outcomes;
            }
            able.by.push(rule.name.clone());
        } else {
            if !outcomes.has(Outcomes::FALSE) {
                return None;
            }
            doubt = true;
        }
        if outcomes != Outcomes::TRUE {
            let effect = match (rule.permits, &rule.approval) {
                (true, None) => "permits",
                (true, Some(_)) => "permits, after approval,",
                (false, _) => "forbids",
            };
            let conditions = conditions(&set.compiled, rule);
            able.conditions
                .push(format!("`{}` {effect} it {conditions}", rule.name));
        }
    }
    if able.by.is_empty() {
        return None;
    }
    let may = match approval {
        Outcomes::TRUE => "approval",
        Outcomes::FALSE => "yes",
        _ => "depends",
    };
    if surely && !doubt && may != "depends" {
        able.may = may;
        able.conditions.clear();
    }
    Some(able)
}

/// Somebody who may not, and the policies that see to it.
fn exception(set: &Set, who: String, eval: &EvalContext<'_>) -> Able {
    let bars = |rule: &&Rule| {
        let outcomes = eval.rule(rule);
        // Of permits those count that cannot be evaluated, which denies.
        !outcomes.has(Outcomes::FALSE) && (!rule.permits || outcomes == Outcomes::ERROR)
    };
    let by = set.compiled.rules.iter().filter(bars);
    Able {
        who,
        may: "no",
        by: by.map(|rule| rule.name.clone()).collect(),
        conditions: Vec::new(),
    }
}

/// Whether a policy applies, by Cedar's own word on its conditions.
fn state(set: &Set, rule: &Rule, eval: &EvalContext<'_>, item: &Laid, ask: &Ask<'_>) -> State {
    if eval.principal(&rule.principal) == Outcomes::FALSE {
        return State::MeantFor(meant_for(&rule.principal));
    }
    let number = set.compiled.names.get(rule.cedar.id()).copied();
    let number = number.and_then(|number| u32::try_from(number).ok());
    let Some(slice) = Slice::of(&set.compiled, number.as_slice(), eval) else {
        return State::Fails("Cedar does not take it".into());
    };
    if slice.rules.is_empty() {
        return State::ConditionsFail;
    }
    let given = match Given::of(ask, item, &rule.mentions, &[]) {
        Ok(given) => given,
        Err(fault) => {
            return State::Fails(format!("`{}` {fault}", fault.path));
        }
    };
    let Some(response) = slice.ask(Some(&given)) else {
        return State::Fails("Cedar does not take it".into());
    };
    if let Some(error) = response.diagnostics().errors().next() {
        let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
        return State::Fails(error.inner().to_string());
    }
    if response.diagnostics().reason().next().is_some() {
        State::Applies
    } else {
        State::ConditionsFail
    }
}

/// What about a policy would change the decision.
fn change(
    set: &Set,
    rule: &Rule,
    state: &State,
    decided: &Result<Permit, Denied>,
    ask: &Ask<'_>,
) -> Option<String> {
    let name = &rule.name;
    let conditions = conditions(&set.compiled, rule);
    let looked = values(&rule.mentions, ask);
    match (decided, rule.permits, state) {
        (Ok(_), true, State::Applies) => None,
        (Ok(_), false, State::ConditionsFail) => {
            Some(format!("`{name}` would forbid it {conditions}{looked}"))
        }
        (Err(_), false, State::Applies) => Some(format!(
            "`{name}` forbids it, whatever others permit{}{looked}",
            if conditions.is_empty() {
                String::new()
            } else {
                format!(": {conditions}")
            }
        )),
        (Err(_), _, State::Fails(why)) => {
            Some(format!("`{name}` cannot be evaluated, which denies: {why}"))
        }
        (Err(_), true, State::ConditionsFail) => {
            Some(format!("`{name}` would permit it {conditions}{looked}"))
        }
        (Err(_), true, State::MeantFor(whom)) => {
            let tail = if conditions.is_empty() {
                String::new()
            } else {
                format!(", {conditions}")
            };
            Some(format!("`{name}` permits it to {whom}{tail}"))
        }
        _ => None,
    }
}

/// The values of arguments that a policy looks at, as they are here.
fn values(mentions: &Mentions, ask: &Ask<'_>) -> String {
    let root = ask.arguments.map(Json::root);
    let arguments = mentions.args.below.keys().map(|name| {
        let value = root.and_then(|root| root.member(name)).map(Node::raw);
        format!("`{name}` is {}", value.unwrap_or("absent"))
    });
    let tags = mentions
        .tags
        .iter()
        .map(|tag| match represent::tag(root, tag) {
            Ok(Some(text)) => format!("`{tag}` is {text:?}"),
            Ok(None) => format!("`{tag}` is absent"),
            Err(fault) => format!("`{tag}` {fault}"),
        });
    let told: Vec<String> = arguments.chain(tags).collect();
    if told.is_empty() {
        String::new()
    } else {
        format!(" ({} here)", told.join(", "))
    }
}

/// Whom a scope means, in words.
fn meant_for(constraint: &Constraint) -> String {
    let whole = |(ty, id): &(Arc<str>, Arc<str>)| format!("{ty}::{:?}", &**id);
    match constraint {
        Constraint::Any => "everybody".into(),
        Constraint::Is(ty) => format!("every {ty}"),
        Constraint::Eq(literal) => whole(literal),
        Constraint::In(literal) => format!("members of {}", whole(literal)),
        Constraint::IsIn(ty, literal) => format!("every {ty} in {}", whole(literal)),
    }
}

/// The conditions of a policy as they are written: from the end of its scope.
fn conditions(compiled: &Compiled, rule: &Rule) -> String {
    let text = compiled.files[rule.file].text.get(rule.span.clone());
    let text = text.unwrap_or_default().trim_end_matches(';');
    if rule.conditions.is_empty() {
        return String::new();
    }
    // Annotations stand before the scope, so the scope ends where as many brackets are closed as were opened in it.
    let start = scope_end(text).unwrap_or(0);
    let lines = text.get(start..).unwrap_or_default().lines();
    let lines = lines.map(|line| line.split(" //").next().unwrap_or_default().trim());
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect();
    lines.join(" ")
}

/// Where the scope of a policy ends: past the closing bracket after `permit` or `forbid`.
fn scope_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    let mut opened = None;
    let mut depth = 0_usize;
    let mut word = 0;
    for (at, char) in text.char_indices() {
        if quoted {
            quoted = escaped || char != '"';
            escaped = !escaped && char == '\\';
            continue;
        }
        match char {
            '"' => quoted = true,
            '(' => {
                let name = text.get(word..at).unwrap_or_default().trim();
                if depth == 0
                    && ["permit", "forbid"]
                        .iter()
                        .any(|effect| name.ends_with(effect))
                {
                    opened = Some(at);
                }
                depth += 1;
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && opened.is_some() {
                    return Some(at + 1);
                }
                word = at + 1;
            }
            _ => {}
        }
    }
    None
}

fn place(compiled: &Compiled, rule: &Rule) -> String {
    format!("{}:{}", compiled.files[rule.file].name, rule.place.0)
}
