//! Cursors into `tasks/list`: how far one owner has read, sealed (SECURITY STATE-1).
//!
//! Guarantees: a cursor opens only for the owner it was made for, who is a principal or a session at one endpoint, and for
//! as long as cursors of other lists are good.

use super::ledger::Owner;
use crate::{
    catalog::CURSOR_LIFE,
    seal::{Purpose, Sealer},
};

/// Most characters of a cursor that are looked at.
const CHARS: usize = 256;
/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;

/// The cursor of `owner` behind the task of this number, from `now` in seconds since 1970.
pub(super) fn seal(sealer: &Sealer, owner: &Owner, number: u64, now: u64) -> String {
    let plain = [now.to_le_bytes(), number.to_le_bytes()].concat();
    sealer.seal(Purpose::Cursor, &binding(&owner.parts()), &plain)
}

/// How far it was read; `None` when the cursor was altered, is of another list or owner, or is too old.
pub(super) fn open(sealer: &Sealer, owner: &Owner, cursor: &str, now: u64) -> Option<u64> {
    if cursor.len() > CHARS {
        return None;
    }
    let plain = sealer
        .open(Purpose::Cursor, &binding(&owner.parts()), cursor)
        .ok()?;
    let (issued, number) = plain.split_first_chunk()?;
    let issued = u64::from_le_bytes(*issued);
    let old = now > issued.saturating_add(CURSOR_LIFE) || issued > now.saturating_add(SKEW);
    let number = u64::from_le_bytes(number.try_into().ok()?);
    (!old).then_some(number)
}

fn binding(parts: &[String; 3]) -> [&[u8]; 4] {
    let [principal, session, scope] = parts;
    [
        b"tasks/list",
        principal.as_bytes(),
        session.as_bytes(),
        scope.as_bytes(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::{Affinity, Caller, Principal},
        protocol::{ClientCapabilities, Revision, UpstreamId, names::Scope},
    };

    const NOW: u64 = 1_800_000_000;

    fn owner(principal: Principal, session: &str, scope: &Scope) -> Owner {
        let caller = Caller {
            principal,
            revision: Revision::V2025_11_25,
            capabilities: ClientCapabilities::NONE,
            log_level: None,
            affinity: Affinity {
                key: session.into(),
                ended: None,
            },
        };
        Owner::of(&caller, scope)
    }

    #[test]
    fn state_1_a_cursor_of_another_owner_endpoint_key_or_hour_is_refused() {
        let sealer = Sealer::new(b"key");
        let alice = owner(Principal::new("alice"), "s", &Scope::All);
        let text = seal(&sealer, &alice, 20, NOW);
        let reads = |owner: &Owner, now| open(&sealer, owner, &text, now);
        assert_eq!(reads(&alice, NOW), Some(20));
        assert_eq!(reads(&alice, NOW + CURSOR_LIFE), Some(20));
        assert_eq!(reads(&alice, NOW + CURSOR_LIFE + 1), None);
        assert_eq!(reads(&alice, NOW - SKEW - 1), None);
        let own = Scope::Upstream(UpstreamId::parse("all").unwrap());
        for other in [
            owner(Principal::new("bob"), "s", &Scope::All),
            owner(Principal::anonymous(), "s", &Scope::All),
            owner(Principal::new("alice"), "s", &own),
            owner(Principal::new("alice"), "s", &Scope::Toolset("x".into())),
        ] {
            assert_eq!(reads(&other, NOW), None, "{other:?}");
        }
        // Whoever has no name is known by the session.
        let one = owner(Principal::anonymous(), "one", &Scope::All);
        let two = owner(Principal::anonymous(), "two", &Scope::All);
        let text = seal(&sealer, &one, 20, NOW);
        assert_eq!(open(&sealer, &one, &text, NOW), Some(20));
        assert_eq!(open(&sealer, &two, &text, NOW), None);
        assert_eq!(open(&Sealer::new(b"other"), &one, &text, NOW), None);
    }

    #[test]
    fn state_1_a_cursor_altered_in_any_character_is_refused() {
        let sealer = Sealer::new(b"key");
        let alice = owner(Principal::new("alice"), "s", &Scope::All);
        let text = seal(&sealer, &alice, u64::MAX, NOW);
        assert!(text.len() <= CHARS, "{}", text.len());
        for at in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(open(&sealer, &alice, &altered, NOW), None, "{at}");
            assert_eq!(open(&sealer, &alice, &text[..at], NOW), None);
        }
        assert_eq!(open(&sealer, &alice, &"A".repeat(100_000), NOW), None);
    }
}
