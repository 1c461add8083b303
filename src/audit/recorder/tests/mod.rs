//! Many who record at once, on disks that fail.

mod rounds;
mod unwritten;

use std::{path::Path, sync::atomic::Ordering::Relaxed, task::Waker};

use super::*;
use crate::audit::{
    key::SigningKey,
    log::{
        Cuts, Usage, segments,
        testing::{Faulty, Shared as Storage, happened, origin},
        tests::calls,
    },
    verify::verify,
};

fn start(
    disk: &Arc<Faulty>,
    directory: &Path,
    durability: Durability,
    bounds: Bounds,
) -> (Recorder, Keeper) {
    start_every(Duration::from_secs(10), disk, directory, durability, bounds)
}

/// With checkpoints at this interval, for which the thread also sleeps where nobody tells it anything.
fn start_every(
    interval: Duration,
    disk: &Arc<Faulty>,
    directory: &Path,
    durability: Durability,
    bounds: Bounds,
) -> (Recorder, Keeper) {
    let storage = Arc::new(Storage(disk.clone()));
    let key = SigningKey::generate().0;
    let (log, _) = Log::open(storage, directory, origin(), key, Cuts::default()).unwrap();
    Recorder::start(log, durability, bounds, interval, Box::new(|_| {})).unwrap()
}

/// Under `kernel`, with a thread that sleeps for an hour unless it is told something.
fn start_asleep(disk: &Arc<Faulty>, directory: &Path) -> (Recorder, Keeper) {
    let (hour, bounds) = (Duration::from_secs(3_600), Bounds::default());
    let started = start_every(hour, disk, directory, Durability::Kernel, bounds);
    thread::park_timeout(Duration::from_millis(100));
    started
}

/// Room for so many records.
fn few(records: usize) -> Bounds {
    Bounds {
        records,
        ..Bounds::default()
    }
}

/// Waits as a task would, on this thread.
fn block(mut safe: Safe) -> Result<(), Unavailable> {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match Pin::new(&mut safe).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

fn put(recorder: &Recorder, n: usize) -> Result<(), Unavailable> {
    block(recorder.put(&happened(n), None, Weight::Permit)?)
}

/// Until nothing waits; ten seconds, where something does.
fn wait_until_safe(recorder: &Recorder) {
    for _ in 0..10_000 {
        if recorder.lag() == 0 {
            return;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// How many are told as left out: in one gap or in several, for a try to write may be under way while more is left out.
fn lost(directory: &Path) -> usize {
    let all = crate::audit::log::tests::records(directory);
    let counts = all.iter().filter_map(|event| {
        let (_, count) = event.split_once(r#""lost":"#)?;
        count.split_once(',')?.0.parse::<usize>().ok()
    });
    counts.sum()
}

#[test]
fn what_many_put_at_once_is_there_once_and_in_each_ones_order() {
    for durability in [Durability::Strict, Durability::Kernel, Durability::Async] {
        let directory = tempfile::tempdir().unwrap();
        let (recorder, keeper) = start(
            &Arc::default(),
            directory.path(),
            durability,
            Bounds::default(),
        );
        thread::scope(|scope| {
            for who in 0..4 {
                let recorder = recorder.clone();
                scope.spawn(move || {
                    for n in 0..50 {
                        put(&recorder, who * 100 + n).unwrap();
                    }
                });
            }
        });
        drop(keeper);
        let all = calls(directory.path());
        assert_eq!(all.len(), 200, "{durability:?}");
        for who in 0..4 {
            let theirs: Vec<usize> = all.iter().copied().filter(|n| n / 100 == who).collect();
            assert_eq!(theirs, (who * 100..who * 100 + 50).collect::<Vec<_>>());
        }
    }
}

/// SECURITY AUD-1: under `kernel` the operating system has it when the call goes on, under `strict` the disk.
#[test]
fn who_has_waited_finds_the_record_in_the_file() {
    for durability in [Durability::Strict, Durability::Kernel] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, Bounds::default());
        for n in 0..20 {
            put(&recorder, n).unwrap();
            assert_eq!(calls(directory.path()).last(), Some(&n));
            if durability == Durability::Strict {
                assert_eq!(disk.volatile(), 0, "{n}");
            }
        }
        drop(keeper);
        assert_eq!(disk.volatile(), 0);
    }
}

/// Under `kernel`, nobody waits for what has happened already: it goes along with the next permission, before that, or by itself.
#[test]
fn what_nobody_waits_for_is_written_with_what_somebody_does_and_else_soon() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (hour, bounds) = (Duration::from_secs(3_600), Bounds::default());
    let (recorder, keeper) = start_every(hour, &disk, directory.path(), Durability::Kernel, bounds);
    for n in [0, 10, 20] {
        // The thread sleeps for an hour, unless it is told.
        recorder.note(&happened(n), None, Weight::Fact);
        while recorder.lag() > 0 {
            thread::yield_now();
        }
        assert_eq!(calls(directory.path()).last(), Some(&n));
        recorder.note(&happened(n + 1), None, Weight::Fact);
        put(&recorder, n + 2).unwrap();
        let all = calls(directory.path());
        assert_eq!(all[all.len() - 3..], [n, n + 1, n + 2]);
        while recorder.shared.queue().dirty {
            thread::yield_now();
        }
    }
    drop(keeper);
}

/// Whoever is ready at the same time is written by the first who comes to its turn.
#[test]
fn what_is_put_before_anybody_comes_to_its_turn_is_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start_asleep(&disk, directory.path());
    let mut waiting: Vec<Safe> = (0..3)
        .map(|n| recorder.put(&happened(n), None, Weight::Permit).unwrap())
        .collect();
    let before = disk.appends.load(Relaxed);
    let mut cx = Context::from_waker(Waker::noop());
    for safe in &mut waiting {
        assert!(Pin::new(safe).poll(&mut cx).is_pending());
    }
    assert!(calls(directory.path()).is_empty());
    for safe in &mut waiting {
        assert_eq!(Pin::new(safe).poll(&mut cx), Poll::Ready(Ok(())));
        assert_eq!(calls(directory.path()), [0, 1, 2]);
    }
    assert_eq!(disk.appends.load(Relaxed), before + 1);
    drop(keeper);
}

/// A client may go away before its call comes to its turn.
#[test]
fn what_somebody_gave_up_waiting_for_is_written_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start_asleep(&disk, directory.path());
    drop(recorder.put(&happened(0), None, Weight::Permit).unwrap());
    wait_until_safe(&recorder);
    assert_eq!(calls(directory.path()), [0]);
    drop(keeper);
}

