//! Asking the authorization server about a token (RFC 7662): bounded, remembered, and asked again while a stream hangs on it.
//!
//! Guarantees: however many requests bring one token at once, it is asked about once; one that is worth nothing is not asked
//! about again for [`NEGATIVE`]; at most [`AT_ONCE`] questions are on the way, and at most [`TOKENS`] tokens wait for one. Over
//! these bounds the answer is that the provider is not to be had, never that somebody may come in (SECURITY AUTHN-7).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, Shared, WeakShared},
    stream,
};
use http::HeaderValue;
use moka::sync::Cache;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;

use crate::{
    auth::{Asked, AuthError, Authenticator, Presented, Verdict, spec::IntrospectionSpec},
    call::Identity,
    fetch::Fetcher,
    seal::unix_seconds,
    tasks::Tasks,
};

/// Questions at once; whoever comes then waits.
const AT_ONCE: usize = 16;
/// How many of them are about tokens that something hangs on.
const AGAIN_AT_ONCE: usize = 4;
/// How long somebody waits for a turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a token that is worth nothing is not asked about again. Short: it may have been too new for the server.
const NEGATIVE: Duration = Duration::from_secs(5);
/// How many of those are kept.
const REFUSED: u64 = 16_384;
/// Tokens that are asked about, or wait for it, at once.
const TOKENS: usize = 4_096;

/// SHA-256 of a token.
type Digest = [u8; 32];
/// A question that is on the way; whoever brings the same token waits for the same one.
type Question = Shared<BoxFuture<'static, Verdict>>;

/// Asks.
#[derive(Clone)]
pub(super) struct Inquiry(Arc<Inner>);

struct Inner {
    authenticator: Arc<Authenticator>,
    fetcher: Fetcher,
    turns: Semaphore,
    // Taken where nothing is known of a token, for a look-up.
    questions: Mutex<HashMap<Digest, WeakShared<BoxFuture<'static, Verdict>>>>,
    refused: Cache<Digest, ()>,
}

impl Inquiry {
    /// Also begins to ask again about tokens that something hangs on, as often as answers are kept (SECURITY AUTHN-5).
    pub(super) fn start(
        authenticator: &Arc<Authenticator>,
        fetcher: Fetcher,
        tasks: &Tasks,
    ) -> Self {
        let inquiry = Self(Arc::new(Inner {
            authenticator: authenticator.clone(),
            fetcher,
            turns: Semaphore::new(AT_ONCE),
            questions: Mutex::default(),
            refused: Cache::builder()
                .max_capacity(REFUSED)
                .time_to_live(NEGATIVE)
                .build(),
        }));
        let again = inquiry.clone();
        tasks.spawn(async move {
            let Some(every) = again.spec().map(|spec| spec.cache) else {
                return;
            };
            loop {
                tokio::time::sleep(every).await;
                let in_use = again.0.authenticator.introspected_in_use();
                stream::iter(in_use)
                    .for_each_concurrent(AGAIN_AT_ONCE, |identity| again.once_more(identity))
                    .await;
            }
        });
        inquiry
    }

    /// Asks about a token that something hangs on, whatever is known of it.
    async fn once_more(&self, identity: Arc<Identity>) {
        let Ok(_turn) = self.0.turns.acquire().await else {
            return;
        };
        if let Some(token) = &identity.assertion {
            drop(self.put(token.0.expose_secret(), &[]).await);
        }
    }

    /// Asks about a token, unless somebody does already or did lately.
    pub(super) async fn ask(&self, token: &str, audiences: &[Arc<str>]) -> Verdict {
        let digest = digest_of(token);
        if self.0.refused.contains_key(&digest) {
            return NOTHING;
        }
        let Some(question) = self.question(digest, token) else {
            return Verdict::Refused(AuthError::Unavailable);
        };
        let answer = question.await;
        // What is known now is judged for this endpoint; what is not was refused, or nobody could say.
        match self.judge(token, audiences) {
            Verdict::NeedsIntrospection => match answer {
                Verdict::Refused(error) => Verdict::Refused(error),
                Verdict::Proved(_) | Verdict::NeedsKeys(_) | Verdict::NeedsIntrospection => {
                    Verdict::Refused(AuthError::Unavailable)
                }
            },
            known @ (Verdict::Proved(_) | Verdict::Refused(_) | Verdict::NeedsKeys(_)) => known,
        }
    }

    /// The question about a token that is on the way, or a new one; `None` where there are too many.
    fn question(&self, digest: Digest, token: &str) -> Option<Question> {
        let questions = self.0.questions.lock();
        let mut questions = questions.unwrap_or_else(PoisonError::into_inner);
        // INVARIANT: one that ended cannot be upgraded, so what it found is looked at again and not waited for.
        if let Some(question) = questions.get(&digest).and_then(WeakShared::upgrade) {
            return Some(question);
        }
        if questions.len() >= TOKENS {
            questions.retain(|_, question| question.upgrade().is_some());
        }
        if questions.len() >= TOKENS {
            return None;
        }
        let (own, token) = (self.clone(), SecretString::from(token.to_owned()));
        let asking = async move { own.asked(digest, token.expose_secret()).await };
        let question = asking.boxed().shared();
        questions.insert(digest, question.downgrade()?);
        Some(question)
    }

    async fn asked(&self, digest: Digest, token: &str) -> Verdict {
        let turn = tokio::time::timeout(PATIENCE, self.0.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Verdict::Refused(AuthError::Unavailable);
        };
        // The question before this one may have ended since somebody looked.
        if self.0.refused.contains_key(&digest) {
            return NOTHING;
        }
        match self.judge(token, &[]) {
            Verdict::NeedsIntrospection => self.put(token, &[]).await,
            known @ (Verdict::Proved(_) | Verdict::Refused(_) | Verdict::NeedsKeys(_)) => known,
        }
    }

    fn judge(&self, token: &str, audiences: &[Arc<str>]) -> Verdict {
        let presented = Presented {
            bearer: Some(token),
            ..Presented::default()
        };
        let now = unix_seconds();
        (self.0.authenticator).judge(presented, audiences, Asked::First, now)
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
                let now = unix_seconds();
                let authenticator = &self.0.authenticator;
                let verdict = authenticator.put_introspected(token, answer.body, audiences, now);
                let worthless = matches!(verdict, Verdict::Refused(AuthError::Invalid(_)))
                    // That it is for another endpoint is known by now.
                    && matches!(self.judge(token, audiences), Verdict::NeedsIntrospection);
                if worthless {
                    self.0.refused.insert(digest_of(token), ());
                }
                verdict
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

/// What is said of a token that was worth nothing a moment ago.
const NOTHING: Verdict = Verdict::Refused(AuthError::Invalid("not active"));

fn digest_of(token: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
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
