//! The stop signals: SIGTERM and SIGINT, the second of which waits for no call, and the third for nothing; and SIGHUP, which reloads.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Ended;
use crate::tasks::Tasks;

/// Waits for the signal to read again what may have changed: SIGHUP.
#[derive(Debug)]
pub(super) struct Again(Signal);

impl Again {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(super) fn listen() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Until the next one.
    pub(super) async fn asked(&mut self) {
        self.0.recv().await;
    }
}

/// Waits for stop signals.
#[derive(Debug)]
pub(super) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Until the next one.
    pub(super) async fn asked(&mut self) {
        self.which().await;
    }

    /// Until the next one; how whoever ends because of it has ended.
    async fn which(&mut self) -> Ended {
        tokio::select! {
            _ = self.terminate.recv() => Ended::Terminated,
            _ = self.interrupt.recv() => Ended::Interrupted,
        }
    }
}

/// The end of a one-off command before its time, which a signal asks for: what the command has started is closed first, since
/// that has process groups of its own, which no terminal ends. The second signal does not wait for that, and where nothing is
/// open any more the first does not either. A cheap handle.
#[derive(Debug, Clone)]
pub(super) struct Halt(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    by: OnceLock<Ended>,
    once: CancellationToken,
    again: CancellationToken,
    closed: AtomicBool,
}

impl Halt {
    /// Listens from now on, until the process ends.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(super) fn listen() -> io::Result<Self> {
        let mut stop = Stop::listen()?;
        let halt = Self(Arc::default());
        let heard = halt.clone();
        // In no family of those that are closed: it is to hear what comes while they are.
        Tasks::new().spawn(async move {
            loop {
                let by = stop.which().await;
                heard.hear(by);
            }
        });
        Ok(halt)
    }

    fn hear(&self, by: Ended) {
        if self.0.closed.load(Ordering::Acquire) || self.0.again.is_cancelled() {
            std::process::exit(i32::from(by.code()));
        }
        if self.0.by.set(by).is_err() {
            self.0.again.cancel();
        }
        self.0.once.cancel();
    }

    /// Until the first signal; how the command ends because of it.
    pub(super) async fn asked(&self) -> Ended {
        self.0.once.cancelled().await;
        self.0.by.get().copied().unwrap_or(Ended::Interrupted)
    }

    /// Until the second one.
    pub(super) async fn urged(&self) {
        self.0.again.cancelled().await;
    }

    /// Nothing is open any more that would have to be closed.
    ///
    /// # Errors
    /// How the command ends, where a signal asked for that.
    pub(super) fn closed(&self) -> Result<(), Ended> {
        self.0.closed.store(true, Ordering::Release);
        self.0.by.get().map_or(Ok(()), |by| Err(*by))
    }
}