/// SECURITY AUD-1: who waits for a record may be kept from its turn by others.
#[test]
fn what_nobody_waits_for_is_written_behind_what_somebody_does_not_come_to_write() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start_asleep(&disk, directory.path());
    let mut late = recorder.put(&happened(0), None, Weight::Permit).unwrap();
    recorder.note(&happened(1), None, Weight::Fact);
    wait_until_safe(&recorder);
    assert_eq!(calls(directory.path()), [0, 1]);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut late).poll(&mut cx).is_pending());
    assert_eq!(Pin::new(&mut late).poll(&mut cx), Poll::Ready(Ok(())));
    drop(keeper);
}

/// Under `kernel`, not even a disk that takes long over a sync keeps what has happened from the operating system.
#[test]
fn what_nobody_waits_for_is_written_while_a_sync_hangs() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start(
        &disk,
        directory.path(),
        Durability::Kernel,
        Bounds::default(),
    );
    disk.hangs.store(true, Relaxed);
    put(&recorder, 0).unwrap();
    while !recorder.shared.queue().syncing {
        thread::yield_now();
    }
    recorder.note(&happened(1), None, Weight::Fact);
    let there = calls(directory.path());
    disk.hangs.store(false, Relaxed);
    drop(keeper);
    assert_eq!(there, [0, 1]);
}

/// SECURITY AUD-2
#[test]
fn what_cannot_be_written_is_refused_kept_and_written_later() {
    for durability in [Durability::Strict, Durability::Kernel] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, few(4));
        put(&recorder, 0).unwrap();
        disk.full.store(true, Relaxed);
        for n in 1..8 {
            assert_eq!(put(&recorder, n), Err(Unavailable), "{n}");
        }
        assert!(!recorder.is_available());
        recorder.note(&happened(8), None, Weight::Fact);
        disk.full.store(false, Relaxed);
        // There is room again when all that was kept is safe, and not when the first of it is written.
        while !recorder.is_available() || recorder.lag() > 0 {
            thread::yield_now();
        }
        put(&recorder, 9).unwrap();
        drop(keeper);
        assert_eq!(
            calls(directory.path()),
            [0, 1, 2, 3, 4, 8, 9],
            "{durability:?}"
        );
        assert_eq!(lost(directory.path()), 3, "{durability:?}");
    }
}

