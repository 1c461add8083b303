//! What is logged while a test runs, on its own thread.

use std::{
    io::{self, Write},
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{Dispatch, Level, subscriber::DefaultGuard};
use tracing_subscriber::Registry;

/// Keeps what is logged, for as long as it lives.
pub(crate) struct Logged {
    lines: Lines,
    _guard: DefaultGuard,
}

impl Logged {
    /// Every line from INFO on.
    pub(crate) fn new() -> Self {
        Self::from(Level::INFO)
    }

    /// Every line from DEBUG on.
    pub(crate) fn all() -> Self {
        Self::from(Level::DEBUG)
    }

    fn from(level: Level) -> Self {
        let lines = Lines::new();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// All that was logged so far.
    pub(crate) fn text(&self) -> String {
        self.lines.text()
    }
}

/// Where a test's own subscriber writes; clones write to the same.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub(crate) fn new() -> Self {
        // A line that is written first on another test's thread is taken for unwanted on every thread, while there is one
        // subscriber in the process. So there are always two.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Registry::default()));
        LazyLock::force(&SECOND);
        Self(Arc::default())
    }

    /// All that was written so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
