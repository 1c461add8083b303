//! The stop signals: SIGTERM and SIGINT, the second of which waits for no call, and the third for nothing; and SIGHUP, which reloads.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

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
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
