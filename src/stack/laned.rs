//! A stack for each lane: a call goes down the one of its lane, and not down a copy made for it.
//! A copy would touch what the copies of all calls are counted by, of every layer.
//!
//! Guarantees: nobody waits for a stack. Where one is in use, since something in it is done aside, the call gets a copy.

use std::sync::{Mutex, TryLockError};

use crate::tasks::PerLane;

/// The stacks.
pub(super) struct Laned<S> {
    own: PerLane<Mutex<S>>,
    spare: S,
}

impl<S: Clone> Laned<S> {
    /// Each made anew.
    pub(super) fn new(mut make: impl FnMut() -> S) -> Self {
        Self {
            own: PerLane::of(|| Mutex::new(make())),
            spare: make(),
        }
    }

    /// Goes down the one of this lane.
    pub(super) fn with<T>(&self, go: impl FnOnce(&mut S) -> T) -> T {
        match self.own.at(self.own.here()).try_lock() {
            Ok(mut stack) => go(&mut stack),
            // A stack is whole, whatever panicked in it.
            Err(TryLockError::Poisoned(stack)) => go(&mut stack.into_inner()),
            Err(TryLockError::WouldBlock) => go(&mut self.spare.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::{Ready, ready},
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        task::{Context, Poll},
    };

    use futures_util::FutureExt as _;
    use tower::Service;

    use super::*;

    /// Counts its copies.
    struct Counted(Arc<AtomicUsize>);

    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Relaxed);
            Self(Arc::clone(&self.0))
        }
    }

    impl Service<Box<dyn FnOnce() -> u8>> for Counted {
        type Response = u8;
        type Error = Infallible;
        type Future = Ready<Result<u8, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, what: Box<dyn FnOnce() -> u8>) -> Self::Future {
            ready(Ok(what()))
        }
    }

    fn called(laned: &Laned<Counted>, what: impl FnOnce() -> u8 + 'static) -> Option<u8> {
        let done = laned.with(|stack| stack.call(Box::new(what)));
        done.now_or_never()?.ok()
    }

    #[test]
    fn a_call_copies_nothing_unless_the_stack_is_in_use() {
        let copies = Arc::<AtomicUsize>::default();
        let laned = Arc::new(Laned::new(|| Counted(copies.clone())));
        let before = copies.load(Relaxed);
        assert_eq!(called(&laned, || 1), Some(1));
        assert_eq!(called(&laned, || 2), Some(2));
        assert_eq!(copies.load(Relaxed), before);
        let inside = Arc::clone(&laned);
        assert_eq!(
            called(&laned, move || called(&inside, || 3).unwrap()),
            Some(3)
        );
        assert_eq!(copies.load(Relaxed), before + 1);
    }

    #[test]
    fn a_call_that_panics_takes_no_stack_from_others() {
        let copies = Arc::<AtomicUsize>::default();
        let laned = Arc::new(Laned::new(|| Counted(copies.clone())));
        let before = copies.load(Relaxed);
        let panics = || called(&laned, || panic!("as the test wants"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(called(&laned, || 4), Some(4));
        assert_eq!(copies.load(Relaxed), before);
    }
}
