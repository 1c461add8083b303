//! Tasks: what may be asked about one (PROTOCOL D3).
//!
//! The canonical words are those of the tasks extension: `ttlMs`, `pollIntervalMs`, and a result or error that stands inside
//! the state. The core tasks of 2025-11-25 are put into them, and out of them again, in the peers and dialects of that
//! revision.

use crate::protocol::methods;

/// What is wanted of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskOp {
    /// Its state: `tasks/get`.
    Get,
    /// Its result, as soon as there is one: `tasks/result`, of 2025-11-25 alone.
    Result,
    /// To have answers to what it asked for: `tasks/update`, of the extension alone.
    Update,
    /// Its end: `tasks/cancel`.
    Cancel,
}

impl TaskOp {
    /// The method's name.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Get => methods::TASKS_GET,
            Self::Result => methods::TASKS_RESULT,
            Self::Update => methods::TASKS_UPDATE,
            Self::Cancel => methods::TASKS_CANCEL,
        }
    }
}
