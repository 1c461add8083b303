//! Asking the authorization server about a token (RFC 7662): bounded, remembered, and asked again while a stream hangs on it.
//!
//! Guarantees: however many requests bring one token at once, it is asked about once; one that is worth nothing is not asked
//! about again for [`NEGATIVE`]; so many questions are on the way as [`AT_ONCE`], [`OF_FAILING`] and [`AGAIN_AT_ONCE`] say, and
//! as many tokens wait for one. Over these bounds the answer is that the provider is not to be had, never that somebody may come
//! in (SECURITY AUTHN-7). Addresses take turns, a token that counted before is one of its own, and addresses that fail too often
//! wait beside all others: nobody who brings any number of tokens keeps others waiting for more than a turn (AUTHN-8, REL-3).

use std::{
    collections::HashMap,
    net::IpAddr,
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
use tokio::time::Instant;

use super::failures::{Failures, network};
use crate::{
    auth::{Asked, AuthError, Authenticator, Presented, Verdict, spec::IntrospectionSpec},
    call::{Identity, Principal},
    fetch::Fetcher,
    limits::{FairSemaphore, FairSlot, Full, Room},
    seal::unix_seconds,
    tasks::Tasks,
};

/// Questions at once, and tokens that wait for one.
const AT_ONCE: Room = Room {
    seats: 16,
    line: 4_096,
};
/// The same beside them, about tokens of addresses that failed too often, of all of these together.
const OF_FAILING: Room = Room { seats: 2, line: 64 };
/// And beside them, about tokens that something hangs on.
const AGAIN_AT_ONCE: usize = 4;
/// How long somebody waits for a turn.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a token that is worth nothing is not asked about again. Short: it may have been too new for the server.
const NEGATIVE: Duration = Duration::from_secs(5);
/// How many of those are kept.
const REFUSED: u64 = 16_384;
/// Tokens that are remembered as asked about: more than are at once, so that those that are over are seldom looked for.
const TOKENS: usize = 2 * AT_ONCE.line;

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
    failures: Arc<Failures>,
    turns: Arc<FairSemaphore>,
    turns_of_failing: Arc<FairSemaphore>,
    // Taken where nothing is known of a token, for a look-up.
    questions: Mutex<HashMap<Digest, WeakShared<BoxFuture<'static, Verdict>>>>,
    refused: Cache<Digest, ()>,
}

