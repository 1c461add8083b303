//! How long what was opened by a proof goes on: to the proof's own end, or until it is withdrawn (SECURITY AUTHN-5).
//!
//! Guarantees: streams of whoever proved something end within a second of the proof's end, with a last word that says so; one
//! that is opened while clocks may differ about that end goes on until they may not.
//! Costs nothing where nobody was asked, and nothing for answers that are no streams.

use std::{sync::Arc, time::SystemTime};

use bytes::Bytes;
use futures_util::{
    FutureExt as _, Stream, StreamExt as _,
    future::{BoxFuture, Either},
    stream,
};

use crate::{
    call::{CallId, Cut, Identity, IdentityKind},
    json::Json,
    jsonrpc::RpcError,
    protocol::{codes, meta},
};

/// Why a proof counts no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lapse {
    /// Its time is over.
    Expired,
    /// It was withdrawn: a revoked key, an issuer's key that is gone.
    Revoked,
}

/// When a stream of this identity ends that is asked for now, however long it takes to begin; `None` where its proof has no end.
pub(super) fn end(identity: &Identity) -> Option<SystemTime> {
    let until = identity.until?;
    Some(until.of_a_stream(SystemTime::now()))
}

/// Ready when the proof of this identity counts no more, which is at `end` if nothing comes before; `None` for whom nobody asked.
pub(super) fn lapse(
    identity: &Arc<Identity>,
    end: Option<SystemTime>,
) -> Option<BoxFuture<'static, Lapse>> {
    if identity.kind == IdentityKind::Anonymous {
        return None;
    }
    let identity = identity.clone();
    let lapse = async move {
        let revoked = identity.revoked.cancelled();
        let Some(end) = end else {
            revoked.await;
            return Lapse::Revoked;
        };
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        tokio::select! {
            biased;
            () = revoked => Lapse::Revoked,
            () = tokio::time::sleep(left) => Lapse::Expired,
        }
    };
    Some(lapse.boxed())
}

impl Lapse {
    const fn words(self) -> (&'static str, &'static str) {
        let text = match self {
            Self::Expired => "the token has expired; go on with a new one",
            Self::Revoked => "the credential was withdrawn; go on with another one",
        };
        (text, self.cut().reason())
    }

    /// The same for the record of a call.
    pub(super) const fn cut(self) -> Cut {
        match self {
            Self::Expired => Cut::Expired,
            Self::Revoked => Cut::Revoked,
        }
    }

    /// What a request hears whose stream ends with its proof.
    pub(super) fn error(self, call: CallId) -> RpcError {
        let (text, reason) = self.words();
        tracing::info!(reason, "ref" = %call, "a stream ends with its proof");
        RpcError {
            data: Some(meta::object_of(&[
                ("reason", Json::string(reason)),
                ("ref", Json::string(&call.to_string())),
            ])),
            ..RpcError::new(codes::UNAUTHENTICATED, text)
        }
    }

    /// The last word of an event stream that answers no request: a comment, since no message of the protocol says it.
    fn farewell(self) -> Bytes {
        let (text, reason) = self.words();
        tracing::info!(reason, "a stream ends with its proof");
        Bytes::from(format!(": {reason}: {text}\n\n"))
    }
}

/// The events of a stream that answers no request, until the proof it was opened by counts no more.
pub(super) fn while_proved<S>(
    events: S,
    identity: &Arc<Identity>,
) -> impl Stream<Item = Bytes> + Send + use<S>
where
    S: Stream<Item = Bytes> + Send + 'static,
{
    let Some(lapse) = lapse(identity, end(identity)) else {
        return Either::Left(events);
    };
    let state = (events.boxed(), Some(lapse));
    Either::Right(stream::unfold(state, |(mut events, lapse)| async move {
        let mut lapse = lapse?;
        tokio::select! {
            biased;
            why = &mut lapse => Some((why.farewell(), (events, None))),
            event = events.next() => event.map(|event| (event, (events, Some(lapse)))),
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::call::{End, Principal};

    /// How much clocks may differ.
    const SKEW: Duration = Duration::from_secs(30);

    fn identity(until: Option<SystemTime>) -> Arc<Identity> {
        Arc::new(Identity {
            principal: Principal::new("user i ana"),
            until: until.map(|at| End::new(at, SKEW)),
            ..Identity::named(IdentityKind::User, "ana")
        })
    }

    // SECURITY AUTHN-5
    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_a_last_word_when_its_token_expires_or_is_revoked() {
        let endless = || stream::once(async { Bytes::from_static(b"x") }).chain(stream::pending());
        let token = identity(SystemTime::now().checked_add(Duration::from_secs(60)));
        let begun = tokio::time::Instant::now();
        let hour = Duration::from_secs(3_600);
        let all = tokio::time::timeout(hour, while_proved(endless(), &token).collect::<Vec<_>>());
        let all = all.await.expect("it ends");
        assert!(all[1].starts_with(b": token_expired:"), "{all:?}");
        assert!(begun.elapsed() < Duration::from_secs(61));
        let key = identity(None);
        let mut events = Box::pin(while_proved(endless(), &key));
        assert_eq!(events.next().await.as_deref(), Some(&b"x"[..]));
        assert!(events.next().now_or_never().is_none());
        key.revoked.cancel();
        assert!(
            events
                .next()
                .now_or_never()
                .flatten()
                .is_some_and(|last| last.starts_with(b": credential_revoked:"))
        );
        assert_eq!(events.next().await, None);
    }

    // SECURITY AUTHN-5, 6
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_opened_within_the_tolerance_goes_on_until_that_is_over() {
        let lasts = async |past| {
            let ended = SystemTime::now().checked_sub(Duration::from_secs(past));
            let begun = tokio::time::Instant::now();
            let identity = identity(ended);
            let why = lapse(&identity, end(&identity)).unwrap().await;
            assert_eq!(why, Lapse::Expired);
            (begun.elapsed() + Duration::from_millis(500)).as_secs()
        };
        assert_eq!(lasts(0).await, 30);
        assert_eq!(lasts(10).await, 20);
        assert_eq!(lasts(30).await, 0);
        assert_eq!(lasts(31).await, 0);
    }

    #[test]
    fn nobody_waits_for_the_end_of_a_proof_that_was_never_asked_for() {
        assert!(lapse(&Identity::anonymous(), None).is_none());
    }
}
