//! Loans: the token of whoever comes first, for finding out how an upstream that answers nobody else is spoken to.
//!
//! Guarantees: nothing is borrowed but while the upstream is reached, and what is read then is told to nobody; the lender is
//! forgotten as soon as it is.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwapOption;

use crate::call::Identity;

/// Who lends, and whether it was needed.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Loan {
    lender: ArcSwapOption<Identity>,
    open: AtomicBool,
    taken: AtomicBool,
}

impl Loan {
    /// Somebody who may be asked for, until the upstream is reached.
    pub(in crate::upstream) fn offer(&self, identity: &Arc<Identity>) {
        self.lender.store(Some(Arc::clone(identity)));
    }

    /// The upstream is being reached.
    pub(in crate::upstream) fn begin(&self) {
        self.taken.store(false, Ordering::SeqCst);
        self.open.store(true, Ordering::SeqCst);
    }

    /// It is no longer. Whether it answered only to somebody.
    pub(in crate::upstream) fn end(&self, reached: bool) -> bool {
        self.open.store(false, Ordering::SeqCst);
        if reached {
            self.lender.store(None);
        }
        self.taken.load(Ordering::SeqCst)
    }

    /// Whether somebody's token is of use now.
    pub(in crate::upstream) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    pub(super) fn lender(&self) -> Option<Arc<Identity>> {
        let open = self.open.load(Ordering::SeqCst);
        self.lender.load_full().filter(|_| open)
    }

    pub(super) fn taken(&self) {
        self.taken.store(true, Ordering::SeqCst);
    }
}