impl Inquiry {
    /// Also begins to ask again about tokens that something hangs on, as often as answers are kept (SECURITY AUTHN-5).
    pub(super) fn start(
        authenticator: &Arc<Authenticator>,
        fetcher: Fetcher,
        failures: &Arc<Failures>,
        tasks: &Tasks,
    ) -> Self {
        let inquiry = Self(Arc::new(Inner {
            authenticator: authenticator.clone(),
            fetcher,
            failures: Arc::clone(failures),
            turns: Arc::default(),
            turns_of_failing: Arc::default(),
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
        if let Some(token) = &identity.assertion {
            drop(self.put(token.0.expose_secret(), &[]).await);
        }
    }

    /// Asks about a token, unless somebody does already or did lately.
    pub(super) async fn ask(
        &self,
        token: &str,
        audiences: &[Arc<str>],
        address: IpAddr,
    ) -> Verdict {
        let digest = digest_of(token);
        if self.0.refused.contains_key(&digest) {
            return NOTHING;
        }
        let Some(question) = self.question(digest, token, address) else {
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
    fn question(&self, digest: Digest, token: &str, address: IpAddr) -> Option<Question> {
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
        let asking = async move { own.asked(digest, token.expose_secret(), address).await };
        let question = asking.boxed().shared();
        questions.insert(digest, question.downgrade()?);
        Some(question)
    }

    async fn asked(&self, digest: Digest, token: &str, address: IpAddr) -> Verdict {
        let _turn = match self.turn(digest, token, address).await {
            Ok(turn) => turn,
            Err(error) => return Verdict::Refused(error),
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

    /// A turn to ask about a token that this address brings.
    // SECURITY AUTHN-8
    async fn turn(
        &self,
        digest: Digest,
        token: &str,
        address: IpAddr,
    ) -> Result<FairSlot, AuthError> {
        let Inner {
            authenticator,
            failures,
            turns,
            turns_of_failing,
            ..
        } = &*self.0;
        let until = Instant::now() + PATIENCE;
        if authenticator.knows(token) {
            let own = Principal::new(format!("token {}", STANDARD.encode(digest)));
            let turn = turns.take(&own, AT_ONCE, until).await;
            return turn.map_err(|_: Full| AuthError::Unavailable);
        }
        let own = Principal::new(format!("address {}", network(address)));
        if failures.over(address).is_none() {
            let turn = turns.take(&own, AT_ONCE, until).await;
            // Others of its address may have failed while it waited.
            if failures.over(address).is_none() {
                return turn.map_err(|_: Full| AuthError::Unavailable);
            }
        }
        let turn = turns_of_failing.take(&own, OF_FAILING, until).await;
        turn.map_err(|_: Full| AuthError::Crowded)
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

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::{
        auth::spec::{AuthSpec, ClaimNames},
        fetch::{Address, answering::Answering},
    };

    const AUDIENCE: &str = "https://mcp.example.com/mcp";
    const ACTIVE: &str = r#"{"active":true,"sub":"ana","aud":"https://mcp.example.com/mcp"}"#;

    /// A server that knows the tokens that begin with `good`, and whoever asks it; so many failures a minute are no matter.
    async fn asking(failures: u32) -> (Answering, Inquiry) {
        let server = Answering::by(|sent| {
            let known = sent.contains("token=good");
            let text = if known { ACTIVE } else { r#"{"active":false}"# };
            let length = text.len();
            format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{text}")
                .into()
        })
        .await;
        let url = format!("http://{}/introspect", server.at);
        let mut spec = AuthSpec::new("https://mcp.example.com", Vec::new());
        spec.introspection = Some(IntrospectionSpec {
            url: Address::configured(&url, false).unwrap(),
            client_id: "usher".into(),
            client_secret: "s".into(),
            issuer: "https://id.example.com".into(),
            audiences: Vec::new(),
            require_audience: true,
            cache: Duration::from_secs(45),
            claims: ClaimNames::default(),
        });
        let authenticator = Arc::new(Authenticator::new(spec));
        let failures = Arc::new(Failures::new(failures));
        let fetcher = Fetcher::new(None).unwrap();
        let inquiry = Inquiry::start(&authenticator, fetcher, &failures, &Tasks::new());
        (server, inquiry)
    }

    impl Inquiry {
        /// What is said of these tokens, which these addresses bring at once.
        async fn all(&self, brought: &[(String, &str)]) -> Vec<Verdict> {
            let audiences = [AUDIENCE.into()];
            let all = brought.iter().map(|(token, address)| {
                let address = address.parse().unwrap();
                self.ask(token, &audiences, address)
            });
            join_all(all).await
        }
    }

    /// So many tokens that are worth nothing.
    fn random(count: usize, address: &str) -> Vec<(String, &str)> {
        (0..count).map(|n| (format!("bad-{n}"), address)).collect()
    }

    /// How many questions came before the one about this token.
    fn before(server: &Answering, token: &str) -> usize {
        let sent = format!("token={token}&");
        let seen = server.seen();
        let asked = seen.iter().position(|it| it.contains(&sent));
        asked.expect("it is asked about")
    }

    // SECURITY AUTHN-8, REL-3
    #[tokio::test]
    async fn whoever_brings_any_number_of_tokens_keeps_nobody_else_waiting_for_more_than_a_turn() {
        let (server, inquiry) = asking(1_000).await;
        let mut brought = random(64, "192.0.2.1");
        brought.push(("good".into(), "192.0.2.2"));
        let verdicts = inquiry.all(&brought).await;
        assert!(matches!(verdicts[64], Verdict::Proved(_)));
        let others = before(&server, "good");
        assert!(others < AT_ONCE.seats + 4, "{others}");
        assert_eq!(server.seen().len(), 65);
    }

    // SECURITY AUTHN-8
    #[tokio::test]
    async fn an_address_that_fails_too_often_waits_beside_the_others_and_what_counted_before_does_not()
     {
        let (server, inquiry) = asking(0).await;
        let bad = "192.0.2.1";
        inquiry.0.failures.note(bad.parse().unwrap());
        let (long_ago, audiences) = (unix_seconds() - 100, [AUDIENCE.into()]);
        let authenticator = &inquiry.0.authenticator;
        authenticator.put_introspected("good-known", ACTIVE.into(), &audiences, long_ago);
        let mut brought = random(100, bad);
        brought.push(("good-known".into(), bad));
        brought.push(("good-new".into(), "192.0.2.2"));
        let verdicts = inquiry.all(&brought).await;
        for (verdict, token) in verdicts[100..].iter().zip(["good-known", "good-new"]) {
            assert!(
                matches!(verdict, Verdict::Proved(_)),
                "{token}: {verdict:?}"
            );
            let others = before(&server, token);
            assert!(others < OF_FAILING.seats + 4, "{token}: {others}");
        }
        let crowded = |it: &&Verdict| matches!(it, Verdict::Refused(AuthError::Crowded));
        let asked = OF_FAILING.seats + OF_FAILING.line;
        assert_eq!(verdicts.iter().filter(crowded).count(), 100 - asked);
        assert_eq!(server.seen().len(), asked + 2);
        // A new token of that address is good as well, once there is a turn.
        let late = inquiry.all(&[("good-late".into(), bad)]).await;
        assert!(matches!(late[0], Verdict::Proved(_)));
    }
}
