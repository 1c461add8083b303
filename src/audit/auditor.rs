//! The auditor: what calls are recorded with, and how much of them is.
//!
//! Guarantees: a permission is in the log, as safe as the durability promises, before its call goes on (SECURITY AUD-1), or the
//! call does not go on (AUD-2); an outcome is never refused, and kept until it can be written; a refusal is recorded
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
            journal: Journal::of(recorder.clone(), Arc::clone(&scrub)),
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
    /// When the record has no room: it will not be written. Where writing fails, what comes back says so.
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
        if level == Level::None && !is_refused(facts, ending) {
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

/// Whether somebody is told that a call does not go on, which is recorded always: with a reference, by which its record is to be
/// found.
fn is_refused(facts: &Facts, ending: &Ending<'_>) -> bool {
    match ending.outcome {
        End::Denied | End::Blocked | End::Shed | End::Invalid => true,
        // Whatever it was, nobody had decided yet.
        End::ProtocolError | End::Timeout | End::Cancelled | End::Unavailable => {
            facts.decision == Decision::Pending && ending.reason.is_some()
        }
        End::Ok | End::ToolError | End::InputRequired => false,
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

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, collections::HashSet, fs, io::BufReader, time::Duration};

    use super::*;
    use crate::{
        audit::{
            Level, Rule,
            index::Index,
            key::SigningKey,
            log::{
                Cuts, INDEX, Log, segments,
                testing::{Faulty, Shared as Disk, origin},
            },
            recorder::{Bounds, Durability},
        },
        call::{Affinity, Caller, Denial, Identity, IdentityKind, Origin, Principal, Trail},
        findings::{Action, Direction, Finding},
        json::Json,
        protocol::{ClientCapabilities, Revision, names::Scope},
    };

    /// Keeps everything as it is.
    #[derive(Debug)]
    struct Nothing;

    impl Scrub for Nothing {
        fn content(&self, value: &Json, _: Option<&UpstreamId>, _: Option<&str>) -> Json {
            value.clone()
        }

        fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
            name.into()
        }

        fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
            id.into()
        }
    }

    /// In what a call may differ from all others in its segment.
    const WAYS: usize = 10;

    /// A text that is the same for all calls but one in [`WAYS`], of which each has its own.
    fn text(n: usize, way: usize, usual: &str) -> String {
        match n % WAYS == way {
            true => format!("{usual}{n}"),
            false => usual.to_owned(),
        }
    }

    fn operation(n: usize) -> Operation {
        let identity = Identity {
            principal: Principal::anonymous(),
            owner: Some(text(n, 2, "owner").into()),
            ..Identity::named(IdentityKind::Anonymous, &text(n, 1, "a\n"))
        };
        let caller = Caller {
            principal: Principal::anonymous(),
            revision: Revision::V2026_07_28,
            capabilities: ClientCapabilities::NONE,
            log_level: None,
            visits: false,
            affinity: Affinity {
                key: "k".into(),
                ended: None,
            },
        };
        Operation {
            id: CallId::new(),
            method: ["tools/call", "prompts/get"][usize::from(n == 1_002)],
            exposed: Some(text(n, 3, "x_\"").into()),
            caller: Arc::new(caller),
            identity: Arc::new(identity),
            address: None,
            scope: Scope::All,
            trail: Trail::of(Origin::default()),
            began: Instant::now(),
            params: Json::empty_object(),
            answers: None,
        }
    }

    fn finding(n: usize) -> Finding {
        Finding {
            kind: ["secret", "personal"][usize::from(n == 1_010)],
            rule: text(n, 4, "rule").into(),
            action: Action::Flag,
            direction: Direction::Results,
            place: "/0".into(),
            length: n,
            digest: None,
            upstream: None,
            item: None,
            call: None,
            at: SystemTime::now(),
        }
    }

    /// Records what is allowed and what became of it, or why it was not.
    async fn tell(auditor: &Auditor, n: usize) {
        let operation = operation(n);
        let upstream = UpstreamId::parse(&text(n, 5, "up")).unwrap();
        let local = text(n, 6, "local");
        if n % WAYS == 7 {
            operation.trail.note(|facts| {
                facts.route = Some((upstream, local.into()));
                facts.denied = Some(Denial {
                    reason: ["policy_denied", "policy_error"][usize::from(n == 1_007)],
                    hidden: false,
                    policies: Vec::new(),
                    digest: "d".into(),
                });
            });
            return auditor.conclude(&operation, &Ending::of(End::Denied));
        }
        let (watched, not_watched) = (text(n, 9, "a://"), text(n, 0, "b://"));
        let permission = Permission {
            route: Some((&upstream, &local)),
            policies: &[],
            policy: "",
            approved: None,
            round: 0,
            definition: None,
            listen: Some((&[&watched], &[&not_watched])),
            params: &Json::empty_object(),
            answers: None,
        };
        let safe = auditor.permit(operation.view(), &permission).unwrap();
        safe.unwrap().await.unwrap();
        operation.trail.note(|facts| {
            facts.route = Some((upstream.clone(), local.clone().into()));
            facts.decision = Decision::Recorded;
            facts.found.add(&finding(n));
        });
        auditor.conclude(
            &operation,
            &Ending {
                reason: Some(text(n, 8, "reason").into()),
                ..Ending::of([End::Ok, End::Timeout][usize::from(n == 1_009)])
            },
        );
    }

    #[tokio::test]
    async fn an_index_lists_what_stands_in_the_records_that_are_made_here() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk(Arc::new(Faulty::default())));
        let cuts = Cuts {
            segment: 60_000,
            ..Cuts::default()
        };
        let key = SigningKey::generate().0;
        let (log, _) = Log::open(disk, directory.path(), origin(), key, cuts).unwrap();
        let (recorder, keeper) = Recorder::start(
            log,
            Durability::Kernel,
            Bounds::default(),
            Duration::from_secs(1),
            Box::new(|_| ()),
        )
        .unwrap();
        let everything = Rules(vec![Rule {
            level: Level::RequestResponse,
            ..Rule::default()
        }]);
        let scrub = Arc::new(Nothing);
        let auditor = Auditor::new(recorder, b"key", everything, "c".into(), scrub);
        for n in 0..2_000 {
            tell(&auditor, n).await;
        }
        // A thread writes them when nobody else wants to work.
        let mut compared = HashSet::new();
        for _ in 0..3_000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            for segment in segments(directory.path()).unwrap() {
                let beside = segment.path.with_extension(INDEX);
                if compared.contains(&segment.first) || !beside.exists() {
                    continue;
                }
                let told: Index = serde_json::from_slice(&fs::read(beside).unwrap()).unwrap();
                let read = BufReader::new(fs::File::open(&segment.path).unwrap());
                assert_eq!(told, Index::of(read).unwrap());
                compared.insert(segment.first);
            }
            if compared.len() > 10 {
                break;
            }
        }
        drop((auditor, keeper));
        assert!(compared.len() > 10, "{compared:?}");
    }
}
