//! Login: a call to an upstream that people log in to waits until its principal has (PRODUCT 7, PROTOCOL D2a, F9).
//!
//! Guarantees: nothing reaches such an upstream for somebody who has not connected; who is to log in is asked to, in a round of
//! the gateway's own, or told where, if their client cannot be asked; a refusal ends the call; a login that has to be renewed is
//! waited for no longer than the upstream may take for a call. Calls to other upstreams pass unread. Deliberately absent: how a token gets into a request, and what the pages do.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, Either},
    stream,
};
use tokio::time::{Instant, timeout_at};
use tower::{Layer, Service};

use super::{Error, LoginNeeded, Parts, Upstreams, ready::take_ready};
use crate::{
    call::{
        Call, Caller, Event, Identity, IdentityKind, InputRequired, Op, Outcome, Reply,
        ReplyStream, Resume, State, Step,
    },
    connect::{Account, ConnectError, Connections, Settled},
    json::{Json, Node},
    metrics::{Bound, reached},
    protocol::{Revision, UpstreamId, meta, methods},
    stage::{Permitted, Way},
    upstream::{CredentialError, Deadline, FromUpstream, UpstreamError},
};

/// The question's key.
const KEY: &str = "dev.usher/login";
/// What the note of a state of ours begins with.
const NOTE: &str = "login ";
/// How long a call of a client that can call again waits for its user: shorter than clients wait for an answer.
const PATIENCE: Duration = Duration::from_secs(45);
/// What is kept of a call's time for the upstream, where the client cannot call again.
const MARGIN: Duration = Duration::from_secs(10);

/// The layer; it does nothing where nobody logs in to anything.
#[derive(Clone)]
pub(super) struct LoginLayer {
    connections: Option<Connections>,
    upstreams: Arc<dyn Upstreams>,
    rounds: u32,
}

impl LoginLayer {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            connections: parts.connections.clone(),
            upstreams: parts.upstreams.clone(),
            // The last word is ours and not the bound's.
            rounds: parts.asking.rounds.saturating_sub(1),
        }
    }
}

impl<S> Layer<S> for LoginLayer {
    type Service = Login<S>;

    fn layer(&self, inner: S) -> Login<S> {
        Login {
            connections: self.connections.clone(),
            upstreams: self.upstreams.clone(),
            rounds: self.rounds,
            inner,
        }
    }
}

/// A service behind a login.
#[derive(Clone)]
pub(super) struct Login<S> {
    connections: Option<Connections>,
    upstreams: Arc<dyn Upstreams>,
    rounds: u32,
    inner: S,
}

impl<S> Service<Box<Permitted>> for Login<S>
where
    S: Service<Box<Permitted>, Response = Reply, Error = Error> + Clone + Send + 'static,
    S::Future: Unpin + Send + 'static,
{
    type Response = Reply;
    type Error = Error;
    type Future = Either<S::Future, BoxFuture<'static, Result<Reply, Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, permitted: Box<Permitted>) -> Self::Future {
        let Some(connections) = &self.connections else {
            return Either::Left(self.inner.call(permitted));
        };
        let route = match &permitted.way {
            Way::Upstream(passage) if connections.covers(&passage.route().upstream) => {
                passage.route()
            }
            Way::Upstream(_) | Way::Snapshot | Way::Hub(_) | Way::Caller(_) => {
                return Either::Left(self.inner.call(permitted));
            }
        };
        let account = Account::of(&route.upstream, &permitted.call.caller.principal);
        let logs_in = matches!(permitted.call.op, Op::CallTool(_))
            && connections.is_login(
                &route.upstream,
                &route.local,
                &permitted.call.identity.grantee(),
                permitted.snapshot.is_own(&route.upstream),
            );
        let visit = Visit {
            logs_in,
            time: self.upstreams.call_timeout(&route.upstream),
            connections: connections.clone(),
            account,
            caller: Arc::clone(&permitted.call.caller),
            who: who(&permitted.call.identity),
            op: permitted.call.op.clone(),
            round: permitted.round,
            rounds: self.rounds,
            under_way: false,
        };
        let inner = take_ready(&mut self.inner);
        Either::Right(visit.carry(permitted, inner).boxed())
    }
}

/// A call of somebody who has to be connected.
struct Visit {
    connections: Connections,
    account: Account,
    /// How long a call of the upstream may take, where less than the call itself says.
    time: Option<Duration>,
    caller: Arc<Caller>,
    who: Arc<str>,
    op: Op,
    /// How often the caller was asked for something already.
    round: u32,
    /// After how many times nothing more is asked.
    rounds: u32,
    /// Whether logging in is all that is called for.
    logs_in: bool,
    /// Whether the upstream waits for the call to go on: then there is no room for a question of ours.
    under_way: bool,
}

