//! Wakes that would only wake whoever is at work already.
//!
//! A body of hyper's wakes the task of its connection whenever a piece is taken out of it, so that more is read. Where the
//! task that takes the piece is that very one, as with all that a client's connection does here, and the piece was the last,
//! the wake is for nothing: the connection, the call on it and the connection to its upstream would all be looked at once
//! more, for each request twice. So who takes a piece holds such wakes back, and wakes by hand if there is more to come.
//!
//! Guarantees: nothing is held back but wakes of one task, made by itself, on its own thread, while it takes.

use std::{
    cell::Cell,
    ptr,
    sync::Arc,
    task::{Context, Wake, Waker},
};

thread_local! {
    /// The one whose wakes are held back on this thread.
    static HELD: Cell<*const ()> = const { Cell::new(ptr::null()) };
    /// Whether there was one.
    static WOKEN: Cell<bool> = const { Cell::new(false) };
}

/// Wakes a task, unless that is being held back.
#[derive(Debug)]
struct Quiet(Waker);

/// A waker of this task whose wakes can be held back.
pub fn around(task: &Waker) -> Waker {
    Waker::from(Arc::new(Quiet(task.clone())))
}

/// Does `take`, and holds back what it wakes of the task at work; says whether there was anything. Does no more than that where
/// the waker is not one of [`around`].
pub fn held<T>(cx: &mut Context<'_>, take: impl FnOnce(&mut Context<'_>) -> T) -> (T, bool) {
    let _held = Held(HELD.replace(cx.waker().data()));
    WOKEN.set(false);
    let taken = take(cx);
    (taken, WOKEN.get())
}

/// Lets wakes through again, in a panic too.
struct Held(*const ());

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(self.0);
    }
}

impl Wake for Quiet {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if ptr::eq(HELD.get(), Arc::as_ptr(self).cast()) {
            WOKEN.set(true);
        } else {
            self.0.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Counted>, Waker) {
        let counted = Arc::new(Counted::default());
        (counted.clone(), around(&Waker::from(counted)))
    }

    fn wakes(counted: &Counted) -> usize {
        counted.0.load(Ordering::Relaxed)
    }

    #[test]
    fn only_what_a_task_wakes_of_itself_while_it_takes_is_held_back() {
        let (mine, waker) = counted();
        let (others, other) = counted();
        let mut cx = Context::from_waker(&waker);
        waker.wake_by_ref();
        let twin = waker.clone();
        twin.wake();
        assert_eq!(wakes(&mine), 2);

        let (taken, woken) = held(&mut cx, |cx| {
            cx.waker().wake_by_ref();
            let twin = cx.waker().clone();
            twin.wake();
            other.wake_by_ref();
            7
        });
        assert_eq!((taken, woken), (7, true));
        assert_eq!((wakes(&mine), wakes(&others)), (2, 1));
        assert_eq!(held(&mut cx, |_| ()), ((), false));

        waker.wake_by_ref();
        assert_eq!(wakes(&mine), 3);
    }

    #[test]
    fn what_another_thread_wakes_meanwhile_comes_through() {
        let (mine, waker) = counted();
        let mut cx = Context::from_waker(&waker);
        let ((), woken) = held(&mut cx, |cx| {
            let waker = cx.waker().clone();
            thread::spawn(move || waker.wake()).join().unwrap();
        });
        assert_eq!((woken, wakes(&mine)), (false, 1));
    }

    #[test]
    fn after_a_panic_and_around_another_nothing_stays_held_back() {
        let (mine, waker) = counted();
        let (others, other) = counted();
        let mut cx = Context::from_waker(&waker);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            held(&mut cx, |_| panic!("in the middle of it"))
        }));
        assert!(panicked.is_err());
        waker.wake_by_ref();
        assert_eq!(wakes(&mine), 1);

        held(&mut cx, |cx| {
            held(&mut Context::from_waker(&other), |_| ());
            cx.waker().wake_by_ref();
        });
        waker.wake_by_ref();
        assert_eq!((wakes(&mine), wakes(&others)), (2, 0));
    }
}
