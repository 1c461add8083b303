//! Records that come while others are written.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
    task::Wake,
    thread::ThreadId,
};

use super::*;
use crate::audit::log::{Appender, Storage as Kept};

/// What happens while the `n`th batch is written.
type Meanwhile = dyn Fn(&Recorder, usize) + Send + Sync;

/// A disk on which something happens while it is written to.
struct Busy {
    disk: Storage,
    shared: Arc<Hook>,
}

struct Hook {
    recorder: OnceLock<Recorder>,
    count: AtomicUsize,
    meanwhile: Box<Meanwhile>,
}

struct BusyFile(Arc<dyn Appender>, Arc<Hook>);

impl fmt::Debug for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Busy")
    }
}

impl Kept for Busy {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn Appender>> {
        let file = self.disk.create(path)?;
        Ok(Arc::new(BusyFile(file, self.shared.clone())))
    }

    fn usage(&self, directory: &Path) -> io::Result<Usage> {
        self.disk.usage(directory)
    }
}

impl Appender for BusyFile {
    fn append(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let Self(file, hook) = self;
        if let Some(recorder) = hook.recorder.get() {
            (hook.meanwhile)(recorder, hook.count.fetch_add(1, Relaxed));
        }
        file.append(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }
}

/// Under `kernel`, on a disk while which is written this happens, once the recorder was given away.
fn busy(
    disk: &Arc<Faulty>,
    directory: &Path,
    meanwhile: Box<Meanwhile>,
) -> (Recorder, Keeper, Arc<Hook>) {
    let shared = Arc::new(Hook {
        recorder: OnceLock::new(),
        count: AtomicUsize::new(0),
        meanwhile,
    });
    let storage = Arc::new(Busy {
        disk: Storage(disk.clone()),
        shared: shared.clone(),
    });
    let key = SigningKey::generate().0;
    let (log, _) = Log::open(storage, directory, origin(), key, Cuts::default()).unwrap();
    let (bounds, hour) = (Bounds::default(), Duration::from_secs(3_600));
    let (recorder, keeper) =
        Recorder::start(log, Durability::Kernel, bounds, hour, Box::new(|_| {})).unwrap();
    (recorder, keeper, shared)
}

/// SECURITY AUD-1: whoever writes for all does not do so for ever, and nothing is lost or moved when another goes on.
#[test]
fn whoever_writes_is_let_go_while_more_comes() {
    const MORE: usize = 500;
    let directory = tempfile::tempdir().unwrap();
    let wrote = Arc::new(Mutex::new(Vec::<ThreadId>::new()));
    let writers = wrote.clone();
    let meanwhile = move |recorder: &Recorder, n: usize| {
        if n < MORE {
            writers.lock().unwrap().push(thread::current().id());
            recorder.note(&happened(n + 1), None, Weight::Fact);
        }
    };
    let (recorder, keeper, shared) = busy(&Arc::default(), directory.path(), Box::new(meanwhile));
    shared.recorder.set(recorder.clone()).ok().unwrap();
    put(&recorder, 0).unwrap();
    let ours = thread::current().id();
    let rounds = wrote
        .lock()
        .unwrap()
        .iter()
        .filter(|id| **id == ours)
        .count();
    assert!(rounds <= 2, "{rounds}");
    drop(keeper);
    assert_eq!(calls(directory.path()), (0..=MORE).collect::<Vec<_>>());
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// A record that somebody waits for, and whether they were woken.
struct Waiting(Safe, Arc<Flag>);

impl Waiting {
    fn on(recorder: &Recorder, n: usize) -> Self {
        let safe = recorder.put(&happened(n), None, Weight::Permit).unwrap();
        let mut waiting = Self(safe, Arc::new(Flag(AtomicBool::new(false))));
        // Once to let others go first, and once to wait.
        assert!(waiting.poll().is_pending());
        waiting.was_woken();
        assert!(waiting.poll().is_pending());
        waiting
    }

    fn poll(&mut self) -> Poll<Result<(), Unavailable>> {
        let waker = self.1.clone().into();
        Pin::new(&mut self.0).poll(&mut Context::from_waker(&waker))
    }

    fn was_woken(&self) -> bool {
        self.1.0.swap(false, Relaxed)
    }
}

/// SECURITY AUD-1: nobody waits for the disk because of others.
#[test]
fn who_waits_goes_on_with_what_is_left_while_the_thread_waits_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Faulty::default());
    let left = Arc::new(Mutex::new(Vec::new()));
    let waiting = left.clone();
    let meanwhile = move |recorder: &Recorder, n: usize| match n {
        0 => recorder.note(&happened(2), None, Weight::Fact),
        1 => {
            let both = [3, 4].map(|n| Waiting::on(recorder, n));
            waiting.lock().unwrap().extend(both);
        }
        _ => {}
    };
    let (recorder, keeper, shared) = busy(&disk, directory.path(), Box::new(meanwhile));
    disk.hangs.store(true, Relaxed);
    put(&recorder, 0).unwrap();
    while disk.syncs.load(Relaxed) == 0 {
        thread::yield_now();
    }
    shared.recorder.set(recorder.clone()).ok().unwrap();
    put(&recorder, 1).unwrap();
    let mut left = std::mem::take(&mut *left.lock().unwrap());
    let mut second = left.pop().unwrap();
    let first = left.pop().unwrap();
    let one = (first.was_woken(), second.was_woken());
    // It has given up waiting meanwhile.
    drop(first);
    let passed_on = second.was_woken();
    let result = second.poll();
    disk.hangs.store(false, Relaxed);
    drop(keeper);
    assert_eq!((one, passed_on), ((true, false), true));
    assert_eq!(result, Poll::Ready(Ok(())));
    assert_eq!(calls(directory.path()), [0, 1, 2, 3, 4]);
}
