//! Who may do what: Cedar policies over what the gateway offers (PRODUCT 9, SECURITY 5.4).
//!
//! Guarantees: what no policy permits is denied; a policy that cannot be evaluated denies; an argument that a policy mentions
//! and Cedar cannot hold exactly denies; a set with anything wrong in it is not loaded at all. Lists, calls, reads and
//! everything else ask the same [`Prepared::decide`] and [`Prepared::lists`], which agree: what is not listed is denied
//! whatever the arguments are. Not here: how an answer is worded for a client, and what a catalog is: items are handed in.

mod ask;
mod item;
mod problem;

use std::{path::Path, sync::Arc};

use crate::call::Identity;

pub use ask::{Action, Approval, Ask, Circumstances, Denied, Permit, Refusal};
pub use item::{Hints, Item, ItemKind, Subject};
pub use problem::Problem;

/// One compiled, validated set of policies. Immutable; cloning shares.
#[derive(Debug, Clone)]
pub struct Policy {
    rules: Rules,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// No policy is configured.
    None,
    /// Nothing is permitted.
    Deny,
}

/// Policies laid over the items of one catalog. Immutable but for its caches, which are bounded; cloning shares.
#[derive(Debug, Clone)]
pub struct Prepared {
    policy: Policy,
}

/// What policy knows of somebody: identities that no policy can tell apart are of one class, and see the same lists. Cheap to
/// clone, to compare and to hash; classes of different [`Prepared`]s must not be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Class(Arc<str>);

impl Policy {
    /// What holds where no policy is configured: everything is permitted.
    pub fn unrestricted() -> Self {
        Self { rules: Rules::None }
    }

    /// What holds where policy is configured and cannot be used: nothing is permitted (SECURITY AUTHZ-1).
    pub fn deny_everything() -> Self {
        Self { rules: Rules::Deny }
    }

    /// Reads `*.cedar`, `groups.yaml` and `usher.cedarschema` of a directory.
    ///
    /// # Errors
    /// Everything that is wrong, at least one [`Problem`]; then nothing is loaded (SECURITY AUTHZ-3). A directory without any
    /// policy is wrong too: it would deny everything.
    pub fn load(dir: &Path) -> Result<Self, Vec<Problem>> {
        Err(vec![Problem::of_file(dir, "policies cannot be read yet")])
    }

    /// The same from texts instead of files: each with the name it would have in the directory.
    ///
    /// # Errors
    /// As [`Policy::load`].
    pub fn of(files: &[(&str, &str)]) -> Result<Self, Vec<Problem>> {
        let _ = files;
        Err(vec![Problem::of_file(
            Path::new(""),
            "policies cannot be read yet",
        )])
    }

    /// Whether everything is permitted without asking: no policy is configured.
    pub fn is_unrestricted(&self) -> bool {
        self.rules == Rules::None
    }

    /// SHA-256 of the set in hexadecimal digits: equal for equal sets. Empty where everything is permitted unasked.
    pub fn digest(&self) -> &str {
        ""
    }

    /// Lays the policies over `items`. What `previous` worked out and still holds is kept.
    pub fn prepare(&self, _items: Vec<Item>, _previous: Option<&Prepared>) -> Prepared {
        Prepared {
            policy: self.clone(),
        }
    }
}

impl Prepared {
    /// The set these are.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Policies that do not fit the items: arguments that a tool does not have, or has of another type. A reload that brings
    /// any is refused; when an upstream brings them later, calls of the items they are about are denied.
    pub fn problems(&self) -> &[Problem] {
        &[]
    }

    /// The class of somebody.
    pub fn class(&self, _who: &Identity) -> Class {
        Class("".into())
    }

    /// Whether an item is listed: unless all that can be done with it is denied whatever the arguments and the rest of the
    /// context are. `toolset` is that of the endpoint which lists.
    pub fn lists(&self, _class: &Class, _item: Subject<'_>, _toolset: Option<&str>) -> bool {
        self.policy.is_unrestricted()
    }

    /// Decides.
    ///
    /// # Errors
    /// [`Denied`], which says why, and whether the item is hidden too.
    pub fn decide(&self, _ask: &Ask<'_>) -> Result<Permit, Denied> {
        if self.policy.is_unrestricted() {
            Ok(Permit::unasked())
        } else {
            Err(Denied::hidden())
        }
    }
}
