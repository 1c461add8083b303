//! Lanes: threads that each serve connections of their own, so that a call stays on one thread from its first byte to its last.
//!
//! On a runtime that shares its tasks among threads one of them waits for all I/O and hands what became ready to the others:
//! for a call through a gateway that is several wakes of sleeping threads, and its data in two caches. Each lane waits for its
//! own I/O instead, and what runs on it opens and keeps connections that nobody else uses. What is not a client's connection,
//! and everything where no lanes were started, runs on the runtime that started it.
//!
//! Guarantees: new work goes to the lane with the least of it, but stays where it began as long as that is about even; work
//! that takes long can be done [`aside`], so that nobody on the lane waits for it; a task never changes its lane. Deliberately
//! absent: moving what is there. A lane whose clients left has nothing to do until others come.

use std::{
    cell::{Cell, OnceCell},
    io,
    num::NonZero,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::block_in_place,
    time::sleep,
};

use super::clock;

/// How many threads this process may run at once.
static THREADS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

thread_local! {
    /// Which lane this thread belongs to, counted from one; zero if to none.
    static LANE: Cell<usize> = const { Cell::new(0) };
    /// Whether something of this thread's lane is done aside just now; of all its threads the same.
    static BUSY: OnceCell<Arc<AtomicBool>> = const { OnceCell::new() };
}

/// How long threads are kept that nobody needs. One is made with the lane, so that as a rule none has to be made to do
/// something aside.
const SPARE: Duration = Duration::from_secs(3_600);

/// How often each lane's clock strikes, idle or not: more often than a call's deadlines are short. The runtime wakes itself, by a
/// system call and one more look for I/O, for each timer that is set while none is due before it; while the next stroke is, calls
/// set theirs for nothing.
const BEAT: Duration = Duration::from_secs(2);

/// All lanes of a process. A lane ends with the last of its tasks once nobody can give it more.
#[derive(Debug, Clone)]
pub struct Lanes(Arc<[Arc<Lane>]>);

#[derive(Debug)]
struct Lane {
    number: usize,
    /// One worker. `None` only while it is dropped.
    runtime: Option<Runtime>,
    handle: Handle,
    /// How many tasks were given to it and have not ended.
    load: AtomicUsize,
}

/// A task that is given to a lane, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat(Arc<Lane>);

impl Lanes {
    /// As many lanes as threads may run at once, by the machine and by what the process is granted of it.
    ///
    /// # Errors
    /// Whatever the operating system says when threads or descriptors cannot be had.
    pub fn start() -> io::Result<Self> {
        Self::of(*THREADS)
    }

    /// That many lanes. Without any, tasks run where they are made.
    ///
    /// # Errors
    /// As [`Lanes::start`].
    pub fn of(count: usize) -> io::Result<Self> {
        let lanes = (1..=count).map(|number| Lane::start(number).map(Arc::new));
        lanes.collect::<io::Result<_>>().map(Self)
    }

    /// Where the next task belongs: on the lane of who asks, unless another has at least two tasks less.
    pub(super) fn seat(&self) -> Option<Seat> {
        let here = LANE.get();
        let least = self.0.iter().min_by_key(|lane| {
            let more = if lane.number == here { 0 } else { 3 };
            2 * lane.load.load(Relaxed) + more
        })?;
        least.load.fetch_add(1, Relaxed);
        Some(Seat(Arc::clone(least)))
    }
}

impl Lane {
    fn start(number: usize) -> io::Result<Self> {
        let busy = Arc::new(AtomicBool::new(false));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(format!("usher-lane-{number}"))
            .thread_keep_alive(SPARE)
            // Of every thread, for another one takes over from a worker that does something aside.
            .on_thread_start(move || {
                LANE.set(number);
                BUSY.with(|it| drop(it.set(Arc::clone(&busy))));
            })
            .enable_all()
            .build()?;
        drop(runtime.spawn_blocking(|| ()));
        drop(runtime.spawn(async {
            loop {
                sleep(BEAT).await;
            }
        }));
        Ok(Self {
            number,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            load: AtomicUsize::new(0),
        })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It may well be a task that drops the lane, its own even, and that cannot wait for its end.
            runtime.shutdown_background();
        }
    }
}

impl Seat {
    /// Where to run.
    pub(super) fn handle(&self) -> Handle {
        self.0.handle.clone()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Relaxed);
    }
}

/// Bytes that are looked through in about a tenth of a millisecond: from here on that is done aside.
const LONG: usize = 128 << 10;

/// Does `work`, which takes long. Another thread goes on with everything else of this lane meanwhile, which costs some ten
/// microseconds; unless something of it is done aside already: what takes time shares the processors with few, for some of it has
/// to end in time. Where there are no lanes it is simply done.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    let busy = BUSY.with(|it| it.get().map(Arc::clone));
    match busy {
        Some(busy) if !busy.swap(true, Relaxed) => {
            let _free = Free(busy);
            let done = block_in_place(work);
            clock::passed();
            done
        }
        Some(_) | None => {
            let done = work();
            clock::passed();
            done
        }
    }
}

