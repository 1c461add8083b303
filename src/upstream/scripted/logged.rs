//! What is logged while a test runs, on its own thread. What the command line's tests keep it with lies floors above.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    sync::Arc,
};

use tracing::{Level, subscriber::DefaultGuard};

/// Keeps what is logged, for as long as it lives.
pub(in crate::upstream) struct Logged {
    lines: Arc<File>,
    _guard: DefaultGuard,
}

impl Logged {
    /// Every line from INFO on.
    pub(in crate::upstream) fn new() -> Self {
        Self::from(Level::INFO)
    }

    /// Every line from DEBUG on.
    pub(in crate::upstream) fn all() -> Self {
        Self::from(Level::DEBUG)
    }

    fn from(level: Level) -> Self {
        let lines = Arc::new(tempfile::tempfile().unwrap());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(Arc::clone(&lines))
            .finish();
        Self {
            lines,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// All that was logged so far.
    pub(in crate::upstream) fn text(&self) -> String {
        let (mut lines, mut text) = (&*self.lines, String::new());
        lines.rewind().unwrap();
        lines.read_to_string(&mut text).unwrap();
        text
    }
}
