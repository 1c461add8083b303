//! When an event stream is complete: with the response to a request, which may not keep silent for too long before it, or never.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::body::Drain;
use crate::{
    jsonrpc::RequestId,
    upstream::{Deadline, UpstreamError, patience::Patience},
};

/// What a stream is expected to bring.
pub(super) enum Owes {
    /// The response to this request, and then it is over. Where `silence` is `None` it may take for ever and any
    /// number of messages.
    Response {
        id: RequestId,
        silence: Option<Duration>,
        /// See [`super::Outbound::patience`].
        patience: Option<Arc<Patience>>,
        /// See [`super::Outbound::payer`].
        payer: Option<Arc<str>>,
        drain: Drain,
    },
    /// Nothing; it may be silent for ever and ends when the peer ends it.
    Nothing,
}

impl Owes {
    /// What comes of a stream that has been silent since then, which it may not be for too long where it owes something.
    ///
    /// # Errors
    /// [`UpstreamError::Timeout`], and what it comes to.
    pub(super) async fn within<T>(
        &self,
        since: &mut Instant,
        coming: impl Future<Output = Result<T, UpstreamError>>,
    ) -> Result<T, UpstreamError> {
        let Self::Response {
            silence: Some(silence),
            patience,
            ..
        } = self
        else {
            return coming.await;
        };
        let mut coming = pin!(coming);
        loop {
            if let Ok(came) = timeout_at(*since + *silence, coming.as_mut()).await {
                return came;
            }
            // While people think nothing is owed, and the time for it begins anew when they have.
            let counts = patience.as_ref().map(|it| it.counts_from(*since));
            match counts {
                Some(from) if from > *since => *since = from,
                _ => return Err(UpstreamError::Timeout(Deadline::Silence)),
            }
        }
    }
}
