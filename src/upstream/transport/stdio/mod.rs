//! A child process that speaks on its pipes, one message per line (PROTOCOL B6).
//!
//! Guarantees: the child has the environment it was given and nothing else, gains no privileges, and dies with its
//! whole process group when the transport does (SECURITY OPS-2); garbage, floods, long lines and death end in an
//! error for those who wait on this child and for nobody else (OPS-3). Deliberately absent: starting it again.

mod launch;
mod lines;
mod orphans;
mod stderr;

#[cfg(test)]
mod tests;

use std::{io, process::ExitStatus, sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use http::HeaderMap;
use process_wrap::tokio::ChildWrapper;
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::{launch::Group, lines::Lines, stderr::Stderr};
use super::{
    Answer, Frames, Head, Outbound, Owners, Transport,
    mux::{Inbox, Mux, Slot, unsent},
};
use crate::{
    protocol::UpstreamId,
    tasks::Tasks,
    upstream::{
        UpstreamError,
        spec::{PeerBounds, StdioSpec},
    },
};

/// How many frames wait to be written; the next sender waits with them.
const OUTGOING: usize = 16;
/// How long each step of an ending may take before the next, rougher one: stdin closed, SIGTERM, SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long what a dead child has left in its pipes may take to read; and again, when whoever does not read theirs is waited for
/// no more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Bytes of its last words that are told.
const TOLD: usize = 1024;
/// Characters of what it wrote where messages belong that are told.
const TOLD_NOISE: usize = 200;

/// A running child. Dropping it kills the child's process group.
#[derive(Debug)]
pub struct Stdio {
    mux: Mux,
    outgoing: mpsc::Sender<Line>,
    stderr: Stderr,
    closing: CancellationToken,
    tasks: Tasks,
}

/// A line to be written, and who waits for its answer.
#[derive(Debug)]
struct Line {
    frame: Bytes,
    slot: Option<Arc<Slot>>,
}

/// Why a pipe is of no more use.
#[derive(Debug)]
enum End {
    /// The child closed its stdout.
    StdoutClosed,
    /// The child takes no more input.
    StdinClosed,
    /// What it wrote is over a bound, or breaks the protocol for too long.
    BadOutput(UpstreamError),
}

impl Stdio {
    /// Starts the child; its tasks live in `tasks`. That it runs does not mean that it speaks.
    ///
    /// # Errors
    /// `Unavailable` when there is no such program, or it cannot be started.
    pub async fn spawn(
        upstream: &UpstreamId,
        spec: &StdioSpec,
        bounds: &PeerBounds,
        tasks: &Tasks,
    ) -> Result<Self, UpstreamError> {
        let (mut child, group) = launch::launch(spec).await?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (
            child.stdin().take(),
            child.stdout().take(),
            child.stderr().take(),
        ) else {
            return Err(UpstreamError::unreached("the child has no pipes"));
        };
        let tasks = tasks.child();
        orphans::look_after(&tasks);
        let closing = CancellationToken::new();
        let (mux, inbox) = Mux::new(upstream.clone(), bounds.json);
        let stderr = Stderr::capture(stderr, upstream.clone(), spec, bounds.stderr_bytes, &tasks);
        let (outgoing, lines) = mpsc::channel(OUTGOING);
        let (end, ends) = mpsc::channel(2);
        tasks.spawn(write(stdin, lines, closing.clone(), end.clone()));
        tasks.spawn(read(Lines::new(stdout, bounds.line_bytes), inbox, end));
        let supervised = Supervised {
            mux: mux.clone(),
            child,
            group,
            ends,
            closing: closing.clone(),
            stderr: stderr.clone(),
        };
        let last_word = mux.last_word();
        tasks.spawn(async move { last_word.say(supervised.outcome().await) });
        Ok(Self {
            mux,
            outgoing,
            stderr,
            closing,
            tasks,
        })
    }

    /// What the child last said on stderr: within its bound, made printable.
    pub fn last_words(&self) -> String {
        self.stderr.tail(usize::MAX)
    }

    async fn exchange(&self, out: Outbound) -> Result<Answer, UpstreamError> {
        let exchange = match &out.id {
            Some(id) if out.listens => Some(self.mux.begin_listen(id, out.limits)?),
            Some(id) => Some(self.mux.begin(id, out.limits)?),
            None => None,
        };
        let line = Line {
            frame: one_line(out.frame),
            slot: exchange.as_ref().map(|exchange| exchange.slot()),
        };
        if self.outgoing.send(line).await.is_err() {
            // The writer ends only when the child takes no more, and then the end is near.
            return Err(match timeout(GRACE * 3, self.mux.lost()).await {
                Ok(ended_by) => unsent(&ended_by),
                Err(_elapsed) => UpstreamError::unreached("takes no more input"),
            });
        }
        match exchange {
            Some(exchange) => Mux::answer(exchange).await,
            None => Ok(Answer::Accepted(Head::default())),
        }
    }

    async fn end(&self) {
        self.closing.cancel();
        // The supervisor takes at most three steps, and reads what is left.
        drop(timeout(GRACE * 4, self.mux.lost()).await);
        self.tasks.stop();
    }
}

impl Transport for Stdio {
    fn send(&self, out: Outbound) -> BoxFuture<'_, Result<Answer, UpstreamError>> {
        Box::pin(self.exchange(out))
    }

    fn unsolicited(&self, _headers: HeaderMap) -> BoxFuture<'_, Result<Frames, UpstreamError>> {
        Box::pin(std::future::ready(self.mux.unsolicited()))
    }

    fn sort_by(&self, owners: Arc<dyn Owners>) {
        self.mux.sort_by(owners);
    }

    fn words(&self) -> Option<String> {
        let mut words = Vec::new();
        let last = self.stderr.tail(TOLD);
        if !last.is_empty() {
            words.push(format!("its last words: {last}"));
        }
        if let Some(noise) = self.mux.noise() {
            let noise: String = self.stderr.fit(&noise).chars().take(TOLD_NOISE).collect();
            words.push(format!("it wrote to stdout what is no message: {noise}"));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }

    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        Box::pin(self.mux.lost())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

/// A frame without line breaks. Inside JSON one is only ever white space between tokens, so a blank means the same.
fn one_line(frame: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &frame).is_none() {
        return frame;
    }
    let blank = |byte: &u8| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    };
    frame.iter().map(blank).collect()
}

