//! How transports to one upstream are made: asked for by whoever connects, and by sessions that need one of their own.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use super::{
    UpstreamError,
    credentials::Credentials,
    spec::{HttpTransport, UpstreamSpec},
    transport::{self, Dial, Transport},
};
use crate::tasks::Tasks;

/// Makes transports to one upstream.
pub(super) trait Connector: Send + Sync + 'static {
    /// A new transport; `http` says which of the two where there is a choice.
    fn connect(
        &self,
        http: HttpTransport,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, UpstreamError>>;

    /// The upstream is connected to anew: what was read for the connections so far, as roots are, is read again.
    fn renew(&self) {}
}

/// The real transports.
pub(super) struct Dialer {
    /// Where to.
    pub(super) spec: UpstreamSpec,
    /// The tokens for it, where they are got by a grant.
    pub(super) credentials: Option<Credentials>,
    /// What opens the connections of all of them, where it is reached over HTTP.
    pub(super) dial: ArcSwap<OnceCell<Dial>>,
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
            let dial = self.dial.load_full();
            transport::connect(&self.spec, http, token, own, &dial, &self.tasks).await
        })
    }

    fn renew(&self) {
        self.dial.store(Arc::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{scripted::an_address, spec::Endpoint};

    #[tokio::test]
    async fn roots_are_read_for_the_first_transport_and_not_again_for_each() {
        let mut dialer = Dialer {
            spec: an_address(),
            credentials: None,
            dial: ArcSwap::default(),
            tasks: Tasks::new(),
        };
        assert!(dialer.connect(HttpTransport::Streamable).await.is_ok());
        if let Endpoint::Http(address) = &mut dialer.spec.endpoint {
            address.tls.ca = Some(b"no roots".to_vec());
        }
        assert!(dialer.connect(HttpTransport::Streamable).await.is_ok());
        dialer.renew();
        assert!(dialer.connect(HttpTransport::Streamable).await.is_err());
    }
}
