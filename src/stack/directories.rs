//! Directory cursors: an upstream's own goes out sealed and comes back to that upstream alone (PROTOCOL D4, SECURITY STATE-1).
//!
//! Directories are read where they are, page by page, so their cursors hold the upstream's; every other list is ours.

use std::sync::Arc;

use futures_util::StreamExt;

use super::{Error, Gate, Wrap};
use crate::{
    call::{Call, Op, Outcome, Owner, Reply, ReplyStream, Step},
    json::{Edits, Fate, Json, Node},
    seal::{Purpose, Sealer, unix_seconds},
    stage::Permitted,
};

/// Seconds a cursor is good for.
const LIFE: u64 = 3_600;
/// Seconds that replicas' clocks may differ.
const SKEW: u64 = 60;
/// The most bytes of an upstream's cursor; a longer one ends the list.
const LOCAL_BYTES: usize = 4 << 10;
/// The most characters of a cursor of ours that are looked at.
const CURSOR_CHARS: usize = 8 << 10;

/// Seals and opens cursors of directories.
#[derive(Debug, Clone)]
pub(super) struct Directories {
    sealer: Arc<Sealer>,
}

/// What a cursor is tied to.
#[derive(Debug)]
pub(super) struct Place {
    sealer: Arc<Sealer>,
    owner: Owner,
    uri: Arc<str>,
}

impl Directories {
    pub(super) fn new(sealer: &Arc<Sealer>) -> Self {
        Self {
            sealer: sealer.clone(),
        }
    }

    /// Puts the upstream's cursor in the place of ours.
    ///
    /// # Errors
    /// [`Error::BadCursor`] when it was altered, given to somebody else, elsewhere or for another directory, or is too old.
    fn open(&self, call: &mut Call) -> Result<(), Error> {
        let Op::ReadDirectory(uri, Some(cursor)) = &call.op else {
            return Ok(());
        };
        let place = self.place(call, uri);
        let local = place.open(cursor, unix_seconds()).ok_or(Error::BadCursor)?;
        call.op = Op::ReadDirectory(place.uri, Some(local));
        Ok(())
    }

    fn place(&self, call: &Call, uri: &Arc<str>) -> Place {
        Place {
            sealer: self.sealer.clone(),
            owner: call.owner(),
            uri: uri.clone(),
        }
    }
}

impl Place {
    fn binding(&self) -> Vec<&[u8]> {
        let parts = std::iter::once(&b"directory"[..]).chain(self.owner.parts());
        parts.chain([self.uri.as_bytes()]).collect()
    }

    fn seal(&self, local: &str, now: u64) -> String {
        let mut plain = now.to_le_bytes().to_vec();
        plain.extend_from_slice(local.as_bytes());
        self.sealer.seal(Purpose::Cursor, &self.binding(), &plain)
    }

    fn open(&self, cursor: &str, now: u64) -> Option<String> {
        if cursor.len() > CURSOR_CHARS {
            return None;
        }
        let plain = self
            .sealer
            .open(Purpose::Cursor, &self.binding(), cursor)
            .ok()?;
        let (issued, local) = plain.split_first_chunk()?;
        let issued = u64::from_le_bytes(*issued);
        if now > issued.saturating_add(LIFE) || issued > now.saturating_add(SKEW) {
            return None;
        }
        String::from_utf8(local.to_vec()).ok()
    }

    fn outcome(&self, outcome: Outcome) -> Outcome {
        let Outcome::Complete(result) = outcome else {
            return outcome;
        };
        let Some(cursor) = result.root().member("nextCursor") else {
            return Outcome::Complete(result);
        };
        let local = cursor.as_str().filter(|cursor| cursor.len() <= LOCAL_BYTES);
        let mut edits = Edits::new();
        match local {
            Some(local) => {
                edits.replace(cursor, Json::string(&self.seal(&local, unix_seconds())));
            }
            None => {
                let fate = |key: &str, _: Node<'_>| {
                    if key == "nextCursor" {
                        Fate::Remove
                    } else {
                        Fate::Keep
                    }
                };
                edits.members(result.root(), fate, &[]);
            }
        }
        Outcome::Complete(result.splice(&edits))
    }
}

impl Gate<Box<Permitted>> for Directories {
    type Pass = Box<Permitted>;

    fn admit(&self, mut permitted: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        self.open(&mut permitted.call)?;
        Ok(permitted)
    }
}

impl Wrap<Box<Permitted>> for Directories {
    type Mark = Option<Box<Place>>;

    fn enter(&self, routed: &mut Box<Permitted>) -> Self::Mark {
        let Op::ReadDirectory(uri, _) = &routed.call.op else {
            return None;
        };
        Some(Box::new(self.place(&routed.call, uri)))
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(place) = mark else { return result };
        Ok(match result? {
            Reply::Done(outcome) => Reply::Done(place.outcome(outcome)),
            Reply::Stream(stream) => {
                let steps = stream.map(move |step| match step {
                    Step::Event(event) => Step::Event(event),
                    Step::Outcome(outcome) => Step::Outcome(place.outcome(outcome)),
                });
                Reply::Stream(ReplyStream::new(steps.boxed()))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::names::Scope;

    #[test]
    fn a_cursor_opens_for_its_own_directory_and_owner_until_it_is_too_old() {
        let place_of = |client: Option<&str>, uri: &str| Place {
            sealer: Arc::new(Sealer::new(b"secret")),
            owner: Owner::named("ana", client, &Scope::All),
            uri: uri.into(),
        };
        let place = |uri: &str| place_of(Some("app"), uri);
        let sealed = place("skill://a/b").seal("", 5_000);
        let open = |uri, now| place(uri).open(&sealed, now);
        assert_eq!(open("skill://a/b", 5_000).as_deref(), Some(""));
        assert_eq!(open("skill://a/b", 5_001 + LIFE), None);
        assert_eq!(open("skill://a/b", 4_000), None);
        assert_eq!(open("skill://a/c", 5_000), None);
        assert_eq!(place("skill://a/b").open("x", 5_000), None);
        for client in [None, Some("another")] {
            assert_eq!(place_of(client, "skill://a/b").open(&sealed, 5_000), None);
        }
    }
}