/// SECURITY AUD-2
#[test]
fn who_begins_to_record_on_a_full_disk_refuses_until_there_is_room() {
    for durability in [Durability::Strict, Durability::Kernel] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        disk.full.store(true, Relaxed);
        let (recorder, keeper) = start(&disk, directory.path(), durability, Bounds::default());
        recorder.note(&happened(0), None, Weight::Fact);
        while recorder.is_available() {
            thread::yield_now();
        }
        assert_eq!(put(&recorder, 1), Err(Unavailable), "{durability:?}");
        disk.full.store(false, Relaxed);
        while !recorder.is_available() {
            thread::yield_now();
        }
        put(&recorder, 2).unwrap();
        drop(keeper);
        assert_eq!(calls(directory.path()), [0, 1, 2], "{durability:?}");
    }
}

/// SECURITY 6: anybody may be refused any number of times.
#[test]
fn of_what_was_refused_no_more_is_kept_than_there_is_room_for_and_the_rest_is_counted() {
    for durability in [Durability::Strict, Durability::Kernel] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, few(4));
        disk.full.store(true, Relaxed);
        for n in 0..100 {
            recorder.note(&happened(n), None, Weight::Refusal);
        }
        assert!(recorder.shared.queue().put <= 4, "{durability:?}");
        // Of what was let in everything is told.
        recorder.note(&happened(100), None, Weight::Fact);
        disk.full.store(false, Relaxed);
        drop(keeper);
        let there = calls(directory.path());
        assert_eq!(there.last(), Some(&100));
        assert_eq!(lost(directory.path()), 101 - there.len(), "{durability:?}");
    }
}

/// SECURITY 6: what may have to be written again is kept, within the same bounds.
#[test]
fn nothing_is_let_in_while_a_sync_hangs_and_too_much_waits_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let bounds = Bounds {
        bytes: 4_096,
        ..Bounds::default()
    };
    let (recorder, keeper) = start(&disk, directory.path(), Durability::Kernel, bounds);
    disk.hangs.store(true, Relaxed);
    let let_in = (0..1_000)
        .take_while(|n| put(&recorder, *n).is_ok())
        .count();
    assert!((100..1_000).contains(&let_in), "{let_in}");
    assert!(!recorder.is_available());
    recorder.note(&happened(1_000), None, Weight::Fact);
    disk.hangs.store(false, Relaxed);
    while !recorder.is_available() {
        thread::yield_now();
    }
    put(&recorder, 1_001).unwrap();
    drop(keeper);
    let mut all: Vec<usize> = (0..let_in).collect();
    all.extend([1_000, 1_001]);
    assert_eq!(calls(directory.path()), all);
}

#[test]
fn a_gap_of_a_queue_that_was_full_is_told_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start(&disk, directory.path(), Durability::Async, few(10));
    disk.full.store(true, Relaxed);
    put(&recorder, 0).unwrap();
    while recorder.is_available() {
        thread::yield_now();
    }
    for n in 1..100 {
        put(&recorder, n).unwrap();
    }
    disk.full.store(false, Relaxed);
    drop(keeper);
    let counted = recorder.health().ever_lost;
    let there = calls(directory.path()).len();
    assert_eq!(lost(directory.path()), 100 - there);
    assert_eq!(counted, 100 - there as u64);
}

/// SECURITY REL-9: nothing has failed where a stream takes nothing more, and yet records are lost.
#[test]
fn what_a_stream_that_hangs_makes_lost_is_counted_also_when_a_gap_has_told_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start(&disk, directory.path(), Durability::Async, few(10));
    assert_eq!(recorder.health().ever_lost, 0);
    disk.stalls.store(true, Relaxed);
    put(&recorder, 0).unwrap();
    while recorder.shared.queue().taken.0 == 0 {
        thread::yield_now();
    }
    for n in 1..100 {
        put(&recorder, n).unwrap();
    }
    let health = recorder.health();
    disk.stalls.store(false, Relaxed);
    assert_eq!((health.available, health.ever_lost), (true, 90));
    while recorder.health().lost > 0 || recorder.lag() > 0 {
        thread::yield_now();
    }
    assert_eq!(recorder.health().ever_lost, 90);
    drop(keeper);
    assert_eq!(lost(directory.path()), 90);
}

