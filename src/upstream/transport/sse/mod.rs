//! The two-endpoint HTTP+SSE transport of 2024-11-05 (PROTOCOL B5): one event stream in, a POST for each frame out.
//!
//! Guarantees: frames go to the origin of the event stream and nowhere else; the address that the server names is
//! never logged, since its query is as good as a credential; when the stream ends, everyone who waits is told.
//! Deliberately absent: reconnecting, which in this transport is a new session.

mod endpoint;

#[cfg(test)]
mod tests;

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{BoxFuture, Either, select},
    stream,
};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use tokio::time::timeout;

use super::{
    Answer, Dial, Frames, Head, Outbound, Owners, Transport,
    body::rest,
    events::Events,
    http::{Content, assemble, configured, inspect},
    mux::{Inbox, LastWord, Mux},
    owes::Owes,
    pool::{Pool, Use},
    refused::{Carried, admitted, retry_after},
};
use crate::{
    jsonrpc::{Frame, sse::Name},
    protocol::UpstreamId,
    tasks::Tasks,
    upstream::{
        Deadline, UpstreamError,
        spec::{HttpSpec, PeerBounds, Timeouts},
    },
};

/// How long a POST may take to be answered once the response to it has come over the stream.
const AFTERMATH: Duration = Duration::from_secs(5);

/// One open event stream and the address that belongs to it.
#[derive(Debug)]
pub struct Sse {
    mux: Mux,
    post: Post,
    tasks: Tasks,
}

/// A POST until it is answered.
type Posting = BoxFuture<'static, Result<Head, UpstreamError>>;

/// Where frames go. Its `Debug` shows no address.
#[derive(Clone)]
struct Post {
    url: Uri,
    headers: HeaderMap,
    pool: Pool,
}

impl Sse {
    /// Opens the event stream and waits for the address it names; the stream is read in `tasks`.
    ///
    /// # Errors
    /// `Timeout` when the address does not come within the connect deadline, `Protocol` when something else comes or
    /// it is of another origin, `Unavailable` for an HTTP status that is no success.
    pub async fn open(
        upstream: &UpstreamId,
        spec: &HttpSpec,
        dial: Dial,
        token: Option<HeaderValue>,
        timeouts: Timeouts,
        bounds: &PeerBounds,
        tasks: &Tasks,
    ) -> Result<Self, UpstreamError> {
        let tasks = tasks.child();
        let pool = Pool::new(dial, &tasks);
        let mut headers = configured(spec)?;
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, token);
        }
        let opening = async {
            let mut get = headers.clone();
            get.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            let request = assemble(Method::GET, &spec.url, get, Bytes::new());
            let carried = Carried::of(request.headers());
            let response = pool.send(request, Use::Dedicated).await?;
            let (head, kind, body) = inspect(response, &carried).await?;
            match (head.status.is_success(), kind) {
                (true, Content::Events) => {}
                (true, _) => {
                    return Err(UpstreamError::Protocol(
                        "a GET answered with something else than events".into(),
                    ));
                }
                (false, _) => {
                    let status = head.status;
                    return Err(UpstreamError::away(format!("GET: HTTP {status}"), status));
                }
            }
            let mut events = Events::new(body, bounds.json, bounds, Owes::Nothing);
            let first = events.event().await.unwrap_or_else(|| {
                Err(UpstreamError::unreached("the event stream ended at once"))
            })?;
            if first.name != Name::Endpoint {
                return Err(UpstreamError::Protocol(
                    "the first event is no `endpoint`".into(),
                ));
            }
            let url = endpoint::resolve(&spec.url, &first.data)
                .map_err(|fault| UpstreamError::Protocol(fault.into()))?;
            Ok((events, url))
        };
        let opened = timeout(timeouts.connect, opening).await;
        let (events, url) = opened.unwrap_or(Err(UpstreamError::Timeout(Deadline::Connect)))?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (mux, inbox) = Mux::new(upstream.clone(), bounds.json);
        tasks.spawn(read(events, inbox, mux.last_word()));
        let post = Post { url, headers, pool };
        Ok(Self { mux, post, tasks })
    }

    async fn exchange(&self, out: Outbound) -> Result<Answer, UpstreamError> {
        let Some(id) = &out.id else {
            let head = self.post.clone().send(out).await?;
            return Ok(if head.status.is_success() {
                Answer::Accepted(head)
            } else {
                Answer::Status(head)
            });
        };
        let exchange = self.mux.begin(id, out.limits)?;
        let posting: Posting = Box::pin(self.post.clone().send(out));
        let answer = pin!(Mux::answer(exchange));
        // What has come before the POST failed is looked at first.
        match select(answer, posting).await {
            Either::Right((Ok(head), answer)) if head.status.is_success() => answer.await,
            Either::Right((Ok(head), _forgotten)) => Ok(Answer::Status(head)),
            Either::Right((Err(error), _forgotten)) => Err(error),
            // Some servers answer the POST only when they have done what it asks.
            Either::Left((Ok(Answer::Stream(head, frames)), posting)) => {
                let posted = Posted {
                    frames,
                    posting: Some(posting),
                    tasks: self.tasks.clone(),
                };
                Ok(Answer::Stream(head, posted.into_frames()))
            }
            Either::Left((answer, posting)) => {
                see_off(posting, &self.tasks);
                answer
            }
        }
    }
}

