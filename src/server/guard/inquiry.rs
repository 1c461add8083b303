//! Asking the authorization server about a token (RFC 7662): bounded, remembered, and asked again while a stream hangs on it.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::ExposeSecret as _;
use tokio::sync::Semaphore;

use crate::{
    auth::{Asked, AuthError, Authenticator, Presented, Verdict, spec::IntrospectionSpec},
    fetch::Fetcher,
    seal::unix_seconds,
    tasks::Tasks,
};

/// Questions at once; whoever comes then waits.
const AT_ONCE: usize = 16;
/// How long somebody waits for a turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks.
#[derive(Clone)]
pub(super) struct Inquiry(Arc<Shared>);

struct Shared {
    authenticator: Arc<Authenticator>,
    fetcher: Fetcher,
    turns: Semaphore,
}

impl Inquiry {
    /// Also begins to ask again about tokens that something hangs on, as often as answers are kept (SECURITY AUTHN-5).
    pub(super) fn start(
        authenticator: &Arc<Authenticator>,
        fetcher: Fetcher,
        tasks: &Tasks,
    ) -> Self {
        let inquiry = Self(Arc::new(Shared {
            authenticator: authenticator.clone(),
            fetcher,
            turns: Semaphore::new(AT_ONCE),
        }));
        let again = inquiry.clone();
        tasks.spawn(async move {
            let Some(every) = again.spec().map(|spec| spec.cache) else {
                return;
            };
            loop {
                tokio::time::sleep(every).await;
                for identity in again.0.authenticator.introspected_in_use() {
                    if let Some(token) = &identity.assertion {
                        drop(again.put(token.0.expose_secret(), &[]).await);
                    }
                }
            }
        });
        inquiry
    }

    /// Asks about a token, unless somebody has meanwhile.
    pub(super) async fn ask(&self, token: &str, audiences: &[Arc<str>]) -> Verdict {
        let turn = tokio::time::timeout(PATIENCE, self.0.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Verdict::Refused(AuthError::Unavailable);
        };
        let presented = Presented {
            bearer: Some(token),
            ..Presented::default()
        };
        let now = unix_seconds();
        match self
            .0
            .authenticator
            .judge(presented, audiences, Asked::First, now)
        {
            Verdict::NeedsIntrospection => self.put(token, audiences).await,
            known @ (Verdict::Proved(_) | Verdict::Refused(_) | Verdict::NeedsKeys(_)) => known,
        }
    }

    async fn put(&self, token: &str, audiences: &[Arc<str>]) -> Verdict {
        let Some(spec) = self.spec() else {
            return Verdict::Refused(AuthError::Unavailable);
        };
        let fields = [("token", token), ("token_type_hint", "access_token")];
        let answer = self
            .0
            .fetcher
            .form(&spec.url, basic(spec), &fields, Fetcher::ANSWER)
            .await;
        match answer {
            Ok(answer) if answer.status.as_u16() == 200 => {
                self.0
                    .authenticator
                    .put_introspected(token, answer.body, audiences, unix_seconds())
            }
            Ok(answer) => {
                let status = answer.status.as_u16();
                tracing::warn!(
                    status,
                    "the authorization server does not say what a token is worth"
                );
                Verdict::Refused(AuthError::Unavailable)
            }
            Err(error) => {
                tracing::warn!(%error, "the authorization server cannot be asked about a token");
                Verdict::Refused(AuthError::Unavailable)
            }
        }
    }

    fn spec(&self) -> Option<&IntrospectionSpec> {
        self.0.authenticator.spec().introspection.as_ref()
    }
}

/// `client_secret_basic`: both parts form-encoded first (RFC 6749, 2.3.1).
fn basic(spec: &IntrospectionSpec) -> Option<HeaderValue> {
    let coded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pair = format!(
        "{}:{}",
        coded(&spec.client_id),
        coded(spec.client_secret.expose_secret())
    );
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}