async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<Line>,
    closing: CancellationToken,
    end: mpsc::Sender<End>,
) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = closing.cancelled() => None,
        };
        let Some(Line { frame, slot }) = line else {
            return;
        };
        // Nobody waits for it any more, and none of it has been sent.
        if slot.is_some_and(|slot| slot.is_abandoned()) {
            continue;
        }
        let mut line = frame.chain(&b"\n"[..]);
        if stdin.write_all_buf(&mut line).await.is_err() {
            drop(end.try_send(End::StdinClosed));
            return;
        }
    }
}

async fn read(mut lines: Lines<ChildStdout>, mut inbox: Inbox, end: mpsc::Sender<End>) {
    let why = loop {
        match lines.next().await {
            Ok(Some(line)) => {
                if let Err(error) = inbox.take(line).await {
                    break End::BadOutput(error);
                }
            }
            Ok(None) => break End::StdoutClosed,
            Err(error) => break End::BadOutput(error),
        }
    };
    drop(end.send(why).await);
}

/// The child and what tells that it is at its end.
struct Supervised {
    mux: Mux,
    child: Box<dyn ChildWrapper>,
    group: Group,
    ends: mpsc::Receiver<End>,
    closing: CancellationToken,
    stderr: Stderr,
}

impl Supervised {
    /// Waits for the end, brings it about where it must, and says what it was.
    async fn outcome(mut self) -> UpstreamError {
        let mut reading = true;
        let mut broken = None;
        let mut status = None;
        // The child alone: its wrapper waits for the whole group, and where we are the first process of a container those whom the
        // child leaves behind are ours to wait for.
        let child = self.child.inner_mut();
        tokio::select! {
            biased;
            Some(end) = self.ends.recv() => {
                reading = !matches!(end, End::StdoutClosed | End::BadOutput(_));
                match end {
                    End::BadOutput(error) => broken = Some(error),
                    // It is about to die, most likely; how it died is worth a moment.
                    End::StdoutClosed | End::StdinClosed => status = timeout(GRACE, child.wait()).await.ok(),
                }
            }
            exited = child.wait() => status = Some(exited),
            () = self.closing.cancelled() => {
                // A child that cannot finish its line does not see that it is to end.
                self.mux.hurry();
                status = timeout(GRACE, child.wait()).await.ok();
                if status.is_none() {
                    self.group.terminate();
                    status = timeout(GRACE, child.wait()).await.ok();
                }
            }
        }
        // Whatever it has started goes with it. What is in the pipes was said while it lived.
        self.group.kill();
        let exited = match status {
            Some(status) => status,
            None => child.wait().await,
        };
        // Those of them that fell to us; there is nobody else, as a rule.
        drop(timeout(GRACE, self.child.wait()).await);
        self.group.gone();
        let mut hurried = false;
        while reading {
            match timeout(LAST_WORDS, self.ends.recv()).await {
                // Somebody does not read what it said, which would cost them and others its answers.
                Err(_elapsed) if !hurried => {
                    hurried = true;
                    self.mux.hurry();
                }
                Ok(Some(End::StdinClosed)) => {}
                Ok(Some(End::BadOutput(error))) => {
                    broken = Some(error);
                    reading = false;
                }
                Ok(Some(End::StdoutClosed) | None) | Err(_) => reading = false,
            }
        }
        self.stderr.ended(LAST_WORDS).await;
        self.judge(broken, exited)
    }

    fn judge(
        &self,
        broken: Option<UpstreamError>,
        exited: io::Result<ExitStatus>,
    ) -> UpstreamError {
        if let Some(error) = broken {
            return error;
        }
        let mut cause = match (self.closing.is_cancelled(), exited) {
            (true, _) => "closed".to_owned(),
            (false, Ok(status)) => format!("the child ended: {status}"),
            (false, Err(error)) => format!("the child ended: {error}"),
        };
        let words = self.stderr.tail(TOLD);
        if !words.is_empty() {
            cause.push_str("; its last words: ");
            cause.push_str(&words);
        }
        UpstreamError::unreached(cause)
    }
}