/// Nothing is done aside any more, in a panic too.
struct Free(Arc<AtomicBool>);

impl Drop for Free {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

/// Does `work`, which looks through that many bytes: [`aside`] if they are many.
pub fn look_through<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes < LONG { work() } else { aside(work) }
}

/// One of something for each lane, and one for all that run on none: whoever keeps to its own shares it with no other thread.
#[derive(Debug)]
pub struct PerLane<T>(Box<[Apart<T>]>);

/// In cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// Which one of a [`PerLane`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneIndex(usize);

impl<T: Default> PerLane<T> {
    /// One for each.
    pub fn new() -> Self {
        Self::of(T::default)
    }

    /// A single one for all, for what there are many of and few use at once.
    pub fn single() -> Self {
        Self(Box::new([Apart::default()]))
    }
}

impl<T: Default> Default for PerLane<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> PerLane<T> {
    /// One for each, each made anew.
    pub fn of(mut make: impl FnMut() -> T) -> Self {
        Self((0..=*THREADS).map(|_| Apart(make())).collect())
    }

    /// Which one belongs to this thread.
    pub fn here(&self) -> LaneIndex {
        LaneIndex(LANE.get() % self.0.len())
    }

    /// The one of a place that [`PerLane::here`] said.
    pub fn at(&self, LaneIndex(at): LaneIndex) -> &T {
        &self.0[at % self.0.len()].0
    }

