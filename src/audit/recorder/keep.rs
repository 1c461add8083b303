//! The thread of a recorder: it syncs, signs, tries again, looks after the disk, and writes where the callers do not.
//!
//! Guarantees under [`Durability::Kernel`]: what is written is durable within [`MAX_SYNC_DELAY`], and what nobody waits for is
//! written within [`MAX_WRITE_DELAY`], as far as the disk keeps up. Always: a sync that failed is tried again without end, with
//! pauses (SECURITY AUD-7); that somebody removed what is written to is noticed before it counts as durable, and within a
//! second. Deliberately absent: who may go on, which the queue says.

use std::{
    sync::{MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use super::{
    super::{
        log::{Ended, Event, Usage, event},
        words,
    },
    Durability, Fill, MAX_SYNC_DELAY, MAX_WRITE_DELAY, Queue, Shared, Watermarks, Weight,
};

/// How many turns of [`MAX_WRITE_DELAY`] a sync may wait for.
const TURNS: u32 = 9;
/// How often it is tried again to write where writing fails.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How often in a row it is tried to make the same durable in a new segment, before a pause.
const SYNCS: u32 = 8;
/// How often it is looked how full the disk is, at most.
const LOOK: Duration = Duration::from_secs(1);
/// The least priority of a thread, as `nice` has it.
#[cfg(target_os = "linux")]
const LEAST: i32 = 19;
/// How often old segments are looked for.
const TIDY: Duration = Duration::from_secs(600);

impl Shared {
    /// The thread: syncs, signs, tries again, looks after the disk, and writes where the callers do not.
    pub(super) fn keep(&self) {
        let (mut looked, mut tidied) = (None, Some(SystemTime::now()));
        let (mut signed, mut watched) = (tidied, tidied);
        let mut indexing = Indexing::default();
        let mut turns = 0;
        loop {
            let closing = self.wait();
            // Asked first: what can be written again has to be made durable again, at once.
            let at_once = closing || self.syncs_each_turn();
            turns += 1;
            // A sync looks whether what is written is where it should be.
            let syncs = at_once || turns >= TURNS || is_due(&mut watched, LOOK);
            // From here on whoever brings a record writes it, so that none is left behind for as long as the disk takes.
            self.queue().syncing = syncs;
            self.write_if_nobody_does();
            if syncs {
                turns = 0;
                self.sync();
                self.queue().syncing = false;
            }
            if is_due(&mut signed, self.interval) || closing {
                // Tried again with the next turn.
                _ = self.log().sign();
            }
            if closing {
                self.sync();
            }
            self.hand_out();
            if closing {
                return;
            }
            if is_due(&mut looked, LOOK) {
                self.look();
            }
            if is_due(&mut tidied, TIDY) {
                // What fails is tried again in time, and told by the next record that cannot be written.
                _ = self.log().tidy();
            }
            let ended = self.log().take_ended();
            indexing.take_on(ended);
        }
    }

    /// Gives away the checkpoints of what is durable.
    fn hand_out(&self) {
        loop {
            // Nobody waits for the log while it is kept elsewhere.
            let Some(signed) = self.log().take_checkpoint() else {
                return;
            };
            (self.outside)(&signed);
        }
    }

    /// Whether a sync waits for nothing: somebody waits for it, or the last one failed.
    fn syncs_each_turn(&self) -> bool {
        self.durability != Durability::Kernel || self.queue().failing
    }

    /// Looks how full the disk is; where that has changed, it is recorded.
    fn look(&self) {
        // Where it cannot be known, writing tells.
        let Ok(usage) = self.log().usage() else {
            return;
        };
        let Watermarks { warn, refuse } = self.watermarks;
        let fill = if refuse.is_reached(usage) {
            Fill::Full
        } else if warn.is_reached(usage) {
            Fill::High
        } else {
            Fill::Low
        };
        let before = std::mem::replace(&mut self.queue().fill, fill);
        if before == fill {
            return;
        }
        let (used, left) = (usage.percent, usage.left);
        match fill {
            Fill::Low => tracing::info!(used, left, "the disk of the audit records has room again"),
            Fill::High => tracing::warn!(used, left, "the disk of the audit records gets full"),
            Fill::Full if self.durability == Durability::Async => {
                tracing::error!(used, left, "the disk of the audit records is full");
            }
            Fill::Full => tracing::error!(
                used,
                left,
                "the disk of the audit records is full: calls are refused until there is room"
            ),
        }
        // A fact is never refused.
        _ = self.take_in(&disk_event(fill, usage), None, Weight::Fact);
    }

    /// Until there is something to do; whether it is to end.
    fn wait(&self) -> bool {
        let mut queue = self.queue();
        let idle = |queue: &Queue| !queue.dirty && queue.events.is_empty() && queue.lost == 0;
        if idle(&queue) && !queue.closing {
            let most = match queue.fill {
                Fill::Full => LOOK,
                // Each second, as a rule: somebody may remove the log while nothing happens.
                Fill::Low | Fill::High => self.interval / 10,
            };
            queue = self.sleep(queue, most);
        }
        let pause = match self.durability {
            _ if queue.failing => RETRY_INTERVAL,
            Durability::Kernel => MAX_WRITE_DELAY,
            Durability::Async => MAX_SYNC_DELAY,
            Durability::Strict => Duration::ZERO,
        };
        if !queue.closing && !idle(&queue) && !pause.is_zero() {
            queue = self.sleep(queue, pause);
        }
        queue.closing
    }

    fn sleep<'a>(&self, queue: MutexGuard<'a, Queue>, most: Duration) -> MutexGuard<'a, Queue> {
        self.work
            .wait_timeout(queue, most)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn write_if_nobody_does(&self) {
        {
            let mut queue = self.queue();
            if queue.writing || (queue.events.is_empty() && queue.lost == 0) {
                return;
            }
            queue.writing = true;
        }
        self.write();
    }

    /// Tells the disk to keep what is written. The log is free meanwhile.
    fn sync(&self) {
        let mut failed = 0;
        loop {
            let (syncing, written, bytes) = {
                let mut log = self.log();
                // Where no segment could be begun for it when the last one was given up, nobody may come to write. What was
                // written before this look was in a file that has its name.
                let again = log.look();
                let mut queue = self.queue();
                if let Err(error) = again {
                    queue.dirty = true;
                    self.failed(&mut queue, Some(&error));
                    self.wake(&mut queue);
                    return;
                }
                let Some(syncing) = log.syncing() else {
                    (queue.dirty, queue.unsynced) = (false, 0);
                    return;
                };
                (syncing, queue.written, queue.unsynced)
            };
            let result = syncing.wait();
            let next = self.log().synced(&syncing, &result);
            let mut queue = self.queue();
            if result.is_ok() {
                queue.dirty = queue.written != written;
                queue.unsynced = queue.unsynced.saturating_sub(bytes);
                queue.safe = queue.safe.max(written);
                // What could not be written still waits.
                queue.failing &= !queue.events.is_empty();
                if !queue.failing && std::mem::take(&mut queue.failure_logged) {
                    tracing::info!("audit records can be written again");
                }
                self.wake(&mut queue);
                return;
            }
            failed += 1;
            if next.is_err() || failed >= SYNCS {
                // Nor can it be written anew, or made durable anywhere: later, then.
                let failure = result.as_ref().err().or(next.as_ref().err());
                queue.dirty = true;
                self.failed(&mut queue, failure);
                self.wake(&mut queue);
                return;
            }
            // It stands in the next segment, and has to become durable there.
        }
    }
}

/// Writes the indexes of segments that ended, on a thread of its own: of one that has to be read it takes a second, and calls wait for
/// the keeper.
#[derive(Default)]
struct Indexing {
    waiting: Vec<Ended>,
    thread: Option<JoinHandle<()>>,
}

impl Indexing {
    fn take_on(&mut self, ended: Vec<Ended>) {
        self.waiting.extend(ended);
        let busy = self.thread.as_ref().is_some_and(|it| !it.is_finished());
        if busy || self.waiting.is_empty() {
            return;
        }
        let segments = std::mem::take(&mut self.waiting);
        // Without a thread, and where one cannot be written, queries read the segment.
        self.thread = thread::Builder::new()
            .name("audit-index".to_owned())
            .spawn(move || {
                give_way();
                for segment in &segments {
                    _ = segment.write_index();
                }
            })
            .ok();
    }
}

/// From here on this thread works when nobody else wants to: nobody waits for an index, and calls wait for a processor.
fn give_way() {
    // Elsewhere it would be said of the whole process. Where it cannot be said, the work is done all the same.
    #[cfg(target_os = "linux")]
    {
        _ = rustix::process::setpriority_process(None, LEAST);
    }
}

/// Whether it is time again, which is noted then.
fn is_due(last: &mut Option<SystemTime>, every: Duration) -> bool {
    let now = SystemTime::now();
    let due = last.is_none_or(|last| now.duration_since(last).is_ok_and(|passed| passed >= every));
    // A clock that was set back counts from where it is.
    if due || last.is_some_and(|last| last > now) {
        *last = Some(now);
    }
    due
}

fn disk_event(fill: Fill, usage: Usage) -> Event {
    event(|object| {
        object
            .object("detail", |inside| {
                inside
                    .text("fill", fill.word())
                    .number("left_bytes", usage.left)
                    .number("used_percent", u64::from(usage.percent));
            })
            .text("event", words::DISK)
            .time(SystemTime::now())
            .number("v", 1);
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn who_gives_way_is_alone_in_that() {
        // The nineteenth field is the priority: the seventeenth behind the name in brackets.
        let priority = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
        };
        let before = priority();
        let gave = thread::spawn(move || {
            give_way();
            priority()
        });
        assert_eq!(gave.join().unwrap(), LEAST);
        assert_eq!(priority(), before);
    }
}
