//! What is logged while a test runs, on its own thread. What the command line's tests keep it with lies floors above.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    sync::Arc,
};

use tracing::subscriber::DefaultGuard;

/// Keeps every line from INFO on, for as long as it lives.
pub(in crate::upstream) struct Logged {
    lines: Arc<File>,
    _guard: DefaultGuard,
}

impl Logged {
    /// From now on.
    pub(in crate::upstream) fn new() -> Self {
        let lines = Arc::new(tempfile::tempfile().unwrap());
        let subscriber = tracing_subscriber::fmt()
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
