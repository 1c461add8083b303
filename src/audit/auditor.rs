//! The auditor: what calls are recorded with, and how much of them is.
//!
//! Guarantees: a permission is in the log, as safe as the durability promises, before its call goes on (SECURITY AUD-1), or the
//! call does not go on (AUD-2); an outcome is never refused, and kept until it can be written; a denial is recorded
//! whatever the rules say. Digests are keyed, for plain ones of short values can be guessed.

use std::{sync::Arc, time::SystemTime};

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use tokio::time::Instant;

use super::{
    End, Level, Rules,
    canonical::{Written, handed},
    index::Gist,
    journal::{Journal, Kind},
    record::{self, Ending, Frame, Operation, Permission, View},
    recorder::{Recorder, Safe, Unavailable, Weight},
};
use crate::{
    call::{CallId, Decision, Facts},
    findings::Scrub,
    protocol::UpstreamId,
};

/// Writes the records of calls; clones write the same log.
#[derive(Clone)]
pub struct Auditor(Arc<Shared>);

struct Shared {
    recorder: Recorder,
    journal: Journal,
    key: hmac::Key,
    rules: Rules,
    /// Read for every record, written when a configuration is read again.
    config: ArcSwap<String>,
    scrub: Arc<dyn Scrub>,
    start: Instant,
}

impl Auditor {
    /// Writes to `recorder` by these rules; `key` is for digests, `config` is the digest of the configuration;
    /// `scrub` takes out of what peers wrote what must not be kept.
    pub fn new(
        recorder: Recorder,
        key: &[u8],
        rules: Rules,
        config: String,
        scrub: Arc<dyn Scrub>,
    ) -> Self {
        Self(Arc::new(Shared {
            journal: Journal::of(recorder.clone()),
            recorder,
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            rules,
            config: ArcSwap::from_pointee(config),
            scrub,
            start: Instant::now(),
        }))
    }

    /// From now on the configuration has this digest.
    pub fn configured(&self, config: String) {
        self.0.config.store(Arc::new(config));
    }

    /// Where it writes.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// Where events beside calls are noted.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Records that a call may go on. What comes back is ready when it may; `None` where no rule wants a record.
    ///
    /// # Errors
    /// When nothing can be recorded now.
    pub fn permit(
        &self,
        of: View<'_>,
        permission: &Permission<'_>,
    ) -> Result<Option<Safe>, Unavailable> {
        let level = self.level(of, permission.route.map(|(upstream, _)| upstream));
        if level == Level::None {
            // That nothing can be recorded stops calls all the same only where something is to be.
            return Ok(None);
        }
        let recorder = &self.0.recorder;
        let safe = self.framed(level, |frame| {
            handed(
                |event| record::decision(event, frame, of, permission),
                |event, at| recorder.put(event.bytes(), gist(event, at, of.id()), Weight::Permit),
            )
        });
        safe.map(Some)
    }

    /// Records how a call ended.
    pub fn conclude(&self, of: &Operation, ending: &Ending<'_>) {
        if ending.outcome == End::Shed {
            let (kind, name) = match (ending.limit, ending.reason.as_deref()) {
                (Some(rule), _) => (Kind::Limit, rule),
                (None, reason) => (Kind::Overload, reason.unwrap_or("overloaded")),
            };
            self.0.journal.exceeded(kind, name);
        }
        of.trail.read(|facts| self.ended(of, facts, ending));
    }

    fn ended(&self, of: &Operation, facts: &Facts, ending: &Ending<'_>) {
        let upstream = facts.route.as_ref().map(|(upstream, _)| upstream);
        let level = self.level(of.view(), upstream);
        let refused = matches!(ending.outcome, End::Denied | End::Blocked | End::Shed);
        if level == Level::None && !refused {
            return;
        }
        // Kept until it can be written; of calls that were not let in, beyond the bounds, it is counted and told by a gap record.
        let weight = match facts.decision {
            Decision::Recorded => Weight::Fact,
            Decision::Pending | Decision::Permitted => Weight::Refusal,
        };
        let recorder = &self.0.recorder;
        self.framed(level, |frame| {
            handed(
                |event| record::outcome(event, frame, of, facts, ending),
                |event, at| recorder.note(event.bytes(), gist(event, at, of.id), weight),
            );
        });
    }

    fn level(&self, of: View<'_>, upstream: Option<&UpstreamId>) -> Level {
        self.0.rules.level(of.method(), of.exposed(), upstream)
    }

    fn framed<T>(&self, level: Level, build: impl FnOnce(&Frame<'_>) -> T) -> T {
        let digest = |bytes: &[u8]| self.digest(bytes);
        let config = self.0.config.load();
        build(&Frame {
            config: &config,
            start: self.0.start,
            digest: &digest,
            level,
            scrub: &*self.0.scrub,
        })
    }

    /// Equal for equal bytes under the key of this log.
    fn digest(&self, bytes: &[u8]) -> [u8; 16] {
        let tag = hmac::sign(&self.0.key, bytes);
        // INVARIANT: a tag of SHA-256 has 32 bytes.
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }
}

/// What an index asks of a record of this call, of which nothing is listed but texts.
fn gist(event: &Written, time: SystemTime, call: CallId) -> Option<Gist> {
    event.texts().map(|texts| Gist {
        time,
        call: call.number(),
        texts,
    })
}

impl std::fmt::Debug for Auditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auditor")
    }
}
