//! What the log is told of a receiver, of each signal by itself: some take traces and no metrics.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::fetch::Address;

/// Says once that nothing comes through, and once more when something does. Clones share everything.
#[derive(Clone)]
pub(super) struct News(Arc<Shared>);

struct Shared {
    receiver: Address,
    /// `traces` or `metrics`.
    signal: &'static str,
    failing: AtomicBool,
    /// Why the last request failed, where the exporters do not repeat it.
    cause: Mutex<Option<String>>,
}

impl News {
    pub(super) fn of(signal: &'static str, receiver: &Address) -> Self {
        Self(Arc::new(Shared {
            receiver: receiver.clone(),
            signal,
            failing: AtomicBool::new(false),
            cause: Mutex::default(),
        }))
    }

    /// Why a request of what is exported failed.
    pub(super) fn because(&self, cause: String) {
        *self.cause() = Some(cause);
    }

    /// What became of an export, in the exporter's words.
    pub(super) fn tell(&self, failure: Option<String>) {
        let cause = self.cause().take();
        let was = self.0.failing.swap(failure.is_some(), Ordering::Relaxed);
        let Shared {
            receiver, signal, ..
        } = &*self.0;
        match failure {
            Some(error) if !was => {
                let error = cause.unwrap_or(error);
                tracing::warn!(%receiver, signal, %error, "telemetry cannot be sent");
            }
            None if was => tracing::info!(%receiver, signal, "telemetry is sent again"),
            Some(_) | None => {}
        }
    }

    fn cause(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.cause.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
