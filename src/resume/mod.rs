//! Going on with a call that asked for input: what may be asked and answered, and the sealed state that ties the two together.
//! See PROTOCOL D2, SECURITY STATE-2, STATE-3.
//!
//! Guarantees: state opened by another principal, at another endpoint, for another call or other arguments, or late, is refused
//! like state that was never ours; an upstream asks only for what the caller declared, within bounds; an answer that was not
//! asked for goes no further, and one that does not fit is refused. Nothing is stored: all of it is in the sealed text.
//! A call that a person has to agree to counts that once, when it is sent. Deliberately absent: single use of all other state, which a parked
//! exchange has by itself; what the questions look like to a client.

mod answers;
mod asked;
mod digest;
mod form;
mod spent;
mod ticket;

pub use answers::BadAnswer;
pub use asked::{Ask, Asked, Fault};
pub use digest::of as arguments_digest;
pub use spent::{NotAgain, Number, Spent};
pub use ticket::{Approval, BadState, CallBinding, Given, Ticket};

use crate::json::Node;

/// How much may be asked, and for how long (SECURITY 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Seconds that state is good for: a person answers within that time or not at all. Default 600, at most [`MOST_LIFE`].
    pub life: u64,
    /// How often one call may ask. Default 8.
    pub rounds: u32,
    /// How much one call may ask for in one round. Default 8.
    pub inputs: usize,
    /// The longest state of an upstream's own, in bytes of its text. Default 16 KiB, at most [`MOST_STATE_BYTES`].
    pub state_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            life: 600,
            rounds: 8,
            inputs: 8,
            state_bytes: 16 << 10,
        }
    }
}

impl Bounds {
    /// Whether a state of an upstream's own is within bounds: the text that it is, and what is written for that, which is sealed.
    pub fn hold_state(&self, state: Node<'_>) -> bool {
        let written = state.raw().len();
        written <= MOST_STATE_BYTES + QUOTES
            && state
                .as_str()
                .is_some_and(|text| text.len() <= self.state_bytes)
    }
}

/// The most of [`Bounds::life`].
pub const MOST_LIFE: u64 = 3_600;
/// The most of [`Bounds::state_bytes`], and of what is written for a state, escapes included: with forms beside it, sealed, it
/// still is within [`SEALED_CHARS`].
pub const MOST_STATE_BYTES: usize = 48 << 10;
/// The bytes that stand around a text where it is written.
const QUOTES: usize = 2;
/// The longest name of a question, in bytes; escaped it still fits a member name.
pub const KEY_BYTES: usize = 128;
/// The most bytes that the questions of one round may have: room for a few pictures to look at.
pub const REQUEST_BYTES: usize = 4 << 20;
/// The most bytes that are kept of the forms of one round to check the answers with.
pub const FORM_BYTES: usize = 32 << 10;
/// The longest sealed state that is looked at, in characters; ours are shorter.
pub const SEALED_CHARS: usize = 128 << 10;
