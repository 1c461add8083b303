//! The ladder of an address (PROTOCOL C2): the stateless era, the handshake, and the transport with two endpoints.

use std::sync::Arc;

use super::{CloseUnlessKept, Found, Probe, Verdict, discovered::is_evidence, not_modern};
use crate::{
    protocol::codes,
    upstream::{
        Peer, UpstreamError,
        legacy::{NotOpened, Opener, Session},
        line::Wire,
        spec::HttpTransport,
        transport::is_busy,
    },
};

impl Probe {
    /// The ladder of PROTOCOL C2, or the rung of it that is `remembered`.
    pub(super) async fn address(
        &self,
        configured: HttpTransport,
        remembered: Option<HttpTransport>,
    ) -> Result<(Arc<dyn Peer>, HttpTransport, Verdict), NotOpened> {
        let http = match configured {
            HttpTransport::Auto => remembered.unwrap_or(HttpTransport::Streamable),
            HttpTransport::Streamable | HttpTransport::Sse => configured,
        };
        if http == HttpTransport::Sse {
            let (peer, http) = self.events().await?;
            return Ok((peer, http, Verdict::Sure));
        }
        let wire = Wire::new(self.connect(HttpTransport::Streamable).await?, true);
        let closing = CloseUnlessKept(Some(Arc::clone(&wire)), &self.terms);
        let mut failed = None;
        if !self.skips_question(remembered.is_some()) {
            match self.question(&wire, self.step()).await {
                Ok(Found::Modern(peer)) => {
                    closing.keep();
                    return Ok((peer, http, Verdict::Sure));
                }
                Ok(Found::Older) if self.insists_on_modern() => return Err(not_modern().into()),
                Ok(Found::Older) => {}
                Err(error) if !self.insists_on_modern() && fails_on_question(&error) => {
                    failed = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match Session::open(
            &wire,
            self.proposal(),
            self.offer(),
            &self.terms,
            self.step(),
        )
        .await
        {
            Ok(session) => {
                closing.keep();
                let verdict = failed.map_or(Verdict::Sure, |_| Verdict::Unsure);
                Ok((self.legacy(session, Opener::Shared(wire)), http, verdict))
            }
            // Whoever lets nobody in says what would help.
            Err(why @ NotOpened::Failed(UpstreamError::Auth(_) | UpstreamError::Credential(_)))
                if failed.is_some() =>
            {
                Err(why)
            }
            Err(why) if failed.is_some() => Err(failed.map_or(why, NotOpened::Failed)),
            Err(why)
                if configured == HttpTransport::Auto
                    && remembered.is_none()
                    && points_to_events(&why) =>
            {
                drop(closing);
                let (peer, http) = self.events().await.map_err(|mut error| {
                    if let UpstreamError::Unavailable { cause, .. } = &mut error {
                        cause.insert_str(0, "neither HTTP transport answers as MCP: ");
                    }
                    error
                })?;
                Ok((peer, http, Verdict::Sure))
            }
            Err(why) => Err(why),
        }
    }

    /// The last rung: the two-endpoint transport, which only the handshake era has.
    async fn events(&self) -> Result<(Arc<dyn Peer>, HttpTransport), UpstreamError> {
        if self.insists_on_modern() {
            return Err(not_modern());
        }
        let session = self.handshake(HttpTransport::Sse).await?;
        Ok((session, HttpTransport::Sse))
    }
}

/// Whether this says that the server itself failed on the question. PROTOCOL C2 has every 5xx be no evidence, and of the era it
/// is none here either; but the Java SDK's stateless servers, 0.11 to 2.0.0, answer any method that they do not know with 500,
/// and would never be reached. So the handshake is offered: what is of that era grants it, and a modern server that is only
/// ill refuses it. 502, 503 and 504 come of what stands in front of a server, or pass.
fn fails_on_question(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Unavailable {
            status: Some(500 | 501),
            ..
        }
    )
}

/// Whether this is an answer, and says that what was remembered of the server is so no more. Silence says nothing, nor does load
/// or a credential.
pub(super) fn denies(why: &NotOpened) -> bool {
    match why {
        NotOpened::Status(head) | NotOpened::Refused(head, _) => is_evidence(head),
        NotOpened::Failed(UpstreamError::Unavailable { status, .. }) => {
            status.is_some_and(|status| (400..500).contains(&status) && !is_busy(status))
        }
        NotOpened::Failed(error) => matches!(
            error,
            UpstreamError::Refused(_) | UpstreamError::Protocol(_) | UpstreamError::Status(_)
        ),
    }
}

/// Whether a refused handshake leaves the two-endpoint transport possible: any 4xx that is no modern error, and not about
/// credentials or load.
fn points_to_events(why: &NotOpened) -> bool {
    let (head, code) = match why {
        NotOpened::Status(head) => (head, None),
        NotOpened::Refused(head, error) => (head, Some(error.code)),
        NotOpened::Failed(_) => return false,
    };
    head.status.is_client_error() && is_evidence(head) && !code.is_some_and(codes::is_modern)
}
