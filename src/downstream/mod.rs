//! Facing clients: two dialects, two bindings, and the one place that chooses between eras.

use std::time::Duration;

/// Bounds of legacy sessions (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct SessionBounds {
    /// Sessions of one principal: default 1,024.
    pub per_principal: usize,
    /// Sessions in this process: default 50,000.
    pub total: usize,
    /// Ended after this long without a request or open stream: default 15 min.
    pub idle: Duration,
    /// Ended after this long in any case: default 8 h.
    pub absolute: Duration,
}

impl Default for SessionBounds {
    fn default() -> Self {
        Self {
            per_principal: 1_024,
            total: 50_000,
            idle: Duration::from_secs(15 * 60),
            absolute: Duration::from_secs(8 * 3600),
        }
    }
}
