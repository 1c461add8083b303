//! Bounds of messages, of questions and of proofs, and the ranges within which they may be moved (SECURITY 6).
//! None is ever switched off. Deliberately absent: those of listeners, sessions, catalogs and calls in flight (`limits`).

use std::time::Duration;

use super::{Check, secs};
use crate::{
    auth::spec::ProofLimits,
    config::raw::bounds::{AskBounds, Bounds, JsonBounds, ProofBounds},
    downstream::MessageBounds,
    json::Limits,
    resume,
    upstream::spec::PeerBounds,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// How messages of clients are read.
pub(super) fn json(check: &mut Check<'_>, raw: &JsonBounds) -> Limits {
    let default = Limits::CLIENT;
    let at = |key: &'static str| ["bounds", "json", key];
    Limits {
        depth: check.count(&at("depth"), raw.depth, default.depth, (8, 128)),
        values: check.count(&at("values"), raw.values, default.values, (100, 4_000_000)),
        members: check.count(&at("members"), raw.members, default.members, (32, 200_000)),
        key_bytes: check.size(&at("key"), raw.key, default.key_bytes, (128, 64 * KIB)),
        number_bytes: check.count(&at("number"), raw.number, default.number_bytes, (32, 4_096)),
    }
}

/// How much one upstream may say.
pub(super) fn peer(
    check: &mut Check<'_>,
    raw: &Bounds,
    json: Limits,
    asking: resume::Bounds,
) -> PeerBounds {
    let default = PeerBounds::default();
    let at = |key: &'static str| ["bounds", "upstream", key];
    let say = &raw.upstream;
    let depth = check.count(&at("depth"), say.depth, default.json.depth, (8, 256));
    let message_bytes = check.size(
        &at("message"),
        say.message,
        default.message_bytes,
        (KIB, 256 * MIB),
    );
    let answer_bytes = check.size(
        &at("answer"),
        say.answer,
        default.answer_bytes,
        (KIB, 1_024 * MIB),
    );
    if message_bytes > answer_bytes {
        check.wrong(
            &at("message"),
            "one message may be larger than all together",
            "raise `answer`",
        );
    }
    let at = |key: &'static str| ["bounds", "stdio", key];
    let pipe = &raw.stdio;
    PeerBounds {
        json: Limits { depth, ..json },
        message_bytes,
        answer_bytes,
        line_bytes: check.size(&at("line"), pipe.line, default.line_bytes, (KIB, 256 * MIB)),
        stderr_bytes: check.size(
            &at("stderr"),
            pipe.stderr,
            default.stderr_bytes,
            (KIB, 4 * MIB),
        ),
        restarts: check.count(&at("restarts"), pipe.restarts, default.restarts, (1, 100)),
        asking,
    }
}

/// How much callers may be asked.
pub(super) fn asking(check: &mut Check<'_>, raw: &AskBounds) -> resume::Bounds {
    let default = resume::Bounds::default();
    let at = |key: &'static str| ["bounds", "resume", key];
    let rounds = default.rounds as usize;
    let rounds = check.count(&at("rounds"), raw.rounds, rounds, (1, 64));
    resume::Bounds {
        life: check
            .time(
                &at("life"),
                raw.life,
                secs(default.life),
                (secs(60), secs(resume::MOST_LIFE)),
            )
            .as_secs(),
        rounds: u32::try_from(rounds).unwrap_or(default.rounds),
        inputs: check.count(&at("inputs"), raw.inputs, default.inputs, (1, 64)),
        state_bytes: check.size(
            &at("state"),
            raw.state,
            default.state_bytes,
            (64, resume::MOST_STATE_BYTES),
        ),
    }
}

/// How much a client may say at a time, where a body is `body` bytes at most.
pub(super) fn messages(json: Limits, asking: resume::Bounds, body: usize) -> MessageBounds {
    MessageBounds {
        json,
        line_bytes: body,
        patience: secs(asking.life).saturating_sub(Duration::from_secs(10)),
    }
}

/// What a proof may be.
pub(super) fn proof(check: &mut Check<'_>, raw: &ProofBounds) -> ProofLimits {
    let default = ProofLimits::default();
    let at = |key: &'static str| ["bounds", "auth", key];
    ProofLimits {
        token_bytes: check.size(
            &at("token"),
            raw.token,
            default.token_bytes,
            (512, 64 * KIB),
        ),
        metadata_bytes: check.size(
            &at("metadata"),
            raw.metadata,
            default.metadata_bytes,
            (KIB, MIB),
        ),
        key_set_bytes: check.size(
            &at("key_set"),
            raw.key_set,
            default.key_set_bytes,
            (KIB, 4 * MIB),
        ),
        keys: check.count(&at("keys"), raw.keys, default.keys, (1, 1_000)),
        skew: check
            .time(
                &at("clock_skew"),
                raw.clock_skew,
                secs(default.skew),
                (secs(0), secs(300)),
            )
            .as_secs(),
    }
}