impl Transport for Sse {
    fn send(&self, out: Outbound) -> BoxFuture<'_, Result<Answer, UpstreamError>> {
        Box::pin(self.exchange(out))
    }

    fn unsolicited(&self, _headers: HeaderMap) -> BoxFuture<'_, Result<Frames, UpstreamError>> {
        Box::pin(std::future::ready(self.mux.unsolicited()))
    }

    fn sort_by(&self, owners: Arc<dyn Owners>) {
        self.mux.sort_by(owners);
    }

    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        Box::pin(self.mux.lost())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.mux.end(UpstreamError::unreached("closed"));
        self.tasks.stop();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

impl Post {
    /// Sends one frame. What the answer says beside its status is of no interest.
    async fn send(mut self, out: Outbound) -> Result<Head, UpstreamError> {
        if let Some(token) = out.headers.get(AUTHORIZATION) {
            self.headers.insert(AUTHORIZATION, token.clone());
        }
        let request = assemble(Method::POST, &self.url, self.headers, out.frame);
        let carried = Carried::of(request.headers());
        let response = self.pool.send(request, Use::Pooled).await?;
        let response = admitted(response, &carried).await?;
        let status: StatusCode = response.status();
        let retry_after = retry_after(status, response.headers());
        // A word like `Accepted` is read, so that the connection serves again; more is not waited for.
        drop(timeout(Duration::from_millis(100), rest(response.into_body())).await);
        Ok(Head {
            status,
            session: None,
            retry_after,
        })
    }
}

/// Lets a POST come to its end of which the response is there. Breaking it off would cost a connection.
fn see_off(posting: Posting, tasks: &Tasks) {
    tasks.spawn(async move {
        drop(timeout(AFTERMATH, posting).await);
    });
}

/// The frames of an answer that began to come before its POST was answered. Dropping it breaks the POST off.
struct Posted {
    frames: Frames,
    /// `None` once it is answered.
    posting: Option<Posting>,
    tasks: Tasks,
}

impl Posted {
    /// The next frame. A POST that the server itself refuses ends the answer: it does not do what it was asked any more. Where it
    /// is what stands in front of it that gave the POST up, or the connection that broke, the answer may still come.
    async fn next(&mut self) -> Option<Result<Frame, UpstreamError>> {
        while let Some(posting) = self.posting.take() {
            let failed = match select(self.frames.next(), posting).await {
                Either::Left((next, posting)) => {
                    if let Some(Ok(Frame::Request(_) | Frame::Notification(_))) = next {
                        self.posting = Some(posting);
                    } else {
                        see_off(posting, &self.tasks);
                    }
                    return next;
                }
                Either::Right((Ok(Head { status, .. }), _)) if says_nothing(status) => continue,
                Either::Right((Ok(Head { status, .. }), _)) => {
                    UpstreamError::answered(format!("POST: HTTP {status}"))
                }
                Either::Right((Err(error), _)) if is_of_the_way(&error) => continue,
                Either::Right((Err(error), _)) => error,
            };
            self.frames = stream::empty().boxed();
            return Some(Err(failed));
        }
        self.frames.next().await
    }

    fn into_frames(self) -> Frames {
        stream::unfold(self, |mut posted| async move {
            let next = posted.next().await?;
            Some((next, posted))
        })
        .boxed()
    }
}

/// Whether a status says nothing of whether the server does what it was asked.
fn says_nothing(status: StatusCode) -> bool {
    status.is_success() || status.as_u16() > StatusCode::NOT_IMPLEMENTED.as_u16()
}

/// Whether a POST was not answered at all.
const fn is_of_the_way(error: &UpstreamError) -> bool {
    matches!(
        error,
        UpstreamError::Unavailable { .. } | UpstreamError::Timeout(_)
    )
}

impl std::fmt::Debug for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").finish_non_exhaustive()
    }
}

async fn read(mut events: Events, mut inbox: Inbox, last_word: LastWord) {
    let error = loop {
        match events.event().await {
            Some(Ok(event)) => {
                if event.name == Name::Message
                    && let Err(error) = inbox.take(event.data).await
                {
                    break error;
                }
            }
            Some(Err(error)) => break error,
            None => break UpstreamError::unreached("the event stream ended"),
        }
    };
    last_word.say(error);
}
