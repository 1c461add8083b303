//! Resumes an answer whose stream ended before the response, by a GET that names its last event (PROTOCOL B4, D1).
//!
//! Guarantees: nothing is sent twice, since a GET asks for what is still to come and for nothing else (SECURITY REL-6); it goes in
//! the session of the request that is answered, and with the credential that whoever that was on behalf of has by then; no sooner
//! than the server wishes, within reason; not after the transport was closed.
//! Bounds: [`ATTEMPTS`] in a row that bring no event.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::AUTHORIZATION};
use tokio::time::{Instant, sleep};
use tokio_util::{future::FutureExt as _, sync::CancellationToken};

use super::{Content, Head, Reach, forgotten, inspect};
use crate::{
    jsonrpc::sse,
    protocol::mirror,
    upstream::{
        CredentialError, Denial, UpstreamError,
        transport::{
            Credential,
            owes::Owes,
            pool::{Arriving, Use},
            refused::Carried,
        },
    },
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static(mirror::LAST_EVENT_ID);

/// The most attempts in a row that bring no event.
const ATTEMPTS: u32 = 10;
/// How long is waited where the server does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// The shortest wait, and the longest, whatever the server says.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// What the request that resumes an answer has of the first one: session, revision, credential, and where that is from.
pub(super) type Kept = ([Option<HeaderValue>; 3], Option<Arc<dyn Credential>>);

/// How to resume one answer.
pub(in crate::upstream::transport) struct Resume {
    reach: Arc<Reach>,
    headers: HeaderMap,
    /// Where the credential is from, if it ends: an answer may take longer than a token lives.
    credential: Option<Arc<dyn Credential>>,
    /// The last id, unless it is none to resume from.
    last: Option<HeaderValue>,
    pause: Duration,
    /// Attempts since the last event.
    vain: u32,
    /// How the connection is used.
    usage: Use,
    /// Cancelled when the transport is closed.
    closed: CancellationToken,
}

/// What of a request's headers has to be kept for [`Resume::new`].
pub(super) fn kept(headers: &HeaderMap, credential: Option<Arc<dyn Credential>>) -> Kept {
    (names().map(|name| headers.get(name).cloned()), credential)
}

const fn names() -> [HeaderName; 3] {
    [
        HeaderName::from_static(mirror::SESSION_ID),
        HeaderName::from_static(mirror::PROTOCOL_VERSION),
        AUTHORIZATION,
    ]
}

impl Resume {
    /// The answer's head names the session that a handshake begins.
    pub(super) fn new(
        reach: &Arc<Reach>,
        (kept, credential): Kept,
        head: &Head,
        closed: CancellationToken,
    ) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in names().into_iter().zip(kept) {
            headers.extend(value.map(|value| (name, value)));
        }
        if let Some(session) = &head.session {
            headers.insert(mirror::header::SESSION_ID.clone(), session.clone());
        }
        Self {
            reach: Arc::clone(reach),
            headers,
            credential,
            last: None,
            pause: PAUSE,
            vain: 0,
            usage: Use::Pooled,
            closed,
        }
    }

    /// The same for what has no end of its own.
    pub(super) const fn apart(mut self) -> Self {
        self.usage = Use::Dedicated;
        self
    }

    /// Takes note of an event that came.
    pub(in crate::upstream::transport) fn note(&mut self, event: &sse::Event) {
        self.vain = 0;
        if let Some(id) = &event.id {
            // An empty one takes back what was said before.
            self.last = if id.is_empty() {
                None
            } else {
                HeaderValue::from_bytes(id.as_bytes()).ok()
            };
        }
        if let Some(millis) = event.retry_millis {
            let (shortest, longest) = PAUSES;
            self.pause = Duration::from_millis(millis).clamp(shortest, longest);
        }
    }

    /// The stream that continues it; `None` where there is nothing to resume from, or the server does not resume it, or the
    /// transport is closed.
    /// What it `owes` has not been heard of `since` then.
    ///
    /// # Errors
    /// [`UpstreamError::Timeout`] when it is silent for too long.
    pub(in crate::upstream::transport) async fn again(
        &mut self,
        owes: &Owes,
        since: &mut Instant,
    ) -> Result<Option<Arriving>, UpstreamError> {
        let closed = self.closed.clone();
        let resumed = self.asked_again(owes, since);
        resumed
            .with_cancellation_token_owned(closed)
            .await
            .unwrap_or(Ok(None))
    }

    async fn asked_again(
        &mut self,
        owes: &Owes,
        since: &mut Instant,
    ) -> Result<Option<Arriving>, UpstreamError> {
        let Some(last) = &self.last else {
            return Ok(None);
        };
        let mut headers = self.headers.clone();
        headers.insert(LAST_EVENT_ID, last.clone());
        while self.vain < ATTEMPTS {
            self.vain += 1;
            sleep(self.pause).await;
            // Meanwhile nothing was to come.
            *since += self.pause;
            let asking = async { Ok(self.asked_for(headers.clone()).await) };
            match owes.within(since, asking).await? {
                Ok((head, Content::Events, body)) if head.status.is_success() => {
                    return Ok(Some(body));
                }
                Ok((head, ..)) if !is_passing(head.status.as_u16()) => {
                    tracing::debug!(status = %head.status, "an answer cannot be resumed");
                    return Ok(None);
                }
                // Whoever could not be reached may be there again soon.
                Ok(_) | Err(UpstreamError::Unavailable { .. } | UpstreamError::Timeout(_)) => {}
                // So may whoever gives out tokens.
                Err(UpstreamError::Credential(
                    CredentialError::Fetch(_)
                    | CredentialError::Connection(_)
                    | CredentialError::Unanswered(_),
                )) => {}
                Err(error) => {
                    tracing::debug!(%error, "an answer cannot be resumed");
                    return Ok(None);
                }
            }
        }
        tracing::debug!("an answer was asked for too often");
        Ok(None)
    }

    /// One attempt, with the credential of now; with another one, if the server no longer takes that and there is one.
    async fn asked_for(
        &self,
        mut headers: HeaderMap,
    ) -> Result<(Head, Content, Arriving), UpstreamError> {
        let Some(credential) = &self.credential else {
            return self.got(headers).await;
        };
        let now = credential.now().await?;
        headers.insert(AUTHORIZATION, now.clone());
        let answer = self.got(headers.clone()).await;
        if !matches!(
            answer,
            Err(UpstreamError::Auth(Some(Denial { status: 401, .. })))
        ) {
            return answer;
        }
        let Some(other) = credential.instead(&now).await? else {
            return answer;
        };
        headers.insert(AUTHORIZATION, other);
        self.got(headers).await
    }

    async fn got(&self, headers: HeaderMap) -> Result<(Head, Content, Arriving), UpstreamError> {
        let is_named = forgotten::is_named(&headers);
        let request = self.reach.get(headers);
        let carried = Carried::of(request.headers());
        let mut response = self.reach.carry(request, self.usage).await?;
        // It is about no credential, so another one is of no use.
        if Box::pin(forgotten::names_none(is_named, &mut response)).await {
            let head = Head {
                status: StatusCode::NOT_FOUND,
                ..Head::default()
            };
            return Ok((head, Content::Other(None), response.into_body()));
        }
        inspect(response, &carried).await
    }
}

