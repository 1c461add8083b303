//! How transports to one upstream are made: asked for by whoever connects, and by sessions that need one of their own.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{
    UpstreamError,
    credentials::Credentials,
    spec::{HttpTransport, UpstreamSpec},
    transport::{self, Transport},
};
use crate::tasks::Tasks;

/// Makes transports to one upstream.
pub(super) trait Connector: Send + Sync + 'static {
    /// A new transport; `http` says which of the two where there is a choice.
    fn connect(
        &self,
        http: HttpTransport,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, UpstreamError>>;
}

/// The real transports.
pub(super) struct Dialer {
    /// Where to.
    pub(super) spec: UpstreamSpec,
    /// The tokens for it, where they are got by a grant.
    pub(super) credentials: Option<Credentials>,
    /// Who owns what the transports run.
    pub(super) tasks: Tasks,
}

impl Connector for Dialer {
    fn connect(
        &self,
        http: HttpTransport,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, UpstreamError>> {
        Box::pin(async move {
            let token = match (&self.credentials, http) {
                (Some(credentials), HttpTransport::Sse) => {
                    // Its stream is one for everybody.
                    if credentials.is_per_principal() {
                        return Err(UpstreamError::Protocol(
                            "HTTP+SSE has no place for each user's own credential".into(),
                        ));
                    }
                    credentials.header(None).await?
                }
                _ => None,
            };
            let own = self.credentials.as_ref();
            let own = own.is_some_and(Credentials::is_per_principal);
            transport::connect(&self.spec, http, token, own, &self.tasks).await
        })
    }
}
