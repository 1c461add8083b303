//! The stop signals: SIGTERM and SIGINT, the second of which does not wait.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

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
