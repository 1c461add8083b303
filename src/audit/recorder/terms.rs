//! What recording promises, within which bounds, and how it is.

use crate::audit::log::Usage;

/// When a record counts as safe (PRODUCT 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it survives a loss of power. One sync serves all who wait for it.
    Strict,
    /// When the operating system has it: it survives the death of this process. What nobody waits for, such as how a call
    /// ended, gets there [`MAX_WRITE_DELAY`](super::MAX_WRITE_DELAY) after it happened at the latest. Synced at most
    /// [`MAX_SYNC_DELAY`](super::MAX_SYNC_DELAY) later.
    Kernel,
    /// At once. It is written and synced within [`MAX_SYNC_DELAY`](super::MAX_SYNC_DELAY), as far as the disk keeps up.
    Async,
}

impl Durability {
    /// Its word, in configurations and in records.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Kernel => "kernel",
            Self::Async => "async",
        }
    }
}

/// How much may wait to be written (SECURITY 6).
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Records. Default 8,192.
    pub records: usize,
    /// Bytes of their events. Default 32 MiB.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            records: 8_192,
            bytes: 32 << 20,
        }
    }
}

/// How full the disk may be (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// From here on it is told. Default 85 %, with less than 10 GiB left.
    pub warn: Watermark,
    /// From here on new operations are refused, so that the outcomes of those under way can still be written. Default 95 %, with
    /// less than 1 GiB left.
    pub refuse: Watermark,
}

impl Default for Watermarks {
    fn default() -> Self {
        Self {
            warn: Watermark {
                percent: 85,
                left: 10 << 30,
            },
            refuse: Watermark {
                percent: 95,
                left: 1 << 30,
            },
        }
    }
}

/// A share of a disk, and how much may be left for it to count: 5 % of a large disk are room for months.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// What is used, in percent: 1 to 100.
    pub percent: u8,
    /// With this much left, in bytes, the disk is not that full, whatever its share.
    pub left: u64,
}

impl Watermark {
    /// The share alone, as somebody sets who knows the disk: 1 to 100, in percent.
    pub const fn share(percent: u8) -> Self {
        Self {
            percent,
            left: u64::MAX,
        }
    }

    /// Whether a disk is that full.
    pub(super) const fn is_reached(self, usage: Usage) -> bool {
        usage.percent >= self.percent && usage.left < self.left
    }
}

/// How full the disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// There is room.
    #[default]
    Low,
    /// Somebody should make room.
    High,
    /// Nothing new is let in.
    Full,
}

impl Fill {
    /// A stable word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Full => "full",
        }
    }
}

/// How the recording is, for health and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Whether new operations are let in.
    pub available: bool,
    /// Whether the last attempt to write or to sync failed.
    pub failing: bool,
    /// How full the disk is.
    pub fill: Fill,
    /// How many records wait to become safe.
    pub lag: u64,
    /// How many were left out and are not told by a gap record yet.
    pub lost: u64,
    /// How many ever were left out.
    pub ever_lost: u64,
}