/// What a call brings back that we have asked.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    login: Asked,
    /// Whether the person did not want to.
    declined: bool,
}

/// The login that somebody was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    notice: Arc<str>,
    /// When they had logged in before, if they had.
    before: Option<u64>,
}

impl Visit {
    async fn carry<S>(mut self, mut permitted: Box<Permitted>, mut inner: S) -> Result<Reply, Error>
    where
        S: Service<Box<Permitted>, Response = Reply, Error = Error> + Send,
        S::Future: Send,
    {
        let answer = take_answer(&mut permitted.call);
        self.under_way = permitted.call.resume.is_some();
        let mut told = None;
        if let Some(answer) = answer {
            if answer.declined {
                self.connections
                    .give_up(&self.account, &answer.login.notice);
                return Err(Error::InputRefused);
            }
            match self.wait(&answer.login, permitted.call.deadline).await {
                Settled::Granted => told = Some(answer.login.notice),
                Settled::Failed => return Err(Error::InputRefused),
                Settled::Pending => return self.still_waiting(&answer.login),
            }
        }
        let due = self.due(permitted.call.deadline);
        match timeout_at(due, self.connections.grant(&self.account)).await {
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return self.ask(),
            Ok(Err(error)) => return Err(self.failed(&error)),
            Err(_) => return Err(self.too_late()),
        }
        if self.logs_in {
            // It is there because what was granted is not enough to read anything with.
            if self.connections.wants_more(&self.account) {
                return self.ask();
            }
            return Ok(Reply::Done(Outcome::Complete(self.logged_in())));
        }
        let reply = match inner.call(permitted).await {
            // The upstream took no token of this principal's, and none is left.
            Err(Error::Upstream(FromUpstream {
                error: UpstreamError::Credential(CredentialError::NotConnected),
                ..
            })) => return self.ask(),
            // It took it for other things, and wants more for this one.
            Err(Error::Upstream(FromUpstream {
                error: UpstreamError::Credential(CredentialError::Lacks(_)),
                ..
            })) if self.connections.wants_more(&self.account) => return self.ask(),
            reply => reply?,
        };
        Ok(match told {
            Some(notice) if self.caller.revision == Revision::V2025_11_25 => done(&notice, reply),
            Some(_) | None => reply,
        })
    }

    /// When the login must be there at the latest.
    fn due(&self, deadline: Instant) -> Instant {
        let of_upstream = self.time.map(|time| Instant::now() + time);
        of_upstream.map_or(deadline, |due| due.min(deadline))
    }

    async fn wait(&self, login: &Asked, deadline: Instant) -> Settled {
        let latest = deadline.checked_sub(MARGIN).unwrap_or(deadline);
        let until = if self.calls_again() {
            latest.min(Instant::now() + PATIENCE)
        } else {
            latest
        };
        self.connections
            .settled(&self.account, &login.notice, login.before, until)
            .await
    }

    /// Whether the client itself makes the call again, so that it need not wait for long at a time.
    fn calls_again(&self) -> bool {
        self.caller.revision > Revision::LATEST_LEGACY
    }

    /// Asks, or says where to go.
    fn ask(&self) -> Result<Reply, Error> {
        let upstream = &self.account.upstream;
        let link = match self.connections.link(&self.account, &self.who) {
            Ok(link) => link,
            Err(error) => return Err(self.failed(&error)),
        };
        if !self.can_be_asked() {
            return Err(Error::LoginNeeded(LoginNeeded {
                upstream: upstream.clone(),
                url: Some(link.url.into()),
                notice: link.notice,
            }));
        }
        let params = meta::object_of(&[
            ("mode", Json::literal("\"url\"")),
            ("message", Json::string(&message(upstream, &self.who))),
            ("url", Json::string(&link.url)),
            // Left out again for those whose revision has no such thing.
            ("elicitationId", Json::string(&link.notice)),
        ]);
        let question = meta::object_of(&[
            ("method", Json::string(methods::ELICITATION_CREATE)),
            ("params", params),
        ]);
        let login = Asked {
            notice: link.notice,
            before: link.before,
        };
        Ok(required(meta::object_of(&[(KEY, question)]), &login))
    }

    /// The person has agreed and is not back yet: the client is to call again, without asking anybody anything.
    fn still_waiting(&self, login: &Asked) -> Result<Reply, Error> {
        if self.calls_again() && self.round < self.rounds {
            return Ok(required(Json::empty_object(), login));
        }
        Err(Error::LoginNeeded(LoginNeeded {
            upstream: self.account.upstream.clone(),
            url: None,
            notice: login.notice.clone(),
        }))
    }