    /// All of them.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter().map(|Apart(it)| it)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::mpsc::{RecvTimeoutError, channel},
    };

    use tokio::{
        sync::{Barrier, Semaphore, mpsc, oneshot},
        task::yield_now,
        time::{sleep, timeout},
    };

    use super::*;
    use crate::tasks::Tasks;

    const SOON: Duration = Duration::from_secs(20);

    /// Loads of all lanes, once they are these.
    async fn loads_are(lanes: &Lanes, wanted: &[usize]) {
        let loads = || -> Vec<_> { lanes.0.iter().map(|it| it.load.load(Relaxed)).collect() };
        let reached = timeout(SOON, async {
            while loads() != wanted {
                sleep(Duration::from_millis(1)).await;
            }
        });
        assert!(reached.await.is_ok(), "{:?}, not {wanted:?}", loads());
    }

    #[tokio::test]
    async fn work_is_spread_evenly_and_stays_on_its_lane() {
        let lanes = Lanes::of(3).unwrap();
        let tasks = Tasks::over(lanes.clone());
        let (told, mut lane_of) = mpsc::channel(6);
        let gate = Arc::new(Semaphore::new(0));
        for number in 0..6 {
            let (told, gate) = (told.clone(), gate.clone());
            // A child's tasks go where its parent's go.
            tasks.child().spread(async move {
                let first = LANE.get();
                for _ in 0..20 {
                    yield_now().await;
                    sleep(Duration::from_millis(1)).await;
                    assert_eq!(LANE.get(), first);
                }
                told.send(first).await.unwrap();
                gate.acquire().await.unwrap().forget();
                assert!(number != 3, "one of them panics, as the test wants");
            });
        }
        let mut each = BTreeMap::new();
        for _ in 0..6 {
            let lane = timeout(SOON, lane_of.recv()).await.unwrap().unwrap();
            *each.entry(lane).or_insert(0) += 1;
        }
        assert_eq!(each, BTreeMap::from([(1, 2), (2, 2), (3, 2)]));
        loads_are(&lanes, &[2, 2, 2]).await;
        gate.add_permits(6);
        loads_are(&lanes, &[0, 0, 0]).await;
        tasks.finish().await;
    }

    #[tokio::test]
    async fn what_a_lane_begins_stays_there_until_another_has_less_to_do() {
        let lanes = Lanes::of(2).unwrap();
        let tasks = Tasks::over(lanes.clone());
        let gate = Arc::new(Semaphore::new(0));
        let (told, mut lane_of) = mpsc::channel(1);
        let (family, waits) = (tasks.clone(), gate.clone());
        tasks.spread(async move {
            for number in 1..=4 {
                let (told, gate) = (told.clone(), waits.clone());
                family.spread(async move {
                    told.send((number, LANE.get())).await.unwrap();
                    gate.acquire().await.unwrap().forget();
                });
            }
            waits.acquire().await.unwrap().forget();
        });
        let mut lanes_of = BTreeMap::new();
        for _ in 0..4 {
            lanes_of.extend(timeout(SOON, lane_of.recv()).await.unwrap());
        }
        assert_eq!(lanes_of, BTreeMap::from([(1, 1), (2, 2), (3, 1), (4, 2)]));
        loads_are(&lanes, &[3, 2]).await;
        gate.add_permits(5);
        loads_are(&lanes, &[0, 0]).await;
        tasks.finish().await;
    }

    #[tokio::test]
    async fn a_family_without_lanes_and_one_with_none_run_where_they_are() {
        for tasks in [Tasks::new(), Tasks::over(Lanes::of(0).unwrap())] {
            let (told, mut lane_of) = mpsc::channel(1);
            tasks.spread(async move { told.send(LANE.get()).await.unwrap() });
            assert_eq!(lane_of.recv().await, Some(0));
            tasks.finish().await;
        }
    }

    #[tokio::test]
    async fn what_looks_through_much_lets_its_lane_go_on() {
        for (bytes, goes_on) in [(LONG - 1, Err(RecvTimeoutError::Timeout)), (LONG, Ok(()))] {
            let tasks = Tasks::over(Lanes::of(1).unwrap());
            let (go, gone) = channel();
            let (told, mut ended) = mpsc::channel(1);
            let family = tasks.clone();
            tasks.spread(async move {
                family.spread(async move {
                    let _ = go.send(());
                });
                let limit = if goes_on.is_ok() {
                    SOON
                } else {
                    Duration::from_millis(50)
                };
                let met = look_through(bytes, || gone.recv_timeout(limit));
                told.send(met).await.unwrap();
            });
            assert_eq!(timeout(SOON, ended.recv()).await.unwrap(), Some(goes_on));
            tasks.finish().await;
        }
    }

    #[tokio::test]
    async fn one_thing_is_done_aside_at_a_time_and_the_next_where_it_is() {
        let tasks = Tasks::over(Lanes::of(1).unwrap());
        let (told, mut ended) = mpsc::channel(2);
        let (end_first, first_ends) = channel::<()>();
        let (go, gone) = channel();
        let family = tasks.clone();
        let first = told.clone();
        tasks.spread(async move {
            family.clone().spread(async move {
                family.spread(async move { go.send(()).unwrap() });
                let met = aside(|| gone.recv_timeout(Duration::from_millis(50)));
                told.send(met).await.unwrap();
                // And again aside, once nothing else is.
                end_first.send(()).unwrap();
            });
            let met = aside(|| first_ends.recv_timeout(SOON));
            first.send(met).await.unwrap();
        });
        let mut next = async || timeout(SOON, ended.recv()).await.unwrap();
        assert_eq!(next().await, Some(Err(RecvTimeoutError::Timeout)));
        assert_eq!(next().await, Some(Ok(())));
        let (go, gone) = channel();
        let family = tasks.clone();
        let (told, mut ended) = mpsc::channel(1);
        tasks.spread(async move {
            family.spread(async move { go.send(()).unwrap() });
            told.send(aside(|| gone.recv_timeout(SOON))).await.unwrap();
        });
        assert_eq!(timeout(SOON, ended.recv()).await.unwrap(), Some(Ok(())));
        tasks.finish().await;
    }

    /// What comes from outside in a while.
    fn soon() -> oneshot::Receiver<()> {
        let (told, coming) = oneshot::channel();
        thread::spawn(|| {
            thread::park_timeout(Duration::from_millis(1));
            told.send(())
        });
        coming
    }

    #[tokio::test]
    async fn a_deadline_that_is_set_does_not_wake_its_lane() {
        const ROUNDS: u32 = 200;
        let lanes = Lanes::of(1).unwrap();
        let tasks = Tasks::over(lanes.clone());
        let (told, mut ended) = mpsc::channel(1);
        tasks.spread(async move {
            let metrics = Handle::current().metrics();
            let before = metrics.worker_park_count(0);
            for _ in 0..ROUNDS {
                // Between calls there is no deadline.
                soon().await.unwrap();
                timeout(SOON, soon()).await.unwrap().unwrap();
            }
            let parked = metrics.worker_park_count(0) - before;
            told.send(parked).await.unwrap();
        });
        // Once for each call, once for each answer, and not for each deadline.
        let parked = ended.recv().await.unwrap();
        assert!(parked < u64::from(ROUNDS) * 5 / 2, "{parked}");
        tasks.finish().await;
    }

    #[tokio::test]
    async fn each_lane_has_one_of_its_own_and_whoever_is_on_none_another() {
        let tasks = Tasks::over(Lanes::of(2).unwrap());
        let each = Arc::new(PerLane::<AtomicUsize>::new());
        let single = Arc::new(PerLane::<AtomicUsize>::single());
        let (told, mut places) = mpsc::channel(2);
        // The first has to be there yet when the second comes, or that may go to the same lane.
        let both = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let (told, each, single) = (told.clone(), each.clone(), single.clone());
            let both = both.clone();
            tasks.spread(async move {
                both.wait().await;
                each.at(each.here()).fetch_add(1, Relaxed);
                single.at(single.here()).fetch_add(1, Relaxed);
                told.send((LANE.get(), each.here())).await.unwrap();
            });
        }
        let mut seen = BTreeMap::new();
        for _ in 0..2 {
            let (lane, place) = timeout(SOON, places.recv()).await.unwrap().unwrap();
            seen.insert(lane, place);
        }
        assert_ne!(seen[&1], seen[&2]);
        assert_eq!(each.here(), LaneIndex(0));
        assert!(each.all().all(|it| it.load(Relaxed) <= 1));
        assert_eq!(single.all().len(), 1);
        assert_eq!(single.at(single.here()).load(Relaxed), 2);
        tasks.finish().await;
    }
}
