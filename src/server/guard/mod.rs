//! Authentication before the dialects: who a request is from, or the refusal that helps a client to do better.
//!
//! Guarantees: decided by the head alone, before a byte of the body is read; the credential is taken out of the headers, so
//! that nothing behind this can pass it on (SECURITY EGR-1); what is refused says which metadata to read and which scopes to
//! ask for (PROTOCOL F5), and not which check failed (AUTHN-1). A request whose credential is known costs no wait and no lock
//! of ours. Deliberately absent: what somebody may do.

mod brought;
mod challenge;
mod failures;
mod inquiry;
mod key_file;
mod metadata;
mod refresh;

use std::{net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use http::{Response, request::Parts};

use super::Body;
use crate::{
    audit::journal::{Journal, Sender},
    auth::{Asked, AuthError, Authenticator, Verdict, spec::AuthSpec},
    call::{Identity, IdentityKind},
    fetch::{FetchError, Fetcher},
    metrics::{Bound, reached},
    seal::unix_seconds,
    tasks::Tasks,
};

pub use failures::Failures;
pub use key_file::{last_used, read as key_file, replace};
pub use metadata::{MetadataEndpoint, path as metadata_path};
pub use refresh::key_set;

use brought::Brought;
use challenge::{Challenge, Refusal};
use inquiry::Inquiry;
use refresh::KeyKeeper;

/// What all endpoints of a gateway share: the authenticator, and whoever fetches what it needs.
pub struct Gatekeeper {
    authenticator: Arc<Authenticator>,
    keepers: Vec<Arc<KeyKeeper>>,
    inquiry: Option<Inquiry>,
    failures: Arc<Failures>,
    journal: Journal,
}

/// The guard of one endpoint. A cheap handle.
#[derive(Clone)]
pub struct Guard(Option<Arc<Post>>);

struct Post {
    keeper: Arc<Gatekeeper>,
    /// Audiences of tokens for this endpoint, where an issuer has none of its own.
    audiences: Vec<Arc<str>>,
    challenge: Challenge,
}

/// What became of a request at the guard.
pub enum Admission {
    /// It goes on, as this somebody's.
    In(Arc<Identity>),
    /// It is answered with this.
    Out(Box<Response<Body>>),
    /// That is being found out.
    Wait(BoxFuture<'static, Result<Arc<Identity>, Response<Body>>>),
}

/// Why the gateway cannot start: what decides who is let in cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The roots of trust for fetching cannot be used.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The file of API keys is there and cannot be used.
    #[error("{}: {why}", file.display())]
    Keys {
        /// Which file.
        file: PathBuf,
        /// Why.
        why: String,
    },
}

impl Gatekeeper {
    /// Begins to fetch and watch what `spec` names.
    ///
    /// # Errors
    /// [`GuardError`]. That an identity provider is not there is none: it may come.
    pub fn start(spec: AuthSpec, tasks: &Tasks) -> Result<Arc<Self>, GuardError> {
        Self::noting(spec, Journal::off(), tasks)
    }

    /// The same, with who is refused in this journal (SECURITY 8).
    ///
    /// # Errors
    /// As [`Gatekeeper::start`].
    pub fn noting(
        spec: AuthSpec,
        journal: Journal,
        tasks: &Tasks,
    ) -> Result<Arc<Self>, GuardError> {
        let failures = Arc::new(Failures::new(spec.failures_per_minute));
        let authenticator = Arc::new(Authenticator::new(spec));
        let spec = authenticator.spec();
        let fetcher = Fetcher::new(None)?;
        if let Some(keys) = &spec.keys {
            key_file::watch(&authenticator, &keys.file, &journal, tasks)?;
        }
        let keeper = |number| KeyKeeper::start(number, &authenticator, fetcher.clone(), tasks);
        let keepers = (0..spec.issuers.len()).map(keeper).collect();
        let inquiry = spec
            .introspection
            .is_some()
            .then(|| Inquiry::start(&authenticator, fetcher, &failures, tasks));
        Ok(Arc::new(Self {
            keepers,
            inquiry,
            failures,
            journal,
            authenticator,
        }))
    }

    /// Waits until every issuer was asked for its keys once, at most this long.
    pub async fn settled(&self, limit: Duration) {
        let all = self.keepers.iter().map(|keeper| keeper.settled());
        // Whoever is away is asked again when it is needed.
        drop(tokio::time::timeout(limit, futures_util::future::join_all(all)).await);
    }

    /// The guard of the endpoint at `path`; `main` is the path of the one that serves everything.
    pub fn guard(self: &Arc<Self>, path: &str, main: &str) -> Guard {
        let spec = self.authenticator.spec();
        let resource = |path: &str| Arc::from(format!("{}{path}", spec.resource));
        let mut audiences = vec![resource(path)];
        if path != main {
            audiences.push(resource(main));
        }
        Guard(Some(Arc::new(Post {
            challenge: Challenge::new(spec, path),
            audiences,
            keeper: Arc::clone(self),
        })))
    }

    /// Where the metadata of the endpoint at `path` is served, if there is an authorization server to tell of.
    pub fn metadata(&self, path: &str) -> Option<MetadataEndpoint> {
        MetadataEndpoint::new(self.authenticator.spec(), path)
    }

    async fn verdict(&self, brought: &Brought, audiences: &[Arc<str>], address: IpAddr) -> Verdict {
        let presented = brought.presented();
        let judge = |asked| {
            self.authenticator
                .judge(presented, audiences, asked, unix_seconds())
        };
        match judge(Asked::First) {
            Verdict::NeedsKeys(number) => {
                if let Some(keeper) = self.keepers.get(number) {
                    keeper.refresh().await;
                }
                judge(Asked::Again)
            }
            Verdict::NeedsIntrospection => match (&self.inquiry, presented.bearer) {
                (Some(inquiry), Some(token)) => inquiry.ask(token, audiences, address).await,
                _ => Verdict::Refused(AuthError::Unavailable),
            },
            known @ (Verdict::Proved(_) | Verdict::Refused(_)) => known,
        }
    }
}

impl Guard {
    /// One that lets everybody in: nothing was said of authentication.
    pub const fn absent() -> Self {
        Self(None)
    }

    /// Decides about a request from this address by its head, and takes the credential out of it.
    pub fn admit(&self, head: &mut Parts, address: IpAddr) -> Admission {
        let Some(post) = &self.0 else {
            return Admission::In(Identity::anonymous());
        };
        let brought = match Brought::take(head) {
            Ok(brought) => brought,
            Err(misplaced) => {
                let refusal = challenge::misplaced(misplaced);
                return Admission::Out(post.noted(refusal, Sender::at(Some(address))).into());
            }
        };
        let verdict = post.keeper.authenticator.judge(
            brought.presented(),
            &post.audiences,
            Asked::First,
            unix_seconds(),
        );
        match verdict {
            Verdict::Proved(identity) => match post.enough(identity, address) {
                Ok(identity) => Admission::In(identity),
                Err(answer) => Admission::Out(answer),
            },
            Verdict::Refused(error) => Admission::Out(post.refuse(error, address).into()),
            Verdict::NeedsKeys(_) | Verdict::NeedsIntrospection => {
                let post = Arc::clone(post);
                let wait = async move {
                    let keeper = &post.keeper;
                    match keeper.verdict(&brought, &post.audiences, address).await {
                        Verdict::Proved(identity) => {
                            post.enough(identity, address).map_err(|answer| *answer)
                        }
                        Verdict::Refused(error) => Err(post.refuse(error, address)),
                        Verdict::NeedsKeys(_) | Verdict::NeedsIntrospection => {
                            Err(post.refuse(AuthError::Unavailable, address))
                        }
                    }
                };
                Admission::Wait(wait.boxed())
            }
        }
    }

    /// Writes the challenge of a `403` whose request needs a token with these scopes.
    pub fn step_up(&self, answer: &mut Response<Body>, scopes: &[Arc<str>]) {
        if let Some(post) = &self.0 {
            post.challenge.step_up(answer, scopes);
        }
    }
}

impl Post {
    /// Who has every scope that all need; anybody else is told which.
    fn enough(
        &self,
        identity: Arc<Identity>,
        address: IpAddr,
    ) -> Result<Arc<Identity>, Box<Response<Body>>> {
        let required = &self.keeper.authenticator.spec().required_scopes;
        let bound = identity.issuer.is_some() || identity.kind == IdentityKind::Key;
        if !bound || required.iter().all(|scope| identity.scopes.contains(scope)) {
            return Ok(identity);
        }
        let refusal = self.challenge.insufficient(required);
        let sender = Sender::at(Some(address)).by(&identity);
        Err(Box::new(self.noted(refusal, sender)))
    }

    fn refuse(&self, error: AuthError, address: IpAddr) -> Response<Body> {
        let failures = &self.keeper.failures;
        let refusal = match error {
            AuthError::Missing => self.challenge.missing(),
            AuthError::Unavailable => challenge::unavailable(),
            AuthError::Crowded => match failures.over(address) {
                Some(_) => {
                    reached(Bound::FailedAuthentications);
                    challenge::crowded()
                }
                // It was another address that had failed, or its minute is over.
                None => challenge::unavailable(),
            },
            AuthError::Invalid(check) => match failures.note(address) {
                Some(wait) => challenge::too_many(wait, check),
                None => self.challenge.invalid(check),
            },
        };
        self.noted(refusal, Sender::at(Some(address)))
    }

    /// The answer of a refusal, of which there is a record by the words that it goes out with.
    // SECURITY 4, 8
    fn noted(&self, refusal: Refusal, sender: Sender<'_>) -> Response<Body> {
        let journal = &self.keeper.journal;
        journal.refused(sender, refusal.record);
        refusal.answer
    }
}
