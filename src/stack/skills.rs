//! Files of skills that no list names, as answers to `skills/get` said of them (PROTOCOL E, G17).
//!
//! A host holds a file against the digest in the entry that names it, and learns of an entry from the lists it is shown, which
//! the catalog knows, or from such an answer. Guarantees: what an answer of this process named is known until it ends, and
//! whose answers named more than is kept, of that upstream every resource counts as a file. Deliberately absent: what is
//! spelled `skill://`, which says so itself; what another process answered: a file that is edited for want of that does not
//! fit its digest, and no host takes it.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{catalog::SkillFiles, json::Json, protocol::UpstreamId};

/// The most names that are kept of one upstream, and the most bytes of them: eight thousand files are sixteen skills as large
/// as hosts must take.
const MOST: (usize, usize) = (8_192, 1 << 20);

/// What answers named, by upstream: there are as many as are configured.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Whether there is anything: where nobody gets skills, nobody waits for the lock.
    any: AtomicBool,
    // A std mutex: held for one look, by reads of resources and answers of `skills/get` alone.
    by: Mutex<HashMap<UpstreamId, Known>>,
}

#[derive(Debug)]
enum Known {
    These(SkillFiles),
    /// There are too many to tell them from the rest.
    TooMany,
}

impl Named {
    /// Takes in what an answer to `skills/get` names.
    pub(super) fn take(&self, upstream: &UpstreamId, answer: &Json) {
        let mut files = SkillFiles::default();
        if let Some(entry) = answer.root().member("skill") {
            files.add(entry);
        }
        if files.is_empty() {
            return;
        }
        let mut by = self.by();
        let known = by
            .entry(upstream.clone())
            .or_insert_with(|| Known::These(SkillFiles::default()));
        if let Known::These(all) = known {
            all.extend(files);
            if !all.are_within(MOST) {
                tracing::warn!(
                    %upstream,
                    "a server's skills have more files than are kept in mind; until a restart none of its resources is edited: what would be is blocked"
                );
                *known = Known::TooMany;
            }
        }
        self.any.store(true, Ordering::Release);
    }

    /// Whether what an upstream calls so may be such a file.
    pub(super) fn hold(&self, upstream: &UpstreamId, local: &str) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        match self.by().get(upstream) {
            None => false,
            Some(Known::These(files)) => files.hold(local),
            Some(Known::TooMany) => true,
        }
    }

    fn by(&self) -> MutexGuard<'_, HashMap<UpstreamId, Known>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn up(name: &str) -> UpstreamId {
        UpstreamId::parse(name).unwrap()
    }

    /// An answer that names so many files, in a directory of its own.
    fn answer(skill: usize, files: usize) -> Json {
        let files: Vec<_> = (0..files)
            .map(|n| format!(r#"{{"uri":"git://r/{skill}/{n}"}}"#))
            .collect();
        let files = files.join(",");
        let text = format!(r#"{{"skill":{{"resources":[{files}]}}}}"#);
        Json::parse(text.into(), &Limits::UPSTREAM).unwrap()
    }

    #[test]
    fn what_an_answer_named_is_known_of_its_upstream_alone() {
        let named = Named::default();
        assert!(!named.hold(&up("a"), "git://r/1/0"));
        named.take(&up("a"), &answer(1, 2));
        named.take(&up("a"), &answer(2, 1));
        for (local, is_known) in [
            ("git://r/1/0", true),
            ("git://r/1/1", true),
            ("git://r/1/2", false),
            ("git://r/2/0", true),
        ] {
            assert_eq!(named.hold(&up("a"), local), is_known, "{local}");
            assert!(!named.hold(&up("b"), local), "{local}");
        }
    }

    #[test]
    fn of_more_than_is_kept_nothing_is_told_from_a_file() {
        let named = Named::default();
        for skill in 0..16 {
            named.take(&up("a"), &answer(skill, 512));
        }
        // What is named again takes no room.
        named.take(&up("a"), &answer(3, 512));
        assert!(named.hold(&up("a"), "git://r/15/511"));
        assert!(!named.hold(&up("a"), "git://other"));
        named.take(&up("a"), &answer(16, 1));
        assert!(named.hold(&up("a"), "git://other"));
        named.take(&up("a"), &answer(17, 1));
        assert!(named.hold(&up("a"), "git://other"));
        assert!(!named.hold(&up("b"), "git://other"));
    }

    #[test]
    fn long_names_are_kept_in_bounds_too() {
        for (length, is_too_much) in [(MOST.1, false), (MOST.1 + 1, true)] {
            let named = Named::default();
            let uri = format!("git://{}", "x".repeat(length - 6));
            let text = format!(r#"{{"skill":{{"resources":[{{"uri":"{uri}"}}]}}}}"#);
            let answer = Json::parse(text.into(), &Limits::UPSTREAM).unwrap();
            named.take(&up("a"), &answer);
            assert!(named.hold(&up("a"), &uri));
            assert_eq!(named.hold(&up("a"), "git://other"), is_too_much, "{length}");
        }
    }
}
