//! What needs no question of its own: where nobody is asked, and what goes on with something that was permitted.

use super::{Class, Permit, Prepared, Subject};

impl Prepared {
    /// The permit for everything, where no policy is configured.
    pub fn unasked(&self) -> Option<Permit> {
        self.policy().is_unrestricted().then(Permit::unasked)
    }

    /// Decides about what goes on with a call that was permitted when it began and whose arguments are not known any more: a
    /// task. It may go on for as long as the item is listed; `None` when it is not.
    pub fn follow(
        &self,
        class: &Class,
        item: Subject<'_>,
        toolset: Option<&str>,
    ) -> Option<Permit> {
        self.lists(class, item, toolset).then(Permit::unasked)
    }
}
