//! What all lanes share, with a count of its holders for each lane.
//!
//! A count that two processors change by turns is fetched from the other one each time, which takes as long as some hundred
//! instructions; and a call that holds ten shared things changes twenty. So each lane counts its own holders, and holds the thing
//! itself once.
//!
//! Guarantees: it lives until nobody holds it on any lane; holding it further touches nothing that another lane writes.

use std::{fmt, ops::Deref, sync::Arc};

use super::PerLane;

/// A holder, counted on the lane on which it was taken; clones are counted there too, wherever they go.
pub struct LaneArc<T: ?Sized>(Arc<Apart<T>>);

/// In cache lines of its own, its count included: counts of two lanes would else lie beside each other where they are made.
#[repr(align(128))]
struct Apart<T: ?Sized>(Arc<T>);

/// A holder for each lane.
pub struct PerLaneArc<T: ?Sized>(PerLane<LaneArc<T>>);

impl<T: ?Sized> LaneArc<T> {
    /// A holder with a count of its own.
    pub fn new(of: Arc<T>) -> Self {
        Self(Arc::new(Apart(of)))
    }

    /// Another one of the same, with another count.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self::new(Arc::clone(&self.0.0))
    }
}

impl<T: ?Sized> PerLaneArc<T> {
    /// A holder for each lane, and one for all that run on none.
    pub fn new(of: &Arc<T>) -> Self {
        Self(PerLane::of(|| LaneArc::new(Arc::clone(of))))
    }

    /// The one of this lane, to be kept.
    pub fn here(&self) -> LaneArc<T> {
        self.0.at(self.0.here()).clone()
    }
}

impl<T> From<T> for PerLaneArc<T> {
    fn from(of: T) -> Self {
        Self::new(&Arc::new(of))
    }
}

impl<T: ?Sized> Clone for LaneArc<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for LaneArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.0
    }
}

impl<T: ?Sized> Deref for PerLaneArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.at(self.0.here())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for LaneArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for PerLaneArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Barrier, mpsc};

    use super::*;
    use crate::tasks::{Lanes, Tasks};

    #[tokio::test]
    async fn each_lane_counts_its_own_and_all_hold_the_same() {
        let it = Arc::new(7);
        let shared = Arc::new(PerLaneArc::new(&it));
        let before = Arc::strong_count(&it);
        let tasks = Tasks::over(Lanes::of(2).unwrap());
        let (told, mut heard) = mpsc::channel(2);
        // Whoever comes next is seated beside nobody only while the first is there.
        let both = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let (shared, told, both) = (Arc::clone(&shared), told.clone(), Arc::clone(&both));
            tasks.spread(async move {
                both.wait().await;
                let (one, two) = (shared.here(), shared.here());
                assert!(Arc::ptr_eq(&one.0, &two.0), "one count");
                told.send(one.clone()).await.unwrap();
            });
        }
        let (one, other) = (heard.recv().await.unwrap(), heard.recv().await.unwrap());
        tasks.finish().await;
        for holder in [&one, &other] {
            // With its count before it in the lines before.
            assert_eq!(Arc::as_ptr(&holder.0).addr() % 128, 0);
        }
        assert!(!Arc::ptr_eq(&one.0, &other.0), "a count for each lane");
        assert_eq!((*one, *other), (7, 7));
        assert_eq!(Arc::strong_count(&it), before, "nobody else counts");
        drop(shared);
        assert_eq!(Arc::strong_count(&it), 3, "these two, and the test");
        drop((one, other));
        assert_eq!(Arc::strong_count(&it), 1);
    }
}
