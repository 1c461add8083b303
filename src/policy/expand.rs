//! What is known of everything that a resource template may expand to, before it is expanded (SECURITY AUTHZ-6).
//!
//! Never too much: an expansion whose name, address, tags or toolsets are not among those told here does not exist
//! (`tests::templates` compares). What an expansion is decided as, is a resource: its tags and toolsets are those of a resource
//! that is listed under its address, or none; never the template's own.

use std::{collections::BTreeSet, sync::Arc};

use super::{Item, ItemKind};
use crate::protocol::UpstreamId;

/// Beginnings that decide how an address carries its namespace; while one of them may still come, that is not known.
const TELLING: [&str; 4] = ["http://", "https://", "ui://", "skill://"];
/// Listed resources that one template is compared with; with more, anything is taken to be possible.
const LISTED: usize = 1_000;

/// What a template may expand to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expansions {
    /// How the address begins that is sent to the upstream.
    pub(super) head: Arc<str>,
    /// How its name begins: with one of these.
    pub(super) names: Vec<Arc<str>>,
    /// The tags that it may have, each or none of them; `None` where that is not known.
    pub(super) tags: Option<BTreeSet<Arc<str>>>,
    /// The toolsets that it may be in.
    pub(super) toolsets: Option<BTreeSet<Arc<str>>>,
}

/// The listed resources that decisions could tell from others, in order.
pub(super) struct Listed<'a>(Vec<(&'a UpstreamId, &'a str, &'a Item)>);

impl<'a> Listed<'a> {
    pub(super) fn of(items: &'a [Item]) -> Self {
        let resources = items.iter().filter(|item| item.kind == ItemKind::Resource);
        let mut listed: Vec<_> = resources
            .map(|item| (&item.upstream, &*item.local, item))
            .collect();
        listed.sort_unstable_by_key(|(upstream, local, _)| (*upstream, *local));
        Self(listed)
    }

    /// Those of an upstream whose addresses begin like this.
    fn below(&self, upstream: &UpstreamId, head: &str) -> impl Iterator<Item = &'a Item> {
        let first = self
            .0
            .partition_point(|(other, local, _)| (*other, *local) < (upstream, head));
        let rest = self.0[first..].iter();
        let head = head.to_owned();
        let upstream = upstream.clone();
        rest.take_while(move |(other, local, _)| **other == upstream && local.starts_with(&head))
            .map(|(_, _, item)| *item)
    }
}

impl Expansions {
    /// Of a template among what is listed.
    pub(super) fn of(template: &Item, listed: &Listed<'_>) -> Self {
        let head: Arc<str> = literal(&template.local).into();
        let mut expansions = Self {
            names: if !tells(&head) {
                vec!["".into()]
            } else {
                let apart = format!("{}\u{1}{head}", template.upstream);
                vec![
                    literal(&template.outward).into(),
                    head.clone(),
                    apart.into(),
                ]
            },
            tags: Some(BTreeSet::new()),
            toolsets: Some(BTreeSet::new()),
            head,
        };
        for (count, item) in listed
            .below(&template.upstream, &expansions.head)
            .enumerate()
        {
            if count == LISTED {
                expansions.names = vec!["".into()];
                (expansions.tags, expansions.toolsets) = (None, None);
                break;
            }
            let begins = |name: &Arc<str>| item.outward.starts_with(&**name);
            if !expansions.names.iter().any(begins) {
                expansions.names.push(item.outward.clone());
            }
            let sets = [
                (&mut expansions.tags, &item.tags),
                (&mut expansions.toolsets, &item.toolsets),
            ];
            for (known, more) in sets {
                known
                    .iter_mut()
                    .for_each(|known| known.extend(more.iter().cloned()));
            }
        }
        expansions
    }

    /// Whether one may have this name.
    pub(super) fn may_be(&self, name: &str) -> bool {
        self.names.iter().any(|head| name.starts_with(&**head))
    }

    /// Whether one may be in a toolset.
    pub(super) fn may_be_in(&self, toolset: &str) -> bool {
        let known = self.toolsets.as_ref();
        known.is_none_or(|known| known.contains(toolset))
    }
}

/// Whether a head says how what begins with it carries its namespace.
fn tells(head: &str) -> bool {
    let may_come = |beginning: &&str| {
        let same = beginning.get(..head.len());
        same.is_some_and(|same| same.len() < beginning.len() && same.eq_ignore_ascii_case(head))
    };
    !TELLING.iter().any(may_come)
}

/// What every expansion of a template begins with: its text up to the first expression, or to what expanding would write otherwise
/// (RFC 6570 3.1).
fn literal(template: &str) -> &str {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte);
    let end = template.bytes().position(|byte| !plain(byte));
    template
        .get(..end.unwrap_or(template.len()))
        .unwrap_or_default()
}
