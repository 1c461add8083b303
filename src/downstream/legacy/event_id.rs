//! Event ids: which stream of a session, and which event of it, under a mark that only this session can make.
//!
//! Guarantees: an id that was altered in any byte, guessed, or made for another session is not read (SECURITY STATE-6).

use std::sync::OnceLock;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    hmac::{HMAC_SHA256, Key, sign},
};

/// What a session's event ids are made and read with. The key is made when the first stream opens.
#[derive(Debug, Default)]
pub(super) struct EventIds {
    key: OnceLock<Key>,
}

/// One event: of which stream, and which of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventAt {
    pub(super) stream: u64,
    /// 0 is before the first event.
    pub(super) event: u64,
}

impl EventIds {
    /// The id of an event: `STREAM-EVENT-MARK` in hexadecimal.
    pub(super) fn write(&self, at: EventAt) -> String {
        let EventAt { stream, event } = at;
        let mark = self.mark(at);
        format!("{stream:x}-{event:x}-{mark:016x}")
    }

    /// The event with this id, if it is one of this session's.
    pub(super) fn read(&self, id: &str) -> Option<EventAt> {
        let mut parts = id.split('-');
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let at = EventAt {
            stream: number()?,
            event: number()?,
        };
        // Compared as written: there is one spelling only.
        verify_slices_are_equal(self.write(at).as_bytes(), id.as_bytes())
            .is_ok()
            .then_some(at)
    }

    fn mark(&self, at: EventAt) -> u64 {
        let key = self.key.get_or_init(new_key);
        let mut text = [0; 16];
        text[..8].copy_from_slice(&at.stream.to_be_bytes());
        text[8..].copy_from_slice(&at.event.to_be_bytes());
        let tag = sign(key, &text);
        tag.as_ref()
            .iter()
            .take(8)
            .fold(0, |mark, byte| mark << 8 | u64::from(*byte))
    }
}

#[expect(clippy::expect_used, reason = "see the invariant")]
fn new_key() -> Key {
    let mut bytes = [0_u8; 32];
    // INVARIANT: the system's generator fails only before the machine has any entropy, where nothing of ours may run.
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    Key::new(HMAC_SHA256, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_by_its_session_only_and_as_written_only() {
        let (own, other) = (EventIds::default(), EventIds::default());
        let at = EventAt {
            stream: 12,
            event: 345,
        };
        let id = own.write(at);
        assert_eq!(own.read(&id), Some(at));
        assert_eq!(other.read(&id), None);
        for place in 0..id.len() {
            for bit in 0..8 {
                let mut bytes = id.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                if let Ok(altered) = String::from_utf8(bytes) {
                    assert_eq!(own.read(&altered), None, "{altered}");
                }
            }
        }
        for wrong in [
            "",
            "-",
            "--",
            "1-2",
            &format!("0{id}"),
            &format!("{id} "),
            &id.to_uppercase(),
        ] {
            let same = *wrong == id;
            assert!(same || own.read(wrong).is_none(), "{wrong}");
        }
    }
}