/// Whoever loses much is told once, and again of what is lost later.
#[tokio::test(start_paused = true)]
async fn a_time_in_which_records_are_lost_is_told_of_once() {
    let mut queue = Queue::default();
    assert!(queue.lose());
    for _ in 0..100 {
        tokio::time::advance(QUIET - Duration::from_millis(1)).await;
        assert!(!queue.lose());
    }
    tokio::time::advance(QUIET).await;
    assert!(queue.lose());
    assert_eq!((queue.lost, queue.ever_lost), (102, 102));
}

/// SECURITY AUD-7
#[test]
fn a_sync_that_fails_makes_nobody_go_on_before_it_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start(
        &disk,
        directory.path(),
        Durability::Strict,
        Bounds::default(),
    );
    for n in 0..30 {
        disk.lying.store(n % 3, Relaxed);
        put(&recorder, n).unwrap();
        assert_eq!(disk.volatile(), 0);
        assert_eq!(calls(directory.path()).last(), Some(&n));
    }
    drop(keeper);
    assert_eq!(calls(directory.path()), (0..30).collect::<Vec<_>>());
}

/// SECURITY AUD-7: under `kernel` a caller may end the segment for which the thread waits.
#[test]
fn a_sync_that_fails_while_somebody_ends_the_segment_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let cuts = Cuts {
        // The second record goes to the next one.
        segment: 600,
        ..Cuts::default()
    };
    let (storage, key) = (Arc::new(Storage(disk.clone())), SigningKey::generate().0);
    let (log, _) = Log::open(storage, directory.path(), origin(), key, cuts).unwrap();
    let (hour, bounds) = (Duration::from_secs(3_600), Bounds::default());
    let (recorder, keeper) =
        Recorder::start(log, Durability::Kernel, bounds, hour, Box::new(|_| {})).unwrap();
    disk.lingers.store(true, Relaxed);
    disk.lying.store(1, Relaxed);
    put(&recorder, 0).unwrap();
    while disk.lying.load(Relaxed) > 0 {
        thread::yield_now();
    }
    // It may be refused, and is kept then.
    _ = put(&recorder, 1);
    drop(keeper);
    assert_eq!(calls(directory.path()), [0, 1]);
}

/// SECURITY AUD-4, AUD-7
#[test]
fn no_checkpoint_leaves_that_the_log_does_not_hold_to() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let key = SigningKey::generate().0;
    let public = key.public();
    let cuts = Cuts {
        records: 4,
        ..Cuts::default()
    };
    let storage = Arc::new(Storage(disk.clone()));
    let (log, _) = Log::open(storage, directory.path(), origin(), key, cuts).unwrap();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let outside = taken.clone();
    let (recorder, keeper) = Recorder::start(
        log,
        Durability::Strict,
        Bounds::default(),
        Duration::from_secs(10),
        Box::new(move |signed| outside.lock().unwrap().push(signed.clone())),
    )
    .unwrap();
    for n in 0..30 {
        disk.lying.store(usize::from(n % 5 == 4), Relaxed);
        put(&recorder, n).unwrap();
    }
    drop(keeper);
    let taken = taken.lock().unwrap();
    assert!(taken.len() > 5, "{taken:?}");
    let report = verify(directory.path(), &[public], &taken, |_| {}).unwrap();
    assert_eq!(report.faults, []);
    let newest = taken.last().unwrap().checkpoint.last.seq;
    // What was signed last is after it.
    assert_eq!(report.outside, Some(newest));
    assert_eq!(report.last.unwrap().seq, newest + 1);
}

/// SECURITY AUD-2, AUD-7
#[test]
fn a_disk_that_never_syncs_refuses_is_not_worn_out_and_serves_again() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (recorder, keeper) = start(
        &disk,
        directory.path(),
        Durability::Strict,
        Bounds::default(),
    );
    put(&recorder, 0).unwrap();
    disk.lying.store(1 << 40, Relaxed);
    assert_eq!(put(&recorder, 1), Err(Unavailable));
    // A turn of eight, and perhaps a few more; segments in which nothing is durable are gone.
    let tried = (1 << 40) - disk.lying.load(Relaxed);
    assert!((8..=40).contains(&tried), "{tried}");
    assert!(segments(directory.path()).unwrap().len() <= 3);
    disk.lying.store(0, Relaxed);
    let begun = SystemTime::now();
    while put(&recorder, 2).is_err() {
        assert!(begun.elapsed().unwrap() < Duration::from_secs(20));
        thread::yield_now();
    }
    drop(keeper);
    let calls = calls(directory.path());
    assert_eq!(calls[..2], [0, 1], "what was refused is there all the same");
    assert!(calls[2..].iter().all(|call| *call == 2));
}