    /// The result of the tool that only logs in.
    fn logged_in(&self) -> Json {
        let text = format!(
            "Logged in to {}. Its tools are listed in a moment; list tools again.",
            self.account.upstream
        );
        let block = meta::object_of(&[
            ("type", Json::string("text")),
            ("text", Json::string(&text)),
        ]);
        meta::object_of(&[("content", Json::array(&[block]))])
    }

    fn can_be_asked(&self) -> bool {
        !self.under_way
            && self.round < self.rounds
            && methods::may_ask_back(self.op.method())
            && self.caller.capabilities.cover(&urls())
    }

    fn too_late(&self) -> Error {
        reached(Bound::DeadlineCall);
        Error::Upstream(FromUpstream {
            upstream: self.account.upstream.clone(),
            error: UpstreamError::Timeout(Deadline::Call),
        })
    }

    fn failed(&self, error: &ConnectError) -> Error {
        let upstream = &self.account.upstream;
        tracing::warn!(%upstream, %error, "a principal cannot be connected");
        let error = match error {
            error if error.is_passing() => CredentialError::from(error.clone()).into(),
            ConnectError::Busy => return Error::Limited("too many logins are under way"),
            ConnectError::NoPage => {
                return Error::LoginNeeded(LoginNeeded {
                    upstream: upstream.clone(),
                    url: None,
                    notice: "".into(),
                });
            }
            ConnectError::Stopping => return Error::ShuttingDown,
            ConnectError::Unknown
            | ConnectError::Discover(_)
            | ConnectError::Register(_)
            | ConnectError::Token(_)
            | ConnectError::Store(_)
            | ConnectError::Panicked => UpstreamError::unreached("its login cannot be reached"),
        };
        Error::Upstream(FromUpstream {
            upstream: upstream.clone(),
            error,
        })
    }
}

/// What a client must declare to be asked.
fn urls() -> Json {
    Json::literal(r#"{"elicitation":{"url":{}}}"#)
}

/// What somebody is told; a label of the upstream's own would be wrong, since it is the gateway that asks.
fn message(upstream: &UpstreamId, who: &str) -> String {
    format!(
        "Log in to `{upstream}` to let this call go on. The gateway keeps the login for {who}; open the page only if that is you."
    )
}

fn required(requests: Json, login: &Asked) -> Reply {
    let Asked { notice, before } = login;
    let before = before.map(|before| format!(" {before}"));
    let note = format!("{NOTE}{notice}{}", before.unwrap_or_default());
    Reply::Done(Outcome::InputRequired(InputRequired {
        requests,
        state: State::Own(note.into()),
        hold: None,
    }))
}

/// Takes out of a call what it brings back for us: the upstream is to see it for the first time.
fn take_answer(call: &mut Call) -> Option<Answer> {
    let Some(Resume {
        state: Some(State::Own(note)),
        responses,
        ..
    }) = &call.resume
    else {
        return None;
    };
    let note = note.strip_prefix(NOTE)?;
    let login = match note.split_once(' ') {
        Some((notice, before)) => Asked {
            notice: notice.into(),
            before: Some(before.parse().ok()?),
        },
        None => Asked {
            notice: note.into(),
            before: None,
        },
    };
    let action = responses.as_ref().and_then(|responses| {
        let answer = responses.root().member(KEY)?;
        answer.member("action").and_then(Node::as_str)
    });
    let declined = matches!(action.as_deref(), Some(action) if action != "accept");
    call.resume = None;
    Some(Answer { login, declined })
}

/// The reply, and before it the word that the page is done with.
fn done(notice: &str, reply: Reply) -> Reply {
    let params = meta::object_of(&[("elicitationId", Json::string(notice))]);
    let first = stream::once(std::future::ready(Step::Event(Event::Elicited(params))));
    Reply::Stream(ReplyStream::new(match reply {
        Reply::Done(outcome) => {
            let last = stream::once(std::future::ready(Step::Outcome(outcome)));
            first.chain(last).boxed()
        }
        Reply::Stream(rest) => first.chain(rest).boxed(),
    }))
}

/// What people call whoever calls.
fn who(identity: &Identity) -> Arc<str> {
    match (&identity.kind, &identity.issuer) {
        (IdentityKind::Anonymous, _) => "everybody who may use this gateway without a login".into(),
        (IdentityKind::User | IdentityKind::Agent | IdentityKind::Key, Some(issuer)) => {
            format!("{} ({issuer})", identity.name).into()
        }
        (IdentityKind::Key, None) => format!("the key {}", identity.name).into(),
        (IdentityKind::User | IdentityKind::Agent, None) => identity.name.clone(),
    }
}
