//! The ladder of a pipe (PROTOCOL C3): both eras are asked for, and whichever is granted first decides.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::{CloseUnlessKept, Found, Probe, not_modern};
use crate::{
    protocol::codes,
    upstream::{
        Peer, UpstreamError,
        legacy::{NotOpened, Opener, Session},
        line::Wire,
        spec::HttpTransport,
    },
};

impl Probe {
    /// The ladder of PROTOCOL C3.
    pub(super) async fn pipe(
        &self,
        remembered: bool,
    ) -> Result<(Arc<dyn Peer>, HttpTransport), UpstreamError> {
        let http = HttpTransport::Auto;
        if self.skips_question(remembered) {
            return Ok((self.handshake(http).await?, http));
        }
        let wire = Wire::new(self.connect(http).await?, false);
        let closing = CloseUnlessKept(Some(Arc::clone(&wire)), &self.terms);
        let exited = tokio::select! {
            biased;
            asked = self.ask_pipe(&wire) => match asked {
                Ok(peer) => {
                    closing.keep();
                    return Ok((peer, http));
                }
                Err(error @ UpstreamError::Unavailable { .. }) => error,
                Err(error) => {
                    self.hear(&wire, &error);
                    return Err(error);
                }
            },
            error = wire.transport.lost() => error,
        };
        if self.insists_on_modern() {
            return Err(exited);
        }
        // It ended on being asked, as some servers of the handshake era do: another one is not asked.
        drop(closing);
        Ok((self.handshake(http).await?, http))
    }

    /// Asks on a pipe for the stateless era, and after half the connect deadline, or at once on any other answer, for the
    /// handshake, too. Whichever is granted first decides: a modern server that is slow to start answers the question
    /// late and refuses the handshake (PROTOCOL J8). Both wait for as long as a process may take to start.
    async fn ask_pipe(&self, wire: &Arc<Wire>) -> Result<Arc<dyn Peer>, UpstreamError> {
        let connect = self.terms.timeouts.connect;
        let began = Instant::now();
        let deadline = began + self.terms.opening;
        let question = self.question(wire, deadline);
        tokio::pin!(question);
        let early = if self.insists_on_modern() {
            Some(question.as_mut().await)
        } else {
            tokio::select! {
                biased;
                found = question.as_mut() => Some(found),
                () = sleep_until(deadline.min(began + connect / 2)) => None,
            }
        };
        let pending = match early {
            Some(Ok(Found::Modern(peer))) => return Ok(peer),
            Some(Ok(Found::Older)) if self.insists_on_modern() => return Err(not_modern()),
            Some(Ok(Found::Older)) => false,
            Some(Err(error)) => return Err(error),
            None => true,
        };
        let opening = Session::open(wire, self.proposal(), self.offer(), &self.terms, deadline);
        tokio::pin!(opening);
        let mut pending = pending;
        let opened = loop {
            tokio::select! {
                biased;
                found = question.as_mut(), if pending => {
                    pending = false;
                    // A late refusal is what a legacy server says; a late failure will be the handshake's, too.
                    if let Ok(Found::Modern(peer)) = found {
                        return Ok(peer);
                    }
                }
                opened = opening.as_mut() => break opened,
            }
        };
        match opened {
            Ok(session) => {
                let opener = Opener::Own(Arc::clone(&self.connector), HttpTransport::Auto);
                Ok(self.legacy(session, opener))
            }
            Err(NotOpened::Refused(_, error)) if pending && codes::is_modern(error.code) => {
                match question.await? {
                    Found::Modern(peer) => Ok(peer),
                    Found::Older => Err(UpstreamError::Refused(error)),
                }
            }
            Err(why) => Err(why.into()),
        }
    }
}
