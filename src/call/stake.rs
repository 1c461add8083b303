//! What a call uses up by being sent, and by nothing else: an approval counts once (PROTOCOL D2, SECURITY REL-3).
//!
//! Guarantees: it is used from the moment on at which the call may be on its way to its upstream, whatever comes of that; where
//! it never was, it is given back once the last copy is dropped.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

/// What is at stake. Copies are of the same.
#[derive(Debug, Clone)]
pub struct Stake(Arc<Staked>);

struct Staked {
    used: AtomicBool,
    give_back: Box<dyn Fn() + Send + Sync>,
}

impl Stake {
    /// Something that `give_back` gives back.
    pub fn new(give_back: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Staked {
            used: AtomicBool::new(false),
            give_back: Box::new(give_back),
        }))
    }

    /// From now on it is used; whether it was not before.
    pub fn mark_used(&self) -> bool {
        !self.0.used.swap(true, SeqCst)
    }

    /// It was not used after all: for whoever used it first, and knows that nothing came of it.
    pub fn release(&self) {
        self.0.used.store(false, SeqCst);
    }
}

impl Drop for Staked {
    fn drop(&mut self) {
        if !*self.used.get_mut() {
            (self.give_back)();
        }
    }
}

impl fmt::Debug for Staked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Staked({})", self.used.load(SeqCst))
    }
}
