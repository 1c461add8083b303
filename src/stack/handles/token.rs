//! The handle itself: sealed, and tied to whom it was given and where (PROTOCOL D3, F11).

use std::sync::Arc;

use crate::{
    call::{Owner, Reference},
    catalog::{Catalog, Route},
    protocol::{UpstreamId, extensions::TaskDesign, names::Scope},
    seal::{Purpose, Sealer},
};

/// Most characters of a handle; longer ones are not looked at.
pub(super) const HANDLE_CHARS: usize = 2_048;
/// Most bytes of an upstream's task id, so that its handle fits a header.
pub(super) const LOCAL_BYTES: usize = 1_024;
/// Most bytes of a tool's name that fit a handle.
pub(super) const TOOL_BYTES: usize = 255;
/// Seconds a handle is good for: 30 days, whatever the upstream says of the task.
const LIFE: u64 = 30 * 24 * 3_600;
/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;

/// What a handle stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Task {
    /// Whose task it is.
    pub(super) upstream: UpstreamId,
    /// What the upstream calls it.
    pub(super) local: Arc<str>,
    /// How the upstream spoke of tasks when it made this one.
    pub(super) design: TaskDesign,
    /// The tool it came from, by the name it was called by at its endpoint; `None` in handles of earlier versions and for
    /// names of more than [`TOOL_BYTES`]. Without it nobody uses the task where a policy is configured.
    pub(super) tool: Option<Arc<str>>,
    /// The approval that the call went by which made it.
    pub(super) approval: Option<Reference>,
}

impl Task {
    /// The way to it.
    pub(super) fn route(&self) -> Route {
        Route {
            upstream: self.upstream.clone(),
            local: self.local.clone(),
            headers: Arc::new([]),
            task_only: false,
            terms: None,
        }
    }

    /// The tool that it came from, where the endpoint has it now.
    pub(super) fn tool_in<'a>(&self, catalog: &'a Catalog, scope: &Scope) -> Option<&'a Route> {
        let tool = catalog.tool(scope, self.tool.as_deref()?)?;
        (tool.upstream == self.upstream).then_some(tool)
    }

    /// The handle of this task for this owner, from `now` in seconds since 1970; `None` when the upstream's id is out of
    /// bounds.
    pub(super) fn seal(&self, sealer: &Sealer, owner: &Owner, now: u64) -> Option<String> {
        if self.local.len() > LOCAL_BYTES {
            return None;
        }
        let key = self.upstream.as_str();
        let mut plain = now.to_le_bytes().to_vec();
        let tool = self.tool.as_deref().unwrap_or_default();
        let design = match self.design {
            TaskDesign::Core => 2,
            TaskDesign::Extension => 3,
        };
        match &self.approval {
            None => plain.push(design),
            Some(approval) => {
                plain.push(design + 2);
                plain.extend_from_slice(&approval.0);
            }
        }
        plain.push(u8::try_from(tool.len()).ok()?);
        plain.extend_from_slice(tool.as_bytes());
        plain.extend(u8::try_from(key.len()));
        plain.extend_from_slice(key.as_bytes());
        plain.extend_from_slice(self.local.as_bytes());
        Some(sealer.seal(Purpose::Task, &binding(owner), &plain))
    }

    /// What a handle stands for; `None` when it was altered, given to somebody else or elsewhere, or is too old.
    pub(super) fn open(sealer: &Sealer, owner: &Owner, handle: &str, now: u64) -> Option<Self> {
        if handle.len() > HANDLE_CHARS {
            return None;
        }
        let plain = sealer.open(Purpose::Task, &binding(owner), handle).ok()?;
        let (issued, rest) = plain.split_first_chunk()?;
        let issued = u64::from_le_bytes(*issued);
        if now > issued.saturating_add(LIFE) || issued > now.saturating_add(SKEW) {
            return None;
        }
        let (design, rest) = rest.split_first()?;
        let (design, approval, rest) = match design {
            4 | 5 => {
                let (approval, rest) = rest.split_first_chunk()?;
                (design - 2, Some(Reference(*approval)), rest)
            }
            design => (*design, None, rest),
        };
        let (design, tool, rest) = match design {
            // Without a tool, as earlier versions wrote them.
            0 => (TaskDesign::Core, None, rest),
            1 => (TaskDesign::Extension, None, rest),
            2 | 3 => {
                let (length, rest) = rest.split_first()?;
                let (tool, rest) = rest.split_at_checked(usize::from(*length))?;
                let tool = std::str::from_utf8(tool).ok()?;
                let design = match design {
                    2 => TaskDesign::Core,
                    _ => TaskDesign::Extension,
                };
                (design, (!tool.is_empty()).then(|| tool.into()), rest)
            }
            _ => return None,
        };
        let (length, rest) = rest.split_first()?;
        let (key, local) = rest.split_at_checked(usize::from(*length))?;
        Some(Self {
            upstream: UpstreamId::parse(std::str::from_utf8(key).ok()?)?,
            local: std::str::from_utf8(local).ok()?.into(),
            design,
            tool,
            approval,
        })
    }
}

