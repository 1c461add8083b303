//! Extensions as an endpoint offers them: what we implement and some upstream of it has (PROTOCOL D3, D4).
//!
//! Which of them a client is told of is a matter of its revision: the extensions of tasks and skills begin with 2026-07-28,
//! core tasks exist in 2025-11-25 alone.

use super::part::Part;
use crate::{
    json::{Edits, Fate, Json},
    protocol::{
        Features, Revision,
        extensions::{self, Offers, TaskDesign},
        meta,
    },
};

/// What the upstreams of one endpoint have together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Some upstream has core tasks.
    pub core_tasks: bool,
    /// Some upstream with core tasks can cancel them.
    pub cancels: bool,
    /// Some upstream has tasks in either design: those of the core reach modern clients too.
    pub tasks: bool,
    /// Some upstream has skills.
    pub skills: bool,
    /// Some upstream reads directories.
    pub directories: bool,
    /// The settings of Apps, of the first upstream that declares it.
    apps: Option<Json>,
}

impl Offered {
    /// What these upstreams have together.
    pub(super) fn of<'a>(parts: impl Iterator<Item = &'a Part>) -> Self {
        let mut offered = Self::default();
        for Offers {
            tasks,
            cancels,
            apps,
            skills,
            directories,
        } in parts.map(|part| &part.offers)
        {
            let core = *tasks == Some(TaskDesign::Core);
            offered.core_tasks |= core;
            offered.cancels |= core && *cancels;
            offered.tasks |= tasks.is_some();
            offered.skills |= skills;
            offered.directories |= directories;
            offered.apps = offered.apps.or_else(|| apps.clone());
        }
        offered
    }

    /// Whether a client of a revision with these `features` is told of tasks.
    pub const fn has_tasks(&self, features: &Features) -> bool {
        features.core_tasks && self.core_tasks || features.task_extension && self.tasks
    }

    /// `capabilities` and what is offered beside them to clients of `revision`.
    pub(super) fn beside(&self, capabilities: &Json, revision: Revision) -> Json {
        let features = revision.features();
        let mut more = Vec::new();
        if features.core_tasks && self.core_tasks {
            let call = meta::object_of(&[("call", Json::empty_object())]);
            let requests = meta::object_of(&[("tools", call)]);
            let mut tasks = vec![("list", Json::empty_object())];
            tasks.extend(self.cancels.then(|| ("cancel", Json::empty_object())));
            tasks.push(("requests", requests));
            more.push(("tasks", meta::object_of(&tasks)));
        }
        let mut ids = Vec::new();
        if features.task_extension && self.tasks {
            ids.push((extensions::TASKS, Json::empty_object()));
        }
        ids.extend(self.apps.clone().map(|apps| (extensions::APPS, apps)));
        if features.skills && self.skills {
            let directories = self.directories.then(|| ("directoryRead", Json::of(&true)));
            let settings: Vec<_> = directories.into_iter().collect();
            ids.push((extensions::SKILLS, meta::object_of(&settings)));
        }
        if !ids.is_empty() {
            more.push((extensions::MEMBER, meta::object_of(&ids)));
        }
        let mut edits = Edits::new();
        edits.members(capabilities.root(), |_, _| Fate::Keep, &more);
        capabilities.splice(&edits)
    }
}