/// SECURITY AUD-7: nobody has to come with a record for that.
#[test]
fn what_could_not_be_written_again_when_a_sync_failed_is_when_the_disk_is_well() {
    for durability in [Durability::Strict, Durability::Kernel] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, Bounds::default());
        put(&recorder, 0).unwrap();
        disk.hangs.store(true, Relaxed);
        recorder.note(&happened(1), None, Weight::Fact);
        while !recorder.shared.queue().syncing || recorder.shared.queue().written < 2 {
            thread::yield_now();
        }
        // The sync fails, and there is no room for a segment.
        disk.full.store(true, Relaxed);
        disk.lying.store(1, Relaxed);
        disk.hangs.store(false, Relaxed);
        while !recorder.health().failing {
            thread::yield_now();
        }
        thread::park_timeout(2 * keep::RETRY_INTERVAL);
        assert!(recorder.health().failing, "{durability:?}");
        disk.full.store(false, Relaxed);
        let begun = SystemTime::now();
        while recorder.health().failing || recorder.lag() > 0 {
            assert!(begun.elapsed().unwrap() < Duration::from_secs(20));
            thread::yield_now();
        }
        assert!(recorder.is_available(), "{durability:?}");
        assert_eq!(disk.volatile(), 0, "{durability:?}");
        assert_eq!(calls(directory.path()), [0, 1], "{durability:?}");
        drop(keeper);
    }
}

fn until(recorder: &Recorder, fill: Fill) {
    while recorder.health().fill != fill {
        thread::yield_now();
    }
}

/// SECURITY 6: the disk watermarks.
#[test]
fn nothing_new_is_let_in_while_the_disk_is_too_full_and_again_when_it_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let (often, bounds) = (Duration::from_millis(20), Bounds::default());
    let (recorder, keeper) =
        start_every(often, &disk, directory.path(), Durability::Kernel, bounds);
    for (used, fill) in [(84, Fill::Low), (85, Fill::High), (94, Fill::High)] {
        disk.used.store(used, Relaxed);
        until(&recorder, fill);
        put(&recorder, usize::from(used)).unwrap();
    }
    disk.used.store(95, Relaxed);
    until(&recorder, Fill::Full);
    assert!(recorder.put(&happened(1), None, Weight::Permit).is_err());
    block(recorder.put(&happened(2), None, Weight::Fact).unwrap()).unwrap();
    disk.used.store(94, Relaxed);
    until(&recorder, Fill::High);
    put(&recorder, 3).unwrap();
    drop(keeper);
    let there = calls(directory.path());
    assert!(there.contains(&2) && there.contains(&3), "{there:?}");
    let all = crate::audit::log::tests::records(directory.path()).join("\n");
    for word in ["high", "full"] {
        assert!(all.contains(&format!(r#""fill":"{word}""#)), "{all}");
    }
}

/// SECURITY 6: a share of a large disk is room for long.
#[test]
fn a_disk_is_full_by_its_share_only_where_little_is_left_unless_a_share_was_set() {
    const GIB: u64 = 1 << 30;
    let Watermarks { warn, refuse } = Watermarks::default();
    for (mark, percent, left) in [(warn, 85, 10 * GIB), (refuse, 95, GIB)] {
        let at = |percent, left| mark.is_reached(Usage { percent, left });
        assert!(at(percent, left - 1) && at(100, 0));
        assert!(!at(percent - 1, left - 1) && !at(percent, left) && !at(99, left));
    }
    let set = Watermark::share(95);
    assert!(set.is_reached(Usage {
        percent: 95,
        left: 400 * GIB
    }));

    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    disk.used.store(97, Relaxed);
    disk.left.store(GIB, Relaxed);
    let (often, bounds) = (Duration::from_millis(20), Bounds::default());
    let (recorder, keeper) =
        start_every(often, &disk, directory.path(), Durability::Kernel, bounds);
    until(&recorder, Fill::High);
    put(&recorder, 0).unwrap();
    disk.left.store(GIB - 1, Relaxed);
    until(&recorder, Fill::Full);
    assert!(recorder.put(&happened(1), None, Weight::Permit).is_err());
    drop(keeper);
    let all = crate::audit::log::tests::records(directory.path()).join("\n");
    assert!(
        all.contains(r#""fill":"full","left_bytes":1073741823,"used_percent":97"#),
        "{all}"
    );
}
