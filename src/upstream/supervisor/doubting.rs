//! Finds out again what a server speaks, where there is doubt.
//!
//! Guarantees: nothing ends by a doubt until the server is found to be spoken to in another way; questions are spaced. Deliberately
//! absent: how it is found out, which `probe.rs` knows.
// PROTOCOL C4

use std::{sync::Arc, time::Duration};

use futures_util::future::OptionFuture;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    super::{
        Peer, UpstreamError, credentials::Credentials, health::Pause, modern, probe::Probe,
        shared::Shared, spec::Endpoint,
    },
    end::{End, dismiss},
};
use crate::protocol::{Era, methods::ListKind};

/// How long it is waited for somebody whose token an upstream is asked with that answers to nobody without one.
const LENDING: Duration = Duration::from_secs(60);

/// Finds out again what a server speaks whenever there is doubt, beside everything else that goes on with it.
pub(super) struct Doubting<'a> {
    pub(super) shared: &'a Shared,
    pub(super) probe: &'a mut Probe,
    pub(super) peer: &'a Arc<dyn Peer>,
    pub(super) pause: &'a mut Pause,
    /// Whether it answers to nobody without a token.
    pub(super) closed: bool,
}

impl Doubting<'_> {
    /// Asks anew at each doubt, spaced, and where what is known has grown old. As long as it is spoken to in the same way, the
    /// peer stays and with it all that is under way; what cannot be settled now is settled later.
    pub(super) async fn settle(self) -> End {
        let (mut asked, mut doubted) = (Instant::now(), false);
        loop {
            if !doubted {
                let stale = OptionFuture::from(self.probe.stale_at().map(sleep_until));
                let stale = tokio::select! {
                    () = self.peer.doubted() => false,
                    Some(()) = stale => true,
                };
                if stale {
                    let own = self.shared.terms.credentials.as_ref();
                    let reaching = own.filter(|_| self.closed).map(|own| own.loan().reach());
                    if reaching.is_some() {
                        // It says nothing to nobody; somebody has to come with a token first.
                        sleep(LENDING).await;
                    }
                    let found = self.probe.upgraded().await;
                    let closed = reaching.is_some_and(|reaching| reaching.done(found.is_some()));
                    match found {
                        Some(other) => return End::Other(other, closed),
                        None => continue,
                    }
                }
            }
            if matches!(self.shared.spec.endpoint, Endpoint::Stdio(_)) {
                // It denied the era on its own pipe, and a second process might stand in the way of the first.
                let why = "it no longer speaks the era it was reached in";
                return End::Lost(UpstreamError::Protocol(why.into()));
            }
            let own = self.shared.terms.credentials.as_ref();
            // Where all are answered their lists are read meanwhile, with nobody's token.
            let reaching = own.filter(|_| self.closed).map(|own| own.loan().reach());
            sleep(self.pause.after_the_first(asked.elapsed())).await;
            if self.peer.card().revision.era() == Era::Legacy && !self.closed {
                // Ordinary errors of this era look like those of the other, and a second handshake is more than some can do.
                if let Some(other) = self.probe.upgraded().await {
                    return End::Other(other, false);
                }
                if self.answers().await == Some(true) {
                    (asked, doubted) = (Instant::now(), false);
                    continue;
                }
            }
            self.probe.forget();
            let found = self.probe.peer().await;
            let closed = reaching.is_some_and(|reaching| reaching.done(found.is_ok()));
            asked = Instant::now();
            let id = &self.shared.spec.id;
            doubted = match found {
                Ok(other) if self.is_like(&*other) => {
                    dismiss(self.shared, other);
                    false
                }
                Ok(other) => return End::Other(other, closed),
                Err(error) if self.closed || self.answers().await != Some(false) => {
                    tracing::info!(upstream = %id, %error, "what it speaks cannot be found out");
                    true
                }
                Err(error) => return End::Lost(error),
            };
        }
    }

    /// Whether this one is spoken to in the same way. Where the revision is the same the HTTP transport may be another: what was
    /// moved from one to the other answers on the first no more.
    fn is_like(&self, other: &dyn Peer) -> bool {
        let way = |peer: &dyn Peer| (peer.card().revision, peer.is_streamable());
        way(other) == way(&**self.peer)
    }

    /// Whether the gateway's own conversation with it goes on; nothing where there is nothing to ask in it.
    async fn answers(&self) -> Option<bool> {
        let offers = |kind: &ListKind| modern::offers(&self.peer.card(), *kind);
        let kind = ListKind::EVERY.into_iter().find(offers)?;
        Some(match self.peer.list(kind).await {
            Ok(_) => true,
            // It is asked with nobody's token: where each has their own, it has to be reached anew by somebody's.
            Err(UpstreamError::Auth(_) | UpstreamError::Credential(_)) => {
                let credentials = self.shared.terms.credentials.as_ref();
                !credentials.is_some_and(Credentials::lists_are_own)
            }
            Err(error) => {
                tracing::info!(upstream = %self.shared.spec.id, %error, "a list could not be read");
                false
            }
        })
    }
}