/// What a handle is tied to.
fn binding(owner: &Owner) -> Vec<&[u8]> {
    owner.parts().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ana() -> Owner {
        Owner::named("ana", Some("app"), &Scope::All)
    }

    fn task() -> Task {
        Task {
            upstream: UpstreamId::parse("notes").unwrap(),
            local: "t-1 ü".into(),
            design: TaskDesign::Core,
            tool: Some("notes_add".into()),
            approval: None,
        }
    }

    #[test]
    fn a_handle_keeps_the_approval_that_its_task_began_with() {
        let sealer = Sealer::new(b"secret");
        for design in [TaskDesign::Core, TaskDesign::Extension] {
            for approval in [None, Some(Reference([7; 16]))] {
                let task = Task {
                    design,
                    approval,
                    ..task()
                };
                let handle = task.seal(&sealer, &ana(), 1_000).unwrap();
                let opened = Task::open(&sealer, &ana(), &handle, 1_000);
                assert_eq!(opened, Some(task));
            }
        }
    }

    #[test]
    fn state_7_a_handle_opens_for_its_owner_until_it_is_too_old() {
        let sealer = Sealer::new(b"secret");
        let handle = task().seal(&sealer, &ana(), 1_000).unwrap();
        let open = |owner: &Owner, now| Task::open(&sealer, owner, &handle, now);
        assert_eq!(open(&ana(), 1_000), Some(task()));
        assert_eq!(open(&ana(), 1_000 + LIFE), Some(task()));
        assert_eq!(open(&ana(), 1_001 + LIFE), None);
        assert_eq!(open(&ana(), 1_000 - SKEW - 1), None);
        let own = Scope::Upstream(UpstreamId::parse("notes").unwrap());
        let toolset = Scope::Toolset("".into());
        for (who, client, scope) in [
            ("ana", Some("app"), &own),
            ("ana", Some("app"), &toolset),
            ("ana", Some("another"), &Scope::All),
            ("ana", Some(""), &Scope::All),
            ("ana", None, &Scope::All),
            ("alice", Some("app"), &Scope::All),
            ("", Some("app"), &Scope::All),
            ("ana ", Some("app"), &Scope::All),
        ] {
            let other = Owner::named(who, client, scope);
            assert_eq!(open(&other, 1_000), None, "{other:?}");
        }
        let other = Sealer::new(b"another");
        assert_eq!(Task::open(&other, &ana(), &handle, 1_000), None);
        assert_eq!(Task::open(&sealer, &ana(), "", 1_000), None);
    }

    #[test]
    fn a_handle_that_knows_of_no_client_is_what_earlier_versions_gave_out() {
        let sealer = Sealer::new(b"secret");
        let handle = task().seal(&sealer, &Owner::named("ana", None, &Scope::All), 7);
        let parts: [&[u8]; 3] = [b"ana", b"all", b""];
        assert!(sealer.open(Purpose::Task, &parts, &handle.unwrap()).is_ok());
    }

    #[test]
    fn the_longest_id_makes_a_handle_that_is_still_looked_at_and_a_longer_one_none() {
        let sealer = Sealer::new(b"secret");
        let of = |length: usize| Task {
            upstream: UpstreamId::parse(&"u".repeat(UpstreamId::MAX_BYTES)).unwrap(),
            local: "x".repeat(length).into(),
            design: TaskDesign::Extension,
            tool: Some("t".repeat(TOOL_BYTES).into()),
            approval: Some(Reference([7; 16])),
        };
        let longest = of(LOCAL_BYTES);
        let handle = longest.seal(&sealer, &ana(), 7).unwrap();
        assert_eq!(Task::open(&sealer, &ana(), &handle, 7), Some(longest));
        assert_eq!(of(LOCAL_BYTES + 1).seal(&sealer, &ana(), 7), None);
    }
}
