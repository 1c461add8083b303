//! `groups.yaml`: memberships that no credential carries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use super::problem::Problem;
use crate::call::IdentityKind;

/// The name of the file.
pub(super) const FILE: &str = "groups.yaml";

/// The file: groups by name.
type Raw = BTreeMap<String, RawGroup>;

/// Who is in a group, beside those whose credentials say so.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawGroup {
    users: Vec<String>,
    agents: Vec<String>,
    keys: Vec<String>,
    /// Groups whose members are members of this one too.
    groups: Vec<String>,
}

/// Who is in which groups, and which groups are in which.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// For each group, all that its members are in: itself and what it is in, over any number of steps.
    above: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// For each of those named: the groups, over any number of steps.
    members: [HashMap<Arc<str>, BTreeSet<Arc<str>>>; 4],
}

impl Groups {
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        let raw: Raw = if text.trim().is_empty() {
            Raw::new()
        } else {
            serde_saphyr::from_str(text).map_err(|error| yaml_problem(file, &error))?
        };
        let mut parents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, group) in &raw {
            for inner in &group.groups {
                parents.entry(inner).or_default().push(name);
            }
        }
        let above = |name: &str| {
            let mut all = BTreeSet::new();
            let mut open = vec![name];
            while let Some(name) = open.pop() {
                if all.insert(Arc::<str>::from(name)) {
                    open.extend(parents.get(name).into_iter().flatten());
                }
            }
            all
        };
        let mut groups = Self::default();
        for (name, group) in &raw {
            for name in group.groups.iter().chain([name]) {
                groups.above.insert(name.as_str().into(), above(name));
            }
            for (kind, names) in [
                (IdentityKind::User, &group.users),
                (IdentityKind::Agent, &group.agents),
                (IdentityKind::Key, &group.keys),
            ] {
                for member in names {
                    groups.members[kind as usize]
                        .entry(member.as_str().into())
                        .or_default()
                        .extend(above(name));
                }
            }
        }
        Ok(groups)
    }

    /// A group and all groups it is in.
    pub(super) fn above(&self, group: &Arc<str>) -> BTreeSet<Arc<str>> {
        let own = || BTreeSet::from([group.clone()]);
        self.above.get(group).cloned().unwrap_or_else(own)
    }

    /// Every group that is named in the file.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.above.keys()
    }

    /// Everybody of a kind that is named in the file, and the groups they are in.
    pub(super) fn members(
        &self,
        kind: IdentityKind,
    ) -> impl Iterator<Item = (&Arc<str>, &BTreeSet<Arc<str>>)> {
        self.members[kind as usize].iter()
    }
}

/// What the YAML reader says, with its place.
pub(super) fn yaml_problem(file: &str, error: &serde_saphyr::Error) -> Problem {
    let text = error.to_string();
    let message = text.lines().next().unwrap_or("not as expected");
    let mut problem = Problem::of_file(file, message.trim_start_matches("error: "));
    if let Some(place) = error.location() {
        problem.line = usize::try_from(place.line()).unwrap_or(0);
        problem.column = usize::try_from(place.column()).unwrap_or(0);
    }
    problem
}
