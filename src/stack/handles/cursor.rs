//! Cursors into `tasks/list`: how far one holder has read, sealed (SECURITY STATE-1).
//!
//! Guarantees: a cursor opens only for the holder it was made for, who is an owner or, where nobody has a name, a session,
//! and for as long as cursors of other lists are good.

use super::ledger::Holder;
use crate::{
    catalog::CURSOR_LIFE,
    seal::{Purpose, Sealer},
};

/// Most characters of a cursor that are looked at.
const CHARS: usize = 256;
/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;

/// The cursor of `holder` behind the task of this number, from `now` in seconds since 1970.
pub(super) fn seal(sealer: &Sealer, holder: &Holder, number: u64, now: u64) -> String {
    let plain = [now.to_le_bytes(), number.to_le_bytes()].concat();
    sealer.seal(Purpose::Cursor, &binding(holder), &plain)
}

/// How far it was read; `None` when the cursor was altered, is of another list or holder, or is too old.
pub(super) fn open(sealer: &Sealer, holder: &Holder, cursor: &str, now: u64) -> Option<u64> {
    if cursor.len() > CHARS {
        return None;
    }
    let plain = sealer
        .open(Purpose::Cursor, &binding(holder), cursor)
        .ok()?;
    let (issued, number) = plain.split_first_chunk()?;
    let issued = u64::from_le_bytes(*issued);
    let old = now > issued.saturating_add(CURSOR_LIFE) || issued > now.saturating_add(SKEW);
    let number = u64::from_le_bytes(number.try_into().ok()?);
    (!old).then_some(number)
}

fn binding(holder: &Holder) -> Vec<&[u8]> {
    let list = std::iter::once(&b"tasks/list"[..]);
    list.chain(holder.parts()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        call::Owner,
        protocol::{UpstreamId, names::Scope},
    };

    const NOW: u64 = 1_800_000_000;

    fn holder(who: &str, client: Option<&str>, session: Option<&str>, scope: &Scope) -> Holder {
        Holder::new(Owner::named(who, client, scope), session)
    }

    fn alice() -> Holder {
        holder("alice", Some("app"), None, &Scope::All)
    }

    #[test]
    fn state_1_a_cursor_of_another_owner_client_endpoint_key_or_hour_is_refused() {
        let sealer = Sealer::new(b"key");
        let text = seal(&sealer, &alice(), 20, NOW);
        let reads = |holder: &Holder, now| open(&sealer, holder, &text, now);
        assert_eq!(reads(&alice(), NOW), Some(20));
        assert_eq!(reads(&alice(), NOW + CURSOR_LIFE), Some(20));
        assert_eq!(reads(&alice(), NOW + CURSOR_LIFE + 1), None);
        assert_eq!(reads(&alice(), NOW - SKEW - 1), None);
        let own = Scope::Upstream(UpstreamId::parse("all").unwrap());
        let toolset = Scope::Toolset("x".into());
        for other in [
            holder("bob", Some("app"), None, &Scope::All),
            holder("alice", Some("another"), None, &Scope::All),
            holder("alice", None, None, &Scope::All),
            holder("anonymous", None, Some("s"), &Scope::All),
            holder("alice", Some("app"), None, &own),
            holder("alice", Some("app"), None, &toolset),
        ] {
            assert_eq!(reads(&other, NOW), None, "{other:?}");
        }
        // Whoever has no name is known by the session.
        let of = |session| holder("anonymous", None, Some(session), &Scope::All);
        let (one, two) = (of("one"), of("two"));
        let text = seal(&sealer, &one, 20, NOW);
        assert_eq!(open(&sealer, &one, &text, NOW), Some(20));
        assert_eq!(open(&sealer, &two, &text, NOW), None);
        assert_eq!(open(&Sealer::new(b"other"), &one, &text, NOW), None);
    }

    #[test]
    fn state_1_a_cursor_altered_in_any_character_is_refused() {
        let sealer = Sealer::new(b"key");
        let text = seal(&sealer, &alice(), u64::MAX, NOW);
        assert!(text.len() <= CHARS, "{}", text.len());
        for at in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(open(&sealer, &alice(), &altered, NOW), None, "{at}");
            assert_eq!(open(&sealer, &alice(), &text[..at], NOW), None);
        }
        assert_eq!(open(&sealer, &alice(), &"A".repeat(100_000), NOW), None);
    }
}
