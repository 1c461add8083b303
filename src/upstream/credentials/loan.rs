//! Loans: the token of whoever comes first, for finding out how an upstream that answers nobody else is spoken to.
//!
//! Guarantees: nothing is borrowed but while the upstream is reached, and what is read then is told to nobody; the lender is
//! forgotten as soon as it is, or when it is not to be used.

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
    /// Who lent last. Once that was in vain they keep nobody out who comes with another proof.
    tried: ArcSwapOption<Identity>,
    open: AtomicBool,
    /// Whether anybody's token was shown.
    lent: AtomicBool,
    /// Whether it was answered where nobody's was.
    taken: AtomicBool,
}

impl Loan {
    /// Somebody who may be asked for, until the upstream is reached. Who lent last does not take the place of another.
    pub(in crate::upstream) fn offer(&self, identity: &Arc<Identity>) {
        let tried = self.tried.load();
        let is_tried = |who: &Arc<Identity>| tried.as_ref().is_some_and(|it| it.is_proof_of(who));
        self.lender.rcu(|lender| match lender {
            Some(other) if is_tried(identity) && !is_tried(other) => Some(Arc::clone(other)),
            Some(_) | None => Some(Arc::clone(identity)),
        });
    }

    /// The upstream is being reached, for as long as what this gives is kept.
    pub(in crate::upstream) fn reach(&self) -> Reaching<'_> {
        self.lent.store(false, Ordering::SeqCst);
        self.taken.store(false, Ordering::SeqCst);
        self.open.store(true, Ordering::SeqCst);
        Reaching(self)
    }

    /// Whoever offered is forgotten.
    pub(in crate::upstream) fn forget(&self) {
        self.lender.store(None);
        self.tried.store(None);
    }

    /// Whether somebody's token is of use now.
    pub(in crate::upstream) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    pub(in crate::upstream) fn lender(&self) -> Option<Arc<Identity>> {
        let open = self.open.load(Ordering::SeqCst);
        self.lender.load_full().filter(|_| open)
    }

    pub(in crate::upstream) fn lent(&self, lender: &Arc<Identity>) {
        self.tried.store(Some(Arc::clone(lender)));
        self.lent.store(true, Ordering::SeqCst);
    }

    pub(super) fn taken(&self) {
        self.taken.store(true, Ordering::SeqCst);
    }
}

/// An upstream is being reached. Nothing is borrowed any more once this is dropped.
#[derive(Debug)]
#[must_use = "the loan ends with it"]
pub(in crate::upstream) struct Reaching<'a>(&'a Loan);

impl Reaching<'_> {
    /// Whether it was asked with somebody's token, and not only with nobody's.
    pub(in crate::upstream) fn lent(&self) -> bool {
        self.0.lent.load(Ordering::SeqCst)
    }

    /// It was reached, or could not be: then whoever offered may lend for the next attempt. Whether it answered only to
    /// somebody.
    pub(in crate::upstream) fn done(self, reached: bool) -> bool {
        let loan = self.0;
        drop(self);
        if reached {
            loan.forget();
        }
        loan.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Reaching<'_> {
    fn drop(&mut self) {
        self.0.open.store(false, Ordering::SeqCst);
    }
}