/// Whether a status says something of the moment only. Servers on the TypeScript SDK say 409 while they still hold the stream that
/// ended here.
const fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, sync::Mutex};

    use futures_util::{StreamExt, future::BoxFuture};
    use http::Response;

    use super::*;
    use crate::{
        fetch::FetchError,
        tasks::Tasks,
        upstream::{
            Deadline,
            transport::{
                Answer, Http, Outbound, Transport,
                rig::{self, Body},
            },
        },
    };

    /// A server that gives these answers one after another, and what it was asked.
    #[derive(Clone)]
    struct Script {
        answers: Arc<Mutex<VecDeque<Response<Body>>>>,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Script {
        async fn play(
            tasks: &Tasks,
            silence: Duration,
            answers: impl IntoIterator<Item = Response<Body>>,
        ) -> (Self, Http) {
            let script = Self {
                answers: Arc::new(Mutex::new(answers.into_iter().collect())),
                asked: Arc::default(),
            };
            let this = script.clone();
            let address = rig::serve(tasks, None, None, move |request| {
                let of = |name: &str| request.headers().get(name)?.to_str().ok();
                let names = ["last-event-id", "mcp-session-id", "mcp-protocol-version"];
                let mut asked = request.method().to_string();
                for value in names.into_iter().chain(["authorization"]).filter_map(of) {
                    asked.push(' ');
                    asked.push_str(value);
                }
                this.asked.lock().unwrap().push(asked);
                let next = this.answers.lock().unwrap().pop_front();
                async move {
                    match next {
                        Some(answer) => answer,
                        None => std::future::pending().await,
                    }
                }
            })
            .await;
            let mut timeouts = rig::timeouts();
            timeouts.silence = silence;
            let spec = rig::spec("http", "127.0.0.1", address, "/mcp");
            (script, rig::streamable(&spec, timeouts, tasks).unwrap())
        }

        fn asked(&self) -> Vec<String> {
            self.asked.lock().unwrap().clone()
        }
    }

    /// Has these tokens one after another, and another one for each that was refused.
    #[derive(Debug, Default)]
    struct Tokens {
        now: Mutex<VecDeque<&'static str>>,
        instead: Mutex<VecDeque<&'static str>>,
    }

    impl Credential for Tokens {
        fn now(&self) -> BoxFuture<'_, Result<HeaderValue, CredentialError>> {
            let next = self.now.lock().unwrap().pop_front();
            let next = next.ok_or(CredentialError::NotConnected);
            Box::pin(std::future::ready(next.map(HeaderValue::from_static)))
        }

        fn instead<'a>(
            &'a self,
            refused: &'a HeaderValue,
        ) -> BoxFuture<'a, Result<Option<HeaderValue>, CredentialError>> {
            let next = self.instead.lock().unwrap().pop_front();
            assert_ne!(next, refused.to_str().ok());
            let next = next.map(HeaderValue::from_static);
            Box::pin(std::future::ready(Ok(next)))
        }
    }

    /// The same call with a credential that has these tokens.
    fn lasting<const N: usize>(now: [&'static str; N], instead: Option<&'static str>) -> Outbound {
        let credential = Tokens {
            now: Mutex::new(now.into()),
            instead: Mutex::new(instead.into_iter().collect()),
        };
        Outbound {
            credential: Some(Arc::new(credential)),
            ..call()
        }
    }

    const PATIENT: Duration = Duration::from_secs(30);

    fn events(text: impl Into<String>) -> Response<Body> {
        rig::answer(200, "text/event-stream", rig::full(text.into()))
    }

    fn primed() -> String {
        "id: e1\nretry: 0\ndata: \n\n".to_owned()
    }

    fn event(id: &str, data: &str) -> String {
        format!("id: {id}\ndata: {data}\n\n")
    }

    fn call() -> Outbound {
        let mut out = rig::request(1);
        for (name, value) in [
            ("mcp-session-id", "s"),
            ("mcp-protocol-version", "2025-11-25"),
            ("authorization", "Bearer ana"),
        ] {
            out.headers.insert(name, HeaderValue::from_static(value));
        }
        out.resumes = true;
        out
    }

    #[tokio::test]
    async fn a_stream_that_ends_before_its_answer_is_gone_on_with_from_its_last_event() {
        let tasks = Tasks::new();
        let half = event("e4", &rig::progress(1, 3));
        let answers = [
            primed() + &event("e2", &rig::progress(1, 1)),
            // Nothing yet.
            String::new(),
            event("e3", &rig::progress(1, 2)) + &half[..half.len() / 2],
            event("e4", &rig::progress(1, 3)) + &event("e5", &rig::result(1, 7)),
        ];
        let (script, http) = Script::play(&tasks, PATIENT, answers.map(events)).await;
        let progress = "notifications/progress";
        let got = rig::ask(&http, call()).await.unwrap();
        assert_eq!(got, [progress, progress, progress, "{\"n\":7}"]);
        let own = "s 2025-11-25 Bearer ana";
        let asked = [
            format!("POST {own}"),
            format!("GET e2 {own}"),
            format!("GET e2 {own}"),
            format!("GET e3 {own}"),
        ];
        assert_eq!(script.asked(), asked);
    }

    #[tokio::test]
    async fn an_answer_is_gone_on_with_once_the_server_is_fit_for_it() {
        for status in [408, 409, 425, 429, 503] {
            let tasks = Tasks::new();
            let answers = [
                events(primed()),
                rig::answer(status, "application/json", rig::full("{}")),
                events(event("e2", &rig::result(1, 7))),
            ];
            let (script, http) = Script::play(&tasks, PATIENT, answers).await;
            let got = rig::ask(&http, call()).await;
            assert_eq!(got.unwrap_or_else(|_| panic!("{status}")), ["{\"n\":7}"]);
            assert_eq!(script.asked().len(), 3, "{status}");
        }
    }

    /// An answer may take longer than a token lives.
    #[tokio::test]
    async fn an_answer_is_gone_on_with_by_the_token_of_each_moment() {
        let tasks = Tasks::new();
        let refused = || rig::answer(401, "text/plain", rig::full(""));
        let answers = [
            events(primed()),
            events(""),
            refused(),
            events(""),
            events(event("e2", &rig::result(1, 7))),
        ];
        let (script, http) = Script::play(&tasks, PATIENT, answers).await;
        let tokens = ["Bearer ana", "Bearer old", "Bearer new"];
        let out = lasting(tokens, Some("Bearer fresh"));
        assert_eq!(rig::ask(&http.apart(), out).await.unwrap(), ["{\"n\":7}"]);
        let got = |token| format!("GET e1 s 2025-11-25 Bearer {token}");
        let asked = [
            "POST s 2025-11-25 Bearer ana".to_owned(),
            got("ana"),
            got("old"),
            got("fresh"),
            got("new"),
        ];
        assert_eq!(script.asked(), asked);
    }

    /// Has none the first time, for this reason.
    #[derive(Debug)]
    struct Away(Mutex<Option<CredentialError>>);

    impl Credential for Away {
        fn now(&self) -> BoxFuture<'_, Result<HeaderValue, CredentialError>> {
            let token = match self.0.lock().unwrap().take() {
                Some(why) => Err(why),
                None => Ok(HeaderValue::from_static("Bearer ana")),
            };
            Box::pin(std::future::ready(token))
        }

        fn instead<'a>(
            &'a self,
            _refused: &'a HeaderValue,
        ) -> BoxFuture<'a, Result<Option<HeaderValue>, CredentialError>> {
            Box::pin(std::future::ready(Ok(None)))
        }
    }

    #[tokio::test]
    async fn an_answer_is_gone_on_with_once_whoever_gives_out_tokens_answers_again() {
        for why in [
            CredentialError::Fetch(FetchError::Timeout("answer")),
            CredentialError::Connection("it cannot be read".into()),
            CredentialError::Unanswered("no answer in time".into()),
        ] {
            let tasks = Tasks::new();
            let answers = [primed(), event("e2", &rig::result(1, 7))];
            let (script, http) = Script::play(&tasks, PATIENT, answers.map(events)).await;
            let out = Outbound {
                credential: Some(Arc::new(Away(Mutex::new(Some(why.clone()))))),
                ..call()
            };
            let got = rig::ask(&http, out).await;
            assert_eq!(got.unwrap_or_else(|_| panic!("{why}")), ["{\"n\":7}"]);
            assert_eq!(script.asked().len(), 2);
        }
    }

    #[tokio::test]
    async fn an_answer_is_lost_where_no_token_is_taken_any_more() {
        // Of a server that takes none, and of somebody who is not connected any more.
        for (out, attempts) in [
            (lasting(["Bearer old"], Some("Bearer fresh")), 2),
            (lasting(["Bearer old"], None), 1),
            (lasting([], None), 0),
        ] {
            let tasks = Tasks::new();
            let refused = || rig::answer(401, "text/plain", rig::full(""));
            let answers = [events(primed()), refused(), refused(), refused()];
            let (script, http) = Script::play(&tasks, PATIENT, answers).await;
            let error = rig::ask(&http, out).await.unwrap_err();
            let lost = matches!(error, UpstreamError::Unavailable { .. });
            assert!(lost, "{error}");
            assert_eq!(script.asked().len(), 1 + attempts);
        }
    }

    /// PROTOCOL B4: a server may let go of the stream as soon as an id was sent.
    #[tokio::test]
    async fn the_session_that_a_handshake_begins_is_named_when_its_answer_is_gone_on_with() {
        let tasks = Tasks::new();
        let mut first = events(primed());
        first
            .headers_mut()
            .insert("mcp-session-id", HeaderValue::from_static("new"));
        let answers = [first, events(event("e2", &rig::result(1, 7)))];
        let (script, http) = Script::play(&tasks, PATIENT, answers).await;
        let mut out = call();
        out.headers.clear();
        assert_eq!(rig::ask(&http, out).await.unwrap(), ["{\"n\":7}"]);
        assert_eq!(script.asked(), ["POST", "GET e1 new"]);
    }

    #[tokio::test]
    async fn an_answer_is_lost_where_the_server_does_not_go_on() {
        for (status, kind) in [
            (405, "text/plain"),
            (404, "application/json"),
            (401, "text/plain"),
            (302, "text/plain"),
            (200, "application/json"),
        ] {
            let tasks = Tasks::new();
            let answers = [events(primed()), rig::answer(status, kind, rig::full(""))];
            let (script, http) = Script::play(&tasks, PATIENT, answers).await;
            let error = rig::ask(&http, call()).await.unwrap_err();
            let lost = matches!(error, UpstreamError::Unavailable { .. });
            assert!(lost, "{status}: {error}");
            assert_eq!(script.asked().len(), 2, "{status}");
        }
    }

    /// PROTOCOL B4: so servers on `rmcp` say that they do not know the session.
    #[tokio::test]
    async fn a_401_that_is_about_the_session_costs_no_token() {
        let tasks = Tasks::new();
        let forgotten = rig::full("Unauthorized: Session not found");
        let forgotten = rig::answer(401, "text/plain", forgotten);
        let (script, http) = Script::play(&tasks, PATIENT, [events(primed()), forgotten]).await;
        let out = lasting(["Bearer ana"], Some("Bearer fresh"));
        let error = rig::ask(&http, out).await.unwrap_err();
        let lost = matches!(error, UpstreamError::Unavailable { .. });
        assert!(lost, "{error}");
        assert_eq!(script.asked().len(), 2);
    }

    #[tokio::test]
    async fn an_answer_without_an_event_to_go_on_from_is_lost_at_once() {
        let step = rig::progress(1, 1);
        for (resumes, text) in [
            (true, format!("data: {step}\n\n")),
            (true, event("", &step)),
            (true, event(&"x".repeat(sse::MAX_ID + 1), &step)),
            (false, event("e1", &step)),
        ] {
            let tasks = Tasks::new();
            let (script, http) = Script::play(&tasks, PATIENT, [events(text)]).await;
            let out = Outbound { resumes, ..call() };
            let error = rig::ask(&http, out).await.unwrap_err();
            assert!(matches!(error, UpstreamError::Unavailable { .. }));
            assert_eq!(script.asked().len(), 1);
        }
    }

    #[tokio::test]
    async fn an_answer_is_not_gone_on_with_once_the_transport_is_closed() {
        let tasks = Tasks::new();
        let text = primed() + &event("e2", &rig::progress(1, 1));
        let silence = Duration::from_millis(500);
        let (script, http) = Script::play(&tasks, silence, [events(text)]).await;
        let Answer::Stream(_, mut frames) = http.send(call()).await.unwrap() else {
            panic!("no stream");
        };
        assert!(frames.next().await.unwrap().is_ok());
        http.close().await;
        let error = frames.next().await.unwrap().unwrap_err();
        let lost = matches!(error, UpstreamError::Unavailable { .. });
        assert!(lost, "{error}");
        assert_eq!(script.asked().len(), 1);
    }

    /// Nor while it is asked for.
    #[tokio::test]
    async fn asking_how_an_answer_goes_on_ends_when_the_transport_is_closed() {
        let tasks = Tasks::new();
        let silence = Duration::from_millis(500);
        let (script, http) = Script::play(&tasks, silence, [events(primed())]).await;
        let closing = async {
            while script.asked().len() < 2 {
                tokio::task::yield_now().await;
            }
            http.close().await;
        };
        let (got, ()) = tokio::join!(rig::ask(&http, call()), closing);
        let lost = matches!(got, Err(UpstreamError::Unavailable { .. }));
        assert!(lost, "{got:?}");
    }

    #[tokio::test]
    async fn attempts_that_bring_nothing_have_an_end() {
        let tasks = Tasks::new();
        let busy = || rig::answer(503, "text/plain", rig::full(""));
        let in_turn = (0..).map(|n| if n % 2 == 0 { busy() } else { events("") });
        let answers = [events(primed())].into_iter().chain(in_turn.take(50));
        let (script, http) = Script::play(&tasks, PATIENT, answers).await;
        let error = rig::ask(&http, call()).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Unavailable { .. }));
        let attempts = usize::try_from(ATTEMPTS).unwrap();
        assert_eq!(script.asked().len(), 1 + attempts);
    }

    #[tokio::test]
    async fn a_stream_that_goes_on_may_be_silent_for_no_longer_than_any_other() {
        let tasks = Tasks::new();
        let silence = Duration::from_millis(50);
        let (_script, http) = Script::play(&tasks, silence, [events(primed())]).await;
        let error = rig::ask(&http, call()).await.unwrap_err();
        assert!(matches!(error, UpstreamError::Timeout(Deadline::Silence)));
    }

    /// The stream of a caller's session, whose messages would be lost meanwhile.
    #[tokio::test]
    async fn the_own_stream_of_a_session_is_gone_on_with_where_it_can_be_and_may_not_be_offered() {
        let tasks = Tasks::new();
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let answers = [
            events(primed() + &event("e2", ping)),
            events(event("e3", ping)),
            rig::answer(400, "text/plain", rig::full("")),
            rig::answer(405, "text/plain", rig::full("")),
        ];
        let (script, http) = Script::play(&tasks, PATIENT, answers).await;
        let headers = call().headers;
        let mut frames = http.own_stream(headers.clone()).await.unwrap().unwrap();
        assert!(frames.next().await.unwrap().is_ok());
        assert!(frames.next().await.unwrap().is_ok());
        assert!(frames.next().await.is_none());
        assert!(http.own_stream(headers).await.unwrap().is_none());
        let own = "s 2025-11-25 Bearer ana";
        let asked = [
            format!("GET {own}"),
            format!("GET e2 {own}"),
            format!("GET e3 {own}"),
            format!("GET {own}"),
        ];
        assert_eq!(script.asked(), asked);
    }

    #[tokio::test]
    async fn an_answer_that_nobody_wants_is_not_gone_on_with() {
        let tasks = Tasks::new();
        let text = primed() + &event("e2", &rig::progress(1, 1));
        let (script, http) = Script::play(&tasks, PATIENT, [events(text)]).await;
        let Answer::Stream(_, mut frames) = http.send(call()).await.unwrap() else {
            panic!("no stream");
        };
        assert!(frames.next().await.unwrap().is_ok());
        let waits = tokio::time::timeout(PAUSES.0 / 2, frames.next()).await;
        assert!(waits.is_err());
        drop(frames);
        sleep(PAUSES.0 * 2).await;
        assert_eq!(script.asked().len(), 1);
    }
}
